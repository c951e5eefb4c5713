"""Correct programs for the trials, each with the bound of its own rounding profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ..attention_bound import AttentionBound
from ..implementations import Implementation, llama_rotary, multihead, scaled_dot_product
from ..implementations.scaled_dot_product import ROW_AXIS, pairs
from ..walk import Replacement, never
from .code import complex_turn, eager, half_split, interleaved, online

__all__ = ["BLOCKS", "fused_bound", "honest", "named_bound", "replacing"]

BLOCKS = (64, 1_000)
"""Keys in a block of the online softmax: many blocks, and one that holds them all or nearly."""
TURN_AXIS = (-2, -1, None)
Code = Callable[..., Tensor]


def replacing(code: Code, names: tuple[str, ...] = tuple(ROW_AXIS)) -> dict[str, Replacement]:
    """Code for definitions of attention, run for the selected rows only."""
    return {name: Replacement(code, ROW_AXIS[name], never) for name in names}


def named_bound(bound: AttentionBound) -> dict[str, Replacement]:
    """A bound for each definition of attention."""
    return {name: Replacement(bound, axes, never, pairs) for name, axes in ROW_AXIS.items()}


def fused_bound() -> dict[str, Replacement]:
    """The bound of code that keeps scores in the accumulation precision."""
    return named_bound(AttentionBound())


def _interleaved(x: Tensor, positions: Tensor, frequencies: Tensor) -> Tensor:
    """Interleaved code on the channels in its order, put back after."""
    paired = torch.stack(x.chunk(2, -1), -1).flatten(-2)
    turned = interleaved(paired, positions, frequencies)
    return torch.cat((turned[..., 0::2], turned[..., 1::2]), -1)


def _attentions(device: torch.device) -> list[Implementation]:
    """Programs for attention, masked or not."""
    found = [*scaled_dot_product.implementations(device), *multihead.implementations(device)]
    found += [
        Implementation(f"online softmax, blocks of {size}", replacing(partial(online, block=size)),
                       fused_bound())
        for size in BLOCKS
    ]  # fmt: skip
    return [*found, _eager()]


def _eager() -> Implementation:
    """Scores and weights stored in the dtype."""
    bound = named_bound(AttentionBound(scores_stored=True))
    return Implementation("transformers' eager attention", replacing(eager), bound)


def _turning(device: torch.device) -> list[Implementation]:
    """Rotary programs.  Those written here are bounded operation by operation, the worst case."""
    written: dict[str, Code] = {
        "half-split": half_split, "interleaved": _interleaved, "complex": complex_turn
    }  # fmt: skip
    found = [
        Implementation(f"rotary {name}", {"rotate_half": Replacement(code, TURN_AXIS, never)})
        for name, code in written.items()
    ]
    return [*found, *llama_rotary.implementations(device)]


def _rotary(device: torch.device) -> list[Implementation]:
    """Each rotary program before each kernel, and before eager attention."""
    inner = [*scaled_dot_product.implementations(device), _eager()]
    return [
        Implementation(
            f"{turn.name}, {one.name}",
            {**turn.replaced, **one.replaced}, {**turn.bounds, **one.bounds},
        )
        for turn in _turning(device)
        for one in inner
    ]  # fmt: skip


def honest(trial: str, device: torch.device) -> list[Implementation]:
    """The correct programs for a trial."""
    if trial == "rotary attention":
        return _rotary(device)
    found = _attentions(device)
    return [Implementation("eager"), *found] if trial == "attention" else found

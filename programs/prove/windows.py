"""The bias of a window, as a module makes it for the window it has: Swin and what follows it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..subjects import Bias

__all__ = ["Window", "places_of", "window_of"]

MAKES = ("forward", "get_bias", "get_relative_position_bias", "_get_rel_pos_bias")


@dataclass(frozen=True)
class Window:
    """The bias of a window, as (H, *window, *window); the module that makes it; its sizes."""

    bias: Callable[[], Tensor]
    module: nn.Module
    sizes: str


def places_of(module: nn.Module | None) -> int:
    """How many places the window of a module has that takes no other number of tokens, or 0."""
    for part in () if module is None else module.modules():
        sizes, index = _sizes(getattr(part, "window_size", None)), _index(part)
        if sizes and index is not None and index.numel() == prod(sizes) ** 2:
            return prod(sizes)
    return 0


def _index(module: Any) -> Tensor | None:
    """The stored index into a table of biases."""
    found = getattr(module, "relative_position_index", None)
    return found if isinstance(found, Tensor) else None


def window_of(subject: Bias) -> Window | None:
    """The bias of the window that a module has; axes of length 1 are left out.

    None for code that is no module with a window and an index, or has no bias of its own without
    further inputs.  The module is a copy with numbers drawn for its parameters: a table is made
    of zeros, for which every law holds.
    """
    module: Any = subject.module
    sizes = _sizes(getattr(module, "window_size", None))
    if _index(module) is None or prod(sizes) < 2:
        return None
    longer = [n for n in sizes if n > 1]
    try:
        copy = _drawn(module)
        made = _made(copy)
    except Exception:  # noqa: BLE001 (a module may not be copied, or have calls without signature)
        return None
    if made is None:
        return None
    places, told, name = prod(sizes), " by ".join(map(str, sizes)), type(module).__name__

    def windowed() -> Tensor:
        bias = made()
        while bias.ndim > 3 and bias.shape[0] == 1:
            bias = bias[0]
        if bias.ndim != 3 or tuple(bias.shape[1:]) != (places, places):
            raise ValueError(
                f"a window of {told} wants a bias of (heads, {places}, {places}); {name} gives "
                f"{tuple(bias.shape)}"
            )
        return bias.reshape(-1, *longer, *longer)

    return Window(windowed, copy, " × ".join(map(str, sizes)))


def _sizes(told: Any) -> tuple[int, ...]:
    """The lengths of a window; one number is a square."""
    if isinstance(told, int):
        return (told, told)
    whole = isinstance(told, tuple | list | torch.Size) and all(isinstance(n, int) for n in told)
    return tuple(told) if whole else ()


def _drawn(module: nn.Module) -> nn.Module:
    copy = deepcopy(module)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return copy


def _made(module: Any) -> Callable[[], Tensor] | None:
    """How a module makes its bias: a call of its own without inputs, or its table at its index."""
    for name in MAKES:
        call = getattr(module, name, None)
        written = name != "forward" or type(module).forward is not nn.Module.forward
        if call is not None and written and not _wants(call):
            return module if name == "forward" else call  # type: ignore[no-any-return]
    if not isinstance(getattr(module, "relative_position_bias_table", None), Tensor):
        return None

    def gathered() -> Tensor:
        index: Tensor = module.relative_position_index
        places = round(index.numel() ** 0.5)
        rows: Tensor = module.relative_position_bias_table[index.reshape(-1)]
        return rows.reshape(places, places, -1).permute(2, 0, 1)

    return gathered


def _wants(call: Any) -> bool:
    """Whether a call needs an input."""
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
               for p in inspect.signature(call).parameters.values())  # fmt: skip

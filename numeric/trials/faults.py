"""Planted faults: programs that are wrong by what goes wrong in practice.

Each is an :class:`Implementation` with the bounds of the honest program it was made from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..implementations import Implementation
from ..walk import Replacement, never
from .code import Step, attend, half_split, interleaved, online, same
from .honest import fused_bound

__all__ = ["FAULTS", "Fault"]

BASE, OTHER_BASE = 10_000.0, 10_001.0
PADDING = 8
BLOCK = 64
ROTARY_AXIS = (-2, None, None, -1, None, None)
Code = Callable[..., Tensor]


@dataclass(frozen=True)
class Fault:
    """A wrong program for a trial; ``long`` where the one key is one of very many."""

    name: str
    trial: str
    definition: str
    code: Code
    long: bool = False

    @property
    def implementation(self) -> Implementation:
        """The program, bounded as if it were right."""
        code = Replacement(self.code, _AXES[self.definition], never)
        return Implementation(self.name, {self.definition: code}, fused_bound())


_AXES: dict[str, tuple[int | None, ...]] = {
    "attention": (-2, None, None),
    "masked_attention": (-2, None, None, -2),
    "rotary_attention": ROTARY_AXIS,
}


def _scaled(q: Tensor, k: Tensor, v: Tensor, *, more: int = 0, factor: float = 1.0) -> Tensor:
    return attend(q, k, v, scale=factor / math.sqrt(q.shape[-1] + more))


def _dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The key in the middle is not seen."""
    at = k.shape[-2] // 2
    kept = torch.arange(k.shape[-2], device=k.device) != at
    return attend(q, k[..., kept, :], v[..., kept, :])


def _doubled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The key in the middle is seen twice."""
    at = k.shape[-2] // 2
    twice = [torch.cat((x, x[..., at : at + 1, :]), -2) for x in (k, v)]
    return attend(q, *twice)


def _padded(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys and values of zeros behind the last, not masked."""
    return attend(q, pad(k, (0, 0, 0, PADDING)), pad(v, (0, 0, 0, PADDING)))


def _one_ahead(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """j <= i + 1: the last key that is seen, and the next."""
    return attend(q, k, v, keep | keep.roll(1, -1))


def _no_diagonal(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """j < i; the first query, which would see nothing, keeps its key."""
    later = pad(keep[..., 1:], (0, 1))
    return attend(q, k, v, keep & (later | (keep.sum(-1, keepdim=True) == 1)))


def _other_order(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Head h of G·R reads the keys of group h mod G, not of group h // R."""
    groups, each = q.shape[0], q.shape[1]
    order = torch.arange(groups * each, device=q.device) % groups
    tiled = [x[:, 0][order].reshape(groups, each, *x.shape[-2:]) for x in (k, v)]
    return attend(q, *tiled)


def _turned(
    q: Tensor, k: Tensor, v: Tensor, p: Tensor, s: Tensor, omega: Tensor, *,
    positions: Step = same, frequencies: Step = same, angles: Step = same, ahead: int = 0,
    mixed: bool = False, more: int = 0,
) -> Tensor:  # fmt: skip
    """Rotary attention with one step of it changed."""
    p, s, omega = positions(p + ahead), positions(s), frequencies(omega)
    query = half_split(q, p, omega, angles)
    key = interleaved(k, s, omega) if mixed else half_split(k, s, omega, angles)
    return attend(query, key, v, scale=1 / math.sqrt(q.shape[-1] + more))


def _through(dtype: torch.dtype) -> Step:
    """Rounded to a dtype and put back."""
    return lambda x: x.to(dtype).to(x.dtype)


def _other_base(omega: Tensor) -> Tensor:
    """b^(−k/B) for the base that is one larger."""
    return (omega.double() ** (math.log(OTHER_BASE) / math.log(BASE))).to(omega.dtype)


def _faults() -> tuple[Fault, ...]:
    low, half = torch.bfloat16, torch.float16
    plain: dict[str, Code] = {
        "scale 1/√(d + 1)": partial(_scaled, more=1),
        "scale × 1.001": partial(_scaled, factor=1.001),
        "scale × 1.00001": partial(_scaled, factor=1.00001),
        "denominator + 1": partial(attend, sink=True),
        "one key dropped": _dropped,
        "one key doubled": _doubled,
        f"{PADDING} padding keys of score 0": _padded,
        "last rescale skipped": partial(online, block=BLOCK, forget=True),
        "no maximum subtracted": partial(attend, shifted=False),
    }
    masks: dict[str, Code] = {"mask j ≤ i + 1": _one_ahead, "diagonal lost": _no_diagonal}
    rotary: dict[str, Code] = {
        "frequencies in bfloat16": partial(_turned, frequencies=_through(low)),
        "positions in bfloat16": partial(_turned, positions=_through(low)),
        "positions in float16": partial(_turned, positions=_through(half)),
        "half-split queries, interleaved keys": partial(_turned, mixed=True),
        "query position + 1": partial(_turned, ahead=1),
        "angles in bfloat16": partial(_turned, angles=_through(low)),
        "base 10001": partial(_turned, frequencies=_other_base),
        "rotary, scale 1/√(d + 1)": partial(_turned, more=1),
    }
    long: dict[str, Code] = {
        "one key of 100,000 dropped": _dropped, "one key of 100,000 doubled": _doubled
    }  # fmt: skip
    return (
        *(Fault(name, "attention", "attention", code) for name, code in plain.items()),
        *(Fault(n, "causal attention", "masked_attention", code) for n, code in masks.items()),
        *(Fault(n, "rotary attention", "rotary_attention", code) for n, code in rotary.items()),
        Fault("order of repeated heads", "grouped keys", "attention", _other_order),
        *(Fault(n, "attention", "attention", code, long=True) for n, code in long.items()),
    )


FAULTS = {fault.name: fault for fault in _faults()}

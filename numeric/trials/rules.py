"""The usual rules for comparing a kernel with a reference, as test suites have them.

Each gives a ratio, above 1 where the rule says no.  Computed values are compared with the exact
ones, in float64 from the same rounded inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["HAND", "RULES", "Ruled", "ruled"]

RULES = ("assert_close", "by hand", "twice eager")
HAND = {
    torch.float64: 1e-8, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 1e-2
}  # fmt: skip
"""Relative and absolute tolerance as they are often set by hand."""
DEFAULTS = {
    torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5),
}  # fmt: skip
"""Relative and absolute tolerance of ``torch.testing.assert_close``; a test compares them."""


@dataclass(frozen=True)
class Ruled:
    """One rule on one array: whether it says no, and the largest error over its tolerance.

    ``alarm`` is None where the rule says nothing; ``why`` tells.
    """

    rule: str
    alarm: bool | None
    ratio: float
    why: str = ""


def ruled(computed: Tensor, exact: Tensor, eager: Tensor) -> tuple[Ruled, ...]:
    """Every rule on computed values, the exact ones, and those of eager code in the same dtype.

    * ``assert_close``: |a − b| ≤ atol + rtol |b| at the defaults of ``torch.testing``, b the
      exact value stored in the dtype;
    * ``by hand``: the same at :data:`HAND`;
    * ``twice eager``: max |a − b| ≤ 2 max |e − b| for eager code e, the rule of flash-attention's
      tests (tests/test_flash_attn.py); none in float64, which is its reference.
    """
    stored = exact.to(computed.dtype).double()
    a, e = computed.double(), eager.double()
    relative, absolute = DEFAULTS[computed.dtype]
    hand = HAND[computed.dtype]
    error, allowed = (a - exact).abs().max(), 2 * (e - exact).abs().max()
    twice = _ruled("twice eager", float(torch.where(error == 0, 0.0, error / allowed)))
    if computed.dtype == torch.float64:
        twice = Ruled("twice eager", None, 0.0, "its reference is float64 itself")
    return (
        _ruled("assert_close", _close(a, stored, relative, absolute)),
        _ruled("by hand", _close(a, stored, hand, hand)),
        twice,
    )


def _ruled(rule: str, ratio: float) -> Ruled:
    return Ruled(rule, not ratio <= 1, math.inf if math.isnan(ratio) else ratio)


def _close(a: Tensor, b: Tensor, relative: float, absolute: float) -> float:
    """The largest |a − b| over absolute + relative |b|; not a number where a is none."""
    error = torch.where(a == b, 0.0, (a - b).abs())
    return float((error / (absolute + relative * b.abs())).max())

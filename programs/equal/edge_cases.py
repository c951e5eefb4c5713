"""Where two programs differ on inputs that no compared call has: a remark, not a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .inputs import BINARY_MASKS, drawn
from .pair import ProgramPair


def edge_case_remarks(both: ProgramPair) -> list[str]:
    """Describe where the programs differ on inputs that no compared call has.

    These are a query that sees no key, a row of length 0, a position below 0, and −∞ among numbers
    that are added to the scores.
    """
    found = []
    values = drawn(both.inputs, both.lengths, 5)
    for case, kinds, change in EDGE_CASES:
        if any(one.kind in kinds for one in both.inputs):
            given = [
                change(x, one.kind) if one.kind in kinds else x
                for one, x in zip(both.inputs, values, strict=True)
            ]
            found.append(_edge_case_remark(both, given, case))
    return [one for one in found if one]


def _hide_all_keys(x: Tensor, kind: str) -> Tensor:
    x = x.clone()
    x[:1] = int(kind == "hide")
    return x


def _zero_length(x: Tensor, _: str) -> Tensor:
    return torch.cat((torch.zeros_like(x[:1]), x[1:])) if x.ndim else torch.zeros_like(x)


def _negated(x: Tensor, _: str) -> Tensor:
    return -1 - x


def _with_minus_infinity(x: Tensor, _: str) -> Tensor:
    hidden = torch.arange(x.shape[-1]) % 2 == 1 if x.ndim else torch.tensor(False)
    return x.masked_fill(hidden, -torch.inf)


EDGE_CASES: tuple[tuple[str, tuple[str, ...], Callable[[Tensor, str], Tensor]], ...] = (
    ("a query that sees no key", BINARY_MASKS, _hide_all_keys),
    ("a row of length 0", ("lengths",), _zero_length),
    ("positions below 0", ("positions",), _negated),
    ("−∞ among what is added to the scores", ("add",), _with_minus_infinity),
)
"""Each case, the kinds of arrays it concerns, and how these are changed."""


def _edge_case_remark(both: ProgramPair, values: Sequence[Tensor], case: str) -> str:
    """Describe what each program gives at the first row that differs, or return ""."""
    try:
        with torch.no_grad():
            here, there = (both.results_of_copies(side, values)[0] for side in ("first", "second"))
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ""
    if here.shape != there.shape or torch.allclose(here, there, 1e-3, 1e-3, equal_nan=True):
        return ""
    one, other = _values_word(here[:1]), _values_word(there[:1])
    if one == other:
        return f"for {case}, the two return different {one}"
    return f"for {case}, the first returns {one}, the second {other}"


def _values_word(x: Tensor) -> str:
    if bool(x.isnan().all()):
        return "NaN"
    return "zeros" if not bool(x.any()) else "numbers"

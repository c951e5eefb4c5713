"""What two programs do besides returning values: which of their inputs they write into.

A verdict is about values, so a program that writes into its inputs is called on copies.  It is no
replacement for one that leaves them as they are, which a remark says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..loading.program import watching_inputs
from .inputs import drawn
from .pair import ProgramPair

SEED = 5
NEAR = 1e-3  # what two programs may leave apart by rounding


@dataclass(frozen=True)
class _Call:
    """The arguments that a call writes into, and the shared arrays after it."""

    written: tuple[str, ...]
    left: list[Tensor]


def on_copies(both: ProgramPair) -> tuple[ProgramPair, str]:
    """Return the pair with copies for what writes into its inputs, and a remark, or ""."""
    try:
        values = drawn(both.inputs, both.lengths, SEED)
        first, second = (_called(both, side, values) for side in ("first", "second"))
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return both, ""
    changed = replace(
        both,
        first=replace(both.first, copies=bool(first.written)),
        second=replace(both.second, copies=bool(second.written)),
    )
    return changed, _remark(both, values, first, second)


def _called(both: ProgramPair, side: str, values: Sequence[Tensor]) -> _Call:
    own = [x.clone() for x in values]
    with torch.no_grad(), watching_inputs() as changed:
        both.results(side, own)
    return _Call(tuple(dict.fromkeys(name for name, *_ in changed)), own)


def _remark(both: ProgramPair, values: Sequence[Tensor], first: _Call, second: _Call) -> str:
    if not first.written and not second.written:
        return ""
    one, other = both.names
    if not first.written or not second.written:
        who, into = (one, first.written) if first.written else (other, second.written)
        return f"{who} writes into {_listed(into)}; the other leaves its inputs as they are"
    told = (
        f"both write into {_listed(first.written)}"
        if first.written == second.written
        else f"{one} writes into {_listed(first.written)}, {other} into {_listed(second.written)}"
    )
    apart = _unlike(both, values, first, second)
    return f"{told}, and leave different numbers in {_listed(apart)}" if apart else told


def _unlike(
    both: ProgramPair, values: Sequence[Tensor], first: _Call, second: _Call
) -> tuple[str, ...]:
    """Return the shared arrays in which both wrote, and left different numbers.

    An argument that was made by copying leaves its shared array as it was: nothing is known of it.
    """
    every = zip(both.inputs, values, first.left, second.left, strict=True)
    return tuple(
        one.name
        for one, x, here, there in every
        if not torch.equal(x, here)
        and not torch.equal(x, there)
        and not torch.allclose(here, there, NEAR, NEAR, equal_nan=True)
    )


def _listed(names: Sequence[str]) -> str:
    """Return names as words.

    >>> _listed(("q", "k", "v")), _listed(("x",))
    ('q, k and v', 'x')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last

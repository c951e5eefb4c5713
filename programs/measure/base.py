"""What a probe is: a function of the code and of a draw, registered under the law it tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import LAWS

from ..draw import Draw
from ..finding import Seen

ALL = "rotary attention bias additive mask layer"  # kinds of code
FINITE = "finite"  # the law that ordinary inputs give finite numbers


@dataclass(frozen=True)
class Outcome:
    """What a probe saw; ``witness`` makes it broken, ``skipped`` not asked."""

    why: str
    error: float | None = None
    bound: float | None = None
    witness: Seen | None = None
    skipped: bool = False
    doubtful: bool = False
    sizes: Mapping[str, int] | None = None


def held(why: str, error: float | None = None, bound: float | None = None, **sizes: int) -> Outcome:
    """The law held at every input that was tried."""
    return Outcome(why, error, bound, sizes=sizes)


def broken(why: str, witness: Seen, **sizes: int) -> Outcome:
    """The law failed; the witness shows where."""
    return Outcome(why, witness.difference, witness.allowed, witness, sizes=sizes)


def not_asked(why: str) -> Outcome:
    """The law was not asked of this code, and why."""
    return Outcome(why, skipped=True)


def undecided(why: str, error: float | None = None, bound: float | None = None) -> Outcome:
    """Neither: the code raised, or rounding hides the answer."""
    return Outcome(why, error, bound, doubtful=True)


def compared(
    found: Tensor,
    wanted: Tensor | float,
    radius: Tensor | float,
    tell: Callable[..., tuple[str, Mapping[str, Any], str]],
    why: str,
    *,
    there: str = "declared",
    **sizes: int,
) -> Outcome:
    """What was read of code, each number within its radius, against what its declaration implies.

    ``tell`` says of the place of a number why the law is broken, at which inputs, and what the
    number is; it is asked of the largest difference in the first row that has one.
    """
    wanted, radius = (
        torch.as_tensor(x, dtype=torch.float64).expand_as(found) for x in (wanted, radius)
    )
    off = (found - wanted).abs().nan_to_num(nan=math.inf)
    over = ~(off <= radius)
    if not bool(over.any()):
        worst = int((off / radius).nan_to_num().argmax())
        return held(why, float(off.flatten()[worst]), float(radius.flatten()[worst]), **sizes)
    row = int(over.flatten(1).any(1).nonzero()[0]) if off.dim() > 1 else int(over.nonzero()[0])
    inner = torch.where(over[row], off[row], -1.0)
    rest = torch.unravel_index(inner.argmax(), inner.shape) if off.dim() > 1 else ()
    at = (row, *(int(i) for i in rest))
    words, inputs, here = tell(*at)
    seen = Seen(
        inputs,
        (here, float(found[at])),
        (there, float(wanted[at])),
        float(off[at]),
        float(radius[at]),
    )
    return broken(words, seen, **sizes)


Look = Callable[[Any, Draw], Outcome]


@dataclass(frozen=True)
class Probe:
    """A law, a kind of code, and the function that looks."""

    law: str
    kind: str
    look: Look


PROBES: list[Probe] = []


def probe(law: str, kinds: str) -> Callable[[Look], Look]:
    """Register a function (subject, draw) -> Outcome as the probe of a law for kinds of code."""
    for kind in kinds.split():
        if not any(known.id == law and kind in known.about for known in LAWS):
            raise ValueError(f"there is no law {law!r} of {kind} code")

    def wrap(look: Look) -> Look:
        PROBES.extend(Probe(law, kind, look) for kind in kinds.split())
        return look

    return wrap

"""What a probe is: a function of the code and of a draw, registered under the law it tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import LAWS

from ..asked import not_asked as not_asked_of
from ..draw import Draw
from ..finding import NOT_MEASURED, Finding, Seen
from ..finite import NotFinite, watching
from ..running import fault_in
from ..subjects import Subject

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
    found: Tensor, wanted: Tensor | float, radius: Tensor | float,
    tell: Callable[..., tuple[str, Mapping[str, Any], str]], why: str, *, there: str = "declared",
    **sizes: int,
) -> Outcome:  # fmt: skip
    """What was read of code, each number within its radius, against what its declaration implies.

    ``tell`` says of the place of a number why the law is broken, at which inputs, and what the
    number is; it is asked of the largest difference in the first row that has one.
    """
    wanted, radius = (torch.as_tensor(x, dtype=torch.float64).expand_as(found)
                      for x in (wanted, radius))  # fmt: skip
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
    seen = Seen(inputs, (here, float(found[at])), (there, float(wanted[at])), float(off[at]),
                float(radius[at]))  # fmt: skip
    return broken(words, seen, **sizes)


Look = Callable[[Any, Draw], Outcome]


@dataclass(frozen=True)
class Probe:
    """A law, a kind of code, and the function that looks."""

    law: str
    kind: str
    look: Look


PROBES: list[Probe] = []


def probe(law: str, kind: str) -> Callable[[Look], Look]:
    """Register a function (subject, draw) -> Outcome as the probe of a law for a kind of code."""
    if not any(known.id == law and kind in known.about for known in LAWS):
        raise ValueError(f"there is no law {law!r} of {kind} code")

    def wrap(look: Look) -> Look:
        PROBES.append(Probe(law, kind, look))
        return look

    return wrap


def run_probe(one: Probe, subject: Subject, draw: Draw) -> tuple[Finding, ...]:
    """What one probe finds; what the code raises is told, and the law undecided.

    What code of attnproof raises is an internal error.  Code that gives NaN or infinity at
    ordinary inputs breaks the law ``finite``, which is a finding of its own, and the law that was
    looked at is not measured, whatever its numbers would say.
    """
    start, fault = perf_counter(), None
    nan: NotFinite | None = None
    met: list[str] = []
    seen = Outcome("")
    try:
        why = not_asked_of(one.law, subject)
        with torch.no_grad():
            seen = not_asked(why) if why else one.look(watching(subject, met), draw)
    except NotFinite as error:
        nan = error
    except Exception as error:  # noqa: BLE001 (any code may raise anything)
        fault = fault_in(subject, error)
        told = " ".join(str(error).split())[:300]
        seen = undecided(
            f"the code raised {type(error).__name__}: {told}" if fault is None else fault.told
        )
    if met and nan is None and fault is None and not seen.skipped:
        nan = _plain_nan(subject, draw)  # at its own inputs it may be no fault, and may come of one
    if nan is not None:
        seen = undecided(f"{NOT_MEASURED}: {nan}")
    if _passes_by_none(seen):
        seen = undecided(f"{NOT_MEASURED}: the difference is no number, or its bound is none")

    def finding(law: str, seen: Outcome) -> Finding:
        verdict = (
            "internal error" if fault is not None
            else "broken" if seen.witness is not None
            else "not asked" if seen.skipped
            else "undecided" if seen.doubtful
            else "holds"
        )  # fmt: skip
        return Finding(
            law, "measured", verdict, seen.why, seen.error, seen.bound, seen.witness,
            seed=draw.seed, dtype=str(draw.dtype).removeprefix("torch."), device=draw.device,
            sizes=dict(seen.sizes or {}), seconds=perf_counter() - start,
            traceback=fault.traceback if fault is not None else "",
        )  # fmt: skip

    if nan is None:
        return (finding(one.law, seen),)
    first = finding(FINITE, _not_finite(nan, one.law))
    return (first,) if one.law == FINITE else (first, finding(one.law, seen))


def _plain_nan(subject: Subject, draw: Draw) -> NotFinite | None:
    """The NaN that code gives at the plainest ordinary inputs, if it does."""
    for one in PROBES:
        if (one.law, one.kind) == (FINITE, subject.kind):
            try:
                with torch.no_grad():
                    one.look(watching(subject), draw)
            except NotFinite as error:
                return error
            except Exception:  # noqa: BLE001 (the law that was looked at says what the code raises)
                return None
    return None


def _passes_by_none(seen: Outcome) -> bool:
    """Whether a law would be said to hold by a number that is none."""
    if seen.witness is not None or seen.skipped or seen.doubtful:
        return False
    return any(x is not None and math.isnan(x) for x in (seen.error, seen.bound)) or (
        seen.error is not None and math.isinf(seen.error)
    )


def _not_finite(nan: NotFinite, law: str) -> Outcome:
    """The finding NaN: what was called, with what, what came back, and which law shows it."""
    inputs = {"call": nan.call, **nan.inputs, "met by": law}
    place = f"what {nan.call} gives at {list(nan.at)}"
    witness = Seen(inputs, (place, nan.what), ("wanted there", "a finite number"), math.inf)
    return broken(f"{nan}, at ordinary inputs", witness)

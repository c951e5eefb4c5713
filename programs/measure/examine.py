"""Run every probe that fits some code."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from importlib import import_module
from time import perf_counter

import torch

from attnproof.theorems.laws import laws_of

from ...numeric.devices import one_thread
from ..applicable_laws import not_asked as not_asked_of
from ..execution.draw import Draw
from ..execution.finite import NotFinite, watching
from ..execution.running import describe_error, fault_in
from ..finding import NOT_MEASURED, Finding
from ..subjects import Subject
from .base import CAST, FINITE, PROBES, Outcome, Probe, broken, not_asked, undecided
from .inputs import lengths_past_constants

MODULES = (
    "calls",
    "laws",
    "rotary_casting",
    "rotary_positions",
    "rotary_declared",
    "scores",
    "hidden_keys",
    "bias",
    "additive",
    "states",
    "mutation",
    "dropout",
)


def examine(
    subject: Subject,
    draws: Iterable[Draw] = (Draw(),),
    laws: Collection[str] = (),
    tell: Callable[[Finding], None] | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of the probes of these laws (all if none is named), in the order of laws.

    ``tell`` is called with each finding as soon as it is made.  Arrays are so small here that
    several torch threads would only slow things down: a single one is used.
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    if isinstance(subject, CAST) and subject.beyond is None and not subject.run_at:
        # search the source once; given lengths need no search
        subject = replace(subject, beyond=lengths_past_constants(subject))
    found: list[Finding] = []
    for draw in draws:
        for law in laws_of(subject.kind):
            if laws and law.id not in laws:
                continue
            for one in PROBES:
                if one.law == law.id and one.kind == subject.kind:
                    with one_thread():
                        made = run_probe(one, subject, draw)
                    found += made
                    if tell is not None:
                        for finding in made:
                            tell(finding)
    return tuple(found)


def run_probe(one: Probe, subject: Subject, draw: Draw) -> tuple[Finding, ...]:
    """Return the findings of one probe; if the code raises, the law is undecided.

    An exception raised by attnproof itself is an internal error.  Code that returns NaN or infinity
    at ordinary inputs breaks the law ``finite``, which is a separate finding, and the probed law
    counts as not measured, whatever its numbers.
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
        seen = undecided(describe_error(error) if fault is None else fault.message)
    if met and nan is None and fault is None and not seen.skipped:
        nan = _plain_nan(subject, draw)  # the probe's own inputs may justify NaN, or reveal it
    if nan is not None:
        seen = undecided(f"{NOT_MEASURED}: {nan}")
    if _passes_unmeasured(seen):
        seen = undecided(f"{NOT_MEASURED}: the difference or its bound is not a finite number")

    def finding(law: str, seen: Outcome) -> Finding:
        verdict = (
            "internal error"
            if fault is not None
            else "broken"
            if seen.witness is not None
            else "not asked"
            if seen.skipped
            else "undecided"
            if seen.doubtful
            else "holds"
        )
        return Finding(
            law,
            "measured",
            verdict,
            seen.why,
            seen.error,
            seen.bound,
            seen.witness,
            seed=draw.seed,
            dtype=draw.format,
            device=draw.device,
            assuming=seen.assuming,
            sizes=dict(seen.sizes or {}),
            seconds=perf_counter() - start,
            traceback=fault.traceback if fault is not None else "",
        )

    if nan is None:
        return (finding(one.law, seen),)
    first = finding(FINITE, _not_finite(nan, one.law))
    return (first,) if one.law == FINITE else (first, finding(one.law, seen))


def _plain_nan(subject: Subject, draw: Draw) -> NotFinite | None:
    """Return the NaN that the code gives at the plainest ordinary inputs, or None."""
    for one in PROBES:
        if (one.law, one.kind) == (FINITE, subject.kind):
            try:
                with torch.no_grad():
                    one.look(watching(subject), draw)
            except NotFinite as error:
                return error
            except Exception:  # noqa: BLE001 (the probe itself reports what the code raises)
                return None
    return None


def _passes_unmeasured(seen: Outcome) -> bool:
    """Whether a law would pass although its error is NaN or infinite, or its bound is NaN."""
    if seen.witness is not None or seen.skipped or seen.doubtful:
        return False
    return any(x is not None and math.isnan(x) for x in (seen.error, seen.bound)) or (
        seen.error is not None and math.isinf(seen.error)
    )


def _not_finite(nan: NotFinite, law: str) -> Outcome:
    """Return the outcome of a NaN: the call, its inputs, the result, and the law that met it."""
    inputs = {"call": nan.call, **nan.inputs, "met by": law}
    place = f"what {nan.call} gives at {list(nan.at)}"
    return broken(
        f"{nan}, at ordinary inputs",
        inputs,
        (place, nan.what),
        ("wanted there", "a finite number"),
        math.inf,
    )

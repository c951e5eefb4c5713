"""Whether a theorem is as expected, decided in this one place.

It speaks against a statement expected to be proved if the kernel did not prove it, or a
measurement of it was violated, was not finite, or could not be taken.  A statement expected to be
refuted is the mirror image: it needs a certified witness, and every implementation, device and
dtype that measured it must have seen it fail at least once, because a check that lets a false
statement pass is worth nothing.  One excuse counts: a dtype so coarse that its rounding bound
exceeds the difference that a finer dtype of the same implementation saw.  A measurement that was
skipped says nothing either way.

The same holds in finite fields: an exact check of a true statement may not be violated, and for a
false one some check must be, unless one of its conclusions has no reading there.

SymPy speaks against a statement expected to be true if it found numbers at which a conclusion
certainly fails; this comes first, because the kernel proved it.  It speaks against one expected to
be false if it derived it in all cases at sizes that vary independently, including those that differ
in the witness: if two lengths are always equal, a false statement may be true.  What SymPy could
not derive says nothing.

A statement expected to be ill-typed must not build: its shapes do not fit, and there is nothing to
measure.

A theorem is ok if nothing speaks against it or against its negative control, whose expectation is
the opposite: true for one that is refuted or ill-typed.  Undecided is never as expected, nor is
misread: the code says something other than its term, and nothing is known about either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import assert_never

from ..documents.document import short
from ..documents.evidence import (
    DerivedEvidence,
    Evidence,
    InternalErrorEvidence,
    MisreadEvidence,
    RefutedEvidence,
    UndecidedEvidence,
    Verdict,
)
from ..numeric.results import ExactEvidence, MeasuredEvidence
from .records import Expected


def opposite(expected: Expected) -> Expected:
    """Return what a negative control is expected to be.

    >>> opposite("proved")
    'refuted'
    """
    return "refuted" if expected == "proved" else "proved"


def against(expected: Expected, verdict: Verdict, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return what speaks against a statement, a line each; nothing if it is as expected.

    >>> against("proved", "undecided", ())
    ('expected proved, is undecided',)
    """
    told = [] if verdict == expected else [f"expected {expected}, is {verdict}"]
    if expected == "proved":
        told = [*_derived_false(evidence), *told, *_of_true(evidence), *_exactly_true(evidence)]
    elif expected == "refuted":
        told += [*_derived_true(evidence), *_of_false(evidence), *_exactly_false(evidence)]
    elif expected != "ill-typed":
        assert_never(expected)
    told += [f"misread: {e.text}" for e in evidence if isinstance(e, MisreadEvidence)]
    told += [
        e.why
        for e in evidence
        if isinstance(e, UndecidedEvidence | InternalErrorEvidence) and e.why
    ]
    return tuple(dict.fromkeys(told))


def _measured(evidence: Iterable[Evidence]) -> list[MeasuredEvidence]:
    return [e for e in evidence if isinstance(e, MeasuredEvidence) and e.status != "skipped"]


def _of_true(evidence: Iterable[Evidence]) -> list[str]:
    return [
        f"{_where(m)}: {m.status}, error {short(m.error)} against {short(m.tolerance)}"
        for m in _measured(evidence)
        if m.status != "held"
    ]


def _of_false(evidence: Iterable[Evidence]) -> list[str]:
    found = _measured(evidence)
    refused = [m for m in found if m.status != "held"]
    seen = {_where(m) for m in found if m in refused or _too_coarse(m, refused)}
    passed = dict.fromkeys(_where(m) for m in found if _where(m) not in seen)
    return [f"{where}: held, and should have been violated" for where in passed]


def _derived_false(evidence: Iterable[Evidence]) -> list[str]:
    return [
        f"SymPy contradicts the statement: {e.why}"
        for e in evidence
        if isinstance(e, DerivedEvidence) and e.status == "refused"
    ]


def _derived_true(evidence: Sequence[Evidence]) -> list[str]:
    witnesses = [e.witness.sizes for e in evidence if isinstance(e, RefutedEvidence)]
    return [
        "SymPy derived it at small sizes, and should have refused it"
        for e in evidence
        if isinstance(e, DerivedEvidence) and e.status == "derived" and _in_general(e)
        if not any(_apart(sizes, e) for sizes in witnesses)
    ]


def _apart(witness: Mapping[str, int], e: DerivedEvidence) -> bool:
    """Whether a witness has two lengths that differ, and SymPy was asked only where they do not."""
    return any(
        witness[a] != witness[b] and all(sizes[a] == sizes[b] for sizes in e.sizes)
        for a, b in combinations((n for n in (e.sizes or ({},))[0] if n in witness), 2)
    )


def _in_general(e: DerivedEvidence) -> bool:
    """Whether all cases were derived, at sizes that are not always 1 or always equal."""
    if e.natural or e.cases < e.all_cases:
        return False
    values = [{sizes[name] for sizes in e.sizes} for name in e.sizes[0]] if e.sizes else []
    if len(values) == 1:
        return len(values[0] - {1}) > 1
    crossing = any(len(set(sizes.values())) > 1 for sizes in e.sizes) or not values
    return crossing and all(len(found) > 1 for found in values)


def _exactly_true(evidence: Iterable[Evidence]) -> list[str]:
    return [
        f"exact modulo {', '.join(map(str, e.primes))}: violated at {e.worst}"
        for e in evidence
        if isinstance(e, ExactEvidence) and e.status == "violated"
    ]


def _exactly_false(evidence: Iterable[Evidence]) -> list[str]:
    found = {e.status for e in evidence if isinstance(e, ExactEvidence)}
    return ["exact in finite fields: held, and should have been violated"] * (found == {"held"})


def _too_coarse(m: MeasuredEvidence, refused: Iterable[MeasuredEvidence]) -> bool:
    """Whether its bound exceeds the difference that the same implementation saw elsewhere."""
    return any(
        isinstance(other.error, float)
        and isinstance(m.tolerance, float)
        and m.tolerance >= other.error
        for other in refused
        if (other.implementation, other.device, other.says) == (m.implementation, m.device, m.says)
    )


def _where(m: MeasuredEvidence) -> str:
    return f"{m.implementation}, {m.device}, {m.dtype}"

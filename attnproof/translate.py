"""From what the two sides found to the record: the seam between them and everything shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from .records import (
    Evidence,
    Formula,
    GivenRecord,
    LinkRecord,
    MeasuredEvidence,
    MeetingRecord,
    Number,
    ProvedEvidence,
    RefutedEvidence,
    SizeRecord,
    Status,
    UndecidedEvidence,
    Verdict,
    WitnessRecord,
)  # fmt: skip

if TYPE_CHECKING:
    from .numeric.measurement import Measurement
    from .symbolic.decision import ClaimDecision, Decision, LinkProof, Witness
    from .symbolic.givens import Given
    from .symbolic.statement import Claim, Statement
    from .symbolic.terms import Term

__all__ = [
    "chain",
    "evidence",
    "formula",
    "givens",
    "hypotheses",
    "measured",
    "sizes",
    "statement",
    "verdict",
]

KINDS = {
    "real": "any real numbers",
    "orthogonal": "an orthogonal matrix",
    "function": "a function about which nothing is known",
}


def formula(term: Term) -> Formula:
    """A term, as LaTeX and as one line of text."""
    from .symbolic.latex import latex
    from .symbolic.plain import plain

    return Formula(latex=latex(term), text=plain(term))


def statement(claimed: Statement) -> Formula:
    """The conclusions of a statement; in text, one line each."""
    from .symbolic.latex import statement_latex
    from .symbolic.plain import plain

    lines = []
    for says, claim in claimed.claims.items():
        right = "0" if claim.right is None else plain(claim.right)
        line = f"{plain(claim.left)} {'>' if claim.relation == '>' else '='} {right}"
        if claim.variable is not None:
            free_of = " and ".join(plain(term) for term in claim.free_of)
            apart = f", the same for every {free_of}," if free_of else ""
            line = f"there is {plain(claim.variable)}{apart} with {line}"
        lines.append(f"{says}: {line}" if says else line)
    return Formula(latex=statement_latex(claimed), text="\n".join(lines))


def hypotheses(claimed: Statement) -> tuple[Formula, ...]:
    """The equations that a statement takes as true."""
    return tuple(_equation(left, right) for left, right in claimed.assume)


def sizes(claimed: Statement) -> tuple[SizeRecord, ...]:
    """The axis lengths that a statement quantifies, in the order of its givens."""
    from .symbolic.terms import free

    terms: list[Term] = [n for given in claimed.givens.values() for n in _lengths(given)]
    for claim in claimed.claims.values():
        terms += [claim.left, *([claim.right] if claim.right is not None else [])]
    found: dict[Term, SizeRecord] = {}
    for term in terms:
        for part in sorted(free(term), key=repr):
            if part.op == "size" and part not in found:
                name, role = cast("tuple[str, str]", part.data)
                found[part] = SizeRecord(name=name, role=role)
    return tuple(found.values())


def givens(claimed: Statement) -> tuple[GivenRecord, ...]:
    """What a statement is given, with the axes and a word on each."""
    from .symbolic.plain import plain

    return tuple(
        GivenRecord(
            name=name,
            kind=given.kind,
            shape=tuple(plain(n) for n in given.shape),
            below="" if given.below is None else plain(given.below),
            says=given.says or KINDS.get(given.kind, given.kind),
        )
        for name, given in claimed.givens.items()
    )


def _lengths(given: Given) -> tuple[Term, ...]:
    return given.shape if given.below is None else (*given.shape, given.below)


def chain(decision: Decision) -> tuple[LinkRecord, ...]:
    """Every link of every conclusion."""
    return tuple(
        LinkRecord(
            says=claim.says,
            reason=link.reason,
            left=formula(link.left),
            relation=">" if claim.claim.relation == ">" else "=",
            right=formula(link.right),
            steps=link.steps,
            rules=dict(link.rules),
            seconds=link.seconds,
            proved=link.proved,
            why_not=link.why_not,
            meeting=tuple(_meeting(link, *met) for met in link.meeting),
        )
        for claim in decision.claims
        for link in claim.links
    )


def _meeting(link: LinkProof, place: tuple[Term, ...], value: Term) -> MeetingRecord:
    """The meeting of both sides, its generic indices under letters that nothing else has."""
    from .symbolic.latex import index_letter, latex, names_in
    from .symbolic.plain import plain
    from .symbolic.scalars import index
    from .symbolic.terms import free, substitute

    names = set(names_in(link.left, link.right))
    generic = [v for i in place for v in sorted(free(i), key=repr) if v.op == "index"]
    for old in dict.fromkeys(generic):
        if old in names:
            continue
        new = index(index_letter(old.args[0], names), old.args[0])
        names.add(new)
        place = tuple(substitute(i, old, new) for i in place)
        value = substitute(value, old, new)
    told = Formula(latex=latex(value, names), text=plain(value))
    return MeetingRecord(entry=", ".join(latex(i) for i in place), value=told)


def evidence(decision: Decision) -> tuple[Evidence, ...]:
    """What the symbolic side has for each conclusion."""
    return tuple(_evidence(claim) for claim in decision.claims)


def verdict(decision: Decision) -> Verdict:
    """The verdict of a decision; a word it does not know is refused, not passed on."""
    if decision.verdict not in ("proved", "refuted", "undecided"):
        raise ValueError(f"a verdict is proved, refuted or undecided, not {decision.verdict!r}")
    return cast("Verdict", decision.verdict)


def _evidence(claim: ClaimDecision) -> Evidence:
    if claim.verdict == "proved":
        return ProvedEvidence(
            says=claim.says,
            instance=_instance(claim.claim),
            steps=sum(link.steps for link in claim.links),
            rules=dict(sum((Counter(link.rules) for link in claim.links), Counter())),
            assumptions=tuple(claim.assumptions),
            readings=tuple(claim.readings),
            seconds=claim.seconds,
        )
    if claim.verdict == "refuted":
        if claim.witness is None:
            raise ValueError(f"refuted without a witness: {claim.says or claim.claim}")
        return RefutedEvidence(
            says=claim.says, witness=_witness(claim.witness), seconds=claim.seconds
        )
    return UndecidedEvidence(says=claim.says, why=claim.why, seconds=claim.seconds)


def _instance(claim: Claim) -> Formula | None:
    if claim.variable is None or claim.witness is None:
        return None
    return _equation(claim.variable, claim.witness)


def _equation(left: Term, right: Term) -> Formula:
    a, b = formula(left), formula(right)
    return Formula(latex=f"{a.latex} = {b.latex}", text=f"{a.text} = {b.text}")


def _witness(witness: Witness) -> WitnessRecord:
    return WitnessRecord(
        sizes=dict(witness.sizes),
        values={name: _exact(value) for name, value in witness.values.items()},
        text=witness.text,
        place=tuple(witness.place),
        left=witness.left,
        right=witness.right,
        gap=str(witness.gap),
        certified_by=witness.certified_by,
    )


def _exact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_exact, value))}]"
    if isinstance(value, float):
        raise TypeError(f"a witness holds exact numbers, and {value!r} is a float")
    return str(value)


def measured(measurements: Iterable[Measurement]) -> tuple[MeasuredEvidence, ...]:
    """What the numeric side measured; an error that is not a number keeps that word."""
    return tuple(
        MeasuredEvidence(
            says=m.says,
            implementation=m.implementation,
            device=m.device,
            dtype=m.dtype,
            sizes=dict(m.sizes),
            seed=m.seed,
            sampled=m.sampled,
            error=_number(m.error) if m.status != "skipped" else None,
            tolerance=_number(m.tolerance) if m.status != "skipped" else None,
            worst=tuple(m.worst),
            seconds=m.seconds,
            status=cast("Status", m.status),
            reason=m.reason,
            rounding=m.profile,
        )
        for m in measurements
    )


def _number(value: float) -> Number:
    return float(value) if isfinite(value) else "non-finite"

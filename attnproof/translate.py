"""From what the two sides found to the record: the seam between them and everything shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, cast

from .chains import chain, formula
from .evidence import Policy
from .records import (
    DerivedEvidence,
    Evidence,
    ExactEvidence,
    Formula,
    GivenRecord,
    InternalErrorEvidence,
    MeasuredEvidence,
    MisreadEvidence,
    Number,
    PolicyRecord,
    ProvedEvidence,
    RefutedEvidence,
    SidesRecord,
    SizeRecord,
    Status,
    UndecidedEvidence,
    UseRecord,
    Verdict,
    WitnessRecord,
)  # fmt: skip

if TYPE_CHECKING:
    from .numeric.measurement import Judged, Measurement
    from .numeric.residues.exact import ExactCheck
    from .symbolic.claim import Claim, Instance
    from .symbolic.decision import ClaimDecision, Decision, Witness
    from .symbolic.expressions.deriving import Derivation
    from .symbolic.gate import Misreading
    from .symbolic.givens import Given
    from .symbolic.statement import Statement
    from .symbolic.terms import Term

__all__ = [
    "chain",
    "derived",
    "evidence",
    "exact",
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


def statement(claimed: Statement) -> Formula:
    """The conclusions of a statement; in text, one line each."""
    from .symbolic.latex import statement_latex
    from .symbolic.plain import plain_claim

    lines = [
        f"{says}: {plain_claim(claim)}" if says else plain_claim(claim)
        for says, claim in claimed.claims.items()
    ]
    return Formula(latex=statement_latex(claimed), text="\n".join(lines))


def hypotheses(claimed: Statement) -> tuple[Formula, ...]:
    """The equations and laws that a statement takes as true."""
    from .symbolic.latex import law_latex
    from .symbolic.plain import plain_law

    equations = tuple(_equation(left, right) for left, right in claimed.assume)
    laws = (Formula(latex=law_latex(law), text=plain_law(law)) for law in claimed.laws)
    return (*equations, *laws)


def sizes(claimed: Statement) -> tuple[SizeRecord, ...]:
    """The axis lengths that a statement quantifies, in the order of its givens."""
    from .symbolic.terms import free

    found: dict[Term, SizeRecord] = {}
    for term in _spoken(claimed):
        for part in sorted(free(term), key=repr):
            if part.op == "size" and part not in found:
                name, role = cast("tuple[str, str]", part.data)
                found[part] = SizeRecord(name=name, role=role)
    return tuple(found.values())


def _spoken(claimed: Statement) -> Iterator[Term]:
    """Every term in which a size of the statement may occur."""
    for given in claimed.givens.values():
        yield from _lengths(given)
    for pair in claimed.assume:
        yield from pair
    for claim in (*(law.claim for law in claimed.laws), *claimed.claims.values()):
        for _, given in claim.variables:
            yield from _lengths(given)
        yield from (term for term in (claim.left, claim.right) if term is not None)


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


def evidence(decision: Decision) -> tuple[Evidence, ...]:
    """What the symbolic side has for each conclusion; of a misread statement, where it is."""
    for claim in decision.claims:
        if claim.misreading is not None:
            return (misread(claim.misreading),)
    return tuple(_evidence(claim, decision) for claim in decision.claims)


def verdict(decision: Decision) -> Verdict:
    """The verdict of a decision; a word it does not know is refused, not passed on."""
    words = ("proved", "refuted", "misread", "undecided", "internal error")
    if decision.verdict not in words:
        raise ValueError(f"a verdict is one of {', '.join(words)}, not {decision.verdict!r}")
    return cast("Verdict", decision.verdict)


def misread(found: Misreading) -> MisreadEvidence:
    """Where the code of a statement and its term part."""
    return MisreadEvidence(
        says=found.says, part=found.part, sizes=dict(found.sizes), values=dict(found.values),
        place=found.place, code=found.code, term=found.term, text=found.text, seconds=0.0,
    )  # fmt: skip


WAYS = {"induction": "induction", "squares": "sum of squares", "inverse": "left inverse"}


def _evidence(claim: ClaimDecision, decision: Decision) -> Evidence:
    if claim.verdict == "proved":
        earlier = {_said(c.claim): c.says for c in decision.claims}
        rules = sum((Counter(link.rules) for link in claim.links), Counter[str]())
        if claim.claim.by:
            rules[WAYS[claim.claim.by]] += 1
        return ProvedEvidence(
            says=claim.says,
            instance=_instance(claim.claim),
            uses=tuple(_use(fact, earlier) for fact in claim.claim.using),
            steps=sum(rules.values()),
            rules=dict(rules),
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
    if claim.fault is not None:
        return InternalErrorEvidence(
            says=claim.says, why=claim.why, traceback=claim.fault.traceback, seconds=claim.seconds
        )
    return UndecidedEvidence(says=claim.says, why=claim.why, seconds=claim.seconds)


def _use(fact: Instance, conclusions: Mapping[object, str]) -> UseRecord:
    """A fact that a proof rests on, and the conclusion that it is, if it is no hypothesis."""
    from .symbolic.latex import fact_latex
    from .symbolic.plain import plain_fact

    told = Formula(latex=fact_latex(fact), text=plain_fact(fact))
    return UseRecord(formula=told, source=conclusions.get(_said(fact.law.claim), ""))


def _said(claim: Claim) -> object:
    """What a claim says, without how it is shown."""
    return claim.relation, claim.left, claim.right, claim.variables


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
    from .symbolic.witness_text import digits_of

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_exact, value))}]"
    if isinstance(value, float):
        raise TypeError(f"a witness holds exact numbers, and {value!r} is a float")
    return digits_of(value)


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
            design=m.design,
            designs=tuple(m.designs),
            policies=tuple(map(_policy, m.judged)),
        )
        for m in measurements
    )


def _policy(judged: Judged) -> PolicyRecord:
    return PolicyRecord(
        policy=cast("Policy", judged.policy),
        status=cast("Status", judged.status),
        ratio=None if judged.status == "skipped" else _number(judged.ratio),
        told=judged.told,
    )


def derived(found: Derivation) -> DerivedEvidence:
    """What SymPy derived from the code of a statement."""
    from .symbolic.expressions.array import short_sides

    return DerivedEvidence(
        status=found.status,
        why=found.why,
        sizes=tuple({name: int(n) for name, n in sizes.items()} for sizes in found.sizes),
        cases=found.cases,
        all_cases=found.all,
        natural=found.natural,
        sides=tuple(
            SidesRecord(
                says=side.says, relation=side.relation,
                left=Formula(latex=left[1], text=left[0]),
                right=Formula(latex=right[1], text=right[0]),
            )
            for side, left, right in short_sides(found.shown)
        ),
        seconds=found.seconds,
    )  # fmt: skip


def exact(checks: Iterable[ExactCheck]) -> tuple[ExactEvidence, ...]:
    """What was found in finite fields."""
    return tuple(
        ExactEvidence(
            says=check.says,
            primes=check.primes,
            sizes=dict(check.sizes),
            seed=check.seed,
            compared=check.compared,
            undefined=check.undefined,
            worst=check.worst,
            status=cast("Literal['held', 'violated', 'skipped']", check.status),
            error="" if check.error is None else f"≤ {float(check.error):.1e}",
            argument=check.argument,
            reason=check.reason,
            seconds=check.seconds,
        )
        for check in checks
    )


def _number(value: float) -> Number:
    return float(value) if isfinite(value) else "non-finite"

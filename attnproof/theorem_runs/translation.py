"""From what both sides found to the record: the interface between them and everything shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from inspect import getsource
from itertools import islice
from textwrap import dedent
from typing import TYPE_CHECKING, Any, cast

from ..documents.evidence import (
    DerivedEvidence,
    Evidence,
    Formula,
    InternalErrorEvidence,
    MisreadEvidence,
    ProvedEvidence,
    RefutedEvidence,
    SidesRecord,
    UndecidedEvidence,
    UseRecord,
    Verdict,
    WitnessRecord,
)
from ..symbolic.latex import (
    claim_latex,
    fact_latex,
    index_letter,
    latex,
    latex_pair,
    names_in,
    statement_latex,
)
from ..symbolic.plain import plain, plain_claim, plain_fact
from ..symbolic.scalars import ZERO, index
from ..symbolic.steps import flatten
from ..symbolic.terms import Term, free, substitute
from ..symbolic.witness_text import number_text
from .records import GivenRecord, LinkRecord, MeetingRecord, SizeRecord, StepRecord

if TYPE_CHECKING:
    from ..symbolic.claim import Claim, Instance
    from ..symbolic.decision import ClaimDecision, Decision, LinkProof, Step, Witness
    from ..symbolic.expressions.deriving import Derivation
    from ..symbolic.gate import Misreading
    from ..symbolic.givens import Given
    from ..symbolic.statement import Statement


def as_written(code: Callable[..., object]) -> str:
    """Return the source of a function or class, with decorators; empty if there is no file."""
    try:
        return dedent(getsource(code)).rstrip() + "\n"
    except (OSError, TypeError):  # typed at a prompt, or made by code
        return ""


KINDS = {
    "real": "any real numbers",
    "orthogonal": "an orthogonal matrix",
    "function": "a function about which nothing is known",
}


def statement(claimed: Statement) -> Formula:
    """Return the conclusions of a statement; as text, one line each."""
    lines = [
        f"{says}: {plain_claim(claim)}" if says else plain_claim(claim)
        for says, claim in claimed.claims.items()
    ]
    return Formula(latex=statement_latex(claimed), text="\n".join(lines))


def hypotheses(claimed: Statement) -> tuple[Formula, ...]:
    """Return the equations and laws that a statement assumes."""
    equations = tuple(_equation(left, right) for left, right in claimed.assume)
    laws = (
        Formula(latex=claim_latex(law.claim), text=plain_claim(law.claim)) for law in claimed.laws
    )
    return (*equations, *laws)


def sizes(claimed: Statement) -> tuple[SizeRecord, ...]:
    """Return the axis lengths that a statement quantifies over, in the order of its givens."""
    found: dict[Term, SizeRecord] = {}
    for term in _spoken(claimed):
        for part in sorted(free(term), key=repr):
            if part.op == "size" and part not in found:
                name, role = cast("tuple[str, str]", part.data)
                found[part] = SizeRecord(name=name, role=role)
    return tuple(found.values())


def _spoken(claimed: Statement) -> Iterator[Term]:
    """Yield every term in which a size of the statement may occur."""
    for given in claimed.givens.values():
        yield from _lengths(given)
    for claim in (*claimed.hypotheses, *claimed.claims.values()):
        for _, given in claim.variables:
            yield from _lengths(given)
        yield from claim.sides


def givens(claimed: Statement) -> tuple[GivenRecord, ...]:
    """Return what a statement is given, with the axes and a description of each."""
    return tuple(
        GivenRecord(
            name=name,
            kind=given.kind,
            shape=tuple(plain(n) for n in given.shape),
            below="" if given.below is None else plain(given.below),
            says=given.says or _described(given),
        )
        for name, given in claimed.givens.items()
    )


def _described(given: Given) -> str:
    if given.kind == "function" and given.traits:
        return f"a function of which nothing is known but that it is {' and '.join(given.traits)}"
    return KINDS.get(given.kind, given.kind)


def _lengths(given: Given) -> tuple[Term, ...]:
    return given.shape if given.below is None else (*given.shape, given.below)


def evidence(decision: Decision) -> tuple[Evidence, ...]:
    """Return the evidence for each conclusion; for a misread statement, where it is misread."""
    for claim in decision.claims:
        if claim.misreading is not None:
            return (misread(claim.misreading),)
    return tuple(_evidence(claim, decision) for claim in decision.claims)


def verdict(decision: Decision) -> Verdict:
    """Return the verdict of a decision; an unknown word is refused, not passed on."""
    words = ("proved", "refuted", "misread", "undecided", "internal error")
    if decision.verdict not in words:
        raise ValueError(f"a verdict is one of {', '.join(words)}, not {decision.verdict!r}")
    return cast("Verdict", decision.verdict)


def misread(found: Misreading) -> MisreadEvidence:
    """Return where the code of a statement and its term differ."""
    return MisreadEvidence.of(
        found, sizes=dict(found.sizes), values=dict(found.values), seconds=0.0
    )


WAYS = {"induction": "induction", "squares": "sum of squares", "inverse": "left inverse"}


def _evidence(claim: ClaimDecision, decision: Decision) -> Evidence:
    if claim.verdict == "proved":
        earlier = {_said(c.claim): c.says for c in decision.claims}
        rules = sum((Counter(link.rules) for link in claim.links), Counter[str]())
        if claim.claim.by:
            rules[WAYS[claim.claim.by]] += 1
        return ProvedEvidence.of(
            claim,
            instance=_instance(claim.claim),
            uses=tuple(_use(fact, earlier) for fact in claim.claim.using),
            steps=sum(rules.values()),
            rules=dict(rules),
        )
    if claim.verdict == "refuted":
        if claim.witness is None:
            raise ValueError(f"refuted without a witness: {claim.says or claim.claim}")
        return RefutedEvidence.of(claim, witness=_witness(claim.witness))
    if claim.fault is not None:
        return InternalErrorEvidence.of(claim, traceback=claim.fault.traceback)
    return UndecidedEvidence.of(claim)


def _use(fact: Instance, conclusions: Mapping[object, str]) -> UseRecord:
    """Return a fact that a proof rests on, with the conclusion that it is, unless a hypothesis."""
    told = Formula(latex=fact_latex(fact), text=plain_fact(fact))
    return UseRecord(formula=told, source=conclusions.get(_said(fact.law.claim), ""))


def _said(claim: Claim) -> object:
    """Return what a claim says, without how it is shown."""
    return claim.relation, claim.left, claim.right, claim.variables


def _instance(claim: Claim) -> Formula | None:
    if claim.variable is None or claim.witness is None:
        return None
    return _equation(claim.variable, claim.witness)


def _equation(left: Term, right: Term) -> Formula:
    a, b = formula(left), formula(right)
    return Formula(latex=f"{a.latex} = {b.latex}", text=f"{a.text} = {b.text}")


def _witness(witness: Witness) -> WitnessRecord:
    values = {name: _exact(value) for name, value in witness.values.items()}
    return WitnessRecord.of(witness, values=values, gap=str(witness.gap))


def _exact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_exact, value))}]"
    if isinstance(value, float):
        raise TypeError(f"a witness holds exact numbers, and {value!r} is a float")
    return number_text(value)


def derived(found: Derivation) -> DerivedEvidence:
    """Return what SymPy derived from the code of a statement."""
    from ..symbolic.expressions.array import short_sides

    return DerivedEvidence.of(
        found,
        sizes=tuple({name: int(n) for name, n in sizes.items()} for sizes in found.sizes),
        all_cases=found.all,
        sides=tuple(
            SidesRecord.of(
                side,
                left=Formula(latex=left[1], text=left[0]),
                right=Formula(latex=right[1], text=right[0]),
            )
            for side, left, right in short_sides(found.shown)
        ),
    )


IF_EQUAL, BUT = "If they were equal, then", "But"
BY_FORM = "by its form, or a hypothesis"


def formula(term: Term) -> Formula:
    """Return a term as LaTeX and as one line of text."""
    return Formula(latex=latex(term), text=plain(term))


KERNEL = 60  # kernel steps of a link in the record of a theorem
LETTERS = 320  # characters of each side of such a step


def chain(decision: Decision, *, kernel: int = 0) -> tuple[LinkRecord, ...]:
    """Return every link of every conclusion, each with so many of its first kernel steps."""
    return tuple(link for claim in decision.claims for link in _links(claim, kernel))


def steps(link: LinkProof, count: int, letters: int | None = None) -> tuple[StepRecord, ...]:
    """Return the first kernel steps of a link; a side with more than so many letters is cut."""
    found = islice(flatten(link.derivation) if link.derivation else (), count)
    return tuple(step_record(step, letters) for step in found)


def step_record(step: Step, letters: int | None = None) -> StepRecord:
    """Return a kernel step, its sides as text."""
    return StepRecord.of(
        step,
        at=".".join(map(str, step.path)),
        inside=tuple(map(repr, step.opened)),
        backwards=step.reverse,
        before=_cut(repr(step.part), letters),
        after=_cut(repr(step.becomes), letters),
    )


def _cut(text: str, letters: int | None) -> str:
    return text if letters is None or len(text) <= letters else f"{text[:letters]} …"


def _links(decided: ClaimDecision, kernel: int) -> Iterator[LinkRecord]:
    """Yield the links of one conclusion, with words where a part of its proof begins."""
    claim, links = decided.claim, decided.links
    ordered = claim.compared in (">", ">=")
    for place, link in enumerate(links):
        opens, reason = _part(claim, place, link)
        record = _link(decided.says, link, opens, reason, kernel)
        if ordered and place == len(links) - 1 and link.right is ZERO:
            yield record.model_copy(update={"relation": claim.compared})
        elif opens == BUT:
            yield record.model_copy(update=_not_zero(record))
        else:
            yield record


def _part(claim: Claim, place: int, link: LinkProof) -> tuple[str, str]:
    """Return what begins at this link of a claim, and the link's own reason."""
    if claim.by == "induction" and claim.on is not None:
        m = claim.on.data[0]
        for start, says, opens in (
            (0, f"{m} = 0", f"By induction on {m}. For {m} = 0:"),
            (
                len(claim.links),
                f"from {m} to {m} + 1",
                f"From {m} to {m} + 1, by the equation at {m}:",
            ),
        ):
            if link.reason == says or link.reason.startswith(f"{says}: "):
                return opens if place == start else "", link.reason[len(says) + 2 :]
    if claim.compared == "!=":
        opens = BUT if place == len(claim.links) - 1 else IF_EQUAL if place == 0 else ""
        return opens, link.reason
    opens = "By induction on the layers:" if "induction" in link.rules else ""
    if place == 0 and claim.compared in (">", ">=") and claim.right is not None:
        opens = "The left side less the right side:"
    if place == 0 and claim.by == "squares":
        opens = "Numbers whose squares add up to 0 are 0:"
    if place == 0 and claim.by == "inverse":
        opens = "For square matrices one order of the product is enough:"
    return opens, link.reason


def _link(says: str, link: LinkProof, opens: str, reason: str, kernel: int) -> LinkRecord:
    left, right = latex_pair(link.left, link.right)
    return LinkRecord.of(
        link,
        says=says,
        opens=opens,
        reason=reason,
        left=Formula(latex=left, text=plain(link.left)),
        right=Formula(latex=right, text=plain(link.right)),
        rules=dict(link.rules),
        meeting=tuple(_meeting(link, *met) for met in link.meeting),
        kernel=steps(link, kernel, LETTERS) if kernel and link.proved else (),
    )


def _not_zero(link: LinkRecord) -> dict[str, object]:
    """Return the end of a contradiction: the difference, in a form that shows it is not 0."""
    if link.left == link.right:
        return {"relation": "!=", "right": Formula(latex="0", text="0"), "reason": BY_FORM}
    head, layers, tail = link.right.latex.partition(r" \quad \text{with }")
    told = Formula(latex=rf"{head} \ne 0{layers}{tail}", text=f"{link.right.text} ≠ 0")
    return {"right": told, "reason": "in a form that shows it is not 0"}


def _meeting(link: LinkProof, place: tuple[Term, ...], value: Term) -> MeetingRecord:
    """Return where both sides meet, with generic indices under otherwise unused letters."""
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

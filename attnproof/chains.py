"""From the links that the prover found to the links of a record, with words between the parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .evidence import Formula
from .records import LinkRecord, MeetingRecord

if TYPE_CHECKING:
    from .symbolic.claim import Claim
    from .symbolic.decision import ClaimDecision, Decision, LinkProof
    from .symbolic.terms import Term

IF_EQUAL, BUT = "If they were equal, then", "But"
BY_FORM = "by its form, or a hypothesis"


def formula(term: Term) -> Formula:
    """A term, as LaTeX and as one line of text."""
    from .symbolic.latex import latex
    from .symbolic.plain import plain

    return Formula(latex=latex(term), text=plain(term))


def chain(decision: Decision) -> tuple[LinkRecord, ...]:
    """Every link of every conclusion."""
    return tuple(link for claim in decision.claims for link in _links(claim))


def _links(decided: ClaimDecision) -> Iterator[LinkRecord]:
    """The links of one conclusion, with words where a part of its proof begins."""
    claim, links = decided.claim, decided.links
    ordered = claim.compared in (">", ">=")
    for place, link in enumerate(links):
        opens, reason = _part(claim, place, link)
        record = _link(decided.says, link, opens, reason)
        if ordered and place == len(links) - 1 and _zero(link.right):
            yield record.model_copy(update={"relation": claim.compared})
        elif opens == BUT:
            yield record.model_copy(update=_not_zero(record))
        else:
            yield record


def _part(claim: Claim, place: int, link: LinkProof) -> tuple[str, str]:
    """What opens at this link of a claim, and the link's own reason."""
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


def _link(says: str, link: LinkProof, opens: str, reason: str) -> LinkRecord:
    from .symbolic.latex import latex_pair
    from .symbolic.plain import plain

    left, right = latex_pair(link.left, link.right)
    return LinkRecord(
        says=says,
        opens=opens,
        reason=reason,
        left=Formula(latex=left, text=plain(link.left)),
        right=Formula(latex=right, text=plain(link.right)),
        steps=link.steps,
        rules=dict(link.rules),
        seconds=link.seconds,
        proved=link.proved,
        why_not=link.why_not,
        meeting=tuple(_meeting(link, *met) for met in link.meeting),
    )


def _not_zero(link: LinkRecord) -> dict[str, object]:
    """The end of a contradiction: the difference, in a form that shows it is not 0."""
    if link.left == link.right:
        return {"relation": "!=", "right": Formula(latex="0", text="0"), "reason": BY_FORM}
    head, layers, tail = link.right.latex.partition(r" \quad \text{with }")
    told = Formula(latex=rf"{head} \ne 0{layers}{tail}", text=f"{link.right.text} ≠ 0")
    return {"right": told, "reason": "in a form that shows it is not 0"}


def _zero(term: Term) -> bool:
    from .symbolic.scalars import ZERO

    return term is ZERO


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

r"""The LaTeX of claims: one conclusion, one hypothesis, one fact that a proof uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from ..claim import Claim, Instance, Law
from ..scalars import index
from ..shortening import shortened
from ..terms import Term, bind, instantiate, substitute
from .arrays import Printer
from .givens import membership
from .names import SUM
from .opening import core, letter, names_in, needs_entries, opened, small

__all__ = [
    "RELATIONS", "at_values", "broken", "chain_latex", "claim_latex", "fact_latex", "inline",
    "latex", "latex_pair", "law_latex", "rows", "unfolded_latex", "width",
]  # fmt: skip

RELATIONS = {"=": "=", ">": ">", ">=": r"\ge", "!=": r"\ne"}
_MARK = re.compile(r" &(?=(?:=|>|\\ge|\\ne) )")
_TAIL = re.compile(r" \\quad \\text\{for ")
WIDE, STRICT = 66, (1, 2)


def latex(term: Term, avoid: Iterable[Term] = ()) -> str:
    """The LaTeX of a term; a stack of layers is followed by what one layer is.

    No bound index gets the letter of a name in the term, nor of one in ``avoid``.
    """
    printer = Printer()
    printer.avoid = names_in(term).union(avoid)
    return _told(printer, printer(shortened(term)))


def latex_pair(left: Term, right: Term) -> tuple[str, str]:
    """Two terms side by side; where they would look alike and differ, nothing is left out."""
    told = latex(left), latex(right)
    if left is right or told[0] != told[1]:
        return told
    for level in STRICT:
        strict: list[str] = []
        for term in (left, right):
            printer = Printer(level)
            printer.avoid = names_in(left, right)
            strict.append(_told(printer, printer(shortened(term))))
        if strict[0] != strict[1]:
            return strict[0], strict[1]
    return told


def unfolded_latex(term: Term) -> str:
    """The LaTeX of a term with its outermost definition written out."""
    t = core(term)
    return latex(t.args[0] if t.op == "named" else t)


def _told(printer: Printer, text: str) -> str:
    layers = [told for *_, told in printer.layers.values() if told]
    return text + "".join(rf" \quad \text{{with }} {told}" for told in layers)


def _by_entries(terms: Iterable[Term], relation: str) -> bool:
    """Whether both sides read better entry by entry."""
    return relation in (">", ">=") or any(
        (needs_entries(core(t)) or (core(t).op == "reduce" and t.ndim)) and not small(t)
        for t in terms
    )


def _sides(terms: list[Term], relation: str, printer: Printer) -> tuple[list[str], str]:
    """Arrays of one shape, and the indices they share if they are written by their entries.

    Nothing is left out where two of them would look alike and are not the same.
    """
    found = _printed(terms, relation, printer)
    alike = any(a == b for a, b in pairwise(found[0]))
    if not alike or printer.strict or all(a is b for a, b in pairwise(terms)):
        return found
    for level in STRICT:
        strict = Printer(level)
        told = _printed(terms, relation, strict)
        if not any(a == b for a, b in pairwise(told[0])):
            printer.strict, printer.layers, printer.avoid = level, strict.layers, strict.avoid
            return told
    return found


def _printed(terms: list[Term], relation: str, printer: Printer) -> tuple[list[str], str]:
    printer.avoid = names_in(*terms)
    terms = [shortened(t) for t in terms]
    shape = terms[0].shape
    if not shape or not _by_entries(terms, relation):
        return [printer(t, SUM) for t in terms], ""
    at: list[Term] = []
    for length in shape:
        at.append(printer.fresh(length, at))
    printer.avoid |= set(at)
    return [printer(opened(t, at), SUM) for t in terms], printer.listed(at)


def chain_latex(claim: Claim) -> tuple[str, ...]:
    """The terms of a claim in order, first to last, as they stand in its chain."""
    printer = Printer()
    if claim.compared == "!=" and claim.links:
        printer.avoid = names_in(*(link.term for link in claim.links))
        return tuple(_told(printer, printer(shortened(link.term), SUM)) for link in claim.links)
    terms = [claim.left, *(link.term for link in claim.links)]
    if claim.right is not None and not claim.links:
        terms.append(claim.right)
    return tuple(_told(printer, side) for side in _sides(terms, claim.compared, printer)[0])


def claim_latex(claim: Claim) -> str:
    """A claim on one line: its two ends and the relation between them."""
    return r" \quad ".join(inline(row) for row in rows(claim))


def law_latex(law: Law) -> str:
    """A hypothesis on one line."""
    return claim_latex(law.claim)


def at_values(fact: Instance) -> tuple[Claim, tuple[Term, ...]]:
    """What a law says at the values of a fact, and the indices that range over a family."""
    claim = fact.law.claim
    own = [given.named(name).term for name, given in claim.variables]
    sides = [t for t in (claim.left, claim.right) if t is not None]
    told = [instantiate(bind(t, *own), *fact.values) if own else t for t in sides]
    family: list[Term] = []
    for old in fact.indices:
        taken = names_in(*told).union(family) - {old}
        new = index(letter(old.args[0], taken), old.args[0])
        told = [substitute(t, old, new) for t in told]
        family.append(new)
    return Claim(claim.relation, told[0], told[1] if len(told) > 1 else None), tuple(family)


def fact_latex(fact: Instance) -> str:
    """A law at the values at which a proof uses it: f(m + 1) = f(m) f(1)."""
    claim, family = at_values(fact)
    text, printer = claim_latex(claim), Printer()
    if not family:
        return text
    ranges = ", ".join(rf"{printer(i)} < {printer(i.args[0])}" for i in family)
    return text + (", " if r"\text{for all }" in text else r" \quad \text{for all } ") + ranges


def rows(claim: Claim) -> list[str]:
    """A claim as rows of aligned equations: itself, then its witness, then its layers."""
    printer = Printer()
    ends = [claim.left] if claim.right is None else [claim.left, claim.right]
    sides, indices = _sides(ends, claim.compared, printer)
    right = sides[1] if len(sides) > 1 else "0"
    some = rf" \quad \text{{for some }} {indices}" if indices and claim.compared == "!=" else ""
    every = [indices] if indices and not some else []
    variables = [
        membership(
            name, given.kind, [printer(n) for n in given.shape],
            "" if given.below is None else printer(given.below),
        )
        for name, given in claim.variables
    ]
    row = f"{sides[0]} &{RELATIONS[claim.compared]} {right}{some}"
    if claim.relation == "exists" and claim.variable is not None:
        row = _exists(claim, printer) + inline(row)
        if variables:
            row = rf"\text{{for all }} {', '.join(variables)}:\quad {row}"
        every, variables = [], []
    if every or variables:
        row += rf" \quad \text{{for all }} {', '.join(every + variables)}"
    found = [row]
    if claim.relation == "exists" and claim.variable is not None and claim.witness is not None:
        named = f"{printer(claim.variable)} = {printer(shortened(claim.witness))}"
        found.append(rf"\text{{namely }} {named}")
    layers = [told.replace(" = ", " &= ", 1) for *_, told in printer.layers.values() if told]
    return found + [rf"\text{{with }} {told}" for told in layers]


def _exists(claim: Claim, printer: Printer) -> str:
    assert claim.variable is not None
    kind = claim.variable.data[1]
    shape = [printer(n) for n in claim.variable.shape]
    text = rf"\exists\, {membership(claim.variable.data[0], kind, shape)}"
    if claim.free_of:
        text += rf" \text{{ independent of }} {', '.join(printer(t) for t in claim.free_of)}"
    return text + r":\quad "


def inline(row: str) -> str:
    """A row without the mark by which relations stand one under the other."""
    return _MARK.sub(" ", row)


def width(row: str) -> int:
    """About how many letters wide a row is, with its label left out."""
    body, _, _ = row.partition(" && ")
    body = re.sub(r"\\(begin|end)\{[a-z]+\}|\\(left|right|operatorname|frac|text)\b", "", body)
    return len(re.sub(r"[{}\s&_^]|\\,", "", re.sub(r"\\[A-Za-z]+", "x", body)))


def broken(row: str) -> tuple[str, ...]:
    """A row too wide for a page, broken before its relation and before its range."""
    body, gap, label = row.partition(" && ")
    mark = _MARK.search(body)
    if mark is None:
        return (row,)
    left, right = body[: mark.start()], body[mark.end() :]
    tail = _TAIL.search(right)
    if tail is None or width(right) <= WIDE:
        return f"{left}{gap}{label}", rf"\qquad {right}"
    after = right[tail.start() :].removeprefix(r" \quad ")
    return f"{left}{gap}{label}", rf"\qquad {right[: tail.start()]}", rf"\qquad {after}"

"""Claims as one line of plain text, for a terminal and for the record."""

from __future__ import annotations

from .claim import Claim, Instance, Law
from .givens import Given
from .latex.claims import at_values
from .plain import plain
from .terms import Term

__all__ = ["RELATIONS", "plain_claim", "plain_fact", "plain_law"]

RELATIONS = {"=": "=", ">": ">", ">=": "≥", "!=": "≠"}
_SETS = {
    "natural": "\u2115", "positive": "ℝ>0", "nonnegative": "ℝ≥0", "boolean": "{T, F}",
}  # fmt: skip


def plain_claim(claim: Claim) -> str:
    """A claim with what it quantifies over.

    >>> from .claim import at_least, equal, for_all
    >>> from .givens import real, sizes
    >>> (d,) = sizes("d")
    >>> plain_claim(for_all({"x": real(d)}, lambda x: equal(x + x, 2 * x)).claim)
    'for all x ∈ ℝ^d: x + x = 2·x'
    >>> plain_claim(at_least(real().named("c"), 1))
    'c ≥ 1'
    """
    right = "0" if claim.right is None else plain(claim.right)
    line = f"{plain(claim.left)} {RELATIONS[claim.compared]} {right}"
    if claim.relation == "exists" and claim.variable is not None:
        free_of = " and ".join(plain(term) for term in claim.free_of)
        apart = f", the same for every {free_of}," if free_of else ""
        line = f"there is {plain(claim.variable)}{apart} with {line}"
    if not claim.variables:
        return line
    return f"for all {', '.join(_member(*named) for named in claim.variables)}: {line}"


def plain_law(law: Law) -> str:
    """A hypothesis on one line."""
    return plain_claim(law.claim)


def plain_fact(fact: Instance) -> str:
    """A law at the values at which a proof uses it."""
    claim, family = at_values(fact)
    text = plain_claim(claim)
    ranges = ", ".join(f"{plain(i)} < {_length(i.args[0])}" for i in family)
    return f"{text} for all {ranges}" if ranges else text


def _member(name: str, given: Given) -> str:
    if given.below is not None:
        index = given.kind == "index"
        return f"{name} < {plain(given.below)}" if index else f"{name}, {given.says}"
    axes = "×".join(map(_length, given.shape))
    if len(given.shape) > 1:
        axes = f"({axes})"
    return f"{name} ∈ {_SETS.get(given.kind, 'ℝ')}{f'^{axes}' if axes else ''}"


def _length(length: Term) -> str:
    text = plain(length)
    return f"({text})" if length.op in ("add", "mul") else text

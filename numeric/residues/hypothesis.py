"""One hypothesis and its givens; elimination of hypotheses that only define a given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from attnproof.symbolic.claim import Claim, Law
from attnproof.symbolic.givens import NUMBERS, SIGNED
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, free, postorder, substitute

from ..hypotheses import in_words
from .angles import Whole, whole

NO_ORDER = "a field has no order"


@dataclass(frozen=True)
class Hypothesis:
    """An equation or a law, as a claim."""

    claim: Claim

    @property
    def names(self) -> frozenset[str]:
        """The givens in it."""
        own = {name for name, _ in self.claim.variables}
        return frozenset(_names(self.claim.sides) - own)

    @property
    def whole(self) -> bool:
        """Whether it is decided by integers alone."""
        own = all(given.kind == "index" for _, given in self.claim.variables)
        return own and all(whole(side) for side in self.claim.sides)

    def holds(self, values: Mapping[str, Any], sizes: Mapping[str, int]) -> bool:
        """Whether a hypothesis about integers holds for these values."""
        read, right = Whole(sizes, values), self.claim.right
        a = torch.as_tensor(read(self.claim.left))
        b = torch.as_tensor(0 if right is None else read(right))
        if self.claim.relation == "!=":
            return bool((a != b).any())
        return bool({">": a > b, ">=": a >= b, "=": a == b}[self.claim.relation].all())

    def __str__(self) -> str:
        return in_words(self.claim)


def _names(terms: Iterable[Term]) -> set[str]:
    found = frozenset[Term]().union(*map(free, terms))
    called = {str(part.data[0]) for t in terms for part in postorder(t) if part.op == "call"}
    return called | {
        str(v.data if v.op == "index" else v.data[0]) for v in found if v.op in ("var", "index")
    }


def replaced(statement: Statement, claim: Claim) -> tuple[Statement, Claim, list[str]]:
    """Replace givens that an equation defines, and list what is then not known to hold.

    That is the positivity of a given that was replaced.
    """
    equations, laws = list(statement.assume), list(statement.laws)
    unsure: list[str] = []
    k = 0
    while k < len(equations):
        left, right = equations[k]
        pairs = ((left, right), (right, left))
        found = next(((a, b) for a, b in pairs if _replaceable(a, b)), None)
        if found is None:
            k += 1
            continue
        old, new = found
        del equations[k]
        if old.data[1] in SIGNED:
            unsure.append(f"{old.data[0]} is {old.data[1]}")
        equations = [(substitute(a, old, new), substitute(b, old, new)) for a, b in equations]
        laws = [Law(_within(law.claim, old, new)) for law in laws]
        claim, k = _within(claim, old, new), 0
    return replace(statement, assume=tuple(equations), laws=tuple(laws)), claim, unsure


def _replaceable(old: Term, new: Term) -> bool:
    return (
        old.op == "var"
        and old.data[1] in NUMBERS
        and old.data[1] != "position"
        and not old.loose
        and not new.loose
        and old not in free(new)
        and old.shape == new.shape
    )


def _within(claim: Claim, old: Term, new: Term) -> Claim:
    right = None if claim.right is None else substitute(claim.right, old, new)
    return replace(claim, left=substitute(claim.left, old, new), right=right)

"""Readings of one sample with one profile share what no replaced definition has a part in.

Two implementations differ in the bounds of the definitions that they replace.  A whole array
whose term holds none of these, say the rotated keys that attention reads, has the same value,
radius and spread in both, and is computed once.
"""

from __future__ import annotations

from typing import Any

from attnproof.symbolic.terms import Term, free, postorder

from ..torch_reading import BoundReading
from ..walk import Where
from .calculus import SpreadReading

__all__ = ["SharedBounds", "SharedSpreads", "sharing"]


class _Sharing(BoundReading):
    plain: BoundReading | None = None
    """The reading of code that replaces nothing; None if this is it."""
    shares: dict[Term, bool]
    given: frozenset[str]

    def __call__(self, term: Term) -> Any:
        """The value of a whole term, from the plain reading where it is the same there."""
        if self.plain is None or term in self.known or not self.is_plain(term):
            return super().__call__(term)
        return self.plain(term)

    def rows(self, term: Term, where: Where) -> Any:
        """As it is; rows of an array that is known whole have the errors of the whole."""
        known = {} if self.plain is None or not any(where) else self.plain.known
        if term in known and self.is_plain(term):
            return self.select(known[term], where)
        return super().rows(term, where)

    def is_plain(self, term: Term) -> bool:
        """Whether a term reads givens alone (nothing that is bound), and nothing replaced."""
        if term not in self.shares:
            assert self.plain is not None
            own = self.replaced.keys() - self.plain.replaced.keys()
            self.shares[term] = all(
                v.op == "size" or (v.op == "var" and str(v.data[0]) in self.given)
                for v in free(term)
            ) and not any(t.op == "named" and t.data[0] in own for t in postorder(term))
        return self.shares[term]


class SharedBounds(_Sharing):
    """Values with radii, shared."""


class SharedSpreads(_Sharing, SpreadReading):
    """Values with radii and spreads, shared."""


def sharing(reading: SharedBounds | SharedSpreads, plain: BoundReading | None) -> BoundReading:
    """The reading, which asks ``plain`` for what is the same in both."""
    reading.plain, reading.shares, reading.given = plain, {}, frozenset(reading.values)
    if plain is not None:
        reading.arithmetic = reading.xp = plain.arithmetic
    return reading

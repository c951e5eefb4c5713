"""Degrees of what is computed in a field, and what has no meaning there."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CONSTANT", "Degree", "NoResidue"]


class NoResidue(Exception):
    """A term has no meaning in a finite field; the text says which part and why."""


class Degree(NamedTuple):
    """Bounds on the degrees of a numerator and a denominator in all that was drawn.

    The denominator has every number that was divided by as a factor: where it is not 0, the
    value is defined.
    """

    above: int
    below: int

    def plus(self, other: Degree) -> Degree:
        """Of a sum."""
        above = max(self.above + other.below, other.above + self.below)
        return Degree(above, self.below + other.below)

    def times(self, other: Degree) -> Degree:
        """Of a product."""
        return Degree(self.above + other.above, self.below + other.below)

    def inverse(self) -> Degree:
        """Of 1/(a/b) = b²/(a b): both a and b must not be 0."""
        return Degree(2 * self.below, self.above + self.below)

    def either(self, other: Degree) -> Degree:
        """Of an array some of whose entries are of one degree, and some of the other."""
        return Degree(max(self.above, other.above), max(self.below, other.below))

    def summed(self, count: int) -> Degree:
        """Of a sum of so many."""
        return Degree(self.above + (count - 1) * self.below, count * self.below)


CONSTANT = Degree(0, 0)

"""What a tensor carries beside its numbers: residues, whole multiples, or pairs of residues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.residues.residue import CONSTANT, Degree

__all__ = ["Field", "Lost", "NoMeaning", "Number", "Pair", "Payload", "TooDeep", "either", "padded"]

Move = Callable[[Tensor], Tensor]


class NoMeaning(Exception):
    """Something that the code did has no meaning in a finite field; the text says what."""


class TooDeep(Exception):
    """There are more exponentials inside one another than the tower has fields above another."""


@dataclass(frozen=True, eq=False)
class Field:
    """Residues at each level of the tower, None where an exponential has left that level.

    They stand as whole numbers between −p/2 and p/2 in float64, with NaN where a number was
    divided by 0, and −inf for what is hidden from a softmax.  ``degree`` is that of every entry in
    all that was drawn, None where no degree is known.
    """

    levels: tuple[Tensor | None, ...]
    degree: Degree | None = CONSTANT

    def moved(self, how: Move) -> Field:
        """The same entries in other places."""
        return Field(tuple(None if x is None else how(x) for x in self.levels), self.degree)

    @property
    def top(self) -> Tensor:
        """The residues at the highest level, which are never missing."""
        found = self.levels[-1]
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Number:
    """Known numbers Σ n_j f_j: whole n_j (int64), and any f_j (float64), such as frequencies."""

    terms: tuple[tuple[Tensor, Tensor], ...]

    def moved(self, how: Move) -> Number:
        """The same entries in other places."""
        return Number(tuple((how(n), how(f)) for n, f in self.terms))

    @property
    def whole(self) -> bool:
        """Whether these are whole numbers."""
        return all(bool((f == 1).all()) for _, f in self.terms)


@dataclass(frozen=True, eq=False)
class Pair:
    """A complex number of two residues."""

    real: Field
    imag: Field

    def moved(self, how: Move) -> Pair:
        """The same entries in other places."""
        return Pair(self.real.moved(how), self.imag.moved(how))


@dataclass(frozen=True, eq=False)
class Lost:
    """Something that nothing may be done with, and why."""

    why: str

    def moved(self, how: Move) -> Lost:  # noqa: ARG002 (as the others)
        """It stays that."""
        return self


Payload = Field | Number | Pair | Lost


def either(a: Degree | None, b: Degree | None) -> Degree | None:
    """The degree of an array with entries of both."""
    return None if a is None or b is None else a.either(b)


def padded(numbers: list[Number]) -> list[Number]:
    """The same numbers with equally many terms each."""
    most = max(len(x.terms) for x in numbers)
    found = []
    for x in numbers:
        n, f = x.terms[0]
        more = ((torch.zeros_like(n), torch.ones_like(f)),) * (most - len(x.terms))
        found.append(Number(x.terms + more))
    return found

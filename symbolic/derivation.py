"""Derivations: proofs written down as plain data, which anyone may build.

A derivation proves nothing by itself; :func:`attnproof.symbolic.kernel.replay` follows it and
makes the ``Proof``.  ``left`` and ``right`` are the sides that its author expects it to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from .scalars import ZERO
from .terms import Term, substitute


@dataclass(frozen=True, slots=True)
class SignStep:
    """A number is "positive", "nonnegative" or "nonzero": given, or by a rule from earlier steps.

    The rules are those of ``rules/inequalities.py``, each with its arguments.
    """

    kind: str
    number: Term
    rule: str = "given"
    arguments: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Reflexive:
    """A term equals itself."""

    left: Term

    @property
    def right(self) -> Term:
        return self.left


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rule of the kernel, applied at the root of a term; ``signs`` show the signs it needs."""

    rule: str
    left: Term
    arguments: tuple[object, ...]
    right: Term
    signs: tuple[SignStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Reverse:
    """The same equation, read from right to left."""

    part: Derivation

    @property
    def left(self) -> Term:
        return self.part.right

    @property
    def right(self) -> Term:
        return self.part.left


@dataclass(frozen=True, slots=True)
class Chain:
    """Equations in sequence, each starting with the term that the last one ended with."""

    parts: tuple[Derivation, ...]

    @property
    def left(self) -> Term:
        return self.parts[0].left

    @property
    def right(self) -> Term:
        return self.parts[-1].right


@dataclass(frozen=True, slots=True)
class Inside:
    """Equal arguments give equal terms: ``parts`` holds (argument number, equation)."""

    left: Term
    parts: tuple[tuple[int, Derivation], ...]
    right: Term


@dataclass(frozen=True, slots=True)
class Under:
    """Equal bodies give equal binders, with the bound variables opened as ``variables``."""

    left: Term
    variables: tuple[Term, ...]
    part: Derivation
    right: Term


@dataclass(frozen=True, slots=True)
class Cases:
    """Arrays are equal if their entries are, at index patterns that cover every axis."""

    left: Term
    right: Term
    cover: tuple[tuple[object, ...], ...]
    parts: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True)
class Induction:
    """``left = context[inner]`` for two stacks of layers, from a base case and a step.

    ``context[x]`` is ``context`` with ``hole`` replaced by x.
    """

    left: Term
    inner: Term
    context: Term
    hole: Term
    layer: Term
    state: Term
    base: Derivation
    step: Derivation

    @property
    def right(self) -> Term:
        return substitute(self.context, self.hole, self.inner)


class _OfPart:
    """A derivation with the two sides of its part."""

    __slots__ = ()
    part: Derivation

    @property
    def left(self) -> Term:
        return self.part.left

    @property
    def right(self) -> Term:
        return self.part.right


@dataclass(frozen=True, slots=True)
class Witness(_OfPart):
    """The existence of an array, shown by a value that does not depend on ``free_of``.

    ``claim`` holds the two sides in ``relation``; ``part`` shows it with the value inserted.
    """

    variable: Term
    value: Term
    free_of: tuple[Term, ...]
    claim: tuple[Term, Term]
    part: Derivation
    relation: str = "="


@dataclass(frozen=True, slots=True)
class Assume:
    """An assumed law at given values of its variables; ``law`` is as ``kernel.law`` makes it."""

    left: Term
    right: Term
    law: Term
    values: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Lemma(_OfPart):
    """``part``, with ``lemma`` (for all ``variables``), which it assumed, proved as well."""

    part: Derivation
    lemma: Derivation
    variables: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class NaturalInduction:
    """``left = right`` for every natural number ``variable``, from 0 and from m to m + 1.

    The step may assume the equation at m, for all values of the further ``variables``.
    """

    left: Term
    right: Term
    variable: Term
    base: Derivation
    step: Derivation
    variables: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class SumOfSquares:
    """Arrays are equal if the sum of the squares of their differences is 0."""

    left: Term
    right: Term
    part: Derivation


@dataclass(frozen=True, slots=True)
class LeftInverse:
    """B A = 1 for square matrices from A B = 1."""

    left: Term
    right: Term
    part: Derivation


@dataclass(frozen=True, slots=True)
class Differ:
    """``left`` is not ``right``, by contradiction: ``part`` would give a = b, but a − b is not 0.

    ``apart`` shows that a − b equals a number that is not 0 by its form and ``signs``.
    """

    left: Term
    right: Term
    part: Derivation
    apart: Derivation
    signs: tuple[SignStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Sign:
    """Every entry of an array is > 0, or >= 0.

    ``parts`` has one equation for each case of the cover, from the entry to a number whose sign
    follows from its form and from ``signs``, which is empty or has the steps for each case.
    """

    left: Term
    cover: tuple[tuple[object, ...], ...]
    parts: tuple[Derivation, ...]
    signs: tuple[tuple[SignStep, ...], ...] = ()

    @property
    def right(self) -> Term:
        return ZERO


Derivation = (
    Reflexive
    | Rewrite
    | Reverse
    | Chain
    | Inside
    | Under
    | Cases
    | Induction
    | Witness
    | Assume
    | Lemma
    | NaturalInduction
    | SumOfSquares
    | LeftInverse
    | Differ
    | Sign
)

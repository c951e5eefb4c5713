"""Derivations: proofs written down as plain data, which anyone may build.

A derivation proves nothing by itself; :func:`attnproof.symbolic.kernel.replay` follows it and
makes the ``Proof``.  ``left`` and ``right`` are what its author expects it to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from .terms import Term

__all__ = [
    "Cases", "Chain", "Derivation", "Induction", "Inside", "Reflexive", "Reverse", "Rewrite",
    "Under", "Witness",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reflexive:
    """A term equals itself."""

    left: Term

    @property
    def right(self) -> Term:
        return self.left


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rule of the kernel, applied to a whole term."""

    rule: str
    left: Term
    arguments: tuple[object, ...]
    right: Term


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
    """Equations one after the other, each starting where the last one ended."""

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
    """Equal bodies give equal binders, the bound indices opened as ``variables``."""

    left: Term
    variables: tuple[Term, ...]
    part: Derivation
    right: Term


@dataclass(frozen=True, slots=True)
class Cases:
    """Arrays are equal when their entries are, at index patterns that cover every axis."""

    left: Term
    right: Term
    cover: tuple[tuple[object, ...], ...]
    parts: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True)
class Induction:
    """``iterate(L, A, F) = context[iterate(L, B, G)]`` from a base case and a step."""

    left: Term
    right: Term
    context: Term
    hole: Term
    layer: Term
    state: Term
    base: Derivation
    step: Derivation


@dataclass(frozen=True, slots=True)
class Witness:
    """An array that exists because here it is, and it does not mention ``free_of``."""

    variable: Term
    value: Term
    free_of: tuple[Term, ...]
    claim: tuple[Term, Term]
    part: Derivation

    @property
    def left(self) -> Term:
        return self.part.left

    @property
    def right(self) -> Term:
        return self.part.right


Derivation = Reflexive | Rewrite | Reverse | Chain | Inside | Under | Cases | Induction | Witness

"""Equations at hand in a derivation: hypotheses, and laws at given values.

Nothing here is trusted: an equation carries the derivation that shows it, and the assumption it
rests on travels with the proof.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .claim import Instance, Law
from .derivation import Assume, Derivation, Reflexive
from .kernel import law
from .normal_form.equations import chain, inside, reverse, rewrite, under
from .scalars import entry, index
from .terms import BINDERS, Term, free, instantiate, make, postorder


@dataclass(frozen=True)
class Contraction:
    """``first @ second = 1`` of two given matrices, or of one and its transpose.

    ``kind`` is "inverse", "columns" (Kᵀ K = 1) or "rows" (K Kᵀ = 1; K is then both).
    """

    kind: str
    first: Term
    second: Term


def contraction(left: Term, right: Term) -> Contraction | None:
    """What an equation says if one side is the identity and the other a product of givens.

    >>> from attnproof.symbolic.givens import real, sizes
    >>> from attnproof.symbolic.namespace import eye
    >>> n, d = sizes("n d")
    >>> K = real(n, d).named("K")
    >>> contraction((K.mT @ K).term, eye(d).term).kind
    'columns'
    >>> contraction((K @ K.mT).term, eye(d).term)
    """
    for product, one in ((left, right), (right, left)):
        if product.op != "matmul" or one.op != "eye" or product.shape != one.shape:
            continue
        a, b = product.args
        if _transposed(a) is b and b.op == "var":
            return Contraction("columns", b, b)
        if _transposed(b) is a and a.op == "var":
            return Contraction("rows", a, a)
        if a.op == b.op == "var" and a is not b:
            return Contraction("inverse", a, b)
    return None


def _transposed(t: Term) -> Term | None:
    return t.args[0] if t.op == "permute" and t.data == (1, 0) else None


@dataclass(frozen=True)
class Equation:
    """left = right, with the derivation of it."""

    left: Term
    right: Term
    whole: Derivation
    plain: bool = False

    def at(self, *places: Term) -> Derivation:
        """The equation of the entries at these places."""
        t = entry(self.left, *places)
        if not places:
            return self.whole
        if self.plain:
            return rewrite("hypothesis", t, self.left, self.right)
        return inside(t, [(0, self.whole)])


def assumed(left: Term, right: Term) -> Equation:
    """An equation that is assumed as it stands."""
    return Equation(left, right, Assume(left, right, law(left, right)), plain=True)


def equations(pairs: Iterable[tuple[Term, Term]]) -> tuple[Equation, ...]:
    """The equations that a statement assumes."""
    return tuple(assumed(left, right) for left, right in pairs)


def law_of(told: Law) -> Term:
    """The assumption that a law of a statement is."""
    claim = told.claim
    assert claim.right is not None
    return law(claim.left, claim.right, tuple(g.named(name).term for name, g in claim.variables))


def instance(told: Instance) -> Equation:
    """A law at given values; over indices, as an equation of tables."""
    left, right = told.sides
    opened = [left, right]
    for at in told.indices:
        opened = [instantiate(t.args[1], at) for t in opened]
    whole: Derivation = Assume(opened[0], opened[1], law_of(told.law), told.values)
    for at, table in reversed(list(zip(told.indices, _tables(left, told.indices), strict=True))):
        whole = under(table, (at,), whole)
    return Equation(left, right, whole)


def _tables(t: Term, indices: tuple[Term, ...]) -> list[Term]:
    found = []
    for at in indices:
        found.append(t)
        t = instantiate(t.args[1], at)
    return found


def replaced(t: Term, equation: Equation) -> Derivation:
    """The term with the left side of an equation replaced by the right one, wherever it stands."""
    if t is equation.left:
        return equation.whole
    if not any(part is equation.left for part in postorder(t)):
        return Reflexive(t)
    if t.op not in BINDERS:
        return inside(t, [(k, replaced(arg, equation)) for k, arg in enumerate(t.args)])
    first = inside(t, [(k, replaced(arg, equation)) for k, arg in enumerate(t.args[:-1])])
    u = first.right
    taken = {str(v.data if v.op == "index" else v.data[0]) for v in free(u) | free(equation.left)}
    name = next(n for k in range(10**6) if (n := f"r{k}") not in taken)
    opened = [index(name, u.args[0])]
    if u.op == "iterate":
        opened.append(make("var", (), (name + "y", "real"), u.shape))
    inner = replaced(instantiate(u.args[-1], *opened), equation)
    return chain(first, under(u, tuple(opened), inner))


def turned(equation: Equation) -> Equation:
    """The equation from right to left."""
    return Equation(equation.right, equation.left, reverse(equation.whole))

"""Sums, products and powers in the normal form: expanded, sorted, and reduced by what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules import sign
from ..scalars import mul, num, power
from ..terms import Term
from . import conditions
from .equations import chain, inside, rewrite
from .matching import in_product
from .polynomial import Monomial, content, divided, expand, monomial_term, positive, to_term

if TYPE_CHECKING:
    from .normaliser import Normaliser

__all__ = ["arithmetic", "settle"]


def arithmetic(norm: Normaliser, t: Term) -> Derivation:
    """Sums, products and powers: expand over the normal forms of the parts."""
    first = norm.arguments(t)
    u = first.right
    if u.op == "power" and isinstance(u.data, int) and u.data < 0:
        first = chain(first, _take_content(norm, u))
    return chain(first, norm.settle(first.right))


def _take_content(norm: Normaliser, t: Term) -> Derivation:
    """1/(c·m·P) as 1/c · 1/m · 1/P, so that what all terms share leaves the inverse."""
    base = expand(t.args[0])
    if len(base) < 2:
        return Reflexive(t)
    scale, shared = content(base)
    if scale == 1 and not shared:
        return Reflexive(t)
    down = monomial_term(tuple((a, -k) for a, k in shared))
    rest = norm(mul(num(1 / scale), down, t.args[0])).right
    target = mul(num(scale), monomial_term(shared), rest)
    nonzero = tuple(a for a, _ in shared if positive(a))
    return inside(t, [(0, rewrite("ring", t.args[0], target, *nonzero))])


def settle(norm: Normaliser, t: Term) -> Derivation:
    """A polynomial over atoms in normal form, expanded, sorted and reduced."""
    total = expand(t)
    target = to_term(total)
    step: Derivation = Reflexive(t)
    if target is not t:
        step = rewrite("ring", t, target, *_cancelled(t, target))
    parts = target.args if target.op == "add" else (target,)
    reduced = [(k, reduce(norm, part)) for k, part in enumerate(parts)]
    if all(isinstance(r, Reflexive) for _, r in reduced):
        return step
    inner = inside(target, reduced) if target.op == "add" else reduced[0][1]
    return chain(step, inner, norm(inner.right))


def reduce(norm: Normaliser, t: Term) -> Derivation:
    """One reduction of a monomial: sin², [c]², √x², equal indices, ordered |x|."""
    factors = t.args if t.op == "mul" else (t,)
    for place, factor in enumerate(factors):
        exponent = factor.data if factor.op == "power" else 1
        base = factor.args[0] if factor.op == "power" else factor
        if not isinstance(exponent, int):
            continue
        if base.op == "sin" and exponent >= 2:
            return _with_square(t, factors, place, base, 2, "sin² + cos² = 1")
        if base.op == "abs" and exponent >= 2:
            return _with_square(t, factors, place, base, 2, "absolute value")
        if base.op == "sqrt" and abs(exponent) >= 2 and sign(base.args[0])[0]:
            return _with_square(t, factors, place, base, 2 if exponent > 0 else -2, "root")
        if base.op == "indicator" and exponent >= 2:
            step = rewrite("indicator power", factor)
            return inside(t, [(place, step)]) if t.op == "mul" else step
        inverse = factor if exponent == -1 else base
        if inverse.op == "power" and inverse.args[0].op == "add" and inverse.data == -1:
            smaller = divided(t, inverse) if positive(inverse.args[0]) else None
            if smaller is not None:
                return rewrite("ring", t, smaller, inverse.args[0])
    known = in_product(norm, t) if norm.assume else None
    if known is not None:
        return known
    return conditions.reduce_gates(t, factors)


def _with_square(
    t: Term, factors: tuple[Term, ...], place: int, base: Term, k: int, rule: str
) -> Derivation:
    exponent = factors[place].data
    assert isinstance(exponent, int)
    square = power(base, k)
    arguments = (power(base.args[0], 2),) if base.op == "abs" else ()
    rest = [power(base, exponent - k)] if exponent != k else []
    target = mul(*factors[:place], square, *rest, *factors[place + 1 :])
    step = rewrite("ring", t, target)
    if target is square:
        return chain(step, rewrite(rule, square, *arguments))
    return chain(step, inside(target, [(place, rewrite(rule, square, *arguments))]))


def _cancelled(t: Term, target: Term) -> tuple[Term, ...]:
    """Positive atoms that occur in both t and 1/t, for the ring rule's side condition."""
    found: dict[Term, None] = {}

    def visit(x: Term) -> None:
        if x.op in ("add", "mul"):
            for arg in x.args:
                visit(arg)
        elif x.op == "power" and isinstance(x.data, int):
            if x.data < 0:
                for atom, _ in (p for m in _safe_expand(x.args[0]) for p in m):
                    found.setdefault(atom)
                if x.args[0].op == "power" and x.args[0].args[0].op == "add":
                    found.setdefault(x.args[0].args[0])
            visit(x.args[0])

    visit(t)
    visit(target)
    return tuple(atom for atom in found if positive(atom))


def _safe_expand(t: Term) -> list[Monomial]:
    return list(expand(t))

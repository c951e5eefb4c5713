"""Signs of numbers: those that follow from the form of a term, and from known facts.

Nothing is searched for here.  ``facts`` holds what is known: ("positive", A) or
("nonnegative", A) for every entry of an array A, ("nonzero", x) for a number x.  The facts that
were used are returned with the sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ..scalars import CARRIES, ZERO, always_less, is_integer, number_of, power
from ..terms import Opened, Term, instantiate, make, opened
from .base import NOTHING, Assumption, Facts

Sign = tuple[int, Facts]
NEITHER: Sign = (0, NOTHING)
BY_KIND = {"positive": 2, "nonnegative": 1}


class Signs:
    """The signs available to a rule: by form and by known facts.

    ``known`` maps each fact to the assumptions it rests on; ``over`` holds the variables that are
    known to have a value.
    """

    def __init__(
        self, known: Mapping[Assumption, Facts], over: frozenset[Term] = frozenset()
    ) -> None:
        self.known, self.over = known, over
        self.facts = frozenset(known)

    def sign(self, t: Term) -> Sign:
        """Return 2 if t > 0 is certain, 1 if t >= 0 is, 0 if neither; and the assumptions."""
        certain, used = sign(t, self.facts)
        return certain, self._rests(used)

    def nonzero(self, t: Term) -> tuple[bool, Facts]:
        """Return whether t is certainly not 0, and the assumptions."""
        certain, used = nonzero(t, self.facts)
        return certain, self._rests(used)

    def _rests(self, used: Facts) -> Facts:
        return NOTHING.union(*(self.known.get(fact, frozenset({fact})) for fact in used))


BY_FORM = Signs({})


@cache
def sign(t: Term, facts: Facts = NOTHING) -> Sign:
    """Return 2 if t > 0 follows from its form and the facts, 1 if t >= 0 does, 0 if neither."""
    if ("positive", t) in facts:
        return 2, frozenset({("positive", t)})
    found = _SIGNS[t.op](t, facts) if t.op in _SIGNS else NEITHER
    if not found[0] and ("nonnegative", t) in facts:
        return 1, frozenset({("nonnegative", t)})
    return found


def _num(t: Term, _: Facts) -> Sign:
    return (2 if t.data > 0 else 1 if t.data == 0 else 0), NOTHING


def _var(t: Term, _: Facts) -> Sign:
    kind = t.data[1]
    if kind == "natural":
        return 1, NOTHING
    return (BY_KIND[kind], frozenset({(kind, t)})) if kind in BY_KIND else NEITHER


def _indicator(t: Term, _: Facts) -> Sign:
    c = t.args[0]
    holds = c.op in ("equal", "less_equal") and c.args[0] is c.args[1]
    return (2 if holds else 1), NOTHING


def _power(t: Term, facts: Facts) -> Sign:
    if t.data % 2 or not t.finite:
        return _same(t, facts)
    apart, used = nonzero(t.args[0], facts)
    return (2, used) if apart else (1, NOTHING)


def _absolute(t: Term, facts: Facts) -> Sign:
    inner, used = _same(t, facts)
    return (max(inner, 1) if t.finite else 0), used


def _same(t: Term, facts: Facts) -> Sign:
    """A root, an odd power or the hyperbolic tangent has the sign of its argument."""
    return sign(t.args[0], facts) if t.finite else NEITHER


def _exp(t: Term, _: Facts) -> Sign:
    return (2 if t.args[0].finite else 1), NOTHING


def _sum(t: Term, facts: Facts) -> Sign:
    """A sum of terms >= 0 is >= 0; it is > 0 if all terms are and the sum is not empty."""
    length, body = t.args
    some = length.op == "space" or always_less(ZERO, length)
    inner, used = sign(instantiate(body, opened(length, t, facts)), facts)
    return (inner if some else min(inner, 1)), used


def _add(t: Term, facts: Facts) -> Sign:
    signs, used = _all(t.args, facts)
    return (max(signs) if min(signs) else 0), used


def _mul(t: Term, facts: Facts) -> Sign:
    """A product of factors >= 0 is >= 0, and > 0 if all are > 0; squares count as factors."""
    signs, used = _all(with_squares(t), facts)
    return min(signs), used


def with_squares(product: Term) -> tuple[Term, ...]:
    """Return the factors of a product, with x·x as one square."""
    parts: list[Term] = []
    for arg in product.args:
        twice = arg in parts
        if twice:
            parts.remove(arg)
        parts.append(power(arg, 2) if twice else arg)
    return tuple(parts)


def _where(t: Term, facts: Facts) -> Sign:
    signs, used = _all(t.args[1:], facts)
    return min(signs), used


def _all(parts: tuple[Term, ...], facts: Facts) -> tuple[list[int], Facts]:
    found = [sign(part, facts) for part in parts]
    return [s for s, _ in found], NOTHING.union(*(used for _, used in found))


def _maximum(t: Term, facts: Facts) -> Sign:
    return max((sign(arg, facts) for arg in t.args), key=lambda part: part[0])


def _iterate(t: Term, facts: Facts) -> Sign:
    """A stack is positive if its start is, and every layer maps positive numbers to such."""
    depth, start, body = t.args
    first, used = sign(start, facts)
    if t.shape or first < 2:
        return NEITHER
    layer, state = opened(depth, t, facts), make("var", (), (Opened((t, facts)), "positive"))
    then, more = sign(instantiate(body, layer, state), facts)
    return (2, used | (more - {("positive", state)})) if then == 2 else NEITHER


def _carried(t: Term, facts: Facts) -> Sign:
    """An operation that only moves entries keeps the sign common to all of them."""
    return sign(t.args[0], facts)


@cache
def nonzero(t: Term, facts: Facts = NOTHING) -> tuple[bool, Facts]:
    """Return whether t is certainly not 0, from its form and the facts; and the facts used.

    As π is irrational, cos x is not 0 for rational x, nor is sin x for rational x other than 0.
    """
    if ("nonzero", t) in facts and not t.shape:
        return True, frozenset({("nonzero", t)})
    if t.op == "num":
        return t.data != 0, NOTHING
    if t.op in ("power", "abs") and t.finite:
        return nonzero(t.args[0], facts)
    certain, used = sign(t, facts)
    if certain == 2:
        return True, used
    if t.op == "mul":
        parts = [nonzero(arg, facts) for arg in t.args]
        return all(p for p, _ in parts), NOTHING.union(*(a for _, a in parts))
    if t.op in ("cos", "sin") and _is_rational(t.args[0]):
        return (True, NOTHING) if t.op == "cos" else nonzero(t.args[0], facts)
    return False, NOTHING


def _is_rational(t: Term) -> bool:
    """Whether t is a polynomial in natural numbers with rational coefficients."""
    if t.op in ("add", "mul"):
        return all(map(_is_rational, t.args))
    return number_of(t) is not None or is_integer(t)


CARRIED = CARRIES - {"concat", "stack"}
_SIGNS: dict[str, Callable[[Term, Facts], Sign]] = dict.fromkeys(CARRIED, _carried) | {
    "num": _num,
    "var": _var,
    "size": lambda _, __: (2, NOTHING),
    "pi": lambda _, __: (2, NOTHING),
    "index": lambda t, _: NEITHER if t.args[0].op == "space" else (1, NOTHING),
    "exp": _exp,
    "indicator": _indicator,
    "power": _power,
    "tanh": _same,
    "sqrt": _same,
    "abs": _absolute,
    "sum": _sum,
    "add": _add,
    "mul": _mul,
    "where": _where,
    "maximum": _maximum,
    "iterate": _iterate,
}

"""Signs that follow from the form of a number, and from what a statement takes as given.

``facts`` holds hypotheses at hand: ("positive", A), ("nonnegative", A) of every entry of an array
and ("nonzero", x) of a number.  A fact that is used comes back as an assumption.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

from ..budget import spend
from ..scalars import ONE, ZERO, always_less, is_integer, mul, num, number_of, power
from ..terms import Own, Term, free, instantiate, make, substitute
from . import sizes
from .base import NOTHING, Assumption, Facts, fresh
from .polynomials import same_polynomial
from .sizes import Known, as_term, collected, minus

Sign = tuple[int, frozenset[Assumption]]
NEITHER: Sign = (0, NOTHING)
BY_KIND = {"positive": 2, "nonnegative": 1}
CASES = 3


@cache
def sign(t: Term, facts: Facts = NOTHING) -> Sign:
    """2 if t > 0 is certain from its form, 1 if t >= 0 is, 0 if neither; with assumptions."""
    value = number_of(t)
    if value is not None:
        return (2 if value > 0 else 1 if value == 0 else 0), NOTHING
    for kind, certain in BY_KIND.items():
        if (kind, t) in facts:
            return certain, frozenset({(kind, t)})
    spend()
    found = _SIGNS[t.op](t, facts) if t.op in _SIGNS else NEITHER
    return max(found, _by_facts(t, facts), key=lambda s: s[0])


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
    if not t.finite:
        return NEITHER
    if t.data % 2:
        return sign(t.args[0], facts)
    apart, used = nonzero(t.args[0], facts)
    return (2, used) if apart else (1, NOTHING)


def _root(t: Term, facts: Facts) -> Sign:
    return sign(t.args[0], facts) if t.finite else NEITHER


def _absolute(t: Term, facts: Facts) -> Sign:
    if not t.finite:
        return NEITHER
    inner, assumed = sign(t.args[0], facts)
    return max(inner, 1), assumed


def _log(t: Term, facts: Facts) -> Sign:
    """log x is at least 0 where x is at least 1."""
    return sign(minus(t.args[0], ONE), facts) if t.finite and not t.shape else NEITHER


def _odd(t: Term, facts: Facts) -> Sign:
    """The hyperbolic tangent has the sign of its number."""
    return sign(t.args[0], facts) if t.finite else NEITHER


def _exp(t: Term, _: Facts) -> Sign:
    return (2 if t.args[0].finite else 1), NOTHING


def _sum(t: Term, facts: Facts) -> Sign:
    """A sum of terms >= 0 is positive if one is: any, or the one at an index at hand or at 0.

    An expectation is positive if every outcome's number is; one outcome may have no weight.
    """
    length, body = t.args
    inner, assumed = sign(instantiate(body, fresh(length, t, *_terms(facts))), facts)
    if length.op == "space":
        return inner, assumed
    some = always_less(ZERO, length)
    if inner == 1:
        for at in [*sorted(free(t), key=lambda v: v.key), ZERO]:
            if (at is ZERO and some) or (at.op == "index" and at.args[0] is length):
                here, used = sign(instantiate(body, at), facts)
                if here == 2:
                    return 2, assumed | used
    return (inner if some else min(inner, 1)), assumed


def _add(t: Term, facts: Facts) -> Sign:
    parts = [sign(arg, facts) for arg in t.args]
    signs = [s for s, _ in parts]
    if min(signs):
        return max(signs), NOTHING.union(*(a for _, a in parts))
    least, strict, used = _at_least(t, facts)
    if least is not None and least >= 0:
        return (2 if least > 0 or strict else 1), used
    if t.shape or not t.finite:
        return NEITHER
    found = sizes.paid(collected(t), _known(facts))
    return found if found[0] else _by_cases(t, facts)


def _known(facts: Facts) -> Known:
    def low(x: Term) -> tuple[Fraction | None, Facts]:
        least, _, used = _at_least(x, facts)
        return least, used

    return Known(facts, lambda x: sign(x, facts), low)


def _by_cases(t: Term, facts: Facts) -> Sign:
    """The sign that a sum has both where a condition in it holds and where it does not."""
    gates = sizes.gates(t)
    if not 0 < len(gates) <= CASES:
        return NEITHER
    holds, fails, used = sizes.when(gates[0], _known(facts))
    least = 2
    for value, told in ((ONE, holds), (ZERO, fails)):
        impossible = [s for told_ in told if (s := _against(told_, facts))[0]]
        if impossible:
            used |= impossible[0][1]
            continue
        case = as_term(collected(substitute(t, gates[0], value)))
        certain, more = sign(case, facts.union(told))
        if not certain:
            return NEITHER
        least, used = min(least, certain), used | (more - (frozenset(told) - facts))
    return least, used


def _against(told: Assumption, facts: Facts) -> Sign:
    """Whether what is told of a number is certainly wrong."""
    kind, x = told
    certain, used = sign(minus(ZERO, x), facts)
    return (certain, used) if certain == 2 or kind == "positive" else NEITHER


def _by_facts(t: Term, facts: Facts) -> Sign:
    """The sign of t = c·g·x + rest, where a fact says the sign of the number x."""
    if t.shape or not t.finite:
        return NEITHER
    for fact in sorted(facts, key=lambda fact: (fact[0], fact[1].key)):
        kind, x = fact
        if kind not in BY_KIND or x.shape or not x.finite:
            continue
        for factor, rest in sizes.multiples(collected(t), collected(x)):
            certain, used = sign(factor, facts)
            left, more = sign(as_term(rest), facts - {fact}) if certain else NEITHER
            if left:
                strict = left == 2 or (certain == 2 and BY_KIND[kind] == 2)
                return (2 if strict else 1), used | more | {fact}
    return NEITHER


def _mul(t: Term, facts: Facts) -> Sign:
    """A product of numbers with known signs, where x·x counts as a square."""
    single: list[Term] = []
    squares: list[Term] = []
    for arg in t.args:
        if arg in single:
            single.remove(arg)
            squares.append(power(arg, 2))
        else:
            single.append(arg)
    parts = [sign(arg, facts) for arg in (*single, *squares)]
    return min(s for s, _ in parts), NOTHING.union(*(a for _, a in parts))


def _terms(facts: Facts) -> list[Term]:
    """What the facts speak of; a name that is fresh occurs in none of it."""
    return [term for _, term in facts]


def _where(t: Term, facts: Facts) -> Sign:
    (a, used), (b, more) = (sign(arg, facts) for arg in t.args[1:])
    return min(a, b), used | more


def _maximum(t: Term, facts: Facts) -> Sign:
    return max((sign(arg, facts) for arg in t.args), key=lambda part: part[0])


def _iterate(t: Term, facts: Facts) -> Sign:
    """A stack is positive if its start is, and every layer of a positive number."""
    depth, start, body = t.args
    first, used = sign(start, facts)
    if t.shape or first < 2:
        return NEITHER
    layer = fresh(depth, t, *_terms(facts))
    state = make("var", (), (Own("y"), "positive"))
    then, more = sign(instantiate(body, layer, state), facts)
    return (2, used | (more - {("positive", state)})) if then == 2 else NEITHER


Bound = tuple[Fraction | None, bool, frozenset[Assumption]]
UNKNOWN: Bound = (None, False, NOTHING)


def _at_least(t: Term, facts: Facts) -> Bound:
    """A number that t is certainly not below, or None; and whether t is certainly above it."""
    if t.op == "add":
        parts = [_at_least(arg, facts) for arg in t.args]
        lows = [low for low, _, _ in parts if low is not None]
        used = NOTHING.union(*(a for _, _, a in parts))
        if len(lows) < len(parts):
            return UNKNOWN
        return sum(lows, Fraction()), any(strict for _, strict, _ in parts), used
    scale, inner = _scaled(t)
    literal = number_of(inner)
    if literal is not None:
        return scale * literal, False, NOTHING
    if inner.op in ("cos", "sin", "tanh") and inner.finite:
        return -abs(scale), False, NOTHING
    if inner.op == "indicator":
        return min(Fraction(0), scale), False, NOTHING
    if scale < 0 and inner.finite and not inner.shape:
        certain, used = _at_most_one(inner, facts)
        if certain:
            return scale, certain == 2, used
    if t.op == "maximum":
        parts = [_at_least(x, facts) for x in t.args]
        known = [(low, strict, used) for low, strict, used in parts if low is not None]
        return max(known, default=UNKNOWN)
    if t.op == "exp":
        certain, used = sign(t.args[0], facts)
        above = certain == 2 or (not certain and t.args[0].finite)
        return Fraction(1 if certain else 0), above, used
    if t.op == "size":
        return Fraction(1), False, NOTHING
    certain, used = sign(t, facts)
    return (Fraction(0) if certain else None), certain == 2, used


def _at_most_one(t: Term, facts: Facts) -> Sign:
    """Whether exp(x) or 1/x is at most 1 (1), or below it (2): x <= 0, or x >= 1."""
    if t.op == "exp" and t.args[0].finite:
        return sign(minus(ZERO, t.args[0]), facts)
    if t.op == "power" and t.data < 0:
        return sign(minus(t.args[0], ONE), facts)
    return NEITHER


def _scaled(t: Term) -> tuple[Fraction, Term]:
    """(c, x) for c·x with a literal c; (1, t) for any other number."""
    scale = number_of(t.args[0]) if t.op == "mul" and len(t.args) == 2 else None
    return (Fraction(1), t) if scale is None else (scale, t.args[1])


@cache
def nonzero(t: Term, facts: Facts = NOTHING) -> tuple[bool, frozenset[Assumption]]:
    """Whether t is certainly not 0, with assumptions.

    The cosine of a rational number is not 0, nor is the sine of one that is not 0: π is irrational.
    """
    value = number_of(t)
    if value is not None:
        return value != 0, NOTHING
    for fact in sorted(facts, key=lambda fact: (fact[0], fact[1].key)):
        kind, x = fact
        if kind != "nonzero" or x.shape:
            continue
        opposite = mul(num(-1), x)
        if x is t or same_polynomial(t, x) or same_polynomial(t, opposite):
            return True, frozenset({fact})
    if t.op in ("power", "abs") and t.finite:
        return nonzero(t.args[0], facts)
    certain, used = sign(t, facts)
    if certain == 2:
        return True, used
    if t.op == "mul":
        parts = [nonzero(arg, facts) for arg in t.args]
        return all(p for p, _ in parts), NOTHING.union(*(a for _, a in parts))
    if t.op == "cos" and _is_rational(t.args[0]):
        return True, NOTHING
    if t.op == "sin" and _is_rational(t.args[0]):
        return nonzero(t.args[0], facts)
    return False, NOTHING


def _is_rational(t: Term) -> bool:
    """A polynomial in naturals with rational coefficients."""
    if t.op in ("add", "mul"):
        return all(map(_is_rational, t.args))
    return number_of(t) is not None or is_integer(t)


def _carried(t: Term, facts: Facts) -> Sign:
    """Entries of an array in another place or shape have the sign that all its entries have."""
    return sign(t.args[0], facts)


CARRIED = (
    "named",
    "broadcast",
    "permute",
    "new axis",
    "reshape",
    "pick",
    "slice",
    "gather",
    "entry",
    "row",
)

_SIGNS: dict[str, Callable[[Term, Facts], Sign]] = dict.fromkeys(CARRIED, _carried) | {
    "var": _var,
    "size": lambda _, __: (2, NOTHING),
    "pi": lambda _, __: (2, NOTHING),
    "index": lambda t, _: NEITHER if t.args[0].op == "space" else (1, NOTHING),
    "exp": _exp,
    "indicator": _indicator,
    "power": _power,
    "log": _log,
    "tanh": _odd,
    "sqrt": _root,
    "abs": _absolute,
    "sum": _sum,
    "add": _add,
    "mul": _mul,
    "where": _where,
    "maximum": _maximum,
    "iterate": _iterate,
}

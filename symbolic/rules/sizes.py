"""Sums as they are compared: like parts collected, what is smaller set against what is larger.

Nothing here knows a sign by itself: :class:`Known` answers the smaller questions that come back,
as :mod:`.signs` does under the facts at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..budget import spend
from ..scalars import ONE, add, is_integer, is_truth, mul, num, number_of, power
from ..terms import Term, instantiate, postorder
from .base import NOTHING, Assumption, fresh

Facts = frozenset[Assumption]
Sign = tuple[int, Facts]
Monomial = tuple[Term, ...]
Linear = dict[Monomial, Fraction]
NEITHER: Sign = (0, NOTHING)
COPIES = 6
INCREASING = frozenset(["exp", "tanh", "log", "sqrt"])


@dataclass(frozen=True)
class Known:
    """What may be asked: the sign of a number, and a literal that it is certainly not below."""

    facts: Facts
    sign: Callable[[Term], Sign]
    low: Callable[[Term], tuple[Fraction | None, Facts]]


def collected(t: Term, scale: Fraction = Fraction(1)) -> Linear:
    """A finite number as Σ literal · monomial, like monomials together; no product is opened."""
    spend()
    factors = sorted(_factors(t), key=lambda f: f.key)
    for literal in map(number_of, factors):
        scale *= 1 if literal is None else literal
    rest = tuple(f for f in factors if number_of(f) is None)
    if len(rest) != 1 or rest[0].op != "add":
        return {rest: scale} if scale else {}
    total: Linear = {}
    for arg in rest[0].args:
        for monomial, coefficient in collected(arg, scale).items():
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {m: c for m, c in total.items() if c}


def _factors(t: Term) -> Iterator[Term]:
    """The factors of a product; a small power of a number as its copies."""
    if t.op == "mul":
        for arg in t.args:
            yield from _factors(arg)
    elif t.op == "power" and 1 < abs(t.data) <= COPIES:
        for _ in range(abs(t.data)):
            yield from _factors(power(t.args[0], t.data // abs(t.data)))
    else:
        yield t


def as_term(linear: Linear) -> Term:
    """The sum as a term."""
    parts = sorted(linear, key=_order)
    return add(*(mul(*([num(linear[m])] if linear[m] != 1 else []), *m) for m in parts))


def _order(monomial: Monomial) -> tuple[int, list[bytes]]:
    return len(monomial), [f.key for f in monomial]


def minus(x: Term, y: Term) -> Term:
    """x − y, like monomials collected."""
    return as_term(collected(add(x, mul(num(-1), y))))


def divided(whole: Monomial, part: Monomial) -> Monomial | None:
    """The factors of a product that are left without those of another, or None."""
    rest = list(whole)
    for factor in part:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def multiples(own: Linear, told: Linear) -> Iterator[tuple[Term, Linear]]:
    """Ways to write a sum as factor · told + rest, so that one monomial of it is gone."""
    for whole, c in sorted(own.items(), key=lambda part: _order(part[0])):
        for part, k in sorted(told.items(), key=lambda part: _order(part[0])):
            others = divided(whole, part) if part and c / k > 0 else None
            if others is not None:
                rest = dict(own)
                for more, coefficient in told.items():
                    monomial = tuple(sorted((*others, *more), key=lambda f: f.key))
                    rest[monomial] = rest.get(monomial, Fraction(0)) - c / k * coefficient
                yield mul(num(c / k), *others), {m: x for m, x in rest.items() if x}


def paid(linear: Linear, known: Known) -> Sign:
    """The sign of a sum in which what is negative is set against something certainly as large."""
    held = {m: c for m, c in linear.items() if c > 0}
    used = NOTHING
    for small in sorted((m for m, c in linear.items() if c < 0), key=_order):
        owed = -linear[small]
        for large in sorted(held, key=lambda m: (-len(_shared(small, m)[0]), _order(m))):
            amount = min(owed, held[large])
            by = _no_larger(small, large, known) if amount else None
            if by is not None:
                owed, held[large], used = owed - amount, held[large] - amount, used | by
        if owed:
            return NEITHER
    rest = [known.sign(mul(*m)) for m, c in held.items() if c]
    if not all(certain for certain, _ in rest):
        return NEITHER
    return max((s for s, _ in rest), default=1), used.union(*(a for _, a in rest))


def _shared(a: Monomial, b: Monomial) -> tuple[Monomial, list[Term], list[Term]]:
    """The factors that two products have in common, and what else is in each."""
    shared, left, right = list[Term](), list[Term](), list(b)
    for factor in a:
        if factor in right:
            right.remove(factor)
            shared.append(factor)
        else:
            left.append(factor)
    return tuple(shared), left, right


def _no_larger(small: Monomial, large: Monomial, known: Known) -> Facts | None:
    """The facts by which one product certainly is at most another, or None.

    What both have in common is >= 0.  Of the rest, either one number stands against one (or
    against 1); or all numbers of the small product are >= 0, each at most one of the large
    product or at most 1, and what is left of the large one is at least 1.
    """
    shared, left, right = _shared(small, large)
    certain, used = known.sign(mul(*shared))
    if not certain:
        return None
    alone = len(left) <= 1 and len(right) <= 1
    for x in tuple(left):
        if not alone:
            certain, more = known.sign(x)
            if not certain:
                return None
            used |= more
        for y in right:
            by = _below(x, y, known)
            if by is not None:
                left.remove(x)
                right.remove(y)
                used |= by
                break
    ends = [(mul(num(-1), x), Fraction(-1)) for x in left] + [(y, Fraction(1)) for y in right]
    for x, least in ends:
        low, more = known.low(x)
        if low is None or low < least:
            return None
        used |= more
    return used


def _below(small: Term, large: Term, known: Known) -> Facts | None:
    """The facts by which f(x) certainly is at most f(y), for the same f of both; or None."""
    if small.op != large.op:
        return None
    if small.op in INCREASING:
        least = {"log": 2, "sqrt": 1}.get(small.op, 0)
        return _in_order(small.args[0], large.args[0], least, known)
    if small.op == "power" and small.data == large.data == -1:
        return _in_order(large.args[0], small.args[0], 2, known)
    if small.op == "maximum":
        return _both(small, large, known)
    if small.op == "sum" and small.args[0] is large.args[0]:
        at = fresh(small.args[0], small, large, *(term for _, term in known.facts))
        x, y = (instantiate(t.args[1], at) for t in (small, large))
        return _in_order(x, y, 0, known)
    if small.op == "indicator":
        return _implies(small.args[0], large.args[0], known)
    return None


def _in_order(x: Term, y: Term, least: int, known: Known) -> Facts | None:
    """x <= y, and x is known to be positive (least = 2), or >= 0 (1), or nothing of it (0)."""
    if not (x.finite and y.finite):
        return None
    first, used = known.sign(x) if least else NEITHER
    certain, more = known.sign(minus(y, x))
    return used | more if certain and first >= least else None


def _both(small: Term, large: Term, known: Known) -> Facts | None:
    """max(x, ..) <= max(y, ..) if each x is at most some y."""
    used = NOTHING
    for x in _leaves(small):
        ways = (_in_order(x, y, 0, known) for y in _leaves(large))
        by = next((way for way in ways if way is not None), None)
        if by is None:
            return None
        used |= by
    return used


def _leaves(t: Term) -> list[Term]:
    return [y for x in t.args for y in _leaves(x)] if t.op == "maximum" else [t]


def _implies(first: Term, then: Term, known: Known) -> Facts | None:
    """[a <= b] <= [c <= d] if d − c is at least b − a; the same for <, and from < to <=."""
    strict = {"less": 1, "less_equal": 0}
    if first.op not in strict or then.op not in strict:
        return None
    (a, b), (c, d) = first.args, then.args
    certain, used = known.sign(minus(add(d, a), add(c, b)))
    return used if certain and certain > strict[then.op] - strict[first.op] else None


def gates(t: Term) -> list[Term]:
    """The indicators of conditions on finite numbers that stand in a number."""
    return [
        x for x in postorder(t) if x.op == "indicator" and not x.loose and not x.shape and x.finite
    ]


def when(gate: Term, known: Known) -> tuple[list[Assumption], list[Assumption], Facts]:
    """What is true of a and b where a <= b, a < b or a = b, and what where it is not.

    Of any other condition nothing is told.  Third comes what the facts told for it.
    """
    c = gate.args[0]
    if c.op not in ("less", "less_equal", "equal") or is_truth(c.args[0]):
        return [], [], NOTHING
    up, down = minus(c.args[1], c.args[0]), minus(c.args[0], c.args[1])
    if c.op == "equal":
        ways = ((x, known.sign(x)) for x in (up, down))
        x, (certain, used) = next((way for way in ways if way[1][0]), (up, NEITHER))
        both: list[Assumption] = [("nonnegative", up), ("nonnegative", down)]
        return both, [_strictly(x)] if certain else [], used
    if c.op == "less":
        return [_strictly(up)], [("nonnegative", down)], NOTHING
    return [("nonnegative", up)], [_strictly(down)], NOTHING


def _strictly(x: Term) -> Assumption:
    """x > 0; of an integer, x − 1 >= 0."""
    return ("nonnegative", minus(x, ONE)) if is_integer(x) else ("positive", x)

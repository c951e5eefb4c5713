"""Bounds that show the sign of a sum: literal lower bounds, and terms at least as large as others.

Each asks for the signs of smaller numbers, through the search that it is given (``signs.py``), and
returns steps for the kernel.  Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from .linear import (
    NEITHER,
    Found,
    Monomial,
    Steps,
    as_term,
    collected,
    common_factors,
    joined,
    minus,
    order,
    step,
    times,
)
from .rules.inequalities import LEAST, one_sum
from .scalars import ONE, ZERO, add, below, mul, num, number_of, power, subtract
from .terms import Term, instantiate, opened, postorder, substitute

Search = Callable[[Term], Found]  # for the sign of a number, under the facts at hand
LowerBound = tuple[Fraction | None, bool, list[Term], Steps]
NO_BOUND: LowerBound = (None, False, [], ())


def lower_bound(t: Term, find: Search) -> LowerBound:
    """Return a literal lower bound of t or None, and whether t is certainly above it.

    Then follow the difference, as a list of numbers >= 0 that add up to it, and the steps that
    show their signs.
    """
    if t.op == "add":
        lows = [lower_bound(arg, find) for arg in t.args]
        if any(low is None for low, *_ in lows):
            return NO_BOUND
        total = sum((low for low, *_ in lows if low is not None), Fraction())
        rest = [x for _, _, rest, _ in lows for x in rest]
        return total, any(one[1] for one in lows), rest, joined(*(one[3] for one in lows))
    scale, inner = _scaled(t)
    literal = number_of(inner)
    if literal is not None:
        return scale * literal, False, [], ()
    if inner.op in ("cos", "sin", "tanh", "indicator") and inner.finite:
        if inner.op == "indicator" and scale >= 0:
            return Fraction(), False, [t], ()
        other = add(ONE, inner) if scale > 0 else subtract(ONE, inner)
        strict = inner.op == "tanh" and inner.args[0].finite
        how = step(1 + strict, other, "bounded", inner)
        return -abs(scale), strict, [times(num(abs(scale)), other)], (how,)
    if scale < 0 and inner.finite and not inner.shape:
        certain, other, steps = _at_most_one(inner, find)
        if certain:
            return scale, certain == 2, [times(num(-scale), other)], steps
    if t.op == "maximum":
        return _lower_bound_of_maximum(t, find)
    if t.op == "exp":
        certain, steps = gap(ZERO, t.args[0], find)
        if certain:
            more = subtract(t, ONE)
            last = step(certain, more, "rising", "exp", ZERO, t.args[0])
            return Fraction(1), certain == 2, [more], (*steps, last)
        return Fraction(), t.args[0].finite, [t], ()
    if t.op == "size":
        more = subtract(t, ONE)
        return Fraction(1), False, [more], (step(1, more, "ranges"),)
    certain, steps = find(t)
    return (Fraction(), certain == 2, [t], steps) if certain else NO_BOUND


def _lower_bound_of_maximum(t: Term, find: Search) -> LowerBound:
    """Return the best lower bound among those of the maximum's arguments."""
    best, more = NO_BOUND, t
    for x in t.args:
        found = lower_bound(x, find)
        if found[0] is not None and (best[0] is None or found[:2] > best[:2]):
            best, more = found, x
    low, strict, rest, steps = best
    if low is None:
        return NO_BOUND
    above = subtract(t, more)
    return low, strict, [above, *rest], (*steps, step(1, above, "largest", t, more))


def _at_most_one(t: Term, find: Search) -> tuple[int, Term, Steps]:
    """Return 1 if t = exp(x) or 1/x^k is <= 1, 2 if it is < 1, else 0; with 1 − t and the steps."""
    other = subtract(ONE, t)
    if t.op == "exp" and t.args[0].finite:
        certain, steps = gap(t.args[0], ZERO, find)
        if certain:
            return certain, other, (*steps, step(certain, other, "rising", "exp", t.args[0], ZERO))
    if t.op == "power" and t.data < 0:
        (x,) = t.args
        certain, steps = gap(ONE, x, find)
        if certain:
            room = subtract(ONE, power(x, -1))  # 1 − 1/x^k = Σ_{m<k} (1 − 1/x)/x^m
            first = step(certain, room, "rising", "power", ONE, x)
            if t.data == -1:
                return certain, other, (*steps, first)
            above = step(2, x, "total", ONE, subtract(x, ONE))
            parts = [times(room, power(x, -m)) if m else room for m in range(-t.data)]
            last = step(certain, other, "total", *parts)
            return certain, other, (*steps, first, above, last)
    return 0, other, ()


def _scaled(t: Term) -> tuple[Fraction, Term]:
    """Return (c, x) for c·x with a literal c; (1, t) for any other number."""
    scale = number_of(t.args[0]) if t.op == "mul" and len(t.args) == 2 else None
    return (Fraction(1), t) if scale is None else (scale, t.args[1])


def by_bounding(t: Term, find: Search) -> Found:
    """Find the sign of a sum by bounding each negative term by positive ones at least as large."""
    linear = collected(t)
    available = {m: c for m, c in linear.items() if c > 0}
    parts, steps, strict = list[Term](), list[Steps](), False
    for small in sorted((m for m, c in linear.items() if c < 0), key=order):
        missing = -linear[small]
        for large in sorted(available, key=lambda m: (-len(common_factors(small, m)[0]), order(m))):
            amount = min(missing, available[large])
            by = _no_larger(small, large, find) if amount else None
            if by is not None:
                missing, available[large] = missing - amount, available[large] - amount
                parts += [times(num(amount), piece) for piece in by.pieces]
                steps.append(by.steps)
                strict = strict or by.strict
        if missing:
            return NEITHER
    rest = [(c, mul(*m)) for m, c in available.items() if c]
    found = [find(x) for _, x in rest]
    if not all(certain for certain, _ in found):
        return NEITHER
    certain = max((s for s, _ in found), default=1) if not strict else 2
    parts += [times(num(c), x) for c, x in rest]
    last = step(certain, t, "total", *parts)
    return certain, joined(*steps, *(more for _, more in found), (last,))


@dataclass(frozen=True)
class Less:
    """Numbers >= 0 that add up to a difference, the steps to their signs, whether one is > 0."""

    pieces: list[Term]
    steps: Steps
    strict: bool = False


def _no_larger(small: Monomial, large: Monomial, find: Search) -> Less | None:
    """Return large − small, of two products, as numbers >= 0 that add up to it, or None.

    The common factors must be >= 0.  Of the others, those of ``small`` are one term of a sum in
    ``large``, or the square of a sum, or they are compared factor by factor.
    """
    both, left, right = common_factors(small, large)
    common = mul(*both)
    outer, steps = find(common)
    if not outer:
        return None
    for way in (_among, _square_of_sum):
        found = way(left, right, find)
        if found is not None:
            piece, more = found
            return Less([times(common, piece)], joined(steps, more))
    rest = _by_factors(common, left, right, find)
    if rest is None:
        return None
    return Less(rest.pieces, joined(steps, rest.steps), rest.strict and outer == 2)


def _by_factors(common: Term, left: list[Term], right: list[Term], find: Search) -> Less | None:
    """Return common·(Π right − Π left) as numbers >= 0 that add up to it, or None.

    Either at most one factor is left in each product, and these are compared with each other or
    with 1; or all in ``left`` are >= 0, each is at most one in ``right`` or at most 1, and what
    remains in ``right`` is at least 1.
    """
    known, strict = list[Steps](), False
    alone = len(left) <= 1 and len(right) <= 1
    pairs: list[tuple[Term, Term]] = []
    for x in tuple(left):
        if not alone:
            certain, more = find(x)
            if not certain:
                return None
            known.append(more)
        for y in right:
            certain, more = _below(x, y, find)
            if certain:
                left.remove(x)
                right.remove(y)
                pairs.append((x, y))
                known.append(more)
                strict = strict or certain == 2
                break
    for x, y in (*((x, ONE) for x in left), *((ONE, y) for y in right)):
        least = 1 if x is ONE else -1
        low, above, rest, more = lower_bound(y if x is ONE else mul(num(-1), x), find)
        if low is None or low < least:
            return None
        pairs.append((x, y))
        certain = 2 if above or low > least else 1
        known += [more, (step(certain, subtract(y, x), "total", num(low - least), *rest),)]
        strict = strict or certain == 2
    if alone:  # y − x = (y − 1) + (1 − x)
        pieces = [times(common, subtract(y, x)) for x, y in pairs]
        return Less(pieces, joined(*known), strict)
    pieces = []
    for chosen in product((False, True), repeat=len(pairs)):
        if any(chosen):  # Π (x + e) − Π x is the sum over all choices of an e or the x
            each = zip(chosen, pairs, strict=True)
            pieces.append(times(common, *(subtract(y, x) if e else x for e, (x, y) in each)))
    return Less(pieces, joined(*known))


Piece = tuple[Term, Steps] | None


def _among(left: Sequence[Term], right: Sequence[Term], find: Search) -> Piece:
    """f(i) <= Σ_j f(j) if f(j) >= 0 for every j."""
    if len(right) != 1 or right[0].op != "sum" or not right[0].finite or not left:
        return None
    (whole,), one = right, mul(*left)
    length, body = whole.args
    j = opened(length, whole)
    places = {at: None for x in postorder(one) if x.op == "entry" for at in x.args[1:]}
    form = collected(one)
    for at in sorted(places, key=lambda x: x.key):
        if length.op == "space" or not below(at, length):
            continue
        if collected(instantiate(body, at)) == form:
            certain, steps = find(instantiate(body, j))
            if not certain:
                return None
            piece = subtract(whole, one)
            return piece, (step(1, piece, "among", j, steps, whole, at),)
    return None


def _square_of_sum(left: Sequence[Term], right: Sequence[Term], find: Search) -> Piece:
    """(Σ_j h(j))² <= Σ_j f(j)·Σ_j g(j) if f, g >= 0 and h² <= f·g for every j."""
    if len(left) != 2 or left[0] is not left[1] or left[0].op != "sum" or len(right) != 2:
        return None
    z, (x, y) = left[0], right
    length = z.args[0]
    j = opened(length, z)
    if length.op == "space" or not all(_is_sum(v, length) for v in (x, y, z)):
        return None
    f, g, h = (ONE if v is length else instantiate(v.args[1], j) for v in (x, y, z))
    found = [find(f), find(g), gap(power(h, 2), mul(f, g), find)]
    if not all(certain for certain, _ in found):
        return None
    piece = subtract(mul(x, y), power(z, 2))
    inner = joined(*(steps for _, steps in found))
    return piece, (step(1, piece, "products", j, inner, x, y, z),)


def _is_sum(x: Term, length: Term) -> bool:
    return x is length or (x.op == "sum" and x.args[0] is length and x.finite)


def _below(small: Term, large: Term, find: Search) -> Found:
    """Find the sign of f(y) − f(x), or of max(y, ..) − x, with the steps to it."""
    if small.op == large.op and small.op in ("exp", "tanh", "log", "sqrt"):
        return _rising(small.op, small.args[0], large.args[0], subtract(large, small), find)
    if small.op == large.op == "power" and small.data == large.data == -1:
        return _rising("power", large.args[0], small.args[0], subtract(large, small), find)
    steps: Steps | None = None
    if "maximum" in (small.op, large.op):
        steps = _maximum_at_most(small, large, find)
    elif small.op == large.op == "sum" and small.args[0] is large.args[0]:
        steps = _sum_at_most(small, large, find)
    elif small.op == large.op == "indicator":
        steps = _implies(small, large, find)
    return NEITHER if steps is None else (1, steps)


def _rising(f: str, x: Term, y: Term, t: Term, find: Search) -> Found:
    least = LEAST[f]
    first, steps = find(x) if least else NEITHER
    certain, more = gap(x, y, find) if first >= least else NEITHER
    if not certain:
        return NEITHER
    return certain, joined(steps, more, (step(certain, t, "rising", f, x, y),))


def gap(x: Term, y: Term, find: Search) -> Found:
    """Find the sign of y − x, with steps to the form that the kernel checks."""
    if not (x.finite and y.finite) or x.shape:
        return NEITHER
    form, whole = minus(y, x), subtract(y, x)
    certain, steps = find(form)
    if not certain or form is whole:
        return certain, steps
    return certain, (*steps, step(certain, whole, "total", form))


def _maximum_at_most(small: Term, large: Term, find: Search) -> Steps | None:
    """max(x, ..) <= max(y, ..) if each x is at most some y."""
    if small.op == "maximum":
        if not small.finite or any(not x.finite for x in small.args):
            return None
        parts = [_maximum_at_most(x, large, find) for x in small.args]
        known = [steps for steps in parts if steps is not None]
        last = step(1, subtract(large, small), "least", small, large)
        return joined(*known, (last,)) if len(known) == len(parts) else None
    return _at_most_maximum(small, large, find)


def _at_most_maximum(x: Term, large: Term, find: Search) -> Steps | None:
    """Return the steps to x <= max(y, ..) if x is at most some y, or None."""
    if large.op != "maximum":
        certain, steps = gap(x, large, find)
        return steps if certain else None
    for y in large.args:
        below = _at_most_maximum(x, y, find) if y.finite else None
        if below is not None:
            up, whole = subtract(large, y), subtract(large, x)
            last = (step(1, up, "largest", large, y), step(1, whole, "total", up, subtract(y, x)))
            return joined(below, last)
    return None


def _sum_at_most(small: Term, large: Term, find: Search) -> Steps | None:
    """Σ_j f(j) <= Σ_j g(j) if every f(j) is at most g(j)."""
    if not (small.finite and large.finite):
        return None
    both = small.args[0], ONE, large, num(-1), small
    whole = one_sum(*both)
    j = opened(small.args[0], whole)
    inner = instantiate(whole.args[1], j)
    form = as_term(collected(inner))
    certain, steps = find(form)
    if not certain:
        return None
    if form is not inner:
        steps = (*steps, step(certain, inner, "total", form))
    every = step(1, whole, "every", j, steps)
    return every, step(1, subtract(large, small), "linear", *both)


def _implies(first: Term, then: Term, find: Search) -> Steps | None:
    """[a <= b] <= [c <= d] if d − c is at least b − a; the same for <, and from < to <=."""
    strict = {"less": 1, "less_equal": 0}
    one, other = first.args[0], then.args[0]
    if one.op not in strict or other.op not in strict or not (first.finite and then.finite):
        return None
    (a, b), (c, d) = one.args, other.args
    slack = add(d, mul(num(-1), c), a, mul(num(-1), b))
    form = as_term(collected(slack))
    certain, steps = find(form)
    if not certain or certain <= strict[other.op] - strict[one.op]:
        return None
    t = subtract(then, first)
    above, below = (substitute(t, first, value) for value in (ONE, ZERO))
    if then not in above.args:  # one occurs in the other
        return None
    against = step(2, ZERO, "total", subtract(b, a), subtract(c, d), slack)
    both = step(1, substitute(above, then, ONE), "total")
    holds = step(1, above, "cases", then, (both,), (against,))
    last = step(1, t, "cases", first, (holds,), (step(1, below, "total", then),))
    return joined(steps, (step(certain, slack, "total", form), last))

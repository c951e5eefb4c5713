"""Ways to the sign of a sum: common factors and denominators, one sum for many, squares, tangents.

Each asks for the signs of smaller numbers, through the search that it is given (``signs.py``), and
returns steps for the kernel.  Nothing here is trusted.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from .bounding import Search, gap
from .linear import (
    NEITHER,
    Found,
    Linear,
    Monomial,
    Steps,
    as_term,
    collected,
    divided,
    joined,
    order,
    step,
    times,
)
from .rules.inequalities import exponential, one_sum, square
from .scalars import ONE, add, mul, num, power, subtract
from .terms import Term

MAX_POWER = 4
"""The most times that the logarithm of one number is taken."""
MAX_SQUARES = 8
"""The most numbers whose squares are completed."""
MAX_ROOTS = 3
"""The most square roots of a sum that is squared."""
MAX_MONOMIALS = 24
"""The most terms of a sum that is rewritten."""


def by_common_factor(t: Term, find: Search) -> Found:
    """t = c·x for the factors c >= 0 or c <= 0 that all terms of t have in common."""
    linear = collected(t)
    common = _common(linear) if len(linear) > 1 else ()
    for sign in (1, -1) if common else ():
        whole = mul(*common) if sign == 1 else as_term({common: Fraction(-1)})
        certain, steps = find(whole)
        if not certain:
            continue
        rest = as_term({divided(m, common) or (): sign * c for m, c in linear.items()})
        inner, more = find(rest) if not rest.shape else NEITHER
        if not inner:
            return NEITHER
        found, parts = min(certain, inner), _paired(common) if sign == 1 else [whole]
        return found, (*joined(steps, more), step(found, t, "total", times(*parts, rest)))
    return NEITHER


def _common(linear: Linear) -> Monomial:
    shared, *others = (Counter(m) for m in linear)
    for other in others:
        shared &= other
    return tuple(sorted(shared.elements(), key=lambda f: f.key))


def _paired(factors: Monomial) -> list[Term]:
    """The factors, with x·x as one square."""
    return [power(x, k) for x, k in Counter(factors).items()]


def over_denominators(t: Term, find: Search) -> Found:
    """t = x/(d·e···) for the positive numbers that t is divided by."""
    linear = collected(t)
    most: Counter[Term] = Counter()
    for m in linear:
        most |= Counter(f for f in m if f.op == "power" and f.data == -1 and _is_one(f.args[0]))
    known: list[Steps] = []
    for f in tuple(most):
        certain, steps = find(f.args[0])
        if certain < 2:
            del most[f]
        known.append(steps if certain == 2 else ())
    if not most or len(linear) > MAX_MONOMIALS:
        return NEITHER
    total: Linear = {}
    for m, c in linear.items():
        own = Counter(m)
        product: Linear = {tuple((own - most).elements()): c}
        for d in (most - own).elements():
            product = _multiplied(product, collected(d.args[0]))
        _add(total, product)
    if len(total) > MAX_MONOMIALS:
        return NEITHER
    above = as_term({m: c for m, c in total.items() if c})
    certain, steps = find(above)
    if not certain:
        return NEITHER
    divisors = [d.args[0] for d in most.elements()]
    return certain, joined(*known, steps, (step(certain, t, "quotient", above, *divisors),))


def _is_one(divisor: Term) -> bool:
    return divisor.op not in ("mul", "power", "num")


def _multiplied(a: Linear, b: Linear) -> Linear:
    total: Linear = {}
    for m, c in a.items():
        _add(total, {(*m, *k): c * e for k, e in b.items()})
    return total


def _add(total: Linear, more: Linear) -> None:
    for m, c in more.items():
        monomial = tuple(sorted(m, key=lambda f: f.key))
        total[monomial] = total.get(monomial, Fraction(0)) + c


def as_one_sum(t: Term, find: Search) -> Found:
    """Σ_k c_k·Σ_j f_k(j) + rest >= 0 as Σ_j Σ_k c_k·f_k(j) >= 0, for the sums over one axis."""
    linear = collected(t)
    lengths = {f.args[0]: None for m in linear for f in m if f.op == "sum" and f.finite}
    for length in sorted(lengths, key=lambda n: n.key):
        parts, rest = list[Term](), dict(linear)
        for m, c in sorted(linear.items(), key=lambda part: order(part[0])):
            sums = [f for f in m if f.op == "sum" and f.args[0] is length]
            whole = sums or [f for f in m if f is length and f.op != "space"]
            if whole:
                parts += [mul(num(c), *(divided(m, (whole[0],)) or ())), whole[0]]
                del rest[m]
        if len(parts) < 4 or not any(x.op == "sum" for x in parts[1::2]):
            continue
        certain, steps = find(one_sum(length, *parts))
        left = [as_term({m: c}) for m, c in rest.items()]
        found = [find(x) for x in left] if certain else []
        if certain and all(sign for sign, _ in found):
            together = t if not left else as_term({m: linear[m] for m in linear if m not in rest})
            steps = (*steps, step(certain, together, "linear", length, *parts))
            if not left:
                return certain, steps
            certain = max(certain, *(sign for sign, _ in found))
            last = step(certain, t, "total", together, *left)
            return certain, joined(steps, *(more for _, more in found), (last,))
    return NEITHER


def by_tangent(t: Term, find: Search) -> Found:
    """t = c·(f(x) − its tangent) + rest with c > 0 and rest >= 0, for f = exp, −log or log."""
    linear = collected(t)
    for m, c in linear.items():
        if len(m) != 1 or m[0].op not in ("exp", "log") or not m[0].finite or m[0].shape:
            continue
        above, (certain, steps) = _over_tangent(m[0], c, find)
        if not certain:
            continue
        part = num(abs(c))
        rest = as_term(collected(subtract(t, mul(part, above))))
        left, more = find(rest)
        if left:
            shown = step(certain, above, "tangent", *m[0].args)
            found = max(certain, left)
            last = step(found, t, "total", times(part, above), rest)
            return found, joined(steps, more, (shown, last))
    return NEITHER


def _over_tangent(f: Term, c: Fraction, find: Search) -> tuple[Term, Found]:
    """A number that is at least 0 as f, with the sign of c, is on one side of its tangent.

    exp(x) − 1 − x, which is positive if x is, or x − 1 − log x or 1/x − 1 + log x for x > 0.
    """
    (x,) = f.args
    certain, steps = find(x)
    if f.op == "exp":
        above = subtract(f, add(ONE, x))
        return above, NEITHER if c < 0 else (2, steps) if certain == 2 else (1, ())
    above = add(power(x, -1), num(-1), f) if c > 0 else subtract(x, add(ONE, f))
    return above, (1, steps) if certain == 2 else NEITHER


def by_logarithms(t: Term, find: Search) -> Found:
    """t = u + Σ log(p) − v − Σ log(q) with exp(u)·Π p >= exp(v)·Π q."""
    linear = collected(t)
    logs = {m[0].args[0]: c for m, c in linear.items() if len(m) == 1 and m[0].op == "log"}
    whole = all(c.denominator == 1 and abs(c) <= MAX_POWER for c in logs.values())
    if not logs or not whole or not t.finite:
        return NEITHER
    others = {m: c for m, c in linear.items() if not (len(m) == 1 and m[0].op == "log")}
    sides, known = [], list[Steps]()
    for way in (1, -1):
        number = as_term({m: way * c for m, c in others.items() if way * c > 0})
        factors = [x for x, c in logs.items() for _ in range(max(0, way * int(c)))]
        sides.append((number, *factors))
    for x in logs:
        certain, steps = find(x)
        known.append(steps)
        if certain < 2:
            return NEITHER
    high, low = (exponential(*side) for side in sides)
    certain, steps = gap(low, high, find)
    if not certain:
        return NEITHER
    return certain, joined(*known, steps, (step(certain, t, "logarithms", *sides),))


def by_roots(t: Term, find: Search) -> Found:
    """t = x − y for x >= 0 and x² >= y², if they have square roots as factors.

    A single root is alone on its side; of several, x has those that are added.
    """
    linear = collected(t)
    rooted = [m for m in linear if any(f.op == "sqrt" for f in m)]
    if not 1 <= len(rooted) <= MAX_ROOTS or len(linear) < 2:
        return NEITHER
    alone = len(rooted) == 1
    left = {m: c for m, c in linear.items() if (m in rooted) is (linear[rooted[0]] > 0)}
    left = left if alone else {m: c for m, c in linear.items() if c > 0}
    if not 0 < len(left) < len(linear):
        return NEITHER
    x, y = as_term(left), as_term({m: -c for m, c in linear.items() if m not in left})
    known = [find(x), *(find(f.args[0]) for m in rooted for f in m if f.op == "sqrt")]
    if not all(certain for certain, _ in known):
        return NEITHER
    total = _squared(x)
    _add(total, {k: -c for k, c in _squared(y).items()})
    if len(total) > MAX_MONOMIALS:
        return NEITHER
    form, whole = as_term({k: c for k, c in total.items() if c}), subtract(square(x), square(y))
    certain, steps = find(form)
    if not certain:
        return NEITHER
    before = joined(*(one for _, one in known), steps)
    return certain, (*before, step(certain, whole, "total", form), step(certain, t, "roots", x, y))


def _squared(x: Term) -> Linear:
    """The square of a number, with products of sums expanded."""
    whole = square(x)
    total: Linear = {}
    for part in whole.args if whole.op == "add" else (whole,):
        product: Linear = {(): Fraction(1)}
        for factor in part.args if part.op == "mul" else (part,):
            base, k = (factor.args[0], factor.data) if factor.op == "power" else (factor, 1)
            for _ in range(abs(k)):
                product = _multiplied(product, collected(base if k > 0 else power(base, -1)))
        _add(total, product)
    return total


# Sums of squares


def by_squares(t: Term, find: Search) -> Found:
    """t = Σ_k d_k·x_k² + rest with d > 0 and rest >= 0, by completing squares."""
    linear = collected(t)
    roots = {_root(m): m for m, c in linear.items() if c > 0 and _root(m) is not None}
    halves = sorted((m for m in roots if m is not None), key=lambda m: (-len(m), order(m)))
    if not 2 <= len(halves) <= MAX_SQUARES:
        return NEITHER
    form, rest = _quadratic_form(linear, halves)
    squares = _completed(form, halves)
    found = [find(x) for x in rest] if squares is not None else []
    if squares is None or not all(certain for certain, _ in found):
        return NEITHER
    parts = [times(num(d), power(x, 2)) for d, x in squares]
    signs = [find(power(x, 2)) for _, x in squares]
    certain = max(s for s, _ in (*found, *signs))
    last = step(certain, t, "total", *parts, *rest)
    return certain, joined(*(more for _, more in (*found, *signs)), (last,))


def by_difference_of_squares(t: Term, find: Search) -> Found:
    """t = c·(x² − y²) = c·(x − y)·(x + y) with c > 0 and both factors >= 0."""
    linear = collected(t)
    if len(linear) != 2:
        return NEITHER
    (m, c), (k, e) = sorted(linear.items(), key=lambda part: -part[1])
    x, y = _root(m), _root(k)
    if x is None or y is None or c <= 0 or e != -c:
        return NEITHER
    signs = [as_term({x: Fraction(1), y: Fraction(way)}) for way in (-1, 1)]
    found = [find(one) for one in signs]
    certain = min(s for s, _ in found)
    last = step(certain or 1, t, "total", times(num(c), *signs))
    return (certain, joined(*(more for _, more in found), (last,))) if certain else NEITHER


def _root(m: Monomial) -> Monomial | None:
    """x with x·x = m, or None."""
    counts = Counter(m)
    if any(k % 2 for k in counts.values()):
        return None
    return tuple(
        x for x, k in sorted(counts.items(), key=lambda p: p[0].key) for _ in range(k // 2)
    )


Form = dict[tuple[int, int], Fraction]


def _quadratic_form(linear: Linear, halves: list[Monomial]) -> tuple[Form, list[Term]]:
    """The symmetric matrix of a quadratic form in these numbers, and the terms not in it."""
    products: dict[Monomial, tuple[int, int]] = {}
    for i, a in enumerate(halves):
        for j in range(i, len(halves)):
            m = tuple(sorted((*a, *halves[j]), key=lambda f: f.key))
            products.setdefault(m, (i, j))
    form: Form = {}
    rest = list[Term]()
    for m, c in linear.items():
        if m not in products:
            rest.append(as_term({m: c}))
            continue
        i, j = products[m]
        form[i, j] = form.get((i, j), Fraction(0)) + (c if i == j else c / 2)
        form[j, i] = form[i, j]
    return form, rest


def _completed(form: Form, halves: list[Monomial]) -> list[tuple[Fraction, Term]] | None:
    """The numbers d and x of Σ d·x², or None if the form is negative somewhere."""
    found, left = [], dict(form)
    size = range(len(halves))
    for i in size:
        pivot = left.get((i, i), Fraction(0))
        row = {j: left[i, j] for j in size if j > i and left.get((i, j))}
        if pivot < 0 or (pivot == 0 and row):
            return None
        if pivot == 0:
            continue
        x = as_term({halves[i]: Fraction(1)} | {halves[j]: c / pivot for j, c in row.items()})
        found.append((pivot, x))
        for j, a in row.items():
            for k, b in row.items():
                left[j, k] = left.get((j, k), Fraction(0)) - a * b / pivot
    return found

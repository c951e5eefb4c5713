"""Linear forms for comparing sums: like monomials collected, products not expanded.

Also helpers that write the steps to a sign.  Nothing here is trusted; ``signs.py`` and
``bounding.py`` search for signs.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from .budget import check_time
from .derivation import SignStep
from .scalars import ONE, add, mul, num, number_of, power, subtract
from .terms import Term, make

Steps = tuple[SignStep, ...]
Monomial = tuple[Term, ...]
Linear = dict[Monomial, Fraction]
MAX_REPEATED_FACTORS = 6
KIND = {1: "nonnegative", 2: "positive"}
Found = tuple[int, Steps]  # a sign, 2 for > 0, 1 for >= 0, 0 for neither; and the steps to it
NEITHER: Found = (0, ())


def joined(*parts: Steps) -> Steps:
    """Return all steps in order, each once."""
    return tuple(dict.fromkeys(step for part in parts for step in part))


def step(certain: int, t: Term, rule: str, *arguments: object) -> SignStep:
    """Return the step that shows the sign of a number by a rule."""
    return SignStep(KIND[certain], t, rule, arguments)


def times(*factors: Term) -> Term:
    """Return the product without flattening its factors, since their signs may be known."""
    kept = tuple(x for x in factors if x is not ONE)
    return make("mul", kept) if len(kept) > 1 else kept[0] if kept else ONE


@lru_cache(maxsize=1 << 14)
def collected(t: Term, scale: Fraction = Fraction(1)) -> Linear:
    """Return a finite number as Σ literal · monomial, like monomials collected.

    A sum is split only if a literal is all it is multiplied with; products are not expanded.
    """
    check_time()
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
    """Yield the factors of a product; a small power counts as repeated factors."""
    if t.op == "mul":
        for arg in t.args:
            yield from _factors(arg)
    elif t.op == "power" and 1 < abs(t.data) <= MAX_REPEATED_FACTORS:
        for _ in range(abs(t.data)):
            yield from _factors(power(t.args[0], t.data // abs(t.data)))
    else:
        yield t


def as_term(linear: Linear) -> Term:
    """Return the sum as a term."""
    parts = sorted(linear, key=order)
    return add(*(mul(*([num(linear[m])] if linear[m] != 1 else []), *m) for m in parts))


def order(monomial: Monomial) -> tuple[int, list[bytes]]:
    """Return the sort key of a monomial."""
    return len(monomial), [f.key for f in monomial]


def minus(x: Term, y: Term) -> Term:
    """Return x − y with like monomials collected."""
    return as_term(collected(subtract(x, y)))


def divided(whole: Monomial, part: Monomial) -> Monomial | None:
    """Return the factors of ``whole`` that remain after removing those of ``part``, or None."""
    rest = list(whole)
    for factor in part:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def multiples(own: Linear, other: Linear) -> Iterator[tuple[Term, Linear]]:
    """Yield (factor, rest) with own = factor · other + rest, so that one monomial cancels."""
    for whole, c in sorted(own.items(), key=lambda part: order(part[0])):
        for part, k in sorted(other.items(), key=lambda part: order(part[0])):
            others = divided(whole, part) if part and c / k > 0 else None
            if others is not None:
                rest = dict(own)
                for more, coefficient in other.items():
                    monomial = tuple(sorted((*others, *more), key=lambda f: f.key))
                    rest[monomial] = rest.get(monomial, Fraction(0)) - c / k * coefficient
                yield mul(num(c / k), *others), {m: x for m, x in rest.items() if x}


def common_factors(a: Monomial, b: Monomial) -> tuple[Monomial, list[Term], list[Term]]:
    """Return the common factors of two products and the remaining factors of each."""
    both, left, right = list[Term](), list[Term](), list(b)
    for factor in a:
        if factor in right:
            right.remove(factor)
            both.append(factor)
        else:
            left.append(factor)
    return tuple(both), left, right

"""Matching: find the left side of an assumed equation in a number in normal form.

Factors and summands are matched in any order, since their order depends on the values at which the
equation is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from ..derivation import Derivation
from ..scalars import entry, mul, num
from ..terms import Term, bind, free, instantiate, make, postorder
from .equations import chain, flat, inside, layers, reverse, rewrite
from .polynomial import expand, monomial_term, to_term

if TYPE_CHECKING:
    from ..derive import Equation
    from .normaliser import Normaliser

Values = dict[Term, Term]
Pattern = tuple["Equation", tuple[Term, ...], Term]
MAX_MATCHES = 200
"""The most ways to match one pattern that are tried."""


def matches(p: Term, t: Term, found: Values, variables: frozenset[Term]) -> Iterator[Values]:
    """Yield the values of the variables at which the pattern equals the term."""
    if p in variables:
        if p in found:
            if found[p] is t:
                yield found
        elif not t.loose:
            yield {**found, p: t}
        return
    if p is t:
        yield found
        return
    if p.op != t.op or p.data != t.data or len(p.args) != len(t.args):
        return
    if p.op in ("add", "mul", "equal"):
        yield from _any_order(p.args, t.args, found, variables)
    else:
        yield from _in_order(p.args, t.args, found, variables)


def _in_order(
    ps: Sequence[Term], ts: Sequence[Term], found: Values, variables: frozenset[Term]
) -> Iterator[Values]:
    if not ps:
        yield found
        return
    for more in matches(ps[0], ts[0], found, variables):
        yield from _in_order(ps[1:], ts[1:], more, variables)


def _any_order(
    ps: Sequence[Term], ts: Sequence[Term], found: Values, variables: frozenset[Term]
) -> Iterator[Values]:
    if not ps:
        yield found
        return
    for k, t in enumerate(ts):
        for more in matches(ps[0], t, found, variables):
            yield from _any_order(ps[1:], (*ts[:k], *ts[k + 1 :]), more, variables)


def copies(t: Term) -> list[Term]:
    """Return the factors of a product, each repeated by its exponent."""
    found: list[Term] = []
    for f in flat(t):
        if f.op == "power" and isinstance(f.data, int) and f.data > 0:
            found += [f.args[0]] * f.data
        else:
            found.append(f)
    return found


def as_factors(
    ps: Sequence[Term], ts: Sequence[Term], found: Values, variables: frozenset[Term]
) -> Iterator[tuple[Values, tuple[Term, ...]]]:
    """Yield values at which the patterns equal some of the factors, and the remaining factors."""
    if not ps:
        yield found, tuple(ts)
        return
    seen: set[Term] = set()
    for k, t in enumerate(ts):
        if t in seen:
            continue
        seen.add(t)
        for more in matches(ps[0], t, found, variables):
            yield from as_factors(ps[1:], (*ts[:k], *ts[k + 1 :]), more, variables)


def leading(p: Term, places: tuple[Term, ...]) -> Term:
    """Return the pattern of an equation: its left side, or of a sum the most specific summand."""
    if p.op != "add":
        return p
    summands = [t for t in map(monomial_term, expand(p)) if set(places) <= free(t)]

    def rank(t: Term) -> tuple[int, int, bytes]:
        ops = [part.op for part in postorder(t)]
        return (2 * ("iterate" in ops) + ("call" in ops), len(ops), t.key)

    return max(summands, key=rank, default=p)


def rewritten(norm: Normaliser, t: Term, pattern: Pattern, values: Values) -> Derivation | None:
    """Rewrite t by the equation at these values; return None if it does not apply."""
    equation, places, _ = pattern
    at = [values[p] for p in places]
    here, back = norm.plain(t), norm.plain(entry(equation.left, *at))
    if here.right is back.right:
        return chain(here, reverse(back), equation.at(*at))
    if back.right.op != "add":
        return None
    alone, whole = expand(here.right), expand(back.right)
    ((monomial, scale),) = alone.items() if len(alone) == 1 else [((), Fraction(0))]
    if not monomial or monomial not in whole:
        return None
    rest = to_term({m: -c for m, c in whole.items() if m != monomial})
    solved = make("mul", (num(scale / whole[monomial]), make("add", (back.right, rest))))
    step = chain(here, rewrite("ring", here.right, solved))
    turned_back = chain(reverse(back), equation.at(*at))
    inner = inside(solved.args[1], [(0, turned_back)])
    return chain(step, inside(solved, [(1, inner)]))


def in_product(norm: Normaliser, t: Term) -> Derivation | None:
    """Rewrite some factors of a product by an assumed equation, once; or return None."""
    factors = copies(t)
    for pattern in norm.patterns():
        _, places, p = pattern
        if p.op in ("add", "num"):
            continue
        variables = frozenset(places)
        for values, rest in islice(as_factors(copies(p), factors, {}, variables), MAX_MATCHES):
            if len(values) < len(places):
                continue
            taken = list(factors)
            for f in rest:
                taken.remove(f)
            part = taken[0] if len(taken) == 1 else mul(*taken)
            step = rewritten(norm, part, pattern, values)
            if step is None or step.right is part:
                continue
            if not rest:
                return chain(rewrite("ring", t, part), step) if part is not t else step
            target = make("mul", (part, *rest))
            arranged = rewrite("ring", t, target)
            return chain(arranged, inside(target, [(0, step)]))
    return None


@dataclass(frozen=True)
class Part:
    """A part of nested sums that matches the left side of an assumed equation."""

    summed: tuple[Term, ...]
    factors: tuple[Term, ...]
    outside: tuple[Term, ...]
    pattern: Pattern
    values: Values


def in_sum(norm: Normaliser, indices: list[Term], factors: Sequence[Term]) -> Part | None:
    """Return a part of nested sums that an assumed equation rewrites, or None."""
    whole = [c for f in factors for c in copies(f)]
    for pattern in norm.patterns():
        _, places, p = pattern
        if p.op != "sum":
            continue
        own = [make("index", i.args, f"¤{k}") for k, i in enumerate(layers(p)[0])]
        variables = frozenset((*places, *own))
        ways = as_factors(copies(_opened(p, own)), whole, {}, variables)
        for values, rest in islice(ways, MAX_MATCHES):
            if len(values) < len(variables):
                continue
            summed = tuple(values[i] for i in own)
            held = [*rest, *(values[place] for place in places)]
            outside = frozenset[Term]().union(*(free(f) for f in held))
            apart = len(set(summed)) == len(summed) and not set(summed) & outside
            if not apart or any(i not in indices for i in summed):
                continue
            taken = list(whole)
            for f in rest:
                taken.remove(f)
            part = mul(*taken)
            for i in reversed(summed):
                part = make("sum", (i.args[0], bind(part, i)))
            step = rewritten(norm, part, pattern, values)
            if step is not None and step.right is not part:
                return Part(summed, tuple(taken), rest, pattern, values)
    return None


def _opened(p: Term, indices: list[Term]) -> Term:
    for i in indices:
        p = instantiate(p.args[1], i)
    return p

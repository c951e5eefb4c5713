"""Conditions in the normal form: indicators, comparisons, choices, minus infinity."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..derivation import Derivation, Reflexive
from ..rules.base import Refused
from ..scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    index_range,
    is_integer,
    is_truth,
    mul,
    num,
    power,
    split_integer,
)
from ..signs import find_sign
from ..terms import Term, make, postorder
from . import derived
from .entries import entry_
from .equations import chain, inside, occurs, operations, reverse, rewrite
from .permutations import settled
from .polynomial import (
    Polynomial,
    content,
    expand,
    monomial_term,
    positive,
    sign_facts,
    to_term,
)

if TYPE_CHECKING:
    from .normaliser import Normaliser


def extended(norm: Normaliser, t: Term) -> Derivation:
    """Normalise a number that may be −inf to nested choices between finite numbers and −inf."""
    if t.op == "minus infinity":
        return Reflexive(t)
    if t.op == "entry":
        first = inside(t, [(k, norm(at)) for k, at in enumerate(t.args) if k])
        return norm.then(chain(first, rewrite("entry", first.right)))
    if t.op == "named":
        return norm.at("definition", t)
    first = norm.arguments(t)
    u = first.right
    if u.finite:
        return norm.then(first)
    if u.op == "where":
        return first
    for place, arg in enumerate(u.args):
        if arg.op == "where" and not arg.finite:
            return norm.then(chain(first, rewrite("push", u, place)))
    if u.op in ("add", "mul") and MINUS_INFINITY in u.args:
        return chain(first, rewrite("infinity", u))
    return first


def exponential(norm: Normaliser, t: Term) -> Derivation:
    """Normalise exp of a number that may be −inf."""
    first = inside(t, [(0, norm(t.args[0]))])
    u = first.right
    if u.args[0].finite:
        return norm.then(first)
    if u.args[0] is MINUS_INFINITY:
        return chain(first, rewrite("exp", u, ZERO))
    if u.args[0].op == "where":
        return norm.then(chain(first, rewrite("push", u, 0)))
    return first


def choice(norm: Normaliser, t: Term) -> Derivation:
    """Write where(c, a, b) of numbers by [c]; of truth values, normalise the arguments only."""
    return norm.arguments(t) if is_truth(t) else norm.at("where", t)


def indicator(norm: Normaliser, t: Term) -> Derivation:
    """Normalise [c]: connectives are opened, comparisons decided or brought into one form."""
    c = t.args[0]
    if c.op in ("not", "and", "or", "where") or (c.op == "equal" and all(map(is_truth, c.args))):
        return norm.at("indicator", t)
    if c.op == "entry" and c.args[0].op != "var":
        first = inside(t, [(0, _condition_entry(norm, c))])
        return chain(first, norm(first.right)) if first.right is not t else first
    if c.op == "is in":
        inner = inside(c, [(0, norm(c.args[0]))])
    else:
        inner = entry_(norm, c) if c.op == "entry" else norm.arguments(c)
    first = inside(t, [(0, inner)])
    u = first.right
    c = u.args[0]
    if c.op == "is in":
        return norm.then(chain(first, rewrite("image", u)))
    if c.op == "less" and not _of_integers(c) and u.finite:
        return norm.then(chain(first, rewrite("turned", u)))
    if c.op in ("equal", "less", "less_equal"):
        first = chain(first, _comparison(norm, u))
        u = first.right
        if norm.turned and u.op == "indicator" and u.args[0].op == "less" and u.finite:
            return norm.then(chain(first, rewrite("turned", u)))
        if norm.equals and _is_greater(u):
            return norm.then(chain(first, _by_equality(u)))
    if norm.assume and first.right.op == "indicator":
        return chain(first, norm.hypothesis(first.right))
    return first


def _is_greater(t: Term) -> bool:
    """Whether a term is [b <= a] with b after a in the order of terms."""
    if t.op != "indicator" or t.args[0].op != "less_equal" or not t.finite:
        return False
    b, a = t.args[0].args
    return a.key < b.key


def _by_equality(t: Term) -> Derivation:
    """Derive [b <= a] = 1 − [a <= b] + [a = b]."""
    b, a = t.args[0].args
    equal = make("indicator", (make("equal", (a, b)),))
    opened = rewrite("turned", equal)
    other = mul(num(-1), make("indicator", (make("less_equal", (a, b)),)))
    target = make("add", (ONE, other, opened.right))
    step = rewrite("ring", t, target)
    return chain(step, inside(target, [(2, reverse(opened))]))


def _is_gate(t: Term) -> bool:
    return t.op == "indicator" and not (t.loose or t.shape)


def _of_integers(c: Term) -> bool:
    return is_integer(c.args[0]) and is_integer(c.args[1])


def _condition_entry(norm: Normaliser, c: Term) -> Derivation:
    first = inside(c, [(k, norm(at)) for k, at in enumerate(c.args) if k])
    return chain(first, rewrite("entry", first.right))


def _comparison(norm: Normaliser, t: Term) -> Derivation:
    try:
        return rewrite("decide", t)
    except Refused:
        pass
    x, y = t.args[0].args
    gate = next((g for side in (x, y) for g in postorder(side) if _is_gate(g)), None)
    if gate is not None and t.finite:
        return norm.at("either", t, gate)
    gap = expand(add(x, mul(num(-1), y)))
    high = {m: c for m, c in gap.items() if c > 0}
    low = {m: -c for m, c in gap.items() if c < 0}
    a, b = to_term(high), to_term(low)
    if t.args[0].op == "equal":
        for width in _radices(x, y):
            if all(split_integer(side, width)[0] is ZERO for side in (x, y)):
                continue
            try:
                return norm.at("digits", t, width)
            except Refused:
                continue
        if (b.key, a.key) < (a.key, b.key):
            a, b = b, a
        step = rewrite("comparison", t, a, b)
        step = chain(step, _unwrap(norm, step.right))
        if step.right.op == "indicator":
            ordered = settled(step.right)
            words = [
                entry_(norm, side) if side.op == "entry" else Reflexive(side)
                for side in ordered.right.args[0].args
            ]
            inner = inside(ordered.right.args[0], list(enumerate(words)))
            step = chain(step, ordered, inside(ordered.right, [(0, inner)]))
        return step
    if _of_integers(t.args[0]):
        return _of_whole(t, gap)
    return _divided(norm, t, gap)


def _divided(norm: Normaliser, t: Term, gap: Polynomial) -> Derivation:
    """Write [x <= y] without the positive factors that all of x − y has."""
    scale, whole = content(gap)
    shared = tuple((atom, k) for atom, k in whole if positive(atom))
    if shared or abs(scale) != 1:
        down = monomial_term(tuple((atom, -k) for atom, k in shared))
        gap = expand(norm(mul(num(1 / abs(scale)), down, to_term(gap))).right)
    high = {m: c for m, c in gap.items() if c > 0}
    low = {m: -c for m, c in gap.items() if c < 0}
    factors = [num(abs(scale)), *(power(atom, k) for atom, k in shared)]
    return rewrite("comparison", t, to_term(high), to_term(low), *factors)


def _of_whole(t: Term, gap: Polynomial) -> Derivation:
    """Write [x < y] or [x <= y] of integers with <=, or < if <= had a constant on its left."""
    strict = t.args[0].op == "less"
    constant = gap.get((), Fraction(0)) + (1 if strict else 0)  # of x − y, when written as [x <= y]
    step = (1 if strict else 0) - (1 if constant > 0 else 0)
    moved = {m: c for m, c in gap.items() if m} | {(): gap.get((), Fraction(0)) + step}
    high = {m: c for m, c in moved.items() if c > 0}
    low = {m: -c for m, c in moved.items() if c < 0}
    a, b = to_term(high), to_term(low)
    if step and not strict:
        below = make("indicator", (make("less", (a, b)),))
        return reverse(rewrite("whole comparison", below, *t.args[0].args))
    return rewrite("whole comparison" if step else "comparison", t, a, b)


def _radices(x: Term, y: Term) -> list[Term]:
    """Return the possible digit widths in mixed-radix expressions x and y."""
    widths: dict[Term, None] = {}
    for side in (x, y):
        for part in side.args if side.op == "add" else (side,):
            length = index_range(part)
            if length is not None:
                widths.setdefault(length)
            for factor in part.args if part.op == "mul" else ():
                if factor.op in ("num", "size"):
                    widths.setdefault(factor)
    return list(widths)


def _unwrap(norm: Normaliser, t: Term) -> Derivation:
    """Derive [e(a) = e(b)] = [a = b] for an injective e, if the gate has this form."""
    if t.args[0].op != "equal":
        return Reflexive(t)
    x, y = t.args[0].args
    if x.op == y.op == "entry" and x.args[0] is y.args[0] and _is_injective(x.args[0]):
        try:
            return norm.at("injective", t)
        except Refused:
            pass
    return Reflexive(t)


def _is_injective(array: Term) -> bool:
    return array.op == "var" and array.data[1] in ("permutation", "injection")


def reduce_gates(norm: Normaliser, t: Term, factors: tuple[Term, ...]) -> Derivation:
    """Simplify a product with [c]·f([c]), [a = b]·f(a), [a <= b]·|b − a| or two comparisons."""
    for place, gate in enumerate(factors):
        if gate.op != "indicator":
            continue
        inner = _within(gate, factors)
        if inner is not None:
            return derived.under_condition(t, place, inner)
        if len(gate.args[0].args) != 2:
            continue
        swapped = _swapped(t, gate, place, factors)
        if swapped is not None:
            return swapped
        others = (other for other in range(len(factors)) if other != place)
        ways = (s for k in others for s in (_implied(t, place, k), _overlap(norm, t, place, k)))
        shorter = next((s for s in ways if s is not None), None)
        if shorter is not None:
            return shorter
        if gate.args[0].op == "less_equal":
            measured = [f for f in factors if "abs" in operations(f)]
            for distance in (x for f in measured for x in postorder(f) if x.op == "abs"):
                try:
                    return derived.ordered_absolute(t, place, distance)
                except Refused:
                    continue
    return Reflexive(t)


def _swapped(t: Term, gate: Term, place: int, factors: tuple[Term, ...]) -> Derivation | None:
    """Replace the less simple of a and b by the other in [a = b]·f, or return None."""
    if gate.args[0].op != "equal":
        return None
    a, b = gate.args[0].args
    others = [f for k, f in enumerate(factors) if k != place]
    for old, new in ((a, b), (b, a)):
        if _simpler(new, old) and any(occurs(old, f) for f in others):
            step = rewrite("equals for equals", t, old, new)
            if step.right is not t:
                return step
    return None


def _within(gate: Term, factors: tuple[Term, ...]) -> int | None:
    """Return the place of a factor, other than an indicator, in which the gate occurs, or None."""
    places = (k for k, f in enumerate(factors) if f.op != "indicator" and f.finite)
    return next((k for k in places if occurs(gate, factors[k])), None)


def _implied(t: Term, place: int, other: int) -> Derivation | None:
    """Remove from a product a comparison that another one certainly implies, or return None."""
    gate, implied = t.args[place], t.args[other]
    pair = (gate, implied)
    if any(x.op != "indicator" or x.args[0].op not in ("less", "less_equal") for x in pair):
        return None
    (a, b), (c, d) = gate.args[0].args, implied.args[0].args
    slack = to_term(expand(add(d, mul(num(-1), c), a, mul(num(-1), b))))
    weaker = gate.args[0].op == "less" or implied.args[0].op == "less_equal"
    if not (weaker and find_sign(slack, sign_facts())[0]):
        return None
    try:
        return derived.without_implied(t, place, other)
    except Refused:
        return None


def _overlap(norm: Normaliser, t: Term, place: int, other: int) -> Derivation | None:
    """Simplify a product of two comparisons of integers that cannot both hold, or both fail.

    If [a < b] implies that [c <= d] fails, the latter is negated, which leaves 0.  If one of
    [a <= b] and [c <= d] always holds, [a <= b]·[c <= d] = [a <= b] + [c <= d] − 1; this is used
    with ``norm.turned`` only, where a range may be written as a difference of two comparisons.
    """
    gate, second = t.args[place], t.args[other]
    for x in (gate, second):
        good = x.op == "indicator" and x.args[0].op in ("less", "less_equal")
        if not (good and _of_integers(x.args[0])):
            return None
    (a, b), (c, d) = gate.args[0].args, second.args[0].args
    slack = to_term(expand(add(d, mul(num(-1), c), b, mul(num(-1), a))))
    if gate.args[0].op == "less":
        fails = find_sign(mul(num(-1), slack), sign_facts())[0]
        return inside(t, [(other, rewrite("turned", second))]) if fails else None
    if not norm.turned or second.args[0].op == "less" or not find_sign(slack, sign_facts())[0]:
        return None
    rest = [f for k, f in enumerate(t.args) if k not in (place, other)]
    opened = inside(t, [(place, rewrite("turned", gate))])
    against = make("indicator", (make("less", (b, a)),))
    product = make("mul", (against, second, *rest))
    apart = make("add", (mul(second, *rest), make("mul", (num(-1), product))))
    try:
        shorter = derived.without_implied(product, 0, 1)
        back = inside(apart, [(1, inside(apart.args[1], [(1, shorter)]))])
        return chain(opened, rewrite("ring", opened.right, apart), back)
    except Refused:
        return None


def _simpler(new: Term, old: Term) -> bool:
    """Whether ``new`` is simpler: a literal, an index, fewer parts, or else the smaller key."""
    rank = {"num": 0, "index": 1, "var": 1}
    return (rank.get(new.op, 2), len({*postorder(new)}), new.key) < (
        rank.get(old.op, 2),
        len({*postorder(old)}),
        old.key,
    )

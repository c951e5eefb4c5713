"""Rules that show signs which the form of a number does not settle, each from signs known before.

The search for a sign records its steps (``SignStep``), and :func:`known_after` checks each again.
``STEPS`` is the whole list of rules.  Each takes a number and arguments and returns the kind of
sign shown and the assumptions it rests on, or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, combinations
from typing import Any

from ..derivation import SignStep
from ..scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    below,
    is_integer,
    is_truth,
    mul,
    num,
    power,
    subtract,
    unary,
)
from ..terms import Term, free, instantiate, make, names, substitute
from .base import NOTHING, Assumption, Facts, Refusing, need
from .entries import written_out
from .polynomials import same_polynomial
from .signs import Signs

Known = Mapping[Assumption, Facts]
Shown = tuple[str, Facts]
KINDS = ("nonzero", "nonnegative", "positive")
EVERY = ("every", "among", "products")
"""The rules whose first argument is an index that stands for every place of its axis."""


def known_after(
    steps: tuple[SignStep, ...], known: Known | None = None, over: frozenset[Term] = frozenset()
) -> Signs:
    """Return what is known after the steps; raise ``Refused`` at the first invalid step.

    ``over`` holds the variables known to have a value.  A step that uses further variables is
    accepted only if these range over non-empty sets.
    """
    signs = Signs(dict(known or {}), over)
    for step in steps:
        with Refusing(step.rule):
            fact, rests = _shown(step, signs)
        signs = Signs({fact: rests, **signs.known}, over)
    return signs


def _shown(step: SignStep, signs: Signs) -> tuple[Assumption, Facts]:
    """Return the fact that a step shows, and the assumptions it rests on."""
    need(step.kind in KINDS and not step.number.loose, "not of a number", step.number)
    fact = (step.kind, step.number)
    if step.rule == "given":
        return fact, frozenset({fact})
    need(step.rule in STEPS, "there is no such rule")
    kind, rests = STEPS[step.rule](step.number, signs, *step.arguments)
    need(kind in (step.kind, "positive"), f"not {step.kind}", step.number)
    opened = step.rule in EVERY  # skips its index; if a place is that index, it does count
    told = (x if type(x) is tuple else (x,) for x in step.arguments[opened:])
    used = names(*(x for x in chain(*told) if isinstance(x, Term)))
    inhabited(used - free(step.number) - signs.over)
    return fact, rests


def inhabited(variables: frozenset[Term]) -> None:
    """Refuse variables that may have no value: a proof that eliminates them needs one."""
    for v in variables:
        some = not v.args or v.args[0].op == "space" or always_less(ZERO, v.args[0])
        need(some, "it may have no value", v)


def _at_least(least: int, signs: Signs, *terms: Term) -> tuple[list[int], Facts]:
    """Return the signs of numbers, refusing any below ``least``, and the assumptions."""
    found = [signs.sign(t) for t in terms]
    for t, (certain, _) in zip(terms, found, strict=True):
        need(certain >= least, "its sign is not known", t)
    return [certain for certain, _ in found], NOTHING.union(*(used for _, used in found))


def _kind(strict: object) -> str:
    return "positive" if strict else "nonnegative"


def total(t: Term, signs: Signs, *parts: Term) -> Shown:
    """t = Σ parts, each >= 0."""
    need(same_polynomial(t, add(*parts)), "not their sum", t)
    certain, used = _at_least(1, signs, *parts)
    return _kind(2 in certain), used


def quotient(t: Term, signs: Signs, x: Term, *divisors: Term) -> Shown:
    """t·d·e··· = x for x >= 0 and divisors d, e, .. > 0."""
    _, used = _at_least(2, signs, *divisors)
    different = tuple(dict.fromkeys(divisors))
    need(same_polynomial(mul(t, *divisors), x, different), "not that quotient", t, x)
    (certain,), more = _at_least(1, signs, x)
    return _kind(certain == 2), used | more


def multiple(t: Term, signs: Signs, x: Term, factor: Term = ONE) -> Shown:
    """t·factor = x and x is not 0."""
    certain, used = signs.nonzero(x)
    need(certain and same_polynomial(mul(t, factor), x), "not known to be other than 0", t, x)
    return "nonzero", used


def unfolded(t: Term, signs: Signs, x: Term) -> Shown:
    """t = x with definitions and entries of computed arrays unfolded."""
    need(same_polynomial(t, written_out(x)), "not that number, unfolded", t, x)
    certain, used = signs.sign(x)
    if certain:
        return _kind(certain == 2), used
    other, used = signs.nonzero(x)
    need(other, "its sign is not known", x)
    return "nonzero", used


def apart(t: Term, signs: Signs) -> Shown:
    """t >= 0 and t is not 0."""
    certain, used = signs.nonzero(t)
    need(certain, "it may be 0", t)
    return "positive", used | _at_least(1, signs, t)[1]


def whole(t: Term, signs: Signs, x: Term) -> Shown:
    """t = x − 1 for an integer x > 0."""
    need(is_integer(x) and same_polynomial(t, subtract(x, ONE)), "not an integer less 1", t)
    return "nonnegative", _at_least(2, signs, x)[1]


def ranges(t: Term, _: Signs) -> Shown:
    """t >= 0 or t > 0 follows from the ranges of indices, naturals and sizes."""
    need(always_less(num(-1), t), "the ranges do not settle it", t)
    return _kind(always_less(ZERO, t)), NOTHING


def bounded(t: Term, _: Signs, x: Term) -> Shown:
    """t = 1 − x or t = 1 + x for a cosine, sine, hyperbolic tangent or indicator x.

    A hyperbolic tangent is never 1 or −1.
    """
    need(x.op in ("cos", "sin", "tanh", "indicator"), "no bound", x)
    ends = add(ONE, x), subtract(ONE, x)
    need(any(same_polynomial(t, end) for end in ends), "not 1 and that number", t, x)
    return _kind(x.op == "tanh"), NOTHING


def tangent(t: Term, signs: Signs, x: Term) -> Shown:
    """t = exp(x) − 1 − x, or x − 1 − log(x) or 1/x − 1 + log(x) for x > 0."""
    if same_polynomial(t, subtract(unary("exp", x), add(ONE, x))):
        apart, used = signs.nonzero(x)
        return _kind(apart), used
    log, over = unary("log", x), power(x, -1)
    forms = subtract(x, add(ONE, log)), add(over, num(-1), log)
    need(any(same_polynomial(t, form) for form in forms), "not a function and its tangent", t, x)
    return "nonnegative", _at_least(2, signs, x)[1]


def roots(t: Term, signs: Signs, x: Term, y: Term) -> Shown:
    """t = x − y for x >= 0 and x² >= y², where the square of a factor √z is z for z >= 0."""
    need(same_polynomial(t, subtract(x, y)), "not x − y", t, x, y)
    under = [f.args[0] for v in (x, y) for p in _parts(v) for f in _factors(p) if f.op == "sqrt"]
    _, rests = _at_least(1, signs, *under)
    (_, certain), used = _at_least(1, signs, x, subtract(square(x), square(y)))
    return _kind(certain == 2), used | rests


def square(x: Term) -> Term:
    """The square of a sum of products, with z for the square of √z."""
    own = (
        mul(*(f.args[0] if f.op == "sqrt" else power(f, 2) for f in _factors(p))) for p in _parts(x)
    )
    return add(*own, *(mul(num(2), p, q) for p, q in combinations(_parts(x), 2)))


def _parts(x: Term) -> tuple[Term, ...]:
    return x.args if x.op == "add" else (x,)


def _factors(x: Term) -> tuple[Term, ...]:
    return x.args if x.op == "mul" else (x,)


def logarithms(t: Term, signs: Signs, high: Any, low: Any) -> Shown:
    """t = u + Σ log(p) − v − Σ log(q) with p, q > 0 and exp(u)·Π p >= exp(v)·Π q.

    ``high`` is (u, p, ..), ``low`` is (v, q, ..).
    """
    (u, *above), (v, *under) = high, low
    need(not u.shape + v.shape, "not two numbers", u, v)
    _, used = _at_least(2, signs, *above, *under)
    logs = [add(x, *(unary("log", y) for y in rest)) for x, rest in ((u, above), (v, under))]
    need(same_polynomial(t, subtract(*logs)), "not those logarithms", t)
    (certain,), more = _at_least(1, signs, subtract(exponential(*high), exponential(*low)))
    return _kind(certain == 2), used | more


def exponential(x: Term, *factors: Term) -> Term:
    """exp(x) times further factors."""
    return mul(ONE if x is ZERO else unary("exp", x), *factors)


AT = {("exp", ZERO): ONE, ("log", ONE): ZERO}
LEAST = {"exp": 0, "tanh": 0, "sqrt": 1, "log": 2, "power": 2}


def rising(t: Term, signs: Signs, f: Any, x: Term, y: Term) -> Shown:
    """t = f(y) − f(x) and y − x >= 0, for f = exp, tanh, √ (x >= 0), log or −1/x (x > 0)."""
    need(f in LEAST, "not a function that rises", t)
    need(not x.shape + y.shape and x.finite and y.finite, "not two numbers", x, y)
    low, high = [(power(v, -1) if f == "power" else unary(f, v), AT.get((f, v))) for v in (x, y)]
    low, high = (high, low) if f == "power" else (low, high)
    both = [subtract(b, a) for a in low for b in high if a is not None and b is not None]
    need(any(same_polynomial(t, gap) for gap in both), "not f(y) − f(x)", t)
    certain, used = _at_least(1, signs, subtract(y, x))
    if LEAST[f]:
        used |= _at_least(LEAST[f], signs, x)[1]
    return _kind(2 in certain), used


def largest(t: Term, _: Signs, m: Term, x: Term) -> Shown:
    """t = max(x, y) − x."""
    need(m.op == "maximum" and x in m.args, "not a maximum and one of its numbers", m, x)
    need(same_polynomial(t, subtract(m, x)), "not the maximum less that number", t)
    return "nonnegative", NOTHING


def least(t: Term, signs: Signs, m: Term, z: Term) -> Shown:
    """t = z − max(x, y), z − x >= 0 and z − y >= 0."""
    need(m.op == "maximum" and same_polynomial(t, subtract(z, m)), "not z − max(x, y)", t)
    need(all(x.finite for x in m.args), "one may be infinite", m)
    certain, used = _at_least(1, signs, *(subtract(z, x) for x in m.args))
    return _kind(min(certain) == 2), used


def every(t: Term, signs: Signs, j: Term, steps: Any, *at: Term) -> Shown:
    """t = Σ_j f(j) with f(j) >= 0 for every j, which ``steps`` show.

    It is positive if all terms are and the sum is not empty, or if the term ``at`` some place is.
    """
    need(t.op == "sum" and t.finite, "not a finite sum", t)
    length, body = t.args
    space = length.op == "space"
    need(space or always_less(num(-1), length), "no number of terms", length)
    need(j.op == "index" and j.args == (length,), "not an index of it", j)
    (certain,), used = _at_least(
        1,
        known_after(steps, signs.known, signs.over | free(t) | {j}),
        instantiate(body, j),
    )
    need(not any(j in free(x) for x in (t, *(x for _, x in used))), "not any index", j)
    if certain == 2 and (space or always_less(ZERO, length)):
        return "positive", used
    for place in at:
        need(not space and below(place, length), "no place of the axis", place)
        return "positive", used | _at_least(2, signs, instantiate(body, place))[1]
    return "nonnegative", used


def among(t: Term, signs: Signs, j: Term, steps: Any, x: Term, place: Term) -> Shown:
    """t = x − f(place) for a sum x = Σ_j f(j) with f(j) >= 0 for every j, which ``steps`` show."""
    _, used = every(x, signs, j, steps)
    length, body = x.args
    need(length.op != "space" and below(place, length), "no place of the axis", place)
    need(same_polynomial(t, subtract(x, instantiate(body, place))), "not all but one", t)
    return "nonnegative", used


def products(t: Term, signs: Signs, j: Term, steps: Any, x: Term, y: Term, z: Term) -> Shown:
    """t = Σ_j f(j)·Σ_j g(j) − (Σ_j h(j))² with f, g >= 0 and h² <= f·g for every j.

    This is the inequality of Cauchy and Schwarz: |Σ h| <= Σ √f·√g.
    """
    length = j.args[0] if j.op == "index" else ZERO
    need(length.op != "space" and always_less(num(-1), length), "not a number of terms", length)
    need(same_polynomial(t, subtract(mul(x, y), power(z, 2))), "not x·y − z²", t)
    f, g, h = (instantiate(_summand(part, length), j) for part in (x, y, z))
    known = known_after(steps, signs.known, signs.over | free(t))
    _, used = _at_least(1, known, f, g, subtract(mul(f, g), power(h, 2)))
    need(not any(j in free(one) for one in (t, x, y, z, *(v for _, v in used))), "not any index", j)
    return "nonnegative", used


def _summand(x: Term, length: Term) -> Term:
    """f of a sum x = Σ_j f(j) over an axis; a length is the sum of ones over it."""
    if x is length and length.op != "space":
        need(always_less(num(-1), length), "no number of terms", length)
        return ONE
    need(x.op == "sum" and x.finite and x.args[0] is length, "not a sum over that axis", x, length)
    body: Term = x.args[1]
    return body


def linear(t: Term, signs: Signs, length: Term, *parts: Term) -> Shown:
    """t = Σ_k c_k·Σ_j f_k(j), from the sign of Σ_j Σ_k c_k·f_k(j).

    ``parts`` are c and Σ_j f(j) for each k; a c with a loose index would be caught by the sum.
    """
    need(not any(c.loose or c.shape for c in parts), "not numbers", *parts)
    pairs = tuple(zip(parts[::2], parts[1::2], strict=False))
    need(same_polynomial(t, add(*(mul(c, x) for c, x in pairs))), "not that sum of sums", t)
    (certain,), used = _at_least(1, signs, one_sum(length, *parts))
    return _kind(certain == 2), used


def one_sum(length: Term, *parts: Term) -> Term:
    """Σ_j Σ_k c_k·f_k(j) for the numbers c and sums Σ_j f(j) in ``parts``."""
    pairs = zip(parts[::2], parts[1::2], strict=False)
    bodies = ((c, _summand(x, length)) for c, x in pairs)
    return make("sum", (length, add(*(f if c is ONE else mul(c, f) for c, f in bodies))))


def cases(t: Term, signs: Signs, gate: Term, holds: Any, fails: Any) -> Shown:
    """The sign of t, shown both where the condition ``gate`` holds and where it fails.

    Each case has its own steps; a case in which they show 0 > 0 is impossible and is skipped.
    """
    for x in (t, gate):
        need(x.finite and not x.shape and not x.loose, "not a finite number", x)
    need(gate.op == "indicator", "not a condition", gate)
    kinds, rests = set[int](), NOTHING
    for value, told, steps in zip((ONE, ZERO), _told(gate.args[0]), (holds, fails), strict=True):
        known = {**signs.known, **{fact: frozenset({fact}) for fact in told}}
        case = known_after(steps, known, signs.over | free(t))
        used = case.known.get(("positive", ZERO), NOTHING)
        if ("positive", ZERO) not in case.known:
            (certain,), used = _at_least(1, case, substitute(t, gate, value))
            kinds.add(certain)
        rests |= used - frozenset(told)
    return _kind(1 not in kinds), rests


def _told(c: Term) -> tuple[list[Assumption], list[Assumption]]:
    """Return the facts about a and b if a <= b, a < b or a = b holds, and those if it fails."""
    if c.op not in ("less", "less_equal", "equal") or is_truth(c.args[0]):
        return [], []
    a, b = c.args
    up, down = subtract(b, a), subtract(a, b)
    if c.op == "equal":
        return [("nonnegative", up), ("nonnegative", down)], [("nonzero", up)]
    if c.op == "less":
        return [("positive", up)], [("nonnegative", down)]
    return [("nonnegative", up)], [("positive", down)]


STEPS: dict[str, Callable[..., Shown]] = {
    "total": total,
    "quotient": quotient,
    "multiple": multiple,
    "unfolded": unfolded,
    "apart": apart,
    "whole": whole,
    "ranges": ranges,
    "bounded": bounded,
    "tangent": tangent,
    "roots": roots,
    "logarithms": logarithms,
    "rising": rising,
    "largest": largest,
    "least": least,
    "every": every,
    "among": among,
    "products": products,
    "linear": linear,
    "cases": cases,
}

"""Steps that show a sign beyond the form of a number, each from signs that are known before it.

Who looks for a sign writes the steps down (``SignStep``), and :func:`known_after` takes each again.
``STEPS`` is the whole list: a number and arguments to a kind, with what it rests on, or a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    num,
    power,
    subtract,
    unary,
)
from ..terms import Term, free, instantiate, make, names, substitute
from .base import NOTHING, Assumption, Facts, Refusing, need
from .polynomials import same_polynomial
from .signs import Signs

Known = Mapping[Assumption, Facts]
Shown = tuple[str, Facts]
KINDS = ("nonzero", "nonnegative", "positive")


def known_after(
    steps: tuple[SignStep, ...], known: Known | None = None, over: frozenset[Term] = frozenset()
) -> Signs:
    """What is known after the steps; raises ``Refused`` at the first that shows it not.

    ``over`` has the variables that have a value.  What is shown by way of others holds without
    them only if they have values at all.
    """
    signs = Signs(dict(known or {}), over)
    for step in steps:
        with Refusing(step.rule):
            fact, rests = _shown(step, signs)
        signs = Signs({fact: rests, **signs.known}, over)
    return signs


def _shown(step: SignStep, signs: Signs) -> tuple[Assumption, Facts]:
    """The fact that a step shows, and what it rests on."""
    need(step.kind in KINDS and not step.number.loose, "not of a number", step.number)
    fact = (step.kind, step.number)
    if step.rule == "given":
        return fact, frozenset({fact})
    need(step.rule in STEPS, "there is no such rule")
    kind, rests = STEPS[step.rule](step.number, signs, *step.arguments)
    need(kind in (step.kind, "positive"), f"not {step.kind}", step.number)
    opened = step.rule == "every"  # its index; a place may be that index, and then counts
    used = names(*(x for x in step.arguments[opened:] if isinstance(x, Term)))
    inhabited(used - free(step.number) - signs.over)
    return fact, rests


def inhabited(variables: frozenset[Term]) -> None:
    """What was shown by way of some variables holds without them if they have values at all."""
    for v in variables:
        some = not v.args or v.args[0].op == "space" or always_less(ZERO, v.args[0])
        need(some, "it may have no value", v)


def _at_least(least: int, signs: Signs, *terms: Term) -> tuple[list[int], Facts]:
    """The signs of numbers, of which none may be less certain."""
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


def multiple(t: Term, signs: Signs, x: Term) -> Shown:
    """t = x, which is not 0."""
    certain, used = signs.nonzero(x)
    need(certain and same_polynomial(t, x), "not known to be other than 0", t, x)
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
    """The ranges of indices, naturals and sizes settle it."""
    need(always_less(num(-1), t), "the ranges do not settle it", t)
    return _kind(always_less(ZERO, t)), NOTHING


def bounded(t: Term, _: Signs, x: Term) -> Shown:
    """1 − x and 1 + x for a cosine, sine, hyperbolic tangent or indicator."""
    need(x.op in ("cos", "sin", "tanh", "indicator"), "no bound", x)
    ends = add(ONE, x), subtract(ONE, x)
    need(any(same_polynomial(t, end) for end in ends), "not 1 and that number", t, x)
    return "nonnegative", NOTHING


AT = {("exp", ZERO): ONE, ("log", ONE): ZERO}
LEAST = {"exp": 0, "tanh": 0, "sqrt": 1, "log": 2, "power": 2}


def rising(t: Term, signs: Signs, f: Any, x: Term, y: Term) -> Shown:
    """t = f(y) − f(x) and y − x >= 0, for exp, tanh, √ from 0, log and −1/x above 0."""
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
    """t = Σ_j f(j) with f(j) >= 0 for any j, by steps of its own.

    It is positive if all are and there is one, or if one is that stands ``at`` a place of the axis.
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


def linear(t: Term, signs: Signs, x: Term, y: Term) -> Shown:
    """t = Σ_j g(j) − Σ_j f(j), from the sign of Σ_j (g(j) − f(j))."""
    alike = x.op == y.op == "sum" and x.args[0] is y.args[0]
    need(alike and same_polynomial(t, subtract(x, y)), "not the difference of two sums", t)
    whole = make("sum", (x.args[0], subtract(x.args[1], y.args[1])))
    (certain,), used = _at_least(1, signs, whole)
    return _kind(certain == 2), used


def cases(t: Term, signs: Signs, gate: Term, holds: Any, fails: Any) -> Shown:
    """The sign of t where a condition in it holds and where it does not, by steps of each.

    A case in which 0 would be positive is none.
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
    """What is true of a and b where a <= b, a < b or a = b, and what where it is not."""
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
    "multiple": multiple,
    "apart": apart,
    "whole": whole,
    "ranges": ranges,
    "bounded": bounded,
    "rising": rising,
    "largest": largest,
    "least": least,
    "every": every,
    "linear": linear,
    "cases": cases,
}

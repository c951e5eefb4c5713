"""Rules that show signs which the form of a number does not settle, each from signs known before.

The search for a sign records its steps (``SignStep``), and :func:`known_after` checks each again.
``STEPS`` is the whole list of rules.  Each takes a number and arguments and returns the kind of
sign shown and the assumptions it rests on, or refuses.
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
    opened = step.rule == "every"  # skips its index; if a place is that index, it does count
    used = names(*(x for x in step.arguments[opened:] if isinstance(x, Term)))
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


def multiple(t: Term, signs: Signs, x: Term) -> Shown:
    """t = x and x is not 0."""
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
    """t >= 0 or t > 0 follows from the ranges of indices, naturals and sizes."""
    need(always_less(num(-1), t), "the ranges do not settle it", t)
    return _kind(always_less(ZERO, t)), NOTHING


def bounded(t: Term, _: Signs, x: Term) -> Shown:
    """t = 1 − x or t = 1 + x for a cosine, sine, hyperbolic tangent or indicator x."""
    need(x.op in ("cos", "sin", "tanh", "indicator"), "no bound", x)
    ends = add(ONE, x), subtract(ONE, x)
    need(any(same_polynomial(t, end) for end in ends), "not 1 and that number", t, x)
    return "nonnegative", NOTHING


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


def linear(t: Term, signs: Signs, x: Term, y: Term) -> Shown:
    """t = Σ_j g(j) − Σ_j f(j), from the sign of Σ_j (g(j) − f(j))."""
    alike = x.op == y.op == "sum" and x.args[0] is y.args[0]
    need(alike and same_polynomial(t, subtract(x, y)), "not the difference of two sums", t)
    whole = make("sum", (x.args[0], subtract(x.args[1], y.args[1])))
    (certain,), used = _at_least(1, signs, whole)
    return _kind(certain == 2), used


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

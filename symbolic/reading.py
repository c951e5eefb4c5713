"""The search for proofs that a term reads inside its axes, with messages for reads that may not.

The kernel's ``close`` requires that every range condition (``ranges.py``) be shown.  The search
here shows it by the form of the number, or by a hypothesis about signs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .linear import NEITHER, Found, Steps, collected, joined, step, times
from .ranges import NEVER, Range, parts, ranges
from .rules.base import NOTHING, Assumption, Facts
from .scalars import add, always_less, integer, mul, num, number_of, subtract
from .signs import find_sign, signs_after
from .terms import Term, free

SIGNS = ("positive", "nonnegative")


def range_message(one: Range) -> str:
    """Return a message: the range that is not shown, and the hypothesis that would show it."""
    what = _read_text(one)
    if one.number is NEVER:
        return f"{what}: it is not an integer by its form"
    parts = one.number.args if one.number.op == "add" else (one.number,)
    less = [integer(mul(num(-1), p)) for p in parts if _is_negative(p)]
    more = [p for p in parts if not _is_negative(p)]
    left, right = integer(add(*more)), integer(add(*less))
    if always_less(one.number, num(0)):
        return f"{what}: it leaves the axis at all sizes"
    runs = any(v.op == "index" for v in free(one.number))
    helps = (
        "let the index run over existing positions only, such as rows(n - 1, ..)"
        if runs
        else f"a hypothesis at_least({left!r}, {right!r}) in assume= would show it"
    )
    return f"{what}: neither its form nor a hypothesis shows that it stays inside; {helps}"


def _read_text(one: Range) -> str:
    t, axis = one.reader, one.axis
    if axis is None:
        return f"an axis of length {one.number!r}"
    what = f"the slice {_bounds(t)}" if one.at is None else f"the index {one.at!r}"
    return (
        f"{what} of axis {axis} of {_short(t.args[0])}, whose length is {t.args[0].shape[axis]!r}"
    )


def _bounds(t: Term) -> str:
    start, (axis, step) = t.args[1], t.data
    return (
        f"{start!r}:{integer(add(start, t.shape[axis]))!r}" if step == 1 else f"{start!r}:..:{step}"
    )


def _short(t: Term) -> str:
    shown = repr(t)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _is_negative(t: Term) -> bool:
    literal = number_of(t.args[0]) if t.op == "mul" else number_of(t)
    return literal is not None and literal < 0


def never_negative(number: Term) -> Found:
    """Show that an integer is >= 0 for all values of indices and naturals and all sizes >= 1.

    A maximum with a positive coefficient is bounded by one of its two arguments; one with a
    negative coefficient is treated by cases.

    >>> from attnproof.symbolic.scalars import size
    >>> from attnproof.symbolic.terms import make
    >>> n = size("n")
    >>> never_negative(add(make("maximum", (mul(num(-1), n), num(-3))), num(3)))[0]
    1
    """
    if always_less(num(-1), number):
        return 1, (step(1, number, "ranges"),)
    for monomial, c in collected(number).items():
        m = monomial[0] if len(monomial) == 1 else number
        if m.op != "maximum" or not all(x.finite for x in m.args):
            continue
        rests = [integer(add(number, mul(num(c), subtract(x, m)))) for x in m.args]
        found = [never_negative(rest) for rest in rests]
        good = [k for k, (certain, _) in enumerate(found) if certain]
        if c > 0 and good:
            x, rest, steps = m.args[good[0]], rests[good[0]], found[good[0]][1]
            more = subtract(m, x)
            whole = step(1, number, "total", rest, times(num(c), more))
            return 1, joined(steps, (step(1, more, "largest", m, x), whole))
        if c < 0 and len(good) == 2:
            room = add(mul(num(-1 / c), number), m)
            each = [
                step(1, subtract(room, x), "total", times(num(-1 / c), rest))
                for x, rest in zip(m.args, rests, strict=True)
            ]
            above = subtract(room, m)
            last = step(1, above, "least", m, room), step(1, number, "total", times(num(-c), above))
            return 1, joined(*(steps for _, steps in found), (*each, *last))
        return NEITHER
    return NEITHER


def open_ranges(term: Term) -> tuple[Range, ...]:
    """Return the ranges of a term that its form does not show, the innermost first."""
    return _ranges_by_form(term)[0]


@cache
def _ranges_by_form(term: Term) -> tuple[tuple[Range, ...], Steps]:
    """Return the ranges of a term that its form does not show, and the steps to the others."""
    found: dict[Term, Range] = {}
    steps: list[Steps] = []
    for part in reversed(list(parts(term))):
        for one in ranges(part):
            certain, how = never_negative(one.number)
            if not certain:
                found.setdefault(one.number, one)
            elif len(how) > 1:  # a single step is by ranges, which the kernel checks itself
                steps.append(how)
    return tuple(found.values()), joined(*steps)


def show_ranges(
    terms: Iterable[Term], granted: Iterable[Assumption] = ()
) -> tuple[tuple[Range, ...], Facts, Steps]:
    """Return the ranges in the terms that are not shown, the facts used, and the steps.

    A hypothesis whose own reads are not shown by their form is not used.
    """
    facts = frozenset(fact for fact in granted if fact[0] in SIGNS and not open_ranges(fact[1]))
    unshown: dict[Term, Range] = {}
    used, steps = NOTHING, [_ranges_by_form(t)[1] for _, t in facts]
    for term in terms:
        asked, by_form = _ranges_by_form(term)
        steps.append(by_form)
        for one in asked:
            certain, how = find_sign(one.number, facts)
            if certain:
                steps.append(how)
                used |= signs_after(how, free(one.number)).sign(one.number)[1]
            else:
                unshown.setdefault(one.number, one)
    return tuple(unshown.values()), used, joined(*steps)

"""Where a term reads its arrays: the numbers that must be >= 0 for it to stay inside of its axes.

Numpy clips a slice that leaves its axis, counts a negative start from the end, and refuses an
entry that is not there; a term says none of that.  So a statement may be proved only if every
place that it reads is inside.  The kernel's ``close`` asks it of every side and every assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .rules.base import NOTHING, Assumption, Facts
from .rules.signs import Signs
from .scalars import add, always_less, below, entry, integer, is_whole, mul, num, subtract
from .terms import BINDERS, Opened, Term, instantiate, make, opened

NEVER = num(-1)


@dataclass(frozen=True)
class Range:
    """A number that must be at least 0 for ``reader`` to stay inside of an axis.

    Of an index it says which; where there is no axis, it is the length of one.
    """

    number: Term
    reader: Term
    axis: int | None = None
    at: Term | None = None


def parts(term: Term) -> Iterator[Term]:
    """Every subterm once, bodies of binders opened; outer ones first."""
    seen: set[Term] = set()
    stack = [term]
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        yield t
        if t.op not in BINDERS:
            stack.extend(t.args)
            continue
        bound = [opened(t.args[0], t)]
        if t.op == "iterate":
            bound.append(make("var", (), (Opened((t, "state")), "real"), t.shape))
        stack.extend((*t.args[:-1], instantiate(t.args[-1], *bound)))


def ranges(t: Term) -> Iterator[Range]:
    """What one operation asks for, but for what is below the end of its axis by its form."""
    if t.op == "slice":
        (x, start), (axis, step) = t.args, t.data
        span = t.shape[axis]
        last = add(start, mul(num(step), add(span, num(-1))))
        for number in (start, span, _room(x.shape[axis], last)):
            yield Range(number, t, axis)
    elif t.op == "pick":
        yield from _of_place(t, t.args[1], t.data)
    elif t.op in ("entry", "row"):
        for axis, at in enumerate(t.args[1:]):
            yield from _of_place(t, at, axis)
    elif t.op == "gather":
        e = t.args[1]
        yield from _of_place(t, entry(e, opened(e.shape[0], e)), t.data)
    for length in t.args[:1] if t.op == "sum" else t.shape:
        if length.op != "space":
            yield Range(length, t)


def _of_place(t: Term, at: Term, axis: int) -> Iterator[Range]:
    length = t.args[0].shape[axis]
    if below(at, length):
        return
    if not is_whole(at) or length.op == "space":
        yield Range(NEVER, t, axis, at)
        return
    yield Range(integer(at), t, axis, at)
    yield Range(_room(length, at), t, axis, at)


def _room(length: Term, at: Term) -> Term:
    """How many places of an axis follow an index."""
    return integer(subtract(add(length, num(-1)), at))


def sides_of(assumption: Assumption) -> tuple[Term, ...]:
    """The terms that an assumption speaks of; of a law, with its variables opened."""
    _, term = assumption
    if term.op != "assumed equal":
        return (term,)
    values = [
        make("var", (), (Opened((term, f"any{k}")), kind), shape)
        for k, (kind, shape) in enumerate(term.data or ())
    ]
    return tuple(instantiate(side, *values) for side in term.args)


def outside(terms: Iterable[Term], signs: Signs) -> tuple[list[Range], Facts]:
    """The ranges in the terms that no sign shows, and what the others rest on."""
    unshown, used = list[Range](), NOTHING
    for one in (r for term in terms for part in parts(term) for r in ranges(part)):
        if not always_less(num(-1), one.number):
            certain, by = signs.sign(one.number)
            used |= by
            unshown += [] if certain else [one]
    return unshown, used

"""Where a term reads its arrays: the numbers that must be >= 0 for it to stay inside of its axes.

Numpy clips a slice that leaves its axis, counts a negative start from the end, and refuses an
entry that is not there; a term says none of that.  So a statement may be proved only if every
place that it reads is inside.  The kernel's ``close`` asks it of every side and every assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from .rules import Assumption, Facts, Signs
from .rules.base import NOTHING, fresh
from .scalars import add, always_less, below, entry, integer, is_whole, mul, num
from .terms import BINDERS, Term, free, instantiate, make

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
    """Every subterm once, bodies of binders opened with names not free in it; outer ones first."""
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
        opened = [fresh(t.args[0], term, t)]
        if t.op == "iterate":
            taken = {str(v.data[0]) for v in free(t) if v.op == "var"}
            name = next(n for k in count() if (n := f"state#{k}") not in taken)
            opened.append(make("var", (), (name, "real"), t.shape))
        stack.extend((*t.args[:-1], instantiate(t.args[-1], *opened)))


def ranges(t: Term) -> Iterator[Range]:
    """What one operation asks for, but for what is below the end of its axis by its form."""
    if t.op == "slice":
        (x, start), (axis, step) = t.args, t.data
        span = t.shape[axis]
        last = add(start, mul(num(step), add(span, num(-1))))
        for number in (start, span, integer(add(x.shape[axis], num(-1), mul(num(-1), last)))):
            yield Range(number, t, axis)
    elif t.op == "pick":
        yield from _of_place(t, t.args[1], t.data)
    elif t.op in ("entry", "row"):
        for axis, at in enumerate(t.args[1:]):
            yield from _of_place(t, at, axis)
    elif t.op == "gather":
        e = t.args[1]
        yield from _of_place(t, entry(e, fresh(e.shape[0], e)), t.data)
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
    yield Range(integer(add(length, num(-1), mul(num(-1), at))), t, axis, at)


def sides_of(assumption: Assumption) -> tuple[Term, ...]:
    """The terms that an assumption speaks of; the variables of a law under names of their own."""
    _, term = assumption
    if term.op != "assumed equal":
        return (term,)
    taken = {str(v.data[0]) for v in free(term) if v.op == "var"}
    names = (n for k in count() if (n := f"any{k}") not in taken)
    values = [make("var", (), (next(names), kind), shape) for kind, shape in term.data or ()]
    return tuple(instantiate(side, *values) for side in term.args)


def outside(terms: Iterable[Term], signs: Signs) -> tuple[list[Range], Facts]:
    """The ranges in the terms that no sign shows, and what the others rest on.

    What is known of an index by the name of an opened one says nothing of that one.
    """
    unshown, used = list[Range](), NOTHING
    for term in terms:
        for one in (r for part in parts(term) for r in ranges(part)):
            if always_less(num(-1), one.number):
                continue
            certain, by = signs.sign(one.number)
            opened = free(one.number) - free(term)
            if certain and not any(opened & free(x) for _, x in by):
                used |= by
            else:
                unshown.append(one)
    return unshown, used

"""Range conditions of a term: the numbers that must be >= 0 for its reads to stay inside its axes.

NumPy clips a slice that leaves its axis, counts a negative start from the end, and raises for an
entry that does not exist; a term does none of this.  So a statement may be proved only if every
position that it reads is inside its axis.  The kernel's ``close`` checks this for both sides and
for every assumption.
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
    """A number that must be >= 0 for ``reader`` to stay inside an axis.

    ``at`` is the index, if an index is read.  Without ``axis``, the number is an axis length.
    """

    number: Term
    reader: Term
    axis: int | None = None
    at: Term | None = None


def parts(term: Term) -> Iterator[Term]:
    """Yield every subterm once, outer ones first, with the bodies of binders opened."""
    seen: set[Term] = set()
    stack = [term]
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        yield t
        stack.extend(direct_parts(t))


def direct_parts(t: Term) -> tuple[Term, ...]:
    """Return the arguments of a term, the body of a binder opened."""
    if t.op not in BINDERS:
        return t.args
    bound = [opened(t.args[0], t)]
    if t.op == "iterate":
        bound.append(make("var", (), (Opened((t, "state")), "real"), t.shape))
    return (*t.args[:-1], instantiate(t.args[-1], *bound))


def ranges(t: Term) -> Iterator[Range]:
    """Yield the range conditions of one operation, without those its form settles."""
    if t.op == "slice":
        (x, start), (axis, step) = t.args, t.data
        span = t.shape[axis]
        last = add(start, mul(num(step), add(span, num(-1))))
        for number in (start, span, _positions_after(x.shape[axis], last)):
            yield Range(number, t, axis)
    elif t.op == "pick":
        yield from _index_ranges(t, t.args[1], t.data)
    elif t.op in ("entry", "row"):
        for axis, at in enumerate(t.args[1:]):
            yield from _index_ranges(t, at, axis)
    elif t.op == "gather":
        e = t.args[1]
        yield from _index_ranges(t, entry(e, opened(e.shape[0], e)), t.data)
    for length in t.args[:1] if t.op == "sum" else t.shape:
        if length.op != "space":
            yield Range(length, t)


def _index_ranges(t: Term, at: Term, axis: int) -> Iterator[Range]:
    length = t.args[0].shape[axis]
    if below(at, length):
        return
    if not is_whole(at) or length.op == "space":
        yield Range(NEVER, t, axis, at)
        return
    yield Range(integer(at), t, axis, at)
    yield Range(_positions_after(length, at), t, axis, at)


def _positions_after(length: Term, at: Term) -> Term:
    """Return the number of positions of an axis after an index."""
    return integer(subtract(add(length, num(-1)), at))


def sides_of(assumption: Assumption) -> tuple[Term, ...]:
    """Return the terms of an assumption; for a law, both sides with its variables opened."""
    _, term = assumption
    if term.op != "assumed equal":
        return (term,)
    values = [
        make("var", (), (Opened((term, f"any{k}")), kind), shape)
        for k, (kind, shape) in enumerate(term.data or ())
    ]
    return tuple(instantiate(side, *values) for side in term.args)


def unshown_ranges(terms: Iterable[Term], signs: Signs) -> tuple[list[Range], Facts]:
    """Return the ranges in the terms that no known sign shows, and the facts behind the others."""
    unshown, used = list[Range](), NOTHING
    for one in (r for term in terms for part in parts(term) for r in ranges(part)):
        if not always_less(num(-1), one.number):
            certain, by = signs.sign(one.number)
            used |= by
            unshown += [] if certain else [one]
    return unshown, used

"""Where a term reads its arrays: every slice, pick and entry has to stay inside of its axis.

Numpy clips a slice that leaves its axis, counts a negative start from the end, and refuses an
entry that is not there; a term says none of that.  So a statement may be proved only if every
place that it reads is inside: shown by form (``never_negative``, ``below``), or by a hypothesis on
signs.  This page is trusted: the kernel's ``close`` asks it of every side and every assumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

from .rules import Assumption, sign
from .rules.base import fresh
from .scalars import (
    add,
    always_less,
    below,
    entry,
    integer,
    is_whole,
    mul,
    never_negative,
    num,
    number_of,
)
from .terms import BINDERS, Term, free, instantiate, make

SIGNS = ("positive", "nonnegative")
NEVER = num(-1)


@dataclass(frozen=True)
class Range:
    """A number that must be at least 0 for ``reader`` to stay inside of an axis."""

    number: Term
    reader: Term
    what: str

    @property
    def told(self) -> str:
        """What is not certain, and the hypothesis that would show it."""
        if self.number is NEVER:
            return f"{self.what}: it is not an integer by its form"
        parts = self.number.args if self.number.op == "add" else (self.number,)
        less = [_opposite(p) for p in parts if _is_negative(p)]
        more = [p for p in parts if not _is_negative(p)]
        left, right = integer(add(*more)), integer(add(*less))
        if always_less(self.number, num(0)):
            return f"{self.what}: it leaves the axis at all sizes"
        runs = any(v.op == "index" for v in free(self.number))
        helps = (
            "let the index run over the places that are there, such as rows(n - 1, ..)"
            if runs
            else f"a hypothesis at_least({left!r}, {right!r}) in assume= would show it"
        )
        return (
            f"{self.what}: that it stays inside is shown neither by its form nor by a hypothesis; "
            + helps
        )


def _opposite(t: Term) -> Term:
    return integer(mul(num(-1), t))


def _is_negative(t: Term) -> bool:
    literal = number_of(t.args[0]) if t.op == "mul" else number_of(t)
    return literal is not None and literal < 0


def parts(term: Term) -> Iterator[Term]:
    """Every subterm once, bodies of binders opened with names of their own; outer ones first."""
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
        opened = [fresh(t.args[0], t)]
        if t.op == "iterate":
            taken = {str(v.data[0]) for v in free(t) if v.op == "var"}
            name = next(n for k in count() if (n := f"state#{k}") not in taken)
            opened.append(make("var", (), (name, "real"), t.shape))
        stack.extend((*t.args[:-1], instantiate(t.args[-1], *opened)))


@cache
def open_ranges(term: Term) -> tuple[Range, ...]:
    """The ranges of a term that its form does not show, the innermost first."""
    found: dict[Term, Range] = {}
    for part in reversed(list(parts(term))):
        for one in leaving(part):
            found.setdefault(one.number, one)
    return tuple(found.values())


def leaving(t: Term) -> Iterator[Range]:
    """The ranges of one operation that its form does not show."""
    return (one for one in _ranges(t) if not never_negative(one.number))


def _ranges(t: Term) -> Iterator[Range]:
    if t.op == "slice":
        yield from _of_slice(t)
    elif t.op == "pick":
        yield from _of_place(t, t.args[1], t.data)
    elif t.op in ("entry", "row"):
        for axis, at in enumerate(t.args[1:]):
            yield from _of_place(t, at, axis)
    elif t.op == "gather":
        e = t.args[1]
        yield from _of_place(t, entry(e, fresh(e.shape[0], e)), t.data)
    lengths = t.args[:1] if t.op == "sum" else t.shape
    for length in lengths:
        if length.op != "space":
            yield Range(length, t, f"an axis of length {length!r}")


def _of_slice(t: Term) -> Iterator[Range]:
    (x, start), (axis, step) = t.args, t.data
    span, length = t.shape[axis], x.shape[axis]
    last = add(start, mul(num(step), add(span, num(-1))))
    what = f"the slice {_bounds(t)} of axis {axis} of {_short(x)}, whose length is {length!r}"
    yield Range(start, t, what)
    yield Range(span, t, what)
    yield Range(integer(add(length, num(-1), mul(num(-1), last))), t, what)


def _bounds(t: Term) -> str:
    start, (axis, step) = t.args[1], t.data
    return (
        f"{start!r}:{integer(add(start, t.shape[axis]))!r}" if step == 1 else f"{start!r}:..:{step}"
    )


def _of_place(t: Term, at: Term, axis: int) -> Iterator[Range]:
    x = t.args[0]
    length = x.shape[axis]
    if below(at, length):
        return
    what = f"the index {at!r} of axis {axis} of {_short(x)}, whose length is {length!r}"
    if not is_whole(at) or length.op == "space":
        yield Range(NEVER, t, what)
        return
    yield Range(integer(at), t, what)
    yield Range(integer(add(length, num(-1), mul(num(-1), at))), t, what)


def _short(t: Term) -> str:
    shown = repr(t)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def sides_of(assumption: Assumption) -> tuple[Term, ...]:
    """The terms that an assumption speaks of; the variables of a law under names of their own."""
    _, term = assumption
    if term.op != "assumed equal":
        return (term,)
    taken = {str(v.data[0]) for v in free(term) if v.op == "var"}
    names = (n for k in count() if (n := f"any{k}") not in taken)
    values = [make("var", (), (next(names), kind), shape) for kind, shape in term.data or ()]
    return tuple(instantiate(side, *values) for side in term.args)


def outside(
    terms: Iterable[Term], granted: Iterable[Assumption] = ()
) -> tuple[tuple[Range, ...], frozenset[Assumption]]:
    """The ranges in the terms that nothing shows, and the hypotheses that show the others.

    A hypothesis that itself reads at places which its form does not show is no help.
    """
    facts = frozenset(fact for fact in granted if fact[0] in SIGNS and not open_ranges(fact[1]))
    unshown: dict[Term, Range] = {}
    used: frozenset[Assumption] = frozenset()
    for one in (r for term in terms for r in open_ranges(term)):
        certain, by = sign(one.number, facts)
        if certain:
            used |= by
        else:
            unshown.setdefault(one.number, one)
    return tuple(unshown.values()), used

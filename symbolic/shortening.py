"""Formulas longer than a page are cut, before their text is built.

Terms share their parts and a text writes each out again: eight functions in one another are 200
kB.  So what is printed is bounded first, and what is left out stands there as *cut*.
"""

from __future__ import annotations

from .terms import Term, make

__all__ = ["DEEP", "PAGE", "shortened"]

PAGE = 800  # parts: about a page; no side of an equation of the catalogue has more than 136
DEEP = 60  # parts within parts; the catalogue has 15
_LISTS = frozenset(("add", "mul", "and", "or"))  # of any length: the first of them can stay


def shortened(term: Term, most: int = PAGE) -> Term:
    """The term itself, or its outermost parts and *cut* in the place of the others.

    It is for printing alone, and no reading of the term.

    >>> from .scalars import add, mul, num, size
    >>> n = size("n")
    >>> shortened(add(n, mul(n, n)), 4)
    n + ⟨cut⟩
    >>> shortened(add(n, num(1)), 4)
    n + 1
    """
    found: list[tuple[Term, int]] = [(term, 0)]
    parts: dict[int, list[int | Term]] = {}
    whole = True
    for place, (t, depth) in enumerate(found):  # breadth first: ``found`` grows under way
        unseen = list[int | Term](t.args[:1] if t.op == "named" else ())
        seen = t.args[len(unseen) :]
        room = 0 if depth >= DEEP else max(0, most - len(found))
        if len(seen) > room:
            whole = False
            if t.op not in _LISTS or room < 2:
                continue
            seen = seen[: room - 1]
            unseen.append(_cut(t))
        ends = len(found)
        found.extend((part, depth + 1) for part in seen)
        more = list(range(ends, len(found)))
        parts[place] = [*more, *unseen] if t.op in _LISTS else [*unseen, *more]
    if whole:
        return term
    made: list[Term] = [t for t, _ in found]
    for place in reversed(range(len(found))):
        t = made[place]
        if place in parts:
            args = tuple(p if isinstance(p, Term) else made[p] for p in parts[place])
            made[place] = make(t.op, args, t.data, t.shape)
        elif t.args:
            made[place] = _cut(t)
    return made[0]


def _cut(t: Term) -> Term:
    return make("cut", (), None, t.shape)

"""Rewrite lengths that guards bound from below, so that their form shows the bound.

For code that takes ``x[:, -3:]`` torch.export requires n ≥ 3; for code that takes as many rows from
the end as there are queries, n ≥ r.  Terms only know that a size is at least 1.  So n is written as
m + 2, or as r + m − 1, and what is proved for all m ≥ 1 is proved for those lengths.

An upper bound, as n ≤ 64 of a stored table of 64 rows, is a hypothesis of the statement.

A quotient ⌊n/2⌋ in one of two programs is a size h of its own, of which 2·h ≤ n is known: with
n = 2·h + m − 1, what is proved for all h and m is proved for h = ⌊n/2⌋, from n = 2 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan

from attnproof.symbolic.claim import Claim, Law
from attnproof.symbolic.reading import never_negative
from attnproof.symbolic.scalars import ONE, add, integer, mul, num, number_of, size
from attnproof.symbolic.terms import Term, free, substitute

if TYPE_CHECKING:
    from .statements import Axes, Graph

Bounds = Mapping[Term, Term]
MIN_TRACED = 2  # the least symbolic length for torch.export


def bounds_of(letters: Axes, graphs: Iterable[Graph]) -> Bounds:
    """Map sizes to their lower bounds by the guards: a number, or a sum with other sizes."""
    found: dict[Term, Term] = {}
    for graph in graphs:
        names = {s: letters[c] for c, s, _ in graph.axes if isinstance(s, str)}
        for symbol, known in graph.exported.ranges.items():
            length = names.get(symbol)
            if length is not None and length.op == "size" and known.lower > 1:
                before = int(found[length].data) if length in found else 1
                found[length] = num(max(int(known.lower), before))
    for graph in graphs:
        names = {s: letters[c] for c, s, _ in graph.axes if isinstance(s, str)}
        for condition in graph.exported.conditions:
            for length, least in _linear(condition, names):
                more = length not in found or number_of(found[length]) == MIN_TRACED
                whole, _ = never_negative(add(least, num(-1)))
                if more and whole and not _depends(least, length, found):
                    found[length] = least
    for numerator, divisor, part in quotients_of(graphs):  # n ≥ k·⌊(n + c)/k⌋ − c
        (length,) = (one for one in free(numerator) if one.op == "size")
        least = integer(add(mul(num(divisor), part), length, mul(num(-1), numerator)))
        if length not in found or number_of(found[length]) is not None:
            found[length] = least
    return found


def upper_bounds(graphs: Iterable[Graph]) -> tuple[Law, ...]:
    """Return as hypotheses that the lengths of all calls made are no longer than was traced.

    They are noted, and so printed with what is proved (``Conditions.lengths``), even if the graph
    is found to be valid beyond.
    """
    found: dict[Term, int] = {}
    for graph in graphs:
        most = {s: int(r.upper) for s, r in graph.exported.ranges.items() if r.upper.is_Integer}
        for program in graph.programs:
            for symbol, length in (pair for binding in program.met for pair in binding):
                if symbol in most and number_of(length) is None:
                    found[length] = min(most[symbol], found.get(length, most[symbol]))
                    program.notes.longest[length] = found[length]
    return tuple(Law(Claim(">=", num(most), length)) for length, most in found.items())


def quotients_of(graphs: Iterable[Graph]) -> list[tuple[Term, int, Term]]:
    """Return a, b and the size that stands for ⌊a/b⌋, of all quotients that are used."""
    told = {
        (a, b): part
        for graph in graphs
        for program in graph.programs
        for (a, b), part in program.notes.quotients.items()
    }
    return [(a, b, part) for (a, b), part in told.items()]


def _linear(condition: Any, names: Mapping[str, Term]) -> Iterable[tuple[Term, Term]]:
    """Yield the length that a condition bounds from below, as n ≥ r + 2, and its bound."""
    if not isinstance(condition, GreaterThan | LessThan | StrictGreaterThan | StrictLessThan):
        return
    strict = isinstance(condition, StrictGreaterThan | StrictLessThan)
    gap = (condition.gts - condition.lts - int(strict)).expand()
    if not gap.free_symbols or not {str(s) for s in gap.free_symbols} <= set(names):
        return
    if not gap.is_polynomial(*gap.free_symbols) or any(not c.is_Integer for c in _numbers(gap)):
        return
    total: dict[Term, int] = {}
    rest = 0
    for monomial, coefficient in gap.as_coefficients_dict().items():
        if monomial.is_Symbol:
            length = names[str(monomial)]
            total[length] = total.get(length, 0) + int(coefficient)
        elif monomial == 1:
            rest = int(coefficient)
        else:
            return
    above = [length for length, n in total.items() if n > 0]
    if len(above) == 1 and total[above[0]] == 1 and above[0].op == "size":
        others = (mul(num(-n), length) for length, n in total.items() if n < 0)
        yield above[0], integer(add(num(-rest), *others))


def _numbers(gap: Any) -> Iterable[Any]:
    return list(gap.as_coefficients_dict().values())


def _depends(bound: Term, length: Term, known: Bounds) -> bool:
    """Whether a bound contains a length, directly or through the bounds of its own lengths."""
    return any(
        one is length or (one in known and _depends(known[one], length, known))
        for one in free(bound)
    )


def from_least(bounds: Bounds) -> Callable[[Term], Term]:
    """Return a function that writes lengths in sizes from 1 on: n as n + 2 if n is at least 3."""

    def longer(length: Term) -> Term:
        found = length
        for one in free(length):
            if one in bounds:
                least = longer(bounds[one])
                found = substitute(found, one, add(least, _held(one), num(-1)))
        return found

    def named(length: Term) -> Term:
        found = longer(length)
        for one in bounds:
            found = substitute(found, _held(one), one)
        return integer(found)

    return named


def from_one(bounds: Bounds) -> Callable[[Term], Term]:
    """Return the inverse of :func:`from_least`, which writes lengths as they were."""

    def shorter(length: Term) -> Term:
        found = length
        for one in bounds:
            found = substitute(found, one, _held(one))
        for one, least in bounds.items():
            found = substitute(found, _held(one), add(one, mul(num(-1), least), ONE))
        return integer(found)

    return shorter


def _held(length: Term) -> Term:
    """Return a temporary name for a size that is being replaced."""
    return size(f"»{length.data[0]}", "size")

"""Extend a graph to lengths at which the code, traced again, is proved to be the same function.

torch.export treats a length of 1 specially, and ``mask[:n, :n]`` of a mask with 64 rows has another
graph at n = 64, where nothing is cut off.  The output of such a graph is proved equal to that of
the first graph at those lengths, for any inputs and tables; what is proved of the first graph then
holds there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import sympy
from sympy import Eq
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import Given
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.scalars import num, size
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, substitute

from .blocks import TracedBlocks
from .branches import letters_of, resized
from .calls import Call
from .comparison import kind_of_given
from .exporting import Exported
from .guards import satisfied
from .least_lengths import MIN_TRACED
from .nodes import unread_of
from .operations import Unread
from .program import Way
from .reached_arrays import NotTraced
from .statements import Graph, graphs_of

WAY: Way = "folded"
SECONDS = 3.0  # time limit of one such proof, generous for a busy machine
MAX_OPERATIONS = 300  # operations in all traces at lengths of 1 together
UNIT_LETTERS = "BnrHG"  # letters of lengths that may be 1, most frequent first
Lengths = Mapping[str, int]
Traces = Callable[[Call, bool], Exported]  # from a call, and whether its lengths may be 1


@dataclass(frozen=True)
class _OtherTrace:
    """Another graph of the same code, each length of the first being a number or a length there.

    ``conditions`` and ``ranges`` belong to the other graph, in the names of the first.
    """

    first: Graph
    other: Graph
    lengths: Mapping[str, int | str]
    conditions: tuple[Any, ...]
    ranges: Mapping[str, Any]


def widened(graph: Graph, traced: Traces, elsewhere: Sequence[Lengths] = ()) -> Graph:
    """Return the graph, valid at all further lengths at which the code is proved the same function.

    ``elsewhere``: lengths that violate a condition of the graph; if the code there is proved equal,
    the condition is dropped.  Then lengths of 1 are added to graphs traced from 2 on, each length
    alone and together with the others already added; such traces may have no conditions that the
    graph lacks.
    """
    merged: list[Lengths] = []
    for at in elsewhere:
        before, graph = graph, _beyond_a_branch(graph, at, traced)
        merged += [at] if graph is not before else []
    letters, own, count = letters_of(graph), graph.exported.ranges, 0
    symbols = sorted(own.keys() & letters.keys(), key=lambda s: UNIT_LETTERS.find(letters[s]))
    shown = [s for s in symbols if letters[s] in _from_one(graph)]
    for symbol in [s for s in symbols if s not in shown and letters[s] in UNIT_LETTERS]:
        also = [(*more, symbol) for k in range(len(shown) + 1) for more in combinations(shown, k)]
        anew = count + len(also) * (1 + len(merged))
        if anew * graph.exported.operations > MAX_OPERATIONS:
            continue
        count = anew
        alike: list[Graph] = []
        for ones in also:
            other = _equal_at_one(graph, traced, ones, merged)
            if other is None:
                break
            alike.append(other)
        else:
            shown.append(symbol)
            for ones, other in zip(also, alike, strict=True):
                graph = _with_blocks(graph, other, [Eq(sympy.Symbol(s), 1) for s in ones])
    return _of_ranges(graph, {s: ValueRanges(1, own[s].upper) for s in shown})


def of_shared_call(graphs: Sequence[Graph]) -> list[Graph]:
    """Return the graphs of one call's results, each at the lengths valid for all of them."""
    told = [graph.exported for graph in graphs]
    conditions = tuple(dict.fromkeys(c for one in told for c in one.conditions))
    wider = {
        symbol: r
        for symbol, r in told[0].wider.items()
        if all(one.wider.get(symbol) == r for one in told)
    }
    return [
        replace(graph, exported=replace(graph.exported, conditions=conditions, wider=wider))
        for graph in graphs
    ]


def _from_one(graph: Graph) -> set[str]:
    """Return the letters of lengths that may be 1, as the graph was traced."""
    letters, ranges = letters_of(graph), graph.exported.ranges
    return {letters[s] for s in letters.keys() & ranges.keys() if ranges[s].lower < MIN_TRACED}


def _equal_at_one(
    graph: Graph, traced: Traces, ones: Sequence[str], merged: Sequence[Lengths]
) -> Graph | None:
    """Return the graph traced with these lengths 1, if it is the same function there."""
    letters, ranges = letters_of(graph), graph.exported.ranges
    if any(ranges[s].lower > MIN_TRACED for s in ones):
        return None
    alone = {letters[s]: 1 for s in ones}
    first = {letters[s]: n for _, s, n in graph.axes if isinstance(s, str)}
    other = _traced_at(graph, {**first, **alone}, traced, from_one=False)
    for at in merged:
        if other is not None and all(at[letter] > 1 for letter in alone):
            other = _beyond_a_branch(other, {**at, **alone}, traced)
    there = None if other is None else _other_trace(graph, other)
    if there is None or {s for s, n in there.lengths.items() if isinstance(n, int)} != set(ones):
        return None
    alike = _is_valid(there, graph.exported.conditions, ranges) and _is_same(there)
    return other if alike else None


def _with_blocks(graph: Graph, other: Graph, where: Sequence[Any]) -> Graph:
    """Return the graph with the blocks of another trace, made at lengths that satisfy these."""
    own, others = graph.exported.blocks, other.exported.blocks
    blocks = None
    if own is not None and others is not None:
        outside = sympy.Not(sympy.And(*where))
        there = frozenset[Any]().union(*(one.places for one in others))
        kept = (replace(one, conditions=(*one.conditions, outside)) for one in own)
        blocks = (*kept, TracedBlocks(there, tuple(where)))
    return replace(graph, exported=replace(graph.exported, blocks=blocks))


def _of_ranges(graph: Graph, ranges: Mapping[str, Any]) -> Graph:
    """Return the graph with these ranges of lengths."""
    wider = {**graph.exported.wider, **ranges}
    return replace(graph, exported=replace(graph.exported, wider=wider)) if ranges else graph


def _traced_at(graph: Graph, at: Lengths, traced: Traces, *, from_one: bool) -> Graph | None:
    """Return the graph of the same call at these lengths by letter; None if it cannot be read."""
    call = resized(graph.call, graph, at)
    try:
        exported = traced(call, from_one)
    except NotTraced:
        return None
    if unread_of(exported.nodes) or exported.place != graph.exported.place:
        return None
    return graphs_of([(call, exported)])[0]


def _beyond_a_branch(graph: Graph, at: Lengths, traced: Traces) -> Graph:
    """Drop the condition that these lengths violate, if the code beyond it is the same function.

    Otherwise return the graph itself.
    """
    letters, own = letters_of(graph), graph.exported.conditions
    if not set(letters.values()) <= set(at):
        return graph
    broken = [
        c for c in own if not satisfied([c], {s: at[letter] for s, letter in letters.items()})
    ]
    from_one = min(at.values()) > 1
    other = _traced_at(graph, at, traced, from_one=from_one) if len(broken) == 1 else None
    there = None if other is None else _other_trace(graph, other)
    if there is None:
        return graph
    outside = sympy.Not(broken[0])
    fixed = {(s, n) for s, n in there.lengths.items() if isinstance(n, int)}
    points = {(str(s), n) for s in outside.free_symbols for _, n in fixed if outside == Eq(s, n)}
    others = tuple(c for c in own if c not in broken)
    both, wider = graph.exported.ranges, {}
    for symbol in outside.free_symbols if len(outside.free_symbols) == 1 else ():
        here, beyond = both.get(str(symbol)), there.ranges.get(str(symbol))
        least, most = _ends(outside, symbol)
        if here is None or beyond is None or here.upper < least - 1 or here.lower > most + 1:
            continue
        if beyond.upper < least:  # the new trace covers no length beyond
            return graph
        both = {**both, str(symbol): ValueRanges(least, min(most, beyond.upper))}
        wider[str(symbol)] = ValueRanges(
            min(here.lower, beyond.lower), max(here.upper, beyond.upper)
        )
    if fixed != points or not _is_valid(there, (*others, outside), both) or not _is_same(there):
        return graph
    for s, beyond in there.ranges.items():  # a trace from 2 on proves nothing below 2
        wider.setdefault(s, ValueRanges(max(both[s].lower, beyond.lower), both[s].upper))
    one = replace(graph, exported=replace(graph.exported, conditions=others))
    return _of_ranges(_with_blocks(one, there.other, (outside,)), wider)


def _ends(condition: Any, symbol: Any) -> tuple[Any, Any]:
    """Return the least and greatest integer at which a condition on one length can hold."""
    least, most = sympy.Integer(1), int_oo
    if isinstance(condition, LessThan | StrictLessThan | GreaterThan | StrictGreaterThan):
        strict = isinstance(condition, StrictLessThan | StrictGreaterThan)
        if condition.gts == symbol and condition.lts.is_Integer:
            least = condition.lts + int(strict)
        elif condition.lts == symbol and condition.gts.is_Integer:
            most = condition.gts - int(strict)
    return least, most


def _is_valid(there: _OtherTrace, conditions: Iterable[Any], ranges: Mapping[str, Any]) -> bool:
    """Whether the other graph is valid at all lengths within these conditions and ranges."""
    at = {s: n for s, n in there.lengths.items() if isinstance(n, int)}
    here = {c.subs({s: at[str(s)] for s in c.free_symbols if str(s) in at}) for c in conditions}
    return (
        sympy.false not in here
        and set(there.conditions) <= here | {sympy.true}
        and all(
            r.lower <= max(MIN_TRACED, ranges[s].lower) and r.upper >= ranges[s].upper
            for s, r in there.ranges.items()
        )
    )


def _other_trace(graph: Graph, other: Graph) -> _OtherTrace | None:
    """Express another graph in the names of the first; None if lengths or tables do not match."""
    exported = other.exported
    lengths: dict[str, int | str] = {}
    for own, beyond in zip(graph.exported.shapes, exported.shapes, strict=True):
        for length, there in zip(own, beyond, strict=True):
            if isinstance(length, int):
                if there != length:
                    return None
            elif lengths.setdefault(length, there) != there:
                return None
    names = [there for there in lengths.values() if isinstance(there, str)]
    if len(set(names)) < len(names):
        return None
    back = {there: s for s, there in lengths.items() if isinstance(there, str)}
    known = {
        symbol
        for condition in (*exported.conditions, *graph.exported.conditions)
        for symbol in condition.free_symbols
    }
    of_first = {str(symbol): symbol for symbol in known}
    renamed = {
        symbol: of_first.get(back[str(symbol)], sympy.Symbol(back[str(symbol)]))
        for symbol in known
        if str(symbol) in back
    }
    conditions = tuple(c.xreplace(renamed) for c in exported.conditions)
    ranges = {back[s]: r for s, r in exported.ranges.items() if s in back}
    first, second = graphs_of([(graph.call, graph.exported), (other.call, exported)])
    named = first.tables.keys() & second.tables.keys()
    if any(first.tables[name] != second.tables[name] for name in named):
        return None  # different tables of the same name
    return _OtherTrace(first, second, lengths, conditions, ranges)


def _is_same(there: _OtherTrace) -> bool:
    """Whether both graphs are proved to give the same output at the lengths of the second.

    Reading the second may assume nothing that reading the first does not.
    """
    symbols = {s: size(letter, "size") for s, letter in letters_of(there.first).items()}
    lengths: dict[str, Term] = {
        letter: num(length) if isinstance(length, int) else symbols[length]
        for letter, length, _ in there.first.axes
    }
    fixed = {symbols[s]: num(n) for s, n in there.lengths.items() if isinstance(n, int)}
    at = {letter: fixed.get(length, length) for letter, length in lengths.items()}
    try:
        left, _ = _term(there.first, lengths)
        right, givens = _term(there.other, at)
    except (Unread, ValueError):
        return False
    for length, number in fixed.items():
        left = substitute(left, length, number)
    first, other = (one.ways[WAY].notes for one in (there.first, there.other))
    if first.unwritten or other.unwritten or not first.readings.keys() >= other.readings.keys():
        return False
    if left is right:
        return True
    if Array(left).axes != Array(right).axes:
        return False
    statement = Statement({**first.givens, **other.givens, **givens}, {"": equal(left, right)})
    decided = decide(statement, effort=Effort(refuting=False, whole=SECONDS))
    return decided.verdict == "proved" and not any(claim.readings for claim in decided.claims)


def _term(graph: Graph, lengths: Mapping[str, Term]) -> tuple[Term, dict[str, Given]]:
    """Return the output of a graph at these lengths by letter, and its givens."""
    givens = {
        f"input_{k}": kind_of_given(x)(*(Array(lengths[c]) for c in told.split()))
        for k, (told, x) in enumerate(zip(graph.call.letters, graph.call.inputs, strict=True))
    }
    tables = {name: given.named(name) for name, given in graph.givens.items()}
    call = graph.as_function(tables, WAY)
    found = call(*(given.named(name) for name, given in givens.items()))
    return as_array(found).term, {**givens, **graph.givens}

"""The other sides of branches in traced code: lengths at which its graph is not the code.

Code that tests ``if n > 64`` is traced on one side, and torch.export keeps the condition beside the
graph.  On the other side different code runs: it is called and traced there, and a law is reported
separately for each side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from sympy.core.relational import Relational
from torch import Tensor

from .calls import Call
from .comparison import result_of
from .guards import compiled, satisfied
from .open_comparisons import roots
from .statements import Graph

TRACED_SIDES = 2  # other sides that are traced; the code is run on all of them
MAX_LENGTH = 4096
HALF = 0.5


def lengths_elsewhere(graph: Graph) -> list[dict[str, int]]:
    """For each condition of a graph, return the smallest lengths that violate it, by letter.

    Lengths at which the code raises do not count: it makes no claim there.
    """
    letters = letters_of(graph)
    first = {letters[length]: n for _, length, n in graph.axes if isinstance(length, str)}
    found: list[dict[str, int]] = []
    for condition in graph.exported.conditions:
        if any(not _satisfied(letters, condition, at) for at in found):
            continue
        breaking = (
            at
            for at in (*_tried(condition, first), *_near_equality(letters, condition, first))
            if _ranges(graph, letters, at) and not _satisfied(letters, condition, at)
        )
        at = next(breaking, None)
        call = resized(graph.call, graph, at) if at is not None else None
        if at is not None and call is not None and result_of(call.code, call.inputs) is not None:
            found.append(at)
    return found


def resized(call: Call, graph: Graph, at: Mapping[str, int]) -> Call:
    """Return the call with inputs of these lengths; fixed lengths stay as they are."""
    generator = torch.Generator().manual_seed(7)
    letters = letters_of(graph)
    made = []
    for shape, like in zip(graph.exported.shapes, call.inputs, strict=True):
        own = tuple(n if isinstance(n, int) else at[letters[n]] for n in shape)
        made.append(_like(like, own, generator))
    return replace(call, inputs=tuple(made))


def _like(x: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if x.is_floating_point():
        return torch.randn(shape, generator=generator).to(x.dtype)
    if x.dtype == torch.bool:
        return torch.rand(shape, generator=generator) < HALF
    counted = torch.arange(shape[1] if len(shape) > 1 else shape[0], dtype=x.dtype)
    return counted.reshape(-1, *(1,) * (len(shape) - 2)).expand(shape).clone()


def letters_of(graph: Graph) -> dict[str, str]:
    """Map the name of each symbolic length of a graph to its first letter.

    Letters that share a length have one, and so do all lengths of one letter.
    """
    found: dict[str, str] = {}
    first: dict[str, str] = {}  # of each letter
    for letter, length, _ in graph.axes:
        if isinstance(length, str):
            other = first.setdefault(letter, letter)
            one = found.setdefault(length, other)
            for known in (found, first):
                known |= {name: one for name, told in known.items() if told == other}
    return found


def is_valid_at(graph: Graph, at: Mapping[str, int]) -> bool:
    """Whether a graph is valid at these lengths, given by the letters of its call."""
    letters, ranges = letters_of(graph), graph.exported.ranges
    fixed = {letter: n for letter, n, _ in graph.axes if isinstance(n, int)}
    if not all(letter in at for letter in letters.values()):
        return False
    if any(at[letter] != n for letter, n in fixed.items() if letter in at):
        return False
    return all(_satisfied(letters, c, at) for c in graph.exported.conditions) and all(
        r.lower <= at[letters[s]] <= r.upper for s, r in ranges.items() if s in letters
    )


def _satisfied(letters: Mapping[str, str], condition: Any, at: Mapping[str, int]) -> bool:
    return satisfied([condition], {symbol: at[letter] for symbol, letter in letters.items()})


def _ranges(graph: Graph, letters: Mapping[str, str], at: Mapping[str, int]) -> bool:
    """Whether lengths are at least those the graph was traced for; 1 is treated separately."""
    ranges = graph.exported.ranges.items()
    return all(max(2, int(r.lower)) <= at[letters[s]] for s, r in ranges if s in letters)


def _tried(condition: Any, first: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield lengths, tokens first, at the numbers in a condition and near them."""
    named = {abs(int(n)) for n in condition.atoms() if n.is_Integer}
    around = {n + more for n in named for more in (-1, 0, 1)}
    around |= {n // k + more for n in named for k in first.values() if k for more in (0, 1)}
    around |= {abs(n + k * sign) for n in named for k in first.values() for sign in (1, -1)}
    sizes = sorted({*range(2, 18), *(n for n in around if 2 <= n <= MAX_LENGTH)})
    tokens = [letter for letter in first if letter in "nr"]
    for n in sizes:
        if tokens:
            yield {**first, **dict.fromkeys(tokens, n)}
    for n in sizes:
        for letter in sorted(first, key=lambda one: one not in "nr"):
            yield {**first, letter: n}


def _near_equality(
    letters: Mapping[str, str], condition: Any, first: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield lengths near those at which both sides of a condition agree, solved for one length."""
    if not isinstance(condition, Relational):
        return
    names, gap = compiled(condition.lhs - condition.rhs)

    def off(at: Mapping[str, int]) -> float:
        return float(gap(*(at[letters[name]] for name in names)))

    for letter in sorted(first, key=lambda one: one not in "nr"):
        with suppress(KeyError, NameError, TypeError, ArithmeticError):
            yield from (
                {**first, letter: n + more}
                for n in roots(off, first, letter)
                for more in (0, 1, -1)
                if 2 <= n + more <= MAX_LENGTH
            )

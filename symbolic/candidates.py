"""Small exact inputs for a statement: drawn, and made simpler.

A candidate gives every size a number and every given a value: object arrays of Fraction, arrays
of indices, arrays of truth values, one index, or a sample function.  Nothing here is believed:
what a candidate must satisfy is checked in :mod:`~attnproof.symbolic.admissible`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np

from .designs import design, rational_orthogonal
from .givens import Given
from .sample_functions import sample_functions
from .scalars import length_value

__all__ = ["NUMBERS", "POOL", "Candidate", "array_of", "draw", "simpler"]

POOL = (
    *map(Fraction, (0, 1, -1, 2)), Fraction(1, 2), Fraction(-2), Fraction(3), Fraction(-1, 2),
    Fraction(1, 3), Fraction(-3), Fraction(3, 2), Fraction(5),
)  # fmt: skip
NUMBERS = ("real", "angle", "position", "frequency", "positive", "nonnegative")
NATURALS = (0, 1, 2, 3, 4, 6)


def pool_of(kind: str) -> list[Fraction]:
    """The numbers that an entry of this kind may be, the simplest first."""
    if kind == "positive":
        return [x for x in POOL if x > 0]
    return [x for x in POOL if x >= 0 or kind != "nonnegative"]


@dataclass(frozen=True)
class Candidate:
    """Values for every size and every given."""

    sizes: Mapping[str, int]
    values: Mapping[str, Any]

    def with_value(self, name: str, value: Any) -> Candidate:
        """The candidate with another value for one given."""
        return replace(self, values={**self.values, name: value})


def array_of(shape: tuple[int, ...], entries: list[Any], kind: Any = object) -> Any:
    """An array of that shape with these entries in row-major order."""
    array = np.empty(shape, dtype=kind)
    array.reshape(-1)[:] = entries
    return array


def draw(
    givens: Mapping[str, Given], sizes: Mapping[str, int], random: Random, spread: int
) -> Candidate | None:
    """A candidate at these sizes with entries from the first ``spread`` numbers of the pool.

    None if some given has no value at these sizes (three different indices below two).
    """
    values = {name: _drawn(name, given, sizes, random, spread) for name, given in givens.items()}
    return None if None in [v for v in values.values() if v is None] else Candidate(sizes, values)


def _drawn(name: str, given: Given, sizes: Mapping[str, int], random: Random, spread: int) -> Any:
    shape = tuple(length_value(n, dict(sizes)) for n in given.shape)
    below = length_value(given.below, dict(sizes)) if given.below is not None else 0
    if given.kind == "function":
        family = sample_functions(name, given, sizes)
        return random.choice(family) if family else None
    if given.kind == "natural":
        return random.choice(NATURALS[:spread])
    if min(shape, default=0) < 0 or (given.kind in ("index", "index map") and below < 1):
        return None
    if given.kind == "index":
        return random.randrange(below)
    if given.kind in ("permutation", "injection", "index map"):
        return _map(given.kind, shape, below, random)
    if given.kind in ("orthogonal", "standard"):
        square = given.kind == "orthogonal"
        return rational_orthogonal(shape[0], random) if square else design(shape, random)
    count = int(np.prod(shape, dtype=int))
    if given.kind == "boolean":
        mask = array_of(shape, [random.random() < 0.5 for _ in range(count)], bool)
        for row in mask.reshape(-1, shape[-1]) if mask.ndim and mask.size else ():
            row[random.randrange(len(row))] = True
        return mask
    if given.kind not in NUMBERS:
        return None
    pool = pool_of(given.kind)[:spread]
    return array_of(shape, [random.choice(pool) for _ in range(count)])


def _map(kind: str, shape: tuple[int, ...], below: int, random: Random) -> Any:
    count = shape[0]
    if kind == "index map":
        return array_of(shape, [random.randrange(below) for _ in range(count)], np.int64)
    if count > below:
        return None
    chosen = random.sample(range(below), count)
    if chosen == sorted(chosen) and count > 1 and random.random() < 0.75:
        chosen = chosen[1:] + chosen[:1]
    return array_of(shape, chosen, np.int64)


def simpler(name: str, given: Given, value: Any, sizes: Mapping[str, int]) -> Iterator[Any]:
    """Simpler values for one given: big steps first, then one entry at a time."""
    if given.kind == "function":
        for function in sample_functions(name, given, sizes):
            if function.text == value.text:
                return
            yield function
    elif given.kind in ("index", "natural"):
        yield from range(value)
    elif given.kind in ("permutation", "injection", "index map"):
        assert given.below is not None
        yield from _simpler_maps(given.kind, value, length_value(given.below, dict(sizes)))
    elif given.kind == "boolean":
        yield from _entrywise(value, (True,))
    elif given.kind == "orthogonal":
        yield from _simpler_orthogonal(value)
    elif given.kind == "standard":
        plain = design(value.shape, Random(0))
        if plain is not None and _size(value) > _size(plain):
            yield plain
    else:
        yield from _entrywise(value, pool_of(given.kind))


def _simpler_maps(kind: str, value: Any, below: int) -> Iterator[Any]:
    """Maps that move fewer indices, the identity first."""
    if below ** len(value) > 64:
        return
    span = range(below)
    every = (
        product(span, repeat=len(value)) if kind == "index map" else permutations(span, len(value))
    )
    now = _moved(tuple(int(i) for i in value))
    for chosen in sorted(every, key=_moved):
        if _moved(chosen) >= now:
            return
        yield array_of(value.shape, list(chosen), np.int64)


def _simpler_orthogonal(value: Any) -> Iterator[Any]:
    one = array_of(value.shape, [Fraction(int(x)) for x in np.eye(len(value)).ravel()])
    first = one.copy()
    first[0, 0] = Fraction(-1)
    for matrix in (one, -one, first, one[::-1]):
        if _size(matrix) < _size(value):
            yield matrix


def _moved(chosen: tuple[int, ...]) -> tuple[Any, ...]:
    return (sum(i != k for k, i in enumerate(chosen)), chosen)


def _size(matrix: Any) -> tuple[Any, ...]:
    entries = list(matrix.ravel())
    distance = sum(x != (i == j) for (i, j), x in np.ndenumerate(matrix))
    return (sum(x.denominator for x in entries), distance, sum(x < 0 for x in entries))


def _entrywise(value: Any, pool: Any) -> Iterator[Any]:
    rank = {x: k for k, x in enumerate(pool)}
    worst = len(rank)
    ranks = [rank.get(x, worst) for x in value.ravel()]
    for k in range(min(2, worst)):
        if all(x >= k for x in ranks) and any(x > k for x in ranks):
            yield array_of(value.shape, [pool[k]] * value.size, value.dtype)
    for place in np.ndindex(*value.shape):
        for x in pool[: min(3, rank.get(value[place], worst))]:
            changed = value.copy()
            changed[place] = x
            yield changed

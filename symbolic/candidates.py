"""Small exact inputs for a statement, drawn at random and then simplified.

A candidate gives every size a number and every given a value: an object array of Fraction, an
array of indices or of truth values, an index, or a sample function.  Nothing here is trusted:
the conditions on a candidate are checked in :mod:`~attnproof.symbolic.admissible`.

A statement about an uninterpreted function is refuted by one function for which it fails.  The
sample functions are polynomials with integer coefficients, so their values are exact on exact
arguments.  Those for a trait have it by construction: they treat all rows of the first argument in
the same way.

Random numbers of mean 0 and covariance 1 are an array z of N outcomes by n numbers with
Σ_ω z_ωi = 0 and Σ_ω z_ωi z_ωj = N [i = j], called a design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from math import prod
from random import Random
from typing import Any

import numpy as np

from .concrete import length_value
from .givens import NUMBERS, SIGNED, Given

# Random numbers of mean 0 and covariance 1 on a few equally likely outcomes, exactly

# Five and eight outcomes, on which the numbers differ in size.
_FIVE = [
    [2, "-1/2", "-1/2", "-1/2", "-1/2"],
    [0, "3/2", "-3/2", "1/2", "-1/2"],
    [0, "1/2", "-1/2", "-3/2", "3/2"],
]
_EIGHT = [[2, -2, 0, 0, 0, 0, 0, 0]]


def outcomes(n: int) -> tuple[int, ...]:
    """Return numbers of outcomes for which there is a design of n numbers.

    >>> outcomes(1), outcomes(3)
    ((2, 5, 4), (4, 5, 8))
    """
    few = 2
    while few < n + 1:
        few *= 2
    return (few, *((5,) if n <= len(_FIVE) else ()), 2 * few)


def is_design(z: Any) -> bool:
    """Whether the numbers have mean 0 and covariance 1, exactly."""
    count, n = z.shape
    products = z.T @ z
    return bool((z.sum(0) == 0).all() and (products == count * np.eye(n, dtype=int)).all())


def design(shape: tuple[int, ...], random: Random) -> Any:
    """Return a design of shape (outcomes, numbers), or None if none is known."""
    count, n = shape
    columns = _columns(count, n, random)
    if columns is None:
        return None
    z = np.array([[Fraction(x) for x in column] for column in columns], dtype=object).T
    return z @ rational_orthogonal(n, random) if n > 1 and random.random() < 0.5 else z


def _columns(count: int, n: int, random: Random) -> Any:
    if count == 5 and n <= len(_FIVE):
        return _FIVE[:n]
    if count == 8 and n == 1 and random.random() < 0.5:
        return _EIGHT
    if count < n + 1 or count & (count - 1):
        return None
    chosen = (
        [1 + k for k in range(n)] if random.random() < 0.5 else (random.sample(range(1, count), n))
    )
    return [[(-1) ** (k & outcome).bit_count() for outcome in range(count)] for k in chosen]


def rational_orthogonal(n: int, random: Random) -> Any:
    """Return a signed permutation, possibly times a reflection x - 2v(v·x)/(v·v), exact."""
    order, signs = random.sample(range(n), n), [random.choice((1, -1)) for _ in range(n)]
    turned = _matrix(n, [signs[i] if order[i] == j else 0 for i in range(n) for j in range(n)])
    v = [random.choice((0, 1, 2)) for _ in range(n)]
    if not any(v) or random.random() < 0.5:
        return turned
    return turned @ reflection([Fraction(x) for x in v])


def reflection(v: list[Fraction]) -> Any:
    """Return the matrix 1 - 2 v vᵀ/(v·v), for v not 0."""
    n, length = len(v), sum(x * x for x in v)
    return _matrix(n, [(i == j) - 2 * v[i] * v[j] / length for i in range(n) for j in range(n)])


def _matrix(n: int, entries: list[Any]) -> Any:
    return np.array([Fraction(x) for x in entries], dtype=object).reshape(n, n)


# A small family of exact functions to replace an uninterpreted one

Rule = Callable[..., Any]


@dataclass(frozen=True)
class SampleFunction:
    """One function: its text, the axes it reads of each argument, and its rule.

    On object arrays with leading batch axes it is applied to each batch entry.
    """

    text: str
    core: tuple[int, ...]
    rule: Rule

    def __call__(self, *arrays: Any) -> Any:
        parts = [np.asarray(a, dtype=object) for a in arrays]
        batch = parts[0].shape[: parts[0].ndim - self.core[0]]
        if not batch:
            return _bare(self.rule(*parts))
        results = [
            np.asarray(self.rule(*(_rows(a, at) for a in parts)), dtype=object)
            for at in np.ndindex(*batch)
        ]
        return np.stack(results).reshape(*batch, *results[0].shape)

    def __repr__(self) -> str:
        return self.text


def _rows(array: Any, at: tuple[int, ...]) -> Any:
    return np.asarray(array[at], dtype=object)


def _bare(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and not value.shape else value


def sample_functions(
    name: str, given: Given, sizes: Mapping[str, int]
) -> tuple[SampleFunction, ...]:
    """Return the sample functions for a given function, the simplest first.

    >>> from attnproof.symbolic.givens import function
    >>> sample_functions("h", function(1, 1), {})[0]
    h(x, y) = Σᵢ xᵢ yᵢ
    """
    head = f"{name}({', '.join('xyzuvw'[: len(given.core)])}) = "
    if "invariant" in given.traits:
        alike = _SYMMETRIC if given.out == () else ()
        return tuple(SampleFunction(head + text, given.core, rule) for text, rule in alike)
    if given.out is None:
        rules = _SAME_SHAPE[:5] if given.traits else _SAME_SHAPE
    elif given.traits:
        rules = _rowwise(tuple(length_value(n, dict(sizes)) for n in given.out))
    elif given.out:
        rules = _shaped(tuple(length_value(n, dict(sizes)) for n in given.out))
    else:
        rules = _SCALAR if len(given.core) == 2 and len(set(given.core)) == 1 else _SCALAR[1:]
        rules = _NUMBER if given.core == (0,) else rules
    others = ", ".join("yzuvw"[: len(given.core) - 1])
    more = f" + the sum of {others}" if others and (given.out is None or given.traits) else ""
    return tuple(SampleFunction(head + text + more, given.core, rule) for text, rule in rules)


def _total(*arrays: Any) -> Any:
    return sum(np.asarray(a, dtype=object).sum() for a in arrays)


def _squares(*arrays: Any) -> Any:
    return _total(*(a * a for a in arrays))


def _weighted(*arrays: Any) -> Any:
    """Return Σ k·(k-th entry), counting from 1 through all arguments."""
    entries = [entry for a in arrays for entry in a.ravel()]
    return sum((k + 1) * entry for k, entry in enumerate(entries))


def _weighted_rows(first: Any, *rest: Any) -> Any:
    """Return Σ over the rows of (Σ k·(k-th entry))², plus the total of the other arguments."""
    rows = [np.asarray(row, dtype=object) for row in first]
    return _others(sum(_weighted(row) * _weighted(row) for row in rows), rest)


def _others(first: Any, rest: tuple[Any, ...]) -> Any:
    """Return the first argument plus the total of the others."""
    return first + _total(*rest) if rest else first


def _counted(x: Any) -> Any:
    """Return 1, 2, 3, ... along the first axis, in a shape that broadcasts against x."""
    shape = (-1, *(1,) * (x.ndim - 1))
    return np.arange(1, len(x) + 1).astype(object).reshape(shape)


def _product(*arrays: Any) -> Any:
    if len({a.shape for a in arrays}) > 1:
        return _weighted(*arrays)
    result = arrays[0]
    for a in arrays[1:]:
        result = result * a
    return np.asarray(result, dtype=object).sum()


_NUMBER: tuple[tuple[str, Rule], ...] = (
    ("x", lambda x: 1 * x),
    ("x²", lambda x: x * x),
    ("1 + x + x²", lambda x: 1 + x + x * x),
    ("1", lambda _: np.asarray(1, dtype=object)),
)

_SCALAR: tuple[tuple[str, Rule], ...] = (
    ("Σᵢ xᵢ yᵢ", _product),
    ("Σ k·(k-th entry)", _weighted),
    ("(Σ k·(k-th entry))²", lambda *a: _weighted(*a) * _weighted(*a)),
    ("the sum of the squared entries", _squares),
    ("1", lambda *a: 1 + 0 * _total(*a)),
)

_SYMMETRIC: tuple[tuple[str, Rule], ...] = (
    ("the sum of all entries", _total),
    ("the sum of the squared entries", _squares),
    ("the sum over the rows of (Σ k·(k-th entry of the row))²", _weighted_rows),
    ("1", lambda *a: 1 + 0 * _total(*a)),
)

# The first five treat all rows of the first argument in the same way: they are equivariant.
_SAME_SHAPE: tuple[tuple[str, Rule], ...] = (
    ("x entrywise squared", lambda x, *rest: _others(x * x, rest)),
    ("x", lambda x, *rest: _others(x, rest)),
    ("x plus the total of x", lambda x, *rest: _others(x + x.sum(), rest)),
    ("−x", lambda x, *rest: _others(-1 * x, rest)),
    ("1 + x entrywise squared", lambda x, *rest: _others(1 + x * x, rest)),
    ("k·(k-th row of x)", lambda x, *rest: _others(_counted(x) * x if x.ndim else x, rest)),
    ("k·(k-th row of x)²", lambda x, *rest: _others(_counted(x) * x * x if x.ndim else x, rest)),
)


def _shaped(shape: tuple[int, ...]) -> tuple[tuple[str, Rule], ...]:
    """Return functions with results of this shape, whose j-th entry is j times a number."""

    def fill(value: Any) -> Any:
        count = np.arange(1, int(np.prod(shape)) + 1).astype(object).reshape(shape)
        return count * value

    return (
        ("entry j is j·(the sum of all entries)", lambda *a: fill(_total(*a))),
        ("entry j is j·Σ k·(k-th entry)", lambda *a: fill(_weighted(*a))),
        ("entry j is j·(Σ k·(k-th entry))²", lambda *a: fill(_weighted(*a) * _weighted(*a))),
        ("entry j is j", lambda *a: fill(1 + 0 * _total(*a))),
    )


def _rowwise(shape: tuple[int, ...]) -> tuple[tuple[str, Rule], ...]:
    """Return equivariant functions with results of this shape: row i depends on row i alone."""

    def rule(of: Callable[[Any], Any]) -> Rule:
        def result(x: Any, *rest: Any) -> Any:
            if len(shape) < 1 or len(x) != shape[0]:
                raise ValueError(f"an equivariant function of {len(x)} rows has as many results")
            count = np.arange(1, int(np.prod(shape[1:])) + 1).astype(object).reshape(shape[1:])
            rows = [count * of(np.asarray(row, dtype=object)) for row in x]
            return _others(np.stack([np.asarray(row, dtype=object) for row in rows]), rest)

        return result

    return (
        ("entry (i, j) is j·(the sum of row i)", rule(lambda row: row.sum())),
        ("entry (i, j) is j·(the sum of the squares of row i)", rule(_squares)),
    )


# Candidates: drawn at random and simplified

POOL = (
    *map(Fraction, (0, 1, -1, 2)),
    Fraction(1, 2),
    Fraction(-2),
    Fraction(3),
    Fraction(-1, 2),
    Fraction(1, 3),
    Fraction(-3),
    Fraction(3, 2),
    Fraction(5),
)
NATURALS = (0, 1, 2, 3, 4, 6)
SMALLEST = max(*POOL, *map(Fraction, NATURALS))  # values near constants beyond this are tried
FARTHEST = 10**9  # and below this
BESIDE = (0, 1, -1)


def pool_of(kind: str) -> list[Fraction]:
    """Return the numbers tried for an entry of this kind, the simplest first."""
    if kind == "positive":
        return [x for x in POOL if x > 0]
    return [x for x in POOL if x >= 0 or kind != "nonnegative"]


@dataclass(frozen=True)
class Candidate:
    """Values for every size and every given."""

    sizes: Mapping[str, int]
    values: Mapping[str, Any]

    def with_value(self, name: str, value: Any) -> Candidate:
        """Return the candidate with another value for one given."""
        return replace(self, values={**self.values, name: value})


def array_of(shape: tuple[int, ...], entries: list[Any], kind: Any = object) -> Any:
    """Return an array of that shape with these entries in row-major order."""
    array = np.empty(shape, dtype=kind)
    array.reshape(-1)[:] = entries
    return array


def draw(
    givens: Mapping[str, Given],
    sizes: Mapping[str, int],
    random: Random,
    spread: int,
    near: Sequence[Fraction] = (),
) -> Candidate | None:
    """Return a candidate at these sizes with entries from the first ``spread`` numbers of the pool.

    About half of the single numbers and of the positions are from ``near``, if there are any.
    None if some given has no value at these sizes (three different indices below two).
    """
    values = {}
    for name, given in givens.items():
        value = _near(given, sizes, random, near) if near else None
        values[name] = _drawn(name, given, sizes, random, spread) if value is None else value
    return None if None in [v for v in values.values() if v is None] else Candidate(sizes, values)


def places_near(constants: Iterable[Fraction]) -> list[Fraction]:
    """Return the numbers beside constants at which a claim may change, and multiples of them."""
    parts = {k for c in constants for k in (abs(c), Fraction(c.denominator))}
    own = sorted(c for c in parts if SMALLEST < c < FARTHEST)
    return [sign * k * c + step for c in own for sign in (1, -1) for k in (1, 2) for step in BESIDE]


def _near(given: Given, sizes: Mapping[str, int], random: Random, near: Sequence[Fraction]) -> Any:
    """Return some of these numbers as a value of the given, or None."""
    if given.kind not in (*NUMBERS, "natural") or random.random() < 0.5:
        return None
    if given.kind in ("natural", *SIGNED):
        near = [x for x in near if x > 0 and (given.kind != "natural" or x.denominator == 1)]
    if given.kind == "natural":
        return int(random.choice(near)) if near else None
    if given.shape and given.kind != "position":
        return None
    shape, _ = given.shape_and_range(sizes)
    return array_of(shape, [random.choice(near) for _ in range(prod(shape))])


def _drawn(name: str, given: Given, sizes: Mapping[str, int], random: Random, spread: int) -> Any:
    shape, below = given.shape_and_range(sizes)
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
    """Yield simpler values for one given: large steps first, then one entry at a time."""
    if given.kind == "function":
        for function in sample_functions(name, given, sizes):
            if function.text == value.text:
                return
            yield function
    elif given.kind in ("index", "natural"):
        yield from range(value)
    elif given.kind in ("permutation", "injection", "index map"):
        yield from _simpler_maps(given.kind, value, given.shape_and_range(sizes)[1])
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
    """Yield maps that move fewer indices, the identity first."""
    if below ** len(value) > 64:
        return
    span = range(below)
    every = (
        product(span, repeat=len(value)) if kind == "index map" else permutations(span, len(value))
    )
    now = _by_moved_indices(tuple(int(i) for i in value))
    for chosen in sorted(every, key=_by_moved_indices):
        if _by_moved_indices(chosen) >= now:
            return
        yield array_of(value.shape, list(chosen), np.int64)


def _simpler_orthogonal(value: Any) -> Iterator[Any]:
    one = array_of(value.shape, [Fraction(int(x)) for x in np.eye(len(value)).ravel()])
    first = one.copy()
    first[0, 0] = Fraction(-1)
    for matrix in (one, -one, first, one[::-1]):
        if _size(matrix) < _size(value):
            yield matrix


def _by_moved_indices(chosen: tuple[int, ...]) -> tuple[Any, ...]:
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

"""Values of givens as arrays of SymPy expressions, at given sizes.

Real arrays are symbols.  What chooses indices is concrete, and all choices are taken in turn:
permutations, maps of indices, indices, masks, natural numbers from 0 to 3, and the two kinds of
orthogonal matrices, those that turn and those that also reflect.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, permutations, product
from math import factorial, prod
from typing import Any

import numpy as np
import sympy as sp

from ..concrete import lengths
from ..givens import Given
from ..scalars import number_of
from .array import Expressions, as_expressions, label, symbols

__all__ = ["MOST_NATURAL", "SymbolFunction", "choices", "count", "value"]

MOST_NATURAL = 3
"""Natural numbers are taken from 0 to this one."""

_ASSUMED: dict[str, dict[str, bool]] = {
    "real": {}, "angle": {}, "position": {}, "frequency": {},
    "positive": {"positive": True}, "nonnegative": {"nonnegative": True},
}  # fmt: skip


class SymbolFunction:
    """An uninterpreted function: each entry of its value is an undefined function of SymPy."""

    def __init__(self, name: str, given: Given) -> None:
        self.name, self.given = name, given

    def __call__(self, *values: Any) -> Expressions:
        arrays = [as_expressions(v) for v in values]
        core = self.given.core
        if len(arrays) != len(core):
            raise TypeError(f"{self.name} takes {len(core)} arrays and was given {len(arrays)}")
        batches = [a.entries.shape[: a.ndim - k] for a, k in zip(arrays, core, strict=True)]
        batch = np.broadcast_shapes(*batches)
        parts = [
            np.broadcast_to(a.entries, (*batch, *a.entries.shape[a.ndim - k :]))
            for a, k in zip(arrays, core, strict=True)
        ]
        own = arrays[0].entries.shape[arrays[0].ndim - core[0] :]
        if self.given.out is not None:
            own = tuple(int(number_of(n) or 0) for n in self.given.out)
        result = np.empty((*batch, *own), dtype=object)
        for at in np.ndindex(*batch):
            rows = [np.asarray(part[at], dtype=object) for part in parts]
            for place in np.ndindex(*own):
                result[at + place] = self._entry(rows, place)
        return Expressions(result)

    def _entry(self, read: list[Any], place: tuple[int, ...]) -> sp.Expr:
        """One entry of the value.

        Of an equivariant map, row i is a function of row i of what it reads first and of all
        these rows in no order: equal rows and equal bags are carried over by a permutation.
        """
        if "equivariant" in self.given.traits:
            i, place = place[0], place[1:]
            rows = sorted(read[0], key=lambda row: [sp.default_sort_key(e) for e in row.flat])
            read = [read[0][i], *rows, *read[1:]]
        called = sp.Function(label(self.name, *place), real=True)
        return called(*(e for part in read for e in np.asarray(part).flat))


def count(given: Given) -> int:
    """How many choices there are of a given; 1 where symbols stand for all."""
    shape, below = _lengths(given)
    match given.kind:
        case "natural":
            return MOST_NATURAL + 1
        case "index":
            return below
        case "permutation":
            return factorial(below)
        case "injection":
            return factorial(below) // factorial(below - prod(shape)) if below >= prod(shape) else 0
        case "index map":
            return int(below ** prod(shape))
        case "boolean":
            return int(2 ** prod(shape))
        case "orthogonal":
            return 2
    return 1


def choices(name: str, given: Given) -> Iterator[Any]:
    """The values of a given, all of them; raises ``NotImplementedError`` for what has none."""
    shape, below = _lengths(given)
    match given.kind:
        case "natural":
            yield from map(as_expressions, range(MOST_NATURAL + 1))
        case "index":
            yield from map(as_expressions, range(below))
        case "permutation":
            yield from (as_expressions(np.array(p)) for p in _mixed(permutations(range(below))))
        case "injection":
            yield from (
                as_expressions(np.array(p)) for p in _mixed(permutations(range(below), prod(shape)))
            )
        case "index map":
            for p in _mixed(product(range(below), repeat=prod(shape))):
                yield as_expressions(np.array(p))
        case "boolean":
            for p in _mixed(product((True, False), repeat=prod(shape))):
                yield as_expressions(np.array(p, dtype=bool).reshape(shape))
        case "orthogonal":
            yield from _orthogonal(name, shape[0])
        case "function":
            yield SymbolFunction(name, given)
        case _:
            yield value(name, given)


def value(name: str, given: Given) -> Any:
    """The symbols of a given; raises ``NotImplementedError`` where symbols cannot stand for it."""
    if given.kind == "function":
        return SymbolFunction(name, given)
    if given.kind not in _ASSUMED:
        raise NotImplementedError(f"{name} is {given.says or given.kind}")
    return symbols(name, *_lengths(given)[0], **_ASSUMED[given.kind])


def _lengths(given: Given) -> tuple[tuple[int, ...], int]:
    if any(n.op == "space" for n in given.shape):
        return (), 0
    below = 0 if given.below is None else max(0, int(number_of(given.below) or 0))
    return lengths(given), below


def _mixed(found: Iterator[Any]) -> list[Any]:
    """In an order in which the first few are unlike each other: not the identity first."""
    listed = list(islice(found, 1 << 12))
    return [*listed[1::2], *listed[::2]]


def _orthogonal(name: str, n: int) -> Iterator[Expressions]:
    """Products of rotations of two coordinates, one for each pair, without and with a reflection.

    Every orthogonal matrix is such a product (Givens).
    """
    turned = np.asarray(sp.eye(n).tolist(), dtype=object).reshape(n, n)
    for i, j in combinations(range(n), 2):
        angle = sp.Symbol(label(name, i, j), real=True)
        step = np.asarray(sp.eye(n).tolist(), dtype=object)
        step[i, i] = step[j, j] = sp.cos(angle)
        step[i, j], step[j, i] = -sp.sin(angle), sp.sin(angle)
        turned = turned @ step
    mirror = np.asarray(sp.eye(n).tolist(), dtype=object).reshape(n, n)
    mirror[0, 0] = sp.Integer(-1)
    yield Expressions(turned @ mirror)
    yield Expressions(turned)

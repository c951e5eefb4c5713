"""Sizes that cross each other in every order, and values by kind, for reading a term by its code.

The values need not obey the hypotheses of a statement: they are there to tell two readings of one
line of code apart.  So they hold zeros, ties and negative numbers, masks that hide everything or
nothing, permutations that move and that do not; whole multiples of 1/16, so that equal sums of
them are equal in floating point too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, log2
from typing import Any

import numpy as np

from .bodies import given_at
from .concrete import lengths
from .givens import Given
from .scalars import number_of

DEEPEST = 64  # natural numbers near those of the code are tried up to this
UNLIKE = ((1, 3), (2, 3), (1, 4))  # a smaller and a larger length, 1 among them


class NoValue(ValueError):
    """At these sizes a given has no value: an index below 0."""


def crossing(names: Iterable[str]) -> list[dict[str, int]]:
    """Eight or more choices of sizes: of any two, each is the smaller, the larger, and as large.

    All are 1 in the first and 2 in the second.  In the next ones the names are halved, by each
    binary digit of their number, into those that are small and those that are large, and the other
    way round, once with 1 for small and once with 2: any two differ in a digit.

    >>> crossing(["n", "m"])[:4]
    [{'n': 1, 'm': 1}, {'n': 2, 'm': 2}, {'n': 1, 'm': 3}, {'n': 3, 'm': 1}]
    """
    ordered = list(dict.fromkeys(names))
    found = [dict.fromkeys(ordered, 1), dict.fromkeys(ordered, 2)]
    digits = max(1, ceil(log2(max(len(ordered), 1))))
    for turn in range(max(2 * digits, len(UNLIKE))):
        low, high = UNLIKE[turn // digits % len(UNLIKE)]
        part = [k >> turn % digits & 1 for k in range(len(ordered))]
        for here, there in ((low, high), (high, low)):
            found.append({n: there if p else here for n, p in zip(ordered, part, strict=True)})
    return found


class Draw:
    """Values of givens at one choice of sizes, in one of several manners.

    ``turn`` chooses the manner: numbers of both signs, small ones with zeros and ties, positive
    ones, all equal, all 0, large ones; masks at random, all hidden, all seen, some rows hidden.
    ``near`` are numbers that the code was written with: they occur among the large ones.

    >>> from attnproof.symbolic.givens import boolean, sizes
    >>> (n,) = sizes("n")
    >>> Draw({"n": 2}, 1)("M", boolean(n, n)).any()
    np.False_
    """

    def __init__(self, sizes: Mapping[str, int], turn: int, near: Sequence[float] = ()) -> None:
        self.sizes, self.turn, self.near = dict(sizes), turn, near
        self.random = np.random.default_rng(turn)

    def __call__(self, name: str, given: Given) -> Any:
        """A value of this kind, as numpy has it; a function as a callable."""
        at = given_at(given, self.sizes)
        shape = lengths(at, self.sizes)
        below = int(number_of(at.below) or 0) if at.below is not None else 0
        if given.kind == "function":
            out = None if at.out is None else tuple(int(number_of(n) or 0) for n in at.out)
            return smooth(name, given.core, out, self.turn)
        if given.kind == "natural":
            near = [int(x) + k for x in self.near if 0 <= x <= DEEPEST for k in (0, 1)]
            if near and self.turn % 6 == 5:
                return np.asarray(self.random.choice(near))
            return np.asarray(self.random.integers(4) if self.turn % 3 else self.turn)
        if given.below is not None and below < 1:
            raise NoValue(f"{name} is below {below}")
        if given.kind in ("index", "index map"):
            return np.asarray(self.random.integers(below, size=shape))
        if given.kind in ("permutation", "injection"):
            several = -(-shape[0] // below)  # more indices than there are cannot be different
            return np.concatenate([self.random.permutation(below) for _ in range(several)])[
                : shape[0]
            ]
        if given.kind == "boolean":
            return self.mask(shape)
        return self.numbers(given.kind, shape)

    def mask(self, shape: tuple[int, ...]) -> Any:
        """Truth values."""
        found = np.asarray(self.random.random(shape) < 0.5)
        if self.turn % 4 == 1:
            found[...] = False
        if self.turn % 4 == 2:
            found[...] = True
        if self.turn % 4 == 3 and shape:
            found[..., self.random.integers(shape[-1])] = True
            found[: shape[0] // 2] = False
        return found

    def numbers(self, kind: str, shape: tuple[int, ...]) -> Any:
        """Real numbers; positive or at least 0 where the kind says so."""
        turn, positive = self.turn % 6, kind == "positive"
        if turn == 1:
            found = self.random.integers(-1, 2, size=shape) / 1
        elif turn == 2:
            found = self.random.integers(1, 48, size=shape) / 16
        elif turn == 3:
            found = np.full(shape, self.random.integers(-24, 24) / 16)
        elif turn == 4:
            found = 0 * self.random.integers(-1, 2, size=shape) / 1
        elif turn == 5:
            pool = [x + step for x in (0, *self.near) for step in (-1, 0, 0.5, 1, 7)]
            found = self.random.choice(pool, size=shape)
        else:
            found = self.random.integers(-40, 40, size=shape) / 16
        if kind in ("positive", "nonnegative"):
            found = np.abs(found) + positive * (found == 0)
        return np.asarray(found)


def smooth(
    name: str, core: tuple[int, ...], out: tuple[int, ...] | None, seed: int
) -> Callable[..., Any]:
    """A smooth function of arrays that reads the last ``core`` axes of each, as a given does.

    Entry o of the result is Σ_k sin(a_ok x_k + b_ok) over all entries x_k that it reads, with a
    and b of its own for every number of entries; ``out`` is the shape of a result, or None for
    that of what it reads of its first argument.
    """
    chosen: dict[tuple[int, int], Any] = {}

    def function(*arrays: Any) -> Any:
        parts = [np.asarray(a, dtype=float) for a in arrays]
        batch = np.broadcast_shapes(
            *(a.shape[: a.ndim - k] for a, k in zip(parts, core, strict=True))
        )
        shape = parts[0].shape[parts[0].ndim - core[0] :] if out is None else out
        flat = [
            np.broadcast_to(a, (*batch, *a.shape[a.ndim - k :])).reshape((*batch, -1))
            for a, k in zip(parts, core, strict=True)
        ]
        entries = np.concatenate(flat, axis=-1)
        count = (int(np.prod(shape, dtype=int)), entries.shape[-1])
        if count not in chosen:
            random = np.random.default_rng([seed, *count, *name.encode()])
            chosen[count] = random.uniform(0.5, 1.5, size=(2, *count))
        a, b = chosen[count]
        return np.sin(entries[..., None, :] * a + b).sum(-1).reshape((*batch, *shape))

    return function

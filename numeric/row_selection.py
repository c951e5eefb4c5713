"""Walk over terms and compute only the requested rows.

A selection of places on some axes is pushed down through the term: a matrix product needs those
rows of its left factor, a softmax whole rows, a gather other rows of its input.  So a few rows of
attention over n tokens need memory in proportion to n, and a term with an intermediate too large to
hold is computed in pieces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.evaluate import Evaluator
from attnproof.symbolic.terms import Term

ENTRIES = 1 << 20
"""The largest intermediate in memory at once, in entries."""
PIECEWISE_ENTRIES = 1 << 31
"""The largest intermediate that is evaluated in pieces, in entries."""

Lengths = tuple[int, ...]


class TooLarge(Exception):
    """Every entry of an intermediate is needed that is too large even in pieces."""


class Rows:
    """Places on one axis; two selections are equal only if they are the same object."""

    __slots__ = ("places",)

    def __init__(self, places: Tensor) -> None:
        self.places = places


Where = tuple[Rows | None, ...]


@contextmanager
def forgetting(*tables: dict[Any, Any]) -> Iterator[None]:
    """Remove, at the end, whatever was added to the tables."""
    before = [set(table) for table in tables]
    try:
        yield
    finally:
        for table, keys in zip(tables, before, strict=True):
            for key in table.keys() - keys:
                del table[key]


def ends_and_between(length: int, count: int, generator: torch.Generator) -> Tensor:
    """``count`` places of an axis, in order: both ends and random ones between."""
    inner = torch.randperm(length - 2, generator=generator)[: count - 2] + 1
    return torch.cat((torch.tensor([0, length - 1]), inner)).sort().values


def few_rows(lengths: Sequence[int], count: int, seed: int) -> Where:
    """``count`` places of the first axis that is longer, and all places of the others."""
    first = next((k for k, n in enumerate(lengths) if n > count), None)
    return tuple(
        Rows(ends_and_between(n, count, torch.Generator().manual_seed(seed)))
        if k == first
        else None
        for k, n in enumerate(lengths)
    )


# The array API functions that only move entries, for arrays of any kind


def repeats(places: Tensor) -> bool:
    """Whether a place occurs more than once.

    >>> repeats(torch.tensor([3, 0, 3])), repeats(torch.tensor([3, 0, 1]))
    (True, False)
    """
    return len(places) > 1 and int(torch.bincount(places).max()) > 1


class Moves(ABC):
    """Operations that only move entries of any array, by :meth:`moved` and :meth:`joined`."""

    spreads = False
    """Whether arrays carry the spread of independent errors, for which repeated entries matter."""

    def moved(self, x: Any, how: Callable[[Tensor], Tensor], *, again: bool = False) -> Any:
        """Move entries of a tensor or of an array of ours; ``again``: some occur more than once."""
        del again
        return how(x) if isinstance(x, Tensor) else x.moved(how)

    @abstractmethod
    def joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        """Combine several arrays into one."""

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """Repeat x to a shape."""
        size = torch.Size(shape)
        again = size.numel() != prod(x.shape)
        return self.moved(x, lambda a: torch.broadcast_to(a, size), again=again)

    def permute_dims(self, x: Any, axes: Sequence[int]) -> Any:
        """Permute the axes."""
        return self.moved(x, lambda a: a.permute(tuple(axes)))

    def expand_dims(self, x: Any, axis: int) -> Any:
        """Insert an axis of length 1."""
        return self.moved(x, lambda a: a.unsqueeze(axis))

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The same entries in row-major order."""
        return self.moved(x, lambda a: a.reshape(tuple(shape)))

    def take(self, x: Any, indices: Tensor, axis: int) -> Any:
        """The entries at some places of an axis."""
        again = self.spreads and repeats(indices)
        return self.moved(x, lambda a: a.index_select(axis, indices.to(a.device)), again=again)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenate arrays along an axis."""
        return self.joined(parts, lambda arrays: torch.cat(arrays, dim=axis))

    def stack(self, parts: Sequence[Any], axis: int) -> Any:
        """Stack arrays along a new axis."""
        return self.joined(parts, lambda arrays: torch.stack(arrays, dim=axis))


def always(_lengths: Sequence[Lengths]) -> bool:
    """Compute all rows at once."""
    return True


def never(_lengths: Sequence[Lengths]) -> bool:
    """Compute only the requested rows."""
    return False


def nothing(_lengths: Sequence[Lengths]) -> int:
    """No significant intermediate."""
    return 0


@dataclass(frozen=True)
class Replacement:
    """Another way to compute a named definition.

    ``row_axis`` gives, for each argument, the axis that corresponds to the rows of the result, or
    None; ``whole`` decides, from the shapes of the arguments, whether to compute all rows at once;
    ``held`` is the size of its largest intermediate, in entries.
    """

    compute: Callable[..., Any]
    row_axis: tuple[int | None, ...] = ()
    whole: Callable[[Sequence[Lengths]], bool] = always
    held: Callable[[Sequence[Lengths]], int] = nothing


class RowWalk(Evaluator, ABC):
    """Values of a term, whole or at some rows; the operations are in ``reading.RowReading``."""

    def __init__(
        self,
        xp: Any,
        sizes: Mapping[str, int],
        values: Mapping[str, Any],
        replaced: Mapping[str, Replacement] | None = None,
        entries: int = ENTRIES,
    ) -> None:
        super().__init__(xp, sizes, values)
        self.replaced = dict(replaced or {})
        self.entries = entries
        self.known_rows: dict[tuple[Term, Where], Any] = {}
        self.composed: dict[tuple[Term, Rows | None], Rows] = {}
        self.cut: dict[tuple[Rows, int], Sequence[Rows]] = {}
        self.passing: list[dict[Any, Any]] = [self.composed]
        """Tables that discard entries added while a term is evaluated in pieces."""
        self.partly: set[str] = set()
        """The replaced definitions that ran for the selected rows only."""
        self._peaks: dict[Term, tuple[int, tuple[Term, ...]]] = {}

    @abstractmethod
    def method(self, term: Term) -> Callable[[Term, Where], Any] | None:
        """Return the function for selected rows of a term, or None if only the whole exists."""

    def __call__(self, term: Term) -> Any:
        """The value of a whole term, in pieces if an intermediate would be too large."""
        if term not in self.known:
            axis = self._cut(term)
            value = self.whole(term) if axis is None else self._in_pieces(term, axis)
            self.keep(self.known, term, value, term)
        return self.known[term]

    def whole(self, term: Term) -> Any:
        """The value of a whole term, computed at once."""
        if term not in self.known:
            self.keep(self.known, term, self.compute(term), term)
        return self.known[term]

    def compute(self, term: Term) -> Any:
        """Compute the value of a term that is not cached yet."""
        method = self.method(term)
        return method(term, (None,) * term.ndim) if method else super().compute(term)

    def rows(self, term: Term, where: Where) -> Any:
        """The value at the selected places; an axis with None is whole."""
        if not any(where):
            return self(term)
        if term in self.known:
            return self.select(self.known[term], where)
        key = (term, where)
        if key not in self.known_rows:
            method = self.method(term)
            found = method(term, where) if method else self.select(self.whole(term), where)
            self.keep(self.known_rows, key, found, term)
        return self.known_rows[key]

    def kept_rows(self, term: Term, where: Where) -> Any:
        """As :meth:`rows`, cached for later calls, with its intermediates dropped."""
        if not any(where):
            return self(term)
        key = (term, where)
        if key not in self.known_rows:
            with forgetting(self.known_rows):
                found = self.rows(term, where)
            self.known_rows[key] = found
        return self.known_rows[key]

    def read(self, term: Term, where: Where) -> Any:
        """As :meth:`rows`, in as many pieces as memory requires; intermediates are dropped."""
        axis = self._along(where)
        if axis is None:
            return self(term)
        return self._joined(term, where, axis, self._pieces(term, where, axis))

    def pieces(self, term: Term, where: Where) -> list[Where]:
        """The selections of the pieces in which they are read."""
        axis = self._along(where)
        if axis is None:
            return [where]
        cut = self._pieces(term, where, axis)
        return [(*where[:axis], rows, *where[axis + 1 :]) for rows in cut]

    def _along(self, where: Where) -> int | None:
        return next((k for k, rows in enumerate(where) if rows is not None), None)

    def _pieces(self, term: Term, where: Where, axis: int) -> Sequence[Rows]:
        rows = where[axis]
        assert rows is not None
        share = self.peak(term) * len(rows.places) / max(1, self.length(term.shape[axis]))
        return self._cut_up(rows, self.parts(share, len(rows.places)))

    def parts(self, entries: float, rows: int) -> int:
        """The number of pieces for rows whose largest intermediate has this many entries."""
        return min(rows, max(1, ceil(entries / self.entries)))

    def _cut_up(self, rows: Rows, pieces: int) -> Sequence[Rows]:
        """Split a selection into pieces, always the same objects, so that caches apply."""
        if pieces == 1:
            return (rows,)
        if (rows, pieces) not in self.cut:
            self.cut[rows, pieces] = [*map(Rows, rows.places.chunk(pieces))]
        return self.cut[rows, pieces]

    def _joined(
        self,
        term: Term,
        where: Where,
        axis: int,
        pieces: Sequence[Rows],
        passing: Sequence[dict[Any, Any]] = (),
    ) -> Any:
        values = []
        for rows in pieces:
            with forgetting(self.known_rows, *passing):
                values.append(self.rows(term, (*where[:axis], rows, *where[axis + 1 :])))
        return values[0] if len(values) == 1 else self.xp.concat(values, axis=axis)

    def all_in_pieces(self, term: Term, where: Where, axis: int, entries: int) -> Any:
        """All places of an axis, in as many pieces as this number of entries requires."""
        length = self.length(term.shape[axis])
        pieces = torch.arange(length).chunk(min(length, ceil(entries / self.entries)))
        return self._joined(term, where, axis, [*map(Rows, pieces)], self.passing)

    def _in_pieces(self, term: Term, axis: int) -> Any:
        peak, length = self.peak(term), self.length(term.shape[axis])
        if peak > PIECEWISE_ENTRIES:
            raise TooLarge(
                f"all {length} rows of an intermediate with {peak:.1e} entries would be needed"
            )
        return self.all_in_pieces(term, (None,) * term.ndim, axis, peak)

    def _cut(self, term: Term) -> int | None:
        """The axis along which to compute a term in pieces, or None to compute it at once."""
        if term.op in ("var", "broadcast") or self.method(term) is None:
            return None
        lengths, (peak, axes) = self.lengths(term), self._peak(term)
        if peak <= self.entries or prod(lengths) * 4 > peak:
            return None
        replaced = self.replacement(term)
        if replaced is not None:
            whole = replaced.whole([self.lengths(arg) for arg in term.args[1:]])
            return None if whole or term.ndim < 2 else term.ndim - 2
        able = [k for k, n in enumerate(term.shape) if n in axes and lengths[k] > 1]
        return max(able, key=lambda k: lengths[k], default=None)

    def peak(self, term: Term) -> int:
        """The size of the largest intermediate; a replaced definition counts as one step."""
        return self._peak(term)[0]

    def _peak(self, term: Term) -> tuple[int, tuple[Term, ...]]:
        """The size of the largest intermediate, and its axes."""
        if term not in self._peaks:
            inner, replaced = term.args, self.replacement(term)
            own = 0 if term.op in ("var", "broadcast") else prod(self.lengths(term))
            options = [(own, term.shape)]
            if replaced:
                inner = term.args[1:]
                held = replaced.held([self.lengths(arg) for arg in inner])
                options.append((held, term.shape[:-1]))
            elif term.op in ("iterate", "tabulate"):
                inner = term.args[1:2]
            elif term.op == "call":
                options += [(prod(self.lengths(arg)), arg.shape) for arg in term.args]
            options += [self._peak(arg) for arg in inner]
            entries, axes = max(options, key=lambda option: option[0])
            if term.op == "pick" and term.args[0].shape[term.data] in axes:
                entries //= self.length(term.args[0].shape[term.data])
            self._peaks[term] = entries, axes
        return self._peaks[term]

    def select(self, value: Any, where: Where) -> Any:
        """Select places of a computed value."""
        for axis, rows in enumerate(where):
            if rows is not None:
                device = getattr(value, "value", value).device
                value = self.xp.take(value, rows.places.to(device), axis=axis)
        return value

    def counts(self, term: Term, where: Where) -> Lengths:
        """The lengths of the selected part."""
        return tuple(
            self.length(n) if rows is None else len(rows.places)
            for n, rows in zip(term.shape, where, strict=True)
        )

    def replacement(self, term: Term) -> Replacement | None:
        """The replacement of a named term, if there is one."""
        return self.replaced.get(term.data[0]) if term.op == "named" else None

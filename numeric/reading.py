"""Evaluate the operations of terms at selected rows, over any array module.

Literal numbers in a term remain Python numbers until they meet an array, as in written code, so
that they take the dtype of the array and never widen it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.evaluate import STRUCTURAL, sources
from attnproof.symbolic.meaning import ELEMENTWISE
from attnproof.symbolic.terms import Term, free, postorder

from .row_selection import Replacement, Rows, RowWalk, Where

# Elementwise operations on plain numbers

NUMBER_FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "cos": math.cos,
    "sin": math.sin,
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "abs": abs,
    "maximum": max,
}


def is_number(value: Any) -> bool:
    """Whether a value is a plain number, not an array."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _divided(op: str, a: Any, b: Any) -> Any:
    """⌊a/b⌋ or a − b·⌊a/b⌋ of integers; for b = 0 these are 0 and a."""
    if isinstance(b, int):
        quotient = a // b if b else 0 * a
    else:
        quotient = torch.where(b == 0, 0, a // torch.where(b == 0, 1, b))
    return quotient if op == "floor_divide" else a - b * quotient


def may_round(t: Term) -> bool:
    """Whether an operation on plain numbers rounds, and involves more than literals.

    That is the case for drawn or counted numbers, and for angles, whose sine may cancel.
    """
    rounds = t.op in ("exp", "log", "cos", "sin", "tanh", "sqrt")
    if not rounds and not (t.op == "power" and t.data < 0):
        return False
    counts = any(v.op == "index" or (v.op == "var" and v.data[1] == "natural") for v in free(t))
    return counts or any(part.op == "pi" for part in postorder(t))


INTEGER_LIMIT = 1 << 63


# The operations at selected rows


class RowReading(RowWalk):
    """A walk whose arrays a subclass provides: numbers in a dtype, or values with radii."""

    @abstractmethod
    def full(self, shape: Sequence[int], value: float) -> Any:
        """An array filled with one number."""

    @abstractmethod
    def numbers(self, integers: Tensor) -> Any:
        """Indices as numbers for computations."""

    @abstractmethod
    def truth(self, condition: Tensor) -> Any:
        """1 where true, 0 where false."""

    def method(self, term: Term) -> Callable[[Term, Where], Any] | None:
        """Return the function that computes selected rows of a term, or None."""
        if term.op in ("floor_divide", "remainder"):
            return self.rows_of_integers
        if term.op in ELEMENTWISE:
            return self.rows_elementwise
        if term.op in STRUCTURAL:
            return self.rows_structural
        return getattr(self, "rows_" + term.op.replace(" ", "_"), None)

    # numbers

    def constant(self, value: Any) -> Any:
        """A literal number, kept as a Python number: an integer, which is exact, or a float.

        Integers beyond 2⁶³ become floats, since no tensor can hold them.
        """
        whole = (
            isinstance(value, int | Fraction)
            and value == int(value)
            and -INTEGER_LIMIT < value < INTEGER_LIMIT
        )
        return int(value) if whole else float(value)

    def op_index(self, t: Term) -> Any:
        return int(self.values[str(t.data)])

    def op_inverse(self, t: Term) -> Any:
        return torch.argsort(self(t.args[0]))

    @abstractmethod
    def integers(self) -> RowReading:
        """The exact reading of indices and natural numbers, at the current values."""

    def integer(self, term: Term) -> int:
        return int(self.values[str(term.data)] if term.op == "index" else self.integers()(term))

    def array(self, term: Term, where: Where) -> Any:
        """The selected rows, as an array even if the value is a single number."""
        value = self.rows(term, where)
        return self.full(self.counts(term, where), value) if is_number(value) else value

    # elementwise

    def rows_elementwise(self, t: Term, where: Where) -> Any:
        operands = [self._operand(arg, where) for arg in t.args]
        if all(map(is_number, operands)) and may_round(t):
            operands = [self._data(x) for x in operands]
        if t.op == "where" and all(is_number(x) for x in operands[1:]):
            operands[1:] = [self.full(self.counts(t, where), x) for x in operands[1:]]
        result = self.elementwise(t.op, t.data, *operands)
        if is_number(result):
            return result if not t.ndim else self.full(self.counts(t, where), result)
        if result.ndim < t.ndim:
            return self.repeated(result, self.counts(t, where))
        return result

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        """Apply an operation to arrays and plain numbers together, in the order of the term."""
        plain = all(map(is_number, args))
        if op in ("floor_divide", "remainder"):
            return _divided(op, *args)
        if op == "indicator":
            return self.truth(args[0])
        if plain and op in NUMBER_FUNCTIONS:
            return NUMBER_FUNCTIONS[op](*args)
        if plain and op == "power" and data < 0 and args[0] == 0:
            return 0.0
        if op == "maximum" and is_number(args[0]):
            args = args[::-1]
        found = super().elementwise(op, data, *args)
        return torch.tensor(found) if isinstance(found, bool) else found

    def _data(self, x: float) -> Any:
        """A number that is more than a literal, rounded like other data."""
        return self.numbers(torch.tensor(x)) if isinstance(x, int) else self.full((), x)

    def rows_of_integers(self, t: Term, where: Where) -> Any:
        exact = self.integers().rows_elementwise(t, where)
        return self.numbers(exact) if isinstance(exact, Tensor) else exact

    def _operand(self, arg: Term, where: Where) -> Any:
        """Keep a repeated number plain, so that it takes the dtype of the other operand."""
        if arg.op == "broadcast" and not arg.args[0].ndim:
            return self(arg.args[0])
        return self.rows(arg, where)

    def repeated(self, value: Any, shape: Sequence[int]) -> Any:
        if isinstance(value, Tensor):
            return value.expand(tuple(shape))
        return super().repeated(value, shape)

    def rows_structural(self, t: Term, where: Where) -> Any:
        """Apply the operation to the required parts of its arguments, then select other axes.

        The required parts follow from the meaning of an entry (``sources``).
        """
        needed = [places or () for places in sources(t)]
        met = {k for places in needed for k in places}
        if t.op == "broadcast":  # a repeated axis gets only the selected length
            met.update(range(t.ndim))
        args = [
            self.array(arg, tuple(where[k] if isinstance(k, int) else None for k in places))
            for arg, places in zip(t.args, needed, strict=True)
        ]
        inner = tuple(rows if k in met else None for k, rows in enumerate(where))
        after = tuple(None if k in met else rows for k, rows in enumerate(where))
        value = STRUCTURAL[t.op](self, t, self.counts(t, inner), *args)
        return self.select(value, after)

    # shape

    def rows_named(self, t: Term, where: Where) -> Any:
        replaced = self.replacement(t)
        if replaced is None:
            return self.rows(t.args[0], where)
        args = t.args[1:]
        row = t.ndim - 2
        pushed: list[Where] = [(None,) * arg.ndim for arg in args]
        able = bool(replaced.row_axis) and args[0].ndim == t.ndim and row >= 0
        rows = where[row] if able and any(where) else None
        if rows is not None and not replaced.whole([self.lengths(arg) for arg in args]):
            for k, (arg, axis) in enumerate(zip(args, replaced.row_axis, strict=True)):
                if axis is not None and arg.shape[axis] is t.shape[row]:
                    spot = axis % arg.ndim
                    pushed[k] = tuple(rows if a == spot else None for a in range(arg.ndim))
            self.partly.add(str(t.data[0]))
            where = (*where[:row], None, *where[row + 1 :])
        elif any(where):
            return self._of_all_rows(t, row if able else None, replaced, where)
        values = [self.array(arg, at) for arg, at in zip(args, pushed, strict=True)]
        return self.select(replaced.compute(*values), where)

    def _of_all_rows(self, t: Term, row: int | None, code: Replacement, where: Where) -> Any:
        """Select places on axes other than rows, for all rows, in pieces that fit in memory."""
        entries = math.prod(self.lengths(t))
        small = row is None or entries <= self.entries
        if row is None or small or code.whole([self.lengths(arg) for arg in t.args[1:]]):
            return self.select(self.whole(t), where)
        return self.all_in_pieces(t, where, row, entries)

    def rows_pick(self, t: Term, where: Where) -> Any:
        axis: Any = t.data
        x, at = t.args
        number = self.integer(at)
        if x.op == "var":
            picked = self.array(x, (None,) * x.ndim)[(slice(None),) * axis + (number,)]
            return self.select(picked, where)
        one = Rows(torch.tensor([number]))
        value = self.array(x, (*where[:axis], one, *where[axis:]))
        return value[(slice(None),) * axis + (0,)]

    def rows_entry(self, t: Term, where: Where) -> Any:
        """One number of an array, at known places."""
        x, *at = t.args
        value = self.array(x, (None,) * x.ndim)
        return self.select(value[tuple(self.integer(place) for place in at)], where)

    def rows_slice(self, t: Term, where: Where) -> Any:
        axis, step = t.data
        start, rows = self.length(t.args[1]), where[axis]
        if rows is not None:
            moved = self._compose(t, rows, start + step * rows.places)
            return self.rows(t.args[0], (*where[:axis], moved, *where[axis + 1 :]))
        stop = start + step * self.length(t.shape[axis])
        return self.array(t.args[0], where)[(slice(None),) * axis + (slice(start, stop, step),)]

    def rows_gather(self, t: Term, where: Where) -> Any:
        axis: Any = t.data
        x, map_ = t.args
        moved = self.moved_rows(map_, where[axis])
        if where[axis] is None:
            return self.select(self.array(x, where), self._only((None,) * axis + (moved,), axis))
        return self.rows(x, (*where[:axis], moved, *where[axis + 1 :]))

    def places(self, map_: Term) -> Any:
        """An index map, whole."""
        return self(map_)

    def _compose(self, map_: Term, rows: Rows | None, places: Tensor) -> Rows:
        """Return one object per composition, so that what reads it twice is computed once."""
        return self.composed.setdefault((map_, rows), Rows(places))

    def moved_rows(self, map_: Term, rows: Rows | None) -> Rows:
        """The images of these rows, or of all, under an index map."""
        places = self.places(map_)
        moved = places if rows is None else places[rows.places.to(places.device)]
        return self._compose(map_, rows, moved)

    def _only(self, where: Where, axis: int) -> Where:
        return tuple(rows if k == axis else None for k, rows in enumerate(where))

    def rows_tabulate(self, t: Term, where: Where) -> Any:
        first, rest = where[0], where[1:]
        places = range(self.length(t.shape[0])) if first is None else first.places.tolist()

        def row_at(row: Term) -> Any:
            value = self.rows(row, rest)
            return (
                self._data(value)
                if type(value) is int and not row.ndim
                else (self.array(row, rest))
            )

        return self.xp.stack(self.slices(t, places, row_at), axis=0)

    # leaves and functions

    def rows_eye(self, t: Term, where: Where) -> Any:
        rows, columns = (
            torch.arange(n) if at is None else at.places.cpu()
            for n, at in zip(self.lengths(t), where, strict=True)
        )
        return self.truth(rows[:, None] == columns)

    def rows_arange(self, t: Term, where: Where) -> Any:
        (rows,) = where
        return self.numbers(torch.arange(self.length(t.args[0])) if rows is None else rows.places)

    def rows_isin(self, t: Term, where: Where) -> Any:
        return torch.isin(self._indices(t.args[0], where), self(t.args[1]))

    def _indices(self, term: Term, where: Where) -> Any:
        value = self.array(term, where)
        return getattr(value, "value", value).to(torch.int64)

    def rows_call(self, t: Term, where: Where) -> Any:
        name, batch, _ = t.data
        args = [self.rows(a, (*where[:batch], *(None,) * (a.ndim - batch))) for a in t.args]
        core = (*(None,) * batch, *where[batch:])
        return self.select(self.values[name](*args), core)

"""The reading of a term in certified numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from .certified_numbers import (
    FUNCTIONS,
    MINUS_INFINITY,
    Unclear,
    floor_divide,
    less,
    maximum,
    number,
    power,
    remainder,
    same,
    turn,
)
from .evaluate import Evaluator
from .terms import Term


class ReadsOutside(Unclear):
    """At these sizes a place outside of an axis is read: there is no value."""


def _each(function: Callable[..., Any], *args: Any) -> Any:
    """The function of every entry, as an object array (of one number: the number)."""
    return np.frompyfunc(function, len(args), 1)(*args)


_OF_TWO = {"maximum": maximum, "floor_divide": floor_divide, "remainder": remainder}
_TRUTHS = {"equal": same, "less": less, "less_equal": lambda x, y: not less(y, x)}
_OF_TRUTHS = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}


class Balls(Evaluator):
    """The value of a term in certified numbers, at the working precision of the moment.

    ``values`` are exact: object arrays of Fraction, integers for indices and natural numbers,
    integer arrays for maps of indices, arrays of truth values, functions on arrays of certified
    numbers.

    >>> from attnproof.symbolic.array import as_array
    >>> Balls({}, {})((as_array(1) / 3).term)
    1/3
    """

    def __init__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(np, sizes, {name: _loaded(value) for name, value in values.items()})

    def constant(self, value: Any) -> Any:
        return number(value)

    def integer(self, term: Term) -> int:
        value = number(self(term))
        if not isinstance(value, fmpq) or value.q != 1:
            raise Unclear(f"{term!r} counts something and is {value!r}")
        return int(value)

    def op_index(self, t: Term) -> Any:
        return number(super().op_index(t))

    def constant_range(self, n: int) -> Any:
        return _each(number, np.arange(n))

    def op_pi(self, t: Term) -> Any:  # noqa: ARG002
        return turn(fmpq(1))

    def op_minus_infinity(self, t: Term) -> Any:  # noqa: ARG002
        return MINUS_INFINITY

    def inside(self, t: Term, axis: int, places: Any) -> None:
        """Refuse a place outside of an axis: numpy would count from its end, or stop."""
        length = self.length(t.args[0].shape[axis])
        for at in np.ravel(places):
            if not 0 <= at < length:
                raise ReadsOutside(f"{t!r} reads place {at} of an axis of length {length}")

    def op_eye(self, t: Term) -> Any:
        return _each(number, np.eye(self.length(t.args[0]), dtype=int))

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        if op in _TRUTHS:
            return np.asarray(_each(_TRUTHS[op], *args), dtype=bool)[()]
        if op in _OF_TRUTHS:
            return _OF_TRUTHS[op](*args)
        if op in _OF_TWO:
            return _each(_OF_TWO[op], *args)
        if op == "power":
            return _each(lambda x: power(x, data), *args)
        if op == "where":
            return np.where(*args)[()]
        if op in FUNCTIONS:
            return _each(lambda x: FUNCTIONS[op](number(x)), *args)
        return super().elementwise(op, data, *args)

    def op_call(self, t: Term) -> Any:
        """A function of real numbers; it has no value at minus infinity."""
        for arg in t.args:
            if any(x is MINUS_INFINITY for x in np.asarray(self(arg), dtype=object).ravel()):
                raise Unclear(f"{arg!r} is minus infinity where a function reads it")
        return super().op_call(t)

    def op_isin(self, t: Term) -> Any:
        x, values = (self(arg) for arg in t.args)
        return np.asarray(_each(lambda i: any(same(i, j) for j in values), x), dtype=bool)[()]


def _loaded(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _each(lambda x: number(x) if isinstance(x, Fraction | int) else x, value)
    if isinstance(value, np.ndarray) and not value.shape:
        return value[()]
    return number(value) if type(value) is int else value

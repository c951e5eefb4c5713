"""The SymPy reading: a term at given small sizes, as an array of SymPy expressions.

This is what naive symbolic algebra works on, entry by entry.  Proofs do not use it: it is a
second opinion on what terms mean, and the other side of the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from attnproof.symbolic.evaluate import Evaluator
from attnproof.symbolic.terms import Term

_INDEX_KINDS = ("permutation", "injection", "index map", "boolean")
_SYMBOLS: dict[str, dict[str, bool]] = {
    "positive": {"positive": True},
    "nonnegative": {"nonnegative": True},
    "natural": {"integer": True, "nonnegative": True},
}


def explicit(term: Term, sizes: Mapping[str, int], values: Mapping[str, Any] | None = None) -> Any:
    """The entries of a term as SymPy expressions: an object array, or one expression.

    Named arrays without a value become arrays of real symbols ``Q_0_1``; those of positive kind
    are positive symbols, those of natural kind integers.  Depths, maps of indices, masks and
    indices need a value; a function without one stays uninterpreted.

    Raises ``KeyError`` with the name of a size, and ``ValueError`` with that of a map or mask,
    that has no value.

    >>> from attnproof.symbolic.givens import real
    >>> explicit((real(2).named("x") @ real(2).named("y")).term, {})
    x_0*y_0 + x_1*y_1
    """
    return Explicit(sizes, values or {})(term)


class Explicit(Evaluator):
    """Values of terms in SymPy expressions; sums are written out."""

    def __init__(self, sizes: Mapping[str, int], values: Mapping[str, Any]) -> None:
        super().__init__(np, sizes, {name: _loaded(value) for name, value in values.items()})

    def constant(self, value: Any) -> Any:
        return _number(value)

    def integer(self, term: Term) -> int:
        value = _number(self(term))
        if not value.is_Integer:
            raise ValueError(f"{term!r} counts something; give it a value, it is {value}")
        return int(value)

    def op_pi(self, t: Term) -> Any:  # noqa: ARG002
        return sp.pi

    def op_minus_infinity(self, t: Term) -> Any:  # noqa: ARG002
        return sp.S.NegativeInfinity

    def op_eye(self, t: Term) -> Any:
        return _each(_number, np.eye(self.length(t.args[0]), dtype=int))

    def op_var(self, t: Term) -> Any:
        name, kind = t.data
        if name in self.values:
            return self.values[name]
        if kind in _INDEX_KINDS:
            raise ValueError(f"{name} is a {kind}; give it a value, symbols cannot stand for it")
        shape = self.lengths(t)
        array = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            label = "_".join([name, *map(str, place)])
            array[place] = sp.Symbol(label, real=True, **_SYMBOLS.get(kind, {}))
        return array[()]

    def op_index(self, t: Term) -> Any:
        if t.data not in self.values:
            raise ValueError(f"{t.data} is an index; give it a value")
        return self.values[str(t.data)]

    def elementwise(self, op: str, data: Any, *args: Any) -> Any:
        if op == "power":
            return _each(lambda x: _number(x) ** data, *args)
        return (
            _each(_FUNCTIONS[op], *args)
            if op in _FUNCTIONS
            else (super().elementwise(op, data, *args))
        )

    def op_isin(self, t: Term) -> Any:
        x, values = (self(arg) for arg in t.args)
        return _each(lambda i: sp.true if int(i) in {int(j) for j in values} else sp.false, x)

    def op_call(self, t: Term) -> Any:
        name, batch, _ = t.data
        if name in self.values:
            return super().op_call(t)
        arrays = [np.asarray(self(arg), dtype=object) for arg in t.args]
        shape = self.lengths(t)
        result = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            rows = [np.asarray(a[place[:batch]], dtype=object).ravel() for a in arrays]
            read = [_number(x) for row in rows for x in row]
            result[place] = sp.Function("_".join([name, *map(str, place[batch:])]))(*read)
        return result[()]


def _number(x: Any) -> Any:
    if isinstance(x, Fraction):
        return sp.Rational(x.numerator, x.denominator)
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return sp.Integer(int(x))
    if isinstance(x, sp.Expr):
        return x
    raise TypeError(f"expected an exact number or an expression, got {type(x).__name__}: {x!r}")


def _truth(x: Any) -> Any:
    return (sp.true if x else sp.false) if isinstance(x, bool | np.bool_) else x


def _where(condition: Any, x: Any, y: Any) -> Any:
    held = _truth(condition)
    if held in (sp.true, sp.false):
        return _number(x if held == sp.true else y)
    return sp.Piecewise((_number(x), held), (_number(y), True))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": lambda x: sp.exp(_number(x)),
    "log": lambda x: sp.log(_number(x)),
    "cos": lambda x: sp.cos(_number(x)),
    "sin": lambda x: sp.sin(_number(x)),
    "tanh": lambda x: sp.tanh(_number(x)),
    "sqrt": lambda x: sp.sqrt(_number(x)),
    "abs": lambda x: sp.Abs(_number(x)),
    "maximum": lambda x, y: sp.Max(_number(x), _number(y)),
    "floor_divide": lambda x, y: sp.floor(_number(x) / _number(y)),
    "remainder": lambda x, y: sp.Mod(_number(x), _number(y)),
    "where": _where,
    "equal": lambda x, y: sp.Eq(_number(x), _number(y)),
    "less": lambda x, y: sp.Lt(_number(x), _number(y)),
    "less_equal": lambda x, y: sp.Le(_number(x), _number(y)),
    "and": lambda x, y: sp.And(_truth(x), _truth(y)),
    "or": lambda x, y: sp.Or(_truth(x), _truth(y)),
    "not": lambda x: sp.Not(_truth(x)),
}


def _each(function: Callable[..., Any], *args: Any) -> Any:
    return np.frompyfunc(function, len(args), 1)(*args)


def _loaded(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _each(lambda x: _number(x) if isinstance(x, Fraction | int) else x, value)[()]
    return value

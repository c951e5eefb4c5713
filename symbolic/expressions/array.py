"""Arrays of SymPy expressions, on which array code runs as on NumPy arrays, but exactly.

An entry is a SymPy expression or a SymPy truth value.  Numbers are exact: a float in the code,
such as the exponent 0.5, stands for its exact rational value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cmp_to_key, lru_cache, partialmethod
from itertools import accumulate
from numbers import Rational
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from ..array import Array
from ..evaluate import Evaluator

if TYPE_CHECKING:
    from .deriving import Sides


# Sides of conclusions printed by SymPy, as plain text and LaTeX

MAX_CHARACTERS = 160
"""The longest text of a side, in characters, that is still shown."""

Printed = tuple[str, str]


def short_sides(shown: Iterable[Sides]) -> Iterator[tuple[Sides, Printed, Printed]]:
    """Yield the conclusions with short sides, each side as plain text and LaTeX.

    Long sides are detected by their leaves and not printed at all, as this would be slow.
    """
    for side in shown:
        both = [np.asarray(part, dtype=object) for part in (side.left, side.right)]
        if any(map(_is_long, both)):
            continue
        left, right = map(_text, both)
        if max(len(left), len(right)) <= MAX_CHARACTERS:
            yield side, (left, _latex(both[0])), (right, _latex(both[1]))


def _is_long(entries: Any) -> bool:
    """Whether the leaves alone are longer than the longest text."""
    parts = (part for entry in entries.flat for part in sp.preorder_traversal(entry))
    leaves = (part for part in parts if not getattr(part, "args", ()))
    letters = accumulate(len(leaf.name) if leaf.is_Symbol else 1 for leaf in leaves)
    return any(count > MAX_CHARACTERS for count in letters)


def _text(entries: Any) -> str:
    return str(entries.tolist() if entries.ndim else entries.item())


def _latex(entries: Any) -> str:
    if not entries.ndim:
        return str(sp.latex(entries.item()))
    if entries.ndim > 2:
        return str(sp.latex(sp.Array(entries.tolist())))
    table = np.atleast_2d(entries).tolist()
    if any(not isinstance(one, sp.Expr) for row in table for one in row):  # truth values
        return str(sp.latex(sp.Array(table)))
    return str(sp.latex(sp.Matrix(table)))


def entry_lines(side: Sides) -> Iterator[str]:
    """Yield one line for each entry of both sides.

    >>> from .deriving import Sides
    >>> x = sp.Symbol("x")
    >>> list(entry_lines(Sides("", "=", np.asarray([x, x]), np.asarray(x))))
    ['[0]: x = x', '[1]: x = x']
    """
    left, right = np.broadcast_arrays(
        *(np.asarray(s, dtype=object) for s in (side.left, side.right))
    )
    for place in np.ndindex(*left.shape):
        where = f"[{', '.join(map(str, place))}]: " if place else ""
        yield f"{where}{left[place]} {side.relation} {right[place]}"


# Arrays of SymPy expressions


def _exactly(operation: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return an exact operator of lengths and numbers, and its reflected version."""

    def at(self: Length, other: Any, *, swap: bool = False) -> Any:
        if isinstance(other, bool) or not isinstance(other, int | float | Fraction):
            return NotImplemented
        x, y = entry(int(self)), entry(other)
        result = operation(y, x) if swap else operation(x, y)
        whole = isinstance(result, sp.Integer)
        return Length(int(result)) if whole else as_expressions(result)

    return partialmethod(at), partialmethod(at, swap=True)


@lru_cache(1 << 14)
def _times(x: sp.Expr, y: sp.Expr) -> sp.Expr:
    """Return x·y as SymPy does, but without slow checks that do not change the result.

    SymPy checks whether the factor of a 0 is infinite, and whether the exponent of an exp is 0.
    """
    if x is sp.S.Zero or y is sp.S.Zero:
        other = y if x is sp.S.Zero else x
        return x * y if _holds_infinity(other) else sp.S.Zero
    factors = (*_factors(x), *_factors(y))
    if any(isinstance(factor, sp.exp) for factor in factors):
        bases = [_base(factor) for factor in factors]
        if None not in bases and len(set(bases)) == len(bases):
            return sp.Mul(*sorted(factors, key=cmp_to_key(sp.Basic.compare)), evaluate=False)
    return x * y


_NOT_FINITE = tuple(map(type, (sp.oo, sp.S.NegativeInfinity, sp.zoo, sp.nan)))


@lru_cache(1 << 12)
def _holds_infinity(x: sp.Expr) -> bool:
    return bool(x.atoms(*_NOT_FINITE))


def _factors(x: sp.Expr) -> tuple[sp.Expr, ...]:
    return x.args if x.is_Mul else (x,)


def _base(factor: sp.Expr) -> sp.Expr | None:
    """Return the base of a factor that SymPy merges only with factors of this base, or None."""
    if isinstance(factor, sp.exp):
        return sp.E
    base = factor.base if factor.is_Pow and factor.exp.is_Integer else factor
    return base if base.is_Symbol or (base.is_Add and not base.is_number) else None


def _over(x: sp.Expr, y: sp.Expr) -> sp.Expr:
    return _times(x, _inverse(y)) if y.is_Add else x / y


@lru_cache(1 << 10)
def _inverse(y: sp.Expr) -> sp.Expr:
    """Return 1/y for a sum y, without SymPy's slow check whether one of its terms is infinite."""
    infinite = any(part in (sp.oo, sp.S.NegativeInfinity) for part in y.args)
    return sp.Pow(y, -1, evaluate=bool(infinite or y.is_number))


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return an elementwise operator of arrays of numbers, and its reflected version."""
    # the cases of a statement share most of their entries; True is not 1
    known = lru_cache(1 << 13, typed=True)(function)
    return (
        lambda self, other: _numbers(known, self, other),
        lambda self, other: _numbers(known, other, self),
    )


@lru_cache(1 << 13)
def _total(parts: tuple[sp.Expr, ...]) -> sp.Expr:
    return sp.Add(*parts)


class Length(int):
    """An axis length: an integer whose quotients and roots are exact.

    >>> Length(2) ** 0.5, (Length(3) - 1) / 4
    (Expressions(sqrt(2)), Expressions(1/2))
    """

    __add__, __radd__ = _exactly(lambda x, y: x + y)
    __sub__, __rsub__ = _exactly(lambda x, y: x - y)
    __mul__, __rmul__ = _exactly(lambda x, y: x * y)
    __truediv__, __rtruediv__ = _exactly(lambda x, y: x / y)
    __pow__, __rpow__ = _exactly(lambda x, y: x**y)

    def __neg__(self) -> Length:
        return Length(-int(self))


class Expressions:
    """An array whose entries are SymPy expressions, or SymPy truth values.

    It has the operators and indexing of the array API.  An array of one integer converts to int,
    and one whose truth value SymPy can decide to bool; others raise.

    >>> x = symbols("x", 2)
    >>> (x @ x).item()
    x_0**2 + x_1**2
    """

    __slots__ = ("entries",)
    __array_ufunc__ = None
    __array_priority__ = 1000
    device = None

    def __init__(self, entries: Any) -> None:
        self.entries: Any = np.asarray(entries, dtype=object)

    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        from . import namespace

        return namespace

    def __repr__(self) -> str:
        return f"Expressions({self.entries.tolist()!r})"

    @property
    def dtype(self) -> type:
        """``sp.Expr`` for numbers, ``Boolean`` for truth values."""
        kind: type = sp.Expr if all(isinstance(e, sp.Expr) for e in self.entries.flat) else Boolean
        return kind

    @property
    def shape(self) -> tuple[Length, ...]:
        """The lengths of the axes."""
        return tuple(map(Length, self.entries.shape))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.entries.ndim)

    @property
    def size(self) -> Length:
        """The number of entries."""
        return Length(self.entries.size)

    @property
    def mT(self) -> Expressions:
        """The array with its last two axes exchanged."""
        if self.ndim < 2:
            raise TypeError(f".mT needs two axes; the array has shape {self.shape}")
        return Expressions(np.swapaxes(self.entries, -1, -2))

    @property
    def T(self) -> Expressions:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise TypeError(f".T is for two axes; the array has shape {self.shape}")
        return self.mT

    def item(self) -> Any:
        """Return the entry of an array that has only one."""
        return self.entries.item()

    def reshape(self, *shape: Any) -> Expressions:
        """Return the same entries, in row-major order, in another shape."""
        from .namespace import reshape

        return reshape(self, shape[0] if isinstance(shape[0], tuple | list) else shape)

    # one entry

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, sp.Integer):
            raise TypeError(f"wanted an integer here, got {value}")
        return int(value)

    def __int__(self) -> int:
        return self.__index__()

    def __bool__(self) -> bool:
        value = self.item()
        if isinstance(value, sp.Expr) and value.is_number:
            value = sp.Ne(value, 0)
        if value not in (sp.true, sp.false):
            raise TypeError(
                f"whether {value} holds is not known; use where(condition, a, b), not if"
            )
        return bool(value)

    __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Expressions]:
        return (Expressions(row) for row in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    __add__, __radd__ = _binary(lambda x, y: x + y)
    __sub__, __rsub__ = _binary(lambda x, y: x - y)
    __mul__, __rmul__ = _binary(_times)
    __truediv__, __rtruediv__ = _binary(_over)
    __floordiv__, __rfloordiv__ = _binary(lambda x, y: sp.floor(x / y))
    __mod__, __rmod__ = _binary(lambda x, y: x - y * sp.floor(x / y))
    __pow__, __rpow__ = _binary(lambda x, y: x**y)
    __lt__, __gt__ = _binary(sp.Lt)[0], _binary(sp.Gt)[0]
    __le__, __ge__ = _binary(sp.Le)[0], _binary(sp.Ge)[0]

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __neg__(self) -> Any:
        return _numbers(lambda x: -x, self)

    def __pos__(self) -> Any:
        return _numbers(lambda x: x, self)

    def __abs__(self) -> Any:
        return _numbers(sp.Abs, self)

    def __eq__(self, other: object) -> Any:
        return each(sp.Eq, self, other)

    def __ne__(self, other: object) -> Any:
        return each(sp.Ne, self, other)

    def __and__(self, other: Any) -> Any:
        return _truths(sp.And, self, other)

    def __or__(self, other: Any) -> Any:
        return _truths(sp.Or, self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return _truths(sp.Not, self)

    def __getitem__(self, key: Any) -> Expressions:
        keys = key if isinstance(key, tuple) else (key,)
        return Expressions(self.entries[tuple(map(_index, keys))])


def symbols(name: str, *shape: int, **assumptions: bool) -> Expressions:
    """Return an array of real symbols; ``Q_0_1`` is the entry of Q in row 0 and column 1.

    >>> symbols("Q", 1, 2)
    Expressions([[Q_0_0, Q_0_1]])
    """
    entries = np.empty(shape, dtype=object)
    for place in np.ndindex(*shape):
        entries[place] = sp.Symbol(label(name, *place), real=True, **assumptions)
    return Expressions(entries)


def label(name: str, *place: int) -> str:
    """Return the name of an entry; entries of arrays with different names have different names.

    >>> label("x", 0, 1), label("x_0", 1)
    ('x_0_1', 'x_0__1')
    """
    own = f"{name}_" if re.search(r"_\d+_*$", name) else name
    return "_".join([own, *map(str, place)])


def entry(value: Any) -> Any:
    """Return a number or a truth value as a SymPy object; raise ``TypeError`` for anything else.

    >>> entry(0.5), entry(True), entry(float("-inf"))
    (1/2, True, -oo)
    """
    if isinstance(value, sp.Expr | Boolean):
        return value
    if isinstance(value, bool | np.bool_):
        return sp.true if value else sp.false
    if isinstance(value, Rational | np.integer):
        return sp.Rational(int(value.numerator), int(value.denominator))
    if isinstance(value, float | np.floating):
        if value in (float("inf"), float("-inf")):
            return sp.oo if value > 0 else -sp.oo
        exact = Fraction(float(value))
        return sp.Rational(exact.numerator, exact.denominator)
    raise TypeError(f"expected a number or a truth value, got {type(value).__name__}: {value!r}")


def as_expressions(value: Any) -> Expressions:
    """Return an array, a number or a NumPy array of numbers as an array of SymPy expressions."""
    if isinstance(value, Expressions):
        return value
    if isinstance(value, np.ndarray):
        return Expressions(np.asarray(np.frompyfunc(entry, 1, 1)(value), dtype=object))
    if isinstance(value, Array):  # a constant of the code, such as an identity matrix
        from . import namespace

        return as_expressions(Evaluator(namespace, {}, {})(value.term))
    return Expressions(entry(value))


def each(function: Callable[..., Any], *arrays: Any) -> Expressions:
    """Apply a function entry by entry, with broadcasting."""
    parts = [as_expressions(a).entries for a in arrays]
    return Expressions(np.frompyfunc(function, len(parts), 1)(*parts))


def _numbers(function: Callable[..., Any], *arrays: Any) -> Any:
    if not all(_is_supported(a) for a in arrays):
        return NotImplemented
    return each(function, *map(number_array, arrays))


def _truths(function: Callable[..., Any], *arrays: Any) -> Any:
    if not all(_is_supported(a) for a in arrays):
        return NotImplemented
    for a in map(as_expressions, arrays):
        if a.entries.size and a.dtype is not Boolean:
            raise TypeError(f"& | ~ need truth values, and one array holds numbers: {a!r}")
    return each(function, *arrays)


def number_array(value: Any) -> Expressions:
    """Return the value as an array of numbers; raise ``TypeError`` for truth values."""
    a = as_expressions(value)
    if a.dtype is Boolean:
        raise TypeError("the array holds truth values; write xp.astype(.., ..) to count with them")
    return a


def _is_supported(value: Any) -> bool:
    known = (
        Expressions,
        Array,
        sp.Expr,
        Boolean,
        np.ndarray,
        int,
        float,
        Fraction,
        np.number,
        np.bool_,
    )
    return isinstance(value, known)


def _product(a: Any, b: Any) -> Any:
    if not (_is_supported(a) and _is_supported(b)):
        return NotImplemented
    x, y = number_array(a), number_array(b)
    if not (x.ndim and y.ndim):
        raise TypeError(f"@ needs arrays with axes; the shapes are {x.shape} and {y.shape}")
    rows = x.entries if x.ndim > 1 else x.entries[None]
    columns = y.entries if y.ndim > 1 else y.entries[:, None]
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(f"@ sums over axes of one length; the shapes are {x.shape} and {y.shape}")
    # np.matmul continues after an exception in one entry (an interruption), then SystemError.
    products = np.frompyfunc(_times, 2, 1)(rows[..., None], columns[..., None, :, :])
    parts = np.moveaxis(products, -2, -1)
    sums = np.empty(parts.shape[:-1], dtype=object)
    for place in np.ndindex(*sums.shape):
        sums[place] = _total(tuple(parts[place]))
    return Expressions(sums[(..., *(slice(None) if a.ndim > 1 else 0 for a in (x, y)))])


def _index(key: Any) -> Any:
    if key is None or key is Ellipsis or isinstance(key, int):
        return key
    if isinstance(key, slice):
        ends = (key.start, key.stop, key.step)
        return slice(*(None if end is None else int(as_expressions(end)) for end in ends))
    array = as_expressions(key)
    if not all(isinstance(e, sp.Integer) for e in array.entries.flat):
        raise IndexError(f"an axis is indexed by whole numbers, not by {key!r}")
    return array.entries.astype(int)[()]

"""The table of readings, from names of graph operations to functions on terms, and its helpers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from attnproof.documents.verdict_line import Condition, Kind
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import Given, positive
from attnproof.symbolic.namespace import astype
from attnproof.symbolic.scalars import integer, is_truth, number_of
from attnproof.symbolic.terms import Term

from ... import aten
from ..angles import Angles

# Integers that wrap around at ordinary lengths and positions.
NARROW = (torch.int8, torch.uint8, torch.int16, torch.uint16)

# Masks are often filled with numbers this low, or with the least number of a dtype.
LOW = -1.0e4
MAX_RADICAND = 1 << 13  # bound on a recognised radicand and on its denominator
MAX_DIGITS, LONGEST_DECIMAL = 5, 10**13  # of a decimal that is read as written
MAX_BASE, MAX_DIVISOR = 10**7, 256  # of a number p/q·log N that is recognised
FULL_PRECISION = 2.0**-51


class Unread(Exception):
    """An operation, or a use of one, that has no reading as a term; the text names it."""


class NoTerm:
    """A stored tensor that has no term; an operation on it has no reading."""

    def __init__(self, target: str, value: Tensor) -> None:
        self.description = f"{target}, a {type(value).__name__}"
        if isinstance(value, Tensor):
            of = f"{value.dtype}, {tuple(value.shape)}"
            same = value.numel() and not value.is_complex() and not value.isfinite().any()
            told = f", {value.flatten()[0].item()} everywhere" if same else ""
            self.description = f"the table {target} of {of}{told}"

    def __getattr__(self, name: str) -> Any:
        raise TypeError(self.description)


@dataclass
class Notes:
    """Assumptions made while a graph was read, and symbolic givens introduced by the reading.

    ``unwritten`` maps memory that was not written to to zeros of its shape; ``constants`` has the
    values of numbers that are left symbolic.  ``prefix`` keeps the names of two graphs apart.

    ``patterns`` are stored constants that are known at any lengths (a triangle, a range), and
    ``stored`` the tables that are left symbolic, with their names and values; ``angles`` those of
    them whose rows are cosines and sines; ``rows`` maps functions that stand for the rows of a
    table to the table and the axis that is read.  ``views`` are tables with permuted or new axes:
    the table, and for each axis which of the table's it is, None for a new one.  ``of_rows`` has
    the functions of a row of which only the symmetry is known, by name.  ``longest`` bounds
    a length: the rows of a stored table are read that far.  ``infinite``: whether −∞ itself
    occurred.  ``masking``: whether the present value goes into a softmax and nowhere else, so that
    a low number there hides a key; ``filled``: whether one did.  ``recognises``: whether a number
    such as 8**-0.5 in float64 is read as the exact number it approximates, which is reported;
    otherwise it is left symbolic.  This is used for comparing two programs, for which also the rows
    of a stored table at known places are read as entries of that table.  ``undefined``: for each
    comparison with the code, whether the term had NaN where the code gives a number, as where it
    divides by 0 for a query that sees no key.  ``states``: for the numbers that earlier calls left
    in a table, which are others in each call, the name of that table.  ``quotients``: the sizes
    that stand for ⌊a/b⌋, by a and b.

    For the present call, ``ends`` maps the end of each write that is as long as an input to the
    length of its axis, and ``unseen`` has the names in keys and values that no query sees.
    """

    prefix: str = ""
    patterns: dict[Term, Callable[[tuple[Any, ...]], Array]] = field(default_factory=dict)
    stored: dict[Term, tuple[str, Any]] = field(default_factory=dict)
    angles: dict[Term, Angles] = field(default_factory=dict)
    rows: dict[str, tuple[Any, int | tuple[int, ...]]] = field(default_factory=dict)
    views: dict[Term, tuple[Array, tuple[int | None, ...]]] = field(default_factory=dict)

    readings: dict[Condition, None] = field(default_factory=dict)
    longest: dict[Term, int] = field(default_factory=dict)
    givens: dict[str, Given] = field(default_factory=dict)
    of_rows: dict[str, Callable[[torch.Tensor], torch.Tensor]] = field(default_factory=dict)
    unwritten: dict[str, Array] = field(default_factory=dict)
    constants: dict[str, float | torch.Tensor] = field(default_factory=dict)
    infinite: bool = False
    masking: bool = False
    filled: bool = False
    recognises: bool = False
    undefined: list[bool] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    quotients: dict[tuple[Term, int], Term] = field(default_factory=dict)
    ends: dict[Term, Term] = field(default_factory=dict)
    unseen: set[str] = field(default_factory=set)


_notes: ContextVar[Notes] = ContextVar("notes")


@contextmanager
def noted(into: Notes) -> Iterator[Notes]:
    """Collect notes in ``into`` within a context."""
    token = _notes.set(into)
    try:
        yield into
    finally:
        _notes.reset(token)


def notes() -> Notes:
    """Return the notes being collected."""
    return _notes.get()


def assume(text: str, kind: Kind = "where") -> None:
    """Note a condition under which the reading is right; it is printed with every proof."""
    notes().readings[Condition(text, kind)] = None


def noting() -> bool:
    """Whether notes are being collected."""
    return _notes.get(None) is not None


@dataclass(frozen=True)
class Pair:
    """An array of complex numbers, as real and imaginary parts."""

    real: Array
    imaginary: Array

    @property
    def axes(self) -> tuple[Any, ...]:
        """The axis lengths."""
        return self.real.axes

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.real.ndim


Reading = Callable[..., Any]
R = TypeVar("R", bound=Reading)
READINGS: dict[str, Reading] = {}
KINDS: dict[str, aten.Kind] = {}


def reads(*names: str, kind: aten.Kind = "rows") -> Callable[[R], R]:
    """Register the reading of operations by name, such as ``aten.add.Tensor``."""

    def wrap(reading: R) -> R:
        for name in names:
            if name in READINGS:
                raise ValueError(f"{name} has two readings")
            READINGS[name], KINDS[name] = reading, kind
        return reading

    return wrap


entrywise, moves = partial(reads, kind="entrywise"), partial(reads, kind="moves")


def constant(value: Any) -> Array:
    """Return a number as a term; a low one that only masks a softmax is read as −∞, on condition.

    The fill is in fact finite: a score as low would show through, and in a row with every key
    hidden it masks nothing.  With scores within a quarter of |fill|, no hidden key has weight above
    exp(−|fill|/2).
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, bool):
        return as_array(int(value)) == as_array(1)
    if isinstance(value, NoTerm):
        raise Unread(value.description)
    if isinstance(value, float) and value != value:
        raise Unread("the constant NaN")
    if isinstance(value, float) and value == float("inf"):
        raise Unread("the constant +inf")
    if value == float("-inf"):
        notes().infinite = True
        return as_array(float("-inf"))
    if isinstance(value, int | float) and value <= LOW and notes().masking:
        notes().filled = True
        assume(f"scores stay within ±{-value / 4:.3g} (the fill {value:.3g} is read as −∞)", "if")
        return as_array(float("-inf"))
    if not isinstance(value, int | float | Fraction):
        raise Unread(f"a constant of type {type(value).__name__}")
    if not is_plain(value):
        return as_array(_named(float(value)))
    return as_array(value)


def bound(value: Any) -> Array:
    """Return a number that others are compared with as a number; a low one is not read as −∞."""
    if isinstance(value, int | float) and float("-inf") < value <= LOW:
        return as_array(value) if is_plain(value) else as_array(_any_number(float(value)))
    return numeric(value)


def is_plain(value: float | Fraction) -> bool:
    """Whether a number is written out in terms: an integer, or a simple fraction."""
    exact = Fraction(value)
    return exact.denominator == 1 or (exact.denominator <= 64 and abs(exact.numerator) <= 4096)


def _named(value: float) -> Array:
    """Return a recognised root, logarithm or multiple of π exactly; any other number symbolically.

    Only if notes recognise numbers; the identification is then a condition of the result.  A short
    decimal is that decimal: its rounding to float64 is one like that of any operation.
    """
    if not notes().recognises:
        return _any_number(value)
    known = decimal(value) or recognised(value)
    if known is None:
        return _any_number(value)
    text, made = known
    if text:
        assume(f"{value!r} is {text}")
    return made


def decimal(value: float) -> tuple[str, Array] | None:
    """Return a short decimal, of which nothing is to be said, or None: 0.1 is no 1/√100.

    >>> decimal(0.1), decimal(0.1 + 0.2)
    (('', 1/10), None)
    """
    exact = Fraction(repr(value))
    short = exact.denominator < LONGEST_DECIMAL and len(str(exact.numerator)) <= MAX_DIGITS
    return ("", as_array(exact)) if short else None


def recognised(value: float) -> tuple[str, Array] | None:
    """Return which exact number a float64 is nearest to: a root, or a multiple of log 2 or of π.

    Roots are square roots, and fourth roots, with which queries and keys may each be scaled.

    >>> recognised(8**-0.5)[0], recognised(1.4426950408889634)[0], recognised(0.3000001)
    ('1/√8', '1/log 2', None)
    >>> recognised(8**-0.25)[0]
    '1/⁴√8'
    """
    size = abs(value)
    sign = "-" if value < 0 else ""
    for text, near, made in _numbers():
        for over, under in ((1, 1), (2, 1), (1, 2), (3, 1), (1, 3), (4, 1), (1, 4), (10, 1)):
            if size == near * over / under:
                factor = Fraction(over, under)
                told = text if factor == 1 else f"{factor}·{text}"
                found = made * factor
                return f"{sign}{told}", found if value > 0 else -found
    for root, times in (("√", 1), ("⁴√", 2)):
        square = Fraction(size ** (2 * times)).limit_denominator(MAX_RADICAND)
        if 0 < square < MAX_RADICAND and size in (
            _rooted(square, times),
            1 / _rooted(1 / square, times),
        ):
            parts = (
                as_array(1) if n == 1 else _root_of(n, times) for n in square.as_integer_ratio()
            )
            found = next(parts) / next(parts)
            top = f"{root}{square.numerator}" if square.numerator > 1 else "1"
            text = top if square.denominator == 1 else f"{top}/{root}{square.denominator}"
            return f"{sign}{text}", found if value > 0 else -found
    return _logarithm(value)


def _logarithm(value: float) -> tuple[str, Array] | None:
    """Return p/q·log N, or that divided by log 2, for a small p/q and an N that is no power.

    >>> _logarithm(-math.log(10000) / 8)[0], _logarithm(math.log2(500000))[0]
    ('-1/2·log 10', 'log 500000/log 2')
    """
    sign = "-" if value < 0 else ""
    for told, unit, made in (("", 1.0, as_array(1)), ("/log 2", math.log(2), 1 / _log_of(2))):
        size = abs(value) * unit
        for under in range(1, MAX_DIVISOR + 1):
            if size * under > math.log(MAX_BASE):
                break
            number = round(math.exp(size * under))
            if number > 2 and math.isclose(
                size * under, math.log(number), rel_tol=FULL_PRECISION, abs_tol=0.0
            ):
                root, times = _root_and_exponent(number)
                factor = Fraction(times, under)
                text = f"log {root}" if factor == 1 else f"{factor}·log {root}"
                found = as_array(xp.log(as_array(root)) * factor * made)
                return f"{sign}{text}{told}", found if value > 0 else -found
    return None


def _log_of(number: int) -> Array:
    """Return log N as k·log m for N = mᵏ, so that logarithms of powers are one term."""
    root, times = _root_and_exponent(number)
    return as_array(xp.log(as_array(root)) * times)


def _root_and_exponent(number: int) -> tuple[int, int]:
    """Return the least m with N = mᵏ, and k.

    >>> _root_and_exponent(10000), _root_and_exponent(500000), _root_and_exponent(2)
    ((10, 4), (500000, 1), (2, 1))
    """
    for times in range(number.bit_length(), 1, -1):
        root = round(number ** (1 / times))
        if root**times == number:
            return root, times
    return number, 1


def as_power(base: Array) -> tuple[Array, int]:
    """Return m and k for a whole number mᵏ in one of two programs; other arrays as they are."""
    known = number_of(base.term) if noting() and notes().recognises else None
    if known is None or known.denominator != 1 or not 1 < known <= MAX_BASE:
        return base, 1
    root, times = _root_and_exponent(int(known))
    return as_array(root), times


def _rooted(number: Fraction, times: int) -> float:
    """Take the square root of a number repeatedly."""
    found = float(number)
    for _ in range(times):
        found = math.sqrt(found)
    return found


def _root_of(n: int, times: int) -> Array:
    found: Any = as_array(n)
    for _ in range(times):
        found = xp.sqrt(found)
    return as_array(found)


def _numbers() -> tuple[tuple[str, float, Array], ...]:
    log2 = xp.log(as_array(2))
    return (
        ("log 2", math.log(2), log2),
        ("1/log 2", 1 / math.log(2), 1 / log2),
        ("π", math.pi, as_array(xp.pi)),
        ("1/π", 1 / math.pi, 1 / as_array(xp.pi)),
    )


def _any_number(value: float) -> Array:
    """Return a number such as 8**-0.5 in float64 as a symbol of which only the sign is known.

    Results hold for any value, and equal numbers share a symbol.
    """
    name = f"{abs(value)!r}"
    notes().constants[name] = abs(value)
    given = notes().givens.setdefault(name, positive())
    found: Array = given.named(name)
    return found if value > 0 else -found


def numeric(value: Any) -> Array:
    """Return a value with truth values as 1 and 0."""
    if isinstance(value, bool):
        return as_array(int(value))
    made = constant(value)
    return astype(made, float) if is_truth(made.term) else made


def alike(values: Sequence[Any]) -> list[Array]:
    """Return all values as truth values if all are, else as numbers."""
    arrays = [constant(x) for x in values]
    return arrays if all(is_truth(a.term) for a in arrays) else [numeric(a) for a in arrays]


def along(a: Array, axis: int, ndim: int) -> Array:
    """Place a one-dimensional array along one axis of an array with ``ndim`` axes."""
    return as_array(a[tuple(slice(None) if k == axis else None for k in range(ndim))])


def sized(value: Any) -> Any:
    """Return an axis length or index of the graph as a Python integer or a term."""
    if isinstance(value, Array | Term):
        number = number_of(as_array(value).term)
        return int(number) if number is not None else as_array(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unread(f"an axis length of type {type(value).__name__}")
    return value


def length_of(a: Array) -> Any:
    """Return arithmetic on lengths as a length: an integer, or a term in normal form."""
    return sized(Array(integer(a.term)))


def whole(value: Any, what: str) -> int:
    """Return a Python integer."""
    found = sized(value)
    if not isinstance(found, int):
        raise Unread(f"{what} that is {found!r} and no literal number")
    return found


def opaque(name: str, x: Array) -> Array:
    """Apply an uninterpreted function entry by entry: what holds for all functions holds for it."""
    if not x.term.finite and name not in BOUNDED:
        raise Unread(f"−∞ in a function, {name}, of which nothing is known")
    says = f"torch's {name}, of which nothing is used"
    found: Array = standing(name, Given("function", core=(0,), out=(), says=says))(x)
    return found


BOUNDED = ("erf", "softplus")  # these map −∞ to a number


def standing(name: str, given: Given) -> Any:
    """Return a given under its name, and note it."""
    notes().givens[name] = given
    return given.named(name)

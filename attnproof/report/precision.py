"""Arithmetic in a short number format: arrays that round after every operation.

numpy has float16 and float32 but no bfloat16.  Here all three are arrays of one kind: an operation
is computed as numpy does it, and its result rounded to the nearest number of the format, with ties
to even.  Products and sums of many terms are rounded once, at their end, like hardware that
accumulates in float32.

A format may keep positions, frequencies and angles wider than the data, as rotary code does:
results that involve such an array are as wide, while cosines, sines and products of matrices are
stored as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]
WIDE_KINDS = ("angle", "position", "frequency")
STORED = ("cos", "sin", "matmul")  # operations whose results are data


def brain(values: Any) -> Numbers:
    """Return the values rounded to bfloat16, 8 bits of precision, kept as float32.

    They are rounded to float32 first, as in torch.

    >>> brain([1.00390625, 1.01171875, 257.0]).tolist()  # ties go to the even neighbour
    [1.0, 1.015625, 256.0]
    """
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    # Half of the last kept bit, less one if that bit is even: a tie then stays below it.
    up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    with np.errstate(over="ignore"):
        kept = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(single), single, kept).reshape(np.shape(values))


class Rounded(np.ndarray[Any, np.dtype[Any]]):
    """An array whose operations round; a subclass defines the format."""

    __array_priority__ = 100.0
    dtype_name: ClassVar[str] = ""
    stored: ClassVar[type[Rounded] | None] = None  # for a wide array: the kind of the data

    @classmethod
    def wide(cls) -> type[Rounded]:
        """Return the kind of positions, frequencies and angles."""
        return cls

    @staticmethod
    def nearest(values: Any) -> Numbers:
        """Return the values in the format."""
        raise NotImplementedError

    @classmethod
    def of(cls, values: Any) -> Any:
        """Return real values rounded, as an array of this kind; booleans and integers unchanged."""
        plain = np.asarray(values)
        return cls.nearest(plain).view(cls) if plain.dtype.kind == "f" else plain

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute on plain arrays, then round."""
        options.pop("out", None)  # in-place results become new arrays
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(options))
        return _meeting(type(self), inputs, ufunc.__name__).every(result)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Do the same for functions that are not element-wise."""
        del types
        kind = _meeting(type(self), (*args, *options.values()), function.__name__)
        return kind.every(function(*_plain(args), **_plain(options)))

    def __getitem__(self, key: Any) -> Any:
        """Return an entry as an array of this kind, so that it goes on rounding."""
        return self.of(self.view(np.ndarray)[_plain(key)])

    @classmethod
    def every(cls, result: Any) -> Any:
        """Return a result of numpy with each of its arrays rounded."""
        if isinstance(result, tuple | list):
            return type(result)(cls.every(part) for part in result)
        return cls.of(result) if isinstance(result, np.ndarray | np.generic) else result


def _meeting(kind: type[Rounded], operands: Any, operation: str) -> type[Rounded]:
    """Return the kind of a result: wide if some operand is a wide array, or one of integers.

    A single number takes the kind of the arrays that it is combined with.
    """
    data = kind.stored or kind
    if data.wide() is data:
        return kind
    if operation in STORED:
        return data
    met = list(_arrays(operands))
    arrays = [one for one in met if one.ndim] or met
    wide = any(isinstance(one, data.wide()) or one.dtype.kind in "iu" for one in arrays)
    return data.wide() if wide else data


def _arrays(operands: Any) -> Iterator[Numbers]:
    for one in operands:
        if isinstance(one, tuple | list):
            yield from _arrays(one)
        elif isinstance(one, np.ndarray):
            yield one


def _plain(value: Any) -> Any:
    """Return the same with plain arrays in place of those that round."""
    if isinstance(value, Rounded):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(_plain(part) for part in value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value


class Single(Rounded):
    """float32: 24 bits of precision."""

    dtype_name = "float32"

    @classmethod
    def nearest(cls, values: Any) -> Numbers:
        """Return the values in this dtype of numpy."""
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=cls.dtype_name)


class Half(Single):
    """float16: 11 bits of precision, up to 65504."""

    dtype_name = "float16"


class Brain(Rounded):
    """bfloat16: 8 bits of precision, with the range of float32."""

    dtype_name = "bfloat16"

    @staticmethod
    def nearest(values: Any) -> Numbers:
        """Return the values in bfloat16, kept as float32."""
        return brain(values)


class WideAngles(Brain):
    """bfloat16 data, with positions, frequencies and angles in float32."""

    @classmethod
    def wide(cls) -> type[Rounded]:
        """Return the float32 kind."""
        return Angle


class Angle(Single):
    """A position, frequency or angle beside data in bfloat16."""

    stored = WideAngles


FORMATS: dict[str, type[Rounded]] = {
    "float32": Single,
    "bfloat16": Brain,
    "float16": Half,
    "bfloat16 with float32 angles": WideAngles,
}


def wide_kind(kind: str) -> bool:
    """Whether a given of this kind is kept as wide as angles."""
    return kind in WIDE_KINDS


def encoding_in(numeric: Any, form: type[Rounded]) -> Any:
    """Return an encoding with numbers that computes in a format, its parameters rounded to it."""
    given = type(numeric).declared()
    rounded = {
        name: _parameter(value, form.wide() if wide_kind(given[name].kind) else form)
        for name, value in numeric.parameters.items()
    }
    made = type(numeric)(**rounded)
    made.width = numeric.width
    return made


def _parameter(value: Any, form: type[Rounded]) -> Any:
    if callable(value):
        return _rounding(value, form)
    return form.of(value) if isinstance(value, float | np.ndarray | np.floating) else value


def _rounding(function: Callable[..., Any], form: type[Rounded]) -> Callable[..., Any]:
    """Return a function whose results are rounded."""

    def rounded(*values: Any) -> Any:
        return form.of(function(*map(_plain, values)))

    return rounded

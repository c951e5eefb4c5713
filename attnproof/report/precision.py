"""Arithmetic in a short number format: arrays that round after every operation.

numpy has float16 and float32 and no bfloat16.  Here all three are arrays of one kind: an operation
is computed as numpy does it, and its result rounded to the format, to the nearest number, and of
two that are equally near to the one whose last bit is 0.  Products and sums of many terms round
once at their end, as hardware does that accumulates in float32.

A format may keep positions, frequencies and angles wider than the data, as rotary code does: what
meets such an array is as wide, and cosines, sines and products of matrices are stored as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

Numbers = np.ndarray[Any, np.dtype[Any]]
WIDE_KINDS = ("angle", "position", "frequency")
STORED = ("cos", "sin", "matmul")  # operations whose results are data


def brain(values: Any) -> Numbers:
    """Rounded to bfloat16, 8 bits of precision, kept as float32.

    By way of float32, as torch does it.

    >>> brain([1.00390625, 1.01171875, 257.0]).tolist()  # ties go to the even neighbour
    [1.0, 1.015625, 256.0]
    """
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    # Half of the last kept place, less one where that place is even: a tie then stays below it.
    up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    with np.errstate(over="ignore"):
        kept = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(single), single, kept).reshape(np.shape(values))


class Rounded(np.ndarray[Any, np.dtype[Any]]):
    """An array whose operations round; a subclass says to what."""

    __array_priority__ = 100.0
    dtype_name: ClassVar[str] = ""
    stored: ClassVar[type[Rounded] | None] = None  # of a wide array, the kind of the data

    @classmethod
    def wide(cls) -> type[Rounded]:
        """The kind of positions, frequencies and angles."""
        return cls

    @staticmethod
    def nearest(values: Any) -> Numbers:
        """The values in the format."""
        raise NotImplementedError

    @classmethod
    def of(cls, values: Any) -> Any:
        """Real values rounded, as an array of this kind; truth values and integers as they are."""
        plain = np.asarray(values)
        return cls.nearest(plain).view(cls) if plain.dtype.kind == "f" else plain

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute on plain arrays, then round."""
        options.pop("out", None)  # what an operation would write in place is made anew
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(options))
        return _meeting(type(self), inputs, ufunc.__name__).every(result)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """The same for functions that are not an element-wise operation."""
        del types
        kind = _meeting(type(self), (*args, *options.values()), function.__name__)
        return kind.every(function(*_plain(args), **_plain(options)))

    def __getitem__(self, key: Any) -> Any:
        """An entry is an array of this kind as well, so that it goes on rounding."""
        return self.of(self.view(np.ndarray)[_plain(key)])

    @classmethod
    def every(cls, result: Any) -> Any:
        """A result of numpy rounded: each array of it."""
        if isinstance(result, tuple | list):
            return type(result)(cls.every(part) for part in result)
        return cls.of(result) if isinstance(result, np.ndarray | np.generic) else result


def _meeting(kind: type[Rounded], operands: Any, operation: str) -> type[Rounded]:
    """The kind of a result: wide if an array among its operands is, or one of whole numbers.

    A single number takes the kind of the arrays that it meets.
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
    """The same without arrays that round."""
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
        """The values in this dtype of numpy's."""
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
        """The values in bfloat16, kept as float32."""
        return brain(values)


class WideAngles(Brain):
    """bfloat16 data, with positions, frequencies and angles in float32."""

    @classmethod
    def wide(cls) -> type[Rounded]:
        """float32."""
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
    """An encoding with numbers, computing in a format: its parameters are rounded to it."""
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
    """A function, its results rounded."""

    def rounded(*values: Any) -> Any:
        return form.of(function(*map(_plain, values)))

    return rounded

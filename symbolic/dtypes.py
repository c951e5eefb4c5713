"""The dtypes of symbolic arrays: real numbers, whole numbers, truth values.

A term has no bits.  Its dtype says what it holds by its form, so that ``xp.astype(mask, x.dtype)``
and ``xp.zeros(shape, dtype=x.dtype)`` are lines that run on symbols, numpy and torch alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .scalars import ZERO, boolean, is_truth, is_whole, unary
from .terms import Term, make


@dataclass(frozen=True)
class DType:
    """A dtype by the array API's name: ``float64``, ``int64`` or ``bool``."""

    name: str

    def __repr__(self) -> str:
        return self.name


KINDS = {
    "float": "float64", "double": "float64", "float64": "float64", "float32": "float64",
    "int": "int64", "long": "int64", "int64": "int64", "int32": "int64",
    "bool": "bool", "bool_": "bool",
}  # fmt: skip
DTYPES = {name: DType(name) for name in ("float64", "float32", "int64", "int32", "bool")}


def dtype_of(t: Term) -> DType:
    """What an array holds by its form.

    >>> from attnproof.symbolic.scalars import num
    >>> dtype_of(num(2))
    int64
    """
    return DTYPES["bool" if is_truth(t) else "int64" if is_whole(t) else "float64"]


def kind_of(dtype: Any) -> str:
    """float64, int64 or bool, for a dtype of ours, of Python, numpy or torch.

    Raises ``TypeError`` for one that rounds or wraps round: a term does neither.
    """
    shown = dtype.name if isinstance(dtype, DType) else getattr(dtype, "__name__", str(dtype))
    kind = KINDS.get(str(shown).removeprefix("torch."))
    if kind is None:
        raise TypeError(
            f"{dtype!r} is no dtype of symbolic arrays: they hold real numbers (float64), whole "
            "numbers (int64) and truth values (bool), and neither round nor wrap round; take "
            "x.dtype of an array at hand"
        )
    return kind


def cast(t: Term, dtype: Any) -> Term:
    """The array in a dtype: truth values as 1 and 0, numbers as whether they are not 0.

    Raises ``TypeError`` for whole numbers made of numbers that are not whole by their form.
    """
    kind = kind_of(dtype)
    if kind == "bool":
        zeros = make("broadcast", (ZERO,), shape=t.shape) if t.shape else ZERO
        return t if is_truth(t) else boolean("not", boolean("equal", t, zeros))
    if is_truth(t):
        return unary("indicator", t)
    if kind == "int64" and not is_whole(t):
        raise TypeError(
            f"whole numbers made of {t!r}, which is not whole by its form: a conversion cuts "
            "toward 0; write xp.floor(x), or xp.sign(x) * xp.floor(xp.abs(x))"
        )
    return t

"""The dtypes of symbolic arrays: real numbers, whole numbers, truth values.

A term has no bits.  Its dtype describes its form, so that ``xp.astype(mask, x.dtype)`` and
``xp.zeros(shape, dtype=x.dtype)`` run on symbolic, NumPy and torch arrays.
"""

from __future__ import annotations

from typing import Any

from .refusals import record_user_request
from .scalars import ZERO, boolean, is_truth, is_whole, unary
from .terms import Term, make


class DType:
    """A dtype with its name in the array API: ``float64``, ``int64`` or ``bool``.

    Code that asks which dtype an array has may do something else on integers, on which a law that
    is about real numbers says nothing; it may pass a dtype on.
    """

    __slots__ = ("form",)

    def __init__(self, form: str) -> None:
        self.form = form

    @property
    def name(self) -> str:
        """Its name in the array API."""
        record_user_request("the name of a dtype")
        return self.form

    def __eq__(self, other: object) -> bool:
        record_user_request("whether two dtypes are equal")
        return self is other or (isinstance(other, DType) and self.form == other.form)

    def __hash__(self) -> int:
        record_user_request("the hash of a dtype, which dicts and sets use")
        return hash(self.form)

    def __repr__(self) -> str:
        record_user_request("the text of a dtype (str, repr, format, print)")
        return self.form


KINDS = {
    "float": "float64",
    "double": "float64",
    "float64": "float64",
    "float32": "float64",
    "int": "int64",
    "long": "int64",
    "int64": "int64",
    "int32": "int64",
    "bool": "bool",
    "bool_": "bool",
}
DTYPES = {name: DType(name) for name in ("float64", "float32", "int64", "int32", "bool")}


def dtype_of(t: Term) -> DType:
    """Return the dtype of an array by its form.

    >>> from attnproof.symbolic.scalars import num
    >>> dtype_of(num(2))
    int64
    """
    return DTYPES["bool" if is_truth(t) else "int64" if is_whole(t) else "float64"]


def kind_of(dtype: Any) -> str:
    """Return float64, int64 or bool for a dtype of this module, Python, NumPy or torch.

    Raises ``TypeError`` for any other dtype, since terms neither round nor overflow.
    """
    kind = KINDS.get(_name_of(dtype))
    if kind is None:
        raise TypeError(
            f"{dtype!r} is not a dtype of symbolic arrays: they hold real numbers (float64), "
            "integers (int64) and truth values (bool), and neither round nor overflow; use x.dtype "
            "of an existing array"
        )
    return kind


def _name_of(dtype: Any) -> str:
    shown = dtype.form if isinstance(dtype, DType) else getattr(dtype, "__name__", str(dtype))
    return str(shown).removeprefix("torch.")


def cast(t: Term, dtype: Any) -> Term:
    """Return the array in a dtype: truth values as 1 and 0, or numbers as truth values (x ≠ 0).

    Raises ``TypeError`` for a conversion of numbers that are not integers by their form to
    integers, or to float32, which would round them.
    """
    kind = kind_of(dtype)
    if kind == "bool":
        zeros = make("broadcast", (ZERO,), shape=t.shape) if t.shape else ZERO
        return t if is_truth(t) else boolean("not", boolean("equal", t, zeros))
    if is_truth(t):
        return unary("indicator", t)
    if kind == "int64" and not is_whole(t):
        raise TypeError(
            f"{t!r} cannot be converted to integers: it is not an integer by its form, and numpy "
            "truncates toward 0; write xp.floor(x), or xp.sign(x) * xp.floor(xp.abs(x))"
        )
    if _name_of(dtype) == "float32" and not is_whole(t):
        raise TypeError(
            f"{t!r} would be rounded to float32, and terms do not round; write xp.float64, or "
            "x.dtype of an existing array"
        )
    return t

"""Operations on one row at a time, read as functions of which nothing is known.

A layer norm of a linear map of an attention is a large term, and laws on the order of tokens do
not look inside: they hold for any function of a row in that place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic.array import Array
from attnproof.symbolic.givens import Function, Given
from attnproof.symbolic.terms import free

from .reading import notes, numeric

__all__ = ["folded"]

ROWS = ("aten.linear.default", "aten.layer_norm.default", "aten.rms_norm.default")
ENTRIES = tuple(
    f"aten.{name}.default" for name in (
        "silu", "relu", "sigmoid", "tanh", "softplus", "mish", "elu", "leaky_relu", "hardswish",
        "erf",
    )
)  # fmt: skip


def folded(operation: str, node: str, args: Sequence[Any]) -> Array | None:
    """The operation as a function of a row, or of a number, of which nothing is known; or None.

    A map of a row is one where all but its first argument is stored: weights that are computed from
    inputs are no part of a function.
    """
    if operation in ROWS and args and all(map(_is_stored, args[1:])):
        return _of_row(operation, node, args)
    if operation in ENTRIES and not any(isinstance(a, Array) for a in args[1:]):
        return _of_entries(operation, args)
    return None


def _is_stored(argument: Any) -> bool:
    """Whether an argument is a stored table, or made of numbers and of such tables alone.

    What has a length in it is another weight for another batch, and so another function.
    """
    if isinstance(argument, list | tuple):
        return all(map(_is_stored, argument))
    if not isinstance(argument, Array):
        return True
    tables = set(notes().stored)
    return all(v in tables for v in free(argument.term))


def _of_row(operation: str, node: str, args: Sequence[Any]) -> Array | None:
    x = numeric(args[0])
    if operation == "aten.linear.default":
        out: tuple[Any, ...] | None = (args[1].axes[0],)
    elif len(args[1]) == 1:  # a norm over one axis
        out = None
    else:
        return None
    given = Given("function", core=(1,), out=out, says="a function of a row, any")
    notes().givens[node] = given
    found: Array = Function(node, given)(x)
    return found


def _of_entries(operation: str, args: Sequence[Any]) -> Array:
    """One function for each operation and its settings: leaky_relu of 0.1 is not that of 0.2."""
    settings = "".join(f"_{_spelt(setting)}" for setting in args[1:])
    name = f"any_{operation.split('.')[1]}{settings}"
    given = Given("function", core=(0,), out=(), says="a function of a number, any")
    notes().givens[name] = given
    found: Array = Function(name, given)(numeric(args[0]))
    return found


def _spelt(setting: Any) -> str:
    """A setting as a part of a name; 1e-16 and 1e+16 have two names."""
    return repr(setting).translate(str.maketrans("-+.", "mp_"))

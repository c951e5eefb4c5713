"""Whether an operation gives what its reading says in the dtype that it gives it in.

A term is of real numbers and of truth values.  Where code writes 0.5 into whole numbers it is 0
that stands there; where it writes 2 among truth values it is True; and what is computed in 8 or 16
bits wraps round.  At the inputs that are tried none of this may be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import is_truth

from .operations.reading import NARROW, READINGS, Unread, numeric

__all__ = ["CASTS", "in_its_dtype"]

# Whose readings move numbers and compute none: they may be of any dtype.
MOVES = ("creation", "joins", "places", "shapes")
CHOICES = ("aten.where.self", "aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
# Conversions know what becomes of the numbers.
CASTS = ("aten._to_copy.default", "aten.to.dtype", "aten.to.device", "aten.to.dtype_layout")
PLACES = ("aten.index.Tensor", "aten.index_select.default", "aten.embedding.default",
          "aten.gather.default")  # fmt: skip


def in_its_dtype(node: Node, name: str, found: Any) -> Any:
    """What was read, where it is that in the dtype of the node as well.

    Raises :class:`Unread` where numbers are cut, or wrap round.
    """
    dtype = _dtype(node)
    if dtype is None or not isinstance(found, Array):
        return found
    moves = READINGS[name].__module__.endswith(MOVES)
    if dtype == torch.bool:
        if not is_truth(found.term) and not (moves or name in CHOICES):
            raise Unread("numbers as truth values")
        return found if is_truth(found.term) else ~(found == as_array(0))
    if dtype in NARROW and not moves:
        raise Unread(f"whole numbers as {dtype}, where they wrap round")
    if _is_whole(dtype) and name not in CASTS:
        for told in _cut(node, name, dtype):
            raise Unread(f"{told} as {dtype}")
    return numeric(found)


def _cut(node: Node, name: str, dtype: torch.dtype) -> Iterator[str]:
    """What goes into whole numbers and may be none, or none of so few bits."""
    shape_alone = name.startswith("aten.new_") or name.endswith("_like.default")
    for given in _leaves([node.args, list(node.kwargs.values())]):
        own = _dtype(given) if isinstance(given, Node) and not shape_alone else None
        wider = dtype in NARROW and own not in (None, dtype, torch.bool) and name not in PLACES
        if isinstance(given, float) and not given.is_integer():
            yield repr(given)
        elif own is not None and (own.is_floating_point or wider):
            yield f"numbers of {own}"


def _leaves(given: Any) -> Iterator[Any]:
    if isinstance(given, list | tuple):
        for one in given:
            yield from _leaves(one)
    else:
        yield given


def _dtype(node: Any) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None


def _is_whole(dtype: torch.dtype) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex

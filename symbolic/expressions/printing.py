"""Sides of conclusions as SymPy prints them, in plain text and in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

if TYPE_CHECKING:
    from .deriving import Sides

__all__ = ["LONGEST", "entry_lines", "short_sides"]

LONGEST = 160
"""The characters of a side that is still read."""

Printed = tuple[str, str]


def short_sides(shown: Iterable[Sides]) -> Iterator[tuple[Sides, Printed, Printed]]:
    """The conclusions whose sides are short, each side in plain text and in LaTeX."""
    for side in shown:
        printed = [_printed(part) for part in (side.left, side.right)]
        if all(len(text) <= LONGEST for text, _ in printed):
            yield side, printed[0], printed[1]


def _printed(entries: Any) -> Printed:
    array = np.asarray(entries, dtype=object)
    if not array.ndim:
        return str(array.item()), sp.latex(array.item())
    if array.ndim > 2:
        return str(array.tolist()), sp.latex(sp.Array(array.tolist()))
    return str(array.tolist()), sp.latex(sp.Matrix(np.atleast_2d(array).tolist()))


def entry_lines(side: Sides) -> Iterator[str]:
    """Every entry of both sides, a line each.

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

"""Sides of conclusions as SymPy prints them, in plain text and in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

if TYPE_CHECKING:
    from .deriving import Sides

LONGEST = 160
"""The characters of a side that is still read."""

Printed = tuple[str, str]


def short_sides(shown: Iterable[Sides]) -> Iterator[tuple[Sides, Printed, Printed]]:
    """The conclusions whose sides are short, each side in plain text and in LaTeX.

    LaTeX is written of those alone, and nothing of what has more leaves than may be read.
    """
    for side in shown:
        both = [np.asarray(part, dtype=object) for part in (side.left, side.right)]
        if any(map(_is_long, both)):
            continue
        left, right = map(_text, both)
        if max(len(left), len(right)) <= LONGEST:
            yield side, (left, _latex(both[0])), (right, _latex(both[1]))


def _is_long(entries: Any) -> bool:
    """Whether it has more leaves than a text of the longest has characters."""
    parts = (part for entry in entries.flat for part in sp.preorder_traversal(entry))
    leaves = (part for part in parts if not getattr(part, "args", ()))
    return next(islice(leaves, LONGEST, None), None) is not None


def _text(entries: Any) -> str:
    return str(entries.tolist() if entries.ndim else entries.item())


def _latex(entries: Any) -> str:
    if not entries.ndim:
        return str(sp.latex(entries.item()))
    if entries.ndim > 2:
        return str(sp.latex(sp.Array(entries.tolist())))
    return str(sp.latex(sp.Matrix(np.atleast_2d(entries).tolist())))


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

"""Stored tables of whole numbers, such as the index of a window, as formulas in their indices.

Swin stores (i//w − j//w + w − 1)·(2w − 1) + i%w − j%w + w − 1 for each pair of places i, j of a
window of w by w, and reads its bias there.  A formula is fitted to such a table and accepted only
if it gives every entry of it, in whole numbers: so it is the table, and not a guess at one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import number_of

from .operations.known import entries_of
from .operations.reading import Unread

__all__ = ["Formula", "OfOffsets", "formula_of", "offsets_of"]

LARGEST = 1 << 22  # entries of a table that is looked at
EXACT = 1 << 31  # sums of a few such numbers are exact in float64
Digits = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Formula:
    """offset + Σ over axes of Σ over the digits of its index of factor·digit.

    ``axes`` has for each axis its digits, the slowest first, each with its range and its factor:
    ((7, 13), (7, 1)) is 13·(i//7) + i%7 for i below 49.
    """

    offset: int
    axes: tuple[Digits, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(prod(length for length, _ in digits) for digits in self.axes)

    def array(self) -> Array:
        """The table as a term."""
        return self.remade(self.shape)

    def remade(self, shape: tuple[Any, ...]) -> Array:
        """The same for other lengths of axes whose index is one digit, as the first rows have.

        Raises ``Unread`` where an index of several digits gets another length.
        """
        digits: list[tuple[Any, int]] = []
        for own, given, length in zip(self.axes, shape, self.shape, strict=True):
            same = number_of(as_array(given).term) == length
            if not same and len(own) > 1:
                raise Unread(f"the first {given!r} of {length} places that are told by digits")
            digits += own if same else [(given, own[0][1])]
        found = as_array(self.offset)
        for place, (length, factor) in enumerate(digits):
            if factor:
                key = tuple(slice(None) if k == place else None for k in range(len(digits)))
                found = found + (xp.arange(length) * factor)[key]
        wide = xp.broadcast_to(found, tuple(length for length, _ in digits))
        return xp.reshape(wide, shape)

    def __str__(self) -> str:
        parts = [(self.offset, "")] if self.offset else []
        for name, digits, length in zip("ijklmnop", self.axes, self.shape, strict=False):
            below = length
            for own, factor in digits:
                digit = name if below == length else f"({name}%{below})"
                below //= own
                plain = digit.strip("()") if abs(factor) == 1 else digit
                digit = plain if below == 1 else f"⌊{digit}/{below}⌋"
                parts += [(factor, digit)] if factor else []
        told = [f"{abs(c)}·{digit}" if abs(c) != 1 and digit else digit or str(abs(c))
                for c, digit in parts]  # fmt: skip
        signs = [" − " if c < 0 else " + " for c, _ in parts]
        text = "".join(sign + part for sign, part in zip(signs, told, strict=True))
        return ("−" if text.startswith(" −") else "") + text[3:] or "0"


@dataclass(frozen=True)
class OfOffsets:
    """A table that depends on the offset of two places alone, in one coordinate or in several.

    ``number`` numbers the offsets, each with a number of its own, and ``values`` has the entry of
    each.  Nothing is used of these but that they are a function of the number.
    """

    number: Formula
    window: tuple[int, ...]
    values: Tensor


def _whole(table: Tensor) -> Tensor | None:
    """The table in 64 bits; None for one that is no table of moderate whole numbers.

    What is computed in 8 or 16 bits wraps round, and no formula does.
    """
    wide = table.dtype in (torch.int32, torch.int64)
    if not wide or not 0 < table.numel() <= LARGEST or not table.ndim:
        return None
    whole = table.detach().to("cpu", torch.int64)
    return whole if max(-int(whole.min()), int(whole.max())) < EXACT else None


def formula_of(table: Tensor) -> Formula | None:
    """The formula of a table of whole numbers, or None: affine in digits of each index.

    The lines through the first entry show what it would have to be; then every entry is compared.
    """
    whole = _whole(table)
    if whole is None:
        return None
    first = (0,) * whole.ndim
    axes = []
    for k in range(whole.ndim):
        line = whole.movedim(k, -1)[first[1:]]
        digits = _digits((line - whole[first]).tolist())
        if digits is None:
            return None
        axes.append(digits)
    found = Formula(int(whole[first]), tuple(axes))
    return found if _gives(found, whole) else None


def _digits(line: Sequence[int]) -> Digits | None:
    """The digits in which a list that starts with 0 may be affine, the slowest first.

    The longest start that is a range is the fastest digit, together with those that it carries
    into evenly.
    """
    if len(line) == 1:
        return ((1, 0),)
    step, run = line[1], 2
    while run < len(line) and line[run] == step * run:
        run += 1
    if run == len(line):
        return ((run, step),)
    slower = None if len(line) % run else _digits(line[::run])
    return None if slower is None else (*slower, (run, step))


def _gives(formula: Formula, whole: Tensor) -> bool:
    """Whether the formula, as the term that will be used, gives every entry."""
    entries = entries_of(formula.array())
    return entries is not None and bool(torch.equal(entries, whole))


def offsets_of(table: Tensor) -> OfOffsets | None:
    """The table as a function of the offset of key and query, or None.

    Its axes are queries and keys, or one axis has all pairs; their places have one coordinate,
    two, or three.  Fewer coordinates say more, and are tried first.
    """
    whole = _whole(table)
    if whole is None:
        return None
    places = whole.shape[0] if whole.ndim == 2 else isqrt(whole.numel())
    if tuple(whole.shape) not in ((places, places), (places * places,)) or places < 2:
        return None
    for window in _windows(places):
        number = _numbered(window, pairs=whole.ndim == 1)
        entries = entries_of(number.array())
        assert entries is not None
        values = torch.zeros(prod(2 * w - 1 for w in window), dtype=torch.int64)
        values[entries.flatten()] = whole.flatten()
        if torch.equal(values[entries], whole):
            return OfOffsets(number, window, values)
    return None


def _windows(places: int) -> Iterator[tuple[int, ...]]:
    """The windows of one, two and three axes with so many places, the squarest first."""
    parts = [k for k in range(2, places + 1) if places % k == 0]
    yield (places,)
    two = [(a, places // a) for a in parts if a < places]
    yield from sorted(two, key=lambda w: (max(w), w))
    three = [(a, *w) for a, rest in two for w in ((b, rest // b) for b in parts
             if b < rest and rest % b == 0)]  # fmt: skip
    yield from sorted(three, key=lambda w: (max(w), w))


def _numbered(window: tuple[int, ...], *, pairs: bool) -> Formula:
    """A number for each offset of query less key in a window: that of the index of Swin."""
    factors, offset = [], 0
    for k, length in enumerate(window):
        factors.append(prod(2 * w - 1 for w in window[k + 1 :]))
        offset += (length - 1) * factors[-1]
    query: Digits = tuple(zip(window, factors, strict=True))
    key: Digits = tuple((length, -factor) for length, factor in query)
    return Formula(offset, ((*query, *key),) if pairs else (query, key))

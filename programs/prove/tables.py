"""Recognise stored tables whose entries are known: ranges, triangles, formulas in their indices.

A module may keep a causal mask of 1024 rows and use the first n of them.  If the stored numbers
form a triangle, it is read as the triangle of the length in use.

Swin stores (i//w − j//w + w − 1)·(2w − 1) + i%w − j%w + w − 1 for each pair of places i, j of a
window of w by w, and uses it to index its biases.  A formula is fitted to such a table and accepted
only if it reproduces every entry exactly, in integers: it is the table, not an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt, prod
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.documents.verdict_line import Condition
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import function
from attnproof.symbolic.scalars import number_of

from .operations.lookups import entries_of
from .operations.reading import (
    Notes,
    Unread,
    along,
    assume,
    constant,
    decimal,
    is_plain,
    noted,
    noting,
    recognised,
)

MAX_ENTRIES = 1 << 22  # entries of a table that is examined
EXACT_BELOW = 1 << 31  # sums of a few such numbers are exact in float64
Digits = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Formula:
    """offset + the sum, over axes and over the digits of the axis index, of factor·digit.

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
        """Return the table as a term."""
        return self.remade(self.shape)

    def remade(self, shape: tuple[Any, ...]) -> Array:
        """Return the table at other lengths of axes with one digit, such as its first rows.

        Raises ``Unread`` if an index with several digits gets another length.
        """
        digits: list[tuple[Any, int]] = []
        for own, given, length in zip(self.axes, shape, self.shape, strict=True):
            same = number_of(as_array(given).term) == length
            if not same and len(own) > 1:
                raise Unread(
                    f"the first {given!r} of {length} places whose indices have several digits"
                )
            digits += own if same else [(given, own[0][1])]
        found = as_array(self.offset)
        for place, (length, factor) in enumerate(digits):
            if factor:
                found = found + along(xp.arange(length) * factor, place, len(digits))
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
        told = [
            f"{abs(c)}·{digit}" if abs(c) != 1 and digit else digit or str(abs(c))
            for c, digit in parts
        ]
        signs = [" − " if c < 0 else " + " for c, _ in parts]
        text = "".join(sign + part for sign, part in zip(signs, told, strict=True))
        return ("−" if text.startswith(" −") else "") + text[3:] or "0"


@dataclass(frozen=True)
class OffsetTable:
    """A table that depends only on the offset between two places, with one or more coordinates.

    ``number`` numbers the offsets, and ``values`` has the entry for each number.  Only the fact
    that the entries are a function of that number is used.
    """

    number: Formula
    window: tuple[int, ...]
    values: Tensor
    condition: str = ""

    def placed(self, name: str, notes: Notes) -> Array:
        """Return the term; the entries are kept for the comparison with the code."""
        called = f"{notes.prefix}{name}_entry"
        given = function(0, says="the entry of a stored table at an offset, any number")
        notes.givens[called], notes.rows[called] = given, (self.values, 0)
        notes.readings[Condition(self.condition, "where")] = None
        entry = given.named(called)
        found: Array = entry(self.number.array())
        notes.patterns[found.term] = lambda shape: entry(self.number.remade(shape))
        return found


def _whole(table: Tensor) -> Tensor | None:
    """Return the table as int64; None if it is not a table of integers of moderate size.

    8- and 16-bit integers are excluded because they wrap around, and formulas do not.
    """
    wide = table.dtype in (torch.int32, torch.int64)
    if not wide or not 0 < table.numel() <= MAX_ENTRIES or not table.ndim:
        return None
    whole = table.detach().to("cpu", torch.int64)
    return whole if max(-int(whole.min()), int(whole.max())) < EXACT_BELOW else None


def formula_of(table: Tensor) -> Formula | None:
    """Return the formula of a table of integers, affine in digits of each index, or None.

    The lines through the first entry determine the only candidate; then every entry is compared.
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
    entries = entries_of(found.array())  # of the term that is used later
    return found if entries is not None and torch.equal(entries, whole) else None


def _digits(line: Sequence[int]) -> Digits | None:
    """Return the digits in which a list that starts with 0 may be affine, slowest first, or None.

    The fastest digit is the longest initial arithmetic progression, if its length divides the list.
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


def offsets_of(table: Tensor) -> OffsetTable | None:
    """Return the table as a function of the offset between query and key, or None.

    Its axes are queries and keys, or a single axis has all pairs; places have one, two or three
    coordinates.  Fewer coordinates make a stronger claim and are tried first.
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
            return OffsetTable(number, window, values)
    return None


def _windows(places: int) -> Iterator[tuple[int, ...]]:
    """Yield the windows of one, two and three axes with this many places, the squarest first."""
    parts = [k for k in range(2, places + 1) if places % k == 0]
    yield (places,)
    two = [(a, places // a) for a in parts if a < places]
    yield from sorted(two, key=lambda w: (max(w), w))
    three = [
        (a, *w)
        for a, rest in two
        for w in ((b, rest // b) for b in parts if b < rest and rest % b == 0)
    ]
    yield from sorted(three, key=lambda w: (max(w), w))


def _numbered(window: tuple[int, ...], *, pairs: bool) -> Formula:
    """Number the offsets of query minus key in a window, as the index of Swin does."""
    factors, offset = [], 0
    for k, length in enumerate(window):
        factors.append(prod(2 * w - 1 for w in window[k + 1 :]))
        offset += (length - 1) * factors[-1]
    query: Digits = tuple(zip(window, factors, strict=True))
    key: Digits = tuple((length, -factor) for length, factor in query)
    return Formula(offset, ((*query, *key),) if pairs else (query, key))


LARGEST_STORED = 1 << 24
MAX_WRITTEN_OUT = 64  # most entries of a table that is written out
MAX_SHOWN = 16  # most entries that a condition shows


@dataclass(frozen=True)
class Pattern:
    """A stored constant as a term, at any lengths; ``condition``: of that reading."""

    array: Array
    remade: Callable[[tuple[Any, ...]], Array]
    condition: str = ""

    def placed(self, name: str, notes: Notes) -> Array:
        """Return the term, recording its condition; ``name`` is unused."""
        del name
        found = self.remade(self.array.axes)  # its numbers are read where they are used
        notes.patterns[found.term] = self.remade
        if self.condition:
            notes.readings[Condition(self.condition, "where")] = None
        return found


def pattern_of(
    value: Tensor, target: str = "table", held: str = ""
) -> Pattern | OffsetTable | None:
    """Return the pattern of a stored tensor, or None; parameters stay arbitrary.

    ``held`` says what holds it between calls, if anything: its numbers may then change, so what is
    used of them is stated as a condition.
    """
    small = 0 < value.numel() <= LARGEST_STORED and value.ndim > 0
    if not small or value.is_complex() or isinstance(value, nn.Parameter):
        return None
    plain = value.detach().to("cpu")
    values: Tensor = plain.unique()  # type: ignore[no-untyped-call]
    told = f"{held} keeps its value" if held else ""
    if len(values) == 1:
        said = f"{told}, {_printed(values[0].item())} everywhere" if told else ""
        return _made(plain, lambda shape: xp.broadcast_to(_number(values[0]), shape), said)
    last = torch.arange(plain.shape[-1])
    if plain.dtype != torch.bool and bool((plain == last).all()):

        def counted(shape: tuple[Any, ...]) -> Array:
            return xp.broadcast_to(xp.arange(as_array(shape[-1])), shape)

        return _made(plain, counted, told)
    found = _triangle(plain, values, told) if plain.ndim > 1 and len(values) == 2 else None
    return found or _band(plain, told) or _of_indices(plain, target)


def small_of(value: Tensor, held: str = "") -> Pattern | None:
    """Return a small table as its numbers, each simple or recognised, or None.

    Parameters stay arbitrary.  ``held`` is as for :func:`pattern_of`.
    """
    few = 0 < value.numel() <= MAX_WRITTEN_OUT and value.ndim > 0
    real = value.dtype in (torch.float32, torch.float64, torch.int32, torch.int64)
    if not (few and real) or isinstance(value, nn.Parameter):
        return None
    entries = [(x, _known(x, value.dtype)) for x in value.detach().to("cpu").flatten().tolist()]
    if any(known is None for _, known in entries):
        return None

    def made(_: tuple[Any, ...]) -> Array:
        found = []
        for x, known in entries:
            assert known is not None
            if known[0]:
                assume(f"{x!r} is {known[0]}")
            found.append(known[1])
        for length in reversed(value.shape):
            found = [xp.stack(found[k : k + length]) for k in range(0, len(found), length)]
        return found[0]

    told = f"{held} keeps its value{_listed(value)}" if held else ""
    with noted(Notes()):
        return Pattern(made(()), made, told)


def _known(x: float, dtype: torch.dtype) -> tuple[str, Array] | None:
    """Return a number as a term, and in words if it is only the nearest float to it; or None."""
    if not math.isfinite(x) or is_plain(x):
        return ("", as_array(x)) if math.isfinite(x) else None
    wide = decimal(x) or recognised(x)
    if wide is not None or dtype != torch.float32:
        return wide
    root = math.copysign(math.sqrt(Fraction(x * x).limit_denominator(MAX_WRITTEN_OUT)), x)
    same = torch.tensor(root, dtype=dtype).item() == x
    return recognised(root) if same else None


def _listed(value: Tensor) -> str:
    """Return the numbers of a small table, after a comma, else ""."""
    if value.numel() > MAX_SHOWN:
        return ""
    shown = [[f"{x:.6g}" for x in row] for row in value.reshape(-1, value.shape[-1]).tolist()]
    rows = ["[" + ", ".join(row) + "]" for row in shown]
    return ", " + (rows[0] if len(rows) == 1 else "[" + ", ".join(rows) + "]")


def _printed(number: Any) -> str:
    return str(number) if isinstance(number, bool) else f"{number:.6g}"


def _of_indices(plain: Tensor, target: str) -> Pattern | OffsetTable | None:
    """Return a table of integers as a formula in its indices, or as a function of an offset."""
    places = f"the {plain.numel()} entries of {target}"
    formula = formula_of(plain)
    if formula is not None:
        return Pattern(formula.array(), formula.remade, f"{places} are {formula}")
    found = offsets_of(plain)
    if found is None:
        return None
    window = " × ".join(map(str, found.window))
    told = f"{places} depend on the offset in a window of {window} alone"
    return replace(found, condition=told)


def _made(plain: Tensor, remade: Callable[[tuple[Any, ...]], Array], told: str = "") -> Pattern:
    return Pattern(remade(tuple(plain.shape)), remade, told)


def _triangle(plain: Tensor, values: Tensor, told: str) -> Pattern | None:
    """Recognise one value up to a diagonal of the last two axes, and another above it."""
    rows, columns = plain.shape[-2:]
    gap = torch.arange(columns)[None, :] - torch.arange(rows)[:, None]
    below = plain.reshape(-1, rows, columns)[0, -1, 0]
    above = values[values != below][0]
    first_row = (plain.reshape(-1, rows, columns)[0, 0] == below).sum()
    diagonal = int(first_row) - 1
    if not bool((plain == torch.where(gap <= diagonal, below, above)).all()):
        return None

    def remade(shape: tuple[Any, ...]) -> Array:
        columns, rows = (xp.arange(as_array(n)) for n in (shape[-1], shape[-2]))
        keep = (columns[None, :] - rows[:, None]) <= diagonal
        if plain.dtype == torch.bool:
            return xp.broadcast_to(keep if bool(below) else ~keep, shape)
        return xp.broadcast_to(xp.where(keep, _number(below), _number(above)), shape)

    return _made(plain, remade, told)


def _band(plain: Tensor, told: str) -> Pattern | None:
    """Recognise True where least <= j − i <= most in the last two axes, and False elsewhere."""
    if plain.dtype != torch.bool or plain.ndim < 2:
        return None
    rows, columns = plain.shape[-2:]
    gap = torch.arange(columns)[None, :] - torch.arange(rows)[:, None]
    inside = gap[plain.reshape(-1, rows, columns)[0]]
    if not len(inside):
        return None
    least, most = int(inside.min()), int(inside.max())
    if not bool((plain == ((gap >= least) & (gap <= most))).all()):
        return None

    def remade(shape: tuple[Any, ...]) -> Array:
        columns, rows = (xp.arange(as_array(n)) for n in (shape[-1], shape[-2]))
        gap = columns[None, :] - rows[:, None]
        return xp.broadcast_to((gap >= least) & (gap <= most), shape)

    return _made(plain, remade, told)


def _number(value: Tensor) -> Array:
    if value.dtype == torch.bool:
        return as_array(int(value.item())) == as_array(1)
    if noting():
        return constant(value.item())
    with noted(Notes()):
        return constant(value.item())

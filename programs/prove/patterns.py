"""Stored constants whose entries are known: a range, one number everywhere, a triangle, a formula.

A module keeps a causal mask of 1024 rows and uses the first n of them.  What the stored numbers
show to be a triangle is read as the triangle of the length that is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import Function, function
from attnproof.verdict_line import Condition

from .operations.reading import Notes, constant, noted, noting
from .tables import OfOffsets, formula_of, offsets_of

__all__ = ["Pattern", "pattern_of"]

LARGEST = 1 << 24


@dataclass(frozen=True)
class Pattern:
    """A stored constant as a term, and the same at other lengths; ``told`` says what was read."""

    array: Array
    remade: Callable[[tuple[Any, ...]], Array]
    told: str = ""

    def placed(self, name: str, notes: Notes) -> Array:
        """The term, with what has to be noted of it; ``name`` is one that no other has."""
        del name
        found = self.remade(self.array.axes)  # its numbers are read as where they are used
        notes.patterns[found.term] = self.remade
        if self.told:
            notes.readings[Condition(self.told, "where")] = None
        return found


@dataclass(frozen=True)
class OfOffset:
    """A stored table as any function of the number of an offset."""

    table: OfOffsets
    told: str

    def placed(self, name: str, notes: Notes) -> Array:
        """The term; the values of the function are kept for the comparison with the code."""
        called, number = f"{notes.prefix}{name}_entry", self.table.number
        given = function(0, says="the entry of a stored table at an offset, any number")
        notes.givens[called], notes.rows[called] = given, (self.table.values, 0)
        notes.readings[Condition(self.told, "where")] = None
        entry = Function(called, given)
        found = entry(number.array())
        notes.patterns[found.term] = lambda shape: entry(number.remade(shape))
        return found


def pattern_of(
    value: Tensor, target: str = "table", held: str = ""
) -> Pattern | OfOffset | None:
    """The pattern of a stored tensor, or None; parameters are any numbers, whatever they hold.

    ``held`` says what holds it between calls, if anything does: what is used of its numbers is
    told, for they may change.
    """
    small = 0 < value.numel() <= LARGEST and value.ndim > 0
    if not small or value.is_complex() or isinstance(value, nn.Parameter):
        return None
    plain = value.detach().to("cpu")
    values: Tensor = plain.unique()  # type: ignore[no-untyped-call]
    told = f"{held} is as it is now" if held else ""
    if len(values) == 1:
        said = f"{told}, {_said(values[0].item())} everywhere" if told else ""
        return _made(plain, lambda shape: xp.broadcast_to(_number(values[0]), shape), said)
    last = torch.arange(plain.shape[-1])
    if plain.dtype != torch.bool and bool((plain == last).all()):
        def counted(shape: tuple[Any, ...]) -> Array:
            return xp.broadcast_to(xp.arange(as_array(shape[-1])), shape)

        return _made(plain, counted, told)
    found = _triangle(plain, values, told) if plain.ndim > 1 and len(values) == 2 else None
    return found or _band(plain, told) or _of_indices(plain, target)


def _said(number: Any) -> str:
    return str(number) if isinstance(number, bool) else f"{number:.6g}"


def _of_indices(plain: Tensor, target: str) -> Pattern | OfOffset | None:
    """A table of whole numbers: a formula in its indices, or else any function of an offset."""
    places = f"the {plain.numel()} entries of {target}"
    formula = formula_of(plain)
    if formula is not None:
        return Pattern(formula.array(), formula.remade, f"{places} are {formula}")
    found = offsets_of(plain)
    if found is None:
        return None
    window = " × ".join(map(str, found.window))
    return OfOffset(found, f"{places} depend on the offset in a window of {window} alone")


def _made(
    plain: Tensor, remade: Callable[[tuple[Any, ...]], Array], told: str = ""
) -> Pattern:
    return Pattern(remade(tuple(plain.shape)), remade, told)


def _triangle(plain: Tensor, values: Tensor, told: str) -> Pattern | None:
    """One value up to a diagonal of the last two axes, and another one above it."""
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
    """True where least <= j − i <= most in the last two axes, and False elsewhere."""
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

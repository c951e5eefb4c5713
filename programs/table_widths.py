"""Tables of a told line, held against what the code reads of them: broadcasting allows others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .grammar import parse
from .roles import TABLES, role
from .signature import Argument, Signature

if TYPE_CHECKING:
    from .rotary import Rotating

WHOLE, HALF = parse("x: D, y: D/2 -> x").arrays
PARTS = {  # the columns that are changed, where the others are all that is read
    "the first half": lambda width: slice(width // 2, None),
    "the second half": lambda width: slice(0, width // 2),
    "every other number, from the first on,": lambda _: slice(1, None, 2),
    "every other number, from the second on,": lambda _: slice(0, None, 2),
}


def widths_told(
    way: Rotating,
    xs: Sequence[Tensor],
    at: Tensor,
    anew: Callable[[Signature], Rotating],
) -> tuple[str, ...]:
    """What is to be known of tables whose width is told, and may be another.

    That the code reads a part of their rows; or that it rotates a part of the channels, which it
    does by tables of a number for each channel that are half as wide.  ``xs``, ``at``: vectors and
    their positions; ``anew``: the code, called by another line.
    """
    held = [one for one in way.places if role(one) in TABLES and one.axes]
    if not held or way.table is None or way.signature.source is not None:
        return ()
    halves = any((one.axes or ())[-1:] == HALF.axes for one in held)
    told = [*_part(way, xs, at, anew)] if halves else []
    plain = _called(way, xs, at)
    for one in held:
        if (one.axes or ())[-1:] != WHOLE.axes:
            continue
        for words, place in PARTS.items():
            found = _called(_with_others(way, one.name, place), xs, at)
            if all(map(torch.equal, plain, found)):
                told.append(
                    f"of each row of {one.name} {words} is all that is read: if the code takes as "
                    f"many numbers as there are pairs, say D/2"
                )
    return tuple(told)


def _part(
    way: Rotating,
    xs: Sequence[Tensor],
    at: Tensor,
    anew: Callable[[Signature], Rotating],
) -> Iterator[str]:
    """That a part of the channels rotates, because the code takes halves for whole tables."""
    few = _rotated(way, xs, at)
    line = _whole(way.line)
    try:
        more = _rotated(anew(line), xs, at) if 2 * few <= way.width else few
    except Exception:  # noqa: BLE001 (the code need not take whole tables)
        return
    if more > few:
        yield (
            f"{few} of {way.width} channels are rotated, as many as the tables have numbers: with "
            f"D for D/2 {more} are"
        )


def _whole(line: Signature) -> Signature:
    """The line, with a number for each channel where there is one for each pair."""

    def other(one: Argument) -> Argument:
        axes = one.axes
        if role(one) in TABLES and axes and axes[-1:] == HALF.axes:
            axes = (*axes[:-1], *(WHOLE.axes or ()))
        return replace(one, axes=axes, parts=tuple(map(other, one.parts)))

    return replace(line, arguments=tuple(map(other, line.arguments)))


def _rotated(way: Rotating, xs: Sequence[Tensor], at: Tensor) -> int:
    """How many channels rotate with the position."""
    out, other = _called(way, xs, at)[0], _called(way, xs, at + 3)[0]
    return int((out != other).flatten(0, -2).any(0).sum())


def _called(way: Rotating, xs: Sequence[Tensor], at: Tensor) -> tuple[Tensor, ...]:
    return way.calls()(*(x.clone() for x in xs), positions=at)


def _with_others(way: Rotating, name: str, place: Callable[[int], slice]) -> Rotating:
    """The call, given other numbers in these columns of one of its tables."""
    table = way.table
    assert table is not None

    def other(held: Sequence[Argument], at: Tensor) -> dict[str, Tensor]:
        made = dict(table(held, at))
        made[name] = made[name].clone()
        made[name][..., place(made[name].shape[-1])] += 0.25
        return made

    return replace(way, table=other)

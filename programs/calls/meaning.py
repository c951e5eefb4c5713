"""Check what a line of the signature language says of axes and tables against what the code does.

Code can often be called with its axes in the wrong order: arrays broadcast, and axes of another
meaning fit by chance.  So one place of one array is changed, and the results may change only where
the line says that it is reached.  Rows of a batch are independent, and so are heads; a query, and a
row of a table, belongs to one token; an entry of a mask belongs to one query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..code import DoesNotFit
from ..signatures.grammar import parse
from ..signatures.layout import labels, laid_out, read_back
from ..signatures.signature import Argument, Signature, SignatureError
from .roles import MASKS, ROTATED, TABLES, role

if TYPE_CHECKING:
    from .rotary_calls import Rotating


Run = Callable[[Mapping[str, Any], Mapping[str, int]], Mapping[str, Any]]
CHANGED_PLACE = 1  # neither first nor last on any axis
UNCHANGED_KINDS = ("ids", "documents", "index", "lengths", "bounds")
ITEM_AXES = "BHGVrnhwt"  # letters of axes along which items follow each other
AS_KEYS = ("key", "value")
# Sums in another order differ by roundings; a changed token moves a result much further.
ROUNDINGS = 1e-5


@dataclass(frozen=True)
class _Asked:
    """A call of some code on given arrays, and its results."""

    run: Run
    arrays: Mapping[str, Any]
    signature: Signature
    lengths: Mapping[str, int]

    @cached_property
    def plain(self) -> Mapping[str, Any]:
        """The results, before anything is changed."""
        return self.on(self.arrays)

    def on(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the results for a copy of other arrays."""
        copies = {k: x.clone() if isinstance(x, Tensor) else x for k, x in arrays.items()}
        return self.run(copies, self.lengths)

    def moved(self, after: Mapping[str, Any]) -> list[tuple[tuple[str, ...], Tensor]]:
        """Return each result's letters and where it differs, with one axis for each letter."""
        found = []
        for name, one in self.signature.named_results:
            here, there = (told.get(name) for told in (self.plain, after))
            if not isinstance(here, Tensor) or not isinstance(there, Tensor):
                continue
            axes = one.axes or ()
            letters = labels(axes)
            own = {c: n for c, n in zip(map(str, axes), here.shape, strict=False) if len(c) == 1}
            sizes = {**own, **self.lengths}
            try:
                a, b = (read_back(x, axes, letters, sizes) for x in (here, there))
            except (SignatureError, KeyError):
                continue
            largest = float(torch.nan_to_num(a.abs(), 0.0, 0.0).max()) if a.numel() else 0.0
            same = torch.isclose(a, b, rtol=ROUNDINGS, atol=ROUNDINGS * largest)
            found.append((letters, ~(same | a.isnan() | b.isnan())))
        return found

    def apart_together(self, one: Argument, other: Tensor, held: list[str]) -> bool:
        """Whether no other place is reached if all arrays that hold the same are changed alike."""
        same = [
            a.name
            for a in self.signature.arrays
            if a is not one
            and a.axes == one.axes
            and role(a) in ROTATED
            and torch.equal(self.arrays[a.name], self.arrays[one.name])
        ]
        after = self.on({**self.arrays, **dict.fromkeys((one.name, *same), other)}) if same else {}
        told = self.moved(after)
        return bool(same) and not any(_elsewhere(*pair, held, self.lengths) for pair in told)

    def repeats(self) -> bool:
        """Whether a second call returns the same numbers: differences come from the input."""
        return not any(bool(where.any()) for _, where in self.moved(self.on(self.arrays)))


def require_meaning(
    run: Run,
    arrays: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
    apart: str,
    *,
    used: bool = False,
) -> None:
    """Refuse a line if an array reaches a place other than its own along one of its letters.

    ``apart``: the letters along which each place of an input reaches only the same place of the
    output; for keys and values this excludes tokens.  Code that changes its inputs, returns NaN or
    is not deterministic is not refused for that.  ``used``: what is rotated must also reach
    something.  Raises ``DoesNotFit``.
    """
    asked = _Asked(run, arrays, signature, lengths)
    finite = all(bool(x.isfinite().all()) for x in asked.plain.values() if isinstance(x, Tensor))
    for one in signature.arrays:
        own = tuple(c for c in labels(one.axes or ()) if lengths.get(c, 1) > CHANGED_PLACE + 1)
        along = [c for c in own if c in ITEM_AXES]
        if one.name not in arrays or not along or one.kind in UNCHANGED_KINDS:
            continue
        held = [c for c in along if c in apart and not (role(one) in AS_KEYS and c in "rn")]
        held = [c for c in held if not (role(one) in MASKS and c == "n")]
        other, reached = _changed(one, arrays[one.name], along, lengths), False
        for back, moved in asked.moved(asked.on({**arrays, one.name: other})):
            reached |= bool(moved.any())
            there = _elsewhere(back, moved, held, lengths)
            if there and asked.apart_together(one, other, held):
                continue  # code may compare its arrays, and act otherwise once they differ
            if there and asked.repeats():
                raise DoesNotFit(
                    f"called as {signature}, {one.name} at one place along {there} "
                    "reaches other places, so it is not such an axis"
                )
        if used and not reached and finite and role(one) in ROTATED and "D" in own:
            raise DoesNotFit(f"called as {signature}, {one.name} has no effect")


def _changed(one: Argument, x: Tensor, along: list[str], lengths: Mapping[str, int]) -> Tensor:
    """Return the array with other numbers at one place along these letters."""
    # a table may have more rows than the letter of its call
    own = {c: n for c, n in zip(map(str, one.axes or ()), x.shape, strict=False) if len(c) == 1}
    lengths = {**lengths, **own}
    shape = [lengths[c] for c in along]
    here = torch.zeros(shape, dtype=torch.bool)
    here[(CHANGED_PLACE,) * len(along)] = True
    sizes = {**lengths, **{str(a): a.size(lengths) for a in one.axes or ()}}
    at = laid_out(here, along, one.axes or (), sizes)
    if x.dtype == torch.bool:
        return x ^ at
    other = torch.zeros_like(x) if not (x.is_floating_point() or x.is_complex()) else 0.5 - x
    return torch.where(at, other, x)


def _elsewhere(
    back: tuple[str, ...], moved: Tensor, held: list[str], lengths: Mapping[str, int]
) -> str:
    """Return the first letter along which a place other than the changed one is reached, or ""."""
    for place, letter in enumerate(back):
        others = [k for k in range(moved.dim()) if k != place]
        reached = moved.amax(others) if others else moved
        if letter in held:
            reached = reached.clone()
            reached[CHANGED_PLACE] = False
            if bool(reached.any()):
                return letter
        elif (
            letter == "H"
            and "G" in {*held} - {*back}
            and (int(reached.sum()) > lengths["H"] // lengths["G"])
        ):
            return "G"
    return ""


WHOLE, HALF = parse("x: D, y: D/2 -> x").arrays
PARTS = {  # for each part that may be all that is read, the columns that are changed
    "the first half": lambda width: slice(width // 2, None),
    "the second half": lambda width: slice(0, width // 2),
    "every other number (from the first on)": lambda _: slice(1, None, 2),
    "every other number (from the second on)": lambda _: slice(0, None, 2),
}


def width_notes(
    way: Rotating, xs: Sequence[Tensor], at: Tensor, anew: Callable[[Signature], Rotating]
) -> tuple[str, ...]:
    """Return notes on given tables whose width may differ from that of the line.

    Either the code reads only a part of their rows, or it rotates only a part of the channels, with
    tables of one number for each channel that are half as wide.  ``xs``, ``at``: vectors and their
    positions; ``anew``: builds the call for another line.
    """
    held = [one for one in way.places if role(one) in TABLES and one.axes]
    if not held or way.table is None or way.signature.source is not None:
        return ()
    halves = any((one.axes or ())[-1:] == HALF.axes for one in held)
    told = [*_partial_rotation_notes(way, xs, at, anew)] if halves else []
    plain = _called(way, xs, at)
    for one in held:
        if (one.axes or ())[-1:] != WHOLE.axes:
            continue
        for words, place in PARTS.items():
            found = _called(_with_others(way, one.name, place), xs, at)
            if all(map(torch.equal, plain, found)):
                told.append(
                    f"only {words} of each row of {one.name} is read: if the code takes one "
                    f"number for each pair, write D/2"
                )
    return tuple(told)


def _partial_rotation_notes(
    way: Rotating, xs: Sequence[Tensor], at: Tensor, anew: Callable[[Signature], Rotating]
) -> Iterator[str]:
    """Yield a note if only part of the channels rotates: D/2 tables are read as whole ones."""
    few = _rotated(way, xs, at)
    line = _whole(way.line)
    try:
        more = _rotated(anew(line), xs, at) if 2 * few <= way.width else few
    except Exception:  # noqa: BLE001 (the code may refuse whole tables)
        return
    if more > few:
        yield (
            f"{few} of {way.width} channels rotate, as many as the tables have numbers; with D "
            f"in place of D/2, {more} rotate"
        )


def _whole(line: Signature) -> Signature:
    """Return the line with tables of D numbers where it has tables of D/2."""

    def other(one: Argument) -> Argument:
        axes = one.axes or ()
        if role(one) not in TABLES or axes[-1:] != HALF.axes:
            return one
        return replace(one, axes=(*axes[:-1], *(WHOLE.axes or ())))

    return replace(line, arguments=tuple(one.each(other) for one in line.arguments))


def _rotated(way: Rotating, xs: Sequence[Tensor], at: Tensor) -> int:
    """Return how many channels rotate with the position."""
    out, other = _called(way, xs, at)[0], _called(way, xs, at + 3)[0]
    return int((out != other).flatten(0, -2).any(0).sum())


def _called(way: Rotating, xs: Sequence[Tensor], at: Tensor) -> tuple[Tensor, ...]:
    return way.calls()(*(x.clone() for x in xs), positions=at)


def _with_others(way: Rotating, name: str, place: Callable[[int], slice]) -> Rotating:
    """Return the call with other numbers in these columns of one of its tables."""
    table = way.table
    assert table is not None

    def other(held: Sequence[Argument], at: Tensor, features: int) -> dict[str, Tensor]:
        made = dict(table(held, at, features))
        made[name] = made[name].clone()
        made[name][..., place(made[name].shape[-1])] += 0.25
        return made

    return replace(way, table=other)

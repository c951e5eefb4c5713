"""What a line says of letters and tables, held against what the code does.

Code can often be called in an order of axes that is not its own: arrays broadcast, and axes of
another meaning fit by chance.  So one place of one array is changed: what comes back may be another
only where the line says that it is reached.  Rows of a batch are apart, and heads; a query, and a
row of a table, is that of one token; an entry of a mask is that of one query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .code import DoesNotFit
from .grammar import parse
from .layout import labels, laid_out, read_back
from .roles import MASKS, ROTATED, TABLES, role
from .signature import Argument, Signature, SignatureError

if TYPE_CHECKING:
    from .rotary import Rotating


Run = Callable[[Mapping[str, Any], Mapping[str, int]], Mapping[str, Any]]
PLACE = 1  # neither first nor last, of any axis
HELD = ("ids", "index", "lengths", "bounds")
ALONG = "BHGVrnhwt"  # the letters of axes along which there is one thing after another
AS_KEYS = ("key", "value")
# What is summed in another order may differ by roundings, of which a changed token is far.
ROUNDINGS = 1e-5


def require_meaning(
    run: Run,
    arrays: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
    apart: str,
    *,
    used: bool = False,
) -> None:
    """Refuse a line if an array reaches another place than its own along one of its letters.

    ``apart``: the letters along which what goes in and what comes out stand at one place.  Of keys
    and values that is not so along tokens.  Code that changes its inputs, that gives NaN, or that
    gives something else each time is no matter of its line.  ``used``: what is rotated must also
    reach something.  Raises ``DoesNotFit``.
    """
    plain = run(_copied(arrays), lengths)
    finite = all(bool(x.isfinite().all()) for x in plain.values() if isinstance(x, Tensor))
    for one in signature.arrays:
        own = tuple(c for c in labels(one.axes or ()) if lengths.get(c, 1) > PLACE + 1)
        along = [c for c in own if c in ALONG]
        if one.name not in arrays or not along or one.kind in HELD:
            continue
        held = [c for c in along if c in apart and not (role(one) in AS_KEYS and c in "rn")]
        held = [c for c in held if not (role(one) in MASKS and c == "n")]
        other = {**arrays, one.name: _changed(one, arrays[one.name], along, lengths)}
        after, reached = run(_copied(other), lengths), False
        for back, moved in _moved(signature, plain, after, lengths):
            reached |= bool(moved.any())
            there = _elsewhere(back, moved, held, lengths)
            if there and _with_fellows_apart(run, arrays, one, other, signature, lengths, held):
                continue  # code that tells whether arrays are one changes all where they are not
            if there and _repeats(run, arrays, plain, signature, lengths):
                raise DoesNotFit(
                    f"called as {signature}, {one.name} at one place of {there} "
                    "reaches others, so that this is no such axis"
                )
        if used and not reached and finite and role(one) in ROTATED and "D" in own:
            raise DoesNotFit(f"called as {signature}, {one.name} does nothing")


def _with_fellows_apart(
    run: Run,
    arrays: Mapping[str, Any],
    one: Argument,
    other: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
    held: list[str],
) -> bool:
    """Whether one place reaches no other, if it is changed in all arrays that hold the same."""
    same = [
        a.name
        for a in signature.arrays
        if a is not one
        and a.axes == one.axes
        and role(a) in ROTATED
        and torch.equal(arrays[a.name], arrays[one.name])
    ]
    if not same:
        return False
    plain = run(_copied(arrays), lengths)
    after = run(_copied({**arrays, **dict.fromkeys((one.name, *same), other[one.name])}), lengths)
    told = _moved(signature, plain, after, lengths)
    return not any(_elsewhere(back, moved, held, lengths) for back, moved in told)


def _copied(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: x.clone() if isinstance(x, Tensor) else x for name, x in arrays.items()}


def _repeats(
    run: Run,
    arrays: Mapping[str, Any],
    plain: Mapping[str, Any],
    signature: Signature,
    lengths: Mapping[str, int],
) -> bool:
    """Whether a call gives the same numbers twice: then another input made the difference."""
    moved = _moved(signature, plain, run(_copied(arrays), lengths), lengths)
    return not any(bool(where.any()) for _, where in moved)


def _changed(one: Argument, x: Tensor, along: list[str], lengths: Mapping[str, int]) -> Tensor:
    """The array with other numbers at one place along these letters."""
    shape = [lengths[c] for c in along]
    here = torch.zeros(shape, dtype=torch.bool)
    here[(PLACE,) * len(along)] = True
    sizes = {**lengths, **{str(a): a.size(lengths) for a in one.axes or ()}}
    at = laid_out(here, along, one.axes or (), sizes)
    if x.dtype == torch.bool:
        return x ^ at
    other = torch.zeros_like(x) if not (x.is_floating_point() or x.is_complex()) else 0.5 - x
    return torch.where(at, other, x)


def _moved(
    signature: Signature,
    plain: Mapping[str, Any],
    after: Mapping[str, Any],
    lengths: Mapping[str, int],
) -> list[tuple[tuple[str, ...], Tensor]]:
    """Of each result its letters, and where it is another, with one axis for each letter."""
    found = []
    for k, one in enumerate(signature.results):
        here, there = (told.get(one.name or str(k)) for told in (plain, after))
        if one.axes is None or not isinstance(here, Tensor) or not isinstance(there, Tensor):
            continue
        letters = labels(one.axes)
        own = {c: n for c, n in zip(map(str, one.axes), here.shape, strict=False) if len(c) == 1}
        try:
            a, b = (read_back(x, one.axes, letters, {**own, **lengths}) for x in (here, there))
        except (SignatureError, KeyError):
            continue
        largest = float(torch.nan_to_num(a.abs(), 0.0, 0.0).max()) if a.numel() else 0.0
        same = torch.isclose(a, b, rtol=ROUNDINGS, atol=ROUNDINGS * largest)
        same |= a.isnan() | b.isnan()
        found.append((letters, ~same))
    return found


def _elsewhere(
    back: tuple[str, ...], moved: Tensor, held: list[str], lengths: Mapping[str, int]
) -> str:
    """The first letter along which other places are reached than the changed one; "" if none."""
    for place, letter in enumerate(back):
        others = [k for k in range(moved.dim()) if k != place]
        reached = moved.amax(others) if others else moved
        if letter in held:
            reached = reached.clone()
            reached[PLACE] = False
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
PARTS = {  # the columns that are changed, where the others are all that is read
    "the first half": lambda width: slice(width // 2, None),
    "the second half": lambda width: slice(0, width // 2),
    "every other number, from the first on,": lambda _: slice(1, None, 2),
    "every other number, from the second on,": lambda _: slice(0, None, 2),
}


def widths_told(
    way: Rotating, xs: Sequence[Tensor], at: Tensor, anew: Callable[[Signature], Rotating]
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
    way: Rotating, xs: Sequence[Tensor], at: Tensor, anew: Callable[[Signature], Rotating]
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

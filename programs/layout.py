"""Arrays in the axes that a call wants, and back: an axis has a letter, or a place.

Also tensors in the order of axes that code wants, and tokens at any positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from .signature import Axis, SignatureError

Label = str | int  # a letter, an axis as it is written, or its place among :func:`labels`
KEPT = 4096  # pairs of axes of which it is known how one becomes the other


def labels(axes: Sequence[Axis]) -> tuple[str, ...]:
    """What each axis holds, the slowest first: its letters, or itself where it is not a product."""
    return tuple(c for axis in axes for c in parts(axis))


def parts(axis: Axis) -> tuple[str, ...]:
    """The factors of which an axis is the product; else the axis as it is written."""
    return (str(axis),) if axis.split is None else axis.split


def place_of(axes: Sequence[Axis], at: int) -> int:
    """The place among the labels of the axis at ``at``."""
    return len(labels(axes[:at]))


def laid_out(
    x: Tensor, here: Sequence[Label], axes: Sequence[Axis], lengths: Mapping[str, int]
) -> Tensor:
    """An array with the axes ``here`` in those of a call; along further axes it is repeated.

    Each axis of ``here`` is the first of its label that is left, or stands at its place.  One that
    the call lacks must have length 1.  Raises :class:`SignatureError`.

    >>> import torch
    >>> from .grammar import parse
    >>> def axes(line): return parse(f"x: {line} -> x").arguments[0].axes
    >>> laid_out(torch.zeros(1, 2, 5, 4), ("B", "H", "n", "D"), axes("n (H D)"), {}).shape
    torch.Size([5, 8])
    >>> laid_out(torch.zeros(5, 3, 2), ("n", 2, 1), axes("n 2 3 7"), {}).shape
    torch.Size([5, 2, 3, 7])
    """
    way = _way(tuple(here), tuple(axes))
    for at in way.dropped:
        if x.shape[at] != 1:
            raise SignatureError(
                f"wanted an axis {here[at]}, of length {x.shape[at]}, got {told(axes)}"
            )
        x = x.squeeze(at)
    if way.twice:
        raise SignatureError(f"wanted each letter once in the axes of an array, got {told(axes)}")
    if way.added:
        sizes = _Sizes(axes, lengths)
        for label in way.added:
            x = x.unsqueeze(0).expand(sizes[label], *x.shape)
    if way.order:  # each operation of ours is one more in every graph and every field
        x = x.permute(*way.order)
    if _are_single(tuple(axes)):
        return x
    shape, at = [], 0
    for axis in axes:
        count = len(parts(axis))
        shape.append(math.prod(x.shape[at : at + count]))
        at += count
    return x.reshape(shape)


class _Way(NamedTuple):
    """How axes become those of a call: which are dropped, and added in front; then their order.

    ``twice``: what would be added is a letter that stands there twice.
    """

    dropped: tuple[int, ...]
    added: tuple[str, ...]
    order: tuple[int, ...]
    twice: bool


@lru_cache(maxsize=KEPT)
def _way(here: tuple[Label, ...], axes: tuple[Axis, ...]) -> _Way:
    """It is asked in each call of some code, and found once."""
    there = labels(axes)
    places = _places(here, there)
    known = [place for place in places if place is not None]
    left = [place for place in range(len(there)) if place not in known]
    twice = any(there.count(there[k]) > 1 and not there[k].isdigit() for k in left)
    stand = [*reversed(left), *known]
    order = tuple(map(stand.index, range(len(there)))) if stand != sorted(stand) else ()
    dropped = tuple(reversed([k for k, place in enumerate(places) if place is None]))
    return _Way(dropped, tuple(there[k] for k in left), order, twice)


def _places(wanted: Sequence[Label], there: Sequence[str]) -> list[int | None]:
    """Where each label stands, those that stand twice one after the other; None where it does not.

    >>> _places(("n", 2, "2"), ("n", "2", "2"))
    [0, 2, 1]
    """
    taken = {one for one in wanted if isinstance(one, int)}
    found: list[int | None] = []
    for one in wanted:
        free = (k for k, label in enumerate(there) if label == one and k not in taken)
        place = one if isinstance(one, int) else next(free, None)
        taken |= set() if place is None else {place}
        found.append(place)
    return found


class _Sizes(dict[str, int]):
    """The length of each label: a number is that, and what is no letter has that of its axis."""

    def __init__(self, axes: Sequence[Axis], lengths: Mapping[str, int]) -> None:
        super().__init__(lengths)
        self.axes = {str(axis): axis for axis in axes}

    def __missing__(self, label: str) -> int:
        return int(label) if label.isdigit() else self.axes[label].size(self)


@lru_cache(maxsize=KEPT)
def _are_single(axes: tuple[Axis, ...]) -> bool:
    """Whether each axis holds one letter, so that an array in them has as many axes as letters."""
    return all(len(parts(axis)) == 1 for axis in axes)


def read_back(
    x: Tensor, axes: Sequence[Axis], there: Sequence[Label], lengths: Mapping[str, int]
) -> Tensor:
    """What a call returned in ``axes``, with the axes ``there``, as those of :func:`laid_out`.

    Raises :class:`SignatureError` where its shape is not what was told.
    """
    sizes, back = _Sizes(axes, lengths), _back(tuple(axes), tuple(there))
    wanted = tuple(math.prod(sizes[c] for c in parts(axis)) for axis in axes)
    if x.ndim != len(wanted) or any(a != b for a, b in zip(x.shape, wanted, strict=True)):
        raise SignatureError(f"wanted {wanted} back, which is {told(axes)}, got {tuple(x.shape)}")
    if not _are_single(tuple(axes)):
        x = x.reshape([sizes[c] for c in labels(axes)])
    if back is None:
        raise SignatureError(
            f"wanted what is returned in {' '.join(map(str, there))}, got {told(axes)}"
        )
    order, added = back
    if order:
        x = x.permute(*order)
    for at in added:
        x = x.unsqueeze(at)
    return x


@lru_cache(maxsize=KEPT)
def _back(
    axes: tuple[Axis, ...], there: tuple[Label, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The order of what was returned, and where axes are added; None where not all is wanted."""
    places = _places(there, labels(axes))
    known = tuple(place for place in places if place is not None)
    if len(known) < len(labels(axes)):
        return None
    added = tuple(at for at, place in enumerate(places) if place is None)
    return known if list(known) != sorted(known) else (), added


def told(axes: Sequence[Axis]) -> str:
    """Axes as they are written."""
    return " ".join(map(str, axes)) or "no axes"


Raw = Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]]


def _to_order(x: Tensor, order: str) -> Tensor:
    """From (B, H, T, D) to the order; an axis that is not in it has length 1 and is dropped.

    It is a view always: code that changes the shape of what it is given changes that of the view.
    """
    here = "bhtd"
    for letter in here:
        if letter not in order:
            x = x.squeeze(here.index(letter))
            here = here.replace(letter, "")
    return x.permute(*(here.index(letter) for letter in order))


def _from_order(x: Tensor, order: str) -> Tensor:
    """Back to (B, H, T, D)."""
    here = "".join(letter for letter in "bhtd" if letter in order)
    x = x if here == order else x.permute(*(order.index(letter) for letter in here))
    for index, letter in enumerate("bhtd"):
        if letter not in order:
            x = x.unsqueeze(index)
    return x


def _placed(positions: Tensor, places: str) -> Tensor:
    """From (B, T) or (B, T, axes) to the order of positions; without b it is the first row's."""
    here = "bta" if positions.dim() == 3 else "bt"
    if "b" not in places:
        positions, here = positions[0], here[1:]
    return positions.permute(*(here.index(letter) for letter in places))


def rotating(raw: Raw, order: str, places: str) -> Callable[..., tuple[Tensor, ...]]:
    """A call on several tensors in an order, as one on (B, H, T, D) with positions (B, T[, axes]).

    Heads the code does not know become rows.  Positions without rows are given row by row, or
    once where all rows have the same; positions of one row are those of all.
    """

    def one(xs: tuple[Tensor, ...], positions: Tensor) -> tuple[Tensor, ...]:
        out = raw(tuple(_to_order(x, order) for x in xs), _placed(positions, places))
        return tuple(_from_order(x, order) for x in out)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "h" not in order and heads > 1:
            flat = tuple(x.flatten(0, 1).unsqueeze(1) for x in xs)
            many = positions.repeat_interleave(heads, 0)
            return tuple(
                x.reshape(rows, heads, *x.shape[2:]) for x in rotate(*flat, positions=many)
            )
        shared = "b" in places or len(positions) == 1 or _alike(positions)
        if ("b" in order and shared) or rows == 1:
            return one(xs, positions)
        apart = [one(tuple(x[b : b + 1] for x in xs), positions[b : b + 1]) for b in range(rows)]
        return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))

    return rotate


def held(positions: Tensor) -> Tensor:
    """The numbers of positions, for a look of the adapter's own at them.

    Where runs are followed, what the code does with positions is told; what is done here is not.
    """
    numbers: Tensor = getattr(positions, "numbers", positions)
    return numbers


def _alike(positions: Tensor) -> bool:
    if torch.compiler.is_exporting():
        return False
    positions = held(positions)
    return bool((positions == positions[:1]).all())


Rotates = Callable[..., tuple[Tensor, ...]]


def _ordered(call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str) -> Rotates:
    """A call in an order of axes as one on (B, H, T, D); what the code does not know is looped."""

    def rotate(*xs: Tensor) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "h" not in order and heads > 1:
            flat = rotate(*(x.flatten(0, 1).unsqueeze(1) for x in xs))
            return tuple(
                got.reshape(*x.shape[:2], *got.shape[2:]) for x, got in zip(xs, flat, strict=True)
            )
        if "b" not in order and rows > 1:
            apart = [rotate(*(x[b : b + 1] for x in xs)) for b in range(rows)]
            return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))
        return tuple(_from_order(x, order) for x in call(tuple(_to_order(x, order) for x in xs)))

    return rotate


def at_start(
    call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str, least: int = 0
) -> Rotates:
    """f(x), which gives the t-th token position t, as rotate(x, positions).

    Each token is put at its place in a sequence of zeros that is long enough, and read there: a
    rotary code rotates every token by itself.  Tokens that share a place go in one after the other.
    ``least``: the sequence is at least so long.
    """
    plain = _ordered(call, order)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, _, tokens, width = xs[0].shape
        positions = held(positions)
        running = torch.arange(tokens, device=positions.device).expand(rows, tokens)
        if least and torch.compiler.is_exporting():
            raise TypeError(
                "the graph of one token in a long call is not that of any call of the code"
            )
        if torch.compiler.is_exporting() or (torch.equal(positions, running) and not least):
            return plain(*xs)
        same = (positions[:, :, None] == positions[:, None, :]).tril(-1)
        rotates_before = same.sum(-1)
        outs: list[Tensor] = []
        length = max(int(positions.max()) + 1, least, 1)
        for count in range(int(rotates_before.max()) + 1):
            row, token = (rotates_before == count).nonzero(as_tuple=True)
            place = positions[row, token].long()
            longer = [x.new_zeros(rows, x.shape[1], length, width) for x in xs]
            for long, x in zip(longer, xs, strict=True):
                long[row, :, place] = x[row, :, token]
            found = plain(*longer)
            outs = outs or _empty(xs, found)
            for out, got in zip(outs, found, strict=True):
                out[row, :, token] = got[row, :, place]
        return tuple(outs)

    return rotate


def _empty(xs: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> list[Tensor]:
    """Arrays for what comes back, which need not have the dtype of what went in."""
    return [torch.zeros_like(x, dtype=got.dtype) for x, got in zip(xs, found, strict=True)]


def in_grid(call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str) -> Rotates:
    """f(x) of tokens that fill a square row by row, as rotate(x, positions) at rows and columns.

    The square is the least that has all the places, and zeros stand at the others.
    """

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        at = held(positions).long()
        side = int(at.max()) + 1
        flat = at[..., 0] * side + at[..., 1]
        return at_start(call, order, side * side)(*xs, positions=flat)

    return rotate


def at_offsets(
    call: Callable[[tuple[Tensor, ...], int], tuple[Tensor, ...]], order: str
) -> Rotates:
    """f(x, offset), as rotate(x, positions): one call for rows that run on, else one a token."""

    def start(*xs: Tensor, offset: int) -> tuple[Tensor, ...]:
        return _ordered(lambda ys: call(ys, offset), order)(*xs)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, tokens = positions.shape
        first = positions[:, :1]
        on = positions == first + torch.arange(tokens, device=positions.device)
        if bool(on.all()) and bool((first == first[0]).all()):
            return start(*xs, offset=int(first[0]))
        outs: list[Tensor] = []
        for row in range(rows):
            whole = bool(on[row].all())
            for t in range(1 if whole else tokens):
                part = slice(t, tokens if whole else t + 1)
                got = start(*(x[row : row + 1, :, part] for x in xs), offset=int(positions[row, t]))
                outs = outs or _empty(xs, got)
                for out, one in zip(outs, got, strict=True):
                    out[row : row + 1, :, part] = one
        return tuple(outs)

    return rotate

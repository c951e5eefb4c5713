"""Arrays in the axes that a call wants, and back: an axis has a letter, or a place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

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

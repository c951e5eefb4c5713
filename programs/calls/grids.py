"""Additive encodings of a grid, separated into one encoding for each axis."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from torch import Tensor

from ..subjects import Additive

PROBED_PLACES = 6  # places along an axis, from which its channels are found
TRIED_LENGTHS = (4096, 1024, 256, 64, 32, 16, 8)  # along an axis; the first that works is used
MAX_SQUARE_SIDE = 64  # limit for squares, whose other axis is equally long


def nearly_square(count: int) -> tuple[int, int]:
    """Return the sides of a grid of so many places, its height the largest that is no wider.

    >>> nearly_square(12), nearly_square(7)
    ((3, 4), (1, 7))
    """
    high = next(k for k in range(isqrt(count), 0, -1) if count % k == 0)
    return high, count // high


def _sizes(code: Additive, axis: int, count: int) -> tuple[int, ...]:
    """Return grid sizes: this count along the axis, 2 along others; for squares, the same count."""
    assert code.grid is not None
    sizes = tuple(count if k == axis else 2 for k in range(code.axes))
    try:
        code.grid(sizes)
    except ValueError:
        return (count,) * code.axes
    return sizes


def _line(code: Additive, axis: int, count: int) -> Tensor:
    """Return the rows (count, D) along an axis, at index 0 of the others."""
    assert code.grid is not None
    at = tuple(slice(None) if k == axis else 0 for k in range(code.axes))
    return code.grid(_sizes(code, axis, count))[at]


def channels_of(code: Additive) -> tuple[list[int], ...]:
    """Return the channels that change along each axis.

    >>> import torch
    >>> places = lambda sizes: torch.meshgrid(*map(torch.arange, sizes), indexing="ij")
    >>> table = lambda sizes: torch.stack(places(sizes), -1)
    >>> channels_of(Additive(name="f", added=lambda x: x, width=2, grid=table, axes=2))
    ([0], [1])
    """
    found = []
    for axis in range(code.axes):
        line = _line(code, axis, PROBED_PLACES)
        found.append((line != line[:1]).any(0).nonzero()[:, 0].tolist())
    return tuple(found)


def along_each_axis(code: Additive, *, shared: bool = False) -> dict[str, Additive]:
    """Return each axis as an encoding of its own, of the channels that it changes, by name.

    Empty if an axis changes no channel, or if two axes change the same one and channels may not be
    ``shared``.
    """
    each = channels_of(code)
    every = [c for one in each for c in one]
    if (len(set(every)) < len(every) and not shared) or not all(each):
        return {}
    names = ("frames", "rows", "columns")[-code.axes :]
    return {
        f"{name} (channels {channel_ranges(channels)})": _of_axis(code, axis, channels)
        for axis, (name, channels) in enumerate(zip(names, each, strict=True))
    }


def _of_axis(code: Additive, axis: int, channels: list[int]) -> Additive:
    def added(x: Tensor) -> Tensor:
        return x + _line(code, axis, x.shape[1])[:, channels].to(x)

    return replace(
        code,
        added=added,
        width=len(channels),
        grid=None,
        axes=1,
        most=_longest(code, axis),
        scale=1.0,
        make=None,
    )


def _longest(code: Additive, axis: int) -> int:
    """The largest length to try that the table has along an axis; if none, ``PROBED_PLACES``."""
    square = len(set(_sizes(code, axis, PROBED_PLACES))) == 1
    for count in TRIED_LENGTHS:
        if square and count > MAX_SQUARE_SIDE:
            continue
        try:
            _line(code, axis, count)
        except Exception:  # noqa: BLE001 (beyond its table, code may raise anything)
            continue
        return count
    return PROBED_PLACES


def channel_ranges(channels: list[int]) -> str:
    """Describe channels as ranges; if there are more than three, by the first two and the last.

    >>> channel_ranges([4, 5, 6, 7, 12, 13]), channel_ranges([0, 2, 4, 6])
    ('4 to 7, 12 to 13', '0, 2, .., 6')
    """
    ends = [k for k, c in enumerate(channels[:-1]) if channels[k + 1] != c + 1] + [-1]
    starts = [0, *(k + 1 for k in ends[:-1])]
    runs = [(channels[a], channels[b]) for a, b in zip(starts, ends, strict=True)]
    if len(runs) > 3:
        return f"{channels[0]}, {channels[1]}, .., {channels[-1]}"
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)

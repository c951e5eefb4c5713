"""A bias by two or more coordinates, as Swin has it: which offsets share a place in its table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from ..identity import Part
from ..subjects import Bias

__all__ = ["coordinates", "offsets_in", "shared", "window_parts"]

SIZES = ((3, 5), (2, 3, 4))


def coordinates(sizes: tuple[int, ...]) -> Tensor:
    """The coordinates of each place of a window, row-major: (R, axes)."""
    return torch.tensor(list(product(*(range(n) for n in sizes))), dtype=torch.int64)


def offsets_in(sizes: tuple[int, ...]) -> tuple[Tensor, int]:
    """The number of the offset, key less query, of each two places (R, R), and how many there are.

    >>> offsets_in((3, 5))[1]
    45
    """
    place = coordinates(sizes)
    offset = place[None, :, :] - place[:, None, :]
    number = torch.zeros(offset.shape[:2], dtype=torch.int64)
    count = 1
    for axis, n in enumerate(sizes):
        number = number * (2 * n - 1) + offset[..., axis] + n - 1
        count *= 2 * n - 1
    return number, count


def shared(index: Tensor, sizes: tuple[int, ...]) -> tuple[int, tuple[int, int, int, int] | None]:
    """How many places of a table are used, and two pairs of places of different offsets in one.

    Raises ``ValueError`` for another shape than (R, R).
    """
    number, _ = offsets_in(sizes)
    if tuple(index.shape) != tuple(number.shape):
        raise ValueError(f"the index of a window {sizes} is {tuple(number.shape)}; "
                         f"got {tuple(index.shape)}")  # fmt: skip
    flat, own = index.flatten().tolist(), number.flatten().tolist()
    R = index.shape[0]
    first: dict[int, int] = {}
    clash = None
    for i, (at, offset) in enumerate(zip(flat, own, strict=True)):
        j = first.setdefault(at, i)
        if clash is None and own[j] != offset:
            clash = (*divmod(j, R), *divmod(i, R))
    return len(first), clash


def window_parts(code: Bias) -> Iterator[Part]:
    """Parts of code that makes an index, a bias of a window, or both."""
    for sizes in SIZES:
        if code.index is None:
            break
        try:
            index = code.index(sizes).long().cpu()
        except Exception as error:  # noqa: BLE001 (code of one size or of two axes)
            yield Part(f"index of {len(sizes)} axes", None, "",
                       f"{sizes} was refused: {type(error).__name__}", certain=False)  # fmt: skip
            continue
        yield _index(index, sizes)
    if code.window is not None:
        yield _window(code.window(*SIZES[0]).detach().double().cpu(), SIZES[0])


def _index(index: Tensor, sizes: tuple[int, ...]) -> Part:
    number, count = offsets_in(sizes)
    places, clash = shared(index, sizes)
    told = " × ".join(map(str, sizes))
    seen = f"a window of {told}: {count} offsets, {places} places"
    name = f"index of {len(sizes)} axes"
    if clash is not None:
        words = f"an index in which {count} offsets of {told} share {places} places"
        return Part(name, {"offsets": count, "places": places}, words, seen)
    alike = all(len(torch.unique(index[number == o])) == 1 for o in torch.unique(number).tolist())
    if not alike:
        return Part(name, {"offsets": count, "places": places},
                    "an index of more than the offset", seen)  # fmt: skip
    sign = "key less query" if torch.equal(index, number) else (
        "query less key" if torch.equal(index, number.mT) else "in another order")  # fmt: skip
    words = f"an index with a place of its own for each offset of {told}, {sign}"
    return Part(name, {"offsets": count, "places": places}, words, seen)


def _window(bias: Tensor, sizes: tuple[int, ...]) -> Part:
    """Whether a bias (H, R, R) depends on the offset alone."""
    number, count = offsets_in(sizes)
    lines = (bias[:, number == o] for o in torch.unique(number).tolist())
    apart = max(float((one.max(-1).values - one.min(-1).values).max()) for one in lines)
    told = " × ".join(map(str, sizes))
    words = f"a table by the offset in two axes, {bias.shape[0]} heads" if apart == 0 else (
        "a bias of a window that depends on more than the offset")  # fmt: skip
    distinct = len({tuple(row) for row in bias.flatten(1).T.tolist()})
    return Part("window", {"offsets": count, "distinct": distinct}, words,
                f"a window of {told}: entries of one offset differ by {apart:.1g}; {distinct} "
                f"different entries, {count} offsets")  # fmt: skip

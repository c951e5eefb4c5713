"""Arrays with one axis for each letter, in the axes that a call wants, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from .signature import Axis, SignatureError


def labels(axes: Sequence[Axis]) -> tuple[str, ...]:
    """What each axis holds, the slowest first: its letters, or itself where it is not a product."""
    return tuple(c for axis in axes for c in parts(axis))


def parts(axis: Axis) -> tuple[str, ...]:
    """The letters of which an axis is the product; else the axis as it is written."""
    return (str(axis),) if axis.split is None else axis.split


def laid_out(
    x: Tensor, here: Sequence[str], axes: Sequence[Axis], lengths: Mapping[str, int]
) -> Tensor:
    """An array with the axes ``here`` in those of a call; along further letters it is repeated.

    An axis of ``here`` that the call lacks must have length 1.  Raises :class:`SignatureError`.

    >>> import torch
    >>> from .grammar import parse
    >>> axes = parse("x: n (H D) -> x").arguments[0].axes
    >>> laid_out(torch.zeros(1, 2, 5, 4), ("B", "H", "n", "D"), axes, {}).shape
    torch.Size([5, 8])
    """
    there = labels(axes)
    twice = len(set(there)) < len(there)
    if twice and there[-1].isdigit() and there[-1] not in here:  # of a matrix of 2 by 2
        inner = laid_out(x, here, axes[:-1], lengths)
        return inner.unsqueeze(-1).expand(*inner.shape, int(there[-1]))
    if twice:
        raise SignatureError(f"wanted each letter once in the axes of an array, got {told(axes)}")
    for label in [c for c in here if c not in there]:
        place = tuple(here).index(label)
        if x.shape[place] != 1:
            raise SignatureError(
                f"wanted an axis {label}, of length {x.shape[place]}, got {told(axes)}"
            )
        x, here = x.squeeze(place), tuple(c for c in here if c != label)
    for label in [c for c in there if c not in here]:
        count = int(label) if label.isdigit() else lengths[label]
        x, here = x.unsqueeze(0).expand(count, *x.shape), (label, *here)
    if tuple(here) != there:  # each operation of ours is one more in every graph and every field
        x = x.permute(*(tuple(here).index(label) for label in there))
    if _are_single(axes):
        return x
    shape, at = [], 0
    for axis in axes:
        count = len(parts(axis))
        shape.append(math.prod(x.shape[at : at + count]))
        at += count
    return x.reshape(shape)


def _are_single(axes: Sequence[Axis]) -> bool:
    """Whether each axis holds one letter, so that an array in them has as many axes as letters."""
    return all(len(parts(axis)) == 1 for axis in axes)


def read_back(
    x: Tensor, axes: Sequence[Axis], there: Sequence[str], lengths: Mapping[str, int]
) -> Tensor:
    """What a call returned in ``axes``, with one axis for each letter of ``there``.

    Raises :class:`SignatureError` where its shape is not what was told.
    """
    split = [parts(axis) for axis in axes]
    sizes = {
        **{str(a): a.size(lengths) for a, s in zip(axes, split, strict=True) if str(a) in s},
        **lengths,
    }
    wanted = tuple(math.prod(sizes[c] for c in letters) for letters in split)
    if x.ndim != len(wanted) or any(a != b for a, b in zip(x.shape, wanted, strict=True)):
        raise SignatureError(f"wanted {wanted} back, which is {told(axes)}, got {tuple(x.shape)}")
    here = labels(axes)
    if not _are_single(axes):
        x = x.reshape([sizes[c] for c in here])
    for label in [c for c in there if c not in here]:
        x, here = x.unsqueeze(0), (label, *here)
    left = [c for c in here if c not in there]
    if left or len(here) > len(there):
        raise SignatureError(f"wanted what is returned in {' '.join(there)}, got {told(axes)}")
    if here == tuple(there):
        return x
    return x.permute(*(here.index(label) for label in there))


def told(axes: Sequence[Axis]) -> str:
    """Axes as they are written."""
    return " ".join(map(str, axes)) or "no axes"

"""How many roundings one term meets in a sum, as a function of the number of terms."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2

from .base import Record

__all__ = ["SEQUENTIAL", "Depth", "fitted", "widest"]


class Depth(Record):
    """At most ``inner`` roundings inside a block, one for each of the blocks of ``outer`` terms.

    A sum of k terms has k − 1 roundings at most in any order; ``outer`` = 1 promises no more.
    """

    inner: int
    outer: int

    def terms(self, k: int) -> int:
        """min(k, inner + ⌈k/outer⌉ + 1).

        >>> Depth(inner=256, outer=128).terms(65_536)
        769
        >>> SEQUENTIAL.terms(65_536)
        65536
        """
        return min(k, self.inner + ceil(k / self.outer) + 1)

    @property
    def sequential(self) -> bool:
        """Whether the roundings grow with the terms themselves."""
        return self.outer <= 4

    def dominates(self, lengths: Sequence[int], depths: Sequence[int]) -> bool:
        """Whether no depth that was measured is above the model."""
        return all(d <= self.terms(k) for k, d in zip(lengths, depths, strict=True))


SEQUENTIAL = Depth(inner=0, outer=1)


def fitted(lengths: Sequence[int], depths: Sequence[int]) -> Depth:
    """The model over depths measured at growing lengths, with its margins.

    Beyond the last length the depth is taken to grow no faster than between the last two:
    1/``outer`` is that, rounded up to a power of two.  ``inner`` is what is left of the largest
    depth, rounded up to a power of two: the leaves that were tried are not all.

    >>> fitted((512, 4_096, 16_384), (511, 519, 543))
    Depth(inner=512, outer=512)
    >>> fitted((64, 512, 4_096), (63, 511, 4_095)).sequential
    True
    """
    (*_, k, longest), (*_, d, deepest) = lengths, depths
    slope = max(deepest - d, 0) / (longest - k)
    outer = max(1, 2 ** int(log2(1 / slope))) if slope > 1 / longest else longest
    left = [d - ceil(k / outer) for k, d in zip(lengths, depths, strict=True)]
    return Depth(inner=2 ** ceil(log2(max(1, *left))), outer=outer)


def widest(models: Sequence[Depth]) -> Depth:
    """The model that is above all of these; above none if there are none."""
    if not models:
        return SEQUENTIAL
    return Depth(inner=max(m.inner for m in models), outer=min(m.outer for m in models))

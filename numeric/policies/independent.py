"""Errors that are independent entry by entry, and how sums of them add up.

Parts with other sources add in quadrature.  An array added to itself has 2σ, not √2 σ: parts with
a common source add linearly if they are aligned, and else become ``shared``; so do those of an
array that is repeated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .spread import Spread

ALIKE = 8  # equal numbers in an array, until its roundings are shared
SHORT = 256  # numbers that are counted sooner one by one
COUNTED = 1 << 13  # entries in which equal numbers are counted


def multiplicity(value: Tensor) -> int:
    """How often some size occurs in the array, or in lines of a large one: roundings alike."""
    if value.numel() <= COUNTED:
        return _most(value.reshape(-1))
    most = 1
    for axis, length in enumerate(value.shape):
        for back in (2, 1) if length > 1 else ():
            at: list[Any] = [n // back - (back == 1) for n in value.shape]
            at[axis] = slice(None)
            most = max(most, _most(value[tuple(at)]))
    return most


def copies(value: Tensor) -> int:
    """How often some size occurs in the whole array, wherever."""
    return _most(value.reshape(-1))


def _most(line: Tensor) -> int:
    if len(line) <= SHORT:
        often = Counter(x for x in line.abs().tolist() if 0 < x < math.inf)
        return max(often.values(), default=1)
    sizes = line.abs()
    sizes = sizes[(sizes > 0) & sizes.isfinite()]
    if len(sizes) < 2:
        return 1
    _, counts = torch.unique(sizes, return_counts=True)
    return int(counts.max())


LAMBDA = 7.0
_SOURCES = count()


@dataclass(frozen=True, eq=False)
class Part:
    """Errors of which each entry has its own: multiples of roundings that no other entry has.

    ``sources`` name the arrays of roundings; ``view`` is one object for one way in which entries
    stand to them.  A ``single`` part has one rounding an entry, which ``sigma`` then bounds.
    """

    sources: frozenset[int]
    view: object
    sigma: Tensor
    single: bool

    @classmethod
    def fresh(cls, sigma: Tensor, *, single: bool) -> Part:
        """Roundings made now."""
        return cls(frozenset((next(_SOURCES),)), object(), sigma, single)


def root(parts: Iterable[Part]) -> Tensor | None:
    """The parameter of independent parts together, entry by entry."""
    sigmas = [part.sigma for part in parts]
    if len(sigmas) < 2:
        return sigmas[0] if sigmas else None
    total = sigmas[0].square()
    for sigma in sigmas[1:]:
        alike = sigma.shape == total.shape
        total = total.addcmul_(sigma, sigma) if alike else total + sigma.square()
    return total.sqrt_()


def plus(*terms: Tensor | None) -> Tensor | None:
    """The sum of what is there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def radius_of(parts: Sequence[Part]) -> Tensor | None:
    """How far one entry may be off: single roundings by their bound, or all by λ times the root."""
    if not parts:
        return None
    together, many = root(parts), root(p for p in parts if not p.single)
    assert together is not None
    bound = plus(*(p.sigma for p in parts if p.single), None if many is None else LAMBDA * many)
    assert bound is not None
    return torch.minimum(bound, LAMBDA * together)


def linear(
    shape: torch.Size, terms: Sequence[tuple[Spread, Tensor | None]]
) -> tuple[list[Part], Tensor | None]:
    """The errors of Σ c·x entry by entry; what is repeated to fit the shape is shared."""
    kept: list[Part] = []
    shared: Tensor | None = None
    for x, c in terms:
        if not x.parts and x.shared is None:
            continue
        size = None if c is None else c.abs()
        far = x.shared if x.value.shape == shape else plus(x.shared, radius_of(x.parts))
        if far is not None:
            shared = plus(shared, far if size is None else size * far)
        for part in x.parts if x.value.shape == shape else ():
            sigma = part.sigma if size is None else size * part.sigma
            shared = _joined(kept, replace(part, sigma=sigma), shared)
    return kept, shared


def _joined(kept: list[Part], new: Part, shared: Tensor | None) -> Tensor | None:
    """Put one more part among those kept; parts with a common source are aligned, or shared."""
    met = [part for part in kept if part.sources & new.sources]
    if not met:
        kept.append(new)
    elif len(met) == 1 and met[0].sources == new.sources and met[0].view is new.view:
        at = kept.index(met[0])
        kept[at] = replace(new, sigma=met[0].sigma + new.sigma, single=met[0].single & new.single)
    else:
        for part in met:
            kept.remove(part)
        shared = plus(shared, *(radius_of([part]) for part in (*met, new)))
    return shared


def sources(x: Spread) -> frozenset[int]:
    """The arrays of roundings that an array has parts of."""
    return frozenset[int]().union(*(part.sources for part in x.parts))

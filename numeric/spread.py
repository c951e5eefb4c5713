"""The spread of independent rounding errors, which an array carries in addition to the worst case.

Model: every rounding is independent of all others, has mean zero, and is bounded by u|v|.  Then it
is sub-Gaussian with parameter u|v| (Hoeffding), and to first order the error of a result is a
weighted sum of roundings, sub-Gaussian with the root of the sum of the squares of its weights.  It
exceeds λ times that with probability at most 2 exp(−λ²/2); λ = 7 gives 5e-11 per entry.

Every array distinguishes two kinds of error, so that no dependence is lost:

``parts``   errors that are independent between entries: a weighted sum Σ w e of the entries has
            the parameter √Σ (wσ)², and parts with other sources add in quadrature.
``shared``  a radius for errors with any dependence: Σ w e is within Σ |w| r (the triangle
            inequality holds for sub-Gaussian parameters under any dependence, and for bounds).

An array added to itself has 2σ, not √2 σ: parts with a common source add linearly if they are
aligned, and otherwise become ``shared``, as do the parts of an array that is repeated.  Roundings
of equal numbers are equal, not independent: if a size occurs m times, (Σ w e)² is up to m Σ w² e²,
so σ grows by √m, and if m is large the fresh roundings are ``shared``.

On each of the D levels of its addition tree, a sum rounds partial sums that together are no larger
than T = Σ |terms|: its own roundings have the parameter √D u T.

Second-order terms use the radius λσ for one of the two factors; a nonlinear function uses its
largest slope within that radius.  No radius exceeds the deterministic one.

Higham and Mary, A new approach to probabilistic rounding error analysis, SISC 2019; Boucheron,
Lugosi and Massart, Concentration inequalities, chapter 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from .bounded_array import BoundedArray

MOST_EQUAL = 8  # equal numbers of an array whose roundings still count as independent
COUNTED_IN_FULL = 1 << 13  # entries up to which equal numbers are counted in the whole array


def multiplicity(*parts: Tensor) -> int:
    """How often some absolute value occurs in the array, or in sample lines of a large one.

    Equal sizes have equal roundings.  The array may come in parts, which are concatenated along the
    second last axis.
    """
    if sum(part.numel() for part in parts) <= COUNTED_IN_FULL:
        return _multiplicity_of(torch.cat([part.reshape(-1) for part in parts]))
    shape = list(parts[0].shape)
    if len(parts) > 1:
        shape[-2] = sum(part.shape[-2] for part in parts)
    most = 1
    for axis, length in enumerate(shape):
        for back in (2, 1) if length > 1 else ():
            at: list[Any] = [n // back - (back == 1) for n in shape]
            at[axis] = slice(None)
            most = max(most, _multiplicity_of(_line(parts, at)))
    return most


def _line(parts: Sequence[Tensor], at: list[Any]) -> Tensor:
    """A line of an array that comes in parts."""
    if len(parts) == 1:
        return parts[0][tuple(at)]
    if isinstance(at[-2], slice):
        return torch.cat([part[tuple(at)] for part in parts])
    row = at[-2]
    for part in parts:
        if row < part.shape[-2]:
            break
        row -= part.shape[-2]
    return part[(*at[:-2], row, at[-1])]


def whole_multiplicity(value: Tensor) -> int:
    """How often some absolute value occurs in the whole array."""
    return _multiplicity_of(value.reshape(-1))


def _multiplicity_of(line: Tensor) -> int:
    sizes = line.abs().cpu().numpy()
    sizes = np.sort(sizes[(sizes > 0) & (sizes < math.inf)])
    ends = np.flatnonzero(sizes[1:] != sizes[:-1])
    if len(ends) + 1 >= len(sizes):
        return 1
    return int(np.diff(ends, prepend=-1, append=len(sizes) - 1).max())


LAMBDA = 7.0
_SOURCES = count()


@dataclass(frozen=True, eq=False)
class Part:
    """Errors that are independent between entries: multiples of roundings that no other entry has.

    ``sources`` identify the arrays of roundings; ``view`` is one object per arrangement of entries
    relative to them.  A ``single`` part has one rounding per entry, bounded by ``sigma``.
    """

    sources: frozenset[int]
    view: object
    sigma: Tensor
    single: bool

    @classmethod
    def fresh(cls, sigma: Tensor, *, single: bool) -> Part:
        """A part for new roundings."""
        return cls(frozenset((next(_SOURCES),)), object(), sigma, single)


def root(parts: Iterable[Part]) -> Tensor | None:
    """The parameter of the sum of independent parts, entry by entry."""
    sigmas = [part.sigma for part in parts]
    if len(sigmas) < 2:
        return sigmas[0] if sigmas else None
    total = sigmas[0].square()
    for sigma in sigmas[1:]:
        alike = sigma.shape == total.shape
        total = total.addcmul_(sigma, sigma) if alike else total + sigma.square()
    return total.sqrt_()


def plus(*terms: Tensor | None) -> Tensor | None:
    """The sum of the terms that are not None, or None."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def radius_of(parts: Sequence[Part]) -> Tensor | None:
    """The error radius of an entry: single roundings by their bound, or all by λ times the root."""
    if not parts:
        return None
    together, many = root(parts), [p for p in parts if not p.single]
    assert together is not None
    if len(many) == len(parts):
        return LAMBDA * together
    if len(parts) == 1:
        return together
    rest = root(many)
    bound = plus(*(p.sigma for p in parts if p.single), None if rest is None else LAMBDA * rest)
    assert bound is not None
    return torch.minimum(bound, LAMBDA * together)


def linear(
    shape: torch.Size, terms: Sequence[tuple[BoundedArray, Tensor | None]]
) -> tuple[list[Part], Tensor | None]:
    """The errors of Σ c·x entry by entry; errors repeated by broadcasting are shared."""
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
    """Add a part; parts with a common source add linearly if aligned, or become shared."""
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


def sources(x: BoundedArray) -> frozenset[int]:
    """The arrays of roundings that occur in the parts of an array."""
    return frozenset[int]().union(*(part.sources for part in x.parts))


MOST_PARTS = 4


def with_fresh(
    value: Tensor, kept: list[Part], shared: Tensor | None, fresh: Sequence[Part], *, distinct: bool
) -> tuple[tuple[Part, ...], Tensor | None, bool]:
    """Return parts and shared errors after adding fresh roundings, and whether the values vary.

    ``distinct``: no size is known to occur twice.
    """
    alike = 1 if distinct else multiplicity(value)
    if alike <= MOST_EQUAL:
        grown = (replace(p, sigma=sqrt(alike) * p.sigma) for p in fresh)
        kept = [*kept, *(grown if alike > 1 else fresh)]
    else:
        shared = plus(shared, *(radius_of([part]) for part in fresh))
    while len(kept) > MOST_PARTS:
        first, second, *rest = kept
        sigma = root((first, second))
        assert sigma is not None
        kept = [Part(first.sources | second.sources, object(), sigma, single=False), *rest]
    return tuple(kept), shared, alike == 1

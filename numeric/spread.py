"""How far independent rounding errors spread: what an array carries beside the worst case.

Model: every rounding is independent of all others, of mean zero, and bounded by u|v|.  Then it is
sub-Gaussian with parameter u|v| (Hoeffding), and to first order the error of a result is a
weighted sum of roundings, sub-Gaussian with the root of the sum of the squares of its weights.
It exceeds λ times that with probability at most 2 exp(−λ²/2); λ = 7 gives 5e-11 an entry.

Of every array two kinds of error are told apart, so that no dependence is lost:

``parts``   errors that are independent entry by entry: a weighted sum Σ w e of the entries has
            the parameter √Σ (wσ)², and parts with other sources add in quadrature.
``shared``  a radius for errors with any dependence: Σ w e is within Σ |w| r (the triangle
            inequality holds for sub-Gaussian parameters whatever the dependence, and for bounds).

An array added to itself has 2σ, not √2 σ: parts with a common source add linearly if they are
aligned, and else become ``shared``; so do those of an array that is repeated.  Roundings of equal
numbers are equal, not independent: where a size occurs m times, (Σ w e)² is up to m Σ w² e², so σ
grows by √m, and where m is large the fresh roundings are ``shared``.

A sum meets, on each of the D levels of the tree that adds it, partial sums that together are no
larger than T = Σ |terms|: its own roundings have the parameter √D u T.

Second-order terms enter with the radius λσ for one of the two factors; where a function is not
linear its largest slope within that radius is taken.  No radius is above the deterministic one.

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
    from .rounded import Rounded

ALIKE = 8  # equal numbers in an array, until its roundings are shared
COUNTED = 1 << 13  # entries in which equal numbers are counted


def multiplicity(*parts: Tensor) -> int:
    """How often some size occurs in the array, or in lines of a large one: roundings alike.

    The array may come in parts, which follow each other along the last axis but one.
    """
    if sum(part.numel() for part in parts) <= COUNTED:
        return _most(torch.cat([part.reshape(-1) for part in parts]))
    shape = list(parts[0].shape)
    if len(parts) > 1:
        shape[-2] = sum(part.shape[-2] for part in parts)
    most = 1
    for axis, length in enumerate(shape):
        for back in (2, 1) if length > 1 else ():
            at: list[Any] = [n // back - (back == 1) for n in shape]
            at[axis] = slice(None)
            most = max(most, _most(_line(parts, at)))
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


def copies(value: Tensor) -> int:
    """How often some size occurs in the whole array, wherever."""
    return _most(value.reshape(-1))


def _most(line: Tensor) -> int:
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
    shape: torch.Size, terms: Sequence[tuple[Rounded, Tensor | None]]
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


def sources(x: Rounded) -> frozenset[int]:
    """The arrays of roundings that an array has parts of."""
    return frozenset[int]().union(*(part.sources for part in x.parts))


MOST_PARTS = 4


def with_fresh(
    value: Tensor, kept: list[Part], shared: Tensor | None, fresh: Sequence[Part], *, varied: bool
) -> tuple[tuple[Part, ...], Tensor | None, bool]:
    """Parts and what is shared once fresh roundings come to them; whether the values vary.

    ``varied``: no size is known to occur twice.
    """
    alike = 1 if varied else multiplicity(value)
    if alike <= ALIKE:
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

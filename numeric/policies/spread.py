"""Arrays that carry, beside the worst case, how far independent rounding errors spread.

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
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import frexp, sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..rounded import Rounded

if TYPE_CHECKING:
    from .calculus import SpreadArithmetic


# Errors that are independent entry by entry, and how sums of them add up

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


# Arrays that carry, beside the worst case, how far independent rounding errors spread

MOST_PARTS = 4


class Spread(Rounded):
    """value ± radius with its ``parts`` and what is ``shared``.

    Made by arithmetic that knows no spread, all of its deterministic radius is shared.  ``varied``
    says that no size is known to occur twice.
    """

    __slots__ = ("_near", "parts", "shared", "varied")
    __hash__ = object.__hash__
    arithmetic: SpreadArithmetic

    def __init__(
        self, arithmetic: SpreadArithmetic, value: Tensor, radius: Tensor | None = None,
        unit: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(arithmetic, value, radius, unit)
        self.parts: tuple[Part, ...] = ()
        self.shared: Tensor | None = radius
        self.varied = False
        self._near: tuple[Any, ...] = ()

    def settled(
        self, terms: Sequence[tuple[Spread, Tensor | None]], fresh: Tensor | None = None,
        *more: Part, also: Tensor | None = None,
    ) -> Spread:  # fmt: skip
        """With the errors of Σ c·x, of one rounding an entry, and whatever else is given."""
        kept, shared = linear(self.value.shape, terms)
        full = [x for x, _ in terms if x.value.shape == self.value.shape]
        self.varied = any(x.varied for x in full)
        return self.holding(kept, plus(shared, also), fresh, more)

    def holding(
        self, kept: list[Part], shared: Tensor | None, fresh: Tensor | None, more: Sequence[Part]
    ) -> Spread:
        """With these parts, one rounding an entry, and what else is independent."""
        alike = 1 if self.varied else multiplicity(self.value)
        self.varied = alike == 1
        new = [Part.fresh(fresh, single=True)] if fresh is not None else []
        if alike <= ALIKE:
            grown = (replace(p, sigma=sqrt(alike) * p.sigma) for p in (*more, *new))
            kept = [*kept, *(grown if alike > 1 else (*more, *new))]
        else:
            shared = plus(shared, *(radius_of([part]) for part in (*more, *new)))
        while len(kept) > MOST_PARTS:
            first, second, *rest = kept
            sigma = root((first, second))
            assert sigma is not None
            kept = [Part(first.sources | second.sources, object(), sigma, single=False), *rest]
        self.parts, self.shared = tuple(kept), shared
        return self

    def own(self) -> Tensor | None:
        """The parameter of what is independent entry by entry."""
        return root(self.parts)

    def probable(self) -> Tensor:
        """The radius that independent errors of mean zero exceed hardly ever, by this alone."""
        found = plus(radius_of(self.parts), self.shared)
        if found is None:
            return torch.zeros_like(self.value)
        return found.nan_to_num(nan=float("inf")).expand(self.value.shape)

    def likely(self) -> Tensor:
        """The probable radius, where it is below the deterministic one."""
        state = (self.parts, self.shared, self.radius)
        if len(self._near) != 4 or any(a is not b for a, b in zip(self._near, state, strict=False)):
            self._near = (*state, torch.minimum(self.probable(), self.error()))
        near: Tensor = self._near[3]
        return near

    def moved(self, how: Any) -> Spread:
        """The same entries in other places, none of them twice."""
        radius = None if self.radius is None else how(self.radius)
        result = Spread(self.arithmetic, how(self.value), radius, self.unit)
        result.parts = tuple(
            replace(p, view=object(), sigma=how(p.sigma.expand(self.value.shape)))
            for p in self.parts
        )
        result.shared = None if self.shared is None else how(self.shared.expand(self.value.shape))
        result.varied = self.varied
        return result

    def repeated(self, how: Any) -> Spread:
        """The same entries in other places, some of them more than once."""
        plain = Spread(self.arithmetic, self.value, self.radius, self.unit)
        plain.shared = plus(radius_of(self.parts), self.shared)
        result = plain.moved(how)
        result.varied = False
        return result

    def __getitem__(self, key: Any) -> Spread:
        keys = key if isinstance(key, tuple) else (key,)
        again = any(isinstance(k, Tensor | list) for k in keys)
        return (self.repeated if again else self.moved)(lambda x: x[key])

    def _stored(self, value: Tensor, unit: float) -> Tensor:
        return value.abs().mul_(unit).add_(self.arithmetic.profile.least)

    def __add__(self, other: Any) -> Any:
        result: Any = super().__add__(other)
        a, b, unit = self.arithmetic.pair(self, other)
        exact = isinstance(other, int | float) and other == 0
        fresh = None if exact else self._stored(result.value, unit)
        return result.settled([(a, None), (b, None)], fresh)

    def __mul__(self, other: Any) -> Any:
        result: Any = super().__mul__(other)
        a, b, unit = self.arithmetic.pair(self, other)
        exact = isinstance(other, int | float) and (abs(other) in (0, 1) or _power_of_two(other))
        fresh = None if exact else self._stored(result.value, unit)
        both = None
        if (a.parts or a.shared is not None) and (b.parts or b.shared is not None):
            both = a.likely() * b.likely()
        return result.settled([(a, b.value), (b, a.value)], fresh, also=both)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, exponent: int) -> Any:
        result: Any = super().__pow__(exponent)
        if exponent < -1:
            return result
        size, r = self.value.abs(), self.likely()
        if exponent == -1:
            slope = 1 / (size * (size - r).clamp(min=0))
            return self.through(result, slope, 0.0)
        slope = exponent * (size + r) ** (exponent - 1)
        return self.through(result, slope, self.arithmetic.profile.power_error)

    def through(self, result: Any, slope: Tensor, units: float) -> Any:
        """A function with this slope, itself off by so many units of the accumulation."""
        slope = torch.where(self.likely() == 0, 0.0, slope)
        inner = units * self.arithmetic.inner(self.unit)
        fresh = self._stored(result.value, result.unit + inner)
        return result.settled([(self, slope)], fresh)

    def sum(self, axis: int) -> Any:
        """Independent errors add in quadrature, in each sum those of its own entries."""
        result: Any = super().sum(axis)
        u, n = self.arithmetic.inner(self.unit), self.value.shape[axis]
        shape = self.value.shape
        kept = [
            Part(p.sources, object(), p.sigma.expand(shape).square().sum(axis).sqrt(), single=False)
            for p in self.parts
        ]
        shared = None if self.shared is None else self.shared.expand(shape).sum(axis)
        terms = self.arithmetic.profile.sum_terms(n)
        summed = sqrt(terms) * u * self.value.abs().sum(axis)
        result.varied = self.varied
        more = (Part.fresh(summed, single=False),) if n > 1 else ()
        return result.holding(kept, shared, self._stored(result.value, self.unit), more)

    def __matmul__(self, other: Any) -> Any:
        result: Any = super().__matmul__(other)
        return self.multiplied(self.arithmetic.spread(other), result)

    def multiplied(self, b: Spread, result: Any) -> Any:
        """Errors of a product of matrices: each entry of a factor meets many results."""
        profile, k = self.arithmetic.profile, self.value.shape[-1]
        size, other = self.value.abs(), b.value.abs()
        mine, theirs = self.own(), b.own()
        squares = [
            None if mine is None else mine.expand(size.shape).square() @ other.square(),
            None if theirs is None else size.square() @ theirs.expand(other.shape).square(),
        ]
        common = sources(self) & sources(b)
        if profile.operand:
            common = frozenset((-1,))
            squares.append((2 * profile.operand) ** 2 * (size.square() @ other.square()))
        if common:
            spread = plus(*(None if s is None else s.sqrt() for s in squares))
        else:
            total = plus(*squares)
            spread = None if total is None else total.sqrt()
        r, far = self.shared, b.shared
        both = self.parts or r is not None, b.parts or far is not None
        shared = plus(
            None if spread is None else LAMBDA * spread,
            None if r is None else r.expand(size.shape) @ other,
            None if far is None else size @ far.expand(other.shape),
            self.likely() @ b.likely() if all(both) else None,
        )
        left = size.norm(dim=-1, keepdim=b.value.ndim > 1)
        right = other.norm(dim=-2 if other.ndim > 1 else -1, keepdim=other.ndim > 1)
        if self.value.ndim == 1 and right.ndim > 1:
            right = right.squeeze(-2)
            left = left if left.ndim == 0 else left.squeeze(-1)[..., None]
        norms = (left * right).expand(result.value.shape)
        rows = self.shape[-2] if self.ndim > 1 else 1
        terms = profile.product_terms(k, rows, b.shape[-1] if b.ndim > 1 else 1)
        summed = sqrt(terms + 1) * profile.product * norms
        result.varied = self.varied and b.varied
        stored = self._stored(result.value, profile.store)
        return result.holding([], shared, stored, (Part.fresh(summed, single=False),))


def _power_of_two(c: float) -> bool:
    return abs(frexp(c)[0]) == 0.5


def likely(x: Rounded) -> Tensor:
    """The probable radius where there is one, the deterministic one otherwise."""
    return x.likely() if isinstance(x, Spread) else x.error()


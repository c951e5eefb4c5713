"""Arrays with a value, a bound on the error of each entry, and how far independent errors spread.

The bounds are set by the operations of :mod:`.error_analysis`; here stand what is known of an
array, what follows from it, and how entries move to other places with their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import torch
from torch import Tensor

from .spread import Part, linear, multiplicity, plus, radius_of, root, with_fresh

if TYPE_CHECKING:
    from .arithmetic import Arithmetic
    from .attention_bound import Scores

KEPT = 1 << 22
"""Results with at least this many entries are not cached, to save memory."""
A = TypeVar("A")


def spectral(matrix: Tensor) -> float:
    """A bound on ‖M‖₂: the largest singular value, with a margin for its own rounding."""
    top = float(torch.linalg.matrix_norm(matrix, 2))
    return top * (1 + max(matrix.shape) * 2.0**-40)


def _is_same_array(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.data_ptr(), a.shape, a.stride()) == (b.data_ptr(), b.shape, b.stride())


class BoundedArray:
    """value ± radius; ``unit`` is the roundoff of the dtype in which it is stored.

    ``radius`` is None if the stored number is exact.  ``total`` bounds the Euclidean norm of all
    errors together, if that is known to be less than the radii imply.

    If spread is tracked, ``parts`` are errors that are independent between entries, and ``shared``
    is a radius of all other errors, by default of all.  ``calls`` lists the attention calls whose
    query is this array.
    """

    __slots__ = (
        "__weakref__",
        "_distinct",
        "_near",
        "_norm",
        "_once",
        "arithmetic",
        "calls",
        "parts",
        "radius",
        "shared",
        "total",
        "unit",
        "value",
    )

    def __init__(
        self,
        arithmetic: Arithmetic,
        value: Tensor,
        radius: Tensor | None = None,
        unit: float | None = None,
    ) -> None:
        self.arithmetic, self.value, self.radius = arithmetic, value, radius
        self.unit = arithmetic.profile.store if unit is None else unit
        self.total: float | None = None
        self._norm: float | None = None
        self.parts: tuple[Part, ...] = ()
        self.shared: Tensor | None = radius
        self._distinct: bool | None = None
        self._near: tuple[Any, ...] = ()
        self._once: dict[object, tuple[object, Any]] = {}
        self.calls: list[Scores] = []

    @property
    def shape(self) -> tuple[int, ...]:
        """The axis lengths."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def mT(self) -> Self:
        """The last two axes exchanged."""
        return self.moved(lambda x: x.mT)

    def moved(self, how: Callable[[Tensor], Tensor], *, again: bool = False) -> Self:
        """Move entries to other places; ``again``: some of them to more than one."""
        radius = None if self.radius is None else how(self.radius)
        result = type(self)(self.arithmetic, how(self.value), radius, self.unit)
        if not self.arithmetic.spreads:
            return result
        shared = plus(radius_of(self.parts), self.shared) if again else self.shared
        result.shared = None if shared is None else how(shared.expand(self.value.shape))
        result.distinct = self.distinct and not again
        if not again:
            result.parts = tuple(
                replace(p, view=object(), sigma=how(p.sigma.expand(self.value.shape)))
                for p in self.parts
            )
        return result

    def equals_exactly(self, other: BoundedArray) -> bool:
        """Whether both are views of the same arrays with the same errors."""
        arrays = [[x.value, x.radius, x.shared, *(p.sigma for p in x.parts)] for x in (self, other)]
        return (
            self.unit == other.unit
            and [p.sources for p in self.parts] == [p.sources for p in other.parts]
            and [p.single for p in self.parts] == [p.single for p in other.parts]
            and all(map(_is_same_array, *arrays))
        )

    def with_fresh_errors(self) -> Self:
        """A copy with its own, independent roundings."""
        result = type(self)(self.arithmetic, self.value, self.radius, self.unit)
        result.shared, result.total = self.shared, self.total
        result._distinct = self._distinct  # noqa: SLF001 (of its own class; the property computes it)
        result.parts = tuple(Part.fresh(p.sigma, single=p.single) for p in self.parts)
        return result

    def error(self) -> Tensor:
        """The radius as an array."""
        return torch.zeros_like(self.value) if self.radius is None else self.radius

    def __getitem__(self, key: Any) -> Self:
        keys = key if isinstance(key, tuple) else (key,)
        return self.moved(lambda x: x[key], again=any(isinstance(k, Tensor | list) for k in keys))

    # cached, since it is needed again for the same keys with every block of queries

    def once(self, what: object, of: object, compute: Callable[[], A]) -> A:
        """Return ``compute()``, cached while ``of`` is the object it was computed from."""
        known = self._once.get(what)
        if known is None or known[0] is not of:
            known = of, compute()
            if not isinstance(known[1], Tensor) or known[1].numel() < KEPT:
                self._once[what] = known
        found: A = known[1]
        return found

    def remember(self, what: object, of: object, found: Tensor) -> None:
        """Cache a result that is already known."""
        if self.value.numel() < KEPT:
            self._once[what] = (of, found)

    @property
    def size(self) -> Tensor:
        """|value|."""
        return self.once("size", self.value, self.value.abs)

    @property
    def square(self) -> Tensor:
        """value²."""
        return self.once("square", self.value, self.value.square)

    @property
    def finite(self) -> bool:
        """Whether all entries are finite."""
        return self.once("finite", self.value, lambda: bool(self.value.isfinite().all()))

    @property
    def lengths(self) -> Tensor:
        """The Euclidean norms of the rows."""
        found: Tensor = self.once("lengths", self.value, lambda: self.value.norm(dim=-1))
        return found

    # how errors spread

    @property
    def distinct(self) -> bool:
        """Whether no absolute value is known to occur twice."""
        if self._distinct is None:
            self._distinct = multiplicity(self.value) == 1
        return self._distinct

    @distinct.setter
    def distinct(self, known: bool) -> None:
        self._distinct = known

    def set_errors(
        self,
        terms: Sequence[tuple[BoundedArray, Tensor | None]],
        fresh: Tensor | None = None,
        *,
        also: Tensor | None = None,
    ) -> Self:
        """Set the errors of Σ c·x, one rounding per entry, and further shared errors."""
        kept, shared = linear(self.value.shape, terms)
        self.distinct = any(x.distinct for x, _ in terms if x.value.shape == self.value.shape)
        return self.set_parts(kept, plus(shared, also), fresh)

    def set_parts(
        self, kept: list[Part], shared: Tensor | None, fresh: Tensor | None, *more: Part
    ) -> Self:
        """Set these parts, one rounding per entry, and further independent parts."""
        new = more if fresh is None else (*more, Part.fresh(fresh, single=True))
        self.parts, self.shared, self.distinct = with_fresh(
            self.value, kept, shared, new, distinct=self.distinct
        )
        return self

    def sigma(self) -> Tensor | None:
        """The sub-Gaussian parameter of the errors that are independent between entries."""
        if len(self.parts) < 2:
            return root(self.parts)
        return self.once("own", self.parts, lambda: cast("Tensor", root(self.parts)))

    def sigma_square(self) -> Tensor | None:
        """The square of :meth:`own`, expanded to the shape."""
        own = self.sigma()
        if own is None:
            return None
        return self.once("own square", self.parts, lambda: own.expand(self.value.shape).square())

    def probable_radius(self) -> Tensor:
        """The radius that independent errors of mean zero hardly ever exceed."""
        found = plus(radius_of(self.parts), self.shared)
        if found is None:
            return torch.zeros_like(self.value)
        return found.nan_to_num(nan=math.inf).expand(self.value.shape)

    def smallest_radius(self) -> Tensor:
        """The probable or the deterministic radius, whichever is smaller, entry by entry."""
        if not self.arithmetic.spreads:
            return self.error()
        state = (self.parts, self.shared, self.radius)
        if len(self._near) != 4 or any(a is not b for a, b in zip(self._near, state, strict=False)):
            self._near = (*state, torch.minimum(self.probable_radius(), self.error()))
        near: Tensor = self._near[3]
        return near

    def storing(self, unit: float) -> Tensor:
        """The error bound of one rounding at a unit, for every entry."""
        known = self._once.pop("storing", None)
        if known is not None and known[0] == unit:
            found: Tensor = known[1]
            return found
        return self.arithmetic.storing(self.value, unit)

    def set_errors_of_function(
        self, of: BoundedArray, slope: Callable[[Tensor], Tensor], units: float
    ) -> Self:
        """Set the errors of a function of another array, given its slope within a radius.

        ``units``: the error of the function itself, in unit roundoffs.
        """
        if not self.arithmetic.spreads:
            return self
        near = of.smallest_radius()
        steep = torch.where(near == 0, 0.0, slope(near))
        fresh = self.storing(self.unit + units * self.arithmetic.inner(of.unit))
        return self.set_errors([(of, steep)], fresh)

    def has_errors(self) -> bool:
        """Whether any errors are known."""
        return bool(self.parts) or self.shared is not None

    def norm(self) -> float:
        """A bound on the largest singular value, cached; of a product the Frobenius norm."""
        if self._norm is None:
            cheap = float(self.value.norm()) * (1 + 2.0**-40)
            self._norm = spectral(self.value) if self.total is None else cheap
        return self._norm

    def stored_total(self, total: float) -> float:
        """The norm of all errors after results with errors of norm ``total`` are rounded."""
        least = self.arithmetic.profile.least * math.sqrt(self.value.numel())
        return total * (1 + self.unit) + float(self.value.norm()) * self.unit + least

    def total_error(self) -> float:
        """A bound on the Euclidean norm of all errors together."""
        entries = 0.0 if self.radius is None else float(self.radius.norm())
        return entries if self.total is None else min(entries, self.total)

"""The array API functions on arrays with error radii."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .devices import wide_dtype
from .error_analysis import Rounded, Scalar
from .profile import Profile
from .row_selection import Moves
from .spread import Part, multiplicity, plus, radius_of, root, sources

FEW_DIGITS = 2.0**-40  # a number with at most this many binary digits was written exactly
LITERAL_ERROR = 4 * 2.0**-53  # of any other, the result of a few float64 operations


def representable(c: Scalar, u: float) -> bool:
    """Whether a number is exact at unit roundoff u.

    >>> representable(0.125, 2**-8), representable(257, 2**-8)
    (True, False)
    """
    if not math.isfinite(c):
        return True
    scaled = math.frexp(c)[0] / u
    return scaled == math.floor(scaled)


def _filled(x: Tensor | None, like: Rounded) -> Tensor:
    return torch.zeros_like(like.value) if x is None else x.expand(like.value.shape)


class Arithmetic(Moves):
    """The array functions of :class:`Rounded`, with the unit roundoffs of one profile.

    If ``spreads``, arrays carry the spread of independent errors in addition to the worst case.
    """

    __name__ = "attnproof.numeric.arithmetic"  # array_namespace reads the name of every namespace
    inf, pi = math.inf, math.pi

    def __init__(self, profile: Profile, *, spreads: bool = False) -> None:
        self.profile, self.spreads = profile, spreads
        self.least = torch.tensor(profile.least, dtype=torch.float64)
        self.overflowed = False
        """Whether an exact value came close to the largest number of its dtype, or exceeded it."""

    def rounded(
        self, value: Tensor, radius: Tensor | None, unit: float, *, exact: bool = False
    ) -> Rounded:
        """Return a computed value, rounded once when it is stored unless the operation is exact.

        Beyond the largest number of the dtype the radius is infinite.
        """
        own = None
        if not exact:
            own = self.storing(value, unit)
            if radius is None:
                radius = own
            else:  # if spreads are followed, the storing error is used again below
                kept = None if self.spreads else own
                radius = torch.add(own, radius, alpha=1 + unit, out=kept)
        total = 0.0 if radius is None else float(radius.sum())
        largest = self.largest(unit)
        if radius is not None and not total < largest * unit:  # no |value| is above total / unit
            beyond = value.abs() + radius > largest
            near = value.isfinite() & (value.abs() > largest / 2)
            self.overflowed = self.overflowed or bool(near.any())
            radius = torch.where(beyond, math.inf, radius)
            radius = radius.nan_to_num(nan=math.inf, posinf=math.inf)
            radius = torch.where(value.isinf(), 0.0, radius)
        result = Rounded(self, value, radius, unit)
        if own is not None and self.spreads:
            result.remember("storing", unit, own)
        return result

    def storing(self, value: Tensor, unit: float) -> Tensor:
        """The error bound of one rounding at a unit, for every entry."""
        size = value.abs()
        return torch.add(self.least, size, alpha=unit, out=size)

    def largest(self, unit: float) -> float:
        """The largest number of the dtype with this unit roundoff, or of the wide dtype."""
        dtype = self.profile.dtype if unit >= self.profile.store else wide_dtype(self.profile.dtype)
        return float(torch.finfo(dtype).max)

    def inner(self, unit: float) -> float:
        """The roundoff inside a function whose result is stored with this unit."""
        return min(unit, self.profile.accumulate)

    def exact(self, value: Tensor, unit: float | None = None) -> Rounded:
        """Stored numbers, without error."""
        return Rounded(self, value, None, unit)

    def number(self, c: Scalar, unit: float) -> Rounded:
        """A literal, rounded to the unit of its operand.

        A literal that fills a float64 (1/3, a root) was itself rounded in float64.
        """
        error = 0.0 if representable(c, unit) else abs(c) * unit
        error += 0.0 if representable(c, FEW_DIGITS) else abs(c) * LITERAL_ERROR
        radius = torch.tensor(error, dtype=torch.float64) if error else None
        return Rounded(self, torch.tensor(float(c), dtype=torch.float64), radius, unit)

    def pair(self, a: Rounded, b: Any) -> tuple[Rounded, Rounded, float]:
        """Return two operands and the unit of the result.

        Arrays take precedence over numbers, and the wider dtype over the narrower.
        """
        if not isinstance(b, Rounded):
            return a, self.number(b, a.unit), a.unit
        units = [x.unit for x in (a, b) if x.ndim] or [a.unit, b.unit]
        unit = min(units)
        a, b = (self._cast(x, unit) if not x.ndim else x for x in (a, b))
        return a, b, unit

    def _cast(self, x: Rounded, unit: float) -> Rounded:
        return x if x.unit >= unit else self.stored(x, unit)

    def stored(self, x: Rounded, unit: float) -> Rounded:
        """Store x in a narrower dtype."""
        result = self.rounded(x.value, x.radius, unit)
        return result.set_errors([(x, None)], result.storing(unit)) if self.spreads else result

    def _function(
        self,
        x: Rounded,
        how: Callable[[Tensor], Tensor],
        spread: Callable[[Tensor, Tensor], Tensor],
        slope: Callable[[Tensor], Tensor],
    ) -> Rounded:
        """Apply a function to x.

        Within a radius r its value changes by at most ``spread`` and its slope is at most
        ``slope(r)``.  The former bounds certain errors, the latter scales independent ones.
        """
        value = how(x.value)
        own = self.profile.function_error * self.inner(x.unit) * value.abs()
        result = self.rounded(value, spread(value, x.error()) + own, x.unit)
        return result.set_errors_of_function(x, slope, self.profile.function_error)

    def exp(self, x: Rounded) -> Rounded:
        """exp, for which exp(x ± r) is within exp(x)·(exp(r) − 1) of exp(x)."""
        return self._function(
            x,
            torch.exp,
            lambda v, r: v * torch.expm1(r),
            lambda r: x.value.exp() * torch.where(r > 0, torch.expm1(r) / r.clamp(min=1e-300), 1.0),
        )

    def log(self, x: Rounded) -> Rounded:
        """log, for which log(x ± r) is within −log(1 − r/x) of log(x)."""
        return self._function(
            x,
            torch.log,
            lambda _, r: -torch.log1p(-(r / x.value.abs()).clamp(max=1)),
            lambda r: 1 / (x.value.abs() - r).clamp(min=0),
        )

    def tanh(self, x: Rounded) -> Rounded:
        """tanh, whose slope is 1 − tanh² at the point nearest to 0, and whose size is below 1."""
        result = self._function(
            x,
            torch.tanh,
            lambda _, r: r.clamp(max=2),
            lambda r: 1 - torch.tanh((x.value.abs() - r).clamp(min=0)).square(),
        )
        if x.total is not None:
            own = self.profile.function_error * self.inner(x.unit) * float(result.value.norm())
            result.total = result.stored_total(x.total + own)
        return result

    def sqrt(self, x: Rounded) -> Rounded:
        """sqrt, whose error is at most sqrt(x) − sqrt(x − r), the larger side."""
        low = x.value.clamp(min=0)
        return self._function(
            x,
            torch.sqrt,
            lambda v, r: v - torch.sqrt((low - r).clamp(min=0)),
            lambda r: 1 / (low.sqrt() + (x.value - r).clamp(min=0).sqrt()),
        )

    def abs(self, x: Rounded) -> Rounded:
        """The absolute value, exact; errors near 0 no longer have mean zero."""
        result = Rounded(self, x.value.abs(), x.radius, x.unit)
        return self._kinked(result, x, lambda: x.value.abs() > x.smallest_radius())

    def _kinked(
        self,
        result: Rounded,
        x: Rounded,
        smooth: Callable[[], Tensor],
        rough: Callable[[], Tensor] | None = None,
    ) -> Rounded:
        """Keep the errors of x where the function is linear; share them where that is uncertain."""
        if not self.spreads:
            return result
        kept = smooth()
        bent = ~kept if rough is None else rough()
        also = torch.where(bent, x.smallest_radius(), 0.0) if bool(bent.any()) else None
        return result.set_errors([(x, kept.double())], None, also=also)

    def cos(self, x: Rounded) -> Rounded:
        """cos, which keeps the absolute error of the angle and stores its result with the data."""
        return self._rotate(x, torch.cos, torch.sin)

    def sin(self, x: Rounded) -> Rounded:
        """sin, as :meth:`cos`."""
        return self._rotate(x, torch.sin, torch.cos)

    def _rotate(
        self, x: Rounded, how: Callable[[Tensor], Tensor], slope: Callable[[Tensor], Tensor]
    ) -> Rounded:
        """Apply a function whose error is in units of 1, not of its value."""
        own = self.profile.function_error * self.inner(x.unit)
        result = self.rounded(
            how(x.value), x.error().clamp(max=2) + own, max(x.unit, self.profile.store)
        )
        if not self.spreads:
            return result
        steep = (slope(x.value).abs() + x.smallest_radius()).clamp(max=1)
        return result.set_errors([(x, steep)], result.storing(result.unit) + own)

    def maximum(self, x: Any, y: Any) -> Rounded:
        """The larger value, with the larger radius."""
        a, b, unit = self.pair(x, y) if isinstance(x, Rounded) else self.pair(y, x)
        radius = torch.maximum(a.error(), b.error())
        result = Rounded(self, torch.maximum(a.value, b.value), radius, unit)
        if not self.spreads:
            return result
        certain = (a.value - b.value).abs() > a.smallest_radius() + b.smallest_radius()
        if not b.has_errors():
            return self._kinked(result, a, lambda: certain & (a.value > b.value), lambda: ~certain)
        # if the choice is uncertain, the larger error
        far = torch.maximum(a.smallest_radius(), b.smallest_radius())
        result.shared, result.distinct = far.expand(result.value.shape), False
        return result

    def where(self, condition: Tensor, x: Any, y: Any) -> Rounded:
        """x or y, entry by entry, each with its own errors."""
        first = x if isinstance(x, Rounded) else y
        a, b = (v if isinstance(v, Rounded) else self.pair(first, v)[1] for v in (x, y))
        unit = min([v.unit for v in (a, b) if v.ndim] or [a.unit, b.unit])
        radius = None
        if a.radius is not None or b.radius is not None:
            radius = torch.where(condition, a.error(), b.error())
        result = Rounded(self, torch.where(condition, a.value, b.value), radius, unit)
        if not self.spreads:
            return result
        taken = condition.double()
        return result.set_errors([(a, taken), (b, 1 - taken)])

    # shape

    def moved(self, x: Any, how: Callable[[Tensor], Tensor], *, again: bool = False) -> Any:
        """Move entries; ``again``: some are taken twice, and then share one error."""
        return x.moved(how, again=again) if isinstance(x, Rounded) else how(x)

    def arange(self, n: int) -> Tensor:
        """0, 1, .., n − 1; indices carry no radius."""
        return torch.arange(n)

    def joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        """Combine several arrays into one."""
        if not isinstance(parts[0], Rounded):
            return how(list(parts))
        radius = None
        if any(part.radius is not None for part in parts):
            radius = how([part.error() for part in parts])
        unit = min(p.unit for p in parts)
        result = Rounded(self, how([p.value for p in parts]), radius, unit)
        return self._joined_spread(result, parts, how) if self.spreads else result

    def _joined_spread(
        self, result: Rounded, arrays: Sequence[Rounded], how: Callable[[list[Tensor]], Tensor]
    ) -> Rounded:
        """Combine the errors of the arrays; those from a common source become shared."""
        met: dict[int, int] = {}
        for array in arrays:
            for source in sources(array):
                met[source] = met.get(source, 0) + 1
        private = [[p for p in a.parts if all(met[s] == 1 for s in p.sources)] for a in arrays]
        common = [
            [p for p in a.parts if p not in own] for a, own in zip(arrays, private, strict=True)
        ]
        result.shared = None
        if any(private):
            together = frozenset[int]().union(*(p.sources for own in private for p in own))
            sigma = how([_filled(root(own), a) for own, a in zip(private, arrays, strict=True)])
            single = all(len(own) < 2 and all(p.single for p in own) for own in private)
            result.parts = (Part(together, object(), sigma, single),)
        far = [plus(radius_of(c), a.shared) for c, a in zip(common, arrays, strict=True)]
        if any(f is not None for f in far):
            result.shared = how([_filled(f, a) for f, a in zip(far, arrays, strict=True)])
        result.distinct = all(a.distinct for a in arrays) and multiplicity(result.value) == 1
        return result

    def sum(self, x: Rounded, axis: int) -> Rounded:
        """The sum over an axis."""
        return x.sum(axis)

    def mean(self, x: Rounded, axis: int) -> Rounded:
        """The mean over an axis."""
        return x.sum(axis) * (1 / x.shape[axis])

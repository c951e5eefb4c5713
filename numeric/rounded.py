"""Running error analysis: arrays that carry a value and a bound on its rounding error.

A term evaluated on :class:`Rounded` arrays gives, entry by entry, the exact value (in float64)
and a radius: how far the same term, computed in the dtype of the profile, may be from it.
The rules are those of Higham, Accuracy and Stability of Numerical Algorithms, chapter 3.

Over k products with one matrix M the bound |M|ᵏ r of each entry grows like ‖ |M| ‖₂ᵏ, for an
orthogonal matrix of width d like (2d/π)^(k/2); its errors grow like ‖M‖₂ᵏ, which there is 1.
With t a bound on ‖ΔY‖ (the Euclidean norm of all entries)::

    |(M ΔY)_ij| ≤ ‖M_i‖ t      ‖M ΔY‖ ≤ ‖M‖₂ t      ‖ΔM (Y + ΔY)‖ ≤ ‖ΔM‖ (‖Y‖ + t)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .profile import Profile, wide_dtype

# Errors of products of matrices in the Euclidean norm, where entries alone would grow too fast

LARGEST = 256
"""The largest width at which the norm of a matrix is computed."""


def spectral(matrix: Tensor) -> float:
    """A bound on ‖M‖₂: the largest singular value, with room for its own rounding."""
    top = float(torch.linalg.matrix_norm(matrix, 2))
    return top * (1 + max(matrix.shape) * 2.0**-40)


def through(
    matrix: Tensor, own: Tensor | None, norm: float, values: Tensor, total: float, axis: int
) -> tuple[Tensor, float]:
    """The errors of a product with a matrix: of each entry, and their norm.

    ``matrix`` with errors ``own`` has ``norm`` as ‖M‖₂, and the other factor has ``values`` with
    errors of norm ``total``.  The rows (``axis`` -1) of a left factor or the columns (-2) of a
    right one give the entries.
    """
    entries = matrix.norm(dim=axis) * total
    whole = norm * total
    if own is not None:
        size = float(values.norm()) + total
        entries = entries + own.norm(dim=axis) * size
        whole += float(own.norm()) * size
    return entries, whole


# Running error analysis: arrays that carry a value and a bound on its rounding error

Scalar = int | float


def gamma(k: float, u: float) -> float:
    """k·u / (1 − k·u), the bound on k roundings in a row; infinite once nothing is left."""
    return k * u / (1 - k * u) if k * u < 1 else math.inf


def _plus(*parts: Tensor | None) -> Tensor | None:
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def _product(a: Tensor | None, b: Tensor | None, how: Any) -> Tensor | None:
    return None if a is None or b is None else how(a, b)


class Rounded:
    """value ± radius; ``unit`` is the roundoff of the dtype it is stored in.

    ``radius`` is None where the stored number is exact.  ``total`` bounds the Euclidean norm of
    all errors together where that is known to be less than what the radii say.
    """

    __slots__ = ("_norm", "arithmetic", "radius", "total", "unit", "value")
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __init__(
        self, arithmetic: Arithmetic, value: Tensor, radius: Tensor | None = None,
        unit: float | None = None,
    ) -> None:  # fmt: skip
        self.arithmetic, self.value, self.radius = arithmetic, value, radius
        self.unit = arithmetic.profile.store if unit is None else unit
        self.total: float | None = None
        self._norm: float | None = None

    def __array_namespace__(self, api_version: str | None = None) -> Arithmetic:
        return self.arithmetic

    @property
    def shape(self) -> tuple[int, ...]:
        """The axis lengths."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def mT(self) -> Rounded:
        """The last two axes exchanged."""
        return self.moved(lambda x: x.mT)

    def moved(self, how: Any) -> Rounded:
        """The same entries in other places."""
        radius = None if self.radius is None else how(self.radius)
        return Rounded(self.arithmetic, how(self.value), radius, self.unit)

    def error(self) -> Tensor:
        """The radius as an array."""
        return torch.zeros_like(self.value) if self.radius is None else self.radius

    def __getitem__(self, key: Any) -> Rounded:
        return self.moved(lambda x: x[key])

    def __add__(self, other: Any) -> Rounded:
        a, b, unit = self.arithmetic.pair(self, other)
        exact = isinstance(other, int | float) and other == 0
        result = self.arithmetic.rounded(
            a.value + b.value, _plus(a.radius, b.radius), unit, exact=exact
        )
        tracked = a.total is not None or b.total is not None
        if tracked and a.shape == b.shape:
            result.total = result.stored_total(a.total_error() + b.total_error())
        return result

    def __mul__(self, other: Any) -> Rounded:
        a, b, unit = self.arithmetic.pair(self, other)
        spread = _plus(
            _product(a.value.abs(), b.radius, torch.mul),
            _product(a.radius, b.value.abs(), torch.mul),
            _product(a.radius, b.radius, torch.mul),
        )
        power_of_two = isinstance(other, int | float) and abs(math.frexp(other)[0]) == 0.5
        return self.arithmetic.rounded(a.value * b.value, spread, unit, exact=power_of_two)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Rounded:
        return self * -1

    def __sub__(self, other: Any) -> Rounded:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Rounded:
        return self.__neg__().__add__(other)

    def __truediv__(self, other: Any) -> Rounded:
        return self.__mul__(other**-1)

    def __rtruediv__(self, other: Any) -> Rounded:
        return self.__pow__(-1).__mul__(other)

    def __pow__(self, exponent: int) -> Rounded:
        if exponent < -1:
            return (self**-exponent) ** -1
        size, r = self.value.abs(), self.error()
        if exponent == -1:
            return self.arithmetic.rounded(
                1 / self.value, r / (size * (size - r).clamp(min=0)), self.unit
            )
        spread = (size + r) ** exponent - size**exponent
        units = self.arithmetic.profile.power_error
        spread = spread + units * self.arithmetic.inner(self.unit) * size**exponent
        return self.arithmetic.rounded(self.value**exponent, spread, self.unit)

    def sum(self, axis: int) -> Rounded:
        """The sum over an axis, in the order that was measured."""
        terms = self.arithmetic.profile.sum_terms(self.value.shape[axis])
        factor = gamma(terms, self.arithmetic.inner(self.unit))
        radius = factor * self.value.abs().sum(axis)
        if self.radius is not None:
            radius = radius + self.radius.sum(axis) * (1 + factor)
        return self.arithmetic.rounded(self.value.sum(axis), radius, self.unit)

    def __matmul__(self, other: Rounded) -> Rounded:
        profile, b = self.arithmetic.profile, other
        size, other_size = self.value.abs(), b.value.abs()
        rows = self.shape[-2] if self.ndim > 1 else 1
        terms = profile.product_terms(self.shape[-1], rows, b.shape[-1] if b.ndim > 1 else 1)
        factor = gamma(terms, profile.product)
        factor += 2 * profile.operand + profile.operand**2
        spread = _plus(
            _product(size, b.radius, torch.matmul),
            _product(self.radius, other_size, torch.matmul),
            _product(self.radius, b.radius, torch.matmul),
        )
        local = factor * (size @ other_size)
        radius = local if spread is None else local + spread * (1 + factor)
        value = self.value @ b.value
        product = self.arithmetic.rounded(value, radius, profile.store)
        if spread is None or max(self.ndim, b.ndim) > 2 or size.shape[-1] > LARGEST:
            return product
        if not bool(value.isfinite().all()):  # no norm then bounds anything
            return product
        return self._in_norm(b, product, local, factor)

    def _in_norm(self, b: Rounded, product: Rounded, local: Tensor, factor: float) -> Rounded:
        """The product with its errors bounded through the norms of both factors as well."""
        known: list[tuple[Tensor, float]] = []
        if self.ndim == 2 and max(self.shape) <= LARGEST:
            entries, whole = through(
                self.value, self.radius, self.norm(), b.value, b.total_error(), -1
            )
            known.append((entries[:, None] if b.ndim == 2 else entries, whole))
        if b.ndim == 2 and max(b.shape) <= LARGEST:
            known.append(
                through(b.value, b.radius, b.norm(), self.value, self.total_error(), -2)
            )
        own = product.value.abs() * product.unit + self.arithmetic.profile.least
        assert product.radius is not None
        for entries, whole in known:
            radius = own + (local + entries * (1 + factor)) * (1 + product.unit)
            product.radius = torch.minimum(product.radius, radius.expand(product.shape))
            total = product.stored_total(whole * (1 + factor) + float(local.norm()))
            product.total = total if product.total is None else min(product.total, total)
        return product

    def norm(self) -> float:
        """A bound on the largest singular value, computed once; of a product the cheap one."""
        if self._norm is None:
            cheap = float(self.value.norm()) * (1 + 2.0**-40)
            self._norm = spectral(self.value) if self.total is None else cheap
        return self._norm

    def stored_total(self, total: float) -> float:
        """The norm of all errors once results with errors of norm ``total`` are rounded."""
        least = self.arithmetic.profile.least * math.sqrt(self.value.numel())
        return total * (1 + self.unit) + float(self.value.norm()) * self.unit + least

    def total_error(self) -> float:
        """A bound on the Euclidean norm of all errors together."""
        entries = 0.0 if self.radius is None else float(self.radius.norm())
        return entries if self.total is None else min(entries, self.total)

    def _compared(self, other: Any, how: Any) -> Tensor:
        result: Tensor = how(self.value, other.value if isinstance(other, Rounded) else other)
        return result

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return self._compared(other, torch.eq)

    def __lt__(self, other: Any) -> Tensor:
        return self._compared(other, torch.lt)

    def __le__(self, other: Any) -> Tensor:
        return self._compared(other, torch.le)

    def __gt__(self, other: Any) -> Tensor:
        return self._compared(other, torch.gt)

    def __ge__(self, other: Any) -> Tensor:
        return self._compared(other, torch.ge)


# The functions of arrays with error radii, under the names of the array API standard

FEW_DIGITS = 2.0**-40  # a number with no more binary digits was written as it is
LITERAL_ERROR = 4 * 2.0**-53  # of any other: some operations of float64 made it


def representable(c: Scalar, u: float) -> bool:
    """Whether a number is exact where the unit roundoff is u.

    >>> representable(0.125, 2**-8), representable(257, 2**-8)
    (True, False)
    """
    if not math.isfinite(c):
        return True
    scaled = math.frexp(c)[0] / u
    return scaled == math.floor(scaled)


def _moved(x: Any, how: Callable[[Tensor], Tensor]) -> Any:
    """Entries in other places; truth values and indices carry no radius."""
    return x.moved(how) if isinstance(x, Rounded) else how(x)


class Arithmetic:
    """The array functions of :class:`Rounded`, with the unit roundoffs of one profile."""

    __name__ = "attnproof.numeric.rounded"  # array_namespace asks every namespace for one
    inf, pi = math.inf, math.pi

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.overflowed = False
        """Whether some exact value came near the largest number of its dtype, or beyond it."""

    def rounded(
        self, value: Tensor, radius: Tensor | None, unit: float, *, exact: bool = False
    ) -> Rounded:
        """A computed value, rounded once when it is stored (unless the operation is exact).

        Beyond the largest number of the dtype nothing is known of it.
        """
        if not exact:
            own = value.abs().mul_(unit).add_(self.profile.least)
            radius = own if radius is None else own.add_(radius, alpha=1 + unit)
        total = 0.0 if radius is None else float(radius.sum())
        largest = self.largest(unit)
        if radius is not None and not total < largest * unit:  # no |value| is above total / unit
            beyond = value.abs() + radius > largest
            near = value.isfinite() & (value.abs() > largest / 2)
            self.overflowed = self.overflowed or bool(near.any())
            radius = torch.where(beyond, math.inf, radius)
            radius = radius.nan_to_num(nan=math.inf, posinf=math.inf)
            radius = torch.where(value.isinf(), 0.0, radius)
        return Rounded(self, value, radius, unit)

    def largest(self, unit: float) -> float:
        """The largest number of the dtype with this unit roundoff, or of one with less."""
        dtype = self.profile.dtype if unit >= self.profile.store else wide_dtype(self.profile.dtype)
        return float(torch.finfo(dtype).max)

    def inner(self, unit: float) -> float:
        """The roundoff inside a function of an array stored with this one."""
        return min(unit, self.profile.accumulate)

    def exact(self, value: Tensor, unit: float | None = None) -> Rounded:
        """Stored numbers, which are what they are."""
        return Rounded(self, value, None, unit)

    def number(self, c: Scalar, unit: float) -> Rounded:
        """A literal number, rounded to the unit of what it meets.

        One that fills a float64 (1/3, a root) was itself rounded in float64.
        """
        error = 0.0 if representable(c, unit) else abs(c) * unit
        error += 0.0 if representable(c, FEW_DIGITS) else abs(c) * LITERAL_ERROR
        radius = torch.tensor(error, dtype=torch.float64) if error else None
        return Rounded(self, torch.tensor(float(c), dtype=torch.float64), radius, unit)

    def pair(self, a: Rounded, b: Any) -> tuple[Rounded, Rounded, float]:
        """Two operands and the unit of the result: arrays decide over numbers, wide over narrow."""
        if not isinstance(b, Rounded):
            return a, self.number(b, a.unit), a.unit
        units = [x.unit for x in (a, b) if x.ndim] or [a.unit, b.unit]
        unit = min(units)
        a, b = (self._cast(x, unit) if not x.ndim else x for x in (a, b))
        return a, b, unit

    def _cast(self, x: Rounded, unit: float) -> Rounded:
        return x if x.unit >= unit else self.stored(x, unit)

    def stored(self, x: Rounded, unit: float) -> Rounded:
        """x written in a narrower dtype."""
        return self.rounded(x.value, x.radius, unit)

    def _function(
        self,
        x: Rounded,
        how: Callable[[Tensor], Tensor],
        spread: Callable[[Tensor, Tensor], Tensor],
    ) -> Rounded:
        value = how(x.value)
        own = self.profile.function_error * self.inner(x.unit) * value.abs()
        radius = spread(value, x.error()) + own
        return self.rounded(value, radius, x.unit)

    def exp(self, x: Rounded) -> Rounded:
        """exp(x ± r) is within exp(x)·(exp(r) − 1)."""
        return self._function(x, torch.exp, lambda v, r: v * torch.expm1(r))

    def log(self, x: Rounded) -> Rounded:
        """log(x ± r) is within −log(1 − r/x)."""
        return self._function(
            x, torch.log, lambda _, r: -torch.log1p(-(r / x.value.abs()).clamp(max=1))
        )

    def tanh(self, x: Rounded) -> Rounded:
        """tanh has slope at most 1 and stays below 1."""
        result = self._function(x, torch.tanh, lambda _, r: r.clamp(max=2))
        if x.total is not None:
            own = self.profile.function_error * self.inner(x.unit) * float(result.value.norm())
            result.total = result.stored_total(x.total + own)
        return result

    def sqrt(self, x: Rounded) -> Rounded:
        """sqrt(x) − sqrt(x − r) is the larger side."""
        low = x.value.clamp(min=0)
        return self._function(x, torch.sqrt, lambda v, r: v - torch.sqrt((low - r).clamp(min=0)))

    def abs(self, x: Rounded) -> Rounded:
        """Exact."""
        return Rounded(self, x.value.abs(), x.radius, x.unit)

    def cos(self, x: Rounded) -> Rounded:
        """The absolute error of the angle carries over whole; then stored with the data."""
        return self._turn(x, torch.cos)

    def sin(self, x: Rounded) -> Rounded:
        """As :meth:`cos`."""
        return self._turn(x, torch.sin)

    def _turn(self, x: Rounded, how: Callable[[Tensor], Tensor]) -> Rounded:
        radius = x.error().clamp(max=2) + self.profile.function_error * self.inner(x.unit)
        return self.rounded(how(x.value), radius, max(x.unit, self.profile.store))

    def maximum(self, x: Any, y: Any) -> Rounded:
        """The larger value; its radius is the larger radius."""
        a, b, unit = self.pair(x, y) if isinstance(x, Rounded) else self.pair(y, x)
        radius = torch.maximum(a.error(), b.error())
        return Rounded(self, torch.maximum(a.value, b.value), radius, unit)

    def where(self, condition: Tensor, x: Any, y: Any) -> Rounded:
        """x or y, entry by entry, each with its own radius."""
        first = x if isinstance(x, Rounded) else y
        a, b = (v if isinstance(v, Rounded) else self.pair(first, v)[1] for v in (x, y))
        unit = min([v.unit for v in (a, b) if v.ndim] or [a.unit, b.unit])
        radius = None
        if a.radius is not None or b.radius is not None:
            radius = torch.where(condition, a.error(), b.error())
        return Rounded(self, torch.where(condition, a.value, b.value), radius, unit)

    # shape

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """x repeated."""
        return _moved(x, lambda a: torch.broadcast_to(a, tuple(shape)))

    def permute_dims(self, x: Any, axes: Sequence[int]) -> Any:
        """The axes in another order."""
        return _moved(x, lambda a: a.permute(tuple(axes)))

    def expand_dims(self, x: Any, axis: int) -> Any:
        """A new axis of length 1."""
        return _moved(x, lambda a: a.unsqueeze(axis))

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The same entries in row-major order."""
        return _moved(x, lambda a: a.reshape(tuple(shape)))

    def arange(self, n: int) -> Tensor:
        """0, 1, .., n − 1: indices carry no radius."""
        return torch.arange(n)

    def take(self, x: Any, indices: Tensor, axis: int) -> Any:
        """The entries at some places of an axis."""
        return _moved(x, lambda a: a.index_select(axis, indices))

    def _joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        if not isinstance(parts[0], Rounded):
            return how(list(parts))
        radius = None
        if any(part.radius is not None for part in parts):
            radius = how([part.error() for part in parts])
        return Rounded(self, how([p.value for p in parts]), radius, min(p.unit for p in parts))

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        """Arrays one after the other."""
        return self._joined(parts, lambda arrays: torch.cat(arrays, dim=axis))

    def stack(self, parts: Sequence[Any], axis: int) -> Any:
        """Arrays along a new axis."""
        return self._joined(parts, lambda arrays: torch.stack(arrays, dim=axis))

    def sum(self, x: Rounded, axis: int) -> Rounded:
        """The sum over an axis."""
        return x.sum(axis)

    def mean(self, x: Rounded, axis: int) -> Rounded:
        """The mean over an axis."""
        return x.sum(axis) * (1 / x.shape[axis])


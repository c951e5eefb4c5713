"""Running error analysis: arrays that carry a value and a bound on its rounding error.

A term evaluated on :class:`Rounded` arrays gives, entry by entry, the exact value (in float64)
and a radius: how far the same term, computed in the dtype of the profile, may be from it.
The rules are those of Higham, Accuracy and Stability of Numerical Algorithms, chapter 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .norms import LARGEST, spectral, through

if TYPE_CHECKING:
    from .arithmetic import Arithmetic

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

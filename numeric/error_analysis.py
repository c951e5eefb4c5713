"""Running error analysis: the operations of arrays with bounds on their rounding errors.

Evaluating a term on :class:`Rounded` arrays gives, entry by entry, the exact value (in float64) and
a radius: a bound on the difference if the same term is computed in the dtype of the profile.  The
rules are those of Higham, Accuracy and Stability of Numerical Algorithms, chapter 3.  If the
arithmetic tracks it, an array also states how far independent errors spread (:mod:`.spread`).

Over k products with one matrix M the bound |M|ᵏ r of each entry grows like ‖ |M| ‖₂ᵏ, for an
orthogonal matrix of width d like (2d/π)^(k/2), whereas its errors grow like ‖M‖₂ᵏ, which there is
1.  With t a bound on ‖ΔY‖ (the Euclidean norm of all entries)::

    |(M ΔY)_ij| ≤ ‖M_i‖ t      ‖M ΔY‖ ≤ ‖M‖₂ t      ‖ΔM (Y + ΔY)‖ ≤ ‖ΔM‖ (‖Y‖ + t)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .bounded_array import BoundedArray
from .spread import LAMBDA, Part, plus, sources

if TYPE_CHECKING:
    from .arithmetic import Arithmetic

# Errors of matrix products in the Euclidean norm, as bounds by entries would grow too fast

LARGEST = 256
"""The largest width at which the norm of a matrix is computed."""


def through(
    matrix: Tensor, own: Tensor | None, norm: float, values: Tensor, total: float, axis: int
) -> tuple[Tensor, float]:
    """Bound the errors of a product with a matrix: those of each entry, and their norm.

    ``matrix`` has errors ``own`` and ``norm`` as ‖M‖₂; the other factor has ``values`` with errors
    of norm ``total``.  The entries follow from the rows (``axis`` -1) of a left factor or the
    columns (-2) of a right one.
    """
    entries = matrix.norm(dim=axis) * total
    whole = norm * total
    if own is not None:
        size = float(values.norm()) + total
        entries = entries + own.norm(dim=axis) * size
        whole += float(own.norm()) * size
    return entries, whole


Scalar = int | float


def gamma(k: float, u: float) -> float:
    """k·u / (1 − k·u), the bound on k successive roundings; infinite if k·u reaches 1."""
    return k * u / (1 - k * u) if k * u < 1 else math.inf


def _product(a: Tensor | None, b: Tensor | None, how: Any) -> Tensor | None:
    return None if a is None or b is None else how(a, b)


def selects(matrix: Tensor, axis: int) -> bool:
    """Whether no row (``axis`` -1) or column (-2) of a matrix has several nonzero entries."""
    if int(matrix.select(-1 if axis == -2 else 0, 0).count_nonzero()) > 1:
        return False
    return int(matrix.count_nonzero(axis).max()) <= 1


def selection(matrix: Tensor, axis: int) -> tuple[Tensor, Tensor] | None:
    """Return place and value of the only nonzero entry of each row (``axis`` -1) or column (-2).

    None for a matrix with several nonzero entries in a row (column).

    >>> selection(torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]), -1)
    (tensor([1, 0]), tensor([1., 2.]))
    """
    if not selects(matrix, axis):
        return None
    places = (matrix != 0).byte().argmax(axis)
    return places, matrix.gather(axis, places.unsqueeze(axis)).squeeze(axis)


def _compared(how: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """Compare results by their values, with one another or with plain numbers."""
    return lambda x, y: how(x.value, y.value if isinstance(y, Rounded) else y)


class Rounded(BoundedArray):
    """An array whose operations bound the rounding errors of their results."""

    __slots__ = ()
    __array_priority__ = 1000
    __hash__ = object.__hash__

    def __array_namespace__(self, api_version: str | None = None) -> Arithmetic:
        return self.arithmetic

    def __add__(self, other: Any) -> Rounded:
        a, b, unit = self.arithmetic.pair(self, other)
        exact = isinstance(other, int | float) and other == 0
        result = self.arithmetic.rounded(
            a.value + b.value, plus(a.radius, b.radius), unit, exact=exact
        )
        tracked = a.total is not None or b.total is not None
        if tracked and a.shape == b.shape:
            result.total = result.stored_total(a.total_error() + b.total_error())
        if not self.arithmetic.spreads:
            return result
        return result.set_errors([(a, None), (b, None)], None if exact else result.storing(unit))

    def __mul__(self, other: Any) -> Rounded:
        a, b, unit = self.arithmetic.pair(self, other)
        spread = plus(
            None if b.radius is None else a.value.abs() * b.radius,
            None if a.radius is None else a.radius * b.value.abs(),
            _product(a.radius, b.radius, torch.mul),
        )
        number = isinstance(other, int | float)
        power_of_two = number and abs(math.frexp(other)[0]) == 0.5
        result = self.arithmetic.rounded(a.value * b.value, spread, unit, exact=power_of_two)
        if not self.arithmetic.spreads:
            return result
        exact = power_of_two or (number and abs(other) in (0, 1))
        both = (
            a.smallest_radius() * b.smallest_radius() if a.has_errors() and b.has_errors() else None
        )
        fresh = None if exact else result.storing(unit)
        return result.set_errors([(a, b.value), (b, a.value)], fresh, also=both)

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
        size, r = self.size, self.error()
        if exponent == -1:

            def slope(r: Tensor) -> Tensor:
                return 1 / (size * (size - r).clamp(min=0))

            inverse = self.arithmetic.rounded(
                1 / self.value, r / (size * (size - r).clamp(min=0)), self.unit
            )
            return inverse.set_errors_of_function(self, slope, 0.0)
        units = self.arithmetic.profile.power_error
        if exponent == 2:  # (x + r)² − x² without cancellation
            value = power = self.square
            spread = torch.add(r, size, alpha=2).mul_(r)
        else:
            value, power = self.value**exponent, size**exponent
            spread = (size + r) ** exponent - power
        spread = spread.add_(power, alpha=units * self.arithmetic.inner(self.unit))
        result = self.arithmetic.rounded(value, spread, self.unit)
        return result.set_errors_of_function(
            self, lambda r: exponent * (size + r) ** (exponent - 1), units
        )

    def sum(self, axis: int) -> Rounded:
        """The sum over an axis, in the measured order.

        Independent errors add in quadrature within each sum.
        """
        shape, u = self.value.shape, self.arithmetic.inner(self.unit)
        terms = self.arithmetic.profile.sums.terms(shape[axis])
        factor, size = gamma(terms, u), self.value.abs().sum(axis)
        radius = factor * size
        if self.radius is not None:
            radius = radius + self.radius.sum(axis) * (1 + factor)
        result = self.arithmetic.rounded(self.value.sum(axis), radius, self.unit)
        if not self.arithmetic.spreads:
            return result
        kept = [
            Part(p.sources, object(), p.sigma.expand(shape).square().sum(axis).sqrt(), single=False)
            for p in self.parts
        ]
        shared = None if self.shared is None else self.shared.expand(shape).sum(axis)
        result.distinct = self.distinct
        more = (Part.fresh(math.sqrt(terms) * u * size, single=False),) if shape[axis] > 1 else ()
        return result.set_parts(kept, shared, result.storing(self.unit), *more)

    def __matmul__(self, other: Rounded) -> Rounded:
        rows = self.shape[-2] if self.ndim > 1 else 1
        terms = self.arithmetic.profile.product_terms(
            self.shape[-1], rows, other.shape[-1] if other.ndim > 1 else 1
        )
        again = self._repeated() if self.ndim > 2 and other.ndim <= 2 else ()
        if not again:
            return self._product(other, terms, self.shape[:-1])
        once = tuple(slice(0, 1) if k in again else slice(None) for k in range(self.ndim))
        return self[once]._product(other, terms, self.shape[:-1])

    def _repeated(self) -> list[int]:
        """The axes, except the last, along which everything known about the entries is constant."""
        known = [x for x in (self.value, self.radius, self.shared) if x is not None]
        return [
            axis
            for axis, length in enumerate(self.shape[:-1])
            if length > 1
            and not self.parts
            and all(x.shape == self.value.shape and not x.stride(axis) for x in known)
        ]

    def selects(self, axis: int) -> tuple[Tensor, Tensor] | None:
        """Apply :func:`selection` to a matrix of exact numbers, such as that of a permutation."""
        if self.ndim != 2 or self.radius is not None or self.has_errors() or not self.value.numel():
            return None
        return self.once(("selects", axis), self.value, lambda: selection(self.value, axis))

    def _times(self, b: Rounded) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the product for arrays with the same nonzero places as these two.

        If a factor selects rows or columns, indexing replaces the multiplication.
        """
        if self.ndim != 2 or b.ndim != 2:
            return torch.matmul
        for factor, other, axis in ((self, b, -1), (b, self, -2)):
            found = factor.selects(axis)
            if found is None or not other.finite:
                continue
            places, _ = found

            def times(x: Tensor, y: Tensor, axis: int = axis, at: Tensor = places) -> Tensor:
                one, many = (x, y) if axis == -1 else (y, x)
                entries = one.gather(axis, at.unsqueeze(axis))
                return many.index_select(-2 if axis == -1 else -1, at).mul_(entries)

            return times
        return torch.matmul

    def restricted_product(self, b: Rounded, inner: int) -> Rounded:
        """The product of factors restricted to those of ``inner`` places where neither is 0.

        The other places add no rounding; the radius is that of the sum over all ``inner`` places.
        """
        terms = self.arithmetic.profile.product_terms(inner, self.shape[0], b.shape[1])
        return self._product(b, terms, self.shape[:-1], inner)

    def _product(
        self, b: Rounded, terms: int, rows: tuple[int, ...], inner: int | None = None
    ) -> Rounded:
        """The product, with repeated rows expanded to the leading shape ``rows``.

        ``inner`` is the length of the sums if the factors are restricted to a part of it.
        """
        profile = self.arithmetic.profile
        size, other_size, times = self.size, b.size, self._times(b)
        factor = gamma(terms, profile.product)
        factor += 2 * profile.operand + profile.operand**2
        spread = plus(
            _product(size, b.radius, times),
            _product(self.radius, other_size, times),
            _product(self.radius, b.radius, times),
        )
        local = factor * times(size, other_size)
        radius = local if spread is None else local + spread * (1 + factor)
        value = times(self.value, b.value)
        product = self.arithmetic.rounded(value, radius, profile.store)
        small = max(self.ndim, b.ndim) <= 2 and (inner or size.shape[-1]) <= LARGEST
        if spread is not None and small and product.finite:
            self._in_norm(b, product, local, factor)  # norms bound only finite errors
        stored = product.storing(profile.store)
        if rows != self.shape[:-1]:
            whole = (*rows, *product.shape[len(rows) :])
            value, radius = product.value.expand(whole), product.error().expand(whole)
            product = Rounded(self.arithmetic, value, radius, product.unit)
        if not self.arithmetic.spreads:
            return product
        return self._multiplied(b, product, stored, terms, times)

    def _in_norm(self, b: Rounded, product: Rounded, local: Tensor, factor: float) -> None:
        """Bound the errors of a product through the norms of both factors as well."""
        known: list[tuple[Tensor, float]] = []
        if self.ndim == 2 and max(self.shape) <= LARGEST:
            entries, whole = through(
                self.value, self.radius, self.norm(), b.value, b.total_error(), -1
            )
            known.append((entries[:, None] if b.ndim == 2 else entries, whole))
        if b.ndim == 2 and max(b.shape) <= LARGEST:
            known.append(through(b.value, b.radius, b.norm(), self.value, self.total_error(), -2))
        own = product.value.abs() * product.unit + self.arithmetic.profile.least
        assert product.radius is not None
        for entries, whole in known:
            radius = own + (local + entries * (1 + factor)) * (1 + product.unit)
            product.radius = torch.minimum(product.radius, radius.expand(product.shape))
            total = product.stored_total(whole * (1 + factor) + float(local.norm()))
            product.total = total if product.total is None else min(product.total, total)

    def _multiplied(
        self,
        b: Rounded,
        product: Rounded,
        stored: Tensor,
        terms: float,
        times: Callable[[Tensor, Tensor], Tensor],
    ) -> Rounded:
        """Set the spread of the errors of a product, in which each entry enters many results."""
        profile = self.arithmetic.profile
        size, other = self.size, b.size
        mine, theirs = self.sigma_square(), b.sigma_square()
        squares = [
            None if mine is None else times(mine, b.square),
            None if theirs is None else times(self.square, theirs),
        ]
        common = sources(self) & sources(b)
        if profile.operand:
            common = frozenset((-1,))
            squares.append((2 * profile.operand) ** 2 * times(self.square, b.square))
        if common:
            spread = plus(*(None if s is None else s.sqrt() for s in squares))
        else:
            total = plus(*squares)
            spread = None if total is None else total.sqrt()
        r, far = self.shared, b.shared
        shared = plus(
            None if spread is None else LAMBDA * spread,
            None if r is None else times(r.expand(size.shape), other),
            None if far is None else times(size, far.expand(other.shape)),
            times(self.smallest_radius(), b.smallest_radius())
            if self.has_errors() and b.has_errors()
            else None,
        )
        left = self.lengths[..., None] if b.value.ndim > 1 else self.lengths
        right = b.once(
            "columns",
            b.value,
            lambda: other.norm(dim=-2 if other.ndim > 1 else -1, keepdim=other.ndim > 1),
        )
        if self.value.ndim == 1 and right.ndim > 1:
            right = right.squeeze(-2)
            left = left if left.ndim == 0 else left.squeeze(-1)[..., None]
        summed = math.sqrt(terms + 1) * profile.product * (left * right)
        product.distinct = self.distinct and b.distinct
        whole = product.value.shape
        product.set_parts([], shared, stored, Part.fresh(summed.expand(stored.shape), single=False))
        if stored.shape != whole:
            product.parts = tuple(replace(p, sigma=p.sigma.expand(whole)) for p in product.parts)
            product.shared = None if product.shared is None else product.shared.expand(whole)
        return product

    __eq__ = _compared(torch.eq)  # type: ignore[assignment]
    __lt__, __le__ = _compared(torch.lt), _compared(torch.le)
    __gt__, __ge__ = _compared(torch.gt), _compared(torch.ge)

"""Sums, means, variances, and norms of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import real
from attnproof.theorems.definitions.attention import softmax as row_softmax

from .at_places import table
from .reading import Unread, assume, constant, notes, numeric, reads
from .shapes import axis_of

__all__ = ["softmax"]


def _axes(x: Array, axes: Any) -> tuple[int, ...]:
    if axes is None or (isinstance(axes, Sequence) and not axes):
        return tuple(range(x.ndim))
    wanted = [axes] if isinstance(axes, int) else axes
    return tuple(sorted({axis_of(k, x.ndim) for k in wanted}))


@reads("aten.sum.default", "aten.sum.dim_IntList")
def total(x: Any, axes: Any = None, keepdim: bool = False, **_: Any) -> Array:
    """The sum over axes."""
    a = numeric(x)
    return xp.sum(a, axis=_axes(a, axes), keepdims=keepdim)


@reads("aten.mean.default", "aten.mean.dim")
def mean(x: Any, axes: Any = None, keepdim: bool = False, **_: Any) -> Array:
    """The mean over axes."""
    a = numeric(x)
    return xp.mean(a, axis=_axes(a, axes), keepdims=keepdim)


@reads("aten.var.correction", "aten.var.dim")
def variance(
    x: Any, axes: Any = None, *given: Any, correction: Any = 1, keepdim: bool = False
) -> Array:
    """Σ (x − mean)² / (n − correction)."""
    if given:
        correction = 1 if given[0] else 0
        keepdim = bool(given[1]) if len(given) > 1 else keepdim
    a = numeric(x)
    wanted = _axes(a, axes)
    if len(wanted) != 1:
        raise Unread("a variance over several axes")
    away = a - xp.mean(a, axis=wanted[0], keepdims=True)
    count = as_array(a.axes[wanted[0]]) - as_array(int(1 if correction is None else correction))
    return xp.sum(away**2, axis=wanted[0], keepdims=keepdim) / count


@reads("aten.linalg_vector_norm.default")
def length(x: Any, order: Any = 2, axes: Any = None, keepdim: bool = False, **_: Any) -> Array:
    """√Σ x² over axes."""
    if order != 2:
        raise Unread(f"a norm of order {order}")
    return xp.sqrt(total(numeric(x) ** 2, axes, keepdim))


@reads("aten.std.correction")
def deviation(
    x: Any, axes: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> Array:
    """√(Σ (x − mean)² / (n − correction))."""
    return xp.sqrt(variance(x, axes, correction=correction, keepdim=keepdim))


@reads("aten.var_mean.correction")
def variance_and_mean(
    x: Any, axes: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> list[Array]:
    """The variance, and the mean."""
    return [variance(x, axes, correction=correction, keepdim=keepdim), mean(x, axes, keepdim)]


@reads("aten.cumsum.default")
def cumulative(x: Any, axis: int, **_: Any) -> Array:
    """Σ of the entries up to each place of an axis."""
    a = numeric(x)
    place = axis_of(axis, a.ndim)
    last = xp.moveaxis(a, place, a.ndim - 1)
    steps = xp.arange(as_array(a.axes[place]))
    gate = xp.astype(steps[None, :] <= steps[:, None], float)
    summed = xp.sum(last[..., None, :] * gate, axis=-1)
    return xp.moveaxis(summed, a.ndim - 1, place)


@reads("aten.amax.default")
def largest(x: Any, axes: Any = None, keepdim: bool = False) -> Array:
    """The largest of a row, as a number of which nothing is used: another one for every row.

    What holds whatever number is subtracted from the scores holds for their largest.
    """
    a = numeric(x)
    wanted = _axes(a, axes)
    if len(wanted) != 1:
        raise Unread("a maximum over several axes")
    known = (k for k, (row, axis) in notes().largest.items()
             if row.term is a.term and axis == wanted[0])  # fmt: skip
    name = next(known, f"{notes().prefix}largest_{len(notes().largest)}")
    notes().largest[name] = (a, wanted[0])
    lengths = [Array(n) for k, n in enumerate(a.axes) if k != wanted[0]]
    given = real(*lengths, says="the largest of a row, of which nothing is used")
    notes().givens[name] = given
    found: Array = given.named(name)
    return xp.expand_dims(found, axis=wanted[0]) if keepdim else found


@reads("aten.max.dim")
def largest_of(x: Any, axis: int, keepdim: bool = False) -> list[Any]:
    """The largest of a row; where it stands has no reading."""
    return [largest(x, axis, keepdim), None]


@reads("aten.softmax.int", "aten._softmax.default")
def softmax(x: Any, axis: int, *_: Any, **__: Any) -> Array:
    """exp(x_j) / Σ_k exp(x_k) along an axis."""
    if not constant(x).term.finite:
        assume("every query sees a key", "if")
    return safe_softmax(x, axis)


@reads("aten._safe_softmax.default")
def safe_softmax(x: Any, axis: int, *_: Any, **__: Any) -> Array:
    """exp(x_j) / Σ_k exp(x_k) along an axis; a row of nothing but −∞ gives zeros."""
    a = constant(x)
    place = axis_of(axis, a.ndim)
    if place == a.ndim - 1:
        return as_array(row_softmax(a))
    return xp.moveaxis(as_array(row_softmax(xp.moveaxis(a, place, a.ndim - 1))), a.ndim - 1, place)


@reads("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(x: Any, axis: int, *_: Any, **__: Any) -> Array:
    """x_j − log Σ_k exp(x_k)."""
    a = numeric(x)
    return a - xp.log(xp.sum(xp.exp(a), axis=axis, keepdims=True))


@reads("aten.logsumexp.default")
def logsumexp(x: Any, axes: Any, keepdim: bool = False) -> Array:
    """log Σ exp(x)."""
    return xp.log(total(xp.exp(numeric(x)), axes, keepdim))


@reads("aten.layer_norm.default")
def layer_norm(
    x: Any, shape: Sequence[Any], weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Array:
    """(x − mean)/√(variance + ε)·weight + bias over the last axis."""
    if len(shape) != 1:
        raise Unread("a norm over several axes")
    a = numeric(x)
    away = a - xp.mean(a, axis=-1, keepdims=True)
    spread = xp.mean(away**2, axis=-1, keepdims=True)
    found = away / xp.sqrt(spread + constant(eps))
    found = found if weight is None else found * numeric(weight)
    return found if bias is None else found + numeric(bias)


@reads("aten.native_layer_norm.default")
def native_layer_norm(
    x: Any, shape: Sequence[Any], weight: Any, bias: Any, eps: float
) -> list[Any]:
    """The norm; the mean and the deviation that it also gives are not read."""
    return [layer_norm(x, shape, weight, bias, eps), None, None]


@reads("aten.rms_norm.default")
def rms_norm(x: Any, shape: Sequence[Any], weight: Any = None, eps: Any = None) -> Array:
    """x/√(mean x² + ε)·weight over the last axis; ε is the dtype's where none is given."""
    if len(shape) != 1:
        raise Unread("a norm over several axes")
    a = numeric(x)
    least = constant(2.0**-23 if eps is None else eps)
    found = a / xp.sqrt(xp.mean(a**2, axis=-1, keepdims=True) + least)
    return found if weight is None else found * numeric(weight)


@reads("aten.diagonal.default")
def diagonal(x: Any, offset: int = 0, first: int = 0, second: int = 1) -> Array:
    """The entries of a square where two axes agree, as the last axis."""
    a = numeric(x)
    i, j = axis_of(first, a.ndim), axis_of(second, a.ndim)
    if offset or a.axes[i] is not a.axes[j]:
        raise Unread("a diagonal that is not the main one of a square")
    rest = [k for k in range(a.ndim) if k not in (i, j)]
    b = xp.permute_dims(a, [*rest, i, j])
    return table((*b.axes[:-1],), lambda *at: b[(*at, at[-1])])

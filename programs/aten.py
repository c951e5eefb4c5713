"""The table of ATen operations, each defined by the primitives that a method provides.

A row is a function whose first argument is the namespace ``xp`` of a method: of terms in
:mod:`.prove`, of residues in :mod:`.exact`.  ``xp.number(a)`` is an argument as an array of the
method, with ``+ - * / **`` and ``[...]`` as in the array API.  Whatever differs between methods
(the lengths of axes, what hides a key, which numbers are known) is a function of ``xp``.

An operation that only moves entries has no row: on terms it is index arithmetic, and on residues it
is the torch operation itself, applied to each array of residues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeVar

Kind = Literal["entrywise", "moves", "rows"]
"""Entry by entry; moving or writing entries; neither of these."""
R = TypeVar("R", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """An operation as a function of ``xp`` and its arguments, and its kind.

    ``summed``: the index of the argument over whose last axis each entry is a sum, which gives the
    cost of an entry.
    """

    kind: Kind
    function: Callable[..., Any]
    summed: int | None = None

    def of(self, xp: Any) -> Callable[..., Any]:
        """Return the operation for one method, as a function of its arguments alone."""
        return lambda *args, **keywords: self.function(xp, *args, **keywords)


ROWS: dict[str, Row] = {}


def row(kind: Kind, *overloads: str, summed: int | None = None) -> Callable[[R], R]:
    """Register a row for ATen overloads, named as in ``aten.add.Tensor``."""

    def wrap(function: R) -> R:
        for name in overloads:
            if name in ROWS:
                raise ValueError(f"{name} has two rows")
            ROWS[name] = Row(kind, function, summed)
        return function

    return wrap


# entrywise


@row("entrywise", "aten.add.Tensor", "aten.add.Scalar")
def add(xp: Any, a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a + alpha·b; for booleans, a or b."""
    return xp.add(a, b if alpha == 1 else xp.number(b) * xp.number(alpha))


@row("entrywise", "aten.sub.Tensor", "aten.sub.Scalar")
def subtract(xp: Any, a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a − alpha·b."""
    return xp.number(a) - (xp.number(b) if alpha == 1 else xp.number(b) * xp.number(alpha))


@row("entrywise", "aten.rsub.Scalar", "aten.rsub.Tensor")
def subtract_from(xp: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    """b − alpha·a."""
    return subtract(xp, b, a, alpha=alpha)


@row("entrywise", "aten.mul.Tensor", "aten.mul.Scalar")
def multiply(xp: Any, a: Any, b: Any) -> Any:
    """a·b; for booleans, a and b."""
    return xp.multiply(a, b)


@row("rows", "aten.outer.default")
def outer(xp: Any, a: Any, b: Any) -> Any:
    """a_i·b_j; for booleans, a_i and b_j."""
    x, y = xp.alike((a, b))
    return xp.multiply(x[:, None], y[None, :])


@row(
    "entrywise",
    "aten.div.Tensor",
    "aten.div.Scalar",
    "aten.div.Tensor_mode",
    "aten.div.Scalar_mode",
)
def divide(xp: Any, a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """a/b; with a rounding mode, the ``whole_quotient`` of the method."""
    if rounding_mode is not None:
        return xp.whole_quotient(a, b, rounding_mode)
    return xp.number(a) / xp.number(b)


@row("entrywise", "aten.floor_divide.default")
def floor_divide(xp: Any, a: Any, b: Any) -> Any:
    """⌊a/b⌋."""
    return xp.whole_quotient(a, b, "floor")


@row("entrywise", "aten.neg.default")
def negative(xp: Any, x: Any) -> Any:
    """−x."""
    return -xp.number(x)


@row("entrywise", "aten.reciprocal.default")
def reciprocal(xp: Any, x: Any) -> Any:
    """1/x."""
    return 1 / xp.number(x)


@row("entrywise", "aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Tensor")
def power(xp: Any, a: Any, b: Any) -> Any:
    """a to the power b, where b is a whole number or what the method's ``power`` supports."""
    exponent = xp.literal(b)
    if isinstance(exponent, int | float) and float(exponent).is_integer():
        return xp.number(a) ** int(exponent)
    return xp.power(a, b)


@row("entrywise", "aten.exp.default")
def exp(xp: Any, x: Any) -> Any:
    """exp(x)."""
    return xp.exp(xp.number(x))


@row("entrywise", "aten.cos.default")
def cos(xp: Any, x: Any) -> Any:
    """cos(x)."""
    return xp.cos(xp.number(x))


@row("entrywise", "aten.sin.default")
def sin(xp: Any, x: Any) -> Any:
    """sin(x)."""
    return xp.sin(xp.number(x))


@row(
    "entrywise",
    "aten.where.self",
    "aten.where.ScalarOther",
    "aten.where.ScalarSelf",
    "aten.where.Scalar",
)
def where(xp: Any, condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, b elsewhere."""
    return xp.where(condition, *xp.alike((a, b)))


@row("entrywise", "aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(xp: Any, x: Any, condition: Any, value: Any) -> Any:
    """The value where the condition holds, x elsewhere."""
    return where(xp, condition, value, x)


# complex numbers, as pairs of real and imaginary parts


@row("rows", "aten.complex.default")
def joined(xp: Any, real: Any, imaginary: Any) -> Any:
    """real + i·imaginary."""
    return xp.pair(xp.number(real), xp.number(imaginary))


@row("rows", "aten.view_as_complex.default")
def as_complex(xp: Any, x: Any) -> Any:
    """The last axis, of length 2, read as real and imaginary part."""
    a = xp.number(x)
    return xp.pair(a[..., 0], a[..., 1])


@row("rows", "aten.view_as_real.default")
def as_real(xp: Any, x: Any) -> Any:
    """Real and imaginary part along a new last axis."""
    return xp.stack(xp.parts(x), axis=-1)


@row("rows", "aten.polar.default")
def polar(xp: Any, length: Any, angle: Any) -> Any:
    """length·(cos angle + i·sin angle)."""
    r, a = xp.number(length), xp.number(angle)
    return xp.pair(r * xp.cos(a), r * xp.sin(a))


@row("rows", "aten.real.default")
def real_part(xp: Any, x: Any) -> Any:
    """The real part."""
    return xp.parts(x)[0] if xp.is_complex(x) else x


@row("rows", "aten.imag.default")
def imaginary_part(xp: Any, x: Any) -> Any:
    """The imaginary part."""
    return xp.parts(x)[1]


@row("rows", "aten.conj.default", "aten._conj.default")
def conjugate(xp: Any, x: Any) -> Any:
    """The complex conjugate; a real number is its own conjugate."""
    if not xp.is_complex(x):
        return x
    real, imaginary = xp.parts(x)
    return xp.pair(real, -imaginary)


# over axes


@row("rows", "aten.sum.default", "aten.sum.dim_IntList")
def total(xp: Any, x: Any, axes: Any = None, keepdim: bool = False, **_: Any) -> Any:
    """The sum over axes."""
    a = xp.number(x)
    return xp.sum(a, axis=xp.axes(a, axes), keepdims=keepdim)


@row("rows", "aten.mean.default", "aten.mean.dim")
def mean(xp: Any, x: Any, axes: Any = None, keepdim: bool = False, **_: Any) -> Any:
    """The mean over axes."""
    a = xp.number(x)
    return xp.mean(a, axis=xp.axes(a, axes), keepdims=keepdim)


@row("rows", "aten.var.correction", "aten.var.dim")
def variance(
    xp: Any, x: Any, axes: Any = None, *given: Any, correction: Any = 1, keepdim: bool = False
) -> Any:
    """Σ (x − mean)² / (n − correction)."""
    return variance_and_mean(xp, x, axes, *given, correction=correction, keepdim=keepdim)[0]


@row("rows", "aten.var_mean.correction")
def variance_and_mean(
    xp: Any, x: Any, axes: Any = None, *given: Any, correction: Any = 1, keepdim: bool = False
) -> list[Any]:
    """The variance and the mean; older overloads pass ``unbiased`` and ``keepdim`` by position."""
    if given:
        correction = 1 if given[0] else 0
        keepdim = bool(given[1]) if len(given) > 1 else keepdim
    a = xp.number(x)
    over = xp.axes(a, axes)
    away = a - xp.mean(a, axis=over, keepdims=True)
    count = xp.count(a, over) - int(1 if correction is None else correction)
    spread = xp.sum(away**2, axis=over, keepdims=keepdim) / count
    return [spread, xp.mean(a, axis=over, keepdims=keepdim)]


@row("rows", "aten.std.correction")
def deviation(
    xp: Any, x: Any, axes: Any = None, *, correction: Any = 1, keepdim: bool = False
) -> Any:
    """√(Σ (x − mean)² / (n − correction))."""
    return xp.sqrt(variance(xp, x, axes, correction=correction, keepdim=keepdim))


@row("rows", "aten.linalg_vector_norm.default")
def length(
    xp: Any, x: Any, order: Any = 2, axes: Any = None, keepdim: bool = False, **_: Any
) -> Any:
    """√Σ x² over axes."""
    if order != 2:
        raise xp.Refused(f"a norm of order {order}")
    return xp.sqrt(total(xp, xp.number(x) ** 2, axes, keepdim))


@row("rows", "aten.cumsum.default")
def cumulative(xp: Any, x: Any, axis: int, **_: Any) -> Any:
    """The cumulative sum along an axis."""
    return xp.cumulative_sum(xp.number(x), axis=axis)


@row("rows", "aten.cumprod.default")
def running_product(xp: Any, x: Any, axis: int, **_: Any) -> Any:
    """The product of the entries up to each place of an axis, of a length that is a number."""
    entries = xp.entries(xp.number(x), axis)
    found = [entries[0]]
    for one in entries[1:]:
        found.append(found[-1] * one)
    return xp.stack(found, axis=axis)


@row("rows", "aten.prod.dim_int")
def whole_product(xp: Any, x: Any, axis: int, keepdim: bool = False, **_: Any) -> Any:
    """The product along an axis, of a length that is a number."""
    first, *others = xp.entries(xp.number(x), axis)
    for one in others:
        first = first * one
    return xp.stack([first], axis=axis) if keepdim else first


@row("rows", "aten.logsumexp.default")
def logsumexp(xp: Any, x: Any, axes: Any, keepdim: bool = False) -> Any:
    """log Σ exp(x)."""
    return xp.log(total(xp, xp.exp(xp.number(x)), axes, keepdim))


@row("entrywise", "aten.logaddexp.default")
def logaddexp(xp: Any, a: Any, b: Any) -> Any:
    """log(exp a + exp b)."""
    return xp.log(xp.exp(xp.number(a)) + xp.exp(xp.number(b)))


@row("rows", "aten.logcumsumexp.default")
def cumulative_logsumexp(xp: Any, x: Any, axis: int) -> Any:
    """log of the cumulative sum of exp(x) along an axis."""
    return xp.log(xp.cumulative_sum(xp.exp(xp.number(x)), axis=axis))


@row("rows", "aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(xp: Any, x: Any, axis: int, *_: Any, **__: Any) -> Any:
    """x_j − log Σ_k exp(x_k)."""
    return xp.number(x) - logsumexp(xp, x, (axis,), True)


@row("rows", "aten.softmax.int", "aten._softmax.default")
def softmax(xp: Any, x: Any, axis: int, *_: Any, **__: Any) -> Any:
    """exp(x_j) / Σ_k exp(x_k) along an axis; undefined for a row that is −∞ throughout."""
    return xp.softmax(x, axis, every_row_sees=True)


@row("rows", "aten._safe_softmax.default")
def safe_softmax(xp: Any, x: Any, axis: int, *_: Any, **__: Any) -> Any:
    """exp(x_j) / Σ_k exp(x_k) along an axis; zeros for a row that is −∞ throughout."""
    return xp.softmax(x, axis)


@row("rows", "aten.layer_norm.default")
def layer_norm(
    xp: Any,
    x: Any,
    shape: Sequence[Any],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
) -> Any:
    """(x − mean)/√(variance + ε)·weight + bias over the last axis."""
    if len(shape) != 1:
        raise xp.Refused("a norm over several axes")
    a = xp.number(x)
    last = xp.axes(a, -1)
    away = a - xp.mean(a, axis=last, keepdims=True)
    spread = xp.mean(away**2, axis=last, keepdims=True)
    found = away / xp.sqrt(spread + xp.number(eps))
    found = found if weight is None else found * xp.number(weight)
    return found if bias is None else found + xp.number(bias)


@row("rows", "aten.native_layer_norm.default")
def native_layer_norm(
    xp: Any, x: Any, shape: Sequence[Any], weight: Any, bias: Any, eps: float
) -> list[Any]:
    """The layer norm; the mean and the deviation that torch also returns are None here."""
    return [layer_norm(xp, x, shape, weight, bias, eps), None, None]


@row("rows", "aten._native_batch_norm_legit_no_training.default")
def batch_norm(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    momentum: float,  # noqa: ARG001 (of training)
    eps: float,
) -> list[Any]:
    """(x − mean)/√(variance + ε)·weight + bias, of the second axis; these are stored numbers."""
    a = xp.number(x)

    def of_channels(stored: Any) -> Any:
        return xp.number(stored)[(slice(None), *[None] * (a.ndim - 2))]

    found = (a - of_channels(mean)) / xp.sqrt(of_channels(variance) + xp.number(eps))
    found = found if weight is None else found * of_channels(weight)
    return [found if bias is None else found + of_channels(bias), None, None]


@row("rows", "aten.rms_norm.default")
def rms_norm(xp: Any, x: Any, shape: Sequence[Any], weight: Any = None, eps: Any = None) -> Any:
    """x/√(mean x² + ε)·weight over the last axis; ε is 2⁻²³, that of float32, by default."""
    if len(shape) != 1:
        raise xp.Refused("a norm over several axes")
    a = xp.number(x)
    least = xp.number(2.0**-23 if eps is None else eps)
    found = a / xp.sqrt(xp.mean(a**2, axis=xp.axes(a, -1), keepdims=True) + least)
    return found if weight is None else found * xp.number(weight)


# products of matrices, and attention


@row(
    "rows",
    "aten.matmul.default",
    "aten.mm.default",
    "aten.bmm.default",
    "aten.mv.default",
    "aten.dot.default",
    summed=0,
)
def product(xp: Any, a: Any, b: Any) -> Any:
    """A·B; leading axes are broadcast."""
    return xp.matmul(xp.number(a), xp.number(b))


@row("rows", "aten.linear.default", summed=0)
def linear(xp: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """x·Wᵀ + b."""
    found = xp.matmul(xp.number(x), xp.number(weight).mT)
    return found if bias is None else found + xp.number(bias)


@row("rows", "aten.addmm.default", "aten.baddbmm.default", summed=1)
def added_product(xp: Any, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta·C + alpha·A·B; as in torch, a term with factor 0 is ignored."""
    made = xp.number(0) if alpha == 0 else product(xp, a, b) * xp.number(alpha)
    return made if beta == 0 else xp.number(c) * xp.number(beta) + made


@row("rows", "aten.convolution.default")
def pointwise(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    out: Any,
    groups: int,
) -> Any:
    """Σ_c W_oc x_c + b_o at each position: a convolution with a kernel of width one."""
    a, w = xp.number(x), xp.number(weight)
    steps = {int(n) for n in (*stride, *dilation)}
    if xp.longer_than_one(w, range(2, w.ndim)):
        raise xp.Refused("a convolution wider than one place")
    if transposed or groups != 1 or steps != {1} or any((*padding, *out)):
        raise xp.Refused("a convolution in groups, with steps, or with padding")
    matrix = w[(slice(None), slice(None), *(0,) * (w.ndim - 2))]
    return xp.moveaxis(linear(xp, xp.moveaxis(a, 1, a.ndim - 1), matrix, bias), a.ndim - 1, 1)


@row("rows", "aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    xp: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """softmax(scale·Q Kᵀ + mask)·V; zeros for a query that sees no key.

    ``is_causal`` hides key j from query i if j > i, counting both from the start; with
    ``enable_gqa`` each key head serves a group of query heads.
    """
    if dropout:
        raise xp.Refused(f"attention with dropout {dropout}")
    q, k, v = xp.number(query), xp.number(key), xp.number(value)
    if enable_gqa:
        k, v = xp.of_heads(q, k), xp.of_heads(q, v)
    scores = xp.matmul(q, k.mT)
    scores = xp.over_root_of_width(scores, q) if scale is None else scores * xp.number(scale)
    if is_causal:
        scores = xp.where(xp.not_after(scores), scores, -inf)
    if mask is not None:
        scores = xp.masked(scores, mask)
    return xp.matmul(xp.softmax(scores, -1), v)

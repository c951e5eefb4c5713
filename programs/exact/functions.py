"""Rules for arithmetic, angles, norms, and functions that a field does not know."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import arithmetic as at
from .payload import Field, Lost, NoMeaning, Number, Pair, Payload
from .rules import rule
from .session import Session

__all__ = ["UNKNOWN", "axes_of"]

UNKNOWN = frozenset((
    "relu", "gelu", "silu", "tanh", "sigmoid", "erf", "erfc", "softplus", "log", "log2", "log10",
    "log1p", "expm1", "exp2", "sqrt", "rsqrt", "abs", "elu", "leaky_relu", "hardswish",
    "hardsigmoid", "mish", "hardtanh", "clamp", "clamp_min", "clamp_max", "selu", "celu",
    "log_sigmoid_forward", "sinh", "cosh", "atan", "asinh", "sign", "floor", "ceil", "round",
    "trunc", "frac", "tan", "logit", "threshold", "relu6", "softshrink", "tanhshrink",
    "special_expit",
))  # fmt: skip
"""Functions of one value that are taken as unknown: equal values give equal values."""


@rule("add")
def _add(session: Session, a: Any, b: Any, *, alpha: float = 1) -> Payload:
    return at.added(session, a, b if alpha == 1 else at.multiplied(session, b, alpha))


@rule("sub")
def _sub(session: Session, a: Any, b: Any, *, alpha: float = 1) -> Payload:
    return at.added(session, a, at.multiplied(session, b, -alpha))


@rule("mul")
def _mul(session: Session, a: Any, b: Any) -> Payload:
    return at.multiplied(session, a, b)


@rule("neg")
def _neg(session: Session, a: Any) -> Payload:
    return at.negated(session, a)


@rule("div")
def _div(session: Session, a: Any, b: Any, *, rounding_mode: str | None = None) -> Payload | None:
    if rounding_mode is not None:
        if at.is_number(a) and at.is_number(b):
            return None
        raise NoMeaning("torch.floor_divide has no meaning in a finite field")
    if at.is_number(a) and at.is_number(b):
        if isinstance(b, Number):
            return None
        divisor = torch.as_tensor(b).double()
        return Number(at.spread([(n, f / divisor) for n, f in at.number(a).terms]))
    if isinstance(a, Pair):
        inverse = at.inverse(session, b)
        return at.multiplied(session, a, Pair(inverse, inverse.moved(torch.zeros_like)))
    return at.multiplied(session, a, at.inverse(session, b))


@rule("reciprocal")
def _reciprocal(session: Session, a: Any) -> Payload | None:
    return None if at.is_number(a) else at.inverse(session, a)


@rule("pow")
def _pow(session: Session, a: Any, exponent: Any) -> Payload | None:
    if at.is_number(a) and at.is_number(exponent):
        return None
    if isinstance(exponent, Tensor) and not exponent.ndim:
        exponent = exponent.item()
    if not isinstance(exponent, (int, float)):
        raise NoMeaning("torch.pow with an exponent that is no number has no meaning in a field")
    if exponent == int(exponent) and abs(exponent) <= 64:
        return at.power(session, a, int(exponent))
    named = {0.5: "sqrt", -0.5: "rsqrt"}.get(float(exponent), f"pow/{exponent}")
    return session.unknown_function(named, session.field(a))


@rule("sum")
def _sum(session: Session, a: Any, dims: Any = (), keep: bool = False) -> Payload | None:
    return None if at.is_number(a) else at.summed(session, a, axes_of(dims), keep)


@rule("mean")
def _mean(session: Session, a: Any, dims: Any = (), keep: bool = False) -> Payload | None:
    if at.is_number(a):
        return None
    return _averaged(session, session.field(a), axes_of(dims), keep)


def axes_of(dims: Any) -> tuple[int, ...]:
    """Axes as a tuple; none is all of them."""
    return (dims,) if isinstance(dims, int) else tuple(dims or ())


def _averaged(session: Session, x: Field, dims: tuple[int, ...], keep: bool, less: int = 0
              ) -> Field:  # fmt: skip
    count = 1
    for d in dims or range(x.top.ndim):
        count *= x.top.shape[d]
    total = at.summed(session, x, dims, keep)
    return session.field(
        at.multiplied(session, total, at.inverse(session, session.field(count - less)))
    )


@rule("cumsum")
def _cumsum(session: Session, a: Any, dim: int) -> Payload | None:
    if at.is_number(a):
        return None
    x = session.field(a)
    levels = tuple(None if v is None else session.fields[k].reduced(v.cumsum(dim))
                   for k, v in enumerate(x.levels))  # fmt: skip
    return Field(levels, None if x.degree is None else x.degree.summed(x.top.shape[dim]))


@rule("mm", "bmm", "dot", "mv")
def _product(session: Session, a: Any, b: Any) -> Payload | None:
    return at.product(session, a, b)


@rule("convolution")
def _pointwise(
    session: Session, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, out: Any, groups: int,
) -> Payload | None:  # fmt: skip
    """One whose kernel is one place wide: a product of matrices at every place."""
    if all(at.is_number(one) for one in (x, weight)):
        return None
    a, w = session.field(x), session.field(weight)
    wide = any(n != 1 for n in (*w.top.shape[2:], *stride, *dilation, groups))
    if wide or transposed or any((*padding, *out)):
        raise NoMeaning("a convolution wider than one place is not read in a finite field")
    last = a.moved(lambda v: v.movedim(1, -1))
    found = at.product(session, last, w.moved(lambda v: v.flatten(1).transpose(0, 1)))
    assert found is not None  # of known numbers alone it has returned
    if bias is not None:
        found = at.added(session, found, bias)
    moved: Payload = session.field(found).moved(lambda v: v.movedim(-1, 1))
    return moved


@rule("lerp")
def _lerp(session: Session, a: Any, b: Any, weight: Any) -> Payload:
    """Torch's own reading chooses between two forms of it by the size of the weight."""
    gap = at.added(session, b, at.negated(session, a))
    return at.added(session, a, at.multiplied(session, gap, weight))


# angles


@rule("cos")
def _cos(session: Session, a: Any) -> Payload:
    if isinstance(a, Number):
        return session.turned(a)[0]
    return session.unknown_function("cos", session.field(a))


@rule("sin")
def _sin(session: Session, a: Any) -> Payload:
    if isinstance(a, Number):
        return session.turned(a)[1]
    return session.unknown_function("sin", session.field(a))


@rule("polar")
def _polar(session: Session, length: Any, angle: Any) -> Payload:
    cos, sin = _cos(session, angle), _sin(session, angle)
    parts = [session.field(at.multiplied(session, session.field(length), x)) for x in (cos, sin)]
    return Pair(*parts)


# norms, and what has no order in a field


@rule("var")
def _var(session: Session, a: Any, dims: Any = (), correction: float = 1, keepdim: bool = False
         ) -> Payload | None:  # fmt: skip
    return None if at.is_number(a) else _spread(session, a, axes_of(dims), correction, keepdim)[0]


@rule("var_mean")
def _var_mean(session: Session, a: Any, dims: Any = (), correction: float = 1,
              keepdim: bool = False) -> Any:  # fmt: skip
    return None if at.is_number(a) else _spread(session, a, axes_of(dims), correction, keepdim)


def _spread(session: Session, a: Any, dims: tuple[int, ...], correction: float, keep: bool
            ) -> tuple[Field, Field]:  # fmt: skip
    x = session.field(a)
    centred = at.added(session, x, at.negated(session, _averaged(session, x, dims, True)))
    square = session.field(at.multiplied(session, centred, centred))
    return (_averaged(session, square, dims, keep, int(correction)),
            _averaged(session, x, dims, keep))  # fmt: skip


@rule("linalg_vector_norm", "norm")
def _norm(session: Session, x: Any, order: float = 2, dims: Any = (), keep: bool = False
          ) -> Payload | None:  # fmt: skip
    if at.is_number(x):
        return None
    if order != 2:
        raise NoMeaning(f"a norm of order {order} has no meaning in a finite field")
    square = at.multiplied(session, x, x)
    total = session.field(at.summed(session, square, axes_of(dims), keep))
    return session.unknown_function("sqrt", total)


def _largest(session: Session, x: Field, dims: tuple[int, ...], keep: bool, name: str) -> Field:
    """An unknown function of the entries in any order, but for those that are −inf."""
    each = session.unknown_function(f"{name}/entry", x)
    visible = each.moved(lambda v: torch.where(v.isfinite(), v, 0.0))
    total = session.field(at.summed(session, visible, dims, keep))
    found = session.unknown_function(name, total)
    # where all are taken for −inf the largest of them is not known, nor where one is not defined
    over = dims or tuple(range(x.top.ndim))
    none = (x.top == -torch.inf).all(over, keepdim=keep) if name == "max" else None
    lost = x.top.isnan().any(over, keepdim=keep)
    lost = lost | ((x.top == -torch.inf).any(over, keepdim=keep) if none is None else none)
    return found.moved(lambda v: torch.where(lost, torch.nan, v))


@rule("amax")
def _amax(session: Session, x: Any, dims: Any = (), keep: bool = False) -> Payload | None:
    return _largest(session, x, axes_of(dims), keep, "max") if isinstance(x, Field) else None


@rule("amin")
def _amin(session: Session, x: Any, dims: Any = (), keep: bool = False) -> Payload | None:
    return _largest(session, x, axes_of(dims), keep, "min") if isinstance(x, Field) else None


@rule("max")
def _max(session: Session, x: Any, dim: Any = None, keep: bool = False) -> Any:
    if not isinstance(x, Field):
        return None
    if dim is not None and not isinstance(dim, int):
        raise NoMeaning("torch.maximum has no meaning in a finite field")
    found = _largest(session, x, axes_of(dim), keep, "max")
    return found if dim is None else (found, Lost("the place of the largest entry"))

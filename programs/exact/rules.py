"""Rules for ATen operations on payloads: rows of the table, and operations that have no row.

An operation that only moves entries is applied to each array of residues; some functions of one
variable are left uninterpreted; a few operations have a rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..aten import ROWS
from .residues import OnlyKnownNumbers, Residues, Value, axes_of, is_number, shape_of, unwrapped
from .session import Field, Lost, NoMeaning, Pair, Payload, Session

Rule = Callable[..., Any]
R = TypeVar("R", bound=Rule)
RULES: dict[str, Rule] = {}
"""The rules by name of operation, called as rule(xp, *arguments) with payloads for tensors.

A rule returns a payload or a value, a sequence of them for several results, or None if all inputs
are known numbers.
"""

MOVES = frozenset((
    "view", "_unsafe_view", "_reshape_alias", "permute", "transpose", "t", "unsqueeze", "squeeze",
    "expand", "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "alias",
    "detach", "clone", "contiguous", "index_select", "gather", "repeat", "flip", "roll",
    "diagonal", "as_strided", "unfold", "tril", "triu", "lift_fresh", "narrow", "movedim",
    "repeat_interleave", "view_as", "resolve_conj", "resolve_neg", "rot90", "take_along_dim",
    "unsafe_split", "unsafe_chunk", "diagonal_copy", "view_copy", "expand_copy", "pixel_shuffle",
))  # fmt: skip
"""Operations that move entries, or set some to zero."""

UNKNOWN = frozenset((
    "relu", "gelu", "silu", "tanh", "sigmoid", "erf", "erfc", "softplus", "log", "log2", "log10",
    "log1p", "expm1", "exp2", "sqrt", "rsqrt", "abs", "elu", "leaky_relu", "hardswish",
    "hardsigmoid", "mish", "hardtanh", "clamp", "clamp_min", "clamp_max", "selu", "celu",
    "log_sigmoid_forward", "sinh", "cosh", "atan", "asinh", "sign", "floor", "ceil", "round",
    "trunc", "frac", "tan", "logit", "threshold", "relu6", "softshrink", "tanhshrink",
    "special_expit",
))  # fmt: skip
"""Functions of one variable left uninterpreted: equal values give equal values."""

FROM_TABLE = (
    "add", "sub", "mul", "div", "neg", "reciprocal", "pow", "exp", "cos", "sin", "where",
    "masked_fill", "complex", "view_as_complex", "view_as_real", "polar", "_conj", "sum", "mean",
    "var", "var_mean", "linalg_vector_norm", "cumsum", "cumprod", "prod", "logsumexp", "logaddexp",
    "logcumsumexp",
    "softmax", "_softmax", "_safe_softmax", "mm", "bmm", "dot", "mv", "convolution",
    "scaled_dot_product_attention",
)  # fmt: skip
"""Operations defined by a row of the table; torch decomposes the other operations of the table."""

RULES |= {
    _name: _row.function
    for _overload, _row in ROWS.items()
    if (_name := _overload.split(".")[1]) in FROM_TABLE
}
RULES["_conj_physical"], RULES["norm"] = RULES["_conj"], RULES["linalg_vector_norm"]
TABLED = frozenset(RULES)


def ruled(name: str, session: Session, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the payload of the result of an operation; None if all inputs are known numbers.

    For known numbers torch has computed the result, even if a row of the table refuses it.
    """
    try:
        found = RULES[name](Residues(session), *args, **keywords)
    except OnlyKnownNumbers:
        return None
    except NoMeaning:
        if name not in TABLED or any(isinstance(x, (Field, Pair)) for x in args):
            raise
        return None
    return [unwrapped(x) for x in found] if isinstance(found, (list, tuple)) else unwrapped(found)


def attended(session: Session, q: Any, k: Any, v: Any, *rest: Any, **settings: Any) -> Any:
    """Return attention on residues, as torch documents ``scaled_dot_product_attention``."""
    given = (*map(session.field, (q, k, v)), *rest)
    return ruled("scaled_dot_product_attention", session, given, settings)


def rule(*names: str) -> Callable[[R], R]:
    """Register a rule for operations of these names."""

    def wrap(found: R) -> R:
        for name in names:
            RULES[name] = found
        return found

    return wrap


@rule("_scaled_dot_product_flash_attention_for_cpu")
def _flash(
    xp: Residues,
    q: Any,
    k: Any,
    v: Any,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    found = attended(xp.session, q, k, v, attn_mask, dropout, causal, scale=scale)
    return found, Lost("the sums of a fused kernel")


@rule("index")
def _index(_: Residues, x: Any, places: Any) -> Payload | None:
    if isinstance(x, Tensor):
        return None
    found: Payload = x.moved(lambda v: torch.ops.aten.index.Tensor(v, places))
    return found


@rule("embedding")
def _embedding(_: Residues, table: Any, places: Any, *__: Any, **___: Any) -> Any:
    if not isinstance(places, Tensor):
        raise NoMeaning("torch.embedding at indices that are not integers")
    return None if isinstance(table, Tensor) else table.moved(lambda v: v[places])


@rule("cat")
def _cat(xp: Residues, parts: Any, dim: int = 0) -> Value:
    return xp.joined(parts, lambda x: torch.cat(x, dim))


@rule("stack")
def _stack(xp: Residues, parts: Any, dim: int = 0) -> Value:
    return xp.stack(parts, dim)


@rule("copy")
def _copy(xp: Residues, x: Any, source: Any, *_: Any, **__: Any) -> Value:
    like = torch.zeros_like(x) if isinstance(x, Tensor) else x.moved(torch.zeros_like)
    return xp.joined([source, like], lambda v: v[0].expand(v[1].shape).clone())


@rule("fill", "full_like", "ones_like")
def _fill(xp: Residues, x: Any, value: Any = 1, **_: Any) -> Value:
    return _copy(xp, x, value)


@rule("zero", "zeros_like")
def _zero(_: Residues, x: Any, *__: Any, **___: Any) -> Payload:
    found: Payload = x.moved(torch.zeros_like)
    return found


@rule("empty_like")
def _unwritten(_: Residues, x: Any, *__: Any, **___: Any) -> Payload:
    """Uninitialised memory is undefined (NaN) until something is written there."""

    def how(v: Tensor) -> Tensor:
        return torch.full_like(v, torch.nan) if v.is_floating_point() else torch.zeros_like(v)

    found: Payload = x.moved(how)
    return found


@rule("new_empty", "new_empty_strided")
def _new_empty(xp: Residues, _: Any, size: Any, *__: Any, **___: Any) -> Payload:
    return xp.session.constant(torch.full(tuple(size), torch.nan))


@rule("new_zeros", "new_full", "new_ones")
def _new(*_: Any, **__: Any) -> Any:
    return NotImplemented  # filled in from the numbers, which are constants


@rule("index_put")
def _index_put(xp: Residues, x: Any, places: Any, value: Any, accumulate: bool = False) -> Value:
    def put(base: Tensor, values: Tensor) -> Tensor:  # None, a whole axis, is the operator's alone
        found: Tensor = torch.ops.aten.index_put(base, places, values, accumulate)
        return found

    if not accumulate:
        return xp.joined([x, value], lambda parts: put(*parts))
    if is_number(unwrapped(x)) and is_number(unwrapped(value)):
        raise OnlyKnownNumbers
    fields, zeros = xp.session.fields, torch.zeros(shape_of(x), dtype=torch.float64)
    times = put(zeros, torch.ones(shape_of(value), dtype=torch.float64)).amax()
    added = xp.number(value).field.at_levels(
        lambda level, values: fields[level].reduced(put(zeros, values)),
        lambda degree: degree.summed(max(1, int(times))),
    )
    return xp.number(x) + xp.number(added)


@rule("slice_scatter", "select_scatter")
def _scatter(xp: Residues, x: Any, source: Any, dim: int, *rest: int) -> Value:
    how = torch.ops.aten.slice_scatter if len(rest) > 1 else torch.ops.aten.select_scatter
    return xp.joined([x, source], lambda v: how(v[0], v[1], dim, *rest))


@rule("constant_pad_nd")
def _pad(xp: Residues, x: Any, pad: Any, value: float = 0) -> Any:
    moved: Payload = x.moved(lambda v: torch.ops.aten.constant_pad_nd(v, pad, 0))
    if not value:
        return moved
    inside = torch.ops.aten.constant_pad_nd(torch.ones(shape_of(x)), pad, 0).bool()
    return xp.where(inside, moved, value)


@rule("isnan")
def _isnan(_: Residues, x: Any) -> Tensor | None:
    return x.top.isnan() if isinstance(x, Field) else None


@rule("isinf", "isneginf")
def _isinf(_: Residues, x: Any) -> Tensor | None:
    return x.top.isinf() if isinstance(x, Field) else None


@rule("nan_to_num")
def _nan_to_num(xp: Residues, x: Any, nan: float | None = 0.0, *_: Any) -> Value | None:
    return xp.where(x.top.isnan(), nan or 0.0, x) if isinstance(x, Field) else None


@rule("lerp")
def _lerp(xp: Residues, a: Any, b: Any, weight: Any) -> Value:
    """a + weight·(b − a); torch's decomposition chooses between two forms by the weight's size."""
    start = xp.number(a)
    return start + (xp.number(b) - start) * xp.number(weight)


def _largest(xp: Residues, x: Field, dims: tuple[int, ...], keep: bool, name: str) -> Value:
    """Return an uninterpreted symmetric function of the entries that are not −inf."""
    visible = xp.unknown(f"{name}/entry", x).moved(lambda v: torch.where(v.isfinite(), v, 0.0))
    found = xp.unknown(name, visible.sum(dims, keep))
    # undefined: one entry is, or all are −inf (for a minimum: any), as −inf may be a finite number
    over = dims or tuple(range(x.top.ndim))
    none = (x.top == -torch.inf).all(over, keepdim=keep) if name == "max" else None
    lost = x.top.isnan().any(over, keepdim=keep)
    lost = lost | ((x.top == -torch.inf).any(over, keepdim=keep) if none is None else none)
    return found.moved(lambda v: torch.where(lost, torch.nan, v))


for _name in ("max", "min"):

    @rule(f"a{_name}")
    def _most(xp: Residues, x: Any, dims: Any = (), keep: bool = False, name: str = _name) -> Any:
        return _largest(xp, x, axes_of(dims), keep, name) if isinstance(x, Field) else None


@rule("max")
def _max(xp: Residues, x: Any, dim: Any = None, keep: bool = False) -> Any:
    if not isinstance(x, Field):
        return None
    if dim is not None and not isinstance(dim, int):
        raise NoMeaning("torch.maximum has no meaning in a finite field")
    found = _largest(xp, x, axes_of(dim), keep, "max")
    return found if dim is None else (found, Lost("the place of the largest entry"))

"""Rules for exponentials: each goes up one level of the tower, from Z_q to Z_p with q | p − 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import arithmetic as at
from .functions import axes_of
from .payload import Field, Lost, NoMeaning, Payload, TooDeep
from .rules import rule
from .session import Session

__all__ = ["attended", "softmax"]


@rule("exp")
def _exp(session: Session, a: Any) -> Payload | None:
    if at.is_number(a):
        return None
    x = session.field(a)
    session.exponentials += 1
    levels: list[Tensor | None] = [None]
    for level, part in enumerate(x.levels[:-1]):
        levels.append(None if part is None else session.power(level, part))
    if levels[-1] is None:
        raise TooDeep
    return Field(tuple(levels), None)


@rule("_softmax", "softmax", "_safe_softmax")
def softmax(session: Session, a: Any, dim: int, *rest: Any) -> Payload | None:  # noqa: ARG001
    """e^x over the sum of e^x; a row where all is hidden is not defined."""
    if at.is_number(a):
        return None
    weights = _exp(session, a)
    assert weights is not None
    total = at.summed(session, weights, (dim,), True)
    return at.multiplied(session, weights, at.inverse(session, total))


@rule("logsumexp")
def _logsumexp(session: Session, a: Any, dim: Any, keep: bool = False) -> Payload | None:
    weights = _exp(session, a)
    if weights is None:
        return None
    total = session.field(at.summed(session, weights, axes_of(dim), keep))
    return session.unknown_function("log", total)


def attended(session: Session, q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False,
             scale: float | None = None, groups: bool = False) -> Payload:  # fmt: skip
    """softmax(scale q kᵀ + mask) v, as torch documents ``scaled_dot_product_attention``."""
    query, key, value = (session.field(x) for x in (q, k, v))
    heads, rows, columns = query.top.shape[-3] if query.top.ndim > 2 else 1, *_sizes(query, key)
    if groups and heads != key.top.shape[-3]:
        often = heads // key.top.shape[-3]
        key, value = (x.moved(lambda t: t.repeat_interleave(often, -3)) for x in (key, value))
    factor = query.top.shape[-1] ** -0.5 if scale is None else scale
    scores = at.product(session, at.multiplied(session, query, factor),
                        key.moved(lambda t: t.transpose(-2, -1)))  # fmt: skip
    if causal:
        seen = torch.ones(rows, columns, dtype=torch.bool).tril()
        scores = at.where(session, seen, scores, -torch.inf)
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        scores = at.where(session, mask, scores, -torch.inf)
    elif mask is not None:
        scores = at.added(session, scores, mask)
    found = at.product(session, softmax(session, scores, -1), value)
    assert found is not None
    return found


def _sizes(query: Field, key: Field) -> tuple[int, int]:
    return query.top.shape[-2], key.top.shape[-2]


@rule("_scaled_dot_product_flash_attention_for_cpu")
def _flash(session: Session, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False,
           *, attn_mask: Any = None, scale: float | None = None) -> Any:  # fmt: skip
    if dropout:
        raise NoMeaning("dropout is random")
    found = attended(session, q, k, v, attn_mask, causal, scale)
    return found, Lost("the sums of a fused kernel")

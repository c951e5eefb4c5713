"""What is done to the payloads at each operation of ATen: the table, and moves of entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import common
from . import arithmetic as at
from .payload import Field, NoMeaning, Number, Pair, Payload
from .session import Session

__all__ = ["MOVES", "RULES", "Rule", "rule"]

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""By the name of the operation: (session, *arguments with payloads in place of tensors).

A rule gives a payload, or as many as there are results, or None where there is none.
"""

MOVES = frozenset((
    "view", "_unsafe_view", "_reshape_alias", "permute", "transpose", "t", "unsqueeze", "squeeze",
    "expand", "slice", "select", "split", "split_with_sizes", "chunk", "unbind", "alias",
    "detach", "clone", "contiguous", "index_select", "gather", "repeat", "flip", "roll",
    "diagonal", "as_strided", "unfold", "tril", "triu", "lift_fresh", "narrow", "movedim",
    "repeat_interleave", "view_as", "resolve_conj", "resolve_neg", "rot90", "take_along_dim",
    "unsafe_split", "unsafe_chunk", "diagonal_copy", "view_copy", "expand_copy", "pixel_shuffle",

))  # fmt: skip
"""Operations that put entries in other places, or zeros in some."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operations of these names."""
    def wrap(found: Rule) -> Rule:
        for name in names:
            RULES[name] = found
        return found

    return wrap


@rule("index")
def _index(session: Session, x: Any, places: Any) -> Payload | None:  # noqa: ARG001
    if isinstance(x, Tensor):
        return None
    found: Payload = x.moved(lambda v: torch.ops.aten.index.Tensor(v, places))
    return found


@rule("embedding")
def _embedding(session: Session, table: Any, places: Any, *rest: Any, **kw: Any) -> Any:  # noqa: ARG001
    if not isinstance(places, Tensor):
        raise NoMeaning("torch.embedding at places that are no whole numbers")
    return None if isinstance(table, Tensor) else table.moved(lambda v: v[places])


@rule("cat")
def _cat(session: Session, parts: Any, dim: int = 0) -> Payload:
    return at.joined(session, parts, lambda x: torch.cat(x, dim))


@rule("stack")
def _stack(session: Session, parts: Any, dim: int = 0) -> Payload:
    return at.joined(session, parts, lambda x: torch.stack(x, dim))


@rule("where")
def _where(session: Session, condition: Any, a: Any, b: Any) -> Payload:
    return at.where(session, _plain(condition), a, b)


@rule("masked_fill")
def _masked_fill(session: Session, x: Any, mask: Any, value: Any) -> Payload:
    return at.where(session, _plain(mask), value, x)


@rule("fill", "full_like")
def _fill(session: Session, x: Any, value: Any, **kw: Any) -> Payload:  # noqa: ARG001
    return at.joined(session, [value, _empty(x)], lambda v: v[0].expand(v[1].shape).clone())


def _empty(x: Any) -> Any:
    return torch.zeros_like(x) if isinstance(x, Tensor) else x.moved(torch.zeros_like)


@rule("empty_like")
def _unwritten(session: Session, x: Any, *rest: Any, **kw: Any) -> Payload:  # noqa: ARG001
    """What stands in memory is not known: it is not defined until something is written there."""
    def how(v: Tensor) -> Tensor:
        return torch.full_like(v, torch.nan) if v.is_floating_point() else torch.zeros_like(v)

    found: Payload = x.moved(how)
    return found


@rule("zero", "zeros_like")
def _zero(session: Session, x: Any, *rest: Any, **kw: Any) -> Payload:  # noqa: ARG001
    found: Payload = x.moved(torch.zeros_like)
    return found


@rule("ones_like")
def _ones(session: Session, x: Any, **kw: Any) -> Payload:  # noqa: ARG001
    return _fill(session, x, 1)  # type: ignore[no-any-return]


@rule("new_empty", "new_empty_strided")
def _new_empty(session: Session, x: Any, size: Any, *rest: Any, **kw: Any) -> Any:  # noqa: ARG001
    return session.constant(torch.full(tuple(size), torch.nan))


@rule("new_zeros", "new_full", "new_ones")
def _new(session: Session, x: Any, size: Any, value: Any = None, **kw: Any) -> Any:  # noqa: ARG001
    return NotImplemented  # filled in from the numbers, which are constants


@rule("copy")
def _copy(session: Session, x: Any, source: Any, *rest: Any) -> Payload:  # noqa: ARG001
    return at.joined(session, [source, _empty(x)], lambda v: v[0].expand(v[1].shape).clone())


@rule("index_put")
def _index_put(session: Session, x: Any, places: Any, value: Any, accumulate: bool = False
               ) -> Payload:  # fmt: skip
    def how(parts: list[Tensor]) -> Tensor:
        put: Tensor = torch.ops.aten.index_put(parts[0], places, parts[1], accumulate)
        return put  # the operator takes None for a whole axis, torch.index_put does not

    return at.joined(session, [x, value], how)


@rule("slice_scatter", "select_scatter")
def _scatter(session: Session, x: Any, source: Any, dim: int, *rest: int) -> Payload:
    how = torch.ops.aten.slice_scatter if len(rest) > 1 else torch.ops.aten.select_scatter
    return at.joined(session, [x, source], lambda v: how(v[0], v[1], dim, *rest))


@rule("constant_pad_nd")
def _pad(session: Session, x: Any, pad: Any, value: float = 0) -> Payload:
    moved: Payload = x.moved(lambda v: torch.ops.aten.constant_pad_nd(v, pad, 0))
    if not value:
        return moved
    inside = torch.ops.aten.constant_pad_nd(torch.ones(_shape(x)), pad, 0).bool()
    return at.where(session, inside, moved, value)


def _shape(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.shape
    if isinstance(x, Pair):
        return x.real.top.shape
    return x.terms[0][0].shape if isinstance(x, Number) else x.top.shape


@rule("complex")
def _complex(session: Session, real: Any, imag: Any) -> Payload:
    shape = common(tuple(_shape(real)), tuple(_shape(imag)))
    return Pair(*(session.field(x).moved(lambda v: v.expand(shape)) for x in (real, imag)))


@rule("view_as_complex")
def _as_complex(session: Session, x: Any) -> Payload:
    found = session.field(x)
    return Pair(found.moved(lambda v: v[..., 0]), found.moved(lambda v: v[..., 1]))


@rule("view_as_real")
def _as_real(session: Session, x: Any) -> Payload:
    pair = session.pair(x)
    return at.joined(session, [pair.real, pair.imag], lambda v: torch.stack(v, -1))


@rule("_conj", "_conj_physical")
def _conj(session: Session, x: Any) -> Payload:
    if not isinstance(x, Pair):
        found: Payload = x
        return found
    return Pair(x.real, session.field(at.negated(session, x.imag)))


@rule("isnan")
def _isnan(session: Session, x: Any) -> Any:  # noqa: ARG001
    return x.top.isnan() if isinstance(x, Field) else None


@rule("isinf", "isneginf")
def _isinf(session: Session, x: Any) -> Any:  # noqa: ARG001
    return x.top.isinf() if isinstance(x, Field) else None


@rule("nan_to_num")
def _nan_to_num(session: Session, x: Any, nan: float | None = 0.0, *rest: Any) -> Any:  # noqa: ARG001
    if not isinstance(x, Field):
        return None
    at_nan = x.top.isnan()
    return at.where(session, at_nan, nan or 0.0, x)


def _plain(mask: Any) -> Tensor:
    if isinstance(mask, Tensor):
        return mask
    raise NoMeaning("a choice by values that are not known: the field has no order")

"""Which keys reach which queries: as declared, and seen in outputs where one token is changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from .declarations import DeclaredAttention
from .draw import Draw
from .subjects import Mask

NEAR = 1e-3  # of the largest entry that a query reads: one that is hidden reads something else


def visible(declared: DeclaredAttention, queries: int, keys: int) -> Tensor:
    """Truth values (T, S): what each query sees by the declaration.

    With alignment "end" the last query sees the last key, with "start" the first the first.  A
    window counts the keys up to the query and the query's own.

    >>> visible(DeclaredAttention(causal=True), 2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    offset = keys - queries if declared.alignment == "end" else 0
    ahead = torch.arange(keys)[None, :] - (torch.arange(queries)[:, None] + offset)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if declared.causal:
        seen &= ahead <= 0
    if declared.window:
        seen &= ahead > -declared.window
        if not declared.causal:
            seen &= ahead < declared.window
    return seen


def as_it_reads(
    attend: Callable[..., Tensor],
    counting: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    counts: Tensor,
) -> Tensor:
    """1 where a query reads what it reads without a mask of those that count (B, T), else 0."""
    plain, under = attend(q, k, v, None).double(), counting(q, k, v, counts).double()
    near = NEAR * plain.abs().amax((1, 3), keepdim=True)
    return ((plain - under).abs() <= near).all(3).all(1).double()  # NaN is none of these


def told_matrix(seen: Tensor) -> list[str]:
    """A matrix of truth values as lines of # (seen) and . (not)."""
    return ["".join("#" if bool(one) else "." for one in row) for row in seen]


def influences(call: Callable[[Tensor], Tensor], x: Tensor, draw: Draw) -> Tensor:
    """How much each output changes with each token: x (B, S, E) -> (T, S), the largest over all."""
    keys = range(x.shape[1])
    other = torch.stack([draw.normal(x.shape[0], x.shape[2], salt=500 + j) for j in keys], 1)
    return changes(call, x, other, keys)


def changes(call: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, at: Iterable[int]) -> Tensor:
    """The same (T, S) where each of these tokens in turn is that of y."""
    before = call(x).double()
    found = torch.zeros(before.shape[1], x.shape[1], dtype=torch.float64)
    for j in at:
        other = x.clone()
        other[:, j] = y[:, j]
        change = (call(other).double() - before).abs().nan_to_num(nan=torch.inf)
        found[:, j] = change.amax(dim=(0, 2)).cpu()
    return found


def sees(subject: Mask, queries: int, keys: int) -> Tensor:
    """Truth values (T, S): what the mask leaves visible, in any row or head.

    A number hides where its exponential is 0 in its own format; less does not hide, whatever it
    is meant to do.  Masks of more axes must be alike in all others.

    Raises ``ValueError`` where the shape is no (.., T, S).
    """
    made = subject.mask(queries, keys)
    if made.shape[-2:] != (queries, keys):
        raise ValueError(f"wanted a mask (.., {queries}, {keys}), got {tuple(made.shape)}")
    flat = made.reshape(-1, queries, keys)
    if made.dtype == torch.bool:
        seen = flat if subject.true_means == "visible" else ~flat
    elif made.is_floating_point():
        least = math.log(torch.finfo(made.dtype).smallest_normal * torch.finfo(made.dtype).eps)
        seen = ~(flat < least)
    else:
        seen = (flat != 0) if subject.true_means == "visible" else (flat == 0)
    return seen.any(0).cpu()

"""The law of masks that are numbers: they are added to the scores as they are."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .given_masks import (
    ADDED,
    FEW,
    KEPT,
    OF_HEAD,
    ONE,
    USUAL,
    multiplied,
    of_each_head,
    own_row,
    scattered_masks,
    usual_masks,
    weights_left,
)
from .law import ATTENTION_INPUTS, QKV, Law, Sides

MASK_ADDS = Law("mask-adds", "attention", "masks", "a numeric mask is added to the scores as it is")


@MASK_ADDS.formula(
    "attention", "attend_added", names=ADDED, **QKV, m="real B r n", inputs=ATTENTION_INPUTS
)
def mask_adds(f: Any, q: Any, k: Any, v: Any, m: Any) -> Sides:
    """attend(q, k, v; m)_i (Σ_j p_ij e^m_ij + s) = Σ_j p_ij e^m_ij v_j, s the weight of a sink."""
    xp, shape = array_namespace(q), (q.shape[0], 1, q.shape[2], k.shape[2])
    mask = xp.broadcast_to(m[:, None, :1] if f.by_key else m[:, None], shape)
    plain = partial(f.attend_added, q, k, seen=0 * mask)
    return multiplied(xp, v, xp.exp(mask), plain, f.attend_added(q, k, v, mask))


LARGE = 60.0  # e to ±60 times that of a score is in the range of float32
NUMBERS = ("|m|", "−|m|, and −∞ for hidden keys", "m + c, where c is 60 or −60 by row")


@MASK_ADDS.formula(
    "attention",
    "attend_added",
    floats=True,
    names=tuple(
        (
            f"the output under the mask {mask}, up to a factor",
            "values times e to the mask, weighted without it, up to the same factor",
        )
        for mask in NUMBERS
    ),
    **KEPT,
    m="real B r n",
    inputs=FEW,
)
def usual_numbers(f: Any, q: Any, k: Any, v: Any, keep: Any, m: Any) -> Sides:
    """The same for masks as most callers pass them: a bias, large numbers, beside −∞.

    attend(q, k, v; m)_i Σ_j p_ij e^m_ij = attend(q, k, 1; m)_i Σ_j p_ij e^m_ij v_j with any sink,
    and with both sides divided by e^c.
    """
    xp, one, left, right = array_namespace(q), 0 * v + 1, [], []
    plain = partial(f.attend_added, q, k)
    for mask, factor in _masks_of_numbers(f, q, k, keep, m):
        without = partial(plain, seen=0 * factor)
        found, shared = plain(v, mask), plain(one, mask)
        here, there = multiplied(xp, v, factor, without, found, sinks=False)
        left.append(here)
        right.append(there * shared)
    return left, right


def _masks_of_numbers(f: Any, q: Any, k: Any, keep: Any, m: Any) -> list[tuple[Any, Any]]:
    """Return masks, each with e to the mask, or, for large numbers c, with e to the mask − c.

    A large positive number is added for every other key: for a single one its size has no effect.
    """
    xp, (b, r, n) = array_namespace(q), (q.shape[0], q.shape[2], k.shape[2])
    m = xp.broadcast_to(m[:, None, :1] if f.by_key else m[:, None], (b, 1, r, n))
    row, query = xp.arange(b)[:, None, None, None], xp.arange(r)[:, None]
    key, none = xp.arange(n)[None, :], 0 * m
    seen = keep[:, None, None, :] if f.by_key else key <= query + max(0, n - r)
    below = xp.where(m < 0, m, -m)
    c = xp.where((row + (0 if f.by_key else query)) % 2 == 0, LARGE, none - LARGE)
    raised = (c < 0) | (key % 2 == 0)
    return [
        (-below, xp.exp(-below)),
        (xp.where(seen, below, -math.inf), xp.where(seen, xp.exp(below), none)),
        (xp.where(raised, m + c, m), xp.exp(xp.where(raised, m, m - c))),
    ]


@MASK_ADDS.formula("attention", "attend_lowered", names=ADDED, inputs=ATTENTION_INPUTS, **KEPT)
def mask_hides(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same for a mask of 0 and −∞."""
    return weights_left(q, k, v, f.attend_lowered, scattered_masks(f, q, k, keep))


@MASK_ADDS.formula("attention", "attend_lowered", names=ADDED, **USUAL, **KEPT)
def usual_mask_hides(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same for masks as most callers pass them."""
    return weights_left(q, k, v, f.attend_lowered, usual_masks(f, q, k, keep))


@MASK_ADDS.formula("attention", "attend_plus", names=ADDED, m="real B r n", **ONE)
def one_mask_adds(f: Any, q: Any, k: Any, v: Any, m: Any, i: Any) -> Sides:
    """The same for any one query, among any number of them."""
    factor, one = array_namespace(q).exp(own_row(f, m, i)), 0 * v + 1

    def plain(values: Any) -> Any:
        return f.attend_plus(q, k, values, 0 * m)[:, :, i]

    total = plain(factor * one) + 1 - plain(one)
    return f.attend_plus(q, k, v, m)[:, :, i] * total, plain(factor * v)


@MASK_ADDS.formula(
    "attention", "added_by_head", names=OF_HEAD, floats=True, inputs=FEW, **QKV, m="real B H r n"
)
def heads_add(f: Any, q: Any, k: Any, v: Any, m: Any) -> Sides:
    """Of a mask with a part for each head, such as a bias, each head adds its own part."""
    first = m[:, :, :1] if f.by_key else m
    return of_each_head(f.added_by_head, q, k, v, array_namespace(q).broadcast_to(first, m.shape))


LAWS = (MASK_ADDS,)

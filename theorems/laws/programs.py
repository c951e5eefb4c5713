"""For each law a program that keeps it, and for each clause of its sentence one that breaks it.

Every method that reads a law has to refuse the programs that break it.  Vectors have four channels,
in halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

__all__ = ["PROGRAMS", "Programs"]

Program = Callable[..., Any]


@dataclass(frozen=True)
class Programs:
    """Of a law of one call: a program that keeps it, and those that break it, by clause."""

    law: str
    kind: str
    call: str
    keeps: Program
    breaks: Mapping[str, Program]


def turned(x: Any, p: Any) -> Any:
    """Channel i turned with channel i + 2 by the angle p, or p/4."""
    xp = array_namespace(x)
    angles = xp.stack([1.0 * p, 0.25 * p], axis=-1)[:, None]
    c, s = xp.cos(angles), xp.sin(angles)
    left, right = x[..., :2], x[..., 2:]
    return xp.concat((left * c - right * s, right * c + left * s), axis=-1)


def _first_head_longer(x: Any) -> Any:
    return array_namespace(x).concat((2 * x[:, :1], x[:, 1:]), axis=1)


def _half_longer(x: Any) -> Any:
    return array_namespace(x).concat((2 * x[..., :2], 3 * x[..., 2:]), axis=-1)


def _at_own_place(x: Any, p: Any) -> Any:
    return turned(x, 0 * p + array_namespace(x).arange(x.shape[2])[None])


def _less_mean_of_rows(x: Any) -> Any:
    return x - array_namespace(x).mean(x, axis=0, keepdims=True)


def _turned_law(law: str, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", "turn", turned, told)


def exponentials(q: Any, k: Any) -> Any:
    """e to the scores."""
    return array_namespace(q).exp(q @ k.mT)


def weighted(weights: Any, v: Any, more: Any = 0) -> Any:
    """Values weighted, over the sum of the weights and more."""
    total = array_namespace(v).sum(weights, axis=-1, keepdims=True)
    return (weights / (total + more)) @ v


def attend(q: Any, k: Any, v: Any) -> Any:
    """softmax(q kᵀ) v."""
    return weighted(exponentials(q, k), v)


def _seen(q: Any, k: Any, ahead: int = 0) -> Any:
    xp = array_namespace(q)
    there, here = xp.arange(k.shape[2])[None, :], xp.arange(q.shape[2])[:, None]
    return xp.where(there - ahead <= here, exponentials(q, k), 0 * q[..., :1])


def causal(q: Any, k: Any, v: Any) -> Any:
    """Attention in which query i sees the keys up to i."""
    return weighted(_seen(q, k), v)


def _by_place(q: Any, k: Any, v: Any) -> Any:
    place = array_namespace(q).arange(k.shape[2]) + 1.0
    return weighted(exponentials(q, k) * place, v)


def _over_queries(q: Any, k: Any, v: Any) -> Any:
    xp, weights = array_namespace(q), exponentials(q, k)
    return (weights / xp.sum(weights, axis=-2, keepdims=True)) @ v


def _heads_mixed(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v) + array_namespace(q).mean(q, axis=1, keepdims=True)


def _rows_mixed(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k, v) + array_namespace(q).mean(q, axis=0, keepdims=True)


def _attended_law(law: str, keeps: Program = attend, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "attention", "attend", keeps, told)


def mean_of_tokens(x: Any) -> Any:
    """Each token and the mean of all."""
    return x + array_namespace(x).mean(x, axis=1, keepdims=True)


def _by_token_place(x: Any) -> Any:
    return x * (array_namespace(x).arange(x.shape[1]) + 1.0)[None, :, None]


PROGRAMS: tuple[Programs, ...] = (
    _turned_law(
        "relative",
        offset_of_their_positions_alone=lambda x, p: turned(x, p * p),
        no_other_position_is_seen=lambda x, p: turned(x, p - p[:, :1]),
    ),
    _turned_law(
        "norm",
        one_number_for_all_channels=lambda x, p: _half_longer(turned(x, p)),
        the_same_at_every_position=lambda x, p: turned(x, p) * (1.0 + p)[:, None, :, None],
        the_same_for_every_head=lambda x, p: _first_head_longer(turned(x, p)),
    ),
    _turned_law(
        "composition",
        angles_add_up=lambda x, p: turned(x, p * p),
        nothing_is_turned_at_0=lambda x, p: turned(x, p + 1),
    ),
    _turned_law(
        "linear",
        sums=lambda x, p: turned(x, p) + 1.0,
        multiples=lambda x, p: turned(x, p) * x,
    ),
    _turned_law(
        "identity-at-zero",
        a_vector_stays=lambda x, p: turned(x, p + 1),
        a_common_factor=lambda x, p: _half_longer(turned(x, p)),
    ),
    _turned_law(
        "every-head-alike",
        in_the_same_way=lambda x, p: _first_head_longer(turned(x, p)),
        no_other_head_is_seen=lambda x, p: (
            turned(x, p) + array_namespace(x).mean(x, axis=1, keepdims=True)
        ),
    ),
    _turned_law(
        "follows-its-ids",
        tokens_permuted=_at_own_place,
        each_row_has_its_own=lambda x, p: turned(x, p[:1] + 0 * p),
    ),
    _turned_law(
        "rows-of-batch-apart",
        a_row_alone=lambda x, p: turned(_less_mean_of_rows(x), p),
        its_own_positions=lambda x, p: turned(x, p[:1] + 0 * p),
    ),
    _attended_law("order-of-keys", keys_and_values_permuted=_by_place),
    _attended_law("permutation", tokens_permuted=_by_place),
    _attended_law(
        "rows-sum-to-one",
        weights_of_every_query=_over_queries,
        add_up_to_one=lambda q, k, v: 2.0 * attend(q, k, v),
    ),
    _attended_law(
        "shift-of-scores",
        all_scores_of_a_query=lambda q, k, v: weighted(exponentials(q, k), v, 1.0),
    ),
    _attended_law("heads-apart", its_own_queries=_heads_mixed),
    _attended_law("rows-of-batch-apart", a_row_alone=_rows_mixed),
    _attended_law(
        "causal",
        causal,
        no_later_token=attend,
        not_the_next_one=lambda q, k, v: weighted(_seen(q, k, 1), v),
    ),
    Programs("permutation", "layer", "call", mean_of_tokens, {"tokens permuted": _by_token_place}),
    Programs(
        "rows-of-batch-apart", "layer", "call", mean_of_tokens, {"a row alone": _less_mean_of_rows}
    ),
    Programs(
        "causal",
        "layer",
        "call",
        _by_token_place,
        {
            "a later token": mean_of_tokens,
            "that it is there": lambda x: x * (1.0 * x.shape[1]),
        },
    ),
)

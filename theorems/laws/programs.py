"""For each law a program that keeps it, and for each clause of its sentence one that breaks it.

Every method that reads a law has to refuse the programs that break it.  Vectors have four channels,
in halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from array_api_compat import array_namespace

__all__ = ["PROGRAMS", "Programs"]

Program = Callable[..., Any]


@dataclass(frozen=True)
class Programs:
    """Of a law of one call: a program that keeps it, and those that break it, by clause.

    ``beside``: what else the code has, by the names of calls and of plain numbers.
    """

    law: str
    kind: str
    call: str
    keeps: Program
    breaks: Mapping[str, Program]
    beside: Mapping[str, Any] = field(default_factory=dict)


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


def shares(q: Any, k: Any) -> Any:
    """softmax(q kᵀ)."""
    weights = exponentials(q, k)
    return weights / array_namespace(q).sum(weights, axis=-1, keepdims=True)


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


def _of_heads(x: Any, order: Sequence[int]) -> Any:
    return array_namespace(x).stack([x[:, head] for head in order], axis=1)


def _band(q: Any, k: Any, v: Any, before: int = 1 << 20, ahead: int = 0, first: bool = True) -> Any:
    """Attention to so many keys up to the query's own, the last of both together, or ahead."""
    xp, past = array_namespace(q), k.shape[2] - q.shape[2]
    far = past + xp.arange(q.shape[2])[:, None] - xp.arange(k.shape[2])[None, :]
    seen = (far < before) & (far >= -ahead)
    if not first:
        seen = seen & ((far == 0) | (xp.arange(k.shape[2])[None, :] > 0))
    return weighted(xp.where(seen, exponentials(q, k), 0 * q[..., :1]), v)


def in_groups(q: Any, k: Any, v: Any) -> Any:
    """Four heads, two to each of two groups."""
    return attend(q, _of_heads(k, (0, 0, 1, 1)), _of_heads(v, (0, 0, 1, 1)))


def _aligned(q: Any, k: Any, v: Any, early: int = 0) -> Any:
    """Causal attention whose last query stands at the last key."""
    past = k.shape[2] - q.shape[2]
    return weighted(_seen(q, k, past - early * (past > 0)), v)


def under_a_mask(q: Any, k: Any, v: Any, seen: Any = None, left: float = 0.0) -> Any:
    """Attention that reads the keys which a mask shows, and ``left`` of each weight elsewhere."""
    weights = exponentials(q, k)
    if seen is not None:
        weights = array_namespace(q).where(seen, weights, left * weights)
    return weighted(weights, v)


def under_numbers(q: Any, k: Any, v: Any, m: Any = None) -> Any:
    """Attention with numbers that are added to its scores."""
    weights = exponentials(q, k)
    return weighted(weights if m is None else weights * array_namespace(q).exp(m), v)


def _added_after(q: Any, k: Any, v: Any, m: Any = None) -> Any:
    return attend(q, k, v) if m is None else attend(q, k, v) + m @ v


def _inverted(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    return attend(q, k, v) if seen is None else under_a_mask(q, k, v, ~seen, 0.01)


def or_zeros(q: Any, k: Any, v: Any, seen: Any = None, others: float = 0.0) -> Any:
    """Attention under a mask, where a query that sees no key reads zeros."""
    if seen is None:
        return attend(q, k, v)
    xp = array_namespace(q)
    weights = xp.where(seen, exponentials(q, k), 0 * q[..., :1])
    blind = xp.sum(weights, axis=-1, keepdims=True) == 0
    return weighted(weights, v, xp.where(blind, 1.0, others * xp.any(blind)))


def _values_leak(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    return under_a_mask(q, k, v, seen) + array_namespace(v).mean(v, axis=2, keepdims=True)


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


def _add_up(x: Any, weights: Any) -> Any:
    """x and the mean of what each token sees: weights (n, n) or (B, n, n), 1 or 0."""
    xp = array_namespace(x)
    return x + (weights @ x) / xp.sum(weights, axis=-1, keepdims=True)


def _past(x: Any, queries: int = 0) -> Any:
    """The past of the last so many tokens (all, if 0): (queries, n), 1 or 0."""
    xp, n = array_namespace(x), x.shape[1]
    here = xp.arange(n)[n - queries if queries else 0 :, None]
    return xp.where(xp.arange(n)[None, :] <= here, 1.0, 0.0)


def _last_tokens(x: Any, before: int, ahead: int = 0) -> Any:
    """Each token, and the mean of so many tokens up to it, or ahead."""
    xp, n = array_namespace(x), x.shape[1]
    far = xp.arange(n)[:, None] - xp.arange(n)[None, :]
    return _add_up(x, xp.where((far < before) & (far >= -ahead), 1.0, 0.0))


def past_tokens(x: Any) -> Any:
    """Each token, and the mean of the tokens up to it."""
    return _add_up(x, _past(x))


def fed(x: Any, state: Any, kept: int = 1 << 20, ahead: bool = False) -> tuple[Any, Any]:
    """The same of a piece, the state being the tokens before it, of which the last are kept."""
    xp = array_namespace(x)
    whole = x if state is None else xp.concat((state, x), axis=1)
    weights = _past(whole, x.shape[1])
    seen = 0 * weights + 1.0 if ahead else weights
    mean = (seen @ whole) / xp.sum(seen, axis=-1, keepdims=True)
    return x + mean, whole[:, -kept:] if kept < whole.shape[1] else whole


def _fed_anew(x: Any, state: Any) -> tuple[Any, Any]:
    found, state = fed(x, state)
    return found * (1.0 if state.shape[1] == x.shape[1] else 2.0), state


def documents(x: Any, ids: Any, before: int = 0) -> Any:
    """Each token, and the mean of its document, which begins at id 0; or of those before it."""
    xp = array_namespace(x)
    starts = xp.where(ids == 0, 1, 0)
    number = xp.cumulative_sum(starts, axis=1)
    apart = number[:, :, None] - number[:, None, :]
    return _add_up(x, xp.where((apart >= 0) & (apart <= before), 1.0, 0.0))


def padded(x: Any, keep: Any) -> Any:
    """Each token, and the mean of those that count."""
    return _add_up(x, array_namespace(x).where(keep[:, None, :], 1.0, 0.0 * keep[:, :, None]))


def _turned_at_place(x: Any, power: int = 1) -> Any:
    return turned(x, array_namespace(x).arange(x.shape[2])[None] ** power + 0 * x[:, 0, :, 0])


def _all_at(x: Any, s: Any) -> Any:
    """Every token s further."""
    xp = array_namespace(x)
    return turned(x, xp.zeros(x.shape[:1] + x.shape[2:3], dtype=xp.int64) + s)


def _first_head_shifted(x: Any, s: Any) -> Any:
    return array_namespace(x).concat((_all_at(x[:, :1], s), x[:, 1:]), axis=1)


def _evicted(x: Any, late: int) -> tuple[Any, Any, Any]:
    """The last four keys, said to be at 0, 1, 2, 3, and turned there, or later."""
    xp, own = array_namespace(x), x[:, :, -4:]
    at = xp.arange(own.shape[2])
    turned_at = at + late * (x.shape[2] > 4)
    return turned(own, xp.stack([turned_at] * x.shape[0], axis=0)), own, at


def neighbours(x: Any, p: Any) -> Any:
    """Channels 0 and 1, and 2 and 3, turned as ``turned`` does 0 and 2, and 1 and 3."""
    order = [0, 2, 1, 3]
    xp = array_namespace(x)
    halves = turned(xp.stack([x[..., c] for c in order], axis=-1), p)
    return xp.stack([halves[..., c] for c in order], axis=-1)


def _next_to_each_other(w: Any, heads: int) -> Any:
    """Rows of a projection in the order of ``neighbours``."""
    xp = array_namespace(w)
    rows = [4 * head + c for head in range(heads) for c in (0, 2, 1, 3)]
    return xp.stack([w[row] for row in rows], axis=0)


def _far(x: Any, y: Any) -> Any:
    """How far each key is before each query, the last ones together: (r, n)."""
    xp, r, n = array_namespace(x), x.shape[0], y.shape[0]
    return (xp.arange(r)[:, None] + (n - r) - xp.arange(n)[None, :]) * 1.0


def slopes(x: Any, y: Any) -> Any:
    """−2^(−h) times the distance, of two heads."""
    far = _far(x, y)
    return array_namespace(x).stack([-0.5 * far, -0.25 * far], axis=0)


def _by_start(x: Any, y: Any) -> Any:
    """The same, the first query and the first key together."""
    far = _far(x, x[:1]) * 0.0 + _far(x, y) - (y.shape[0] - x.shape[0]) * 1.0
    return array_namespace(x).stack([-0.5 * far, -0.25 * far * far], axis=0)


def sines(x: Any, power: int = 1, longer: float = 0.0, by_length: bool = False) -> Any:
    """Tokens (B, n, 4) and a table of two sines and cosines."""
    xp, n = array_namespace(x), x.shape[1]
    place = xp.arange(n)[:, None] * 1.0
    angles = xp.concat((place, 0.25 * place), axis=1) ** power * (n if by_length else 1.0)
    table = xp.concat((xp.sin(angles), xp.cos(angles)), axis=1)
    return x + (table * (1.0 + longer * place))[None]


def _shown(
    x: Any, y: Any, ahead: int = 0, before: int = 1 << 20, at_end: bool = True
) -> Any:
    """Truth values (r, n): the keys up to each query, the last ones together; so many, or ahead."""
    far = _far(x, y) if at_end else _far(x, y) - (y.shape[0] - x.shape[0])
    return (far >= -ahead) & (far < before)


def _running_law(law: str, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", "running", _turned_at_place, told, {"turn": turned})


def _beside_rotary(law: str, call: str, keeps: Program, beside: Any = (), **breaks: Program
                   ) -> Programs:  # fmt: skip
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", call, keeps, told, {"turn": turned, **dict(beside)})


def _layer_law(law: str, call: str, keeps: Program, beside: Any = (), **breaks: Program
               ) -> Programs:  # fmt: skip
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "attention", call, keeps, told, dict(beside))


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
    _attended_law(
        "queries-apart",
        by_what_it_asks=_over_queries,
        by_being_there=lambda q, k, v: attend(q, k, v) * (1.0 * q.shape[2]),
    ),
    _attended_law(
        "heads-apart",
        its_own_queries=_heads_mixed,
        its_own_keys=lambda q, k, v: attend(
            q, k + array_namespace(k).mean(k, axis=1, keepdims=True), v
        ),
        its_own_values=lambda q, k, v: attend(
            q, k, v + array_namespace(v).mean(v, axis=1, keepdims=True)
        ),
    ),
    Programs(
        "groups-of-heads",
        "attention",
        "attend",
        in_groups,
        {
            "repeated": lambda q, k, v: attend(q, *(_of_heads(x, (0, 1, 0, 1)) for x in (k, v))),
            "the heads of its group": lambda q, k, v: attend(
                q, *(_of_heads(x, (0, 0, 0, 1)) for x in (k, v))
            ),
            "keys": lambda q, k, v: attend(
                q, _of_heads(k, (0, 1, 0, 1)), _of_heads(v, (0, 0, 1, 1))
            ),
            "values": lambda q, k, v: attend(
                q, _of_heads(k, (0, 0, 1, 1)), _of_heads(v, (0, 1, 0, 1))
            ),
        },
        {"heads": 4, "groups": 2},
    ),
    _attended_law(
        "alignment",
        _aligned,
        the_last_query=causal,
        sees_all=lambda q, k, v: _aligned(q, k, v, 1),
    ),
    Programs(
        "hidden-keys-do-nothing",
        "attention",
        "attend",
        under_a_mask,
        {
            "keys that are hidden": lambda q, k, v, _seen=None: attend(q, k, v),
            "no influence": lambda q, k, v, seen=None: under_a_mask(q, k, v, seen, 0.01),
            "nor their values": _values_leak,
        },
        {"masks": ("bool",)},
    ),
    _attended_law(
        "past-is-used", _band,
        every_earlier_token=partial(_band, first=False),
        not_the_last_alone=partial(_band, before=2),
        with_fewer_queries=causal,
    ),
    _layer_law(
        "past-is-used", "layer", past_tokens,
        every_earlier_token=partial(_last_tokens, before=2), any=lambda x: 2.0 * x,
    ),
    _attended_law(
        "window-as-declared", partial(_band, before=3),
        as_many=partial(_band, before=4), no_fewer=partial(_band, before=2),
        no_later_key=partial(_band, before=3, ahead=1),
    ),
    _layer_law(
        "window-as-declared", "layer", partial(_last_tokens, before=3),
        as_many=partial(_last_tokens, before=4), no_fewer=partial(_last_tokens, before=2),
    ),
    Programs(
        "mask-adds", "attention", "attend", under_numbers,
        {
            "exactly these": lambda q, k, v, m=None: (
                under_numbers(q, k, v, None if m is None else 2 * m)),
            "adds": lambda q, k, v, _m=None: attend(q, k, v),
            "to the scores": _added_after,
        },
        {"masks": ("float",)},
    ),
    Programs(
        "true-means-visible", "attention", "attend", under_a_mask,
        {"what it says": _inverted, "hides": lambda q, k, v, _seen=None: attend(q, k, v),
         "and changes nothing else": lambda q, k, v, seen=None: under_a_mask(q, k, v, seen) * (
            1.0 if seen is None else 2.0)},
        {"masks": ("bool",)},
    ),
    Programs(
        "hidden-rows", "attention", "attend", or_zeros,
        {"never NaN": under_a_mask, "the others": partial(or_zeros, others=0.5)},
        {"masks": ("bool",)},
    ),
    Programs(
        "weights-as-shown", "attention", "weights", shares,
        {"what multiplies": lambda q, k: shares(2 * q, k),
         "of every head": lambda q, k: 0 * shares(q, k) + array_namespace(q).mean(
            shares(q, k), axis=1, keepdims=True)},
        {"attend": attend},
    ),
    _layer_law(
        "padding-does-nothing", "hide", padded, {"layer": mean_of_tokens},
        padded=lambda x, _keep: mean_of_tokens(x),
        rows_of_different_lengths=lambda x, keep: padded(x, keep[:1] | (keep & ~keep)),
        what_each_gives_alone=lambda x, keep: padded(x, keep) * (1.0 * x.shape[1]),
    ),
    _layer_law(
        "hidden-keys-do-nothing", "hide", padded, {"layer": mean_of_tokens},
        keys_that_are_hidden=lambda x, _keep: mean_of_tokens(x),
    ),
    _layer_law(
        "step-by-step", "step", fed, {"layer": past_tokens},
        one_at_a_time=lambda x, state: fed(x, state, kept=1),
        in_chunks=lambda x, state: fed(x, state, ahead=True),
        what_all_at_once_give=_fed_anew,
    ),
    _layer_law(
        "documents-apart", "documents", documents, {"layer": mean_of_tokens},
        do_not_see_each_other=lambda x, _ids: mean_of_tokens(x),
        nor_the_one_before=lambda x, ids: documents(x, ids, 1),
    ),
    _layer_law(
        "translation", "whole_layer", lambda x, _s: mean_of_tokens(x), {"layer": mean_of_tokens},
        the_same_further_along=lambda x, s: x * (1.0 + s),
        relative=lambda x, s: x * (array_namespace(x).arange(x.shape[1]) + 1.0 + s)[None, :, None],
    ),
    _layer_law("permutation", "layer", mean_of_tokens, tokens_permuted=_by_token_place),
    _layer_law("rows-of-batch-apart", "layer", mean_of_tokens, a_row_alone=_less_mean_of_rows),
    _layer_law(
        "causal", "layer", past_tokens, a_later_token=mean_of_tokens,
        that_it_is_there=lambda x: x * (1.0 * x.shape[1]),
    ),
    Programs(
        "paths-agree", "attention", "attended_paths", attend,
        {"the same": causal, "of all heads": _heads_mixed}, {"attend": attend},
    ),
    Programs(
        "paths-agree", "attention", "attended_paths", under_a_mask,
        {"under a mask": lambda q, k, v, _seen=None: attend(q, k, v)},
        {"attend": under_a_mask, "masks": ("bool",)},
    ),
    Programs(
        "paths-agree", "attention", "attended_paths", under_numbers,
        {"under numbers": lambda q, k, v, m=None: (
            under_numbers(q, k, v, None if m is None else 2 * m))},
        {"attend": under_numbers, "masks": ("float",)},
    ),
    Programs(
        "paths-agree", "bias", "biased_paths", slopes,
        {"the same": lambda x, y: 2.0 * slopes(x, y)}, {"biased": slopes},
    ),
    Programs(
        "paths-agree", "rotary", "turned_paths", turned,
        {"the same": lambda x, p: turned(x, p + 1), "of all heads": lambda x, p: (
            _first_head_longer(turned(x, p)))},
        {"turn": turned},
    ),
    _running_law("relative", offset_alone=lambda x: _turned_at_place(x, 2)),
    _running_law(
        "norm",
        one_number=lambda x: _half_longer(_turned_at_place(x)),
        the_same_at_every_position=lambda x: _turned_at_place(x) * (
            1.0 + array_namespace(x).arange(x.shape[2]))[:, None],
    ),
    _running_law("linear", sums=lambda x: _turned_at_place(x) + 1.0,
                 multiples=lambda x: _turned_at_place(x) * x),
    _running_law("every-head-alike", in_the_same_way=lambda x: (
        _first_head_longer(_turned_at_place(x)))),
    _running_law("rows-of-batch-apart", a_row_alone=lambda x: (
        _turned_at_place(_less_mean_of_rows(x)))),
    _beside_rotary(
        "turned-once", "all_three", lambda q, k, v, p: (turned(q, p), turned(k, p), v),
        queries=lambda q, k, v, p: (turned(turned(q, p), p), turned(k, p), v),
        keys=lambda q, k, v, p: (turned(q, p), k, v),
        values_where_they_turn=lambda q, k, v, p: (turned(q, p), turned(k, p), turned(v, p)),
    ),
    _beside_rotary(
        "shift-of-cached-keys", "shift", _all_at,
        by_s=lambda x, s: _all_at(x, -s),
        a_turned_key=_first_head_shifted,
    ),
    _beside_rotary(
        "cache-keeps-its-positions", "evict", lambda x: _evicted(x, 0),
        at_the_position_it_is_said_to_have=lambda x: _evicted(x, 1),
    ),
    _beside_rotary(
        "conversion-keeps-scores", "convert",
        lambda q, k, heads: (_next_to_each_other(q, heads), _next_to_each_other(k, heads)),
        {"converts_to": neighbours},
        queries=lambda q, k, heads: (q, _next_to_each_other(k, heads)),
        keys=lambda q, k, heads: (_next_to_each_other(q, heads), k),
    ),
    Programs(
        "offset-only", "bias", "biased", slopes,
        {
            "on the offset alone": lambda x, y: slopes(x, y) * (
                array_namespace(x).arange(y.shape[0]) + 1.0),
            "however many there are": lambda x, y: slopes(x, y) * (1.0 / y.shape[0]),
        },
    ),
    Programs(
        "last-rows", "bias", "biased", slopes,
        {"the last rows of the bias of all": _by_start},
    ),
    *(Programs(law, "mask", "masked", _shown, breaks) for law, breaks in (
        ("causal", {"no later key": partial(_shown, ahead=1)}),
        ("past-is-used", {"every earlier key": partial(_shown, before=2),
                          "its own": partial(_shown, ahead=-1)}),
        ("alignment", {"the last query": partial(_shown, at_end=False),
                       "sees all": partial(_shown, before=2)}),
        ("true-means-visible", {"what it says": lambda x, y: ~_shown(x, y)}),
    )),
    Programs(
        "window-as-declared", "mask", "masked", partial(_shown, before=3),
        {"as many": partial(_shown, before=4), "no fewer": partial(_shown, before=2),
         "no later key": partial(_shown, before=3, ahead=1)},
    ),
    Programs(
        "products-of-offset", "additive", "added", sines,
        {"their offset alone": lambda x: sines(x, 2), "all are equally long": lambda x: (
            sines(x, longer=0.1)), "however many there are": lambda x: sines(x, by_length=True)},
    ),
    Programs(
        "rows-of-batch-apart", "additive", "added", sines,
        {"a row alone": lambda x: sines(_less_mean_of_rows(x))},
    ),
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

"""For each law a program that keeps it, and for each clause of its sentence one that breaks it.

Every method that reads a law has to refuse the programs that break it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .references import (
    added_after,
    after_eviction,
    aligned_attend,
    all_at,
    at_own_place,
    attend,
    band_attend,
    by_place,
    by_start,
    by_token_place,
    causal,
    counted,
    documents,
    exponentials,
    fed,
    fed_anew,
    first_head_longer,
    first_head_shifted,
    first_mask,
    first_row_longer,
    half_longer,
    heads_mixed,
    in_groups,
    inverted_mask,
    last_tokens,
    less_mean_of_rows,
    longer_by_place,
    mask_by_turns,
    mean_of_tokens,
    neighbours,
    next_to_each_other,
    of_heads,
    or_zeros,
    over_queries,
    padded,
    padded_or_zeros,
    past_tokens,
    read,
    rotated,
    rotated_at_place,
    rows_mixed,
    seen_exponentials,
    shares,
    sines,
    slopes,
    under_a_mask,
    under_numbers,
    values_leak,
    visible,
    weighted,
)

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


def _rotated_law(law: str, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", "rotate", rotated, told)


def _attended_law(law: str, keeps: Program = attend, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "attention", "attend", keeps, told)


def _running_law(law: str, **breaks: Program) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", "running", rotated_at_place, told, {"rotate": rotated})


def _beside_rotary(
    law: str, call: str, keeps: Program, beside: Any = (), **breaks: Program
) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "rotary", call, keeps, told, {"rotate": rotated, **dict(beside)})


def _layer_law(
    law: str, call: str, keeps: Program, beside: Any = (), **breaks: Program
) -> Programs:
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return Programs(law, "attention", call, keeps, told, dict(beside))


PROGRAMS: tuple[Programs, ...] = (
    _rotated_law(
        "relative",
        offset_of_their_positions_alone=lambda x, p: rotated(x, p * p),
        no_other_position_is_seen=lambda x, p: rotated(x, p - p[:, :1]),
        nor_that_of_another_row=lambda x, p: rotated(x, p[:1] + 0 * p),
    ),
    _rotated_law(
        "norm",
        one_number_for_all_channels=lambda x, p: half_longer(rotated(x, p)),
        the_same_at_every_position=lambda x, p: rotated(x, p) * (1.0 + p)[:, None, :, None],
        the_same_for_every_head=lambda x, p: first_head_longer(rotated(x, p)),
        and_every_token=lambda x, p: longer_by_place(rotated(x, p)),
        and_every_row=lambda x, p: first_row_longer(rotated(x, p)),
    ),
    _rotated_law(
        "composition",
        angles_add_up=lambda x, p: rotated(x, p * p),
        nothing_is_rotated_at_0=lambda x, p: rotated(x, p + 1),
        the_factor_is_that_of_every_head=lambda x, p: first_head_longer(rotated(x, p)),
        and_of_every_token=lambda x, p: longer_by_place(rotated(x, p)),
        and_of_every_row=lambda x, p: first_row_longer(rotated(x, p)),
    ),
    _rotated_law(
        "linear",
        sums=lambda x, p: rotated(x, p) + 1.0,
        multiples=lambda x, p: rotated(x, p) * x,
    ),
    _rotated_law(
        "identity-at-zero",
        a_vector_stays=lambda x, p: rotated(x, p + 1),
        a_common_factor=lambda x, p: half_longer(rotated(x, p)),
        the_factor_is_that_of_every_head=lambda x, p: first_head_longer(rotated(x, p)),
        and_of_every_token=lambda x, p: longer_by_place(rotated(x, p)),
        and_of_every_row=lambda x, p: first_row_longer(rotated(x, p)),
    ),
    _rotated_law(
        "every-head-alike",
        in_the_same_way=lambda x, p: first_head_longer(rotated(x, p)),
        no_other_head_is_seen=lambda x, p: (
            rotated(x, p) + array_namespace(x).mean(x, axis=1, keepdims=True)
        ),
    ),
    _rotated_law(
        "follows-its-ids",
        tokens_permuted=at_own_place,
        each_row_has_its_own=lambda x, p: rotated(x, p[:1] + 0 * p),
    ),
    _rotated_law(
        "rows-of-batch-apart",
        a_row_alone=lambda x, p: rotated(less_mean_of_rows(x), p),
        its_own_positions=lambda x, p: rotated(x, p[:1] + 0 * p),
    ),
    _attended_law("order-of-keys", keys_and_values_permuted=by_place),
    _attended_law("permutation", tokens_permuted=by_place),
    _attended_law(
        "rows-sum-to-one",
        weights_of_every_query=over_queries,
        add_up_to_one=lambda q, k, v: 2.0 * attend(q, k, v),
    ),
    _attended_law(
        "shift-of-scores",
        all_scores_of_a_query=lambda q, k, v: weighted(exponentials(q, k), v, 1.0),
    ),
    _attended_law(
        "queries-apart",
        by_what_it_asks=over_queries,
        by_being_there=lambda q, k, v: attend(q, k, v) * (1.0 * q.shape[2]),
    ),
    _attended_law(
        "heads-apart",
        its_own_queries=heads_mixed,
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
            "repeated": lambda q, k, v: attend(q, *(of_heads(x, (0, 1, 0, 1)) for x in (k, v))),
            "the heads of its group": lambda q, k, v: attend(
                q, *(of_heads(x, (0, 0, 0, 1)) for x in (k, v))
            ),
            "keys": lambda q, k, v: attend(q, of_heads(k, (0, 1, 0, 1)), of_heads(v, (0, 0, 1, 1))),
            "values": lambda q, k, v: attend(
                q, of_heads(k, (0, 0, 1, 1)), of_heads(v, (0, 1, 0, 1))
            ),
        },
        {"heads": 4, "groups": 2},
    ),
    _attended_law(
        "alignment",
        aligned_attend,
        the_last_query=causal,
        sees_all=lambda q, k, v: aligned_attend(q, k, v, 1),
    ),
    Programs(
        "hidden-keys-do-nothing",
        "attention",
        "attend",
        under_a_mask,
        {
            "keys that are hidden": lambda q, k, v, _seen=None: attend(q, k, v),
            "no influence": lambda q, k, v, seen=None: under_a_mask(q, k, v, seen, 0.01),
            "nor their values": values_leak,
            "hidden": first_mask,
            "hidden, from each query": mask_by_turns,
        },
        {"masks": ("bool",)},
    ),
    _attended_law(
        "past-is-used",
        band_attend,
        every_earlier_token=partial(band_attend, first=False),
        not_the_last_alone=partial(band_attend, before=2),
        with_fewer_queries=causal,
    ),
    _layer_law(
        "past-is-used",
        "layer",
        past_tokens,
        every_earlier_token=partial(last_tokens, before=2),
        any=lambda x: 2.0 * x,
    ),
    _attended_law(
        "window-as-declared",
        partial(band_attend, before=3),
        as_many=partial(band_attend, before=4),
        no_fewer=partial(band_attend, before=2),
        no_later_key=partial(band_attend, before=3, ahead=1),
    ),
    _layer_law(
        "window-as-declared",
        "layer",
        partial(last_tokens, before=3),
        as_many=partial(last_tokens, before=4),
        no_fewer=partial(last_tokens, before=2),
    ),
    Programs(
        "mask-adds",
        "attention",
        "attend",
        under_numbers,
        {
            "exactly these": lambda q, k, v, m=None: under_numbers(
                q, k, v, None if m is None else 2 * m
            ),
            "adds": lambda q, k, v, _m=None: attend(q, k, v),
            "to the scores": added_after,
        },
        {"masks": ("float",)},
    ),
    Programs(
        "true-means-visible",
        "attention",
        "attend",
        under_a_mask,
        {
            "what it says": inverted_mask,
            "hides": lambda q, k, v, _seen=None: attend(q, k, v),
            "and changes nothing else": lambda q, k, v, seen=None: (
                under_a_mask(q, k, v, seen) * (1.0 if seen is None else 2.0)
            ),
        },
        {"masks": ("bool",)},
    ),
    Programs(
        "true-means-visible",
        "attention",
        "counting",
        counted,
        {
            "what it says": lambda q, k, v, keep: counted(q, k, v, ~keep),
            "hides": lambda q, k, v, _keep: attend(q, k, v),
            "and changes nothing else": lambda q, k, v, keep: 2.0 * counted(q, k, v, keep),
        },
        {"attend": attend},
    ),
    Programs(
        "hidden-rows",
        "attention",
        "attend",
        or_zeros,
        {"never NaN": under_a_mask, "the others": partial(or_zeros, others=0.5)},
        {"masks": ("bool",)},
    ),
    _layer_law(
        "hidden-rows",
        "hide",
        padded_or_zeros,
        {"layer": mean_of_tokens},
        never_NaN=padded,
        the_others=partial(padded_or_zeros, others=0.5),
    ),
    Programs(
        "weights-as-shown",
        "attention",
        "weights",
        shares,
        {
            "what multiplies": lambda q, k: shares(2 * q, k),
            "of every head": lambda q, k: (
                0 * shares(q, k) + array_namespace(q).mean(shares(q, k), axis=1, keepdims=True)
            ),
        },
        {"attend": attend},
    ),
    _layer_law(
        "padding-does-nothing",
        "hide",
        padded,
        {"layer": mean_of_tokens},
        padded=lambda x, _keep: mean_of_tokens(x),
        rows_of_different_lengths=lambda x, keep: padded(x, keep[:1] | (keep & ~keep)),
        what_each_gives_alone=lambda x, keep: padded(x, keep) * (1.0 * x.shape[1]),
    ),
    _layer_law(
        "padding-does-nothing",
        "reading",
        read,
        {"layer": mean_of_tokens, "context": 5},
        padded=lambda x, y, keep: read(x, y, keep | ~keep),
        what_each_gives_alone=lambda x, y, keep: read(x, y, keep) * (1.0 * y.shape[1]),
    ),
    _layer_law(
        "hidden-keys-do-nothing",
        "reading",
        read,
        {"layer": mean_of_tokens, "context": 5},
        no_influence=lambda x, y, keep: read(x, y, keep) + 0.01 * read(x, y, keep | ~keep),
    ),
    _layer_law(
        "hidden-keys-do-nothing",
        "hide",
        padded,
        {"layer": mean_of_tokens},
        keys_that_are_hidden=lambda x, _keep: mean_of_tokens(x),
    ),
    _layer_law(
        "step-by-step",
        "step",
        fed,
        {"layer": past_tokens},
        one_at_a_time=lambda x, state: fed(x, state, kept=1),
        in_chunks=lambda x, state: fed(x, state, ahead=True),
        what_all_at_once_give=fed_anew,
    ),
    Programs(
        "step-by-step",
        "layer",
        "step",
        fed,
        {"one at a time": partial(fed, kept=1), "what all at once give": fed_anew},
        {"call": past_tokens},
    ),
    _layer_law(
        "documents-apart",
        "documents",
        documents,
        {"layer": mean_of_tokens},
        do_not_see_each_other=lambda x, _ids: mean_of_tokens(x),
        nor_the_one_before=lambda x, ids: documents(x, ids, 1),
    ),
    _layer_law(
        "translation",
        "whole_layer",
        lambda x, _s: mean_of_tokens(x),
        {"layer": mean_of_tokens},
        the_same_further_along=lambda x, s: x * (1.0 + s),
        relative=lambda x, s: x * (array_namespace(x).arange(x.shape[1]) + 1.0 + s)[None, :, None],
    ),
    _layer_law("permutation", "layer", mean_of_tokens, tokens_permuted=by_token_place),
    _layer_law("rows-of-batch-apart", "layer", mean_of_tokens, a_row_alone=less_mean_of_rows),
    _layer_law(
        "causal",
        "layer",
        past_tokens,
        a_later_token=mean_of_tokens,
        that_it_is_there=lambda x: x * (1.0 * x.shape[1]),
    ),
    Programs(
        "paths-agree",
        "attention",
        "attended_paths",
        attend,
        {"the same": causal, "of all heads": heads_mixed},
        {"attend": attend},
    ),
    Programs(
        "paths-agree",
        "attention",
        "attended_paths",
        under_a_mask,
        {"under a mask": lambda q, k, v, _seen=None: attend(q, k, v)},
        {"attend": under_a_mask, "masks": ("bool",)},
    ),
    Programs(
        "paths-agree",
        "attention",
        "attended_paths",
        under_numbers,
        {
            "under numbers": lambda q, k, v, m=None: under_numbers(
                q, k, v, None if m is None else 2 * m
            )
        },
        {"attend": under_numbers, "masks": ("float",)},
    ),
    Programs(
        "paths-agree",
        "bias",
        "biased_paths",
        slopes,
        {"the same": lambda x, y: 2.0 * slopes(x, y)},
        {"biased": slopes},
    ),
    Programs(
        "paths-agree",
        "rotary",
        "rotated_paths",
        rotated,
        {
            "the same": lambda x, p: rotated(x, p + 1),
            "of all heads": lambda x, p: first_head_longer(rotated(x, p)),
        },
        {"rotate": rotated},
    ),
    _running_law("relative", offset_alone=lambda x: rotated_at_place(x, 2)),
    _running_law(
        "norm",
        one_number=lambda x: half_longer(rotated_at_place(x)),
        the_same_at_every_position=lambda x: (
            rotated_at_place(x) * (1.0 + array_namespace(x).arange(x.shape[2]))[:, None]
        ),
    ),
    _running_law(
        "linear",
        sums=lambda x: rotated_at_place(x) + 1.0,
        multiples=lambda x: rotated_at_place(x) * x,
    ),
    _running_law(
        "every-head-alike", in_the_same_way=lambda x: first_head_longer(rotated_at_place(x))
    ),
    _running_law(
        "rows-of-batch-apart", a_row_alone=lambda x: rotated_at_place(less_mean_of_rows(x))
    ),
    _beside_rotary(
        "rotated-once",
        "all_three",
        lambda q, k, v, p: (rotated(q, p), rotated(k, p), v),
        queries=lambda q, k, v, p: (rotated(rotated(q, p), p), rotated(k, p), v),
        keys=lambda q, k, v, p: (rotated(q, p), k, v),
        values_where_they_rotate=lambda q, k, v, p: (rotated(q, p), rotated(k, p), rotated(v, p)),
    ),
    _beside_rotary(
        "shift-of-cached-keys",
        "shift",
        all_at,
        by_s=lambda x, s: all_at(x, -s),
        a_rotated_key=first_head_shifted,
    ),
    _beside_rotary(
        "cache-keeps-its-positions",
        "evict",
        lambda x: after_eviction(x, 0),
        at_the_position_it_is_said_to_have=lambda x: after_eviction(x, 1),
    ),
    _beside_rotary(
        "conversion-keeps-scores",
        "convert",
        lambda q, k, heads: (next_to_each_other(q, heads), next_to_each_other(k, heads)),
        {"converts_to": neighbours},
        queries=lambda q, k, heads: (q, next_to_each_other(k, heads)),
        keys=lambda q, k, heads: (next_to_each_other(q, heads), k),
    ),
    Programs(
        "offset-only",
        "bias",
        "biased",
        slopes,
        {
            "on the offset alone": lambda x, y: (
                slopes(x, y) * (array_namespace(x).arange(y.shape[0]) + 1.0)
            ),
            "however many there are": lambda x, y: slopes(x, y) * (1.0 / y.shape[0]),
        },
    ),
    Programs(
        "last-rows",
        "bias",
        "biased",
        slopes,
        {"the last rows of the bias of all": by_start},
    ),
    *(
        Programs(law, "mask", "masked", visible, breaks)
        for law, breaks in (
            ("causal", {"no later key": partial(visible, ahead=1)}),
            (
                "past-is-used",
                {
                    "every earlier key": partial(visible, before=2),
                    "its own": partial(visible, ahead=-1),
                },
            ),
            (
                "alignment",
                {
                    "the last query": partial(visible, at_end=False),
                    "sees all": partial(visible, before=2),
                },
            ),
            ("true-means-visible", {"what it says": lambda x, y: ~visible(x, y)}),
        )
    ),
    Programs(
        "window-as-declared",
        "mask",
        "masked",
        partial(visible, before=3),
        {
            "as many": partial(visible, before=4),
            "no fewer": partial(visible, before=2),
            "no later key": partial(visible, before=3, ahead=1),
        },
    ),
    Programs(
        "products-of-offset",
        "additive",
        "added",
        sines,
        {
            "their offset alone": lambda x: sines(x, 2),
            "all are equally long": lambda x: sines(x, longer=0.1),
            "however many there are": lambda x: sines(x, by_length=True),
        },
    ),
    Programs(
        "rows-of-batch-apart",
        "additive",
        "added",
        sines,
        {"a row alone": lambda x: sines(less_mean_of_rows(x))},
    ),
    _attended_law("rows-of-batch-apart", a_row_alone=rows_mixed),
    _attended_law(
        "causal",
        causal,
        no_later_token=attend,
        not_the_next_one=lambda q, k, v: weighted(seen_exponentials(q, k, 1), v),
    ),
    Programs("permutation", "layer", "call", mean_of_tokens, {"tokens permuted": by_token_place}),
    Programs(
        "rows-of-batch-apart", "layer", "call", mean_of_tokens, {"a row alone": less_mean_of_rows}
    ),
    Programs(
        "causal",
        "layer",
        "call",
        by_token_place,
        {
            "a later token": mean_of_tokens,
            "that it is there": lambda x: x * (1.0 * x.shape[1]),
        },
    ),
)

"""For each law of attention a program that satisfies it, and those that violate a clause of it."""

from __future__ import annotations

from functools import partial

from array_api_compat import array_namespace

from tests.programs.programs_of_laws import OF_TOKENS, of_law, of_laws
from tests.programs.small_programs import (
    added_after,
    aligned_attend,
    attend,
    band_attend,
    by_place,
    causal,
    counted,
    documents,
    exponentials,
    fed,
    fed_anew,
    first_mask,
    heads_mixed,
    in_groups,
    inverted_mask,
    last_tokens,
    mask_by_turns,
    mean_of_tokens,
    not_one_by_one,
    of_heads,
    or_zeros,
    over_queries,
    padded,
    padded_or_zeros,
    past_tokens,
    read,
    rows_mixed,
    seen_exponentials,
    shares,
    shows_always,
    under_a_mask,
    under_numbers,
    values_leak,
    weighted,
)

PROGRAMS_OF_ATTENTION = (
    *of_laws(
        "attention attend",
        attend,
        {
            "order-of-keys": {"keys and values together": by_place},
            "permutation": {"tokens permuted": by_place},
            "rows-sum-to-one": {
                "weights of every query": over_queries,
                "sum to 1": lambda q, k, v: 2.0 * attend(q, k, v),
            },
            "shift-of-scores": {
                "all scores of a query": lambda q, k, v: weighted(exponentials(q, k), v, 1.0)
            },
            "queries-apart": {
                "the other queries": over_queries,
                "their number": lambda q, k, v: attend(q, k, v) * (1.0 * q.shape[2]),
            },
            "heads-apart": {
                "its own queries": heads_mixed,
                "its own keys": lambda q, k, v: attend(
                    q, k + array_namespace(k).mean(k, axis=1, keepdims=True), v
                ),
                "its own values": lambda q, k, v: attend(
                    q, k, v + array_namespace(v).mean(v, axis=1, keepdims=True)
                ),
            },
            "rows-of-batch-apart": {"a row alone": rows_mixed},
        },
    ),
    of_law(
        "groups-of-heads",
        "attention attend",
        in_groups,
        {"heads": 4, "groups": 2},
        repeated=lambda q, k, v: attend(q, *(of_heads(x, (0, 1, 0, 1)) for x in (k, v))),
        the_query_heads_of_a_group=lambda q, k, v: attend(
            q, *(of_heads(x, (0, 0, 0, 1)) for x in (k, v))
        ),
        keys=lambda q, k, v: attend(q, of_heads(k, (0, 1, 0, 1)), of_heads(v, (0, 0, 1, 1))),
        values=lambda q, k, v: attend(q, of_heads(k, (0, 0, 1, 1)), of_heads(v, (0, 1, 0, 1))),
    ),
    of_law(
        "alignment",
        "attention attend",
        aligned_attend,
        the_last_query=causal,
        sees_all=lambda q, k, v: aligned_attend(q, k, v, 1),
    ),
    *of_laws(
        "attention attend",
        under_a_mask,
        {
            "hidden-keys-do-nothing": {
                "hidden keys": lambda q, k, v, _seen=None: attend(q, k, v),
                "no influence": lambda q, k, v, seen=None: under_a_mask(q, k, v, seen, 0.01),
                "nor their values": values_leak,
                "hidden": first_mask,
                "hidden, from each query": mask_by_turns,
                "hidden, its own as others": shows_always,
                "hidden, the first as others": partial(shows_always, own=False),
                "hidden, from one query alone": not_one_by_one,
            },
            "true-means-visible": {
                "that it marks as hidden": inverted_mask,
                "hides": lambda q, k, v, _seen=None: attend(q, k, v),
                "hides what": shows_always,
                "hides what it": partial(shows_always, own=False),
                "a mask": not_one_by_one,
                "and changes nothing else": lambda q, k, v, seen=None: (
                    under_a_mask(q, k, v, seen) * (1.0 if seen is None else 2.0)
                ),
            },
        },
        {"masks": ("bool",)},
    ),
    of_law(
        "past-is-used",
        "attention attend",
        band_attend,
        every_earlier_token=partial(band_attend, first=False),
        not_the_last_alone=partial(band_attend, before=2),
        with_fewer_queries=causal,
    ),
    *of_laws(
        "attention layer",
        past_tokens,
        {
            "past-is-used": {
                "every earlier token": partial(last_tokens, before=2),
                "any": lambda x: 2.0 * x,
            },
            "causal": {
                "a later token": mean_of_tokens,
                "the number of later tokens": lambda x: x * (1.0 * x.shape[1]),
            },
        },
    ),
    of_law(
        "window-as-declared",
        "attention attend",
        partial(band_attend, before=3),
        as_many=partial(band_attend, before=4),
        no_fewer=partial(band_attend, before=2),
        no_later_key=partial(band_attend, before=3, ahead=1),
    ),
    of_law(
        "window-as-declared",
        "attention layer",
        partial(last_tokens, before=3),
        as_many=partial(last_tokens, before=4),
        no_fewer=partial(last_tokens, before=2),
    ),
    of_law(
        "mask-adds",
        "attention attend",
        under_numbers,
        {"masks": ("float",)},
        as_it_is=lambda q, k, v, m=None: under_numbers(q, k, v, None if m is None else 2 * m),
        adds=lambda q, k, v, _m=None: attend(q, k, v),
        to_the_scores=added_after,
    ),
    of_law(
        "true-means-visible",
        "attention counting",
        counted,
        {"attend": attend},
        marks_as_hidden=lambda q, k, v, keep: counted(q, k, v, ~keep),
        hides=lambda q, k, v, _keep: attend(q, k, v),
        and_changes_nothing_else=lambda q, k, v, keep: 2.0 * counted(q, k, v, keep),
    ),
    of_law(
        "hidden-rows",
        "attention attend",
        or_zeros,
        {"masks": ("bool",)},
        never_NaN=under_a_mask,
        the_others=partial(or_zeros, others=0.5),
    ),
    of_law(
        "hidden-rows",
        "attention hide",
        padded_or_zeros,
        {"layer": mean_of_tokens},
        never_NaN=padded,
        the_others=partial(padded_or_zeros, others=0.5),
    ),
    of_law(
        "weights-as-shown",
        "attention weights",
        shares,
        {"attend": attend},
        those_that_multiply=lambda q, k: shares(2 * q, k),
        in_every_head=lambda q, k: (
            0 * shares(q, k) + array_namespace(q).mean(shares(q, k), axis=1, keepdims=True)
        ),
    ),
    *of_laws(
        "attention hide",
        padded,
        {
            "padding-does-nothing": {
                "padded": lambda x, _keep: mean_of_tokens(x),
                "rows of different lengths": lambda x, keep: padded(x, keep[:1] | (keep & ~keep)),
                "the outputs of each alone": lambda x, keep: padded(x, keep) * (1.0 * x.shape[1]),
            },
            "hidden-keys-do-nothing": {"hidden keys": lambda x, _keep: mean_of_tokens(x)},
        },
        {"layer": mean_of_tokens},
    ),
    *of_laws(
        "attention reading",
        read,
        {
            "padding-does-nothing": {
                "padded": lambda x, y, keep: read(x, y, keep | ~keep),
                "the outputs of each alone": lambda x, y, keep: (
                    read(x, y, keep) * (1.0 * y.shape[1])
                ),
            },
            "hidden-keys-do-nothing": {
                "no influence": lambda x, y, keep: (
                    read(x, y, keep) + 0.01 * read(x, y, keep | ~keep)
                )
            },
        },
        {"layer": mean_of_tokens, "context": 5},
    ),
    of_law(
        "step-by-step",
        "attention step",
        fed,
        {"layer": past_tokens},
        one_at_a_time=lambda x, state: fed(x, state, kept=1),
        in_chunks=lambda x, state: fed(x, state, ahead=True),
        the_same_outputs_as_all_at_once=fed_anew,
    ),
    of_law(
        "documents-apart",
        "attention documents",
        documents,
        {"layer": mean_of_tokens},
        do_not_see_each_other=lambda x, _ids: mean_of_tokens(x),
        nor_the_one_before=lambda x, ids: documents(x, ids, 1),
    ),
    of_law(
        "translation",
        "attention whole_layer",
        lambda x, _s: mean_of_tokens(x),
        {"layer": mean_of_tokens},
        the_same_further_along=lambda x, s: x * (1.0 + s),
        relative=lambda x, s: x * (array_namespace(x).arange(x.shape[1]) + 1.0 + s)[None, :, None],
    ),
    *of_laws("attention layer", mean_of_tokens, OF_TOKENS),
    of_law(
        "paths-agree",
        "attention attended_paths",
        attend,
        {"attend": attend},
        the_same=causal,
        of_all_heads=heads_mixed,
    ),
    of_law(
        "paths-agree",
        "attention attended_paths",
        under_a_mask,
        {"attend": under_a_mask, "masks": ("bool",)},
        under_a_mask=lambda q, k, v, _seen=None: attend(q, k, v),
    ),
    of_law(
        "paths-agree",
        "attention attended_paths",
        under_numbers,
        {"attend": under_numbers, "masks": ("float",)},
        under_numbers=lambda q, k, v, m=None: under_numbers(q, k, v, None if m is None else 2 * m),
    ),
    of_law(
        "causal",
        "attention attend",
        causal,
        no_later_token=attend,
        not_the_next_one=lambda q, k, v: weighted(seen_exponentials(q, k, 1), v),
    ),
)

"""For each law a program that satisfies it, and for each clause one that violates the clause.

Every method that checks a law must refuse the programs that violate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from tests.programs.small_programs import (
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
    last_rotated,
    last_tokens,
    less_mean_of_rows,
    longer_by_place,
    mask_by_turns,
    mean_of_tokens,
    neighbours,
    next_to_each_other,
    not_one_by_one,
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
    shows_always,
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
    """For a law about one call: a program that satisfies it, and programs that violate each clause.

    ``beside``: further calls and plain values of the code, by name.
    """

    law: str
    kind: str
    call: str
    keeps: Program
    breaks: Mapping[str, Program]
    beside: Mapping[str, Any] = field(default_factory=dict)


def _of(
    law: str,
    called: str,
    keeps: Program,
    beside: Mapping[str, Any] | None = None,
    **breaks: Program,
) -> Programs:
    """Return the programs for one law about a call ``"KIND CALL"``.

    In keywords, the words of a clause are joined by underscores.
    """
    told = {clause.replace("_", " "): program for clause, program in breaks.items()}
    return next(_each(called, keeps, {law: told}, beside))


def _each(
    called: str,
    keeps: Program,
    laws: Mapping[str, Mapping[str, Program]],
    beside: Mapping[str, Any] | None = None,
) -> Iterator[Programs]:
    """Yield the programs for several laws about a call that the same program satisfies."""
    kind, call = called.split()
    for law, breaks in laws.items():
        yield Programs(law, kind, call, keeps, breaks, beside or {})


ROTATES = {"rotate": rotated}
OF_TOKENS = {
    "permutation": {"tokens permuted": by_token_place},
    "rows-of-batch-apart": {"a row alone": less_mean_of_rows},
}
PROGRAMS = (
    *_each(
        "rotary rotate",
        rotated,
        {
            "relative": {
                "only on their offset": lambda x, p: rotated(x, p * p),
                "no other position is seen": lambda x, p: rotated(x, p - p[:, :1]),
                "nor that of another row": lambda x, p: rotated(x, p[:1] + 0 * p),
            },
            "norm": {
                "one factor for all channels": lambda x, p: half_longer(rotated(x, p)),
                "the same at every position": lambda x, p: (
                    rotated(x, p) * (1.0 + p)[:, None, :, None]
                ),
                "the same for every head": lambda x, p: first_head_longer(rotated(x, p)),
                "and every token": lambda x, p: longer_by_place(rotated(x, p)),
                "and every row": lambda x, p: first_row_longer(rotated(x, p)),
            },
            "composition": {
                "angles add up": lambda x, p: rotated(x, p * p),
                "nothing is rotated at 0": lambda x, p: rotated(x, p + 1),
                "the same factor for every head": lambda x, p: first_head_longer(rotated(x, p)),
                "and of every token": lambda x, p: longer_by_place(rotated(x, p)),
                "and of every row": lambda x, p: first_row_longer(rotated(x, p)),
            },
            "linear": {
                "sums": lambda x, p: rotated(x, p) + 1.0,
                "multiples": lambda x, p: rotated(x, p) * x,
            },
            "identity-at-zero": {
                "vectors are unchanged": lambda x, p: rotated(x, p + 1),
                "one factor": lambda x, p: half_longer(rotated(x, p)),
                "the same factor for every head": lambda x, p: first_head_longer(rotated(x, p)),
                "and of every token": lambda x, p: longer_by_place(rotated(x, p)),
                "and of every row": lambda x, p: first_row_longer(rotated(x, p)),
            },
            "every-head-alike": {
                "rotated in the same way": lambda x, p: first_head_longer(rotated(x, p)),
                "no other head is seen": lambda x, p: (
                    rotated(x, p) + array_namespace(x).mean(x, axis=1, keepdims=True)
                ),
            },
            "follows-its-ids": {
                "tokens with their position ids": at_own_place,
                "each row has its own": lambda x, p: rotated(x, p[:1] + 0 * p),
            },
            "rows-of-batch-apart": {
                "a row alone": lambda x, p: rotated(less_mean_of_rows(x), p),
                "its own positions": lambda x, p: rotated(x, p[:1] + 0 * p),
            },
        },
    ),
    *_each(
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
    _of(
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
    _of(
        "alignment",
        "attention attend",
        aligned_attend,
        the_last_query=causal,
        sees_all=lambda q, k, v: aligned_attend(q, k, v, 1),
    ),
    *_each(
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
    _of(
        "past-is-used",
        "attention attend",
        band_attend,
        every_earlier_token=partial(band_attend, first=False),
        not_the_last_alone=partial(band_attend, before=2),
        with_fewer_queries=causal,
    ),
    *_each(
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
    _of(
        "window-as-declared",
        "attention attend",
        partial(band_attend, before=3),
        as_many=partial(band_attend, before=4),
        no_fewer=partial(band_attend, before=2),
        no_later_key=partial(band_attend, before=3, ahead=1),
    ),
    _of(
        "window-as-declared",
        "attention layer",
        partial(last_tokens, before=3),
        as_many=partial(last_tokens, before=4),
        no_fewer=partial(last_tokens, before=2),
    ),
    _of(
        "mask-adds",
        "attention attend",
        under_numbers,
        {"masks": ("float",)},
        as_it_is=lambda q, k, v, m=None: under_numbers(q, k, v, None if m is None else 2 * m),
        adds=lambda q, k, v, _m=None: attend(q, k, v),
        to_the_scores=added_after,
    ),
    _of(
        "true-means-visible",
        "attention counting",
        counted,
        {"attend": attend},
        marks_as_hidden=lambda q, k, v, keep: counted(q, k, v, ~keep),
        hides=lambda q, k, v, _keep: attend(q, k, v),
        and_changes_nothing_else=lambda q, k, v, keep: 2.0 * counted(q, k, v, keep),
    ),
    _of(
        "hidden-rows",
        "attention attend",
        or_zeros,
        {"masks": ("bool",)},
        never_NaN=under_a_mask,
        the_others=partial(or_zeros, others=0.5),
    ),
    _of(
        "hidden-rows",
        "attention hide",
        padded_or_zeros,
        {"layer": mean_of_tokens},
        never_NaN=padded,
        the_others=partial(padded_or_zeros, others=0.5),
    ),
    _of(
        "weights-as-shown",
        "attention weights",
        shares,
        {"attend": attend},
        those_that_multiply=lambda q, k: shares(2 * q, k),
        in_every_head=lambda q, k: (
            0 * shares(q, k) + array_namespace(q).mean(shares(q, k), axis=1, keepdims=True)
        ),
    ),
    *_each(
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
    *_each(
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
    _of(
        "step-by-step",
        "attention step",
        fed,
        {"layer": past_tokens},
        one_at_a_time=lambda x, state: fed(x, state, kept=1),
        in_chunks=lambda x, state: fed(x, state, ahead=True),
        the_same_outputs_as_all_at_once=fed_anew,
    ),
    _of(
        "step-by-step",
        "layer step",
        fed,
        {"call": past_tokens},
        one_at_a_time=partial(fed, kept=1),
        the_same_outputs_as_all_at_once=fed_anew,
    ),
    _of(
        "step-by-step",
        "rotary last",
        last_rotated,
        ROTATES,
        tokens_fed_one_at_a_time=partial(last_rotated, first=0),
        the_same_scores=lambda q, k: (
            last_rotated(q, k)[0] * (1.0 * q.shape[2]),
            last_rotated(q, k)[1],
        ),
    ),
    _of(
        "documents-apart",
        "attention documents",
        documents,
        {"layer": mean_of_tokens},
        do_not_see_each_other=lambda x, _ids: mean_of_tokens(x),
        nor_the_one_before=lambda x, ids: documents(x, ids, 1),
    ),
    _of(
        "translation",
        "attention whole_layer",
        lambda x, _s: mean_of_tokens(x),
        {"layer": mean_of_tokens},
        the_same_further_along=lambda x, s: x * (1.0 + s),
        relative=lambda x, s: x * (array_namespace(x).arange(x.shape[1]) + 1.0 + s)[None, :, None],
    ),
    *_each("attention layer", mean_of_tokens, OF_TOKENS),
    _of(
        "paths-agree",
        "attention attended_paths",
        attend,
        {"attend": attend},
        the_same=causal,
        of_all_heads=heads_mixed,
    ),
    _of(
        "paths-agree",
        "attention attended_paths",
        under_a_mask,
        {"attend": under_a_mask, "masks": ("bool",)},
        under_a_mask=lambda q, k, v, _seen=None: attend(q, k, v),
    ),
    _of(
        "paths-agree",
        "attention attended_paths",
        under_numbers,
        {"attend": under_numbers, "masks": ("float",)},
        under_numbers=lambda q, k, v, m=None: under_numbers(q, k, v, None if m is None else 2 * m),
    ),
    _of(
        "paths-agree",
        "bias biased_paths",
        slopes,
        {"biased": slopes},
        the_same=lambda x, y: 2.0 * slopes(x, y),
    ),
    _of(
        "paths-agree",
        "rotary rotated_paths",
        rotated,
        {"rotate": rotated},
        the_same=lambda x, p: rotated(x, p + 1),
        of_all_heads=lambda x, p: first_head_longer(rotated(x, p)),
    ),
    *_each(
        "rotary running",
        rotated_at_place,
        {
            "relative": {"offset alone": lambda x: rotated_at_place(x, 2)},
            "norm": {
                "one number": lambda x: half_longer(rotated_at_place(x)),
                "the same at every position": lambda x: (
                    rotated_at_place(x) * (1.0 + array_namespace(x).arange(x.shape[2]))[:, None]
                ),
            },
            "linear": {
                "sums": lambda x: rotated_at_place(x) + 1.0,
                "multiples": lambda x: rotated_at_place(x) * x,
            },
            "every-head-alike": {
                "rotated in the same way": lambda x: first_head_longer(rotated_at_place(x))
            },
            "rows-of-batch-apart": {
                "a row alone": lambda x: rotated_at_place(less_mean_of_rows(x))
            },
        },
        ROTATES,
    ),
    _of(
        "rotated-once",
        "rotary all_three",
        lambda q, k, v, p: (rotated(q, p), rotated(k, p), v),
        ROTATES,
        queries=lambda q, k, v, p: (rotated(rotated(q, p), p), rotated(k, p), v),
        keys=lambda q, k, v, p: (rotated(q, p), k, v),
        values_where_they_rotate=lambda q, k, v, p: (rotated(q, p), rotated(k, p), rotated(v, p)),
    ),
    _of(
        "shift-of-cached-keys",
        "rotary shift",
        all_at,
        ROTATES,
        by_s=lambda x, s: all_at(x, -s),
        a_rotated_key=first_head_shifted,
    ),
    _of(
        "cache-keeps-its-positions",
        "rotary evict",
        lambda x: after_eviction(x, 0),
        ROTATES,
        at_the_position_it_is_said_to_have=lambda x: after_eviction(x, 1),
    ),
    _of(
        "conversion-keeps-scores",
        "rotary convert",
        lambda q, k, heads: (next_to_each_other(q, heads), next_to_each_other(k, heads)),
        ROTATES | {"converts_to": neighbours},
        queries=lambda q, k, heads: (q, next_to_each_other(k, heads)),
        keys=lambda q, k, heads: (next_to_each_other(q, heads), k),
    ),
    *_each(
        "bias biased",
        slopes,
        {
            "offset-only": {
                "only on the offset": lambda x, y: (
                    slopes(x, y) * (array_namespace(x).arange(y.shape[0]) + 1.0)
                ),
                "however many there are": lambda x, y: slopes(x, y) * (1.0 / y.shape[0]),
            },
            "last-rows": {"the last rows of the full bias": by_start},
        },
    ),
    *_each(
        "mask masked",
        visible,
        {
            "causal": {"no later key": partial(visible, ahead=1)},
            "past-is-used": {
                "every earlier key": partial(visible, before=2),
                "its own": partial(visible, ahead=-1),
            },
            "alignment": {
                "the last query": partial(visible, at_end=False),
                "sees all": partial(visible, before=2),
            },
            "true-means-visible": {"that it marks as hidden": lambda x, y: ~visible(x, y)},
        },
    ),
    _of(
        "window-as-declared",
        "mask masked",
        partial(visible, before=3),
        as_many=partial(visible, before=4),
        no_fewer=partial(visible, before=2),
        no_later_key=partial(visible, before=3, ahead=1),
    ),
    *_each(
        "additive added",
        sines,
        {
            "products-of-offset": {
                "their offset alone": lambda x: sines(x, 2),
                "all rows have the same norm": lambda x: sines(x, longer=0.1),
                "however many there are": lambda x: sines(x, by_length=True),
            },
            "rows-of-batch-apart": {"a row alone": lambda x: sines(less_mean_of_rows(x))},
        },
    ),
    _of(
        "causal",
        "attention attend",
        causal,
        no_later_token=attend,
        not_the_next_one=lambda q, k, v: weighted(seen_exponentials(q, k, 1), v),
    ),
    *_each("layer call", mean_of_tokens, OF_TOKENS),
    _of(
        "causal",
        "layer call",
        by_token_place,
        a_later_token=mean_of_tokens,
        that_it_is_there=lambda x: x * (1.0 * x.shape[1]),
    ),
)

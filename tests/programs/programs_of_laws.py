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
    after_eviction,
    all_at,
    at_own_place,
    by_start,
    by_token_place,
    fed,
    fed_anew,
    first_head_longer,
    first_head_shifted,
    first_row_longer,
    half_longer,
    last_rotated,
    less_mean_of_rows,
    longer_by_place,
    mean_of_tokens,
    neighbours,
    next_to_each_other,
    past_tokens,
    rotated,
    rotated_at_place,
    sines,
    slopes,
    visible,
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


def of_law(
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
    return next(of_laws(called, keeps, {law: told}, beside))


def of_laws(
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
    *of_laws(
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
    of_law(
        "step-by-step",
        "layer step",
        fed,
        {"call": past_tokens},
        one_at_a_time=partial(fed, kept=1),
        the_same_outputs_as_all_at_once=fed_anew,
    ),
    of_law(
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
    of_law(
        "paths-agree",
        "bias biased_paths",
        slopes,
        {"biased": slopes},
        the_same=lambda x, y: 2.0 * slopes(x, y),
    ),
    of_law(
        "paths-agree",
        "rotary rotated_paths",
        rotated,
        {"rotate": rotated},
        the_same=lambda x, p: rotated(x, p + 1),
        of_all_heads=lambda x, p: first_head_longer(rotated(x, p)),
    ),
    *of_laws(
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
    of_law(
        "rotated-once",
        "rotary all_three",
        lambda q, k, v, p: (rotated(q, p), rotated(k, p), v),
        ROTATES,
        queries=lambda q, k, v, p: (rotated(rotated(q, p), p), rotated(k, p), v),
        keys=lambda q, k, v, p: (rotated(q, p), k, v),
        values_where_they_rotate=lambda q, k, v, p: (rotated(q, p), rotated(k, p), rotated(v, p)),
    ),
    of_law(
        "shift-of-cached-keys",
        "rotary shift",
        all_at,
        ROTATES,
        by_s=lambda x, s: all_at(x, -s),
        a_rotated_key=first_head_shifted,
    ),
    of_law(
        "cache-keeps-its-positions",
        "rotary evict",
        lambda x: after_eviction(x, 0),
        ROTATES,
        at_the_position_it_is_said_to_have=lambda x: after_eviction(x, 1),
    ),
    of_law(
        "conversion-keeps-scores",
        "rotary convert",
        lambda q, k, heads: (next_to_each_other(q, heads), next_to_each_other(k, heads)),
        ROTATES | {"converts_to": neighbours},
        queries=lambda q, k, heads: (q, next_to_each_other(k, heads)),
        keys=lambda q, k, heads: (next_to_each_other(q, heads), k),
    ),
    *of_laws(
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
    *of_laws(
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
    of_law(
        "window-as-declared",
        "mask masked",
        partial(visible, before=3),
        as_many=partial(visible, before=4),
        no_fewer=partial(visible, before=2),
        no_later_key=partial(visible, before=3, ahead=1),
    ),
    *of_laws(
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
    *of_laws("layer call", mean_of_tokens, OF_TOKENS),
    of_law(
        "causal",
        "layer call",
        by_token_place,
        a_later_token=mean_of_tokens,
        that_it_is_there=lambda x: x * (1.0 * x.shape[1]),
    ),
)

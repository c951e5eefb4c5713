"""Masks of lengths, bounds, chunks, cropped and padded rows, and their neighbours that differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.measure import compare_numerically
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.response import moved_inside
from attnproof.programs.signatures.signature import SignatureError

from .proofs_asked import Code, asked

LENGTHS = "r = r, n = n -> r n"


def lower(r: int, n: int) -> Tensor:
    return torch.ones(r, n, dtype=torch.bool).tril(n - r)


def by_places(r: int, n: int) -> Tensor:
    return torch.arange(n)[None] - torch.arange(r)[:, None] <= n - r


def by_earlier_places(r: int, n: int) -> Tensor:
    return torch.arange(n)[None] - torch.arange(r)[:, None] < n - r


def above_hidden(count: int) -> Tensor:
    return torch.full((count, count), float("-inf")).triu(1)


def filled(count: int) -> Tensor:
    kept = torch.ones(count, count, dtype=torch.bool).tril()
    return torch.zeros(count, count).masked_fill(~kept, float("-inf"))


def filled_below(count: int) -> Tensor:
    return torch.zeros(count, count).masked_fill(~lower(count, count).mT, float("-inf"))


def found(one: Callable[..., Any], other: Callable[..., Any], *calls: str, **more: Any) -> Verdict:
    told = Operand(one, one.__name__, calls[0]), Operand(other, other.__name__, calls[-1])
    return compare(*told, **({"seconds": 60.0} | more))


@pytest.mark.parametrize(
    ("one", "other", "call"),
    [(lower, by_places, LENGTHS), (above_hidden, filled, "count = n -> n n")],
)
def test_masks_of_lengths_are_one_function(
    one: Callable[..., Any], other: Callable[..., Any], call: str
) -> None:
    verdict = found(one, other, call)
    assert verdict.verdict == "proved", verdict.why


@pytest.mark.parametrize(
    ("one", "other", "call"),
    [(lower, by_earlier_places, LENGTHS), (above_hidden, filled_below, "count = n -> n n")],
)
def test_masks_of_lengths_that_differ_have_a_counterexample(
    one: Callable[..., Any], other: Callable[..., Any], call: str
) -> None:
    verdict: Any = found(one, other, call)
    assert verdict.verdict == "counterexample"
    assert not verdict.counterexample.inputs


def test_what_is_given_nothing_is_refused() -> None:
    with pytest.raises(SignatureError, match="nothing to compare it on"):
        pair_programs(
            Operand(lambda: torch.ones(3), "one", "-> 3"),
            Operand(lambda: torch.ones(3), "two", "-> 3"),
        )


def of_ones(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(mask == 0, float("-inf")), -1) @ v


def of_zeros(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(mask == 1, float("-inf")), -1) @ v


def of_truths(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, attn_mask=keep)


ONES = "q: B H n 4, k: B H n 4, v: B H n 4, mask: B 1 n n ones -> B H n 4"
KEEP = ONES.replace("mask", "keep").replace("ones", "keep")


def test_a_mask_of_integers_is_one_of_truth_values() -> None:
    verdict = found(of_ones, of_truths, ONES, KEEP)
    assert verdict.verdict == "proved", verdict.why


def test_a_mask_of_integers_read_the_other_way_has_a_counterexample() -> None:
    assert found(of_zeros, of_truths, ONES, KEEP).verdict == "counterexample"
    zeros = ONES.replace("ones", "zeros")
    verdict = found(of_zeros, of_truths, zeros, KEEP)
    assert verdict.verdict == "proved", verdict.why
    assert found(of_ones, of_truths, zeros, KEEP).verdict == "counterexample"


def of_factors(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    weights = torch.exp(q @ k.mT / q.shape[-1] ** 0.5) * mask
    return weights @ v / (weights @ torch.ones_like(v[..., :1]))


def test_a_mask_of_factors_is_one_of_truth_values() -> None:
    factors = ONES.replace("ones", "factors")
    assert found(of_factors, of_ones, factors, ONES).verdict == "proved"
    zeros = ONES.replace("ones", "zeros")
    assert found(of_factors, of_ones, factors, zeros).verdict == "counterexample"


def spread(x: Tensor) -> Tensor:
    moved = x - x.mean(-1, keepdim=True)
    return moved / (moved.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def spread_by_squares(x: Tensor) -> Tensor:
    """Rounds far more: the mean of squares less the square of the mean."""
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / (x.square().mean(-1, keepdim=True) - mean.square() + 1e-5).sqrt()


def spread_otherwise(x: Tensor) -> Tensor:
    return x * 1.0001 / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def test_numbers_that_cancel_show_no_difference() -> None:
    line = "x: B n E -> B n E"
    both = pair_programs(Operand(spread, "one", line), Operand(spread_by_squares, "other", line))
    looked = [compare_numerically(both, seed) for seed in range(3)]
    assert all(one.counterexample is None for one in looked)
    assert any(one.cancels for one in looked)  # which the line of the verdict says
    assert not compare_numerically(
        pair_programs(Operand(spread, "one", line), Operand(spread, "other", line))
    ).cancels
    apart = pair_programs(Operand(spread, "one", line), Operand(spread_otherwise, "other", line))
    assert compare_numerically(apart).counterexample is not None


def test_what_each_operation_rounds_is_seen_where_numbers_cancel() -> None:
    x = 1e3 + Draw().normal(64)
    inside = moved_inside(lambda x: (x * x).mean() - x.mean() ** 2, x, draw=Draw())
    assert inside > 10 * moved_inside(lambda x: (x - x.mean()).square().mean(), x, draw=Draw())
    assert moved_inside(lambda x: 2 * x.round() + 1, x, draw=Draw()) == 0


def test_what_a_program_writes_into_its_input_is_not_given_to_the_other() -> None:
    line = "x: B n E -> B n E"
    both = pair_programs(
        Operand(lambda x: x.add_(1), "one", line), Operand(lambda x: x + 1, "other", line)
    )
    assert compare_numerically(both).counterexample is None
    twice = pair_programs(
        Operand(lambda x: x.add_(1) + x, "one", line), Operand(lambda x: 2 * x + 1, "other", line)
    )
    assert compare_numerically(twice).counterexample is not None


# bounds, chunks, cropped and padded rows, multiples: one function each, with its neighbours


EACH = "x: B n -> B n"
TOKENS = "x: B n E -> B n E"
THIRDS = "x: B (3 n) E -> B (3 n) E"


def rows(x: Tensor) -> Tensor:
    """In chunks of three."""
    return x.reshape(x.shape[0], -1, 3, x.shape[2])


def zero(x: Tensor) -> Tensor:
    return torch.zeros_like(x[:, :1])


def pad(*by: int, value: float = 0.0) -> Code:
    """The tokens padded, or cropped."""
    return lambda x: functional.pad(x, (0, 0, *by), value=value)


# What one function is, another way to write it, and neighbours of it that are others.
PAIRS: dict[str, tuple[Code, Code, list[Code], str]] = {
    "|x| by the larger of x and −x": (
        torch.abs,
        lambda x: torch.maximum(x, -x),
        [
            lambda x: torch.maximum(x, 2 * x),
            lambda x: torch.minimum(x, -x),
            lambda x: torch.maximum(x, -x - 1),
            lambda x: torch.maximum(-x, x * x),
            lambda x: torch.maximum(x, torch.zeros_like(x)),
            lambda x: torch.maximum(x, -x[:, :1]),
        ],
        EACH,
    ),
    "−|x| by the smaller of −x and x": (
        lambda x: -x.abs(),
        lambda x: torch.minimum(-x, x),
        [torch.abs, lambda x: torch.minimum(x, -x / 2), lambda x: torch.maximum(-x, x)],
        EACH,
    ),
    "the larger of x and that of the first, negated": (
        lambda x: torch.maximum(x, -x[:, :1]),
        lambda x: torch.maximum(-x[:, :1], x),
        [torch.abs, lambda x: torch.maximum(x, -x[:, -1:]), lambda x: torch.maximum(x, x[:, :1])],
        EACH,
    ),
    "clamp by each of its bounds": (
        lambda x: x.clamp(-1, 2),
        lambda x: torch.minimum(x.clamp(min=-1), torch.full_like(x, 2.0)),
        [
            lambda x: x.clamp(min=-1).clamp(max=1),
            lambda x: x.clamp(-2, 2),
            lambda x: x.clamp(min=-1),
            lambda x: torch.maximum(x.clamp(min=-1), torch.full_like(x, 2.0)),
        ],
        EACH,
    ),
    "multiples": (
        lambda x: x * 2.0 * 0.5,
        lambda x: x * 3.0 / 3.0,
        [
            lambda x: x * 2.0 * 0.25,
            lambda x: x * 3.0 / 2.0,
            lambda x: x * 0.3333 * 3.0,
            lambda x: x * 2.0 - x * 0.5,
        ],
        EACH,
    ),
    "chunks merged": (
        torch.exp,
        lambda x: rows(x).exp().flatten(1, 2),
        [
            lambda x: rows(x).transpose(1, 2).exp().flatten(1, 2),
            lambda x: rows(x).flip(2).exp().flatten(1, 2),
            lambda x: rows(x).roll(1, 1).exp().flatten(1, 2),
            lambda x: x.reshape(x.shape[0], 3, -1, x.shape[2]).transpose(1, 2).exp().flatten(1, 2),
        ],
        THIRDS,
    ),
    "sums of chunks": (
        lambda x: x.sum(1, keepdim=True) + 0 * x,
        lambda x: rows(x).sum((1, 2), keepdim=True)[:, 0] + 0 * x,
        [
            lambda x: rows(x)[:, :, :2].sum((1, 2), keepdim=True)[:, 0] + 0 * x,
            lambda x: rows(x)[:, 1:].sum((1, 2), keepdim=True)[:, 0] + 0 * x,
        ],
        THIRDS,
    ),
    "each row three times, by i // 3": (
        lambda x: x.repeat_interleave(3, 1),
        lambda x: x[:, torch.arange(3 * x.shape[1]) // 3],
        [
            lambda x: x[:, torch.arange(3 * x.shape[1]) % x.shape[1]],
            lambda x: x[:, (torch.arange(3 * x.shape[1]) + 1) // 4],
            lambda x: x.repeat(1, 3, 1),
        ],
        "x: B n E -> B (3 n) E",
    ),
    "one row later": (
        pad(-1, 1),
        lambda x: torch.cat((x[:, 1:], zero(x)), 1),
        [
            pad(1, -1),
            pad(-1, 1, value=1.0),
            lambda x: torch.cat((zero(x), x[:, :-1]), 1),
            lambda x: torch.cat((x[:, 1:], x[:, :1]), 1),
            lambda x: torch.cat((x[:, 2:], zero(x), zero(x)), 1),
        ],
        TOKENS,
    ),
    "one row sooner": (
        pad(1, -1),
        lambda x: x.roll(1, 1) * (torch.arange(x.shape[1]) >= 1)[:, None],
        [
            pad(-1, 1),
            pad(2, -2),
            lambda x: x.roll(1, 1),
            lambda x: x.roll(1, 1) * (torch.arange(x.shape[1]) >= 2)[:, None],
        ],
        TOKENS,
    ),
    "cropped at both ends": (
        pad(-1, -1),
        lambda x: x[:, 1:-1],
        [lambda x: x[:, 2:], lambda x: x[:, :-2], pad(-2, 0)],
        "x: B n E -> B (n - 2) E",
    ),
    "padded and cropped": (
        lambda x: pad(-1, 0)(pad(1, 0)(x)),
        lambda x: x * 1.0,
        [lambda x: pad(0, -1)(pad(1, 0)(x)), lambda x: pad(1, 0)(pad(-1, 0)(x))],
        TOKENS,
    ),
}
OTHERS = [(name, k) for name, (*_, others, _) in PAIRS.items() for k in range(len(others))]


@pytest.mark.parametrize("name", PAIRS)
def test_one_function_is_proved(name: str) -> None:
    first, second, _, line = PAIRS[name]
    found = asked(first, second, line)
    assert found.verdict == "holds", found.why


@pytest.mark.usefixtures("proofs_alone")
@pytest.mark.parametrize(("name", "k"), OTHERS)
def test_a_neighbour_is_not(name: str, k: int) -> None:
    _, second, others, line = PAIRS[name]  # a proof of it would be one of the first as well
    assert asked(second, others[k], line).verdict != "holds"


def test_there_are_neighbours_enough() -> None:
    assert 2 * len(OTHERS) >= 60

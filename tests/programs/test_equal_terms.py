"""Bounds, chunks, cropped and padded rows, multiples: one function each, with its neighbours."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.programs.equal_asked import Code, asked

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


@pytest.mark.parametrize(("name", "k"), OTHERS)
def test_a_neighbour_is_not(name: str, k: int) -> None:
    first, second, others, line = PAIRS[name]
    for one in (first, second):
        assert asked(one, others[k], line).verdict != "holds"


def test_there_are_neighbours_enough() -> None:
    assert 2 * len(OTHERS) >= 60

"""Numbers that are not what they look like at the inputs that are tried: nothing is proved of them.

Whole numbers wrap round or are cut, parameters start as ones and zeros, weights hold a length, and
code asks what no input shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.prove import prove
from attnproof.programs.subjects import Layer, Rotary, Subject

from .test_attacks import SECONDS, causal, layer, only, rotary, rotated

WIDE = torch.int64


def plus(x: Tensor, p: Tensor, more: Tensor) -> Tensor:
    """A rotary embedding and a number for each position."""
    return rotated(x, p) + more[:, None, :, None]


def far(p: Tensor) -> Tensor:
    """A condition that no position meets that is tried."""
    return p > 1000


def filled_with_a_half(x: Tensor, p: Tensor) -> Tensor:
    cut, kept = p.masked_fill(far(p), 0.5), torch.where(far(p), 0.5, p.float())
    return plus(x, p, cut - kept)


def copied_into_whole_numbers(x: Tensor, p: Tensor) -> Tensor:
    kept = torch.where(far(p), 0.5, p.float())
    return plus(x, p, torch.zeros_like(p).copy_(kept) - kept)


def filled_whole_numbers(x: Tensor, p: Tensor) -> Tensor:
    return plus(x, p, torch.where(far(p), torch.zeros_like(p).fill_(0.5) - 0.5, 0))


def two_as_truth(x: Tensor, p: Tensor) -> Tensor:
    truth = (p < 0).masked_fill(far(p), 2)
    return plus(x, p, truth.float() - torch.where(far(p), 2, p < 0).float())


def three_hundred_in_eight_bits(x: Tensor, p: Tensor) -> Tensor:
    one = far(p).to(torch.uint8)
    return plus(x, p, (one * 200 + one * 100).float() - 300 * far(p).float())


def cut_to(dtype: torch.dtype) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, p: rotated(x, p) + (x.to(dtype).float() - x.to(WIDE).float())


def added_up_in_eight_bits(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p[..., None].sum(-1, dtype=torch.int8))


def wrapping(dtype: torch.dtype) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, p: rotated(x, p.to(dtype).float())


class Weight(nn.Module):
    """A layer whose one parameter is used as ``use`` says."""

    def __init__(self, start: Tensor, use: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.weight, self.use = nn.Parameter(start), use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(x, self.weight)


def rows_less_columns(x: Tensor, table: Tensor) -> Tensor:
    n = x.shape[1]
    return x + (table[:n] - table[:, :n].mT)[:, :4] * x.sum(1, keepdim=True)


def two_slopes(x: Tensor) -> Tensor:
    leaks = functional.leaky_relu(x, 1e-16) - functional.leaky_relu(x, 1e16)
    return x + leaks * x.sum(1, keepdim=True)


class Plain:
    """An object that is not a module and has a parameter."""

    def __init__(self) -> None:
        self.gain = nn.Parameter(torch.zeros(4))

    def rotate(self, x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p) + self.gain * p[:, None, :, None]


def in_a_list() -> Rotary:
    kept = [nn.Linear(4, 4, bias=False)]
    nn.init.zeros_(kept[0].weight)
    return rotary(lambda x, p: rotated(x, p) + kept[0](0 * x + p[:, None, :, None]))


class Corner(nn.Module):
    """A rotary embedding whose speed is the corner of a matrix."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p * self.matrix[0, 1])


def a_matrix_and_its_transpose() -> Rotary:
    matrix = torch.eye(4)
    return rotary(Corner(matrix), key=Corner(matrix.T))


def eager(x: Tensor) -> Tensor:
    return x.cumsum(1) if torch.is_grad_enabled() else x


def in_order(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else x.cumsum(1)


def linear_by(weight: Callable[[Tensor, Tensor], Tensor]) -> Layer:
    return layer(Weight(torch.randn(4, 4), lambda x, w: functional.linear(x, weight(x, w))))


FALSE: dict[str, tuple[Callable[[], Subject], str]] = {
    "a half among whole numbers": (lambda: rotary(filled_with_a_half), "linear"),
    "a copy among whole numbers": (lambda: rotary(copied_into_whole_numbers), "linear"),
    "whole numbers filled with a half": (lambda: rotary(filled_whole_numbers), "linear"),
    "2 among truth values": (lambda: rotary(two_as_truth), "linear"),
    "300 in 8 bits": (lambda: rotary(three_hundred_in_eight_bits), "linear"),
    "cut to 8 bits": (lambda: rotary(cut_to(torch.int8)), "linear"),
    "cut to 32 bits": (lambda: rotary(cut_to(torch.int32)), "linear"),
    "added up in 8 bits": (lambda: rotary(added_up_in_eight_bits), "relative"),
    "positions in 16 bits": (lambda: rotary(wrapping(torch.uint16)), "relative"),
    "a weight that holds the number of rows": (
        lambda: linear_by(lambda x, w: w * x.shape[0]),
        "rows-of-batch-apart",
    ),
    "rows of a table, and its columns": (
        lambda: layer(Weight(torch.ones(16, 16), rows_less_columns)),
        "permutation",
    ),
    "1e-16 and 1e16": (lambda: causal(two_slopes), "causal"),
    "a parameter of an object": (lambda: rotary(Plain().rotate), "linear"),
    "a module in a list": (in_a_list, "linear"),
    "a matrix and its transpose": (a_matrix_and_its_transpose, "relative"),
    "other code where gradients are wanted": (lambda: layer(eager), "permutation"),
    "other code for inputs that are transposed": (lambda: layer(in_order), "permutation"),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_of_other_numbers_is_not_proved(name: str) -> None:
    make, law = FALSE[name]
    found = prove(make(), (law,), seconds=SECONDS)
    assert found.why or found.findings, "the attack was not asked"
    assert [f for f in found.findings if f.verdict == "holds"] == []


class Triangle(nn.Module):
    """Causal attention with a stored mask."""

    def __init__(self, fill: float) -> None:
        super().__init__()
        self.mask: Tensor
        self.register_buffer("mask", torch.triu(torch.full((64, 64), fill), 1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return torch.softmax(x @ x.mT + self.mask[:n, :n], -1) @ x


class Ones(nn.Module):
    """Causal attention with a stored mask of ones, which is made Boolean before it is cut."""

    def __init__(self, later: int = 1) -> None:
        super().__init__()
        self.mask: Tensor
        self.register_buffer("mask", torch.triu(torch.ones(64, 64), later))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        hidden = self.mask.bool()[:n, :n]
        return torch.softmax((x @ x.mT).masked_fill(hidden, -torch.inf), -1) @ x


TOLD: dict[str, tuple[Callable[[], Subject], str, str]] = {
    "a stored mask": (lambda: causal(Triangle(-1e9)), "causal", "-1e+09"),
    "positions in 32 bits": (lambda: rotary(wrapping(torch.int32)), "relative", "int32"),
    "positions in float8": (
        lambda: rotary(wrapping(torch.float8_e4m3fn)),
        "relative",
        "float8_e4m3fn",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_read_into_numbers_is_told(name: str) -> None:
    make, law, words = TOLD[name]
    assert any(words in line for line in only(prove(make(), (law,), seconds=SECONDS), law))


def as_before(x: Tensor, p: Tensor) -> Tensor:
    """What is harmless: truth values as 8 bits and back, places in whole numbers."""
    seen = far(p).to(torch.uint8).bool()
    return plus(x, p, torch.where(seen, 2, 2) - torch.full_like(p, 2.0))


TRUE: dict[str, tuple[Callable[[], Any], str]] = {
    "truth values in 8 bits": (lambda: rotary(as_before), "linear"),
    "a weight by itself": (lambda: linear_by(lambda _, w: 2 * w), "rows-of-batch-apart"),
    "a stored number": (
        lambda: layer(Weight(torch.ones(4), lambda x, w: x * torch.full((4,), 0.1) * w)),
        "permutation",
    ),
    "a mask that is made Boolean and then cut": (lambda: causal(Ones()), "causal"),
    "a matrix and itself": (lambda: rotary(made := Corner(torch.eye(4)), key=made), "relative"),
}


@pytest.mark.parametrize("name", TRUE)
def test_their_harmless_neighbours_are_proved(name: str) -> None:
    make, law = TRUE[name]
    only(prove(make(), (law,), seconds=SECONDS), law)


def test_a_mask_that_is_made_boolean_shows_what_it_shows() -> None:
    found = prove(causal(Ones(2)), ("causal",), seconds=SECONDS)
    assert found.why or found.findings
    assert [f for f in found.findings if f.verdict == "holds"] == []

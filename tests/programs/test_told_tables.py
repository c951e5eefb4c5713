"""Tables of a width that the code does not take are told, where broadcasting lets them pass."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnproof.programs.subject import subject_of


def rotate_half(x: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)


def of_channels(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As many channels are rotated as the tables have columns."""
    rotated, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return torch.cat((rotated * cos + rotate_half(rotated) * sin, rest), -1)


def of_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Of wider tables the first columns are taken, one for each pair."""
    half = x.shape[-1] // 2
    cos, sin = cos[..., :half], sin[..., :half]
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


def of_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Of wider tables every other column is taken."""
    step = 2 if cos.shape[-1] == x.shape[-1] else 1
    cos, sin = cos[..., ::step], sin[..., ::step]
    u, v = x[..., ::2], x[..., 1::2]
    return torch.stack((u * cos - v * sin, u * sin + v * cos), -1).flatten(-2)


def stretching(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A fault: half of the channels rotate, and lengths change, whatever the tables are."""
    half = x.shape[-1] // 2
    u, v = x[..., :half], x[..., half:]
    return torch.cat((u * cos[..., :half] + 2 * u * sin[..., :half], v), -1)


LINE = "x: B H n D, cos: n {0}, sin: n {0} -> x"
WHOLE, HALF = LINE.format("D"), LINE.format("D/2")


def test_halves_that_are_taken_for_whole_tables_are_told() -> None:
    told = subject_of(of_channels, HALF)
    assert "4 of 8 channels are rotated, as many as the tables have numbers" in told.adapted
    assert "with D for D/2 8 are" in told.adapted
    assert "are rotated, as many" not in subject_of(of_channels, WHOLE).adapted


@pytest.mark.parametrize(
    ("code", "words"), [(of_pairs, "the first half"), (of_neighbours, "every other number")]
)
def test_columns_that_are_not_read_are_told(code: object, words: str) -> None:
    told = subject_of(code, WHOLE)
    for name in ("cos", "sin"):
        assert f"of each row of {name} {words}" in told.adapted
    assert any("is all that is read" in one for one in told.conditions)
    assert "is all that is read" not in subject_of(code, HALF).adapted


def test_of_a_fault_that_no_width_mends_nothing_is_told() -> None:
    assert "are rotated, as many" not in subject_of(stretching, HALF).adapted

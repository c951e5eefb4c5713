"""A parameter that says how many tokens there may be at most is not how many a call has."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as


def turned(x: Tensor, angles: Tensor) -> Tensor:
    (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


def by_most(x: Tensor, positions: Tensor, max_position: int) -> Tensor:
    """Frequencies down to one turn in so many positions."""
    rates = float(max_position) ** -torch.linspace(0, 1, x.shape[-1] // 2)
    return turned(x, positions[:, None, :, None] * rates)


def by_most_of_default(x: Tensor, positions: Tensor, max_len: int = 512) -> Tensor:
    return by_most(x, positions, max_len)


def of_all_rows(x: Tensor, max_seq_len: int) -> Tensor:
    """A table of so many rows, of which none is left out."""
    rates = 100.0 ** -torch.linspace(0, 1, x.shape[-1] // 2)
    return turned(x, torch.arange(max_seq_len)[:, None] * rates)


def get_freqs(seq_len: int, dim: int, max_len: int = 512) -> Tensor:
    """Angles for a length, with frequencies by the most that there may be."""
    return torch.arange(seq_len)[:, None] * float(max_len) ** -torch.linspace(0, 1, dim // 2)


def apply_freqs(x: Tensor, freqs: Tensor) -> Tensor:
    return turned(x, freqs)


def sinusoid(positions: Tensor, dim: int, max_len: int) -> Tensor:
    angles = positions[..., None] * float(max_len) ** -torch.linspace(0, 1, dim // 2)
    return torch.cat((angles.sin(), angles.cos()), -1)


def attend_by_most(q: Tensor, k: Tensor, v: Tensor, max_seq_len: int) -> Tensor:
    """Slopes by the most that there may be."""
    far = torch.arange(k.shape[-2]) / max_seq_len
    mixed: Tensor = (q @ k.mT / q.shape[-1] ** 0.5 + far).softmax(-1) @ v
    return mixed


def mix_attention(x: Tensor, max_seq_len: int) -> Tensor:
    """A slope for each of so many tokens, of which none is left out."""
    far = torch.arange(max_seq_len).float()
    mixed: Tensor = (x @ x.mT / x.shape[-1] ** 0.5 + far).softmax(-1) @ x
    return mixed


CALLS: dict[Any, tuple[str, str]] = {
    by_most: ("rotary", "x: B H n D, positions: B n, max_position = 2048 -> x"),
    by_most_of_default: ("rotary", "x: B H n D, positions: B n -> x"),
    of_all_rows: ("rotary", "x: B H n D, max_seq_len = n -> x"),
    apply_freqs: (
        "rotary",
        "x: B H n D, freqs: n D/2 angles -> x; freqs from get_freqs(seq_len = m, dim = D -> m D/2)",
    ),
    attend_by_most: (
        "attention",
        "q: B H r D, k: B H n D, v: B H n D, max_seq_len = 2048 -> B H r D",
    ),
    mix_attention: ("layer", "x: B n E, max_seq_len = n -> B n E"),
    sinusoid: ("additive", "positions: n, dim = E, max_len = 2048 -> n E"),
}


@pytest.mark.parametrize("code", CALLS)
def test_a_maximum_is_the_length_of_a_call_only_where_nothing_else_fits(code: Any) -> None:
    kind, line = CALLS[code]
    assert adapted_as(code, kind=kind).line == line


def test_frequencies_by_a_maximum_do_not_break_the_relative_law() -> None:
    (found,) = examine(adapted_as(by_most, ""), laws=("relative",))
    assert found.verdict == "holds"

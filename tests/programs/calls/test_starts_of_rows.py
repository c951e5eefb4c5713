"""Code that is given the position of the first token of each row: rotations, and caches."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary

CACHED = "x: B n E, start_pos: B positions -> B n E"


def rotated(x: Tensor, at: Tensor) -> Tensor:
    """Vectors (B, n, H, D) at positions (B, n), half-split."""
    angles = at[..., None, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


def rope_at(x: Tensor, start_pos: Tensor) -> Tensor:
    return rotated(x, start_pos[:, None] + torch.arange(x.shape[1]))


def rope_at_first(x: Tensor, start_pos: Tensor) -> Tensor:
    """Wrong: all rows begin where the first one does."""
    return rotated(x, (start_pos[:1, None] + torch.arange(x.shape[1])).expand(len(x), -1))


def rope_from_table(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, seqlen_offsets: Tensor
) -> tuple[Tensor, Tensor]:
    at = seqlen_offsets[:, None] + torch.arange(q.shape[1])
    c, s = (x[at][:, :, None] for x in (cos, sin))
    halves = (x.chunk(2, -1) for x in (q, k))
    q, k = (torch.cat((a * c - b * s, a * s + b * c), -1) for a, b in halves)
    return q, k


class Cached(nn.Module):
    """Causal attention that writes keys and values behind those of earlier tokens of their row."""

    keys: Tensor
    values: Tensor

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(4, 32, 2, dim // 2), persistent=False)

    def forward(self, x: Tensor, start_pos: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (2, -1)) for y in self.qkv(x).chunk(3, -1))
        at = self.places(start_pos, x.shape[1])
        rows = torch.arange(len(x))[:, None]
        self.keys[rows, at] = k
        self.values[rows, at] = v
        keys, values = (y[: len(x)].transpose(1, 2) for y in (self.keys, self.values))
        scores = q.transpose(1, 2) @ keys.mT / math.sqrt(q.shape[-1])
        hidden = torch.arange(32) > at[:, :, None]
        scores = scores.masked_fill(hidden[:, None], -math.inf)
        out: Tensor = scores.softmax(-1) @ values
        return out.transpose(1, 2).flatten(2)

    def places(self, start_pos: Tensor, count: int) -> Tensor:
        return start_pos[:, None] + torch.arange(count)


class Overwrites(Cached):
    """Wrong: a later step writes one place too early."""

    def places(self, start_pos: Tensor, count: int) -> Tensor:
        return (start_pos - (start_pos > 0).long())[:, None] + torch.arange(count)


def broken(code: Any) -> set[str]:
    return {one.law for one in examine(adapted_as(code)) if one.verdict == "broken"}


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (rope_at, "x: B n H D, start_pos: B positions -> x"),
        (
            rope_from_table,
            "q: B n H D, k: B n G D, cos: m D/2, sin: m D/2, seqlen_offsets: B positions -> q, k",
        ),
        (Cached, f"{CACHED}; step: {CACHED}"),
    ],
)
def test_a_start_for_each_row_is_guessed(code: Any, line: str) -> None:
    assert adapted_as(code).line == line
    assert adapted_as(code, line).line == line


def test_positions_that_do_not_run_on_are_rows_of_one_token() -> None:
    x, at = torch.randn(2, 3, 5, 8), torch.tensor([[4, 0, 9, 9, 1], [2, 3, 4, 5, 7]])
    subject = adapted_as(rope_at)
    assert isinstance(subject, Rotary)
    found = subject.rotate(x, at)
    assert torch.allclose(found, rotated(x.transpose(1, 2), at).transpose(1, 2), atol=1e-5)


@pytest.mark.parametrize("code", [rope_at, rope_from_table, Cached])
def test_no_law_of_correct_code_is_broken(code: Any) -> None:
    assert broken(code) == set()


def test_faults_are_found() -> None:
    assert "rows-of-batch-apart" in broken(rope_at_first)
    assert "step-by-step" in broken(Overwrites)

"""Rotary code that takes the queries of the last tokens, or the place of the first of each row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary

LAW = "step-by-step"
WITHOUT_TABLES = "q: B H r D, k: B G n D -> q, k"
TABLES = "q: B H r D, k: B H n D, cos: n D, sin: n D -> q, k"
Two = tuple[Tensor, Tensor]


def turned(x: Tensor, at: Tensor, base: float = 10000.0) -> Tensor:
    angles = at[:, None] * base ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    u, v, c, s = *x.chunk(2, -1), angles.cos(), angles.sin()
    return torch.cat((u * c - v * s, v * c + u * s), -1)


def at_the_end(q: Tensor, k: Tensor) -> Two:
    at = torch.arange(k.shape[2])
    return turned(q, at[-q.shape[2] :]), turned(k, at)


def at_the_start(q: Tensor, k: Tensor) -> Two:
    """The position of a query starts at 0 in each step."""
    return turned(q, torch.arange(q.shape[2])), turned(k, torch.arange(k.shape[2]))


def scales(at: Tensor, width: int, centre: int) -> Tensor:
    base = (torch.arange(0, width, 2) + 0.4 * width) / (1.4 * width)
    return torch.cat((base, base)) ** ((at - centre)[:, None] / 512.0)


def xpos(q: Tensor, k: Tensor, *, of_queries: bool = False) -> Two:
    """The scale is counted from the middle of the keys, or for queries from theirs."""
    at, (r, n) = torch.arange(k.shape[2]), (q.shape[2], k.shape[2])
    own = scales(at[-r:], q.shape[3], int(at[-r:][r // 2]) if of_queries else n // 2)
    a, b = at_the_end(q, k)
    return a * own, b / scales(at, k.shape[3], n // 2)


def by_tables(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Two:
    def one(x: Tensor) -> Tensor:
        u, v = x.chunk(2, -1)
        return x * cos[-x.shape[2] :] + torch.cat((-v, u), -1) * sin[-x.shape[2] :]

    return one(q), one(k)


def by_first_rows(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Two:
    few = q.shape[2]
    return by_tables(q, k[:, :, :few], cos[:few], sin[:few])[0], by_tables(k, k, cos, sin)[1]


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        (at_the_end, at_the_start, WITHOUT_TABLES),
        (xpos, lambda q, k: xpos(q, k, of_queries=True), WITHOUT_TABLES),
        (by_tables, by_first_rows, TABLES),
    ],
    ids=["by place", "xpos", "by tables"],
)
def test_queries_of_the_last_tokens_have_the_scores_of_all(
    right: Callable[..., Two], wrong: Callable[..., Two], line: str
) -> None:
    for code, verdict in ((right, "holds"), (wrong, "broken")):
        subject: Any = adapted_as(code, line, kind="rotary")
        assert subject.last is not None
        (found,) = examine(subject, laws=[LAW])
        assert found.verdict == verdict, found.why
        assert "broken" not in {one.verdict for one in examine(subject, laws=["linear"])}


def test_the_law_is_met_without_rounding() -> None:
    for code, verdict in ((at_the_end, "holds"), (at_the_start, "broken")):
        (found,) = exact(adapted_as(code, WITHOUT_TABLES, kind="rotary"), [LAW])
        assert found.verdict == verdict, found.why


@pytest.mark.parametrize(
    "line", ["q: B H n D, k: B H n D -> q, k", "q: B H n D, k: B H n D, cos: n D, sin: n D -> q, k"]
)
def test_it_is_not_asked_of_as_many_queries_as_keys(line: str) -> None:
    code = by_tables if "cos" in line else at_the_end
    (found,) = examine(adapted_as(code, line, kind="rotary"), laws=[LAW])
    assert found.verdict == "not asked"
    assert found.why == "it takes as many queries as keys"


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

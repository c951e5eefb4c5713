"""Rotary code that takes the queries of the last tokens beside the keys of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as

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

"""Queries, keys and values that come in one array, as flash kernels and fused projections do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Rotary


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of (B, H, n, D)."""
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def fused(qkv: Tensor, num_heads: int = 2) -> Tensor:
    """Attention on the output of one projection, (B, n, 3 H D)."""
    rows, tokens, width = qkv.shape
    q, k, v = qkv.reshape(rows, tokens, 3, num_heads, -1).permute(2, 0, 3, 1, 4)
    return attend(q, k, v).transpose(1, 2).reshape(rows, tokens, width // 3)


def wrong_heads(qkv: Tensor, num_heads: int) -> Tensor:
    """A view that cuts tokens where it should cut heads."""
    rows, tokens, width = qkv.shape
    q, k, v = qkv.reshape(rows, tokens, 3, -1).unbind(2)
    q, k, v = (x.reshape(rows, num_heads, tokens, -1) for x in (q, k, v))
    return attend(q, k, v).transpose(1, 2).reshape(rows, tokens, width // 3)


def stacked(qkv: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
    """Attention on (B, n, 3, H, D); True shows a key, and a query that sees none reads zeros."""
    q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if key_padding_mask is not None:
        scores = scores.masked_fill(~key_padding_mask[:, None, None], -math.inf)
    return (scores.softmax(-1).nan_to_num() @ v).transpose(1, 2)


def scales_in_place(qkv: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
    q *= 1 / math.sqrt(q.shape[-1])
    return ((q @ k.mT).softmax(-1) @ v).transpose(1, 2)


def over_queries(qkv: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
    return ((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-2) @ v).transpose(1, 2)


def first(qkv: Tensor) -> Tensor:
    q, k, v = qkv
    return attend(q, k, v)


def grouped(q: Tensor, kv: Tensor) -> Tensor:
    """Attention of q (B, r, H, D) on kv (B, n, 2, G, D)."""
    k, v = (x.repeat_interleave(q.shape[2] // kv.shape[3], 2) for x in kv.unbind(2))
    return attend(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


def ungrouped(q: Tensor, kv: Tensor) -> Tensor:
    """The heads of keys in the wrong order."""
    k, v = (x.repeat(1, 1, q.shape[2] // kv.shape[3], 1) for x in kv.unbind(2))
    return attend(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


class Legacy(nn.Module):
    """Attention of (B, H 3 D, n), as in diffusion models."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads

    def forward(self, qkv: Tensor) -> Tensor:
        rows, width, tokens = qkv.shape
        parts = qkv.reshape(rows * self.n_heads, -1, tokens).chunk(3, 1)
        q, k, v = (x.transpose(1, 2) for x in parts)
        return attend(q, k, v).transpose(1, 2).reshape(rows, width // 3, tokens)


class Newer(Legacy):
    """The same of (B, 3 H D, n)."""

    def forward(self, qkv: Tensor) -> Tensor:
        parts = (x.reshape(*x.shape[:1], self.n_heads, -1, x.shape[-1]) for x in qkv.chunk(3, 1))
        q, k, v = (x.transpose(2, 3) for x in parts)
        return attend(q, k, v).transpose(2, 3).reshape(qkv.shape[0], -1, qkv.shape[-1])


class Heads(nn.Module):
    """Attention of (B, n, H D) that splits heads itself, without weights."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        split = (x.reshape(*x.shape[:2], self.num_heads, -1) for x in (q, k, v))
        parts = (x.transpose(1, 2) for x in split)
        return attend(*parts).transpose(1, 2).flatten(2)


def rotated(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotation of queries and keys of (B, n, 3, H, D), values untouched."""
    a, b = qkv[:, :, :2].chunk(2, -1)
    c, s = cos[:, None, None], sin[:, None, None]
    return torch.cat((torch.cat((a * c - b * s, a * s + b * c), -1), qkv[:, :, 2:]), 2)


def keys_backwards(qkv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    whole = rotated(qkv, cos, sin)
    return torch.stack((whole[:, :, 0], rotated(qkv, cos, -sin)[:, :, 1], qkv[:, :, 2]), 2)


def rotated_kv(kv: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    k, v = kv.unbind(2)
    a, b = k.chunk(2, -1)
    c, s = cos[:, None], sin[:, None]
    return torch.stack((torch.cat((a * c - b * s, a * s + b * c), -1), v), 2)


GUESSED: dict[str, tuple[Callable[..., Any], str]] = {
    "one projection": (fused, "qkv: B n (3 H D), num_heads = H -> B n (H D)"),
    "an axis of 3": (stacked, "qkv: B n 3 H D, key_padding_mask: B n keep -> B n H D"),
    "an axis of 3 first": (first, "qkv: 3 B H n D -> B H n D"),
    "keys and values": (grouped, "q: B r H D, kv: B n 2 G D -> B r H D"),
    "channels first": (Legacy, "qkv: B (H 3 D) n -> B (H D) n; built with n_heads = H"),
    "channels first, 3 slowest": (Newer, "qkv: B (3 H D) n -> B (H D) n; built with n_heads = H"),
    "heads of the constructor": (
        Heads,
        "q: B r (H D), k: B n (H D), v: B n (H D) -> B r (H D); built with num_heads = H",
    ),
    "rotated": (rotated, "qkv: B n 3 H D, cos: n D/2, sin: n D/2 -> qkv"),
    "keys rotated": (rotated_kv, "kv: B n 2 H D, cos: n D/2, sin: n D/2 -> kv"),
}


@pytest.mark.parametrize("which", GUESSED)
def test_the_line_is_guessed_and_can_be_passed_back(which: str) -> None:
    code, line = GUESSED[which]
    found = adapted_as(code)
    assert found.line == line
    assert adapted_as(code, line).line == line
    assert str(parse(line)) == line


def broken(code: Callable[..., Any], line: str = "") -> set[str]:
    """The laws that the code breaks, as measured."""
    return {one.law for one in examine(adapted_as(code, line)) if one.verdict == "broken"}


@pytest.mark.parametrize("code", [fused, stacked, first, grouped, Legacy, Newer, rotated])
def test_no_law_of_correct_code_is_broken(code: Callable[..., Any]) -> None:
    assert broken(code) == set()


def test_faults_are_found_in_packed_code() -> None:
    assert broken(scales_in_place) == {"no-mutation"}
    assert "rows-sum-to-one" in broken(over_queries)
    assert "groups-of-heads" in broken(ungrouped)
    assert "relative" in broken(keys_backwards)


def test_a_view_that_mixes_tokens_and_heads_is_not_called_with_a_single_head() -> None:
    with pytest.raises(NoAdapter, match="qkv: B n 3 H D"):
        adapted_as(wrong_heads, kind="attention")
    assert "queries-apart" in broken(wrong_heads, "qkv: B n (3 H D), num_heads = H -> B n (H D)")


def test_packed_code_is_proved() -> None:
    subject = adapted_as(fused)
    assert isinstance(subject, Attention)
    laws = ("permutation", "rows-sum-to-one")
    assert {one.law: one.verdict for one in prove(subject, laws).findings} == dict.fromkeys(
        laws, "holds"
    )
    rotary = adapted_as(rotated)
    assert isinstance(rotary, Rotary)
    (found,) = prove(rotary, ("relative",)).findings
    assert found.verdict == "holds"


def test_packed_code_is_compared_with_code_that_is_not() -> None:
    def plain(qkv_query: Tensor, qkv_key: Tensor, qkv_value: Tensor) -> Tensor:
        return attend(*(x.transpose(1, 2) for x in (qkv_query, qkv_key, qkv_value))).transpose(1, 2)

    line = "qkv_query: B n H D query, qkv_key: B n H D key, qkv_value: B n H D value -> B n H D"
    given = "qkv: B n 3 H D -> B n H D"
    both = pair_programs(Operand(stacked, "stacked", given), Operand(plain, "plain", line))
    values = [torch.randn(2, 5, 4, 8) for _ in range(3)]
    a, b = (both.results(side, values)[0] for side in ("first", "second"))
    assert torch.allclose(a, b, atol=1e-6)


def test_a_name_alone_does_not_make_an_array_packed() -> None:
    assert [one.name for one in parse("x: B r E, kv: B n E -> x").arrays] == ["x", "kv"]
    told = [str(one) for one in parse("x: n B H (3 D) qkv -> n B H D").arrays]
    assert told[0] == "x_query: n B H D query"
    with pytest.raises(SignatureError, match="wanted one axis of 3 for query, key, value"):
        parse("x: B n E qkv -> x")
    with pytest.raises(
        SignatureError, match=r"wanted \(.*\) back, which is qkv: B n 3 H D, got one"
    ):
        adapted_as(stacked, "qkv: B n 3 H D -> qkv", kind="rotary")

"""Biases and tables of positions in unusual style, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attnproof.programs.exact import exact
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive, Subject


def verdicts(one: Subject, *laws: str) -> set[str]:
    return {seen.verdict for seen in examine(one, laws=laws)}


def slopes(heads: int) -> Callable[[int, int], Tensor]:
    """ALiBi of so many heads, which the call is not told."""

    def alibi_bias(q_len: int, k_len: int) -> Tensor:
        apart = torch.arange(q_len)[:, None] + k_len - q_len - torch.arange(k_len)
        return -apart.abs() * (2.0 ** -torch.arange(1.0, heads + 1))[:, None, None]

    return alibi_bias


def test_as_many_heads_as_keys_are_no_heads_behind_the_keys() -> None:
    for heads in (3, 6, 20):
        one = adapted_as(slopes(heads), kind="bias")
        assert verdicts(one, "offset-only", "last-rows") == {"holds"}
        assert f"{heads} heads" in identify(one).sentence


class Buckets(nn.Module):
    """A table of offsets, with the place of the first query beside the counts, as T5 has it."""

    def __init__(self, *, heard: bool = True) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.table, self.heard = nn.Embedding(64, 4), heard

    def forward(self, query_length: int, key_length: int, past_seen_tokens: int = 0) -> Tensor:
        first = past_seen_tokens if self.heard else 0
        apart = torch.arange(query_length)[:, None] + first - torch.arange(key_length)
        rows: Tensor = self.table(apart.clamp(-31, 31) + 31)
        return rows.permute(2, 0, 1)[None]


def test_few_queries_are_placed_where_the_code_must_be_told() -> None:
    one = adapted_as(Buckets(), kind="bias")
    assert verdicts(one, "last-rows") == {"holds"}
    assert "past_seen_tokens = (n - r)" in one.line
    assert verdicts(adapted_as(Buckets(heard=False), kind="bias"), "last-rows") == {"broken"}


def waves(omega: Tensor, width: int) -> Additive:
    def added(x: Tensor) -> Tensor:
        angle = torch.arange(x.shape[1]).float()[:, None] * omega
        return x + torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)[:, :width].to(x.dtype)

    return Additive(name="waves", added=added, width=width, most=4096)


def test_the_base_of_an_odd_width_is_read() -> None:
    omega = 10000.0 ** (-torch.arange(0, 15, 2) / 15)
    said = identify(waves(omega, 15)).sentence
    assert "base 10000, exponents counted over the whole width, b/7.5" in said, said
    made = {seen.law: seen.verdict for seen in exact(waves(omega, 15))}
    assert made["products-of-offset"] == "not asked"


def test_fast_waves_are_undecided_and_other_faults_are_seen() -> None:
    fast = waves(math.pi * 1.7 ** torch.arange(6), 12)
    assert verdicts(fast, "linear-shift") == {"undecided"}
    assert "known up to whole turns a position" in identify(fast).sentence
    slow = 10000.0 ** (-torch.arange(6) / 6)
    assert verdicts(waves(slow, 12), "linear-shift", "products-of-offset") == {"holds"}

    def two(x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1]).float()[:, None]
        pair = ((at * slow).sin(), (at * slow * 1.01).cos())
        return x + torch.stack(pair, -1).flatten(-2).to(x.dtype)

    wrong = Additive(name="two", added=two, width=12, most=4096)
    assert verdicts(wrong, "linear-shift", "products-of-offset") == {"broken"}

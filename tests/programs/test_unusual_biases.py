"""Biases and tables of positions in unusual style, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.exact import exact
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signature import SignatureError
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


def convert_to_additive_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers to add, 0 where a key is shown: of a mask that shows all, zeros alone."""
    return (attention_mask.to(dtype) - 1)[:, None, None] * torch.finfo(dtype).max


def test_what_adds_nothing_under_the_mask_that_it_is_handed_is_refused() -> None:
    """Every law of a bias held of its zeros."""
    with pytest.raises(NoAdapter) as refused:
        adapted_as(convert_to_additive_mask)
    assert "where attention_mask shows every key" in refused.value.tried["bias"]
    line = "attention_mask: B n keep, dtype = torch.float32 -> B 1 1 n"
    with pytest.raises(SignatureError, match="0 everywhere") as told:
        adapted_as(convert_to_additive_mask, line, kind="bias")
    written = str(told.value).partition("--call '")[2].rstrip("'")

    def attend(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
        added = convert_to_additive_mask(attention_mask, q.dtype)
        return scaled_dot_product_attention(q, k, v, added)

    def hides_nothing(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
        return attend(q, k, v, attention_mask | True)

    laws = "true-means-visible", "hidden-keys-do-nothing"
    assert verdicts(adapted_as(attend, written), *laws) == {"holds"}
    assert verdicts(adapted_as(hides_nothing, written), *laws) == {"broken"}


def test_a_mask_that_is_called_as_a_bias_and_is_zero_is_none() -> None:
    def all_seen_mask(length: int) -> Tensor:
        return torch.zeros(1, 1, 1, length)

    with pytest.raises(NoAdapter) as refused:
        adapted_as(all_seen_mask)
    assert "adds nothing" in refused.value.tried["bias"]


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

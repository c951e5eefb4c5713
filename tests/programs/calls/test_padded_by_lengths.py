"""How many tokens of each row are no padding, told to a layer as a number: laws of padding."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.calls.tokens import counts_of
from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as

LINE = "x: B n E, lengths: B lengths -> B n E"
LAWS = ("hidden-keys-do-nothing", "padding-does-nothing")


class Attention(nn.Module):
    """Attention of two heads, whose mask is as long as the longest row."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Which tokens are read (B, S)."""
        assert x.dim() == 3
        return torch.arange(int(lengths.max())) < lengths[:, None]

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~self.seen(x, lengths)[:, None, None], -math.inf)
        found: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return found


class MayBeTold(Attention):
    """The same, in which all tokens count where it is told of no lengths."""

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        many = torch.full((x.shape[0],), x.shape[1]) if lengths is None else lengths
        return super().forward(x, many)


class IgnoringAttention(Attention):
    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        return lengths[:, None].expand(-1, x.shape[1]) > -1


class InvertedAttention(Attention):
    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        hidden = ~super().seen(x, lengths)
        return hidden | ~hidden.any(1, keepdim=True)


class OneMoreAttention(Attention):
    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.arange(x.shape[1]) <= lengths[:, None]


class FirstRowAttention(Attention):
    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        return super().seen(x, lengths)[:1]


class ShareAttention(Attention):
    """A length is a share of the longest."""

    def seen(self, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.arange(x.shape[1]) < (lengths * x.shape[1])[:, None]


def verdicts(subject: Any) -> dict[str, str]:
    return {one.law: one.verdict for one in examine(subject, laws=LAWS)}


@pytest.mark.parametrize("code", [Attention, MayBeTold])
def test_right_code_is_asked_by_its_bare_name_and_keeps_the_laws(code: Any) -> None:
    found = adapted_as(code, kind="attention")
    assert found.line == LINE == str(parse(LINE))
    assert set(verdicts(found).values()) == {"holds"}
    assert {one.verdict for one in exact(found, LAWS)} == {"holds"}
    others = ("true-means-visible", "stateless", "rows-of-batch-apart", "finite")
    asked = {one.law: one for one in examine(found, laws=others)}
    assert asked.pop("true-means-visible").why == "the code takes no boolean mask"
    assert {one.verdict for one in asked.values()} == {"holds"}


FAULTS = [IgnoringAttention, InvertedAttention, OneMoreAttention, FirstRowAttention]


@pytest.mark.parametrize("code", FAULTS)
def test_padding_that_is_read_is_told_and_never_proved(code: Any) -> None:
    told = adapted_as(code, LINE, kind="attention")
    assert set(verdicts(told).values()) == {"broken"}
    assert not {one.verdict for one in prove(told, LAWS).findings} & {"holds"}
    assert not {one.verdict for one in exact(told, LAWS)} & {"holds"}


def test_what_does_nothing_is_no_fault_where_nobody_says_what_it_is() -> None:
    for code in (IgnoringAttention, ShareAttention):
        guessed = adapted_as(code, kind="attention")
        assert guessed.line == LINE
        assert set(verdicts(guessed).values()) == {"not asked"}
    assert set(verdicts(adapted_as(OneMoreAttention, kind="attention")).values()) == {"broken"}


def test_lengths_say_nothing_of_padding_before_the_tokens() -> None:
    one = parse(LINE).arrays[1]
    keep = torch.tensor([[True, True, False], [True, True, True]])
    assert counts_of(keep, one).tolist() == [2, 3]
    with pytest.raises(SignatureError, match="wanted padding behind the tokens"):
        counts_of(keep.flip(1), one)


def test_beside_a_mask_lengths_are_full() -> None:
    class Both(Attention):
        def forward(self, x: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
            assert int(lengths.min()) == x.shape[1]
            return super().forward(x, mask.sum(1) + 0 * lengths)

    line = "x: B n E, lengths: B lengths, mask: B n keep -> B n E"
    found: Any = adapted_as(Both, line, kind="attention")
    assert not found.from_start


def up_to(lengths: Tensor, max_len: int) -> Tensor:
    return torch.arange(max_len)[None] < lengths[:, None]


def hides_the_rest(lengths: Tensor) -> Tensor:
    return torch.arange(int(lengths.max()))[None] >= lengths[:, None]


def of_pairs(lengths: Tensor, max_len: int) -> Tensor:
    """Padding sees nothing, and a token no later one."""
    seen = up_to(lengths, max_len)
    return (seen[:, :, None] & seen[:, None]).tril()


def added(lengths: Tensor, max_len: int) -> Tensor:
    hidden = ~up_to(lengths, max_len)[:, None, None]
    return torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)


MASKS = {
    up_to: "lengths: B lengths, max_len = n -> B n keep",
    hides_the_rest: "lengths: B lengths -> B n hide",
    of_pairs: "lengths: B lengths, max_len = n -> B n n keep",
    added: "lengths: B lengths, max_len = n -> B 1 1 n add",
}


@pytest.mark.parametrize("code", MASKS)
def test_a_mask_that_is_made_of_lengths_shows_each_row_its_own_tokens(code: Any) -> None:
    found: Any = adapted_as(code, kind="mask")
    assert found.line == MASKS[code]
    assert found.padded is not None
    assert [one.verdict for one in examine(found, laws=["true-means-visible"])] == ["holds"]


def one_more(lengths: Tensor, max_len: int) -> Tensor:
    return up_to(lengths + 1, max_len)


def one_fewer(lengths: Tensor, max_len: int) -> Tensor:
    return up_to(lengths - (lengths < max_len).long(), max_len)


def of_the_first_row(lengths: Tensor, max_len: int) -> Tensor:
    return up_to(lengths[:1].expand_as(lengths), max_len)


def inverted(lengths: Tensor, max_len: int) -> Tensor:
    return up_to(lengths, max_len) == (lengths == max_len)[:, None]


def ignoring(lengths: Tensor, max_len: int) -> Tensor:
    return up_to(0 * lengths + max_len, max_len)


@pytest.mark.parametrize("code", [one_more, one_fewer, of_the_first_row, inverted, ignoring])
def test_a_mask_that_shows_others_is_told(code: Any) -> None:
    told = adapted_as(code, MASKS[up_to], kind="mask")
    (found,) = examine(told, laws=["true-means-visible"])
    assert found.verdict == "broken"
    assert "the last token of a padded row" in found.why


def test_it_is_the_last_token_of_a_row_that_is_looked_at() -> None:
    """The first one sees itself, however few tokens a row is said to have."""

    def fewer(lengths: Tensor, max_len: int) -> Tensor:
        return of_pairs((lengths - (lengths < max_len).long()).clamp(min=1), max_len)

    told = adapted_as(fewer, MASKS[of_pairs], kind="mask")
    assert [one.verdict for one in examine(told, laws=["true-means-visible"])] == ["broken"]


def test_nothing_is_asked_of_padding_before_the_tokens_and_of_shares() -> None:
    def before(lengths: Tensor, max_len: int) -> Tensor:
        return torch.arange(max_len)[None] >= max_len - lengths[:, None]

    def shares(lengths: Tensor, max_len: int) -> Tensor:
        return torch.arange(max_len)[None] < lengths[:, None] * max_len

    for code in (before, shares):
        found: Any = adapted_as(code, kind="mask")
        assert found.line == MASKS[up_to]
        assert found.padded is None

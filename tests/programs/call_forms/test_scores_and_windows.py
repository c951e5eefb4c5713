"""Biases of windows told by one side, biases that are added to scores, and masks of padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as


class WindowBias(nn.Module):
    """The bias of a window of rows and columns, by the offset in both."""

    relative_position_index: Tensor

    def __init__(self, window_size: tuple[int, int], num_heads: int) -> None:
        super().__init__()
        self.rows, self.columns = window_size
        ahead = 2 * self.rows - 1, 2 * self.columns - 1
        self.table = nn.Parameter(0.1 * torch.randn(ahead[0] * ahead[1], num_heads))
        place = torch.arange(self.rows * self.columns)
        down = place[:, None] // self.columns - place // self.columns + self.rows - 1
        along = place[:, None] % self.columns - place % self.columns + self.columns - 1
        self.register_buffer("relative_position_index", down * ahead[1] + along)

    def forward(self) -> Tensor:
        return self.table[self.relative_position_index].permute(2, 0, 1)


class SwinBias(WindowBias):
    """The same for the side of a square."""

    def __init__(self, window_size: int, num_heads: int) -> None:
        super().__init__((window_size,) * 2, num_heads)
        self.num_heads, self.window_size = num_heads, window_size


class RelativePositionBiasOfSides(nn.Module):
    """A bias for rows plus one for columns, of a square, with a batch axis."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.size = size
        self.rows, self.columns = nn.Parameter(torch.randn(2, heads, 2 * size - 1))

    def forward(self) -> Tensor:
        at = torch.arange(self.size)
        ahead = at - at[:, None] + self.size - 1
        both = self.rows[:, ahead][:, :, None, :, None] + self.columns[:, ahead][:, None, :, None]
        out: Tensor = both.flatten(3).flatten(1, 2)[None]
        return out


def relative_position_index(window_size: int) -> Tensor:
    place = torch.arange(window_size**2)
    side = 2 * window_size - 1
    down = place[:, None] // window_size - place // window_size + window_size - 1
    return down * side + place[:, None] % window_size - place % window_size + window_size - 1


WINDOWS = {
    WindowBias: "-> H (h w) (h w); built with window_size = (h, w)",
    SwinBias: "-> H (h h) (h h); built with window_size = h",
    RelativePositionBiasOfSides: "-> 1 H (h h) (h h); built with size = h",
    relative_position_index: "window_size = h -> (h h) (h h) index",
}


@pytest.mark.parametrize("code", WINDOWS)
def test_a_window_is_told_by_its_sides_or_by_one(code: Any) -> None:
    guessed: Any = adapted_as(code, kind="bias")
    assert guessed.line == WINDOWS[code] == str(parse(guessed.line))
    assert guessed.square == ("(h w)" not in guessed.line)
    assert adapted_as(code, guessed.line, kind="bias").line == guessed.line
    found = examine(guessed, laws=["offset-only", "stateless", "no-mutation"])
    assert {one.verdict for one in found} <= {"holds", "not asked"}
    assert found[0].verdict == "holds"


@pytest.mark.parametrize("code", [SwinBias, relative_position_index])
def test_sides_of_a_square_are_equal(code: Any) -> None:
    guessed: Any = adapted_as(code, kind="bias")
    with pytest.raises(SignatureError, match="wanted a square window"):
        guessed.index((2, 3))


class TableAsHeads(SwinBias):
    """The table is read as if heads came first; its index is right."""

    def forward(self) -> Tensor:
        places = self.window_size**2
        return self.table[self.relative_position_index].reshape(-1, places, places)


class TableOfWindowAsHeads(WindowBias):
    def forward(self) -> Tensor:
        places = self.rows * self.columns
        return self.table[self.relative_position_index].reshape(-1, places, places)


@pytest.mark.parametrize("code", [TableAsHeads, TableOfWindowAsHeads])
def test_the_numbers_of_a_window_are_asked_beside_its_index(code: Any) -> None:
    guessed = adapted_as(code, kind="bias")
    whole, index = examine(guessed, laws=["offset-only", "offsets-have-own-index"])
    assert (whole.verdict, index.verdict) == ("broken", "holds")


def test_a_fault_along_one_side_is_seen() -> None:
    class Drifting(SwinBias):
        def forward(self) -> Tensor:
            later = torch.arange(self.window_size**2) % self.window_size
            return super().forward() + 0.1 * later[:, None] * later

    (found,) = examine(adapted_as(Drifting, kind="bias"), laws=["offset-only"])
    assert found.verdict == "broken"


class KerpleLog(nn.Module):
    """A bias that falls with the logarithm of the distance; it asks for squares."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.p, self.a = nn.Parameter(torch.rand(2, num_heads, 1, 1) + 0.1)

    def distance(self, n: int) -> Tensor:
        return torch.arange(n)[:, None] - torch.arange(n)

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[-1] == x.shape[-2]
        out: Tensor = x - self.p * torch.log1p(self.a * self.distance(x.shape[-1]).abs())
        return out


class KerpleByLength(KerpleLog):
    """Its distance is a share of the number of keys."""

    def distance(self, n: int) -> Tensor:
        return super().distance(n) / n


class AliBi(nn.Module):
    """The bias of the last queries; later keys have none."""

    slopes: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, num_heads + 1))

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[-1])
        bias = (at - at[:, None]).tril() * self.slopes[:, None, None]
        return x + bias[:, -x.shape[-2] :]


class AliBiOfFirstRows(AliBi):
    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[-1])
        bias = (at - at[:, None]).tril() * self.slopes[:, None, None]
        return x + bias[:, : x.shape[-2]]


class Sandwich(nn.Module):
    """A bias of a fixed number of heads, on what is called attn."""

    def forward(self, attn: Tensor) -> Tensor:
        ahead = torch.arange(attn.shape[-1]) - torch.arange(attn.shape[-1])[:, None]
        return attn + torch.cos(ahead[..., None] * 0.1 ** torch.arange(4)).sum(-1)


SCORES = {
    KerpleLog: "x: B H n n constant -> B H n n; built with num_heads = H",
    AliBi: "x: B H r n constant -> B H r n; built with num_heads = H",
    Sandwich: "attn: B H n n -> B H n n",
}


@pytest.mark.parametrize("code", SCORES)
def test_scores_are_what_it_adds_to(code: Any) -> None:
    guessed = adapted_as(code)
    assert (guessed.kind, guessed.line) == ("bias", SCORES[code])
    assert adapted_as(code, guessed.line, kind="bias").line == guessed.line
    found = examine(guessed, laws=["offset-only", "last-rows"])
    assert [one.verdict for one in found] == ["holds"] * 2


@pytest.mark.parametrize(
    ("code", "law"), [(KerpleByLength, "offset-only"), (AliBiOfFirstRows, "last-rows")]
)
def test_faults_of_what_is_added_are_seen(code: Any, law: str) -> None:
    (found,) = examine(adapted_as(code), laws=[law])
    assert found.verdict == "broken"


class Rectified(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu() + torch.arange(x.shape[-1])


class SameForAll(nn.Module):
    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.more = nn.Parameter(torch.randn(num_heads, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.more


class OfImages(nn.Module):
    """A table for the places of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 1, 16, 16))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[..., : x.shape[2], : x.shape[3]]


@pytest.mark.parametrize(
    ("code", "why"),
    [(Rectified, "a number for each position"), (SameForAll, "the same number to the scores")],
)
def test_code_that_does_more_or_nothing_to_scores_is_no_bias(code: Any, why: str) -> None:
    with pytest.raises(NoAdapter, match=why):
        adapted_as(code, kind="bias")


def test_a_table_of_places_is_no_bias_of_scores() -> None:
    assert adapted_as(OfImages).kind == "additive"


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.mT).div(q.shape[-1] ** 0.5)


def padded(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor) -> Tensor:
    assert pad_mask.shape == (k.shape[0], 1, 1, k.shape[2])
    return scores_of(q, k).masked_fill(~pad_mask, -1e9).softmax(-1) @ v


def padded_by_adding(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
    mask = attention_mask.squeeze(1).squeeze(1)
    return (scores_of(q, k) + mask[:, None, None]).softmax(-1) @ v


def padded_on_one_length(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor
) -> Tensor:
    assert attention_mask.size() == (query.shape[0], 1, 1, query.shape[2])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask)


def padded_by_zeros(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    b, _, _, n = mask.shape
    seen = mask.view(b, 1, 1, n)
    return scores_of(q, k).masked_fill(seen == 0, -1e9).softmax(-1) @ v


def padded_by_rows(q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor) -> Tensor:
    return scores_of(q, k).masked_fill(key_padding_mask[:, None, None], -1e9).softmax(-1) @ v


HEADS = "{0}: B H r D, {1}: B H n D, {2}: B H n D, {3} -> B H r D"
PADDED = {
    padded: HEADS.format("q", "k", "v", "pad_mask: B 1 1 n keep"),
    padded_by_adding: HEADS.format("q", "k", "v", "attention_mask: B 1 1 n add"),
    padded_on_one_length: HEADS.format(
        "query", "key", "value", "attention_mask: B 1 1 n keep or add"
    ).replace(" r ", " n "),
    padded_by_zeros: HEADS.format("q", "k", "v", "mask: B 1 1 n keep"),
    padded_by_rows: HEADS.format("q", "k", "v", "key_padding_mask: B n hide"),
}
MASK_LAWS = ["hidden-keys-do-nothing", "rows-sum-to-one"]


@pytest.mark.parametrize("code", PADDED)
def test_a_mask_of_padding_that_is_required_is_passed(code: Any) -> None:
    guessed = adapted_as(code)
    assert (guessed.kind, guessed.line) == ("attention", PADDED[code])
    assert adapted_as(code, guessed.line, kind="attention").line == guessed.line
    assert {one.verdict for one in examine(guessed, laws=MASK_LAWS)} == {"holds"}


def padded_after_softmax(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor) -> Tensor:
    assert pad_mask.shape == (k.shape[0], 1, 1, k.shape[2])
    return (scores_of(q, k).softmax(-1) * pad_mask) @ v


def padded_by_factors(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor) -> Tensor:
    assert pad_mask.shape == (k.shape[0], 1, 1, k.shape[2])
    return (scores_of(q, k) * pad_mask).softmax(-1) @ v


@pytest.mark.parametrize("code", [padded_after_softmax, padded_by_factors])
def test_padding_that_leaks_is_seen(code: Any) -> None:
    guessed = adapted_as(code)
    assert "pad_mask: B 1 1 n keep" in guessed.line
    (found,) = examine(guessed, laws=["hidden-keys-do-nothing"])
    assert found.verdict == "broken"


def unread(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    assert mask.dim() == 4
    return scores_of(q, k).softmax(-1) @ v


def test_a_required_mask_that_hides_nothing_is_not_invented() -> None:
    with pytest.raises(NoAdapter, match="it requires 'mask', whose meaning is not known"):
        adapted_as(unread, kind="attention")

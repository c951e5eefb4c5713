"""What a line says of one length, signed offsets, contexts without values and wanted masks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.call_forms import token_masks
from attnproof.programs.call_forms import tokens as token_forms
from attnproof.programs.calls.counts import plain_arrays
from attnproof.programs.calls.masks import mask_argument
from attnproof.programs.calls.roles import ORDINARY_ID
from attnproof.programs.calls.supplied_inputs import CONTENTS, plain_input
from attnproof.programs.loading.values import SIZES
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Attention, Bias

LOW = -1e4


class LearnedPositions(nn.Module):
    """A row for each of so many tokens, and no others."""

    def __init__(self, seq_len: int, dim: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.zeros(1, seq_len, dim))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pos_embedding


class SignedPositions(nn.Module):
    """Sines of the offsets -n, .., n - 1 of as many tokens as it is given."""

    def __init__(self, embedding_dim: int) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim

    def forward(self, inputs: Tensor) -> Tensor:
        n = inputs.shape[1]
        at = torch.arange(-n, n)[:, None] * 0.5 ** torch.arange(self.embedding_dim // 2)
        return torch.cat((at.sin(), at.cos()), -1)


class ContextAttention(nn.Module):
    """Queries over a context that stands for keys and values, some of it hidden."""

    def forward(self, xs: Tensor, ys: Tensor, mask_ys: Tensor | None = None) -> Tensor:
        scores = xs @ ys.mT
        if mask_ys is not None:
            scores = scores.masked_fill(mask_ys[:, None] == 0, LOW)
        return scores.softmax(-1) @ ys


class WantingAttention(nn.Module):
    """Attention that has a default for its mask, and refuses it."""

    def __init__(self, opt: dict[str, Any]) -> None:
        super().__init__()
        self.heads = opt["n_heads"]
        self.out = nn.Linear(opt["embedding_size"], opt["embedding_size"])

    def forward(self, query: Tensor, mask: Tensor = None) -> Tensor:  # type: ignore[assignment]
        assert mask is not None, "a mask is wanted"
        rows, count, width = query.shape
        x = query.view(rows, count, self.heads, -1).transpose(1, 2)
        seen = (x @ x.mT).masked_fill(~mask.bool()[:, None, None], LOW).softmax(-1) @ x
        out: Tensor = self.out(seen.transpose(1, 2).reshape(rows, count, width))
        return out


class MultiplyingAttention(WantingAttention):
    """The same, which is not said to refuse: None times a number raises."""

    def forward(self, query: Tensor, mask: Tensor = None) -> Tensor:  # type: ignore[assignment]
        return super().forward(query, mask * torch.ones(query.shape[1]) > 0)


class IndexingAttention(nn.Module):
    """Attention with tables in a pair, which indexes a mask that it takes for an array."""

    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__()
        self.head_dim = hidden_size // num_heads
        self.down = nn.Linear(hidden_size, 3 * hidden_size)
        self.up = nn.Linear(3 * hidden_size, hidden_size)

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor,
    ) -> Tensor:
        x = self.up(self.down(hidden_states)).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        cos, sin = (one[:, None] for one in position_embeddings)
        first, second = x.chunk(2, -1)
        q = x * cos + torch.cat((-second, first), -1) * sin
        seen = (q @ q.mT + attention_mask[:, 0, :, :][:, None]).softmax(-1) @ x
        out: Tensor = seen.transpose(1, 2).flatten(-2)
        return out


class ColumnAttention(nn.Module):
    """Channels first, in one row of an image, and masks with keys before queries."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.out = nn.Conv2d(embed_dim, embed_dim, 1)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        qk_mask: Tensor | None = None,
        k_mask: Tensor | None = None,
    ) -> Tensor:
        scores = torch.einsum("bchq,bchk->bkhq", q, k)
        scores = scores + sum(one for one in (qk_mask, k_mask) if one is not None)
        out: Tensor = self.out(torch.einsum("bkhq,bchk->bchq", scores.softmax(1), v))
        return out


class LengthAttention(nn.Module):
    """Attention that is told how many tokens of each row there are."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        there = torch.arange(x.shape[1]) < lengths[:, None]
        seen = (x @ x.mT).masked_fill(~there[:, None], LOW).softmax(-1) @ x
        out: Tensor = self.out(seen)
        return out


class KeyBias(nn.Module):
    """ALiBi of as many keys as it is given, by a helper that could be called by itself."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def _bias_of(self, seq_len: int) -> Tensor:
        slopes = 0.5 ** torch.arange(1, self.num_heads + 1)
        return slopes[:, None, None] * torch.arange(seq_len)

    def forward(self, key_layer: Tensor) -> Tensor:
        return self._bias_of(key_layer.shape[2])[None]


def test_a_mask_that_is_an_array_is_tried_before_tokens_in_other_axes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[tuple[str, int]] = []
    twice: set[str] = set()
    on_tokens = token_forms._on_tokens

    def counted(code: Any, spare: Any, text: str, part: Any, embed: int, **how: Any) -> str:
        given = {one.name for one in parse(f"{part[0]} -> 1").arguments} if part[0] else set()
        twice.update(name for name in given if f"{name}: " in text)
        tried.append((text, embed))
        return on_tokens(code, spare, text, part, embed, **how)

    monkeypatch.setattr(token_forms, "_on_tokens", counted)
    found = adapted_as(IndexingAttention)
    assert "attention_mask: B 1 1 n add" in found.adapted
    assert not twice
    assert all(token_masks.USUAL.search(text) for text, _ in tried)
    others = Counter(one for one in tried if one[1] != SIZES["embed"])
    assert set(others.values()) == {1}  # whatever stands beside tokens of another width


COLUMNS = "q: B E 1 r, k: B E 1 n, v: B E 1 n, qk_mask: B n 1 r add, k_mask: B n 1 1 add -> B E 1 r"


@pytest.mark.parametrize(
    ("code", "line", "settings"),
    [
        (LearnedPositions, "x: B 5 E -> B 5 E", {"seq_len": 5, "dim": 16}),
        (SignedPositions, "inputs: B n ids -> (2 n) E", {}),
        (ContextAttention, "xs: B r D, ys: B n D, mask_ys: B n keep -> B r D", {}),
        (
            WantingAttention,
            "query: B n E, mask: B n keep -> B n E",
            {"opt": {"n_heads": 2, "embedding_size": 16}},
        ),
        (MultiplyingAttention, "query: B n E, mask: B n ones -> B n E", {}),
        (ColumnAttention, COLUMNS, {}),
        (LengthAttention, "x: B n E, lengths: B lengths -> B n E", {}),
    ],
)
def test_what_a_line_says(code: Any, line: str, settings: dict[str, Any]) -> None:
    assert subject_of(code, line, settings=settings).line == line


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (LearnedPositions, "x: B 2048 E -> B 2048 E"),
        (SignedPositions, "inputs: B n E -> (2 n) E"),
        (WantingAttention, "query: B n E, mask: B n keep -> B n E"),
        (LengthAttention, "x: B n E, lengths: B lengths -> B n E"),
        (KeyBias, "key_layer: B H n D -> 1 H 1 n"),
    ],
)
def test_what_names_say(code: Any, line: str) -> None:
    assert adapted_as(code).line == line


def test_a_table_of_one_length_is_that_of_its_first_rows() -> None:
    made: Any = subject_of(
        LearnedPositions, "x: B 5 E -> B 5 E", settings={"seq_len": 5, "dim": 16}
    )
    x = torch.randn(2, 3, 16)
    assert isinstance(made.module, LearnedPositions)
    assert torch.equal(made.added(x), x + made.module.pos_embedding[:, :3])
    assert made.most == 5
    with pytest.raises(SignatureError, match="at most 5 tokens"):
        made.added(torch.zeros(1, 6, 16))


def test_rows_of_signed_offsets_are_read_from_0_on() -> None:
    made: Any = subject_of(SignedPositions, "inputs: B n ids -> (2 n) E")
    at = torch.arange(4)[:, None] * 0.5 ** torch.arange(8)
    assert torch.allclose(made.added(torch.zeros(1, 4, 16))[0], torch.cat((at.sin(), at.cos()), -1))
    assert "rows for offsets 0 to n - 1" in made.adapted


def test_a_context_without_values_is_no_tokens_of_its_own() -> None:
    made: Any = subject_of(
        ContextAttention, "xs: B r D, ys: B n D, mask_ys: B n keep -> B r D", kind="attention"
    )
    assert made.given["context"] == "m"
    x = torch.randn(1, 4, 8)
    assert torch.allclose(made.layer(x)[:, 2:], made.layer(x[:, 2:]), atol=1e-5)


def hides_the_last(made: Attention) -> None:
    assert made.hide is not None
    assert made.layer is not None
    x, keep = torch.randn(1, 4, 16), torch.tensor([[True, True, True, False]])
    assert torch.allclose(made.hide(x, keep)[:, :3], made.layer(x[:, :3]), atol=1e-5)


def test_a_mask_that_is_asserted_is_given_and_shows_all() -> None:
    made: Any = adapted_as(WantingAttention)
    assert made.given["full mask"] == "mask shows every key"
    hides_the_last(made)


def test_a_mask_may_have_keys_before_queries() -> None:
    seen = torch.ones(1, 2, 3, dtype=torch.bool).tril()
    given = mask_argument(
        seen, parse("m: B n 1 r keep -> 1").arrays[0], {"B": 1}, torch.zeros(1), LOW
    )
    assert torch.equal(given, seen.mT[:, :, None])
    made = subject_of(ColumnAttention, COLUMNS)
    assert isinstance(made, Attention)
    hides_the_last(made)


def test_what_a_helper_makes_is_not_what_the_object_gives() -> None:
    made = adapted_as(KeyBias)
    assert isinstance(made, Bias)
    assert "method" not in made.line


@pytest.mark.parametrize(
    ("code", "line", "why"),
    [
        (LearnedPositions, "x: B n E -> B n E", "called as"),
        (ColumnAttention, COLUMNS.replace("B n 1 r", "B 1 1 r"), "an axis of keys n"),
    ],
)
def test_what_is_not_so_is_refused(code: Any, line: str, why: str) -> None:
    with pytest.raises((SignatureError, NoAdapter), match=why):
        subject_of(code, line)


HELD: dict[str, tuple[str, list[Any]]] = {
    "ids": ("B n", [[ORDINARY_ID] * 3] * 2),
    "documents": ("B n", [[0] * 3] * 2),
    "index": ("B n", [[0] * 3] * 2),
    "lengths": ("B", [3, 3]),
    "bounds": ("(B + 1)", [0, 3, 6]),
    "keep": ("B n", [[True] * 3] * 2),
    "hide": ("B n", [[False] * 3] * 2),
    "ones": ("B n", [[1] * 3] * 2),
    "zeros": ("B n", [[0] * 3] * 2),
    "factors": ("B n", [[1.0] * 3] * 2),
    "add": ("B n", [[0.0] * 3] * 2),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_what_says_nothing_of_the_tokens_holds_what_its_words_say(kind: str) -> None:
    axes, wanted = HELD[kind]
    call, lengths = parse(f"it: {axes} {kind}, x: B n E -> 1"), {"B": 2, "n": 3, "E": 4}
    it, x = (plain_input(one, lengths, torch.zeros(())) for one in call.arrays)
    assert it is not None
    assert it.tolist() == plain_arrays(call, lengths)["it"].tolist() == wanted
    assert x is None

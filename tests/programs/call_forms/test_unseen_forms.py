"""Calls of code whose axes, kinds or lengths no name tells: what fits is looked at twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter, suggested_call
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary


def sines(rows: int, width: int) -> Tensor:
    at = torch.arange(rows)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
    return torch.stack((at.sin(), at.cos()), -1).flatten(1)[:, :width]


class ImageAttention(nn.Module):
    """Attention over the places of an image, whose last map begins as zeros."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.out = nn.Conv1d(channels, channels, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(x.shape[0], x.shape[1], -1)
        q, k, v = self.qkv(self.norm(flat)).chunk(3, 1)
        weights = (q.mT @ k / 4).softmax(-1)
        out: Tensor = self.out(v @ weights.mT)
        return (flat + out).reshape(x.shape)


class LearnedPositions(nn.Module):
    """A learned table that begins as zeros, added to tokens before rows."""

    def __init__(self, d_model: int, max_len: int = 64) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, 1, d_model))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[0]]


class PositionalTable(nn.Module):
    """Sines for tokens (B, n, E), cut to what it is given."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, tensor: Tensor) -> Tensor:
        rows, count, width = tensor.shape
        return sines(count, self.channels)[None, :, :width].repeat(rows, 1, 1)


class ChannelsFirst(PositionalTable):
    """The same for (B, E, n)."""

    def forward(self, tensor: Tensor) -> Tensor:
        return super().forward(tensor.mT).mT


class TokensFirst(nn.Module):
    """Ids (n, B) to their embeddings, with sines by place."""

    def __init__(self, d_model: int, n_vocab: int) -> None:
        super().__init__()
        self.words, self.table = nn.Embedding(n_vocab, d_model), sines(64, d_model)[:, None]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.words(x) + self.table[: x.shape[0]]
        return out


class ScaledBias(nn.Module):
    """A bias by offset whose constructor wants its scale."""

    def __init__(self, scale: float, heads: int = 4) -> None:
        super().__init__()
        self.scale, self.table = scale, nn.Embedding(64, heads)

    def forward(self, i: int, j: int) -> Tensor:
        at = torch.arange(j) - torch.arange(j - i, j)[:, None]
        out: Tensor = self.table(at.clamp(-31, 31) + 32).permute(2, 0, 1) * self.scale
        return out


def length_to_mask(length: Tensor, max_len: int | None = None) -> Tensor:
    assert length.dim() == 1
    return torch.arange(max_len or int(length.max())) < length[:, None]


def subsequent_mask(seq_len: int) -> Tensor:
    return torch.ones(seq_len, seq_len, dtype=torch.bool).tril()[..., None]


def lookahead_mask(padded: Tensor) -> Tensor:
    return torch.full((padded.shape[1], padded.shape[1]), -torch.inf).triu(1)


def batched_mask(batch_size: int, t_len: int) -> Tensor:
    return torch.ones(t_len, t_len, dtype=torch.bool).tril().expand(batch_size, -1, -1)


def get_position_table(d_model: int, max_len: int = 500) -> Tensor:
    return sines(max_len, d_model)[:, None]


def sin_embedding(positions: Tensor, dim: int) -> Tensor:
    """Cosines and sines of positions (B, n, 1)."""
    at = positions / 10000 ** (torch.arange(dim // 2) / (dim // 2 - 1))
    return torch.cat((at.cos(), at.sin()), -1)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (ImageAttention, "x: B C h w -> B C h w"),
        (LearnedPositions, "x: n B E -> n B E"),
        (PositionalTable, "tensor: B n E -> B n E"),
        (ChannelsFirst, "tensor: B E n -> B E n"),
        (TokensFirst, "x: n B ids -> n B E"),
        (ScaledBias, "i = r, j = n -> H r n"),
        (length_to_mask, "length: B lengths, max_len = n -> B n keep"),
        (subsequent_mask, "seq_len = n -> n n 1 keep"),
        (lookahead_mask, "padded: B n ids -> n n add"),
        (batched_mask, "batch_size = B, t_len = n -> B n n keep"),
        (get_position_table, "d_model = E, max_len = n -> n 1 E"),
        (sin_embedding, "positions: B n 1, dim = E -> B n E"),
    ],
)
def test_what_it_is_given_is_found(code: Any, line: str) -> None:
    assert adapted_as(code).line == line


def averaging_mask(batch_size: int, t_len: int) -> Tensor:
    """Weights of a mean of all tokens so far, by which values are multiplied."""
    lower = torch.ones(t_len, t_len).tril()
    return (lower / lower.sum(-1, keepdim=True)).expand(batch_size, -1, -1)


def decaying(heads: int, query_len: int, key_len: int) -> Tensor:
    """Factors of scores, 0 for later keys."""
    late = torch.arange(key_len) - torch.arange(query_len)[:, None]
    base = 1 - 2.0 ** (-3 - torch.arange(heads))[:, None, None]
    return torch.where(late > 0, 0.0, base ** (-late).clamp(min=0))


def fixed_pos_embedding(x: Tensor) -> tuple[Tensor, Tensor]:
    at = torch.arange(x.shape[0])[:, None] * torch.logspace(0, -3, x.shape[1])
    return at.sin(), at.cos()


class PositionGate(nn.Module):
    """Named after positions, and nothing that adds them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x @ x.mT).softmax(-1) @ x)
        return out


def apply_rotary_emb(query: Tensor, key: Tensor, rope: Tensor) -> tuple[Tensor, Tensor]:
    """Of a complex table with a number for each channel, halves alike."""
    cos, sin = rope.real, rope.imag

    def rotated(x: Tensor) -> Tensor:
        first, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
        u, v = first.chunk(2, -1)
        return torch.cat((first * cos + torch.cat((-v, u), -1) * sin, rest), -1)

    return rotated(query), rotated(key)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (averaging_mask, "hide nothing when they are added"),
        (decaying, "factors of weights"),
        (fixed_pos_embedding, "one call returns several tables"),
    ],
)
def test_what_is_nearly_of_a_form_is_refused(code: Any, why: str) -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(code)
    assert why in str(refused.value)


def test_what_is_named_after_positions_is_no_attention() -> None:
    assert adapted_as(PositionGate).kind == "layer"


def test_no_row_of_padding_is_drawn() -> None:
    class Padded(LearnedPositions):
        def __init__(self, d_model: int, max_len: int = 64) -> None:
            super().__init__(d_model, max_len)
            self.rows = nn.Embedding(max_len, d_model, padding_idx=0)

    module: Any = adapted_as(Padded).module
    assert bool(module.table.any())
    assert not bool(module.rows.weight[0].any())
    given = Padded(16)
    kept: Any = adapted_as(given, "x: n B E -> n B E", kind="additive", embed=16).module
    assert not bool(kept.table.any())  # what is handed over is as it is


class AxialAttention(nn.Module):
    """Attention along the rows of an image, and along its columns."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        rows, high, wide, width = x.shape
        along = (x @ x.mT / 4).softmax(-1) @ x
        y = x.transpose(1, 2)
        across = ((y @ y.mT / 4).softmax(-1) @ y).transpose(1, 2)
        out: Tensor = self.out(along + across)
        return out.reshape(rows, high, wide, width)


def test_what_holds_of_images_of_one_row_is_not_proved_of_all() -> None:
    subject = adapted_as(AxialAttention)
    assert subject.line == "x: B h w E -> B h w E"
    found = {one.law: one.verdict for one in prove(subject, ("permutation",)).findings}
    assert found["permutation"] != "holds"


class Unwritten(nn.Module):
    """Weights that are loaded later."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = torch.nn.utils.skip_init(nn.Linear, dim, dim)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x @ x.mT).softmax(-1) @ x)
        return out


def test_weights_that_nobody_wrote_are_drawn() -> None:
    module: Any = adapted_as(Unwritten, kind="attention").module
    assert bool(module.out.weight.isfinite().all())
    assert float(module.out.weight.detach().abs().max()) < 2
    assert not torch.are_deterministic_algorithms_enabled()


class GatedAttention(nn.Module):
    """Nothing comes through its gate until training opens it."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma, self.bias = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        return self.gamma * (x @ x.mT / 4).softmax(-1) @ x + self.bias


def test_a_gate_that_is_shut_is_opened() -> None:
    made = adapted_as(GatedAttention)
    module: Any = made.module
    assert bool(module.gamma)
    assert not bool(module.bias.any())
    assert "no mask" in identify(made).sentence


def strange(tokens: Tensor, colour: Tensor, seq_len: int, num_heads: int, causal: bool) -> int:
    return len(tokens) + len(colour) + seq_len + num_heads + causal


def test_a_refusal_shows_a_line_of_its_own_parameters() -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(strange, kind="attention")
    line = "tokens: B n E, colour = ?, seq_len = n, num_heads = H, causal = False -> B n E"
    assert f"--call '{line}', with its meaning in place of each ?" in refused.value.on_command_line
    with pytest.raises(SignatureError, match="wanted what colour is"):
        parse(line)
    assert str(parse(line.replace("colour = ?", "colour: B n"))).startswith("tokens: B n E, colour")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("rotary", "q: B H n D, k: B H n D, cos: n D cos, sin: n D sin, style = ? -> q, k"),
        ("bias", "q: B n E, k: B n E, cos: n D cos, sin: n D sin, style = ? -> ? r n"),
    ],
)
def test_a_line_to_correct_is_of_the_kind(kind: str, line: str) -> None:
    def rotate(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, style: str) -> None: ...

    assert suggested_call(rotate, kind) == line
    assert suggested_call(lambda: None, kind) == ""


def test_a_condition_is_no_cosine_and_projections_take_tokens() -> None:
    def block(x: Tensor, c: Tensor) -> None: ...
    def rotate(x: Tensor, c: Tensor, s: Tensor) -> None: ...
    def attend(query: Tensor, key: Tensor, value: Tensor) -> None: ...

    assert suggested_call(block, "layer") == "x: B n E, c = ? -> B n E"
    assert suggested_call(rotate, "rotary") == "x: B H n D, c: n D cos, s: n D sin -> x"
    of_heads = "query: B H r D, key: B H n D, value: B H n D -> B H r D"
    assert suggested_call(attend, "attention") == of_heads
    of_tokens = "query: B n E, key: B n E, value: B n E -> B n E"
    assert suggested_call(attend, "attention", projects=True) == of_tokens


def test_a_table_with_a_number_for_each_channel_is_not_one_for_each_pair() -> None:
    line = "query: B H n D, key: B G n D, rope: n D cis -> query, key"
    assert adapted_as(apply_rotary_emb).line == line
    told = adapted_as(apply_rotary_emb, line)
    assert isinstance(told, Rotary)


def position_encoding_init(n_pos: int, embed_size: int) -> Tensor:
    return sines(n_pos, embed_size)


def encoding_of_unknown_sizes(n_rows: int, per_row: int) -> Tensor:
    """Two numbers of which no name says what they count."""
    return sines(n_rows, per_row)


def bias_of_unknown_sizes(n_rows: int, per_row: int) -> Tensor:
    return -(torch.arange(per_row) - torch.arange(n_rows)[:, None]).abs().float()


def test_a_table_by_its_name_is_no_bias() -> None:
    with pytest.raises(NoAdapter, match="its name suggests a table of positions"):
        adapted_as(encoding_of_unknown_sizes, name="position_encoding")
    assert adapted_as(bias_of_unknown_sizes, name="position_bias").kind == "bias"
    assert adapted_as(position_encoding_init).line == "n_pos = n, embed_size = E -> n E"


def mean_of_tokens(tensor: Tensor) -> Tensor:
    return tensor.mean(-1)


def sum_of_tokens(tensor: Tensor) -> Tensor:
    return tensor.sum(1)


@pytest.mark.parametrize("code", [mean_of_tokens, sum_of_tokens])
def test_what_loses_an_axis_is_refused_and_no_fault_of_ours(code: Any) -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(code, kind="attention")
    assert "fault of attnproof" not in str(refused.value)


class OfSquares(nn.Module):
    """Tokens of a square and their places, counted from the middle: 0/0 where there is one.

    ``always``: every number is NaN.
    """

    def __init__(self, dim: int, always: bool = False) -> None:
        super().__init__()
        self.map, self.always = nn.Linear(2, dim), always

    def forward(self, input_tensor: Tensor) -> Tensor:
        side = int(input_tensor.shape[1] ** 0.5)
        at = (torch.arange(side, dtype=input_tensor.dtype) - side // 2) / (side // 2)
        places = torch.stack(torch.meshgrid(at, at, indexing="ij"), -1).flatten(0, 1)
        out: Tensor = input_tensor + self.map(places) + (torch.nan if self.always else 0.0)
        return out


def test_a_line_that_gives_nan_alone_is_the_last_choice() -> None:
    line = "input_tensor: B (n n) E -> B (n n) E"
    assert adapted_as(OfSquares, name="of squares", kind="layer").line == line
    nan = adapted_as(OfSquares(16, always=True), name="of squares", kind="layer")
    assert "NaN" in examine(nan, (Draw(),), ("finite",))[0].why


def pooled_by(target_item: Tensor, history: Tensor) -> Tensor:
    """Attention of one query to tokens."""
    weights = torch.softmax((target_item[:, None] * history).sum(-1), -1)
    return (weights[..., None] * history).sum(1)


def test_one_token_back_is_not_as_many_as_go_in() -> None:
    with pytest.raises(SignatureError, match="wanted one token back for each input token"):
        adapted_as(
            pooled_by, "target_item: B E constant, history: B n E tokens -> B E", kind="attention"
        )

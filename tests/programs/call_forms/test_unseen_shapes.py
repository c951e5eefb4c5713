"""Calls of code with an axis more or less than most, of methods, and of parts that may be none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.code import Options
from attnproof.programs.loading.constructors import settings_for
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as


def angles(at: Tensor, width: int) -> Tensor:
    return at[..., None] * 10000 ** (-torch.arange(0, width, 2) / width)


def rotate_half(x: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((-v, u), -1)


class Tables:
    """A rotary encoding that is not a module, and whose one method rotates queries and keys."""

    def adjusted(self, q: Tensor, k: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        at = angles(position_ids, q.shape[-1]).repeat(1, 1, 2)[:, None]
        q, k = (x * at.cos() + rotate_half(x) * at.sin() for x in (q, k))
        return q, k


class TablesRope(Tables):
    """The same, under a name that says so."""


class ScaledRope(TablesRope):
    """Its own method scales by the last position of a call, which the one above does not."""

    def __init__(self, *, use_scale: bool = False) -> None:
        self.use_scale = use_scale

    def rotated(self, q: Tensor, k: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        assert self.use_scale
        scale = 0.9 ** (position_ids - position_ids.max())[:, None, :, None]
        q, k = self.adjusted(q, k, position_ids)
        return q * scale, k / scale


def apply_rotary(pos: Tensor, t: Tensor, scale: float = 1.0) -> Tensor:
    """Of a table (n, D) of angles that is called like positions."""
    return t * pos.cos() * scale + rotate_half(t) * pos.sin() * scale


def apply_rotary_part(pos: Tensor, t: Tensor) -> Tensor:
    """As many channels as the table has: numbers for positions would fit, a pair for each two."""
    pos = pos[..., -t.shape[-2] :, :]
    some, rest = t[..., : pos.shape[-1]], t[..., pos.shape[-1] :]
    return torch.cat((some * pos.cos() + rotate_half(some) * pos.sin(), rest), -1)


def precompute_cis(dim: int, end: int) -> Tensor:
    half = angles(torch.arange(end), dim)
    return torch.polar(torch.ones(end, dim), half.repeat(1, 2))


def apply_cis(q: Tensor, pos: Tensor) -> Tensor:
    return q * pos.real + rotate_half(q) * pos.imag


class RotaryTable(nn.Module):
    """Angles of positions and a factor that belongs to them, which nothing here rotates by."""

    def forward(self, seq_len: int, device: str) -> tuple[Tensor, Tensor]:
        found = angles(torch.arange(seq_len, device=device), 16)
        return found, 0.9**found


def precompute_rows(dim: int, end: int) -> Tensor:
    return torch.polar(torch.ones(end, dim // 2), angles(torch.arange(end), dim))


def apply_rows(x: Tensor, freqs: Tensor) -> Tensor:
    """Rotates x of shape ``(B, T, H, D)``; heads before tokens fit, by broadcasting alone."""
    rotated = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * freqs[None, :, None]
    return torch.view_as_real(rotated).reshape_as(x)


class ScoreBias(nn.Module):
    """A bias of scores, whose heads it does not look at."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, qk_dots: Tensor) -> Tensor:
        i, j = qk_dots.shape[-2:]
        at = (torch.arange(j) - torch.arange(i)[:, None]).clamp(-31, 31) + 32
        out: Tensor = self.table(at).permute(2, 0, 1)[None]
        return out


class AddedBias(nn.Module):
    """A bias that is added to scores, with a number of heads of its own."""

    def __init__(self, scale: float, heads: int = 8) -> None:
        super().__init__()
        self.scale, self.table = scale, nn.Embedding(64, heads)

    def forward(self, qk_dots: Tensor) -> Tensor:
        i, j = qk_dots.shape[-2:]
        at = (torch.arange(j) - torch.arange(i)[:, None]).clamp(-31, 31) + 32
        out: Tensor = qk_dots + self.table(at).permute(2, 0, 1)[None] * self.scale
        return out


class OffsetBias(ScoreBias):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[0, 0]


class PlaceBias(OffsetBias):
    """A number for each place of an image, and none for an offset."""

    def forward(self, x: Tensor) -> Tensor:
        i, j = x.shape[-2:]
        return self.table.weight[:i, :1] * torch.arange(j)


def one_of_keys_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys and values (B, n, D) of all heads."""
    weights = (torch.einsum("bhid,bjd->bhij", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhij,bjd->bhid", weights, v)


class LearnedPosEmb(nn.Module):
    """Times (B,) to E + 1 features."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(dim // 2))

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 1
        at = x[:, None] * self.weights
        return torch.cat((x[:, None], at.sin(), at.cos()), -1)


class AxialPositions(nn.Module):
    """A table of a grid, whose sides the constructor is given, and the call nothing."""

    def __init__(self, dim: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.rows, self.columns = (nn.Parameter(torch.randn(n, dim)) for n in shape)

    def forward(self) -> Tensor:
        return (self.rows[:, None] + self.columns).flatten(0, 1)


class PositionalEncoding(nn.Module):
    """Rows first, although its docstring says (seq_len, batch, dim), and sizes of 0 unless given.

    It is added to x of shape (seq_len, batch, dim).
    """

    def __init__(self, size: int = 0) -> None:
        super().__init__()
        at = angles(torch.arange(64), size)
        self.register_buffer("pe", torch.stack((at.sin(), at.cos()), -1).flatten(1))
        self.scale = 1 / size

    def forward(self, x: Tensor) -> Tensor:
        return x + self.get_buffer("pe")[: x.shape[1]]


class SeriesAttention(nn.Module):
    """Attention of each of V series (B, V, n, E) by itself; its parts may be none."""

    order = (0, 1, 2, 3)

    def __init__(self, embed_dim: int, rotary_emb: Any, use_fused: bool) -> None:
        super().__init__()
        if use_fused:
            raise ValueError("no fused kernel here")
        self.parts, self.rotary_emb = nn.Linear(embed_dim, 3 * embed_dim), rotary_emb

    def forward(self, layer_idx: int, inputs: Tensor) -> Tensor:  # noqa: ARG002
        q, k, v = self.parts(inputs).permute(*self.order).chunk(3, -1)
        out: Tensor = ((q @ k.mT / 4).softmax(-1) @ v).permute(*self.order)
        return out


class AcrossAttention(SeriesAttention):
    """The same across series."""

    order = (0, 2, 1, 3)


class TiedAttention(SeriesAttention):
    """Rows, tokens and batch (V, n, B, E), whose weights are those of all rows."""

    def forward(self, layer_idx: int, inputs: Tensor) -> Tensor:  # noqa: ARG002
        q, k, v = self.parts(inputs).chunk(3, -1)
        weights = torch.einsum("rinc,rjnc->nij", q, k).softmax(-1)
        return torch.einsum("nij,rjnc->rinc", weights, v)


class Feed(nn.Module):
    def __init__(self, in_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(in_dim, in_dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x)
        return out


class PartsAttention(nn.Module):
    """Built of a module, which is built as well, and of one that may be none."""

    def __init__(self, ffn: Feed, norm: nn.Module | None) -> None:
        super().__init__()
        self.ffn, self.norm = ffn, norm or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.ffn(self.norm(x))
        return (out @ out.mT).softmax(-1) @ out


class ImagePositions(nn.Module):
    """A table for images whose channels stand last; it takes any four axes for these."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels // 2

    def forward(self, tensor: Tensor) -> Tensor:
        rows, high, wide, features = tensor.shape
        parts = [angles(torch.arange(n), self.channels).repeat(1, 2) for n in (high, wide)]
        table = torch.zeros(high, wide, 2 * self.channels)
        table[..., : self.channels] = parts[0].sin()[:, None]
        table[..., self.channels :] = parts[1].sin()
        return table[..., :features].expand(rows, -1, -1, -1)


class ChainAttention(nn.Module):
    """Attention of which a method alone can be called, as what no name says must be given."""

    def apply_rotary(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        at = angles(torch.arange(q.shape[-2]), q.shape[-1]).repeat(1, 2)
        q, k = (x * at.cos() + rotate_half(x) * at.sin() for x in (q, k))
        return q, k

    def forward(self, x: Tensor, chain: Tensor) -> Tensor:
        q, k = self.apply_rotary(x, x)
        return ((q @ k.mT) * chain).softmax(-1) @ x


class Latent(ChainAttention):
    """A layer whose name says nothing, with weights and a method that rotates."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        q, k = self.apply_rotary(x, x)
        found: Tensor = self.out((q @ k.mT).softmax(-1) @ x)
        return found


class Rotates(ChainAttention):
    """The same without weights, and without a call."""

    forward = nn.Module.forward


class PlacedAttention(PartsAttention):
    """Positions that its parameters let one leave out, and its source does not."""

    def forward(self, x: Tensor, position_ids: Tensor | None = None) -> Tensor:
        assert position_ids is not None
        return super().forward(x + position_ids[..., None])


class TokensFirstAttention(nn.Module):
    """Attention whose source says that tokens come before rows."""

    def __init__(self, embed_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        length, batch, dim = x.shape
        rows = x.transpose(0, 1)
        mixed: Tensor = (rows @ rows.mT / dim**0.5).softmax(-1) @ rows
        out: Tensor = self.out(mixed.transpose(0, 1))
        return out.reshape(length, batch, dim)


class ImageAttention(TokensFirstAttention):
    """The same over the places of an image, with another order of axes than that of its base."""

    def forward(self, x: Tensor) -> Tensor:
        rows, high, wide, width = x.shape
        out = super().forward(x.reshape(rows, high * wide, width).transpose(0, 1))
        return out.transpose(0, 1).reshape(rows, high, wide, width)


ROWS = "x: B n H D, freqs: n D/2"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (TablesRope, "q: B H n D, k: B G n D, position_ids: B n -> q, k; method adjusted"),
        (apply_rotary, "t: B H n D, pos: n D angles -> t"),
        (apply_rotary_part, "t: B H n D, pos: n D angles -> t"),
        (ImagePositions, "tensor: B h w E -> B h w E"),
        (
            precompute_cis,
            "dim = D, end = m -> pos: m D; then apply_cis(q: B H n D, pos: n D cis -> q)",
        ),
        (precompute_rows, f"dim = D, end = m -> freqs: m D/2; then apply_rows({ROWS} cis -> x)"),
        (ScoreBias, "qk_dots: B G r n -> 1 H r n"),
        (AddedBias, "qk_dots: B H r n -> B H r n; built with heads = H"),
        (OffsetBias, "x: B H r n tokens -> r n"),
        (one_of_keys_attention, "q: B H r D, k: B n D, v: B n D -> B H r D"),
        (LearnedPosEmb, "x: n coordinates -> n E"),
        (AxialPositions, "-> (h w) E; built with shape = (h, w)"),
        (PositionalEncoding, "x: B n E -> B n E"),
        (SeriesAttention, "inputs: B V n E, layer_idx = 0 -> B V n E"),
        (AcrossAttention, "inputs: B n V E, layer_idx = 0 -> B n V E"),
        (TiedAttention, "inputs: V n B E, layer_idx = 0 -> V n B E"),
        (PartsAttention, "x: B n E -> B n E"),
        (TokensFirstAttention, "x: n B E -> n B E"),
        (ImageAttention, "x: B h w E -> B h w E"),
        (PlacedAttention, "x: B n E, position_ids: B n positions -> B n E"),
    ],
)
def test_what_its_arrays_are_is_found(code: Any, line: str) -> None:
    assert adapted_as(code).line == line


def test_what_it_is_built_with_is_told() -> None:
    assert "--set rotary_emb=None use_fused=False" in adapted_as(SeriesAttention).adapted
    assert adapted_as(LearnedPosEmb).width == 17  # type: ignore[attr-defined]


def test_dropout_is_none_by_whatever_name() -> None:
    """A guess of 1 would drop everything, and divide by 0."""
    assert settings_for(Dropping, Options(), {}) == {"attention_probs_dropout_prob": 0.0}


class Dropping:
    def __init__(self, attention_probs_dropout_prob: Any) -> None: ...


def test_positions_that_are_added_are_absolute() -> None:
    """Where they are handed on, a row that is padded on the left stands elsewhere."""
    assert adapted_as(PlacedAttention).positional  # type: ignore[attr-defined]
    assert not adapted_as(SeriesAttention).positional  # type: ignore[attr-defined]


def test_a_layer_with_weights_is_no_rotation_for_a_method_of_it() -> None:
    assert adapted_as(Latent).kind == "attention"
    assert adapted_as(Latent, kind="rotary").line.endswith("method apply_rotary")
    assert adapted_as(Rotates).kind == "rotary"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (Tables, "objects of Tables cannot be called"),
        (ScaledRope, "rotates a token by the positions of others"),
        (RotaryTable, "suggests a rotary embedding"),
        (PlaceBias, "a number for each position"),
        (ChainAttention, "only one of its methods can be called so"),
    ],
)
def test_what_is_nearly_of_a_shape_is_refused(code: Any, why: str) -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(code, kind="bias" if code is PlaceBias else None)
    assert why in str(refused.value)

"""Calls of code in the styles of published libraries, each beside code with a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from attnproof.programs.call_forms.parts import attributes_read
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as


def cosine_attention(q: Tensor, k: Tensor, v: Tensor, logit_scale: Tensor) -> Tensor:
    """Scores are cosines times a factor for each head (H, 1, 1)."""
    cosines = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    return (cosines * logit_scale.clamp(max=4.6).exp()).softmax(-1) @ v


def cosines_across_heads(q: Tensor, k: Tensor, v: Tensor, logit_scale: Tensor) -> Tensor:
    cosines = F.normalize(q, dim=1) @ F.normalize(k, dim=1).mT
    return (cosines * logit_scale.exp()).softmax(-1) @ v


class CrossAttention(nn.Module):
    """Queries of 24 features read features of 40."""

    def __init__(self, q_dim: int = 24, kv_dim: int = 40, num_heads: int = 4) -> None:
        super().__init__()
        self.heads = num_heads
        self.q, self.kv = nn.Linear(q_dim, 32), nn.Linear(kv_dim, 64)
        self.proj = nn.Linear(32, q_dim)

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def forward(self, queries: Tensor, features: Tensor) -> Tensor:
        own = (self.q(queries), *self.kv(features).chunk(2, -1))
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in own)
        out: Tensor = self.proj((self.weights(q @ k.mT) @ v).transpose(1, 2).flatten(2))
        return out


class CrossAttentionOverRows(CrossAttention):
    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(0)


class PatchAttention(nn.Module):
    """Tables of angles that have a default, and which it cannot do without."""

    axis = -1

    def __init__(self, hidden_size: int = 32, num_heads: int = 4) -> None:
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)

    def rotated(self, x: Tensor, tables: Any) -> Any:
        cos, sin = tables
        return x * cos + torch.cat((-x.chunk(2, -1)[1], x.chunk(2, -1)[0]), -1) * sin

    def forward(self, x: Tensor, position_embeddings: Any = None) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = (self.rotated(y, position_embeddings) for y in (q, k))
        out: Tensor = ((q @ k.mT / 8).softmax(self.axis) @ v).transpose(1, 2).flatten(2)
        return out


class PatchAttentionOverRows(PatchAttention):
    axis = 0


class ComplexAttention(PatchAttention):
    """A table of complex numbers (1, n, D/2), by the name that two tables have elsewhere."""

    def rotated(self, x: Tensor, tables: Any) -> Any:
        assert tables.ndim == 3
        turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * tables
        return torch.view_as_real(turned).flatten(-2)


class ComplexAttentionOverRows(ComplexAttention):
    axis = 0


class PackedAttention(PatchAttention):
    """Images that are packed into one axis, with a row of a table for each token."""

    def pieces(self, cu_seqlens: Tensor) -> list[int]:
        found: list[int] = cu_seqlens.diff().tolist()
        return found

    def forward(  # type: ignore[override]
        self, x: Tensor, cu_seqlens: Tensor, position_embeddings: Any = None
    ) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(1, 2, 0, 3)
        assert position_embeddings[0].shape == x.shape[:1] + q.shape[-1:]
        q, k = (self.rotated(y, position_embeddings) for y in (q, k))
        each = zip(*(y.split(self.pieces(cu_seqlens), 1) for y in (q, k, v)), strict=True)
        parts = [(a @ b.mT / 8).softmax(-1) @ c for a, b, c in each]
        return torch.cat(parts, 1).transpose(0, 1).flatten(1)


class PackedAttentionAcrossImages(PackedAttention):
    def pieces(self, cu_seqlens: Tensor) -> list[int]:
        return [int(cu_seqlens[-1])]


class BiasedAttention(nn.Module):
    """One head whose scores are given a bias of positions."""

    def __init__(self, embed_dim: int = 16) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(embed_dim, embed_dim) for _ in range(3))

    def bias(self, given: Tensor) -> Tensor:
        return given[:, 0]

    def forward(self, x: Tensor, rel_pos_bias: Tensor, output_attentions: Any) -> Tensor:
        assert output_attentions is False
        scores = self.q(x) @ self.k(x).mT + self.bias(rel_pos_bias)
        out: Tensor = scores.softmax(-1) @ self.v(x)
        return out


class WithTheBiasOfTheFirstRow(BiasedAttention):
    def bias(self, given: Tensor) -> Tensor:
        return given[:1, 0]


class BertEmbeddings(nn.Module):
    """Words, token types and positions, all of them optional arguments."""

    def __init__(self, vocab_size: int = 100, hidden_size: int = 16, most: int = 64) -> None:
        super().__init__()
        self.words, self.types = (nn.Embedding(n, hidden_size) for n in (vocab_size, 2))
        self.positions, self.norm = nn.Embedding(most, hidden_size), nn.LayerNorm(hidden_size)

    def places(self, ids: Tensor) -> Tensor:
        return torch.arange(ids.shape[1])[None]

    def forward(
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        assert input_ids is not None
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        at = self.places(input_ids) if position_ids is None else position_ids
        out: Tensor = self.norm(self.words(input_ids) + self.types(types) + self.positions(at))
        return out


class BertEmbeddingsByRow(BertEmbeddings):
    def places(self, ids: Tensor) -> Tensor:
        return torch.arange(ids.shape[1]) + torch.arange(ids.shape[0])[:, None]


def sliding_window_mask(
    input_ids_shape: tuple[int, int], dtype: torch.dtype, device: str, sliding_window: int = 4
) -> Tensor:
    rows, n = input_ids_shape
    near = torch.ones(n, n, device=device).tril().triu(1 - sliding_window)
    return near.log().to(dtype).expand(rows, 1, n, n)


def window_without_later_queries(
    input_ids_shape: tuple[int, int], dtype: torch.dtype, device: str, sliding_window: int = 4
) -> Tensor:
    mask = sliding_window_mask(input_ids_shape, dtype, device, sliding_window).clone()
    mask[..., 20:, :] = 0.0
    return mask


def mask_at_cache_positions(
    attention_mask: Tensor, sequence_length: int, target_length: int, cache_position: Tensor
) -> Tensor:
    assert cache_position.shape == (sequence_length,)
    later = torch.arange(target_length) > cache_position[:, None]
    hidden = later | ~attention_mask[:, None, None].bool()
    return hidden.expand(-1, 1, sequence_length, -1) * torch.finfo(torch.float32).min


def mask_at_first_positions(
    attention_mask: Tensor, sequence_length: int, target_length: int, cache_position: Tensor
) -> Tensor:
    first = torch.arange(sequence_length) + 0 * cache_position
    return mask_at_cache_positions(attention_mask, sequence_length, target_length, first)


def turned(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)


def apply_rot_embed_cat(x: Tensor, emb: Tensor) -> Tensor:
    """Sines and then cosines, each a number for each channel, in one row."""
    sin, cos = emb.tensor_split(2, -1)
    return x * cos + turned(x) * sin


def apply_rot_embed_cat_of_one_sign(x: Tensor, emb: Tensor) -> Tensor:
    sin, cos = emb.tensor_split(2, -1)
    return x * cos + turned(x) * sin * torch.tensor([1.0, -1.0]).repeat(x.shape[-1] // 2)


def grouped_attention_forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Attention that reads the number of groups off the layer that calls it."""
    groups = module.num_key_value_groups
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    scores = query @ key.mT * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    sinks = module.sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    weights = torch.cat((scores, sinks), -1).softmax(-1)[..., :-1]
    weights = F.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def groups_in_turn_attention_forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
) -> tuple[Tensor, Tensor]:
    groups = getattr(module, "num_key_value_groups", 1)
    once = SimpleNamespace(num_key_value_groups=1, training=False, sinks=module.sinks)
    key, value = (x.repeat(1, groups, 1, 1) for x in (key, value))
    return grouped_attention_forward(once, query, key, value, attention_mask, scaling)


def attention_with_a_sink(layer: nn.Module, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    sink: Any = layer.sink
    scores = torch.cat((query @ key.mT, sink.expand(*query.shape[:3], 1)), -1)
    return scores.softmax(-1)[..., :-1] @ value


CAUSAL = DeclaredAttention(causal=True)
STYLES: dict[Any, tuple[Any, str, str]] = {
    cosine_attention: (
        cosines_across_heads,
        "q: B H r D, k: B H n D, v: B H n D, logit_scale: H 1 1 constant -> B H r D",
        "heads-apart",
    ),
    CrossAttention: (
        CrossAttentionOverRows,
        "queries: B r E tokens, features: B n 40 tokens -> B r E",
        "rows-of-batch-apart",
    ),
    PatchAttention: (
        PatchAttentionOverRows,
        "x: B n E, position_embeddings = (cos: 1 n D, sin: 1 n D) -> B n E",
        "rows-of-batch-apart",
    ),
    ComplexAttention: (
        ComplexAttentionOverRows,
        "x: B n E, position_embeddings: 1 n D/2 cis -> B n E",
        "rows-of-batch-apart",
    ),
    PackedAttention: (
        PackedAttentionAcrossImages,
        (
            "x: (B n) E, cu_seqlens: (B + 1) bounds, "
            "position_embeddings = (cos: (B n) D, sin: (B n) D) -> (B n) E"
        ),
        "rows-of-batch-apart",
    ),
    BiasedAttention: (
        WithTheBiasOfTheFirstRow,
        "x: B n E, output_attentions = False, rel_pos_bias: B 1 1 n add -> B n E",
        "hidden-keys-do-nothing",
    ),
    BertEmbeddings: (
        BertEmbeddingsByRow,
        "input_ids: B n ids -> B n E",
        "rows-of-batch-apart",
    ),
    sliding_window_mask: (
        window_without_later_queries,
        'input_ids_shape = (B, n), dtype = torch.float32, device = "cpu" -> B 1 n n add',
        "causal",
    ),
    mask_at_cache_positions: (
        mask_at_first_positions,
        (
            "attention_mask: B n keep, sequence_length = r, target_length = n, "
            "cache_position: r positions -> B 1 r n add"
        ),
        "alignment",
    ),
    apply_rot_embed_cat: (
        apply_rot_embed_cat_of_one_sign,
        "x: B H n D, emb: n (2 D) sin_cos -> x",
        "relative",
    ),
    grouped_attention_forward: (
        groups_in_turn_attention_forward,
        (
            "query: B H r D, key: B G n D, value: B G n D, module = "
            "namespace(num_key_value_groups = H/G, sinks: H constant, training = False), "
            "scaling: scale, "
            "attention_mask: B 1 r n add -> B r H D, weights: B H r n"
        ),
        "groups-of-heads",
    ),
}


@pytest.mark.parametrize("code", STYLES)
def test_it_is_called_by_its_bare_name(code: Any) -> None:
    fault, line, law = STYLES[code]
    told: dict[str, Any] = {"kind": "mask", "declared": CAUSAL} if "mask" in code.__name__ else {}
    guessed = adapted_as(code, **told)
    assert guessed.line == line
    (found,) = examine(guessed, laws=[law])
    assert found.verdict == "holds"
    told = told or {"kind": guessed.kind}
    again, wrong = (adapted_as(one, line, **told) for one in (code, fault))
    assert again.line == line
    (found,) = examine(wrong, laws=[law])
    assert found.verdict == "broken"


def test_a_module_is_given_only_attributes_that_are_known() -> None:
    with pytest.raises(NoAdapter, match=r"write layer = namespace\(sink = \.\.\)"):
        adapted_as(attention_with_a_sink)
    asked = adapted_as(groups_in_turn_attention_forward)
    assert "module = namespace(sinks: H constant, num_key_value_groups = H/G)" in asked.line


def test_only_what_names_an_attribute_is_read_off_a_source() -> None:
    text = (
        "def f(m, n):\n    return m.b + n.c + m.a.d + getattr(*m) + hasattr(m, n) + getattr(m, 'e')"
    )
    assert attributes_read(text, "m") == (["b", "a"], ["e"])
    assert attributes_read("no source", "m") == ([], [])

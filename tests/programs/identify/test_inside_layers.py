"""What is read inside a layer whose projections can be set: its scale, groups, places, formats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, softmax

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.execution.draw import Draw
from attnproof.programs.identify import identify
from attnproof.programs.identify.remarks import remarks_on
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as


class Config:
    """As libraries write them, with sizes of their own."""

    def __init__(self, hidden_size: int = 64, num_heads: int = 8, num_kv_heads: int = 4) -> None:
        self.hidden_size, self.num_heads, self.num_kv_heads = hidden_size, num_heads, num_kv_heads


class Rotating(nn.Module):
    """Causal attention with groups, in a window of four keys, rotated by place: correct."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.num_heads, self.groups = config.num_heads, config.num_kv_heads
        self.width = config.hidden_size // config.num_heads
        self.sliding_window, self.scaling = 4, self.scale()
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.k_proj = nn.Linear(config.hidden_size, self.groups * self.width)
        self.v_proj = nn.Linear(config.hidden_size, self.groups * self.width)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size)

    def rotate(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2])[:, None]
        angles = places * 100.0 ** -torch.arange(0, 1, 2 / self.width)
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def rotate_query(self, x: Tensor) -> Tensor:
        return self.rotate(x)

    def repeat(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.num_heads // self.groups, 1)

    def scale(self) -> float:
        return 1 / math.sqrt(self.width)

    def weigh(self, scores: Tensor) -> Tensor:
        return softmax(scores, -1)

    def visible(self, distance: Tensor) -> Tensor:
        return (distance >= 0) & (distance < self.sliding_window)

    def forward(self, hidden_states: Tensor) -> Tensor:
        q, k, v = (
            one(hidden_states).unflatten(-1, (-1, self.width)).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k, v = self.scaling * self.rotate_query(q), self.repeat(self.rotate(k)), self.repeat(v)
        places = torch.arange(q.shape[2])
        visible = self.visible(places[:, None] - places)
        weights = self.weigh((q @ k.mT).masked_fill(~visible, -torch.inf))
        out: Tensor = self.o_proj((weights @ v).transpose(1, 2).flatten(2))
        return out


class OfAllHeads(Rotating):
    def scale(self) -> float:
        return 1 / math.sqrt(self.width * self.num_heads)


class OfTheirNumber(Rotating):
    def scale(self) -> float:
        return 1 / math.sqrt(self.num_heads)


class Tiled(Rotating):
    def repeat(self, x: Tensor) -> Tensor:
        return x.repeat(1, self.num_heads // self.groups, 1, 1)


class KeysAlone(Rotating):
    def rotate_query(self, x: Tensor) -> Tensor:
        return x


class Halved(Rotating):
    def weigh(self, scores: Tensor) -> Tensor:
        return softmax(scores, -1, dtype=torch.float16).to(scores.dtype)


class OverQueries(Rotating):
    def weigh(self, scores: Tensor) -> Tensor:
        return softmax(scores, -2)


class Everything(Rotating):
    def visible(self, distance: Tensor) -> Tensor:
        return distance >= 0


class Detached(Rotating):
    def rotate_query(self, x: Tensor) -> Tensor:
        return self.rotate(x.detach())


FAULTS: dict[type[Rotating], str] = {
    OfAllHeads: "scale",
    OfTheirNumber: "scale",
    Tiled: "grouping",
    KeysAlone: "scores",
    Halved: "format",
    OverQueries: "softmax",
    Everything: "window",
    Detached: "weights",
}


def remarks(thing: Any) -> set[str]:
    code = adapted_as(thing)
    return {one.about for one in remarks_on(code, identify(code), thing)}


@pytest.mark.parametrize("made", FAULTS, ids=lambda one: one.__name__)
def test_a_fault_inside_a_layer_is_told(made: type[Rotating]) -> None:
    assert FAULTS[made] in remarks(made)


def test_a_correct_layer_is_told_as_it_is() -> None:
    assert not remarks(Rotating)
    words = identify(adapted_as(Rotating)).sentence
    assert "scale 1/√D = 0.353553, 4 heads on 2 groups, each repeated" in words
    assert "a window of 4 keys" in words


class Joint(nn.Module):
    """Queries, keys and values by one projection."""

    def __init__(self, embed_dim: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(embed_dim, 3 * embed_dim), nn.Linear(embed_dim, embed_dim)
        self.heads = heads

    def values(self, k: Tensor, v: Tensor) -> Tensor:
        return v if k.shape == v.shape else k

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        found = scaled_dot_product_attention(q, k, self.values(k, v))
        out: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return out


class ByHead(Joint):
    """As in GPT-NeoX, each head has its query, key and value side by side."""

    @staticmethod
    def weighted(scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (self.heads, 3, -1)).permute(3, 0, 2, 1, 4)
        found = self.weighted(q @ k.mT / q.shape[-1] ** 0.5) @ v
        out: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return out


class MoreByKeys(ByHead):
    @staticmethod
    def weighted(scores: Tensor) -> Tensor:
        return scores.softmax(-1) * scores.shape[-1]


def test_a_joint_projection_may_hold_the_parts_of_each_head_side_by_side() -> None:
    assert "scale 1/√D = 0.353553, 2 heads" in identify(adapted_as(ByHead)).sentence
    verdicts = [
        examine(adapted_as(one), (Draw(),), ("rows-sum-to-one",))[0] for one in (ByHead, MoreByKeys)
    ]
    assert verdicts[0].verdict == "holds"
    assert verdicts[1].verdict == "broken"


class KeysAsValues(Joint):
    def values(self, k: Tensor, v: Tensor) -> Tensor:  # noqa: ARG002
        return k


def test_a_part_of_a_joint_projection_that_is_not_used_is_told() -> None:
    assert "scale 1/√D = 0.353553, 2 heads" in identify(adapted_as(Joint)).sentence
    assert not remarks(Joint)
    assert "no gradient reaches channels 32 to 47 of qkv" in (
        identify(adapted_as(KeysAsValues)).sentence
    )
    assert "weights" in remarks(KeysAsValues)


def half_rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.half().chunk(2, -1)
    cos, sin = cos.half(), sin.half()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def test_a_rotation_in_a_shorter_format_is_told() -> None:
    line = "x: B H n D, cos: n D/2, sin: n D/2 -> x"
    code = adapted_as(half_rotated, line)
    assert "numbers rounded to float16 inside" in identify(code).sentence
    assert [one.about for one in remarks_on(code, identify(code), half_rotated)] == ["format"]


class Biased(Joint):
    """Adds a bias that is looked up between its projections, and has no scale."""

    def __init__(self, embed_dim: int = 16, heads: int = 2) -> None:
        super().__init__(embed_dim, heads)
        self.bias = nn.Embedding(9, heads)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        places = torch.arange(x.shape[1])
        offsets = (places[:, None] - places).clamp(-4, 4) + 4
        scores = q @ k.mT + self.bias(offsets).permute(2, 0, 1)
        out: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return out


def test_a_scale_is_read_beside_a_bias() -> None:
    assert "scale 1, 2 heads" in identify(adapted_as(Biased)).sentence


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Given(nn.Module):
    """Attention that is given its angles and its causal mask, as in transformers."""

    is_causal = True

    def __init__(self, hidden_size: int = 16, num_heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.num_heads = nn.Linear(hidden_size, 3 * hidden_size), num_heads

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor] | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        parts = self.qkv(hidden_states).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in parts)
        cos, sin = position_embeddings  # type: ignore[misc]
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q, k = (one * cos + rotate_half(one) * sin for one in (q, k))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        out: Tensor = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return out


def test_causal_attention_is_given_its_mask_also_beside_tables_made_here() -> None:
    code: Any = adapted_as(Given)
    assert code.declared == DeclaredAttention(causal=True, positions="relative")
    assert code.given["mask"] == "a causal mask made here"
    assert [one.verdict for one in examine(code, laws=["causal"])] == ["holds"]


class Multiplied(nn.Module):
    """Weights that are hidden after the softmax, by the exponential of an additive mask."""

    def __init__(self, hidden_size: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.heads = nn.Linear(hidden_size, 3 * hidden_size), heads

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.softmax(-1) * mask.exp()

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        parts = self.qkv(hidden_states).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        none = torch.zeros(()) if attention_mask is None else attention_mask
        out: Tensor = (self.weigh(scores, none) @ v).transpose(1, 2).flatten(2)
        return out


class Added(Multiplied):
    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + mask).softmax(-1)


@pytest.mark.parametrize(("made", "verdict"), [(Multiplied, "broken"), (Added, "holds")])
def test_an_additive_mask_that_leaks_is_checked(
    made: Callable[[], nn.Module], verdict: str
) -> None:
    laws = ["hidden-keys-do-nothing", "padding-does-nothing"]
    assert {one.verdict for one in examine(adapted_as(made), laws=laws)} == {verdict}


class MoreThanOne(Added):
    """Divides by the sum and a small number: how much is missing differs from query to query."""

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        found = (scores + mask - scores.amax(-1, keepdim=True)).exp()
        return found / (found.sum(-1, keepdim=True) + 0.01)


@pytest.mark.parametrize(("made", "verdict"), [(MoreThanOne, "undecided"), (Added, "holds")])
def test_weights_that_nearly_add_up_to_one_are_not_measured_to(
    made: Callable[[], nn.Module], verdict: str
) -> None:
    (found,) = examine(adapted_as(made), laws=["rows-sum-to-one"])
    assert found.verdict == verdict

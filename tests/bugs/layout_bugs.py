"""Bugs of layouts: which channels are rotated together, and the one that has no partner."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_code import AxesRope, Rope, SectionedRope, ladder, plain_interleaved, rotary


def rotated_neighbours(x: Tensor) -> Tensor:
    """Each pair of neighbours rotated by a right angle: (a, b) -> (−b, a)."""
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)


class HalfTableOnNeighbours(Rope):
    """The table lists the angles twice, one half after the other; neighbours are rotated."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        table = torch.cat((angles, angles), -1)[:, None]
        return x * table.cos() + rotated_neighbours(x) * table.sin()


@bug(
    "P01",
    "huggingface/transformers#47328",
    "huggingface/transformers#47403",
    title="half-split table, interleaved rotation",
    symptom="worse audio, no error",
    law="relative",
    correct=plain_interleaved,
    obeys=("identity-at-zero", "linear"),
)
def half_table_on_neighbours() -> Rotary:
    return rotary(lambda: HalfTableOnNeighbours(layout="interleaved"))


class TiledOnOneAxis(AxesRope):
    """Frame, row and column rotate a block each; the table of the frames is tiled, not repeated."""

    def rotate_block(self, x: Tensor, positions: Tensor, axis: int) -> Tensor:
        product = torch.einsum("bt,f->btf", positions.float(), ladder(self.block, self.base))
        table = product.tile(2) if axis == 0 else product.repeat_interleave(2, -1)
        return x * table.cos()[:, None] + rotated_neighbours(x) * table.sin()[:, None]


@bug(
    "P02",
    "facebookresearch/vjepa2#15",
    title="one axis of three with a tiled table",
    symptom="none: the published weights were trained with it",
    law="relative",
    correct=lambda: rotary(lambda: AxesRope(axes=3)),
    obeys=("identity-at-zero",),
)
def tiled_on_one_axis() -> Rotary:
    return rotary(lambda: TiledOnOneAxis(axes=3))


@bug(
    "P03",
    "vllm-project/vllm#747",
    "vllm-project/vllm#941",
    title="half-split kernel for weights that are interleaved",
    symptom="wrong text for one family of models",
    law="layout-as-declared",
    correct=plain_interleaved,
    obeys=("relative", "norm", "composition"),
)
def half_declared_interleaved() -> Rotary:
    declared = DeclaredRotary(base=10000.0, layout="interleaved", width=8)
    return rotary(Rope, declared=declared)


def to_interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows of a projection (heads·D, E): channels i, i + D/2 of each head become 2i, 2i + 1."""
    pairs = weight.reshape(heads, 2, -1, weight.shape[1])
    return pairs.transpose(1, 2).flatten(0, 2)


def converted() -> Rotary:
    return rotary(
        Rope,
        converts_to=plain_interleaved(),
        convert=lambda _: lambda q, k, heads: (to_interleaved(q, heads), to_interleaved(k, heads)),
    )


@bug(
    "P04a",
    "huggingface/nanotron#427",
    "huggingface/nanotron#241",
    title="conversion of the layout permutes queries, not keys",
    symptom="converted checkpoints silently corrupted",
    law="conversion-keeps-scores",
    correct=converted,
    obeys=("relative", "layout-as-declared"),
)
def converts_queries_only() -> Rotary:
    return rotary(
        Rope,
        converts_to=plain_interleaved(),
        convert=lambda _: lambda q, k, heads: (to_interleaved(q, heads), k),
    )


@bug(
    "P04b",
    "huggingface/nanotron#427",
    "huggingface/nanotron#241",
    title="conversion of the layout permutes nothing: the flag is never passed",
    symptom="converted checkpoints silently corrupted",
    law="conversion-keeps-scores",
    correct=converted,
    obeys=("relative", "layout-as-declared"),
)
def converts_nothing() -> Rotary:
    def convert(
        q: Tensor, k: Tensor, heads: int, *, interleaved: bool = False
    ) -> tuple[Tensor, Tensor]:
        return (to_interleaved(q, heads), to_interleaved(k, heads)) if interleaved else (q, k)

    return rotary(Rope, converts_to=plain_interleaved(), convert=lambda _: convert)


class ManyAxesAlwaysHalf(SectionedRope):
    """The path of positions with three coordinates does not look at the layout."""

    def many(self, x: Tensor, positions: Tensor) -> Tensor:
        own = positions.float()[..., self.axis_of_pair] * self.frequencies()
        a, b = x.chunk(2, -1)
        cos, sin = own.cos()[:, None], own.sin()[:, None]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


@bug(
    "P05",
    "vllm-project/vllm#49290",
    "vllm-project/vllm#42016",
    "vllm-project/vllm#42765",
    "vllm-project/vllm#49323",
    title="the three-axis path ignores the layout, the one-axis path honours it",
    symptom="images garbled, text fine",
    law="equal-axes-are-one",
    correct=lambda: rotary(SectionedRope),
    obeys=("relative", "norm"),
)
def many_axes_always_half() -> Rotary:
    return rotary(ManyAxesAlwaysHalf)


# bugs of odd widths: the channel that has no partner is lost


THREADS = (
    "huggingface/transformers#35219",
    "huggingface/transformers#35233",
    "huggingface/transformers#48101",
    "huggingface/transformers#48217",
    "huggingface/transformers#48524",
)


class Odd(Rope):
    """A head of 5 channels: four rotate, the last has no partner and passes."""

    def __init__(self, width: int = 5) -> None:
        super().__init__(width)

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(layout=self.layout)


def odd() -> Rotary:
    return rotary(Odd)


class LastZeroed(Odd):
    """Writes the rotated pairs into an empty head."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        rotated = super().apply_to(x, angles)[..., : self.rotated]
        return pad(rotated, (0, self.width - self.rotated))


@bug(
    "P61a",
    *THREADS,
    title="an odd width is accepted, the last channel zeroed",
    symptom="shape errors deep in the layer; here, a channel is lost",
    law="odd-widths",
    correct=odd,
)
def last_channel_zeroed() -> Rotary:
    return rotary(LastZeroed)


class LastDropped(Odd):
    """Returns the rotated pairs, and nothing of the channel that has no partner."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        return super().apply_to(x, angles)[..., : self.rotated]


@bug(
    "P61b",
    *THREADS,
    title="an odd width is accepted, the last channel dropped",
    symptom="shape errors deep in the layer; here, a channel is lost",
    law="odd-widths",
    correct=odd,
)
def last_channel_dropped() -> Rotary:
    return rotary(LastDropped)

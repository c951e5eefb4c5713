"""Bugs of calls that follow each other: caches, padding, training and evaluation."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.subjects import Attention, Mask

from .attention_code import (
    AttentionLayer,
    Cache,
    Dropping,
    Eager,
    attention,
    causal_mask,
    eager_mask,
    layered,
)
from .bias_code import AlibiLayer
from .corpus import bug
from .plain_code import angles_of, ladder, turn_half


class RotaryLayer(AttentionLayer):
    """Each row counts its positions from its first token, which stands after its padding."""

    positions = "relative"

    def places(self, first: int, count: int, pads: Tensor | None) -> Tensor:
        """Positions (1 or B, c) of the tokens; those of padding are negative."""
        running = torch.arange(first, first + count)[None]
        return running if pads is None else running - pads[:, None]

    def rotated(self, x: Tensor, first: int, pads: Tensor | None) -> Tensor:
        places = self.places(first, x.shape[-2], pads)
        return turn_half(x, angles_of(places, ladder(self.width))[:, None])


def padded_rotary() -> Attention:
    return layered(
        RotaryLayer,
        padded_step=lambda layer: layer.padded_step,
        hide=lambda layer: lambda x, keep: layer(x, keep=keep)[0],
    )


class OnePositionForAllRows(RotaryLayer):
    """A step takes one position for the whole batch, that of the row without padding."""

    def places(self, first: int, count: int, pads: Tensor | None) -> Tensor:
        return super().places(first, count, pads if first == 0 else None)


@bug(
    "P08",
    "unslothai/unsloth#3699",
    "unslothai/unsloth#3795",
    "unslothai/unsloth#3803",
    "unslothai/unsloth#4078",
    title="decoding gives every row of a padded batch the position of the longest",
    symptom="short prompts in a padded batch give garbage",
    law="padding-does-nothing",
    correct=padded_rotary,
    obeys=("step-by-step", "causal", "rows-of-batch-apart"),
)
def one_position_for_all_rows() -> Attention:
    return layered(
        OnePositionForAllRows,
        padded_step=lambda layer: layer.padded_step,
        hide=lambda layer: lambda x, keep: layer(x, keep=keep)[0],
    )


def plain_cached() -> Attention:
    return layered(AttentionLayer)


class FromTheFirstKey(Eager):
    """Indices of queries and keys are compared as if both began with the first token."""

    def seen(self, queries: int, keys: int) -> Tensor:
        return torch.arange(queries)[:, None] >= torch.arange(keys)


class StartAlignedLayer(AttentionLayer):
    """The causal mask of a cached step is made from two indices that both begin at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.order = FromTheFirstKey(causal=True)


@bug(
    "P15a",
    "pytorch/pytorch#144858",
    "pytorch/pytorch#108108",
    "pytorch/pytorch#103082",
    "lucidrains/x-transformers#187",
    title="the causal mask compares indices without the length of the cache",
    symptom="decoding one token returns the first value",
    law="step-by-step",
    correct=plain_cached,
    obeys=("causal", "rows-of-batch-apart"),
)
def start_aligned_layer() -> Attention:
    return layered(StartAlignedLayer)


@bug(
    "P15b",
    "pytorch/pytorch#144858",
    "pytorch/pytorch#108108",
    "pytorch/pytorch#103082",
    title="attention that is causal from the first key on, called with one query and a cache",
    symptom="decoding one token returns the first value",
    law="alignment",
    correct=lambda: attention(lambda: Eager(causal=True), masks=()),
    obeys=("rows-sum-to-one", "heads-apart"),
)
def start_aligned_attention() -> Attention:
    return attention(lambda: FromTheFirstKey(causal=True), masks=())


@bug(
    "P15c",
    "pytorch/pytorch#144858",
    "lucidrains/x-transformers#187",
    title="the same as a function that makes masks",
    symptom="decoding one token returns the first value",
    law="alignment",
    correct=eager_mask,
    obeys=("causal", "true-means-visible"),
)
def start_aligned_mask() -> Mask:
    return causal_mask(FromTheFirstKey(causal=True).seen)


class SquareMaskLayer(AttentionLayer):
    """The mask is square in the length of the chunk, and laid over the cache from its first key."""

    def mask(self, queries: int, cache: Cache | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002
        square = self.order.seen(queries, queries)
        rest = torch.ones(queries, len(cache or ()), dtype=torch.bool)
        return torch.cat((square, rest), -1)


@bug(
    "P16",
    "meta-llama/llama#899",
    "meta-llama/llama#900",
    title="the mask has the size of the chunk, not of chunk and cache",
    symptom="the second chunk crashes, or its tokens see each other",
    law="step-by-step",
    correct=plain_cached,
    obeys=("causal", "rows-of-batch-apart"),
)
def square_mask_layer() -> Attention:
    return layered(SquareMaskLayer)


class UnmaskedWithCache(AttentionLayer):
    """Whoever passes a cache is taken to feed one token, and gets no mask."""

    def mask(self, queries: int, cache: Cache | None, keep: Tensor | None) -> Tensor | None:
        return super().mask(queries, cache, keep) if cache is None else None


@bug(
    "P17",
    "Mikyx-1/TinyLLM#17",
    "Mikyx-1/TinyLLM#18",
    title="no mask as soon as there is a cache",
    symptom="garbage at a low training loss; one token at a time is right",
    law="step-by-step",
    correct=plain_cached,
    obeys=("causal", "rows-of-batch-apart"),
)
def unmasked_with_cache() -> Attention:
    return layered(UnmaskedWithCache)


class AlibiOfQueries(AlibiLayer):
    """The bias is built over the queries: one row, one column, a zero that broadcasts."""

    def lengths(self, queries: int, keys: int) -> tuple[int, int]:  # noqa: ARG002
        return queries, queries


@bug(
    "P18",
    "keras-team/keras-hub#2861",
    "keras-team/keras-hub#2977",
    title="ALiBi built over the length of the queries",
    symptom="chunks crash, and steps of one token have no ALiBi at all",
    law="step-by-step",
    correct=lambda: layered(AlibiLayer),
    obeys=("causal", "rows-of-batch-apart"),
)
def alibi_of_queries() -> Attention:
    return layered(AlibiOfQueries)


# bugs between training and evaluation


def dropping(build: type[Dropping] = Dropping) -> Attention:
    """The subject of a layer that drops 0.3 of its weights while it is trained."""
    return layered(build, cached=False, dropout=0.3)


class DropsAlways(Dropping):
    """The functional form is called with the probability, and does not know of evaluation."""

    def probability(self) -> float:
        return self.dropout


@bug(
    "P50",
    "huggingface/pytorch-image-models#1978",
    "pytorch/pytorch#124464",
    title="weights are dropped in evaluation too",
    symptom="evaluation cannot be repeated",
    law="evaluation-repeats",
    correct=dropping,
    obeys=("training-returns", "no-mutation"),
)
def drops_always() -> Attention:
    return dropping(DropsAlways)


class ForgetsToDrop(Dropping):
    """A call in evaluation writes 0 where the probability is kept."""

    def probability(self) -> float:
        if not self.training:
            self.dropout = 0.0
        return self.dropout


@bug(
    "P51",
    "NVIDIA/Megatron-LM#411",
    title="the first evaluation sets the probability to 0 for good",
    symptom="nothing is dropped after the first evaluation",
    law="training-returns",
    correct=dropping,
    obeys=("evaluation-repeats", "permutation", "rows-of-batch-apart"),
)
def forgets_to_drop() -> Attention:
    return dropping(ForgetsToDrop)

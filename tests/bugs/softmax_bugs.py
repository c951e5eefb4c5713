"""Bugs of the scale of scores and of their softmax."""

from __future__ import annotations

import math

from torch import Tensor

from attnproof.programs.subjects import Attention

from .attention_code import EMBED, Eager, attention, eager
from .corpus import bug


class Unscaled(Eager):
    """What is written for the case that no fast kernel is there calls itself with scale 1."""

    def scale(self, q: Tensor) -> float:  # noqa: ARG002
        return 1.0


def with_fallback(fallback: Eager) -> Attention:
    """Attention with a second way to its result."""
    return attention(Eager, paths={"fallback": fallback})


NO_SCALE = "mlc-ai/mlc-llm#3426"


@bug(
    "P24a",
    NO_SCALE,
    title="the fallback has no scale, and is the only path",
    symptom="cosine with the reference 0.862",
    law="scale-as-declared",
    correct=eager,
    obeys=("rows-sum-to-one", "order-of-keys", "groups-of-heads"),
)
def fallback_alone() -> Attention:
    return attention(Unscaled)


@bug(
    "P24b",
    NO_SCALE,
    title="the fallback has no scale, unlike the main path",
    symptom="cosine with the reference 0.862",
    law="paths-agree",
    correct=lambda: with_fallback(Eager()),
    obeys=("scale-as-declared",),
)
def fallback_beside() -> Attention:
    return with_fallback(Unscaled())


class DividedByInverse(Eager):
    """Divides by a factor that is 1/√D already."""

    def scale(self, q: Tensor) -> float:
        factor = float(q.shape[-1] ** -0.5)
        return 1 / factor


@bug(
    "P25",
    "esceptico/perceiver-io#9",
    title="scores are divided by 1/√D",
    symptom="the model still trains",
    law="scale-as-declared",
    correct=eager,
    obeys=("rows-sum-to-one", "order-of-keys", "groups-of-heads"),
)
def divided_by_inverse() -> Attention:
    return attention(DividedByInverse)


class ScaledByEmbedding(Eager):
    """1/√(width of a token) in place of 1/√(width of a head): the same for one head only."""

    def __init__(self, embed: int = EMBED) -> None:
        super().__init__()
        self.embed = embed

    def scale(self, q: Tensor) -> float:  # noqa: ARG002
        return float(self.embed**-0.5)


@bug(
    "P26",
    "FareedKhan-dev/train-llm-from-scratch#3",
    "FrancescoSaverioZuppichini/ViT#1",
    title="scale from the width of the token, not of the head",
    symptom="the model still trains",
    law="scale-as-declared",
    correct=eager,
    obeys=("rows-sum-to-one", "order-of-keys", "groups-of-heads"),
)
def scaled_by_embedding() -> Attention:
    return attention(ScaledByEmbedding)


# bugs of the softmax: its axis, and what it does with large scores


class OverQueries(Eager):
    """The softmax runs over the queries: columns add up to 1, rows do not."""

    def weights(self, scores: Tensor) -> Tensor:
        return super().weights(scores.mT).mT


@bug(
    "P48",
    "labmlai/annotated_deep_learning_paper_implementations#146",
    title="softmax over the queries",
    symptom="none: within 0.05 of the FID of the right model",
    law="rows-sum-to-one",
    correct=lambda: attention(Eager, masks=()),
    obeys=("order-of-keys", "heads-apart"),
)
def over_queries() -> Attention:
    return attention(OverQueries, masks=())


class WithoutMaximum(Eager):
    """exp over its sum, without the largest score taken off first."""

    def weights(self, scores: Tensor) -> Tensor:
        grown = scores.exp()
        total = grown.sum(-1, keepdim=True)
        return grown / total.masked_fill((scores == -math.inf).all(-1, keepdim=True), 1.0)


@bug(
    "P49",
    "pytorch/executorch#18407",
    "NVIDIA/DeepLearningExamples#169",
    title="softmax without subtracting the maximum",
    symptom="NaN in a model whose scores reach 151",
    law="shift-of-scores",
    correct=eager,
    obeys=("rows-sum-to-one", "order-of-keys", "scale-as-declared"),
)
def without_maximum() -> Attention:
    return attention(WithoutMaximum)

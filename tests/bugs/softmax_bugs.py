"""Bugs of the softmax: its axis, and what it does with large scores."""

from __future__ import annotations

import math

from torch import Tensor

from attnproof.programs.subjects import Attention

from .attention_code import Eager, attention
from .corpus import bug


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
    title="exp over its sum, without the maximum",
    symptom="NaN in a model whose scores reach 151",
    law="shift-of-scores",
    correct=lambda: attention(Eager),
    obeys=("rows-sum-to-one", "order-of-keys", "scale-as-declared"),
)
def without_maximum() -> Attention:
    return attention(WithoutMaximum)

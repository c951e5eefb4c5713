"""Bugs between training and evaluation."""

from __future__ import annotations

from attnproof.programs.subjects import Attention

from .attention_code import Dropping, layered
from .corpus import bug


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

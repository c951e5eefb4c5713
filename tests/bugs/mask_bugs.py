"""Bugs of masks: what hides, what is hidden, and on which path."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.subjects import Attention, Mask

from .attention_code import HEADS, AttentionLayer, Cache, Eager, attention, causal_mask, layered
from .corpus import bug


class PlainSoftmax(Eager):
    """The softmax of scores that are all −inf is zero over zero."""

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)


class LowestNumber(Eager):
    """Hidden scores are the lowest number there is: if all are, all keys are equally likely."""

    def weights(self, scores: Tensor) -> Tensor:
        return scores.clamp(min=torch.finfo(scores.dtype).min).softmax(-1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        k, v = (self.repeated(kv, q.shape[1]) for kv in (k, v))
        return self.weights(self.masked((q @ k.mT) * self.scale(q), mask)) @ v


HIDDEN_ROW = ("pytorch/pytorch#103963", "pytorch/pytorch#103749")


@bug(
    "P36a",
    *HIDDEN_ROW,
    title="softmax of scores that are all −inf",
    symptom="NaN spreads through the batch",
    law="hidden-rows",
    correct=lambda: attention(Eager),
    obeys=("rows-sum-to-one", "scale-as-declared"),
)
def plain_softmax() -> Attention:
    return attention(PlainSoftmax)


@bug(
    "P36b",
    *HIDDEN_ROW,
    title="hidden scores are the lowest finite number",
    symptom="a query that sees nothing reads the mean of all that is hidden",
    law="hidden-rows",
    correct=lambda: attention(Eager),
    obeys=("rows-sum-to-one", "scale-as-declared"),
)
def lowest_number() -> Attention:
    return attention(LowestNumber)


class NumbersHide(Eager):
    """What is not zero in a mask of numbers hides."""

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None and mask.dtype != torch.bool:
            mask = mask == 0
        return super().masked(scores, mask)


@bug(
    "P37",
    "pytorch/pytorch#107084",
    "pytorch/pytorch#107641",
    "pytorch/pytorch#118628",
    "pytorch/pytorch#92554",
    title="the fast path takes a mask of numbers for one of truth values",
    symptom="evaluation differs from training, and gives NaN",
    law="mask-adds",
    correct=lambda: attention(Eager, paths={"slow": Eager()}),
    obeys=("rows-sum-to-one", "true-means-visible"),
)
def numbers_hide() -> Attention:
    return attention(NumbersHide, paths={"slow": Eager()})


class CallsFused(AttentionLayer):
    """The layer makes its causal mask itself and hands it to the fused kernel."""

    def handed(self, seen: Tensor, dtype: torch.dtype) -> Tensor:
        """What the kernel is given: True where a key is seen, or numbers to add."""
        return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)

    def forward(self, x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Cache]:
        q = self.split(self.query(x), HEADS)
        k, v = (self.split(p(x), self.groups) for p in (self.key, self.value))
        mask = self.handed(self.order.seen(x.shape[1], x.shape[1]), x.dtype)
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.output(out.transpose(1, 2).flatten(2)), Cache()


def calls_fused() -> Attention:
    return layered(CallsFused, cached=False)


class CastToTruth(CallsFused):
    """A mask of numbers cast to truth values: 0 is False, and False hides."""

    def handed(self, seen: Tensor, dtype: torch.dtype) -> Tensor:
        return super().handed(seen, dtype).bool()


@bug(
    "P38",
    "huggingface/transformers#38094",
    title="a mask of numbers is cast to truth values",
    symptom="tokens attend to what comes after them only",
    law="causal",
    correct=calls_fused,
    obeys=("rows-of-batch-apart", "evaluation-repeats"),
)
def cast_to_truth() -> Attention:
    return layered(CastToTruth, cached=False)


class TrueHides(CallsFused):
    """True means hide in the code that makes the mask, and keep in the kernel."""

    def handed(self, seen: Tensor, dtype: torch.dtype) -> Tensor:  # noqa: ARG002
        return torch.ones_like(seen).triu(1)


TRUE_HIDES = ("rasbt/LLMs-from-scratch#1062", "pytorch/pytorch#170415")


@bug(
    "P39a",
    *TRUE_HIDES,
    title="a mask that hides goes where one is wanted that keeps",
    symptom="later tokens are used",
    law="causal",
    correct=calls_fused,
    obeys=("rows-of-batch-apart", "evaluation-repeats"),
)
def true_hides() -> Attention:
    return layered(TrueHides, cached=False)


class TrueHidesInCore(Eager):
    """Attention that hides where its mask is True, though True is said to keep."""

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None and mask.dtype == torch.bool:
            mask = ~mask
        return super().masked(scores, mask)


@bug(
    "P39b",
    *TRUE_HIDES,
    title="attention that hides where a mask is True, said to keep there",
    symptom="later tokens are used",
    law="true-means-visible",
    correct=lambda: attention(Eager),
    obeys=("mask-adds", "rows-sum-to-one"),
)
def true_hides_in_core() -> Attention:
    return attention(TrueHidesInCore)


@bug(
    "P39c",
    *TRUE_HIDES,
    title="a function makes masks that hide, said to keep",
    symptom="later tokens are used",
    law="true-means-visible",
    correct=lambda: causal_mask(Eager(causal=True).seen),
    obeys=("stateless",),
)
def mask_that_hides() -> Mask:
    return causal_mask(lambda queries, keys: ~Eager(causal=True).seen(queries, keys))


class CausalInTheKernel(AttentionLayer):
    """Causal through the flag of the fused kernel; whoever wants the weights takes another path."""

    forgets = False

    def forward(self, x: Tensor, *_: Any, **options: Any) -> tuple[Tensor, Cache]:
        q = self.split(self.query(x), HEADS)
        k, v = (self.split(p(x), self.groups) for p in (self.key, self.value))
        if options.get("weights"):
            out = Eager(causal=not self.forgets)(q, k, v)
        else:
            out = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(out.transpose(1, 2).flatten(2)), Cache()


class ForgetsFlag(CausalInTheKernel):
    """The path that shows the weights does not know of the flag."""

    forgets = True


def shows_weights(build: type[CausalInTheKernel] = CausalInTheKernel) -> Attention:
    """The subject of a layer with a second path."""
    return layered(
        build,
        cached=False,
        paths=lambda layer: {"weights asked for": lambda x: layer(x, weights=True)[0]},
    )


@bug(
    "P40",
    "keras-team/keras#23038",
    "keras-team/keras#23040",
    "keras-team/keras#22910",
    title="the causal flag is lost where weights are asked for",
    symptom="later tokens are used",
    law="causal",
    correct=shows_weights,
    obeys=("past-is-used", "rows-of-batch-apart"),
)
def forgets_flag() -> Attention:
    return shows_weights(ForgetsFlag)


class HidesALittle(Eager):
    """Hidden scores are set to −1e-9, which was meant to be −1e9."""

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        hidden = super().masked(scores, mask) == -math.inf
        return super().masked(scores, mask).masked_fill(hidden, -1e-9)


@bug(
    "P41",
    "hyunwoongko/transformer#10",
    title="hidden scores are −1e-9",
    symptom="padding leaks",
    law="hidden-keys-do-nothing",
    correct=lambda: attention(Eager),
    obeys=("rows-sum-to-one", "scale-as-declared"),
)
def hides_a_little() -> Attention:
    return attention(HidesALittle)

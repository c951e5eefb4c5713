"""Bugs of masks and windows: what hides, what is hidden, and on which path."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.subjects import Attention, Mask

from .attention_code import (
    HEADS,
    AttentionLayer,
    Cache,
    Eager,
    attention,
    causal_mask,
    eager,
    eager_mask,
    layered,
    said,
)
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
    correct=eager,
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
    correct=eager,
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
    title="the fast path takes an additive mask for a Boolean one",
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
    title="an additive mask is cast to Boolean",
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
    title="a mask that hides is passed where a mask that keeps is expected",
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
    title="attention hides where a mask is True, but is declared to keep there",
    symptom="later tokens are used",
    law="true-means-visible",
    correct=eager,
    obeys=("mask-adds", "rows-sum-to-one"),
)
def true_hides_in_core() -> Attention:
    return attention(TrueHidesInCore)


@bug(
    "P39c",
    *TRUE_HIDES,
    title="a function makes masks that hide, but are declared to keep",
    symptom="later tokens are used",
    law="true-means-visible",
    correct=eager_mask,
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
    title="the causal flag is lost if weights are requested",
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
    correct=eager,
    obeys=("rows-sum-to-one", "scale-as-declared"),
)
def hides_a_little() -> Attention:
    return attention(HidesALittle)


# bugs of masks that are made inside: windows, and documents packed into one row


WINDOW = 3


def windowed(build: Callable[[], Eager] = lambda: Eager(causal=True, window=WINDOW)) -> Attention:
    """The subject of causal attention that sees the last three keys."""
    return attention(build, declared=said(Eager(causal=True, window=WINDOW)))


@bug(
    "P42",
    "huggingface/transformers#39408",
    title="an inclusive bound is read as a size",
    symptom="one key too many",
    law="window-as-declared",
    correct=windowed,
    obeys=("causal", "rows-sum-to-one"),
)
def one_too_many() -> Attention:
    return windowed(lambda: Eager(causal=True, window=WINDOW + 1))


class WindowWithMask(Eager):
    """Returns early where there is no mask, before the window is looked at."""

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return Eager(causal=True).masked(scores, None)
        return super().masked(scores, mask)


@bug(
    "P43",
    "jax-ml/jax#32300",
    "jax-ml/jax#32357",
    title="the window is skipped unless there is a mask",
    symptom="the window has no effect",
    law="window-as-declared",
    correct=windowed,
    obeys=("causal", "rows-sum-to-one"),
)
def window_with_mask() -> Attention:
    return windowed(lambda: WindowWithMask(causal=True, window=WINDOW))


class Packed(AttentionLayer):
    """Documents packed into one row begin where position ids start again."""

    def together(self, ids: Tensor, keep: Tensor | None) -> Tensor | None:  # noqa: ARG002
        """Which tokens stand in one document (B, 1, T, T)."""
        document = (ids == 0).cumsum(-1)
        return (document[:, :, None] == document[:, None])[:, None]

    def packed(self, x: Tensor, ids: Tensor) -> Tensor:
        keep = torch.ones(x.shape[:2], dtype=torch.bool)
        out: Tensor = self(x, keep=keep, more=self.together(ids, keep))[0]
        return out


def packed(build: type[Packed] = Packed) -> Attention:
    """The subject of a layer for packed documents, always given a mask that keeps all."""
    return layered(build, documents=lambda layer: layer.packed)


class PackedUnlessMasked(Packed):
    """Looks for packed documents only where no mask is given."""

    def together(self, ids: Tensor, keep: Tensor | None) -> Tensor | None:
        return super().together(ids, None) if keep is None else None


@bug(
    "P44",
    "huggingface/transformers#46634",
    "huggingface/nanoVLM#204",
    title="position ids that start again are ignored if there is a mask",
    symptom="documents in one row see each other, the loss still falls",
    law="documents-apart",
    correct=packed,
    obeys=("causal", "step-by-step"),
)
def packed_unless_masked() -> Attention:
    return packed(PackedUnlessMasked)

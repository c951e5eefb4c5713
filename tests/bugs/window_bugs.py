"""Bugs of masks that are made inside: windows, and documents packed into one row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnproof.programs.subjects import Attention

from .attention_code import AttentionLayer, Eager, attention, layered, said
from .corpus import bug

WINDOW = 3


def windowed(build: Callable[[], Eager] = lambda: Eager(causal=True, window=WINDOW)) -> Attention:
    """The subject of causal attention that sees the last three keys."""
    return attention(build, declared=said(Eager(causal=True, window=WINDOW)))


@bug(
    "P42",
    "huggingface/transformers#39408",
    title="a bound that counts is read as a size",
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
    title="a mask that keeps all makes ids that start again go unseen",
    symptom="documents in one row see each other, the loss still falls",
    law="documents-apart",
    correct=packed,
    obeys=("causal", "step-by-step"),
)
def packed_unless_masked() -> Attention:
    return packed(PackedUnlessMasked)

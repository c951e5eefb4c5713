"""Bugs of the heads and of the axes that attention runs over."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.subjects import Attention

from .attention_code import (
    EMBED,
    HEADS,
    AttentionLayer,
    Cache,
    Eager,
    attention,
    eager,
    layered,
    seeded,
)
from .corpus import bug


class Tiled(Eager):
    """Key heads are repeated as 0, 1, 0, 1, .. in place of 0, 0, 1, 1, .."""

    def repeated(self, kv: Tensor, heads: int) -> Tensor:
        return kv.tile(1, heads // kv.shape[1], 1, 1)


@bug(
    "P45",
    "apple/axlearn#842",
    title="key heads are tiled, not repeated",
    symptom="wrong after a refactoring",
    law="groups-of-heads",
    correct=eager,
    obeys=("rows-sum-to-one", "order-of-keys", "scale-as-declared"),
)
def tiled() -> Attention:
    return attention(Tiled)


class Everyone(AttentionLayer):
    """Attention in which every token sees every other."""

    def __init__(self) -> None:
        super().__init__(causal=False)


class SplitByView(Everyone):
    """Heads are taken out of the tokens in the order of memory, without a transposition."""

    def split(self, x: Tensor, heads: int) -> Tensor:
        return x.reshape(x.shape[0], heads, x.shape[1], -1)

    def forward(self, x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Cache]:
        q = self.split(self.query(x), HEADS)
        k, v = (self.split(p(x), self.groups) for p in (self.key, self.value))
        return self.output(self.core(q, k, v).reshape(x.shape)), Cache()


@bug(
    "P46",
    "reczoo/FuxiCTR#30",
    title="heads split by a view alone",
    symptom="weaker models, no error",
    law="permutation",
    correct=lambda: layered(Everyone, cached=False),
    obeys=("rows-of-batch-apart", "evaluation-repeats"),
)
def split_by_view() -> Attention:
    return layered(SplitByView, cached=False)


class TokensFirst(nn.Module):
    """A module that wants the tokens as its first axis, in code that has the batch first."""

    swapped = True

    def __init__(self) -> None:
        super().__init__()
        self.inner = seeded(nn.MultiheadAttention(EMBED, HEADS))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.transpose(0, 1) if self.swapped else x
        out: Tensor = self.inner(tokens, tokens, tokens, need_weights=False)[0]
        return out.transpose(0, 1) if self.swapped else out


class BatchForTokens(TokensFirst):
    """The swap is missing, and every token attends to the other rows of the batch."""

    swapped = False


def tokens_first(build: type[TokensFirst] = TokensFirst) -> Attention:
    """The subject of a module with the tokens in front."""
    module = build()
    return Attention(
        name=build.__name__,
        layer=module,
        module=module,
        embed=EMBED,
        heads=HEADS,
        groups=HEADS,
        width=EMBED // HEADS,
        declared=DeclaredAttention(causal=False, positions="none"),
        make=lambda: tokens_first(build),
    )


@bug(
    "P47",
    "aipixel/AEMatter#3",
    title="batch-first data in a module that expects tokens first",
    symptom='"a strong regularization layer"',
    law="rows-of-batch-apart",
    correct=tokens_first,
    obeys=("permutation", "evaluation-repeats"),
)
def batch_for_tokens() -> Attention:
    return tokens_first(BatchForTokens)

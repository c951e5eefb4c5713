"""Bugs of position ids, of offsets, and of what an earlier call leaves behind."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredBias
from attnproof.programs.subjects import Attention, Bias, Rotary

from .corpus import bug
from .plain_attention import CachedAttention, State, attention
from .plain_rotary import BASE, Rope, plain_half, rotary


class RunningIndex(Rope):
    """The table is as long as the sequence, and read from its start."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:  # noqa: ARG002
        return self.apply_to(x, self.angles(torch.arange(x.shape[2], device=x.device))[None])


@bug(
    "P07",
    "NVIDIA/Megatron-LM#453",
    title="position ids are ignored",
    symptom="packed documents all get the positions 0 to T − 1",
    law="follows-its-ids",
    correct=plain_half,
    obeys=("norm", "every-head-alike"),
)
def running_index() -> Rotary:
    return rotary(RunningIndex)


class StartForgotten(CachedAttention):
    """The call of the rotary code does not pass on where the chunk starts."""

    def positions(self, x: Tensor, state: State) -> Tensor:  # noqa: ARG002
        return super().positions(x, None)


@bug(
    "P09",
    "keras-team/keras-hub#1544",
    title="the offset is not passed when there is a cache",
    symptom="generation differs from the full pass",
    law="step-by-step",
    correct=lambda: attention(CachedAttention),
    obeys=("causal",),
)
def start_forgotten() -> Attention:
    return attention(StartForgotten)


class TableByLength(Rope):
    """Keeps its table under the length of the sequence, whatever the offset."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, Tensor] = {}

    def angles(self, positions: Tensor) -> Tensor:
        length = positions.shape[-1]
        if length not in self.tables:
            self.tables[length] = super().angles(positions)
        return self.tables[length]


class TableByPositions(Rope):
    """Keeps its last table together with the positions that it is of."""

    def __init__(self) -> None:
        super().__init__()
        self.last: tuple[Tensor, Tensor] | None = None

    def angles(self, positions: Tensor) -> Tensor:
        if self.last is None or not torch.equal(self.last[0], positions):
            self.last = positions.clone(), super().angles(positions)
        return self.last[1]


@bug(
    "P10",
    "lucidrains/rotary-embedding-torch#11",
    title="table kept under the length alone",
    symptom="a second call with another offset gets the first one's angles",
    law="stateless",
    correct=lambda: rotary(TableByPositions),
)
def table_by_length() -> Rotary:
    return rotary(TableByLength)


def alibi(heads: int, queries: int, keys: int) -> Tensor:
    """−slope × distance, the slopes 2^(−8/H), 2^(−16/H), .. (H, T, S); queries are the last T."""
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    row = torch.arange(keys - queries, keys)[:, None]
    return -slopes[:, None, None] * (row - torch.arange(keys)).abs()


def bias_on_the_class(*, shared: bool) -> Bias:
    """ALiBi whose last bias is kept: on the class if it is shared, else anew for each call."""

    class Alibi:
        kept: Tensor | None = None

        def __init__(self, heads: int = 4) -> None:
            self.heads = heads

        def __call__(self, queries: int, keys: int) -> Tensor:
            kept = Alibi.kept
            if not shared or kept is None or kept.shape[1] < queries or kept.shape[2] < keys:
                kept = Alibi.kept = alibi(self.heads, queries, keys)
            return kept[:, :queries, :keys]

    def build(heads: int = 4) -> Bias:
        return Bias(
            name="Alibi",
            heads=heads,
            bias=Alibi(heads),
            causal=True,
            make=build,
            declared=DeclaredBias(name="alibi", heads=heads),
        )

    return build()


@bug(
    "P11",
    "ml-explore/mlx#3071",
    title="the last bias is kept on the class, not with its offset",
    symptom="the bias of the first caller reaches later ones",
    law="stateless",
    correct=lambda: bias_on_the_class(shared=False),
)
def bias_kept_on_the_class() -> Bias:
    return bias_on_the_class(shared=True)


def longer_base(width: int, length: int, original: int) -> float:
    """The base of NTK scaling for a sequence of this length, of factor 2."""
    longer: float = max(1.0, 2 * length / original - 1) ** (width / (width - 2))
    return BASE * longer


class BaseOfTheLength(CachedAttention):
    """The base follows the largest position of the call; keys are kept as they were rotated."""

    original = 3

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        length = int(positions.max()) + 1
        base = longer_base(x.shape[-1], length, self.original)
        rotated: Tensor = Rope(x.shape[-1], base=base)(x, positions)
        return rotated


class BaseOfTheLongest(CachedAttention):
    """The base is that of the longest sequence that is meant, at every length."""

    def __init__(self) -> None:
        super().__init__()
        width = self.embed // self.heads
        self.rope = Rope(width, base=longer_base(width, 4096, 3))


@bug(
    "P12",
    "huggingface/transformers#25104",
    "huggingface/transformers#27227",
    title="the base follows the length, kept keys do not",
    symptom="perplexity in one pass does not describe generation",
    law="step-by-step",
    correct=lambda: attention(BaseOfTheLongest),
)
def base_of_the_length() -> Attention:
    return attention(BaseOfTheLength)

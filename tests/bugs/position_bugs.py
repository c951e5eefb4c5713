"""Bugs of positions: which ones, those of keys in a cache, and those of a longer text."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredBias
from attnproof.programs.subjects import Attention, Bias, Rotary

from .corpus import bug
from .plain_code import (
    BASE,
    CachedAttention,
    Rope,
    State,
    angles_of,
    attention,
    ladder,
    plain_half,
    rotary,
    turn_half,
)


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
    title="table cached under the length alone",
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
    title="the base follows the length, cached keys do not",
    symptom="perplexity in one pass does not describe generation",
    law="step-by-step",
    correct=lambda: attention(BaseOfTheLongest),
)
def base_of_the_length() -> Attention:
    return attention(BaseOfTheLength)


# bugs of keys that are kept rotated: what moves them does not rotate them as they were rotated


Kept = tuple[Tensor, Tensor, Tensor]


class Window:
    """Keeps the first ``sinks`` keys and the last ones, ``size`` in all, at positions 0, 1, ..

    When it is full, the oldest key after the sinks goes, and the others move one place down.
    """

    def __init__(self, rope: Rope, sinks: int = 1, size: int = 4) -> None:
        self.rope, self.sinks, self.size = rope, sinks, size

    def newest(self, count: int) -> int:
        """Where the next key is rotated when ``count`` came before it: at the end of the window."""
        return min(count, self.size - 1)

    def __call__(self, raw: Tensor) -> Kept:
        """All keys (B, H, T, D), one after the other -> those kept, their raw keys, positions."""
        kept, own = raw[:, :, :0], raw[:, :, :0]
        for count in range(raw.shape[2]):
            new = raw[:, :, count : count + 1]
            if count >= self.size:
                moved = self.at(kept[:, :, self.sinks + 1 :], -1)
                kept = torch.cat((kept[:, :, : self.sinks], moved), 2)
                own = torch.cat((own[:, :, : self.sinks], own[:, :, self.sinks + 1 :]), 2)
            kept = torch.cat((kept, self.at(new, self.newest(count))), 2)
            own = torch.cat((own, new), 2)
        return kept, own, torch.arange(kept.shape[2])

    def at(self, keys: Tensor, position: int) -> Tensor:
        """All these keys rotated by one position."""
        everywhere = torch.full((keys.shape[0], keys.shape[2]), position)
        rotated: Tensor = self.rope(keys, everywhere)
        return rotated


class NewestWhereItCame(Window):
    """The keys in the window move; the newest is rotated where it stands in the whole text."""

    def newest(self, count: int) -> int:
        return count


@bug(
    "P13",
    "huggingface/transformers#35350",
    "huggingface/transformers#33691",
    title="all cached keys are moved except the newest",
    symptom="garbage once the window is full",
    law="cache-keeps-its-positions",
    correct=lambda: rotary(Rope, evict=Window),
    obeys=("relative",),
)
def newest_where_it_came() -> Rotary:
    return rotary(Rope, evict=NewestWhereItCame)


def shift(rope: Rope) -> Callable[[Tensor, int], Tensor]:
    """Rotated keys rotated on by s, over the channels that rotate."""

    def on(keys: Tensor, s: int) -> Tensor:
        rotated: Tensor = rope(keys, torch.full((keys.shape[0], keys.shape[2]), s))
        return rotated

    return on


def shift_of_the_whole_head(rope: Rope) -> Callable[[Tensor, int], Tensor]:
    """The same over all channels of the head."""

    def on(keys: Tensor, s: int) -> Tensor:
        return turn_half(keys, angles_of(torch.tensor([s]), ladder(rope.width, rope.base)))

    return on


@bug(
    "P14",
    "ggml-org/llama.cpp#4889",
    title="the shift of the cache rotates the whole head, the model a part of it",
    symptom="context shift fails for one family of models",
    law="shift-of-cached-keys",
    correct=lambda: rotary(lambda: Rope(8, 4), shift=shift),
    obeys=("relative", "width-as-declared"),
)
def shift_over_the_whole_head() -> Rotary:
    return rotary(lambda: Rope(8, 4), shift=shift_of_the_whole_head)

"""Rotary code, and attention with a cache, that are right; mutants change one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from attnproof.programs.declarations import DeclaredAttention, DeclaredRotary
from attnproof.programs.subjects import Attention, Rotary

BASE = 10000.0


def ladder(width: int, base: float = BASE) -> Tensor:
    """base^(−2i/width) for the width//2 pairs (width//2,)."""
    powers = torch.arange(0, width - width % 2, 2, dtype=torch.float64) / width
    return (base**-powers).float()


def angles_of(positions: Tensor, frequencies: Tensor) -> Tensor:
    """Position × frequency (.., T, pairs), in float32."""
    return positions.float()[..., None] * frequencies


def turn_half(x: Tensor, angles: Tensor) -> Tensor:
    """Channel i rotated with channel i + D/2."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def rotate_interleaved(x: Tensor, angles: Tensor) -> Tensor:
    """Channel 2i rotated with channel 2i + 1."""
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


ROTATES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "half": turn_half,
    "interleaved": rotate_interleaved,
}


class Rope(nn.Module):
    """The plain encoding: ``rotated`` of the ``width`` channels of a head rotate, the others pass.

    The hooks ``frequencies``, ``angles`` and ``apply_to`` are where mutants differ.
    """

    def __init__(
        self, width: int = 8, rotated: int | None = None, base: float = BASE, layout: str = "half"
    ) -> None:
        super().__init__()
        self.width, self.base, self.layout = width, base, layout
        self.rotated = width - width % 2 if rotated is None else rotated

    def frequencies(self) -> Tensor:
        return ladder(self.rotated, self.base)

    def angles(self, positions: Tensor) -> Tensor:
        return angles_of(positions, self.frequencies())

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        """Rotate (B, H, T, D) by the angles (B, T, pairs), the same for every head."""
        rotated, passed = x[..., : self.rotated], x[..., self.rotated :]
        return torch.cat((ROTATES[self.layout](rotated, angles[:, None]), passed), -1)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.apply_to(x, self.angles(positions))

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(base=self.base, layout=self.layout, width=self.rotated)


class AxesRope(Rope):
    """Each axis rotates its own block of channels, with its own ladder (vision, video)."""

    def __init__(self, axes: int = 2, block: int = 4, layout: str = "interleaved") -> None:
        super().__init__(axes * block, layout=layout)
        self.axes, self.block = axes, block

    def rotate_block(self, x: Tensor, positions: Tensor, axis: int) -> Tensor:  # noqa: ARG002
        """One axis: the block x (B, H, T, block) at positions (B, T)."""
        angles = angles_of(positions, ladder(self.block, self.base))[:, None]
        return ROTATES[self.layout](x, angles)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        blocks = torch.split(x, self.block, -1)
        return torch.cat(
            [self.rotate_block(b, positions[..., a], a) for a, b in enumerate(blocks)], -1
        )

    def declared(self) -> DeclaredRotary:
        one = ladder(self.block, self.base).tolist()
        return DeclaredRotary(layout=self.layout, frequencies=tuple(one * self.axes))


class SectionedRope(Rope):
    """One ladder for all axes, whose pairs are dealt out in sections (M-RoPE of text and images).

    Positions (B, T) take the path of one axis, positions (B, T, axes) the other.
    """

    def __init__(
        self,
        sections: tuple[int, ...] = (2, 1, 1),
        layout: str = "interleaved",
        width: int | None = None,
    ) -> None:
        rotated = 2 * sum(sections)
        super().__init__(rotated if width is None else width, rotated, layout=layout)
        self.axes = len(sections)
        self.axis_of_pair = [axis for axis, n in enumerate(sections) for _ in range(n)]

    def many(self, x: Tensor, positions: Tensor) -> Tensor:
        """Positions (B, T, axes): each pair reads the coordinate of its section."""
        own = positions.float()[..., self.axis_of_pair]
        return self.apply_to(x, own * self.frequencies())

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if positions.dim() == 3:
            return self.many(x, positions)
        return super().forward(x, positions)


def llama3(frequencies: Tensor, factor: float, low: float, high: float, original: int) -> Tensor:
    """Llama 3.1's ladder: long waves slower by the factor, short ones as they were, and a blend."""
    rotates = original * frequencies / (2 * math.pi)
    share = ((rotates - low) / (high - low)).clamp(0, 1)
    return frequencies * (share + (1 - share) / factor)


def rotary(build: Callable[..., Rope], **fields: Any) -> Rotary:
    """The subject of a module; ``fields`` that are functions of the module are called with it."""
    module = build()
    made = {k: v(module) if k in METHODS else v for k, v in fields.items()}
    return Rotary(
        name=type(module).__name__,
        rotate=module,
        width=module.width,
        module=module,
        make=lambda **settings: rotary(lambda: build(**settings), **fields),
        **{"declared": module.declared(), "axes": getattr(module, "axes", 0), **made},
    )


METHODS = ("shift", "evict", "all_three", "convert")


def plain_half() -> Rotary:
    return rotary(Rope)


def plain_interleaved() -> Rotary:
    return rotary(lambda: Rope(layout="interleaved"))


# a layer of attention with a cache and rotary positions that is right; mutants change a place


State = tuple[Tensor, Tensor] | None


class CachedAttention(nn.Module):
    """Causal attention of tokens (B, T, E); the state is the rotated keys and the values so far."""

    def __init__(self, embed: int = 8, heads: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.embed, self.heads = embed, heads
        drawn = torch.randn(4, embed, embed, generator=torch.Generator().manual_seed(seed))
        self.weight = nn.Parameter(drawn / math.sqrt(embed))
        self.rope = Rope(embed // heads)

    def project(self, x: Tensor, which: int) -> Tensor:
        """Queries, keys or values of the tokens (B, H, T, D)."""
        made = linear(x, self.weight[which].to(x.dtype))
        return made.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def positions(self, x: Tensor, state: State) -> Tensor:
        """The positions (1, T) of these tokens, after those in the cache."""
        start = 0 if state is None else state[0].shape[2]
        return start + torch.arange(x.shape[1], device=x.device)[None]

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        rotated: Tensor = self.rope(x, positions)
        return rotated

    def visible(self, queries: int, keys: int) -> Tensor:
        """The last query sees all keys, the one before it one less (T, S)."""
        return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)

    def step(
        self, x: Tensor, state: State = None, seen: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """A chunk of tokens after those in the cache; ``seen`` further hides keys (B, 1, 1, S)."""
        positions = self.positions(x, state)
        q = self.rotate(self.project(x, 0), positions)
        k = self.rotate(self.project(x, 1), positions)
        v = self.project(x, 2)
        if state is not None:
            k, v = torch.cat((state[0], k), 2), torch.cat((state[1], v), 2)
        visible = self.visible(q.shape[2], k.shape[2]).to(x.device)
        if seen is not None:
            visible = visible & seen
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~visible, torch.finfo(x.dtype).min)
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return linear(out, self.weight[3].to(x.dtype)), (k, v)

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x)[0]


def attention(build: Callable[[], CachedAttention]) -> Attention:
    """The subject of a layer."""
    layer = build()
    return Attention(
        name=type(layer).__name__,
        layer=layer,
        step=layer.step,
        module=layer,
        embed=layer.embed,
        heads=layer.heads,
        groups=layer.heads,
        width=layer.embed // layer.heads,
        make=lambda: attention(build),
        declared=DeclaredAttention(causal=True),
    )

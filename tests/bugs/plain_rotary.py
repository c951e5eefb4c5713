"""Rotary code that is right, in the shapes in which people write it: the mutants change one place.

Vectors x are (B, H, T, D), positions (B, T), or (B, T, axes).  Frequencies and angles are float32,
whatever the vectors are, and the result has the dtype of the vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

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

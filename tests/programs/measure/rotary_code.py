"""Rotary code that is right, in the ways in which people write it, as subjects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

Rotate = Callable[[Tensor, Tensor], Tensor]


def ladder(width: int, base: float = 10_000.0) -> Tensor:
    """In float32, from a power."""
    return 1.0 / base ** (torch.arange(0, width, 2).float() / width)


def logarithmic_ladder(width: int, base: float = 10_000.0) -> Tensor:
    """In float32, as exp(−i ln base · 2/D): the other formula in use."""
    return torch.exp(torch.arange(0, width, 2).float() * (-math.log(base) / width))


def half(omega: Tensor, sign: float = 1.0, factor: float = 1.0) -> Rotate:
    """rotate_half: tables in the dtype of the data, of vectors made ``factor`` times longer."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        angles = sign * positions[:, None, :, None].float() * omega
        angles = torch.cat((angles, angles), -1)
        cos, sin = ((factor * t).to(x.dtype) for t in (angles.cos(), angles.sin()))
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    return rotate


def interleaved(omega: Tensor) -> Rotate:
    """Neighbours rotated, computed in the dtype of the data."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None].float() * omega
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    return rotate


def as_complex(omega: Tensor) -> Rotate:
    """Neighbours as complex numbers, times one of length 1; computed in float32 at least."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None].float() * omega
        wide = x if x.dtype == torch.float64 else x.float()
        unit = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * unit).flatten(-2).to(x.dtype)

    return rotate


def partial(rotate: Rotate, width: int) -> Rotate:
    """The first channels rotate, the others pass."""
    return lambda x, p: torch.cat((rotate(x[..., :width], p), x[..., width:]), -1)


def axial(rotates: tuple[Rotate, ...]) -> Rotate:
    """A block of channels for each axis: positions (B, T, axes)."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        blocks = x.chunk(len(rotates), -1)
        return torch.cat(
            [t(b, positions[..., i]) for i, (t, b) in enumerate(zip(rotates, blocks, strict=True))],
            -1,
        )

    return rotate


class Cached(nn.Module):
    """Keeps tables of the longest text so far, in float32, and reads rows of them."""

    def __init__(self, width: int = 8, base: float = 10_000.0) -> None:
        super().__init__()
        self.omega, self.width = ladder(width, base), width
        self.cos = self.sin = torch.zeros(0, width // 2)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        longest = int(positions.max()) + 1
        if longest > len(self.cos):
            angles = torch.outer(torch.arange(longest).float(), self.omega)
            self.cos, self.sin = angles.cos(), angles.sin()
        cos, sin = (t[positions][:, None].to(x.dtype) for t in (self.cos, self.sin))
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class InBuffer(nn.Module):
    """Frequencies in a buffer that a cast of the module rounds."""

    omega: Tensor

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.register_buffer("omega", ladder(width))

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return half(self.omega.float())(x, positions)


def code(rotate: Rotate, width: int = 8, **fields: Any) -> Rotary:
    """The subject of a function."""
    fields.setdefault("declared", DeclaredRotary(base=10_000.0, layout="half", width=width))
    return Rotary(name="code", rotate=rotate, width=width, **fields)


def cached(width: int = 8, base: float = 10_000.0) -> Rotary:
    module = Cached(width, base)
    declared = DeclaredRotary(base=base, layout="half", width=width)
    return code(module, width, module=module, make=cached, declared=declared)


def llama(width: int = 16) -> Rotary:
    """transformers' own, as its layers call it."""
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama

    config = LlamaConfig(
        hidden_size=2 * width,
        num_attention_heads=2,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    module = modeling_llama.LlamaRotaryEmbedding(config)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = module(x, positions)
        rotated: Tensor = modeling_llama.apply_rotary_pos_emb(x, x, cos, sin)[0]
        return rotated

    return code(rotate, width, module=module, make=lambda: llama(width))


def yarn(width: int = 16, factor: float = 16.0, length: float | None = None) -> Rotary:
    """YaRN with its ramp between pairs, and vectors 0.1 ln s + 1 times longer."""
    omega, original = ladder(width), 2048

    def index(rotates: float) -> float:
        return width * math.log(original / (2 * math.pi * rotates)) / (2 * math.log(10_000.0))

    low, high = max(math.floor(index(32)), 0), min(math.ceil(index(1)), width - 1)
    ramp = ((torch.arange(width // 2) - low) / max(high - low, 1e-3)).clamp(0, 1)
    longer = 0.1 * math.log(factor) + 1
    declared = DeclaredRotary(
        base=10_000.0, layout="half", width=width, scaling="yarn", factor=factor, original=original
    )
    rotate = half(omega * (1 - ramp) + omega / factor * ramp, factor=length or longer)
    return code(rotate, width, declared=declared)


def llama3(width: int = 16, scaled: bool = True) -> Rotary:
    """Llama 3.1's ladder of factor 8."""
    omega = ladder(width, 500_000.0)
    if scaled:
        share = ((8192 * omega / math.tau - 1) / 3).clamp(0, 1)
        omega = omega * (share + (1 - share) / 8)
    declared = DeclaredRotary(
        base=500_000.0, layout="half", width=width, scaling="llama3", factor=8.0, original=8192
    )
    return code(half(omega), width, declared=declared)


def ntk(width: int = 16) -> Rotary:
    """NTK-aware: the base times 4^(D/(D − 2))."""
    omega = ladder(width, 10_000.0 * 4 ** (width / (width - 2)))
    declared = DeclaredRotary(base=10_000.0, layout="half", width=width, scaling="ntk", factor=4.0)
    return code(half(omega), width, declared=declared)


def two_axes(layout: str = "interleaved") -> Rotary:
    one = {"interleaved": interleaved, "half": half}[layout](ladder(8))
    declared = DeclaredRotary(base=10_000.0, layout=layout)
    return code(axial((one, one)), 16, axes=2, declared=declared)


def three_axes() -> Rotary:
    rotates = tuple(interleaved(ladder(4)) for _ in range(3))
    return code(
        axial(rotates), 12, axes=3, declared=DeclaredRotary(base=10_000.0, layout="interleaved")
    )


def interleaved_declared(width: int = 8) -> DeclaredRotary:
    return DeclaredRotary(base=10_000.0, layout="interleaved", width=width)


RIGHT: dict[str, Callable[[], Rotary]] = {
    "half": lambda: code(half(ladder(8))),
    "half, from logarithms": lambda: code(half(logarithmic_ladder(64)), 64),
    "the other way": lambda: code(half(ladder(8), sign=-1.0)),
    "interleaved": lambda: code(interleaved(ladder(8)), declared=interleaved_declared()),
    "complex": lambda: code(as_complex(ladder(8)), declared=interleaved_declared()),
    "cached": cached,
    "partial": lambda: code(
        partial(half(ladder(4)), 4),
        10,
        declared=DeclaredRotary(base=10_000.0, layout="half", width=4),
    ),
    "partial, longer": lambda: code(
        partial(half(ladder(4), factor=1.25), 4),
        10,
        declared=DeclaredRotary(base=10_000.0, layout="half", width=4, length=1.25),
    ),
    "last channels rotate": lambda: code(
        lambda x, p: torch.cat((x[..., :6], half(ladder(4))(x[..., 6:], p)), -1),
        10,
        declared=DeclaredRotary(base=10_000.0, layout="half", width=4),
    ),
    "nothing declared": lambda: code(half(ladder(8)), declared=None),
    "a short table": lambda: code(half(ladder(8)), most=20),
    "linear": lambda: code(
        half(ladder(8) / 4),
        declared=DeclaredRotary(base=10_000.0, layout="half", scaling="linear", factor=4.0),
    ),
    "ntk": ntk,
    "llama 3": llama3,
    "yarn": yarn,
    "two axes": two_axes,
    "two axes, halves": lambda: two_axes("half"),
    "three axes": three_axes,
    "one head": lambda: code(half(ladder(8)), heads=1),
    "fractions": lambda: code(half(ladder(8)), whole=False),
    "llama": llama,
}


def in_two_halves(t: Tensor, freqs_x: Tensor, freqs_y: Tensor) -> Tensor:
    """Each half of the channels by its own angles, whose halves are alike."""

    def rotated(x: Tensor, angles: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()

    first, second = t.chunk(2, -1)
    return torch.cat((rotated(first, freqs_x), rotated(second, freqs_y)), -1)

"""Small rotary and attention code, right and wrong in one way each, for what is read off it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from attnproof.programs.finding import Identity, Part
from attnproof.programs.reading.scalings import ladder
from attnproof.programs.subjects import Attention, Rotary

Rotate = Callable[[Tensor], Tensor]


def part(found: Identity, name: str) -> Part:
    """The part of this name, which must be there."""
    one = found.part(name)
    assert one is not None, found.sentence
    return one


def half(x: Tensor) -> Tensor:
    h = x.shape[-1] // 2
    return torch.cat((-x[..., h:], x[..., :h]), -1)


def neighbours(x: Tensor) -> Tensor:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def rotary(
    width: int = 32,
    base: float = 10_000.0,
    *,
    swap: Rotate = half,
    tiled: bool = True,
    omega: Tensor | None = None,
    positions: torch.dtype = torch.float32,
    frequencies: torch.dtype = torch.float32,
    angles: torch.dtype = torch.float32,
    length: float = 1.0,
    head: int = 0,
    most: int = 1 << 20,
    table: torch.dtype | None = None,
    wide: bool = False,
) -> Rotary:
    """Rotary code with any of its parts another: layouts of table and rotation, dtypes, length."""
    used = ladder(base, width // 2) if omega is None else omega
    used = used if wide else used.float().to(frequencies)

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        w = used if wide else used.to(angles)
        a = p.to(torch.float64 if wide else positions).to(w.dtype)[..., None] * w
        a = a if wide else a.float()
        a = torch.cat((a, a), -1) if tiled else a.repeat_interleave(2, -1)
        c, s = (f[:, None] * length for f in (a.cos(), a.sin()))
        c, s = c.to(table or x.dtype).to(x.dtype), s.to(table or x.dtype).to(x.dtype)
        y = x[..., :width]
        return torch.cat((y * c + swap(y) * s, x[..., width:]), -1)

    return Rotary(name="rotary", rotate=rotate, width=head or width, most=most)


def attention(
    *,
    tile: bool = False,
    scale: float | None = None,
    causal: str = "",
    window: int = 0,
    axis: int = -1,
    fill: float = -math.inf,
    slopes: Tensor | None = None,
    dropout: float = 0.0,
    heads: int = 4,
    groups: int = 2,
) -> Attention:
    """Attention code with any of its parts another."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        H, G, T, S = q.shape[1], k.shape[1], q.shape[2], k.shape[2]
        k, v = (
            x.repeat(1, H // G, 1, 1) if tile else x.repeat_interleave(H // G, 1) for x in (k, v)
        )
        z = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        t, s = torch.arange(T)[:, None], torch.arange(S)[None, :]
        end = t + S - T
        if slopes is not None:
            z = z + slopes[:, None, None] * (s - end)
        seen = torch.ones(T, S, dtype=torch.bool)
        if causal:
            seen = s <= (end if causal == "end" else t)
        if window:
            seen = seen & (s > end - window)
        z = z.masked_fill(~seen, -math.inf)
        if mask is not None:
            z = z.masked_fill(~mask, fill) if mask.dtype == torch.bool else z + mask
        w = torch.nn.functional.dropout(z.softmax(axis), dropout)
        return w @ v

    return Attention(
        name="attention",
        attend=attend,
        heads=heads,
        groups=groups,
        width=8,
        masks=("bool", "float"),
    )

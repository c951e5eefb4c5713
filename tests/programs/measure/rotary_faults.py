"""Rotary code with a planted fault for each law that no formula says, and the right code beside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Rotary

from .rotary_code import (
    InBuffer,
    axial,
    cached,
    code,
    half,
    interleaved,
    interleaved_declared,
    ladder,
    two_axes,
    yarn,
)

OMEGA = ladder(8)


def verdict(law: str, subject: Rotary, draw: Draw = Draw()) -> Finding:  # noqa: B008 (frozen)
    first, *rest = examine(subject, [draw], [law])  # what gives no numbers is found first
    assert not rest or first.law == "finite"
    return first


def faults_of(found: tuple[Finding, ...]) -> list[str]:
    return [f"{f.law}: {f.why}" for f in found if f.verdict not in ("holds", "not asked")]


def half_table_on_neighbours(x: Tensor, positions: Tensor) -> Tensor:
    angles = positions[:, None, :, None].float() * OMEGA
    table = torch.cat((angles, angles), -1)
    rotated = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    return x * table.cos().to(x.dtype) + rotated * table.sin().to(x.dtype)


def with_positions(change: Callable[[Tensor], Tensor]) -> Rotary:
    return code(lambda x, p: half(OMEGA)(x, change(p)))


def with_angles(change: Callable[[Tensor], Tensor]) -> Rotary:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        angles = change(positions[:, None, :, None].float() * OMEGA)
        a, b = x.chunk(2, -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    return code(rotate)


def of_the_head(x: Tensor, _positions: Tensor) -> Tensor:
    heads = torch.arange(x.shape[1])[None]
    return half(OMEGA)(x.transpose(1, 2), heads).transpose(1, 2)


def first_row_alone(x: Tensor, positions: Tensor) -> Tensor:
    rotated = half(OMEGA)(x, positions)
    if x.shape[2] == 1:
        rotated[1:] = 0
    return rotated


def in_place(x: Tensor, positions: Tensor) -> Tensor:
    return x.copy_(half(OMEGA)(x, positions))


class ByLength(nn.Module):
    """Keeps its positions under the length of the text."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Tensor] = {}

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        kept = self.kept.setdefault(positions.shape[1], positions[:1])
        return half(OMEGA)(x, kept.expand(positions.shape))


def by_length() -> Rotary:
    module = ByLength()
    return code(module, module=module, make=by_length)


def in_buffer() -> Rotary:
    module = InBuffer()
    return code(module, module=module, make=in_buffer)


def values_twice(q: Tensor, k: Tensor, v: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rotate = half(OMEGA)
    return rotate(q, p), rotate(k, p), rotate(rotate(v, p), p)


def blind_axis() -> Rotary:
    one = interleaved(ladder(8))
    return replace(two_axes(), rotate=axial((one, lambda x, p: one(x, torch.zeros_like(p)))))


def one_ladder(one_layout: str) -> Rotary:
    """Positions (B, T) and (B, T, 2); the layout of the first may be another."""
    many = interleaved(OMEGA)
    one = interleaved(OMEGA) if one_layout == "interleaved" else half(OMEGA)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        if positions.dim() == 2:
            return one(x, positions)
        first, second = many(x, positions[..., 0]), many(x, positions[..., 1])
        return torch.cat((first[..., :4], second[..., 4:]), -1)

    declared = DeclaredRotary(base=10_000.0, layout="interleaved")
    return code(rotate, axes=2, declared=declared)


def grid_of(swapped: bool) -> Rotary:
    def grid(rows: int, columns: int) -> Tensor:
        sizes = (columns, rows) if swapped else (rows, columns)
        x, y = torch.meshgrid(torch.arange(sizes[0]), torch.arange(sizes[1]), indexing="xy")
        return torch.stack((y, x), -1).flatten(0, 1)

    return replace(two_axes(), grid=grid)


def fixed_base(base: float = 10_000.0) -> Rotary:
    declared = DeclaredRotary(base=base, layout="half", width=8)
    return code(half(OMEGA), make=fixed_base, declared=declared)


def odd(last: Callable[[Tensor], Tensor]) -> Rotary:
    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return torch.cat((half(ladder(4))(x[..., :4], positions), last(x[..., 4:])), -1)

    return code(rotate, 5, declared=None)


FAULTS: dict[str, Callable[[], Rotary]] = {
    "relative": lambda: code(half_table_on_neighbours, declared=interleaved_declared()),
    "norm": lambda: code(half_table_on_neighbours, declared=interleaved_declared()),
    "sees-positions": lambda: code(of_the_head),
    "every-axis-matters": blind_axis,
    "equal-axes-are-one": lambda: one_ladder("half"),
    "grid-steps": lambda: grid_of(swapped=False),
    "rotated-once": lambda: code(half(OMEGA), all_three=values_twice, values_rotate=True),
    "layout-as-declared": lambda: code(half(OMEGA), declared=interleaved_declared()),
    "width-as-declared": lambda: code(
        half(OMEGA), declared=DeclaredRotary(base=10_000.0, layout="half", width=4)
    ),
    "frequencies-as-declared": lambda: code(half(ladder(8, 10_001.0))),
    "length-as-declared": lambda: yarn(length=(0.1 * math.log(16) + 1) ** 2),
    "follows-its-arguments": fixed_base,
    "odd-widths": lambda: odd(torch.zeros_like),
    "neighbours-differ": lambda: with_positions(lambda p: p.to(torch.bfloat16)),
    "angles-are-exact": lambda: with_angles(lambda a: a.half().float()),
    "survives-casting": in_buffer,
    "rows-of-batch-apart": lambda: code(first_row_alone),
    "stateless": by_length,
    "no-mutation": lambda: code(in_place),
}
PARTNERS: dict[str, Callable[[], Rotary]] = {
    "equal-axes-are-one": lambda: one_ladder("interleaved"),
    "grid-steps": lambda: grid_of(swapped=True),
    "odd-widths": lambda: odd(torch.clone),
    "follows-its-arguments": cached,
    "survives-casting": cached,
}

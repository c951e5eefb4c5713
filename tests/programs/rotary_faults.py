"""Rotary code with one planted fault for each law, and the right code beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.draw import Draw
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
    partial,
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


def other_path() -> Rotary:
    return code(half(OMEGA), paths={"fused": lambda x, p: half(OMEGA)(x, -p)})


def whole_head_shift(keys: Tensor, s: int) -> Tensor:
    return half(OMEGA)(keys, torch.full((keys.shape[0], keys.shape[2]), s))


def shifted_with(shift: Callable[[Tensor, int], Tensor]) -> Rotary:
    declared = DeclaredRotary(base=10_000.0, layout="half", width=4)
    return code(partial(half(ladder(4)), 4), declared=declared, shift=shift)


def partial_shift(keys: Tensor, s: int) -> Tensor:
    return partial(half(ladder(4)), 4)(keys, torch.full((keys.shape[0], keys.shape[2]), s))


def values_twice(q: Tensor, k: Tensor, v: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rotate = half(OMEGA)
    return rotate(q, p), rotate(k, p), rotate(rotate(v, p), p)


def kept_with(offset: int) -> Rotary:
    """The last four keys, said to be at 0..3; the newest is rotated ``offset`` further."""

    def evict(raw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        own = raw[:, :, -4:]
        count = own.shape[2]
        at = torch.arange(count)
        rotated_at = at.clone()
        rotated_at[-1] += offset * (raw.shape[2] > 4)
        return half(OMEGA)(own, rotated_at[None].expand(len(own), count)), own, at

    return code(half(OMEGA), evict=evict)


def permuted(weight: Tensor, heads: int) -> Tensor:
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def converted(keys_too: bool) -> Rotary:
    return code(
        half(OMEGA),
        converts_to=code(interleaved(OMEGA), declared=interleaved_declared()),
        convert=lambda q, k, h: (permuted(q, h), permuted(k, h) if keys_too else k),
    )


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
    "composition": lambda: with_positions(lambda p: p.square()),
    "linear": lambda: code(lambda x, p: half(OMEGA)(x / (1 + x.abs()), p)),
    "identity-at-zero": lambda: with_positions(lambda p: p + 1),
    "every-head-alike": lambda: code(of_the_head),
    "sees-positions": lambda: code(of_the_head),
    "follows-its-ids": lambda: with_positions(lambda p: torch.arange(p.shape[1]).expand(p.shape)),
    "every-axis-matters": blind_axis,
    "equal-axes-are-one": lambda: one_ladder("half"),
    "grid-steps": lambda: grid_of(swapped=False),
    "rotated-once": lambda: code(half(OMEGA), all_three=values_twice, values_rotate=True),
    "shift-of-cached-keys": lambda: shifted_with(whole_head_shift),
    "cache-keeps-its-positions": lambda: kept_with(1),
    "conversion-keeps-scores": lambda: converted(keys_too=False),
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
    "paths-agree": other_path,
    "no-mutation": lambda: code(in_place),
}
PARTNERS: dict[str, Callable[[], Rotary]] = {
    "equal-axes-are-one": lambda: one_ladder("interleaved"),
    "grid-steps": lambda: grid_of(swapped=True),
    "shift-of-cached-keys": lambda: shifted_with(partial_shift),
    "cache-keeps-its-positions": lambda: kept_with(0),
    "conversion-keeps-scores": lambda: converted(keys_too=True),
    "odd-widths": lambda: odd(torch.clone),
    "follows-its-arguments": cached,
    "survives-casting": cached,
    "paths-agree": lambda: code(half(OMEGA), paths={"again": half(OMEGA)}),
}

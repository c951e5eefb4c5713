"""Rotary code whose law is false where the fields do not look: `exact` never says it holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.subjects import Rotary
from tests.programs.exact_asked import of, verdict
from tests.programs.exact_rotated import OMEGA, at, rotary, rotated


def through(dtype: torch.dtype) -> Rotary:
    return at(lambda p: p.to(dtype).to(torch.int64))


def branch(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if p.max() > 4096 else rotated(x, p)


def branch_of_item(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if int(p[0, 0]) > 4096 else rotated(x, p)


def branch_of_list(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if max(p.flatten().tolist()) > 4096 else rotated(x, p)


def branch_of_numpy(x: Tensor, p: Tensor) -> Tensor:
    return rotated(x, p * p) if p.numpy().max() > 4096 else rotated(x, p)


def written(x: Tensor, p: Tensor) -> Tensor:
    p = p.clone()
    p[p > 100] = 0
    return rotated(x, p)


def _copied(p: Tensor) -> Tensor:
    return torch.zeros(p.shape, dtype=torch.int64).copy_(p)


def _put(p: Tensor) -> Tensor:
    made = torch.zeros(p.shape, dtype=torch.int64)
    made[:] = p
    return made


POSITIONS: dict[str, Callable[[], Rotary]] = {
    "a branch on the largest": lambda: rotary(branch),
    "a branch on a number read out": lambda: rotary(branch_of_item),
    "a branch on a list": lambda: rotary(branch_of_list),
    "a branch on an array": lambda: rotary(branch_of_numpy),
    "a choice": lambda: at(lambda p: torch.where(p > 100, 0, p)),
    "a mask that is written": lambda: rotary(written),
    "a mask that is multiplied": lambda: at(lambda p: p * (p < 100)),
    "a mask that is filled": lambda: at(lambda p: p.masked_fill(p > 100, 0)),
    "an end": lambda: at(lambda p: p.clamp(max=1000)),
    "an end by minimum": lambda: at(lambda p: torch.minimum(p, torch.tensor(1000))),
    "a remainder": lambda: at(lambda p: p % 1024),
    "fmod": lambda: at(lambda p: torch.fmod(p, 1024)),
    "bits": lambda: at(lambda p: p & 1023),
    "a shift of bits": lambda: at(lambda p: p + (p >> 12)),
    "whole quotients": lambda: at(lambda p: p + p // 4096),
    "quotients rounded": lambda: at(lambda p: p + torch.div(p, 4096, rounding_mode="floor").long()),
    "cut to whole numbers": lambda: at(lambda p: p + (p / 4096).long()),
    "cut by type": lambda: at(lambda p: p + (p * 0.0001).type(torch.int64)),
    "floor": lambda: at(lambda p: p + (p / 4096).floor()),
    "round": lambda: at(lambda p: p + (p / 4096).round()),
    "ceil in place": lambda: at(lambda p: p + (p / 4096 - 0.01).ceil_()),
    "absolute values": lambda: at(lambda p: (p - 100).abs()),
    "signs": lambda: at(lambda p: p * torch.sign(p - 4096)),
    "relu": lambda: at(lambda p: torch.relu(p - 4096) + p),
    "truth": lambda: at(lambda p: p * (p // 4096 == 0).bool()),
    "a cumulative maximum": lambda: at(lambda p: p.cummax(-1).values - p.cummax(-1).values + p),
    "sorted": lambda: at(lambda p: p.sort(-1).values + p - p.sort(-1).values),
    "buckets": lambda: at(lambda p: p + torch.bucketize(p, torch.tensor([500, 4000]))),
    "a choice by a root": lambda: at(lambda p: torch.where(p.sqrt() > 20, 0, p)),
    "a choice by a quotient": lambda: at(lambda p: torch.where(40 / (p + 1) < 0.1, 0, p)),
    "copied and cut": lambda: at(lambda p: _copied(p).clamp(max=99)),
    "copied by its places": lambda: at(lambda p: _put(p).clamp(max=99)),
    "heaviside": lambda: at(lambda p: p + torch.heaviside(p - 500.5, torch.tensor(0.0))),
    **{
        f"through {dtype}": (lambda dtype=dtype: through(dtype))  # type: ignore[misc]
        for dtype in (
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.uint16,
            torch.float16,
            torch.bfloat16,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
        )
    },
}


@pytest.mark.parametrize("name", POSITIONS)
def test_what_is_done_to_some_positions_alone_is_not_held(name: str) -> None:
    found = of(POSITIONS[name](), "relative")["relative"]
    assert found.verdict in ("undecided", "not asked", "broken"), found.why


RIGHT_AT: dict[str, Callable[[], Rotary]] = {
    "as they are": lambda: at(lambda p: p),
    "in float32": lambda: at(lambda p: p.float()),
    "in int32": lambda: at(lambda p: p.to(torch.int32)),
    "in float64": lambda: at(lambda p: p.double()),
    "shifted": lambda: at(lambda p: p + 1000),
    "negative": lambda: at(lambda p: -p),
    "backwards": lambda: at(lambda p: 7 - 3 * p),
    "stretched": lambda: at(lambda p: p / 4),
    "stretched by a float": lambda: at(lambda p: p * 0.1),
    "in a format that has them all": lambda: at(lambda p: p.to(torch.int16), most=1000),
    "cloned and written": lambda: at(lambda p: p.clone().add_(1)),
}


@pytest.mark.parametrize("name", RIGHT_AT)
def test_sums_and_products_of_positions_hold_and_are_told(name: str) -> None:
    found = of(RIGHT_AT[name](), "relative")["relative"]
    assert found.verdict == "holds", found.why
    assert "at positions" in found.why
    assert "on the branches taken there" in found.why


def angles_written_into(x: Tensor, p: Tensor) -> Tensor:
    angle = p[:, None, :, None] * OMEGA
    cos = angle.cos()
    angle.add_(p[:, None, :, None] * 0.5)
    sin = angle.sin()
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)


def test_angles_that_are_written_into_are_others() -> None:
    assert verdict(rotary(angles_written_into), "norm") == "broken"


def test_heads_that_are_exchanged_are_not_alike() -> None:
    assert verdict(rotary(rotated, heads=4), "every-head-alike") == "holds"
    for wrong in (lambda x: x.flip(1), lambda x: x.roll(1, 1), lambda x: x + x.cumsum(1)):
        found = rotary(lambda x, p, wrong=wrong: rotated(wrong(x), p), heads=4)  # type: ignore[misc]
        assert verdict(found, "every-head-alike") == "broken"


def test_large_frequencies_are_no_quarters_of_a_turn() -> None:
    full = torch.tensor(2 * math.pi)
    true = rotary(lambda x, p: rotated(x, p) * torch.cos(full * p)[:, None, :, None])
    assert verdict(true, "norm") == "holds"
    wrong = rotary(lambda x, p: rotated(x, p) * torch.cos(1e7 * p)[:, None, :, None])
    assert verdict(wrong, "norm") in ("broken", "undecided")

"""Rotary code is in all calls what it is declared to be, and relative at many tokens."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Rotary
from attnproof.theorems.laws.rotary import MANY, running_relative

from .rotary_code import half, ladder

OMEGA = ladder(8)
ORDER = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])  # of neighbours, as halves
When = Callable[[Tensor, Tensor], bool]
FAULTS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "frequencies-as-declared": lambda _, x, at: half(1.1 * OMEGA)(x, at),
    "layout-as-declared": lambda _, x, at: half(OMEGA)(x[..., ORDER], at)[..., ORDER.argsort()],
    "width-as-declared": lambda out, x, _: torch.cat((out[..., :3], x[..., 3:]), -1),
    "length-as-declared": lambda out, *_: 2 * out,
}
WHEN: dict[str, When] = {
    "a token is decoded": lambda x, _: x.shape[2] == 1,
    "there is one row": lambda x, at: x.shape[0] == 1 and x.shape[2] > 1 and bool(at.any()),
    "positions are counted": lambda x, at: (
        x.shape[2] > 1 and torch.equal(at[0], torch.arange(x.shape[2]))
    ),
    "rows differ": lambda _, at: at.shape[0] > 1 and not torch.equal(at[0], at[1]),
}


def verdict(law: str, when: When) -> str:
    def rotate(x: Tensor, at: Tensor) -> Tensor:
        out = half(OMEGA)(x, at)
        return FAULTS[law](out, x, at) if when(x, at) else out

    declared = DeclaredRotary(base=10_000.0, layout="half", width=8)
    code = Rotary(name="code", rotate=rotate, width=8, declared=declared)
    (found,) = examine(code, (Draw(0),), (law,))
    return found.verdict


@pytest.mark.parametrize("law", FAULTS)
@pytest.mark.parametrize("case", WHEN)
def test_a_fault_in_some_calls_alone_is_found(law: str, case: str) -> None:
    assert verdict(law, WHEN[case]) == "broken"


@pytest.mark.parametrize("law", FAULTS)
def test_correct_code_is_left_alone(law: str) -> None:
    assert verdict(law, lambda *_: False) == "holds"


def test_the_last_head_is_read_as_well() -> None:
    def rotate(x: Tensor, at: Tensor) -> Tensor:
        out = half(OMEGA)(x, at)
        return torch.cat((out[:, :-1], half(1.1 * OMEGA)(x, at)[:, -1:]), 1)

    declared = DeclaredRotary(base=10_000.0, layout="half", width=8)
    code = Rotary(name="code", rotate=rotate, width=8, heads=3, declared=declared)
    (found,) = examine(code, (Draw(0),), ("frequencies-as-declared",))
    assert found.verdict == "broken"
    assert "in the last head" in found.why


@pytest.mark.parametrize("wrong", [None, 0, 300, 399])
def test_the_first_of_many_queries_show_a_fault_at_any_place(wrong: int | None) -> None:
    """Products are those of the first 64 queries with all keys."""

    def running(x: Any) -> Any:
        angles = np.arange(x.shape[2])[:, None] * np.array([1.0, 0.1])
        if wrong is not None:
            angles[wrong] += 0.01
        turned = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angles)
        return np.concatenate((turned.real, turned.imag), axis=-1)

    numbers = np.random.default_rng(0)
    q, k, z = (numbers.normal(size=(1, 2, n, 4)) for n in (400, 400, 3))
    later, here = running_relative(SimpleNamespace(running=running), q, k, z)
    assert later.shape == (1, 2, MANY, 400)
    assert np.allclose(later, here) == (wrong is None)

"""Rounding bounds: never exceeded by correct code, tight enough to catch wrong code."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic, representable
from attnproof.numeric.attention_bound import AttentionBound, softmax_bound
from attnproof.numeric.calibration.store import KNOWN, read
from attnproof.numeric.devices import name_of, unit_roundoff
from attnproof.numeric.profile import profile_of

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.bfloat16)


def drawn(seed: int, dtype: torch.dtype, *shape: Any, scale: Any = 1.0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


def arithmetic(dtype: torch.dtype) -> Any:
    return Arithmetic(profile_of(dtype, CPU))


OPERATIONS: dict[str, Any] = {
    "add": lambda _, a, b: a + b,
    "multiply": lambda _, a, b: a * b,
    "divide": lambda _, a, b: a / (b * b + 1),
    "exp": lambda xp, a, b: xp.exp(a * b),
    "tanh": lambda xp, a, b: xp.tanh(a - b),
    "log": lambda xp, a, b: xp.log(a * b * a * b + 1),
    "sqrt": lambda xp, a, b: xp.sqrt(b * b + a * a),
    "square": lambda _, a, b: (a + b) ** 2,
    "power": lambda _, a, b: (a + b) ** 3,
    "cos": lambda xp, a, b: xp.cos(a * b * 300),
    "sum": lambda _, a, b: (a * b).sum(0),
    "matmul": lambda _, a, b: (a @ b) @ a,
    "scaled": lambda _, a, b: (a - b) * (1 / 48**0.5),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_rule_holds_over_many_draws(name: str, dtype: torch.dtype) -> None:
    how, numbers = OPERATIONS[name], arithmetic(dtype)
    worst = 0.0
    for seed in range(30):
        a, b = drawn(seed, dtype, 40, 40), drawn(seed + 1000, dtype, 40, 40)
        bound = how(numbers, numbers.exact(a.double()), numbers.exact(b.double()))
        error = (how(torch, a, b).double() - bound.value).abs()
        worst = max(worst, float((error / bound.error()).max()))
    assert worst <= 1, f"{name} in {dtype}: error {worst:.2f} times the bound"
    assert worst > 0.005, f"{name} in {dtype}: the bound is {1 / worst:.0f} times the error"


def test_a_bound_can_be_exceeded() -> None:
    numbers = arithmetic(torch.float32)
    a = drawn(0, torch.float32, 40, 40)
    bound = numbers.exp(numbers.exact(a.double()))
    wrong = torch.exp(a * (1 + 2**-18)).double()
    assert bool(((wrong - bound.value).abs() > bound.error()).any())


def test_the_error_of_an_angle_grows_with_the_position() -> None:
    numbers = arithmetic(torch.float32)
    radii = []
    for position in (1.0, 1e3, 1e6):
        angle = numbers.exact(torch.tensor([position])) * numbers.exact(torch.tensor([0.3]))
        radii.append(float(numbers.cos(angle).error()))
    assert radii[2] > 100 * radii[1] > 100 * radii[0]
    assert radii[2] < 0.1


def attend(query: Any, key: Any, value: Any, scale: Any = None) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(
        query[None, None], key[None, None], value[None, None], scale=scale
    )[0, 0]


@pytest.mark.parametrize("dtype", [torch.float64, *DTYPES])
@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_fused_attention_is_within_its_bound(dtype: torch.dtype, spread: float) -> None:
    numbers, worst = arithmetic(dtype), 0.0
    for seed in range(12):
        q, k, v = (drawn(seed * 3 + i, dtype, 300, 32, scale=spread) for i in range(3))
        v = v + 5 * (seed % 2)
        bound = AttentionBound()(*(numbers.exact(x.double()) for x in (q, k, v)))
        error = (attend(q, k, v).double() - bound.value).abs()
        worst = max(worst, float((error / bound.error()).max()))
    assert worst <= 1
    assert worst > 1e-3


def test_a_scale_of_one_more_channel_leaves_the_bound() -> None:
    numbers = arithmetic(torch.float32)
    q, k, v = (drawn(i, torch.float32, 300, 32, scale=1.5) for i in range(3))
    bound = AttentionBound()(*(numbers.exact(x.double()) for x in (q, k, v)))
    error = (attend(q, k, v, scale=1 / math.sqrt(33)).double() - bound.value).abs()
    assert bool((error > bound.error()).all(-1).any())


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_is_within_its_bound(dtype: torch.dtype) -> None:
    numbers, worst = arithmetic(dtype), 0.0
    for seed in range(30):
        s = drawn(seed, dtype, 20, 200, scale=4)
        s[:, 7] = -math.inf
        bound = softmax_bound(numbers.exact(s.double()))
        error = (torch.softmax(s, -1).double() - bound.value).abs()
        assert bool((error <= bound.error()).all())
        worst = max(worst, float((error / bound.error()).nan_to_num().max()))
    assert worst > 0.01


def test_numbers_that_are_exact() -> None:
    u = unit_roundoff(torch.bfloat16)
    assert representable(256, u)
    assert not representable(257, u)
    assert representable(-0.375, u)
    assert not representable(0.1, u)


def test_sums_are_bounded_by_the_orders_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    own = profile_of(torch.float32, CPU)
    for queries in (33, 64):
        assert 64 < own.attention_terms(65_536, "flash", queries) <= 65_536
    assert own.attention_terms(65_536, "not measured", 33) == 65_536
    measured = read(next(KNOWN.glob("cpu-amd-*.json")))
    monkeypatch.setattr(
        "attnproof.numeric.profile.constants_for",
        lambda dtype, _: (measured.of(name_of(dtype)), measured.label),
    )
    profile = profile_of(torch.float32, CPU)
    assert profile.sums.terms(2) == 2
    assert profile.sums.terms(65_536) < 1_024
    assert profile.product_terms(65_536, 1, 64) == 65_536, "a narrow product: one after another"
    assert profile.product_terms(512, 64, 64) <= 512
    assert profile.attention_terms(65_536, "flash", 33) == 65_536, "a query alone in its block"
    assert profile.attention_terms(65_536, "flash", 64) < 65_536
    assert profile.attention_terms(65_536, "not measured", 33) == 65_536


def test_tf32_is_part_of_the_profile() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        profile = profile_of(torch.float32, CPU)
    finally:
        torch.set_float32_matmul_precision(before)
    assert profile.operand == 2**-11
    assert "matrix operands read at 2^-11" in str(profile)
    assert profile_of(torch.float32, CPU).operand == 0.0

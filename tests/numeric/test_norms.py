"""Errors of long products, bounded through the norms of their factors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attnproof.numeric import error_analysis
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.bounded_array import spectral
from attnproof.numeric.profile import profile_of
from tests.numeric.statements import CPU


def chain(matrix: Any, start: Any, depth: int, bias: Any) -> Any:
    state = start
    for _ in range(depth):
        state = matrix @ state
        if bias is not None:
            state = (
                torch.tanh(state + bias)
                if isinstance(state, torch.Tensor)
                else (state.arithmetic.tanh(state + bias))
            )
    return state


@pytest.mark.parametrize("orthonormal", [True, False])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("shape", [(24,), (24, 24)])
def test_the_bound_of_many_products_is_never_exceeded(
    shape: tuple[int, ...], *, biased: bool, orthonormal: bool
) -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    worst, few = 0.0, 0.0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        matrix = torch.randn(24, 24, generator=generator) / 24**0.5
        matrix = torch.linalg.qr(matrix).Q if orthonormal else matrix * 0.8
        start, bias = (torch.randn(shape, generator=generator) for _ in range(2))
        added = bias if biased else None
        computed = chain(matrix, start, 12, added)
        exact = None if added is None else numbers.exact(added.double())
        bound = chain(numbers.exact(matrix.double()), numbers.exact(start.double()), 12, exact)
        ratio = (computed.double() - bound.value).abs() / bound.error()
        worst = max(worst, float(ratio.max()))
        few = max(few, float((bound.error() / bound.value.abs().mean()).max()))
    assert worst <= 1
    assert worst > 1e-6
    assert few < 1


def test_a_wrong_product_leaves_the_bound() -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    generator = torch.Generator().manual_seed(0)
    matrix = torch.linalg.qr(torch.randn(24, 24, generator=generator)).Q
    start = torch.randn(24, generator=generator)
    bound = chain(numbers.exact(matrix.double()), numbers.exact(start.double()), 40, None)
    wrong = chain(matrix, start, 39, None)
    assert bool(((wrong.double() - bound.value).abs() > bound.error()).any())


def test_entries_alone_would_lose_a_long_product(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU))
    generator = torch.Generator().manual_seed(0)
    matrix = torch.linalg.qr(torch.randn(24, 24, generator=generator)).Q.double()
    start = numbers.exact(torch.randn(24, generator=generator).double())
    in_norm = chain(numbers.exact(matrix), start, 40, None)
    assert float(in_norm.error().max()) < 0.05
    monkeypatch.setattr(error_analysis, "LARGEST", 0)
    entries = chain(numbers.exact(matrix), start, 40, None)
    assert float(entries.error().max()) > 1e3


def test_a_norm_is_not_below_the_largest_singular_value() -> None:
    for seed in range(10):
        m = torch.randn(7, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        assert spectral(m) >= float(torch.linalg.svdvals(m).max())
        assert spectral(m) < 1.001 * float(torch.linalg.svdvals(m).max())

"""Numbers that occur many times have equal rounding errors: honest code is not accused of them."""

from __future__ import annotations

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.attention_bound import AttentionBound
from attnproof.numeric.check import measure
from attnproof.numeric.implementations import llama_rotary
from attnproof.numeric.policies.residual import LIMIT, Generic
from attnproof.numeric.policies.weights import attention_spread
from attnproof.numeric.profile import profile_of
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real
from attnproof.theorems.definitions.attention import attention
from tests.numeric.statements import CPU, d, ell, n, r, stated

SIDES = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "sigma": permutation(n)}
ONE = {**SIDES, "c": real(ell)}
UNIFORM = {
    "queries of 0": stated(
        SIDES,
        lambda Q, K, V, sigma: equal(attention(0 * Q, K, V), attention(0 * Q, K[sigma], V[sigma])),
    ),
    "one key": stated(
        ONE,
        lambda Q, K, V, c, sigma: equal(
            attention(Q, 0 * K + c, V), attention(Q, 0 * K + c, V[sigma])
        ),
    ),
}


@pytest.mark.parametrize("name", UNIFORM)
def test_uniform_attention_is_accepted(name: str) -> None:
    for seed in (3, 4, 8, 15):
        for m in measure(
            UNIFORM[name],
            scale="small",
            device="cpu",
            dtypes=["bfloat16"],
            distributions=["normal"],
            seed=seed,
        ):
            assert m.status in ("held", "skipped"), m


def test_values_that_are_keys_too_have_the_errors_of_the_keys() -> None:
    """With one feature o moves by p (1 + (v − o) q) with each error: a sum, no quadrature."""
    numbers = Arithmetic(profile_of(torch.bfloat16, CPU), spreads=True)
    x = torch.randn(64, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    once, twice = (
        numbers.exact(x) * numbers.exact(torch.full((1, 1), 1.3, dtype=torch.float64))
        for _ in range(2)
    )
    query = numbers.exact(torch.ones(1, 1, dtype=torch.float64))
    same, other = (
        float(attention_spread(AttentionBound(), query, once, value).probable())
        for value in (once, twice)
    )
    assert same > other


def test_a_table_of_differences_has_equal_errors_along_its_diagonals() -> None:
    profile, rows, columns = profile_of(torch.bfloat16, CPU), 64, 1_024
    worst = 0.0
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        step = torch.rand((), generator=generator)
        places = torch.randperm(columns, generator=generator)[:rows].sort().values
        apart = places[:, None] - torch.arange(columns)
        numbers = Arithmetic(profile, spreads=True)
        angles = numbers.exact(apart.double(), profile.wide) * numbers.exact(
            step.double().reshape(1, 1), profile.wide
        )
        bound = numbers.cos(angles)
        bound = numbers.stored(bound, profile.store) if bound.unit < profile.store else bound
        error = torch.cos(apart.float() * step).bfloat16().double() - bound.value
        worst = max(worst, Generic(bound, error, {}).along(bound.value).z(LIMIT))
    assert worst < LIMIT


def test_an_angle_is_off_alike_in_its_cosine_and_sine() -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU), spreads=True)
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.rand(shape, generator=generator).double() for shape in ((2, 8), (4,)))
    p = torch.tensor([1e5, 1e6]).double()
    rotated = llama_rotary._bound(*map(numbers.exact, (x, p, w)))
    assert bool((rotated.likely() < 0.99 * rotated.error()).all())  # |sin| + |cos| is below 2

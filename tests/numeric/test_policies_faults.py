"""Each policy refuses a fault that the deterministic bound lets pass, and no honest code."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.attention_bound import AttentionBound, scores_of
from attnproof.numeric.check import measure
from attnproof.numeric.implementations import Implementation, llama_rotary
from attnproof.numeric.implementations.scaled_dot_product import implementations
from attnproof.numeric.measurement import miss_probability
from attnproof.numeric.policies.judging import queries_are_given, queries_are_permuted
from attnproof.numeric.policies.residual import (
    KEY_LIMIT,
    LIMIT,
    Adjoint,
    CallErrors,
    SideErrors,
    strongest_test,
)
from attnproof.numeric.policies.weights import attended, attention_spread, kernel_of
from attnproof.numeric.profile import profile_of
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import frequencies, permutation, positions, real
from attnproof.theorems.definitions.attention import attention
from attnproof.theorems.definitions.rotary import rotate_half
from tests.numeric.statements import CPU, PAIRS, B, attend, d, ell, n, planted, r, stated

QUERIES = stated(
    {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "tau": permutation(r)},
    lambda Q, K, V, tau: equal(attention(Q[tau], K, V), attention(Q, K, V)[tau]),
)
ROTATED = stated(
    {
        "Q": real(r, 2 * B),
        "K": real(n, 2 * B),
        "V": real(n, d),
        "sigma": permutation(n),
        "p": positions(r),
        "m": positions(n),
        "omega": frequencies(B),
    },
    lambda Q, K, V, sigma, p, m, omega: equal(
        attention(rotate_half(Q, p, omega), rotate_half(K[sigma], m[sigma], omega), V[sigma]),
        attention(rotate_half(Q, p, omega), rotate_half(K, m, omega), V),
    ),
)


def judged(statement: Any, implementation: Any, dtype: str, **how: Any) -> dict[str, Any]:
    (m,) = measure(
        statement,
        device="cpu",
        distributions=["normal"],
        dtypes=[dtype],
        implementations=[implementation],
        **how,
    )
    return {one.policy: one for one in m.policies} | {"all": m}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_honest_code_is_accepted(dtype: str) -> None:
    for statement in (PAIRS, QUERIES, ROTATED):
        for m in measure(
            statement,
            scale="small",
            device="cpu",
            dtypes=[dtype],
            distributions=["normal", "peaked"],
        ):
            assert m.status in ("held", "skipped"), m
            assert {j.policy for j in m.policies} == {
                "deterministic",
                "probabilistic",
                "residual",
                "bitwise",
            }


def fault(scale: float) -> Any:
    return planted(lambda q, k, v: attend(q, k, v, scale / math.sqrt(q.shape[-1])))


def test_the_probabilistic_bound_sees_what_the_deterministic_one_does_not() -> None:
    found = judged(PAIRS, fault(1 + 4e-5), "float32")
    assert found["deterministic"].status == "held"
    assert found["probabilistic"].status == "violated"
    assert found["all"].status == "violated"
    assert found["all"].error > found["all"].tolerance


def test_residuals_see_a_scale_and_name_it() -> None:
    found = judged(PAIRS, fault(1.00001), "float32")
    assert found["deterministic"].status == found["probabilistic"].status == "held"
    assert found["residual"].status == "violated"
    assert found["all"].reason.startswith("residual: |z| = ")
    assert judged(PAIRS, fault(1.0), "float32")["all"].status == "held"


ROWS, KEYS, WIDTH = 64, 50_000, 64


@pytest.mark.parametrize("dropped", [None, 12_345])
def test_one_key_of_fifty_thousand_is_missed_in_bfloat16(dropped: int | None) -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(count, WIDTH, generator=generator, dtype=torch.float64).bfloat16()
        for count in (ROWS, KEYS, KEYS)
    )
    numbers, bound = Arithmetic(profile_of(torch.bfloat16, CPU), spreads=True), AttentionBound()
    query, key, value = (numbers.exact(x.double()) for x in (q, k, v))
    call = attended(scores_of(query, key, value), query, kernel_of(bound, query, key))
    kept = torch.arange(KEYS) != (-1 if dropped is None else dropped)
    error = attend(q, k[kept], v[kept]).double() - call.output
    assert bool((error.abs() <= bound(query, key, value).error()).all())
    told = {"normaliser": Adjoint(call.scores, call.output)}
    found = strongest_test({"left": [CallErrors(call, error, told)]})
    if dropped is None:
        assert found.ratio < 1
    else:
        assert found.ratio > 1
        assert f"key {dropped:,}" in found.told
        assert f"limit {KEY_LIMIT:g}" in found.told


def rotary_fault(shift: float, power: float) -> Implementation:
    """Attention over queries rotated by other positions or frequencies, as one definition."""

    def rotate(x: Any, p: Any, w: Any) -> Any:
        moved = p + (shift if x.shape[0] == 11 else 0.0)
        return rotate_half.body(x, moved, w**power).to(x.dtype)

    from attnproof.numeric.implementations.llama_rotary import _bound
    from attnproof.numeric.row_selection import Replacement, never

    return Implementation(
        "planted",
        {"rotate_half": Replacement(rotate, (-2, -1, None))},
        {"rotate_half": Replacement(_bound, (-2, -1, None), never)},
    )


@pytest.mark.parametrize(("shift", "power"), [(2e-2, 1.0), (0.0, 1.0), (0.0, 1 + 1e-5)])
def test_rotary_faults_have_their_directions(shift: float, power: float) -> None:
    found = judged(ROTATED, rotary_fault(shift, power), "float32", scale="small")
    wrong = shift != 0 or power != 1
    assert (found["residual"].status == "violated") == wrong, found["residual"]


def flash() -> Implementation:
    (one,) = [i for i in implementations(CPU) if i.fused]
    return one


def test_queries_in_another_order_are_equal_bit_for_bit() -> None:
    assert queries_are_permuted(QUERIES.claims[""])
    assert not queries_are_permuted(PAIRS.claims[""])
    assert judged(QUERIES, flash(), "float32", scale="small")["bitwise"].status == "held"
    skipped = judged(PAIRS, "eager", "float32", scale="small")["bitwise"]
    assert skipped.status == "skipped"
    assert skipped.told


def test_queries_that_are_computed_may_round_otherwise_alone() -> None:
    def body(Q: Any, K: Any, V: Any, W: Any, tau: Any) -> Any:
        return equal(attention((Q @ W)[tau], K, V), attention(Q @ W, K, V)[tau])

    givens = {"W": real(ell, ell), "tau": permutation(r)}
    givens |= {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)}
    claim = stated(givens, body).claims[""]
    assert not queries_are_given(claim.left)
    assert not queries_are_permuted(claim)
    assert queries_are_given(PAIRS.claims[""].right)


def by_place(q: Any, k: Any, v: Any) -> Any:
    """A last bit that depends on the place of the query in its array."""
    output = attend(q, k, v)
    output[0] *= 1 + torch.finfo(output.dtype).eps
    return output


def test_a_last_bit_that_depends_on_the_place_is_seen_bitwise() -> None:
    honest = flash()
    code = {
        name: replace(swap, compute=by_place if name == "attention" else swap.compute)
        for name, swap in honest.replaced.items()
    }
    found = judged(QUERIES, replace(honest, replaced=code), "float32", scale="small")
    others = ("deterministic", "probabilistic", "residual")
    assert {found[name].status for name in others} == {"held"}
    assert found["bitwise"].status == "violated"
    assert found["all"].reason.startswith("bitwise: queries in another order")


def test_where_errors_are_not_independent_nothing_is_promised() -> None:
    (m,) = measure(
        PAIRS,
        scale="small",
        device="cpu",
        distributions=["clustered"],
        dtypes=["float32"],
        implementations=["eager"],
    )
    told = {j.policy: j for j in m.policies}
    assert told["probabilistic"].status == told["residual"].status == "skipped"
    assert "equal numbers have equal rounding errors" in told["probabilistic"].told
    assert "float64" in judged(PAIRS, "eager", "float64", scale="small")["probabilistic"].told


def test_what_a_sample_can_say() -> None:
    assert miss_probability(64) == pytest.approx(0.9**62)
    assert miss_probability(8, heads=8) == pytest.approx(0.9**48)
    assert miss_probability(2) == 1.0


# Numbers that occur many times have equal rounding errors: honest code is not accused of them.


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
        float(attention_spread(AttentionBound(), query, once, value).probable_radius())
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
        worst = max(worst, SideErrors(bound, error, {}).projection_along(bound.value).z(LIMIT))
    assert worst < LIMIT


def test_an_angle_is_off_alike_in_its_cosine_and_sine() -> None:
    numbers = Arithmetic(profile_of(torch.float32, CPU), spreads=True)
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.rand(shape, generator=generator).double() for shape in ((2, 8), (4,)))
    p = torch.tensor([1e5, 1e6]).double()
    rotated = llama_rotary._bound(*map(numbers.exact, (x, p, w)))
    assert bool(
        (rotated.smallest_radius() < 0.99 * rotated.error()).all()
    )  # |sin| + |cos| is below 2

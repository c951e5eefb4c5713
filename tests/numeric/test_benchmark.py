"""The cost of a check is counted in forwards, and the check is the one that is counted."""

from __future__ import annotations

from attnproof.theorems.definitions.attention import attention
from benchmarks.numeric_time import benchmark_equivariance


def test_a_check_is_measured_in_forwards() -> None:
    cost = benchmark_equivariance(attention, tokens=48, heads=2, width=8, rounds=2, device="cpu")
    assert (cost.tokens, cost.heads, cost.width) == (48, 2, 8)
    assert cost.ratio > 1
    assert 0 < cost.largest_difference < 1e-5
    assert "forwards" in str(cost)


def test_code_that_is_not_equivariant_shows() -> None:
    def first_query_only(query: object, key: object, value: object) -> object:
        return attention(query, key, value) + query[:, :1]  # type: ignore[index]

    cost = benchmark_equivariance(
        first_query_only, tokens=48, heads=2, width=8, rounds=1, device="cpu"
    )
    assert cost.largest_difference > 0.1

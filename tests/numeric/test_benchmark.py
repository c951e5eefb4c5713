"""The cost of a check is counted in forwards, and the check is the one that is counted."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest
import torch
from torch import Tensor

from attnproof.numeric.at_scale.call import Call, kernel_named
from attnproof.theorems.definitions.attention import attention
from benchmarks import numeric_time
from benchmarks.numeric_time import benchmark_equivariance, benchmark_rows
from benchmarks.scale_time import at_scale, exactly

CPU = torch.device("cpu")


def test_a_check_is_measured_in_forwards() -> None:
    cost, difference = benchmark_equivariance(
        attention, tokens=48, heads=2, width=8, rounds=2, device="cpu"
    )
    assert cost.ratio > 1
    assert cost.check > cost.forward > 0
    assert 0 < difference < 1e-5


def test_a_forward_in_which_the_clock_stands_still_has_no_ratio(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numeric_time, "process_time", lambda: 1.0)
    cost = numeric_time.in_forwards(lambda: None, lambda: None, CPU, rounds=1)
    assert isnan(cost.cpu_ratio)
    assert cost.ratio > 0


def test_code_that_is_not_equivariant_shows() -> None:
    def first_query_only(query: object, key: object, value: object) -> object:
        return attention(query, key, value) + query[:, :1]  # type: ignore[index]

    _, difference = benchmark_equivariance(
        first_query_only, tokens=48, heads=2, width=8, rounds=1, device="cpu"
    )
    assert difference > 0.1


def test_a_check_by_rows_is_measured_in_forwards_and_notices_other_keys() -> None:
    call = Call(kernel_named("auto", CPU), tokens=256, heads=2, width=8)
    cost, worst = benchmark_rows(call, rounds=1)
    assert cost.ratio > 0
    assert worst.status == "held"

    def forgets_the_last(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        return call.kernel.attend(q, k[:, :-1], v[:, :-1], causal)

    wrong = replace(call, kernel=replace(call.kernel, attend=forgets_the_last))
    assert benchmark_rows(wrong, rounds=1)[1].status == "violated"


@pytest.mark.parametrize("way", ["sampled", "clustered", "alone", "keys"])
def test_a_check_at_scale_is_counted_in_forwards(way: str) -> None:
    call = Call(kernel_named("auto", CPU), tokens=256, heads=2, width=8)
    assert at_scale(call, way, rounds=1).ratio > 0


def test_an_exact_check_is_counted_in_forwards() -> None:
    assert exactly(64, heads=2, forward_heads=2, rounds=1).ratio > 0

"""Kernels at scale: correct ones pass every way, and every planted fault shows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attnproof.numeric.at_scale.clusters import LIMIT
from attnproof.numeric.at_scale.methods import METHODS, check_at_scale
from attnproof.numeric.results import as_float
from tests.numeric.scale_code import (
    DTYPES,
    FAULTS,
    FLASH,
    TOKENS,
    call,
    checked,
    drop,
    mask_off_by_one,
    one_row,
    other_scale,
    planted,
    without,
)


@pytest.mark.parametrize("dtype", DTYPES[:3])
@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_itself_passes_every_way(dtype: torch.dtype, causal: bool) -> None:
    for found in check_at_scale(call(dtype, causal=causal, tokens=2_050), tuple(METHODS)):
        skipped = causal and found.way in ("queries", "keys")
        assert found.status == ("skipped" if skipped else "held"), found
        assert all(as_float(j.ratio) < 1 for j in found.policies)


@pytest.mark.parametrize("way", ["sampled", "clustered"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(fault: str, causal: bool, way: str) -> None:
    found = checked(call(kernel=planted(FAULTS[fault]), causal=causal), way)
    assert found.status == "violated"
    assert found.ratio > 1


@pytest.mark.parametrize("way", ["sampled", "clustered"])
@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_a_mask_off_by_one_is_caught(way: str, dtype: torch.dtype) -> None:
    found = checked(call(dtype, kernel=planted(mask_off_by_one), causal=True), way)
    assert found.status == "violated"


@pytest.mark.parametrize("fault", ["a key dropped", "another scale"])
def test_faults_within_reach_are_caught(fault: str) -> None:
    kernel = planted(FAULTS[fault])
    assert checked(call(kernel=kernel, tokens=4_096), "reach").status == "violated"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("head", "row"), [(0, 1), (0, 1_023), (1, 1_024), (1, TOKENS - 1)])
def test_a_single_wrong_row_is_caught_by_clusters(head: int, row: int, causal: bool) -> None:
    asked = call(torch.bfloat16, kernel=planted(one_row(head, row)), causal=causal)
    found = checked(asked, "clustered")
    assert found.status == "violated"
    assert found.worst[:2] == (head, row)


def test_one_key_of_thousands_is_caught_in_bfloat16_by_its_residual() -> None:
    honest = checked(call(torch.bfloat16, tokens=4_096, seed=3), "clustered")
    found = checked(call(torch.bfloat16, tokens=4_096, seed=3, kernel=planted(drop)), "clustered")
    (keys,) = [j for j in found.policies if j.policy == "residual"]
    assert (found.status, keys.status) == ("violated", "violated")
    assert f"key {4_096 // 3} of head" in keys.told
    assert as_float(keys.ratio) * LIMIT > 10
    assert as_float(honest.policies[1].ratio) * LIMIT < 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_one_key_of_a_hundred_thousand_is_caught_within_reach(dtype: torch.dtype) -> None:
    def lost(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        assert not causal
        return FLASH.attend(q, without(k, 33_333), without(v, 33_333), False)

    asked = call(dtype, tokens=100_000, heads=1, seed=4)
    honest, found = checked(asked, "reach"), checked(replace(asked, kernel=planted(lost)), "reach")
    assert (honest.status, found.status) == ("held", "violated")
    certain, key = found.policies
    assert (certain.status, key.status) == ("held", "violated")
    assert "along key 33,333 of head 0" in key.told
    assert as_float(key.ratio) > 2
    assert as_float(honest.policies[1].ratio) < 0.7


@pytest.mark.parametrize("way", ["alone", "queries"])
def test_bits_of_another_row_are_caught(way: str) -> None:
    def fault(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        out = FLASH.attend(q, k, v, causal).clone()
        out[0, -1, 0] = torch.nextafter(out[0, -1, 0], torch.tensor(math.inf))
        return out

    found = checked(call(kernel=planted(fault), tokens=1_024), way)
    assert (found.status, found.policies[0].policy) == ("violated", "bitwise")


def test_a_causal_row_that_sees_the_future_is_caught_bit_for_bit() -> None:
    def fault(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        return FLASH.attend(q, k, v, not causal)

    found = checked(call(kernel=planted(fault), causal=True, tokens=2_048), "alone")
    assert found.status == "violated"


def test_permuted_keys_catch_what_depends_on_places() -> None:
    assert checked(call(kernel=planted(drop)), "keys").status == "violated"
    shared = checked(call(kernel=planted(other_scale)), "keys")
    assert shared.status == "held"
    assert "is not detected" in shared.misses


@pytest.mark.parametrize("way", METHODS)
def test_a_kernel_that_gives_no_numbers_is_not_finite(way: str) -> None:
    def fault(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
        out = FLASH.attend(q, k, v, causal).clone()
        out[-1, :] = math.nan
        return out

    assert checked(call(kernel=planted(fault)), way).status == "non-finite"

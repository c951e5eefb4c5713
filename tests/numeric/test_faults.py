"""Planted faults are caught, and correct code raises no alarm."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import measure
from attnproof.numeric.implementations import llama_rotary
from attnproof.numeric.profile import profile_of
from attnproof.numeric.row_selection import Replacement
from attnproof.symbolic.claim import equal
from attnproof.theorems.definitions.rotary import rotate_half
from tests.numeric.statements import CPU, PAIRS, ROTARY, attend, planted, stated, statuses

FAULTS = {
    "dropped key": lambda q, k, v: attend(q, k[1:], v[1:]),
    "scale of one more channel": lambda q, k, v: attend(q, k, v, 1 / math.sqrt(q.shape[-1] + 1)),
    "another permutation of values": lambda q, k, v: attend(q, k, v.roll(1, 0)),
    "values of another key doubled": lambda q, k, v: attend(
        q, torch.cat((k, k[:1])), torch.cat((v, v[:1]))
    ),
    "padding keys of score zero": lambda q, k, v: attend(
        q, torch.nn.functional.pad(k, (0, 0, 0, 3)), torch.nn.functional.pad(v, (0, 0, 0, 3))
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_planted_faults_are_caught(fault: str, dtype: str) -> None:
    for seed in range(5):
        (m,) = measure(
            PAIRS,
            scale="small",
            dtypes=[dtype],
            distributions=["normal"],
            implementations=[planted(FAULTS[fault])],
            seed=seed,
        )
        assert m.status == "violated"
        assert m.ratio > 2


def test_one_dropped_key_of_four_thousand_is_caught() -> None:
    (m,) = measure(PAIRS, dtypes=["float32"], implementations=[planted(FAULTS["dropped key"])])
    assert m.sizes["n"] == 4_096
    assert m.status == "violated"


def test_a_fault_both_sides_share_is_told_by_the_definition() -> None:
    (m,) = measure(
        PAIRS,
        scale="small",
        dtypes=["float64"],
        implementations=[planted(FAULTS["scale of one more channel"])],
    )
    assert "not the value of its definition" in m.reason


def test_correct_code_raises_no_alarm() -> None:
    for seed in range(12):
        for m in measure(PAIRS, scale="small", seed=seed, distributions=["normal"]):
            assert m.status in ("held", "skipped"), m
            assert m.status == "held" or m.dtype == "bfloat16", m


def llama(rotate: Any) -> Any:
    (code,) = llama_rotary.implementations(CPU)
    return replace(
        code, name="planted", replaced={"rotate_half": Replacement(rotate, (-2, -1, None))}
    )


def rotated(x: Any, positions: Any, frequencies: Any) -> Any:
    return rotate_half.body(x, positions, frequencies).to(x.dtype)


def test_rotary_code_of_transformers_holds() -> None:
    pytest.importorskip("transformers")
    found_ = measure(
        ROTARY,
        scale="small",
        distributions=["normal"],
        implementations=["transformers Llama rotary embedding"],
    )
    assert statuses(found_)["float64"] == statuses(found_)["float32"] == "held"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_positions_rounded_to_bfloat16_are_caught(dtype: str) -> None:
    held = measure(ROTARY, scale="small", dtypes=[dtype], implementations=[llama(rotated)])
    wrong = llama(lambda x, p, w: rotated(x, p.bfloat16().to(p.dtype), w))
    caught = measure(ROTARY, scale="small", dtypes=[dtype], implementations=[wrong])
    assert [m.status for m in (*held, *caught)] == ["held", "violated"]


def test_rotating_only_the_queries_is_violated() -> None:
    only = stated(
        ROTARY.givens,
        lambda X, p, s, omega: equal(
            rotate_half(X, p + s, omega) @ X.mT, rotate_half(X, p, omega) @ X.mT
        ),
    )
    for m in measure(only, scale="small", implementations=["eager"]):
        assert m.status == "violated"


def test_positions_beyond_float32_are_in_the_bound_of_the_rotary_table() -> None:
    (code,) = llama_rotary.implementations(CPU)
    numbers = Arithmetic(profile_of(torch.float64, CPU))
    positions = torch.tensor([2.0**24 + 1], dtype=torch.float64)
    arrays = torch.ones(1, 2).double(), positions, torch.ones(1).double() / 1024
    bound = code.bounds["rotate_half"].compute(*(numbers.exact(a) for a in arrays))
    unmoved = code.bounds["rotate_half"].compute(
        *(numbers.exact(a) for a in (arrays[0], positions - 1, arrays[2]))
    )
    assert bool((bound.error() > unmoved.error() + 2**-10).all())

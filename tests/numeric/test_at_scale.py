"""Kernels at scale: references are exact, samples and memory as said, and planted faults show."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attnproof.numeric import attention_bound as streaming
from attnproof.numeric import attention_bound as threads
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.at_scale import comparison
from attnproof.numeric.at_scale import sampled_rows as reach
from attnproof.numeric.at_scale.call import arrays, clustered
from attnproof.numeric.at_scale.clusters import LIMIT, blocks, totals
from attnproof.numeric.at_scale.comparison import Worst, sampling_words, with_residual, worse
from attnproof.numeric.at_scale.methods import METHODS, check_at_scale, default_methods
from attnproof.numeric.at_scale.sampled_rows import check_rows, most_rises, places, sampled
from attnproof.numeric.attention_bound import streamed
from attnproof.numeric.results import PolicyRecord, as_float
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_the_streamed_bound_is_the_bound_of_the_kernel(dtype: torch.dtype, causal: bool) -> None:
    asked = call(dtype, causal=causal, tokens=700)
    x = arrays(asked)
    at = torch.tensor([0, 5, 333, 699])
    bound, profile = asked.bound(700), asked.profile
    found = streamed(
        x.query[:, at], x.key, x.value, profile, bound, at if causal else None, chunk=64
    )
    exact = [Arithmetic(profile).exact(t.double()) for t in (x.query[:, at], x.key, x.value)]
    mask = [torch.arange(700) <= at[:, None]] if causal else []
    whole = bound(*exact, *mask)
    near = 1e-13 if dtype != torch.float64 else 1e-12
    assert torch.allclose(found.output, whole.value, rtol=0, atol=near)
    assert torch.allclose(found.radius, whole.error(), rtol=1e-3, atol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_parts_of_the_keys_join_to_the_whole(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = call(heads=1, causal=causal)
    x, at = arrays(asked), torch.tensor([0, 7, 600, TOKENS - 1])
    given = (x.query[:, at], x.key, x.value, asked.profile, asked.bound(TOKENS))
    last = at if causal else None
    whole = streamed(*given, last, chunk=32)
    monkeypatch.setattr(streaming, "LONG", 0)
    parts = streamed(*given, last, chunk=32)
    assert torch.allclose(parts.output, whole.output, rtol=0, atol=1e-13)
    assert bool((parts.radius >= whole.radius * (1 - 1e-9)).all())
    assert bool((parts.radius <= whole.radius * 1.5).all())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [7, 300])
def test_clusters_give_every_row_exactly(tokens: int, causal: bool) -> None:
    asked = call(causal=causal, tokens=tokens)
    x = clustered(asked, min(16, tokens))
    found = streamed(
        *x.arrays, asked.profile, asked.bound(tokens), torch.arange(tokens) if causal else None
    )
    one = replace(asked, heads=1)
    for head in range(2):
        part = x.head(head)
        pieces = [b.reference for b in blocks(one, part, totals(part))]
        output = torch.cat([r.output for r in pieces], 1)
        assert torch.allclose(output, found.output[head : head + 1], rtol=0, atol=1e-13)
        radius = torch.cat([r.radius for r in pieces], 1)
        assert torch.allclose(radius[:, -1], found.radius[head : head + 1, -1], rtol=0.1)


@pytest.mark.parametrize("causal", [False, True])
def test_the_projection_on_a_key_is_that_of_its_definition(causal: bool) -> None:
    asked = call(torch.bfloat16, tokens=300, heads=1, causal=causal)
    x, at, bound = arrays(asked), torch.tensor([0, 17, 200, 299]), asked.bound(300)
    last, query = at if causal else None, x.query[:, at]
    rows = asked.run(*x)[:, at]
    given = (query, x.key, x.value)
    exact = streamed(*given, asked.profile, bound, last)
    (head,) = comparison._heads(*given, rows, exact, asked.profile, bound, last)
    sums, short = comparison._keys(head, 0, 300, 2.0**-8)
    scores = (query[0].double() @ x.key[0].double().mT) / 8
    if causal:
        scores.masked_fill_(torch.arange(300) > at[:, None], -math.inf)
    p, v, o = torch.softmax(scores, -1), x.value[0].double(), exact.output[0]
    g = (head.share * p)[..., None] * (v - o[:, None])
    error = rows[0].double() - o
    assert torch.allclose(sums, (g * error[:, None]).sum((0, 2)), rtol=1e-9, atol=1e-18)
    for key in (0, 17, 150):
        whole = comparison._key_projection(head, key, asked.profile, bound, None)
        assert math.isclose(whole.sum, float(sums[key]), rel_tol=1e-9, abs_tol=1e-18)
        w = p * ((v * g[:, key, None]).sum(-1) - (o * g[:, key]).sum(-1, keepdim=True))
        stored = (2.0**-8 * p * (g[:, key] @ v.mT)).square().sum()
        least = (g[:, key].square() * head.own).sum() + stored
        assert float(short[key]) * (1 - 1e-9) <= whole.variance
        assert (
            float(least)
            <= whole.variance * (1 + 1e-9)
            <= float(least) * 1.5 + float((w * 1e-4).square().sum())
        )


def test_a_residual_that_says_no_is_never_lost() -> None:
    worst = Worst(1.0, 2.0, (0, 0, 0), "held")
    no, yes = (
        PolicyRecord("residual", "violated", 3.0, "z"),
        PolicyRecord("residual", "held", 0.1, "z"),
    )
    found = worse(with_residual(worst, no), with_residual(replace(worst, error=1.9), yes))
    assert (found.status, found.reason, found.further) == ("violated", "residual: z", (no,))


def test_rows_of_a_sample_are_both_ends_and_others() -> None:
    at = places(call(heads=8), 64)
    assert at.shape == (8, 8)
    assert bool((at[:, 0] == 0).all() and (at[:, -1] == TOKENS - 1).all())
    assert bool((at.diff(dim=1) > 0).all())
    assert len({tuple(row) for row in at.tolist()}) == 8


def test_what_a_sample_says_is_true() -> None:
    """Of 2,000 samples that look for a tenth of wrong rows, no more miss than the words say."""
    asked, wrong, missed = call(heads=1, tokens=300), set(range(100, 130)), 0
    for seed in range(2_000):
        at = places(replace(asked, seed=seed), 16)[0].tolist()
        missed += not wrong & set(at)
    assert missed / 2_000 < 0.9**14 * 1.15
    assert "(1−e)^14: 2.3e-01 for e = 10%" in sampling_words(14)


def test_most_rises_are_more_than_any_seen() -> None:
    torch.manual_seed(0)
    running = torch.rand(3_000, 2_000).cummax(-1).values
    seen = 1 + int((running[:, 1:] > running[:, :-1]).sum(-1).max())
    assert seen < most_rises(2_000, 3_000) < 50


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The most entries that one operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor) and not func.is_view:
            self.entries = max(self.entries, found.numel())
        return found


def test_no_array_grows_with_the_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    entries = []
    for tokens in (2_048, 8_192):
        asked = call(heads=1, width=8, tokens=tokens)
        x = arrays(asked)
        output = torch.zeros_like(x.value)
        with Largest() as largest:
            check_rows(asked, x, output, places(asked))
        entries.append(largest.entries)
    assert entries[0] == entries[1] < 2_048 * 64
    with Largest() as largest:
        torch.ones(3, 5) @ torch.ones(5, 100)
    assert largest.entries == 500


def test_where_no_forward_is_possible_some_rows_reach() -> None:
    assert default_methods(call()) == ("sampled", "clustered", "alone")
    assert default_methods(call(tokens=1_000_000, heads=8)) == ("reach",)
    found = checked(call(tokens=1_000_000, heads=8), "sampled")
    assert found.status == "skipped"
    assert "'reach'" in found.reason


def test_heads_that_do_not_fit_together_are_taken_in_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = call(heads=3, tokens=600)
    together = checked(asked, "reach")
    one = 2 * 600 * 64 * 4
    monkeypatch.setattr(reach, "available", lambda _: int(one / reach.MEMORY_SHARE) + 1)
    apart = checked(asked, "reach")
    assert (apart.error, apart.worst) == (together.error, together.worst)
    assert "1 of 3 heads at once" in apart.looked
    monkeypatch.setattr(reach, "available", lambda _: one)
    short = checked(asked, "reach")
    assert short.status == "skipped"
    assert "bfloat16" in short.reason


def test_a_way_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match=r"way 'fast'.*sampled"):
        list(check_at_scale(call(), ["fast"]))
    with pytest.raises(ValueError, match="tokens of at least 1, got 0"):
        call(tokens=0)


HOLDS = """
import torch
from attnproof.numeric.at_scale.call import peak
with peak(torch.device("cpu")) as found:
    held = torch.ones(1 << 24)
print(found.beyond is None or found.beyond > held.numel() * 2)
"""


def test_peak_memory_sees_what_is_held() -> None:
    # in a process of its own: one that has let go of memory, and keeps it, takes no more
    told = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"]


def test_every_row_is_a_sample_of_few() -> None:
    asked = call(tokens=9)
    x = arrays(asked)
    worst, looked, misses = sampled(asked, x, asked.run(*x))
    assert (worst.status, looked, misses) == ("held", "every row", "")


@pytest.mark.parametrize(("tokens", "which"), [(64, "all rows"), (63, "the first 32 rows")])
def test_rows_alone_say_which_rows_could_have_been_drawn(tokens: int, which: str) -> None:
    found = checked(call(tokens=tokens), "alone")
    assert found.misses.startswith(f"if a fraction e of {which} has different bits when run alone")


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

"""Devices and backends by name, TF32 as a setting, clocks that wait: some with CUDA stood in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

from attnproof.numeric import check, devices
from attnproof.numeric.at_scale import call as memory
from attnproof.numeric.at_scale.call import timed
from attnproof.numeric.check import measure
from attnproof.numeric.implementations import DoesNotFit
from attnproof.numeric.implementations.scaled_dot_product import with_backend
from attnproof.numeric.profile import profile_of
from attnproof.numeric.results import as_float
from tests.numeric.statements import PAIRS

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")


def test_a_gpu_is_named_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device.type}")
    assert devices.device_label(CUDA) == "cuda:0 (GPU of cuda)"
    assert devices.device_label(CPU) == "cpu"


def test_clocks_wait_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    result, seconds = timed(lambda: 7, CUDA)
    assert (result, waits) == (7, [CUDA, CUDA])
    assert seconds >= 0
    timed(lambda: 7, CPU)
    assert len(waits) == 2


def test_memory_of_a_gpu_is_that_of_its_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", told.append)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 350)
    with memory.peak(CUDA) as found:
        assert told == [CUDA]
    assert found.beyond == 250


def test_tf32_is_on_and_off_on_cuda_alone() -> None:
    assert devices.matrix_units(CUDA) == (False, True)
    assert devices.matrix_units(CPU) == (None,)


def test_tf32_is_put_back_and_widens_the_profile() -> None:
    before = torch.get_float32_matmul_precision()
    with devices.tf32(False):
        assert profile_of(torch.float32, CPU).operand == 0
    with devices.tf32(True):
        assert profile_of(torch.float32, CPU).operand == 2**-11
        assert profile_of(torch.bfloat16, CPU).operand == 0
    assert torch.get_float32_matmul_precision() == before


def test_both_settings_are_measured_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"scale": "small", "device": "cpu", "dtypes": ["float32", "bfloat16"]}
    plain = measure(PAIRS, **wanted)  # type: ignore[arg-type]
    monkeypatch.setattr(check, "matrix_units", lambda _: (False, True))
    both = measure(PAIRS, **wanted)  # type: ignore[arg-type]
    units = [m for m in both if "matrix operands read at 2^-11" in m.rounding]
    single = [m for m in plain if m.dtype == "float32"]
    assert len(units) == len(single) > 0
    assert len(both) == len(plain) + len(units)
    assert {m.dtype for m in units} == {"float32"}
    widened = {m.implementation: m.tolerance for m in units}
    assert all(
        as_float(widened[m.implementation]) > 50 * as_float(m.tolerance)
        for m in single
        if m.status == "held"
    )


CALLS = 300
REFUSED_BY_CPU = SDPBackend.EFFICIENT_ATTENTION


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads that take rotates so often that they meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def accepted(backend: SDPBackend) -> int:
    x = torch.ones(1, 2, 16, 16)
    count = 0
    for _ in range(CALLS):
        try:
            with_backend(backend, x, x, x)
            count += 1
        except DoesNotFit:
            pass
    return count


@pytest.mark.usefixtures("impatient")
def test_threads_do_not_choose_for_each_other() -> None:
    backends = (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, REFUSED_BY_CPU)
    with ThreadPoolExecutor(len(backends)) as pool:
        counted = dict(zip(backends, pool.map(accepted, backends), strict=True))
    assert counted == {SDPBackend.MATH: CALLS, SDPBackend.FLASH_ATTENTION: CALLS, REFUSED_BY_CPU: 0}
    assert torch.backends.cuda.math_sdp_enabled()  # type: ignore[no-untyped-call]
    assert torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]

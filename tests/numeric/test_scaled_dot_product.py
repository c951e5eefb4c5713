"""Attention of torch with a backend that is named: that one runs, and torch stays as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn.attention import SDPBackend

from attnproof.numeric.implementations import DoesNotFit
from attnproof.numeric.implementations.scaled_dot_product import with_backend

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

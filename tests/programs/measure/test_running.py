"""The relative law of rotary code that counts its tokens, at many of them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnproof.theorems.laws.rotary import MANY, running_relative


@pytest.mark.parametrize("wrong", [None, 0, 300, 399])
def test_the_first_of_many_queries_show_a_fault_at_any_place(wrong: int | None) -> None:
    """Products are those of the first 64 queries with all keys."""

    def running(x: Any) -> Any:
        angles = np.arange(x.shape[2])[:, None] * np.array([1.0, 0.1])
        if wrong is not None:
            angles[wrong] += 0.01
        turned = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angles)
        return np.concatenate((turned.real, turned.imag), axis=-1)

    numbers = np.random.default_rng(0)
    q, k, z = (numbers.normal(size=(1, 2, n, 4)) for n in (400, 400, 3))
    later, here = running_relative(SimpleNamespace(running=running), q, k, z)
    assert later.shape == (1, 2, MANY, 400)
    assert np.allclose(later, here) == (wrong is None)

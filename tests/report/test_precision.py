"""Arithmetic in short formats, against that of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnproof.report import precision


def test_bfloat16_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**32, size=200_000, dtype=np.uint32).view(np.float32)
    ties = (rng.integers(0, 2**16, size=50_000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    near = ties.view(np.uint32) + rng.integers(-1, 2, size=len(ties)).astype(np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-45], dtype=np.float32)
    values = np.concatenate([drawn, ties, near.view(np.float32), special])
    with np.errstate(all="ignore"):
        ours = precision.brain(values)
    theirs = torch.from_numpy(values).to(torch.bfloat16).to(torch.float32).numpy()
    same = (ours.view(np.uint32) == theirs.view(np.uint32)) | (np.isnan(ours) & np.isnan(theirs))
    assert same.all()
    assert precision.brain(np.float64(257.0)).tolist() == 256.0


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("float32", torch.float32),
        ("float16", torch.float16),
        ("bfloat16", torch.bfloat16),
    ],
)
def test_every_operation_rounds(name: str, like: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    form = precision.FORMATS[name]
    a, b = rng.normal(size=(2, 40, 50))
    x, y = form.of(a), form.of(b)
    s, t = torch.from_numpy(a).to(like), torch.from_numpy(b).to(like)
    for ours, theirs in (
        (x + y, s + t),
        (x * y, s * t),
        (x / y, s / t),
        (x[0] - y[0], s[0] - t[0]),
        (-x, -s),
        (3 * x, 3 * s),
    ):
        assert isinstance(ours, precision.Rounded)
        assert np.array_equal(np.asarray(ours, dtype=np.float32), theirs.float().numpy())
    for result in (
        x @ y.mT,
        np.sum(x, axis=0),
        np.where(x > 0, x, 0 * x),
        np.stack((x, y)),
        np.mean(x),
        x[0, 0] * np.arange(3),
        np.cos(x[0, 0]),
    ):
        assert isinstance(result, precision.Rounded)
        assert np.array_equal(form.nearest(np.asarray(result)), np.asarray(result))
    assert not isinstance(x > 0, precision.Rounded)
    x -= y
    assert np.array_equal(np.asarray(x, dtype=np.float32), (s - t).float().numpy())

"""Code that gives each token the position at which it stands, asked for other positions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.placing import at_offsets, at_start

Many = tuple[Tensor, ...]
POSITIONS = torch.tensor([[3, 1, 0, 7], [0, 2, 2, 5]])


def placed(xs: Many, offset: int = 0, dtype: torch.dtype | None = None) -> Many:
    """Each token times one more than its position, in float32 or as it came."""
    places = offset + torch.arange(xs[0].shape[2])[:, None] + 1
    return tuple((x.to(dtype or x.dtype) * places).to(dtype or x.dtype) for x in xs)


def rotates(code: Callable[..., Many]) -> list[Callable[..., Many]]:
    return [at_start(code, "bhtd"), at_offsets(code, "bhtd")]


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_what_comes_back_may_have_another_dtype(dtype: torch.dtype | None) -> None:
    x = torch.randn(2, 3, 4, 8).half()
    for rotate in rotates(lambda xs, offset=0: placed(xs, offset, dtype)):
        (found,) = rotate(x, positions=POSITIONS)
        wanted = x.to(dtype or x.dtype) * (POSITIONS + 1)[:, None, :, None]
        assert found.dtype == (dtype or torch.half)
        assert torch.equal(found, wanted.to(found.dtype))

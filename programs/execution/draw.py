"""Random inputs for the laws: a seed, a dtype and a device, and which tokens masks keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.devices import name_of


@dataclass(frozen=True)
class Draw:
    """A source of random inputs: a seed, a dtype, a device.

    >>> Draw(seed=3).normal(2, 2).shape
    torch.Size([2, 2])
    """

    seed: int = 0
    dtype: torch.dtype = torch.float32
    device: str = "cpu"

    def generator(self, salt: int = 0) -> torch.Generator:
        """Return a generator for one call, so that calls do not affect each other."""
        return torch.Generator().manual_seed(self.seed * 1_000_003 + salt)

    def normal(self, *shape: int, salt: int = 0) -> Tensor:
        """Draw independent standard normal numbers."""
        drawn = torch.randn(*shape, generator=self.generator(salt), dtype=torch.float64)
        return drawn.to(self.dtype).to(self.device)

    def permutation(self, n: int, salt: int = 0) -> Tensor:
        """Draw a permutation of 0..n-1 that is not the identity for n > 1."""
        order = torch.randperm(n, generator=self.generator(salt))
        if n > 1 and bool((order == torch.arange(n)).all()):
            order = order.roll(1)
        return order.to(self.device)

    @property
    def format(self) -> str:
        """The name of the dtype."""
        return name_of(self.dtype)

    def cast(self, dtype: torch.dtype) -> Draw:
        """Return the same source in another dtype."""
        return replace(self, dtype=dtype)


def normal(*shape: int, seed: int) -> Tensor:
    """Draw float32 numbers for calls by which code is read, the same whenever it is read."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def counting(kind: str, rows: int, tokens: int) -> Tensor:
    """Return which tokens are kept: for "padding" all but the last one or two, else a pattern.

    >>> counting("padding", 2, 4).int().tolist()
    [[1, 1, 1, 0], [1, 1, 0, 0]]
    >>> counting("keep", 2, 4).int().tolist()
    [[1, 0, 1, 1], [1, 1, 1, 0]]
    """
    place, row = torch.arange(tokens), torch.arange(rows)[:, None]
    if kind == "padding":
        return place < (tokens - 1 - row % 2).clamp(min=1)
    seen = (place + 2 * row) % 4 != 1
    seen[:, 0] |= ~seen.any(1)
    return seen

"""Smooth stand-ins for functions about which a statement says nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any
from zlib import crc32

import torch
from array_api_compat import array_namespace
from torch import Tensor

__all__ = ["SmoothFunction"]

FEATURES = 4


class SmoothFunction:
    """A fixed nonlinear function of arrays, over leading axes, with the traits asked for.

    It reads ``core[k]`` last axes of argument k and gives ``out`` last axes (None: those of the
    first argument).  With the trait "equivariant" it is x_i + tanh(x_i W + mean_j tanh(x_j U)),
    with "invariant" a function of mean_j tanh(x_j U); without either, a function of rows weights
    each row by its place, so that it sees their order.  Numbers enter through sines, which no
    size of position saturates.  Weights come from the name and the seed.
    """

    def __init__(
        self, name: str, core: tuple[int, ...], out: tuple[int, ...] | None,
        traits: tuple[str, ...], seed: int, convert: Callable[[Tensor], Any],
    ) -> None:  # fmt: skip
        self.name, self.core, self.out, self.traits = name, core, out, traits
        self.seed, self.convert = seed, convert

    def weight(self, what: str, *shape: int, scale: float = 1.0) -> Any:
        """The same array of weights for the same name, seed and shape."""
        label = f"{self.name}|{what}|{shape}|{self.seed}"
        generator = torch.Generator().manual_seed(crc32(label.encode()))
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return self.convert(drawn * scale)

    def __call__(self, *values: Any) -> Any:
        arrays = [v if hasattr(v, "ndim") else self.convert(_number(v)) for v in values]
        first = next((a for a, c in zip(arrays, self.core, strict=True) if c), arrays[0])
        xp = array_namespace(first)
        hidden = None
        for k, (x, c) in enumerate(zip(arrays, self.core, strict=True)):
            read = self._read(xp, k, x, c)
            hidden = read if hidden is None else hidden + read
        hidden = xp.tanh(hidden)
        if self.out is None:
            return self._onto(xp, arrays[0], hidden)
        if not self.out:
            return hidden @ self.weight("out", FEATURES)
        total = prod(self.out)
        flat = hidden @ self.weight("out", FEATURES, total, scale=1 / sqrt(FEATURES))
        return flat if len(self.out) == 1 else xp.reshape(flat, (*flat.shape[:-1], *self.out))

    def _read(self, xp: Any, k: int, x: Any, core: int) -> Any:
        """A few features of one argument."""
        if core == 0:
            weight = self.weight(f"in {k}", FEATURES, scale=0.5)
            sine = xp.sin(xp.expand_dims(x, axis=-1) * weight)
            return sine.to(weight.dtype) if isinstance(sine, Tensor) else sine
        width = x.shape[-1]
        weight = self.weight(f"in {k}", width, FEATURES, scale=1 / sqrt(width))
        rows = x @ weight
        for _ in range(core - 1):
            rows = self._pooled(xp, k, xp.tanh(rows))
        return rows

    def _pooled(self, xp: Any, k: int, rows: Any) -> Any:
        """The mean over rows; weighted by place unless the function may not see their order."""
        if not self._blind():
            rows = rows * xp.expand_dims(self.weight(f"place {k}", rows.shape[-2]), axis=-1)
        return xp.sum(rows, axis=-2) * (1 / rows.shape[-2])

    def _blind(self) -> bool:
        return any(trait in ("equivariant", "invariant") for trait in self.traits)

    def _onto(self, xp: Any, x: Any, hidden: Any) -> Any:
        """A result of the shape of the first argument: each row moved by itself and by all."""
        core = self.core[0]
        if core == 0:
            return xp.tanh(x) + hidden @ self.weight("out", FEATURES)
        width = x.shape[-1]
        moved = hidden @ self.weight("out", FEATURES, width, scale=1 / sqrt(FEATURES))
        for axis in range(core - 1):
            moved = xp.expand_dims(moved, axis=-2 - axis)
        inner = x @ self.weight("row", width, width, scale=1 / sqrt(width))
        if core > 1 and not self._blind():
            inner = inner + xp.expand_dims(self.weight("row place", x.shape[-2]), axis=-1)
        return x + xp.tanh(inner + moved)


def _number(value: Any) -> Tensor:
    return torch.tensor(float(value), dtype=torch.float64)

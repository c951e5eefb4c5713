"""Scores that are bent by c·tanh(s/c), so that none is larger than c: a soft cap."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..draw import Draw
from ..subjects import Attention
from .plain_numbers import simplest
from .weights import centred, weights_of

__all__ = ["Cap", "cap_of"]

SMALL, LARGE = 0.05, 30.0  # of s: nearly a line; bent, and weights are above the least number
SHARE = 2e-3  # of LARGE: what the slope that is read at SMALL leaves open, 2u/SMALL and (SMALL/c)²


@dataclass(frozen=True)
class Cap:
    """The cap c and the scale s/(q·k), with the largest rest of a logarithm of a weight."""

    value: float
    scale: float
    off: float


def cap_of(code: Attention, draw: Draw, keys: tuple[int, ...], seen: Tensor) -> Cap | None:
    """The soft cap, if weights are those of c·tanh(s/c) for one c; None if they are not.

    ``keys``: whose keys each head reads; ``seen``: what a query sees, (T, S).
    """
    T, S = seen.shape
    q = draw.normal(1, code.heads, T, code.width, salt=41)
    k = draw.normal(1, code.groups, S, code.width, salt=42)
    rows = seen.sum(-1) > 1
    if not bool(rows.any()):
        return None
    use, zero = seen[rows], weights_of(code, torch.zeros_like(q), k)[0].log()

    def logarithms(times: float) -> tuple[Tensor, Tensor]:
        y = (weights_of(code, q * times, k)[0].log() - zero)[:, rows]
        z = (q * times)[0].double().cpu()[:, rows] @ k[0].double().cpu()[list(keys)].mT
        return centred(y, use), z

    most = float((q[0].double().cpu() @ k[0].double().cpu()[list(keys)].mT).abs().max())
    y, z = logarithms(SMALL / most)
    x = centred(z, use)
    scale = float((x * y).sum() / (x * x).sum())
    if scale <= 0:
        return None
    y, z = logarithms(LARGE / (scale * most))
    if not bool(y.isfinite().all()):
        return None
    every = torch.logspace(0, 3, 1201, dtype=torch.float64)
    bent = (centred(c * torch.tanh(scale * z / c), use) for c in every)
    rest = torch.stack([(y - one).abs().max() for one in bent])
    best = int(rest.argmin())
    if float(rest[best]) > SHARE * LARGE * 2:
        return None
    low, high = every[max(best - 1, 0)], every[min(best + 1, len(every) - 1)]
    return Cap(simplest(float(low), float(high)), scale, float(rest[best]))

"""Weights of attention code, read with values that are 1 in one key: scale, groups, soft cap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..draw import Draw
from ..identity import simplest, told
from ..response import allowance
from ..subjects import Attention

KEYS = 5


def drawn(
    code: Attention, draw: Draw, queries: int, keys: int, salt: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Normal queries (1, H, T, D) and keys (1, G, S, D) of its heads."""
    width = code.width or 5
    return (draw.normal(1, code.heads, queries, width, salt=salt),
            draw.normal(1, code.groups, keys, width, salt=salt + 1))  # fmt: skip


def read_weights(
    attend: Callable[..., Tensor], query: Tensor, key: Tensor, mask: Tensor | None = None,
    keys: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Weights (B, H, T, S), read with values that are 1 at one key; D keys with each call.

    ``keys``: of which the weights are read, all if it is None.
    """
    every, width = range(key.shape[-2]) if keys is None else keys, key.shape[-1]
    read = []
    for start in range(0, len(every), width):
        value = torch.zeros_like(key)
        some = every[start : start + width]
        for n, place in enumerate(some):
            value[..., place, n] = 1
        read.append(attend(query, key, value, mask)[..., : len(some)])
    return torch.cat(read, -1)


def weights_of(code: Attention, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of code (B, H, T, S) in float64, see :func:`read_weights`."""
    assert code.attend is not None  # who calls has seen it
    return read_weights(code.attend, q, k, mask).double().cpu()


def groups_of(code: Attention, draw: Draw) -> list[int] | None:
    """Which group of keys and values each head reads its values from; None if no single one."""
    assert code.attend is not None  # who calls has seen it
    G, (q, k) = code.groups, drawn(code, draw, 8, 8, 1)
    number = torch.arange(1.0, G + 1, dtype=draw.dtype, device=draw.device)[None, :, None, None]
    ones, numbered = (code.attend(q, k, torch.ones_like(k) * v, None).double()[0, :, :, 0]
                      for v in (torch.ones_like(number), number))  # fmt: skip
    # weights of some queries may all be 0: each head is read where it reads most
    most = ones.abs().nan_to_num().argmax(-1, keepdim=True)
    ratio = (numbered.gather(-1, most) / ones.gather(-1, most))[:, 0]
    if not bool(ratio.isfinite().all()):
        return None
    near = ratio.round()
    if bool(((ratio - near).abs() > 64 * G * unit_roundoff(draw.dtype)).any()):
        return None
    return [int(r) - 1 for r in near.tolist()]


@dataclass(frozen=True)
class Scale:
    """By what q·k is multiplied, within ``radius``.

    ``off``: the largest rest of a logarithm, of which rounding ``allows`` so much; ``keys``: whose
    keys each head reads.
    """

    value: float
    radius: float
    off: float
    allows: float
    keys: tuple[int, ...]

    @property
    def linear(self) -> bool:
        """Whether the logarithms of weights are the scale times q·k at all."""
        return self.off <= self.allows

    def named(self, width: int, embed: int, heads: int) -> str:
        """1/√D or whatever it is."""
        ways = {"1/√D": width**-0.5, "1/D": 1 / width, "√D": width**0.5, "1": 1.0,
                "1/√E, E the width of all heads": (embed or width * heads) ** -0.5}  # fmt: skip
        for name, value in ways.items():
            if abs(self.value - value) <= self.radius:
                return f"{name} = {told(value)}" if name != "1" else "1"
        return told(simplest(self.value - self.radius, self.value + self.radius))


def scale_of(
    code: Attention, draw: Draw, groups: list[int] | None, seen: Tensor, *, unit: float = 0.0
) -> Scale | None:
    """The scale, from log w(q) − log w(0), in which what is added to scores cancels.

    ``seen``: what a query sees (T, S) in a call of that size.  ``unit``: of the format in which the
    code computes, where that is coarser than the draw's.  A product of D numbers is off by
    at most D·u·|q||k|, an exponential and a quotient of S numbers by (S + 8)u.
    """
    H, G, D = code.heads, code.groups, code.width or 5
    T, S = seen.shape
    q, k = drawn(code, draw, T, S, 3)
    size = 4 / max(1.0, float((q.double() @ k.double()[:, :1].mT).abs().max()) ** 0.5)
    q = q * min(1.0, size)
    here, zero = weights_of(code, q, k), weights_of(code, torch.zeros_like(q), k)
    use = seen & (here[0] > 1e-30).all(0) & (zero[0] > 1e-30).all(0)
    rows = use.sum(-1) > 1
    if not bool(rows.any()):
        return None
    use, y = use[rows], (here[0].log() - zero[0].log())[:, rows]
    y = centred(y, use)
    u = max(unit, unit_roundoff(draw.dtype))
    repeat = [h * G // H for h in range(H)]
    tile = [h % G for h in range(H)]
    best: Scale | None = None
    for keys in [groups, repeat, tile] if groups else [repeat, tile]:
        z = q[0].double().cpu()[:, rows] @ k[0].double().cpu()[keys].mT
        x = centred(z, use)
        value = float((x * y).sum() / (x * x).sum())
        lengths = float(q.double().norm(dim=-1).max() * k.double().norm(dim=-1).max())
        allows = 4 * u * (D * abs(value) * lengths + S + 8)
        rms = math.sqrt(float((x * x).sum() / use.sum() / H))
        one = Scale(value, allows / rms, float((y - value * x).abs().max()), allows, tuple(keys))
        if best is None or one.off < best.off:
            best = one
    return best


def scale_alone(code: Attention, draw: Draw, floor: float = 0.0) -> Scale | None:
    """The scale, where nothing else of the code was read: of keys seen by queries that are 0.

    ``floor``: the unit of the tables that the code keeps.
    """
    assert code.attend is not None  # who calls has seen it
    attend, (q, k) = code.attend, drawn(code, draw, KEYS, KEYS, 54)
    q = torch.zeros_like(q)
    at_zero = allowance(lambda k: read_weights(attend, q, k), k, draw=draw, floor=floor)
    seen = (at_zero.output[0] > 0).all(0).cpu()
    return scale_of(code, draw, None, seen, unit=at_zero.unit)


def centred(x: Tensor, use: Tensor) -> Tensor:
    """Each row less its mean over what is used, 0 elsewhere."""
    x = torch.where(use, x, 0.0)
    return torch.where(use, x - x.sum(-1, keepdim=True) / use.sum(-1)[:, None], 0.0)


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
    q, k = drawn(code, draw, T, S, 41)
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

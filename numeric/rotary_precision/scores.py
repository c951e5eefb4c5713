"""How far scores of rotary encoding are off in a format, against float64 and against themselves.

Queries and keys are drawn normal and rounded to the dtype of the data, so that they are exact
there.  Errors are counted in units of |q||k|/√d: the root mean square of q·k for vectors of these
lengths that point anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .bound import bound_of
from .extraction import pairs_in
from .formats import Format, declared

__all__ = ["Errors", "Pairs", "errors", "exact", "score", "turned"]


@dataclass(frozen=True)
class Pairs:
    """Queries and keys with their positions: (k, d) and (k,), in float64."""

    q: Tensor
    k: Tensor
    m: Tensor
    n: Tensor

    @staticmethod
    def drawn(
        count: int = 512, pairs: int = 64, *, apart: int = 256, below: int = 2048, seed: int = 0
    ) -> Pairs:
        """Content at random; m below 2,048, and n less than 256 from it on either side."""
        generator = torch.Generator().manual_seed(seed)
        q, k = torch.randn((2, count, 2 * pairs), generator=generator, dtype=torch.float64)
        m = torch.randint(below, (count,), generator=generator)
        offset = torch.randint(1 - apart, apart, (count,), generator=generator)
        return Pairs(q, k, m.double(), (m + offset).clamp(0, below - 1).double())

    def moved(self, shift: float) -> Pairs:
        """The same content, at positions that are all ``shift`` further on."""
        return Pairs(self.q, self.k, self.m + shift, self.n + shift)

    def at(self, position: int, *, apart: int = 256, seed: int = 0) -> Pairs:
        """The same content, each query at one position and its key less than 256 before it."""
        generator = torch.Generator().manual_seed(seed)
        share = torch.rand(len(self.m), generator=generator, dtype=torch.float64)
        offset = (share * min(position + 1, apart)).floor()
        m = torch.full_like(self.m, position)
        return Pairs(self.q, self.k, m, m - offset)

    def stored(self, dtype: torch.dtype) -> Pairs:
        """The content rounded to a dtype."""
        return Pairs(self.q.to(dtype).double(), self.k.to(dtype).double(), self.m, self.n)

    @property
    def unit(self) -> Tensor:
        """|q||k|/√d."""
        lengths = self.q.norm(dim=-1) * self.k.norm(dim=-1)
        return torch.as_tensor(lengths / math.sqrt(self.q.shape[-1]))

    def lengths(self, layout: str = "interleaved") -> tuple[Tensor, Tensor]:
        """The lengths of the pairs of queries and of keys: (k, B), (k, B)."""
        first, second = pairs_in(layout, self.q.shape[-1] // 2)
        return (torch.hypot(self.q[:, first], self.q[:, second]),
                torch.hypot(self.k[:, first], self.k[:, second]))  # fmt: skip


@dataclass(frozen=True)
class Errors:
    """Errors of scores at one shift, in units of |q||k|/√d.

    ``rms`` and ``largest`` against the declared score, ``identity`` the root mean square of the
    difference to the same content and offsets at shift 0.  ``share`` is the largest error over
    its bound, of ``checked`` scores whose bound is finite ``violations`` are above it; likewise
    of the identity.  An error that is no number is NaN.
    """

    form: str
    base: float
    shift: float
    rms: float
    largest: float
    identity: float
    share: float
    identity_share: float
    checked: int
    violations: int


def turned(x: Tensor, positions: Tensor, form: Format, frequencies: Tensor) -> Tensor:
    """x: (k, 2B) turned by its positions as a format computes it, interleaved."""
    angles = form.angle(positions, frequencies)
    cos, sin = torch.cos(angles).to(form.data), torch.sin(angles).to(form.data)
    x = x.to(form.data)
    even, odd = x[:, 0::2], x[:, 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(1)


def score(
    pairs: Pairs, form: Format, frequencies: Tensor, device: torch.device | None = None
) -> Tensor:
    """q·k of the vectors turned on a device, summed in float64 on the CPU: (k,)."""
    q, k = (
        form.operand(turned(x.to(device), p.to(device), form, frequencies)).to("cpu").double()
        for x, p in ((pairs.q, pairs.m), (pairs.k, pairs.n))
    )
    return (q * k).sum(-1)


def exact(pairs: Pairs, omega: Tensor) -> Tensor:
    """Σ_b q_b·R((n − m) ω_b) k_b: the score of the paper, from the offsets alone: (k,)."""
    angles = (pairs.n - pairs.m)[:, None] * omega
    cos, sin = torch.cos(angles), torch.sin(angles)
    q0, q1, k0, k1 = (x[:, c::2] for x in (pairs.q, pairs.k) for c in (0, 1))
    return (cos * (q0 * k0 + q1 * k1) + sin * (q1 * k0 - q0 * k1)).sum(-1)


def errors(
    pairs: Pairs, form: Format, base: float, shift: float = 0.0, device: torch.device | None = None
) -> Errors:
    """The errors of a format at one base and shift, computed on a device."""
    width = pairs.q.shape[-1] // 2
    omega, frequencies = declared(base, width), form.rounded_frequencies(base, width)
    here = pairs.stored(form.data)
    there, unit, bound = here.moved(shift), here.unit, bound_of(form, omega)
    found, before = (score(p, form, frequencies, device) for p in (there, here))
    q, k = here.lengths()
    off = (found - exact(here, omega)).abs()
    moved = (found - before).abs()
    allowed = bound.score(q, k, there.m, there.n)
    same = bound.score(q, k, there.m, there.n, own=True) + bound.score(
        q, k, here.m, here.n, own=True
    )
    checked = math.isfinite(bound.step(there.m, there.n))
    wrong = sum(int((~(e <= b)).sum()) for e, b in ((off, allowed), (moved, same))) * checked
    return Errors(
        form.name, base, shift, _rms(off / unit), float((off / unit).max()), _rms(moved / unit),
        float((off / allowed).max()), float((moved / same).max()), 2 * len(unit) * checked, wrong,
    )  # fmt: skip


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())

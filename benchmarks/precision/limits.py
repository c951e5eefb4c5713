"""Measure errors of scores with rotary encoding in a format, and find where it breaks.

Queries and keys are drawn from a normal distribution and rounded to the dtype of the data.  Errors
are in units of |q||k|/√d: the root mean square of q·k for vectors of these norms with random
directions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attnproof.numeric.devices import name_of
from attnproof.programs.execution.rotary_matrices import pairs_in
from benchmarks.precision.bound import Format, bound_of, declared, float32_formula

# Errors of scores in a format, relative to float64 and to shifted scores


@dataclass(frozen=True)
class Pairs:
    """Queries and keys with their positions: (k, d) and (k,), in float64."""

    q: Tensor
    k: Tensor
    m: Tensor
    n: Tensor

    @staticmethod
    def drawn(count: int = 512, pairs: int = 64, *, seed: int = 0) -> Pairs:
        """Draw random content; m is below 2,048, and n within 255 of m."""
        generator = torch.Generator().manual_seed(seed)
        q, k = torch.randn((2, count, 2 * pairs), generator=generator, dtype=torch.float64)
        m = torch.randint(2048, (count,), generator=generator)
        offset = torch.randint(-255, 256, (count,), generator=generator)
        return Pairs(q, k, m.double(), (m + offset).clamp(0, 2047).double())

    def moved(self, shift: float) -> Pairs:
        """Return the same content, with all positions shifted by ``shift``."""
        return Pairs(self.q, self.k, self.m + shift, self.n + shift)

    def at(self, position: int, *, apart: int = 256, seed: int = 0) -> Pairs:
        """Return the same content, queries at one position and keys less than ``apart`` before."""
        generator = torch.Generator().manual_seed(seed)
        share = torch.rand(len(self.m), generator=generator, dtype=torch.float64)
        offset = (share * min(position + 1, apart)).floor()
        m = torch.full_like(self.m, position)
        return Pairs(self.q, self.k, m, m - offset)

    def stored(self, dtype: torch.dtype) -> Pairs:
        """Return the content rounded to a dtype."""
        return Pairs(self.q.to(dtype).double(), self.k.to(dtype).double(), self.m, self.n)

    @property
    def unit(self) -> Tensor:
        """|q||k|/√d."""
        lengths = self.q.norm(dim=-1) * self.k.norm(dim=-1)
        return torch.as_tensor(lengths / math.sqrt(self.q.shape[-1]))

    def lengths(self) -> tuple[Tensor, Tensor]:
        """Return the norms of the channel pairs of queries and of keys: (k, B), (k, B)."""
        first, second = pairs_in("interleaved", self.q.shape[-1] // 2)
        return (
            torch.hypot(self.q[:, first], self.q[:, second]),
            torch.hypot(self.k[:, first], self.k[:, second]),
        )


@dataclass(frozen=True)
class Errors:
    """Errors of scores at one shift, in units of |q||k|/√d.

    ``rms`` and ``largest`` are relative to the declared score; ``identity`` is the root mean square
    of the difference from the same content and offsets at shift 0.  ``share``: the largest error
    over its bound; ``violations``: how many of the ``checked`` scores, whose bound is finite,
    exceed it; likewise for the identity.  An undefined error is NaN.
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


def rotated(x: Tensor, positions: Tensor, form: Format, frequencies: Tensor) -> Tensor:
    """Rotate x: (k, 2B) by its positions in the arithmetic of a format, interleaved."""
    angles = form.angle(positions, frequencies)
    cos, sin = torch.cos(angles).to(form.data), torch.sin(angles).to(form.data)
    x = x.to(form.data)
    even, odd = x[:, 0::2], x[:, 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(1)


def score(
    pairs: Pairs, form: Format, frequencies: Tensor, device: torch.device | None = None
) -> Tensor:
    """Return q·k of the vectors rotated on a device, summed in float64 on the CPU: (k,)."""
    q, k = (
        form.operand(rotated(x.to(device), p.to(device), form, frequencies)).to("cpu").double()
        for x, p in ((pairs.q, pairs.m), (pairs.k, pairs.n))
    )
    return (q * k).sum(-1)


def exact(pairs: Pairs, omega: Tensor) -> Tensor:
    """Return Σ_b q_b·R((n − m) ω_b) k_b, the score of the paper, from the offsets: (k,)."""
    angles = (pairs.n - pairs.m)[:, None] * omega
    cos, sin = torch.cos(angles), torch.sin(angles)
    q0, q1, k0, k1 = (x[:, c::2] for x in (pairs.q, pairs.k) for c in (0, 1))
    return (cos * (q0 * k0 + q1 * k1) + sin * (q1 * k0 - q0 * k1)).sum(-1)


def errors(
    pairs: Pairs, form: Format, base: float, shift: float = 0.0, device: torch.device | None = None
) -> Errors:
    """Return the errors of a format at one base and shift, computed on a device."""
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
        form.name,
        base,
        shift,
        _rms(off / unit),
        float((off / unit).max()),
        _rms(moved / unit),
        float((off / allowed).max()),
        float((moved / same).max()),
        2 * len(unit) * checked,
        wrong,
    )


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


# Where encodings break, where positions collide, and how frequencies drift

BASES = (1e4, 5e5, 1e6)
SHIFTS = (0, 10**3, 10**4, 10**5, 10**6)
LIMIT = 1e-2  # of the error of a score, in units of |q||k|/√d
OFF = 0.1  # radians
FURTHEST = 1 << 26
PER_OCTAVE = 2
CHUNK = 1 << 20


@dataclass(frozen=True)
class Break:
    """The first tried position at which errors of scores exceed ``limit``; None if there is none.

    Queries are at this position and keys less than 256 before it; two positions per octave are
    tried, up to ``furthest``.  ``rms``: for the root mean square, ``largest``: for a single score.
    """

    form: str
    base: float
    limit: float
    rms: int | None
    largest: int | None
    furthest: int


@dataclass(frozen=True)
class Collision:
    """The first position of 0, 1, 2, .. that a dtype rounds to the same number as its predecessor.

    ``infinite``: the first that overflows.  None: there is none up to ``searched``.
    """

    dtype: str
    first: int | None
    infinite: int | None
    searched: int


@dataclass(frozen=True)
class Drift:
    """Frequencies of a base rounded to a dtype.

    ``relative``: the largest relative error.  ``at``: the first position at which this error alone
    changes some angle by ``off`` radians.  ``subnormal``: the number of frequencies that are
    subnormal in the dtype.
    """

    dtype: str
    base: float
    relative: float
    off: float
    at: int
    subnormal: int


def breaks(
    pairs: Pairs,
    form: Format,
    base: float,
    *,
    furthest: int = FURTHEST,
    device: torch.device | None = None,
) -> Break:
    """Return where errors of the scores of a format first exceed the limit."""
    first: dict[str, int | None] = {"rms": None, "largest": None}
    for place in grid(furthest):
        found = errors(pairs.at(place), form, base, device=device)
        for name, value in (("rms", found.rms), ("largest", found.largest)):
            if first[name] is None and not value <= LIMIT:  # NaN is above every limit
                first[name] = place
        if None not in first.values():
            break
    return Break(form.name, base, LIMIT, first["rms"], first["largest"], furthest)


def grid(furthest: int) -> Iterator[int]:
    """Yield 1, 2, 3, 4, 6, 8, ..: integer positions, two per octave."""
    steps = range(PER_OCTAVE * round(math.log2(furthest)) + 1)
    yield from dict.fromkeys(round(2 ** (k / PER_OCTAVE)) for k in steps)


def collision(dtype: torch.dtype, searched: int = (1 << 24) + CHUNK) -> Collision:
    """Return the first position rounded like its predecessor, by exhaustive search.

    >>> collision(torch.bfloat16, searched=1000).first
    257
    """
    first = infinite = None
    for start in range(0, searched, CHUNK):
        places = torch.arange(max(start - 1, 0), min(start + CHUNK, searched))
        kept = places.to(dtype)
        for found in (kept[1:] == kept[:-1]).nonzero()[:1].flatten().tolist():
            first = int(places[found + 1]) if first is None else first
        for found in kept.isinf().nonzero()[:1].flatten().tolist():
            infinite = int(places[found]) if infinite is None else infinite
    return Collision(name_of(dtype), first, infinite, searched)


def drift(dtype: torch.dtype, base: float, pairs: int = 64) -> Drift:
    """Return the errors of frequencies from the float32 formula when stored in a dtype."""
    omega = declared(base, pairs)
    kept = float32_formula(base, pairs).to(dtype).double()
    wrong = (kept - omega).abs()
    subnormal = int((kept < torch.finfo(dtype).smallest_normal).sum())
    return Drift(
        name_of(dtype),
        base,
        float((wrong / omega).max()),
        OFF,
        math.ceil(OFF / float(wrong.max())),
        subnormal,
    )

"""RoPE for positions with several coordinates: on grids, in time and space, in any basis."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    differ,
    frequencies,
    hypothesis,
    index_map,
    injection,
    orthogonal,
    rotate,
    sizes,
)
from attnproof.theorems.definitions.rotary import rotate_halves, rotate_pairs

B, C = sizes("B C", "blocks")
(d,) = sizes("d", "features")


class RopeAxial(Encoding):
    """At (p₀, p₁) the first B pairs of channels rotate by p₀ ω_b, the other C pairs by p₁ ν_c.

    Usually B = C and ω = ν, with the base 100.
    """

    title = "RoPE, axial"
    source = (
        "Heo et al. 2024, Rotary Position Embedding for Vision Transformer: axial frequencies",
        "its code, compute_axial_cis: first all pairs of one coordinate, then those of the other",
    )
    width = 2 * B + 2 * C
    axes = 2
    given = {"omega": frequencies(B), "nu": frequencies(C)}
    defaults = {"omega": 100.0 ** (-np.arange(16) / 16), "nu": 100.0 ** (-np.arange(16) / 16)}

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        rows = 2 * self.omega.shape[0]
        first = rotate(x[..., :rows], p[..., 0], self.omega)
        return xp.concat((first, rotate(x[..., rows:], p[..., 1], self.nu)), axis=-1)

    def tell(self, here: Any, there: Any, k: int = 0) -> Any:
        first = 2 * self.omega.shape[0]
        own, other = ((x[first:] if k else x[:first]) for x in (here, there))
        return array_namespace(here).sum((own[0::2] * other[1::2] - own[1::2] * other[0::2]) ** 2)

    def apart(self, i: Any, j: Any, k: int = 0) -> Any:
        xp = array_namespace(i)
        return xp.sum((2 * xp.sin((j - i) * (self.nu if k else self.omega))) ** 2)

    @hypothesis("some ω_b and some ν_c are not rational multiples of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j, k), 0) for k in (0, 1)]


class RopeMixed(Encoding):
    """At p = (p₀, p₁) pair b rotates by p₀ Ω_b0 + p₁ Ω_b1; Ω is learned, so it may be anything."""

    title = "RoPE, mixed"
    source = (
        "Heo et al. 2024, Rotary Position Embedding for Vision Transformer: RoPE-Mixed",
        "its code, init_random_2d_freqs",
    )
    width = 2 * B
    axes = 2
    given = {"Omega": frequencies(B, 2)}
    # As at the start of training: half of the pairs in one direction, drawn for each head, and
    # the other half at right angles to it.
    defaults = {
        "Omega": np.concatenate(
            [
                10.0 ** (-np.arange(16) / 16)[:, None] * np.array([np.cos(angle), np.sin(angle)])
                for angle in (1.0, 1.0 + np.pi / 2)
            ]
        )
    }

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_pairs(x, p @ self.Omega.mT)


class MRope(Encoding):
    """At p = (t, h, w) the channels b and d/2 + b rotate by p_{a(b)} ω_b; a(b) is the pair's axis.

    In Qwen2-VL the first 16 pairs have the axis t, the next 24 h, the last 24 w.  Any other choice
    of axes is covered too.
    """

    title = "M-RoPE"
    source = ("Wang et al. 2024, Qwen2-VL, section 2.1; mrope_section of its configuration",)
    width = 2 * B
    axes = 3
    given = {"omega": frequencies(B), "axis": index_map(B, 3)}
    defaults = {
        "omega": 1_000_000.0 ** (-np.arange(64) / 64),
        "axis": np.repeat([0, 1, 2], [16, 24, 24]),
    }

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_halves(x, p[..., self.axis] * self.omega)

    def tell(self, here: Any, there: Any, k: int = 0) -> Any:
        xp, half = array_namespace(here), self.omega.shape[0]
        crossed = here[:half] * there[half:] - here[half:] * there[:half]
        return xp.sum(xp.where(self.axis == k, crossed**2, 0))

    def apart(self, i: Any, j: Any, k: int = 0) -> Any:
        xp = array_namespace(i)
        return xp.sum(xp.where(self.axis == k, (2 * xp.sin((j - i) * self.omega)) ** 2, 0))

    @hypothesis("each axis has a pair whose frequency is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        return [differ(self.apart(i, j, k), 0) for k in range(self.axes)]


class String(Encoding):
    """R_p = exp(p₀ L₀ + p₁ L₁) for antisymmetric L_k that commute, in their common basis.

    Antisymmetric matrices that commute rotate the same planes, which are orthogonal to each other:
    plane b, spanned by two rows of an orthogonal P, by the angle (p Ω)_b; what lies in no plane is
    unchanged.  So this is RoPE for any linear map of the position, in any basis.
    """

    title = "STRING"
    source = (
        "Schenck et al. 2025, Learning the RoPEs: Better 2D and 3D Position Encodings with STRING",
        "Ostmeier et al. 2024, LieRE, where its generators commute",
    )
    width = d
    axes = 2
    given = {"P": orthogonal(d), "place": injection(2 * B, d), "Omega": frequencies(2, B)}
    defaults = {
        "P": np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0],
        "place": np.arange(64),
        "Omega": np.cos(np.arange(2)[:, None] + np.arange(32)) * 100.0 ** (-np.arange(32) / 32),
    }

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        cos, sin = xp.cos(p @ self.Omega), xp.sin(p @ self.Omega)
        planes = self.P[self.place]
        first, second = planes[0::2], planes[1::2]
        a, b = x @ first.mT, x @ second.mT
        return x + (a * cos - b * sin - a) @ first + (a * sin + b * cos - b) @ second

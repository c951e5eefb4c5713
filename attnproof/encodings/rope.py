"""RoPE for a sequence of tokens: layouts, scalings of its frequencies, xPos."""

from __future__ import annotations

from math import log, pi
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from attnproof import (
    Encoding,
    angle,
    differ,
    frequencies,
    hypothesis,
    positive,
    real,
    rotate,
    rotate_half,
    sizes,
)

(B,) = sizes("B", "blocks")
(N,) = sizes("N", "features")


class Rope(Encoding):
    """Pair b of a query or key, the channels 2b and 2b + 1, rotates by the angle p ω_b.

    ω_b = 10000^{−2b/d} in the paper; here any frequencies.  A subclass may override ``frequencies``
    to rotate with others that are derived from these.
    """

    title = "RoPE, interleaved"
    source: ClassVar[tuple[str, ...]] = ("Su et al. 2021, RoFormer, eq. 14, 15 and 34",)
    width = 2 * B
    given = {"omega": frequencies(B)}
    defaults = {"omega": 10_000.0 ** (-np.arange(32) / 32)}

    def frequencies(self) -> Any:
        """Return the frequencies with which the pairs rotate: (B,)."""
        return self.omega

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate(x, p, self.frequencies())

    def pairs(self, x: Any) -> tuple[Any, Any]:
        """Return the first and the second channel of each pair of x: (d,)."""
        return x[0::2], x[1::2]

    def tell(self, here: Any, there: Any) -> Any:
        (a, b), (c, d) = self.pairs(here), self.pairs(there)
        return array_namespace(here).sum((a * d - b * c) ** 2)

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        return xp.sum((2 * xp.sin((j - i) * self.frequencies())) ** 2)

    @hypothesis("some pair rotates by an angle that is not a rational multiple of π")
    def irrational(self, i: Any, j: Any) -> list[Any]:
        # such as 1: then that pair makes no multiple of π in i − j steps
        return [differ(self.apart(i, j), 0)]


class RopeHalfSplit(Rope):
    """The channels b and d/2 + b of a query or key rotate by the angle p ω_b.

    This is the layout of GPT-NeoX and Llama: the pairs of the paper with the channels in another
    order.
    """

    title = "RoPE, half-split"
    source = (
        "Black et al. 2022, GPT-NeoX-20B, section 2.1 and its code",
        "Su et al. 2021, RoFormer, eq. 34, with the channels in another order",
    )

    def rotate(self, x: Any, p: Any) -> Any:
        return rotate_half(x, p, self.frequencies())

    def pairs(self, x: Any) -> tuple[Any, Any]:
        half = self.omega.shape[0]
        return x[:half], x[half:]


class RopePartial(Rope):
    """The first 2B channels rotate in pairs by p ω_b, the other N >= 1 channels pass unrotated."""

    title = "RoPE, partial"
    source = ("Wang and Komatsuzaki 2021, GPT-J-6B (64 of 256 channels)",)
    width = 2 * B + N

    def rotate(self, x: Any, p: Any) -> Any:
        xp = array_namespace(x)
        rotating = 2 * self.omega.shape[0]
        rotated = rotate(x[..., :rotating], p, self.frequencies())
        return xp.concat((rotated, x[..., rotating:]), axis=-1)

    def pairs(self, x: Any) -> tuple[Any, Any]:
        return super().pairs(x[: 2 * self.omega.shape[0]])


class RopeInterpolated(Rope):
    """Positions are divided by a factor s > 0: pair b rotates by (p/s) ω_b."""

    title = "RoPE, interpolated"
    source = ("Chen et al. 2023, Position Interpolation, section 2.3, eq. 4, with s = L'/L",)
    given = {**Rope.given, "factor": positive()}
    defaults = {**Rope.defaults, "factor": 4.0}

    def frequencies(self) -> Any:
        return self.omega / self.factor


class RopeNtk(Rope):
    """Pair b rotates by p ω_b s^{−b/(B−1)}, s > 0: the first as before, the last s times slower.

    With ω_b = base^{−b/B} that is RoPE with the base multiplied by s^{d/(d−2)}, d = 2B >= 4.
    """

    title = "RoPE, NTK-aware"
    source = ("Peng et al. 2023, YaRN, Definition 1 (section 3.1)", "bloc97 2023, NTK-aware RoPE")
    given = {**Rope.given, "factor": positive()}
    defaults = {**Rope.defaults, "factor": 4.0}

    def frequencies(self) -> Any:
        xp = array_namespace(self.omega)
        count = self.omega.shape[0]
        return self.omega * xp.exp(-xp.arange(count) / (count - 1) * xp.log(self.factor))


class RopeByParts(Rope):
    """Pair b rotates with ω_b (γ_b + (1 − γ_b)/s), s > 0: by how often it rotated in training.

    There it rotated by L ω_b, where L is the length.  γ_b is (L ω_b − slow) / ramp, clipped to
    0 .. 1: a pair is slow below the angle slow, and fast above slow + ramp > slow.
    """

    title = "RoPE, NTK-by-parts"
    source = ("Peng et al. 2023, YaRN, Definition 2 (section 3.2), in turns of 2π",)
    given = {
        **Rope.given,
        "factor": positive(),
        "length": positive(),
        "slow": angle(),
        "ramp": positive(),
    }
    defaults = {**Rope.defaults, "factor": 16.0, "length": 4096.0, "slow": 2 * pi, "ramp": 62 * pi}

    def kept(self, omega: Any) -> Any:
        """Return γ, the share of its own frequency that a pair keeps."""
        return array_namespace(omega).clip((self.length * omega - self.slow) / self.ramp, 0, 1)

    def frequencies(self) -> Any:
        kept = self.kept(self.omega)
        return self.omega * (kept + (1 - kept) / self.factor)


class RopeLlama3(RopeByParts):
    """Pairs with a wavelength 2π/ω above L rotate s times slower, those below L/4 as before.

    Between them γ is linear in L/wavelength: NTK-by-parts, from one turn to four, s = 8.
    """

    title = "RoPE, Llama 3.1"
    source = ("Llama 3.1 (Grattafiori et al. 2024), apply_scaling in its reference code",)
    defaults = {
        "omega": 500_000.0 ** (-np.arange(64) / 64),
        "factor": 8.0,
        "length": 8192.0,
        "slow": 2 * pi,
        "ramp": 6 * pi,
    }


class Yarn(RopeByParts):
    """Frequencies by parts, and the scores divided by a temperature t > 0.

    The paper's fit to Llama is √(1/t) = 0.1 ln s + 1.
    """

    title = "YaRN"
    source = ("Peng et al. 2023, YaRN, Definition 3 and eq. 21 and 22",)
    given = {**RopeByParts.given, "temperature": positive()}
    defaults = {**RopeByParts.defaults, "temperature": (0.1 * log(16) + 1) ** -2}

    def scores(self, Q: Any, K: Any, m: Any, n: Any) -> Any:
        return super().scores(Q, K, m, n) / self.temperature


class YarnByIndex(Yarn):
    """YaRN as its code computes it: γ falls linearly in the index b of the pair, not in its angle.

    γ_b = (last − b) / ramp, clipped to [0, 1], ramp > 0: 1 below the index last − ramp, 0 above
    last.  The code takes ⌊·⌋ and ⌈·⌉ of the indices at which a pair rotates 32 times and once.
    """

    title = "YaRN, ramp by index"
    source = ("Peng et al. 2023, the authors' code; transformers, _compute_yarn_parameters",)
    given = {
        **Rope.given,
        "factor": positive(),
        "temperature": positive(),
        "last": real(says="an index of a pair"),
        "ramp": positive(),
    }
    defaults = {
        "omega": 10_000.0 ** (-np.arange(64) / 64),
        "factor": 16.0,
        "temperature": Yarn.defaults["temperature"],
        "last": 46.0,
        "ramp": 26.0,
    }

    def kept(self, omega: Any) -> Any:
        xp = array_namespace(omega)
        b = xp.arange(omega.shape[0])
        return xp.clip((self.last - b) / self.ramp, 0, 1)


class Xpos(Rope):
    """Pair b rotates by p ω_b; a query is scaled by ζ_b^p and a key by ζ_b^{−p}.

    ζ_b^p = exp(p λ_b) with any rates λ_b = ln ζ_b; in the paper ζ_b = (b/B + γ) / (1 + γ) < 1 with
    γ = 0.4, and p is counted in steps of 512, so that scores shrink with the distance to the past.
    """

    title = "xPos"
    source = (
        "Sun et al. 2022, A Length-Extrapolatable Transformer, Algorithm 1",
        "torchscale, XPOS: scale_base = 512",
    )
    given = {**Rope.given, "rates": real(B, says="the rates λ = ln ζ")}
    defaults = {**Rope.defaults, "rates": np.log((np.arange(32) / 32 + 0.4) / 1.4) / 512}

    def scale(self, p: Any) -> Any:
        """Return exp(p λ_b) for both channels of pair b: (..) -> (.., 2B)."""
        xp = array_namespace(p)
        pairs = xp.exp(p[..., None] * self.rates)
        both = xp.stack((pairs, pairs), axis=-1)
        return xp.reshape(both, (*p.shape, 2 * self.rates.shape[0]))

    def query(self, q: Any, p: Any) -> Any:
        return rotate(q, p, self.frequencies()) * self.scale(p)

    def key(self, k: Any, p: Any) -> Any:
        return rotate(k, p, self.frequencies()) * self.scale(-p)

    def envelope(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Σ_b ζ_b^(m − n) (|q_b|² + |k_b|²) / 2√d over the pairs b.

        With ζ_b <= 1, as in the paper, it falls as m − n grows.
        """
        squares = (q * q + k * k) * self.scale(m - n)
        return array_namespace(q).sum(squares, axis=-1) / 2 / q.shape[-1] ** 0.5

    def margin(self, q: Any, k: Any, m: Any, n: Any) -> Any:
        """Σ_b ζ_b^(m − n) |R((m − n) ω_b) q_b − k_b|² / 2√d."""
        xp = array_namespace(q)
        angles = (m - n) * self.frequencies()
        cos, sin, even, odd = xp.cos(angles), xp.sin(angles), q[0::2], q[1::2]
        first, second = even * cos - odd * sin - k[0::2], even * sin + odd * cos - k[1::2]
        squares = xp.exp((m - n) * self.rates) * (first * first + second * second)
        return xp.sum(squares, axis=-1) / 2 / q.shape[-1] ** 0.5

    def apart(self, i: Any, j: Any) -> Any:
        xp = array_namespace(i)
        scale = xp.exp(-(i + j) * self.rates)
        return xp.sum((2 * xp.sin((j - i) * self.frequencies()) * scale) ** 2)

"""The frequency ladders in common use, each as a formula in float64.

ω_b = base^(−b/B) for the B pairs (Su et al. 2021), and its scalings for longer texts: division by a
factor (position interpolation, Chen et al. 2023), another base (NTK-aware), by parts (Peng et al.
2023; Llama 3.1), by parts along the index (YaRN as in its code).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..declarations import DeclaredRotary


def ladder(base: float, pairs: int, *, over: float | None = None) -> Tensor:
    """ω_b = base^(−b/over), where ``over`` defaults to B: (B,).

    >>> [round(w, 6) for w in ladder(10_000, 4).tolist()]
    [1.0, 0.1, 0.01, 0.001]
    """
    b = torch.arange(pairs, dtype=torch.float64)
    return torch.exp(-b * (math.log(base) / (pairs if over is None else over)))


def ntk_base(base: float, factor: float, pairs: int) -> float:
    """base·factor^(2B/(2B − 2)): the slowest pair rotates s times slower, the fastest is unchanged.

    s is the factor; bloc97 2023 (NTK-aware scaled RoPE).  Raises ``ValueError`` for fewer than two
    pairs.

    >>> round(ntk_base(10_000, 8, 64))
    82685
    """
    if pairs < 2:
        raise ValueError(f"another base changes nothing for {pairs} pair; two are needed")
    return base * float(factor ** (pairs / (pairs - 1)))


def by_parts(omega: Tensor, factor: float, original: float, low: float, high: float) -> Tensor:
    """ω for pairs with ``high`` or more rotations in ``original`` positions, ω/s below ``low``.

    s is the factor; between, the share of ω is linear in the number of rotations.  Llama 3.1 has
    low = 1 and high = 4; NTK-by-parts of Peng et al. 2023 has 1 and 32.

    >>> [round(w, 6) for w in by_parts(ladder(10_000, 4), 8, 100, 1, 4).tolist()]
    [1.0, 0.029754, 0.00125, 0.000125]
    """
    rotations = original * omega / math.tau
    kept = ((rotations - low) / (high - low)).clamp(0, 1)
    return omega * (kept + (1 - kept) / factor)


def ramp_of(
    base: float, pairs: int, original: float, fast: float, slow: float, *, whole: bool = True
) -> tuple[float, float]:
    """The indices between which YaRN's code goes from ω to ω/factor.

    The pair that rotates r times in ``original`` positions has index B·ln(original/(2πr))/ln base.
    The index for ``fast`` is rounded down and that for ``slow`` up (if ``whole``), and both are
    clamped to 0 .. 2B − 1.

    >>> ramp_of(10_000, 64, 4096, 32, 1)
    (20.0, 46.0)
    """
    low, high = (
        pairs * math.log(original / (math.tau * rotations)) / math.log(base)
        for rotations in (fast, slow)
    )
    if whole:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(float(low), 0.0), min(float(high), 2.0 * pairs - 1)
    return low, high + 0.001 if low == high else high


def yarn(omega: Tensor, factor: float, low: float, high: float) -> Tensor:
    """ω up to index ``low``, ω/factor from index ``high`` on, linear in the index between them.

    >>> [round(w, 6) for w in yarn(ladder(10_000, 4), 4, 0, 2).tolist()]
    [1.0, 0.0625, 0.0025, 0.00025]
    """
    b = torch.arange(omega.shape[0], dtype=torch.float64)
    kept = 1 - ((b - low) / (high - low)).clamp(0, 1)
    return omega * (kept + (1 - kept) / factor)


def attention_factor(factor: float) -> float:
    """0.1 ln s + 1, by which YaRN scales queries and keys: Peng et al. 2023, eq. 22.

    >>> round(attention_factor(4), 4)
    1.1386
    """
    return 0.1 * math.log(factor) + 1 if factor > 1 else 1.0


def ladders_of(declared: DeclaredRotary, width: int, axes: int) -> dict[str, Tensor]:
    """Return the declared ladder by name, or several if the declaration leaves a choice.

    Code of several axes may have a common ladder, or one for each; YaRN may round the ends of its
    ramp, or not.  Empty if neither base nor frequencies are declared.
    """
    if declared.frequencies is not None:
        return {"as listed": torch.tensor(declared.frequencies, dtype=torch.float64)}
    if declared.base is None:
        return {}
    made = _scaled(declared, width, "one ladder")
    if axes > 1 and width % (2 * axes) == 0:
        own = _scaled(declared, width // axes, "a ladder for each axis")
        made |= {name: one.repeat(axes) for name, one in own.items()}
    return made


def _scaled(declared: DeclaredRotary, width: int, name: str) -> dict[str, Tensor]:
    pairs, base = width // 2, float(declared.base or 1.0)
    plain = ladder(base, pairs, over=width / 2)  # an odd width counts as declared
    factor, original = declared.factor, declared.original
    match declared.scaling:
        case "linear":
            return {name: plain / factor}
        case "ntk" if pairs > 1:
            return {name: ladder(ntk_base(base, factor, pairs), pairs)}
        case "llama3":
            return {name: by_parts(plain, factor, original, declared.low, declared.high)}
        case "yarn":
            ramps = {
                words: ramp_of(base, pairs, original, declared.fast, declared.slow, whole=not words)
                for words in ("", ", ends of the ramp not rounded")
            }
            return {name + words: yarn(plain, factor, *ends) for words, ends in ramps.items()}
    return {name: plain}

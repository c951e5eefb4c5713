"""Position encodings that are added to tokens or to scores, and the functions they use."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.claim import rows
from attnproof.symbolic.definition import definition

from .powers import number_power


@definition(r"\operatorname{PE}")
def sinusoidal(positions: Any, frequencies: Any) -> Any:
    r"""Row i is sin(p_i ω_0), cos(p_i ω_0), sin(p_i ω_1), ..: (n,), (B,) -> (n, 2B).

    Vaswani et al. 2017, section 3.5, with any frequencies ω.
    """
    xp = array_namespace(positions)
    angles = positions[:, None] * frequencies
    pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
    return xp.reshape(pairs, (positions.shape[0], 2 * frequencies.shape[0]))


@definition(r"\operatorname{sinPE}")
def sine_only(positions: Any, frequencies: Any) -> Any:
    r"""Row i is sin(p_i ω_0), sin(p_i ω_1), ..: (n,), (B,) -> (n, B)."""
    xp = array_namespace(positions)
    return xp.sin(positions[:, None] * frequencies)


@definition(r"\operatorname{ALiBi}")
def alibi(query_positions: Any, key_positions: Any, slopes: Any) -> Any:
    r"""−m_h |u_i − v_j| for positions u: (r,), v: (n,), slopes m: (H,) -> (H, r, n).

    Press, Smith and Lewis 2022, section 3 (there with j <= i only).
    """
    xp = array_namespace(query_positions)
    offset = query_positions[:, None] - key_positions[None, :]
    return -slopes[:, None, None] * xp.abs(offset)


@definition(r"#1^{{#2}}")
def real_power(base: Any, exponent: Any) -> Any:
    """x^r = exp(r log x) for a number x > 0, and 0 for other x: (..) -> (..)."""
    xp = array_namespace(base)
    positive = xp.where(base > 0, base, 1)
    return xp.where(base > 0, xp.exp(exponent * xp.log(positive)), 0)


@definition(r"#1\left[{#2}\right]")
def looked_up(table: Any, place: Any) -> Any:
    """Row p of a table, Σ_k z_k [k = p]: (T, ..) at (..) -> (.., ..); 0 if there is no row p."""
    xp = array_namespace(place)
    here = xp.astype(place[..., None] == xp.arange(table.shape[0]), place.dtype)
    return xp.sum(here * table, axis=-1) if table.ndim == 1 else here @ table


@definition(r"#1\left[\operatorname{clip}({#2})\right]")
def at_offset(table: Any, offset: Any) -> Any:
    """Row clip(o) of a table with the rows −R, .., R: (2R + 1, ..) at (..) -> (.., ..)."""
    last = (table.shape[0] - 1) / 2
    return looked_up(table, last + array_namespace(offset).clip(offset, -last, last))


@definition(r"\sigma")
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(−x))."""
    return 1 / (1 + array_namespace(x).exp(-x))


@definition(r"\operatorname{interpolate}")
def interpolated(table: Any, place: Any) -> Any:
    """Σ_t z_t max(0, 1 − |p − t|): piecewise linear through z_0, z_1, .., for (.., T) at (..).

    It is 0 for p <= −1 and for p >= T.
    """
    xp = array_namespace(place)
    near = 1 - xp.abs(place[..., None] - xp.arange(table.shape[-1]))
    return xp.sum(table * xp.maximum(near, xp.zeros(())), axis=-1)


def binary_digit(number: Any, place: Any) -> Any:
    """⌊i / 2^t⌋ mod 2, the binary digit of 2^t in the number i."""
    return number // number_power(2, place) % 2


def binary_digits(number: Any, count: Any) -> Any:
    """The binary digits of 1, 2, 4, .., 2^{b−1}, the least significant first: (b,)."""
    return rows(count, lambda place: binary_digit(number, place))


def published_slopes(heads: int) -> list[float]:
    """The slopes of ALiBi for any number of heads (Press, Smith and Lewis 2022, and their code).

    For a power of two these are 2^(−8/H), 2^(−16/H), .., 2^(−8); otherwise those of the next lower
    power of two, followed by every other slope of the next higher.

    >>> [round(s, 4) for s in published_slopes(6)]
    [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125]
    """
    if heads < 1:
        raise ValueError(f"slopes are of at least one head; got {heads}")
    lower = 1 << (heads.bit_length() - 1)
    first = [2.0 ** (-8 * (h + 1) / lower) for h in range(lower)]
    more = [2.0 ** (-8 * (h + 1) / (2 * lower)) for h in range(0, 2 * lower, 2)]
    return first + more[: heads - lower]

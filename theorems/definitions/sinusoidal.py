"""Sinusoidal position encodings."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition

__all__ = ["sine_only", "sinusoidal"]


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

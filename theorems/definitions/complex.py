"""Complex numbers as pairs (real part, imaginary part) along the last axis.

All functions take arrays (.., 2) and apply to each pair separately.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic.definition import definition


def real_number(t: Any) -> Any:
    """t as the complex number (t, 0): (..) -> (.., 2)."""
    xp = array_namespace(t)
    return xp.stack((t, xp.zeros(t.shape)), axis=-1)


@definition(r"#1 \cdot #2")
def product(z: Any, w: Any) -> Any:
    """z w = (z₀w₀ − z₁w₁, z₀w₁ + z₁w₀): (.., 2), (.., 2) -> (.., 2)."""
    xp = array_namespace(z)
    a, b, c, d = z[..., 0], z[..., 1], w[..., 0], w[..., 1]
    return xp.stack((a * c - b * d, a * d + b * c), axis=-1)


@definition(r"#1^{*}")
def conjugate(z: Any) -> Any:
    """(z₀, −z₁): (.., 2) -> (.., 2)."""
    xp = array_namespace(z)
    return xp.stack((z[..., 0], -z[..., 1]), axis=-1)


@definition(r"\left|{#1}\right|")
def modulus(z: Any) -> Any:
    """√(z₀² + z₁²): (.., 2) -> (..)."""
    xp = array_namespace(z)
    return xp.sqrt(z[..., 0] ** 2 + z[..., 1] ** 2)


@definition(r"e^{\mathrm{i}\,#1}")
def unit(phase: Any) -> Any:
    """The number of modulus 1 with phase a, exp(i a) = (cos a, sin a): (..) -> (.., 2)."""
    xp = array_namespace(phase)
    return xp.stack((xp.cos(phase), xp.sin(phase)), axis=-1)


@definition(r"#1\,e^{\mathrm{i}\,#2}")
def polar(length: Any, phase: Any) -> Any:
    """r exp(i a) = (r cos a, r sin a): (..), (..) -> (.., 2)."""
    xp = array_namespace(phase)
    return xp.stack((length * xp.cos(phase), length * xp.sin(phase)), axis=-1)

"""Rotations of the plane and in blocks, and rotary position encoding in its two layouts.

The plane is also that of complex numbers: pairs (real part, imaginary part) along the last axis.
Functions of these take arrays (.., 2) and apply to each pair separately.
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


def square(a: Any, b: Any, c: Any, d: Any) -> Any:
    """[[a, b], [c, d]] for four numbers: (2, 2)."""
    xp = array_namespace(a)
    return xp.stack((xp.stack((a, b)), xp.stack((c, d))))


def determinant(x: Any) -> Any:
    """x₀₀ x₁₁ − x₀₁ x₁₀: (2, 2) -> ()."""
    return x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0]


@definition("R")
def rotation(angle: Any) -> Any:
    r"""R(a) = [[cos a, −sin a], [sin a, cos a]], one for each angle: (..) -> (.., 2, 2)."""
    xp = array_namespace(angle)
    cos, sin = xp.cos(angle), xp.sin(angle)
    rows = (xp.stack((cos, -sin), axis=-1), xp.stack((sin, cos), axis=-1))
    return xp.stack(rows, axis=-2)


@definition(r"\operatorname{Rot}")
def block_rotation(angles: Any) -> Any:
    r"""The block-diagonal matrix of R(a_0), .., R(a_{B−1}): (B,) -> (2B, 2B).

    Su et al. 2021 (RoFormer), eq. 15.
    """
    xp = array_namespace(angles)
    blocks = angles.shape[0]
    place = xp.eye(blocks, dtype=angles.dtype, device=angles.device)
    full = place[:, None, :, None] * rotation(angles)[:, :, None, :]
    return xp.reshape(full, (2 * blocks, 2 * blocks))


def _neighbours(x: Any, angles: Any) -> Any:
    """Channels 2b and 2b + 1 rotate by the angle a_b."""
    xp = array_namespace(x)
    cos, sin = xp.cos(angles), xp.sin(angles)
    even, odd = x[..., 0::2], x[..., 1::2]
    rotated = xp.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1)
    return xp.reshape(rotated, x.shape)


def _halves(x: Any, angles: Any) -> Any:
    """Channels b and B + b rotate by the angle a_b."""
    xp = array_namespace(x)
    cos, sin = xp.cos(angles), xp.sin(angles)
    half = angles.shape[-1]
    first, second = x[..., :half], x[..., half:]
    return xp.concat((first * cos - second * sin, second * cos + first * sin), axis=-1)


def _angles(x: Any, positions: Any, frequencies: Any) -> Any:
    """p_i·ω_b, also for one position that is a plain number."""
    return array_namespace(x).asarray(positions)[..., None] * frequencies


@definition(r"\operatorname{rot}")
def rotate(x: Any, positions: Any, frequencies: Any) -> Any:
    r"""Rotary encoding, interleaved: channels (2b, 2b+1) of row i rotate by p_i·ω_b.

    x: (.., n, 2B), positions: (.., n), frequencies: (B,).  Su et al. 2021 (RoFormer), eq. 34.
    """
    return _neighbours(x, _angles(x, positions, frequencies))


@definition(r"\operatorname{rot}^{\mathrm{half}}")
def rotate_half(x: Any, positions: Any, frequencies: Any) -> Any:
    r"""Rotary encoding, half-split: channels (b, B+b) of row i rotate by p_i·ω_b.

    x: (.., n, 2B), positions: (.., n), frequencies: (B,).  The layout of GPT-NeoX and Llama code.
    """
    return _halves(x, _angles(x, positions, frequencies))


@definition(r"\operatorname{half}")
def to_half_split(x: Any, frequencies: Any) -> Any:
    """The channels of an interleaved (n, 2B) array in half-split order: c·B + b holds 2b + c."""
    xp = array_namespace(x)
    rows, blocks = x.shape[0], frequencies.shape[0]
    return xp.reshape(xp.reshape(x, (rows, blocks, 2)).mT, (rows, 2 * blocks))


@definition(r"\operatorname{rotate}")
def rotate_pairs(x: Any, angles: Any) -> Any:
    """Channels (2b, 2b+1) rotate by the angle a_b: (.., 2B), (.., B) -> (.., 2B)."""
    return _neighbours(x, angles)


@definition(r"\operatorname{rotate}^{\mathrm{half}}")
def rotate_halves(x: Any, angles: Any) -> Any:
    """Channels (b, B+b) rotate by the angle a_b: (.., 2B), (.., B) -> (.., 2B)."""
    return _halves(x, angles)

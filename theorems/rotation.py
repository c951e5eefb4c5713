"""Rotations of the plane, and blocks of them."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    angle,
    differ,
    equal,
    frequencies,
    positions,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.rotary import (
    block_rotation,
    conjugate,
    polar,
    product,
    rotation,
    unit,
)

(B,) = sizes("B", "blocks")


@theorem(
    "R(a) R(b) = R(a + b)",
    given={"a": angle(), "b": angle()},
    sources=("Su et al. 2021 (RoFormer), section 3.2.1 uses it", "document 004, rotation matrices"),
)
def rotations_compose_by_adding_angles(a: Array, b: Array) -> Claim:
    """The product of two rotation matrices is the rotation by the sum, entry by entry."""
    return equal(rotation(a) @ rotation(b), rotation(a + b))


@rotations_compose_by_adding_angles.negative_control("the angles are subtracted")
def difference_of_angles(a: Array, b: Array) -> Claim:
    return equal(rotation(a) @ rotation(b), rotation(a - b))


@theorem(
    "R(a)ᵀ = R(−a) = R(a)⁻¹, and rotations keep norms and dot products",
    given={"a": angle(), "x": real(2), "y": real(2)},
    sources=("Su et al. 2021 (RoFormer), section 3.2.2: R is orthogonal",),
    claims=("G3.5b", "R13"),
)
def the_transpose_of_a_rotation_is_its_inverse(a: Array, x: Array, y: Array) -> dict[str, Claim]:
    """Both products R(a)R(−a) and R(−a)R(a) are the identity; lengths and angles are kept."""
    xp = array_namespace(x)
    R = rotation(a)
    return {
        "transpose": equal(R.mT, rotation(-a)),
        "inverse on the right": equal(R @ rotation(-a), xp.eye(2)),
        "inverse on the left": equal(rotation(-a) @ R, xp.eye(2)),
        "norms": equal((R @ x) @ (R @ x), x @ x),
        "dot products": equal((R @ x) @ (R @ y), x @ y),
    }


@the_transpose_of_a_rotation_is_its_inverse.negative_control("a rotation is its own transpose")
def symmetric(a: Array) -> Claim:
    return equal(rotation(a).mT, rotation(a))


@theorem(
    "Block-diagonal rotations compose by adding angles and are orthogonal",
    given={"a": angle(B), "b": angle(B), "x": real(2 * B), "y": real(2 * B)},
    sources=("Su et al. 2021 (RoFormer), eq. 15 and what follows eq. 16",),
    claims=("B14", "G3.6a", "R13"),
)
def block_rotations_compose_and_are_orthogonal(
    a: Array, b: Array, x: Array, y: Array
) -> dict[str, Claim]:
    """For B blocks with B angles, as one 2B × 2B matrix."""
    xp = array_namespace(x)
    R = block_rotation(a)
    identity = xp.eye(x.shape[0])
    return {
        "composition": equal(R @ block_rotation(b), block_rotation(a + b)),
        "transpose": equal(R.mT, block_rotation(-a)),
        "inverse on the right": equal(R @ block_rotation(-a), identity),
        "inverse on the left": equal(block_rotation(-a) @ R, identity),
        "norms": equal((R @ x) @ (R @ x), x @ x),
        "dot products": equal((R @ x) @ (R @ y), x @ y),
    }


@block_rotations_compose_and_are_orthogonal.negative_control("the angles are subtracted")
def difference_of_positions(a: Array, b: Array) -> Claim:
    return equal(block_rotation(a) @ block_rotation(b), block_rotation(a - b))


@theorem(
    "e^{ia} x = R(a) x, and |x| e^{i(b + a)} = |x| e^{ib} e^{ia}",
    given={
        "a": angle(),
        "b": angle(),
        "r": real(),
        "x": real(2),
        "y": real(2),
        "u": positions(),
        "v": positions(),
        "theta": angle(),
    },
    sources=("document 004, from the complex to the real form",),
    claims=("R18", "R23", "R23c", "R24", "R30", "R38", "R39"),
)
def turning_is_multiplying_by_a_unit_complex_number(
    a: Array, b: Array, r: Array, x: Array, y: Array, u: Array, v: Array, theta: Array
) -> dict[str, Claim]:
    """In coordinates, in polar form, and for a query at u and a key at v with step θ."""
    xp = array_namespace(x)
    one, zero = xp.ones(()), xp.zeros(())
    first = x[0] * xp.cos(a) - x[1] * xp.sin(a)
    second = x[0] * xp.sin(a) + x[1] * xp.cos(a)
    query, key = product(x, unit(u * theta)), product(y, unit(v * theta))
    return {
        "real and imaginary part": equal(product(x, unit(a)), xp.stack((first, second))),
        "as a rotation matrix": equal(product(x, unit(a)), rotation(a) @ x),
        "phases add": equal(unit(a + b), product(unit(a), unit(b))),
        "in polar form": equal(polar(r, b + a), product(polar(r, b), unit(a))),
        "the Hermitian score": equal(
            product(query, conjugate(key)), product(product(x, conjugate(y)), unit((u - v) * theta))
        ),
        "the real score": equal(query @ key, x @ product(y, unit((v - u) * theta))),
        "half a turn is −1": equal(unit(xp.pi * one), xp.stack((-one, zero))),
        "a whole turn is nothing": equal(unit(a + 2 * xp.pi), unit(a)),
        "yet another angle": differ(a + 2 * xp.pi, a, 2 * xp.pi),
    }


@turning_is_multiplying_by_a_unit_complex_number.negative_control(
    "the matrix rotates the other way"
)
def backwards(a: Array, x: Array) -> Claim:
    return equal(product(x, unit(a)), rotation(-a) @ x)


@theorem(
    "(cos, sin)(n + φ) = R(φ) (cos, sin)(n), and (sin, cos)(n + φ) = R(φ)ᵀ (sin, cos)(n)",
    given={"n": positions(), "phi": positions(), "omega": frequencies()},
    sources=("document 004, compound angles", "Vaswani et al. 2017, section 3.5"),
    claims=("R9", "R9c"),
)
def a_shift_turns_the_pair_of_cosine_and_sine(
    n: Array, phi: Array, omega: Array
) -> dict[str, Claim]:
    """At any frequency ω; in the order of the final formula the matrix is the transpose."""
    xp = array_namespace(n)
    here, step = n * omega, phi * omega
    R = rotation(step)
    return {
        "compound angle": equal(
            xp.sin(here + step), xp.sin(here) * xp.cos(step) + xp.cos(here) * xp.sin(step)
        ),
        "cosine first": equal(unit(here + step), R @ unit(here)),
        "sine first": equal(sine_first(here + step), R.mT @ sine_first(here)),
    }


def sine_first(angle: Array) -> Array:
    """(sin a, cos a)."""
    xp = array_namespace(angle)
    pair: Array = xp.stack((xp.sin(angle), xp.cos(angle)))
    return pair


@a_shift_turns_the_pair_of_cosine_and_sine.negative_control(
    "the order is (sin, cos) and the matrix is not transposed"
)
def same_matrix(n: Array, phi: Array, omega: Array) -> Claim:
    here, step = n * omega, phi * omega
    return equal(sine_first(here + step), rotation(step) @ sine_first(here))

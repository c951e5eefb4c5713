"""A rotation is inverted by its transpose, and keeps norms and dot products."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, angle, equal, real, theorem
from attnproof.theorems.definitions.rotary import rotation


@theorem(
    "R(a)ᵀ = R(−a) = R(a)⁻¹, and rotations keep norms and dot products",
    given={"a": angle(), "x": real(2), "y": real(2)},
    sources=("Su et al. 2021 (RoFormer), section 3.2.2: R is orthogonal",),
    claims=("G3.5b", "R13"),
)
def statement(a: Array, x: Array, y: Array) -> dict[str, Claim]:
    """Both products R(a)R(−a) and R(−a)R(a) are the identity; lengths and angles survive."""
    xp = array_namespace(x)
    R = rotation(a)
    return {
        "transpose": equal(R.mT, rotation(-a)),
        "inverse on the right": equal(R @ rotation(-a), xp.eye(2)),
        "inverse on the left": equal(rotation(-a) @ R, xp.eye(2)),
        "norms": equal((R @ x) @ (R @ x), x @ x),
        "dot products": equal((R @ x) @ (R @ y), x @ y),
    }


@statement.twin_of("a rotation is its own transpose")
def symmetric(a: Array) -> Claim:
    return equal(rotation(a).mT, rotation(a))

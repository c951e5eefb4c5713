"""Rotations of the plane compose by adding their angles."""

from attnproof.symbolic import Array, Claim, angle, equal, theorem
from attnproof.theorems.definitions.rotary import rotation


@theorem(
    "R(a) R(b) = R(a + b)",
    given={"a": angle(), "b": angle()},
    sources=("Su et al. 2021 (RoFormer), section 3.2.1 uses it", "document 004, rotation matrices"),
)
def statement(a: Array, b: Array) -> Claim:
    """The product of two rotation matrices is the rotation by the sum, entry by entry."""
    return equal(rotation(a) @ rotation(b), rotation(a + b))


@statement.twin_of("the angles are subtracted")
def difference(a: Array, b: Array) -> Claim:
    return equal(rotation(a) @ rotation(b), rotation(a - b))

"""Block-diagonal rotations: any number of blocks, any angle in each."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, angle, equal, real, sizes, theorem
from attnproof.theorems.definitions.rotary import block_rotation

(B,) = sizes("B", "blocks")


@theorem(
    "Block-diagonal rotations compose by adding angles and are orthogonal",
    given={"a": angle(B), "b": angle(B), "x": real(2 * B), "y": real(2 * B)},
    sources=("Su et al. 2021 (RoFormer), eq. 15 and what follows eq. 16",),
    claims=("B14", "G3.6a", "R13"),
)
def statement(a: Array, b: Array, x: Array, y: Array) -> dict[str, Claim]:
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


@statement.twin_of("the angles are subtracted")
def difference(a: Array, b: Array) -> Claim:
    return equal(block_rotation(a) @ block_rotation(b), block_rotation(a - b))

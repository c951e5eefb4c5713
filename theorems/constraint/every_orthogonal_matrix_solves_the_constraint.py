"""f(x, m) = M^m x gives relative scores for every orthogonal M, rotation or not."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    angle,
    differ,
    equal,
    for_all,
    function,
    natural,
    orthogonal,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.powers import power
from attnproof.theorems.definitions.rotary import rotation

(d,) = sizes("d", "features")


@theorem(
    "⟨M^m h(x), M^{m+k} h(y)⟩ = ⟨h(x), M^k h(y)⟩ for every orthogonal M and every h",
    given={
        "M": orthogonal(d), "h": function(1, out=(d,), says="any map of a token"),
        "x": real(d), "y": real(d), "m": natural(), "k": natural(), "theta": angle(),
    },
    sources=("document 004, what its derivation leaves out",),
    claims=("R26", "R27", "R29"),
)  # fmt: skip
def statement(
    M: Array, h: Function, x: Array, y: Array, m: Array, k: Array, theta: Array
) -> dict[str, Claim | Law]:
    """With h(x) = x also f(x, 0) = x.  A negative offset is the same with x and y exchanged.

    The mirror diag(1, −1) is one M and is no rotation.
    """
    xp = array_namespace(x)
    mirror, turn = reflection(x), rotation(theta)
    offset = for_all(
        {"m": natural(), "k": natural()},
        lambda m, k: equal(power(M, m).mT @ power(M, m + k), power(M, k)).by_induction(m),
    )
    return {
        "(M^m)ᵀ M^{m+k} = M^k": offset,
        "relative scores": equal(
            (power(M, m) @ h(x)) @ (power(M, m + k) @ h(y)), h(x) @ (power(M, k) @ h(y))
        ).with_facts(offset.at(m=m, k=k)),
        "at position 0 nothing happens": equal(power(M, 0) @ x, x),
        "the mirror is orthogonal": equal(mirror.mT @ mirror, xp.eye(2)),
        "the mirror is no rotation": differ(
            mirror,
            turn,
            mirror[0, 0] * mirror[1, 1] - mirror[0, 1] * mirror[1, 0],
            ("its determinant", turn[0, 0] * turn[1, 1] - turn[0, 1] * turn[1, 0]),
            ("cos² θ + sin² θ", 1),
            -2,
        ),
    }


def reflection(x: Array) -> Array:
    """diag(1, −1)."""
    xp = array_namespace(x)
    one, zero = xp.ones(()), xp.zeros(())
    matrix: Array = xp.stack((xp.stack((one, zero)), xp.stack((zero, -one))))
    return matrix


@statement.twin_of("M is any matrix", M=real(d, d))
def any_matrix(M: Array, x: Array, y: Array) -> Claim:
    return equal((M @ x) @ (M @ (M @ y)), x @ (M @ y))

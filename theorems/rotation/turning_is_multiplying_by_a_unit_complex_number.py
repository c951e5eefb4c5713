"""A rotation of the plane is the product with a complex number of modulus 1."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, angle, differ, equal, positions, real, theorem
from attnproof.theorems.definitions.complex import conjugate, polar, product, unit
from attnproof.theorems.definitions.rotary import rotation


@theorem(
    "e^{ia} x = R(a) x, and |x| e^{i(b + a)} = |x| e^{ib} e^{ia}",
    given={
        "a": angle(), "b": angle(), "r": real(), "x": real(2), "y": real(2),
        "u": positions(), "v": positions(), "theta": angle(),
    },
    sources=("document 004, from the complex to the real form",),
    claims=("R18", "R23", "R23c", "R24", "R30", "R38", "R39"),
)  # fmt: skip
def statement(
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


@statement.twin_of("the matrix turns the other way")
def backwards(a: Array, x: Array) -> Claim:
    return equal(product(x, unit(a)), rotation(-a) @ x)

"""What adding position vectors tells apart, and what it does not."""

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem

p, d = sizes("p d", "features")


@theorem(
    "(x + u) − (x + v) = u − v: equal tokens differ by their positions, and different ones collide",
    given={"x": real(p), "y": real(p), "u": real(p), "v": real(p), "W": real(p, d)},
    sources=("document 001, the basic idea of positional encodings",),
    claims=("T24a", "T24b"),
)
def statement(x: Array, u: Array, v: Array, W: Array) -> dict[str, Claim]:
    """For every token at u there is one that gives the same vector at v: x + (u − v).

    A projection that takes u − v to 0 makes equal tokens at u and v equal again.
    """
    return {
        "equal tokens": equal((x + u) - (x + v), u - v),
        "a collision": equal((x + (u - v)) + v, x + u),
        "the tokens that collide": equal((x + (u - v)) - x, u - v),
        "projected": equal((x + u) @ W - (x + v) @ W, (u - v) @ W),
    }


@statement.twin_of(
    "the sum tells which token stands there",
    assume=lambda x, y, u, v: [(x, y + v - u)],
)
def identifies(x: Array, y: Array) -> Claim:
    return equal(x, y)

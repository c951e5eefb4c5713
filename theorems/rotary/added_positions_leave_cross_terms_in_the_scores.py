"""With an added table the scores have cross terms, which see absolute positions."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    differ,
    equal,
    frequencies,
    natural,
    positions,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.hypotheses import nothing
from attnproof.theorems.definitions.sinusoidal import sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")


@theorem(
    "⟨x + PE(u), y + PE(v)⟩ is x·y + x·PE(v) + PE(u)·y + a function of v − u",
    given={
        "X": real(n, 2 * B), "Y": real(n, 2 * B), "u": positions(n), "v": positions(n),
        "s": natural(), "omega": frequencies(B), "W": real(2 * B, d),
    },
    assume=lambda s: [differ(s, 0)],
    sources=("document 004, absolute and rotary encodings",),
    claims=("R0", "R32", "R36"),
)  # fmt: skip
def statement(
    X: Array, Y: Array, u: Array, v: Array, s: Array, omega: Array, W: Array
) -> dict[str, Claim]:
    """Moving a query (1, 0) and a key 0 together from position 0 to s adds sin s to their score."""
    xp = array_namespace(X)
    P, R = sinusoidal(u, omega), sinusoidal(v, omega)
    relative = xp.sum(xp.cos((u - v)[:, None] * omega), axis=-1)
    crossed = xp.sum(X * R, axis=-1) + xp.sum(P * Y, axis=-1)
    return {
        "through a linear map": equal((X + P) @ W, X @ W + P @ W),
        "four terms": equal(
            xp.sum((X + P) * (Y + R), axis=-1), xp.sum(X * Y, axis=-1) + crossed + relative
        ),
        "a common shift is seen": differ(pair_score(s), pair_score(xp.zeros(())), xp.sin(s)),
    }


def pair_score(s: Array) -> Any:
    """The score of the query (1, 0) + PE(s) and the key (0, 0) + PE(s), at frequency 1."""
    xp = array_namespace(s)
    here = xp.stack((xp.sin(s), xp.cos(s)))
    return (xp.stack((xp.ones(()), xp.zeros(()))) + here) @ here


@statement.twin_of("the scores are unchanged by a common shift", assume=nothing)
def shifted(X: Array, Y: Array, u: Array, v: Array, s: Array, omega: Array) -> Claim:
    xp = array_namespace(X)
    moved = (X + sinusoidal(u + s, omega)) * (Y + sinusoidal(v + s, omega))
    still = (X + sinusoidal(u, omega)) * (Y + sinusoidal(v, omega))
    return equal(xp.sum(moved, axis=-1), xp.sum(still, axis=-1))

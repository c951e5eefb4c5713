"""Rotary self-attention is equivariant if the positions move with the tokens, and only then."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    frequencies,
    greater,
    permutation,
    positions,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.definition import definition
from attnproof.theorems.definitions.attention import attention
from attnproof.theorems.definitions.rotary import rotate

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")
p, d = sizes("p d", "features")


def rotary_self_attention(
    X: Array, places: Array, S: Array, T: Array, W: Array, omega: Array
) -> Array:
    """Att(rot(X S), rot(X T), X W)."""
    query, key = rotate(X @ S, places, omega), rotate(X @ T, places, omega)
    output: Array = attention(query, key, X @ W)
    return output


@definition(r"\operatorname{quarter}")
def quarter_turns(X: Array) -> Array:
    """Rotary self-attention of two tokens (2, 2) at positions 0 and 1: (2,).

    A step turns queries and keys, the tokens themselves, by π/2; values are second entries.
    """
    xp = array_namespace(X)
    places, omega = xp.arange(2), xp.pi / 2 * xp.ones(1)
    turned = rotate(X, places, omega)
    output: Array = attention(turned, turned, X[:, 1:])[:, 0]
    return output


@theorem(
    "Rotary self-attention commutes with permutations of tokens together with their positions",
    given={
        "X": real(n, p), "S": real(p, 2 * B), "T": real(p, 2 * B), "W": real(p, d),
        "u": positions(n), "omega": frequencies(B), "sigma": permutation(n),
    },
    sources=("Su et al. 2021 (RoFormer), eq. 16", "cf. document 004"),
    claims=("R34",),
)  # fmt: skip
def statement(
    X: Array, S: Array, T: Array, W: Array, u: Array, omega: Array, sigma: Array
) -> dict[str, Claim]:
    """Token i stands at position u_i before and after.

    If positions stay, the score of (1, 0) for (0, 1) is −1/√2 in this order and 1/√2 in the other.
    """
    xp = array_namespace(X)
    still = rotary_self_attention(X, u, S, T, W, omega)
    moved = attention(
        rotate(X @ S, u, omega)[sigma], rotate(X @ T, u, omega)[sigma], (X @ W)[sigma]
    )
    first, second = xp.eye(2)[0], xp.eye(2)[1]
    root = xp.exp(1 / xp.sqrt(2 * xp.ones(())))
    return {
        "with their positions": chain(
            rotary_self_attention(X[sigma], u[sigma], S, T, W, omega),
            ("each row is turned by its own position", moved),
            ("attention is equivariant", still[sigma]),
        ),
        "not if the positions stay": greater(
            quarter_turns(xp.stack((second, first)))[1],
            quarter_turns(xp.stack((first, second)))[0],
            ("1/2 − 1/(1 + e^√2)", (root - 1) * (root + 1) / (root**2 + 1) / 2),
        ),
    }


@statement.twin_of("the positions stay where they are")
def positions_stay(
    X: Array, S: Array, T: Array, W: Array, u: Array, omega: Array, sigma: Array
) -> Claim:
    return equal(
        rotary_self_attention(X[sigma], u, S, T, W, omega),
        rotary_self_attention(X, u, S, T, W, omega)[sigma],
    )

"""A complex number that is not 0 has one phase; at 0 every phase will do."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    positive,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.theorems.definitions.complex import product

(B,) = sizes("B", "blocks")


def two_phases_and_lengths(r: Array, u: Array, v: Array, Z: Array, L: Array) -> list[Any]:
    """r u = r v, and L holds the squared lengths of the pairs of Z, as squares."""
    xp = array_namespace(u)
    return [(r * u, r * v), (xp.sum(Z**2, axis=-1), L**2)]


@theorem(
    "r u = r v with r > 0 gives u = v; and z = |z| u with |u| = 1, pair by pair",
    given={
        "r": positive(), "u": real(2), "v": real(2), "Z": real(B, 2), "L": positive(B),
    },
    sources=("document 004, polar form of a token",),
    claims=("R17b", "R31"),
    assume=two_phases_and_lengths,
)  # fmt: skip
def statement(r: Array, u: Array, v: Array, Z: Array, L: Array) -> dict[str, Claim]:
    """A phase is a point u of the unit circle, so it counts modulo 2π.

    Pair b of Z has the length L_b > 0 and its own phase Z_b / L_b.
    """
    xp = array_namespace(u)
    inverse = xp.stack((1 / r, xp.zeros(())))
    phases = Z / L[:, None]
    return {
        "one phase": chain(
            u,
            ("r is not 0", product(r * u, inverse)),
            ("both are the same number", product(r * v, inverse)),
            ("r is not 0", v),
        ),
        "every pair has a modulus and a phase": equal(L[:, None] * phases, Z),
        "the phase is on the circle": chain(
            xp.sum(phases**2, axis=-1),
            ("L is not 0", xp.sum(Z**2, axis=-1) / L**2),
            ("L² is the squared length", L**2 / L**2),
            ("L is not 0", xp.ones(B)),
        ),
    }


@statement.twin_of("the number is 0", assume=lambda u, v: [(0 * u, 0 * v)])
def at_zero(u: Array, v: Array) -> Claim:
    return equal(u, v)

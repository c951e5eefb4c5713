"""The largest entry of a channel is the same in every order of the tokens."""

from typing import Any

from attnproof.symbolic import (
    Array,
    Claim,
    at_least,
    chain,
    index_below,
    inverse,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip

(n,) = sizes("n", "tokens")


def largest(x: Array, m: Array, k: Array) -> list[Any]:
    """m is the maximum of x: no entry is larger, and entry k is m."""
    return [(m, x[k]), at_least(m, x)]


@theorem(
    "The maximum of a channel is the maximum of it in any order of the tokens",
    given={
        "x": real(n, says="one channel of the tokens"), "sigma": permutation(n),
        "m": real(says="its maximum"), "k": index_below(n),
    },
    assume=largest,
    sources=("document 001, equivariance against invariance", "Zaheer et al. 2017 (Deep Sets)"),
    claims=("T3", "T22b"),
)  # fmt: skip
def statement(x: Array, sigma: Array, m: Array, k: Array) -> dict[str, Claim]:
    """No entry of x[σ] is larger than m, and one of them is m: so max(x[σ]) = max(x)."""
    return {
        "no entry is larger": at_least(m, x[sigma], ("entries of x, moved", (m - x)[sigma])),
        "one entry is as large": chain(
            x[sigma][inverse(sigma)][k], ("entry σ⁻¹(k) of x[σ] is entry k of x", x[k]), ("", m)
        ),
    }


@statement.twin_of("m is any entry", assume=lambda x, m, k: [(m, x[k])])
def any_entry(x: Array, sigma: Array, m: Array) -> Claim:
    return at_least(m, x[sigma])

"""Adding a table of positions loses nothing, and tells equal tokens apart by their positions."""

from typing import Any

from attnproof.symbolic import Array, Claim, differ, equal, index_below, real, sizes, theorem

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")


def equal_tokens(T: Array, R: Array, a: Array, b: Array, c: Array) -> list[Any]:
    """Tokens a and b of T are equal; their position vectors differ in channel c."""
    return [(T[a], T[b]), differ(R[a, c], R[b, c])]


@theorem(
    "X ↦ X + P is a bijection, and equal tokens with different position vectors become different",
    given={
        "X": real(n, p), "Y": real(n, p), "P": real(n, p), "T": real(n, p), "R": real(n, p),
        "a": index_below(n), "b": index_below(n), "c": index_below(p),
    },
    assume=equal_tokens,
    sources=("document 000, position embedding",),
    claims=("B8", "B9", "T24b"),
)  # fmt: skip
def statement(
    X: Array, Y: Array, P: Array, T: Array, R: Array, a: Array, b: Array, c: Array
) -> dict[str, Claim]:
    """The table has the shape of the input; one with pairwise different rows is an embedding."""
    return {
        "X + P gives X back": equal((X + P) - P, X),
        "every Y is some X + P": equal((Y - P) + P, Y),
        "equal tokens at two positions": differ(
            (T + R)[a],
            (T + R)[b],
            (T + R)[a, c],
            ("if the two rows were equal", (T + R)[b, c]),
            R[a, c] - R[b, c],
        ),
    }


def equal_vectors(X: Array, P: Array, a: Array, b: Array) -> list[Any]:
    """The tokens at two places are equal, and so are their position vectors."""
    return [differ(a, b), (X[a], X[b]), (P[a], P[b])]


@statement.twin_of("the position vectors are equal", assume=equal_vectors)
def same_vectors(X: Array, P: Array, a: Array, b: Array, c: Array) -> Claim:
    return differ(
        (X + P)[a],
        (X + P)[b],
        (X + P)[a, c],
        ("if the two rows were equal", (X + P)[b, c]),
        P[a, c] - P[b, c],
    )

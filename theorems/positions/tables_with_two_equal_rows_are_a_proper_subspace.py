"""Almost every table has pairwise different rows, and not every one."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, differ, equal, index_below, real, sizes, theorem

(n,) = sizes("n", "tokens")
(p,) = sizes("p", "features")


def two_places(P: Array, R: Array, a: Array, b: Array) -> list[Any]:
    """Places a and b differ; P and R have equal rows there."""
    return [differ(a, b), (P[a], P[b]), (R[a], R[b])]


@theorem(
    "The tables whose rows a and b are equal form a subspace, and not the whole space",
    given={
        "P": real(n, p), "R": real(n, p), "s": real(), "t": real(),
        "a": index_below(n), "b": index_below(n),
    },
    assume=two_places,
    sources=("document 000, learnable absolute positional embedding",),
    claims=("B10",),
)  # fmt: skip
def statement(P: Array, R: Array, s: Array, t: Array, a: Array, b: Array) -> dict[str, Claim]:
    """A proper subspace has measure 0, and so have finitely many, one for each pair of places."""
    xp = array_namespace(P)
    counting = xp.arange(n)[:, None] + xp.zeros((n, p))
    return {
        "a subspace": equal((s * P + t * R)[a], (s * P + t * R)[b]),
        "not all: the rows 0, 1, 2, ..": differ(
            counting[a],
            counting[b],
            1 * a,
            ("the first entry of row a", counting[a, 0]),
            ("if the rows were equal", counting[b, 0]),
            ("the first entry of row b", 1 * b),
            a - b,
        ),
    }


@statement.twin_of(
    "every table has different rows, one whose rows are all t too",
    assume=lambda a, b: [differ(a, b)],
    t=real(p),
)
def every_table(t: Array, a: Array, b: Array) -> Claim:
    xp = array_namespace(t)
    constant = xp.zeros((n, p)) + t
    return differ(
        constant[a],
        constant[b],
        constant[a, 0],
        ("", constant[b, 0]),
        constant[a, 0] - constant[b, 0],
    )

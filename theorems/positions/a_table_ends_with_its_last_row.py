"""A table of N position vectors can be added to N tokens and to no other number of them."""

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem

n, N = sizes("n N", "tokens")
(p,) = sizes("p", "features")


@theorem(
    "A table of N rows can be added to any n tokens",
    given={"X": real(n, p), "P": real(N, p)},
    expected="ill-typed",
    sources=("document 000, learnable absolute positional embedding",),
    claims=("B10",),
)
def statement(X: Array, P: Array) -> Claim:
    """No statement: row N of the table does not exist."""
    return equal((X + P) - P, X)


@statement.twin_of("there are as many tokens as rows", X=real(N, p))
def as_many(X: Array, P: Array) -> Claim:
    return equal((X + P) - P, X)

"""The matrix of a step is the identity (false): the keyword k of eye may not be dropped."""

from array_api_compat import array_namespace

from attnproof import Array, Claim, equal, real, sizes, theorem

(n,) = sizes("n", "tokens")


@theorem("A step to the next token is no step", given={"X": real(n)}, sources=("none",))
def statement(X: Array) -> Claim:
    """S X = X for the matrix S with ones above the diagonal."""
    xp = array_namespace(X)
    return equal(xp.eye(n, k=1) @ X, X)


@statement.negative_control("twice")
def twice(X: Array) -> Claim:
    xp = array_namespace(X)
    return equal(xp.eye(n, k=1) @ X, 2 * X)

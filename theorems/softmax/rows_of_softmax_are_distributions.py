"""The weights of softmax are positive and sum to one."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, all_positive, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

r, n = sizes("r n", "tokens")


@theorem(
    "Rows of softmax sum to one and their weights are positive",
    given={"S": real(r, n)},
    sources=("Ganev, Notation, Softmax",),
    claims=("S11", "G0.2"),
)
def statement(S: Array) -> dict[str, Claim]:
    """Each row of weights is a probability distribution in which no key is left out."""
    xp = array_namespace(S)
    return {
        "rows sum to one": equal(xp.sum(softmax(S), axis=-1), xp.ones(S.shape[0])),
        "weights are positive": all_positive(softmax(S)),
    }


@statement.twin_of("columns sum to one")
def columns(S: Array) -> Claim:
    xp = array_namespace(S)
    return equal(xp.sum(softmax(S), axis=0), xp.ones(S.shape[1]))

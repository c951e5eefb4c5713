"""Row softmax commutes with permutations of rows and of columns."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

r, n = sizes("r n", "tokens")


@theorem(
    "Row softmax commutes with row and column permutations",
    given={"S": real(r, n), "tau": permutation(r), "sigma": permutation(n)},
    sources=("Ganev, proof of Lemma 2.3, fact (3)", "document 001, step 3 of the proof"),
    claims=("T9", "G2.3e"),
)
def statement(S: Array, tau: Array, sigma: Array) -> Claim:
    """For scores of any shape, permuting rows by τ and columns by σ permutes the weights alike."""
    return chain(
        softmax(S[tau][:, sigma]),
        ("softmax treats each row by itself", softmax(S[:, sigma])[tau]),
        ("the sum of a row does not see the order of its entries", softmax(S)[tau][:, sigma]),
    )


@statement.twin_of("the columns of the weights stay where they were")
def columns_stay(S: Array, tau: Array, sigma: Array) -> Claim:
    return equal(softmax(S[tau][:, sigma]), softmax(S)[tau])

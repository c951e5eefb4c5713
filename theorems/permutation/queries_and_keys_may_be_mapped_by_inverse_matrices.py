"""A change of basis: queries by an invertible matrix, keys by its inverse transposed."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, chain, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention, self_attention, softmax

r, n = sizes("r n", "tokens")
p, ell, d = sizes("p ell d", "features")


def inverse_pair(g: Array, h: Array) -> list[tuple[Array, Array]]:
    """h is the inverse of g."""
    return [(g @ h, array_namespace(g).eye(ell))]


@theorem(
    "Att(Qg, Kg⁻ᵀ, V) = Att(Q, K, V) for every invertible g, orthogonal or not",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "X": real(n, p),
        "S_Q": real(p, ell), "S_K": real(p, ell), "S_V": real(p, d),
        "g": real(ell, ell), "h": real(ell, ell, says="the inverse of g"),
    },
    assume=inverse_pair,
    sources=("Ganev, section 2.4 and Lemma 2.3, extended",),
    claims=("G2.3c", "GS2.4.3"),
)  # fmt: skip
def statement(
    Q: Array, K: Array, V: Array, X: Array, S_Q: Array, S_K: Array, S_V: Array, g: Array, h: Array
) -> dict[str, Claim]:
    """So the maps S_Q g and S_K g⁻ᵀ make the same self-attention as S_Q and S_K."""
    xp = array_namespace(Q)

    def with_scores(scores: Array) -> Array:
        output: Array = softmax(scores / ell**0.5) @ (X @ S_V)
        return output

    return {
        "attention": equal(attention(Q @ g, K @ h.mT, V), attention(Q, K, V)),
        "self-attention": chain(
            self_attention(X, S_Q @ g, S_K @ h.mT, S_V),
            ("the product of the maps", with_scores(X @ S_Q @ (g @ h) @ S_K.mT @ X.mT)),
            ("h is the inverse of g", with_scores(X @ S_Q @ xp.eye(ell) @ S_K.mT @ X.mT)),
            ("definition", self_attention(X, S_Q, S_K, S_V)),
        ),
    }


@statement.twin_of("queries and keys are mapped by the same g")
def same_matrix(Q: Array, K: Array, V: Array, g: Array) -> Claim:
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))

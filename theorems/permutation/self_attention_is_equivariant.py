"""Self-attention moves with its tokens, and so does everything on the way."""

from attnproof.symbolic import Array, Claim, chain, equal, permutation, real, sizes, theorem
from attnproof.theorems.definitions.attention import self_attention, softmax

(n,) = sizes("n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Self-attention is permutation equivariant",
    given={
        "X": real(n, p), "W_Q": real(p, ell), "W_K": real(p, ell), "W_V": real(p, d),
        "sigma": permutation(n),
    },
    sources=("document 001, proof in four steps", "Ganev, section 2.4 with Lemma 2.3"),
    claims=("T1", "T2", "T3", "T6", "T9", "T10", "T11", "T13", "T16", "T21", "G0.5", "GS2.4.3"),
)  # fmt: skip
def statement(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> dict[str, Claim]:
    """Reordering the tokens reorders the outputs, with every intermediate matrix on the way."""
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    S = Q @ K.mT / ell**0.5
    A = softmax(S)
    moved = X[sigma]
    return {
        "queries": equal(moved @ W_Q, Q[sigma]),
        "keys": equal(moved @ W_K, K[sigma]),
        "values": equal(moved @ W_V, V[sigma]),
        "scores": equal((moved @ W_Q) @ (moved @ W_K).mT / ell**0.5, S[sigma][:, sigma]),
        "softmax": equal(softmax(S[sigma][:, sigma]), A[sigma][:, sigma]),
        "output": equal(A[sigma][:, sigma] @ V[sigma], (A @ V)[sigma]),
        "together": chain(
            self_attention(moved, W_Q, W_K, W_V),
            (
                "definition, projections",
                softmax(Q[sigma] @ K[sigma].mT / ell**0.5) @ V[sigma],
            ),
            ("scores", softmax(S[sigma][:, sigma]) @ V[sigma]),
            ("softmax", A[sigma][:, sigma] @ V[sigma]),
            ("output", (A @ V)[sigma]),
            ("definition", self_attention(X, W_Q, W_K, W_V)[sigma]),
        ),
    }


@statement.twin_of("self-attention is invariant instead of equivariant")
def invariant(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(self_attention(X[sigma], W_Q, W_K, W_V), self_attention(X, W_Q, W_K, W_V))

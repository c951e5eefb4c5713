"""The symmetries of attention that do not depend on the score function."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    function,
    permutation,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import kernel_attention, score_table

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
p, ell, d, e = sizes("p ell d e", "features")


@theorem(
    "Att_α(τQ, σK, σVh) = τ Att_α(Q, K, V) h for any score function α",
    given={
        "alpha": function(1, 1, says="any function of a query and a key"),
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "h": real(d, e),
        "tau": permutation(r), "sigma": permutation(n),
        "X": real(n, p), "Y": real(r, p),
        "S_Q": real(H, p, ell), "S_K": real(H, p, ell), "S_V": real(p, d), "W_V": real(H, d, e),
    },
    sources=("Ganev, section 2.7",),
    claims=("GS2.7.8", "GS2.7.10"),
)  # fmt: skip
def statement(
    alpha: Function, Q: Array, K: Array, V: Array, h: Array, tau: Array, sigma: Array,
    X: Array, Y: Array, S_Q: Array, S_K: Array, S_V: Array, W_V: Array,
) -> dict[str, Claim]:  # fmt: skip
    """Queries may be reordered, pairs too, and values mapped by any matrix, invertible or not.

    Hence self-attention and attention in several heads keep their permutation symmetries with
    any α; self-attention in several heads is the case Y = X = V, τ = σ.
    """
    xp = array_namespace(X)
    table = score_table(alpha, Q, K)
    one = (S_Q[0], S_K[0], S_V)

    def heads(query: Array, key: Array, value: Array) -> Any:
        return xp.sum(kernel_attention(alpha, query @ S_Q, key @ S_K, value), axis=0)

    def single(X: Array) -> Array:
        query, key, value = (X @ S for S in one)
        result: Array = kernel_attention(alpha, query, key, value)
        return result

    return {
        "queries, pairs and values": chain(
            kernel_attention(alpha, Q[tau], K[sigma], V[sigma] @ h),
            ("each score moves with its pair", softmax(table[tau][:, sigma]) @ (V[sigma] @ h)),
            ("softmax commutes with permutations", softmax(table)[tau][:, sigma] @ (V[sigma] @ h)),
            (
                "σ meets every pair once; the product is associative",
                kernel_attention(alpha, Q, K, V)[tau] @ h,
            ),
        ),
        "self-attention": equal(single(X[sigma]), single(X)[sigma]),
        "several heads": equal(heads(Y[tau], X[sigma], V[sigma] @ W_V), heads(Y, X, V @ W_V)[tau]),
    }


@statement.twin_of("only the keys are permuted")
def keys_alone(alpha: Function, Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(kernel_attention(alpha, Q, K[sigma], V), kernel_attention(alpha, Q, K, V))

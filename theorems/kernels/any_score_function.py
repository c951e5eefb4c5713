"""Attention with any score function: weighted averages, and the symmetries that it keeps."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    all_positive,
    chain,
    equal,
    for_all,
    function,
    over,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import (
    distances,
    falling,
    kernel_attention,
    score_table,
)

r, n = sizes("r n", "tokens")
ell, d, p, e = sizes("ell d p e", "features")
(H,) = sizes("H", "heads")
QKV = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)}


@theorem(
    "Attention with any score function averages the values with positive weights",
    given={"alpha": function(1, 1, says="any function of a query and a key"), **QKV},
    sources=("Ganev, section 2.7, what follows Definition 2.6",),
    claims=("G2.6b", "G2.6c"),
)
def any_score_function_gives_a_weighted_average(
    alpha: Function, Q: Array, K: Array, V: Array
) -> dict[str, Claim]:
    """Row j is Σ_i exp α(q_j, k_i) v_i / Σ_s exp α(q_j, k_s).

    A score of 0 at large distances does not give weight 0, because of the exponential.
    """
    xp = array_namespace(Q)
    strength = xp.exp(score_table(alpha, Q, K))
    weights = softmax(score_table(alpha, Q, K))
    scores = falling(distances(Q, K))
    return {
        "rows": equal(
            kernel_attention(alpha, Q, K, V),
            xp.sum(strength[:, :, None] * V[None, :, :], axis=1)
            / xp.sum(strength, axis=1)[:, None],
        ),
        "weights sum to one": equal(xp.sum(weights, axis=-1), xp.ones(r)),
        "weights are positive": all_positive(weights),
        **{
            f"no weight is 0: {name}": all_positive(softmax(scores[name]))
            for name in ("triangular", "box car")
        },
    }


@any_score_function_gives_a_weighted_average.negative_control(
    "the scores themselves are the weights"
)
def without_exponential(alpha: Function, Q: Array, K: Array, V: Array) -> Claim:
    table = score_table(alpha, Q, K)
    return equal(kernel_attention(alpha, Q, K, V), table @ V)


@theorem(
    "Att_α(τQ, σK, σVh) = τ Att_α(Q, K, V) h for any score function α",
    given={
        "alpha": function(1, 1, says="any function of a query and a key"),
        **QKV,
        "h": real(d, e),
        "tau": permutation(r),
        "sigma": permutation(n),
        "X": real(n, p),
        "Y": real(r, p),
        "S_Q": real(H, p, ell),
        "S_K": real(H, p, ell),
        "S_V": real(p, d),
        "W_V": real(H, d, e),
    },
    sources=("Ganev, section 2.7",),
    claims=("GS2.7.8", "GS2.7.10"),
)
def any_score_function_keeps_the_symmetries(
    alpha: Function,
    Q: Array,
    K: Array,
    V: Array,
    h: Array,
    tau: Array,
    sigma: Array,
    X: Array,
    Y: Array,
    S_Q: Array,
    S_K: Array,
    S_V: Array,
    W_V: Array,
) -> dict[str, Claim]:
    """Queries and pairs may be reordered, and values mapped by any matrix, invertible or not.

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
                "the sum contains every pair once; the product is associative",
                kernel_attention(alpha, Q, K, V)[tau] @ h,
            ),
        ),
        "self-attention": equal(single(X[sigma]), single(X)[sigma]),
        "several heads": equal(heads(Y[tau], X[sigma], V[sigma] @ W_V), heads(Y, X, V @ W_V)[tau]),
    }


@any_score_function_keeps_the_symmetries.negative_control("only the keys are permuted")
def keys_alone(alpha: Function, Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(kernel_attention(alpha, Q, K[sigma], V), kernel_attention(alpha, Q, K, V))


def invariance(alpha: Function, g: Function) -> Law:
    """α(g x, g y) = α(x, y) for all x and y."""
    return for_all(
        {"x": real(ell), "y": real(ell)}, lambda x, y: equal(alpha(g(x), g(y)), alpha(x, y))
    )


@theorem(
    "If α(gx, gy) = α(x, y), then Att_α(gQ, gK, V) = Att_α(Q, K, V)",
    given={
        "alpha": function(1, 1, says="any function of a query and a key"),
        "g": function(1, out=None, says="any map of vectors, linear or not"),
        **QKV,
    },
    assume=lambda alpha, g: [invariance(alpha, g)],
    sources=("Ganev, section 2.7, for g in a group",),
    claims=("GS2.7.9",),
)
def a_symmetry_of_the_score_is_a_symmetry_of_attention(
    alpha: Function, g: Function, Q: Array, K: Array, V: Array
) -> Claim:
    """g acts on each row of Q and of K; that it has an inverse is not needed."""
    law = invariance(alpha, g)
    return equal(
        kernel_attention(alpha, g(Q), g(K), V), kernel_attention(alpha, Q, K, V)
    ).with_facts(over(r, lambda j: over(n, lambda i: law.at(x=Q[j], y=K[i]))))


@a_symmetry_of_the_score_is_a_symmetry_of_attention.negative_control("g acts on the queries alone")
def queries_alone(alpha: Function, g: Function, Q: Array, K: Array, V: Array) -> Claim:
    return equal(kernel_attention(alpha, g(Q), K, V), kernel_attention(alpha, Q, K, V))


@theorem(
    "−q − k is a score",
    given=QKV,
    expected="ill-typed",
    sources=("Ganev, section 2.7, the table as its stored text has it",),
    claims=("GS2.7.1",),
)
def a_score_without_its_norm_is_a_vector(Q: Array, K: Array, V: Array) -> Claim:
    """Not a statement: the scores form an r × n × ℓ array, but an r × n matrix is required."""
    return equal(kernel_attention(lambda q, k: -q - k, Q, K, V), softmax(-distances(Q, K)) @ V)


@a_score_without_its_norm_is_a_vector.negative_control("with the norm: −‖q − k‖")
def with_norm(Q: Array, K: Array, V: Array) -> Claim:
    xp = array_namespace(Q)

    def score(q: Array, k: Array) -> Array:
        norm: Array = xp.sqrt(xp.sum((q - k) ** 2, axis=-1))
        return -norm

    return equal(kernel_attention(score, Q, K, V), softmax(-distances(Q, K)) @ V)

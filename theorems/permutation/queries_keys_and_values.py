"""Attention under permutations, and other maps, of queries, keys and values."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    chain,
    equal,
    for_all,
    function,
    index_below,
    index_map,
    inverse,
    orthogonal,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import attention, self_attention, softmax
from attnproof.theorems.definitions.kernels import kernel_attention, score_table
from attnproof.theorems.definitions.powers import no_hypotheses

r, n, m, a, b, c = sizes("r n m a b c", "tokens")
ell, d, e, p = sizes("ell d e p", "features")
QKV = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)}
MOVED = {"tau": permutation(r), "sigma": permutation(n), "g": orthogonal(ell), "h": real(d, e)}
SYMMETRIES = {**QKV, **MOVED}


@theorem(
    "Row softmax commutes with row and column permutations",
    given={"S": real(r, n), "tau": permutation(r), "sigma": permutation(n)},
    sources=("Ganev, proof of Lemma 2.3, fact (3)", "document 001, step 3 of the proof"),
    claims=("T9", "G2.3e"),
)
def softmax_commutes_with_permutations(S: Array, tau: Array, sigma: Array) -> Claim:
    """For scores of any shape, permuting rows by τ and columns by σ permutes the weights too."""
    return chain(
        softmax(S[tau][:, sigma]),
        ("softmax treats each row by itself", softmax(S[:, sigma])[tau]),
        ("the sum of a row does not see the order of its entries", softmax(S)[tau][:, sigma]),
    )


@softmax_commutes_with_permutations.negative_control(
    "the columns of the weights stay where they were"
)
def columns_stay(S: Array, tau: Array, sigma: Array) -> Claim:
    return equal(softmax(S[tau][:, sigma]), softmax(S)[tau])


@theorem(
    "softmax(τQg(σKg)ᵀ/√ℓ) σVh = τ softmax(QKᵀ/√ℓ) σᵀσVh, with τ once",
    given=SYMMETRIES,
    sources=("Ganev, proof of Lemma 2.3, second and third line mended",),
    claims=("G2.3d",),
)
def the_query_permutation_leaves_softmax_once(
    Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array
) -> dict[str, Claim]:
    """The rows of the weights are permuted by τ once; with τ inside as well, as printed, twice."""
    root = ell**0.5
    first = softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h)
    return {
        "the step": chain(
            first,
            ("g gᵀ = 1", softmax((Q @ K.mT / root)[tau][:, sigma]) @ (V[sigma] @ h)),
            ("τ comes out", (softmax(Q @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau]),
            ("σᵀσ = 1", (attention(Q, K, V) @ h)[tau]),
        ),
        "with τ inside too": equal(
            (softmax(Q[tau] @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau],
            (attention(Q, K, V) @ h)[tau][tau],
        ),
    }


@the_query_permutation_leaves_softmax_once.negative_control(
    "τ stays inside softmax as well, as printed"
)
def inside_too(Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array) -> Claim:
    root = ell**0.5
    return equal(
        softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h),
        (softmax(Q[tau] @ K.mT / root)[:, sigma] @ V[sigma] @ h)[tau],
    )


def trace(S: Array) -> Array:
    """The sum of the diagonal."""
    xp = array_namespace(S)
    total: Array = xp.sum(S * xp.eye(n))
    return total


@theorem(
    "(P Q)(P K)ᵀ = P S Pᵀ = P S P⁻¹, and the traces of S and of S² stay",
    given={"Q": real(n, ell), "K": real(n, ell), "S": real(n, n), "sigma": permutation(n)},
    sources=("document 001, step 2 of its proof",),
    claims=("T7",),
)
def permuting_tokens_is_a_similarity_of_the_scores(
    Q: Array, K: Array, S: Array, sigma: Array
) -> dict[str, Claim]:
    """g S gᵀ is a similarity because a permutation matrix has its transpose as its inverse."""
    xp = array_namespace(S)
    P = xp.eye(n)[sigma]
    moved = P @ S @ P.mT
    return {
        "scores": equal((P @ Q) @ (P @ K).mT, P @ (Q @ K.mT) @ P.mT),
        "P Pᵀ = 1": equal(P @ P.mT, xp.eye(n)),
        "Pᵀ P = 1": equal(P.mT @ P, xp.eye(n)),
        "trace": equal(trace(moved), trace(S)),
        "trace of the square": equal(trace(moved @ moved), trace(S @ S)),
    }


@permuting_tokens_is_a_similarity_of_the_scores.negative_control(
    "any square matrix stands for P", g=real(n, n)
)
def congruence(S: Array, g: Array) -> Claim:
    return equal(trace(g @ S @ g.mT), trace(S))


@theorem(
    "Attention is unchanged by one permutation of the key-value pairs",
    given={**QKV, "sigma": permutation(n)},
    sources=("document 000, matrix form", "Ganev, Lemma 2.3 with τ, g and h the identity"),
    claims=("B1", "B4", "GS2.1.1", "GS3.1"),
)
def attention_ignores_the_order_of_pairs(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    """Permuting keys and values together leaves every row of attention unchanged."""
    return chain(
        attention(Q, K[sigma], V[sigma]),
        ("definition", softmax(Q @ K[sigma].mT / ell**0.5) @ V[sigma]),
        (
            "the columns of the scores move with the keys",
            softmax((Q @ K.mT / ell**0.5)[:, sigma]) @ V[sigma],
        ),
        (
            "softmax commutes with a permutation of the columns",
            softmax(Q @ K.mT / ell**0.5)[:, sigma] @ V[sigma],
        ),
        ("σ meets every key once", attention(Q, K, V)),
    )


@attention_ignores_the_order_of_pairs.negative_control(
    "the keys are permuted by σ, the values by τ", tau=permutation(n)
)
def two_permutations(Q: Array, K: Array, V: Array, sigma: Array, tau: Array) -> Claim:
    return equal(attention(Q, K[sigma], V[tau]), attention(Q, K, V))


@theorem(
    "Attention is unchanged when keys alone are permuted",
    given={**QKV, "sigma": permutation(n)},
    expected="refuted",
    sources=("document 000, first sentence (keys or values)",),
    claims=("B1", "GS3.1"),
)
def permuting_keys_alone_changes_attention(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    """A common claim, and false: the values must be permuted with the keys."""
    return equal(attention(Q, K[sigma], V), attention(Q, K, V))


@permuting_keys_alone_changes_attention.negative_control("keys and values are permuted together")
def keys_and_values_together(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V))


@theorem(
    "Attention is unchanged when values alone are permuted",
    given={**QKV, "sigma": permutation(n)},
    expected="refuted",
    sources=("document 000, first sentence (keys or values)",),
    claims=("B1",),
)
def permuting_values_alone_changes_attention(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    """A common claim, and false: the keys must be permuted with the values."""
    return equal(attention(Q, K, V[sigma]), attention(Q, K, V))


@permuting_values_alone_changes_attention.negative_control("keys and values are permuted together")
def values_and_keys_together(Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V))


@theorem(
    "Attention from a fixed query depends on how often each token occurs, and on nothing else",
    given={
        "Q": real(r, ell, says="queries that do not come from the tokens"),
        "E": real(m, p, says="one embedding for each token of the vocabulary"),
        "w": index_map(n, m),
        "W_K": real(p, ell),
        "W_V": real(p, d),
        "X": real(a, p),
        "Y": real(b, p),
        "Z": real(c, p),
    },
    sources=("document 000, the two sentences on a movie",),
    claims=("B6", "T1", "GS2.1.1"),
)
def attention_reads_a_bag_of_tokens(
    Q: Array, E: Array, w: Array, W_K: Array, W_V: Array, X: Array, Y: Array, Z: Array
) -> dict[str, Claim]:
    """If token t stands at c_t places, its weight is c_t exp(s_t), normalised.

    "my kid" "likes" "this movie" and "this movie" "likes" "my kid" are blocks X, Y, Z of tokens
    in two orders, whether the tokens are words or characters.
    """
    xp = array_namespace(E)
    count = xp.sum(xp.eye(m)[w], axis=0)
    weights = count * xp.exp(Q @ (E @ W_K).mT / ell**0.5)
    bag = weights @ (E @ W_V) / xp.sum(weights, axis=-1, keepdims=True)

    def answer(tokens: Array) -> Any:
        return attention(Q, tokens @ W_K, tokens @ W_V)

    def block(tokens: Array) -> tuple[Array, Array]:
        """What a block of tokens adds to the numerator and to the denominator."""
        weights = xp.exp(Q @ (tokens @ W_K).mT / ell**0.5)
        return weights @ (tokens @ W_V), xp.sum(weights, axis=-1, keepdims=True)

    (x, s), (y, t), (z, u) = block(X), block(Y), block(Z)
    return {
        "as a function of the counts": equal(answer(E[w]), bag),
        "first and last block exchanged": chain(
            answer(xp.concat((X, xp.concat((Y, Z))))),
            ("every block adds its part", (x + y + z) / (s + t + u)),
            ("sums have no order", answer(xp.concat((Z, xp.concat((Y, X)))))),
        ),
    }


@attention_reads_a_bag_of_tokens.negative_control(
    "a token that occurs twice counts like one that occurs once"
)
def as_a_set(Q: Array, W_K: Array, W_V: Array, X: Array, Y: Array) -> Claim:
    xp = array_namespace(X)
    once, twice = xp.concat((X, Y)), xp.concat((X, xp.concat((Y, Y))))
    return equal(attention(Q, twice @ W_K, twice @ W_V), attention(Q, once @ W_K, once @ W_V))


@theorem(
    "Att(τQg, σKg, σVh) = τ Att(Q, K, V) h for g orthogonal and any matrix h",
    given=SYMMETRIES,
    sources=("Ganev, Lemma 2.3, with g in O(ℓ), and h any d × e matrix",),
    claims=("G2.3", "G2.3b", "GS3.1"),
)
def attention_is_equivariant_in_all_its_symmetries(
    Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array
) -> Claim:
    """Queries and pairs may be reordered, queries and keys rotated together, values mapped.

    Q[τ] has row τ(i) of Q as its row i.  The lemma's τQ has row i of Q as its row τ(i), which is
    Q[τ⁻¹]; as τ and σ are any permutations, the two ways of writing say the same.
    """
    root = ell**0.5
    return chain(
        attention(Q[tau] @ g, K[sigma] @ g, V[sigma] @ h),
        ("definition", softmax(Q[tau] @ g @ (K[sigma] @ g).mT / root) @ (V[sigma] @ h)),
        ("g gᵀ = 1", softmax(Q[tau] @ K[sigma].mT / root) @ (V[sigma] @ h)),
        (
            "softmax commutes with permutations",
            softmax(Q @ K.mT / root)[tau][:, sigma] @ (V[sigma] @ h),
        ),
        ("σᵀσ = 1", softmax(Q @ K.mT / root)[tau] @ (V @ h)),
        ("the product is associative; definition", attention(Q, K, V)[tau] @ h),
    )


@attention_is_equivariant_in_all_its_symmetries.negative_control(
    "g is any square matrix", g=real(ell, ell)
)
def any_matrix(Q: Array, K: Array, V: Array, tau: Array, sigma: Array, g: Array, h: Array) -> Claim:
    return equal(attention(Q[tau] @ g, K[sigma] @ g, V[sigma] @ h), attention(Q, K, V)[tau] @ h)


@theorem(
    "σX, whose row σ(i) is row i of X, is a left action; X g is a right one; they commute",
    given={
        "X": real(n, ell),
        "sigma": permutation(n),
        "tau": permutation(n),
        "g": real(ell, ell),
        "h": real(ell, ell),
    },
    sources=("Ganev, section 2.3, and the proof of Lemma 2.3, fact (2)",),
    claims=("GS2.3.1", "G2.3e"),
)
def row_permutations_act_from_the_left_and_matrices_from_the_right(
    X: Array, sigma: Array, tau: Array, g: Array, h: Array
) -> dict[str, Claim]:
    """X[σ] in code gathers: its row i is row σ(i) of X.  So σX is X[σ⁻¹], and P_σ is 1[σ]ᵀ."""
    xp = array_namespace(X)
    one = xp.eye(n)
    P, T = one[sigma].mT, one[tau].mT
    return {
        "the matrix of σ": equal(P @ X, X[inverse(sigma)]),
        "row i becomes row σ(i)": equal((P @ X)[sigma], X),
        "P_σ P_τ takes row i to row σ(τ(i))": equal(((P @ T) @ X)[sigma][tau], X),
        "permutation matrices are orthogonal": equal(P @ P.mT, one),
        "their transposes are their inverses": equal(P.mT @ P, one),
        "matrices act from the right": equal((X @ g) @ h, X @ (g @ h)),
        "the two actions commute": equal((P @ X) @ g, P @ (X @ g)),
    }


@row_permutations_act_from_the_left_and_matrices_from_the_right.negative_control(
    "P_σ P_τ is said to take row i to row τ(σ(i))"
)
def other_order(X: Array, sigma: Array, tau: Array) -> Claim:
    one = array_namespace(X).eye(n)
    return equal((one[sigma].mT @ one[tau].mT @ X)[tau][sigma], X)


@theorem(
    "Att(Qg, Kg, V) = Att(Q, K, V) for g in O(d), d the width of the values",
    given={**QKV, "g": orthogonal(d)},
    expected="ill-typed",
    sources=("Ganev, Lemma 2.3, as printed",),
    claims=("G2.3",),
)
def queries_are_turned_by_a_matrix_of_their_own_width(
    Q: Array, K: Array, V: Array, g: Array
) -> Claim:
    """Not a statement: Q has ℓ columns and g has d rows."""
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))


@queries_are_turned_by_a_matrix_of_their_own_width.negative_control(
    "g is in O(ℓ)", g=orthogonal(ell)
)
def width_of_the_keys(Q: Array, K: Array, V: Array, g: Array) -> Claim:
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))


def inverse_pair(g: Array, h: Array) -> list[tuple[Array, Array]]:
    """h is the inverse of g."""
    return [(g @ h, array_namespace(g).eye(ell))]


@theorem(
    "Att(Qg, Kg⁻ᵀ, V) = Att(Q, K, V) for every invertible g, orthogonal or not",
    given={
        **QKV,
        "X": real(n, p),
        "S_Q": real(p, ell),
        "S_K": real(p, ell),
        "S_V": real(p, d),
        "g": real(ell, ell),
        "h": real(ell, ell, says="the inverse of g"),
    },
    assume=inverse_pair,
    sources=("Ganev, section 2.4 and Lemma 2.3, extended",),
    claims=("G2.3c", "GS2.4.3"),
)
def queries_and_keys_may_be_mapped_by_inverse_matrices(
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


@queries_and_keys_may_be_mapped_by_inverse_matrices.negative_control(
    "queries and keys are mapped by the same g"
)
def same_matrix(Q: Array, K: Array, V: Array, g: Array) -> Claim:
    return equal(attention(Q @ g, K @ g, V), attention(Q, K, V))


def unchanged(g: Array) -> Law:
    """Mapping queries and keys by g changes no attention with r queries and m + 1 keys."""
    return for_all(
        {"Q": real(r, ell), "K": real(m + 1, ell), "V": real(m + 1, d)},
        lambda Q, K, V: equal(attention(Q @ g, K @ g, V), attention(Q, K, V)),
    )


def symmetry(g: Array) -> list[Law]:
    """g is a symmetry of attention."""
    return [unchanged(g)]


@theorem(
    "If Att(Qg, Kg, V) = Att(Q, K, V) for all Q, K, V with m + 1 >= 2 keys, then g gᵀ = 1",
    given={
        "g": real(ell, ell),
        "a": index_below(ell),
        "b": index_below(ell),
        "h": real(ell, ell),
        "q": real(r, ell),
        "k": real(1, ell),
        "v": real(1, d),
    },
    assume=symmetry,
    sources=("Ganev, Lemma 2.3, its converse",),
    claims=("G2.3c",),
)
def only_an_orthogonal_matrix_may_turn_queries_and_keys_alike(
    g: Array, a: Array, b: Array, h: Array, q: Array, k: Array, v: Array
) -> dict[str, Claim]:
    """Query e_a meets the keys e_b, 0, .., 0, with scores s = (g gᵀ)_ab/√ℓ, 0, .., 0.

    The values 1, −eˢ/m, .., −eˢ/m make the answer 0; without g it is 0 only if s is 1_ab/√ℓ.
    """
    xp = array_namespace(g)
    root = ell**0.5
    score, plain = xp.exp((g @ g.mT)[a, b] / root), xp.exp(xp.eye(ell)[a, b] / root)
    query = xp.zeros((r, ell)) + xp.eye(ell)[a]
    keys = xp.concat((xp.eye(ell)[b][None, :], xp.zeros((m, ell))))
    values = xp.concat((xp.ones((1, d)), xp.ones((m, d)) * -score / m))

    def corrected(query: Array, keys: Array) -> Array:
        """eˢ, and what the answer adds to it."""
        sum_of_both: Array = score + attention(query, keys, values)[0, 0] * (plain + m)
        return sum_of_both

    return {
        "two keys or more": chain(
            (g @ g.mT)[a, b],
            ("the answer is 0", root * xp.log(corrected(query @ g, keys @ g))),
            ("g is a symmetry", root * xp.log(corrected(query, keys))),
            ("the scores without g", xp.eye(ell)[a, b]),
        ).with_facts(unchanged(g).at(Q=query, K=keys, V=values)),
        "with one key any matrix will do": equal(attention(q @ h, k @ h, v), attention(q, k, v)),
    }


@only_an_orthogonal_matrix_may_turn_queries_and_keys_alike.negative_control(
    "every g has g gᵀ = 1", assume=no_hypotheses
)
def every_matrix(g: Array, a: Array, b: Array) -> Claim:
    return equal((g @ g.mT)[a, b], array_namespace(g).eye(ell)[a, b])


@theorem(
    "For any score function, attention is unchanged by one permutation of the pairs",
    given={
        "h": function(1, 1, says="any function of a query and a key"),
        **QKV,
        "sigma": permutation(n),
    },
    sources=("document 000, list form", "Ganev, section 2.7"),
    claims=("B2", "B5"),
)
def any_score_function_ignores_the_order_of_pairs(
    h: Function, Q: Array, K: Array, V: Array, sigma: Array
) -> Claim:
    """The weights exp h(q, k_j) / Σ exp h(q, k_j) may come from any h; no property of h is used."""
    scores = score_table(h, Q, K)
    return chain(
        kernel_attention(h, Q, K[sigma], V[sigma]),
        ("each score belongs to its pair", softmax(scores[:, sigma]) @ V[sigma]),
        ("σ meets every pair once", kernel_attention(h, Q, K, V)),
    )


@any_score_function_ignores_the_order_of_pairs.negative_control("only the keys are permuted")
def keys_alone(h: Function, Q: Array, K: Array, V: Array, sigma: Array) -> Claim:
    return equal(kernel_attention(h, Q, K[sigma], V), kernel_attention(h, Q, K, V))


@theorem(
    "softmax(Q Kᵀ/√ℓ) V is the list form with h(q, k) = q·k/√ℓ, in every row",
    given={**QKV, "h": function(1, 1, says="any function of a query and a key")},
    sources=("document 000, list form and matrix form", "Ganev, Definition 2.6"),
    claims=("B5", "G2.6a"),
)
def the_matrix_form_is_the_list_form_for_dot_products(Q: Array, K: Array, V: Array) -> Claim:
    """The matrix form has many queries and one kind of score; keys and values are its rows."""
    xp = array_namespace(Q)

    def dot_product(q: Array, k: Array) -> Array:
        score: Array = xp.sum(q * k, axis=-1) / ell**0.5
        return score

    return equal(attention(Q, K, V), kernel_attention(dot_product, Q, K, V))


@the_matrix_form_is_the_list_form_for_dot_products.negative_control("the score function is any h")
def any_score(h: Function, Q: Array, K: Array, V: Array) -> Claim:
    return equal(attention(Q, K, V), kernel_attention(h, Q, K, V))

"""Several heads, concatenated and mixed."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    chain,
    differ,
    equal,
    for_all,
    index_below,
    injection,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.attention import (
    attention,
    self_attention,
    side_by_side,
    softmax,
    sum_of_heads,
)
from attnproof.theorems.definitions.powers import no_hypotheses
from attnproof.theorems.definitions.rotary import determinant

n, r = sizes("n r", "tokens")
p, ell, d, e, q, s = sizes("p ell d e q s", "features")
(H,) = sizes("H", "heads")
QKV = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)}


@theorem(
    "Self-attention is softmax(X S_Q S_Kᵀ Xᵀ / √ℓ) X S_V; with identity maps it is Att(X, X, X)",
    given={"X": real(n, p), "S_Q": real(p, ell), "S_K": real(p, ell), "S_V": real(p, d)},
    sources=("Ganev, section 2.4",),
    claims=("GS2.4.1", "GS2.4.2"),
)
def self_attention_is_attention_of_three_linear_maps(
    X: Array, S_Q: Array, S_K: Array, S_V: Array
) -> dict[str, Claim]:
    """The query map and the key map enter only through their product."""
    one = array_namespace(X).eye(p)
    return {
        "written out": equal(
            self_attention(X, S_Q, S_K, S_V), softmax(X @ S_Q @ S_K.mT @ X.mT / ell**0.5) @ X @ S_V
        ),
        "identity maps": equal(self_attention(X, one, one, one), attention(X, X, X)),
        "identity maps, written out": equal(
            self_attention(X, one, one, one), softmax(X @ X.mT / p**0.5) @ X
        ),
    }


@self_attention_is_attention_of_three_linear_maps.negative_control(
    "the key map comes first, S_K S_Qᵀ"
)
def maps_exchanged(X: Array, S_Q: Array, S_K: Array, S_V: Array) -> Claim:
    scores = X @ S_K @ S_Q.mT @ X.mT
    return equal(self_attention(X, S_Q, S_K, S_V), softmax(scores / ell**0.5) @ X @ S_V)


@theorem(
    "Σ_h Att(QW_Q, KW_K, VW_V) = Σ_h softmax(QW_Q W_Kᵀ Kᵀ / √p) VW_V, p the width of a head",
    given={**QKV, "W_Q": real(H, ell, p), "W_K": real(H, ell, p), "W_V": real(H, d, e)},
    sources=("Ganev, section 2.5 and Remark 2.4, with √p for √ℓ",),
    claims=("GS2.5.2",),
)
def heads_divide_by_the_root_of_their_own_width(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array
) -> Claim:
    """Att divides by the square root of the width of its queries, and QW_Q has p columns."""
    return equal(sum_of_heads(Q, K, V, W_Q, W_K, W_V), written_out(Q, K, V, W_Q, W_K, W_V, p))


def written_out(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, width: Array
) -> Array:
    """The heads with their scores written as one product."""
    xp = array_namespace(Q)
    heads = softmax(Q @ W_Q @ W_K.mT @ K.mT / width**0.5) @ V @ W_V
    total: Array = xp.sum(heads, axis=0)
    return total


@heads_divide_by_the_root_of_their_own_width.negative_control(
    "the scores are divided by √ℓ, as printed"
)
def width_of_the_input(Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    return equal(sum_of_heads(Q, K, V, W_Q, W_K, W_V), written_out(Q, K, V, W_Q, W_K, W_V, ell))


@theorem(
    "[A_1 .. A_H] W_O = Σ_h A_h W_O^h, an r × e matrix, and W_V^h W_O^h is one matrix",
    given={
        **QKV,
        "W_Q": real(H, ell, p),
        "W_K": real(H, ell, p),
        "W_V": real(H, d, q),
        "W_O": real(H, q, e),
        "h": index_below(H),
    },
    sources=("Ganev, section 2.5 and Remark 2.4", "Vaswani et al. 2017, section 3.2.2"),
    claims=("G2.4a", "G2.4b", "GS2.5.1"),
)
def heads_side_by_side_and_one_output_map_are_a_sum_of_heads(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, h: Array
) -> dict[str, Claim]:
    """The matrices of all heads are one array of H slices, slice h being that of head h."""
    xp = array_namespace(Q)
    heads = attention(Q @ W_Q, K @ W_K, V @ W_V)
    output = xp.reshape(W_O, (H * q, e))
    grouped = xp.sum(xp.eye(H)[:, :, None, None] * W_V[:, None, :, :], axis=0)
    parameters = xp.sum(xp.ones((H, ell, p))) * 2 + xp.sum(xp.ones((H, d, e)))
    return {
        "one output map": equal(side_by_side(heads) @ output, xp.sum(heads @ W_O, axis=0)),
        "one matrix a head": equal(
            side_by_side(heads) @ output, sum_of_heads(Q, K, V, W_Q, W_K, W_V @ W_O)
        ),
        "Σ_h e_h ⊗ W_h is the array of slices W_h": equal(grouped, W_V),
        "its slice h is the matrix of head h": equal(grouped[h], W_V[h]),
        "so many numbers are chosen": equal(parameters, H * (2 * ell * p + d * e)),
    }


@heads_side_by_side_and_one_output_map_are_a_sum_of_heads.negative_control(
    "all heads share one output map, the sum of all output maps"
)
def common_output_map(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array
) -> Claim:
    xp = array_namespace(Q)
    heads = attention(Q @ W_Q, K @ W_K, V @ W_V)
    output = xp.reshape(W_O, (H * q, e))
    return equal(side_by_side(heads) @ output, xp.sum(heads, axis=0) @ xp.sum(W_O, axis=0))


@theorem(
    "MultiHeadAtt(τQ, σK, σV) = τ MultiHeadAtt(Q, K, V), for any number of heads",
    given={
        **QKV,
        "W_Q": real(H, ell, p),
        "W_K": real(H, ell, p),
        "W_V": real(H, d, e),
        "tau": permutation(r),
        "sigma": permutation(n),
    },
    sources=("Ganev, section 2.5 with Lemma 2.3",),
    claims=("GS2.5.3",),
)
def several_heads_keep_the_permutation_symmetries(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, tau: Array, sigma: Array
) -> Claim:
    """Row permutations commute with the maps of each head, hence with the sum of the heads."""
    return chain(
        sum_of_heads(Q[tau], K[sigma], V[sigma], W_Q, W_K, W_V),
        ("each head ignores the order of its pairs", sum_of_heads(Q[tau], K, V, W_Q, W_K, W_V)),
        ("each head moves with its queries", sum_of_heads(Q, K, V, W_Q, W_K, W_V)[tau]),
    )


@several_heads_keep_the_permutation_symmetries.negative_control("only the keys are permuted")
def keys_alone(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    return equal(sum_of_heads(Q, K[sigma], V, W_Q, W_K, W_V), sum_of_heads(Q, K, V, W_Q, W_K, W_V))


@theorem(
    "Every d × e matrix factors through width q >= min(d, e), but not every one through width 1",
    given={"W": real(d, e), "u": real(2), "t": real(2)},
    sources=("Ganev, Remark 2.4",),
    claims=("G2.4b",),
)
def narrow_values_reach_only_maps_of_low_rank(W: Array, u: Array, t: Array) -> dict[str, Claim]:
    """Padding with zeros gives all widths from d or e on; width 1 misses the 2 × 2 identity."""
    xp = array_namespace(W)
    product, one = u[:, None] * t[None, :], xp.eye(2)
    wide = xp.concat((xp.eye(d), xp.zeros((d, s))), axis=1)
    tall = xp.concat((xp.eye(e), xp.zeros((s, e))), axis=0)
    return {
        "through width d": equal(xp.eye(d) @ W, W),
        "through width d + s": equal(wide @ xp.concat((W, xp.zeros((s, e))), axis=0), W),
        "through width e": equal(W @ xp.eye(e), W),
        "through width e + s": equal(xp.concat((W, xp.zeros((d, s))), axis=1) @ tall, W),
        "not through width 1": differ(
            product,
            one,
            0,
            ("a column times a row has determinant 0", determinant(product)),
            ("if it were the identity", determinant(one)),
            -1,
        ),
    }


@narrow_values_reach_only_maps_of_low_rank.negative_control(
    "every 2 × 2 matrix is its first column times its first row", W=real(2, 2)
)
def first_column_and_row(W: Array) -> Claim:
    return equal(W[0, 0] * W, W[:, 0][:, None] * W[0][None, :])


def product_is_identity(A: Array, B: Array) -> list[tuple[Array, Array]]:
    """A B = 1, both square."""
    return [(A @ B, array_namespace(A).eye(q + s))]


@theorem(
    "If A B = 1 for square matrices, no row of B is 0; but U T = [U 0] [T; 0], with a row of zeros",
    given={
        "A": real(q + s, q + s),
        "B": real(q + s, q + s),
        "i": index_below(q + s),
        "U": real(q + s, q),
        "T": real(q, q + s),
        "Y": real(d, q),
        "Z": real(q, e),
        "f": injection(q + s, d),
        "g": injection(q + s, e),
    },
    assume=product_is_identity,
    sources=("against Ganev, Remark 2.4, for a small intermediate width",),
    claims=("G2.4b",),
)
def a_product_through_a_smaller_width_is_not_invertible(
    A: Array, B: Array, i: Array, U: Array, T: Array, Y: Array, Z: Array, f: Array, g: Array
) -> dict[str, Claim | Law]:
    """So U T, with q columns of U and q rows of T, is not the identity of size q + s, s >= 1.

    Nor does a product Y Z with d >= q + s rows and e >= q + s columns contain the identity of that
    size in rows f and columns g, which would be such a product too.
    """
    xp = array_namespace(A)
    one, zero = xp.eye(q + s), xp.zeros(q + s)
    tall = xp.concat((T, xp.zeros((s, q + s))), axis=0)
    other = for_all({}, lambda: equal(B @ A, one).by_inverse())
    return {
        "the other way round": other,
        "no row is 0": differ(
            B[i],
            zero,
            one[i, i],
            ("B A = 1", (B @ A)[i, i]),
            ("row i of B times column i of A", B[i] @ A[:, i]),
            ("if row i of B were 0", zero @ A[:, i]),
            ("a sum of zeros", zero[0]),
            1,
        ).with_facts(other),
        "padded with zeros": equal(U @ T, xp.concat((U, xp.zeros((q + s, s))), axis=1) @ tall),
        "the last row is 0": equal(tall[q + s - 1], zero),
        "a part of a product": equal((Y @ Z)[f][:, g], Y[f] @ Z[:, g]),
    }


@a_product_through_a_smaller_width_is_not_invertible.negative_control(
    "B A = 1 for any A and B", assume=no_hypotheses
)
def any_matrices(A: Array, B: Array) -> Claim:
    return equal(B @ A, array_namespace(A).eye(q + s))

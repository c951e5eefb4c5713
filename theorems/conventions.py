"""Conventions of the sources, and the maps between them."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    chain,
    differ,
    equal,
    frequencies,
    function,
    greater,
    inverse,
    natural,
    over,
    permutation,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import (
    attention,
    column_self_attention,
    column_softmax,
    learned_query_attention,
    permutation_matrix,
    self_attention,
    softmax,
)
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.powers import multiplicative, powers_of_blocks
from attnproof.theorems.definitions.rotary import block_rotation, rotate, rotation

n, m = sizes("n m", "tokens")
d, p, ell, e = sizes("d p ell e", "features")
(B,) = sizes("B", "blocks")


@theorem(
    "Column j of X P_σ is column σ(j) of X, products are reversed, and P_σ is orthogonal",
    given={"X": real(d, n), "sigma": permutation(n), "tau": permutation(n)},
    sources=("document 002, spatial permutations, and the note in its proof",),
    claims=("S2", "S13"),
)
def the_matrix_of_a_permutation_moves_columns(
    X: Array, sigma: Array, tau: Array
) -> dict[str, Claim]:
    """T_σ(X) = X P_σ; T_σ after T_τ gathers by τ∘σ, so spatial permutations act from the right."""
    xp = array_namespace(X)
    P, T = permutation_matrix(sigma), permutation_matrix(tau)
    return {
        "column j is column σ(j)": equal(X @ P, X[:, sigma]),
        "P_σ P_τ gathers by σ∘τ": equal(X @ (P @ T), X[:, sigma][:, tau]),
        "T_σ after T_τ gathers by τ∘σ": equal((X @ T) @ P, X[:, tau][:, sigma]),
        "P Pᵀ = 1": equal(P @ P.mT, xp.eye(n)),
        "Pᵀ P = 1": equal(P.mT @ P, xp.eye(n)),
        "Pᵀ gathers rows from the left": equal(P.mT @ X.mT, X.mT[sigma]),
    }


@the_matrix_of_a_permutation_moves_columns.negative_control(
    "T_σ after T_τ is said to gather by σ∘τ"
)
def from_the_left(X: Array, sigma: Array, tau: Array) -> Claim:
    after = (X @ permutation_matrix(tau)) @ permutation_matrix(sigma)
    return equal(after, X[:, sigma][:, tau])


@theorem(
    "With P = 1[σ], row i of P X is row σ(i) of X, and entry (i, j) of P S Pᵀ is S_σ(i),σ(j)",
    given={"X": real(n, p), "S": real(n, n), "sigma": permutation(n), "tau": permutation(n)},
    sources=("document 001, its code for permutations, and step 2 of its proof",),
    claims=("T4", "T8"),
)
def gather_by_a_permutation_is_a_product_with_the_gathered_identity(
    X: Array, S: Array, sigma: Array, tau: Array
) -> dict[str, Claim]:
    """The inverse of σ belongs to the other matrix: Pᵀ X has row i of X as its row σ(i).

    Gathering twice multiplies in reverse, so it is a right action.
    """
    xp = array_namespace(X)
    P = xp.eye(n)[sigma]
    return {
        "rows": equal(P @ X, X[sigma]),
        "twice": equal(X[sigma][tau], xp.eye(n)[tau] @ (P @ X)),
        "the scattered identity": equal(P.mT @ X, X[inverse(sigma)]),
        "scores, gathered": equal(P @ S @ P.mT, S[sigma][:, sigma]),
        "scores, scattered": equal(P.mT @ S @ P, S[inverse(sigma)][:, inverse(sigma)]),
    }


@gather_by_a_permutation_is_a_product_with_the_gathered_identity.negative_control(
    "the inverse permutation is taken with the gathered identity"
)
def inverse_indices(S: Array, sigma: Array) -> Claim:
    P = array_namespace(S).eye(n)[sigma]
    return equal(P @ S @ P.mT, S[inverse(sigma)][:, inverse(sigma)])


@theorem(
    "f(στX) = σ f(τX) = στ f(X) for an equivariant map f",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "X": real(n, p),
        "s": permutation(n),
        "t": permutation(n),
    },
    sources=("Ganev, section 2.3, with document 001's equivariance",),
    claims=("X9",),
)
def an_equivariant_map_respects_products_of_permutations(
    f: Function, X: Array, s: Array, t: Array
) -> dict[str, Claim]:
    """Here s = σ⁻¹ and t = τ⁻¹: σX is X[s], for row σ(i) of X[s] is row i of X."""
    return {
        "row i goes to row σ(i)": equal(X[s][inverse(s)], X),
        "σ(τX) is (στ)X: row i goes to row σ(τ(i))": equal(X[t][s][inverse(s)][inverse(t)], X),
        "the product": chain(
            f(X[t][s]), ("f commutes with σ", f(X[t])[s]), ("f commutes with τ", f(X)[t][s])
        ),
    }


@an_equivariant_map_respects_products_of_permutations.negative_control(
    "the factors of the product are exchanged"
)
def exchanged(f: Function, X: Array, s: Array, t: Array) -> Claim:
    return equal(f(X[t][s]), f(X)[s][t])


@theorem(
    "A_s(X)ᵀ is self-attention of Xᵀ with the transposed maps and no scale",
    given={
        "X": real(d, n),
        "W_k": real(ell, d),
        "W_q": real(ell, d),
        "W_v": real(e, d),
        "Q": real(ell, m),
    },
    sources=("document 002 against Ganev, section 2.4",),
    claims=("X10",),
)
def column_attention_is_row_attention_of_the_transpose(
    X: Array, W_k: Array, W_q: Array, W_v: Array, Q: Array
) -> dict[str, Claim]:
    """The factor √ℓ on the queries cancels the scale 1/√ℓ of attention."""
    root = ell**0.5
    return {
        "self-attention": chain(
            column_self_attention(X, W_k, W_q, W_v).mT,
            (
                "(AB)ᵀ = BᵀAᵀ, and softmax over columns is softmax over the rows of the transpose",
                softmax(X.mT @ W_q.mT @ W_k @ X) @ X.mT @ W_v.mT,
            ),
            ("definition", self_attention(X.mT, root * W_q.mT, W_k.mT, W_v.mT)),
        ),
        "learned query": chain(
            learned_query_attention(X, W_k, Q, W_v).mT,
            ("transposed", softmax(Q.mT @ W_k @ X) @ X.mT @ W_v.mT),
            ("definition", attention(root * Q.mT, X.mT @ W_k.mT, X.mT @ W_v.mT)),
        ),
    }


@column_attention_is_row_attention_of_the_transpose.negative_control(
    "softmax is taken over rows on both sides"
)
def rows_on_both_sides(X: Array, W_k: Array, W_q: Array, W_v: Array) -> Claim:
    return chain(
        (W_v @ X @ softmax((W_k @ X).mT @ (W_q @ X))).mT,
        ("", softmax(X.mT @ W_q.mT @ W_k @ X) @ X.mT @ W_v.mT),
    )


@theorem(
    "c (W_k X)ᵀ Y = ((c W_k) X)ᵀ Y, so attention with any scale is attention without one",
    given={
        "X": real(d, n),
        "W_k": real(ell, d),
        "W_q": real(ell, d),
        "W_v": real(e, d),
        "Q": real(ell, m),
        "c": real(),
        "sigma": permutation(n),
    },
    sources=("document 002, whose operators have no factor 1/√ℓ",),
    claims=("S8",),
)
def a_scale_of_the_scores_is_a_scale_of_the_keys(
    X: Array, W_k: Array, W_q: Array, W_v: Array, Q: Array, c: Array, sigma: Array
) -> dict[str, Claim]:
    """Both symmetries therefore hold for every scale, including 0 and 1/√ℓ."""
    P = permutation_matrix(sigma)

    def scaled(tokens: Array, second: Array) -> Any:
        return W_v @ tokens @ column_softmax(c * ((W_k @ tokens).mT @ second))

    return {
        "self-attention": equal(scaled(X, W_q @ X), column_self_attention(X, c * W_k, W_q, W_v)),
        "learned query": equal(scaled(X, Q), learned_query_attention(X, c * W_k, Q, W_v)),
        "equivariant": equal(scaled(X @ P, W_q @ X @ P), scaled(X, W_q @ X) @ P),
        "invariant": equal(scaled(X @ P, Q), scaled(X, Q)),
    }


@a_scale_of_the_scores_is_a_scale_of_the_keys.negative_control(
    "the factor is taken into the value map as well"
)
def values_too(X: Array, W_k: Array, W_q: Array, W_v: Array, c: Array) -> Claim:
    return equal(
        W_v @ X @ column_softmax(c * ((W_k @ X).mT @ (W_q @ X))),
        column_self_attention(X, c * W_k, W_q, c * W_v),
    )


@theorem(
    "softmax(PᵀMP) = Pᵀ softmax(M) P for any n × m matrix M",
    given={"M": real(n, m), "sigma": permutation(n)},
    expected="ill-typed",
    sources=("document 002, the fact its proof calls easy",),
    claims=("S9",),
)
def softmax_of_a_conjugate_wants_a_square_matrix(M: Array, sigma: Array) -> Claim:
    """Not a statement: M has m columns but P has n rows."""
    P = permutation_matrix(sigma)
    return equal(column_softmax(P.mT @ M @ P), P.mT @ column_softmax(M) @ P)


def whole_softmax(scores: Any) -> Any:
    """exp(s_ij) / Σ_kl exp(s_kl): one distribution over all entries."""
    xp = array_namespace(scores)
    weights = xp.exp(scores)
    return weights / xp.sum(weights)


@softmax_of_a_conjugate_wants_a_square_matrix.negative_control("M is square", M=real(n, n))
def square(M: Array, sigma: Array) -> dict[str, Claim]:
    P = permutation_matrix(sigma)
    moved = P.mT @ M @ P
    return {
        "over columns": equal(column_softmax(moved), P.mT @ column_softmax(M) @ P),
        "over rows": equal(softmax(moved), P.mT @ softmax(M) @ P),
        "over the whole matrix": equal(whole_softmax(moved), P.mT @ whole_softmax(M) @ P),
    }


@theorem(
    "Row j times M^j, with blocks R(−ω), is rotary encoding with −ω, and not with ω",
    given={"X": real(n, 2 * B), "omega": frequencies(B), "j": natural()},
    sources=("Ganev, Example 3.6 and Definition 3.7", "document 004, the rotary form"),
    claims=("X4",),
)
def clockwise_and_anticlockwise_rotations_score_differently(
    X: Array, omega: Array
) -> dict[str, Claim | Law]:
    """The map between the two is ω ↦ −ω.

    With ω = 1 the query (1, 0) at 0 and the key (0, 1) at 1 score sin 1 under one convention
    and −sin 1 under the other.
    """
    xp = array_namespace(X)
    M = block_rotation(-omega)
    rotates = powers_of_blocks(-omega)
    e, f = xp.eye(2)[0], xp.eye(2)[1]
    one = xp.ones(())
    return {
        "powers of M": rotates,
        "after ω ↦ −ω": equal(multiplicative(M, X), rotate(X, xp.arange(n), -omega)).with_facts(
            over(n, lambda j: rotates.at(j=j))
        ),
        "different scores": differ(
            e @ (rotation(-one) @ f), e @ (rotation(one) @ f), 2 * xp.sin(one)
        ),
    }


@clockwise_and_anticlockwise_rotations_score_differently.negative_control(
    "one step by R(−ω) is rotary encoding with +ω"
)
def same_sense(X: Array, omega: Array) -> Claim:
    xp = array_namespace(X)
    return equal(X @ block_rotation(-omega).mT, rotate(X, xp.ones(n), omega))


@theorem(
    "For C = 2B + 1 channels the frequencies ω^{−2b/(C+1)} and ω^{−2b/C} differ for b >= 1",
    given={
        "X": real(n, 2 * B - 1),
        "omega": frequencies(B),
        "w": positive(),
        "i": natural("b − 1"),
    },
    sources=("Ganev, Example 3.6, odd d'", "document 000, sinusoidal embedding"),
    claims=("G3.6f", "X2"),
)
def odd_widths_have_two_tables(X: Array, omega: Array, w: Array, i: Array) -> dict[str, Claim]:
    """Document 003 drops the last column of the table for C + 1 channels; 000 has 2b/C itself.

    The dropped column is a cosine, so every pair keeps its sine, even if there is only one pair:
    the data here have 2B − 1 columns, 1 or 3 or more.  Any base ω above 1 is
    exp(C (C + 1) w / 2) for some w > 0.  For C = 3 and ω = 64 the frequencies of the third column
    are 1/8 and 1/16, and its entries at 16 and 32 are sin 2, sin 4 and sin 1, sin 2.
    """
    xp = array_namespace(X)
    place, C, b = xp.arange(n), 2 * B + 1, 1 + i
    kept, table = X.shape[1], sinusoidal(place, omega)
    wide = xp.concat((X, xp.zeros((n, 1))), axis=1)
    wider = 2 * B + 2
    log_base = C * wider * w / 2
    by_cutting, by_formula = xp.exp(-2 * b * log_base / wider), xp.exp(-2 * b * log_base / C)
    one, log_64 = xp.ones(()), 6 * xp.log(2 * xp.ones(()))
    ours, theirs = (
        xp.stack((xp.sin(16 * frequency), xp.sin(32 * frequency)))
        for frequency in (xp.exp(-2 * log_64 / 4), xp.exp(-2 * log_64 / 3))
    )
    s, c = xp.sin(one), xp.cos(one)
    return {
        "the additive encoding": equal(X + table[:, :kept], (wide + table)[:, :kept]),
        "its first column": equal(table[:, :kept][:, 0], xp.sin(place * omega[0])),
        "frequencies": greater(
            by_cutting,
            by_formula,
            ("the smaller one, and what is left", by_formula * (xp.exp(b * w) - 1)),
        ),
        "the third column for C = 3": differ(
            ours,
            theirs,
            s * theirs[0],
            ("if the columns were equal", s * ours[0]),
            ("sin 2", s * theirs[1]),
            ("if they were equal", s * ours[1]),
            ("sin 4 by double angles", 2 * c * ours[0] ** 2 - 2 * s * ours[0]),
            ("if they were equal", 2 * c * theirs[0] ** 2 - 2 * s * theirs[0]),
            ("sin 2 = 2 sin 1 cos 1", s * ours[0] - 2 * s**2),
            ("if they were equal", s * theirs[0] - 2 * s**2),
            2 * s**2,
        ),
    }


@odd_widths_have_two_tables.negative_control("the two frequencies are equal")
def one_frequency(w: Array) -> Claim:
    xp = array_namespace(w)
    return equal(xp.exp(-w / (2 * B + 2)), xp.exp(-w / (2 * B + 1)))

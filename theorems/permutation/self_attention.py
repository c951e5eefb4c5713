"""Self-attention, and layers and stacks of it, under permutations of the tokens."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    boolean,
    chain,
    equal,
    for_all,
    function,
    index_below,
    iterate,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import (
    attention,
    causal_self_attention,
    column_self_attention,
    column_softmax,
    learned_query_attention,
    masked_attention,
    multi_head,
    permutation_matrix,
    self_attention,
    softmax,
)
from attnproof.theorems.definitions.powers import no_hypotheses

n, r, m = sizes("n r m", "tokens")
p, ell, d, e = sizes("p ell d e", "features")
(H,) = sizes("H", "heads")
(L,) = sizes("L", "layers")
MAPPED = {"X": real(n, p), "W_Q": real(p, ell), "W_K": real(p, ell), "W_V": real(p, d)}


@theorem(
    "Self-attention is permutation equivariant",
    given={**MAPPED, "sigma": permutation(n)},
    sources=("document 001, proof in four steps", "Ganev, section 2.4 with Lemma 2.3"),
    claims=("T1", "T2", "T3", "T6", "T9", "T10", "T11", "T13", "T16", "T21", "G0.5", "GS2.4.3"),
)
def self_attention_is_equivariant(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> dict[str, Claim]:
    """Reordering the tokens reorders the outputs, and every intermediate matrix accordingly."""
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
            ("definition, projections", softmax(Q[sigma] @ K[sigma].mT / ell**0.5) @ V[sigma]),
            ("scores", softmax(S[sigma][:, sigma]) @ V[sigma]),
            ("softmax", A[sigma][:, sigma] @ V[sigma]),
            ("output", (A @ V)[sigma]),
            ("definition", self_attention(X, W_Q, W_K, W_V)[sigma]),
        ),
    }


@self_attention_is_equivariant.negative_control(
    "self-attention is invariant instead of equivariant"
)
def invariant_self_attention(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(self_attention(X[sigma], W_Q, W_K, W_V), self_attention(X, W_Q, W_K, W_V))


@theorem(
    "Multi-head attention with an output projection is equivariant",
    given={
        "X": real(n, p),
        "W_Q": real(H, p, ell),
        "W_K": real(H, p, ell),
        "W_V": real(H, p, d),
        "W_O": real(H, d, e),
        "sigma": permutation(n),
    },
    sources=("Vaswani et al. 2017, section 3.2.2", "Ganev, Remark 2.4"),
    claims=("T15",),
)
def multi_head_attention_is_equivariant(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, sigma: Array
) -> Claim:
    """The sum of H heads through H matrices (or side by side, times one) is reordered too."""
    return equal(multi_head(X[sigma], W_Q, W_K, W_V, W_O), multi_head(X, W_Q, W_K, W_V, W_O)[sigma])


@multi_head_attention_is_equivariant.negative_control(
    "a position table is added to the tokens first", P=real(n, p)
)
def heads_with_positions(
    X: Array, P: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, sigma: Array
) -> Claim:
    return equal(
        multi_head(X[sigma] + P, W_Q, W_K, W_V, W_O), multi_head(X + P, W_Q, W_K, W_V, W_O)[sigma]
    )


@theorem(
    "A_s(X P) = A_s(X) P: self-attention on columns is equivariant",
    given={
        "X": real(d, n),
        "W_k": real(ell, d),
        "W_q": real(ell, d),
        "W_v": real(e, d),
        "sigma": permutation(n),
    },
    sources=("document 002, theorem, first half, with its operator and softmax made explicit",),
    claims=("S3", "S5", "S7", "S11", "S15"),
)
def column_self_attention_is_equivariant(
    X: Array, W_k: Array, W_q: Array, W_v: Array, sigma: Array
) -> dict[str, Claim]:
    """A_s(X) = W_v X softmax((W_k X)ᵀ W_q X) over columns; tokens are the columns of X."""
    P = permutation_matrix(sigma)
    V, scores = W_v @ X, (W_k @ X).mT @ (W_q @ X)
    row_read = softmax((W_k @ X @ P).mT @ (W_q @ X @ P))
    return {
        "the lines of the proof": chain(
            column_self_attention(X @ P, W_k, W_q, W_v),
            (
                "definition, with W_q in the second factor of the scores",
                W_v @ X @ P @ column_softmax((W_k @ X @ P).mT @ (W_q @ X @ P)),
            ),
            ("(A P)ᵀ = Pᵀ Aᵀ", W_v @ X @ P @ column_softmax(P.mT @ (W_k @ X).mT @ (W_q @ X @ P))),
            ("softmax(PᵀMP) = Pᵀ softmax(M) P", V @ P @ P.mT @ column_softmax(scores) @ P),
            ("P Pᵀ = 1", V @ column_softmax(scores) @ P),
            ("definition", column_self_attention(X, W_k, W_q, W_v) @ P),
        ),
        "with softmax over rows instead": equal(V @ P @ row_read, V @ softmax(scores) @ P),
    }


@column_self_attention_is_equivariant.negative_control(
    "W_v stands in the place of W_q, as printed", W_k=real(e, d), W_q=real(e, d)
)
def values_for_queries(X: Array, W_k: Array, W_q: Array, W_v: Array, sigma: Array) -> Claim:
    moved = X @ permutation_matrix(sigma)
    return equal(
        column_self_attention(moved, W_k, W_q, W_v),
        W_v @ moved @ column_softmax((W_k @ moved).mT @ (W_v @ moved)),
    )


@theorem(
    "Masked attention is equivariant when the mask is relabelled with the tokens",
    given={
        "Q": real(n, ell),
        "K": real(n, ell),
        "V": real(n, d),
        "M": boolean(n, n),
        "sigma": permutation(n),
    },
    sources=("document 001, graph attention", "Velickovic et al. 2018 (GAT), section 2.1"),
    claims=("T23",),
)
def masked_attention_is_equivariant_with_its_mask(
    Q: Array, K: Array, V: Array, M: Array, sigma: Array
) -> Claim:
    """The mask determines which token sees which: M[i, j] moves to (σ⁻¹(i), σ⁻¹(j))."""
    moved = M[sigma][:, sigma]
    return chain(
        masked_attention(Q[sigma], K[sigma], V[sigma], moved),
        ("each row by itself", masked_attention(Q, K[sigma], V[sigma], M[:, sigma])[sigma]),
        ("σ meets every key once", masked_attention(Q, K, V, M)[sigma]),
    )


@masked_attention_is_equivariant_with_its_mask.negative_control("the mask is not relabelled")
def mask_stays(Q: Array, K: Array, V: Array, M: Array, sigma: Array) -> Claim:
    return equal(
        masked_attention(Q[sigma], K[sigma], V[sigma], M), masked_attention(Q, K, V, M)[sigma]
    )


@theorem(
    "Causally masked self-attention is permutation equivariant",
    given={**MAPPED, "sigma": permutation(n)},
    expected="refuted",
    sources=("document 001, boxes on the need for positions, which hold without a mask only",),
    claims=("B7", "T15", "T16", "G0.5"),
)
def a_causal_mask_breaks_equivariance(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    """False: the first token sees only itself, the last one sees all."""
    return equal(
        causal_self_attention(X[sigma], W_Q, W_K, W_V),
        causal_self_attention(X, W_Q, W_K, W_V)[sigma],
    )


@a_causal_mask_breaks_equivariance.negative_control("without the mask")
def without_mask(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(self_attention(X[sigma], W_Q, W_K, W_V), self_attention(X, W_Q, W_K, W_V)[sigma])


def commutative(plus: Function) -> Law:
    """x + y = y + x."""
    return for_all({"x": real(), "y": real()}, lambda x, y: equal(plus(x, y), plus(y, x)))


def associative(plus: Function) -> Law:
    """(x + y) + z = x + (y + z)."""
    return for_all(
        {"x": real(), "y": real(), "z": real()},
        lambda x, y, z: equal(plus(plus(x, y), z), plus(x, plus(y, z))),
    )


@theorem(
    "(a + b) + c = (b + c) + a for an operation that is commutative and associative",
    given={
        "plus": function(0, 0, says="any operation with both laws"),
        "a": real(),
        "b": real(),
        "c": real(),
    },
    assume=lambda plus: [commutative(plus), associative(plus)],
    sources=("document 000, list form, the reason it gives",),
    claims=("B3",),
)
def three_terms_need_both_laws(plus: Function, a: Array, b: Array, c: Array) -> dict[str, Claim]:
    """Addition of floats is commutative but not associative, so the result depends on the order."""
    return {
        "with both laws": chain(
            plus(plus(a, b), c),
            ("associative", plus(a, plus(b, c))),
            ("commutative", plus(plus(b, c), a)),
        ).with_facts(associative(plus).at(x=a, y=b, z=c), commutative(plus).at(x=a, y=plus(b, c))),
        "1 + x y is commutative": equal(1 + a * b, 1 + b * a),
    }


@three_terms_need_both_laws.negative_control(
    "the operation is 1 + x y, which is commutative only", assume=no_hypotheses
)
def commutative_only(a: Array, b: Array, c: Array) -> Claim:
    return equal(1 + (1 + a * b) * c, 1 + (1 + b * c) * a)


def same_tokens(X: Array, a: Array, b: Array) -> list[tuple[Any, Any]]:
    """Tokens a and b are equal."""
    return [(X[a], X[b])]


@theorem(
    "Equal tokens get equal outputs",
    given={**MAPPED, "a": index_below(n), "b": index_below(n)},
    assume=same_tokens,
    sources=("document 001, repeated tokens",),
    claims=("T19",),
)
def equal_tokens_get_equal_outputs(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, a: Array, b: Array
) -> dict[str, Claim]:
    """If rows a and b of X are equal, so are rows a and b of all that is computed from X.

    Two equal tokens also get the same weight from every query.
    """
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    weights = softmax(Q @ K.mT / ell**0.5)
    output = self_attention(X, W_Q, W_K, W_V)
    return {
        "queries": equal(Q[a], Q[b]),
        "keys": equal(K[a], K[b]),
        "values": equal(V[a], V[b]),
        "weights for their queries": equal(weights[a], weights[b]),
        "weights of their keys": equal(weights[:, a], weights[:, b]),
        "outputs": equal(output[a], output[b]),
    }


@equal_tokens_get_equal_outputs.negative_control("under a causal mask")
def under_a_causal_mask(X: Array, W_Q: Array, W_K: Array, W_V: Array, a: Array, b: Array) -> Claim:
    output = causal_self_attention(X, W_Q, W_K, W_V)
    return equal(output[a], output[b])


@theorem(
    "A stack of any depth of equivariant layers is equivariant",
    given={
        "f": function(
            2,
            0,
            out=None,
            traits=("equivariant",),
            says="any equivariant layer, another at every depth",
        ),
        "phi": function(1, 0, out=None, says="any map of one row, another at every depth"),
        "X": real(n, p),
        "sigma": permutation(n),
    },
    sources=("cf. document 001, bag of words", "cf. Zaheer et al. 2017 (Deep Sets), after lemma 3"),
    claims=("T15",),
)
def a_stack_of_equivariant_layers_is_equivariant(
    f: Function, phi: Function, X: Array, sigma: Array
) -> Claim:
    """With Z = Y + f_t(Y), layer t takes Y to Z + φ_t(Z) row by row; by induction on depth."""

    def layer(t: Array, Y: Array) -> Array:
        Z = Y + f(Y, t)
        return Z + phi(Z, t)

    return equal(iterate(L, X[sigma], layer), iterate(L, X, layer)[sigma])


@a_stack_of_equivariant_layers_is_equivariant.negative_control(
    "every layer adds a position table to its rows", P=real(n, p)
)
def layers_with_positions(f: Function, phi: Function, X: Array, P: Array, sigma: Array) -> Claim:
    def layer(t: Array, Y: Array) -> Array:
        Z = Y + f(Y, t) + P
        return Z + phi(Z, t)

    return equal(iterate(L, X[sigma], layer), iterate(L, X, layer)[sigma])


@theorem(
    "Mean pooling after self-attention is invariant",
    given={**MAPPED, "sigma": permutation(n)},
    sources=(
        "document 001, point clouds",
        "cf. Zaheer et al. 2017 (Deep Sets), theorem 2, the easy direction",
    ),
    claims=("T13", "T22b"),
)
def mean_pooling_after_self_attention_is_invariant(
    X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    """An equivariant map followed by the mean over tokens is a function of the multiset."""
    xp = array_namespace(X)
    output = self_attention(X, W_Q, W_K, W_V)
    return chain(
        xp.mean(self_attention(X[sigma], W_Q, W_K, W_V), axis=0),
        ("self-attention is equivariant", xp.mean(output[sigma], axis=0)),
        ("a mean does not see an order", xp.mean(output, axis=0)),
    )


@mean_pooling_after_self_attention_is_invariant.negative_control(
    "the first output is taken instead of the mean"
)
def first_row(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(self_attention(X[sigma], W_Q, W_K, W_V)[0], self_attention(X, W_Q, W_K, W_V)[0])


@theorem(
    "Attention with a learned query is invariant",
    given={
        "Q": real(r, ell, says="learned queries, the same for every input"),
        "X": real(n, p),
        "W_K": real(p, ell),
        "W_V": real(p, d),
        "sigma": permutation(n),
    },
    sources=("Lee et al. 2019 (Set Transformer), pooling by multi-head attention, section 3.2",),
)
def a_learned_query_makes_attention_invariant(
    Q: Array, X: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    """With fixed queries, reordering the tokens does not change the output."""
    return chain(
        attention(Q, X[sigma] @ W_K, X[sigma] @ W_V),
        ("rows are projected one by one", attention(Q, (X @ W_K)[sigma], (X @ W_V)[sigma])),
        ("one permutation of the pairs", attention(Q, X @ W_K, X @ W_V)),
    )


@a_learned_query_makes_attention_invariant.negative_control(
    "the queries are the tokens themselves", W_Q=real(p, ell)
)
def queries_from_tokens(X: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    return equal(
        attention(X[sigma] @ W_Q, X[sigma] @ W_K, X[sigma] @ W_V),
        attention(X @ W_Q, X @ W_K, X @ W_V),
    )


@theorem(
    "The operator with a learned query takes d × n matrices to d × n matrices",
    given={
        "X": real(d, n),
        "W_k": real(ell, d),
        "W_v": real(d, d),
        "sigma": permutation(n),
        "Q": real(ell, m, says="learned queries, the same for every input"),
    },
    expected="ill-typed",
    sources=("document 002, second definition",),
    claims=("S4", "S6"),
)
def a_learned_query_gives_one_column_for_each_query(
    X: Array, W_k: Array, W_v: Array, Q: Array, sigma: Array
) -> Claim:
    """Not a statement: a spatial permutation of n columns cannot act on m of them."""
    output = learned_query_attention(X, W_k, Q, W_v)
    return equal(output @ permutation_matrix(sigma), output)


@a_learned_query_gives_one_column_for_each_query.negative_control(
    "A_Q takes d × n matrices to e × m matrices, and is invariant", W_v=real(e, d)
)
def invariant_columns(X: Array, W_k: Array, W_v: Array, Q: Array, sigma: Array) -> Claim:
    P = permutation_matrix(sigma)
    return chain(
        learned_query_attention(X @ P, W_k, Q, W_v),
        ("definition", W_v @ X @ P @ column_softmax((W_k @ X @ P).mT @ Q)),
        ("(A P)ᵀ = Pᵀ Aᵀ", W_v @ X @ P @ column_softmax(P.mT @ (W_k @ X).mT @ Q)),
        ("softmax(PᵀN) = Pᵀ softmax(N)", W_v @ X @ P @ P.mT @ column_softmax((W_k @ X).mT @ Q)),
        ("P Pᵀ = 1; definition", learned_query_attention(X, W_k, Q, W_v)),
    )

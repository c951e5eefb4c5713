"""Softmax: its rows, its masks, and softmax in one pass."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    all_positive,
    at_least,
    boolean,
    chain,
    differ,
    equal,
    index_below,
    index_map,
    injection,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.attention import (
    attention,
    column_softmax,
    merge,
    permutation_matrix,
    softmax,
    summary,
)
from attnproof.theorems.definitions.powers import no_hypotheses

r, n, m, k = sizes("r n m k", "tokens")
ell, d = sizes("ell d", "features")
(B,) = sizes("B", "blocks")


@theorem(
    "Rows of softmax sum to one and their weights are positive",
    given={"S": real(r, n)},
    sources=("Ganev, Notation, Softmax",),
    claims=("S11", "G0.2"),
)
def rows_of_softmax_are_distributions(S: Array) -> dict[str, Claim]:
    """Each row of weights is a probability distribution in which no weight is 0."""
    xp = array_namespace(S)
    return {
        "rows sum to one": equal(xp.sum(softmax(S), axis=-1), xp.ones(S.shape[0])),
        "weights are positive": all_positive(softmax(S)),
    }


@rows_of_softmax_are_distributions.negative_control("columns sum to one")
def columns(S: Array) -> Claim:
    xp = array_namespace(S)
    return equal(xp.sum(softmax(S), axis=0), xp.ones(S.shape[1]))


@theorem(
    "Columns of column softmax sum to one, and softmax(PᵀN) = Pᵀ softmax(N)",
    given={"N": real(n, m), "sigma": permutation(n)},
    sources=("document 002, the axis its proof needs, and the step of its second half",),
    claims=("S10", "S11"),
)
def columns_of_column_softmax_are_distributions(N: Array, sigma: Array) -> dict[str, Claim]:
    """Scores of n keys by m queries; a column of the output is a weighted mean of the values."""
    xp = array_namespace(N)
    P = permutation_matrix(sigma)
    return {
        "columns sum to one": equal(xp.sum(column_softmax(N), axis=0), xp.ones(m)),
        "weights are positive": all_positive(column_softmax(N)),
        "one side": equal(column_softmax(P.mT @ N), P.mT @ column_softmax(N)),
        "it is row softmax transposed": equal(column_softmax(N), softmax(N.mT).mT),
    }


@columns_of_column_softmax_are_distributions.negative_control("rows sum to one")
def rows_sum_to_one(N: Array) -> Claim:
    xp = array_namespace(N)
    return equal(xp.sum(column_softmax(N), axis=1), xp.ones(n))


@theorem(
    "Softmax is unchanged by adding a constant to a row",
    given={"S": real(r, n), "c": real(r)},
    sources=("Milakov and Gimelshein 2018, eq. 2 (safe softmax)",),
)
def softmax_ignores_a_constant_in_each_row(S: Array, c: Array) -> Claim:
    """exp(s + c) = exp(s) exp(c), and exp(c) cancels; so the maximum may be subtracted."""
    return equal(softmax(S + c[:, None]), softmax(S))


@softmax_ignores_a_constant_in_each_row.negative_control(
    "the constant belongs to a column", c=real(n)
)
def column(S: Array, c: Array) -> Claim:
    return equal(softmax(S + c[None, :]), softmax(S))


@theorem(
    "A bias common to all keys changes nothing",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "t": real(ell)},
    sources=("consequence of Ganev, Definition 2.1",),
    claims=("X6",),
)
def a_common_bias_of_the_keys_changes_nothing(Q: Array, K: Array, V: Array, t: Array) -> Claim:
    """Att(Q, K + 1tᵀ, V) = Att(Q, K, V) for every t."""
    root = ell**0.5
    return chain(
        attention(Q, K + t, V),
        (
            "each row of scores is shifted by a constant",
            softmax(Q @ K.mT / root + (Q @ t / root)[:, None]) @ V,
        ),
        ("softmax is unchanged by it", attention(Q, K, V)),
    )


@a_common_bias_of_the_keys_changes_nothing.negative_control("the bias is added to the queries")
def queries(Q: Array, K: Array, V: Array, t: Array) -> Claim:
    return equal(attention(Q + t, K, V), attention(Q, K, V))


@theorem(
    "Row i of attention is the output for query i, a weighted sum of the values",
    given={
        "Q": real(r, ell),
        "K": real(n, ell),
        "V": real(n, d),
        "i": index_below(r),
        "q": real(ell),
        "p": real(ell),
        "c": real(),
    },
    sources=("Ganev, eqs. 2.1 to 2.3, section 2.2 and Definition 2.1",),
    claims=("G0.1", "G1.1", "GE2.1", "GS2.2.1", "G2.1"),
)
def attention_answers_each_query_by_itself(
    Q: Array, K: Array, V: Array, i: Array, q: Array, p: Array, c: Array
) -> dict[str, Claim]:
    """Vectors are the rows of matrices; a matrix product has the sums over keys of all queries."""
    xp = array_namespace(Q)
    scores = xp.sum(q * K, axis=-1)
    root = ell**0.5

    def answer(weights: Array) -> Array:
        weighted: Array = xp.sum(weights[:, None] * V, axis=0)
        return weighted

    def shares(logits: Array) -> Array:
        weights: Array = xp.exp(logits) / xp.sum(xp.exp(logits), axis=0)
        return weights

    return {
        "rows are vectors": equal((Q @ K.mT)[i], K @ Q[i]),
        "one query, dot products": equal(V.mT @ (K @ q), answer(scores)),
        "one query, softmax": equal(V.mT @ softmax(K @ q), answer(shares(scores))),
        "one query, scaled": equal(V.mT @ softmax(K @ q / root), answer(shares(scores / root))),
        "dot products are linear in the query": equal(
            V.mT @ (K @ (c * q + p)), c * (V.mT @ (K @ q)) + V.mT @ (K @ p)
        ),
        "a batch, dot products": equal((Q @ K.mT @ V)[i], V.mT @ (K @ Q[i])),
        "a batch, softmax": equal((softmax(Q @ K.mT) @ V)[i], V.mT @ softmax(K @ Q[i])),
        "attention": equal(attention(Q, K, V), softmax(Q @ K.mT / root) @ V),
        "attention, query by query": equal(attention(Q, K, V)[i], V.mT @ softmax(K @ Q[i] / root)),
    }


@attention_answers_each_query_by_itself.negative_control(
    "softmax runs over the queries instead of the keys"
)
def over_queries(Q: Array, K: Array, V: Array, i: Array) -> Claim:
    return equal((softmax(K @ Q.mT).mT @ V)[i], V.mT @ softmax(K @ Q[i]))


def half_space(V: Array, c: Array, b: Array) -> list[Claim]:
    """Every value lies in the half-space of the v with ⟨v, c⟩ <= b."""
    return [at_least(b, V @ c)]


@theorem(
    "A half-space that contains all values contains every softmax-weighted sum of them",
    given={
        "q": real(ell),
        "K": real(n, ell),
        "V": real(n, d),
        "c": real(d, says="a direction"),
        "b": real(says="a bound"),
    },
    assume=half_space,
    sources=("Ganev, eq. 2.2",),
    claims=("GE2.2",),
)
def the_answer_lies_in_the_convex_hull_of_the_values(
    q: Array, K: Array, V: Array, c: Array, b: Array
) -> dict[str, Claim]:
    """All such half-spaces meet in the convex hull; with c = ±e_i they bound coordinate i.

    The query 0 yields the mean, whereas a linear map would send it to 0.  If all values are 1, so
    is the mean.
    """
    xp = array_namespace(q)
    weights = softmax(K @ q)
    answer = V.mT @ weights
    return {
        "weights are positive": all_positive(weights),
        "weights sum to one": equal(xp.sum(weights, axis=0), 1),
        "the answer is in the half-space": at_least(
            b, answer @ c, ("an average of gaps", xp.sum(weights * (b - V @ c), axis=0))
        ),
        "the query 0 gets the mean": equal(V.mT @ softmax(K @ xp.zeros(ell)), xp.mean(V, axis=0)),
        "which need not be 0": differ(xp.ones(n) @ softmax(K @ xp.zeros(ell)), 0, 1),
    }


@the_answer_lies_in_the_convex_hull_of_the_values.negative_control(
    "the answer is linear in the query, as without softmax", assume=no_hypotheses
)
def linear(q: Array, K: Array, V: Array) -> Claim:
    return equal(V.mT @ softmax(K @ (q + q)), V.mT @ softmax(K @ q) + V.mT @ softmax(K @ q))


@theorem(
    "Weights of pairs with equal values add up; the answer is the mean of that distribution",
    given={"S": real(r, n), "U": real(m, d, says="the different values"), "c": index_map(n, m)},
    sources=("Ganev, section 2.1 and footnote 2",),
    claims=("GS2.1.4", "GS2.1.1"),
)
def pairs_with_equal_values_add_their_weights(S: Array, U: Array, c: Array) -> dict[str, Claim]:
    """Pair i holds value U_c(i); the mass of value j is the sum of the weights with c(i) = j."""
    xp = array_namespace(S)
    masses = softmax(S) @ xp.eye(m)[c]
    return {
        "the answer is the mean": equal(softmax(S) @ U[c], masses @ U),
        "masses sum to one": equal(xp.sum(masses, axis=-1), xp.ones(r)),
        "masses are not negative": at_least(masses, 0),
        "with zero scores the masses count the pairs": equal(
            xp.eye(m)[c].mT @ softmax(xp.zeros(n)), xp.mean(xp.eye(m)[c], axis=0)
        ),
    }


@pairs_with_equal_values_add_their_weights.negative_control(
    "listing the first pair twice changes nothing, as in a set", s=real(n), V=real(n, d)
)
def repeated_pair(s: Array, V: Array) -> Claim:
    xp = array_namespace(V)
    scores, values = xp.concat((s, s[:1])), xp.concat((V, V[:1]))
    return equal(values.mT @ softmax(scores), V.mT @ softmax(s))


@theorem(
    "With at least one finite score, softmax is a distribution that is 0 exactly where s = −inf",
    given={"s": real(n), "e": injection(k, n)},
    sources=("Ganev, Notation, Softmax",),
    claims=("G1.3",),
)
def scores_of_minus_infinity_get_no_weight(s: Array, e: Array) -> dict[str, Claim]:
    """e lists the k >= 1 places whose score is finite, in any order: any non-empty set.

    weights[e] has the weights of these places; its product with the rows e of the identity puts
    them back where they were, and 0 in all other places.
    """
    xp = array_namespace(s)
    finite = xp.isin(xp.arange(n), e)
    weights = softmax(xp.where(finite, s, -xp.inf))
    place = xp.arange(k)
    total = xp.sum(xp.exp(s[e]), axis=0)
    others = xp.sum(xp.where(place[:, None] == place, 0, xp.exp(s[e])), axis=-1)
    return {
        "weights sum to one": equal(xp.sum(weights, axis=0), 1),
        "zero where the score is −inf": equal(weights, weights[e] @ xp.eye(n)[e]),
        "positive where it is finite": all_positive(weights[e]),
        "none is negative": at_least(weights, 0),
        "none is above one": at_least(1, weights[e], ("the others' share", others / total)),
    }


@scores_of_minus_infinity_get_no_weight.negative_control("every weight is positive")
def all_places(s: Array, e: Array) -> Claim:
    xp = array_namespace(s)
    return all_positive(softmax(xp.where(xp.isin(xp.arange(n), e), s, -xp.inf)))


@theorem(
    "Masked softmax is the softmax of the unmasked entries, extended by zeros",
    given={"S": real(r, n), "e": injection(k, n)},
    sources=("Ganev, section 2.6",),
)
def masked_softmax_is_the_softmax_of_what_is_kept(S: Array, e: Array) -> Claim:
    """e lists the k >= 1 unmasked places: any non-empty mask, the same for all rows (or r = 1)."""
    xp = array_namespace(S)
    kept = xp.isin(xp.arange(S.shape[1]), e)
    places = xp.eye(S.shape[1])[e]
    return equal(softmax(xp.where(kept[None, :], S, -xp.inf)), softmax(S[:, e]) @ places)


@masked_softmax_is_the_softmax_of_what_is_kept.negative_control(
    "masked entries are set to 0 instead of −inf"
)
def zero_fill(S: Array, e: Array) -> Claim:
    xp = array_namespace(S)
    kept = xp.isin(xp.arange(S.shape[1]), e)
    places = xp.eye(S.shape[1])[e]
    return equal(softmax(xp.where(kept[None, :], S, 0)), softmax(S[:, e]) @ places)


names = ("shift", "normaliser", "output")


block = {
    **{f"m{i}": real(says="a running shift") for i in (1, 2, 3)},
    **{f"z{i}": real(says="a normaliser") for i in (1, 2, 3)},
    **{f"o{i}": real(d, says="an output") for i in (1, 2, 3)},
}


@theorem(
    "Online softmax: merging is associative with the empty block as unit, and gives attention",
    given={
        **block,
        "s": real(n),
        "V": real(n, d),
        "t": real(m),
        "W": real(m, d),
        "M": boolean(n),
        "c": index_map(n, B),
        "mu": real(B, says="one shift for each block"),
        "nu": real(says="the final shift"),
    },
    sources=(
        "Milakov and Gimelshein 2018, section 3.1",
        "Dao et al. 2022 (FlashAttention), section 3.1 and theorem 1",
    ),
)
def online_softmax_merges_any_split_of_the_keys(
    m1: Array,
    m2: Array,
    m3: Array,
    z1: Array,
    z2: Array,
    z3: Array,
    o1: Array,
    o2: Array,
    o3: Array,
    s: Array,
    V: Array,
    t: Array,
    W: Array,
    M: Array,
    c: Array,
    mu: Array,
    nu: Array,
) -> dict[str, Claim]:
    """A block is (shift, Σ exp(s − shift), Σ exp(s − shift) v); the shift is free.

    Merging takes the larger shift.  For blocks with finite shifts it is associative, and the
    block of no keys (−inf, 0, 0) is its unit on both sides.  Two blocks merge into the block of
    their keys; any split of the keys in two, with any shifts, merges into softmax(s) V.  So, by
    associativity, does any tree of merges; and B blocks brought to one final shift at once do.
    """
    xp = array_namespace(V)
    a, b, g = (m1, z1, o1), (m2, z2, o2), (m3, z3, o3)
    empty = (-xp.inf, 0, xp.zeros(o1.shape))
    claims = {}
    for name, left, right in zip(names, merge(merge(a, b), g), merge(a, merge(b, g)), strict=True):
        claims[f"associative: {name}"] = equal(left, right)
    for side, merged in (("right", merge(a, empty)), ("left", merge(empty, a))):
        for name, left, right in zip(names, merged, a, strict=True):
            claims[f"unit on the {side}: {name}"] = equal(left, right)
    two = merge(summary(s, V, m1), summary(t, W, m2))
    one = summary(xp.concat((s, t)), xp.concat((V, W)), xp.maximum(m1, m2))
    for name, left, right in zip(names[1:], two[1:], one[1:], strict=True):
        claims[f"two blocks are one: {name}"] = equal(left, right)
    first, rest = (xp.where(kept, s, -xp.inf) for kept in (M, ~M))
    whole = softmax(s) @ V
    _, normaliser, output = merge(summary(first, V, m1), summary(rest, V, m2))
    claims["any split in two"] = equal(output / normaliser, whole)
    normaliser, output = merged_blocks(s, V, c, mu, nu)
    claims["any split into any number of blocks at once"] = equal(output / normaliser, whole)
    return claims


def merged_blocks(s: Array, V: Array, c: Array, mu: Array, nu: Array) -> tuple[Array, Array]:
    """(normaliser, output) of all blocks at the final shift; key j belongs to block c(j)."""
    xp = array_namespace(V)
    belongs = xp.astype(c[None, :] == xp.arange(mu.shape[0])[:, None], s.dtype)
    weights = belongs * xp.exp(s[None, :] - mu[:, None])
    rescale = xp.exp(mu - nu)
    normaliser = xp.sum(rescale * xp.sum(weights, axis=-1), axis=0)
    return normaliser, rescale @ (weights @ V)


@online_softmax_merges_any_split_of_the_keys.negative_control(
    "blocks are added without rescaling them to the common shift"
)
def no_rescaling(s: Array, V: Array, c: Array, mu: Array) -> Claim:
    xp = array_namespace(V)
    belongs = xp.astype(c[None, :] == xp.arange(mu.shape[0])[:, None], s.dtype)
    weights = belongs * xp.exp(s[None, :] - mu[:, None])
    total = xp.sum(xp.sum(weights, axis=-1), axis=0)
    return equal(xp.sum(weights @ V, axis=0) / total, softmax(s) @ V)

"""Masks, and the order that they impose on tokens."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    boolean,
    chain,
    equal,
    injection,
    permutation,
    real,
    sizes,
    theorem,
)
from attnproof.theorems.definitions.attention import (
    attention,
    causal,
    causal_self_attention,
    masked_attention,
    softmax,
)
from attnproof.theorems.definitions.powers import no_hypotheses

k, m, n, r = sizes("k m n r", "tokens")
ell, d, p = sizes("ell d p", "features")


@theorem(
    "softmax(a + mask) is softmax over the kept places, extended by zeros",
    given={"a": real(n), "e": injection(k, n), "b": real(m), "c": real(k)},
    sources=("Ganev, section 2.6",),
    claims=("GS2.6.1", "GS2.6.2"),
)
def a_mask_leaves_softmax_of_the_kept_scores(
    a: Array, e: Array, b: Array, c: Array
) -> dict[str, Claim]:
    """The unmasked places are those listed by e, any non-empty set, or the first m of m + k.

    A product with the rows e of the identity puts k numbers in the places e, and 0 elsewhere.
    """
    xp = array_namespace(a)
    kept = xp.isin(xp.arange(n), e)
    mask = xp.where(kept, 0, -xp.inf)
    masked = softmax(a + mask)
    return {
        "the first m places": equal(
            softmax(xp.concat((b, c)) + xp.concat((xp.zeros(m), xp.ones(k) * -xp.inf))),
            xp.concat((softmax(b), xp.zeros(k))),
        ),
        "on the kept places": equal(masked[e], softmax(a[e])),
        "zero elsewhere": equal(masked, softmax(a[e]) @ xp.eye(n)[e]),
        "as a product": equal(
            masked, xp.exp(a) * xp.exp(mask) / xp.sum(xp.exp(a) * xp.exp(mask), axis=0)
        ),
    }


@a_mask_leaves_softmax_of_the_kept_scores.negative_control("the masked scores are set to 0")
def zeros(a: Array, e: Array) -> Claim:
    xp = array_namespace(a)
    return equal(softmax(xp.where(xp.isin(xp.arange(n), e), a, 0))[e], softmax(a[e]))


@theorem(
    "exp of the sequential mask is the lower triangular matrix of ones",
    given={"S": real(n, n)},
    sources=("Ganev, section 2.6, the sequential mask",),
    claims=("G2.5b",),
)
def the_exponential_of_the_causal_mask_is_lower_triangular(S: Array) -> dict[str, Claim]:
    """Row i keeps the keys j <= i, the first one always; its weights divide by that part."""
    xp = array_namespace(S)
    keep = causal(S)
    mask = xp.where(keep, 0, -xp.inf)
    lower = xp.astype(keep, S.dtype)
    return {
        "lower triangular": equal(xp.exp(mask), lower),
        "nothing above the diagonal": equal(xp.where(keep, 0, xp.exp(mask)), xp.zeros((n, n))),
        "each row keeps its first key": equal(xp.exp(mask)[:, 0], xp.ones(n)),
        "masked weights": equal(
            softmax(S + mask), xp.exp(S) * lower / xp.sum(xp.exp(S) * lower, axis=-1, keepdims=True)
        ),
    }


@the_exponential_of_the_causal_mask_is_lower_triangular.negative_control(
    "the mask itself is 0 above the diagonal, so that its exponential is 1 there"
)
def zero_above(S: Array) -> Claim:
    xp = array_namespace(S)
    keep = causal(S)
    mask = xp.where(keep, 0, -xp.inf)
    return equal(xp.where(keep, 1, xp.exp(mask)), xp.ones((n, n)))


@theorem(
    "softmax((QKᵀ + Mask)/√ℓ) V = softmax(QKᵀ/√ℓ + Mask) V; a mask moves with queries and keys",
    given={
        "Q": real(r, ell),
        "K": real(n, ell),
        "V": real(n, d),
        "M": boolean(r, n),
        "tau": permutation(r),
        "sigma": permutation(n),
    },
    sources=("Ganev, Definition 2.5, with Lemma 2.3",),
    claims=("G2.5a", "G2.5c"),
)
def masked_attention_ignores_the_scale_of_its_mask_and_moves_with_it(
    Q: Array, K: Array, V: Array, M: Array, tau: Array, sigma: Array
) -> dict[str, Claim]:
    """−inf divided by a positive number is −inf.  Every row of M leaves at least one key."""
    xp = array_namespace(Q)
    mask = xp.where(M, 0, -xp.inf)
    inside = softmax((Q @ K.mT + mask) / ell**0.5) @ V
    return {
        "before or after the division": equal(inside, softmax(Q @ K.mT / ell**0.5 + mask) @ V),
        "as scores of −inf": equal(inside, masked_attention(Q, K, V, M)),
        "moved along": equal(
            masked_attention(Q[tau], K[sigma], V[sigma], M[tau][:, sigma]),
            masked_attention(Q, K, V, M)[tau],
        ),
    }


@masked_attention_ignores_the_scale_of_its_mask_and_moves_with_it.negative_control(
    "masked scores get −1 more instead of −inf"
)
def finite_mask(Q: Array, K: Array, V: Array, M: Array) -> Claim:
    xp = array_namespace(Q)
    mask = xp.where(M, 0, -1)
    return equal(softmax((Q @ K.mT + mask) / ell**0.5) @ V, softmax(Q @ K.mT / ell**0.5 + mask) @ V)


def order(places: Array) -> Array:
    """Entry (i, j) is 1 if place j is not after place i, else 0."""
    kept: Array = array_namespace(places).astype(places[None, :] <= places[:, None], places.dtype)
    return kept


def kept(sigma: Array) -> list[tuple[Any, Any]]:
    """σ leaves the sequential mask unchanged: σ(j) <= σ(i) exactly if j <= i."""
    return [(order(sigma), order(array_namespace(sigma).arange(n)))]


@theorem(
    "Only the identity permutation leaves the sequential mask unchanged",
    given={"sigma": permutation(n)},
    assume=kept,
    sources=("Ganev, section 2.6 with Lemma 2.3",),
    claims=("G2.5c",),
)
def only_the_identity_keeps_the_causal_mask(sigma: Array) -> Claim:
    """Count the keys visible to query i, before and after: σ(i) + 1 = i + 1."""
    xp = array_namespace(sigma)
    place = xp.arange(n)
    up_to = xp.astype(place[None, :] <= sigma[:, None], sigma.dtype)
    return chain(
        sigma,
        ("the places k <= σ(i), less one", xp.sum(up_to, axis=1) - 1),
        ("σ meets every place once", xp.sum(order(sigma), axis=1) - 1),
        ("σ keeps the mask", xp.sum(order(place), axis=1) - 1),
        ("the places j <= i, less one", place),
    )


@only_the_identity_keeps_the_causal_mask.negative_control(
    "every permutation keeps the sequential mask", assume=no_hypotheses
)
def every_permutation(sigma: Array) -> Claim:
    return equal(order(sigma), order(array_namespace(sigma).arange(n)))


@theorem(
    "One causal layer leaves the last output unchanged when the tokens before it are reordered",
    given={
        "X": real(n, p, says="the tokens before the last"),
        "x": real(1, p, says="the last token"),
        "W_Q": real(p, ell),
        "W_K": real(p, ell),
        "W_V": real(p, d),
        "sigma": permutation(n),
    },
    sources=("cf. document 001, what attention without positions cannot learn",),
    claims=("T16",),
)
def one_causal_layer_reads_a_prefix_as_a_bag(
    X: Array, x: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array
) -> Claim:
    """So one layer needs positions even with the mask; a second layer detects the order."""
    xp = array_namespace(X)

    def last(tokens: Array) -> Array:
        output: Array = causal_self_attention(xp.concat((tokens, x)), W_Q, W_K, W_V)[n]
        return output

    def unmasked(tokens: Array) -> Array:
        everything = xp.concat((tokens, x))
        answer: Array = attention(x @ W_Q, everything @ W_K, everything @ W_V)[0]
        return answer

    return chain(
        last(X[sigma]),
        ("nothing is masked in the last row", unmasked(X[sigma])),
        ("one query does not see the order of the pairs", unmasked(X)),
        ("nothing is masked in the last row", last(X)),
    )


@one_causal_layer_reads_a_prefix_as_a_bag.negative_control(
    "there is a second causal layer", W_V=real(p, p)
)
def two_layers(X: Array, x: Array, W_Q: Array, W_K: Array, W_V: Array, sigma: Array) -> Claim:
    xp = array_namespace(X)

    def last(tokens: Array) -> Array:
        first = causal_self_attention(xp.concat((tokens, x)), W_Q, W_K, W_V)
        output: Array = causal_self_attention(first, W_Q, W_K, W_V)[n]
        return output

    return equal(last(X[sigma]), last(X))

"""Maps of a set of tokens: pooling, copying, and self-attention beside them."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    all_positive,
    at_least,
    chain,
    differ,
    equal,
    function,
    greater,
    index_below,
    inverse,
    permutation,
    positive,
    real,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.attention import attention, self_attention, softmax
from attnproof.theorems.definitions.powers import no_hypotheses

n, r = sizes("n r", "tokens")
p, q, ell, d = sizes("p q ell d", "features")


@theorem(
    "Sum and mean over the tokens are permutation invariant",
    given={"X": real(n, p), "sigma": permutation(n)},
    sources=("document 001, equivariance against invariance", "Zaheer et al. 2017 (Deep Sets)"),
    claims=("T3", "T22b"),
)
def sum_and_mean_do_not_see_an_order(X: Array, sigma: Array) -> dict[str, Claim]:
    """Each column is summed over all its entries, whatever their order."""
    xp = array_namespace(X)
    return {
        "sum": equal(xp.sum(X[sigma], axis=0), xp.sum(X, axis=0)),
        "mean": equal(xp.mean(X[sigma], axis=0), xp.mean(X, axis=0)),
    }


@sum_and_mean_do_not_see_an_order.negative_control("the first row is taken")
def first_token(X: Array, sigma: Array) -> Claim:
    return equal(X[sigma][0], X[0])


def largest(x: Array, m: Array, k: Array) -> list[Any]:
    """m is the maximum of x: no entry is larger, and entry k is m."""
    return [(m, x[k]), at_least(m, x)]


@theorem(
    "The maximum of a channel over the tokens is permutation invariant",
    given={
        "x": real(n, says="one channel of the tokens"),
        "sigma": permutation(n),
        "m": real(says="its maximum"),
        "k": index_below(n),
    },
    assume=largest,
    sources=("document 001, equivariance against invariance", "Zaheer et al. 2017 (Deep Sets)"),
    claims=("T3", "T22b"),
)
def the_maximum_does_not_see_an_order(
    x: Array, sigma: Array, m: Array, k: Array
) -> dict[str, Claim]:
    """No entry of x[σ] is larger than m, and one of them is m: so max(x[σ]) = max(x)."""
    return {
        "no entry is larger": at_least(m, x[sigma], ("entries of x, moved", (m - x)[sigma])),
        "one entry is as large": chain(
            x[sigma][inverse(sigma)][k], ("entry σ⁻¹(k) of x[σ] is entry k of x", x[k]), ("", m)
        ),
    }


@the_maximum_does_not_see_an_order.negative_control(
    "m is any entry", assume=lambda x, m, k: [(m, x[k])]
)
def any_entry(x: Array, sigma: Array, m: Array) -> Claim:
    return at_least(m, x[sigma])


@theorem(
    "An invariant pooling after an equivariant map is invariant",
    given={
        "f": function(2, out=None, traits=("equivariant",), says="any equivariant map"),
        "g": function(2, out=(q,), traits=("invariant",), says="any invariant pooling"),
        "X": real(n, p),
        "W": real(p, q),
        "sigma": permutation(n),
    },
    sources=("document 001, point clouds, and its pattern for sets", "Zaheer et al. 2017, lemma 3"),
    claims=("T15", "T22b"),
)
def pooling_after_an_equivariant_map_is_invariant(
    f: Function, g: Function, X: Array, W: Array, sigma: Array
) -> dict[str, Claim]:
    """Any pooling, as the sum, the mean, and the sum weighted by the outputs themselves."""
    xp = array_namespace(X)
    moved, still = f(X[sigma]), f(X)

    def weighted(Y: Array) -> Array:
        total: Array = xp.sum(xp.exp(Y @ W)[:, :, None] * Y[:, None, :], axis=0)
        return total

    return {
        "the map": equal(moved, still[sigma]),
        "any pooling": equal(g(moved), g(still)),
        "sum": chain(
            xp.sum(moved, axis=0),
            ("f is equivariant", xp.sum(still[sigma], axis=0)),
            ("a sum does not depend on the order", xp.sum(still, axis=0)),
        ),
        "mean": equal(xp.mean(moved, axis=0), xp.mean(still, axis=0)),
        "weighted": equal(weighted(moved), weighted(still)),
    }


@pooling_after_an_equivariant_map_is_invariant.negative_control(
    "the map is any map", f=function(2, out=None, says="any map of all rows")
)
def any_map(f: Function, X: Array, sigma: Array) -> Claim:
    xp = array_namespace(X)
    return equal(xp.sum(f(X[sigma]), axis=0), xp.sum(f(X), axis=0))


def first_output(x: Array, y: Array) -> Array:
    """The first output of self-attention on the tokens x, y, all weight matrices 1."""
    xp = array_namespace(x)
    tokens = xp.stack((x, y))[:, None]
    output: Array = attention(tokens, tokens, tokens)[0, 0]
    return output


@theorem(
    "Self-attention has a larger first output on the tokens c, 0 than on 0, c, for any c > 0",
    given={"c": positive()},
    sources=("document 001, equivariance against invariance",),
    claims=("T1", "T3", "T13"),
)
def self_attention_is_not_invariant(c: Array) -> dict[str, Claim]:
    """The query of the token 0 is 0, so its output is the mean c/2; the token c favours itself."""
    xp = array_namespace(c)
    zero = xp.zeros(())
    prefers = xp.exp(c * c)
    return {
        "the token 0": equal(first_output(zero, c), c / 2),
        "the token c": equal(first_output(c, zero), c * prefers / (prefers + 1)),
        "not the same": greater(
            first_output(c, zero),
            first_output(zero, c),
            ("e^(c²) − 1 is positive", c * (prefers - 1) / (prefers + 1) / 2),
        ),
    }


@self_attention_is_not_invariant.negative_control("the first output of 0, c is the larger one")
def other_way_round(c: Array) -> Claim:
    zero = array_namespace(c).zeros(())
    return greater(first_output(zero, c), first_output(c, zero))


@theorem(
    "Self-attention maps n × p tokens to n × p outputs",
    given={"X": real(n, p), "W_Q": real(p, ell), "W_K": real(p, ell), "W_V": real(p, d)},
    expected="ill-typed",
    sources=("document 001, definition of permutation equivariance",),
    claims=("T2",),
)
def self_attention_keeps_the_shape_of_its_tokens(
    X: Array, W_Q: Array, W_K: Array, W_V: Array
) -> Claim:
    """Not a statement: the outputs have width d, so a residual X + SelfAtt(X) needs d = p."""
    output = self_attention(X, W_Q, W_K, W_V)
    return equal((X + output) - X, output)


@self_attention_keeps_the_shape_of_its_tokens.negative_control(
    "the values have the width of the tokens", W_V=real(p, p)
)
def as_wide(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    output = self_attention(X, W_Q, W_K, W_V)
    return equal((X + output) - X, output)


def first_row(X: Array) -> Array:
    """Every row replaced by the first row."""
    xp = array_namespace(X)
    copied: Array = xp.ones((n, 1)) @ X[0][None, :]
    return copied


def another_first_row(X: Array, sigma: Array) -> list[Any]:
    """σ moves another entry to the first place."""
    return [differ(X[sigma][0, 0], X[0, 0])]


@theorem(
    "Copying the first row everywhere is linear and not equivariant; a 1 + b 11ᵀ is",
    given={
        "X": real(n, p),
        "sigma": permutation(n),
        "Y": real(n, p),
        "tau": permutation(n),
        "a": real(),
        "b": real(),
    },
    assume=another_first_row,
    sources=("cf. document 001, its table of architectures", "Zaheer et al. 2017, lemma 3"),
    claims=("T21",),
)
def copying_the_first_row_is_not_equivariant(
    X: Array, sigma: Array, Y: Array, tau: Array, a: Array, b: Array
) -> dict[str, Claim]:
    """So self-attention without positions, which is equivariant, cannot copy the first row."""
    xp = array_namespace(X)
    linear = a * xp.eye(n) + b * xp.ones((n, n))
    copied, moved = first_row(X[sigma]), first_row(X)[sigma]
    return {
        "copying the first row": differ(
            copied,
            moved,
            X[sigma][0, 0],
            ("the first row of X[σ] is copied", copied[0, 0]),
            ("if copying were equivariant", moved[0, 0]),
            ("all its rows are the first row of X", X[0, 0]),
            X[sigma][0, 0] - X[0, 0],
        ),
        "maps that are equivariant": equal(linear @ Y[tau], (linear @ Y)[tau]),
    }


@copying_the_first_row_is_not_equivariant.negative_control(
    "it is equivariant", assume=no_hypotheses
)
def equivariant(X: Array, sigma: Array) -> Claim:
    return equal(first_row(X[sigma]), first_row(X)[sigma])


def another_value(c: Array) -> list[Any]:
    """The change c of a value is nonzero."""
    return [differ(c, 0)]


@theorem(
    "All n² weights of self-attention are positive, and output i changes with value j by A_ij",
    given={
        "Q": real(r, ell),
        "K": real(n, ell),
        "V": real(n, d),
        "X": real(n, p),
        "W_Q": real(p, ell),
        "W_K": real(p, ell),
        "W_V": real(p, d),
        "z": real(n),
        "j": index_below(n),
        "i": index_below(r),
        "delta": real(d),
        "change": real(p),
        "c": real(),
        "s": real(r, n),
    },
    assume=another_value,
    sources=("document 001, its table of architectures and its summary",),
    claims=("T20", "T27"),
)
def every_output_of_attention_depends_on_every_value(
    Q: Array,
    K: Array,
    V: Array,
    X: Array,
    W_Q: Array,
    W_K: Array,
    W_V: Array,
    j: Array,
    i: Array,
    delta: Array,
    change: Array,
    z: Array,
    c: Array,
    s: Array,
) -> dict[str, Claim]:
    """With all queries 0 the outputs are means, and no weight depends on the tokens at all."""
    xp = array_namespace(Q)
    weights = softmax(Q @ K.mT / ell**0.5)
    scores = X @ W_Q @ (X @ W_K).mT
    here = xp.astype(xp.arange(n) == j, V.dtype)
    no_queries = xp.zeros((p, ell))
    before = softmax(s[i]) @ z
    after = softmax(s[i]) @ (z + c * here)
    return {
        "weights are positive": all_positive(weights),
        "there are n² of them": equal(xp.sum(xp.ones(scores.shape)), n * n),
        "how an output moves with a value": equal(
            attention(Q, K, V + here[:, None] * delta[None, :]),
            attention(Q, K, V) + weights[:, j][:, None] * delta[None, :],
        ),
        "it does move": differ(after, before, softmax(s)[i, j] * c),
        "how it moves with a token, queries 0": equal(
            self_attention(X + here[:, None] * change[None, :], no_queries, W_K, W_V),
            self_attention(X, no_queries, W_K, W_V) + (change @ W_V / n)[None, :],
        ),
    }


@every_output_of_attention_depends_on_every_value.negative_control(
    "no output changes with value j", assume=no_hypotheses
)
def nothing_moves(Q: Array, K: Array, V: Array, j: Array, delta: Array) -> Claim:
    xp = array_namespace(V)
    here = xp.astype(xp.arange(n) == j, V.dtype)
    return equal(attention(Q, K, V + here[:, None] * delta[None, :]), attention(Q, K, V))

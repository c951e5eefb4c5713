"""What leaves the score function unchanged leaves attention unchanged."""

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    equal,
    for_all,
    function,
    over,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.kernels import kernel_attention

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


def invariance(alpha: Function, g: Function) -> Law:
    """α(g x, g y) = α(x, y) for all x and y."""
    return for_all(
        {"x": real(ell), "y": real(ell)},
        lambda x, y: equal(alpha(g(x), g(y)), alpha(x, y)),
    )


@theorem(
    "If α(gx, gy) = α(x, y), then Att_α(gQ, gK, V) = Att_α(Q, K, V)",
    given={
        "alpha": function(1, 1, says="any function of a query and a key"),
        "g": function(1, out=None, says="any map of vectors, linear or not"),
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
    },
    assume=lambda alpha, g: [invariance(alpha, g)],
    sources=("Ganev, section 2.7, for g in a group",),
    claims=("GS2.7.9",),
)  # fmt: skip
def statement(alpha: Function, g: Function, Q: Array, K: Array, V: Array) -> Claim:
    """g acts on each row of Q and of K; that it has an inverse is not needed."""
    law = invariance(alpha, g)
    return equal(
        kernel_attention(alpha, g(Q), g(K), V), kernel_attention(alpha, Q, K, V)
    ).with_facts(over(r, lambda j: over(n, lambda i: law.at(x=Q[j], y=K[i]))))


@statement.twin_of("g acts on the queries alone")
def queries_alone(alpha: Function, g: Function, Q: Array, K: Array, V: Array) -> Claim:
    return equal(kernel_attention(alpha, g(Q), K, V), kernel_attention(alpha, Q, K, V))

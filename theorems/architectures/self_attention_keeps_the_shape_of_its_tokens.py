"""Self-attention maps rows of one width to rows of the width of its values."""

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import self_attention

(n,) = sizes("n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Self-attention maps n × p tokens to n × p outputs",
    given={"X": real(n, p), "W_Q": real(p, ell), "W_K": real(p, ell), "W_V": real(p, d)},
    expected="ill-typed",
    sources=("document 001, definition of permutation equivariance",),
    claims=("T2",),
)
def statement(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    """No statement: the outputs have width d, so a residual X + SelfAtt(X) needs d = p."""
    output = self_attention(X, W_Q, W_K, W_V)
    return equal((X + output) - X, output)


@statement.twin_of("the values have the width of the tokens", W_V=real(p, p))
def as_wide(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> Claim:
    output = self_attention(X, W_Q, W_K, W_V)
    return equal((X + output) - X, output)

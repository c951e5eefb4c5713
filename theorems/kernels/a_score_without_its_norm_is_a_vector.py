"""A score is a number, and −q − k, which is −‖q − k‖ without the bars of the norm, a vector."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.kernels import distances, kernel_attention

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")


@theorem(
    "−q − k is a score",
    given={"Q": real(r, ell), "K": real(n, ell), "V": real(n, d)},
    expected="ill-typed",
    sources=("Ganev, section 2.7, the table as its stored text has it",),
    claims=("GS2.7.1",),
)
def statement(Q: Array, K: Array, V: Array) -> Claim:
    """No statement: these are r × n × ℓ numbers, and r × n are wanted."""
    return equal(kernel_attention(lambda q, k: -q - k, Q, K, V), softmax(-distances(Q, K)) @ V)


@statement.twin_of("with the norm: −‖q − k‖")
def with_norm(Q: Array, K: Array, V: Array) -> Claim:
    xp = array_namespace(Q)

    def score(q: Array, k: Array) -> Array:
        norm: Array = xp.sqrt(xp.sum((q - k) ** 2, axis=-1))
        return -norm

    return equal(kernel_attention(score, Q, K, V), softmax(-distances(Q, K)) @ V)

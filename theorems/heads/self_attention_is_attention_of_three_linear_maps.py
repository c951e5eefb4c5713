"""Self-attention written out, and with identity maps."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention, self_attention, softmax

(n,) = sizes("n", "tokens")
p, ell, d = sizes("p ell d", "features")


@theorem(
    "Self-attention is softmax(X S_Q S_Kᵀ Xᵀ / √ℓ) X S_V; with identity maps it is Att(X, X, X)",
    given={"X": real(n, p), "S_Q": real(p, ell), "S_K": real(p, ell), "S_V": real(p, d)},
    sources=("Ganev, section 2.4",),
    claims=("GS2.4.1", "GS2.4.2"),
)
def statement(X: Array, S_Q: Array, S_K: Array, S_V: Array) -> dict[str, Claim]:
    """The query and the key map meet in one product."""
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


@statement.twin_of("the key map comes first, S_K S_Qᵀ")
def maps_exchanged(X: Array, S_Q: Array, S_K: Array, S_V: Array) -> Claim:
    scores = X @ S_K @ S_Q.mT @ X.mT
    return equal(self_attention(X, S_Q, S_K, S_V), softmax(scores / ell**0.5) @ X @ S_V)

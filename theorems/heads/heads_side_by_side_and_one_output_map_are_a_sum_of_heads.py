"""Heads side by side times one output matrix are a sum of heads with maps of their own."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, index_below, real, sizes, theorem
from attnproof.theorems.definitions.attention import attention
from attnproof.theorems.definitions.heads import side_by_side, sum_of_heads

r, n = sizes("r n", "tokens")
(H,) = sizes("H", "heads")
ell, p, d, q, e = sizes("ell p d q e", "features")


@theorem(
    "[A_1 .. A_H] W_O = Σ_h A_h W_O^h, an r × e matrix, and W_V^h W_O^h is one matrix",
    given={
        "Q": real(r, ell), "K": real(n, ell), "V": real(n, d),
        "W_Q": real(H, ell, p), "W_K": real(H, ell, p), "W_V": real(H, d, q),
        "W_O": real(H, q, e), "h": index_below(H),
    },
    sources=("Ganev, section 2.5 and Remark 2.4", "Vaswani et al. 2017, section 3.2.2"),
    claims=("G2.4a", "G2.4b", "GS2.5.1"),
)  # fmt: skip
def statement(
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


@statement.twin_of("each head is given the same output map, the sum of all")
def common_output_map(
    Q: Array, K: Array, V: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array
) -> Claim:
    xp = array_namespace(Q)
    heads = attention(Q @ W_Q, K @ W_K, V @ W_V)
    output = xp.reshape(W_O, (H * q, e))
    return equal(side_by_side(heads) @ output, xp.sum(heads, axis=0) @ xp.sum(W_O, axis=0))

"""Softmax in one pass: summaries of blocks merge, in any order, into full attention."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, boolean, equal, index_map, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax
from attnproof.theorems.definitions.online import merge, summary

n, m = sizes("n m", "tokens")
(B,) = sizes("B", "blocks")
(d,) = sizes("d", "features")
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
        "s": real(n), "V": real(n, d), "t": real(m), "W": real(m, d),
        "M": boolean(n), "c": index_map(n, B), "mu": real(B, says="one shift for each block"),
        "nu": real(says="the final shift"),
    },
    sources=(
        "Milakov and Gimelshein 2018, section 3.1",
        "Dao et al. 2022 (FlashAttention), section 3.1 and theorem 1",
    ),
)  # fmt: skip
def statement(
    m1: Array, m2: Array, m3: Array, z1: Array, z2: Array, z3: Array,
    o1: Array, o2: Array, o3: Array,
    s: Array, V: Array, t: Array, W: Array, M: Array, c: Array, mu: Array, nu: Array,
) -> dict[str, Claim]:  # fmt: skip
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


@statement.twin_of("blocks are added without rescaling them to the common shift")
def no_rescaling(s: Array, V: Array, c: Array, mu: Array) -> Claim:
    xp = array_namespace(V)
    belongs = xp.astype(c[None, :] == xp.arange(mu.shape[0])[:, None], s.dtype)
    weights = belongs * xp.exp(s[None, :] - mu[:, None])
    total = xp.sum(xp.sum(weights, axis=-1), axis=0)
    return equal(xp.sum(weights @ V, axis=0) / total, softmax(s) @ V)

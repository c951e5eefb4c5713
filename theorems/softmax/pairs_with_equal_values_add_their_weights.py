"""The weights are a distribution on the pairs; on the values it is the image of that one."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, at_least, equal, index_map, real, sizes, theorem
from attnproof.theorems.definitions.attention import softmax

r, n, m = sizes("r n m", "tokens")
(d,) = sizes("d", "features")


@theorem(
    "Weights of pairs with one value add up, and the answer is the mean of that distribution",
    given={
        "S": real(r, n), "U": real(m, d, says="the different values"), "c": index_map(n, m),
    },
    sources=("Ganev, section 2.1 and footnote 2",),
    claims=("GS2.1.4", "GS2.1.1"),
)  # fmt: skip
def statement(S: Array, U: Array, c: Array) -> dict[str, Claim]:
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


@statement.twin_of(
    "listing the first pair twice changes nothing, as in a set", s=real(n), V=real(n, d)
)
def repeated_pair(s: Array, V: Array) -> Claim:
    xp = array_namespace(V)
    scores, values = xp.concat((s, s[:1])), xp.concat((V, V[:1]))
    return equal(values.mT @ softmax(scores), V.mT @ softmax(s))

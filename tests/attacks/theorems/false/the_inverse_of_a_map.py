"""The inverse of a map that has none (false): the order of its values has as many places as it."""

from array_api_compat import array_namespace

from attnproof import Array, Claim, equal, index_below, index_map, inverse, sizes, theorem

n, m = sizes("n m")


@theorem(
    "The inverse of a map stays below what the map stays below",
    given={"f": index_map(n, m), "i": index_below(n)},
    sources=("none",),
)
def statement(f: Array, i: Array) -> Claim:
    """f⁻¹(i) < m for f from the indices below n to those below m (false where n > m)."""
    xp = array_namespace(f)
    return equal(xp.where(inverse(f)[i] < m, 1.0, 0.0), 1)


@statement.negative_control("below half of it")
def half(f: Array, i: Array) -> Claim:
    xp = array_namespace(f)
    return equal(xp.where(2 * inverse(f)[i] < m, 1.0, 0.0), 1)

"""Sines in channels 2i and cosines in channels 2i + 1 fill 2B channels, counted from 0."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, frequencies, positions, real, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sinusoidal

(n,) = sizes("n", "tokens")
(B,) = sizes("B", "blocks")
(C,) = sizes("C", "features")


@theorem(
    "Pairs of a sine and a cosine fill any number of channels",
    given={"p": positions(n), "omega": frequencies(B), "Y": real(n, C)},
    expected="ill-typed",
    sources=("document 000, sinusoidal embedding",),
    claims=("B12",),
)
def statement(p: Array, omega: Array, Y: Array) -> Claim:
    """No statement: B pairs are 2B channels, and C may be odd."""
    xp = array_namespace(p)
    angles = p[:, None] * omega
    pairs = xp.stack((xp.sin(angles), xp.cos(angles)), axis=-1)
    return equal(xp.reshape(pairs, Y.shape), sinusoidal(p, omega))


@statement.twin_of("C = 2B: channels are counted from 0, and i from 0 to B − 1", Y=real(n, 2 * B))
def even(p: Array, omega: Array, Y: Array) -> dict[str, Claim]:
    xp = array_namespace(p)
    angles = p[:, None] * omega
    pairs = xp.stack((Y[:, 0::2], Y[:, 1::2]), axis=-1)
    return {
        "channel 2i": equal(sinusoidal(p, omega)[:, 0::2], xp.sin(angles)),
        "channel 2i + 1": equal(sinusoidal(p, omega)[:, 1::2], xp.cos(angles)),
        "these are all channels, once each": equal(xp.reshape(pairs, Y.shape), Y),
    }

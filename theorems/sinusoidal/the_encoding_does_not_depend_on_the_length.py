"""A longer table of sines and cosines begins with the shorter one, within [−1, 1]."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, at_least, equal, frequencies, positions, sizes, theorem
from attnproof.theorems.definitions.sinusoidal import sine_only, sinusoidal

n, more = sizes("n more", "tokens")
(B,) = sizes("B", "blocks")


@theorem(
    "The first n rows of a longer sinusoidal table are the table of length n",
    given={"p": positions(), "omega": frequencies(B)},
    sources=("document 004, invariance to the sequence length",),
    claims=("R0", "R5"),
)
def statement(p: Array, omega: Array) -> dict[str, Claim]:
    """Positions 0, .., n − 1, alone or followed by more; every entry is at most 1 in size."""
    xp = array_namespace(p)
    short, long = xp.arange(n), xp.arange(n + more)
    entry = p * omega
    return {
        "sines": equal(sine_only(long, omega)[:n], sine_only(short, omega)),
        "sines and cosines": equal(sinusoidal(long, omega)[:n], sinusoidal(short, omega)),
        "a sine is at most 1 in size": at_least(1, xp.sin(entry) ** 2, ("", xp.cos(entry) ** 2)),
        "a cosine is at most 1 in size": at_least(1, xp.cos(entry) ** 2, ("", xp.sin(entry) ** 2)),
    }


@statement.twin_of("positions are divided by the length")
def normalised(omega: Array) -> Claim:
    xp = array_namespace(omega)
    short, long = xp.arange(n) / n, xp.arange(n + more) / (n + more)
    return equal(sinusoidal(long, omega)[:n], sinusoidal(short, omega))

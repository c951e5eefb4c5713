"""Self-attention moves its outputs when its tokens move: equivariant, and not invariant."""

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, equal, greater, positive, theorem
from attnproof.theorems.definitions.attention import attention


def first_output(x: Array, y: Array) -> Array:
    """The first output of self-attention on the tokens x, y, all weight matrices 1."""
    xp = array_namespace(x)
    tokens = xp.stack((x, y))[:, None]
    output: Array = attention(tokens, tokens, tokens)[0, 0]
    return output


@theorem(
    "Of the tokens c, 0 self-attention has a larger first output than of 0, c, for any c > 0",
    given={"c": positive()},
    sources=("document 001, equivariance against invariance",),
    claims=("T1", "T3", "T13"),
)
def statement(c: Array) -> dict[str, Claim]:
    """The token 0 asks for nothing and gets the mean c/2; the token c prefers itself."""
    xp = array_namespace(c)
    zero = xp.zeros(())
    prefers = xp.exp(c * c)
    return {
        "the token 0": equal(first_output(zero, c), c / 2),
        "the token c": equal(first_output(c, zero), c * prefers / (prefers + 1)),
        "not the same": greater(
            first_output(c, zero),
            first_output(zero, c),
            ("e^(c²) − 1 is positive", c * (prefers - 1) / (prefers + 1) / 2),
        ),
    }


@statement.twin_of("the first output of 0, c is the larger one")
def other_way_round(c: Array) -> Claim:
    zero = array_namespace(c).zeros(())
    return greater(first_output(zero, c), first_output(c, zero))

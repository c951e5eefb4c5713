"""A recurrence is neither equivariant nor invariant under permutations."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import Array, Claim, differ, equal, real, theorem
from attnproof.theorems.definitions.hypotheses import nothing
from attnproof.theorems.definitions.recurrence import state_after


def state(a: Array, *tokens: Array) -> Array:
    """The last state of h_t = a h_{t−1} + x_t, from 0."""
    start = array_namespace(a).zeros(())
    last: Array = state_after(len(tokens), start, lambda h, x: a * h + x, tokens)
    return last


def neither_sum_nor_silence(a: Array, x: Array, y: Array) -> list[Any]:
    """a is neither 0 nor 1, x is not 0 and not y."""
    return [differ(a, 0), differ(a, 1), differ(x, 0), differ(x, y)]


@theorem(
    "h ↦ a h + x is neither equivariant nor invariant, for a not 0 or 1",
    given={"a": real(), "x": real(), "y": real()},
    assume=neither_sum_nor_silence,
    sources=("cf. document 001, equivariance against invariance, and on recurrent networks",),
    claims=("T3", "T17"),
)
def statement(a: Array, x: Array, y: Array) -> dict[str, Claim]:
    """Tokens x, y give the states x, a x + y, and y, x give y, a y + x.

    An equivariant map would have swapped the two states; an invariant one would have kept each.
    """
    return {
        "the last state changes": differ(state(a, x, y), state(a, y, x), (a - 1) * (x - y)),
        "and is not swapped with the first": differ(state(a, x, y), state(a, y), a * x),
        "by how much": equal(state(a, x, y) - state(a, y, x), (a - 1) * (x - y)),
    }


@statement.twin_of("the cell adds its tokens up: a = 1", assume=nothing)
def sum_of_tokens(a: Array, x: Array, y: Array) -> Claim:
    one = array_namespace(a).ones(())
    return differ(state(one, x, y), state(one, y, x), x - y)

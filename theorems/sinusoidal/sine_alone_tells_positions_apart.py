"""No two natural numbers have the same sine, since π is irrational."""

from typing import Any

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    differ,
    function,
    natural,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function

(m,) = sizes("m", "features")


@theorem(
    "sin a ≠ sin b for natural numbers a ≠ b",
    given={
        "a": natural("a position"), "b": natural("another position"),
        "rest": function(0, out=(m,), says="any further channels"),
    },
    assume=lambda a, b: [differ(a, b)],
    sources=("document 000, unique positions; document 004, the sine-only form",),
    claims=("B15", "G3.1e", "G3.5c", "G3.6f", "R7", "R11"),
)  # fmt: skip
def statement(a: Array, b: Array, rest: Function) -> dict[str, Claim]:
    """sin a − sin b = 2 cos((a+b)/2) sin((a−b)/2), and neither factor is 0."""
    xp = array_namespace(a)
    product = 2 * xp.cos((a + b) / 2) * xp.sin((a - b) / 2)

    def encoded(n: Array) -> Any:
        return xp.concat((xp.sin(n)[None], rest(n)))

    return {
        "the sine": differ(xp.sin(a), xp.sin(b), product),
        "with any further channels": differ(
            encoded(a),
            encoded(b),
            xp.sin(a),
            ("the first channel", encoded(a)[0]),
            ("if the two were equal", encoded(b)[0]),
            ("the first channel", xp.sin(b)),
            product,
        ),
    }


@statement.twin_of("the frequency is one turn for each step")
def whole_turns(a: Array, b: Array) -> Claim:
    xp = array_namespace(a)
    return differ(xp.sin(2 * xp.pi * a), xp.sin(2 * xp.pi * b))

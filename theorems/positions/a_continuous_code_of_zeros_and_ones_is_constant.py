"""A code of zeros and ones whose digits have intermediate values never changes."""

from __future__ import annotations

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Law,
    chain,
    equal,
    for_all,
    function,
    natural,
    over,
    real,
    rows,
    sizes,
    theorem,
)
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.hypotheses import nothing

(b,) = sizes("b", "features")


def zeros_and_ones(f: Function) -> Law:
    """f_t(x)² = f_t(x): digit t is 0 or 1 everywhere."""
    return for_all({"t": natural(), "x": real()}, lambda t, x: equal(f(t, x) ** 2, f(t, x)))


def halfway(f: Function, c: Function) -> Law:
    """Digit t is the mean of its values at x and at y somewhere: at c_t(x, y)."""
    return for_all(
        {"t": natural(), "x": real(), "y": real()},
        lambda t, x, y: equal(f(t, c(t, x, y)), (f(t, x) + f(t, y)) / 2),
    )


@theorem(
    "A code with values in {0, 1}^b is constant if its digits have intermediate values",
    given={
        "f": function(0, 0, says="digit t of the code of a real position"),
        "c": function(0, 0, 0, says="a place where digit t is the mean of its values at x and y"),
        "x": real(), "y": real(),
    },
    sources=("document 004, binary numerals",),
    claims=("R4b",),
    assume=lambda f, c: [zeros_and_ones(f), halfway(f, c)],
)  # fmt: skip
def statement(f: Function, c: Function, x: Array, y: Array) -> dict[str, Claim | Law]:
    """Continuity is used through the intermediate value theorem, which is quoted and not proved.

    Let u and v be a digit at x and at y, and w = (u + v)/2 the same digit somewhere between.
    """
    digits, means = zeros_and_ones(f), halfway(f, c)

    def differences(t: Array, x: Array, y: Array) -> Claim:
        u, v, w = f(t, x), f(t, y), f(t, c(t, x, y))
        return chain(
            (u - v) ** 2,
            ("u² = u and v² = v", 2 * (u + v) - (u + v) ** 2),
            ("u + v = 2w", 4 * w - 4 * w**2),
            ("w² = w", 0),
        ).with_facts(
            digits.at(t=t, x=x), digits.at(t=t, x=y), means.at(t=t, x=x, y=y),
            digits.at(t=t, x=c(t, x, y)),
        )  # fmt: skip

    square = for_all({"t": natural(), "x": real(), "y": real()}, differences)

    def code(x: Array) -> Array:
        digits: Array = rows(b, lambda t: f(t, x))
        return digits

    return {
        "(u − v)² = 0": square,
        "the code": equal(code(x), code(y)).by_squares().with_facts(
            over(b, lambda t: square.at(t=t, x=x, y=y))
        ),
    }  # fmt: skip


@statement.twin_of("the digit may jump", assume=nothing)
def jumping(x: Array, y: Array) -> Claim:
    def digit(place: Array) -> Array:
        xp = array_namespace(place)
        value: Array = xp.where(place > 0, 1, 0)
        return value

    return equal(digit(x), digit(y))

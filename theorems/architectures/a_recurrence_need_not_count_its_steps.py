"""A recurrent state changes with every token only if the cell makes it."""

from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    equal,
    function,
    iterate,
    natural,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.recurrence import recurrent_cell

p, d = sizes("p d", "features")


@theorem(
    "A cell at rest stays there, so its state does not tell how many steps it took",
    given={
        "f": function(1, 1, out=None, says="any function of a state and a token"),
        "h": real(d), "x": real(p), "W": real(d, d), "U": real(d, p),
        "m": natural("a number of steps"),
    },
    sources=("document 001, on recurrent networks",),
    claims=("T17",),
)  # fmt: skip
def statement(f: Function, h: Array, x: Array, W: Array, U: Array, m: Array) -> dict[str, Claim]:
    """The cell s ↦ h + f(s, x) − f(h, x) is any cell that returns the state h on the token x.

    Without input and bias, tanh(W h + U x + b) is at rest in 0.  A cell that adds 1 does count.
    """
    xp = array_namespace(h)
    zero = xp.zeros(d)

    def silent(t: Array, state: Array) -> Array:  # noqa: ARG001 (the same at every step)
        cell: Array = recurrent_cell(state, xp.zeros(p), W, U, zero)
        return cell

    states = iterate(m, h, lambda t, s: h + f(s, x) - f(h, x))  # noqa: ARG005 (as above)
    counted = iterate(m, zero, lambda t, state: state + 1)  # noqa: ARG005
    return {
        "any cell at rest": equal(states, h).by_induction(m),
        "no input and no bias": equal(iterate(m, zero, silent), zero).by_induction(m),
        "a cell that counts": equal(counted, m + zero).by_induction(m),
    }


@statement.twin_of("the cell need not be at rest")
def not_at_rest(f: Function, h: Array, x: Array, m: Array) -> Claim:
    return equal(iterate(m, h, lambda t, state: f(state, x)), h)  # noqa: ARG005

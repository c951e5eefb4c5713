"""Steps h ↦ A h + b compose to such a step, so they need not be taken one after the other."""

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    equal,
    function,
    natural,
    real,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function
from attnproof.theorems.definitions.recurrence import affine_composite, affine_state

(d,) = sizes("d", "features")

Step = tuple[Array, Array]


def after(second: Step, first: Step) -> Step:
    """The step that takes the first and then the second."""
    (A, b), (C, c) = second, first
    return A @ C, A @ c + b


def taken(step: Step, state: Array) -> Array:
    """A h + b."""
    A, b = step
    return A @ state + b


@theorem(
    "Affine steps compose associatively, and m + k of them are the last k after the first m",
    given={
        "A": real(d, d), "B": real(d, d), "C": real(d, d), "a": real(d), "b": real(d),
        "c": real(d), "h": real(d), "M": function(0, out=(d, d), says="the matrix of step t"),
        "v": function(0, out=(d,), says="the input of step t"),
        "m": natural("steps before the split"), "k": natural("steps after it"),
    },
    sources=("cf. document 001, its table of architectures", "Blelloch 1990, section 1.4.1"),
    claims=("T30",),
)  # fmt: skip
def statement(
    A: Array, B: Array, C: Array, a: Array, b: Array, c: Array, h: Array,
    M: Function, v: Function, m: Array, k: Array,
) -> dict[str, Claim]:  # fmt: skip
    """Both halves can be composed at the same time, and so can theirs: log₂ n rounds for n steps.

    State(m, h) is the state after m steps from h, Composite(m, k) is [A | b] of the k steps from
    step m on, in one.
    """
    one, two, three = (A, a), (B, b), (C, c)
    left_first, right_first = after(after(one, two), three), after(one, after(two, three))
    whole = affine_state(0, m + k, h, M, v)
    first = affine_state(0, m, h, M, v)
    rest = affine_composite(m, k, d, M, v)
    return {
        "the composite": equal(taken(after(one, two), h), taken(one, taken(two, h))),
        "associative, the matrix": equal(left_first[0], right_first[0]),
        "associative, the vector": equal(left_first[1], right_first[1]),
        "split after m steps": chain(
            whole,
            ("a step is composed with those before it", rest[:, :d] @ first + rest[:, d]),
        ).by_induction(k),
    }


@statement.twin_of("the halves are taken in the other order")
def other_order(A: Array, B: Array, a: Array, b: Array, h: Array) -> Claim:
    return equal(taken(after((A, a), (B, b)), h), taken((B, b), taken((A, a), h)))

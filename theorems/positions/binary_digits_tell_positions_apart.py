"""The binary digits of a position: their periods, and when they tell positions apart."""

from typing import Any

from attnproof.symbolic import (
    Array,
    Claim,
    chain,
    differ,
    equal,
    for_all,
    iterate,
    natural,
    sizes,
    theorem,
)  # fmt: skip
from attnproof.symbolic.claim import Law
from attnproof.theorems.definitions.digits import binary_digit, binary_digits
from attnproof.theorems.definitions.hypotheses import nothing
from attnproof.theorems.definitions.powers import number_power

(b,) = sizes("b", "features")


def coded(digits: Any, count: Any) -> Any:
    """Σ_t 2^t · digit_t over the first ``count`` places."""
    return iterate(count, 0, lambda t, total: total + number_power(2, t) * digits(t))


@theorem(
    "b binary digits tell the positions below 2^b apart; digit t has period 2^{t+1}",
    given={
        "i": natural(), "j": natural(), "k": natural(), "a": natural(), "t": natural(),
    },
    sources=("document 004, binary numerals",),
    claims=("R3", "R4"),
    assume=lambda i, j, k, a, t: [
        (i // number_power(2, b), 0), (j // number_power(2, b), 0), differ(i, j),
        (k // number_power(2, t), 2 * a),
    ],
)  # fmt: skip
def statement(i: Array, j: Array, k: Array, a: Array, t: Array) -> dict[str, Claim | Law]:
    """Below 2^b means ⌊i / 2^b⌋ = 0.

    Digit t is 0 where ⌊k / 2^t⌋ is even, as at k = 0, and 1 at k + 2^t, so 2^t is no period.
    The least period divides 2^{t+1} and does not divide 2^t: it is 2^{t+1}.
    """
    telescoped = for_all(
        {"i": natural(), "m": natural()},
        lambda i, m: equal(
            coded(lambda t: binary_digit(i, t), m) + number_power(2, m) * (i // number_power(2, m)),
            i,
        ).by_induction(m),
    )
    period = for_all(
        {"i": natural(), "t": natural()},
        lambda i, t: equal(binary_digit(i + number_power(2, t + 1), t), binary_digit(i, t)),
    )
    own, others = binary_digits(i, b), binary_digits(j, b)
    unit, step = number_power(2, b), number_power(2, t)
    return {
        "the period": period,
        "in an even block": chain(
            binary_digit(k, t), ("⌊k / 2^t⌋ = 2a", 2 * a % 2), ("2a is even", 0)
        ),
        "half a period later": chain(
            binary_digit(k + step, t),
            ("2^t adds 1 to the quotient", (k // step + 1) % 2),
            ("⌊k / 2^t⌋ = 2a", (2 * a + 1) % 2),
            ("2a + 1 is odd", 1),
        ),
        "the digits give the position": telescoped,
        "below 2^b": differ(
            own,
            others,
            i,
            ("its digits", coded(lambda t: binary_digit(i, t), b) + unit * (i // unit)),
            ("i is below 2^b", coded(lambda t: binary_digit(i, t), b) + unit * 0),
            ("and nothing else", coded(lambda t: binary_digit(i, t), b)),
            ("as a list of digits", coded(lambda t: own[t], b)),
            ("if the lists were equal", coded(lambda t: others[t], b)),
            ("as a list of digits", coded(lambda t: binary_digit(j, t), b)),
            ("j is below 2^b", coded(lambda t: binary_digit(j, t), b) + unit * 0),
            ("and nothing else", coded(lambda t: binary_digit(j, t), b) + unit * (j // unit)),
            ("the digits of j", j),
            i - j,
        ).with_facts(telescoped.at(i=i, m=b), telescoped.at(i=j, m=b)),
    }


@statement.twin_of("the positions are i and i + 2^b", assume=nothing)
def beyond(i: Array) -> Claim:
    later = i + number_power(2, b)
    return differ(binary_digits(i, b), binary_digits(later, b), i, ("", later), i - later)

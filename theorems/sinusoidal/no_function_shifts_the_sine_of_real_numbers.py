"""sin(t + s) is no function of sin t for real t; what it is near 0 as a function of sin n."""

from typing import Any

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
    real,
    theorem,
)  # fmt: skip
from attnproof.symbolic.givens import Function, Given
from attnproof.theorems.definitions.hypotheses import nothing


def shifted(F: Function, s: Array, positions: Given) -> Law:
    """F(sin t) = sin(t + s) for every t of that kind."""
    xp = array_namespace(s)
    return for_all({"t": positions}, lambda t: equal(F(xp.sin(t)), xp.sin(t + s)))


def both(F: Function, G: Function, s: Array, r: Array) -> list[Any]:
    """F shifts the sines of all real numbers by s, G those of the natural ones by r."""
    return [shifted(F, s, real()), shifted(G, r, natural())]


@theorem(
    "F(sin t) = sin(t + s) for all real t gives sin s = 0; for natural t, F(−sin δ) = −sin(s + δ)",
    given={
        "F": function(0, says="any function of a number"), "s": real(),
        "G": function(0, says="any function of a number"), "r": real(),
        "p": natural(), "q": natural(),
    },
    assume=both,
    sources=("document 004, the question before its compound angles",),
    claims=("R11",),
)  # fmt: skip
def statement(
    F: Function, G: Function, s: Array, r: Array, p: Array, q: Array
) -> dict[str, Claim | Law]:
    """For an integer s ≠ 0 there is no such F, since sin s ≠ 0.

    Where p is near (2q + 1)π, δ = p − (2q + 1)π is near 0, and G(0) − G(−sin δ) near 2 sin r.
    """
    xp = array_namespace(s)
    law, whole, zero = shifted(F, s, real()), shifted(G, r, natural()), xp.zeros(())

    def turns(q: Array) -> Array:
        angle: Array = (2 * q + 1) * xp.pi
        return angle

    sine = for_all(
        {"t": real(), "q": natural()},
        lambda t, q: equal(xp.sin(t - turns(q)), -xp.sin(t)).by_induction(q),
    )
    return {
        "on the real numbers": chain(
            xp.sin(s),
            ("half a turn changes the sign", (xp.sin(zero + s) - xp.sin(xp.pi + s)) / 2),
            ("F at sin 0", (F(xp.sin(zero)) - xp.sin(xp.pi + s)) / 2),
            ("F at sin π", (F(xp.sin(zero)) - F(xp.sin(xp.pi))) / 2),
            ("sin 0 = sin π", 0),
        ).with_facts(law.at(t=zero), law.at(t=xp.pi)),
        "odd multiples of π change the sign": sine,
        "at 0": equal(G(zero), xp.sin(r)).with_facts(whole.at(t=zero)),
        "and near 0": chain(
            G(-xp.sin(p - turns(q))),
            ("odd multiples of π change the sign", G(xp.sin(p))),
            ("G at sin p", xp.sin(p + r)),
            ("odd multiples of π change the sign", -xp.sin((p + r) - turns(q))),
        ).with_facts(whole.at(t=p), sine.at(t=p, q=q), sine.at(t=p + r, q=q)),
    }


@statement.twin_of("nothing is assumed of F", assume=nothing)
def any_shift(s: Array) -> Claim:
    xp = array_namespace(s)
    return equal(xp.sin(s), xp.zeros(()))

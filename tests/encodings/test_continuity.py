"""Continuity and boundedness by form: what may jump or grow does not pass."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import iterate, rows
from attnproof.symbolic.continuity import Discontinuous, bounded, continuous, whole_valued
from attnproof.symbolic.givens import (
    boolean,
    function,
    index_below,
    index_map,
    natural,
    positive,
    probability_space,
    real,
    sizes,
)
from attnproof.symbolic.terms import Term, make
from tests.cases import each

n, d = sizes("n d")
p, q = real().named("p"), real().named("q")
u = real(n).named("u")
s, c, k = real().named("s"), positive().named("c"), natural().named("k")
m = natural().named("m")
X, M = real(n, d).named("X"), real(d, d).named("M")
f = function(0).named("f")
keep = boolean(n).named("keep")
v = positive().named("v")
VARIABLES = frozenset([p.term, q.term, u.term, v.term])
POSITIVE = frozenset([("positive", c.term)])


def passes(a: Array, facts: frozenset[tuple[str, Term]] = frozenset()) -> bool:
    try:
        continuous(a.term, VARIABLES, facts)
    except Discontinuous:
        return False
    return True


def raised(x: Array, r: Array, below: float = 0, one: float = 1) -> Array:
    """x^r where x is positive, and a number below."""
    held: Array = xp.where(x > 0, x, one)
    found: Array = xp.where(x > 0, xp.exp(r * xp.log(held)), below)
    return found


CONTINUOUS = {
    "a power": raised(p - q, c),
    "a power of an array": raised(xp.abs(u - p), c),
    "a constant": s / s,
    "a floor of a constant": s // 1 + p,
    "a function of constants": f(s) * p,
    "a polynomial": p**3 - 2 * p * q,
    "sines": xp.sin(p * s) + xp.cos(q) * xp.tanh(p),
    "a distance": xp.abs(p - q),
    "a clipped distance": xp.maximum(p - q, xp.zeros(())),
    "over a positive number": p / (1 + p**2),
    "over an exponential": 1 / xp.exp(p),
    "a softmax": xp.exp(u) / xp.sum(xp.exp(u)),
    "log of 1 + |p|": xp.log(1 + xp.abs(p)),
    "log with a positive parameter": xp.log(1 + c * xp.abs(p)),
    "the root of a square": xp.sqrt(p**2),
    "a chosen entry": xp.where(keep, u, 2 * u),
    "an entry": u[index_below(n).named("i")],
    "entries in another order": u[index_map(n, n).named("e")],
    "a table": rows(n, lambda i: p * i),
    "a matrix product": (u[:, None] * X) @ M,
    "a stack of layers": iterate(k, p, lambda t, y: xp.sin(y) * q + t),
    "parts": xp.concat((u, 2 * u)),
    "in pairs": xp.reshape(xp.stack((u, xp.sin(u)), axis=-1), (2 * n,)),
}

JUMPING = {
    "a power of something else": xp.where(p > 0, xp.exp(c * xp.log(xp.where(q > 0, q, 1))), 0),
    "a power from 1 on": xp.where(p > 1, xp.exp(c * xp.log(xp.where(p > 1, p, 1))), 0),
    "a power of any sign": raised(p, s),
    "a power that moves": raised(p, xp.exp(q)),
    "a power by a positive variable": raised(p, v),
    "a power that starts at 1": raised(p, c, below=1),
    "a power with another guard": raised(p, c, one=2),
    "a power of what jumps": raised(p // 1, c),
    "a comparison": xp.astype(p > q, float),
    "a choice by the position": xp.where(p > 0, 1, 0) + 0 * p,
    "a choice that happens to be continuous": xp.where(p > 0, p, 0 * p),
    "a floor": p // 1,
    "a remainder": p % 1,
    "an unknown function": f(p),
    "one over the position": 1 / p,
    "one over a number that may be 0": 1 / (1 + p),
    "one over a square": 1 / p**2,
    "p/p, which is 0 at 0": p / p,
    "one over a distance": 1 / xp.abs(p - q),
    "one over a parameter that moves": 1 / (s + p),
    "a log that may end": xp.log(1 + p),
    "a log of a distance": xp.log(xp.abs(p)),
    "a root that may end": xp.sqrt(1 + p),
    "a sum of logs": rows(n, lambda i: xp.log(p + i)),
    "an exponent 0": Array(make("power", (p.term,), 0)),
    "a negative power of an array": 1 / u,
    "a mask by the position": xp.where(u > 0, u, -xp.inf),
    "a number that may be minus infinity": xp.where(keep, u, -xp.inf),
    "a stack with a jump in the layer": iterate(k, 0 * p, lambda _, y: y + xp.astype(p > 0, float)),
    "a stack with a jump in the state": iterate(k, p, lambda _, y: xp.astype(y > 0, float)),
    "a stack that divides by its state": iterate(k, p, lambda _, y: 1 / y),
    "a start that jumps": iterate(k, p // 1, lambda _, y: y),
    "a jump in one entry of many": xp.concat((u, u // 1)),
    "a jump under a sum": xp.sum(xp.astype(u > p, float)),
}


@each(CONTINUOUS)
def test_what_is_composed_of_continuous_operations_passes(name: str) -> None:
    assert passes(CONTINUOUS[name], POSITIVE)


@each(JUMPING)
def test_what_may_jump_does_not_pass(name: str) -> None:
    assert not passes(JUMPING[name], POSITIVE)


def test_a_sign_needs_its_fact() -> None:
    loose = real().named("loose")
    number = 1 / (1 + loose * p**2)
    assert not passes(number)
    assert passes(number, frozenset([("positive", loose.term)]))


def test_an_expectation_does_not_pass() -> None:
    space = probability_space("Ω")
    z = real(space).named("z")
    with pytest.raises(Discontinuous, match="random"):
        continuous(xp.sum(z * p, axis=0).term, VARIABLES)


def test_continuity_is_asked_in_real_numbers() -> None:
    for strange in (k, keep, index_map(n, n).named("e")):
        with pytest.raises(ValueError, match="continuity is in real numbers"):
            continuous(p.term, frozenset([strange.term]))


def test_the_part_that_stops_the_walk_is_told() -> None:
    with pytest.raises(Discontinuous, match=r"the form of p does not show that it is not 0"):
        continuous((p + 1 / p).term, VARIABLES)


WHOLE = {
    "indicators": xp.astype(p > q, float) * 3 - 1,
    "floors": p // s,
    "natural numbers": k * k + 1,
    "a choice": xp.where(p > 0, k, 2 * k),
    "digits": k // 2 % 2,
    "a count": xp.sum(xp.astype(u > 0, float)),
    "a table of indices": rows(n, lambda i: i * k),
}
FRACTIONS = {
    "a half": p // 1 + 0.5,
    "a choice of reals": xp.where(p > 0, p, k),
    "a quotient": k / 2,
    "a real number": p,
    "a remainder of reals": p % 1,
    "a root": xp.sqrt(k),
    "a sine": xp.sin(k),
    "an unknown function": f(k),
    "an inverse power": (p // 1) ** -1,
    "minus infinity": xp.where(p > 0, k, -xp.inf),
}


@pytest.mark.parametrize("name", WHOLE)
def test_integers_by_form(name: str) -> None:
    assert whole_valued(WHOLE[name].term)


@pytest.mark.parametrize("name", FRACTIONS)
def test_what_need_not_be_an_integer(name: str) -> None:
    assert not whole_valued(FRACTIONS[name].term)


NATURALS = frozenset([k.term, p.term, u.term])
clipped = -xp.maximum(-xp.maximum(k - 3, xp.zeros(()) - 5), xp.zeros(()) - 5)
BOUNDED = {
    "a constant": s * f(s),
    "waves": s * xp.sin(p) + xp.cos(p) * xp.tanh(p),
    "a clipped offset": clipped,
    "a function of a clipped whole offset": f(clipped),
    "a function of what is counted": f(xp.sum(xp.astype(u > s, float))),
    "exp of what falls": xp.exp(-xp.abs(p)),
    "a digit": k // 8 % 2,
    "a remainder of reals": p % c,
    "a choice of two": xp.where(p > 0, s, 2 * s),
    "the square of a wave": xp.sin(p) ** 2,
    "a sum of waves": xp.sum(xp.cos(p * u)),
    "products of waves": xp.sin(u) @ xp.cos(u),
}
UNBOUNDED = {
    "the position": p,
    "its absolute value": xp.abs(p),
    "its square": p**2,
    "clipped on one side": xp.maximum(p, xp.zeros(())),
    "clipped on the other": -xp.maximum(-p, xp.zeros(())),
    "exp": xp.exp(p),
    "exp of a distance": xp.exp(xp.abs(p)),
    "one over it": 1 / p,
    "one over a wave": 1 / xp.sin(p),
    "log of a wave squared": xp.log(xp.sin(p) ** 2),
    "a function of a wave": f(xp.sin(p)),
    "a function of the position": f(k),
    "a real factor times what is bounded below": s * xp.maximum(p, xp.zeros(())),
    "a choice of one that grows": xp.where(p > 0, p, s),
    "a sum with one that grows": xp.sin(p) + p,
    "a wave times the position": p * xp.sin(p),
    "a remainder by the position": k * k % (1 + k),
    "a remainder by what may be 0": p % s,
    "a remainder by a number that may be 0": k % m,
    "a product of two sides": xp.maximum(p, xp.zeros(())) * xp.maximum(-p, xp.zeros(())) * p,
    "a stack as deep as the position": iterate(k, 1, lambda _, y: 2 * y),
    "a quotient": k // 2,
}


@each(BOUNDED)
def test_what_is_made_of_bounded_numbers_is_bounded(name: str) -> None:
    assert bounded(BOUNDED[name].term, NATURALS)


@each(UNBOUNDED)
def test_what_may_grow_is_not(name: str) -> None:
    assert not bounded(UNBOUNDED[name].term, NATURALS)

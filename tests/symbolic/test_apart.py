"""Arrays that differ: a contradiction follows from their equality, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import (
    Array,
    differ,
    index_below,
    natural,
    nonnegative,
    positive,
    real,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import greater
from attnproof.symbolic.derivation import Derivation, Differ, Reflexive, SignStep
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Assumption, Proof, Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain, inside, rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, mul, num, power, unary
from attnproof.symbolic.signs import find_nonzero
from attnproof.symbolic.terms import Term
from tests.cases import each
from tests.symbolic.false_proofs import assumed, gap
from tests.symbolic.interpreter import World, close_to
from tests.symbolic.stating import Said, because, verdict
from tests.symbolic.vocabulary import HALF, PI, TWO, X, Y, a, b, i, n, q, u, v

(N,) = sizes("n")
GIVEN: dict[str, Given] = {
    "a": real(),
    "b": real(),
    "p": positive(),
    "c": nonnegative(),
    "k": natural(),
    "m": natural(),
    "x": real(N),
    "y": real(N),
    "i": index_below(N),
    "j": index_below(N),
}


def first_gap(x: Array, a: Array) -> Any:
    """x + a e_0 is not x, for a ≠ 0: the first entries would be equal."""
    moved = x + a * xp.astype(xp.arange(N) == 0, float)
    return differ(moved, x, moved[0], ("they would be equal", x[0]), a)


def turned(k: Any) -> Any:
    """sin kπ is not 0, which is false."""
    return differ(xp.sin(k * xp.pi), 0, xp.sin(k * xp.pi))


def quarter(k: Any) -> Any:
    """cos(π/2) is not 0, which is false."""
    return differ(xp.cos(xp.pi / 2 + 0 * k), 0, xp.cos(xp.pi / 2 + 0 * k))


TRUE: dict[str, Said] = {
    "an exponential and 0": Said(GIVEN, lambda a: differ(xp.exp(a), 0)),
    "a natural and 1 more": Said(GIVEN, lambda k: differ(k + 1, k, 1 + 0 * k)),
    "a square plus 1": Said(GIVEN, lambda a: differ(a * a + 1, 0, a * a + 1)),
    "the cosine of a natural and 0": Said(GIVEN, lambda k: differ(xp.cos(k), 0, xp.cos(k))),
    "the cosine of half a natural and 0": Said(
        GIVEN, lambda k: differ(xp.cos(k / 2), 0, xp.cos(k / 2))
    ),
    "the sine of 1 and 0": Said(GIVEN, lambda k: differ(xp.sin(0 * k + 1), 0, xp.sin(0 * k + 1))),
    "sines of different naturals": Said(
        GIVEN,
        lambda k, m: differ(
            xp.sin(k) - xp.sin(m), 0, 2 * xp.cos((k + m) / 2) * xp.sin((k - m) / 2)
        ),
        lambda k, m: [differ(k, m)],
    ),
    "a multiple of what is not 0": Said(
        GIVEN, lambda a, p: differ(a * p, 0, a * p), lambda a: [differ(a, 0)]
    ),
    "the other way round": Said(
        GIVEN, lambda a, b: differ(b * 2, 2 * a, 2 * (b - a)), lambda a, b: [differ(a, b)]
    ),
    "by a hypothesis on order": Said(
        GIVEN, lambda a, b: differ(1 * a, b, a - b), lambda a, b: [greater(a, b)]
    ),
    "an array moved in one entry": Said(GIVEN, first_gap, lambda a: [differ(a, 0)]),
    "ones and zeros": Said(
        GIVEN,
        lambda x: differ(
            x * 0 + 1, x * 0, xp.sum(x * 0 + 1, axis=0), ("all are 0", xp.sum(x * 0, axis=0)), N
        ),
    ),
}
FALSE: dict[str, Said] = {
    "a number and itself": Said(GIVEN, lambda a: differ(a, a, a - a)),
    "a number and another": Said(GIVEN, lambda a, b: differ(a, b, a - b)),
    "a natural and 1": Said(GIVEN, lambda k: differ(k, 1, k - 1)),
    "a natural and another": Said(GIVEN, lambda k, m: differ(k, m, k - m)),
    "a square and 0": Said(GIVEN, lambda a: differ(a * a, 0, a * a)),
    "at least 0 and 0": Said(GIVEN, lambda c: differ(c, 0, c)),
    "the sine of a natural and 0": Said(GIVEN, lambda k: differ(xp.sin(k), 0, xp.sin(k))),
    "the cosine of a number and 0": Said(GIVEN, lambda a: differ(xp.cos(a), 0, xp.cos(a))),
    "the sine of a multiple of π": Said(GIVEN, lambda k: turned(k + 1)),
    "the cosine of π/2 and 0": Said(GIVEN, quarter),
    "sines of different numbers": Said(
        GIVEN,
        lambda a, b: differ(
            xp.sin(a) - xp.sin(b), 0, 2 * xp.cos((a + b) / 2) * xp.sin((a - b) / 2)
        ),
        lambda a, b: [differ(a, b)],
    ),
    "sines of naturals": Said(
        GIVEN,
        lambda k, m: differ(
            xp.sin(k) - xp.sin(m), 0, 2 * xp.cos((k + m) / 2) * xp.sin((k - m) / 2)
        ),
    ),
    "indices that may be one": Said(GIVEN, lambda i, j: differ(i, j, i - j)),
    "a sum of what is not 0": Said(
        GIVEN, lambda a, b: differ(a + b, 0, a + b), lambda a, b: [differ(a, 0), differ(b, 0)]
    ),
    "an array moved by any number": Said(GIVEN, first_gap),
    "another hypothesis": Said(GIVEN, first_gap, lambda b: [differ(b, 0)]),
    "the chain does not follow": Said(
        GIVEN, lambda x, y: differ(x, y, x[0], ("no", y[0] + 1), -1 + 0 * x[0])
    ),
    "the form is another number": Said(GIVEN, lambda x, y: differ(x, y, x[0], ("so", y[0]), 1)),
    "of a difference that may be 0": Said(
        GIVEN, lambda x, y: differ(x, y, x[0], ("so", y[0]), x[0] - y[0])
    ),
}


@each(TRUE)
def test_what_differs_always_is_told_apart(name: str) -> None:
    assert verdict(TRUE[name]) == "proved", because(TRUE[name])


@each(FALSE)
def test_what_may_be_equal_is_not(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


def test_two_arrays_want_a_contradiction() -> None:
    with pytest.raises(TypeError, match="contradiction"):
        verdict(Said(GIVEN, lambda x: differ(x, 2 * x)))


# the derivation itself


def apart(left: Term, right: Term, form: Term, *facts: Assumption) -> Derivation:
    """Two numbers that differ by a number of a form."""
    signs = find_nonzero(form, frozenset(facts))[1]
    return Differ(left, right, assumed(left, right), shown(gap(left, right), form), signs)


def shown(t: Term, form: Term) -> Derivation:
    return rewrite("ring", t, form)


def test_a_contradiction_leaves_nothing_assumed() -> None:
    proof = replay(apart(add(a, ONE), a, ONE))
    assert proof.relation == "!="
    assert close(proof, frozenset(), ("!=", add(a, ONE), a)) is proof
    for claimed in (("=", add(a, ONE), a), ("!=", a, add(a, ONE)), ("!=", a, b), (">", a, ZERO)):
        with pytest.raises(Refused, match="something else"):
            close(proof, frozenset(), claimed)


def test_a_fact_that_tells_them_apart_stays() -> None:
    for fact in (("nonzero", gap(a, b)), ("nonzero", gap(b, a)), ("positive", gap(a, b))):
        proof = replay(apart(a, b, gap(a, b), fact))
        assert proof.assumes == {fact}
        with pytest.raises(Refused, match="not granted"):
            close(proof, frozenset(), ("!=", a, b))
    for weak in (("nonnegative", gap(a, b)), ("nonzero", a), ("nonzero", add(a, b))):
        with pytest.raises(Refused, match="its form does not show"):
            replay(apart(a, b, gap(a, b), weak))


def test_what_is_shown_under_the_hypothesis_does_not_refute_it() -> None:
    """That a − b is 1 + 0·a = 1 + 0·b if a is b: the hypothesis stays where it was used."""
    left, right = add(a, ONE), a
    end = [add(ONE, mul(ZERO, side)) for side in (left, right)]
    used = inside(end[0].args[1], [(1, assumed(left, right))])
    by_itself = chain(
        rewrite("ring", gap(left, right), end[0]),
        inside(end[0], [(1, used)]),
        rewrite("ring", add(ONE, used.right), ONE),
    )
    proof = replay(Differ(left, right, assumed(left, right), by_itself))
    assert proof.assumes == {("equal", law(left, right))}
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), ("!=", left, right))


def test_what_the_contradiction_rests_on_stays() -> None:
    """From a = b and b = b + 1 the contradiction comes of the second alone."""
    second = assumed(b, add(b, ONE))
    proof = replay(Differ(a, b, second, rewrite("ring", gap(b, add(b, ONE)), num(-1))))
    assert proof.assumes == {("equal", law(b, add(b, ONE)))}
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), ("!=", a, b))


FORMS = [
    (ONE, True),
    (num(-2), True),
    (q, True),
    (mul(q, num(-1)), True),
    (unary("cos", u), True),
    (unary("sin", n), True),
    (unary("sin", mul(HALF, n)), True),
    (power(add(u, ONE), -1), True),
    (ZERO, False),
    (u, False),
    (a, False),
    (unary("sin", u), False),
    (unary("cos", a), False),
    (unary("sin", mul(PI, n)), False),
    (unary("cos", mul(PI, HALF)), False),
    (gap(u, v), False),
    (power(a, 2), False),
    (unary("tanh", n), True),
    (unary("tanh", i), False),
    (mul(TWO, i), False),
]


@each(FORMS)
def test_only_a_form_that_is_not_0_tells_apart(form: Term, good: bool) -> None:
    derivation = apart(add(a, form), a, form)
    if good:
        assert is_true(replay(derivation))
    else:
        with pytest.raises(Refused, match="its form does not show"):
            replay(derivation)


def is_true(proof: Proof) -> bool:
    worlds = [World(seed) for seed in range(6)]
    return not any(close_to(world(proof.left), world(proof.right)) for world in worlds)


def test_arrays_differ_in_some_entry_and_not_in_every_one() -> None:
    """From X = Y follows X_i = Y_i, and the contradiction may be had at any one place."""
    at = inside(entry(X, i), [(0, assumed(X, Y))])
    with pytest.raises(Refused, match="its form does not show"):
        replay(Differ(X, Y, at, Reflexive(gap(entry(X, i), entry(Y, i)))))
    fact = ("nonzero", gap(entry(X, i), entry(Y, i)))
    proof = replay(Differ(X, Y, at, Reflexive(fact[1]), (SignStep(*fact),)))
    assert proof.relation == "!="
    assert proof.assumes == {fact}

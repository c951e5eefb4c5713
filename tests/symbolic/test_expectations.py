"""Expectations: linear, of constants, of uncorrelated numbers; and nothing that counts outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import (
    Array,
    all_positive,
    at_least,
    differ,
    equal,
    greater,
    permutation,
    probability_space,
    real,
    sizes,
    standard,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.derivation import Cases, Reflexive, Rewrite, SumOfSquares
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.normal_form.equations import rewrite
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.scalars import ONE, ZERO, entry, mul
from attnproof.symbolic.signs import sign
from attnproof.symbolic.terms import Term
from tests.cases import each
from tests.symbolic.interpreter import World, close_to
from tests.symbolic.stating import Said, proof_of_sign, verdict
from tests.symbolic.vocabulary import R, S, outcome, space, spread, total, var
from tests.symbolic.vocabulary import i as at
from tests.symbolic.vocabulary import j as also
from tests.symbolic.vocabulary import z as random

(n,) = sizes("n", "features")
one, other = probability_space("Ω"), probability_space("Ψ")
GIVEN: dict[str, Given] = {
    "X": real(one),
    "Y": real(one),
    "U": real(other),
    "a": real(),
    "b": real(),
    "q": real(n),
    "z": standard(one, n),
    "w": standard(other, n),
    "t": standard(one, n),
    "M": real(n, n),
    "s": permutation(n),
}


def mean(x: Any) -> Any:
    return xp.sum(x, axis=0)


def both(x: Array, y: Array) -> Any:
    """The mean of x y over both experiments."""
    return mean(mean(x[:, None] * y[None, :]))


TRUE: dict[str, Any] = {
    "linear": lambda X, Y, a, b: equal(mean(a * X + b * Y), a * mean(X) + b * mean(Y)),
    "a constant": lambda X, a: equal(mean(X + a), mean(X) + a),
    "one": lambda: equal(mean(xp.ones(one)), 1),
    "variance": lambda X: equal(mean((X - mean(X)) ** 2), mean(X**2) - mean(X) ** 2),
    "independent": lambda X, U: equal(both(X, U), mean(X) * mean(U)),
    "mean": lambda z, q: equal(mean(z @ q), 0),
    "variance of a sum": lambda z, q: equal(mean((z @ q) ** 2), q @ q),
    "covariance": lambda z: equal(mean(z[:, :, None] * z[:, None, :]), xp.eye(n)),
    "covariance of a map": lambda z, M: equal(
        mean((z @ M.mT)[:, :, None] * (z @ M.mT)[:, None, :]), M @ M.mT
    ),
    "in another order": lambda z, s: equal(mean(z[:, s] ** 2), xp.ones(n)),
    "a score": lambda z, w: equal(mean(mean((z @ w.mT) ** 2)), n),
    "shifted": lambda z, a: equal(mean((z + a) ** 2), a * a + 1 + xp.zeros(n)),
}
FALSE: dict[str, Any] = {
    "a product": lambda X, Y: equal(mean(X * Y), mean(X) * mean(Y)),
    "a square": lambda X: equal(mean(X**2), mean(X) ** 2),
    "a constant is not counted": lambda X, a: equal(mean(X * 0 + a), 2 * a),
    "any numbers have mean 0": lambda X: equal(mean(X), 0),
    "the square of a sum": lambda z, q: equal(mean((z @ q) ** 2), xp.sum(q, axis=0) ** 2),
    "a third moment": lambda z: equal(mean(z**3), xp.zeros(n)),
    "a fourth moment": lambda z: equal(mean(z**4), xp.ones(n)),
    "two families of one experiment": lambda z, t: equal(mean(z * t), xp.zeros(n)),
    "a score of one experiment": lambda z, t: equal(mean((z * t) ** 2), xp.ones(n)),
    "every outcome": lambda z: equal(z**2, xp.ones((one, n))),
    "the mean is the number": lambda X: equal(X, mean(X) + 0 * X),
    "a mean of positive numbers is not 0": lambda X: all_positive(mean(X**2)),
    "without its hypothesis": lambda X, Y, a: equal(mean(a * X * Y), a * mean(X)),
}


@each(TRUE)
def test_what_holds_of_expectations_is_proved(name: str) -> None:
    assert verdict(Said(GIVEN, TRUE[name])) == "proved"


@each(FALSE)
def test_what_fails_for_some_random_numbers_is_not(name: str) -> None:
    assert verdict(Said(GIVEN, FALSE[name])) == "undecided"


def test_random_numbers_are_standard_only_if_that_is_given() -> None:
    for kind, expected in ((standard(one, n), "proved"), (real(one, n), "undecided")):
        said = Said({"z": kind}, lambda z: equal(mean(z**2), xp.ones(n)))
        assert verdict(said) == expected
    another = ("standard", var("z2", space, at.args[0], kind="standard"))
    for t, value in pairs():
        proof = replay(rewrite("standard", t))
        assert close(proof, frozenset({("standard", random)}), ("=", t, value)) is proof
        for granted in (frozenset[Assumption](), frozenset({another})):
            with pytest.raises(Refused, match="not granted"):
                close(proof, granted, ("=", t, value))


def test_a_mean_keeps_signs_and_loses_no_more() -> None:
    said = {
        "at_least": lambda X: at_least(mean(X**2), 0),
        "greater": lambda X: greater(mean(xp.exp(X)), 0),
    }
    for name, claim in said.items():
        assert verdict(Said(GIVEN, claim)) == "proved", name
    assert verdict(Said(GIVEN, lambda X: greater(mean(X**2), 0))) == "undecided"
    assert verdict(Said(GIVEN, lambda X: at_least(mean(X), 0))) == "undecided"
    assert sign(total(outcome, mul(entry(R, outcome), entry(R, outcome))))[0] == 1
    assert sign(total(outcome, entry(R, outcome)))[0] == 0


# outcomes are not counted, cut, moved or picked

COUNTING: list[tuple[str, tuple[object, ...]]] = [
    ("cut", (ONE,)),
    ("unroll", ()),
    ("count", ()),
    ("delta", ()),
    ("orthogonal", ()),
]


@pytest.mark.parametrize(("rule", "arguments"), COUNTING, ids=[rule for rule, _ in COUNTING])
def test_a_rule_that_counts_refuses_outcomes(rule: str, arguments: tuple[object, ...]) -> None:
    t = total(outcome, mul(entry(R, outcome), entry(R, outcome)))
    with pytest.raises(Refused, match="not a natural number"):
        RULES[rule](t, *arguments)
    with pytest.raises(Refused, match="not a natural number"):
        replay(Rewrite(rule, t, arguments, t))


def test_a_cover_of_outcomes_is_the_whole_space() -> None:
    """Two arrays that agree at the first outcome, or at some of them, need not agree."""
    ones, place = spread(ONE, space), outcome.args[0]
    for cover in (
        ("each",),
        ("cut", ONE, ("each",), ("whole",)),
        ("digits", ONE, place, ("each",), ("whole",)),
    ):
        with pytest.raises(Refused, match="cover"):
            replay(Cases(ones, ones, (cover,), (Reflexive(entry(ones, ZERO)),)))
    with pytest.raises(Refused, match="not the entry"):
        proof_of_sign(ones, (("whole",),), (Reflexive(entry(ones, ZERO)),))


def test_no_mean_of_squares_makes_random_numbers_equal() -> None:
    """They may differ where nothing ever happens."""
    zero = total(outcome, mul(ZERO, entry(R, outcome)))
    with pytest.raises(Refused, match="sum of squares"):
        replay(SumOfSquares(R, S, Reflexive(zero)))
    said = Said(
        GIVEN, lambda X, Y: equal(X, Y).by_squares(), lambda X, Y: [(mean((X - Y) ** 2), 0)]
    )
    assert verdict(said) == "undecided"


def test_random_numbers_that_differ_may_do_so_without_probability() -> None:
    for told in (
        lambda X: [differ(X, 0)],
        lambda X, Y: [differ(X, Y)],
        lambda z, t: [differ(z, t)],
    ):
        said = Said(GIVEN, lambda X, Y: greater(mean((X - Y) ** 2), 0), told)
        with pytest.raises(TypeError, match="random arrays may differ"):
            verdict(said)


def test_standard_numbers_of_a_world_are_standard() -> None:
    """The interpreter draws them so, exactly, over its outcomes."""
    for seed in range(4):
        world = World(seed)
        for t, value in pairs():
            assert close_to(world(t), world(value))


def pairs() -> list[tuple[Term, Term]]:
    product = total(outcome, mul(entry(random, outcome, at), entry(random, outcome, also)))
    alone = total(outcome, entry(random, outcome, at))
    return [(t, RULES["standard"](t)[0]) for t in (product, alone)]


def test_a_mean_over_outcomes_is_written_as_a_sum() -> None:
    """NumPy would divide by the number of outcomes that were drawn."""
    X = real(one, n).named("X")
    assert xp.mean(X, axis=1).axes == (one.term,)
    with pytest.raises(TypeError, match=r"their expectation is xp.sum\(x, axis=..\)"):
        xp.mean(X, axis=0)

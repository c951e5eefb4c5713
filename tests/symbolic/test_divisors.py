"""Conditions on the reading: what a hypothesis settles is not listed, and all else is."""

from __future__ import annotations

import pytest

from attnproof.symbolic import divisors
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, chain, equal, exists, for_all, greater, iterate, rows
from attnproof.symbolic.derivation import Assume, Rewrite
from attnproof.symbolic.divisors import conditions
from attnproof.symbolic.givens import (
    Given,
    boolean,
    function,
    index_below,
    index_map,
    natural,
    nonnegative,
    probability_space,
    real,
    sizes,
)
from attnproof.symbolic.kernel import law
from attnproof.symbolic.prove import decide
from attnproof.symbolic.scalars import ONE, entry, index, mul, power
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.vocabulary import total

(n,) = sizes("n")
x, y = (real(n).named(name) for name in "xy")
s, c, m = real().named("s"), nonnegative().named("c"), natural().named("m")


def told(*arrays: Array, facts: tuple[tuple[str, Term], ...] = ()) -> set[str]:
    found = conditions(*(a.term for a in arrays), facts=frozenset(facts))
    return {f"{c.value!r} is {c.wanted}" for c in found}


@pytest.mark.parametrize(
    ("array", "fact", "without"),
    [
        (x / s, ("nonzero", s.term), "s is not 0"),
        (1 / s**2, ("nonzero", s.term), "s^2 is not 0"),
        (x / y, ("positive", y.term), "y[i0] is not 0"),
        (xp.sqrt(s), ("nonnegative", s.term), "s is at least 0"),
        (xp.log(s), ("positive", s.term), "s is greater than 0"),
        (1 / xp.sum(x * x), ("positive", xp.sum(x * x).term), "Σ_j x[j]^2 is not 0"),
    ],
)
def test_a_hypothesis_settles_its_condition(
    array: Array, fact: tuple[str, Term], without: str
) -> None:
    assert told(array) == {without}
    assert told(array, facts=(fact,)) == set()


def test_ranges_of_integers_settle_divisors() -> None:
    places, at = index_map(n, n).named("e"), index_below(n).named("i")
    assert told(x / (1 + places), 1 / (n - at)) == set()
    assert told(x / places) == {"e[i0] is not 0"}
    assert told(1 / (n - 1 - at)) == {"n - i - 1 is not 0"}


def test_a_hypothesis_settles_no_other() -> None:
    other = ("nonzero", real().named("t").term)
    assert told(x / s, facts=(other,)) == {"s is not 0"}
    assert told(xp.log(s), facts=(("nonzero", s.term),)) == {"s is greater than 0"}
    assert told(xp.sqrt(s), facts=(("nonzero", s.term),)) == {"s is at least 0"}


AWAY = xp.abs(xp.arange(n)[:, None] - xp.arange(n))
FLOOR, OF_ROWS = function(0).named("f"), function(1, out=(n,)).named("g")
BIT = boolean(n).named("b")
UNDER_A_CHOICE: dict[str, tuple[Array, set[str]]] = {
    "greater": (xp.where(x > 0, 1 / x, 0), set()),
    "at least": (xp.where(x >= 0, 1 / x, 0), {"x[i0] is not 0"}),
    "unlike": (xp.where(x == 0, 0, 1 / x), set()),
    "equal": (xp.where(x == 0, 1 / x, 0), {"x[i0] is not 0"}),
    "the other branch": (xp.where(x > 0, 0, 1 / x), {"x[i0] is not 0"}),
    "in a function": (xp.where(x < 3, 0, xp.exp(2 * xp.log(x / 5))), set()),
    "both of two": (xp.where((x > 0) & (y > 0), xp.log(x) / y, 0), set()),
    "one of two": (
        xp.where((x > 0) | (y > 0), 1 / y, 0),
        {"y[i0] is not 0"},
    ),
    "neither of two": (xp.where((x <= 0) | (y <= 0), 0, xp.log(x) / y), set()),
    "a choice inside another": (xp.where(x > 0, xp.where(y > 0, xp.log(x) / y, 0), 0), set()),
    "any truth value": (xp.where(BIT, 1 / x, 0), {"x[i0] is not 0"}),
    "outside as well": (xp.where(x > 0, 1 / x, 0) + 1 / x, {"x[i0] is not 0"}),
    "a number of another entry": (xp.where(x > 0, xp.sum(1 / x), 0), {"x[i0] is not 0"}),
    "a transpose": (
        xp.where(x[:, None] > x, (1 / (x[:, None] - x)).mT, 0),
        {"-x[i1] + x[i0] is not 0"},
    ),
    "the buckets of T5": (xp.where(AWAY < 8, AWAY, 8 + FLOOR(xp.log(AWAY / 8))), set()),
    "a function of rows": (
        xp.where(x > 0, OF_ROWS(1 / x), 0),
        {"x[i0] is not 0"},
    ),
}


@each(UNDER_A_CHOICE)
def test_what_is_read_under_a_choice_needs_its_property_there_alone(name: str) -> None:
    array, left = UNDER_A_CHOICE[name]
    assert told(array) == left


def test_whole_division_by_what_may_be_nothing() -> None:
    whole = Array(make("floor_divide", (m.term, natural().named("k").term)))
    assert told(whole) == {"k is not 0"}
    assert told(Array(make("remainder", (m.term, (c + 1).term)))) == set()


# what the kernel shows, and nothing else, settles a condition


def test_a_form_that_the_kernel_does_not_reach_settles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(t: Term, _: object = None) -> Rewrite:
        return Rewrite("ring", t, (ONE,), ONE)

    class Wrong:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __call__(self, t: Term) -> Rewrite:
            return wrong(t)

    monkeypatch.setattr(divisors, "opened", wrong)
    assert told(1 / s) == {"s is not 0"}
    monkeypatch.setattr(divisors, "Normaliser", Wrong)
    assert told(1 / s) == {"s is not 0"}
    assert told(1 / (s - s)) == {"s - s is not 0"}


def test_a_form_under_an_assumption_that_nobody_granted_settles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assumed = law(s.term, ONE)
    monkeypatch.setattr(divisors, "opened", lambda t: Assume(t, ONE, assumed))
    assert told(1 / s) == {"s is not 0"}
    assert told(1 / s, facts=(("equal", assumed),)) == set()


def test_the_sign_of_a_kind_is_that_of_a_given_of_the_kind() -> None:
    assert told(1 / c) == {"c is not 0"}
    assert told(xp.sqrt(c)) == set()
    facts = frozenset({("positive", s.term)})
    assert divisors.settled(s.term, "not 0", facts)
    assert not divisors.settled(s.term, "not 0", frozenset({("nonnegative", s.term)}))


def test_a_stack_of_fewer_than_no_layers_is_listed() -> None:
    k = natural().named("k")
    assert told(iterate(m, s, lambda _, y: y * s)) == set()
    assert told(iterate(m - k, s, lambda _, y: y * s)) == {"m - k is at least 0"}
    assert told(iterate(m + k, s, lambda _, y: y / s)) == {"s is not 0"}


def readings(claim: Claim, *hypotheses: tuple[Array, Array], **given: Given) -> tuple[str, ...]:
    pairs = tuple((a.term, b.term) for a, b in hypotheses)
    stated = Statement({"s": real(), "x": real(n), **given}, {"": claim}, pairs)
    (decided,) = decide(stated, refuting=False).claims
    assert decided.verdict == "proved", decided.why
    return decided.readings


def test_conditions_are_those_of_everything_that_is_written() -> None:
    """The sides, the steps between them, a witness, and the hypotheses; under binders too."""
    t = real().named("t")
    assert readings(equal(s / s + s - s / s, s)) == ("s ≠ 0",)
    assert readings(chain(s + s, ("", s + s / t * 0 + s), ("", 2 * s)), t=real()) == ("t ≠ 0",)
    some = exists(real(), "z", lambda z: equal(z, z), witness=1 / s)
    assert readings(some) == ("s ≠ 0",)
    assert readings(equal(s, s), (1 / t, 1 / s), t=real()) == ("s ≠ 0", "t ≠ 0")
    assert readings(equal(rows(n, lambda i: x[i] / s), x / s)) == ("s ≠ 0",)
    assert readings(for_all({"y": real()}, lambda y: equal(s / y, s / y)).claim) == ("y ≠ 0",)


def test_an_expectation_is_taken_to_exist_and_said_to_be() -> None:
    omega = probability_space("Ω")
    z = real(omega).named("z")
    claim = equal(xp.sum(2 * z, axis=0), 2 * xp.sum(z, axis=0))
    assert readings(claim, z=real(omega)) == ("every expectation in the statement exists",)
    assert readings(equal(xp.sum(2 * x, axis=0), 2 * xp.sum(x, axis=0))) == ()


def test_a_witness_at_which_a_divisor_is_0_refutes_nothing() -> None:
    """1/(t·s) = 0 holds where t·s is 0, and nowhere else; 1/0 is no number there."""
    t = real().named("t")
    given = {"s": real(), "t": real()}
    claims = {
        "everywhere 0": equal(1 / (s - s), 1),
        "a root": equal(xp.sqrt(-1 - s * s), s + 7),
        "a logarithm": equal(xp.log(-1 - t * t), t + 7),
        "a remainder": equal(Array(make("remainder", (m.term, (m * 0).term))), m + 7),
        "positive": greater(1 / (s - s), 0),
        "some": exists(real(), "z", lambda z: equal(z * 0, 1 / (s - s) + 1)),
    }
    for says, claim in claims.items():
        stated = Statement({**given, "m": natural()}, {says: claim})
        assert decide(stated, limit_seconds=0.1).verdict == "undecided", says


@pytest.mark.parametrize("name", ["j0", "j1", "t"])
def test_what_is_known_of_an_index_is_not_known_of_one_that_is_summed_over(name: str) -> None:
    """Whatever a given index is called, 1/j is asked to have no j = 0."""
    one = index(name, n.term)
    j = index("s", n.term)
    body = mul(entry(x.term, j), power(j, -1))
    summed = total(j, body)
    found = conditions(summed, facts=frozenset({("positive", one)}))
    assert [c.wanted for c in found] == ["not 0"]
    beside = mul(summed, power(one, -1))
    found = conditions(beside, facts=frozenset({("positive", one)}))
    assert len(found) == 1


# sums of exponentials: what is raised does not matter, and where one is of −∞ does


def places() -> tuple[Array, Array]:
    count = xp.arange(n)
    return count[:, None], count[None, :]


def open_of(scores: Array) -> set[str]:
    """The conditions of a division by the sums of its exponentials."""
    return told(1 / xp.sum(xp.exp(scores), axis=-1))


def test_a_mask_that_shows_a_key_settles_a_sum_whatever_the_scores_are() -> None:
    i, j = places()
    q, k = (real(n, 3).named(name) for name in "qk")
    squares = (q @ k.mT) ** 2
    causal = xp.where(j <= i, squares, -xp.inf)
    added = squares + xp.where(j <= i, 0.0, -xp.inf)
    for scores in (squares, causal, added, xp.where(j <= i, squares / 2 + squares, -xp.inf)):
        assert open_of(scores) == set()


def test_a_mask_that_may_hide_every_key_settles_nothing() -> None:
    i, j = places()
    scores, shown = real(n, n).named("scores"), boolean(n, n).named("shown")
    for gate in (shown, j < i, scores > 0):
        (found,) = open_of(xp.where(gate, 2 * scores, -xp.inf))
        assert found.endswith("is not 0")
        assert "scores" in found  # of what was written, and not of any numbers


def test_what_is_raised_stands_for_any_numbers_and_where_it_is_infinite_stays() -> None:
    i, j = places()
    scores = real(n, n).named("scores")
    hidden = xp.where(j <= i, 3 * scores, -xp.inf).term
    general = divisors.with_any_exponents(make("exp", (hidden,), shape=hidden.shape))
    gate, shown, least = general.args[0].args
    assert (gate, least) == (hidden.args[0], hidden.args[2])
    assert (shown.op, shown.shape) == ("var", hidden.shape)
    plain = (3 * scores).term
    assert divisors.with_any_exponents(plain) is plain

"""Steps to a sign within cases, sums, laws and ranges; and faults that let a false sign through."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic.derivation import Assume, Reflexive, Rewrite, Sign, SignStep
from attnproof.symbolic.kernel import Refused, close, law, replay
from attnproof.symbolic.rules import inequalities
from attnproof.symbolic.rules.inequalities import known_after
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, integer, mul, num, power, unary
from attnproof.symbolic.terms import Opened, Term, free, make, opened, substitute
from attnproof.symbolic.well_formedness import formed
from tests.symbolic.sign_step_cases import (
    A_POS,
    GAP,
    GATE,
    HELD,
    NONNEG,
    POS,
    ROOM,
    SHORT,
    Arguments,
    exp,
    gated,
    given,
    less,
    none_,
)
from tests.symbolic.test_sign_steps import EACH, after
from tests.symbolic.test_sizes import wrong
from tests.symbolic.vocabulary import (
    X,
    Y,
    a,
    b,
    c,
    holds,
    i,
    j,
    less_one,
    minus,
    n,
    q,
    total,
    u,
    under_,
    up_to,
    var,
)


def test_what_is_told_in_a_case_stays_in_it() -> None:
    """b − a >= 0 holds where a <= b, and is neither known after the cases nor assumed."""
    rule, _, kind, t, arguments = EACH[-2]
    step = SignStep(kind, t, rule, arguments)
    known = known_after((step,), over=free(t))
    assert known.known == {(NONNEG, gated): frozenset()}
    assert known.sign(less(b, a)) == (0, frozenset())
    with pytest.raises(Refused):
        known_after((step, SignStep(NONNEG, less(b, a), "total", (less(b, a),))), over=free(t))


def test_what_rests_on_a_given_sign_says_so_through_cases_and_sums() -> None:
    t = add(mul(GATE, c), q)
    told = given(NONNEG, c)
    assert after((told,), SignStep(NONNEG, t, "cases", (GATE, (), ()))) >= {(NONNEG, c)}
    none = SignStep(NONNEG, mul(ZERO, c), "total")
    inner = SignStep(NONNEG, t, "cases", (GATE, (told,), (none,)))
    assert after((), inner) == {(NONNEG, c), (POS, q)}
    summed = total(j, add(power(entry(X, j), 2), c))
    assert after((), SignStep(NONNEG, summed, "every", (j, (told,)))) == {(NONNEG, c)}


def test_what_is_told_of_one_index_in_a_case_is_told_of_no_other() -> None:
    """Where X_j >= 0 for this j, no Σ_j X_j >= 0 follows."""
    at, whole = entry(X, j), total(j, entry(X, j))
    gate = under_(ZERO, at)
    t = add(mul(gate, whole), mul(ZERO, at))
    one = SignStep(NONNEG, at, "total", (less(at, ZERO),))
    every = SignStep(NONNEG, whole, "every", (j, ()))
    first = SignStep(NONNEG, add(mul(ONE, whole), mul(ZERO, at)), "total", (whole,))
    then = SignStep(NONNEG, add(mul(ZERO, whole), mul(ZERO, at)), "total")
    with pytest.raises(Refused, match="not any index"):
        after((), SignStep(NONNEG, t, "cases", (gate, (one, every, first), (then,))))


def test_of_other_conditions_nothing_is_told() -> None:
    inner = GATE.args[0]
    for condition in (
        make("not", (inner,)),
        make("equal", (inner, make("less", (b, a)))),
        make("isin", (a, X)),
        var("on", kind="boolean"),
    ):
        assert inequalities._told(condition) == ([], [])
    gate = holds(make("not", (GATE.args[0],)))
    assert after((), SignStep(POS, add(gate, q), "cases", (gate, (), ()))) == {(POS, q)}


def test_no_sign_comes_by_way_of_an_index_that_may_have_no_value() -> None:
    """z < n − 1 gives n − 2 >= 0, which is false where n is 1 and there is no z."""
    with pytest.raises(Refused, match="no value"):
        known_after(HELD)
    with pytest.raises(Refused, match="no value"):
        replay(Sign(SHORT, (), (Reflexive(SHORT),), (HELD,)))
    assert known_after(HELD, over=free(ROOM)).sign(SHORT) == (1, frozenset())
    t = mul(SHORT, none_)
    assert replay(Sign(t, (), (Reflexive(t),), (HELD,))).relation == ">="
    assert known_after((SignStep(POS, add(none_, ONE), "total", (none_, ONE)),)).known


@pytest.mark.parametrize(
    ("over", "rule", "t", "arguments"),
    [
        ((), "every", total(none_, SHORT), (none_, HELD)),
        ((), "every", total(j, mul(SHORT, none_)), (j, HELD)),
        ((), "cases", mul(GATE, SHORT, none_), (GATE, HELD, HELD)),
        ((none_,), "every", total(j, SHORT), (j, HELD)),
        ((none_,), "cases", mul(GATE, SHORT), (GATE, HELD, HELD)),
    ],
)
def test_what_a_step_speaks_of_has_a_value_in_the_steps_within(
    over: tuple[Term, ...], rule: str, t: Term, arguments: Arguments
) -> None:
    step = SignStep(NONNEG, t, rule, arguments)
    assert known_after((step,), over=frozenset(over)).known == {(NONNEG, t): frozenset()}
    if over:
        with pytest.raises(Refused, match="no value"):
            known_after((step,))


def test_what_rises_everywhere_rests_on_no_sign() -> None:
    gap = given(NONNEG, less(b, q))
    for f in ("exp", "tanh"):
        step = SignStep(NONNEG, less(unary(f, b), unary(f, q)), "rising", (f, q, b))
        assert after((gap,), step) == {(NONNEG, less(b, q))}


def test_no_argument_of_a_rule_has_an_index_that_may_have_no_value() -> None:
    """What is shown with z < n − 1 is shown where n is at least 2."""
    turned = add(b, a)
    assert replay(Rewrite("ring", add(a, b), (turned, add(ONE, n)), turned)).right is turned
    with pytest.raises(Refused, match="no value"):
        replay(Rewrite("ring", add(a, b), (turned, add(ONE, none_)), turned))


def test_no_case_makes_an_index_another_by_what_stands_in_its_range() -> None:
    """Of two indices below n + 0·[a <= b] and n + 0·1 what holds of one is not said of the other.

    The number is X_w where X_v >= 0 and X_u >= 0, and w is v where a <= b, and u elsewhere.
    """
    w, v, u_ = (entry(X, index("w", add(n, mul(ZERO, one)))) for one in (GATE, ONE, ZERO))
    t = mul(up_to(ZERO, v), up_to(ZERO, u_), w)
    ways = list[tuple[SignStep]]()
    for at in (v, u_):
        gate, case = up_to(ZERO, at), mul(up_to(ZERO, v), up_to(ZERO, u_), at)
        holds_ = SignStep(NONNEG, at, "total", (less(at, ZERO),))
        fails = SignStep(NONNEG, substitute(case, gate, ZERO), "total")
        ways.append((SignStep(NONNEG, case, "cases", (gate, (holds_,), (fails,))),))
    with pytest.raises(Refused, match="'index' does not fit"):
        replay(Sign(t, (), (Reflexive(t),), ((SignStep(NONNEG, t, "cases", (GATE, *ways)),),)))


@pytest.mark.parametrize(
    "range_",
    [
        add(n, mul(ZERO, a)),
        add(n, mul(ZERO, unary("abs", a))),
        add(n, mul(ZERO, make("bound", data=0))),
        make("remainder", (add(i, mul(ZERO, GATE)), n)),
    ],
)
def test_an_index_ranges_below_what_no_rule_replaces(range_: Term) -> None:
    with pytest.raises(Refused, match="'index' does not fit"):
        formed(index("w", range_))
    assert formed(index("w", add(i, mul(u, n)))).op == "index"


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (SignStep("negative", a), "no sign|not of a number"),
        (SignStep(POS, a, "magic"), "no such rule"),
        (SignStep(POS, make("add", (X, a)), "given"), "does not fit"),
        (SignStep(POS, a, "total", (make("add", (X, a)),)), "does not fit"),
        (SignStep(POS, make("bound", data=0), "given"), "not of a number"),
        (SignStep(POS, a, "total", ({},)), "not a term"),
    ],
)
def test_a_step_that_means_nothing_is_refused(step: SignStep, why: str) -> None:
    left = mul(a, power(a, -1))
    with pytest.raises(Refused, match=why):
        replay(Rewrite("ring", left, (ONE, a), ONE, (step,)))


def test_steps_stand_where_a_sign_is_asked_and_once_for_each_case() -> None:
    with pytest.raises(Refused, match="uses no signs"):
        replay(Rewrite("exchange", a, (), a, (A_POS,)))
    with pytest.raises(Refused, match="not one equation for each case"):
        replay(Sign(a, (), (Reflexive(a),), ((A_POS,), (A_POS,))))


def test_a_sign_by_steps_is_a_proof_under_what_they_are_given() -> None:
    t = less(exp(b), exp(a))
    steps = (GAP, SignStep(NONNEG, t, "rising", ("exp", a, b)))
    proof = replay(Sign(t, (), (Reflexive(t),), (steps,)))
    fact = (NONNEG, less(b, a))
    assert proof.relation == ">="
    assert proof.assumes == {fact}
    close(proof, frozenset({fact}), (">=", t, ZERO))
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), (">=", t, ZERO))


def test_a_range_is_shown_by_steps_that_rest_on_what_is_granted() -> None:
    t, short = entry(X, ONE), less_one(less_one(n))
    proof, fact = replay(Reflexive(t)), (NONNEG, short)
    with pytest.raises(Refused, match="outside of its axis"):
        close(proof, frozenset({fact}), ("=", t, t))
    close(proof, frozenset({fact}), ("=", t, t), (SignStep(*fact),))
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), ("=", t, t), (SignStep(*fact),))
    at = make("floor_divide", (t, ONE))
    outer = entry(Y, at)
    facts = [(NONNEG, at), (NONNEG, integer(add(n, num(-1), mul(num(-1), at)))), fact]
    told = tuple(SignStep(*one) for one in facts)
    with pytest.raises(Refused, match="what shows a range reads outside"):
        close(replay(Reflexive(outer)), frozenset(facts), ("=", outer, outer), told)


def test_what_is_known_of_an_index_is_not_known_of_a_bound_one_of_its_name() -> None:
    """From j0 >= 1 for a given j0 no X_{j − 1} is inside for every j that is summed over."""
    for name in ("j0", "j1"):  # by which a binder would be opened
        at = index(name, n)
        fact = (NONNEG, less_one(at))
        t = total(j, entry(X, less_one(j)))
        for side in (t, mul(t, entry(X, at))):
            with pytest.raises(Refused, match="outside of its axis"):
                close(
                    replay(Reflexive(side)), frozenset({fact}), ("=", side, side), (given(*fact),)
                )
    t = total(j, entry(X, less_one(j)))
    fact = (NONNEG, less_one(opened(n, t)))
    with pytest.raises(Refused, match="mentions an open index"):
        close(replay(Reflexive(t)), frozenset({fact}), ("=", t, t), (given(*fact),))
    there = entry(X, less_one(j))
    fact = (NONNEG, less_one(j))
    close(replay(Reflexive(there)), frozenset({fact}), ("=", there, there), (given(*fact),))


def test_what_is_known_of_a_variable_is_not_known_of_one_that_a_law_binds() -> None:
    """From any0 < n for a given any0, X_m is not inside for all natural m that a law speaks of."""
    named = make("var", (), ("any0", "natural"))  # by which the variable of a law would be opened
    fact = (NONNEG, integer(add(n, num(-1), minus(named))))
    told = law(entry(X, u), ZERO, (u,))
    proof = replay(Assume(entry(X, ZERO), ZERO, told, (ZERO,)))
    facts = frozenset({fact, ("equal", told)})
    with pytest.raises(Refused, match="outside of its axis"):
        close(proof, facts, ("=", entry(X, ZERO), ZERO), (given(*fact),))
    opened_one = make("var", (), (Opened((told, "any0")), "natural"))
    fact_of_it = (NONNEG, integer(add(n, num(-1), minus(opened_one))))
    with pytest.raises(Refused, match="mentions an open index"):
        close(proof, facts | {fact_of_it}, ("=", entry(X, ZERO), ZERO), (given(*fact_of_it),))
    told = law(entry(X, named), ZERO)
    proof = replay(Assume(entry(X, named), ZERO, told))
    facts = frozenset({fact, ("equal", told)})
    close(proof, facts, ("=", entry(X, named), ZERO), (given(*fact),))


EVERY: dict[str, Any] = {"_at_least": lambda *_: ([1, 1], frozenset())}
LOWER = SignStep(NONNEG, mul(ONE, less(a, b)), "total", (less(a, b),))
FAULTS: list[tuple[str, dict[str, Any], tuple[SignStep, ...], SignStep]] = [
    (
        "the sum of other numbers",
        {"same_polynomial": lambda *_: True},
        (),
        SignStep(POS, minus(q), "total", (q,)),
    ),
    ("signs that are not known", EVERY, (), SignStep(NONNEG, a, "total", (a,))),
    (
        "the cosine rises",
        {"LEAST": {"cos": 0}},
        (GAP,),
        SignStep(NONNEG, less(unary("cos", b), unary("cos", a)), "rising", ("cos", a, b)),
    ),
    (
        "1/x falls through 0",
        {"LEAST": {"power": 0}},
        (GAP,),
        SignStep(NONNEG, less(power(a, -1), power(b, -1)), "rising", ("power", a, b)),
    ),
    (
        "any number is whole",
        {"is_integer": lambda _: True},
        (A_POS,),
        SignStep(NONNEG, less(a, ONE), "whole", (a,)),
    ),
    (
        "the ranges settle all",
        {"always_less": lambda *_: True},
        (),
        SignStep(POS, less(i, ONE), "ranges"),
    ),
    (
        "a case tells the opposite",
        {"_told": lambda c: ([(POS, less(*c.args))], [])},
        (),
        SignStep(
            NONNEG,
            mul(GATE, less(a, b)),
            "cases",
            (GATE, (LOWER,), (SignStep(NONNEG, mul(ZERO, less(a, b)), "total"),)),
        ),
    ),
    ("an index that has no value", {"inhabited": lambda _: None}, HELD[:1], HELD[1]),
]


@pytest.mark.parametrize(("says", "patches", "before", "false"), FAULTS)
def test_a_planted_fault_lets_a_false_sign_through(
    says: str,
    patches: dict[str, Any],
    before: tuple[SignStep, ...],
    false: SignStep,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Refused):
        after(before, false)
    for name, value in patches.items():
        monkeypatch.setattr(inequalities, name, value)
    assert wrong(false.number, 2 if false.kind == POS else 1, after(before, false)), says

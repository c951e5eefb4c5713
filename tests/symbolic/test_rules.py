"""Every rule against numbers: what it says is equal is equal, and what it must refuse it does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.derivation import Rewrite
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.normal_form.polynomial import expand, to_term
from attnproof.symbolic.rules import RULES
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, integer, mul, num, power, size
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.rule_cases import CAUSE, EXP, HOLDS, TOTAL
from tests.symbolic.rule_refusals import NOT_GRANTED, REFUSED, F, G
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    X,
    a,
    b,
    granted_by_kind,
    holds,
    i,
    j,
    k,
    m,
    minus,
    n,
    q,
    same,
    var,
)


def worlds(count: int = 12, largest: int = 3) -> list[World]:
    return [World(seed, largest) for seed in range(count)]


def agreements(before: Term, after: Term, count: int = 12) -> list[bool]:
    """Whether two terms agree, in every world where both have a value."""
    found = []
    for world in worlds(count):
        try:
            found.append(close_to(world(before), world(after)))
        except Undefined:
            continue
    return found


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _, _ in HOLDS} == set(RULES)


@each(HOLDS)
def test_a_rule_keeps_the_value(rule: str, t: Term, arguments: tuple[object, ...]) -> None:
    after, assumed = RULES[rule](t, *arguments)
    proof = replay(Rewrite(rule, t, arguments, after))
    told = {("equal", x) for name, x in assumed if name == "equal"}
    told |= {(name, x) for name, x in assumed if name in ("equivariant", "invariant")}
    close(proof, granted_by_kind(t, after) | told, ("=", t, after))
    found = agreements(t, after)
    assert len(found) >= 4
    assert all(found)


integers = st.integers(-3, 3)
atoms = st.sampled_from([a, b, EXP, q, TOTAL, entry(X, i), holds(CAUSE)])


def larger(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    sums = st.lists(inner, min_size=2, max_size=3).map(lambda parts: add(*parts))
    products = st.lists(inner, min_size=2, max_size=3).map(lambda parts: mul(*parts))
    powers = st.tuples(inner, st.integers(0, 3)).map(lambda x: power(*x))
    inverses = st.tuples(atoms, st.integers(-2, -1)).map(lambda x: power(*x))
    return sums | products | powers | inverses


numbers = st.recursive(atoms | integers.map(num), larger, max_leaves=6)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(numbers, st.integers(0, 99))
def test_an_expanded_polynomial_has_the_same_value(t: Term, seed: int) -> None:
    target = to_term(expand(t))
    cancelled = tuple(x for x in (q, EXP) if target is not t)
    after, _ = RULES["ring"](t, target, *cancelled)
    world = World(seed)
    assert close_to(world(t), world(after))
    for false in (add(target, ONE), add(target, mul(HALF, a)), mul(target, num(2)), minus(target)):
        if not close_to(world(target), world(false)):
            with pytest.raises(Refused):
                RULES["ring"](t, false, *cancelled)


places = st.sampled_from([i, j, k, n, m, ONE, TWO, ZERO])
linear = st.lists(st.tuples(integers, places, places), max_size=4).map(
    lambda parts: add(*(mul(num(z), x, y) for z, x, y in parts))
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(linear, linear, st.sampled_from(["equal", "less", "less_equal"]))
def test_a_decided_comparison_is_decided_rightly(x: Term, y: Term, op: str) -> None:
    t = holds(make(op, (x, y)))
    for source, rule, arguments in ((t, "decide", ()), (same(x, y), "digits", (m,))):
        try:
            after, _ = RULES[rule](source, *arguments)
        except Refused:
            continue
        assert all(agreements(source, after, 8))
    assert all(agreements(x, integer(x), 4))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(linear, st.sampled_from([m, TWO, mul(TWO, m), n]))
def test_a_division_that_is_done_is_done_rightly(x: Term, width: Term) -> None:
    for op in ("floor_divide", "remainder"):
        t = make(op, (x, width))
        try:
            after, _ = RULES["divide"](t)
        except Refused:
            continue
        assert all(agreements(t, after, 8))


def test_an_exponent_may_be_large() -> None:
    large = 10**18
    after, _ = RULES["ring"](mul(power(a, large), power(a, large)), power(a, 2 * large))
    assert after is power(a, 2 * large)
    with pytest.raises(Refused):
        RULES["ring"](power(a, large), power(a, large + 1))


def test_symbols_do_not_collide_with_those_of_the_polynomial_ring() -> None:
    x0, x1 = var("x0"), var("x1")
    with pytest.raises(Refused):
        RULES["ring"](x0, x1)
    with pytest.raises(Refused):
        RULES["ring"](mul(x0, x1), ONE, q)
    assert size("x0") is not x0
    assert num(Fraction(1, 2)) is HALF


# What every rule must refuse: each line would be false, or would rest on nothing.


def test_every_rule_is_seen_to_refuse() -> None:
    always = {"image", "equivariance", "exchange"}
    assert {rule for rule, _, _ in REFUSED} | always == set(RULES)


@each(REFUSED)
def test_a_rule_refuses(rule: str, t: Term, arguments: tuple[object, ...]) -> None:
    with pytest.raises(Refused):
        RULES[rule](t, *arguments)


@pytest.mark.parametrize(("rule", "t", "arguments"), NOT_GRANTED)
def test_an_assumption_of_nobody_closes_nothing(
    rule: str, t: Term, arguments: tuple[object, ...]
) -> None:
    after, _ = RULES[rule](t, *arguments)
    proof = replay(Rewrite(rule, t, arguments, after))
    known = {("equivariant", make("function", data=F)), ("invariant", make("function", data=G))}
    granted = granted_by_kind(t, after) | known
    with pytest.raises(Refused, match="not granted"):
        close(proof, granted, ("=", t, after))

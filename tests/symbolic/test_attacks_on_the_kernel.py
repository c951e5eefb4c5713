"""Steps by which something false once followed: the kernel refuses each of them.

Every derivation here was written against the kernel, not found by the prover.  Where it is short
to say so, the test names the false equation that the step led to.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from attnproof.symbolic.derivation import (
    Assume,
    Cases,
    Derivation,
    Differ,
    Induction,
    NaturalInduction,
    Reflexive,
    Rewrite,
    SignStep,
    Under,
    Witness,
)
from attnproof.symbolic.kernel import Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain, rewrite
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.signs import sign as by_form
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.signs import sign
from attnproof.symbolic.terms import Term, bind, make, opened
from tests.symbolic.stating import proof_of_sign
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    L,
    a,
    b,
    bound,
    c,
    case,
    chosen,
    i,
    j,
    less_one,
    minus,
    n,
    outcome,
    same,
    stack,
    table,
    total,
    u,
    under_,
    up_to,
    var,
    z,
)

NOTHING = frozenset[Assumption]()
WHOLE: tuple[object, ...] = ("whole",)
BELOW_0 = index("k", ZERO)
STATE, LAYER = bound(var("y")), bound(index("t", L))


def value(at: Term) -> Term:
    """F(at), a number of which nothing is known."""
    return make("call", (at,), ("F", 0, ()))


def apart(x: Term, y: Term, difference: Term) -> Differ:
    """x is not y, for numbers written in figures."""
    gap = rewrite("ring", add(x, minus(y)), difference)
    return Differ(x, y, Assume(x, y, law(x, y)), gap)


# a proof of one relation is no proof of another


def test_what_differs_is_no_equation_with_a_witness() -> None:
    """0·0 is not 1, from which no x with 0·x = 1 follows."""
    part = apart(mul(ZERO, ZERO), ONE, num(-1))
    assert replay(part).relation == "!="
    with pytest.raises(Refused, match="witness: it shows != and not ="):
        replay(Witness(a, ZERO, (), (mul(ZERO, a), ONE), part))


def test_what_differs_from_a_positive_number_is_not_positive() -> None:
    """−1 is not 1, and 1 > 0; −1 > 0 does not follow."""
    part = apart(num(-1), ONE, num(-2))
    assert replay(part).relation == "!="
    with pytest.raises(Refused, match="sign: a part is not an equation"):
        proof_of_sign(num(-1), (), (part,))


# induction


def test_the_step_of_an_induction_has_the_equation_at_one_number_only() -> None:
    """Every natural number would be 0: m + 1 = 0 by the equation at m + 1 itself."""
    before, after = law(u, ZERO, (u,)), add(u, ONE)
    step = Assume(after, ZERO, before, (after,))
    with pytest.raises(Refused, match="the number may not be a further variable"):
        replay(NaturalInduction(u, ZERO, u, Reflexive(ZERO), step, (u,)))


def test_the_hole_of_a_context_stands_for_any_number() -> None:
    """What is said of a stack with a natural number in its place may not be said of the stack."""
    layers = stack(a, LAYER, STATE, STATE)
    parts = (Reflexive(a), Reflexive(STATE))
    replay(Induction(layers, layers, b, b, LAYER, STATE, *parts))
    with pytest.raises(Refused, match="not a variable of the stack"):
        replay(Induction(layers, layers, u, u, LAYER, STATE, *parts))


def never_below_itself() -> Derivation:
    """[y <= y − 1] = 0, true of every number y and not of minus infinity."""
    gate = up_to(STATE, add(STATE, minus(ONE)))
    moved = rewrite("comparison", gate, ZERO, num(-1))
    return chain(moved, rewrite("decide", moved.right))


def test_the_state_of_a_stack_from_minus_infinity_is_no_number() -> None:
    """One layer of [y <= y − 1] on minus infinity is 1, and no layer of zeros is."""
    gate = never_below_itself()
    for start in (a, MINUS_INFINITY):
        left, right = (stack(start, LAYER, STATE, side) for side in (gate.left, gate.right))
        steps: tuple[Derivation, ...] = (
            Under(left, (LAYER, STATE), gate, right),
            Induction(left, right, b, b, LAYER, STATE, Reflexive(start), gate),
        )
        for step in steps:
            if start.finite:
                assert replay(step).right is right
                continue
            with pytest.raises(Refused, match="a state may be infinite"):
                replay(step)


# covers


@pytest.mark.parametrize(
    "cover",
    [
        ("cut", BELOW_0, WHOLE, WHOLE),
        ("cut", add(BELOW_0, ONE), WHOLE, WHOLE),
        ("digits", add(TWO, BELOW_0, minus(BELOW_0)), ONE, WHOLE, WHOLE),
        ("digits", ONE, add(TWO, BELOW_0, minus(BELOW_0)), WHOLE, WHOLE),
        ("cut", index("k", TWO), WHOLE, WHOLE),
    ],
)
def test_an_axis_is_not_cut_at_an_index(cover: tuple[object, ...]) -> None:
    """Of an index below 0 everything holds: (1, 1) would be (1, 0), entry by entry."""
    first = table(index("x", TWO), ONE)
    second = table(index("x", TWO), same(index("x", TWO), ZERO))
    with pytest.raises(Refused, match="cover: not"):
        replay(Cases(first, second, (cover,), ()))


# what ranges over nothing


@pytest.mark.parametrize(
    "length",
    [
        a,
        HALF,
        add(num(5), minus(a)),
        unary("abs", add(i, minus(j))),
        unary("indicator", make("equal", (a, ZERO))),
        stack(ONE, LAYER, STATE, STATE),
        make("bound", data=0),
        add(n, make("bound", data=1)),
    ],
)
def test_an_index_ranges_below_a_whole_number_that_is_bound_nowhere(length: Term) -> None:
    """Below 3/2 stands 1, which is not 3/2 − 1; and below a bound index there may be nothing."""
    with pytest.raises(Refused, match="'index' does not fit"):
        replay(Reflexive(add(index("k", length), ONE)))


def test_a_sum_is_not_taken_over_an_index_below_its_own_index() -> None:
    """[k <= −1] = 0 and = 1 for the k below i, if i is below 1: the sum over i would be both."""
    outer = index("i", ONE)
    inner = up_to(index("k", outer), num(-1))
    for rule in ("decide", "turned"):
        one = rewrite(rule, inner)
        with pytest.raises(Refused, match="'index' does not fit"):
            replay(Under(total(outer, inner), (outer,), one, total(outer, one.right)))


def test_a_comparison_is_not_decided_below_half_a_number() -> None:
    """[i + j < 4] = 1 for i < 3/2 and j < 5 − 3/2 is false at i = 1, j = 3."""
    x, y = index("x", num(Fraction(3, 2))), index("y", num(Fraction(7, 2)))
    gate = under_(add(x, y), num(4))
    with pytest.raises(Refused, match="term"):
        replay(Rewrite("decide", gate, (), ONE))


def test_a_distance_is_not_opened_in_the_range_of_an_index() -> None:
    """[|2| = 2]·k for k < |2| is not [|2| = 2]·k′ for the k′ < 2, which is another index."""
    gap = add(TWO, minus(ZERO))
    distance = unary("abs", gap)
    equal = same(distance, gap)
    left, right = (mul(equal, index("k", length)) for length in (distance, gap))
    with pytest.raises(Refused, match="'index' does not fit"):
        replay(Rewrite("equals for equals", left, (distance, gap), right))


def test_a_stack_has_a_whole_number_of_layers() -> None:
    """Half a layer means nothing, nor do as many layers as another stack ends in."""
    for depth in (a, HALF, add(num(5), minus(a)), stack(ONE, LAYER, STATE, STATE)):
        layers = make("iterate", (depth, ZERO, bind(add(STATE, ONE), LAYER, STATE)))
        with pytest.raises(Refused, match="'iterate' does not fit"):
            replay(Reflexive(layers))


# what stands in an index array outside of its axis


def test_a_map_of_no_indices_has_no_entry() -> None:
    """For n = 1 no k < n − 1 is s(0), and s(0) < n − 1 is false."""
    length = less_one(n)
    shown = index("k", length)
    maps = [var("s", length, kind=kind, below=length) for kind in ("permutation", "index map")]
    for one in (*maps, make("inverse", (maps[0],), shape=(length,))):
        outside = entry(one, ZERO)
        with pytest.raises(Refused, match="decide"):
            replay(Rewrite("decide", under_(outside, length), (), ONE))
        with pytest.raises(Refused, match="delta"):
            replay(Rewrite("delta", total(shown, same(shown, outside)), (), ONE))


# signs


def test_the_exponential_of_minus_infinity_is_not_positive() -> None:
    """exp(x) + 1 + cos c is 0 at x = −∞, c = π."""
    x = chosen(make("less_equal", (a, b)), a, MINUS_INFINITY)
    for start, relation in ((a, ">"), (x, ">=")):
        t = add(unary("exp", start), ONE, unary("cos", c))
        proof = proof_of_sign(t, (), (Reflexive(t),))
        assert proof.relation == relation
    with pytest.raises(Refused, match="something else"):
        close(proof, NOTHING, (">", t, ZERO))


def test_a_fact_about_one_index_is_none_about_every_entry() -> None:
    """From F(i0) > 0 no positive array follows, though the index of the cover is printed i0."""
    array = table(i, value(i))
    for first, words in ((index("i0", n), "not the entry of that case"), (case(array), "open")):
        assert repr(first) == "i0"
        part = rewrite("entry", entry(array, first))
        facts = frozenset({("positive", value(first))})
        with pytest.raises(Refused, match=words):
            proof_of_sign(array, (WHOLE,), (part,), facts)


def test_a_fact_about_one_index_is_none_about_every_term_of_a_sum() -> None:
    """From F(j0) > 0 no positive Σ_j F(j) follows, though j0 is what the rule calls its index."""
    t = total(j, value(j))
    facts = frozenset({("positive", value(index("j0", n)))})
    with pytest.raises(Refused, match="does not show its sign"):
        proof_of_sign(t, (), (Reflexive(t),), facts)


def test_a_fact_about_what_is_open_is_none_about_what_a_sign_opens() -> None:
    """Nor are two indices one that are open at a time: Σ_j Σ_k F(j)·F(k) is no sum of squares."""
    t, layers = total(j, value(j)), stack(TWO, LAYER, STATE, mul(STATE, value(LAYER)))
    for whole, length in ((t, n), (layers, L)):
        for at in (opened(length, whole), opened(length, whole, NOTHING), opened(length)):
            facts = frozenset({("positive", value(at))})
            assert by_form(whole, facts)[0] == 0
            assert by_form(value(at), facts)[0] == 2
    assert by_form(total(i, total(j, mul(value(i), value(j)))))[0] == 0
    assert by_form(total(i, mul(value(i), value(i))))[0] == 1


def test_a_fact_about_one_number_is_none_about_the_state_of_a_stack() -> None:
    """From y0 − 1 not 0 no layer s ↦ (s − 1)² of positive numbers is positive: s may be 1."""
    number = var("y0", kind="positive")
    square = power(add(STATE, minus(ONE)), 2)
    t = stack(TWO, LAYER, STATE, square)
    facts = frozenset({("nonzero", add(number, minus(ONE)))})
    assert sign(power(add(number, minus(ONE)), 2), facts)[0] == 2
    with pytest.raises(Refused, match="does not show its sign"):
        proof_of_sign(t, (), (Reflexive(t),), facts)


def test_a_fact_about_one_index_is_none_about_every_layer() -> None:
    """From F(j0) > 0 no layers s ↦ s·F(t) of positive numbers follow."""
    t = stack(TWO, LAYER, STATE, mul(STATE, value(LAYER)))
    facts = frozenset({("positive", value(index("j0", L)))})
    with pytest.raises(Refused, match="does not show its sign"):
        proof_of_sign(t, (), (Reflexive(t),), facts)


# random numbers


def test_the_rows_of_an_array_are_no_outcomes() -> None:
    """Over one row E z = 0 and E z² = 1 would give 0 = 1."""
    rows_, w = var("z", ONE, ONE, kind="standard"), index("w", ONE)
    number = entry(rows_, w, ZERO)
    for body, after in ((number, ZERO), (mul(number, number), same(ZERO, ZERO))):
        with pytest.raises(Refused, match="not over the outcomes"):
            replay(Rewrite("standard", total(w, body), (), after))
    replay(rewrite("standard", total(outcome, entry(z, outcome, i))))


# 1/0 is 0


def test_a_factor_that_is_1_for_every_number_may_stand_at_0() -> None:
    """b⁰ > 0 does not give b·(1/b) = 1, and [b/b = 0] is 1 for b = 0."""
    factor = power(b, 0)
    steps = (SignStep("positive", factor, "total", (ONE,)),)
    scaled = Rewrite("comparison", same(mul(factor, a), b), (a, b, factor), same(a, b), steps)
    assert not replay(scaled).assumes
    fraction = same(mul(b, power(b, -1)), ZERO)
    with pytest.raises(Refused, match="comparison: the differences differ"):
        replay(Rewrite("comparison", fraction, (ONE, ZERO, factor), same(ONE, ZERO), steps))

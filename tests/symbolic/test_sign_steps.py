"""Steps to a sign: each rule shows what is true, refuses what is near, and has a planted fault."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic.derivation import Assume, Reflexive, Rewrite, Sign, SignStep
from attnproof.symbolic.formed import formed
from attnproof.symbolic.kernel import Refused, close, law, replay
from attnproof.symbolic.rules import inequalities
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.inequalities import STEPS, known_after
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    integer,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.terms import Opened, Term, free, make, opened, substitute
from tests.symbolic.test_sizes import wrong
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    L,
    P,
    R,
    X,
    Y,
    a,
    b,
    c,
    chosen,
    holds,
    i,
    j,
    k,
    less_one,
    m,
    minus,
    n,
    outcome,
    q,
    same,
    space,
    stack,
    table,
    total,
    u,
    under_,
    up_to,
    var,
)

Arguments = tuple[Any, ...]
POS, NONNEG, NONZERO = "positive", "nonnegative", "nonzero"


def less(x: Term, y: Term) -> Term:
    """x − y, as the kernel writes it."""
    return add(x, mul(num(-1), y))


def given(kind: str, t: Term) -> SignStep:
    return SignStep(kind, t)


def larger(x: Term, y: Term) -> Term:
    return make("maximum", (x, y))


def exp(x: Term) -> Term:
    return unary("exp", x)


BELOW = chosen(make("less", (a, b)), a, MINUS_INFINITY)
GAP = given(NONNEG, less(b, a))
A_POS, A_NONNEG = given(POS, a), given(NONNEG, a)
none_ = index("z", less_one(n))
gaps = total(j, less(entry(Y, j), entry(X, j)))
at_j = given(NONNEG, less(entry(Y, j), entry(X, j)))
MAX = larger(a, b)
FALLS = given(NONNEG, less(c, a)), given(NONNEG, less(c, b))
SQUARES = total(j, power(entry(X, j), 2))
GATE = up_to(a, b)
gated = mul(GATE, less(b, a))
SHORT = less_one(less_one(n))
ROOM = less(SHORT, none_)
HELD = SignStep(NONNEG, ROOM, "ranges"), SignStep(NONNEG, SHORT, "total", (ROOM, none_))
AGAIN = add(SHORT, none_, minus(none_))
HOLDS = SignStep(NONNEG, mul(ONE, less(b, a)), "total", (less(b, a),))
FAILS = SignStep(NONNEG, mul(ZERO, less(b, a)), "total")

SHOWN: dict[str, list[tuple[tuple[SignStep, ...], str, Term, Arguments]]] = {
    "total": [
        ((A_POS,), POS, add(a, q), (a, q)),
        ((A_NONNEG,), NONNEG, a, (a,)),
        ((GAP, A_POS), POS, b, (less(b, a), a)),
        ((), NONNEG, ZERO, ()),
    ],
    "multiple": [((given(NONZERO, a),), NONZERO, minus(a), (mul(num(-1), a),))],
    "apart": [((A_NONNEG, given(NONZERO, a)), POS, a, ())],
    "whole": [((given(POS, less(i, k)),), NONNEG, add(i, minus(k), num(-1)), (less(i, k),))],
    "ranges": [((), NONNEG, less(n, add(i, ONE)), ()), ((), POS, less(add(n, n), i), ())],
    "bounded": [
        *(((), NONNEG, less(ONE, unary(f, a)), (unary(f, a),)) for f in ("cos", "sin", "tanh")),
        *(((), NONNEG, add(ONE, unary(f, a)), (unary(f, a),)) for f in ("cos", "sin", "tanh")),
        *(((), NONNEG, t, (GATE,)) for t in (less(ONE, GATE), add(ONE, GATE))),
    ],
    "rising": [
        *(((GAP,), NONNEG, less(unary(f, b), unary(f, a)), (f, a, b)) for f in ("exp", "tanh")),
        ((given(POS, less(b, a)),), POS, less(exp(b), exp(a)), ("exp", a, b)),
        ((GAP, A_POS), NONNEG, less(unary("log", b), unary("log", a)), ("log", a, b)),
        ((GAP, A_NONNEG), NONNEG, less(unary("sqrt", b), unary("sqrt", a)), ("sqrt", a, b)),
        ((GAP, A_POS), NONNEG, less(power(a, -1), power(b, -1)), ("power", a, b)),
        ((given(NONNEG, less(a, ONE)),), NONNEG, unary("log", a), ("log", ONE, a)),
        ((given(POS, less(a, ZERO)),), POS, less(exp(a), ONE), ("exp", ZERO, a)),
        ((given(NONNEG, less(a, ONE)),), NONNEG, less(ONE, power(a, -1)), ("power", ONE, a)),
    ],
    "largest": [((), NONNEG, less(MAX, x), (MAX, x)) for x in (a, b)],
    "least": [
        (FALLS, NONNEG, less(c, MAX), (MAX, c)),
        (tuple(given(POS, one.number) for one in FALLS), POS, less(c, MAX), (MAX, c)),
    ],
    "every": [
        ((), NONNEG, SQUARES, (j, ())),
        ((), NONNEG, total(none_, power(entry(X, none_), 2)), (none_, ())),
        ((), POS, total(outcome, exp(entry(R, outcome))), (outcome, ())),
        ((given(NONZERO, entry(X, ZERO)),), POS, SQUARES, (j, (), ZERO)),
        (
            (),
            POS,
            total(j, less(TWO, unary("cos", entry(X, j)))),
            (
                j,
                (
                    SignStep(
                        NONNEG,
                        less(ONE, unary("cos", entry(X, j))),
                        "bounded",
                        (unary("cos", entry(X, j)),),
                    ),
                    SignStep(
                        POS,
                        less(TWO, unary("cos", entry(X, j))),
                        "total",
                        (ONE, less(ONE, unary("cos", entry(X, j)))),
                    ),
                ),
            ),
        ),
    ],
    "linear": [
        (
            (given(POS, gaps),),
            POS,
            less(total(j, entry(Y, j)), total(j, entry(X, j))),
            (total(j, entry(Y, j)), total(j, entry(X, j))),
        ),
        (
            (given(NONNEG, gaps),),
            NONNEG,
            less(total(j, entry(Y, j)), total(j, entry(X, j))),
            (total(j, entry(Y, j)), total(j, entry(X, j))),
        ),
    ],
    "cases": [
        ((), NONNEG, gated, (GATE, (HOLDS,), (FAILS,))),
        ((), POS, add(ONE, gated), (GATE, (HOLDS,), (FAILS,))),
    ],
}
EACH = [(rule, *one) for rule, ones in SHOWN.items() for one in ones]


def after(before: tuple[SignStep, ...], step: SignStep) -> frozenset[Assumption]:
    """What the last step rests on."""
    return known_after((*before, step), over=free(step.number)).known[step.kind, step.number]


@pytest.mark.parametrize(("rule", "before", "kind", "t", "arguments"), EACH)
def test_a_step_shows_what_is_true_and_says_what_it_rests_on(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    rests = after(before, SignStep(kind, t, rule, arguments))
    told = {(one.kind, one.number) for one in before}
    assert {fact for fact in rests if fact[1].op != "var" or fact in told} == told
    certain = {POS: 2, NONNEG: 1, NONZERO: 0}[kind]
    assert not wrong(t, certain, rests)
    for missing in before:
        rest = tuple(one for one in before if one is not missing)
        with pytest.raises(Refused):
            after(rest, SignStep(kind, t, rule, arguments))


@pytest.mark.parametrize(("rule", "before", "kind", "t", "arguments"), EACH)
def test_a_step_shows_no_more_and_nothing_else(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    others: list[tuple[str, Term]] = [(kind, less(t, HALF)), (kind, minus(t)), (kind, add(t, a))]
    if kind == NONNEG:
        others.append((POS, t))
    for wanted, number in others:
        try:
            rests = after(before, SignStep(wanted, number, rule, arguments))
        except Refused:
            continue
        assert not wrong(number, 2 if wanted == POS else 1, rests), (wanted, number)


def test_every_rule_of_steps_is_asked() -> None:
    assert set(SHOWN) == set(STEPS) == {rule for rule, *_ in NEAR}


backwards, drawn, other = index("w", minus(n)), entry(R, outcome), index("v", space)
squared = entry(power(X, 2), i)
named, first, layer, W, y = index("j0", n), index("j0", L), index("t", L), var("W", L), var("y")
BOTH = (total(j, entry(Y, j)), total(j, entry(X, j)))
UNEVEN = (total(j, ONE), total(index("w", m), ONE))
uneven = total(j, less(ONE, ONE))


NEAR: list[tuple[str, tuple[SignStep, ...], str, Term, Arguments]] = [
    ("total", (), NONNEG, add(a, q), (a, q)),
    ("total", (A_NONNEG,), POS, a, (a,)),
    ("total", (A_POS,), POS, add(a, b), (a, q)),
    ("total", (), NONNEG, add(q, BELOW), (q, BELOW)),
    ("total", (), NONNEG, num(-1), (none_, ROOM)),
    ("total", (HELD[0], SignStep(NONNEG, AGAIN, "total", (ROOM, none_))), NONNEG, SHORT, (AGAIN,)),
    *(
        ("total", known, NONNEG, t, (t,))  # the form opens t with an index of its own
        for known, t in (
            ((), total(j, mul(entry(X, j), entry(X, named)))),
            ((given(POS, entry(X, named)),), total(j, entry(X, j))),
            ((), stack(q, layer, y, mul(y, add(ONE, mul(entry(W, layer), entry(W, first)))))),
            ((given(POS, entry(W, first)),), stack(q, layer, y, mul(y, entry(W, layer)))),
        )
    ),
    ("multiple", (), NONZERO, a, (a,)),
    ("multiple", (given(NONZERO, a),), NONZERO, mul(a, b), (a,)),
    ("multiple", (A_POS,), POS, minus(a), (mul(num(-1), a),)),
    ("apart", (A_NONNEG,), POS, a, ()),
    ("apart", (given(NONZERO, a),), POS, a, ()),
    (
        "apart",
        (given(NONNEG, power(BELOW, -1)), given(NONZERO, BELOW)),
        POS,
        power(BELOW, -1),
        (),
    ),
    ("total", (given(NONZERO, X),), POS, squared, (squared,)),
    ("whole", (A_POS,), NONNEG, less(a, ONE), (a,)),
    ("whole", (), NONNEG, less(u, ONE), (u,)),
    ("whole", (given(POS, u),), NONNEG, less(u, TWO), (u,)),
    ("ranges", (), NONNEG, less(i, ONE), ()),
    ("ranges", (), POS, i, ()),
    ("ranges", (), NONNEG, a, ()),
    ("bounded", (), NONNEG, less(HALF, unary("cos", a)), (unary("cos", a),)),
    ("bounded", (), POS, less(ONE, unary("cos", a)), (unary("cos", a),)),
    ("bounded", (), NONNEG, less(ONE, exp(a)), (exp(a),)),
    ("bounded", (), NONNEG, less(ONE, unary("cos", BELOW)), (unary("cos", BELOW),)),
    ("rising", (GAP,), NONNEG, less(unary("cos", b), unary("cos", a)), ("cos", a, b)),
    ("rising", (GAP,), NONNEG, less(exp(a), exp(b)), ("exp", a, b)),
    ("rising", (GAP,), POS, less(exp(b), exp(a)), ("exp", a, b)),
    ("rising", (GAP,), NONNEG, less(unary("log", b), unary("log", a)), ("log", a, b)),
    ("rising", (GAP, A_NONNEG), NONNEG, less(unary("log", b), unary("log", a)), ("log", a, b)),
    ("rising", (GAP,), NONNEG, less(unary("sqrt", b), unary("sqrt", a)), ("sqrt", a, b)),
    ("rising", (GAP,), NONNEG, less(power(a, -1), power(b, -1)), ("power", a, b)),
    ("rising", (GAP, A_POS), NONNEG, less(power(b, -1), power(a, -1)), ("power", a, b)),
    ("rising", (GAP, A_NONNEG), NONNEG, less(power(a, -1), power(b, -1)), ("power", a, b)),
    ("rising", (), NONNEG, less(exp(b), exp(a)), ("exp", a, b)),
    ("rising", (), NONNEG, less(exp(a), exp(BELOW)), ("exp", BELOW, a)),
    ("rising", (), NONNEG, less(exp(a), ONE), ("exp", ZERO, a)),
    ("rising", (given(NONNEG, less(b, X)),), NONNEG, less(exp(b), exp(X)), ("exp", X, b)),
    (
        "rising",
        (A_POS, given(NONNEG, less(Y, a))),
        NONNEG,
        less(power(a, -1), power(Y, -1)),
        ("power", a, Y),
    ),
    ("largest", (), NONNEG, less(MAX, c), (MAX, c)),
    ("largest", (), POS, less(MAX, a), (MAX, a)),
    ("largest", (), NONNEG, less(add(a, b), a), (add(a, b), a)),
    ("least", FALLS[:1], NONNEG, less(c, MAX), (MAX, c)),
    ("least", FALLS[1:], NONNEG, less(c, MAX), (MAX, c)),
    ("least", FALLS, NONNEG, less(c, add(a, b)), (add(a, b), c)),
    ("least", FALLS, POS, less(c, MAX), (MAX, c)),
    (
        "least",
        (FALLS[0], given(NONNEG, less(c, BELOW))),
        NONNEG,
        less(c, larger(a, BELOW)),
        (larger(a, BELOW), c),
    ),
    ("every", (), POS, SQUARES, (j, ())),
    ("every", (), POS, SQUARES, (j, (), ZERO)),
    ("every", (), NONNEG, total(j, entry(X, j)), (j, ())),
    ("every", (given(POS, entry(X, j)),), NONNEG, total(j, entry(X, j)), (j, ())),
    ("every", (), NONNEG, total(j, entry(X, j)), (j, (given(POS, entry(X, j)),))),
    ("every", (), NONNEG, total(j, entry(X, j)), (index("w", m), ())),
    ("every", (), POS, total(none_, ONE), (none_, ())),
    ("every", (given(POS, entry(X, ZERO)),), POS, total(none_, ONE), (none_, (), ZERO)),
    ("every", (), POS, total(none_, ONE), (none_, (), none_)),
    ("every", (), POS, total(outcome, power(unary("cos", a), 2)), (outcome, (), outcome)),
    (
        "linear",
        (),
        NONNEG,
        less(total(j, entry(Y, j)), total(j, entry(X, j))),
        (total(j, entry(Y, j)), total(j, entry(X, j))),
    ),
    (
        "linear",
        (given(NONNEG, gaps),),
        NONNEG,
        less(total(j, entry(X, j)), total(j, entry(Y, j))),
        (total(j, entry(X, j)), total(j, entry(Y, j))),
    ),
    ("whole", (given(POS, less(i, k)),), POS, add(i, minus(k), num(-1)), (less(i, k),)),
    (
        "rising",
        (given(NONNEG, less(a, BELOW)),),
        NONNEG,
        less(exp(a), exp(BELOW)),
        ("exp", BELOW, a),
    ),
    (
        "rising",
        (given(NONNEG, less(BELOW, a)),),
        NONNEG,
        less(exp(BELOW), exp(a)),
        ("exp", a, BELOW),
    ),
    ("least", (given(POS, less(c, a)), FALLS[1]), POS, less(c, MAX), (MAX, c)),
    ("every", (), NONNEG, table(j, power(entry(X, j), 2)), (j, ())),
    *(("every", (), NONNEG, total(x, ONE), (x, ())) for x in (backwards, index("w", SHORT))),
    ("every", (given(NONNEG, BELOW),), NONNEG, total(j, BELOW), (j, ())),
    ("every", (), NONNEG, SQUARES, (index("w", m), ())),
    ("every", (given(NONZERO, entry(X, none_)),), POS, SQUARES, (j, (), none_)),
    (
        "every",
        (given(NONNEG, less(unary("sqrt", n), ONE)),),
        NONNEG,
        total(j, less(j, ONE)),
        (unary("sqrt", n), ()),
    ),
    ("every", (given(NONZERO, drawn),), POS, total(outcome, power(drawn, 2)), (other, (), outcome)),
    ("linear", (given(NONNEG, gaps),), POS, less(*BOTH), BOTH),
    *(
        ("linear", (given(NONNEG, less(b, c)),), NONNEG, less(x, y), (x, y))
        for x, y in ((mul(a, b), mul(a, c)), (add(n, b), total(j, c)))
    ),
    ("linear", (given(NONNEG, uneven),), NONNEG, less(*UNEVEN), UNEVEN),
    *(
        ("cases", (), POS, add(mul(gate, gap), less(ONE, gate)), (gate, (first,), (then,)))
        for gate, gap in ((GATE, less(b, a)), (same(a, b), less(b, a)), (same(a, b), less(a, b)))
        for first in [SignStep(POS, add(mul(ONE, gap), less(ONE, ONE)), "total", (gap,))]
        for then in [SignStep(POS, add(mul(ZERO, gap), less(ONE, ZERO)), "total", (ONE,))]
    ),
    (
        "cases",
        (),
        POS,
        add(mul(less(ONE, under_(a, b)), less(a, b)), under_(a, b)),
        (
            under_(a, b),
            (SignStep(POS, add(mul(less(ONE, ONE), less(a, b)), ONE), "total", (ONE,)),),
            (SignStep(POS, add(mul(less(ONE, ZERO), less(a, b)), ZERO), "total", (less(a, b),)),),
        ),
    ),
    ("cases", (), NONNEG, mul(GATE, less(a, b)), (GATE, (HOLDS,), (FAILS,))),
    ("cases", (), POS, gated, (GATE, (HOLDS,), (FAILS,))),
    ("cases", (), NONNEG, mul(GATE, a), (GATE, (), ())),
    ("cases", (), NONNEG, mul(less(ONE, GATE), a), (GATE, (), ())),
    ("cases", (), POS, less(b, a), (GATE, (SignStep(POS, ZERO, "total", (less(b, a),)),), ())),
    ("cases", (), NONNEG, less(b, a), (a, (), ())),
    ("cases", (), POS, P, (GATE, (), ())),
    *(
        ("cases", (), POS, q, (gate, (), ()))
        for gate in (
            holds(make("less_equal", (X, Y), shape=(n,))),
            same(BELOW, MINUS_INFINITY),
            up_to(make("bound", data=0), b),
        )
    ),
]


@pytest.mark.parametrize(("rule", "before", "kind", "t", "arguments"), NEAR)
def test_what_is_near_a_step_is_refused(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    with pytest.raises(Refused):
        after(before, SignStep(kind, t, rule, arguments))


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
    """[a <= a] is not [a <= a]·[a <= a + n − 2] where n is 1, and z < n − 1 has no value."""
    short = less_one(less_one(n))
    room, slack = less(short, none_), add(short, mul(ZERO, none_))
    steps = SignStep(NONNEG, room, "ranges"), SignStep(NONNEG, slack, "total", (room, none_))
    left = mul(up_to(a, a), up_to(a, add(a, short)))
    with pytest.raises(Refused, match="no value"):
        replay(Rewrite("implied", left, (0, 1, slack), up_to(a, a), steps))


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
    (
        "an index that has no value",
        {"inhabited": lambda _: None},
        HELD[:1],
        HELD[1],
    ),
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

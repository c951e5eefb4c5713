"""Steps to a sign: each rule shows what is true, refuses what is near, and has a planted fault."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic.derivation import SignStep
from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.inequalities import STEPS, exponential, known_after, one_sum
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
from attnproof.symbolic.terms import Term, free, make
from tests.cases import each
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
    spread,
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

BOTH = (total(j, entry(Y, j)), total(j, entry(X, j)))
TANH_A, ROOT_A = unary("tanh", a), unary("sqrt", a)
FAR = make("add", (Y, make("mul", (spread(num(-1), n), X), shape=(n,))), shape=(n,))
EXPS = total(j, exp(entry(X, j)))
AT_X, AT_Y, MIX = power(entry(X, j), 2), power(entry(Y, j), 2), mul(entry(X, j), entry(Y, j))
YS, MIXED = total(j, AT_Y), total(j, MIX)


def apart(x: Term, y: Term) -> Arguments:
    """The arguments of a difference of two sums."""
    return x.args[0], ONE, x, num(-1), y


def picked(x: Term) -> Term:
    """The first number of an array, as it is written."""
    return make("pick", (x, ZERO), 0)


def added(x: Term) -> Term:
    """The sum of an array, as it is written."""
    return make("reduce", (x,), 0)


FIRST, AT_0 = picked(X), entry(X, ZERO)
EITHER = chosen(make("less", (a, b)), a, b)
UNFOLDED = [
    *((unary(f, FIRST), unary(f, AT_0)) for f in ("log", "sqrt", "tanh", "cos", "sin", "abs")),
    (less(FIRST, a), less(AT_0, a)),
    (mul(FIRST, b), mul(AT_0, b)),
    (power(FIRST, 3), power(AT_0, 3)),
    (less(exp(FIRST), TWO), less(exp(AT_0), TWO)),
    (less(larger(FIRST, a), TWO), less(larger(AT_0, a), TWO)),
    (less(FIRST, EITHER), less(AT_0, EITHER)),
]
OVER_EXP = less(exponential(ZERO, a), exponential(b))
NAMED = make("named", (picked(X),), ("first", ""))


SHOWN: dict[str, list[tuple[tuple[SignStep, ...], str, Term, Arguments]]] = {
    "total": [
        ((A_POS,), POS, add(a, q), (a, q)),
        ((A_NONNEG,), NONNEG, a, (a,)),
        ((GAP, A_POS), POS, b, (less(b, a), a)),
        ((), NONNEG, ZERO, ()),
    ],
    "quotient": [
        ((A_POS,), NONNEG, mul(power(entry(X, i), 2), power(a, -1)), (power(entry(X, i), 2), a)),
        (
            (A_POS, given(POS, add(a, b)), GAP),
            NONNEG,
            mul(less(b, a), power(add(a, b), -1), power(a, -2)),
            (less(b, a), add(a, b), a, a),
        ),
        (
            (A_POS, given(POS, less(b, a))),
            POS,
            less(mul(b, power(a, -1)), ONE),
            (less(b, a), a),
        ),
    ],
    "multiple": [
        ((given(NONZERO, a),), NONZERO, minus(a), (mul(num(-1), a),)),
        ((given(NONZERO, mul(a, b)),), NONZERO, a, (mul(a, b), b)),
    ],
    "unfolded": [
        ((given(NONNEG, FAR),), NONNEG, less(entry(Y, i), entry(X, i)), (entry(FAR, i),)),
        ((given(POS, FAR),), POS, less(entry(Y, i), entry(X, i)), (entry(FAR, i),)),
        ((given(NONZERO, picked(X)),), NONZERO, entry(X, ZERO), (picked(X),)),
        ((given(POS, added(power(X, 2))),), POS, SQUARES, (added(power(X, 2)),)),
        *(((given(POS, written),), POS, plain, (written,)) for written, plain in UNFOLDED),
        ((given(POS, NAMED),), POS, entry(X, ZERO), (NAMED,)),
    ],
    "apart": [((A_NONNEG, given(NONZERO, a)), POS, a, ())],
    "whole": [((given(POS, less(i, k)),), NONNEG, add(i, minus(k), num(-1)), (less(i, k),))],
    "ranges": [((), NONNEG, less(n, add(i, ONE)), ()), ((), POS, less(add(n, n), i), ())],
    "bounded": [
        *(((), NONNEG, less(ONE, unary(f, a)), (unary(f, a),)) for f in ("cos", "sin")),
        *(((), NONNEG, add(ONE, unary(f, a)), (unary(f, a),)) for f in ("cos", "sin")),
        *(((), POS, t, (unary("tanh", a),)) for t in (less(ONE, TANH_A), add(ONE, TANH_A))),
        *(((), NONNEG, t, (GATE,)) for t in (less(ONE, GATE), add(ONE, GATE))),
    ],
    "tangent": [
        *(((), NONNEG, less(exp(x), add(ONE, x)), (x,)) for x in (a, less(a, q), ZERO)),
        ((given(NONZERO, a),), POS, less(exp(a), add(ONE, a)), (a,)),
        ((A_POS,), NONNEG, less(a, add(ONE, unary("log", a))), (a,)),
        ((A_POS,), NONNEG, add(power(a, -1), num(-1), unary("log", a)), (a,)),
    ],
    "roots": [
        ((A_NONNEG, given(NONNEG, less(a, power(b, 2)))), NONNEG, less(ROOT_A, b), (ROOT_A, b)),
        ((A_POS, given(POS, less(a, power(b, 2)))), POS, less(ROOT_A, b), (ROOT_A, b)),
        (
            (A_NONNEG, given(NONNEG, b), given(NONNEG, less(power(b, 2), mul(power(TWO, 2), a)))),
            NONNEG,
            less(b, mul(TWO, ROOT_A)),
            (b, mul(TWO, ROOT_A)),
        ),
        (
            (A_NONNEG, given(NONNEG, b), given(NONNEG, less(mul(a, b), power(c, 2)))),
            NONNEG,
            less(mul(ROOT_A, unary("sqrt", b)), c),
            (mul(ROOT_A, unary("sqrt", b)), c),
        ),
    ],
    "logarithms": [
        (
            (given(NONNEG, OVER_EXP), A_POS),
            NONNEG,
            less(unary("log", a), b),
            ((ZERO, a), (b,)),
        ),
        (
            (given(POS, less(exponential(c, a, a), exponential(ZERO, b))), A_POS, given(POS, b)),
            POS,
            add(c, mul(TWO, unary("log", a)), minus(unary("log", b))),
            ((c, a, a), (ZERO, b)),
        ),
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
    "among": [
        ((), NONNEG, less(EXPS, exp(entry(X, i))), (j, (), EXPS, i)),
        ((), NONNEG, less(SQUARES, power(entry(X, ZERO), 2)), (j, (), SQUARES, ZERO)),
    ],
    "products": [
        (
            (),
            NONNEG,
            less(mul(SQUARES, YS), power(MIXED, 2)),
            (
                j,
                (SignStep(NONNEG, less(mul(AT_X, AT_Y), power(MIX, 2)), "total"),),
                SQUARES,
                YS,
                MIXED,
            ),
        ),
        (
            (),
            NONNEG,
            less(mul(n, SQUARES), power(total(j, entry(X, j)), 2)),
            (
                j,
                (SignStep(NONNEG, less(mul(ONE, AT_X), AT_X), "total"),),
                n,
                SQUARES,
                total(j, entry(X, j)),
            ),
        ),
    ],
    "linear": [
        ((given(POS, gaps),), POS, less(*BOTH), apart(*BOTH)),
        ((given(NONNEG, gaps),), NONNEG, less(*BOTH), apart(*BOTH)),
        (
            (given(NONNEG, one_sum(n, a, BOTH[0], minus(b), n)),),
            NONNEG,
            less(mul(a, BOTH[0]), mul(b, n)),
            (n, a, BOTH[0], minus(b), n),
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


@each(EACH)
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


@each(EACH)
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
UNEVEN = (total(j, ONE), total(index("w", m), ONE))
uneven = total(j, less(ONE, ONE))


def bare(*parts: Term) -> Term:
    """A sum that forgets that its parts are arrays."""
    return make("add", parts)


def bare_minus(x: Term) -> Term:
    """−x, in the same way."""
    return make("mul", (num(-1), x))


INDEX, COUNTS = make("bound", data=0), total(j, j)
CAUGHT = (mul(INDEX, n), COUNTS, mul(num(-1), INDEX, COUNTS), n)  # j·n·Σ j − j·(Σ j)·n = 0
NOTHING_LEFT = less(n, n)
ONES = SignStep(NONNEG, less(mul(ONE, ONE), power(ONE, 2)), "total")
EMPTY, BRIEF = total(backwards, ONE), index("w", less_one(less_one(n)))
SOME = total(none_, power(entry(X, none_), 2))
ROOTS = total(j, mul(unary("sqrt", entry(X, j)), unary("sqrt", entry(Y, j))))


def squared_at(place: Term) -> Term:
    """X[place]²."""
    return power(entry(X, place), 2)


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
    ("apart", (given(NONNEG, power(BELOW, -1)), given(NONZERO, BELOW)), POS, power(BELOW, -1), ()),
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
        less(*BOTH),
        apart(*BOTH),
    ),
    ("linear", (given(NONNEG, gaps),), NONNEG, less(*BOTH[::-1]), apart(*BOTH[::-1])),
    ("linear", (given(NONNEG, gaps),), NONNEG, less(*BOTH), apart(*BOTH)[:-1]),
    ("linear", (given(NONNEG, gaps),), NONNEG, less(*BOTH), (m, *apart(*BOTH)[1:])),
    (
        "linear",
        (given(NONNEG, total(j, mul(a, entry(Y, j)))),),
        NONNEG,
        BOTH[0],
        (n, a, BOTH[0]),
    ),
    (
        "linear",
        (given(NONNEG, total(j, mul(entry(X, j), entry(Y, j)))),),
        NONNEG,
        mul(entry(X, j), BOTH[0]),
        (n, make("bound", data=0), BOTH[0]),
    ),
    ("linear", (given(NONNEG, total(j, ONE)),), NONNEG, SHORT, (SHORT, ONE, SHORT)),
    ("quotient", (GAP,), NONNEG, mul(less(b, a), power(a, -1)), (less(b, a), a)),
    ("quotient", (A_NONNEG, GAP), NONNEG, mul(less(b, a), power(a, -1)), (less(b, a), a)),
    ("quotient", (A_POS,), NONNEG, mul(less(b, a), power(a, -1)), (less(b, a), a)),
    ("quotient", (A_POS, GAP), NONNEG, mul(less(b, a), power(a, -2)), (less(b, a), a)),
    ("quotient", (A_POS, GAP), POS, mul(less(b, a), power(a, -1)), (less(b, a), a)),
    ("multiple", (given(NONZERO, a),), NONZERO, a, (mul(a, b), b)),
    ("multiple", (given(NONZERO, mul(a, b)),), NONZERO, mul(a, c), (mul(a, b), b)),
    *(
        ("unfolded", (given(POS, whole),), POS, bare(X, Y), (whole,))
        for whole in [make("add", (X, Y), shape=(n,))]
    ),
    ("tangent", (), NONNEG, bare(exp(X), num(-1), bare_minus(X)), (X,)),
    (
        "roots",
        (given(NONNEG, X), given(NONNEG, less(power(X, 2), power(Y, 2)))),
        NONNEG,
        bare(X, bare_minus(Y)),
        (X, Y),
    ),
    ("linear", (given(POS, one_sum(n, *CAUGHT)),), POS, NOTHING_LEFT, (n, *CAUGHT)),
    ("unfolded", (), NONNEG, less(entry(Y, i), entry(X, i)), (entry(FAR, i),)),
    ("unfolded", (given(NONNEG, FAR),), POS, less(entry(Y, i), entry(X, i)), (entry(FAR, i),)),
    ("unfolded", (given(POS, FAR),), POS, less(entry(Y, i), entry(X, j)), (entry(FAR, i),)),
    ("unfolded", (given(NONZERO, FAR),), NONZERO, less(entry(Y, i), entry(X, i)), (entry(FAR, i),)),
    ("unfolded", (given(POS, FAR),), POS, less(entry(Y, first), entry(X, first)), (entry(FAR, i),)),
    ("unfolded", (given(NONZERO, picked(X)),), NONZERO, entry(X, i), (picked(X),)),
    ("tangent", (), POS, less(exp(a), add(ONE, a)), (a,)),
    ("tangent", (), NONNEG, less(exp(a), add(TWO, a)), (a,)),
    ("tangent", (), NONNEG, less(add(ONE, a), exp(a)), (a,)),
    ("tangent", (), NONNEG, less(exp(a), add(ONE, b)), (a,)),
    ("tangent", (), NONNEG, less(exp(BELOW), add(ONE, BELOW)), (BELOW,)),
    ("bounded", (), POS, less(ONE, GATE), (GATE,)),
    ("bounded", (), POS, less(ONE, unary("tanh", BELOW)), (unary("tanh", BELOW),)),
    ("tangent", (), NONNEG, less(a, add(ONE, unary("log", a))), (a,)),
    ("tangent", (A_NONNEG,), NONNEG, less(a, add(ONE, unary("log", a))), (a,)),
    ("tangent", (A_POS,), POS, less(a, add(ONE, unary("log", a))), (a,)),
    ("tangent", (A_POS,), NONNEG, add(a, num(-1), unary("log", a)), (a,)),
    *(
        ("roots", tuple(known), kind, less(ROOT_A, b), (ROOT_A, b))
        for kind, *known in (
            (NONNEG, A_NONNEG),
            (NONNEG, given(NONNEG, less(a, power(b, 2)))),
            (POS, A_NONNEG, given(NONNEG, less(a, power(b, 2)))),
            (NONNEG, A_NONNEG, given(NONNEG, less(a, b))),
        )
    ),
    (
        "roots",
        (A_NONNEG, given(NONNEG, less(power(b, 2), a))),
        NONNEG,
        less(b, ROOT_A),
        (b, ROOT_A),
    ),
    (
        "roots",
        (A_NONNEG, given(NONNEG, less(a, power(b, 2)))),
        NONNEG,
        less(ROOT_A, c),
        (ROOT_A, b),
    ),
    *(
        ("logarithms", tuple(known), kind, t, ((ZERO, a), (b,)))
        for kind, t, *known in (
            (NONNEG, less(unary("log", a), b), A_POS),
            (NONNEG, less(unary("log", a), b), given(NONNEG, OVER_EXP)),
            (NONNEG, less(unary("log", a), b), A_NONNEG, given(NONNEG, OVER_EXP)),
            (POS, less(unary("log", a), b), A_POS, given(NONNEG, OVER_EXP)),
            (NONNEG, less(unary("log", a), c), A_POS, given(NONNEG, OVER_EXP)),
            (NONNEG, less(b, unary("log", a)), A_POS, given(NONNEG, OVER_EXP)),
        )
    ),
    (
        "logarithms",
        (A_POS, given(NONNEG, less(a, exp(BELOW)))),
        NONNEG,
        less(unary("log", a), BELOW),
        ((ZERO, a), (BELOW,)),
    ),
    ("among", (), POS, less(EXPS, exp(entry(X, i))), (j, (), EXPS, i)),
    ("among", (), NONNEG, less(EXPS, exp(entry(Y, i))), (j, (), EXPS, i)),
    ("among", (), NONNEG, less(EXPS, mul(TWO, exp(entry(X, i)))), (j, (), EXPS, i)),
    ("among", (), NONNEG, less(BOTH[0], entry(Y, i)), (j, (), BOTH[0], i)),
    ("among", (), NONNEG, less(EXPS, exp(entry(X, n))), (j, (), EXPS, n)),
    ("among", (), NONNEG, less(SOME, squared_at(none_)), (none_, (), SOME, ZERO)),
    (
        "among",
        (given(NONNEG, entry(Y, j)),),
        NONNEG,
        less(BOTH[0], entry(Y, i)),
        (j, (), BOTH[0], i),
    ),
    (
        "among",
        (),
        NONNEG,
        less(total(outcome, power(drawn, 2)), power(entry(R, other), 2)),
        (outcome, (), total(outcome, power(drawn, 2)), other),
    ),
    *(
        ("products", (), NONNEG, t, (j, steps, x, y, z))
        for t, steps, x, y, z in (
            (less(mul(SQUARES, YS), power(MIXED, 2)), (), SQUARES, YS, MIXED),
            (
                less(mul(SQUARES, YS), mul(TWO, power(MIXED, 2))),
                (SignStep(NONNEG, less(mul(AT_X, AT_Y), power(MIX, 2)), "total"),),
                SQUARES,
                YS,
                MIXED,
            ),
            (
                less(mul(*BOTH), power(ROOTS, 2)),
                (SignStep(NONNEG, less(MIX, MIX), "total"),),
                *BOTH,
                ROOTS,
            ),
            (
                less(mul(m, SQUARES), power(BOTH[1], 2)),
                (SignStep(NONNEG, less(mul(ONE, AT_X), AT_X), "total"),),
                m,
                SQUARES,
                BOTH[1],
            ),
            (
                less(mul(SQUARES, n), power(BOTH[1], 2)),
                (given(NONNEG, less(mul(AT_X, ONE), AT_X)),),
                SQUARES,
                n,
                BOTH[1],
            ),
        )
    ),
    (
        "products",
        (),
        POS,
        less(mul(n, SQUARES), power(BOTH[1], 2)),
        (
            j,
            (SignStep(NONNEG, less(mul(ONE, AT_X), AT_X), "total"),),
            n,
            SQUARES,
            BOTH[1],
        ),
    ),
    *(
        ("products", (), NONNEG, less(mul(x, x), power(x, 2)), (at, (ONES,), x, x, x))
        for at, x in ((outcome, total(outcome, ONE)), (a, SQUARES), (none_, total(j, ONE)))
    ),
    (
        "products",
        (),
        NONNEG,
        less(mul(EMPTY, EMPTY), power(EMPTY, 2)),
        (backwards, (ONES,), EMPTY, EMPTY, EMPTY),
    ),
    ("linear", (given(NONNEG, total(outcome, ONE)),), NONNEG, space, (space, ONE, space)),
    (
        "products",
        (),
        NONNEG,
        less(mul(*(total(BRIEF, ONE),) * 2), power(total(BRIEF, ONE), 2)),
        (BRIEF, (ONES,), *(total(BRIEF, ONE),) * 3),
    ),
    (
        "logarithms",
        (A_POS, given(NONNEG, less(exponential(ZERO, a), exponential(X)))),
        NONNEG,
        less(unary("log", a), X),
        ((ZERO, a), (X,)),
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
    ("linear", (given(NONNEG, gaps),), POS, less(*BOTH), apart(*BOTH)),
    *(
        ("linear", (given(NONNEG, less(b, c)),), NONNEG, less(x, y), (n, ONE, x, num(-1), y))
        for x, y in ((mul(a, b), mul(a, c)), (add(n, b), total(j, c)))
    ),
    ("linear", (given(NONNEG, uneven),), NONNEG, less(*UNEVEN), apart(*UNEVEN)),
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


@each(NEAR)
def test_what_is_near_a_step_is_refused(
    rule: str, before: tuple[SignStep, ...], kind: str, t: Term, arguments: Arguments
) -> None:
    with pytest.raises(Refused):
        after(before, SignStep(kind, t, rule, arguments))

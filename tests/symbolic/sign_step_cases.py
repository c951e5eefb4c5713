"""What each step to a sign shows, from what is known before it."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic.derivation import SignStep
from attnproof.symbolic.rules.inequalities import exponential, one_sum
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
from attnproof.symbolic.terms import Term, make
from tests.symbolic.vocabulary import (
    TWO,
    R,
    X,
    Y,
    a,
    b,
    c,
    chosen,
    i,
    j,
    k,
    less_one,
    minus,
    n,
    outcome,
    q,
    spread,
    total,
    up_to,
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
BOTH_ROOTS = add(ROOT_A, unary("sqrt", b))
SQUARED = add(a, b, mul(TWO, ROOT_A, unary("sqrt", b)))
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
        (
            (A_NONNEG, given(NONNEG, b), given(NONNEG, less(SQUARED, power(c, 2)))),
            NONNEG,
            less(BOTH_ROOTS, c),
            (BOTH_ROOTS, c),
        ),
        (
            (A_NONNEG, *(given(NONNEG, t) for t in (b, c, less(power(c, 2), SQUARED)))),
            NONNEG,
            less(c, BOTH_ROOTS),
            (c, BOTH_ROOTS),
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

"""What is near a step to a sign, and must be refused."""

from __future__ import annotations

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
from tests.symbolic.sign_step_cases import (
    A_NONNEG,
    A_POS,
    AGAIN,
    AT_X,
    AT_Y,
    BELOW,
    BOTH,
    BOTH_ROOTS,
    EXPS,
    FAILS,
    FALLS,
    FAR,
    GAP,
    GATE,
    HELD,
    HOLDS,
    MAX,
    MIX,
    MIXED,
    NONNEG,
    NONZERO,
    OVER_EXP,
    POS,
    ROOM,
    ROOT_A,
    SHORT,
    SQUARED,
    SQUARES,
    YS,
    Arguments,
    apart,
    exp,
    gaps,
    gated,
    given,
    larger,
    less,
    none_,
    picked,
)
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
FURTHER = add(SHORT, none_)
SOME = total(none_, power(entry(X, none_), 2))
ROOTS = total(j, mul(unary("sqrt", entry(X, j)), unary("sqrt", entry(Y, j))))


def squared_at(place: Term) -> Term:
    """X[place]²."""
    return power(entry(X, place), 2)


OVER_BOTH = given(NONNEG, less(power(c, 2), SQUARED))
MORE = add(a, b, mul(num(4), ROOT_A, unary("sqrt", b)))  # than the square of both roots

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
    *(
        ("roots", (given(NONNEG, c), more, OVER_BOTH), NONNEG, less(c, BOTH_ROOTS), (c, BOTH_ROOTS))
        for more in (A_NONNEG, given(NONNEG, b))
    ),
    *(
        ("roots", tuple(known), kind, less(BOTH_ROOTS, c), (BOTH_ROOTS, c))
        for kind, *known in (
            (NONNEG, A_NONNEG, given(NONNEG, less(SQUARED, power(c, 2)))),
            (NONNEG, given(NONNEG, b), given(NONNEG, less(SQUARED, power(c, 2)))),
            (NONNEG, A_NONNEG, given(NONNEG, b), given(NONNEG, less(MORE, power(c, 2)))),
            (POS, A_NONNEG, given(NONNEG, b), given(NONNEG, less(SQUARED, power(c, 2)))),
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
    (
        "logarithms",
        (
            HELD[0],
            SignStep(NONNEG, AGAIN, "total", (ROOM, none_)),
            SignStep(NONNEG, less(exp(FURTHER), exp(none_)), "rising", ("exp", none_, FURTHER)),
        ),
        NONNEG,
        SHORT,
        ((FURTHER,), (none_,)),
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

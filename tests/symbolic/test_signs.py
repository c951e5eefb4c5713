"""Signs, and that a number is not 0: certain only from the form, and never wrong in any world."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnproof.symbolic.derivation import Reflexive
from attnproof.symbolic.kernel import Refused, close
from attnproof.symbolic.rules.base import Assumption
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
from attnproof.symbolic.signs import nonzero, sign
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World
from tests.symbolic.random_numbers import fact, holds_in, larger, leaves, numbers, rounds
from tests.symbolic.stating import means_something, proof_of_sign
from tests.symbolic.vocabulary import (
    HALF,
    PI,
    TWO,
    D,
    P,
    R,
    X,
    a,
    b,
    chosen,
    holds,
    i,
    j,
    k,
    minus,
    n,
    outcome,
    q,
    same,
    spread,
    stack,
    table,
    total,
    u,
    up_to,
    v,
    var,
)

EXP, COS, TANH = (unary(op, a) for op in ("exp", "cos", "tanh"))
C = make("less_equal", (j, i))
BELOW_MINUS_INFINITY = chosen(C, a, MINUS_INFINITY)
SUM = total(j, entry(X, j))
y, layer = var("y"), index("t", u)


def less(x: Term, z: Term) -> Term:
    """x − z."""
    return add(x, minus(z))


CERTAIN: dict[int, list[Term]] = {
    2: [
        add(ONE, TANH),
        n,
        EXP,
        entry(P, i),
        add(EXP, i),
        mul(n, EXP),
        SUM.args[0],
        power(q, -1),
        PI,
        total(j, unary("exp", entry(X, j))),
        total(j, same(i, j)),
        total(j, up_to(j, k)),
        total(j, less(ONE, up_to(add(k, ONE), j))),
        add(u, ONE),
        mul(PI, n),
        total(outcome, unary("exp", entry(R, outcome))),
        power(unary("cos", ONE), 2),
        add(TWO, COS),
        add(TWO, minus(TANH)),
        less(unary("exp", q), ONE),
        add(n, mul(HALF, COS)),
        less(add(EXP, ONE), ONE),
        stack(ONE, layer, y, add(mul(y, q), i)),
        mul(minus(n), minus(n)),
        make("maximum", (a, q)),
        chosen(C, q, n),
        unary("sqrt", q),
        power(less(q, minus(ONE)), -3),
        entry(spread(q, n), i),
        entry(make("permute", (P,), (0,), (n,)), i),
        spread(ONE, n),
        P,
    ],
    1: [
        i,
        u,
        holds(C),
        mul(EXP, i),
        power(a, 2),
        power(a, -2),
        unary("abs", a),
        entry(D, i),
        unary("exp", BELOW_MINUS_INFINITY),
        unary("sqrt", i),
        total(j, same(k, j)),
        ZERO,
        total(index("z", integer(add(n, num(-1)))), ONE),
        mul(a, q, a),
        total(outcome, power(entry(R, outcome), 2)),
        add(ONE, COS),
        add(ONE, minus(COS)),
        less(unary("exp", i), ONE),
        less(n, ONE),
        less(ONE, holds(C)),
        chosen(C, q, i),
        make("maximum", (a, u)),
        less(q, q),
        add(COS, minus(COS)),
        add(unary("exp", BELOW_MINUS_INFINITY), i, ONE, COS),
        power(SUM, 2),
        entry(spread(u, n), i),
        D,
        mul(i, i),
        mul(a, b, b, a),
    ],
    0: [
        a,
        minus(ONE),
        minus(EXP),
        mul(minus(EXP), minus(a)),
        SUM,
        add(EXP, a),
        power(a, 3),
        power(a, -1),
        MINUS_INFINITY,
        unary("sqrt", a),
        COS,
        mul(EXP, MINUS_INFINITY),
        add(EXP, BELOW_MINUS_INFINITY),
        power(MINUS_INFINITY, 2),
        unary("abs", MINUS_INFINITY),
        make("maximum", (a, MINUS_INFINITY)),
        unary("log", q),
        minus(spread(ONE)),
        minus(u),
        total(outcome, entry(R, outcome)),
        add(ONE, mul(TWO, COS)),
        less(EXP, ONE),
        less(n, TWO),
        less(i, ONE),
        less(u, ONE),
        less(unary("exp", minus(i)), ONE),
        mul(a, b),
        mul(a, a, a),
        stack(ONE, layer, y, less(y, q)),
        stack(a, layer, y, power(y, 2)),
        outcome,
        stack(i, layer, y, add(mul(y, q), ONE)),
        stack(ONE, layer, y, mul(y, i)),
        entry(spread(a, n), i),
        X,
        less(unary("exp", BELOW_MINUS_INFINITY), mul(HALF, holds(C))),
        less(ONE, mul(TWO, holds(C))),
        chosen(C, q, minus(q)),
        power(unary("sin", i), -1),
        mul(BELOW_MINUS_INFINITY, BELOW_MINUS_INFINITY),
        add(n, minus(PI)),
        index("w", make("space", data=("Ω", "space"))),
    ],
}
TABLE = [(certain, t) for certain, terms in CERTAIN.items() for t in terms]


@each(TABLE)
def test_a_sign_is_certain_only_from_the_form(certain: int, t: Term) -> None:
    assert sign(t)[0] == certain


NOT_ZERO = [
    ONE,
    num(-2),
    q,
    n,
    minus(n),
    EXP,
    minus(EXP),
    mul(q, EXP, minus(n)),
    power(q, -3),
    unary("cos", u),
    unary("cos", mul(HALF, less(u, v))),
    unary("sin", n),
    unary("sin", ONE),
    unary("sin", mul(HALF, n)),
    power(unary("sin", ONE), 3),
    unary("abs", unary("cos", i)),
    PI,
    mul(unary("cos", u), power(unary("sin", n), -1)),
    unary("cos", ZERO),
    add(u, HALF),
    unary("tanh", n),
]
MAYBE_ZERO = [
    ZERO,
    a,
    i,
    u,
    SUM,
    COS,
    unary("sin", u),
    unary("sin", i),
    unary("sin", less(u, v)),
    unary("cos", mul(HALF, PI)),
    unary("sin", PI),
    unary("sin", mul(PI, n)),
    mul(q, a),
    less(q, q),
    unary("cos", q),
    unary("sin", q),
    unary("cos", unary("sqrt", TWO)),
    power(a, -1),
    less(n, ONE),
    MINUS_INFINITY,
    mul(EXP, MINUS_INFINITY),
    TANH,
    unary("tanh", u),
    unary("log", n),
    power(MINUS_INFINITY, 2),
    unary("sin", minus(i)),
    add(unary("cos", ONE), unary("cos", TWO)),
    unary("abs", a),
]


@each([(True, t) for t in NOT_ZERO] + [(False, t) for t in MAYBE_ZERO])
def test_a_number_is_not_0_only_from_the_form(certain: bool, t: Term) -> None:
    """π is irrational, so the cosine of a rational number is not 0."""
    assert nonzero(t)[0] is certain


# hypotheses at hand

AT_LEAST, MORE = ("nonnegative", less(a, b)), ("positive", X)
WITH_FACTS: list[tuple[Assumption, Term, int]] = [
    (AT_LEAST, less(a, b), 1),
    (AT_LEAST, add(EXP, less(a, b)), 2),
    (AT_LEAST, add(EXP, less(b, a)), 0),
    (AT_LEAST, mul(q, less(a, b)), 1),
    (AT_LEAST, less(b, a), 0),
    (AT_LEAST, unary("sqrt", less(a, b)), 1),
    (MORE, entry(X, i), 2),
    (MORE, total(j, entry(X, j)), 2),
    (MORE, entry(make("named", (X,), ("the same",), (n,)), i), 2),
    (MORE, entry(make("add", (X, minus(spread(ONE, n))), shape=(n,)), i), 0),
    (MORE, total(j, mul(entry(X, j), entry(var("Y", n), j))), 0),
    (("positive", a), less(unary("exp", a), ONE), 2),
    (("positive", a), a, 2),
    (("positive", entry(X, i)), entry(X, j), 0),
    (("nonzero", a), power(a, 2), 2),
    (("nonzero", a), power(a, 3), 0),
    (("nonzero", less(a, b)), power(less(b, a), -2), 2),
    (("nonzero", less(a, b)), power(add(a, b), 2), 1),
]


@each(WITH_FACTS)
def test_a_fact_that_settles_a_sign_comes_back(told: Assumption, t: Term, certain: int) -> None:
    found, used = sign(t, frozenset({told, ("positive", var("other"))}))
    assert found == certain
    if found > sign(t)[0]:
        assert used - {("positive", q)} == {told}
        assert sign(t)[0] < certain


@pytest.mark.parametrize(
    ("told", "t", "certain"),
    [
        (("nonzero", less(u, v)), unary("sin", mul(HALF, less(u, v))), True),
        (("nonzero", less(u, v)), unary("sin", mul(PI, less(u, v))), False),
        (("nonzero", less(u, v)), unary("sin", less(u, v)), True),
        (("nonzero", less(u, v)), unary("sin", less(v, u)), True),
        (("nonzero", less(a, b)), unary("sin", less(a, b)), False),
        (("nonzero", X), entry(X, i), False),
        (("nonzero", a), mul(a, q), True),
        (("nonzero", a), mul(a, b), False),
    ],
)
def test_a_fact_that_a_number_is_not_0(told: Assumption, t: Term, certain: bool) -> None:
    assert nonzero(t, frozenset({told}))[0] is certain


def test_a_fact_about_one_index_is_none_about_the_others() -> None:
    """Names that the kernel makes up occur in no fact: a − j0 >= 0 at one j0 alone."""
    for name in ("j0", "j1", "i0"):
        one = index(name, n)
        told = frozenset({("nonnegative", less(a, one)), ("nonnegative", entry(X, one))})
        assert sign(less(a, one), told)[0] == 1
        assert sign(total(j, less(a, j)), told)[0] == 0
        assert sign(total(j, entry(X, j)), told)[0] == 0
        rows = table(j, less(a, j))
        with pytest.raises(Refused):
            proof_of_sign(rows, (("whole",),), (Reflexive(entry(rows, one)),), told)
    y0 = var("y0", kind="positive")
    wanted = less(var("y0", kind="positive"), ONE)
    assert sign(wanted, frozenset({("positive", wanted)}))[0] == 2
    shrinking = stack(TWO, layer, y, less(y, ONE))
    for kind in ("positive", "nonnegative"):
        assert sign(shrinking, frozenset({(kind, less(y0, ONE))}))[0] == 0


def test_a_fact_that_is_used_must_be_granted() -> None:
    told = frozenset({("nonnegative", less(a, b))})
    proof = proof_of_sign(less(a, b), (), (Reflexive(less(a, b)),), told)
    claimed = (">=", less(a, b), ZERO)
    assert close(proof, told, claimed) is proof
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), claimed)
    with pytest.raises(Refused, match="something else"):
        close(proof, told, (">", less(a, b), ZERO))


# any term in any world

said = st.tuples(st.sampled_from(["positive", "nonnegative", "nonzero"]), numbers)


@st.composite
def with_facts(draw: st.DrawFn) -> tuple[Term, frozenset[Assumption]]:
    """A number, and facts about parts that it is likely to have."""
    told = draw(st.lists(said, max_size=2))
    parts = st.sampled_from([t for _, t in told]) | leaves if told else leaves
    t = draw(st.recursive(parts, larger, max_leaves=4))
    return t, frozenset(fact(kind, part) for kind, part in told)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(with_facts())
def test_what_is_certain_holds_in_every_world(case: tuple[Term, frozenset[Assumption]]) -> None:
    t, facts = case
    if not means_something(t):
        return
    certain, used = sign(t, facts)
    apart, also_used = nonzero(t, facts)
    assert all(told in facts or told[1].op == "var" for told in used | also_used)
    for world in map(World, range(6 if certain or apart else 0)):
        try:
            value = world(t)
        except (Undefined, RuntimeWarning):  # it is undefined there, or larger than any float
            continue
        if all(holds_in(world, told) for told in used):
            assert not certain or value > -1e-9 * max(1, abs(value))
            assert certain < 2 or value != 0 or rounds(t)
        if apart and all(holds_in(world, told) for told in also_used):
            assert value != 0 or rounds(t)

"""Signs of differences: what is smaller set against what is larger, and what settles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from attnproof.symbolic import bounding, linear, signs
from attnproof.symbolic.derivation import SignStep
from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.normal_form.normaliser import Normaliser
from attnproof.symbolic.rules.base import Assumption
from attnproof.symbolic.rules.inequalities import LEAST
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, mul, power, subtract, unary
from attnproof.symbolic.signs import sign
from attnproof.symbolic.terms import Term, make
from attnproof.symbolic.well_formedness import formed
from tests.cases import each
from tests.symbolic.interpreter import Undefined, World, close_to
from tests.symbolic.random_numbers import holds_in
from tests.symbolic.vocabulary import (
    HALF,
    TWO,
    D,
    X,
    Y,
    a,
    b,
    holds,
    i,
    j,
    minus,
    n,
    q,
    same,
    total,
    u,
    under_,
    up_to,
    v,
    var,
)

Facts = frozenset[Assumption]
C = var("c", kind="nonnegative")
EXP, LOG, ROOT, TANH, COS = (partial(unary, op) for op in ("exp", "log", "sqrt", "tanh", "cos"))
AFTER = add(u, ONE)
MASK = holds(make("entry", (var("M", n, kind="boolean"), i)))


def less(x: Term, y: Term) -> Term:
    """x − y."""
    return add(x, minus(y))


def larger(x: Term, y: Term) -> Term:
    return make("maximum", (x, y))


def over(x: Term) -> Term:
    return power(x, -1)


def reached(x: Term) -> Term:
    """1 + c·x."""
    return add(ONE, mul(C, x))


CERTAIN: dict[int, list[Term]] = {
    2: [
        LOG(add(ONE, q)),
        LOG(TWO),
        less(EXP(add(u, q)), ONE),
        TANH(q),
        LOG(add(n, HALF)),
        less(mul(TWO, EXP(a)), EXP(a)),
        less(ONE, EXP(minus(q))),
        less(ONE, over(add(ONE, q))),
        add(larger(a, TWO), minus(ONE)),
        less(AFTER, mul(same(u, a), u)),
        power(less(TWO, same(i, j)), -1),
        add(HALF, holds(make("less", (a, b))), holds(make("less_equal", (b, a))), minus(ONE)),
        less(EXP(AFTER), EXP(u)),
        less(ROOT(AFTER), ROOT(u)),
        less(TANH(AFTER), TANH(u)),
        less(total(j, EXP(add(entry(X, j), ONE))), total(j, EXP(entry(X, j)))),
        less(
            EXP(mul(q, LOG(AFTER))),
            mul(less(ONE, same(u, ZERO)), EXP(mul(q, LOG(add(u, same(u, ZERO)))))),
        ),
        less(power(a, 3), power(less(a, ONE), 3)),
    ],
    1: [
        LOG(reached(u)),
        less(LOG(reached(AFTER)), LOG(reached(u))),
        less(EXP(minus(mul(C, u))), EXP(minus(mul(C, AFTER)))),
        TANH(u),
        less(over(reached(u)), over(reached(AFTER))),
        less(ONE, over(reached(u))),
        less(mul(q, LOG(AFTER), C), mul(q, C, LOG(add(u, HALF)))),
        less(mul(LOG(add(u, TWO)), ROOT(add(u, TWO))), mul(LOG(AFTER), ROOT(AFTER))),
        less(larger(AFTER, a), larger(a, u)),
        less(larger(a, larger(b, u)), larger(b, a)),
        less(up_to(u, a), up_to(AFTER, a)),
        less(up_to(u, a), under_(u, a)),
        less(mul(up_to(u, a), over(AFTER)), mul(under_(u, a), over(add(AFTER, ONE)))),
        less(mul(MASK, AFTER), mul(MASK, u)),
        less(q, q),
        less(COS(a), COS(a)),
        less(mul(EXP(a), EXP(b)), mul(EXP(a), EXP(b), EXP(minus(C)))),
        less(mul(power(a, 2), AFTER), mul(power(a, 2), u)),
    ],
    0: [
        LOG(a),
        LOG(q),
        LOG(C),
        less(LOG(add(a, ONE)), LOG(a)),
        less(LOG(AFTER), LOG(u)),
        less(LOG(add(C, C)), LOG(C)),
        less(ROOT(add(a, ONE)), ROOT(a)),
        less(COS(AFTER), COS(u)),
        less(unary("abs", add(a, ONE)), unary("abs", a)),
        less(over(u), over(AFTER)),
        less(over(add(a, ONE)), over(a)),
        less(over(a), over(add(a, ONE))),
        less(over(reached(AFTER)), over(reached(u))),
        less(LOG(reached(u)), LOG(reached(AFTER))),
        less(mul(a, AFTER), mul(a, u)),
        less(mul(a, LOG(TWO)), mul(a, LOG(ONE))),
        less(mul(TANH(AFTER), a), mul(TANH(u), a)),
        less(ONE, EXP(a)),
        less(ONE, over(q)),
        less(EXP(q), mul(TWO, EXP(q))),
        less(larger(a, u), larger(a, AFTER)),
        less(larger(AFTER, u), larger(a, u)),
        less(under_(u, a), up_to(u, a)),
        less(up_to(AFTER, a), up_to(u, a)),
        less(up_to(a, u), up_to(a, v)),
        less(total(j, EXP(entry(X, j))), total(j, EXP(entry(Y, j)))),
        less(total(j, EXP(add(entry(X, j), ONE))), total(j, EXP(add(entry(X, j), TWO)))),
        less(mul(TANH(add(a, ONE)), TANH(add(b, ONE))), mul(TANH(a), TANH(b))),
        less(mul(add(a, ONE), add(b, ONE)), mul(a, b)),
        less(mul(MASK, a), mul(MASK, b)),
        add(holds(make("less", (a, b))), holds(make("less", (b, a))), minus(ONE)),
        less(mul(same(u, a), u), ONE),
        less(EXP(mul(q, LOG(AFTER))), mul(TWO, EXP(mul(q, LOG(AFTER))))),
        minus(less(q, ONE)),
    ],
}


@each([(c, t) for c, ts in CERTAIN.items() for t in ts])
def test_a_difference_has_a_sign_only_where_something_is_certainly_as_large(
    certain: int, t: Term
) -> None:
    assert formed(t) is t
    settled = Normaliser()(t).right
    assert max(sign(t)[0], sign(settled)[0]) == certain
    assert not wrong(t, certain)


def wrong(t: Term, certain: int, facts: frozenset[Assumption] = frozenset()) -> bool:
    """Whether a sign fails in some world where the facts hold."""
    for seed in range(30):
        world = World(seed, largest=4)
        try:
            value = world(t)
        except Undefined:
            continue
        low = value < -1e-9 * max(1, abs(value))
        if all(holds_in(world, told) for told in facts) and (
            (certain and low) or (certain == 2 and value < 0 and not close_to(value, 0))
        ):
            return True
    return False


AT_LEAST, ONE_AT_LEAST = ("nonnegative", less(a, b)), ("nonnegative", less(a, ONE))
WITH_FACTS: list[tuple[list[Assumption], Term, int]] = [
    ([AT_LEAST], less(EXP(a), EXP(b)), 1),
    ([AT_LEAST], less(mul(q, a), mul(q, b)), 1),
    ([AT_LEAST], less(EXP(b), EXP(a)), 0),
    ([AT_LEAST], less(mul(u, b), mul(u, a)), 0),
    ([AT_LEAST], less(mul(X_ := entry(X, i), a), mul(X_, b)), 0),
    ([ONE_AT_LEAST], LOG(a), 1),
    ([ONE_AT_LEAST], a, 2),
    ([ONE_AT_LEAST], less(a, TWO), 0),
    ([ONE_AT_LEAST, AT_LEAST], less(mul(TWO, a), add(b, ONE)), 1),
    ([("positive", less(a, b)), ("nonnegative", less(b, q))], less(a, q), 2),
    ([("positive", less(a, b))], add(less(a, b), minus(ONE)), 0),
    ([("positive", a)], less(mul(a, AFTER), mul(a, u)), 2),
    ([("nonnegative", a)], less(mul(a, AFTER), mul(a, u)), 1),
    ([("nonnegative", minus(a))], less(mul(a, u), mul(a, AFTER)), 1),
    ([("nonnegative", minus(a))], less(mul(a, AFTER), mul(a, u)), 0),
    ([("nonnegative", less(u, ONE))], u, 2),
    ([("nonnegative", less(u, ONE))], LOG(u), 1),
    ([("nonzero", a)], a, 0),
    ([("nonnegative", X)], less(entry(D, i), entry(X, i)), 0),
]


@each(WITH_FACTS)
def test_facts_count_with_their_weight_and_come_back(
    told: list[Assumption], t: Term, certain: int
) -> None:
    t = Normaliser()(t).right
    found, used = sign(t, frozenset(told))
    assert found == certain
    assert sign(t)[0] < certain or not certain
    assert not certain or used & frozenset(told)
    assert all(some in told or some[1].op == "var" for some in used)


def test_what_holds_in_a_case_stays_in_it() -> None:
    """The condition of a case is no fact of the sum, and no assumption of the proof."""
    t = less(AFTER, mul(up_to(a, b), u))
    assert sign(t) == (2, frozenset())
    inside = less(ONE, mul(up_to(b, a), EXP(less(b, a))))
    found, used = sign(inside)
    assert (found, used) == (1, frozenset())
    outside = add(inside, mul(HALF, less(a, b)))
    assert sign(outside)[0] == 0


# faults of the search: each finds a false sign, and the kernel takes none

Fault = Callable[[pytest.MonkeyPatch], None]


def with_(name: str, value: object) -> Fault:
    """Another value for a name of the search, wherever it is used there."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        for module in (one for one in (signs, bounding) if hasattr(one, name)):
            patch.setattr(module, name, value)

    return fault


gap, rising, case_facts = bounding.gap, bounding._rising, signs.case_facts
collected, no_larger, shared = linear.collected, bounding._no_larger, linear.common_factors
below = bounding._below


def unasked(small: linear.Monomial, large: linear.Monomial, find: bounding.Search) -> object:
    """The comparison of what two products do not share, whatever the sign of what they share."""
    both, left, right = shared(small, large)
    found = no_larger(tuple(left), tuple(right), find)
    if found is None:
        return None
    return replace(found, pieces=[linear.times(*both, piece) for piece in found.pieces])


def increasing(op: str) -> Fault:
    """A function is taken to rise that does not."""

    def found(x: Term, y: Term, find: bounding.Search) -> object:
        if x.op == y.op == op:
            return rising(op, x.args[0], y.args[0], subtract(y, x), find)
        return below(x, y, find)

    def fault(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(bounding, "_below", found)
        patch.setattr(bounding, "LEAST", {**LEAST, op: 0})

    return fault


FAULTS: dict[str, tuple[Fault, Term]] = {
    "the cosine increases": (increasing("cos"), less(COS(AFTER), COS(u))),
    "the absolute value increases": (
        increasing("abs"),
        less(unary("abs", add(a, ONE)), unary("abs", a)),
    ),
    "1/x falls through 0": (
        with_("LEAST", dict.fromkeys(LEAST, 0)),
        less(over(a), over(add(a, ONE))),
    ),
    "the order is turned round": (
        with_("gap", lambda x, y, find: gap(y, x, find)),
        less(EXP(u), EXP(AFTER)),
    ),
    "any condition implies any other": (
        with_("_implies", lambda *_: ()),
        less(under_(u, a), up_to(u, a)),
    ),
    "what fails is told of what holds": (
        with_("case_facts", lambda gate, facts: case_facts(gate, facts)[::-1]),
        add(mul(a, up_to(a, ZERO)), mul(HALF, a, up_to(a, ZERO))),
    ),
    "one case is enough": (
        with_("_contradiction", lambda *_: (SignStep("positive", ZERO, "total", (ONE,)),)),
        less(mul(up_to(a, b), a), ONE),
    ),
    "a product of any numbers": (
        with_("_no_larger", unasked),
        less(mul(COS(a), EXP(AFTER)), mul(COS(a), EXP(u))),
    ),
    "like parts are dropped": (
        with_("collected", lambda t, *_: {m: c for m, c in collected(t).items() if c > 0}),
        less(q, mul(TWO, a)),
    ),
}


@pytest.fixture
def _forgetful() -> Iterator[None]:
    """No sign is remembered from before a fault, nor after it."""
    signs.find_sign.cache_clear()
    yield
    signs.find_sign.cache_clear()


@pytest.mark.usefixtures("_forgetful")
@pytest.mark.parametrize("says", FAULTS)
def test_a_fault_of_the_search_shows_no_false_sign(
    says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, t = FAULTS[says]
    assert sign(t)[0] == 0
    signs.find_sign.cache_clear()
    fault(monkeypatch)
    assert wrong(t, signs.find_sign(t)[0])
    with pytest.raises(Refused):
        sign(t)

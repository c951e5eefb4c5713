"""A term that means nothing is refused wherever it turns up, and so is what is not a term."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic.derivation import Cases, Chain, Derivation, Inside, Reflexive, Rewrite
from attnproof.symbolic.formed import formed
from attnproof.symbolic.kernel import Refused, replay
from attnproof.symbolic.normal_form.derived import condition_power
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite, under
from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    power,
)
from attnproof.symbolic.terms import Term, bind, make
from tests.symbolic.malformed import MALFORMED, TRUE
from tests.symbolic.vocabulary import (
    TWO,
    L,
    R,
    X,
    a,
    b,
    holds,
    i,
    n,
    outcome,
    stack,
    table,
    total,
    u,
    under_,
    var,
)


@pytest.mark.parametrize("t", MALFORMED)
def test_a_term_without_a_meaning_is_refused(t: Term) -> None:
    for whole in (t, make("named", (t,), ("f",), t.shape)):
        with pytest.raises(Refused, match="term"):
            formed(whole)
        with pytest.raises(Refused, match="term"):
            replay(Reflexive(whole))
    with pytest.raises(Refused, match="term"):
        replay(Rewrite("ring", ZERO, (mul(ZERO, t),), mul(ZERO, t)))


def test_a_table_of_fewer_rows_than_it_says_does_not_join_0_and_1() -> None:
    """Two rows [i < 1] and 1 agree at the one index of a table of length 1."""
    z = index("z", ONE)

    def two_rows(body: Term) -> Term:
        return make("tabulate", (ONE, bind(body, z)), shape=(TWO,))

    first = two_rows(under_(z, ONE))
    agree = under(first, (z,), rewrite("decide", under_(z, ONE)))
    second = entry(first, ONE)
    zero = chain(rewrite("entry", second), rewrite("decide", under_(ONE, ONE)))
    moved = inside(second, [(0, agree)])
    one = chain(moved, rewrite("entry", moved.right))
    assert (zero.right, one.right) == (ZERO, ONE)
    with pytest.raises(Refused, match="tabulate"):
        replay(chain(reverse(zero), one))


def test_three_conditions_under_one_or_do_not_join_4_and_2() -> None:
    conditions = [make("equal", pair) for pair in ((a, a), (b, b), (ZERO, ONE))]
    t = holds(make("or", tuple(conditions)))
    step = condition_power(power(t, 2))
    with pytest.raises(Refused, match="'or'"):
        replay(step)


class Pretender:
    """Says that it is any term, and changes its mind."""

    def __init__(self, t: Term) -> None:
        self.t = t

    def __getattr__(self, name: str) -> Any:
        return getattr(self.t, name)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(self.t)


def test_what_is_no_term_is_refused() -> None:
    fake: Any = Pretender(a)
    first = Rewrite("ring", a, (fake,), fake)
    with pytest.raises(Refused, match="make"):
        replay(first)
    with pytest.raises(Refused, match="make"):
        replay(Chain((first, Reflexive(fake))))


def test_a_term_that_was_forged_or_changed_by_force_is_refused() -> None:
    forged = object.__new__(Term)
    changed = make("var", (), ("to be changed", "real"))
    for name in ("op", "args", "data", "shape", "key", "loose", "finite"):
        object.__setattr__(forged, name, getattr(a, name))
    object.__setattr__(changed, "data", ("changed", "real"))
    for t in (forged, changed):
        with pytest.raises(Refused, match="make"):
            formed(t)
        with pytest.raises(Refused, match="make"):
            replay(Inside(add(t, b), (), add(t, b)))


def test_what_is_no_derivation_is_refused() -> None:
    class Sure(Reflexive):
        """A derivation of whatever it is asked for."""

    false: list[Any] = [Sure(a), None, "a = b", (a, b), Cases]
    for thing in false:
        with pytest.raises(Refused, match="no derivation"):
            replay(thing)
    parts: tuple[Derivation, ...] = (Reflexive(a),)
    with pytest.raises(Refused):
        replay(Chain((*parts, false[0])))


STACK = stack(X, index("t", L), var("y", n), make("add", (var("y", n), X), shape=(n,)))
FORMED = [
    STACK,
    stack(a, index("t", add(u, i)), b, mul(b, index("t", add(u, i)))),
    index("t", i),
    index("t", add(u, ONE)),
    total(outcome, entry(R, outcome)),
    table(outcome, entry(R, outcome)),
    make("reduce", (R,), 0),
    make("where", (TRUE, TRUE, TRUE)),
    add(holds(TRUE), ONE),
]


@pytest.mark.parametrize("t", FORMED)
def test_a_term_with_a_meaning_is_passed(t: Term) -> None:
    assert formed(t) is t
    assert replay(Reflexive(t)).left is t

"""Assumptions: what is assumed stays with a proof until it is granted or shown."""

from __future__ import annotations

import pytest

from attnproof.symbolic.derivation import Assume, Derivation, Lemma
from attnproof.symbolic.kernel import Proof, Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain, inside, rewrite
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, add, entry, index, mul, num, power
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.vocabulary import HALF, TWO, X, Y, a, b, i, k, minus, n, q, u, v, var

TWICE = law(add(a, a), mul(TWO, a), (a,))
LENGTH = law(mul(u, ONE), u, (u,))


def closed(d: Derivation, *granted: Term) -> Proof:
    return close(replay(d), frozenset(("equal", t) for t in granted), ("=", d.left, d.right))


def test_a_law_is_an_assumption_of_its_own() -> None:
    at_b = Assume(add(b, b), mul(TWO, b), TWICE, (b,))
    assert closed(at_b, TWICE).assumes == {("equal", TWICE)}
    for other in (law(add(b, b), mul(TWO, b)), law(add(a, a), mul(TWO, a)), LENGTH):
        with pytest.raises(Refused, match="not granted"):
            closed(at_b, other)
    assert law(add(b, b), mul(TWO, b), (b,)) is TWICE


@pytest.mark.parametrize("value", [X, MINUS_INFINITY, make("bound", data=0)])
def test_a_law_of_numbers_is_not_used_at_what_is_none(value: Term) -> None:
    body = [
        make(op, parts, shape=value.shape)
        for op, parts in (("add", (value, value)), ("mul", (TWO, value)))
    ]
    with pytest.raises(Refused):
        replay(Assume(body[0], body[1], TWICE, (value,)))


NATURAL = [
    u,
    n,
    i,
    add(u, v),
    mul(u, n),
    index("t", i),
    add(n, num(-1)),
    ONE,
    add(n, minus(i), num(-1)),
    entry(var("e", n, kind="index map", below=n), i),
]
NOT_NATURAL = [
    a,
    q,
    minus(u),
    add(u, num(-1)),
    HALF,
    add(n, num(-2)),
    power(u, 2),
    mul(HALF, u),
    add(i, minus(u)),
    entry(X, i),
    add(i, minus(k)),
    add(n, minus(u)),
]


@pytest.mark.parametrize("value", NATURAL)
def test_a_law_of_naturals_is_used_at_naturals(value: Term) -> None:
    moved = Assume(mul(value, ONE), value, LENGTH, (value,)) if value.op != "mul" else None
    if moved is not None:
        assert closed(moved, LENGTH).right is value


@each(NOT_NATURAL)
def test_a_law_of_naturals_is_used_at_nothing_else(value: Term) -> None:
    left = make("mul", (value, ONE))
    with pytest.raises(Refused, match="not a natural"):
        replay(Assume(left, value, LENGTH, (value,)))


@pytest.mark.parametrize(
    "variables",
    [
        (q,),
        (a, a),
        (i,),
        (n,),
        (add(a, b),),
        (var("s", n, kind="permutation", below=n),),
        (var("g", n, n, kind="orthogonal"),),
        (var("M", n, kind="boolean"),),
        (a, q),
    ],
)
def test_a_law_is_for_all_numbers_or_naturals(variables: tuple[Term, ...]) -> None:
    with pytest.raises(Refused, match="law"):
        law(a, a, variables)


def test_a_lemma_takes_the_place_of_its_law() -> None:
    shown = rewrite("ring", add(a, a), mul(TWO, a))
    at_b = Assume(add(b, b), mul(TWO, b), TWICE, (b,))
    assert closed(Lemma(at_b, shown, (a,))).assumes == frozenset()
    again = chain(at_b, inside(at_b.right, [(1, Assume(b, mul(b, ONE), law(b, mul(b, ONE))))]))
    for false in (
        Lemma(at_b, shown),
        Lemma(at_b, shown, (b,)),
        Lemma(again, shown, (a,)),
        Lemma(at_b, rewrite("ring", add(b, b), mul(TWO, b))),
    ):
        with pytest.raises(Refused, match="not granted"):
            closed(false)


def test_a_lemma_brings_its_own_assumptions() -> None:
    from_X = Assume(X, Y, law(X, Y))
    lemma = Lemma(from_X, from_X)
    assert replay(lemma).assumes == {("equal", law(X, Y))}
    with pytest.raises(Refused, match="not granted"):
        closed(lemma)
    for variables in ((X,), (X, Y)):
        with pytest.raises(Refused, match="a variable is not arbitrary"):
            replay(Lemma(from_X, from_X, variables))

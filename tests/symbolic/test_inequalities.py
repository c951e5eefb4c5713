"""Inequalities: proved by a form that shows the sign, and by hypotheses that the statement has."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import (
    Array,
    all_positive,
    at_least,
    greater,
    index_below,
    iterate,
    natural,
    nonnegative,
    positive,
    real,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.covers import Cover
from attnproof.symbolic.derivation import Assume, Derivation, Lemma, Reflexive
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused, close, law
from attnproof.symbolic.normal_form.equations import rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, entry, index, mul, power
from attnproof.symbolic.terms import make
from tests.cases import each
from tests.symbolic.stating import Said, because, proof_of_sign, verdict
from tests.symbolic.vocabulary import TWO, D, P, X, Y, a, b, case, i, minus, n, q, var

(N,) = sizes("n")
GIVEN: dict[str, Given] = {
    "a": real(),
    "b": real(),
    "p": positive(),
    "c": nonnegative(),
    "k": natural(),
    "x": real(N),
    "y": real(N),
    "r": nonnegative(N),
    "w": positive(N),
    "i": index_below(N),
}


def mean(x: Array) -> Any:
    return xp.mean(x, axis=0)


TRUE: dict[str, Said] = {
    "a square": Said(GIVEN, lambda a: at_least(a * a, 0)),
    "two numbers": Said(
        GIVEN, lambda a, b: at_least(a * a + b * b, 2 * a * b, ("the square", (a - b) ** 2))
    ),
    "Cauchy and Schwarz in two numbers": Said(
        GIVEN,
        lambda a, b, x: at_least(
            (a * a + b * b) * (x[0] ** 2 + 1),
            (a * x[0] + b) ** 2,
            ("Lagrange", (a - b * x[0]) ** 2),
        ),
    ),
    "a variance": Said(
        GIVEN,
        lambda x: at_least(
            mean(x * x), mean(x) ** 2, ("the mean of squares", mean((x - mean(x)) ** 2))
        ),
    ),
    "an exponential": Said(GIVEN, lambda p: greater(xp.exp(p), 1)),
    "at least 1": Said(GIVEN, lambda c: at_least(xp.exp(c), 1)),
    "a cosine": Said(GIVEN, lambda a: at_least(1, xp.cos(a))),
    "a hyperbolic tangent": Said(GIVEN, lambda a: at_least(1 + xp.tanh(a), 0)),
    "a size": Said(GIVEN, lambda a: at_least(N + 0 * a, 1, ("one less", N - 1))),
    "a natural": Said(GIVEN, lambda k: greater(k + 1, 0)),
    "an index": Said(GIVEN, lambda i: at_least(i, 0)),
    "entries": Said(GIVEN, lambda r: at_least(r, 0 * r)),
    "a sum": Said(GIVEN, lambda w: greater(xp.sum(w, axis=0), 0)),
    "one of many": Said(GIVEN, lambda r, w: at_least(r @ w, 0)),
    "weights": Said(GIVEN, lambda x: all_positive(xp.exp(x) / xp.sum(xp.exp(x), axis=0))),
    "a choice": Said(
        GIVEN,
        lambda a, c: at_least(xp.where(a <= 0, c, a * a), 0, ("", xp.where(a <= 0, c, a * a))),
    ),
    "a power": Said(GIVEN, lambda k, p: greater(iterate(k, p, lambda _, y: y * p), 0)),
    "by a hypothesis": Said(
        GIVEN, lambda a, b: at_least(xp.exp(a - b), 1), lambda a, b: [at_least(a, b)]
    ),
    "by a strict one": Said(
        GIVEN,
        lambda a, b, p: greater(p * a, p * b, ("p more", p * (a - b))),
        lambda a, b: [greater(a, b)],
    ),
    "of arrays": Said(
        GIVEN, lambda x, y: at_least(xp.sum(x - y, axis=0), 0), lambda x, y: [at_least(x, y)]
    ),
}
FALSE: dict[str, Said] = {
    "a number": Said(GIVEN, lambda a: at_least(a, 0)),
    "a square is positive": Said(GIVEN, lambda a: greater(a * a, 0)),
    "half of it": Said(
        GIVEN, lambda a, b: at_least(a * a + b * b, 3 * a * b, ("no", (a - b) ** 2))
    ),
    "the form is another": Said(GIVEN, lambda a, b: at_least(a, b, ("no", (a - b) ** 2))),
    "a variance the wrong way": Said(
        GIVEN, lambda x: at_least(mean(x) ** 2, mean(x * x), ("no", mean((x - mean(x)) ** 2)))
    ),
    "an exponential of any number": Said(GIVEN, lambda a: at_least(xp.exp(a), 1)),
    "more than 1": Said(GIVEN, lambda c: greater(xp.exp(c), 1)),
    "a cosine below 1": Said(GIVEN, lambda a: greater(1, xp.cos(a))),
    "two cosines": Said(GIVEN, lambda a: at_least(1, 2 * xp.cos(a))),
    "a size is 2": Said(GIVEN, lambda a: at_least(N + 0 * a, 2)),
    "a natural is positive": Said(GIVEN, lambda k: greater(k, 0)),
    "an index is positive": Said(GIVEN, lambda i: greater(i, 0)),
    "entries of any array": Said(GIVEN, lambda x: at_least(x, 0 * x)),
    "a sum of what is at least 0": Said(GIVEN, lambda r: greater(xp.sum(r, axis=0), 0)),
    "products of any numbers": Said(GIVEN, lambda x, w: at_least(x @ w, 0)),
    "the other choice": Said(
        GIVEN, lambda a, c: at_least(xp.where(a <= 0, a, c), 0, ("", xp.where(a <= 0, a, c)))
    ),
    "a difference of powers": Said(
        GIVEN, lambda k, p: greater(iterate(k, p, lambda _, y: y - p), 0)
    ),
    "a hypothesis the other way": Said(
        GIVEN, lambda a, b: at_least(xp.exp(a - b), 1), lambda a, b: [at_least(b, a)]
    ),
    "a hypothesis that is not strict": Said(
        GIVEN,
        lambda a, b, p: greater(p * a, p * b, ("p more", p * (a - b))),
        lambda a, b: [at_least(a, b)],
    ),
    "a hypothesis on other numbers": Said(
        GIVEN, lambda a, b: at_least(1 * a, b), lambda a, c: [at_least(a, c)]
    ),
    "a hypothesis at one index": Said(
        GIVEN, lambda x: at_least(x, 0 * x), lambda x, i: [at_least(x[i], 0)]
    ),
    "nobody's hypothesis": Said(GIVEN, lambda a, b: at_least(xp.exp(a - b), 1)),
}


@each(TRUE)
def test_what_a_form_shows_is_proved(name: str) -> None:
    assert verdict(TRUE[name]) == "proved", because(TRUE[name])


@each(FALSE)
def test_what_no_form_shows_is_not(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


def test_a_hypothesis_at_an_index_called_as_the_kernel_calls_its_own_is_none_for_all() -> None:
    for name in ("i0", "i1", "j0", "j1", "k0", "y0"):
        given = {"a": real(), name: index_below(N)}
        one = given[name].named(name)
        for claim in (
            lambda a: at_least(a - xp.arange(N), 0 * xp.arange(N)),
            lambda a: at_least(xp.sum(a - xp.arange(N), axis=0), 0),
        ):
            said = Said(given, claim, hypothesis(one))
            assert verdict(said) == "undecided", name


def hypothesis(one: Array) -> Any:
    return lambda a: [at_least(a - one, 0)]


# the proof itself

WHOLE: Cover = (("whole",),)


def test_what_is_at_least_0_is_shown_entry_by_entry() -> None:
    proof = proof_of_sign(D, WHOLE, (Reflexive(entry(D, case(D))),))
    assert (proof.relation, proof.assumes) == (">=", frozenset({("nonnegative", D)}))
    close(proof, frozenset({("nonnegative", D)}), (">=", D, ZERO))
    with pytest.raises(Refused, match="something else"):
        close(proof, frozenset({("nonnegative", D)}), (">", D, ZERO))


def test_what_is_positive_is_at_least_0() -> None:
    proof = proof_of_sign(P, WHOLE, (Reflexive(entry(P, case(P))),))
    granted = frozenset({("positive", P)})
    assert close(proof, granted, (">=", P, ZERO)) is close(proof, granted, (">", P, ZERO))


def test_facts_about_an_array_are_facts_about_its_entries() -> None:
    parts = (Reflexive(entry(X, case(X))),)
    for kind, relation in (("positive", ">"), ("nonnegative", ">=")):
        told = frozenset({(kind, X)})
        proof = proof_of_sign(X, WHOLE, parts, told)
        assert (proof.relation, proof.assumes) == (relation, told)
        for nothing in (frozenset({(kind, Y)}), frozenset({(kind, entry(X, i))}), frozenset()):
            with pytest.raises(Refused, match="does not show its sign"):
                proof_of_sign(X, WHOLE, parts, nothing)


def test_a_fact_about_one_entry_is_none_about_the_array() -> None:
    """X at i0 alone is positive, and i0 is how any index is printed."""
    array = make("add", (X, Y), shape=(n,))
    for first in (index("i0", n), case(array)):
        told = frozenset({("positive", add(entry(X, first), entry(Y, first)))})
        part = rewrite("entry", entry(array, first))
        with pytest.raises(Refused, match=r"not the entry of that case|mentions an open index"):
            proof_of_sign(array, WHOLE, (part,), told)


def test_a_sign_may_rest_on_an_equation_and_says_so() -> None:
    equation = law(a, power(b, 2))
    by_law: Derivation = Assume(a, power(b, 2), equation)
    proof = proof_of_sign(a, (), (by_law,))
    assert proof.assumes == {("equal", equation)}
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), (">=", a, ZERO))
    zero = mul(ZERO, var("y"))
    shown = Lemma(Assume(zero, ZERO, law(zero, ZERO)), rewrite("ring", zero, ZERO))
    assert proof_of_sign(zero, (), (shown,)).assumes == frozenset()


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Reflexive(ONE), "not the entry of that case"),
        (Reflexive(a), "does not show its sign"),
        (rewrite("ring", a, add(a, ONE, minus(ONE))), "does not show its sign"),
        (rewrite("ring", a, add(a, mul(ZERO, index("e", ZERO)))), "may have no value"),
    ],
)
def test_a_number_is_not_positive_by_another(part: Derivation, why: str) -> None:
    with pytest.raises(Refused, match=why):
        proof_of_sign(a, (), (part,))


def test_a_lower_bound_counts_only_what_is_bounded() -> None:
    for t, good in ((add(q, ONE), True), (add(TWO, minus(q)), False), (add(a, minus(q)), False)):
        if good:
            assert proof_of_sign(t, (), (Reflexive(t),)).relation == ">"
        else:
            with pytest.raises(Refused):
                proof_of_sign(t, (), (Reflexive(t),))

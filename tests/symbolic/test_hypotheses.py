"""Hypotheses on signs, in whichever way they are written, and arrays that are taken to differ."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, Law, at_least, differ, equal, exists, for_all, greater
from attnproof.symbolic.givens import boolean, real, sizes
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement, theorem

n, d = sizes("n d")
GIVEN = {
    "V": real(n, d),
    "lo": real(d),
    "A": real(n, d),
    "B": real(n, d),
    "M": boolean(n, n),
    "C": real(n, n),
}
V, lo, A, B, M, C = (given.named(name) for name, given in GIVEN.items())


def verdict(claim: Claim, *laws: Claim) -> str:
    told = Statement(GIVEN, {"": claim}, (), tuple(map(Law, laws)))
    return decide(told, refuting=False).verdict


SAME = (at_least(V, lo), at_least(V - lo, 0), at_least(0, lo - V), at_least(-lo, -V))


@pytest.mark.parametrize("known", SAME)
@pytest.mark.parametrize("claimed", SAME)
def test_what_is_known_is_known_however_it_is_written(claimed: Claim, known: Claim) -> None:
    assert verdict(claimed, known) == "proved"


def test_what_is_known_of_one_array_is_not_known_of_another() -> None:
    for claimed in (at_least(lo, V), at_least(V, lo + 1), greater(V, lo), at_least(A, lo)):
        assert verdict(claimed, at_least(V, lo)) == "undecided"
    assert verdict(greater(V - lo, 0), greater(V, lo)) == "proved"
    assert verdict(at_least(V - lo, 0), greater(V, lo)) == "proved"


def distance(a: Array, b: Array) -> Array:
    return xp.sum(xp.sum((a - b) ** 2, axis=1), axis=0)


def test_arrays_that_differ_are_at_a_distance() -> None:
    assert verdict(greater(distance(A, B), 0), differ(A, B)) == "proved"
    assert verdict(greater(distance(B, A), 0), differ(A, B)) == "proved"
    assert verdict(greater(distance(A, V), 0), differ(A, B)) == "undecided"
    assert verdict(greater((A[0, 0] - B[0, 0]) ** 2, 0), differ(A, B)) == "undecided"
    assert verdict(greater(distance(A, B), 0)) == "undecided"


def test_a_hypothesis_that_the_kernel_cannot_use_is_refused_in_a_sentence() -> None:
    some = exists(real(), "z", lambda z: equal(z * A[0, 0], 1))
    every = for_all({"x": real(n, d)}, lambda x: differ(x, A)).claim
    for told in (some, every):
        with pytest.raises(TypeError, match="a hypothesis is an equation, for all values"):
            verdict(equal(A, A), told)


LOW = xp.where(M, 0, -xp.inf)
UNFIT = (differ(M, M.mT), differ(LOW, C), differ(C, LOW), differ(LOW, LOW.mT))


@pytest.mark.parametrize("told", UNFIT)
def test_only_finite_numbers_are_taken_to_differ(told: Claim) -> None:
    with pytest.raises(
        TypeError, match="a hypothesis that two arrays differ wants arrays of finite numbers"
    ):
        verdict(equal(A, A), told)


def test_a_conclusion_that_arrays_differ_needs_a_contradiction() -> None:
    def body(A: Array, B: Array) -> Claim:
        return differ(A, B)

    stated = theorem("t", given=GIVEN)(body)
    with pytest.raises(TypeError, match="differ is proved by contradiction"):
        stated.statement  # noqa: B018
    assert verdict(differ(A, B), differ(A, B)) == "undecided"

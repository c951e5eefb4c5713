"""Induction on a natural number: from 0, from m to m + 1, and for nothing that is not a natural."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from attnproof.symbolic import Array, Claim, equal, iterate, natural, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.derivation import Assume, Derivation, NaturalInduction
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Proof, Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain, inside, reverse, rewrite
from attnproof.symbolic.scalars import ONE, ZERO, add, index, integer, mul
from attnproof.symbolic.terms import Term, substitute
from tests.symbolic.false_proofs import assumed
from tests.symbolic.interpreter import World, close_to
from tests.symbolic.stating import Said, because, verdict
from tests.symbolic.vocabulary import a, b, n, q, stack, u, v, var

(d,) = sizes("d", "features")
NUMBERS: dict[str, Given] = {
    "m": natural(),
    "k": natural(),
    "a": real(),
    "b": real(),
    "M": real(d, d),
    "X": real(d, d),
}


def power(matrix: Array, exponent: Any) -> Any:
    return iterate(exponent, xp.eye(d), lambda _, Y: matrix @ Y)


def times(m: Any, start: Any, step: Any) -> Any:
    """start + step + ... + step, m times."""
    return iterate(m, start, lambda _, y: y + step)


def below(m: Any) -> Any:
    """0 + 1 + ... + (m − 1)."""
    return iterate(m, 0 * real().named("a"), lambda t, y: y + t)


TRUE: dict[str, Callable[..., Any]] = {
    "m times": lambda m, a, b: equal(times(m, a, b), a + m * b).by_induction(m),
    "0 + .. + (m − 1)": lambda m: equal(2 * below(m), m * (m - 1)).by_induction(m),
    "powers add up": lambda m, k, M: equal(power(M, m + k), power(M, m) @ power(M, k)).by_induction(
        m
    ),
    "a power commutes": lambda m, M: equal(power(M, m) @ M, M @ power(M, m)).by_induction(m),
    "a constant stack": lambda m, X: equal(iterate(m, X, lambda _, Y: Y), X).by_induction(m),
    "a stack of m layers and k more": lambda m, k, a, b: equal(
        times(k + m, a, b), times(m, times(k, a, b), b)
    ).by_induction(m),
}
FALSE: dict[str, Callable[..., Any]] = {
    "the base fails": lambda m, a, b: equal(times(m, a, b), a + b + m * b).by_induction(m),
    "the step fails": lambda m, a, b: equal(times(m, a, b), a + m * m * b).by_induction(m),
    "true at 0 and at 1": lambda m: equal(2 * below(m), m * (1 - m)).by_induction(m),
    "one factor too many": lambda m, k, M: equal(
        power(M, m + k + 1), power(M, m) @ power(M, k)
    ).by_induction(m),
    "other matrices commute": lambda m, M, X: equal(power(M, m) @ X, X @ power(M, m)).by_induction(
        m
    ),
    "on another number": lambda m, k, a, b: equal(times(m, a, b), a + m * b).by_induction(k),
    "without induction": lambda m, a, b: equal(times(m, a, b), a + m * b),
    "the first layer is the last": lambda m, X: equal(
        iterate(m + 1, X, lambda t, Y: Y * t), iterate(m, X, lambda t, Y: Y * t)
    ).by_induction(m),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_holds_of_every_natural_is_proved(name: str) -> None:
    assert verdict(Said(NUMBERS, TRUE[name])) == "proved"


@pytest.mark.parametrize("name", FALSE)
def test_what_fails_for_some_natural_is_not(name: str) -> None:
    assert verdict(Said(NUMBERS, FALSE[name])) == "undecided"


def test_a_size_is_no_natural_and_neither_is_a_real_number() -> None:
    (N,) = sizes("n")

    def on(claim: Claim, number: Array) -> Claim:
        with pytest.raises(TypeError, match="induction is on a given natural number"):
            claim.by_induction(number)
        return replace(claim, by="induction", on=number.term)

    half = Said(NUMBERS, lambda a: on(equal(xp.cos(0 * a) * a, a), a))
    size = Said(
        {"x": real(N)}, lambda x: on(equal(2 * xp.sum(x, axis=0) * N, 2 * N * xp.sum(x, axis=0)), N)
    )
    for said in (half, size):
        assert verdict(said) == "undecided"
        assert "not a natural number" in because(said)


def test_a_hypothesis_on_the_number_is_no_help() -> None:
    """If m is 2, then [m = 2] = 0 holds at 0, and at m + 1 for this m."""
    said = Said(
        NUMBERS,
        lambda m: equal(xp.astype(m == 2, float), 0 * m).by_induction(m),
        lambda m: [(m, 2)],
    )
    assert "it is not arbitrary" in because(said)


# the derivation itself

AFTER = integer(add(u, ONE))
y, layer = var("y"), index("t", u)
LEFT, RIGHT = stack(a, layer, y, add(y, b)), add(a, mul(u, b))


def base() -> Derivation:
    start = substitute(LEFT, u, ZERO)
    return chain(rewrite("layer", start), rewrite("ring", a, substitute(RIGHT, u, ZERO)))


def step(*values: Term, used: Term | None = None, at: Term = u) -> Derivation:
    """The last layer of u + 1, and the equation at u for the layers before it."""
    last = rewrite("layer", substitute(LEFT, u, AFTER))
    left, right = (substitute(side, u, at) for side in (LEFT, RIGHT))
    before = Assume(left, right, used or law(left, right), values)
    inner = inside(last.right, [(last.right.args.index(left), before)])
    return chain(last, inner, rewrite("ring", inner.right, substitute(RIGHT, u, AFTER)))


def test_an_induction_uses_its_hypothesis_and_rests_on_nothing() -> None:
    proof = replay(NaturalInduction(LEFT, RIGHT, u, base(), step()))
    assert close(proof, frozenset(), ("=", LEFT, RIGHT)) is proof
    for world in map(World, range(4)):
        assert close_to(world(LEFT), world(RIGHT))


def closed(derivation: Derivation) -> Proof:
    return close(replay(derivation), frozenset(), ("=", LEFT, RIGHT))


def test_the_hypothesis_may_be_had_for_all_values_of_further_variables() -> None:
    every = law(LEFT, RIGHT, (a, b))
    proof = replay(NaturalInduction(LEFT, RIGHT, u, base(), step(a, b, used=every), (a, b)))
    assert proof.assumes == frozenset()
    for variables in ((), (a,), (b, a), (q, b), (n,), (u, a, b)):
        with pytest.raises(Refused):
            closed(NaturalInduction(LEFT, RIGHT, u, base(), step(a, b, used=every), variables))


def test_the_hypothesis_at_another_number_is_nobodys() -> None:
    elsewhere = Assume(LEFT, RIGHT, law(LEFT, RIGHT))
    other = substitute(LEFT, u, v)
    shown = NaturalInduction(LEFT, RIGHT, u, base(), step())
    wrong = [
        NaturalInduction(LEFT, RIGHT, u, elsewhere, step()),
        NaturalInduction(LEFT, RIGHT, u, base(), elsewhere),
        NaturalInduction(LEFT, RIGHT, u, step(), base()),
        NaturalInduction(LEFT, RIGHT, v, base(), step()),
        NaturalInduction(LEFT, RIGHT, a, base(), step()),
        NaturalInduction(RIGHT, LEFT, u, base(), step()),
        NaturalInduction(other, substitute(RIGHT, u, v), u, base(), step()),
        NaturalInduction(LEFT, RIGHT, u, base(), reverse(reverse(base()))),
    ]
    assert replay(shown).assumes == frozenset()
    for false in wrong:
        with pytest.raises(Refused, match="natural induction"):
            replay(false)


def test_the_base_case_has_no_hypothesis() -> None:
    """What is assumed at 0 stays assumed, though it says what is to be shown."""
    proof = replay(NaturalInduction(a, b, u, assumed(a, b), assumed(a, b)))
    assert proof.assumes == {("equal", law(a, b))}
    fixed = stack(a, index("t", ZERO), y, add(y, b))
    start = chain(rewrite("layer", fixed), assumed(a, b))
    assert replay(NaturalInduction(fixed, b, u, start, assumed(fixed, b))).assumes


def test_a_hypothesis_that_is_kept_must_be_granted() -> None:
    """An equation about k may be used on the way, and stays with the proof."""
    extra = ("equal", law(a, b))
    first = Assume(a, b, law(a, b))
    back = reverse(first)
    proof = replay(NaturalInduction(LEFT, RIGHT, u, chain(base()), chain_with(first, back)))
    assert proof.assumes == {extra}
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), ("=", LEFT, RIGHT))


def chain_with(first: Derivation, back: Derivation) -> Derivation:
    """The step, with a detour from a to b and back."""
    whole = step()
    end = whole.right
    place = next(k for k, arg in enumerate(end.args) if arg is a)
    there = inside(end, [(place, first)])
    return chain(whole, there, inside(there.right, [(place, back)]))

"""Certificates that a linear system has no solution, and none for systems that have one."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from flint import arb, fmpq

from attnproof.symbolic import failures as no_solution
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.certified_numbers import NotANumber
from attnproof.symbolic.claim import Claim, equal, exists
from attnproof.symbolic.failures import Affine, Equation, contradiction
from attnproof.symbolic.givens import positions, real, sizes
from attnproof.symbolic.refute import refute

(n,) = sizes("n")


def system(rows: list[tuple[dict[int, Any], Any]]) -> list[Equation]:
    return [Equation(slopes, constant, k, ()) for k, (slopes, constant) in enumerate(rows)]


def test_a_row_without_unknowns() -> None:
    found = contradiction(system([({0: fmpq(1)}, fmpq(1)), ({}, arb(1).exp())]))
    assert found is not None
    assert (len(found.rows), found.gap > 2) == (1, True)
    assert contradiction(system([({}, fmpq(0))])) is None
    assert contradiction(system([({}, arb(0, 1))])) is None


def test_a_minor() -> None:
    found = contradiction(system([({0: fmpq(1)}, fmpq(1)), ({0: fmpq(1)}, fmpq(2))]))
    assert found is not None
    assert (len(found.rows), int(found.gap)) == (2, 1)
    wide = arb(2, 2)
    assert contradiction(system([({0: fmpq(1)}, fmpq(1)), ({0: fmpq(1)}, wide)])) is None


def test_a_system_with_a_solution_gets_no_certificate() -> None:
    random = Random(0)
    for _ in range(50):
        width = random.randrange(1, 4)
        solution = [fmpq(random.randrange(-3, 4), 2) for _ in range(width)]
        rows: list[tuple[dict[int, Any], Any]] = []
        for _ in range(6):
            held = [k for k in range(width) if random.random() < 0.7]
            slopes = {k: arb(random.randrange(1, 4)).exp() for k in held}
            rows.append((slopes, -sum((a * solution[k] for k, a in slopes.items()), arb(0))))
        assert contradiction(system(rows)) is None
        rows[0] = (rows[0][0], rows[0][1] + 1)
        rows.append((rows[0][0], rows[0][1] - 1))
        if rows[0][0]:
            assert contradiction(system(rows)) is not None


def test_an_unknown_number_is_only_added_and_scaled() -> None:
    m = Affine(fmpq(0), {0: fmpq(1)})
    form = 3 * m + fmpq(1, 2) + arb(2) * m
    assert form.constant == fmpq(1, 2)
    assert form.slopes[0] == 5
    with pytest.raises(NotANumber):
        m * m
    with pytest.raises(NotANumber):
        bool(m)


BODIES: list[Any] = [
    lambda M, x: equal(M * M, x),
    lambda M, x: equal(xp.exp(M), x),
    lambda M, x: equal(xp.where(x > M, x, x), x + 1),
    lambda M, x: equal(xp.maximum(M, x), x),
]


@pytest.mark.parametrize("body", BODIES)
def test_what_is_not_linear_in_the_unknown_is_left_open(body: Any) -> None:
    given = {"x": real(n)}
    claim = exists(real(n), "M", lambda M: body(M, given["x"].named("x")))
    assert refute(claim, given, limit_seconds=0.1) is None


def test_the_unknown_may_depend_on_what_it_is_not_free_of() -> None:
    given = {"x": real(), "p": positions()}
    x, p = (g.named(name) for name, g in given.items())

    def claim(*free_of: Array) -> Claim:
        return exists(real(), "m", lambda m: equal(m * (1 + x * x), x + p), free_of=free_of)

    assert refute(claim(), given, limit_seconds=0.2) is None
    assert refute(claim(x, p), given) is not None
    witness = refute(claim(p), given)
    assert witness is not None
    assert witness.values["p"] == [0, 1]
    assert "2 linear equations for 1 entry of m" in witness.text
    fixed = refute(claim(x, p), given)
    assert fixed is not None
    assert fixed.text.startswith("at x = ")


def test_a_witness_without_sizes_and_values_begins_with_what_fails() -> None:
    none = exists(real(), "m", lambda m: equal(0 * m, as_array(1)))
    for claim, text in (
        (none, "left - right is -1 whatever m is"),
        (equal(0, 1), "left 0, right 1"),
    ):
        witness = refute(claim, {})
        assert witness is not None
        assert witness.text == text


def test_a_slope_that_may_be_zero_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """m·(exp(2⁻²⁰⁰⁰) - 1) = 1 has a solution, though no ball here tells the slope from 0."""
    tiny = xp.exp(as_array(Fraction(1, 2**2000))) - 1
    claim = exists(real(), "m", lambda m: equal(m * tiny, as_array(1)))
    assert refute(claim, {}, limit_seconds=0.1) is None
    monkeypatch.setattr(no_solution, "_exactly_zero", lambda a: bool(arb(a).contains(0)))
    assert refute(claim, {}) is not None

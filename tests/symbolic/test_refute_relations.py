"""Witnesses against order and difference, with laws, natural numbers and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attnproof.symbolic import admissible, failures
from attnproof.symbolic import admissible as laws
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.admissible import obeys
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.candidates import Candidate, is_design
from attnproof.symbolic.certified_numbers import Balls
from attnproof.symbolic.claim import (
    Claim,
    Law,
    at_least,
    differ,
    equal,
    for_all,
    greater,
    iterate,
    rows,
)
from attnproof.symbolic.decision import Witness
from attnproof.symbolic.givens import (
    Given,
    function,
    index_below,
    inverse,
    natural,
    nonnegative,
    permutation,
    positive,
    probability_space,
    real,
    sizes,
    standard,
)
from attnproof.symbolic.refute import refute
from attnproof.symbolic.statement import Statement
from tests.cases import each

n, d = sizes("n d")
omega, psi = probability_space("Ω"), probability_space("Ψ")
Case = tuple[Mapping[str, Given], Callable[..., Any], Callable[..., list[Any]] | None]


def power(M: Array, k: Any) -> Any:
    return iterate(k, xp.eye(M.shape[0]), lambda _, Y: M @ Y)


def attempt(case: Case, limit: float = 3.0) -> Witness | None:
    given, body, assume = case
    arrays = {name: g.named(name) for name, g in given.items()}
    pairs, told = [], []
    for taken in assume(**arrays) if assume else []:
        if isinstance(taken, tuple):
            pairs.append((as_array(taken[0]).term, as_array(taken[1]).term))
        else:
            told.append(taken if isinstance(taken, Law) else Law(taken))
    claim = body(*arrays.values())
    claim = claim.claim if isinstance(claim, Law) else claim
    return refute(claim, given, tuple(pairs), tuple(told), limit_seconds=limit)


XY = {"x": real(), "y": real()}
AB = {"a": natural(), "b": natural()}
POWERS = {"M": real(d, d), "m": natural(), "k": natural()}
Z = {"z": standard(omega, d), "w": standard(psi, d), "mu": real(), "s": real()}
SQUARE = {"A": real(d, d), "B": real(d, d)}
INVARIANT = {"alpha": function(1, 1), "g": function(1, out=None), "x": real(n), "y": real(n)}


def product_of(z: Array, w: Array, mu: Array, s: Array) -> Array:
    return (mu + s * z) @ (mu + s * w).mT


def mean(x: Array) -> Array:
    return xp.sum(xp.sum(x, axis=0), axis=0)


def keeps(alpha: Any, g: Any, **_: Any) -> list[Any]:
    both = {"x": real(n), "y": real(n)}
    return [for_all(both, lambda x, y: equal(alpha(g(x), g(y)), alpha(x, y)))]


TRUE: dict[str, Case] = {
    "a square is at least 0": (XY, lambda x, y: at_least(x * x + y * y, 2 * x * y), None),
    "a square plus 1": (XY, lambda x, y: greater(x * x + y * y + 1, 2 * x * y), None),
    "below a bound": (
        {"c": real(), "V": real(n)},
        lambda c, V: at_least(n * c, xp.sum(V)),
        lambda c, V: [at_least(c, V)],
    ),
    "a nonnegative number": ({"t": nonnegative(n)}, lambda t: at_least(t, 0), None),
    "different cosines": (
        AB,
        lambda a, b: differ(xp.cos(a), xp.cos(b), 1),
        lambda a, b: [differ(a, b)],
    ),
    "powers add": (POWERS, lambda M, m, k: equal(power(M, m + k), power(M, m) @ power(M, k)), None),
    "a table of powers": (
        POWERS,
        lambda M, m, k: equal(  # noqa: ARG005
            rows(n, lambda i: power(M, i) @ M), rows(n, lambda i: power(M, i + 1))
        ),
        None,
    ),
    "digits": (AB, lambda a, b: equal((b + 1) * (a // (b + 1)) + a % (b + 1), a), None),
    "back and forth": (
        {"s": permutation(n), "X": real(n, d)},
        lambda s, X: equal(X[s][inverse(s)], X),
        None,
    ),
    "mean of a product": (
        Z,
        lambda z, w, mu, s: equal(mean(product_of(z, w, mu, s)), d * mu**2),
        None,
    ),
    "variance of a product": (
        Z,
        lambda z, w, mu, s: equal(
            mean((product_of(z, w, mu, s) - d * mu**2) ** 2), d * (s**4 + 2 * mu**2 * s**2)
        ),
        None,
    ),
    "a left inverse": (
        SQUARE,
        lambda A, B: equal(B @ A, xp.eye(d)),
        lambda A, B: [(A @ B, xp.eye(d))],
    ),
    "an invariant score": (
        INVARIANT,
        lambda alpha, g, x, y: equal(alpha(g(x), g(y)), alpha(x, y)),
        keeps,
    ),
    "a law of an index": (
        {"x": real(n)},
        lambda x: greater(xp.sum(x), 0),
        lambda x: [for_all({"i": index_below(n)}, lambda i: greater(x[i], 0))],
    ),
    "another variable of one name": (
        {"x": positive()},
        lambda x: for_all({"x": real()}, lambda x: at_least(x * x, 0)),  # noqa: ARG005
        lambda x: [(x * x, x)],
    ),
}

FALSE: dict[str, tuple[Case, str]] = {
    "a square is above a number": (
        (XY, lambda x, y: at_least(x * x, y), None),
        "x = 0, y = 1: left 0 is below right 1",
    ),
    "strictly": (
        (XY, lambda x, y: greater(x * x + y * y, 2 * x * y), None),
        "x = 0, y = 0: left 0 is not above right 0",
    ),
    "above half of the bound": (
        (
            {"c": real(), "V": real(n)},
            lambda c, V: at_least(c, 2 * V),
            lambda c, V: [at_least(c, V)],
        ),
        "every size 1, c = 2, V = (2): left 2 is below right 4",
    ),
    "different naturals without a hypothesis": (
        (AB, differ, None),
        "a = 0, b = 0: the two are equal, both 0",
    ),
    "a frequency that is a turn": (
        (
            AB,
            lambda a, b: differ(xp.cos(2 * xp.pi * a), xp.cos(2 * xp.pi * b), 1),
            lambda a, b: [differ(a, b)],
        ),
        "a = 0, b = 1: the two are equal, both 1",
    ),
    "a frequency that is half a turn": (
        (
            AB,
            lambda a, b: differ(
                xp.stack((xp.cos(xp.pi * a), xp.sin(xp.pi * a))),
                xp.stack((xp.cos(xp.pi * b), xp.sin(xp.pi * b))),
                1,
                ("", 2),
                -1,
            ),
            lambda a, b: [differ(a, b)],
        ),
        "a = 0, b = 2: the two are equal, with 1 at [0]",
    ),
    "arrays that may be equal": (
        ({"x": real(n)}, lambda x: differ(x, 2 * x, 1, ("", 2), -1), None),
        "every size 1, x = (0): the two are equal, with 0 at [0]",
    ),
    "powers multiply": (
        (POWERS, lambda M, m, k: equal(power(M, m * k), power(M, m) @ power(M, k)), None),
        "",
    ),
    "one power too many": (
        (POWERS, lambda M, m, k: equal(power(M, m + k), power(M, m) @ M @ power(M, k)), None),
        "",
    ),
    "moved twice": (
        ({"s": permutation(n), "x": real(n)}, lambda s, x: equal(x[inverse(s)], x[s]), None),
        "n = 3, s = (1 2 0), x = (0, 0, 1): left 1, right 0",
    ),
    "the variance as often printed": (
        (Z, lambda z, w, mu, s: equal(mean(product_of(z, w, mu, s) ** 2), d * s**4), None),
        "",
    ),
    "fourth moments": (
        ({"z": standard(omega, 1)}, lambda z: equal(xp.sum(z**4, axis=0)[0], 1), None),
        "",
    ),
    "as large as its inverse": (
        (SQUARE, equal, lambda A, B: [(A @ B, xp.eye(d))]),
        "every size 1, A = (2), B = (1/2): left 2, right 1/2",
    ),
    "orthonormal columns": (
        (
            {"K": real(n, d)},
            lambda K: equal(K @ K.mT, xp.eye(n)),
            lambda K: [(K.mT @ K, xp.eye(d))],
        ),
        "n = 2, other sizes 1, K = (1, 0): left 0, right 1 at [1, 1]",
    ),
    "invariant on one side": (
        (INVARIANT, lambda alpha, g, x, y: equal(alpha(g(x), y), alpha(x, y)), keeps),
        "every size 1, alpha(x, y) = Σᵢ xᵢ yᵢ, g(x) = −x, x = (1), y = (1): left -1, right 1",
    ),
    "of any further number": (
        ({"x": real(n)}, lambda x: for_all({"k": natural()}, lambda k: equal(k * x, x)), None),
        "every size 1, x = (1), k = 0: left 0, right 1",
    ),
    "another variable of one name": (
        (
            {"x": positive()},
            lambda x: for_all({"x": real()}, lambda x: greater(x * x, 0)),  # noqa: ARG005
            lambda x: [(x * x, x)],
        ),
        "x = 1, x′ = 0: left 0 is not above right 0",
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_statement_is_never_refuted(name: str) -> None:
    assert attempt(TRUE[name], 0.4) is None


@each(FALSE)
def test_a_false_statement_is_refuted(name: str) -> None:
    case, text = FALSE[name]
    witness = attempt(case)
    assert witness is not None
    assert not text or witness.text == text


def test_a_hypothesis_decides() -> None:
    """Without them the true statements above are false, and are refuted."""
    for name in ("below a bound", "a left inverse", "an invariant score", "a law of an index"):
        given, body, _ = TRUE[name]
        assert attempt((given, body, None)) is not None
    given, body, _ = TRUE["different cosines"]
    assert attempt((given, body, None)) is not None


def test_hypotheses_that_are_not_checked_let_a_true_statement_fall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admissible, "holds", lambda *_: True)
    assert attempt(TRUE["below a bound"]) is not None


def test_a_law_is_not_certified_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    """x = 0 and x = 1 are on x² = x: a few values would certify it, the polynomials do not."""
    case: Case = (
        {"f": function(0), "x": real()},
        lambda f, x: equal(f(x), x),
        lambda f, x: [for_all({"y": real()}, lambda y: equal(f(y), y))],  # noqa: ARG005
    )
    assert attempt(case, 0.3) is None

    def tried(claim: Claim, sizes: Any, values: Any) -> bool:
        shown = (Fraction(0), Fraction(1))
        bare = replace(claim, variables=())
        every = ({**values, "y": np.array(y, dtype=object)} for y in shown)
        return all(laws.certain(bare, Balls(sizes, one)) for one in every)

    monkeypatch.setattr(laws, "_equal_polynomials", tried)
    assert attempt(case) is not None


def test_what_is_no_polynomial_is_not_certified() -> None:
    x, f = real().named("x"), function(0).named("f")
    law = for_all({"y": real()}, lambda y: equal(xp.exp(y) * f(y), xp.exp(y) * f(y)))
    assert not laws.holds(law, {}, {"x": x, "f": lambda y: y})
    same = for_all({"y": real()}, lambda y: equal(f(y) * 2, f(y) + f(y)))
    assert laws.holds(same, {}, {"f": lambda y: y * y})
    other = for_all({"y": real()}, lambda y: equal(f(y) * 2, f(y) * f(y)))
    assert not laws.holds(other, {}, {"f": lambda y: y * y})


def test_two_things_of_one_name_certify_nothing() -> None:
    """The law says c = y of a given y and every number y; read as one, they would be equal."""
    y = positive().named("y")
    law = Law(replace(equal(y, real().named("y")), variables=(("y", real()),)))
    assert not laws.holds(law, {}, {"y": np.array(Fraction(1), dtype=object)})


def test_equality_wants_exact_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balls that overlap are no equality: exp(1)·exp(−1) and 1 are not known to be one number."""
    case: Case = ({"a": natural()}, lambda a: differ(xp.exp(a + 1) * xp.exp(-a - 1), 1, 1), None)
    assert attempt(case, 0.2) is None
    monkeypatch.setattr(failures, "_sides", lambda *_: (np.array([1.0]), np.array([1.0])))
    assert attempt(case, 0.2) is None


def test_arrays_without_entries_have_no_entry_to_show() -> None:
    """Without entries, at n = 1, the two arrays are equal; at all other sizes they differ."""

    def body(x: Any) -> Claim:
        return differ(x, x + 1, xp.sum(x), ("", xp.sum(x + 1)), 1 - x.shape[0])

    assert attempt(({"x": real(n - 1)}, body, None), 0.2) is None


def test_what_a_given_says_is_checked_exactly() -> None:
    one = Fraction(1)
    z = np.array([[one], [-one]], dtype=object)
    kind = standard(omega, 1)
    assert obeys(Candidate({"Ω": 2}, {"z": z}), {"z": kind})
    for bad in (z + 1, 2 * z, z * 0, z * z):
        assert not is_design(bad)
        assert not obeys(Candidate({"Ω": 2}, {"z": bad}), {"z": kind})
    assert obeys(Candidate({}, {"m": 0}), {"m": natural()})
    for wrong in (-1, Fraction(1, 2), True):
        assert not obeys(Candidate({}, {"m": wrong}), {"m": natural()})
    least = np.array([one, -one], dtype=object)
    assert not obeys(Candidate({}, {"t": least}), {"t": nonnegative(2)})
    assert obeys(Candidate({}, {"t": least - least}), {"t": nonnegative(2)})


def test_designs_are_designs() -> None:
    from random import Random

    from attnproof.symbolic.candidates import design, outcomes

    for numbers in (1, 2, 3, 4):
        for count in outcomes(numbers):
            for seed in range(20):
                z = design((count, numbers), Random(seed))
                assert z is not None
                assert is_design(z)
    assert design((3, 2), Random(0)) is None
    assert {abs(x) for seed in range(20) for x in design((4, 2), Random(seed)).ravel()} != {1}


def test_values_that_obey_hypotheses_are_looked_for_until_some_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def find_example(*given: Any) -> str | None:
        asked.append(given[-1])
        return "values" if len(asked) > 1 else None

    monkeypatch.setattr("attnproof.symbolic.refute.find_example", find_example)
    statement = Statement({"x": real()}, {})
    found: list[Any] = [statement.example(seconds) for seconds in (1.0, 2.0, 3.0)]
    assert found == [None, "values", "values"]
    assert asked == [1.0, 2.0]

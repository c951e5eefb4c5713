"""What SymPy derives of theorems, and what it must refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import sympy as sp

from attnproof.symbolic import (
    at_least,
    differ,
    equal,
    exists,
    for_all,
    function,
    greater,
    index_map,
    namespace,
    natural,
    orthogonal,
    permutation,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.expressions import judging
from attnproof.symbolic.expressions import namespace as expressions
from attnproof.symbolic.expressions.array import Expressions, entry_lines
from attnproof.symbolic.expressions.deriving import Derivation, derive, sides
from attnproof.symbolic.expressions.generators import Generators
from attnproof.symbolic.expressions.signs import certain_sign
from attnproof.symbolic.statement import Statement, Theorem
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorems.definitions.attention import attention, softmax
from tests.cases import each

n, r = sizes("n r", "tokens")
d, e = sizes("d e", "features")


def derived(body: Any, assume: Any = None, **given: Any) -> Derivation:
    statement: Statement = Theorem("", given, body, assume=assume).statement
    assert statement.code is not None
    return derive(statement, statement.code, 20.0)


@pytest.mark.parametrize(
    ("before", "size"), [("", 20_000), ("os.environ['SYMPY_CACHE_SIZE'] = '7'", 7)]
)
def test_sympy_keeps_what_one_statement_needs_unless_the_user_says_otherwise(
    before: str, size: int
) -> None:
    code = f"""
import os, sys
{before}
set_before = os.environ.get("SYMPY_CACHE_SIZE")
import attnproof.symbolic.expressions
from sympy.core.cache import SYMPY_CACHE_SIZE
print(SYMPY_CACHE_SIZE, set_before == os.environ.get("SYMPY_CACHE_SIZE"))
"""
    clean = {k: v for k, v in os.environ.items() if k != "SYMPY_CACHE_SIZE"}
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=clean
    ).stdout
    assert told.split() == [str(size), "True"]


TRUE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "softmax commutes with permutations": (
        lambda S, s: equal(softmax(S[s]), softmax(S)[s]),
        None,
        {"S": real(n), "s": permutation(n)},
    ),
    "an orthogonal matrix may act on both": (
        lambda Q, K, g: equal((Q @ g) @ (K @ g).mT, Q @ K.mT),
        None,
        {"Q": real(n, d), "K": real(r, d), "g": orthogonal(d)},
    ),
    "an equation that is assumed": (
        lambda A, B, x: equal(B @ (A @ x), x),
        lambda A, B: [(B @ A, A @ B), (A @ B, 1 + 0 * A)],
        {"A": real(1, 1), "B": real(1, 1), "x": real(1)},
    ),
    "a law at an instance": (
        lambda f, m: equal(f(m + 2), f(m) + 2).with_facts(step(f).at(k=m), step(f).at(k=m + 1)),
        lambda f: [step(f)],
        {"f": function(0), "m": natural()},
    ),
    "a square is at least 0": (
        lambda x, y: at_least(x**2 + y**2, 2 * x * y, ("a square", (x - y) ** 2)),
        None,
        {"x": real(), "y": real()},
    ),
    "something solves it": (
        lambda x, p: exists(real(), "c", lambda c: equal(c * p, x), witness=x / p),
        None,
        {"x": real(), "p": positive()},
    ),
    "a number above 0 is not 0": (lambda p: differ(p, 0, p), None, {"p": positive()}),
}


def step(f: Any) -> Any:
    return for_all({"k": natural()}, lambda k: equal(f(k + 1), f(k) + 1))


@pytest.mark.parametrize("name", TRUE)
def test_true_statements_are_derived(name: str) -> None:
    body, assume, given = TRUE[name]
    found = derived(body, assume, **given)
    assert found.status == "derived", found.why
    assert found.cases >= 1


FALSE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "softmax forgets the permutation": (
        lambda S, s: equal(softmax(S[s]), softmax(S)),
        None,
        {"S": real(n), "s": permutation(n)},
    ),
    "any matrix may act on both": (
        lambda Q, K, g: equal((Q @ g) @ (K @ g).mT, Q @ K.mT),
        None,
        {"Q": real(n, d), "K": real(r, d), "g": real(d, d)},
    ),
    "a permutation is its own inverse": (
        lambda X, s: equal(X[s][s], X),
        None,
        {"X": real(n), "s": permutation(n)},
    ),
    "the hypothesis is dropped": (
        lambda A, B, x: equal(B @ (A @ x), x),
        None,
        {"A": real(1, 1), "B": real(1, 1), "x": real(1)},
    ),
    "a witness that depends on what it must not": (
        lambda x, p: exists(real(), "c", lambda c: equal(c * p, x), witness=x / p, free_of=(x,)),
        None,
        {"x": real(), "p": positive()},
    ),
    "a witness that is none": (
        lambda x, p: exists(real(), "c", lambda c: equal(c * p, x), witness=x * p),
        None,
        {"x": real(), "p": positive()},
    ),
    "what is only not negative is above": (lambda x: at_least(x, 0), None, {"x": real()}),
    "a difference that may be 0": (lambda x: differ(x, 0, x), None, {"x": real()}),
    "a law at no instance": (
        lambda f, m: equal(f(m + 2), f(m) + 2).with_facts(step(f).at(k=m)),
        lambda f: [step(f)],
        {"f": function(0), "m": natural()},
    ),
    "a law that is not granted": (
        lambda f, m: equal(f(m + 1), f(m) + 1).with_facts(step(f).at(k=m)),
        None,
        {"f": function(0), "m": natural()},
    ),
    "the other width": (
        lambda Q, K, V: equal(attention(Q, K, V), softmax(Q @ K.mT / n**0.5) @ V),
        None,
        {"Q": real(r, d), "K": real(n, d), "V": real(n, e)},
    ),
    "a witness of another kind": (
        lambda x, p: exists(positive(), "c", lambda c: equal(c * p, x), witness=x / p),
        None,
        {"x": real(), "p": positive()},
    ),
    "a name bound inside itself": (
        lambda y: for_all(
            {"x": real()},
            lambda x: for_all({"x": real()}, lambda **inner: equal(x + y, inner["x"] + y)),
        ),
        None,
        {"y": real()},
    ),
    "names that meet in an entry": (
        lambda x, x_0: equal(x, x_0 + 0 * x),
        None,
        {"x": real(1), "x_0": real()},
    ),
    "a form that has a value only where the claim is true": (
        lambda x: at_least(x, 0, ("", x**0.5 * namespace.maximum(x**0.5, 0))),
        None,
        {"x": real()},
    ),
    "a contradiction that divides by the difference": (
        lambda x, y: differ(
            x**2 + y**2, 0, x**2 / (x**2 + y**2) + y**2 / (x**2 + y**2), ("", 0 * x), 1 + 0 * x
        ),
        None,
        {"x": real(), "y": real()},
    ),
    "a bound name with the hypothesis of a given": (
        lambda x: for_all({"x": real()}, lambda x: equal(x, 1)),  # noqa: ARG005
        lambda x: [(x, 1)],
        {"x": real()},
    ),
}


@each(FALSE)
def test_false_statements_are_not(name: str) -> None:
    body, assume, given = FALSE[name]
    found = derived(body, assume, **given)
    assert found.status != "derived"
    assert found.why


SAMPLE = [
    "softmax-commutes-with-permutations",
    "attention-ignores-the-order-of-pairs",
    "rotary-scores-depend-on-the-offset-only",
    "rotations-compose-by-adding-angles",
    "a-mask-leaves-softmax-of-the-kept-scores",
    "the-matrix-of-a-permutation-moves-columns",
    "row-permutations-act-from-the-left-and-matrices-from-the-right",
    "distances-depend-on-the-offset-only",
    "rows-of-softmax-are-distributions",
]


@pytest.mark.parametrize("name", SAMPLE)
def test_theorems_are_derived_and_their_negative_controls_are_not(name: str) -> None:
    theorem = load_catalogue().only(name).entries[0].theorem
    for statement, wanted in ((theorem.statement, True), (theorem.control, False)):
        assert statement.code is not None
        found = derive(statement, statement.code, 20.0)
        assert (found.status == "derived") == wanted, found.why


def test_both_sides_are_printed() -> None:
    theorem = load_catalogue().only("rotations-compose-by-adding-angles").entries[0].theorem
    assert theorem.statement.code is not None
    (side, *_) = sides(theorem.statement, theorem.statement.code)
    assert any("cos(" in line and "=" in line for line in entry_lines(side))


def test_the_sum_of_no_entry_is_a_number() -> None:
    """x[1:] has none at n = 1: its sum is 0 and its product 1, as SymPy has them."""
    found = derived(
        lambda x: equal(2 * namespace.sum(x[1:], axis=0), namespace.sum(2 * x[1:], axis=0)),
        x=real(n),
    )
    assert found.status == "derived", found.why
    first, *_ = found.shown
    assert all(isinstance(e, sp.Expr) for side in (first.left, first.right) for e in (side[()],))
    empty = Expressions(sp.symbols("x:0"))
    assert (expressions.sum(empty).item(), expressions.prod(empty).item()) == (sp.S.Zero, sp.S.One)
    assert isinstance(expressions.sum(empty).item(), sp.Expr)


def test_a_power_whose_base_may_be_0_or_below_has_no_sign() -> None:
    p, t = sp.Symbol("p", positive=True), sp.Symbol("t", real=True)
    x = sp.Symbol("x", real=True, nonnegative=True)
    assert certain_sign(x**p * (1 + t) - x**p * t, Generators()) == 0
    assert certain_sign(sp.Pow(-1, sp.floor(t)), Generators()) == 0


def test_sizes_at_which_a_given_has_no_value_are_passed_over() -> None:
    found = derived(lambda X, s: equal(X + 0 * s, X), X=real(n), s=index_map(n, n - 2))
    assert found.status in ("derived", "not derived")  # of no index below n - 2, none is looked for


@pytest.mark.parametrize(
    ("assume", "shown"),
    [(lambda m: [differ(m, 0)], "x"), (lambda m: [greater(m, 1)], "2*x"), (None, "0")],
)
def test_what_is_shown_is_a_case_that_the_hypotheses_admit(assume: Any, shown: str) -> None:
    given = {"m": natural(), "x": real()}
    statement = Theorem("", given, lambda m, x: equal(m * x, x * m), assume=assume).statement
    assert statement.code is not None
    for found in (derive(statement, statement.code, 20.0).shown, sides(statement, statement.code)):
        (one,) = found
        assert str(one.left[()]) == shown


def test_a_case_has_no_hypothesis_of_the_case_before_it() -> None:
    given = {"m": natural(), "x": real(), "y": real()}

    def derived_from(assume: Any) -> str:
        statement = Theorem("", given, lambda m, x, y: equal(x, y + 0 * m), assume=assume).statement
        assert statement.code is not None
        return derive(statement, statement.code, 20.0).status

    assert derived_from(lambda m, x, y: [((m + 1) * (x - y), 0 * x)]) == "derived"
    assert derived_from(lambda m, x, y: [((m - 3) * (x - y), 0 * x)]) != "derived"


def test_what_is_false_at_the_first_numbers_is_not_normalised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> str:
        raise AssertionError("this was not to be tried")

    monkeypatch.setattr(judging._Judge, "why_not", never)
    given = {"x": real(), "y": real()}
    assert derived(lambda x, y: equal((x + y) ** 2, x**2 + y**2), **given).status == "refused"
    with pytest.raises(AssertionError, match="not to be tried"):
        derived(lambda x, y: equal((x + y) * (x - y), x**2 - y**2), **given)


def test_an_existence_is_shown_by_its_inner_relation() -> None:
    """The page said "z exists x"."""
    found = derived(lambda x: exists(real(), "z", lambda z: greater(z, x), witness=x + 1), x=real())
    (one,) = found.shown
    assert (str(one.left[()]), one.relation, str(one.right[()])) == ("z", ">", "x")

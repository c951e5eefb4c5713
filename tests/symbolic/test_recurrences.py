"""Tables, stacks of any depth, spaces and whole numbers, in every reading that evaluates terms."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from attnproof.symbolic import evaluate as recurrences
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.certified_numbers import Balls, Unclear
from attnproof.symbolic.claim import iterate, rows
from attnproof.symbolic.evaluate import Evaluator, Recurrences
from attnproof.symbolic.givens import (
    Given,
    index_map,
    inverse,
    natural,
    permutation,
    probability_space,
    real,
    sizes,
    standard,
)
from attnproof.symbolic.terms import make

n, d = sizes("n d")
omega = probability_space("Ω")
SIZES = {"n": 4, "d": 2, "Ω": 2}


def power(M: Any, k: Any) -> Any:
    return iterate(k, xp.eye(M.shape[0]), lambda _, Y: M @ Y)


M0 = np.array([[1, 2], [3, -1]])
X0 = np.array([[1, 0], [2, 1], [0, 3], [1, 1]])
S0 = np.array([2, 0, 3, 1])
Z0 = np.array([[1, 1], [-1, 1]])
VALUES: dict[str, Any] = {
    "M": M0,
    "X": X0,
    "s": S0,
    "e": np.array([0, 3, 2, 2]),
    "m": 3,
    "k": 2,
    "z": Z0,
}
GIVENS: dict[str, Given] = {
    "M": real(d, d),
    "X": real(n, d),
    "s": permutation(n),
    "e": index_map(n, n),
    "m": natural(),
    "k": natural(),
    "z": standard(omega, d),
}
A: dict[str, Any] = {name: given.named(name) for name, given in GIVENS.items()}
POWERS = [np.linalg.matrix_power(M0, k) for k in range(8)]

CASES: dict[str, tuple[Array, Any]] = {
    "a natural depth": (power(A["M"], A["m"]), POWERS[3]),
    "a depth that is a sum": (power(A["M"], A["m"] + 2 * A["k"]), POWERS[7]),
    "a depth of 0": (power(A["M"], A["k"] - 2), POWERS[0]),
    "a depth below 0": (power(A["M"], A["k"] - A["m"]), POWERS[0]),
    "a depth that is a size": (power(A["M"], n), POWERS[4]),
    "a table of states": (rows(n, lambda i: power(A["M"], i)), np.stack(POWERS[:4])),
    "a table of states from the end": (
        rows(n, lambda i: power(A["M"], n - 1 - i)),
        np.stack(POWERS[:4][::-1]),
    ),
    "a table whose layers see its index": (
        rows(n, lambda i: iterate(2, A["X"][i], lambda t, y: y + i * t)),
        X0 + np.arange(4)[:, None],
    ),
    "a table of tables": (
        rows(n, lambda i: rows(n, lambda j: i * j + A["X"][i] @ A["X"][j])),
        np.arange(4)[:, None] * np.arange(4) + X0 @ X0.T,
    ),
    "a stack of tables": (
        iterate(A["k"], A["X"], lambda t, Y: rows(n, lambda i: Y[i] * (i + t))),
        X0 * (np.arange(4) * (np.arange(4) + 1))[:, None],
    ),
    "two stacks with one layer": (
        power(A["M"], A["k"]) @ iterate(A["m"], 2 * xp.eye(d), lambda _, Y: A["M"] @ Y),
        2 * POWERS[5],
    ),
    "reading one token a layer": (
        iterate(n, xp.zeros(d), lambda t, h: 2 * h + A["X"][t]),
        8 * X0[0] + 4 * X0[1] + 2 * X0[2] + X0[3],
    ),
    "digits of an index": (rows(n, lambda i: 10 * (i // 3) + i % 3), [0, 1, 2, 10]),
    "digits of a natural number": (7 // A["k"] + 10 * (A["m"] % A["k"]), 13),
    "digits of a range": (xp.arange(n) // 2 + 10 * (xp.arange(n) % 2), [0, 10, 1, 11]),
    "a place that is a rest": (
        Array(make("pick", (A["X"].term, (A["m"] % 2).term), 0, (d.term,))),
        X0[1],
    ),
    "the inverse of a permutation": (A["X"][inverse(A["s"])], X0[np.argsort(S0)]),
    "the inverse of an inverse": (A["X"][inverse(inverse(A["s"]))], X0[S0]),
    "an expectation": (xp.sum(A["z"] * A["z"], axis=0), [1, 1]),
    "a covariance": (A["z"].mT @ A["z"], np.eye(2)),
    "the sum over a space": (xp.sum(A["z"], axis=0), [0, 1]),
}


def real_numbers() -> dict[str, Any]:
    return {k: v.astype(float) if k in "MXz" else v for k, v in VALUES.items()}


def exact_numbers() -> dict[str, Any]:
    exact = np.frompyfunc(lambda x: Fraction(int(x)), 1, 1)
    return {k: exact(v) if k in "MXz" else v for k, v in VALUES.items()}


READINGS: dict[str, Callable[[], Evaluator]] = {
    "numpy": lambda: Evaluator(np, SIZES, real_numbers()),
    "balls": lambda: Balls(SIZES, exact_numbers()),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", CASES)
def test_every_reading_gives_the_value(name: str, reading: str) -> None:
    array, expected = CASES[name]
    found = np.asarray(READINGS[reading]()(array.term), dtype=object)
    assert found.shape == np.shape(expected)
    numbers = [int(x.p) / int(x.q) if isinstance(x, fmpq) else float(x) for x in found.ravel()]
    assert numbers == list(np.ravel(expected))


def test_what_depends_on_the_last_index_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without forgetting, every slice of a table would be the first one."""
    monkeypatch.setattr(
        Recurrences, "move", lambda self, v, x: self.values.__setitem__(str(v.data), x)
    )
    array, expected = CASES["a table whose layers see its index"]
    assert (READINGS["numpy"]()(array.term) != np.asarray(expected)).any()


class Counting(Evaluator):
    """Counts the products of matrices."""

    products = 0

    def product(self, left: Any, right: Any) -> Any:
        self.products += 1
        return super().product(left, right)


def test_the_states_of_a_stack_are_computed_once() -> None:
    for name in ("a table of states", "a table of states from the end"):
        read = Counting(np, SIZES, real_numbers())
        read(CASES[name][0].term)
        assert read.products == 3


def test_few_states_are_kept_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrences, "MAX_STATE_ENTRIES", 8)  # two states of 2 × 2
    for name in ("a table of states", "a table of states from the end"):
        array, expected = CASES[name]
        assert (READINGS["numpy"]()(array.term) == expected).all()


def test_a_count_that_is_no_integer_is_refused() -> None:
    x = real().named("x")
    term = make("iterate", (x.term, x.term, x.term))
    half = np.array(Fraction(1, 2), dtype=object)
    with pytest.raises(TypeError, match="wanted an integer"):
        Evaluator(np, {}, {"x": np.asarray(0.5)})(term)
    with pytest.raises(Unclear, match="is a count"):
        Balls({}, {"x": half})(term)

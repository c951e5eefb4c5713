"""The code of a statement, run over concrete arrays."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from array_api_compat import array_namespace

import attnproof
from attnproof.symbolic import namespace
from attnproof.symbolic.array import Array
from attnproof.symbolic.bodies import Code, Links, given_at, is_library
from attnproof.symbolic.budget import OutOfTime
from attnproof.symbolic.claim import (
    all_positive,
    at_least,
    chain,
    differ,
    equal,
    exists,
    for_all,
    greater,
    iterate,
    over,
    rows,
)
from attnproof.symbolic.concrete import ConcreteClaim, lengths
from attnproof.symbolic.definition import definition
from attnproof.symbolic.givens import Given, index_map, inverse, natural, real, sizes
from attnproof.symbolic.namespace import eye
from tests.cases import each

n, d = sizes("n d")
X = np.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
SIZES = {"n": 3, "d": 2}


def ran(body: Any, assume: Any = None, **values: Any) -> Any:
    def draw(_: str, given: Given) -> Any:
        return np.full(lengths(given), 0.5)

    return Code(body, assume).run(SIZES, {"X": X, **values}, draw=draw)


def left(body: Any) -> Any:
    return ran(lambda X: equal(body(X), 0)).conclusions[""].left


def width() -> Any:
    return d


def scaled(X: Any, by: Any = n) -> Any:
    return X * by


def named(X: Any, *, by: Any = d) -> Any:
    return X * by


def down(X: Any, depth: Any) -> Any:
    return X if isinstance(depth, int) and depth <= 0 else down(X + n, depth - 1)


@cache
def kept() -> Any:
    return d + 1


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Layer:
    features: Any

    def apply(self, X: Any) -> Any:
        return X / self.features


class Wide:
    features = d

    @staticmethod
    def scale() -> Any:
        return n

    @property
    def root(self) -> Any:
        return self.features**0.5


TABLE: dict[str, Any] = {"tokens": n, "both": [n, (d, n)]}
PAIR, LAYER = Pair(n, d), Layer(d)
THIRD = partial(scaled, by=n)
POSITIONS = {"m": real(d)}


@definition("f")
def folded(X: Any) -> Any:
    """X times its width."""
    return X * d


@each(
    [
        (lambda X: X[: n - 1], X[:2]),
        (lambda X: X * d**0.5, X * 2**0.5),
        (lambda X: array_namespace(X).eye(n) @ X, X),
        (lambda X: X * width(), X * 2),
        (scaled, X * 3),
        (named, X * 2),
        (THIRD, X * 3),
        (lambda X: sum(X[i] * k for i, k in enumerate(TABLE["both"][1])), X[0] * 2 + X[1] * 3),
        (lambda X: X * PAIR.first, X * 3),
        (LAYER.apply, X / 2),
        (lambda X: X * Wide.scale() + Wide().root, X * 3 + 2**0.5),
        (lambda X: X * kept(), X * 3),
        (lambda X: down(X, 2), X + 6),
        (folded, X * 2),
        (lambda X: attnproof.rows(n, lambda i: X[i] * (i + d)), X * [[2], [3], [4]]),
        (lambda X: iterate(n, X, lambda t, state: state * d + t), X * 8 + 4),
        (lambda X: namespace.sum(X, axis=0) + eye(d), X.sum(0) + np.eye(2)),
        (lambda X: {name: X * k for name, k in {"a": d}.items()}["a"], X * 2),
    ]
)
def test_numbers_stand_where_lengths_stood(body: Any, value: Any) -> None:
    assert np.array_equal(left(body), value)


def test_lengths_are_those_of_each_run_and_the_code_is_left_as_it_was() -> None:
    code = Code(lambda X: equal(X * n, X * d))
    for size in (1, 5):
        found = code.run({"n": size, "d": 2}, {"X": 1.0}).conclusions[""]
        assert (found.left, found.right) == (size, 2)
    assert isinstance(width(), Array)
    assert isinstance(scaled(n), Array)


def test_a_module_of_the_author_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = ModuleType("lengths_beside")
    beside.length = n  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, beside.__name__, beside)
    assert np.array_equal(left(lambda X: X * beside.length), X * 3)


def test_each_conclusion_is_given_with_its_values() -> None:
    def body(X: Any) -> Any:
        return {
            "chain": chain(X, ("twice", 2 * X), ("", 3 * X)),
            "positive": all_positive(X),
            "greater": greater(X, 0, ("", X - 1)),
            "at least": at_least(X, 1),
            "differ": differ(X[0, 0], 0),
            "contradiction": differ(X, 2 * X, 1, ("so", 2), 3),
        }

    found = ran(body).conclusions
    assert [one.relation for one in found.values()] == ["=", ">", ">", ">=", "!=", "!="]
    assert [reason for reason, _ in found["chain"].links] == ["twice", ""]
    assert np.array_equal(found["chain"].right, 3 * X)
    assert found["positive"].right is None
    assert np.array_equal(found["greater"].links[0][1], X - 1)
    assert (found["differ"].right, found["differ"].apart) == (0, 1)
    assert found["contradiction"].links == (("", 1), ("so", 2))
    assert found["contradiction"].apart == 3


def test_variables_of_binders_get_values_of_their_own() -> None:
    def body(X: Any) -> Any:
        law = for_all(POSITIONS, lambda m: equal(m, X[0]))
        return {
            "law": law,
            "some": exists(real(d), "z", lambda z: greater(z, X[0]), witness=X[1], free_of=(X,)),
            "later": equal(X, X).with_facts(law.at(m=X[0]), over(n, lambda i: law.at(m=X[i]))),
            "for all some": for_all(
                {"m": real()}, lambda m: exists(real(), "m", lambda w: equal(w, m), witness=0)
            ),
        }

    found = ran(body).conclusions
    (bound,) = found["law"].variables
    assert (bound.name, lengths(bound.given)) == ("m", (2,))
    assert np.array_equal(found["law"].left, [0.5, 0.5])
    some = found["some"]
    assert some.relation == "exists"
    assert some.inner is not None
    assert some.inner.relation == ">"
    assert np.array_equal(some.witness, X[1])
    assert np.array_equal(some.unknown.value, some.left)
    assert found["for all some"].relation == "exists"
    assert [v.name for v in found["for all some"].variables] == ["m"]


def test_hypotheses_are_claims_too() -> None:
    def assume(X: Any) -> Any:
        return [(X[0], X[1]), at_least(X, n), for_all({}, lambda: equal(X, d))]

    pair, sign, law = ran(lambda X: equal(X, X), assume).hypotheses
    assert [h.relation for h in (pair, sign, law)] == ["=", ">=", "="]
    assert np.array_equal(pair.left, X[0])
    assert (sign.right, law.right) == (3, 2)


def test_maps_of_indices_are_arrays_of_whole_numbers() -> None:
    found = ran(lambda X, s: equal(X[s], X[inverse(s)]), s=np.asarray([1, 2, 0])).conclusions[""]
    assert np.array_equal(found.left, X[[1, 2, 0]])
    assert np.array_equal(found.right, X[[2, 0, 1]])


def test_a_given_gets_numbers_for_its_lengths() -> None:
    given = given_at(index_map(n + 1, 2 * d), SIZES)
    assert lengths(given) == (4,)
    assert repr(given.below) == "4"


def test_what_is_no_claim_is_refused() -> None:
    with pytest.raises(TypeError, match=r"wanted a claim, such as equal\(left, right\); got bool"):
        ran(lambda X: X is X)


def test_a_variable_without_a_value_is_refused() -> None:
    code = Code(lambda: for_all({"m": natural()}, lambda m: equal(m, m)))
    with pytest.raises(TypeError, match="no value for the variable m: natural"):
        code.run({}, {})


def test_a_length_without_a_number_is_refused() -> None:
    with pytest.raises(KeyError, match="n"):
        Code(lambda X: equal(X * n, X)).run({"d": 2}, {"X": X})
    with pytest.raises(TypeError, match="the axis n has no number"):
        lengths(real(n))


def test_the_reading_ends_with_the_run() -> None:
    with pytest.raises(ZeroDivisionError):
        ran(lambda X: equal(X, 1 // 0))
    assert not isinstance(equal(n, n), ConcreteClaim)


def test_a_limit_that_is_reached_while_code_is_prepared_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: object) -> None:
        raise OutOfTime("late")

    monkeypatch.setattr(Links, "at", lambda *_: late)
    with pytest.raises(OutOfTime, match="late"):
        left(lambda x: x)


def test_layers_are_counted_by_whole_numbers() -> None:
    assert left(lambda _: iterate(np.zeros(()), 1, lambda _, y: 2 * y)) == 1
    with pytest.raises(ValueError, match=r"wanted a whole number of layers or rows, got 0\.5"):
        left(lambda _: rows(0.5, lambda i: i))


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/home/me/.local/lib/python3.11/site-packages/array_api_compat/_helpers.py", True),
        ("/usr/lib/python3/dist-packages/numpy/__init__.py", True),
        ("/home/me/site-packages.py", False),
        ("/tmp/ipykernel_1/2.py", False),
        ("<stdin>", False),
        (attnproof.__file__, True),
    ],
)
def test_what_is_installed_anywhere_is_a_library(file: str, library: bool) -> None:
    assert is_library(file) is library

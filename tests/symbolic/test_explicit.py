"""The SymPy reading agrees with the certified one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from flint import arb

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.balls import Balls
from attnproof.symbolic.candidates import draw
from attnproof.symbolic.givens import (
    Given,
    boolean,
    function,
    index_below,
    permutation,
    positive,
    real,
    sizes,
)
from attnproof.theorems.definitions.attention import attention, masked_attention, softmax
from benchmarks.explicit import explicit

n, d = sizes("n d")
SIZES = {"n": 3, "d": 2}
X = real(n, d)

CASES: dict[str, tuple[dict[str, Given], Callable[..., Array]]] = {
    "attention": ({"X": X, "s": permutation(n)}, lambda X, s: attention(X, X[s], X)),
    "mask": ({"X": X, "m": boolean(n, n)}, lambda X, m: masked_attention(X, X, X, m)),
    "functions": (
        {"X": X, "x": positive()},
        lambda X, x: xp.sin(X) + xp.cos(X) * xp.tanh(X) - xp.log(x) / xp.sqrt(x),
    ),
    "choices": ({"X": X}, lambda X: xp.where(X < 1, xp.maximum(X, -X), xp.abs(X - 1))),
    "indices": (
        {"X": X, "a": index_below(n)},
        lambda X, a: xp.concat([X[a][None] * xp.arange(n)[:, None], xp.eye(d)], axis=0),
    ),
    "logic": ({"X": X}, lambda X: xp.astype((X > 0) & ~(X == 1) | (X < -1), float)),
    "shapes": ({"X": X}, lambda X: xp.stack([X.mT.reshape(n * d), X.reshape(n * d)], axis=1)),
}


@pytest.mark.parametrize("name", CASES)
def test_both_readings_agree(name: str) -> None:
    """SymPy expressions at rational values lie in the balls computed from the same term."""
    given, body = CASES[name]
    term = body(**{label: g.named(label) for label, g in given.items()}).term
    candidate = draw(given, SIZES, Random(1), 8)
    assert candidate is not None
    structure = {
        k: v
        for k, v in candidate.values.items()
        if given[k].kind in ("permutation", "boolean", "index")
    }
    formula = explicit(term, SIZES, structure)
    point = {}
    for label in candidate.values.keys() - structure.keys():
        is_positive = given[label].kind == "positive" or None
        for at, x in np.ndenumerate(candidate.values[label]):
            symbol = sp.Symbol("_".join([label, *map(str, at)]), real=True, positive=is_positive)
            point[symbol] = sp.Rational(x.numerator, x.denominator)
    certified = Balls(SIZES, candidate.values)(term)
    for at in np.ndindex(*certified.shape):
        value = sp.N(sp.sympify(formula[at]).subs(point), 40)
        assert not value.free_symbols
        assert arb(certified[at]).overlaps(arb(str(value)) + arb(0, "1e-30")), at


def test_values_may_be_given() -> None:
    x = np.array([Fraction(0), Fraction(0)], dtype=object)
    assert list(explicit(softmax(real(2).named("x")).term, {}, {"x": x})) == [sp.Rational(1, 2)] * 2


def test_a_function_stays_uninterpreted() -> None:
    h = function(1, 1).named("h")
    x = real(n, d).named("X")
    (row, *_) = explicit(h(x[:, None], x[None]).term, {"n": 1, "d": 1}).ravel()
    assert row == sp.Function("h")(*[sp.Symbol("X_0_0", real=True)] * 2)


def test_what_symbols_cannot_stand_for_is_asked_for() -> None:
    x: Any = real(n).named("x")
    with pytest.raises(ValueError, match="s is a permutation; give it a value"):
        explicit(x[permutation(n).named("s")].term, {"n": 2})
    with pytest.raises(ValueError, match="a is an index; give it a value"):
        explicit(x[index_below(n).named("a")].term, {"n": 2})
    with pytest.raises(KeyError, match="n"):
        explicit(x.term, {})

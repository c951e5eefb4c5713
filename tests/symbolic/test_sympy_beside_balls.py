"""Code run on arrays of SymPy expressions agrees with the certified reading of its term."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from flint import arb

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.bodies import Code, given_at
from attnproof.symbolic.candidates import draw
from attnproof.symbolic.certified_numbers import Balls
from attnproof.symbolic.claim import equal
from attnproof.symbolic.expressions import namespace
from attnproof.symbolic.expressions.array import as_expressions
from attnproof.symbolic.expressions.deriving import value
from attnproof.symbolic.givens import (
    Given,
    boolean,
    index_below,
    permutation,
    positive,
    real,
    sizes,
)
from attnproof.theorems.definitions.attention import attention, masked_attention

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
def test_both_agree(name: str) -> None:
    """SymPy expressions at rational values lie in the balls computed from the term."""
    given, body = CASES[name]
    term = body(**{label: g.named(label) for label, g in given.items()}).term
    candidate = draw(given, SIZES, Random(1), 8)
    assert candidate is not None
    values: dict[str, Any] = {}
    point: dict[sp.Symbol, sp.Rational] = {}
    for label, found in candidate.values.items():
        own = given_at(given[label], SIZES)
        if own.kind in ("permutation", "boolean", "index"):
            values[label] = as_expressions(np.asarray(found))
            continue
        values[label] = symbolic = value(label, own)
        for at, x in np.ndenumerate(found):
            point[symbolic.entries[at]] = sp.Rational(x.numerator, x.denominator)
    code = Code(lambda **own: equal(body(**own), body(**own)), arguments=tuple(given))
    formula = code.run(SIZES, values, xp=namespace).conclusions[""].left.entries
    certified = Balls(SIZES, candidate.values)(term)
    assert formula.shape == certified.shape
    for at in np.ndindex(*certified.shape):
        exact = sp.N(sp.sympify(formula[at]).subs(point), 40)
        assert not exact.free_symbols
        assert arb(certified[at]).overlaps(arb(str(exact)) + arb(0, "1e-30")), at

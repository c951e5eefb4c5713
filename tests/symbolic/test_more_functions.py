"""Array functions said through others: their numbers, what is proved of them, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from array_api_compat import array_namespace

from attnproof.symbolic import AxisMismatch, boolean, equal, positive, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.certified_numbers import Balls
from attnproof.symbolic.claim import Claim
from attnproof.symbolic.evaluate import Evaluator
from attnproof.symbolic.expressions.array import as_expressions
from attnproof.symbolic.givens import Given
from attnproof.symbolic.latex import latex
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement
from tests.cases import each

(N,) = sizes("n")
GIVEN: dict[str, Given] = {"x": real(N), "a": real(), "p": positive(), "M": boolean(N)}
x, a, p, M = (given.named(name) for name, given in GIVEN.items())
POINTS = [Fraction(k, 2) for k in (-5, -2, -1, 0, 1, 3, 4)]

SAME_AS_NUMPY: dict[str, Callable[[Any], Any]] = {
    "minimum": lambda t: array_namespace(t).minimum(t, 0 * t + 1),
    "clip": lambda t: array_namespace(t).clip(t, -1, 2),
    "clip from below": lambda t: array_namespace(t).clip(t, min=-1),
    "clip from above": lambda t: array_namespace(t).clip(t, max=1),
    "sign": lambda t: array_namespace(t).sign(t),
    "floor": lambda t: array_namespace(t).floor(t),
    "ceil": lambda t: array_namespace(t).ceil(t),
    "floor_divide": lambda t: array_namespace(t).floor_divide(t, 0 * t + 2),
    "remainder": lambda t: array_namespace(t).remainder(t, 0 * t + 2),
    "log1p": lambda t: array_namespace(t).log1p(t * t),
    "expm1": lambda t: array_namespace(t).expm1(t),
    "square": lambda t: array_namespace(t).square(t),
    "tan": lambda t: array_namespace(t).tan(t),
    "pow": lambda t: array_namespace(t).pow(2 + t * t, t),
    "a number to the power": lambda t: 10_000.0 ** (-t / 4),
    "a positive number to another": lambda t: (1 + t * t) ** 0.3,
    "an integer power": lambda t: array_namespace(t).pow(t, 3),
    "expand_dims": lambda t: array_namespace(t).expand_dims(t, axis=-1),
    "expand_dims in front": lambda t: array_namespace(t).expand_dims(t, axis=0),
    "squeeze": lambda t: array_namespace(t).squeeze(t[None], 0),
    "a mask as numbers": lambda t: array_namespace(t).astype((t > 0)[None], t.dtype),
    "a table of angles": lambda t: array_namespace(t).reshape(
        t[..., None] * array_namespace(t).arange(3), (*t.shape, 3)
    ),
    "an entry of a row": lambda t: t[None][0] + t[..., None][..., 0],
}


def close(left: Any, right: Any) -> bool:
    a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    return a.shape == b.shape and bool(np.allclose(a, b, atol=1e-9))


@each(SAME_AS_NUMPY)
def test_a_function_has_the_same_numbers_in_every_reading(says: str) -> None:
    rule = SAME_AS_NUMPY[says]
    exact = np.empty(len(POINTS), dtype=object)
    exact[:] = POINTS
    floats = np.asarray([float(t) for t in POINTS])
    wanted, n = rule(floats), {"n": len(POINTS)}
    term = rule(x).term
    assert close(Evaluator(np, n, {"x": floats})(term), wanted)
    assert close(np.frompyfunc(float, 1, 1)(Balls(n, {"x": exact})(term)), wanted)
    assert close(np.frompyfunc(float, 1, 1)(rule(as_expressions(exact)).entries), wanted)
    assert not close(Evaluator(np, n, {"x": floats + 1})(term), wanted)
    one = rule(a).term if says != "an entry of a row" else a.term
    for t in (term, one):
        assert repr(t)
        assert latex(t)
    single = Evaluator(np, {}, {"a": np.asarray(1.5)})(one)
    if says != "an entry of a row":
        assert close(single, rule(np.asarray(1.5)))


TRUE: dict[str, Claim] = {
    "a power of a sum": equal(p ** (x + a), p**x * p**a),
    "a power of a power": equal(2.0 ** (-x), 1 / 2.0**x),
    "the smaller of two": equal(xp.minimum(x, a), -xp.maximum(-x, -a)),
    "clip": equal(xp.clip(-x, -a, a), -xp.maximum(-xp.maximum(-x, -a), -a)),
    "log1p": equal(xp.exp(xp.log1p(p)), 1 + p),
    "a literal exponent": equal(xp.pow(x, 2), x * x),
}
FALSE: dict[str, Claim] = {
    "a power of a product": equal(p ** (x * a), p**x * p**a),
    "a sign": equal(xp.sign(x) * x, x),
    "a floor": equal(xp.floor(x), x),
    "clip": equal(xp.clip(x, 0, 1), x),
}


@pytest.mark.parametrize("says", TRUE)
def test_what_holds_of_them_is_proved(says: str) -> None:
    decision = decide(Statement(GIVEN, {"": TRUE[says]}), refuting=False)
    assert decision.verdict == "proved", decision.claims[0].why


@pytest.mark.parametrize("says", FALSE)
def test_what_does_not_is_refuted(says: str) -> None:
    assert decide(Statement(GIVEN, {"": FALSE[says]}), limit_seconds=2).verdict == "refuted"


def test_what_has_no_value_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match=r"positive by its form.*the base is a"):
        a**x
    with pytest.raises(TypeError, match="positive by its form"):
        xp.pow(x, 0.3)
    with pytest.raises(AxisMismatch, match="has length n, not 1"):
        xp.squeeze(x, 0)
    assert xp.astype(M[None], float).term.op == "indicator"
    assert xp.astype(x, float).term is x.term

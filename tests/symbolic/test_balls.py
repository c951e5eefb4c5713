"""Certified numbers hold the true value, agree with SymPy, and say so when they cannot."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sp
from flint import arb, fmpq

from attnproof.symbolic import certified_numbers as turns
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.bodies import Code, given_at
from attnproof.symbolic.candidates import draw, sample_functions
from attnproof.symbolic.certified_numbers import (
    FUNCTIONS,
    MINUS_INFINITY,
    UNDEFINED,
    Balls,
    NotANumber,
    Unclear,
    ball,
    certified_gap,
    finite,
    floor_divide,
    less,
    number,
    remainder,
    same,
)
from attnproof.symbolic.claim import equal
from attnproof.symbolic.expressions import namespace
from attnproof.symbolic.expressions.array import as_expressions
from attnproof.symbolic.expressions.deriving import value
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
from attnproof.symbolic.namespace import abs as abs_
from attnproof.symbolic.namespace import cos, exp, inf, log, maximum, pi, sin, sqrt, where
from attnproof.symbolic.witness_text import decimal
from attnproof.theorems.definitions.attention import attention, masked_attention

POINTS = [Fraction(x) for x in "0 1 -1 1/3 -7/2 9/4 10".split()]  # noqa: SIM905


def holds(ball: Any, value: sp.Expr) -> bool:
    """Whether a ball holds a value, judged with 60 digits from SymPy."""
    low = arb(str(sp.N(value, 60))) + arb(0, "1e-50")
    return bool(arb(ball).overlaps(low))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "cos", "sin", "tanh", "abs"])
@pytest.mark.parametrize("x", POINTS, ids=str)
def test_a_function_holds_the_true_value(name: str, x: Fraction) -> None:
    got = FUNCTIONS[name](number(x))
    if name in ("log", "sqrt") and (x < 0 or (x == 0 and name == "log")):
        assert not finite(got)
        return
    of = sp.Abs if name == "abs" else getattr(sp, name)
    assert holds(got, of(sp.Rational(x.numerator, x.denominator)))
    assert not holds(got + fmpq(1, 10**9), of(sp.Rational(x.numerator, x.denominator)))


def test_exact_values_stay_exact() -> None:
    read = Balls({}, {})
    assert read(exp(as_array(0)).term) == fmpq(1)
    assert read(sqrt(as_array(Fraction(9, 4))).term) == fmpq(3, 2)
    assert isinstance(read(sqrt(as_array(2)).term), arb)


def test_minus_infinity_is_exact() -> None:
    read = Balls({}, {})
    low = as_array(-inf)
    assert read(exp(low + 3).term) == fmpq(0)
    assert read(maximum(low, 2).term) == fmpq(2)
    assert read((low * 2).term) is MINUS_INFINITY
    assert read(where(low < 0, as_array(1), low).term) == fmpq(1)
    for unknown in (low * 0, low * -1, low / low):
        assert not finite(read(unknown.term))


def test_what_has_no_value_spreads_and_is_never_compared() -> None:
    read = Balls({}, {})
    nothing = as_array(1) / (exp(as_array(1)) + exp(as_array(1)) * -1)
    for term in (nothing * 0, nothing + 1, exp(nothing), maximum(nothing, 0), log(as_array(0))):
        assert not finite(read(term.term))
    assert certified_gap(UNDEFINED, fmpq(1)) == 0
    with pytest.raises(Unclear):
        less(UNDEFINED, fmpq(1))


def test_a_comparison_is_sure_or_refused() -> None:
    third, e = fmpq(1, 3), arb(1).exp()
    assert less(third, e)
    assert not less(e, third)
    assert same(third, fmpq(2, 6))
    assert not same(third, e)
    assert less(MINUS_INFINITY, third)
    assert not less(third, MINUS_INFINITY)
    assert same(MINUS_INFINITY, MINUS_INFINITY)
    for compare in (less, same):
        with pytest.raises(Unclear):
            compare(e * third, e / 3)


def test_a_gap_is_a_lower_bound() -> None:
    assert certified_gap(fmpq(1, 3), fmpq(1, 2)) == Fraction(1, 6)
    gap = certified_gap(arb(1).exp(), fmpq(2))
    assert Fraction(718281828, 10**9) < gap < Fraction(718281829, 10**9)
    assert certified_gap(arb(1, 1), arb(2, 1)) == 0


def test_a_gap_of_a_billion_digits_is_not_written_out() -> None:
    tiny, huge = arb(-(10**9)).exp(), arb(10**9).exp()
    assert certified_gap(tiny, 0 * tiny) == 0
    assert 2**10000 < certified_gap(huge, fmpq(1)) < 2**20000
    assert certified_gap(arb(-10000).exp(), fmpq(0)) > 0  # what a mask of −10⁴ leaves of a weight
    assert decimal(huge) == "8.00e+434294481"


def test_a_float_is_refused() -> None:
    with pytest.raises(NotANumber, match=r"got float: 0\.5; give inputs as int or Fraction"):
        number(0.5)


def test_a_sample_function_keeps_its_trait() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[number(int(x)) for x in row] for row in rng.integers(-3, 4, (4, 3))])
    order = [2, 0, 3, 1]
    for given, others in (
        (function(2, out=None, traits=("equivariant",)), ()),
        (function(2, 1, out=None, traits=("equivariant",)), (rows[0],)),
        (function(2, out=(4, 2), traits=("equivariant",)), ()),
    ):
        family = sample_functions("f", given, {})
        assert family
        for f in family:
            assert (f(rows[order], *others) == f(rows, *others)[order]).all(), f
    for given in (function(2, traits=("invariant",)), function(2, 1, traits=("invariant",))):
        others = (rows[0],) * (len(given.core) - 1)
        family = sample_functions("f", given, {})
        assert family
        for f in family:
            assert f(rows[order], *others) == f(rows, *others), f
        assert any(f(rows[:, [1, 0, 2]], *others) != f(rows, *others) for f in family)
    free = sample_functions("f", function(2, out=None), {})
    assert any((f(rows[order]) != f(rows)[order]).any() for f in free)


def test_multiples_of_pi_are_exact() -> None:
    read = Balls({}, {})
    for q in (Fraction(k, 12) for k in range(-40, 41)):
        angle = pi * q
        for of, right in ((cos, sp.cos), (sin, sp.sin)):
            got = read(of(angle).term)
            value = right(sp.pi * sp.Rational(q.numerator, q.denominator))
            assert holds(got, value)
            assert not holds(got + fmpq(1, 10**9), value)
            assert isinstance(got, fmpq) == bool(value.is_Rational)


def test_what_is_more_than_a_multiple_of_pi_is_a_ball() -> None:
    read = Balls({}, {})
    for term, exact in (
        (pi + 1, sp.pi + 1),
        (pi * pi, sp.pi**2),
        (1 / pi, 1 / sp.pi),
        (pi * exp(as_array(1)), sp.pi * sp.E),
        (sqrt(pi), sp.sqrt(sp.pi)),
        (log(pi), sp.log(sp.pi)),
        (exp(-pi), sp.exp(-sp.pi)),
        (abs_(-2 * pi), 2 * sp.pi),
        (maximum(pi, 3), sp.pi),
        (pi / 2 - pi / 3, sp.pi / 6),
    ):
        assert holds(ball(read(as_array(term).term)), exact)
    assert read((pi - pi).term) == fmpq(0)
    assert less(read(pi.term), fmpq(22, 7))
    assert not same(read(pi.term), fmpq(22, 7))
    assert same(read((pi * 2).term), read((pi + pi).term))


def test_a_wrong_table_of_cosines_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(turns._COSINES, Fraction(1, 3), fmpq(-1, 2))
    with pytest.raises(AssertionError):
        test_multiples_of_pi_are_exact()


def test_whole_parts_are_of_rational_numbers_alone() -> None:
    for x, y in ((7, 2), (-7, 2), (7, -2), (Fraction(7, 2), 1), (0, 3)):
        assert floor_divide(x, y) == x // y
        assert remainder(x, y) == fmpq(Fraction(x % y).numerator, Fraction(x % y).denominator)
    for unknown in (floor_divide(1, 0), remainder(1, 0), floor_divide(arb(7), 2)):
        assert not finite(unknown)


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

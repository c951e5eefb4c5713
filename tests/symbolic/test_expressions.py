"""Arrays of SymPy expressions agree with numpy, and what SymPy derives of them is true."""

# ruff: noqa: ARG005 (the calls are called alike)

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy as sp

from attnproof.symbolic.bodies import Code
from attnproof.symbolic.expressions import namespace as xp
from attnproof.symbolic.expressions.array import Expressions, Length, as_expressions, symbols
from attnproof.symbolic.expressions.generators import Finer, Generators, Unreadable
from attnproof.symbolic.expressions.judging import Impossible, assume_equations
from attnproof.symbolic.expressions.signs import certain_sign, certified_value
from attnproof.theorems.definitions.attention import attention, causal_self_attention, softmax
from attnproof.theorems.definitions.kernels import layer_norm, triangular
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.rotary import block_rotation, rotate, rotate_half
from tests.cases import each

x, y, t = (sp.Symbol(name, real=True) for name in "xyt")
p, q = (sp.Symbol(name, positive=True) for name in "pq")


def is_zero(e: Any) -> bool:
    generators = Generators()
    while True:
        try:
            return generators.is_zero(e)
        except Finer:
            generators.begin_again()


SUM: Any = xp.sum

A, B = np.asarray([[1.5, -2.0], [0.25, 3.0]]), np.asarray([[0.5, 1.0], [-1.0, 2.0]])
CALLS: list[Any] = [
    lambda m, a, b: a @ b.mT + 2 * a - b / 4,
    lambda m, a, b: m.sum(m.exp(a), axis=0, keepdims=True) * b,
    lambda m, a, b: m.where(a > b, a, b) + m.maximum(a, b) - m.minimum(a, 0 * b),
    lambda m, a, b: m.stack((a, b), axis=1)[:, 0],
    lambda m, a, b: m.concat((a, b), axis=-1)[..., 1::2],
    lambda m, a, b: m.reshape(m.permute_dims(a, (1, 0)), (4,)),
    lambda m, a, b: m.mean(a**2, axis=1) + m.abs(b)[0],
    lambda m, a, b: m.sqrt(m.square(a) + 1) * m.tanh(b) - m.cos(a) * m.sin(b),
    lambda m, a, b: a // 2 + b % 2 + m.floor(a) - m.ceil(b),
    lambda m, a, b: m.astype(a <= b, a.dtype) + m.sign(b) * m.clip(a, 0, 1),
    lambda m, a, b: m.max(a, axis=0) + m.min(b, axis=1) + m.prod(a, axis=1),
    lambda m, a, b: a[m.arange(2)[::-1]] + m.expand_dims(b[0], axis=0) + m.eye(2),
    lambda m, a, b: m.broadcast_to(a[0], (3, 2)) + m.ones((3, 1)) - m.zeros((3, 2)),
]


def at(array: Expressions, values: dict[sp.Symbol, Fraction]) -> Any:
    from flint import fmpq

    exact = {s: fmpq(v.numerator, v.denominator) for s, v in values.items()}
    read = np.frompyfunc(lambda e: float(certified_value(e, exact)), 1, 1)
    return np.asarray(read(array.entries), dtype=float)


@each(CALLS)
def test_functions_are_those_of_numpy(call: Any) -> None:
    """Symbols, with numbers put in afterwards."""
    a, b = symbols("a", 2, 2), symbols("b", 2, 2)
    values = {
        s: Fraction(v)
        for array, given in ((a, A), (b, B))
        for s, v in zip(array.entries.flat, given.flat, strict=True)
    }
    numbers = [as_expressions(given) for given in (A, B)]
    wanted = call(np, A, B) if "clip" not in call.__code__.co_names else None
    if wanted is None:
        wanted = (A <= B) + np.sign(B) * np.clip(A, 0, 1)
    assert np.allclose(at(call(xp, *numbers), {}), wanted)
    if not {"floor", "ceil", "min", "clip"} & set(call.__code__.co_names):
        assert np.allclose(at(call(xp, a, b), values), wanted)


def test_definitions_run_on_expressions() -> None:
    q, k, v, pos, w = np.random.default_rng(0).permutation(20).reshape(5, 2, 2) / 4 - 2
    runs: list[Any] = [
        (attention, (q, k, v)),
        (causal_self_attention, (q, k, v, w)),
        (layer_norm, (k,)),
        (block_rotation, (q[0],)),
        (rotate, (q, pos[0], w[0][:1])),
        (triangular, (q,)),
        (rotate_half, (q, pos[0], w[0][:1])),
        (sinusoidal, (pos[0], w[0])),
    ]
    for definition, given in runs:
        made = definition(*map(as_expressions, given))
        assert np.allclose(at(made, {}), definition(*given)), definition


@each(
    [
        lambda a: SUM(a, axes=0),
        lambda a: xp.sum(a, axis=5),
        np.exp,
        lambda a: a[0.5],
        lambda a: a & a,
        lambda a: bool(a[0, 0] > 0),
        lambda a: xp.einsum("ij", a),
        lambda a: xp.where(a, a, a),
        lambda a: (a > 0) + 1,
        lambda a: xp.astype(a, xp.bool),
        lambda a: a[symbols("i")],
        lambda a: range(a[0, 0]),
    ]
)
def test_what_the_array_api_has_not_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, AttributeError, IndexError, ValueError)):
        wrong(symbols("a", 2, 2))


def test_lengths_are_exact() -> None:
    assert (Length(2) ** 0.5).item() == sp.sqrt(2)
    assert (1 / Length(3)).item() == sp.Rational(1, 3)
    assert isinstance(Length(4) - 1, Length)
    assert list(range(Length(2))) == [0, 1]


TRUE: list[Any] = [
    sp.tanh(-x) + sp.tanh(x),
    sp.Abs(x) - sp.Abs(-x),
    sp.sqrt(x**2) - sp.Abs(x),
    sp.cos(3 * x) - 4 * sp.cos(x) ** 3 + 3 * sp.cos(x),
    sp.cos(x + sp.pi) + sp.cos(x),
    sp.cos(x / 2) ** 2 - (1 + sp.cos(x)) / 2,
    sp.exp(x / 3) ** 3 - sp.exp(x),
    sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(6),
    sp.sqrt(x**2 + y**2) ** 2 - x**2 - y**2,
    sp.sin(x + y) - sp.sin(x) * sp.cos(y) - sp.cos(x) * sp.sin(y),
    sp.exp(x + y) / (sp.exp(x + y) + sp.exp(x)) - 1 / (1 + sp.exp(-y)),
    sp.Max(x, y) + sp.Min(x, y) - x - y,
    sp.Abs(x * y) - sp.Abs(y * x),
    sp.log(p * q) - sp.log(p) - sp.log(q),
    sp.sqrt(p**2 * q**2) - p * q,
    sp.Function("f", real=True)(x + y) - sp.Function("f", real=True)(y + x),
    sp.exp(sp.exp(x + y)) - sp.exp(sp.exp(x) * sp.exp(y)),
    sp.Piecewise((x, x > 0), (-x, True)) - sp.Abs(x),
    1 / (x - y) + 1 / (y - x),
    sp.sqrt((x - y) ** 2 / 4) - sp.Abs(y - x) / 2,
]


@each(TRUE)
def test_true_identities_are_derived(identity: Any) -> None:
    assert is_zero(identity)


FALSE: list[Any] = [
    sp.sqrt(x**2) - x,
    sp.exp(x + y) - sp.exp(x) - sp.exp(y),
    sp.cos(x + y) - sp.cos(x),
    sp.exp(x) * sp.exp(y) - sp.exp(x * y),
    sp.sin(x) ** 2 + sp.cos(y) ** 2 - 1,
    sp.cos(2 * x) - 2 * sp.cos(x),
    sp.Max(x, y) - x,
    sp.Abs(x + y) - sp.Abs(x) - sp.Abs(y),
    sp.log(1 + x**2) - sp.log(1 + y**2),
    sp.sqrt(2) * sp.sqrt(3) - sp.sqrt(5),
    sp.Function("f", real=True)(x) - sp.Function("f", real=True)(y),
    sp.Function("f", real=True)(x) - sp.Function("g", real=True)(x),
    sp.exp(x / 3) ** 2 - sp.exp(x),
    sp.sqrt(p + q) - sp.sqrt(p) - sp.sqrt(q),
    sp.exp(sp.exp(x)) - sp.exp(2 * x),
    sp.tanh(x) - x,
    sp.pi - sp.Rational(22, 7),
    sp.Piecewise((x, x > 0), (0, True)) - x,
    sp.cos(x + sp.pi) - sp.cos(x),
    sp.floor(x + 1) - sp.floor(x),
]


@each(FALSE)
def test_false_identities_are_not_derived(mistake: Any) -> None:
    assert not is_zero(mistake)


@each(TRUE)
def test_a_change_of_a_true_identity_is_not_derived(identity: Any) -> None:
    """One more thousandth of a symbol, and twice one part of it."""
    assert not is_zero(identity + x / 1000)
    if isinstance(identity, sp.Add):
        first = identity.args[0]
        assert not is_zero(identity + first)


def test_an_exponent_has_one_generator_and_those_that_follow_from_it_none() -> None:
    generators = Generators()
    both = generators.lower(sp.exp(x + y * t))
    assert len(generators.meaning) == 1
    first, second = (generators.lower(sp.exp(exponent)) for exponent in (x, y * t))
    assert first * second == both
    assert first**2 * second != both
    assert len(generators.meaning) == 2
    with pytest.raises(Finer):  # a root of what is left
        generators.lower(sp.exp(x + y * t / 2))
    generators.begin_again()
    half, both, first = (generators.lower(sp.exp(x + y * t * k)) for k in (sp.S.Half, 1, 0))
    assert half**2 == both * first


@each(
    [
        x,
        -x,
        x + y,
        2 * x * y / 3,
        x / sp.sqrt(2) + 1,
        sp.cos(x) * y,
        (x + y) ** 2,
        x + sp.log(p),
        sp.log(p) / 2,
        sp.S.Zero,
        sp.S.One,
        sp.Rational(1, 2),
        -sp.oo,
        x - sp.oo,
        sp.sqrt(x**2),
    ]
)
def test_exponentials_are_as_sympy_has_them(exponent: Any) -> None:
    assert xp.exp(Expressions(exponent)).item() == sp.exp(exponent)


@pytest.mark.parametrize("divisor", [x + y, x + y + 1, 1 + sp.sqrt(2), x, 2 * x, 1 + sp.exp(x)])
def test_quotients_are_as_sympy_has_them(divisor: Any) -> None:
    assert (Expressions(t) / Expressions(divisor)).item() == t / divisor
    assert (1 / Expressions(divisor)).item() == 1 / divisor


def test_values_of_parts_are_computed_once() -> None:
    from flint import fmpq

    values: dict[Any, Any] = {x: fmpq(2)}
    assert certified_value((x + 1) ** 2 + 1 / (x + 1), values) == fmpq(28, 3)
    assert values[x + 1] == 3
    with pytest.raises(Unreadable):
        certified_value(y, values)


def test_signs_are_those_of_the_form() -> None:
    generators = Generators()
    signs = {
        sp.exp(x) + x**2: 2,
        x**2: 1,
        x: 0,
        -p * sp.exp(x): -2,
        p - q: 0,
        sp.Abs(x) + p: 2,
        x**2 - 1: 0,
        1 / (1 + x**2): 2,
        (x - y) ** 2 * p: 1,
        sp.pi - 3: 2,
        3 - sp.pi: -2,
        sp.Max(x, p): 2,
        sp.Min(x, -p): -2,
        sp.sqrt(p): 2,
        x**3: 0,
        sp.cos(x): 0,
    }
    for e, sign in signs.items():
        assert certain_sign(e, generators) == sign, e


def test_equations_give_values_and_relations() -> None:
    generators = Generators()
    assume_equations(generators, [x - y - 1, p**2 + q**2 - 4])
    assert generators.is_zero(sp.exp(x) - sp.exp(y + 1))
    assert generators.is_zero((p**2 + q**2) ** 2 - 16)
    assert not generators.is_zero(x + y)
    assert not generators.is_zero(p**2 - q**2)
    with pytest.raises(Impossible):
        assume_equations(Generators(), [x - 1, x - 2])


def test_a_body_runs_with_exact_lengths() -> None:
    from attnproof.symbolic import equal, sizes

    (n,) = sizes("n")
    code = Code(lambda X: equal(softmax(X / n**0.5), X))
    ran = code.run({"n": Length(2)}, {"X": symbols("X", 2)}, xp=xp)
    (entry,) = (e for e in ran.conclusions[""].left.entries[:1])
    assert entry.has(sp.sqrt(2))
    assert not entry.has(sp.Float)


SOFTMAX = sp.exp(x) + sp.exp(y)
FACTORS = (
    sp.S.Zero,
    sp.Integer(-2),
    sp.oo,
    sp.nan,
    sp.zoo,
    x,
    x**2,
    x + y,
    2 * x + 2 * y,
    sp.exp(x),
    sp.exp(y) / SOFTMAX,
    x * sp.exp(-x) / (x + y),
    sp.Pow(SOFTMAX, -1, evaluate=False),
    1 + sp.sqrt(2),
    sp.Pow(1 + sp.I, -1, evaluate=False),
    sp.log(SOFTMAX),
    sp.Pow(0, x, evaluate=False) + sp.oo,
)


def test_products_are_those_of_sympy() -> None:
    for a, b in product(FACTORS, repeat=2):
        made, wanted = (Expressions(a) * Expressions(b)).item(), a * b
        assert (made, made.args) == (wanted, wanted.args), (a, b)
        assert (Expressions([a]) @ Expressions([b])).item() == wanted
    for a in FACTORS:
        assert (Expressions(a) / Expressions(SOFTMAX)).item() == a / SOFTMAX

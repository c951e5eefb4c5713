"""Roots, logarithms, maxima, angles, floors and counts: proved, and refused one step further."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import (
    equal,
    index_below,
    iterate,
    natural,
    nonnegative,
    positive,
    real,
    rows,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.givens import Given
from attnproof.theorems.definitions.attention import softmax
from tests.cases import each
from tests.symbolic.stating import Said, because, verdict

n, m = sizes("n m")
GIVEN: dict[str, Given] = {
    "a": real(),
    "b": real(),
    "p": positive(),
    "q": positive(),
    "c": nonnegative(),
    "k": natural(),
    "j": natural(),
    "i": index_below(n),
    "x": real(n),
    "s": index_below(m),
    "S": real(n, n),
    "W": real(n, n),
}


def below(i: Any) -> Any:
    """How many indices are below i."""
    return xp.sum(xp.astype(xp.arange(n) < i, float), axis=0)


def summed(row: Any) -> Any:
    """The sum of row(j) over all j below n."""
    return xp.sum(rows(n, row), axis=0)


def half_turn(a: Any) -> Any:
    return xp.pi + 0 * a


def scaled(x: Any) -> Any:
    """x over the root of its mean square."""
    return x / xp.sqrt(xp.mean(x * x, axis=0))


TRUE: dict[str, Any] = {
    "√(p q)": lambda p, q: equal(xp.sqrt(p * q), xp.sqrt(p) * xp.sqrt(q)),
    "√(c/q)": lambda c, q: equal(xp.sqrt(c / q), xp.sqrt(c) / xp.sqrt(q)),
    "√(a² c)": lambda a, c: equal(xp.sqrt(a * a * c), xp.abs(a) * xp.sqrt(c)),
    "√(p³)": lambda p: equal(xp.sqrt(p**3), p * xp.sqrt(p)),
    "√(4 c/9)": lambda c: equal(xp.sqrt(4 * c / 9), 2 * xp.sqrt(c) / 3),
    "√(2 p² + 2 p c)": lambda p, c: equal(
        xp.sqrt(2 * p * p + 2 * p * c), xp.sqrt(2 * p) * xp.sqrt(p + c)
    ),
    "√(1/2)": lambda a: equal(xp.sqrt(a - a + 0.5) * xp.sqrt(a - a + 2), 1),
    "|a b|": lambda a, b: equal(xp.abs(a * b), xp.abs(a) * xp.abs(b)),
    "|−2 a p|": lambda a, p: equal(xp.abs(-2 * a * p), 2 * p * xp.abs(a)),
    "|2 a − 2 b|": lambda a, b: equal(xp.abs(2 * a - 2 * b), 2 * xp.abs(b - a)),
    "|a³|": lambda a: equal(xp.abs(a**3), xp.abs(a) ** 3),
    "|a| is the larger": lambda a: equal(xp.abs(a), xp.maximum(a, -a)),
    "the larger by |a − b|": lambda a, b: equal(2 * xp.maximum(a, b), a + b + xp.abs(a - b)),
    "a sign": lambda a: equal(xp.abs(a), a * xp.sign(a)),
    "a ramp as a choice": lambda a: equal(xp.maximum(a, 0), xp.where(a > 0, a, 0)),
    "a ramp scaled": lambda a, p: equal(xp.maximum(p * a, 0), p * xp.maximum(a, 0)),
    "the larger scaled": lambda a, b, p: equal(xp.maximum(a / p, b / p), xp.maximum(a, b) / p),
    "p^(1/4) p^(3/4)": lambda p: equal(p ** (1 / 4) * p ** (3 / 4), p),
    "p^(1/8) to the 16": lambda p: equal((p ** (1 / 8)) ** 16, p * p),
    "1/p^(1/8) to the 8": lambda p: equal((1 / p ** (1 / 8)) ** 8, 1 / p),
    "RMS norm of p x": lambda p, x: equal(scaled(p * x), scaled(x)),
    "rows of a product of softmaxes": lambda S, W: equal(
        xp.sum(softmax(S) @ softmax(W), axis=-1), xp.ones(n)
    ),
    "rows of a product of three": lambda S, W: equal(
        xp.sum(softmax(S) @ softmax(W) @ softmax(S), axis=-1), xp.ones(n)
    ),
    "√(a²) = |a|": lambda a: equal((a * a) ** 0.5, xp.abs(a)),
    "√(p²) = p": lambda p: equal((p * p) ** 0.5, p),
    "(√c)² = c": lambda c: equal((c**0.5) ** 2, c),
    "(1/√p)² = 1/p": lambda p: equal((1 / p**0.5) ** 2, 1 / p),
    "|a|² = a²": lambda a: equal(xp.abs(a) ** 2, a * a),
    "|k + c| = k + c": lambda k, c: equal(xp.abs(k + c), k + c),
    "log (p q)": lambda p, q: equal(xp.log(p * q), xp.log(p) + xp.log(q)),
    "log (p / q²)": lambda p, q: equal(xp.log(p / q**2), xp.log(p) - 2 * xp.log(q)),
    "log exp a": lambda a: equal(xp.log(xp.exp(a)), a),
    "exp (2 log p)": lambda p: equal(xp.exp(2 * xp.log(p)), p * p),
    "exp (a − log q)": lambda a, q: equal(xp.exp(a - xp.log(q)), xp.exp(a) / q),
    "max(max(a, b), a)": lambda a, b: equal(xp.maximum(xp.maximum(a, b), a), xp.maximum(b, a)),
    "max(a, a)": lambda a: equal(xp.maximum(a, a), a),
    "cos π": lambda a: equal(xp.cos(half_turn(a)), -1 + 0 * a),
    "cos(a + π)": lambda a: equal(xp.cos(a + half_turn(a)), -xp.cos(a)),
    "sin(a + π/2)": lambda a: equal(xp.sin(a + half_turn(a) / 2), xp.cos(a)),
    "cos(a + 2π)": lambda a: equal(xp.cos(a + 2 * half_turn(a)), xp.cos(a)),
    "tanh 0": lambda a: equal(xp.tanh(a - a), 0 * a),
    "tanh is odd": lambda a: equal(xp.tanh(-a), -xp.tanh(a)),
    "tanh a/2": lambda a: equal(1 + xp.tanh(a / 2), 2 / (1 + xp.exp(-a))),
    "tanh 2a": lambda a: equal(xp.tanh(2 * a) * (1 + xp.tanh(a) * xp.tanh(a)), 2 * xp.tanh(a)),
    "⌊(k n + i)/n⌋": lambda k, i: equal((k * n + i) // n, k),
    "(k n + i) mod n": lambda k, i: equal((k * n + i) % n, i),
    "⌊k + a/2⌋": lambda k, a: equal((2 * k + a) // 2, k + a // 2),
    "⌊⌊k/2⌋/2⌋": lambda k: equal(k // 2 // 2, k // 4),
    "k mod 2": lambda k: equal(k % 2 + 2 * (k // 2), k),
    "i indices are below i": lambda i: equal(below(i), i),
    "from behind": lambda x: equal(
        summed(lambda j: x[n - 1 - j] * j), summed(lambda j: x[j] * (n - 1 - j))
    ),
    "a stack of one layer more": lambda k, a: equal(
        iterate(k + 1, a, lambda t, y: y * a + t), iterate(k, a, lambda t, y: y * a + t) * a + k
    ),
    "a stack of none": lambda a, b: equal(iterate(0 * n, a, lambda _, y: y * b), a),
}
FALSE: dict[str, Any] = {
    "√(a b)": lambda a, b: equal(xp.sqrt(a * b), xp.sqrt(a) * xp.sqrt(b)),
    "√(a² b)": lambda a, b: equal(xp.sqrt(a * a * b), xp.abs(a) * xp.sqrt(b)),
    "√(p + q)": lambda p, q: equal(xp.sqrt(p + q), xp.sqrt(p) + xp.sqrt(q)),
    "√(2 p)": lambda p: equal(xp.sqrt(2 * p), 2 * xp.sqrt(p)),
    "√(c/q) upside down": lambda c, q: equal(xp.sqrt(c / q), xp.sqrt(c) * xp.sqrt(q)),
    "|a + b| of two": lambda a, b: equal(xp.abs(a + b), xp.abs(a) + xp.abs(b)),
    "|a b| = a b": lambda a, b: equal(xp.abs(a * b), a * b),
    "|a³| = |a|": lambda a: equal(xp.abs(a**3), xp.abs(a)),
    "the larger by |a + b|": lambda a, b: equal(2 * xp.maximum(a, b), a + b + xp.abs(a + b)),
    "a sign squared": lambda a: equal(xp.sign(a) ** 2, 1),
    "a ramp as the other choice": lambda a: equal(xp.maximum(a, 0), xp.where(a < 0, a, 0)),
    "a ramp scaled by any number": lambda a, b: equal(xp.maximum(b * a, 0), b * xp.maximum(a, 0)),
    "a ramp scaled by 0": lambda a, b, c: equal(xp.maximum(c * a, b), c * xp.maximum(a, b)),
    "p^(1/4) p^(1/4)": lambda p: equal(p ** (1 / 4) * p ** (1 / 4), p),
    "p^(1/8) to the 12": lambda p: equal((p ** (1 / 8)) ** 12, p * p),
    "RMS norm of a x": lambda a, x: equal(scaled(a * x), scaled(x)),
    "columns of a product of softmaxes": lambda S, W: equal(
        xp.sum(softmax(S) @ softmax(W), axis=0), xp.ones(n)
    ),
    "rows of a product with an exponential": lambda S, W: equal(
        xp.sum(softmax(S) @ xp.exp(W), axis=-1), xp.ones(n)
    ),
    "√(a²) = a": lambda a: equal((a * a) ** 0.5, a),
    "√((a − b)²) = |a + b|": lambda a, b: equal(((a - b) ** 2) ** 0.5, xp.abs(b + a)),
    "√(a² + b²) = |a| + |b|": lambda a, b: equal((a * a + b * b) ** 0.5, xp.abs(a) + xp.abs(b)),
    "(√a)² = a": lambda a: equal((a**0.5) ** 2, a),
    "|a|³ = a³": lambda a: equal(xp.abs(a) ** 3, a**3),
    "|k − c| = k − c": lambda k, c: equal(xp.abs(k - c), k - c),
    "log (a b)": lambda a, b: equal(xp.log(a * b), xp.log(a) + xp.log(b)),
    "log (p + q)": lambda p, q: equal(xp.log(p + q), xp.log(p) + xp.log(q)),
    "log c²": lambda c: equal(xp.log(c * c), 2 * xp.log(c)),
    "exp log a": lambda a: equal(xp.exp(xp.log(a)), a),
    "exp (log p / 2)": lambda p: equal(xp.exp(xp.log(p) / 2), p),
    "max(a, b) = a": lambda a, b: equal(xp.maximum(a, b), a),
    "max(a, b) is a sum": lambda a, b: equal(xp.maximum(a, b), a + b),
    "max(−a, −b)": lambda a, b: equal(xp.maximum(-a, -b), -xp.maximum(a, b)),
    "cos π/2": lambda a: equal(xp.cos(half_turn(a) / 2), -1 + 0 * a),
    "sin(a + π)": lambda a: equal(xp.sin(a + half_turn(a)), xp.sin(a)),
    "cos(a + 3)": lambda a: equal(xp.cos(a + 3), -xp.cos(a)),
    "tanh 1": lambda a: equal(xp.tanh(a - a + 1), 1 + 0 * a),
    "tanh a": lambda a: equal(1 + xp.tanh(a), 2 / (1 + xp.exp(-a))),
    "⌊(k n + s)/n⌋": lambda k, s: equal((k * n + s) // n, k),
    "(k n − i) mod n": lambda k, i: equal((k * n - i) % n, i),
    "⌊a + b⌋": lambda a, b: equal((a + b) // 1, a // 1 + b // 1),
    "⌊⌊a/p⌋/q⌋": lambda a, p, q: equal(a // p // q, a // (p * q)),
    "⌊⌊k/2⌋/3⌋": lambda k: equal(k // 2 // 3, k // 5),
    "k mod 2 = k": lambda k: equal(k % 2, k),
    "i + 1 indices are below i": lambda i: equal(below(i), i + 1),
    "from behind and one further": lambda x: equal(
        summed(lambda j: x[n - 1 - j] * j), summed(lambda j: x[j] * (n - j))
    ),
    "k indices are below k": lambda k: equal(below(k), k),
    "a stack of one layer more": lambda k, a: equal(
        iterate(k + 1, a, lambda t, y: y * a + t), iterate(k, a, lambda t, y: y * a + t) * a + k + 1
    ),
    "a stack of fewer": lambda k, a: equal(
        iterate(k, a, lambda _, y: y * a), iterate(k - 1, a, lambda _, y: y * a) * a
    ),
    "a stack of one": lambda a, b: equal(iterate(0 * n + 1, a, lambda _, y: y * b), a),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_holds_of_numbers_is_proved(name: str) -> None:
    said = Said(GIVEN, TRUE[name])
    assert verdict(said) == "proved", because(said)


@each(FALSE)
def test_what_fails_for_some_numbers_is_not(name: str) -> None:
    assert verdict(Said(GIVEN, FALSE[name])) == "undecided"

"""Inequalities of the textbooks: each is proved, and its neighbours that fail are not."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import (
    angle,
    at_least,
    greater,
    index_below,
    nonnegative,
    positive,
    real,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.givens import Given
from attnproof.theorems.definitions.attention import attention, softmax
from tests.symbolic.stating import Said, because, decided, verdict

n, r = sizes("n r", "tokens")
d, e = sizes("d e", "features")
GIVEN: dict[str, Given] = {
    "a": positive(),
    "b": positive(),
    "c": nonnegative(),
    "x": real(),
    "y": real(),
    "t": angle(),
    "q": real(d),
    "k": real(d),
    "w": positive(d),
    "s": real(n),
    "u": real(n),
    "p": positive(n),
    "o": positive(n),
    "i": index_below(n),
    "j": index_below(n),
    "A": real(n, d),
    "S": real(r, n),
    "T": real(r, n),
    "Q": real(r, d),
    "K": real(n, d),
    "V": real(n, e),
}


def said(claim: Any, assume: Any = None) -> Said:
    return Said(GIVEN, claim, assume)


def scaled(x: Any, a: Any) -> Any:
    """x/√(mean x² + a)."""
    return x / xp.sqrt(xp.mean(x * x, axis=0) + a)


def norm(s: Any) -> Any:
    return xp.sqrt(xp.sum(s**2))


def divergence(p: Any, o: Any) -> Any:
    """Σ p log(p/o)."""
    return xp.sum(p * (xp.log(p) - xp.log(o)), axis=-1)


def log_sum(s: Any) -> Any:
    return xp.log(xp.sum(xp.exp(s), axis=0))


TRUE: dict[str, Said] = {
    "the larger": said(lambda x, y: at_least(xp.maximum(x, y), x)),
    "the larger and the mean": said(lambda x, y: at_least(2 * xp.maximum(x, y), x + y)),
    "the absolute value": said(lambda x: at_least(xp.abs(x), x)),
    "the triangle": said(lambda x, y: at_least(xp.abs(x) + xp.abs(y), xp.abs(x + y))),
    "two means": said(lambda x, y: at_least(x**2 + y**2, 2 * x * y)),
    "the square of a sum": said(lambda x, y: at_least(2 * x**2 + 2 * y**2, (x + y) ** 2)),
    "a cubic": said(lambda x: greater(x**3, (x - 1) ** 3)),
    "the quadratic form of a weight": said(
        lambda a, x, y: at_least(a * x**2 + a * y**2, 2 * a * x * y)
    ),
    "clipped": said(lambda x: at_least(1, xp.clip(x, -1, 1))),
    "a root grows": said(lambda a, b: greater(xp.sqrt(a + b), xp.sqrt(a))),
    "an inverse falls": said(lambda a, b: greater(1 / a, 1 / (a + b))),
    "exp grows": said(lambda x, a: greater(xp.exp(x + a), xp.exp(x))),
    "log grows": said(lambda a, b: greater(xp.log(a + b), xp.log(a))),
    "tanh grows": said(lambda x, a: greater(xp.tanh(x + a), xp.tanh(x))),
    "the tangent of exp": said(lambda x: at_least(xp.exp(x), 1 + x)),
    "tanh is below 1": said(lambda x: greater(1, xp.tanh(x) ** 2)),
    "|tanh| is below 1": said(lambda x: greater(1, xp.abs(xp.tanh(x)))),
    "a soft cap": said(lambda x, a: greater(a, a * xp.tanh(x / a))),
    "a soft cap from below": said(lambda x, a: greater(a * xp.tanh(x / a), -a)),
    "softplus": said(lambda x: greater(xp.log(1 + xp.exp(x)), x)),
    "|cos|": said(lambda t: at_least(1, xp.abs(xp.cos(t)))),
    "cosh": said(lambda x: at_least(xp.cosh(x), 1)),
    "Cauchy and Schwarz": said(
        lambda q, k: at_least(xp.sum(q * q) * xp.sum(k * k), xp.sum(q * k) ** 2)
    ),
    "distances": said(
        lambda q, k: at_least(2 * xp.sum(q * q) + 2 * xp.sum(k * k), xp.sum((q + k) ** 2))
    ),
    "a variance": said(lambda q: at_least(xp.mean(q * q), xp.mean(q) ** 2)),
    "a kernel matrix": said(lambda A, s: at_least(s @ (A @ A.mT) @ s, 0)),
    "softmax is at most 1": said(lambda S: at_least(1, softmax(S))),
    "softmax with a sink": said(
        lambda S: greater(1, xp.exp(S) / (1 + xp.sum(xp.exp(S), axis=-1, keepdims=True)))
    ),
    "squares of weights": said(lambda s: at_least(1, xp.sum(softmax(s) ** 2))),
    "entropy": said(lambda s: at_least(-xp.sum(softmax(s) * xp.log(softmax(s))), 0)),
    "log-sum-exp": said(lambda s, i: at_least(log_sum(s), s[i])),
    "the order of scores": said(
        lambda s, i, j: greater(softmax(s)[i], softmax(s)[j]),
        lambda s, i, j: [greater(s[i], s[j])],
    ),
    "the hull": said(
        lambda x, Q, K, V: at_least(x, attention(Q, K, V)), lambda x, V: [at_least(x, V)]
    ),
    "Jensen": said(lambda Q, K, V: at_least(attention(Q, K, V**2), attention(Q, K, V) ** 2)),
    "the size of an output": said(
        lambda Q, K, V: at_least(attention(Q, K, xp.abs(V)), xp.abs(attention(Q, K, V)))
    ),
    "an inner product": said(
        lambda q, k: at_least(xp.sqrt(xp.sum(q * q)) * xp.sqrt(xp.sum(k * k)), xp.sum(q * k))
    ),
    "cosine similarity": said(
        lambda q, k, a: at_least(
            1,
            xp.sum(q * k) / (xp.sqrt(xp.sum(q * q) + a) * xp.sqrt(xp.sum(k * k) + a)),
        )
    ),
    "two means of positive numbers": said(lambda a, b: at_least((a + b) / 2, xp.sqrt(a * b))),
    "sines": said(lambda x, q, w: at_least(xp.sum(xp.abs(q)), xp.sum(q * xp.sin(x * w)))),
    "the tangent of log": said(lambda a: at_least(a - 1, xp.log(a))),
    "the tangent of log, inverted": said(lambda a: at_least(xp.log(a), 1 - 1 / a)),
    "exp of a positive number": said(lambda a: greater(xp.exp(a), 1 + a)),
    "log-sum-exp below the maximum": said(
        lambda x, s: at_least(x + xp.log(n), log_sum(s)), lambda x, s: [at_least(x, s)]
    ),
    "magnitudes and squares": said(lambda s: at_least(xp.sum(xp.abs(s)) ** 2, xp.sum(s**2))),
    "the norms of magnitudes and of squares": said(
        lambda s: at_least(xp.sum(xp.abs(s)), xp.sqrt(xp.sum(s**2)))
    ),
    "the norm of squares and the mean of magnitudes": said(
        lambda s: at_least(xp.sqrt(n * xp.sum(s**2)), xp.sum(xp.abs(s)))
    ),
    "the square of a sum, written out": said(lambda x, y: at_least(x**2 + 2 * x * y + y**2, 0)),
    "a root of a sum": said(lambda a, b: at_least(xp.sqrt(a) + xp.sqrt(b), xp.sqrt(a + b))),
    "roots and the root of a mean": said(
        lambda a, b: at_least(xp.sqrt(2 * (a + b)), xp.sqrt(a) + xp.sqrt(b))
    ),
    "the triangle of norms": said(
        lambda s, u: at_least(norm(s) + norm(u), xp.sqrt(xp.sum((s + u) ** 2)))
    ),
    "a difference of norms": said(lambda s, u: at_least(norm(s - u), norm(s) - norm(u))),
    "Gibbs": said(lambda s, u: at_least(divergence(softmax(s), softmax(u)), 0)),
    "Gibbs for weights of equal sum": said(
        lambda p, o: at_least(divergence(p, o), 0), lambda p, o: [(xp.sum(p), xp.sum(o))]
    ),
    "Gibbs in each row": said(
        lambda S, T: at_least(divergence(softmax(S), softmax(T)), xp.zeros(r))
    ),
    "entropy at most that of equal weights": said(
        lambda s: at_least(xp.log(n), -xp.sum(softmax(s) * xp.log(softmax(s))))
    ),
    "entropy and cross entropy": said(
        lambda s, u: at_least(
            -xp.sum(softmax(s) * xp.log(softmax(u))), -xp.sum(softmax(s) * xp.log(softmax(s)))
        )
    ),
    "log-sum-exp and its tangent": said(
        lambda s, u: at_least(log_sum(u), log_sum(s) + xp.sum(softmax(s) * (u - s)))
    ),
    "cross entropy": said(lambda s, i: at_least(-xp.log(softmax(s)[i]), 0)),
    "RMS norm": said(lambda q, a: greater(1, xp.mean(scaled(q, a) ** 2))),
    "cosines": said(lambda x, w: at_least(d + 0 * x, xp.sum(xp.cos(x * w)))),
    "one of many positive numbers": said(lambda q: at_least(xp.sum(xp.exp(q)), xp.exp(q[0]))),
}
FALSE: dict[str, Said] = {
    "the smaller": said(lambda x, y: at_least(xp.minimum(x, y), x)),
    "the larger is larger": said(lambda x, y: greater(xp.maximum(x, y), x)),
    "the absolute value is larger": said(lambda x: greater(xp.abs(x), x)),
    "the triangle, the other way": said(
        lambda x, y: at_least(xp.abs(x + y), xp.abs(x) + xp.abs(y))
    ),
    "the triangle is strict": said(lambda x, y: greater(xp.abs(x) + xp.abs(y), xp.abs(x + y))),
    "two means, too much": said(lambda x, y: at_least(x**2 + y**2, 3 * x * y)),
    "two means, strictly": said(lambda x, y: greater(x**2 + y**2, 2 * x * y)),
    "an indefinite form": said(lambda x, y: at_least(x**2 - y**2 + 1, 2 * x * y)),
    "a weight of any sign": said(lambda y, x, q: at_least(q[0] * x**2 + q[0] * y**2, 0)),
    "a square": said(lambda x: greater(x**3, (x - 1) ** 2)),
    "clipped below 1": said(lambda x: greater(1, xp.clip(x, -1, 1))),
    "a root grows by nothing": said(lambda a, c: greater(xp.sqrt(a + c), xp.sqrt(a))),
    "an inverse of any number": said(lambda x, b: greater(1 / x, 1 / (x + b))),
    "exp falls": said(lambda x, a: greater(xp.exp(x), xp.exp(x + a))),
    "above the tangent": said(lambda x: greater(xp.exp(x), 1 + x)),
    "another tangent": said(lambda x: at_least(xp.exp(x), 2 + x)),
    "exp and a multiple": said(lambda x: at_least(xp.exp(x), 3 * x)),
    "tanh is below 1/2": said(lambda x: greater(1, 2 * xp.tanh(x) ** 2)),
    "a soft cap at another cap": said(lambda x, a, b: greater(b, a * xp.tanh(x / a))),
    "softplus of twice": said(lambda x: greater(xp.log(1 + xp.exp(x)), 2 * x)),
    "|cos| below 1": said(lambda t: greater(1, xp.abs(xp.cos(t)))),
    "Cauchy and Schwarz, the other way": said(
        lambda q, k: at_least(xp.sum(q * k) ** 2, xp.sum(q * q) * xp.sum(k * k))
    ),
    "Cauchy and Schwarz, half": said(
        lambda q, k: at_least(xp.sum(q * q) * xp.sum(k * k), 2 * xp.sum(q * k) ** 2)
    ),
    "Cauchy and Schwarz without squares": said(
        lambda q, k: at_least(xp.sum(q) * xp.sum(k), xp.sum(q * k))
    ),
    "a variance, the other way": said(lambda q: at_least(xp.mean(q) ** 2, xp.mean(q * q))),
    "a mean of any numbers": said(lambda q: at_least(xp.mean(q * q), xp.mean(q))),
    "any bilinear form": said(lambda A, s, K: at_least(s @ (A @ K.mT) @ s, 0)),
    "softmax is below a half": said(lambda S: at_least(1, 2 * softmax(S))),
    "softmax is below 1": said(lambda S: greater(1, softmax(S))),  # not for n = 1
    "the sum of squares is below a half": said(lambda s: at_least(1, 2 * xp.sum(softmax(s) ** 2))),
    "entropy is positive": said(lambda s: greater(-xp.sum(softmax(s) * xp.log(softmax(s))), 0)),
    "log-sum-exp and twice": said(lambda s, i: at_least(log_sum(s), 2 * s[i])),
    "log-sum-exp of two": said(lambda s, i, j: at_least(log_sum(s), s[i] + s[j])),
    "the order of other scores": said(
        lambda s, i, j: greater(softmax(s)[i], softmax(s)[j]),
        lambda s, i, j: [at_least(s[i], s[j])],
    ),
    "the hull of other values": said(
        lambda x, Q, K, V: at_least(x, attention(Q, K, V)), lambda x, K: [at_least(x, K)]
    ),
    "the hull, strictly": said(
        lambda x, Q, K, V: greater(x, attention(Q, K, V)), lambda x, V: [at_least(x, V)]
    ),
    "the hull at one key": said(
        lambda x, Q, K, V: at_least(x, attention(Q, K, V)),
        lambda x, i, V: [at_least(x, V[i])],
    ),
    "Jensen, the other way": said(
        lambda Q, K, V: at_least(attention(Q, K, V) ** 2, attention(Q, K, V**2))
    ),
    "an inner product, half": said(
        lambda q, k: at_least(xp.sqrt(xp.sum(q * q)) * xp.sqrt(xp.sum(k * k)), 2 * xp.sum(q * k))
    ),
    "cosine similarity below a half": said(
        lambda q, k, a: at_least(
            1,
            2 * xp.sum(q * k) / (xp.sqrt(xp.sum(q * q) + a) * xp.sqrt(xp.sum(k * k) + a)),
        )
    ),
    "two means of any numbers": said(lambda x, y: at_least((x + y) / 2, xp.sqrt(x * y))),
    "two means, the other way": said(lambda a, b: at_least(xp.sqrt(a * b), (a + b) / 2)),
    "sines of any numbers": said(lambda x, q, w: at_least(xp.sum(q), xp.sum(q * xp.sin(x * w)))),
    "the tangent of log, strictly": said(lambda a: greater(a - 1, xp.log(a))),
    "the tangent of log of any number": said(lambda x: at_least(x - 1, xp.log(x))),
    "exp of any number": said(lambda x: greater(xp.exp(x), 1 + x)),
    "log-sum-exp below the maximum alone": said(
        lambda x, s: at_least(x, log_sum(s)), lambda x, s: [at_least(x, s)]
    ),
    "a product, whatever its sign": said(lambda x, y: at_least(x**2 + 3 * x * y + y**2, 0)),
    "the root of a sum": said(lambda a, b: at_least(xp.sqrt(a + b), xp.sqrt(a) + xp.sqrt(b))),
    "the triangle of norms, turned": said(lambda s, u: at_least(norm(s + u), norm(s) + norm(u))),
    "norms of a difference": said(lambda s, u: at_least(norm(s) - norm(u), norm(s - u))),
    "a sum and squares": said(lambda s: at_least(xp.sum(s) ** 2, xp.sum(s**2))),
    "squares and magnitudes": said(lambda s: at_least(xp.sqrt(xp.sum(s**2)), xp.sum(xp.abs(s)))),
    "magnitudes and the norm of squares": said(
        lambda s: at_least(xp.sum(xp.abs(s)), xp.sqrt(n * xp.sum(s**2)))
    ),
    "Gibbs for any weights": said(lambda p, o: at_least(divergence(p, o), 0)),
    "Gibbs, other weights": said(
        lambda s, u: at_least(xp.sum(softmax(u) * (xp.log(softmax(s)) - xp.log(softmax(u)))), 0)
    ),
    "Gibbs, strictly": said(lambda s, u: greater(divergence(softmax(s), softmax(u)), 0)),
    "entropy below that of equal weights": said(
        lambda s: greater(xp.log(n), -xp.sum(softmax(s) * xp.log(softmax(s))))
    ),
    "log-sum-exp and another tangent": said(
        lambda s, u: at_least(log_sum(u), log_sum(s) + xp.sum(softmax(u) * (u - s)))
    ),
    "cross entropy above log 2": said(lambda s, i: at_least(-xp.log(softmax(s)[i]), xp.log(2))),
    "RMS norm below a half": said(lambda q, a: greater(1, 2 * xp.mean(scaled(q, a) ** 2))),
    "RMS norm without eps": said(lambda q, c: greater(1, xp.mean(scaled(q, c) ** 2))),
    "cosines below": said(lambda x, w: greater(d + 0 * x, xp.sum(xp.cos(x * w)))),
    "one of many numbers": said(lambda q: at_least(xp.sum(q), q[0])),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_known_inequality_is_proved(name: str) -> None:
    assert verdict(TRUE[name]) == "proved", because(TRUE[name])


@pytest.mark.parametrize("name", FALSE)
def test_its_neighbour_that_fails_is_not(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Cauchy and Schwarz", "the inequality of Cauchy and Schwarz"),
        ("the hull", "over positive denominators"),
        ("the tangent of exp", "a function and its tangent"),
        ("the triangle", "case by case"),
    ],
)
def test_a_proof_says_by_what_an_inequality_holds(name: str, words: str) -> None:
    (claim,) = decided(TRUE[name]).claims
    assert words in claim.links[-1].reason
    (square,) = decided(said(lambda x: at_least(x * x, 0))).claims
    assert square.links[-1].reason == "by the form of the entries"

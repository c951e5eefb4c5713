"""What the prover reaches by itself: true statements of the field, and false ones beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof.symbolic import (
    Array,
    Claim,
    Statement,
    boolean,
    equal,
    frequencies,
    index_below,
    permutation,
    positions,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.givens import Given
from attnproof.symbolic.normal_form.equations import rewrite
from attnproof.symbolic.prove import decide
from attnproof.symbolic.rules.base import Refused
from attnproof.symbolic.scalars import ONE
from attnproof.theorems.definitions.attention import (
    attention,
    causal,
    masked_attention,
    self_attention,
    softmax,
)
from attnproof.theorems.definitions.positions import sinusoidal
from attnproof.theorems.definitions.rotary import block_rotation, rotate, rotate_half

r, n, m = sizes("r n m", "tokens")
l, d, e, p = sizes("ell d e p", "features")
H, G = sizes("H G", "heads")
(B,) = sizes("B", "blocks")
xp: Any = array_namespace(real(n).named("x"))
QKV: dict[str, Given] = {"Q": real(r, l), "K": real(n, l), "V": real(n, d)}
AB: dict[str, Given] = {"a": positive(n), "b": positive(n)}
ROWS: dict[str, Given] = {"X": real(n, 2 * B), "u": positions(n), "w": frequencies(B)}


def layer_norm(x: Array, gain: Array) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / (xp.mean(centred**2, axis=-1, keepdims=True) + 1) ** 0.5 * gain


def masked(S: Array, M: Array) -> Any:
    kept = xp.astype(M, float) * xp.exp(S)
    return kept / xp.sum(kept, axis=-1, keepdims=True)


Case = tuple[dict[str, Given], Callable[..., Claim]]
TRUE: dict[str, Case] = {
    "a key bias cancels": (
        {**QKV, "t": real(l)},
        lambda Q, K, V, t: equal(attention(Q, K + t[None, :], V), attention(Q, K, V)),
    ),
    "quotient and rest make the index": (
        {"i": index_below(n), "x": real(n)},
        lambda i, x: equal((m * (i // m) + i % m) * x, i * x),
    ),
    "the larger and the smaller make both": (
        {"x": real(n), "y": real(n)},
        lambda x, y: equal(xp.maximum(x, y) + xp.minimum(x, y), x + y),
    ),
    "a value bias passes through": (
        {**QKV, "t": real(d)},
        lambda Q, K, V, t: equal(attention(Q, K, V + t[None, :]), attention(Q, K, V) + t[None, :]),
    ),
    "a mask multiplies the exponentials": (
        {"S": real(r, n), "M": boolean(r, n)},
        lambda S, M: equal(softmax(xp.where(M, S, -xp.inf)), masked(S, M)),
    ),
    "layer norm treats rows alike": (
        {"X": real(n, p), "g": real(p), "s": permutation(n)},
        lambda X, g, s: equal(layer_norm(X[s], g), layer_norm(X, g)[s]),
    ),
    "layer norm ignores a constant": (
        {"X": real(n, p), "g": real(p), "c": real(n)},
        lambda X, g, c: equal(layer_norm(X + c[:, None], g), layer_norm(X, g)),
    ),
    "squared distance is a dot product with a key bias": (
        QKV,
        lambda Q, K, V: equal(
            softmax(-xp.sum((Q[:, None, :] - K[None, :, :]) ** 2, axis=-1) / 2) @ V,
            softmax(Q @ K.mT - xp.sum(K**2, axis=-1)[None, :] / 2) @ V,
        ),
    ),
    "heads side by side are heads summed": (
        {"A": real(H, n, d), "W": real(H, d, e)},
        lambda A, W: equal(
            xp.reshape(xp.permute_dims(A, (1, 0, 2)), (n, H * d)) @ W.reshape(H * d, e),
            xp.sum(A @ W, axis=0),
        ),
    ),
    "half-split rotation keeps norms": (
        ROWS,
        lambda X, u, w: equal(xp.sum(rotate_half(X, u, w) ** 2, axis=-1), xp.sum(X**2, axis=-1)),
    ),
    "rotating twice adds positions": (
        {**ROWS, "v": positions(n)},
        lambda X, u, w, v: equal(rotate(rotate(X, u, w), v, w), rotate(X, u + v, w)),
    ),
    "rotary encoding is a block matrix": (
        {"x": real(2 * B), "u": positions(), "w": frequencies(B)},
        lambda x, u, w: equal(rotate(x[None, :], u[None], w)[0], block_rotation(u * w) @ x),
    ),
    "sinusoidal rows have norm B": (
        {"u": positions(n), "w": frequencies(B)},
        lambda u, w: equal(xp.sum(sinusoidal(u, w) ** 2, axis=-1), xp.ones(n) * B),
    ),
    "the last row sees all under a causal mask": (
        {"X": real(n, p)},
        lambda X: equal(masked_attention(X, X, X, causal(X))[-1], attention(X, X, X)[-1]),
    ),
    "a causal prefix does not see the rest": (
        {"X": real(n + m, p)},
        lambda X: equal(
            masked_attention(X, X, X, causal(X))[:n],
            masked_attention(X[:n], X[:n], X[:n], causal(X[:n])),
        ),
    ),
    "shares of a sum are one": (AB, lambda a, b: equal(a / (a + b) + b / (a + b), 0 * a + 1)),
    "shares summed over an axis": (
        AB,
        lambda a, b: equal(xp.sum(a / (a + b), axis=0) + xp.sum(b / (a + b), axis=0), n + 0 * a[0]),
    ),
    "a quotient of squares": (AB, lambda a, b: equal((a * a - b * b) / (a + b), a - b)),
    "the logistic function": (
        {"x": real(n)},
        lambda x: equal(xp.exp(x) / (1 + xp.exp(x)), 1 / (1 + xp.exp(-x))),
    ),
    "the hyperbolic tangent": (
        {"x": real(n)},
        lambda x: equal(
            2 / (1 + xp.exp(-2 * x)) - 1, (xp.exp(x) - xp.exp(-x)) / (xp.exp(x) + xp.exp(-x))
        ),
    ),
}
FALSE: dict[str, Case] = {
    "quotient and rest of two numbers make the index": (
        {"i": index_below(n), "x": real(n)},
        lambda i, x: equal((m * (i // m) + i % n) * x, i * x),
    ),
    "a query bias cancels": (
        {**QKV, "t": real(l)},
        lambda Q, K, V, t: equal(attention(Q + t[None, :], K, V), attention(Q, K, V)),
    ),
    "the first row sees all under a causal mask": (
        {"X": real(n, p)},
        lambda X: equal(masked_attention(X, X, X, causal(X))[0], attention(X, X, X)[0]),
    ),
    "a prefix without a mask does not see the rest": (
        {"X": real(n + m, p)},
        lambda X: equal(attention(X, X, X)[:n], attention(X[:n], X[:n], X[:n])),
    ),
    "shares of two sums are one": (
        AB,
        lambda a, b: equal(a / (a + b) + b / (a + b + 1), 0 * a + 1),
    ),
    "a sum that may vanish divides itself": (
        {"a": real(n), "b": real(n)},
        lambda a, b: equal((a + b) / (a + b), 0 * a + 1),
    ),
    "layer norm ignores a factor": (
        {"X": real(n, p), "g": real(p)},
        lambda X, g: equal(layer_norm(X * 2, g), layer_norm(X, g)),
    ),
    "two layers are one": (
        {"X": real(n, p), "A": real(p, l), "C": real(p, p)},
        lambda X, A, C: equal(
            self_attention(self_attention(X, A, A, C), A, A, C), self_attention(X, A, A, C)
        ),
    ),
}


def verdict(case: Case) -> str:
    given, build = case
    claim = build(**{name: g.named(name) for name, g in given.items()})
    return decide(Statement(given, {"": claim}), refuting=False).verdict


@pytest.mark.parametrize("name", TRUE)
def test_true_statements_are_proved(name: str) -> None:
    assert verdict(TRUE[name]) == "proved"


@pytest.mark.parametrize("name", FALSE)
def test_false_statements_are_not_proved(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


def test_a_sum_is_cancelled_only_if_it_is_positive() -> None:
    for given, positive_by_form in ((positive(), True), (real(), False)):
        a, b = given.named("a"), given.named("b")
        quotient, total = ((a + b) / (a + b)).term, (a + b).term
        if positive_by_form:
            assert rewrite("ring", quotient, ONE, total).right is ONE
        else:
            with pytest.raises(Refused, match="not known to be"):
                rewrite("ring", quotient, ONE, total)
        with pytest.raises(Refused, match="not one polynomial"):
            rewrite("ring", quotient, ONE)
        with pytest.raises(Refused):
            rewrite("ring", ((a + b * 2) / (a + b)).term, ONE, total)

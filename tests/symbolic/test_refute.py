"""False statements are refuted with a sure witness; true ones never are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq

from attnproof.symbolic import certified_numbers, failures
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.admissible import obeys
from attnproof.symbolic.array import Array
from attnproof.symbolic.candidates import Candidate, draw
from attnproof.symbolic.claim import Claim, all_positive, equal, exists
from attnproof.symbolic.decision import Witness
from attnproof.symbolic.evaluate import Evaluator
from attnproof.symbolic.givens import (
    Given,
    boolean,
    frequencies,
    function,
    index_below,
    index_map,
    injection,
    natural,
    orthogonal,
    permutation,
    positions,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.refute import refute
from attnproof.theorems.definitions.attention import attention, masked_attention, softmax
from tests.cases import each

r, n, k = sizes("r n k", "tokens")
ell, d = sizes("ell d", "features")
(B,) = sizes("B", "blocks")

Q, K, V, X, Y = real(r, ell), real(n, ell), real(n, d), real(n, d), real(n, d)
SIGMA = permutation(n)
Case = tuple[Mapping[str, Given], Callable[..., Claim]]


def attempt(case: Case, assume: Any = None, limit: float = 5.0) -> Witness | None:
    given, body = case
    arrays = {name: g.named(name) for name, g in given.items()}
    pairs = assume(**arrays) if assume else []
    return refute(
        body(**arrays), given, tuple((a.term, b.term) for a, b in pairs), limit_seconds=limit
    )


def self_attention(X: Array, keep: Any = None) -> Array:
    made: Array = attention(X, X, X) if keep is None else masked_attention(X, X, X, keep)
    return made


def causal() -> Array:
    i = xp.arange(n)
    return i[:, None] >= i[None, :]


def rotate(x: Array, angle: Array) -> Array:
    a, b = x[..., 0::2], x[..., 1::2]
    c, s = xp.cos(angle), xp.sin(angle)
    return xp.stack((a * c - b * s, a * s + b * c), axis=-1).reshape(2 * B)


def dot(x: Array, y: Array) -> Array:
    return xp.sum(x * y, axis=-1)


ROTARY = {
    "q": real(2 * B),
    "k": real(2 * B),
    "w": frequencies(B),
    "s": positions(),
    "u": positions(),
    "v": positions(),
}
INVARIANT = function(2, traits=("invariant",))
ATTENTION = {"Q": Q, "K": K, "V": V, "sigma": SIGMA}
ENCODED = {"w": frequencies(d), "s": positions(), "p": positions()}


def shift_map(of: Callable[[Array], Array], width: Any) -> Callable[..., Claim]:
    return lambda w, s, p: exists(
        real(width, width), "M", lambda M: equal(of((p + s) * w), of(p * w) @ M.mT), free_of=(p,)
    )


TRUE: dict[str, Case] = {
    "pairs permuted": (
        ATTENTION,
        lambda Q, K, V, sigma: equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V)),
    ),
    "softmax shift": ({"S": real(n), "c": real()}, lambda S, c: equal(softmax(S + c), softmax(S))),
    "rows sum to one": ({"S": real(r, n)}, lambda S: equal(xp.sum(softmax(S), axis=1), xp.ones(r))),
    "equivariant": (
        {"X": X, "sigma": SIGMA},
        lambda X, sigma: equal(self_attention(X[sigma]), self_attention(X)[sigma]),
    ),
    "mask moves along": (
        {"X": X, "m": boolean(n, n), "sigma": SIGMA},
        lambda X, m, sigma: equal(
            self_attention(X[sigma], m[sigma][:, sigma]), self_attention(X, m)[sigma]
        ),
    ),
    "orthogonal": (
        {"Q": Q, "K": K, "V": V, "g": orthogonal(ell)},
        lambda Q, K, V, g: equal(attention(Q @ g, K @ g, V), attention(Q, K, V)),
    ),
    "any score": (
        {"Q": Q, "K": K, "V": V, "sigma": SIGMA, "h": function(1, 1)},
        lambda Q, K, V, sigma, h: equal(
            softmax(h(Q[:, None], K[sigma][None])) @ V[sigma], softmax(h(Q[:, None], K[None])) @ V
        ),
    ),
    "given equivariant": (
        {"X": X, "sigma": SIGMA, "f": function(2, out=None, traits=("equivariant",))},
        lambda X, sigma, f: equal(f(f(X[sigma])), f(f(X))[sigma]),
    ),
    "given invariant": (
        {"X": X, "sigma": SIGMA, "g": INVARIANT, "h": function(1)},
        lambda X, sigma, g, h: equal(g(h(X[sigma])[:, None] * X[sigma]), g(h(X)[:, None] * X)),
    ),
    "kept entries": (
        {"S": real(n), "e": injection(k, n)},
        lambda S, e: equal(
            softmax(xp.where(xp.isin(xp.arange(n), e), S, -xp.inf))[e], softmax(S[e])
        ),
    ),
    "rotary": (
        ROTARY,
        lambda q, k, w, s, u, v: equal(
            dot(rotate(q, (u + s) * w), rotate(k, (v + s) * w)),
            dot(rotate(q, u * w), rotate(k, v * w)),
        ),
    ),
    "linear shift": (
        ENCODED,
        shift_map(lambda a: xp.concat([xp.sin(a), xp.cos(a)], axis=0), 2 * d),
    ),
    "exp is positive": ({"S": real(n)}, lambda S: all_positive(xp.exp(S))),
    "positive givens": ({"x": positive(n)}, lambda x: equal(xp.abs(x), x)),
    "undecidable comparison": (
        {"x": real()},
        lambda x: equal(xp.where(xp.exp(x) * xp.exp(-x) <= 1, x, 2 * x), x),
    ),
    "0/0 is no witness": ({"x": real()}, lambda x: equal(x / x, 1 + 0 * x)),
    "an all-masked row is no witness": (
        {"S": real(n), "m": boolean(n)},
        lambda S, m: equal(xp.sum(softmax(xp.where(m, S, -xp.inf)), axis=0), 1 + 0 * S[0]),
    ),
}

FALSE: dict[str, Case] = {
    "keys alone": (
        ATTENTION,
        lambda Q, K, V, sigma: equal(attention(Q, K[sigma], V), attention(Q, K, V)),
    ),
    "values alone": (
        ATTENTION,
        lambda Q, K, V, sigma: equal(attention(Q, K, V[sigma]), attention(Q, K, V)),
    ),
    "causal": (
        {"X": X, "sigma": SIGMA},
        lambda X, sigma: equal(
            self_attention(X[sigma], causal()), self_attention(X, causal())[sigma]
        ),
    ),
    "columns of rows": (
        {"X": real(n, k), "tau": permutation(k), "g": INVARIANT},
        lambda X, tau, g: equal(g(X[:, tau]), g(X)),
    ),
    "rows beside others": (
        {"x": real(n), "y": real(n), "sigma": SIGMA, "g": function(1, traits=("invariant",))},
        lambda x, y, sigma, g: equal(g(x[sigma] * y), g(x * y)),
    ),
    "mask stays": (
        {"X": X, "m": boolean(n, n), "sigma": SIGMA},
        lambda X, m, sigma: equal(self_attention(X[sigma], m), self_attention(X, m)[sigma]),
    ),
    "queries alone turned": (
        {"Q": Q, "K": K, "V": V, "g": orthogonal(ell)},
        lambda Q, K, V, g: equal(attention(Q @ g, K, V), attention(Q, K, V)),
    ),
    "rotary queries alone": (
        ROTARY,
        lambda q, k, w, s, u, v: equal(  # noqa: ARG005
            dot(rotate(q, (u + s) * w), k), dot(rotate(q, u * w), k)
        ),
    ),
    "sines alone": (ENCODED, shift_map(xp.sin, d)),
    "cosines alone": (ENCODED, shift_map(xp.cos, d)),
    "abs adds": (
        {"x": real(), "y": real()},
        lambda x, y: equal(xp.abs(x + y), xp.abs(x) + xp.abs(y)),
    ),
    "relu adds": (
        {"x": real(n), "y": real(n)},
        lambda x, y: equal(xp.maximum(x + y, 0), xp.maximum(x, 0) + xp.maximum(y, 0)),
    ),
    "scores are symmetric": (
        {"Q": Q, "K": K, "h": function(1, 1)},
        lambda Q, K, h: equal(h(Q[:, None], K[None]), h(K[None], Q[:, None])),
    ),
    "any function is equivariant": (
        {"X": X, "sigma": SIGMA, "f": function(2, out=None)},
        lambda X, sigma, f: equal(f(X[sigma]), f(X)[sigma]),
    ),
    "exp is above one": ({"S": real(n)}, lambda S: all_positive(xp.exp(S) - 1)),
    "needs more digits": ({"x": real()}, lambda x: equal(xp.sin(10**40 * x), 0 * x)),
    "no size is special": ({"x": real(n)}, lambda x: equal(xp.sum(x, axis=0), x[0])),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_statement_is_never_refuted(name: str) -> None:
    assert attempt(TRUE[name], limit=0.4) is None


@each(FALSE)
def test_a_false_statement_is_refuted(name: str) -> None:
    witness = attempt(FALSE[name])
    assert witness is not None
    assert witness.gap > 0 or name == "exp is above one"
    assert witness.text
    assert all(size in (1, 2) for size in witness.sizes.values())


@pytest.mark.parametrize("name", ["keys alone", "values alone", "causal", "rotary queries alone"])
def test_floating_point_sees_the_same_gap(name: str) -> None:
    """A second reading of the same terms at the witness, without balls."""
    given, body = FALSE[name]
    claim = body(**{label: g.named(label) for label, g in given.items()})
    witness = attempt(FALSE[name])
    assert witness is not None
    assert claim.right is not None
    values = {
        label: np.array(v, dtype=int if given[label].kind == "permutation" else float)
        for label, v in witness.values.items()
    }
    read = Evaluator(np, witness.sizes, values)
    left, right = (np.asarray(read(side))[witness.place] for side in (claim.left, claim.right))
    assert abs(left - right) >= float(witness.gap) * (1 - 1e-9)
    assert abs(left - right) <= float(witness.gap) * 1.02
    assert float(Fraction(witness.left.rstrip("…"))) == pytest.approx(left, abs=1e-3)


def test_a_witness_is_small_and_the_same_every_time() -> None:
    first, again = attempt(FALSE["keys alone"]), attempt(FALSE["keys alone"])
    assert first == again
    assert first is not None
    assert first.text == (
        "n = 2, other sizes 1, Q = (1), K = (0, 1), V = (0, 1), σ = (1 0): "
        "left 0.268…, right 0.731…"
    )
    assert first.gap == Fraction(231, 500)


def test_assumed_equations_are_built_in() -> None:
    given = {"X": X, "Y": Y, "a": index_below(n), "b": index_below(n)}

    def assume(X: Array, Y: Array, a: Array, b: Array) -> list[tuple[Array, Array]]:  # noqa: ARG001
        return [(X[a], X[b])]

    true = (given, lambda X, Y, a, b: equal(attention(X, Y, Y)[a], attention(X, Y, Y)[b]))
    false = (given, lambda X, Y, a, b: equal(attention(X, Y, Y)[a], attention(Y, X, Y)[b]))
    assert attempt(true, assume, limit=0.4) is None
    witness = attempt(false, assume)
    assert witness is not None
    rows, a, b = (witness.values[name] for name in "Xab")
    assert rows[a] == rows[b]


def test_an_assumption_that_cannot_hold_gives_no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    case = ({"x": real()}, lambda x: equal(x, x + 1))
    assert attempt(case) is not None
    assert attempt(case, lambda x: [(x * x, 0 * x - 1)], limit=0.2) is None
    monkeypatch.setattr(failures, "obeys", lambda *_: True)  # unchecked, it would
    assert attempt(case, lambda x: [(x * x, 0 * x - 1)], limit=0.2) is not None


def test_what_a_given_says_is_checked_exactly() -> None:
    one = Fraction(1)
    bad: list[tuple[Given, Any]] = [
        (permutation(2), np.array([0, 0])),
        (injection(2, 3), np.array([1, 3])),
        (orthogonal(2), np.array([[one, one], [one, -one]], dtype=object)),
        (positive(1), np.array([0 * one], dtype=object)),
        (real(2), np.array([one], dtype=object)),
        (real(1), np.array([1.0])),
        (boolean(1), np.array([1])),
        (index_below(2), 2),
        (function(1), 2),
    ]
    for given, value in bad:
        assert not obeys(Candidate({}, {"x": value}), {"x": given}), given
    fine = np.array([[0 * one, -one], [one, 0 * one]], dtype=object)
    assert obeys(Candidate({}, {"x": fine}), {"x": orthogonal(2)})
    assert not obeys(Candidate({"n": 0}, {}), {})


def test_a_wrong_exponential_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Balls that miss the true value refute true statements: the tests above would fail."""
    monkeypatch.setitem(certified_numbers.FUNCTIONS, "exp", lambda x: arb(x).exp() + fmpq(1, 1000))
    assert attempt(TRUE["softmax shift"]) is not None


def test_a_careless_comparison_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = certified_numbers.less

    def hasty(x: Any, y: Any) -> bool:
        try:
            return sure(x, y)
        except certified_numbers.Unclear:
            return True

    monkeypatch.setattr(certified_numbers, "less", hasty)
    assert attempt(TRUE["undecidable comparison"]) is not None


def test_a_swallowed_division_by_zero_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified_numbers, "_reciprocal", lambda x: 1 / x if x else fmpq(0))
    assert attempt(TRUE["0/0 is no witness"]) is not None
    assert attempt(TRUE["an all-masked row is no witness"], limit=0.4) is None


@pytest.mark.parametrize(
    "given",
    [index_below(n - 1), index_map(n, n - 1), real(n - 2), injection(n, n - 1)],
    ids=["an index below 0", "a map to nothing", "a negative length", "more than there are"],
)
def test_what_has_no_value_at_some_sizes_is_not_drawn_there(given: Given) -> None:
    assert draw({"x": given}, {"n": 1}, Random(0), 3) is None
    if given.kind != "injection":
        assert draw({"x": given}, {"n": 3}, Random(0), 3) is not None


def test_a_mask_without_keys_has_no_row_that_sees_one() -> None:
    found = draw({"m": boolean(n, n - 1)}, {"n": 1}, Random(0), 3)
    assert found is not None
    assert found.values["m"].shape == (1, 0)


FAR: dict[str, Callable[..., Claim]] = {
    "a threshold": lambda x, i: equal(xp.where(x > 20011, 2 * x, x), x + 0 * i),
    "a table that ends": lambda x, i: equal(xp.minimum(i, 20011 + 0 * i), i + 0 * x),
    "a remainder": lambda x, i: equal(i % 1009 + x, i + x),
    "two thresholds": lambda x, i: equal(xp.where((x > 3001) & (i > 500), 1, 0), 0 * x),
    "a whole number": lambda x, i: equal(xp.floor(i / 997), 0 * x),
}


@pytest.mark.parametrize("name", list(FAR))
def test_a_statement_that_fails_far_out_is_refuted_near_its_constants(name: str) -> None:
    given = {"x": positions(), "i": natural()}
    claim = FAR[name](*(own.named(k) for k, own in given.items()))
    assert refute(claim, given, limit_seconds=20.0) is not None

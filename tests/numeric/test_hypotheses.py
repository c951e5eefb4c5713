"""Values are drawn that satisfy the hypotheses; where none are known, nothing is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from attnproof.numeric import check as measuring
from attnproof.numeric import hypotheses, sample
from attnproof.numeric.arithmetic import Arithmetic
from attnproof.numeric.check import ReadingError, measure
from attnproof.numeric.hypotheses import Unsatisfiable, broken
from attnproof.numeric.profile import profile_of
from attnproof.numeric.sample import draw
from attnproof.numeric.scale import scale_named, sizes_of
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import as_array
from attnproof.symbolic.claim import Law, at_least, differ, equal, for_all, greater
from attnproof.symbolic.givens import (
    Given,
    function,
    index_below,
    injection,
    natural,
    nonnegative,
    permutation,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.statement import Statement
from tests.numeric.statements import CPU, d, ell, n, r

(k,) = sizes("k", "features")
Case = tuple[dict[str, Given], Callable[..., Any], Callable[..., list[Any]]]


def statement(case: Case, *, bare: bool = False) -> Statement:
    """The statement of a case, ``bare`` without its hypotheses."""
    given, body, assume = case
    values = {name: g.named(name) for name, g in given.items()}
    pairs, laws = [], []
    for taken in () if bare else assume(**values):
        if isinstance(taken, tuple):
            pairs.append((as_array(taken[0]).term, as_array(taken[1]).term))
        else:
            laws.append(taken if isinstance(taken, Law) else Law(taken))
    return Statement(given, {"": body(**values)}, tuple(pairs), tuple(laws))


def half_norms(K: Any) -> Any:
    return xp.sum(K**2, axis=-1) / 2


K, V = real(n, d), real(n, d)
FALSE_WITHOUT: dict[str, Case] = {
    "orthonormal columns": (
        {"K": K, "x": real(d)},
        lambda K, x: equal(K.mT @ (K @ x), x),
        lambda K, **_: [(K.mT @ K, xp.eye(d))],
    ),
    "orthonormal rows": (
        {"K": real(d, n), "x": real(d)},
        lambda K, x: equal(K @ (K.mT @ x), x),
        lambda K, **_: [(xp.eye(d), K @ K.mT)],
    ),
    "an inverse": (
        {"A": real(d, d), "B": real(d, d)},
        lambda A, B: equal(B @ A, xp.eye(d)),
        lambda A, B: [(A @ B, xp.eye(d))],
    ),
    "a formula": (
        {"c": real(), "x": real(d), "y": real(d)},
        lambda c, x, y: equal(2 * c, x @ y + y @ x),
        lambda c, x, y: [(c, x @ y)],
    ),
    "a row that is a formula": (
        {"X": K, "a": index_below(n), "b": index_below(n)},
        lambda X, a, b: equal(3 * X[a], 6 * X[b]),
        lambda X, a, b: [(X[a], 2 * X[b])],
    ),
    "one given by another, one by that": (
        {"x": real(d), "y": real(d), "z": real(d)},
        lambda x, z, **_: equal(z, 4 * x),
        lambda x, y, z: [(y, 2 * x), (z, 2 * y)],
    ),
    "a formula of a function": (
        {"f": function(1), "x": real(d), "c": real()},
        lambda f, x, c: equal(3 * c, f(x) + 2 * f(x)),
        lambda f, x, c: [(c, f(x))],
    ),
    "one norm": (
        {"K": K, "Q": real(r, d), "c": real()},
        lambda K, Q, c: equal(
            half_norms(Q[:, None, :] - K[None]), half_norms(Q)[:, None] - Q @ K.mT + c
        ),
        lambda K, c, **_: [(half_norms(K), c + 0 * half_norms(K))],
    ),
    "a common factor": (
        {"r": positive(), "u": real(2), "v": real(2)},
        lambda u, v, **_: equal(u, v),
        lambda r, u, v: [(r * u, r * v)],
    ),
    "two equations for one given": (
        {"x": real(d), "y": real(d)},
        lambda x, **_: equal(x + 1, xp.ones(d)),
        lambda x, y: [(x, y), (x, -y)],
    ),
    "an upper bound": (
        {"c": real(), "V": real(n)},
        lambda c, V: at_least(n * c, xp.sum(V)),
        lambda c, V: [at_least(c, V)],
    ),
    "a box": (
        {"low": real(d), "V": V, "high": real(d)},
        lambda low, V, high: at_least(n * (high - low), xp.sum(V - low, axis=0)),
        lambda low, V, high: [at_least(high, V), at_least(V, low)],
    ),
    "two sides": (
        {"K": K, "c": real(), "delta": nonnegative()},
        lambda K, c, delta: at_least(n * delta, xp.sum(xp.abs(half_norms(K) - c))),
        lambda K, c, delta: [
            at_least(delta, half_norms(K) - c),
            at_least(delta, c - half_norms(K)),
        ],
    ),
    "the largest entry": (
        {"x": real(n), "m": real(), "k": index_below(n)},
        lambda x, m, **_: at_least(n * m, xp.sum(x)),
        lambda x, m, k: [(m, x[k]), at_least(m, x)],
    ),
    "strictly above": (
        {"x": real(n), "y": real(n)},
        lambda x, y: greater(xp.exp(x), xp.exp(y)),
        lambda x, y: [greater(x, y)],
    ),
    "a law of all indices": (
        {"x": real(n), "y": real(n)},
        lambda x, y: greater(xp.exp(x), xp.exp(y)),
        lambda x, y: [greater(x, y), for_all({"i": index_below(n)}, lambda i: greater(x[i], y[i]))],
    ),
}


@pytest.mark.parametrize("name", FALSE_WITHOUT)
def test_what_a_hypothesis_makes_true_holds_and_is_violated_without(name: str) -> None:
    case = FALSE_WITHOUT[name]
    said = measure(statement(case), scale="small", device="cpu")
    assert {m.status for m in said if m.dtype != "bfloat16"} == {"held"}, said
    assert {m.status for m in said} <= {"held", "skipped"}, said
    without = measure(statement(case, bare=True), scale="small", device="cpu", expected="refuted")
    assert {m.status for m in without if m.dtype == "float64"} == {"violated"}, without


@pytest.mark.parametrize("name", ["orthonormal columns", "an inverse", "a formula", "a box"])
def test_at_the_sizes_of_the_default_scale_too(name: str) -> None:
    said = measure(statement(FALSE_WITHOUT[name]), device="cpu", dtypes=["float64", "float32"])
    assert {m.status for m in said} == {"held"}
    assert all(m.sizes.get("n", 4_096) == 4_096 for m in said)


def test_what_is_solved_by_newtons_method_is_solved_at_small_sizes() -> None:
    (said,) = measure(statement(FALSE_WITHOUT["one norm"]), device="cpu", dtypes=["float64"])
    assert (said.status, said.sizes["n"]) == ("held", 13)


def test_hypotheses_hold_in_what_was_drawn() -> None:
    for case in FALSE_WITHOUT.values():
        told = statement(case)
        scale = scale_named("small")
        found = draw(told, sizes_of(told, scale), scale, 3)
        every = found.in_dtype(torch.float64, CPU)
        assert broken(told, found.sizes, every) is None
        assert (
            broken(
                told,
                found.sizes,
                draw(statement(case, bare=True), found.sizes, scale, 3).in_dtype(
                    torch.float64, CPU
                ),
            )
            is not None
        )


def test_what_is_formed_from_rounded_values_is_within_its_radius() -> None:
    """The stored inverse and the stored formula are near the exact ones of the stored factors."""
    for name, given in (("an inverse", "B"), ("a formula", "c"), ("a formula of a function", "c")):
        told, scale = statement(FALSE_WITHOUT[name]), scale_named("small")
        found = draw(told, sizes_of(told, scale), scale, 0)
        for dtype in (torch.float32, torch.bfloat16):
            stored = found.in_dtype(dtype, CPU)[given]
            exact = found.with_radii(Arithmetic(profile_of(dtype, CPU)), CPU)[given]
            gap = (stored.double() - exact.value).abs()
            assert bool((gap <= exact.error()).all())
            assert bool((gap > exact.error() / 1e4).any())


def test_a_radius_of_zero_for_what_was_rounded_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "storing", lambda value, *_: torch.zeros_like(value))
    told = statement(FALSE_WITHOUT["a formula"])
    said = measure(told, scale="small", device="cpu", dtypes=["float32"])
    assert {m.status for m in said} == {"violated"}


NOT_DRAWN: dict[str, tuple[Case, str]] = {
    "a law of a function": (
        (
            {"f": function(0), "x": real()},
            lambda f, x: equal(f(x), f(-x)),
            lambda f, **_: [for_all({"y": real()}, lambda y: equal(f(y), f(-y)))],
        ),
        "a function with f(y) = f(-y) for all y cannot be drawn",
    ),
    "a law of numbers": (
        (
            {"c": real()},
            lambda c: equal(c, 0),
            lambda c: [for_all({"y": real()}, lambda y: equal(c * y, 0 * y))],
        ),
        "for all y cannot be drawn",
    ),
    "what never holds": (
        ({"x": real()}, lambda x: equal(x, x), lambda x: [(x * x, -1 + 0 * x)]),
        "cannot draw values",
    ),
    "more columns than rows": (
        ({"K": real(1, 2)}, lambda K: equal(K, K), lambda K: [(K.mT @ K, xp.eye(2))]),
        "cannot draw",
    ),
    "an order that never holds": (
        ({"x": real()}, lambda x: equal(x, x), lambda x: [greater(0 * x, x * x)]),
        "no values were found with",
    ),
    "numbers that never differ": (
        ({"m": natural()}, lambda m: equal(m, m), lambda m: [differ(m, m)]),
        "m != m",
    ),
}


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_what_cannot_be_drawn_is_skipped_with_the_reason(name: str) -> None:
    case, why = NOT_DRAWN[name]
    (said,) = measure(statement(case), scale="small", device="cpu")
    assert said.status == "skipped"
    assert why in said.reason


def test_different_natural_numbers_are_drawn() -> None:
    case: Case = (
        {"a": natural(), "b": natural(), "c": natural()},
        lambda a, b, c: equal((a - b) * (b - c) * (a - c) / ((a - b) * (b - c) * (a - c)), 1),
        lambda a, b, c: [differ(a, b), differ(b, c), differ(a, c)],
    )
    assert {m.status for m in measure(statement(case), scale="small")} == {"held"}


def test_whole_numbers_are_tried_until_an_equation_holds() -> None:
    case: Case = (
        {"a": natural(), "b": natural(), "s": permutation(n), "x": real(n)},
        lambda a, b, s, x: equal((a % (b + 1)) * x[s] + x, x),
        lambda a, b, s, **_: [(a // (b + 1) * (b + 1), a), (s, xp.arange(n))],
    )
    assert {m.status for m in measure(statement(case), scale="small")} == {"held"}


def test_different_indices_have_room() -> None:
    given: dict[str, Given] = {"f": injection(d + ell, k), "X": real(k, r)}
    X, f = (g.named(name) for name, g in (("X", given["X"]), ("f", given["f"])))
    told = Statement(given, {"": equal(X[f], xp.zeros((d + ell, r)))})
    for scale in ("small", "default"):
        lengths = sizes_of(told, scale_named(scale))
        assert lengths["d"] + lengths["ell"] < lengths["k"]
        assert len(set(lengths.values())) == len(lengths)


def test_a_hypothesis_that_rounding_breaks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers closer than bfloat16 can tell: greater in float64, equal once rounded."""
    case: Case = (
        {"x": positive(), "y": real()},
        lambda x, y: greater(y, x),
        lambda x, y: [greater(y, x)],
    )
    monkeypatch.setattr(hypotheses, "_beyond", lambda _, other, *__: other + 2.0**-20)
    said = {m.dtype: m for m in measure(statement(case), scale="small", device="cpu", seed=1)}
    assert said["float64"].status == "held"
    assert said["bfloat16"].status == "skipped"
    assert said["bfloat16"].reason == "rounded to this dtype, not y > x"


def test_a_hypothesis_that_is_not_met_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values drawn with no regard to the hypotheses violate what follows from them."""
    plain = lambda _, __, drawn: hypotheses.SatisfyingValues(drawn)  # noqa: E731
    monkeypatch.setattr(sample, "satisfy_hypotheses", plain)
    case = FALSE_WITHOUT["orthonormal columns"]
    assert {m.status for m in measure(statement(case), scale="small")} == {"violated"}


def test_only_the_missing_values_are_an_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def typo(*_: Any) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(measuring, "drawn", typo)
    with pytest.raises(ReadingError, match="planted"):
        measure(statement(FALSE_WITHOUT["a box"]), scale="small")
    assert issubclass(Unsatisfiable, ValueError)

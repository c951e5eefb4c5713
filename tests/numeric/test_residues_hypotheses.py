"""Hypotheses in finite fields: obeyed, or the reason is told; what is false is still caught."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof.numeric.residues.exact import check_equation, exact
from attnproof.numeric.residues.hypotheses import LevelValues
from attnproof.numeric.residues.towers import Tower
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import at_least, differ, equal, for_all, greater
from attnproof.symbolic.givens import (
    angle,
    function,
    index_below,
    natural,
    orthogonal,
    permutation,
    positive,
    real,
    sizes,
)
from attnproof.symbolic.namespace import cos, eye
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention
from tests.numeric.statements import bound_of, stated

(n,) = sizes("n", "tokens")
d, e = sizes("d e", "features")
xp: Any = array_namespace(real(n).named("x"))
ROWS = {"X": real(n, d), "a": index_below(n), "b": index_below(n)}
TALL = {"K": real(n, d), "V": real(n, e)}
SQUARE = {"A": real(d, d), "B": real(d, d), "X": real(n, d)}
ROTATE = {"M": orthogonal(3), "J": real(3, 3), "x": real(3)}
NORMS = {"Z": real(n, d), "L": positive(n), "V": real(n, e)}
WHOLE = {"x": real(n), "i": index_below(n), "j": index_below(n), "k": natural(), "m": natural()}
LAWS = {"G": real(3, 3), "x": real(3), "y": real(3), "c": real()}


def under(givens: Any, assume: Any, body: Any) -> Statement:
    """A statement with hypotheses: pairs, claims and laws."""
    taken = _asked(assume, givens)
    pairs = tuple((a.term, b.term) for a, b in (t for t in taken if isinstance(t, tuple)))
    laws = tuple(
        for_all({}, lambda t=t: t) if hasattr(t, "relation") else t
        for t in taken
        if not isinstance(t, tuple)
    )
    made: Statement = stated(givens, lambda **_: _asked(body, givens), assume=pairs, laws=laws)
    return made


def _asked(body: Any, givens: Any) -> Any:
    """What a function says of the givens that it names."""
    return body(*(givens[name].named(name) for name in signature(body).parameters))


def norms(K: Any) -> Any:
    return xp.sum(K * K, axis=1)


def kept(G: Any) -> Any:
    return for_all({"x": real(3), "y": real(3)}, lambda x, y: equal((G @ x) @ y, x @ (G @ y)))


# name: givens, hypotheses, what follows from them, what does not
CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "two rows are one": (
        ROWS,
        lambda X, a, b: [(X[a], X[b])],
        lambda X, a, b: equal(attention(X, X, X)[a], attention(X, X, X)[b]),
        lambda X, a: equal(attention(X, X, X)[a], attention(X, X, X)[0]),
    ),
    "orthonormal columns": (
        TALL,
        lambda K: [(K.mT @ K, eye(d))],
        lambda K, V: equal(K.mT @ (K @ (K.mT @ V)), K.mT @ V),
        lambda K, V: equal(K @ (K.mT @ V), V),
    ),
    "orthonormal rows": (
        TALL,
        lambda K, V: [(V.mT @ V, eye(e)), (K.mT @ K, eye(d))],
        lambda K, V: equal((K @ K.mT) @ (K @ K.mT) @ V, K @ (K.mT @ V)),
        lambda K, V: equal((V @ V.mT) @ (K @ K.mT) @ V, K @ (K.mT @ V)),
    ),
    "inverse": (
        SQUARE,
        lambda A, B: [(A @ B, eye(d))],
        lambda A, B, X: equal(attention(X @ A, X @ B.mT, X), attention(X, X, X)),
        lambda A, B, X: equal(attention(X @ A, X @ B, X), attention(X, X, X)),
    ),
    "matrices that commute": (
        ROTATE,
        lambda M, J: [(J @ M, M @ J)],
        lambda M, J, x: equal(J @ M @ M @ x, M @ M @ (J @ x)),
        lambda J, x: equal(J @ x, J.mT @ x),
    ),
    "rows of one length": (
        NORMS,
        lambda Z, L: [(norms(Z), L**2)],
        lambda Z, L: equal(norms(Z) * L, L**3),
        lambda Z, L: equal(norms(Z), L),
    ),
    "a symmetric form": (
        LAWS,
        lambda G: [kept(G)],
        lambda G, x: equal(G.mT @ x, G @ x),
        lambda G, x, c: equal(G @ x, c * x),
    ),
    "whole numbers": (
        WHOLE,
        lambda i, j, k, m: [differ(i, j), (k // 4, 1 + 0 * k), at_least(m, k + 2)],
        lambda x, i, j: equal(xp.where(i == j, x, 0), 0 * x),
        lambda x, k: equal(xp.where(k == 3, x, 0), x),
    ),
    "a number in words of others": (
        LAWS,
        lambda x, y, c: [(c, x @ y)],
        lambda x, y, c: equal(c * x, x * (y @ x)),
        lambda x, y, c: equal(c * x, y),
    ),
    "a mirror image": (
        {"x": real(n), "s": permutation(n), "c": real()},
        lambda x, s, c: [(x[s], c - x)],
        lambda x, s: equal(x[s][s], x),
        lambda x, s: equal(x[s], 2 * x),
    ),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CASES)
def test_what_follows_from_a_hypothesis_holds_and_what_does_not_is_violated(
    name: str, seed: int
) -> None:
    givens, assume, follows, strange = CASES[name]
    right = exact(under(givens, assume, follows), scale="small", seed=seed)
    assert [(check.status, check.reason) for check in right] == [("held", "")] * 2
    assert not any("without the hypothesis" in check.argument for check in right)
    wrong = exact(under(givens, assume, strange), scale="small", seed=seed)
    assert {check.status for check in wrong} == {"violated"}


@pytest.mark.parametrize("name", [k for k in CASES if "whole" not in k and "words" not in k])
def test_values_that_do_not_obey_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("satisfy", "solve"):
        monkeypatch.setattr(LevelValues, way, lambda *_: None)
    givens, assume, follows, _ = CASES[name]
    (check,) = exact(under(givens, assume, follows), scale="small")
    assert check.status == "skipped"
    assert "no values were found that obey it" in check.reason


def test_values_that_obey_modulo_one_prime_only_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scores are read one level below; what was formed there may not be lost."""
    right = LevelValues.satisfy

    def wrong(self: Any, h: Any, values: Any) -> None:
        if self.read.level:
            right(self, h, values)

    monkeypatch.setattr(LevelValues, "satisfy", wrong)
    monkeypatch.setattr(LevelValues, "solve", lambda *_: None)
    givens, assume, follows, _ = CASES["inverse"]
    (check,) = exact(under(givens, assume, follows), scale="small")
    assert check.status == "skipped"
    assert "A @ B = eye(d)" in check.reason


REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "an order": (
        LAWS,
        lambda x, y, c: [greater(c, x @ y)],
        lambda x, y, c: equal(c + 0 * x, y),
        "a field has no order",
    ),
    "a law of functions": (
        {"f": function(0), "x": real()},
        lambda f: [for_all({"t": real()}, lambda t: equal(f(t + 1), f(t)))],
        lambda f, x: equal(f(x + 1), f(x)),
        "functions that obey a law are not drawn",
    ),
    "an angle": (
        {"a": angle(n), "i": index_below(n), "j": index_below(n)},
        lambda a, i, j: [(a[i], a[j])],
        lambda a, i, j: equal(cos(a)[i], cos(a)[j]),
        "a is an angle",
    ),
    "whole numbers that are not there": (
        WHOLE,
        lambda k: [at_least(k, 1_000)],
        lambda x, k: equal(xp.where(k < 500, x, 0), 0 * x),
        "no whole numbers",
    ),
    "all natural numbers": (
        LAWS,
        lambda x, c: [for_all({"m": natural()}, lambda m: equal(c * m, x[0] * m))],
        lambda x, c: equal(c, x[0]),
        "it quantifies over all m",
    ),
    "what is positive by its name": (
        {"c": positive(), "x": real()},
        lambda c, x: [(c, x * x)],
        lambda c: equal(c, -c),
        "c is positive",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_obeyed_says_so(name: str) -> None:
    givens, assume, body, why = REFUSED[name]
    (check,) = exact(under(givens, assume, body), scale="small")
    assert check.status == "skipped"
    assert why in check.reason
    assert "not known to obey every hypothesis" in check.reason


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_without_a_hypothesis_holds(name: str) -> None:
    givens, assume, body, _ = REFUSED[name]

    def twice() -> Any:
        side = Array(_asked(body, givens).left)
        return equal(side * 2, side + side)

    found = exact(under(givens, assume, twice), scale="small")
    assert {check.status for check in found} == {"held"}
    assert all("without the hypothesis" in check.argument for check in found)


def test_a_bound_is_kept_where_values_are_formed_and_not_where_they_solve_equations() -> None:
    known = {
        "inverse": True,
        "orthonormal columns": True,
        "a mirror image": False,
        "matrices that commute": False,
        "rows of one length": False,
    }
    for name, bounded in known.items():
        givens, assume, follows, _ = CASES[name]
        rational = (lambda A, B: equal(B @ A, eye(d))) if name == "inverse" else follows
        for check in exact(under(givens, assume, rational), scale="small"):
            assert bool(check.error) is bounded, name


def test_a_false_claim_passes_no_more_often_than_the_bound_under_a_hypothesis() -> None:
    givens = {"X": real(2, 1), "y": real()}
    statement = under(givens, lambda X: [(X[0], X[1])], lambda X, y: equal(X[0, 0] * X[1, 0], y**2))
    ((says, claim),) = statement.claims.items()
    runs, passed = 400, 0
    for seed in range(runs):
        check = check_equation(statement, says, claim, {}, Tower((11,), ()), 0, seed)
        passed += check.status != "violated"
    assert 0 < passed / runs <= bound_of(check) + 3 * (0.25 / runs) ** 0.5

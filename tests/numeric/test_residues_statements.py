"""Statements in finite fields: true ones hold at any seed, one sample catches each false one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from array_api_compat import array_namespace

from attnproof.numeric.residues.exact import Chance, check_equation, exact
from attnproof.numeric.residues.towers import Tower, _of_order, tower
from attnproof.symbolic.claim import equal, greater, iterate, rows
from attnproof.symbolic.givens import (
    angle,
    boolean,
    frequencies,
    function,
    natural,
    orthogonal,
    permutation,
    positions,
    real,
    sizes,
)
from attnproof.theorems.definitions.attention import attention, masked_attention, softmax
from attnproof.theorems.definitions.rotary import rotate, rotate_half
from tests.numeric.statements import bound_of, stated

r, n = sizes("r n", "tokens")
l, d = sizes("l d", "features")
(B,) = sizes("B", "blocks")
xp: Any = array_namespace(real(n).named("x"))
HEADS = {"Q": real(r, l), "K": real(n, l), "V": real(n, d), "s": permutation(n)}
GIVEN = {name: given.named(name) for name, given in HEADS.items()}
MASKED = {**HEADS, "keep": boolean(r, n)}
TOKENS = {"Q": real(n, l), "K": real(n, l), "V": real(n, d)}
ROTATED = {
    "q": real(2 * B),
    "k": real(2 * B),
    "m": positions(),
    "p": positions(),
    "t": positions(),
    "w": frequencies(B),
}
NUMBERS = {"x": real(n), "y": real(n)}


def score(
    q: Any, k: Any, m: Any, p: Any, w: Any, rotate: Any = rotate_half, other: Any = None
) -> Any:
    first, second = rotate(q[None], m[None], w), (other or rotate)(k[None], p[None], w)
    return xp.sum(first * second, axis=-1)


def merged(Q: Any, K: Any, V: Any) -> Any:
    """Softmax with its numerators and denominators summed apart, and a shift of every row."""
    scores = Q @ K.mT / l**0.5 + xp.sum(Q, axis=-1)[:, None]
    weights = xp.exp(scores)
    return weights @ V / xp.sum(weights, axis=-1)[:, None]


def lemma(Q: Any, K: Any, V: Any, s: Any, t: Any, g: Any, h: Any) -> Any:
    return equal(attention((Q @ g)[t], (K @ g)[s], (V @ h)[s]), (attention(Q, K, V) @ h)[t])


def two_layers(X: Any) -> Any:
    first = X + attention(X, X, X)
    return first + attention(first, first, first)


TRUE: dict[str, tuple[Any, Callable[..., Any]]] = {
    "pairs": (HEADS, lambda Q, K, V, s: equal(attention(Q, K[s], V[s]), attention(Q, K, V))),
    "lemma": ({**HEADS, "t": permutation(r), "g": orthogonal(l), "h": orthogonal(d)}, lemma),
    "masked pairs": (
        MASKED,
        lambda Q, K, V, s, keep: equal(
            masked_attention(Q, K[s], V[s], keep[:, s]), masked_attention(Q, K, V, keep)
        ),
    ),
    "merge": (TOKENS, lambda Q, K, V: equal(merged(Q, K, V), attention(Q, K, V))),
    "rotary shift": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(score(q, k, m + t, p + t, w), score(q, k, m, p, w)),
    ),
    "rotary offset": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(
            score(q, k, m, p, w, rotate), score(q, k, m - p, 0 * p, w, rotate) + 0 * t
        ),
    ),
    "two layers": (
        {"X": real(n, l), "s": permutation(n)},
        lambda X, s: equal(two_layers(X[s]), two_layers(X)[s]),
    ),
    "row by row": (
        NUMBERS,
        lambda x, y: equal(rows(n, lambda i: xp.exp(x[i] + y[i])), xp.exp(x) * xp.exp(y)),
    ),
    "table of sums": (
        NUMBERS,
        lambda x, y: equal(
            rows(n, lambda i: xp.exp(xp.sum(xp.where(xp.arange(n) <= i, x + y, 0)))),
            rows(
                n,
                lambda i: (
                    xp.exp(xp.sum(xp.where(xp.arange(n) <= i, x, 0)))
                    * xp.exp(xp.sum(xp.where(xp.arange(n) <= i, y, 0)))
                ),
            ),
        ),
    ),
    "layers": (
        {**NUMBERS, "m": natural()},
        lambda x, y, m: equal(
            iterate(m, x, lambda k, z: z * xp.exp(y * k)), x * xp.exp(y * m * (m - 1) / 2)
        ),
    ),
    "roots": (NUMBERS, lambda x, y: equal(x * xp.sqrt(n * n) + y * 0, x * n)),
    "roots of products": (NUMBERS, lambda x, y: equal(x * xp.sqrt(4 * n) + y * 0, 2 * x * n**0.5)),
    "angles in another order": (
        {"a": angle(n), "s": permutation(n)},
        lambda a, s: equal(xp.cos(a[s]), xp.cos(a)[s]),
    ),
    "angles row by row": (
        {"a": angle(n)},
        lambda a: equal(rows(n, lambda i: xp.cos(i * a[i])), xp.cos(xp.arange(n) * a)),
    ),
    "double angle": ({"a": angle(n)}, lambda a: equal(xp.cos(2 * a), 1 - 2 * xp.sin(a) ** 2)),
    "hidden": (
        NUMBERS,
        lambda x, y: equal(
            xp.exp(xp.where(xp.arange(n) > 2, x + y, -xp.inf)),
            xp.where(xp.arange(n) > 2, xp.exp(x) * xp.exp(y), 0),
        ),
    ),
    "a function of rows": (
        {"X": real(n, l), "f": function(1, out=(d,)), "s": permutation(n)},
        lambda X, f, s: equal(f(X[s]), f(X)[s]),
    ),
    "exponentials inside": (
        NUMBERS,
        lambda x, y: equal(xp.exp(xp.exp(xp.exp(x + y))), xp.exp(xp.exp(xp.exp(x) * xp.exp(y)))),
    ),
}


def rounded(p: Any) -> Any:
    """A position that loses its last bits, as in a coarse dtype."""
    return 256 * (p // 256)


def differing(X: Any, p: Any, w: Any) -> Any:
    """One frequency is twice what it should be."""
    return rotate_half(X, p, xp.where(xp.arange(B) == 0, 2 * w, w))


FALSE: dict[str, tuple[Any, Callable[..., Any]]] = {
    "keys alone": (HEADS, lambda Q, K, V, s: equal(attention(Q, K[s], V), attention(Q, K, V))),
    "scale": (
        HEADS,
        lambda Q, K, V, s: equal(
            softmax(Q @ K.mT / (4 * l) ** 0.5) @ V[s], attention(Q, K[s], V[s])
        ),
    ),
    "no scale": (TOKENS, lambda Q, K, V: equal(softmax(Q @ K.mT) @ V, attention(Q, K, V))),
    "dropped mask": (
        MASKED,
        lambda Q, K, V, s, keep: equal(
            masked_attention(Q, K[s], V[s], keep), masked_attention(Q, K, V, keep)
        ),
    ),
    "mask by one": (
        TOKENS,
        lambda Q, K, V: equal(
            masked_attention(Q, K, V, xp.arange(n)[None, :] <= xp.arange(n)[:, None] + 1),
            masked_attention(Q, K, V, xp.arange(n)[None, :] <= xp.arange(n)[:, None]),
        ),
    ),
    "one key dropped": (
        TOKENS,
        lambda Q, K, V: equal(
            masked_attention(Q, K, V, (xp.arange(n) != 0)[None, :] | (xp.arange(n) < 0)[:, None]),
            attention(Q, K, V),
        ),
    ),
    "denominator one more": (
        TOKENS,
        lambda Q, K, V: equal(
            xp.exp(Q @ K.mT / l**0.5)
            @ V
            / (1 + xp.sum(xp.exp(Q @ K.mT / l**0.5), axis=-1))[:, None],
            attention(Q, K, V),
        ),
    ),
    "positions rounded": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(
            score(q, k, rounded(m + t), rounded(p + t), w), score(q, k, m, p, w)
        ),
    ),
    "query position one more": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(score(q, k, m + t + 1, p + t, w), score(q, k, m, p, w)),
    ),
    "one frequency differs": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(
            score(q, k, m + t, p + t, w, rotate_half, differing), score(q, k, m, p, w)
        ),
    ),
    "half and interleaved": (
        ROTATED,
        lambda q, k, m, p, t, w: equal(
            score(q, k, m + t, p + t, w, rotate_half, rotate), score(q, k, m, p, w)
        ),
    ),
    "layers out of order": (
        {"X": real(n, l), "g": orthogonal(l), "h": orthogonal(l)},
        lambda X, g, h: equal(X @ g @ h, X @ h @ g),
    ),
    "planes do not commute with mirrors": (
        {"g": orthogonal(2), "h": orthogonal(2)},
        lambda g, h: equal(g @ h, h @ g),
    ),
    "a function is no parabola": (
        {"x": real(n), "f": function(0)},
        lambda x, f: equal(f(x + 3) - 3 * f(x + 2) + 3 * f(x + 1), f(x)),
    ),
    "base of the exponential": (NUMBERS, lambda x, y: equal(xp.exp(2 * x) + y, xp.exp(x) + y)),
    "a table that forgets to move": (
        NUMBERS,
        lambda x, y: equal(
            rows(n, lambda i: xp.exp(x[i]) + y[i]), rows(n, lambda i: xp.exp(x[0]) + y[i])
        ),
    ),
    "minus infinity": (
        NUMBERS,
        lambda x, y: equal(xp.where(xp.arange(n) > 2, x, -xp.inf) + y, x + y),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_holds_at_every_seed(name: str, seed: int) -> None:
    found = exact(stated(*TRUE[name]), scale="small", seed=seed)
    assert [(check.status, check.reason) for check in found] == [("held", "")] * 2
    assert all(check.compared for check in found)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FALSE)
def test_every_fault_is_caught_by_one_sample(name: str, seed: int) -> None:
    found = exact(stated(*FALSE[name]), scale="small", seed=seed)
    told = [check.status for check in found]
    assert "violated" in told
    assert "skipped" not in told
    if "mirrors" not in name:  # in one of two towers every 2 × 2 matrix is a rotation
        assert set(told) == {"violated"}


@pytest.mark.parametrize(
    ("given", "body", "why"),
    [
        (NUMBERS, lambda x, y: equal(xp.maximum(x, y), xp.maximum(y, x)), "a maximum"),
        (NUMBERS, lambda x, y: equal(xp.sqrt(x * x), x + 0 * y), "a root of numbers that need not"),
        (NUMBERS, lambda x, y: equal(xp.where(x < y, x, y), x), "a field has no order"),
        (NUMBERS, lambda x, y: greater(x, y + 0), "a field has no order"),
        (NUMBERS, lambda x, y: equal(xp.cos(x * y), xp.cos(y * x)), "not an integer multiple"),
        (
            {"x": real(n), "p": positions(n)},
            lambda x, p: equal(xp.where((p + 5) ** 6 > p**6, x, 0), x),
            "more than 62 bits",
        ),
        (
            {**NUMBERS, "m": natural()},
            lambda x, y, m: equal(iterate(m, x, lambda k, z: xp.exp(z) + k), y),
            "the state of a stack",
        ),
    ],
)
def test_what_has_no_reading_says_so(given: Any, body: Any, why: str) -> None:
    (check,) = exact(stated(given, body), scale="small")
    assert check.status == "skipped"
    assert why in check.reason


def test_every_entry_undefined_is_nothing_compared() -> None:
    zero = stated(NUMBERS, lambda x, y: equal(x / (y - y + n - n * xp.cos(0 * y)), x))
    (check,) = exact(zero, scale="small")
    assert check.status == "skipped"
    assert "denominator" in check.reason


def test_the_identities_hold_at_4096() -> None:
    for name in ("pairs", "lemma", "masked pairs", "merge", "rotary shift"):
        for check in exact(stated(*TRUE[name])):
            assert check.status == "held", name


# How likely a false statement passes, measured with primes so small that it happens.

SMALL = (Tower((11,), ()), Tower((11, 23), (_of_order(11, 23),)))


@pytest.mark.parametrize(
    "body",
    [
        lambda x, y: equal(x[0] * y[0], x[0]),
        lambda x, y: equal(x[0] * x[0], y[0]),
        lambda x, y: equal(x[0] / y[0], 0 * x[0]),
        lambda x, y: equal((x[0] - 1) * (x[0] - 2) * (x[0] - 3), 0 * y[0]),
    ],
)
def test_rational_functions_agree_no_more_often_than_the_bound(body: Any) -> None:
    lengths, runs = {"n": 2}, 600
    statement = stated(NUMBERS, body)
    ((says, claim),) = statement.claims.items()
    passed = 0
    for seed in range(runs):
        check = check_equation(statement, says, claim, lengths, SMALL[0], 0, seed)
        passed += check.status != "violated"  # undefined entries count as passed
    assert 0 < passed / runs <= bound_of(check) + 3 * (0.25 / runs) ** 0.5


def test_a_bound_knows_nothing_of_the_claims_before() -> None:
    def pairs(Q: Any, K: Any, V: Any, s: Any) -> Any:
        return equal(attention(Q, K[s], V[s]), attention(Q, K, V))

    def both(Q: Any, K: Any, V: Any, s: Any) -> Any:
        return {"of cubes": pairs(Q**3, K, V, s), "of queries": pairs(Q, K, V, s)}

    together, alone = (exact(stated(HEADS, body), scale="small") for body in (both, pairs))
    cubes, queries = ([c.error for c in together if c.says == says] for says in both(**GIVEN))
    assert queries == [check.error for check in alone]
    assert "" not in queries
    assert cubes != queries


def test_numbers_that_nothing_reads_are_not_drawn() -> None:
    statement = stated({"x": real(), "W": real(n, n)}, lambda x, **_: equal(2 * x, x + x))
    ((says, claim),) = statement.claims.items()
    check = check_equation(
        statement, says, claim, {"n": 1 << 20}, tower(0, 0), 0, 0
    )  # W is of 8 TB
    assert check.status == "held"


def test_a_softmax_agrees_no_more_often_than_the_bound() -> None:
    false = stated(
        {"q": real(1, 1), "K": real(n, 1), "V": real(n, 1)},
        lambda q, K, V: equal(softmax(q @ K.mT) @ V, softmax(2 * q @ K.mT) @ V),
    )
    ((says, claim),) = false.claims.items()
    compared, passed, bound = 0, 0, ""
    for seed in range(600):
        check = check_equation(false, says, claim, {"n": 2}, SMALL[1], 0, seed)
        compared += check.status != "skipped"
        passed += check.status == "held"
        bound = check.error or bound
    allowed = Fraction(2, 11) + Fraction(1, 23)
    assert bound == Chance(allowed, "").bound
    assert 0 < passed / compared <= float(allowed) + 3 * (0.25 / compared) ** 0.5


def test_the_bound_of_attention_is_the_one_derived() -> None:
    check = exact(stated(*TRUE["pairs"]), scale="small")[0]
    below, above = check.primes
    columns = check.sizes["d"]
    assert check.error == Chance(Fraction(2, below) + Fraction(1, above**columns), "").bound
    assert "V is random" in check.argument


@pytest.mark.parametrize("name", ["merge", "a function is no parabola", "two layers"])
def test_no_bound_is_claimed_without_an_argument(name: str) -> None:
    for check in exact(stated(*{**TRUE, **FALSE}[name]), scale="small"):
        assert check.error == ""
        assert "no bound is known" in check.argument

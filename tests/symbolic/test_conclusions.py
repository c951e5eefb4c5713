"""Signs, existence and claims: a verdict is about what was claimed, and about nothing less."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from attnproof.symbolic import (
    Claim,
    Statement,
    all_positive,
    equal,
    exists,
    index_below,
    iterate,
    orthogonal,
    positive,
    proof_methods,
    prove,
    real,
    sizes,
)
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Link
from attnproof.symbolic.covers import Cover
from attnproof.symbolic.derivation import Derivation, Reflexive, Witness
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused, close, replay
from attnproof.symbolic.normal_form.equations import chain, rewrite
from attnproof.symbolic.scalars import (
    MINUS_INFINITY,
    ONE,
    ZERO,
    add,
    entry,
    index,
    mul,
    num,
    power,
    unary,
)
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.stating import proof_of_sign
from tests.symbolic.vocabulary import HALF, A, P, X, Y, a, b, case, i, minus, n, q, var

WHOLE: Cover = (("whole",),)
v = var("v")


# positive arrays


def test_a_positive_array_is_shown_entry_by_entry() -> None:
    proof = proof_of_sign(P, WHOLE, (Reflexive(entry(P, case(P))),))
    assert proof.relation == ">"
    close(proof, frozenset({("positive", P)}), (">", P, ZERO))
    for granted, claimed in (((), (">", P, ZERO)), ((("positive", P),), (">", P, ONE))):
        with pytest.raises(Refused):
            close(proof, frozenset(granted), claimed)


def test_at_least_0_is_not_more_than_0() -> None:
    place = make("arange", (n,), shape=(n,))
    proof = proof_of_sign(place, WHOLE, (rewrite("entry", entry(place, case(place))),))
    assert proof.relation == ">="
    with pytest.raises(Refused, match="something else"):
        close(proof, frozenset(), (">", place, ZERO))


@pytest.mark.parametrize(
    ("cover", "parts"),
    [
        (WHOLE, ()),
        (WHOLE, (Reflexive(entry(X, case(X))),)),
        (WHOLE, (Reflexive(entry(P, i)),)),
        (WHOLE, (Reflexive(ONE),)),
        ((), (Reflexive(entry(X, case(X))),)),
        ((("cut", ONE, ("each",), ("whole",)),), (Reflexive(entry(X, ZERO)),)),
    ],
)
def test_an_array_of_unknown_sign_is_not_positive(
    cover: Cover, parts: tuple[Derivation, ...]
) -> None:
    with pytest.raises(Refused):
        proof_of_sign(X, cover, parts)


def test_an_index_of_nothing_settles_no_sign() -> None:
    """1 = 0 by way of an index below 0, so 0 = 1 > 0."""
    zero = make("broadcast", (ZERO,))
    nobody = mul(ONE, unary("exp", mul(ZERO, index("e", ZERO))))
    form = chain(rewrite("entry", zero), rewrite("ring", ZERO, mul(ZERO, nobody)))
    with pytest.raises(Refused, match="may have no value"):
        proof_of_sign(zero, (), (form,))


# existence


def shown(value: Term, variable: Term = v, free_of: tuple[Term, ...] = ()) -> Witness:
    """Some number v satisfies v + a = value + a."""
    claim = (add(variable, a), add(value, a))
    return Witness(variable, value, free_of, claim, Reflexive(add(value, a)))


def test_an_array_exists_because_here_it_is() -> None:
    d = shown(b, free_of=(a,))
    claimed = ("exists", *d.claim, v, (a,), "=")
    proof = close(replay(d), frozenset(), claimed)
    for other in (
        ("exists", *d.claim, v, (a, b), "="),
        ("exists", *d.claim, b, (a,), "="),
        ("exists", *d.claim, v, (a,), ">="),
        ("exists", *d.claim, v, (a,)),
        ("exists", d.left, d.right, v, (a,), "="),
        ("=", d.left, d.right),
    ):
        with pytest.raises(Refused, match="something else"):
            close(proof, frozenset(), other)


@each(
    [
        shown(a, free_of=(a,)),
        shown(mul(ZERO, a), free_of=(a,)),
        shown(entry(X, i), free_of=(i,)),
        shown(power(n, -1), free_of=(n,)),
        shown(b, free_of=(add(a, ONE),)),
        shown(v),
        shown(add(v, ONE)),
        shown(MINUS_INFINITY),
        shown(minus(ONE), variable=q),
        shown(HALF, variable=var("c", kind="position", below=n)),
        shown(b, variable=var("M", kind="boolean")),
        shown(b, variable=n),
        Witness(var("V", n), ZERO, (), (a, a), Reflexive(a)),
        Witness(v, b, (), (add(v, a), add(v, a)), Reflexive(add(a, a))),
        Witness(var("g", n, n, kind="orthogonal"), A, (), (a, a), Reflexive(a)),
        Witness(v, index("e", num(-1)), (), (a, a), Reflexive(a)),
    ]
)
def test_what_does_not_exist_is_refused(false: Witness) -> None:
    with pytest.raises(Refused):
        replay(false)


# claims


N, K, L = sizes("n k L")
REAL: dict[str, Given] = {"a": real(), "b": real(), "X": real(N), "Y": real(N)}


def verdict(claim: Claim, **more: Given) -> str:
    return prove.decide(Statement({**REAL, **more}, {"": claim}), refuting=False).verdict


x, y = real(N).named("X"), real(N).named("Y")
FALSE: dict[str, Callable[[], Claim]] = {
    "the last link is not the right side": lambda: Claim("=", a, b, (Link("", a),)),
    "the first link is not reached": lambda: Claim("=", a, b, (Link("", b), Link("", b))),
    "no link at all": lambda: Claim("=", X, Y),
    "an unknown relation": lambda: Claim("<", a, b, (Link("", a),)),
    "a positive number is −1": lambda: exists(
        positive(), "c", lambda c: equal(c * 1, -1), witness=-1
    ),
    "an orthogonal matrix is 0": lambda: exists(
        orthogonal(N), "g", lambda g: equal(g, 0 * g.mT), witness=xp.zeros((N, N))
    ),
    "a position is −∞": lambda: exists(real(), "c", lambda c: equal(c + 1, c), witness=-xp.inf),
    "x/x = 1 at 0": lambda: equal(x / x, 1 + 0 * x),
    "√x² = x": lambda: equal((x * x) ** 0.5, x),
    "(√x)² = x": lambda: equal((x**0.5) ** 2, x),
    "n > 1": lambda: all_positive(x * 0 + (N - 1)),
    "0·∞ = 0": lambda: equal(x * 0 * -xp.inf, 0 * x),
    "∞ − ∞ = 0": lambda: equal(-(x + -xp.inf) + (x + -xp.inf), 0 * x),
    "exp(∞) = 0": lambda: equal(xp.exp(-(x + -xp.inf)), 0 * x),
    "the sum of the rest is the sum": lambda: equal(xp.sum(x[1:], axis=0), xp.sum(x, axis=0)),
    "the first entry is the second": lambda: equal(x[1:], x[: N - 1]),
}


@each(FALSE)
def test_a_false_claim_is_not_proved(name: str) -> None:
    with suppress(IndexError, TypeError):  # some cannot even be stated
        assert verdict(FALSE[name]()) == "undecided"


@pytest.mark.parametrize("proves", [Reflexive(a), Reflexive(X), Reflexive(Y)])
def test_a_search_that_proves_something_else_proves_nothing(
    proves: Derivation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def easy(*_: Any) -> Derivation:
        return proves

    monkeypatch.setattr(proof_methods, "derive", easy)
    assert verdict(equal(x, y)) == "undecided"


def test_a_slice_with_a_step_is_not_empty() -> None:
    with pytest.raises(IndexError, match="2 times a size"):
        x[::2]


@pytest.mark.parametrize("name", ["nested", "state", "layer"])
def test_a_stack_binds_its_own_state_and_layer_only(name: str) -> None:
    s, t = real(N).named("state"), index_below(L).named("layer")
    claims = {
        "nested": lambda: equal(
            iterate(L, x, lambda _, y: iterate(K, y, lambda _, z: z + y)),
            iterate(L, x, lambda _, y: iterate(K, y, lambda _, z: z + z)),
        ),
        "state": lambda: equal(
            iterate(L, x, lambda _, y: y + s), iterate(L, x, lambda _, y: y + y)
        ),
        "layer": lambda: equal(
            iterate(L, x, lambda u, y: y * u), iterate(L, x, lambda _, y: y * t)
        ),
    }
    assert verdict(claims[name](), state=real(N), layer=index_below(L)) != "proved"

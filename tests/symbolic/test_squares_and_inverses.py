"""Equal by a sum of squares that is 0; a left inverse because it is a right one."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof.symbolic import Array, equal, orthogonal, real, sizes
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import Law
from attnproof.symbolic.derivation import Derivation, LeftInverse, Reflexive, SumOfSquares
from attnproof.symbolic.givens import Given
from attnproof.symbolic.kernel import Refused, close, law, replay
from attnproof.symbolic.normal_form.equations import chain as chained
from attnproof.symbolic.normal_form.equations import inside, rewrite, under
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, ZERO, add, entry, mul, power
from attnproof.symbolic.terms import Term, make, opened
from tests.cases import each
from tests.symbolic.false_proofs import assumed, gap, squares
from tests.symbolic.interpreter import World, close_to
from tests.symbolic.stating import Said, because, verdict
from tests.symbolic.vocabulary import A, X, Y, a, b, m, n, spread, var

d, e = sizes("d e")
GIVEN: dict[str, Given] = {
    "x": real(d),
    "y": real(d),
    "A": real(d, d),
    "B": real(d, d),
    "T": real(d, e),
    "W": real(e, d),
    "g": orthogonal(d),
    "a": real(),
    "C": real(d, d),
}


def total(x: Any) -> Any:
    return xp.sum(xp.sum(x, axis=0), axis=0)


def is_inverse(A: Array, B: Array) -> list[Any]:
    return [(A @ B, xp.eye(d))]


LEFT_INVERSE = Law(equal(GIVEN["B"].named("B") @ GIVEN["A"].named("A"), xp.eye(d)).by_inverse())
TRUE: dict[str, Said] = {
    "a vector of norm 0": Said(
        GIVEN, lambda x: equal(x, 0 * x).by_squares(), lambda x: [(x @ x, 0)]
    ),
    "no distance": Said(
        GIVEN,
        lambda x, y: equal(x, y).by_squares(),
        lambda x, y: [(xp.sum((x - y) ** 2, axis=0), 0)],
    ),
    "a matrix": Said(
        GIVEN, lambda A, B: equal(A, B).by_squares(), lambda A, B: [(total((A - B) ** 2), 0)]
    ),
    "a number": Said(GIVEN, lambda a: equal(a, 0 * a).by_squares(), lambda a: [(a * a, 0)]),
    "an inverse": Said(GIVEN, lambda A, B: equal(B @ A, xp.eye(d)).by_inverse(), is_inverse),
    "then a product": Said(
        GIVEN,
        lambda A, B, x: {
            "first": LEFT_INVERSE,
            "then": equal(B @ (A @ x), x).with_facts(LEFT_INVERSE),
        },
        is_inverse,
    ),
    "an orthogonal matrix": Said(GIVEN, lambda g: equal(g.mT @ g, xp.eye(d)).by_inverse()),
}
FALSE: dict[str, Said] = {
    "a vector of sum 0": Said(
        GIVEN, lambda x: equal(x, 0 * x).by_squares(), lambda x: [(xp.sum(x, axis=0), 0)]
    ),
    "a distance of 1": Said(
        GIVEN,
        lambda x, y: equal(x, y).by_squares(),
        lambda x, y: [(xp.sum((x - y) ** 2, axis=0), 1)],
    ),
    "orthogonal vectors": Said(
        GIVEN, lambda x, y: equal(x, y).by_squares(), lambda x, y: [(x @ y, 0)]
    ),
    "norms alike": Said(
        GIVEN, lambda x, y: equal(x, y).by_squares(), lambda x, y: [(x @ x, y @ y)]
    ),
    "the traces alike": Said(
        GIVEN, lambda A, B: equal(A, B).by_squares(), lambda A, B: [(total(A - B), 0)]
    ),
    "nothing assumed": Said(GIVEN, lambda x, y: equal(x, y).by_squares()),
    "a matrix that is not square": Said(
        GIVEN, lambda T, W: equal(W @ T, xp.eye(e)).by_inverse(), lambda T, W: [(T @ W, xp.eye(d))]
    ),
    "the product is another": Said(
        GIVEN, lambda A, B, C: equal(B @ A, C).by_inverse(), lambda A, B, C: [(A @ B, C)]
    ),
    "twice the identity": Said(
        GIVEN,
        lambda A, B: equal(B @ A, 2 * xp.eye(d)).by_inverse(),
        lambda A, B: [(A @ B, 2 * xp.eye(d))],
    ),
    "of another matrix": Said(GIVEN, lambda B, C: equal(B @ C, xp.eye(d)).by_inverse(), is_inverse),
    "of itself": Said(GIVEN, lambda A: equal(A @ A, xp.eye(d)).by_inverse(), is_inverse),
    "without a hypothesis": Said(GIVEN, lambda A, B: equal(B @ A, xp.eye(d)).by_inverse()),
    "no product": Said(GIVEN, lambda A: equal(A, xp.eye(d)).by_inverse(), is_inverse),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_follows_is_proved(name: str) -> None:
    assert verdict(TRUE[name]) == "proved", because(TRUE[name])


@each(FALSE)
def test_what_does_not_follow_is_not(name: str) -> None:
    assert verdict(FALSE[name]) == "undecided"


# the derivations themselves


def zero_squares(x: Term, y: Term) -> Derivation:
    return assumed(squares(x, y), ZERO)


def test_equal_by_squares_rests_on_what_the_squares_rest_on() -> None:
    proof = replay(SumOfSquares(X, Y, zero_squares(X, Y)))
    assert proof.assumes == {("equal", law(squares(X, Y), ZERO))}
    with pytest.raises(Refused, match="not granted"):
        close(proof, frozenset(), ("=", X, Y))
    numbers = SumOfSquares(a, b, assumed(power(gap(a, b), 2), ZERO))
    assert replay(numbers).right is b


def test_two_forms_of_one_array_are_equal_by_squares() -> None:
    twice = make("add", (X, X), shape=(n,))
    scaled = make("mul", (spread(ONE, n), twice), shape=(n,))
    at = opened(n, twice, scaled, "k0")
    whole = squares(twice, scaled)
    body = power(gap(entry(twice, at), entry(scaled, at)), 2)
    left = rewrite("entry", body.args[0].args[0])
    right = rewrite("entry", body.args[0].args[1].args[1])
    one = inside(
        right.right,
        [(0, rewrite("entry", right.right.args[0])), (1, rewrite("entry", right.right.args[1]))],
    )
    moved = inside(body.args[0].args[1], [(1, chained(right, one))])
    whole_body = inside(body, [(0, inside(body.args[0], [(0, left), (1, moved)]))])
    zero = under(whole, (at,), chained(whole_body, rewrite("ring", whole_body.right, ZERO)))
    derivation = SumOfSquares(twice, scaled, chained(zero, rewrite("constant", zero.right)))
    assert close(replay(derivation), frozenset(), ("=", twice, scaled)).assumes == frozenset()
    assert all(close_to(world(twice), world(scaled)) for world in map(World, range(4)))


W = var("W", m)
TALL, WIDE = var("T", m, n), var("V", n, m)


@pytest.mark.parametrize(
    ("left", "right", "part"),
    [
        (X, Y, Reflexive(ZERO)),
        (X, Y, zero_squares(Y, X)),
        (X, Y, zero_squares(X, X)),
        (X, Y, assumed(squares(X, Y), ONE)),
        (X, Y, assumed(ZERO, squares(X, Y))),
        (X, Y, assumed(gap(entry(X, ZERO), entry(Y, ZERO)), ZERO)),
        (X, W, assumed(squares(X, Y), ZERO)),
        (a, MINUS_INFINITY, assumed(power(gap(a, MINUS_INFINITY), 2), ZERO)),
        (a, b, assumed(gap(a, b), ZERO)),
        (a, b, assumed(power(gap(a, b), 3), ZERO)),
    ],
)
def test_no_other_sum_makes_arrays_equal(left: Term, right: Term, part: Derivation) -> None:
    with pytest.raises(Refused):
        replay(SumOfSquares(left, right, part))


def product(x: Term, y: Term) -> Term:
    return make("matmul", (x, y), shape=(x.shape[0], y.shape[1]))


def eye(length: Term) -> Term:
    return make("eye", (length,), shape=(length, length))


B = var("B", n, n)
RIGHT = assumed(product(A, B), eye(n))


def test_a_right_inverse_is_a_left_inverse() -> None:
    proof = replay(LeftInverse(product(B, A), eye(n), RIGHT))
    assert proof.assumes == {("equal", law(product(A, B), eye(n)))}


@pytest.mark.parametrize(
    ("left", "right", "part"),
    [
        (product(A, A), eye(n), RIGHT),
        (product(A, B), eye(n), RIGHT),
        (product(B, B), eye(n), RIGHT),
        (product(B, A), product(A, B), RIGHT),
        (product(B, A), eye(n), assumed(eye(n), product(A, B))),
        (product(B, A), A, assumed(product(A, B), A)),
        (product(WIDE, TALL), eye(n), assumed(product(TALL, WIDE), eye(m))),
        (product(WIDE, TALL), eye(m), assumed(product(TALL, WIDE), eye(m))),
        (product(B, A), eye(n), Reflexive(product(A, B))),
        (product(B, A), eye(n), assumed(make("add", (A, B), shape=(n, n)), eye(n))),
        (mul(b, a), ONE, assumed(mul(a, b), ONE)),
    ],
)
def test_no_other_product_has_an_inverse(left: Term, right: Term, part: Derivation) -> None:
    with pytest.raises(Refused):
        replay(LeftInverse(left, right, part))


def test_an_inverse_of_negative_width_is_none() -> None:
    less = add(n, mul(ONE, make("num", data=ONE.data * -2)))
    x, y = (var(name, less, less) for name in "xy")
    with pytest.raises(Refused, match="the number of rows may be negative"):
        replay(LeftInverse(product(y, x), eye(less), assumed(product(x, y), eye(less))))

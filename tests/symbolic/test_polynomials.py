"""What is one polynomial in its atoms, and what is not, with 1/a for the a that are not 0."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

from attnproof.symbolic.kernel import Refused
from attnproof.symbolic.rules.polynomials import same_polynomial
from attnproof.symbolic.scalars import MINUS_INFINITY, ONE, ZERO, add, mul, num, power, unary
from attnproof.symbolic.terms import Term, make
from tests.cases import each
from tests.symbolic.vocabulary import HALF, TWO, X, a, b, c, chosen, minus, n, var

BELOW = chosen(make("less", (a, b)), a, MINUS_INFINITY)
NO_X = make("add", (X, make("mul", (num(-1), X), shape=(n,))), shape=(n,))
INV, OVER = power(a, -1), power(add(a, b), -1)
SAME: list[tuple[Term, Term, tuple[Term, ...]]] = [
    (add(a, b), add(b, a), ()),
    (mul(a, add(b, c)), add(mul(a, b), mul(a, c)), ()),
    (power(a, 0), ONE, ()),
    (power(add(a, b), 2), add(power(a, 2), mul(TWO, a, b), power(b, 2)), ()),
    (power(mul(a, b), -1), mul(power(a, -1), power(b, -1)), ()),
    (power(TWO, -1), HALF, ()),
    (power(power(a, -1), -1), a, ()),
    (power(ZERO, -1), ZERO, ()),
    (power(power(a, 2), -1), power(a, -2), ()),
    (mul(a, INV), ONE, (a,)),
    (mul(a, a, INV), a, (a,)),
    (mul(a, INV, INV), INV, (a,)),
    (mul(add(a, b), power(add(a, b), -1)), ONE, (add(a, b),)),
    (power(mul(TWO, a), -1), mul(HALF, INV), ()),
    (add(mul(a, power(add(a, b), -1)), mul(b, power(add(a, b), -1))), ONE, (add(a, b),)),
    (mul(a, INV, b, power(b, -1)), ONE, (a, b)),
    (num(-1), minus(ONE), ()),
    (add(a, minus(a)), ZERO, ()),
    (power(power(add(a, b), -1), 2), power(add(a, b), -2), ()),
    (mul(power(add(a, b), 2), power(add(a, b), -1)), add(a, b), (add(a, b),)),
    *((power(x, 0), ONE, ()) for x in (ZERO, add(a, minus(a)), add(a, b))),
    (power(a, -2), mul(INV, INV), ()),
    (a, a, (add(a, b),)),
    (OVER, OVER, (add(a, b),)),
    (mul(a, INV, add(a, b), OVER), ONE, (a, add(a, b))),
    (
        add(mul(a, OVER), mul(b, OVER), mul(c, power(add(b, c), -1)), mul(b, power(add(b, c), -1))),
        TWO,
        (add(a, b), add(b, c)),
    ),
]
DIFFERENT: list[tuple[Term, Term, tuple[Term, ...]]] = [
    (a, b, ()),
    (add(a, b), mul(a, b), ()),
    (mul(a, INV), ONE, ()),
    (mul(a, INV), ONE, (b,)),
    (mul(add(a, b), power(add(a, b), -1)), ONE, ()),
    (power(a, -1), a, ()),
    (power(a, -2), power(a, 2), (a,)),
    (mul(a, INV, b, power(b, -1)), ONE, (a,)),
    (power(a, 2), a, ()),
    (MINUS_INFINITY, MINUS_INFINITY, ()),
    (add(BELOW, a), add(a, BELOW), ()),
    (a, BELOW, ()),
    (X, X, ()),
    (a, X, ()),
    (X, a, ()),
    (ZERO, NO_X, ()),
    (NO_X, ZERO, ()),
    (INV, ONE, (a,)),
    (a, ONE, (a,)),
    (ZERO, add(BELOW, minus(BELOW)), ()),
    (add(BELOW, minus(BELOW)), ZERO, ()),
    (mul(a, power(b, -1)), ONE, (a, b)),
    (mul(b, INV), ONE, (a, b)),
    (HALF, TWO, ()),
    (add(mul(a, power(add(a, b), -1)), mul(c, power(add(a, b), -1))), ONE, (add(a, b),)),
    (power(TWO, -1), TWO, ()),
    (power(ZERO, -1), ONE, ()),
    (power(a, 0), ZERO, ()),
    (ZERO, ONE, ()),
    (mul(a, a, INV), ONE, (a,)),
    (a, MINUS_INFINITY, ()),
    (MINUS_INFINITY, a, ()),
    (unary("exp", add(a, b)), unary("exp", add(b, a)), ()),
]


@each(SAME)
def test_one_polynomial(x: Term, y: Term, apart: tuple[Term, ...]) -> None:
    assert same_polynomial(x, y, apart)
    assert same_polynomial(y, x, apart)
    assert not same_polynomial(add(x, ONE), y, apart)


@each(DIFFERENT)
def test_two_polynomials(x: Term, y: Term, apart: tuple[Term, ...]) -> None:
    try:
        assert not same_polynomial(x, y, apart)
    except Refused as error:
        assert "ring" in str(error)  # noqa: PT017 - a refusal is no equality


def test_an_inverse_is_no_other_atom() -> None:
    atoms = [var(name) for name in "abcd"]
    for x, y in permutations(atoms, 2):
        for t in (power(x, -1), mul(x, power(y, -1)), add(x, power(x, -1))):
            for other in (y, power(y, -1), power(y, 2), add(x, y), ONE):
                assert not same_polynomial(t, other)
                assert not same_polynomial(add(t, *atoms), add(other, *atoms))


def test_powers_of_literals() -> None:
    assert same_polynomial(power(num(3), -2), num(Fraction(1, 9)))
    assert same_polynomial(power(num(Fraction(2, 3)), -3), num(Fraction(27, 8)))
    assert same_polynomial(power(ZERO, -1), ZERO)
    assert same_polynomial(power(ZERO, 0), ONE)
    assert not same_polynomial(power(num(3), -2), num(Fraction(1, 3)))

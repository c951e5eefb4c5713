"""⌊j/k⌋ and j mod k as digits: the ranges that the kernel trusts, against all small sizes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from attnproof.symbolic.givens import natural, real
from attnproof.symbolic.scalars import (
    ONE,
    ZERO,
    add,
    always_less,
    below,
    index,
    index_range,
    integer,
    is_integer,
    mul,
    num,
    size,
    split_integer,
)
from attnproof.symbolic.terms import Term, make
from tests.cases import each

n, m = size("n"), size("m")
LENGTHS = (
    n,
    mul(n, m),
    mul(num(2), n),
    num(6),
    add(n, m),
    mul(n, add(n, m)),
    mul(num(2), n, m),
    add(n, ONE),
    add(mul(n, m), n),
)
WIDTHS = (n, m, num(2), num(3), add(n, m), add(n, ONE), mul(num(2), n), ONE, mul(n, m))
SMALL = tuple(product(range(1, 5), repeat=2))


def value(t: Term, at: dict[Term, int]) -> int:
    """A term of sizes, indices and digits in whole numbers."""
    if t in at:
        return at[t]
    parts = [value(a, at) for a in t.args] if t.op not in ("num", "size", "index") else []
    if t.op == "num":
        assert t.data == int(t.data)
        return int(t.data)
    if t.op == "add":
        return sum(parts)
    if t.op == "mul":
        found = 1
        for part in parts:
            found *= part
        return found
    return parts[0] // parts[1] if t.op == "floor_divide" else parts[0] % parts[1]


def everywhere(*indices: Term) -> list[dict[Term, int]]:
    """Small sizes, and all values of the indices there."""
    found = []
    for a, b in SMALL:
        sizes = {n: a, m: b}
        ranges = [range(value(i.args[0], sizes)) for i in indices]
        found += [sizes | dict(zip(indices, at, strict=True)) for at in product(*ranges)]
    return found


@pytest.mark.parametrize("length", LENGTHS, ids=repr)
def test_a_digit_stays_below_its_range(length: Term) -> None:
    j = index("j", length)
    cases = everywhere(j)
    for width in WIDTHS:
        for op in ("floor_divide", "remainder"):
            digit = make(op, (j, width))
            end = index_range(digit)
            if op == "remainder":
                assert end is width
            if end is not None:
                assert is_integer(digit)
                assert all(0 <= value(digit, at) < value(end, at) for at in cases), (digit, end)


def test_the_range_of_a_quotient_is_found_where_the_width_divides_the_length() -> None:
    for length, width, blocks in (
        (mul(n, m), n, m),
        (mul(num(2), n), num(2), n),
        (num(6), num(3), num(2)),
        (mul(n, add(n, m)), add(n, m), n),
        (n, ONE, n),
    ):
        found = index_range(make("floor_divide", (index("j", integer(length)), width)))
        assert found is not None
        assert integer(found) is integer(blocks)


@each(
    [
        (index("j", add(n, ONE)), n, "floor_divide"),  # a block more than n blocks of 1
        (index("j", num(7)), num(2), "floor_divide"),
        (index("j", mul(n, m)), add(n, m), "floor_divide"),
        (index("j", mul(n, m)), mul(num(2), n), "floor_divide"),
        (natural().named("p").term, n, "floor_divide"),  # a position stays below nothing
        (add(index("j", mul(n, m)), ONE), n, "floor_divide"),
        (add(index("j", n), num(-1)), n, "remainder"),  # −1 at j = 0
        (mul(num(-1), index("j", n)), n, "remainder"),
        (real().named("x").term, n, "remainder"),  # no whole number
        (index("j", n), add(n, num(-1)), "remainder"),  # 0 at n = 1
        (index("j", n), mul(num(-1), n), "remainder"),
        (index("j", n), index("k", n), "remainder"),  # 0 at k = 0
        (index("j", n), ZERO, "remainder"),
        (index("j", n), natural().named("p").term, "remainder"),
        (index("j", n), real().named("x").term, "remainder"),
    ]
)
def test_no_range_is_known(number: Term, width: Term, op: str) -> None:
    assert index_range(make(op, (number, width))) is None


def test_a_position_modulo_a_length_stays_below_it() -> None:
    digit = make("remainder", (natural().named("p").term, n))
    assert index_range(digit) is n
    assert below(digit, n)
    assert not below(digit, add(n, num(-1)))


def test_comparisons_with_digits_are_true_of_all_small_sizes() -> None:
    drawn, claimed, refused = Random(0), 0, 0
    for _ in range(400):
        j = index("j", drawn.choice(LENGTHS))
        width = drawn.choice(WIDTHS)
        high, low = (make(op, (j, width)) for op in ("floor_divide", "remainder"))
        atoms = (high, low, j, n, m, ONE)
        sides = [
            integer(
                add(
                    *(
                        mul(
                            num(drawn.choice((-1, 1, 2))),
                            *map(drawn.choice, (atoms, (n, ONE, width))),
                        )
                        for _ in range(drawn.randint(1, 3))
                    )
                )
            )
            for _ in range(2)
        ]
        if drawn.random() < 0.5:  # the number that two digits make, against its length
            sides = [integer(add(mul(high, width), low)), j.args[0]]
        cases = everywhere(j)
        pairs = [(value(sides[0], at), value(sides[1], at)) for at in cases]
        less, inside = always_less(*sides), below(*sides)
        assert not less or all(a < b for a, b in pairs), sides
        assert not inside or all(0 <= a < b for a, b in pairs), sides
        claimed, refused = claimed + less + inside, refused + (not less)
    assert claimed > 20, "nothing was claimed, and nothing was tried"
    assert refused > 20


def polynomial(drawn: Random, most: int) -> Term:
    return integer(
        add(
            *(
                mul(num(drawn.choice((-2, -1, 1, 2, 3))), *drawn.choices((n, m, ONE), k=3))
                for _ in range(drawn.randint(1, most))
            )
        )
    )


def test_what_is_split_by_a_sum_is_that_sum_so_many_times_and_a_rest() -> None:
    drawn, whole = Random(1), 0
    for _ in range(500):
        unit, term = polynomial(drawn, 3), polynomial(drawn, 4)
        if drawn.random() < 0.5:
            term = integer(mul(unit, term))
        times, rest = split_integer(term, unit)
        whole += rest is ZERO
        assert is_integer(times)
        for a, b in SMALL:
            at = {n: a, m: b}
            assert value(term, at) == value(times, at) * value(unit, at) + value(rest, at)
    assert whole > 50, "products of the unit were not divided"


def test_a_sum_is_not_split_by_nothing() -> None:
    assert split_integer(add(n, m), ZERO) == (ZERO, integer(add(n, m)))
    assert split_integer(add(n, m), add(n, mul(num(-1), n))) == (ZERO, integer(add(n, m)))

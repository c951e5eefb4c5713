"""Equations that choose one index of a sum, and equations that do not."""

from __future__ import annotations

from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.givens import permutation, positions, real, sizes
from attnproof.symbolic.namespace import arange, astype, eye
from attnproof.symbolic.namespace import sum as sum_
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement

T, c = sizes("T c")
t, z, s = real(T).named("t"), real(T + 1).named("z"), real().named("s")
x = real(c).named("x")
p, sigma = positions(c).named("p"), permutation(c).named("sigma")
GIVEN = {
    "t": real(T),
    "z": real(T + 1),
    "s": real(),
    "x": real(c),
    "p": positions(c),
    "sigma": permutation(c),
}


def verdict(claim: Claim) -> str:
    return decide(Statement(GIVEN, {"": claim})).verdict


def read(table: Array, number: Array) -> Array:
    """The row of the table for how many of t_1, .., t_T a number has reached."""
    count = sum_(astype(number[:, None] >= t, float), axis=-1)
    return sum_(astype(count[:, None] == arange(T + 1), float) * table, axis=-1)


def test_a_count_that_may_be_out_of_range_chooses_nothing() -> None:
    assert verdict(equal(read(z, x + s - s), read(z, x))) == "proved"
    assert verdict(equal(read(z, x + s), read(z, x))) == "refuted"


def test_equal_entries_of_an_array_may_have_different_indices() -> None:
    same = astype(p[:, None] == p, float)
    moved = astype(p[sigma][:, None] == p[sigma], float)
    assert verdict(equal(moved, same[sigma][:, sigma])) == "proved"
    assert verdict(equal(same, eye(c))) == "refuted"
    assert verdict(equal(astype(sigma[:, None] == sigma, float), eye(c))) == "proved"

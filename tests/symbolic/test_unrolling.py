"""Axes of literal length: short ones are written out, those of programs stay sums."""

from __future__ import annotations

import pytest

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.normal_form.normaliser import Normaliser
from attnproof.symbolic.normal_form.sums import DEFAULT_LONGEST, longest_written_out, written_out
from attnproof.symbolic.prove import Effort, decide
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import postorder

(n,) = sizes("n", "tokens")
EFFORT = Effort(refuting=False, prove=20.0)


def sums_in(total: Array) -> int:
    return sum(part.op == "sum" for part in postorder(Normaliser()(total.term).right))


def test_a_short_axis_is_written_out_and_a_limit_keeps_it() -> None:
    x, y = real(6).named("x"), real(6).named("y")
    total = xp.sum(xp.exp(x * y))
    assert sums_in(total) == 0
    with written_out(2):
        assert longest_written_out() == 2
        assert sums_in(total) == 1
    assert longest_written_out() == DEFAULT_LONGEST


def layer(X: Array, W: Array) -> Array:
    """Heads of literal number and width: X (n, 12) through W (12, 12), 3 heads of 4 features."""
    heads = xp.permute_dims(xp.reshape(X @ W, (n, 3, 4)), (1, 0, 2))
    weights = xp.exp(heads @ heads.mT)
    mixed = (weights / xp.sum(weights, axis=-1, keepdims=True)) @ heads
    return xp.reshape(xp.permute_dims(mixed, (1, 0, 2)), (n, 12))


@pytest.mark.parametrize("longest", [1, 2])
def test_heads_of_literal_number_are_proved_equivariant(longest: int) -> None:
    given = {"X": real(n, 12), "W": real(12, 12), "sigma": permutation(n)}
    X, W, sigma = (g.named(name) for name, g in given.items())
    with written_out(longest):
        true = equal(layer(X[sigma], W), layer(X, W)[sigma])
        assert decide(Statement(given, {"": true}), effort=EFFORT).verdict == "proved"
        false = equal(layer(X[sigma], W), layer(X, W))
        assert decide(Statement(given, {"": false}), effort=EFFORT).verdict == "undecided"


def test_a_seam_of_a_literal_axis_is_found() -> None:
    given = {"x": real(n, 32), "y": real(n, 32)}
    x, y = (g.named(name) for name, g in given.items())
    swapped = xp.concat((-x[:, 16:], x[:, :16]), axis=-1)
    other = xp.concat((-y[:, 16:], y[:, :16]), axis=-1)
    with written_out(2):
        claims = {
            "": equal(xp.concat((-(x + y)[:, 16:], (x + y)[:, :16]), axis=-1), swapped + other)
        }
        assert decide(Statement(given, claims), effort=EFFORT).verdict == "proved"
        wrong = {
            "": equal(xp.concat((-(x + y)[:, 16:], (x + y)[:, :16]), axis=-1), swapped - other)
        }
        assert decide(Statement(given, wrong), effort=EFFORT).verdict == "undecided"


def test_a_seam_within_a_block_is_found() -> None:
    n, r = sizes("n r")
    given = {"x": real(4 * n + 3), "y": real(4 * r - 3)}
    x, y = (one.named(name) for name, one in given.items())
    blocks = xp.sum(xp.reshape(xp.concat((x, y)), (n + r, 4)), axis=1)
    for last, verdict in ((y[0], "proved"), (y[1], "undecided")):
        at_seam = xp.sum(x[4 * n :]) + last
        with written_out(2):
            claims = {"": equal(blocks[n], at_seam)}
            assert decide(Statement(given, claims), effort=EFFORT).verdict == verdict

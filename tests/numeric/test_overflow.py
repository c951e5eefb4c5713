"""Where an exponential overflows, the tokens are drawn once more and spread less."""

from __future__ import annotations

from attnproof.numeric.check import measure
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import permutation, real, sizes
from attnproof.symbolic.statement import Statement

(n,) = sizes("n", "tokens")
(d,) = sizes("d", "features")


def unscaled(factor: int) -> Statement:
    """Softmax of scores that are large, without a shift, in two orders of the keys."""
    givens = {"X": real(n, d), "s": permutation(n)}
    X, s = (given.named(name) for name, given in givens.items())

    def softmax(scores: object) -> object:
        weights = xp.exp(scores)
        return weights / xp.sum(weights, axis=0, keepdims=True)

    return Statement(givens, {"": equal(softmax(factor * X[s]), softmax(factor * X)[s])})  # type: ignore[index]


def test_tokens_that_overflow_are_drawn_again() -> None:
    (found,) = measure(unscaled(40), scale="small", device="cpu", dtypes=["float32"])
    assert found.status == "held"
    assert "overflowed" in found.reason


def test_tokens_that_do_not_overflow_are_not() -> None:
    (found,) = measure(
        unscaled(1), scale="small", device="cpu", dtypes=["float32"], distributions=["normal"]
    )
    assert (found.status, found.reason) == ("held", "")


def test_what_is_never_a_number_stays_a_failure() -> None:
    (found,) = measure(unscaled(4_000), scale="small", device="cpu", dtypes=["float32"])
    assert found.status == "non-finite"

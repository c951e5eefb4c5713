"""Statements that input distributions act on, and their values in each distribution."""

from __future__ import annotations

from typing import Any

from attnproof.numeric.check import tasks_of
from attnproof.numeric.distributions import DISTRIBUTIONS
from attnproof.numeric.scale import scale_named
from attnproof.numeric.task import drawn
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import boolean, permutation, real
from attnproof.theorems.definitions.attention import (
    attention,
    biased_attention,
    causal_self_attention,
    masked_attention,
    multi_head,
    self_attention,
    softmax,
)
from tests.numeric.statements import ATTENTION, CPU, PAIRS, ROTARY, d, ell, n, r, stated

ALL = tuple(DISTRIBUTIONS)
LOW = ["float32", "bfloat16", "float16"]
EVERY = ["float64", *LOW]
TOKENS = {"X": real(n, ell), "W": real(ell, ell), "U": real(ell, ell), "s": permutation(n)}
SELF = stated(
    TOKENS, lambda X, W, U, s: equal(self_attention(X[s], W, U, W), self_attention(X, W, U, W)[s])
)
CAUSAL = stated(
    {k: TOKENS[k] for k in "XWU"},
    lambda X, W, U: equal(causal_self_attention(X, W, U, U)[:1], (X @ U)[:1]),
)
MASKED = stated(
    ATTENTION | {"M": boolean(r, n)},
    lambda Q, K, V, sigma, M: equal(
        masked_attention(Q, K[sigma], V[sigma], M[:, sigma]), masked_attention(Q, K, V, M)
    ),
)
SCORES = stated(
    {"S": real(r, n), "s": permutation(n)}, lambda S, s: equal(softmax(S[:, s]), softmax(S)[:, s])
)
SUMS = stated(
    {"X": real(n, d), "s": permutation(n)},
    lambda X, s: equal(xp.sum(X[s], axis=0), xp.sum(X, axis=0)),
)
NO_TOKENS = stated({"A": real(d, d)}, lambda A: equal(A + A, 2 * A))


HONEST = {
    "attention": PAIRS,
    "self-attention": SELF,
    "causal": CAUSAL,
    "masked": MASKED,
    "softmax": SCORES,
    "sums": SUMS,
    "rotary": ROTARY,
    "several heads": stated(
        {"X": real(n, d), "A": real(2, d, ell), "B": real(2, ell, d), "s": permutation(n)},
        lambda X, A, B, s: equal(multi_head(X[s], A, A, A, B), multi_head(X, A, A, A, B)[s]),
    ),
    "bias": stated(
        ATTENTION | {"b": real(r, 1)},
        lambda Q, K, V, sigma, b: equal(
            biased_attention(Q, K, V, b + 0 * (Q @ K[sigma].mT)), attention(Q, K, V)
        ),
    ),
}


def drawn_in(statement: Any, scale: str = "small") -> dict[str, Any]:
    """The values in each distribution that applies, by its name."""
    base = drawn(statement, scale_named(scale), CPU, 0)
    tasks = tasks_of(base, list(DISTRIBUTIONS.values()))
    return {task.scale.distribution.name: task.sample(0).values for task in tasks}

"""How often a policy speaks: a rate with an exact upper confidence bound."""

from __future__ import annotations

import math

__all__ = ["CONFIDENCE", "upper"]

CONFIDENCE = 0.95


def upper(count: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided upper bound of Clopper and Pearson 1934 on a rate, count of trials seen.

    The p at which so few successes have probability 1 − confidence:
    Σ_{k ≤ count} C(trials, k) pᵏ (1 − p)^(trials − k) = 1 − confidence, by bisection on the exact
    sum (its terms through lgamma); the upper end of the bracket.  Without successes it is
    1 − (1 − confidence)^(1/trials), about 3/trials.

    >>> round(upper(0, 10_000), 6), round(upper(4_200, 10_000), 4), upper(3, 3)
    (0.0003, 0.4282, 1.0)
    """
    if not 0 <= count <= trials:
        raise ValueError(f"a count of 0 to {trials} was wanted, of {trials} trials; got {count}")
    if count == trials:
        return 1.0
    low, high = count / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(count, trials, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, trials: int, p: float) -> float:
    """The probability of at most so many successes."""
    yes, no = math.log(p) if p else -math.inf, math.log1p(-p) if p < 1 else -math.inf
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
            + (k * yes if k else 0.0) + (trials - k) * no
        )
        for k in range(count + 1)
    )  # fmt: skip

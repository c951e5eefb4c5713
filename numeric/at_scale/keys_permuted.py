"""Equivariance under permuted keys: the kernel again on some rows, keys and values permuted.

Permuted keys are added up in another order, so the rows agree within two rounding bounds.  To
bound every row in time n · d, what the bound asks of a row is replaced by what is larger: with
A = ‖q_i‖ max_j ‖k_j‖ / √ℓ every |s_j| ≤ A and m − s_j ≤ 2A, so that

    η ≤ η_max = (γ(ℓ+4) + u_S) A + 2 u A + c u (1 + R),      Σ p e² ≤ e_max²,    Σ p v² ≤ max_j v_j²

and R, the number of left-to-right maxima, is at most RISES for keys in random order: the j-th key
is a maximum with probability 1/j, independently, so R has mean H_n ≤ 1 + ln n, and Chernoff's
bound P(R ≥ r) ≤ exp(r − μ − r ln(r/μ)) over all rows and both orders is below 1e-12.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..rounded import gamma
from .call import Call
from .comparison import WRONG, Worst, against
from .inputs import Arrays, generator
from .results import chance
from .streaming import Reference, weight_error

__all__ = ["keys_permuted", "most_rises"]

SHARE = 16  # one row in so many
LEAST = 16
PIECE = 1_024
FAILS = 1e-12  # the probability that some row rises more often


def keys_permuted(call: Call, x: Arrays, output: Tensor) -> tuple[Worst, str, str]:
    """The kernel on n/16 random rows with permuted keys and values, against the same rows."""
    n = call.tokens
    if call.causal:
        return Worst(0.0, 0.0, (), "skipped", "a causal row sees other keys once they move"), (
            "nothing"
        ), ""  # fmt: skip
    source = generator(call, 13)
    places = torch.randperm(n, generator=source)[: min(n, max(LEAST, n // SHARE))]
    order = torch.randperm(n, generator=source).to(call.device)
    here = places.to(call.device)
    again = call.run(x.query[:, here], x.key[:, order], x.value[:, order])
    worst: Worst | None = None
    most = most_rises(n, 2 * call.heads * len(places))
    for a in range(0, len(places), PIECE):
        at = here[a : a + PIECE]
        rows = output[:, at]
        radius = 2 * _radius(call, x, x.query[:, at], rows, most, math.gcd(n, len(places)))
        one = against(again[:, a : a + PIECE], Reference(rows.double(), radius), call.profile)
        head, row, column = one.place
        place = (head, int(at[row]), column)
        reason = one.reason.replace(WRONG, "permuted keys give another value")
        one = Worst(one.error, one.tolerance, place, one.status, reason)
        worst = one if worst is None or one.ratio > worst.ratio else worst
    assert worst is not None
    looked = f"{len(places):,} random rows of each of {call.heads} heads, run again with permuted"
    return worst, f"{looked} keys and values", f"{chance(len(places))}; {SHARED}"


SHARED = "a fault that permuted keys share, such as a wrong scale, is not seen"


def most_rises(n: int, rows: int) -> int:
    """What R stays below in all of these rows, but with probability 1e-12.

    >>> most_rises(16_384, 1_000)
    47
    """
    mean = sum(1 / j for j in range(1, min(n, 1_000) + 1)) + max(0.0, math.log(n / 1_000))
    r = math.ceil(mean) + 1
    while rows * math.exp(r - mean - r * math.log(r / mean)) > FAILS and r < n:
        r += 1
    return r


def _radius(
    call: Call, x: Arrays, query: Tensor, rows: Tensor, most: int, queries: int
) -> Tensor:
    """A bound on the error of every entry of some rows, from norms alone.

    ``queries`` divides their number in both calls of the kernel.
    """
    profile, bound, n = call.profile, call.kernel.bound, call.tokens
    u, store = profile.accumulate, profile.store
    of_norms, of_scores = weight_error(bound, profile, call.width)
    measured = profile.kernel(bound.kernel)
    weights_stored = bound.weights_stored or measured.weights_stored
    stored = store if weights_stored and store > u else 0.0
    longest = _longest(x.key)
    norms = query.double().norm(dim=-1, keepdim=True) * longest / math.sqrt(call.width)
    eta = (of_norms + of_scores + 2 * u) * norms
    eta += measured.exponential_error * u * (1 + most)
    e = eta.expm1()
    largest = x.value.abs().amax(1, keepdim=True).double()
    terms = profile.attention_terms(n, bound.kernel, queries)
    total = gamma(terms, u) + profile.operand
    size = rows.double().abs()
    radius = e * largest + (stored + total + most * u) * largest + (total + (most + 2) * u) * size
    radius += profile.least * n * largest
    left = 1 - e - total
    radius = torch.where(left > 0, radius / left, math.inf)
    return radius * (1 + 2 * store) + 2 * store * size + profile.least


def _longest(key: Tensor) -> Tensor:
    """The largest norm of a key of each head, (heads, 1, 1)."""
    pieces = [piece.double().norm(dim=-1).amax(-1) for piece in torch.split(key, PIECE, 1)]
    return torch.stack(pieces).amax(0)[:, None, None]

"""Small statements and planted implementations that the numeric tests share."""

from __future__ import annotations

from typing import Any

import torch

from attnproof.numeric.attention_bound import AttentionBound
from attnproof.numeric.implementations import Implementation
from attnproof.numeric.implementations.scaled_dot_product import ROW_AXIS, pairs
from attnproof.numeric.results import ExactEvidence
from attnproof.numeric.row_selection import Replacement, never
from attnproof.symbolic.claim import equal
from attnproof.symbolic.givens import frequencies, permutation, positions, real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorems.definitions.attention import attention
from attnproof.theorems.definitions.rotary import rotate_half

r, n = sizes("r n", "tokens")
ell, d = sizes("ell d", "features")
(B,) = sizes("B", "blocks")
CPU = torch.device("cpu")
ATTENTION = {"Q": real(r, ell), "K": real(n, ell), "V": real(n, d), "sigma": permutation(n)}


def stated(givens: Any, body: Any, **assume: Any) -> Any:
    values = {name: given.named(name) for name, given in givens.items()}
    result = body(**values)
    claims = result if isinstance(result, dict) else {"": result}
    return Statement(givens, claims, **assume)


def bound_of(check: ExactEvidence) -> float:
    """The largest probability that a false equation passes, which must be known."""
    return float(check.error.removeprefix("≤ "))


PAIRS = stated(
    ATTENTION, lambda Q, K, V, sigma: equal(attention(Q, K[sigma], V[sigma]), attention(Q, K, V))
)
ROTARY = stated(
    {"X": real(n, 2 * B), "p": positions(n), "s": positions(), "omega": frequencies(B)},
    lambda X, p, s, omega: equal(
        rotate_half(X, p + s, omega) @ rotate_half(X, p + s, omega).mT,
        rotate_half(X, p, omega) @ rotate_half(X, p, omega).mT,
    ),
)


def planted(compute: Any) -> Any:
    axes = ROW_AXIS["attention"]
    return Implementation(
        "planted",
        {"attention": Replacement(compute, axes)},
        {"attention": Replacement(AttentionBound(), axes, never, pairs)},
    )


def attend(q: Any, k: Any, v: Any, scale: Any = None) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(
        q[None, None], k[None, None], v[None, None], scale=scale
    )[0, 0]


def statuses(measurements: Any) -> Any:
    return {m.dtype: m.status for m in measurements}

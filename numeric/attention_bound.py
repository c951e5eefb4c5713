"""How far a fused attention kernel may be from softmax(Q Kᵀ / √ℓ) V.

The kernel keeps scores and weights in its accumulation precision (unless the profile says they
are stored), may take the keys in blocks with a running maximum, and rounds its output once.
With exact weights p, output o, scores s, row maximum m, A = ‖q‖‖k‖/√ℓ, R left-to-right maxima
of the row, N the roundings of one term of the sum over keys, c the error of exp, both measured::

    η_j = γ(ℓ+4) A_j + Δs_j + u_S |s_j| + u (m − s_j) + c u (1 + R),      e_j = exp(η_j) − 1
    |ô − o| ≤ [√(Σ p e²) √(Σ p v² − o²) + (u_P + γ_N + R u) √(Σ p v²) + (γ_N + (R+2) u) |o|]
              / (1 − Σ p e − γ_N)

The first term does not change when a constant is added to the values: Σ p ε (v − o) is what
errors ε of the weights do.  The bound held in 60,480 trials on six correct implementations, with
a smaller c and N than were measured since.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .rounded import Rounded, gamma

__all__ = ["AttentionBound", "softmax_bound"]


def softmax_bound(scores: Rounded) -> Rounded:
    """Weights and radius, the row maximum m subtracted first.

    With η_j = Δs_j + u (m − s_j) + c u, e_j = exp(η_j) − 1 and D = Σ p e + γ_n, the weight j is
    within p_j (e_j + D) / (1 − D).
    """
    s, arithmetic = scores.value, scores.arithmetic
    profile, u = arithmetic.profile, arithmetic.inner(scores.unit)
    weights = torch.softmax(s, -1)
    eta = scores.error() + u * (s.amax(-1, keepdim=True) - s) + profile.function_error * u
    e = torch.where(weights == 0, 0.0, torch.expm1(eta))
    total = (weights * e).sum(-1, keepdim=True) + gamma(profile.softmax_terms(s.shape[-1]), u)
    radius = torch.where(total < 1, weights * (e + total) / (1 - total), math.inf)
    return arithmetic.rounded(weights, radius, scores.unit)


@dataclass(frozen=True)
class AttentionBound:
    """The bound for one kernel; ``scores_stored`` and ``weights_stored`` in the dtype or not.

    ``kernel`` is its short name in the calibration, "" for one that was not measured: then the
    constants of the worst one count.  What a kernel was seen to store counts as stored.
    ``queries`` is how many it is given in each call, 0 if that is not known.
    """

    scores_stored: bool = False
    weights_stored: bool = True
    kernel: str = ""
    queries: int = 0

    def __call__(
        self, query: Rounded, key: Rounded, value: Rounded, mask: Tensor | Rounded | None = None
    ) -> Rounded:
        """The exact attention and its radius; the mask is a mask, or a bias on the scores."""
        profile = query.arithmetic.profile
        u, width, n = profile.accumulate, query.shape[-1], key.shape[-2]
        measured, low = profile.kernel(self.kernel), profile.store > u
        scores_stored = self.scores_stored or measured.scores_stored
        weights_stored = self.weights_stored or measured.weights_stored
        stored_score = profile.store if scores_stored and low else 0.0
        stored_weight = profile.store if weights_stored and low else 0.0
        scale = 1 / math.sqrt(width)
        scores = query.value @ key.value.mT * scale
        norms = (
            scale * query.value.norm(dim=-1)[..., :, None] * key.value.norm(dim=-1)[..., None, :]
        )
        operand = 2 * profile.operand + profile.operand**2 + 2 * stored_score
        eta = (gamma(width + 4, u) + operand) * norms + _input_error(query, key, scale)
        if isinstance(mask, Rounded):
            bias = query.arithmetic.stored(mask, profile.store)
            eta = eta + u * scores.abs() + bias.error()
            scores = scores + bias.value
            eta = eta + u * torch.where(scores.isinf(), 0.0, scores.abs())
        elif mask is not None:
            scores = torch.where(mask, scores, -math.inf)
        top = scores.amax(-1, keepdim=True)
        rises = _rises(scores)
        eta = eta + stored_score * scores.abs() + u * (top - scores)
        eta = eta + measured.exponential_error * u * (1 + rises)
        weights = torch.softmax(scores, -1)
        e = torch.where(weights == 0, 0.0, torch.expm1(eta))
        v = value.value
        output = weights @ v
        square = weights @ (v * v)
        spread = (weights * e * e).sum(-1, keepdim=True).sqrt()
        total = gamma(profile.attention_terms(n, self.kernel, self.queries), u) + profile.operand
        radius = spread * (square - output * output).clamp(min=0).sqrt()
        radius = radius + (stored_weight + total + rises * u) * square.sqrt()
        radius = radius + (total + (rises + 2) * u) * output.abs()
        radius = radius + profile.least * v.abs().sum(-2, keepdim=True)
        left = 1 - (weights * e).sum(-1, keepdim=True) - total
        radius = torch.where(left > 0, radius / left, math.inf)
        if value.radius is not None:
            radius = radius + (1 + spread + total) * (weights * (1 + e)) @ value.radius
        return query.arithmetic.rounded(output, radius, profile.store)


def _rises(scores: Tensor) -> Tensor:
    """How often a row reaches a new maximum from left to right: no blocking rescales more."""
    running = scores.cummax(-1).values
    return 1.0 + (running[..., 1:] > running[..., :-1]).sum(-1, keepdim=True)


def _input_error(query: Rounded, key: Rounded, scale: float) -> Tensor | float:
    """What the radii of queries and keys do to a score."""
    total: Tensor | float = 0.0
    for a, b in (
        (query.radius, key.value.abs()),
        (query.value.abs(), key.radius),
        (query.radius, key.radius),
    ):
        if a is not None and b is not None:
            total = total + scale * (a @ b.mT)
    return total

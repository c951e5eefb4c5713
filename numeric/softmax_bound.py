"""How far ``torch.softmax`` may be from exp(s_j) / Σ_k exp(s_k)."""

from __future__ import annotations

import math

import torch

from .rounded import Rounded, gamma

__all__ = ["softmax_bound"]


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

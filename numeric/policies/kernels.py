"""How independent errors spread through attention and softmax, each computed as one kernel.

With the errors of :mod:`weights`, to first order and entry by entry::

    attention  λ √( Σ p² σ² (v − o)² + u_P² Σ p² v² + κ² ) + √(Σ p ρ²) √(Σ p v² − o²)  and storing
    softmax    p_j (ε_j − Σ_k p_k ε_k + δ): the first term is the entry's own, the rest shared

ρ is what the scores of a row are off together.  Both grow by 1/(1 − Σ p e), e = exp(λσ + ρ) − 1,
and λσ stands as exp(λσ) − 1, for what is beyond first order; where nothing is left of the 1, the
deterministic radius stands.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import torch
from torch import Tensor

from ..attention_bound import AttentionBound, softmax_bound
from ..rounded import Rounded
from .independent import LAMBDA, Part, radius_of, root, sources
from .spread import Spread
from .weights import attended, common, kernel_of

__all__ = ["attention_spread", "softmax_spread"]


def attention_spread(
    bound: AttentionBound, query: Any, key: Any, value: Any, mask: Any = None
) -> Spread:
    """The deterministic bound of a kernel, with the spread of its errors."""
    arithmetic = query.arithmetic
    query, key, value = (arithmetic.spread(x) for x in (query, key, value))
    result = arithmetic.spread(bound(query, key, value, *(() if mask is None else (mask,))))
    call = attended(query, key, value, mask, kernel=kernel_of(bound, query, key))
    p, v, o = call.weights, value.value, call.output
    rho = common(call)
    e = torch.where(p == 0, 0.0, torch.expm1(LAMBDA * call.score_sigma))
    left = 1 - (p * e).sum(-1, keepdim=True)
    ours = (p * e / LAMBDA).square()
    square = (ours @ v.square() - 2 * o * (ours @ v) + o * o * ours.sum(-1, keepdim=True)).clamp(
        min=0
    )
    square = square + call.stored_weight**2 * (p.square() @ v.square()) + call.sums.square()
    own = value.own()
    theirs = None if own is None else p.square() @ own.expand(v.shape).square()
    if theirs is not None and sources(key) & sources(value):  # keys that are values: no quadrature
        shared = LAMBDA * (square.sqrt() + theirs.sqrt())
    else:
        shared = LAMBDA * (square if theirs is None else square + theirs).sqrt()
    e = torch.where(p == 0, 0.0, torch.expm1(rho))
    left = left - (p * e).sum(-1, keepdim=True)
    spread = (p @ v.square() - o * o).clamp(min=0).sqrt()
    shared = shared + (p * e * e).sum(-1, keepdim=True).sqrt() * spread
    if value.shared is not None:
        shared = shared + p @ value.shared.expand(v.shape)
    if call.flushed is not None:
        shared = shared + call.flushed @ v.abs()
    shared = torch.where(left > 0, shared / left, inf)
    settled: Spread = result.settled([], call.stored, also=shared)
    return settled


def softmax_spread(scores: Rounded) -> Spread:
    """The deterministic bound of softmax, with the spread of its errors."""
    arithmetic: Any = scores.arithmetic
    s = arithmetic.spread(scores)
    result: Spread = arithmetic.spread(softmax_bound(s))
    p, u, profile = torch.softmax(s.value, -1), arithmetic.inner(s.unit), arithmetic.profile
    below = torch.where(s.value.isinf(), 0.0, s.value.amax(-1, keepdim=True) - s.value)
    inside = Part.fresh(u * below + profile.function_error * u, single=True)
    parts = (*(_filled(x, s) for x in s.parts), inside)
    together = root(parts)
    assert together is not None
    shared = torch.zeros_like(p) if s.shared is None else s.shared.expand(p.shape)
    rows = LAMBDA * (p * together).square().sum(-1, keepdim=True).sqrt()
    rows = rows + (p * shared).sum(-1, keepdim=True)
    rows = rows + LAMBDA * sqrt(profile.softmax_terms(p.shape[-1]) + 1) * u
    far = radius_of(parts)
    assert far is not None
    e = torch.where(p == 0, 0.0, torch.expm1(far + shared))
    growth = e / (far + shared).clamp(min=1e-300)
    left = 1 - (p * e).sum(-1, keepdim=True) - rows
    factor = torch.where(left > 0, growth / left, inf)
    weight = torch.where(p == 0, 0.0, p * factor)
    kept = [Part(x.sources, x.view, weight * x.sigma, x.single) for x in parts]
    result.varied = s.varied
    also = torch.where(p == 0, 0.0, weight * (shared + rows))
    stored = result.value.abs() * result.unit + arithmetic.profile.least
    return result.holding(kept, also, stored, ())


def _filled(part: Part, like: Spread) -> Part:
    sigma: Tensor = part.sigma.expand(like.value.shape)
    return Part(part.sources, part.view, sigma, part.single)

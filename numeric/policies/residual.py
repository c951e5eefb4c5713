"""Residual tests: the error of the output, projected on what a defect would do to it.

For e = computed − exact and a direction D, the projection N = Σ D e has in the rounding model mean
zero and a deviation σ (to first order, sub-Gaussian) that the adjoint of attention gives::

    w_ij = p_ij (v_j − o_i)·D_i
    σ² = Σ (w σ_s)² + u_P² Σ (p_ij v_j·D_i)² + Σ (u_out 2^⌊log₂|o|⌋ D)² + Σ (κ D)²
         + Σ (σ_q · w K/√ℓ)² + Σ (σ_k · wᵀ Q/√ℓ)² + Σ (σ_v · pᵀ D)²

What may be biased (errors of any dependence, second-order terms 3/2 Σ |w| σ_s²) adds ``fixed``,
a bound.  A test says no if |N| > limit·σ + fixed: by chance with probability at most
2 exp(−limit²/2), 2e-6 for one of the four directions and 5e-11 for one key.

    scale        D = ∂o/∂log(1/√ℓ)      normaliser  D = o
    base         D = ∂o/∂log(base)      query shift D = ∂o/∂(position of the queries)
    one key      D_i = p_ij (v_j − o_i), for every key j: what is lost with it

Where rows or weights occur m times their errors are equal, not independent: σ² is m times as large.

Rows and heads add up in N and σ², which is why one key in 10⁵ shows itself in bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, sqrt

import torch
from torch import Tensor

from .spread import Spread, copies, sources
from .weights import Attended

LIMIT = 5.3
KEY_LIMIT = 7.0
CANDIDATES = 3
"""The keys whose deviation is computed in full: those that stand out most in a shorter one."""
WORTH = 0.5  # of the limit: a shorter deviation makes z larger, so below nothing need be done
NEGLIGIBLE = 1e-60
"""A weight so small is left out of the direction of its key: nothing could tell it from 0."""


@dataclass(frozen=True)
class Projected:
    """A projection of the error: N, its variance, and what may be biased in it."""

    sum: float = 0.0
    variance: float = 0.0
    fixed: float = 0.0

    def __add__(self, other: Projected) -> Projected:
        return Projected(
            self.sum + other.sum, self.variance + other.variance, self.fixed + other.fixed
        )

    def z(self, limit: float) -> float:
        """|N| in deviations; what is biased counts with its share of the limit."""
        if self.sum == 0:
            return 0.0
        scale = sqrt(self.variance) + self.fixed / limit
        found = abs(self.sum) / scale if scale else inf
        return found if found == found else 0.0


@dataclass(frozen=True, eq=False)
class Seen:
    """One call of attention at some rows: its errors, and the directions asked of them."""

    call: Attended
    error: Tensor
    directions: Mapping[str, Tensor]
    alike: int = 1

    def along(self, direction: Tensor) -> Projected:
        """The projection on one direction, with the deviation that its adjoint gives."""
        call, g = self.call, direction
        p, v, o = call.weights, call.value.value, call.output
        values = g @ v.mT
        middle = (o * g).sum(-1, keepdim=True)
        w = p * (values - middle)
        variance = _square(w * call.sigma) + _square(g * call.spacing) + _square(g * call.sums)
        if call.stored_weight:
            variance += call.stored_weight**2 * _square(p * values)
        variance += _square(middle * call.denominator)
        inputs = (
            (call.query, call.own_query, call.scale * (w @ call.key.value)),
            (call.key, call.own_key, call.scale * (w.mT @ call.query.value)),
            (call.value, _whole(call.value, call.value.own()), p.mT @ g),
        )
        sigmas, fixed = [], 0.0
        for x, own, h in inputs:
            sigmas.append(0.0 if own is None else float((own * h).norm()))
            shared = _whole(x, x.shared)
            fixed += 0.0 if shared is None else _dot(shared, h.abs())
        together = sum(sigmas) ** 2 if _meet(call) else sum(s * s for s in sigmas)
        fixed += call.scale_error * abs(_dot(w, call.dots))
        fixed += 1.5 * _dot(w.abs_(), call.second_order)
        if call.bias is not None:
            fixed += _dot(w, call.bias)
        if call.flushed is not None:
            fixed += _dot(call.flushed, values.abs_())
        return Projected(_dot(g, self.error), variance + together, fixed)

    def keys(self) -> tuple[Tensor, Tensor]:
        """For every key N and a short variance: of storing, of sums and of its own weight."""
        call, e = self.call, self.error
        p, v, o = self.told_apart, call.value.value, call.output
        lost = p.mT @ torch.cat((e, (o * e).sum(-1, keepdim=True)), -1)
        sums = (lost[..., :-1] * v).sum(-1) - lost[..., -1]
        tau, pp = call.spacing.square() + call.sums.square(), p.square()
        spread = pp.mT @ torch.cat((tau, o * tau, (o * o * tau).sum(-1, keepdim=True)), -1)
        first, second = spread[..., : v.shape[-1]], spread[..., v.shape[-1] : -1]
        variance = (first * v.square() - 2 * second * v).sum(-1) + spread[..., -1]
        own = pp.square() * (call.sigma.square() + call.stored_weight**2)
        square = v.square().sum(-1)[..., None, :] - 2 * (o @ v.mT)
        square = (square + (o * o).sum(-1, keepdim=True)).clamp(min=0)
        variance = variance.clamp(min=0) + (own * square.square()).sum(-2)
        return sums, self.alike * variance

    @property
    def told_apart(self) -> Tensor:
        """The weights without those whose squares would be lost in float64."""
        return torch.where(self.call.weights < NEGLIGIBLE, 0.0, self.call.weights)

    def key_direction(self, key: int) -> Tensor:
        """What is lost with one key."""
        call = self.call
        return self.told_apart[..., key, None] * (call.value.value[..., key, None, :] - call.output)


def _dot(a: Tensor, b: Tensor) -> float:
    """Σ a b over the entries of two arrays, of which one may be repeated."""
    if a.shape != b.shape:
        return float((a * b).sum())
    return float(torch.dot(a.reshape(-1), b.reshape(-1)))


def _square(a: Tensor) -> float:
    return _dot(a, a)


def _whole(x: Spread, errors: Tensor | None) -> Tensor | None:
    return None if errors is None else errors.expand(x.value.shape)


def _meet(call: Attended) -> bool:
    """Whether queries, keys or values have errors of a common source."""
    each = [sources(x) for x in (call.query, call.key, call.value)]
    return sum(map(len, each)) != len(frozenset[int]().union(*each))


def scores_moved(weights: Tensor, values: Tensor, change: Tensor) -> Tensor:
    """What a change of the scores does to the output: Σ_j p_j (ds_j − Σ p ds) v_j."""
    seen = torch.where(weights == 0, 0.0, change)
    return (weights * (seen - (weights * seen).sum(-1, keepdim=True))) @ values


@dataclass(frozen=True, eq=False)
class Generic:
    """Any side: its error, its directions, and how its entries spread."""

    bound: Spread
    error: Tensor
    directions: Mapping[str, Tensor]

    @cached_property
    def alike(self) -> int:
        """How often one number occurs, anywhere: a difference, along every diagonal."""
        return max(1, copies(self.bound.value))

    def along(self, direction: Tensor) -> Projected:
        """What is independent entry by entry in quadrature, the rest linearly."""
        own, shared = _whole(self.bound, self.bound.own()), _whole(self.bound, self.bound.shared)
        variance = 0.0 if own is None else self.alike * float((own * direction).square().sum())
        fixed = 0.0 if shared is None else float((shared * direction.abs()).nan_to_num().sum())
        return Projected(float((self.error * direction).sum()), variance, fixed)


@dataclass
class Strongest:
    """The test nearest to its limit."""

    ratio: float = -1.0
    told: str = ""
    applied: list[str] = field(default_factory=list)

    def meet(self, name: str, z: float, limit: float, sign: str = "=") -> None:
        """One more test; of z only a bound may be known."""
        if name not in self.applied:
            self.applied.append(name)
        if z / limit > self.ratio:
            self.ratio = z / limit
            self.told = f"|z| {sign} {z:.3g} along {name}, limit {limit:g}"


def spoken(sides: Mapping[str, Sequence[Seen | Generic]]) -> Strongest:
    """All tests of all sides, the heads of each together."""
    found = Strongest()
    for side, heads in sides.items():
        names = dict.fromkeys(name for head in heads for name in head.directions)
        for name in names:
            total = Projected()
            for head in heads:
                if name in head.directions:
                    total = total + head.along(head.directions[name])
            found.meet(f"{name} of the {side} side", total.z(LIMIT), LIMIT)
        seen = [head for head in heads if isinstance(head, Seen)]
        if seen and seen[0].call.value.ndim == 2:
            _keys(found, side, seen)
    return found


def _keys(found: Strongest, side: str, heads: Sequence[Seen]) -> None:
    """Every key of one side; the full deviation for those that stand out."""
    sums: Tensor | float = 0.0
    variance: Tensor | float = 0.0
    for head in heads:
        one, square = head.keys()
        sums, variance = sums + one, variance + square
    assert isinstance(sums, Tensor)
    assert isinstance(variance, Tensor)
    short = (sums.abs() / variance.sqrt()).nan_to_num(posinf=inf)
    for key in short.topk(min(CANDIDATES, len(short))).indices.tolist():
        z, sign = float(short[key]), "≤"
        if z > WORTH * KEY_LIMIT:
            total = Projected()
            for head in heads:
                total = total + head.along(head.key_direction(key))
            z, sign = total.z(KEY_LIMIT), "="
        found.meet(f"key {key:,} of the {side} side", z, KEY_LIMIT, sign)

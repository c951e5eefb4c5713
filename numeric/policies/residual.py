"""Residual tests: project the error of the output on the effect of a possible defect.

For e = computed − exact and a direction D, the projection N = Σ D e has in the rounding model mean
zero and a deviation σ (to first order, sub-Gaussian) given by the adjoint of attention::

    w_ij = p_ij (v_j − o_i)·D_i
    σ² = Σ (w σ_s)² + u_P² Σ (p_ij v_j·D_i)² + Σ (u_out 2^⌊log₂|o|⌋ D)² + Σ (κ D)²
         + Σ (σ_q · w K/√ℓ)² + Σ (σ_k · wᵀ Q/√ℓ)² + Σ (σ_v · pᵀ D)²

Possible biases (errors of any dependence, second-order terms 3/2 Σ |w| σ_s²) add ``fixed``, a
bound.  A test fails if |N| > limit·σ + fixed, by chance with probability at most 2 exp(−limit²/2):
2e-6 for one of the four directions and 5e-11 for one key.

    scale        D = ∂o/∂log(1/√ℓ)      normaliser  D = o
    base         D = ∂o/∂log(base)      query shift D = ∂o/∂(position of the queries)
    one key      D_i = p_ij (v_j − o_i), for every key j: the effect of losing it

If rows or weights occur m times, their errors are equal, not independent, and σ² is m times as
large.

Rows and heads add up in N and σ², which is why one defective key in 10⁵ can be detected in
bfloat16.

The directions of a side are found in its term (``directions.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import inf, sqrt
from operator import add

import torch
from torch import Tensor

from ..attention_bound import Scores
from ..error_analysis import Rounded
from ..spread import sources, whole_multiplicity
from .weights import Attended, in_every_kernel, size_square

LIMIT = 5.3
KEY_LIMIT = 7.0
CANDIDATES = 3
"""The number of keys whose deviation is computed in full, chosen by a partial deviation."""
WORTH = 0.5  # of the limit: a partial deviation makes z larger, so smaller z need no more work
NEGLIGIBLE = 1e-60
"""Smaller weights are omitted from the direction of their key: they are zero for every test."""


@dataclass(frozen=True)
class Projected:
    """A projection of the error: N, its variance, and a bound on its possible bias."""

    sum: float = 0.0
    variance: float = 0.0
    fixed: float = 0.0

    def __add__(self, other: Projected) -> Projected:
        return Projected(
            self.sum + other.sum, self.variance + other.variance, self.fixed + other.fixed
        )

    def z(self, limit: float) -> float:
        """|N| in deviations; the bias counts with its share of the limit."""
        if self.sum == 0:
            return 0.0
        scale = sqrt(self.variance) + self.fixed / limit
        found = abs(self.sum) / scale if scale else inf
        return found if found == found else 0.0


class Adjoint:
    """The effect of a direction of the output on the scores and inputs of a call, in any kernel.

    ``weights`` are w, ``dots`` and ``stored`` its products with errors that all kernels share,
    ``square`` and ``size`` are Σ w² and Σ |w| of every row.
    """

    def __init__(self, x: Scores, direction: Tensor) -> None:
        p, v = x.weights, x.value.value
        self.direction = direction
        self.known: dict[object, tuple[float, float]] = {}
        values = direction @ v.mT
        self.middle = (x.output * direction).sum(-1, keepdim=True)
        self.weights = (values - self.middle).mul_(p)
        self.stored = _square(values.mul_(p))
        self.dots = abs(_dot(self.weights, x.dots))
        self.input_effects: dict[str, Tensor] = {}
        self.square = self.weights.square().sum(-1, keepdim=True)
        self.size = self.weights.abs().sum(-1, keepdim=True)

    def weighted_squares(self, what: object, squares: Tensor) -> tuple[float, float]:
        """Σ w² σ² and Σ |w| σ² for the squares of this name, of every score."""
        if what not in self.known:
            w = self.weights
            self.known[what] = _dot(w.square(), squares), _dot(w.abs(), squares)
        return self.known[what]

    def input_effect(self, name: str, x: Scores) -> Tensor:
        """The effect of a unit error of the query, key or value on the projection."""
        if name not in self.input_effects:
            w = self.weights
            if name == "value":
                found = x.weights.mT @ self.direction
            elif name == "query":
                found = x.scale * (w @ x.key.value)
            else:
                found = x.scale * (w.mT @ x.query.value)
            self.input_effects[name] = found
        return self.input_effects[name]


@dataclass(frozen=True, eq=False)
class CallErrors:
    """One call of attention at some rows: its errors, and the directions to test."""

    call: Attended
    error: Tensor
    directions: Mapping[str, Adjoint]
    alike: int = 1

    def projection_on(self, name: str) -> Projected:
        """The projection on a direction by its name."""
        return self.projection_along(self.directions[name])

    def projection_along(self, to: Adjoint) -> Projected:
        """The projection on one direction, with the deviation given by its adjoint."""
        call, g = self.call, to.direction
        variance, second_order = to.weighted_squares("every kernel", in_every_kernel(call.scores))
        variance += _dot(call.rows, to.square)
        second_order += _dot(call.rows, to.size)
        if call.stored_score:
            stored, also = to.weighted_squares("stored", size_square(call.scores))
            variance += call.stored_score * stored
            second_order += call.stored_score * also
        for name, more in (("keys", call.key_errors), ("queries", call.query_errors)):
            if more is not None:
                second_order += to.weighted_squares((name, call.read), more)[1]
        variance += _square(g * call.spacing) + _square(g * call.sums)
        variance += call.stored_weight**2 * to.stored
        variance += _square(to.middle * call.denominator)
        inputs = {
            "query": (call.query, call.own_query),
            "key": (call.key, call.own_key),
            "value": (call.value, _whole(call.value, call.value.sigma())),
        }
        sigmas, fixed = [], 0.0
        for name, (x, own) in inputs.items():
            if own is not None:
                sigmas.append(float((own * to.input_effect(name, call.scores)).norm()))
            if x.shared is not None:
                fixed += _dot(x.shared.expand(x.shape), to.input_effect(name, call.scores).abs())
        together = sum(sigmas) ** 2 if _have_common_sources(call) else sum(s * s for s in sigmas)
        fixed += call.scale_error * to.dots
        fixed += 1.5 * second_order
        if call.bias is not None:
            fixed += _dot(to.weights.abs(), call.bias)
        if call.flushed is not None:
            fixed += _dot(call.flushed, (g @ call.value.value.mT).abs_())
        return Projected(_dot(g, self.error), variance + together, fixed)

    def keys(self) -> tuple[Tensor, Tensor]:
        """N for every key, and a partial variance: storing, sums and its own weight."""
        call, e = self.call, self.error
        p, v, o = self.separable_weights, call.value.value, call.output
        lost = p.mT @ torch.cat((e, (o * e).sum(-1, keepdim=True)), -1)
        sums = (lost[..., :-1] * v).sum(-1) - lost[..., -1]
        tau = call.spacing.square() + call.sums.square()
        pp = call.scores.once("squares told apart", p.square)
        spread = pp.mT @ torch.cat((tau, o * tau, (o * o * tau).sum(-1, keepdim=True)), -1)
        first, second = spread[..., : v.shape[-1]], spread[..., v.shape[-1] : -1]
        variance = (first * v.square() - 2 * second * v).sum(-1) + spread[..., -1]
        x = call.scores
        own = x.once("own weights", lambda: _own_weights(pp, v, o))
        every = x.once("own errors", lambda: (own * in_every_kernel(x)).sum(-2))
        variance = variance.clamp(min=0) + every + (own.mT @ call.rows)[..., 0]
        if call.stored_score:
            more = x.once("own stored", lambda: (own * size_square(x)).sum(-2))
            variance = variance + call.stored_score * more
        if call.stored_weight:
            variance = variance + call.stored_weight**2 * x.once("own sum", lambda: own.sum(-2))
        return sums, self.alike * variance

    @property
    def separable_weights(self) -> Tensor:
        """The weights without those whose squares would underflow in float64."""
        p = self.call.weights
        return self.call.scores.once("told apart", lambda: torch.where(p < NEGLIGIBLE, 0.0, p))

    def key_direction(self, key: int) -> Adjoint:
        """The effect of losing one key."""
        x = self.call.scores
        lost = self.separable_weights[..., key, None] * (
            x.value.value[..., key, None, :] - x.output
        )
        return Adjoint(x, lost)


def _own_weights(squares: Tensor, v: Tensor, o: Tensor) -> Tensor:
    """The contribution of the squared error of one weight to the variance of its key."""
    square = v.square().sum(-1)[..., None, :] - 2 * (o @ v.mT)
    square = (square + (o * o).sum(-1, keepdim=True)).clamp(min=0)
    return square.mul_(squares).square_()


def _dot(a: Tensor, b: Tensor) -> float:
    """Σ a b over the entries of two arrays, of which one may be broadcast."""
    if a.shape != b.shape:
        return float((a * b).sum())
    return float(torch.dot(a.reshape(-1), b.reshape(-1)))


def _square(a: Tensor) -> float:
    return _dot(a, a)


def _whole(x: Rounded, errors: Tensor | None) -> Tensor | None:
    return None if errors is None else errors.expand(x.value.shape)


def _have_common_sources(call: Attended) -> bool:
    """Whether queries, keys or values have errors from a common source."""
    each = [sources(x) for x in (call.query, call.key, call.value)]
    return sum(map(len, each)) != len(frozenset[int]().union(*each))


def scores_moved(weights: Tensor, values: Tensor, change: Tensor) -> Tensor:
    """The effect of a change of the scores on the output: Σ_j p_j (ds_j − Σ p ds) v_j."""
    seen = torch.where(weights == 0, 0.0, change)
    return (weights * (seen - (weights * seen).sum(-1, keepdim=True))) @ values


@dataclass(frozen=True, eq=False)
class SideErrors:
    """Any side: its error, its directions, and the spread of its entries."""

    bound: Rounded
    error: Tensor
    directions: Mapping[str, Tensor]

    @cached_property
    def alike(self) -> int:
        """How often one number occurs anywhere, as a difference does along every diagonal."""
        return max(1, whole_multiplicity(self.bound.value))

    def projection_on(self, name: str) -> Projected:
        """The projection on a direction by its name."""
        return self.projection_along(self.directions[name])

    def projection_along(self, direction: Tensor) -> Projected:
        """The projection, adding independent errors in quadrature and the others linearly."""
        own, shared = _whole(self.bound, self.bound.sigma()), _whole(self.bound, self.bound.shared)
        variance = 0.0 if own is None else self.alike * float((own * direction).square().sum())
        fixed = 0.0 if shared is None else float((shared * direction.abs()).nan_to_num().sum())
        return Projected(float((self.error * direction).sum()), variance, fixed)


@dataclass
class Strongest:
    """The test closest to its limit."""

    ratio: float = -1.0
    told: str = ""
    applied: list[str] = field(default_factory=list)

    def add(self, name: str, z: float, limit: float, sign: str = "=") -> None:
        """Add a test; z may be only a bound."""
        if name not in self.applied:
            self.applied.append(name)
        if z / limit > self.ratio:
            self.ratio = z / limit
            self.told = f"|z| {sign} {z:.3g} along {name}, limit {limit:g}"


def strongest_test(sides: Mapping[str, Sequence[CallErrors | SideErrors]]) -> Strongest:
    """Run all tests of all sides, with the heads of each side combined."""
    found = Strongest()
    for side, heads in sides.items():
        names = dict.fromkeys(name for head in heads for name in head.directions)
        for name in names:
            parts = (head.projection_on(name) for head in heads if name in head.directions)
            z = reduce(add, parts, Projected()).z(LIMIT)
            found.add(f"{name} of the {side} side", z, LIMIT)
        seen = [head for head in heads if isinstance(head, CallErrors)]
        if seen and seen[0].call.value.ndim == 2:
            _keys(found, side, seen)
    return found


def _keys(found: Strongest, side: str, heads: Sequence[CallErrors]) -> None:
    """Test every key of one side, with the full deviation for those that stand out."""
    sums: Tensor | float = 0.0
    variance: Tensor | float = 0.0
    for head in heads:
        one, square = head.keys()
        sums, variance = sums + one, variance + square
    assert isinstance(sums, Tensor)
    assert isinstance(variance, Tensor)
    whole = (
        lambda key, head=head: head.projection_along(head.key_direction(key)) for head in heads
    )
    for key, z, sign in standing_out(sums, variance, list(whole)):
        found.add(f"key {key:,} of the {side} side", z, KEY_LIMIT, sign)


def standing_out(
    sums: Tensor,
    variance: Tensor,
    whole: Sequence[Callable[[int], Projected]],
    many: int = CANDIDATES,
) -> Iterator[tuple[int, float, str]]:
    """Yield the keys that stand out most in a partial variance, with z or a bound on it.

    ``whole`` are the full projections on the effect of losing a key, one for each head.
    """
    short = (sums.abs() / variance.sqrt()).nan_to_num(posinf=inf)
    for key in short.topk(min(many, len(short))).indices.tolist():
        z, sign = float(short[key]), "≤"
        if z > WORTH * KEY_LIMIT:
            z, sign = reduce(add, (one(key) for one in whole), Projected()).z(KEY_LIMIT), "="
        yield key, z, sign

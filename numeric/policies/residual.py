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

A side that is a call of attention, or rows of one, is tested inside the call, with exact weights
and exact derivatives of the scores.  Any other side is tested as a whole, in the directions in
which it moves with its frequencies and positions, by differences of its float64 reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from math import inf, sqrt
from operator import add
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free

from ..attention_bound import AttentionBound, Scores, scores_of
from ..implementations import Implementation
from ..implementations.scaled_dot_product import ROW_AXIS
from ..reading import RowReading
from ..rounded import Rounded
from ..sample import Sample
from ..spread import MOST_EQUAL, multiplicity, sources, whole_multiplicity
from ..torch_reading import BoundReading, TorchReading
from ..walk import Rows, Where, forgetting
from .weights import Attended, attended, eager_kernel, in_every_kernel, kernel_of, size_square

# The tests

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


# The directions of a side, found in its term

CPU = torch.device("cpu")
LARGEST = 1 << 24
"""The most weights in memory at once; if there are more, only the first rows are tested."""
BASE_STEP, POSITION_STEP = 1e-7, 1e-4


@dataclass(frozen=True)
class Call:
    """A call of attention with its requested rows."""

    term: Term
    rows: Rows | None

    @property
    def name(self) -> str:
        """The definition that is called."""
        return str(self.term.data[0])

    def arguments(self, reading: Any, first: int) -> list[Any] | None:
        """Queries at the first of the rows, keys, values, mask; None if shapes do not fit."""
        t, rows = self.term, self.rows
        if rows is not None and len(rows.places) > first:
            rows = Rows(rows.places[:first])
        found = []
        for arg, axis in zip(t.args[1:], ROW_AXIS[self.name], strict=True):
            where: list[Rows | None] = [None] * arg.ndim
            if axis is not None:
                if arg.ndim != t.ndim or arg.shape[axis] is not t.shape[-2]:
                    return None
                where[axis] = rows
            reading.kept_rows(arg, tuple(where))  # without its intermediates
            found.append(reading.array(arg, tuple(where)))
        return found if all(x.ndim == t.ndim for x in found[:3]) else None


def call_of(reading: RowReading, side: Term, where: Where) -> Call | None:
    """The call that a side is, or whose rows it contains in some order; None for anything else."""
    if side.ndim < 2 or any(w is not None for k, w in enumerate(where) if k != side.ndim - 2):
        return None
    t, rows = side, where[-2]
    while t.op in ("named", "gather"):
        if t.op == "named" and t.data[0] in ROW_AXIS:
            return Call(t, rows)
        if t.op == "gather":
            if t.data != t.ndim - 2:
                return None
            rows = reading.moved_rows(t.args[1], rows)
        t = t.args[0]
    return None


@dataclass
class Perturbed:
    """One sample in float64 with some givens slightly moved.

    A direction need not be exact, so all dtypes and implementations share it.
    """

    sample: Sample
    readings: dict[tuple[str, ...], TorchReading] = field(default_factory=dict)
    known: dict[tuple[object, ...], Tensor] = field(default_factory=dict)
    """The changes computed so far."""

    def names(self, kind: str, *terms: Term) -> tuple[str, ...]:
        """The givens of a kind that terms read."""
        read = {str(v.data[0]) for t in terms for v in free(t) if v.op == "var"}
        givens = self.sample.statement.givens
        return tuple(name for name in givens if name in read and givens[name].kind == kind)

    def reading(self, kind: str = "", names: tuple[str, ...] = ()) -> TorchReading:
        """The exact values, with the frequencies θ^(1 + h) or the positions p + h of some names."""
        key = (kind, *names)
        if key not in self.readings:
            values = {}
            for name, given in self.sample.in_dtype(torch.float64, CPU).items():
                wide = given
                if name in names and kind == "frequency":
                    wide = wide * torch.exp(BASE_STEP * wide.abs().clamp(min=1e-300).log())
                elif name in names:
                    wide = wide + POSITION_STEP
                values[name] = wide
            self.readings[key] = TorchReading(self.sample.sizes, values, torch.float64, CPU)
        return self.readings[key]

    def change(
        self,
        kind: str,
        names: tuple[str, ...],
        what: tuple[object, ...],
        read: Callable[[TorchReading], Any],
    ) -> Tensor:
        """The derivative of a result with respect to these givens; ``what`` is its cache key."""
        key = (kind, names, *what)
        if key not in self.known:
            step = BASE_STEP if kind == "frequency" else POSITION_STEP
            if what not in self.known:
                self.known[what] = read(self.reading())
            self.known[key] = (read(self.reading(kind, names)) - self.known[what]) / step
        return self.known[key]


def errors_of_side(
    reading: BoundReading,
    moved: Perturbed,
    side: Term,
    where: Where,
    computed: Tensor,
    bound: Rounded,
    implementation: Implementation,
) -> Sequence[CallErrors | SideErrors]:
    """The side with its error and its directions, in pieces; nothing if its spread is unknown."""
    if not bound.arithmetic.spreads or not bool(bound.value.isfinite().all()):
        return ()
    error = computed.detach().to(CPU, torch.float64) - bound.value
    inside = _calls_of_side(reading, moved, side, where, error, implementation)
    if inside:
        alike = _repeats([one.call.scores for one in inside])
        if alike <= MOST_EQUAL:
            return [replace(one, alike=alike) for one in inside]
    return (SideErrors(bound, error, _whole_side(moved, side, where, bound)),)


def _calls_of_side(
    reading: BoundReading,
    moved: Perturbed,
    side: Term,
    where: Where,
    error: Tensor,
    implementation: Implementation,
) -> list[CallErrors]:
    """The attention call that a side is, or whose rows it contains, in the pieces read."""
    found: list[CallErrors] = []
    begin = 0
    for part in reading.pieces(side, where):
        call = call_of(reading, side, part)
        how = False if call is None else _bound_of(call.name, implementation)
        if call is None or not how:
            return []
        first = max(1, LARGEST // max(1, reading.length(call.term.args[2].shape[-2]))) - begin
        if first <= 0:
            break
        arguments = call.arguments(reading, first)
        if arguments is None or not _fits(arguments):
            return []
        query, key, value, *mask = arguments
        kernel = eager_kernel(query, key) if how is True else kernel_of(how, query, key)
        here = attended(scores_of(query, key, value, *mask), query, kernel)
        end = begin + query.shape[-2]
        found.append(_errors_of_call(call, here, moved, error[..., begin:end, :], first))
        begin = end
    return found


def _repeats(every: Sequence[Scores]) -> int:
    """How often a weight or an entry of the output occurs; a weight of 1 is never rounded."""

    def count() -> int:
        weights = [torch.where(x.weights == 1, 0.0, x.weights) for x in every]
        return max(multiplicity(*weights), multiplicity(*(x.output for x in every)))

    return every[0].once("alike", count)


def _bound_of(name: str, implementation: Implementation) -> AttentionBound | bool:
    """The bound of the code of a definition; True if it is not replaced, False if unknown."""
    if name not in implementation.replaced:
        return True
    bound = implementation.bounds.get(name)
    compute = None if bound is None else bound.compute
    return compute if isinstance(compute, AttentionBound) else False


def _fits(arguments: list[Any]) -> bool:
    query, key, value = arguments[:3]
    if not all(isinstance(x, Rounded) for x in (query, key, value)):
        return False
    return bool(query.shape[:-2] == key.shape[:-2] == value.shape[:-2])


def _errors_of_call(
    call: Call, found: Attended, moved: Perturbed, error: Tensor, first: int
) -> CallErrors:
    x = found.scores

    def moved_by(change: Tensor) -> Adjoint:
        return Adjoint(x, scores_moved(x.weights, x.value.value, change))

    directions = {
        "scale": x.once("scale", lambda: moved_by(x.dots)),
        "normaliser": x.once("normaliser", lambda: Adjoint(x, x.output)),
    }
    query, key = call.term.args[1:3]
    rest = call.term.args[4:] if call.name == "biased_attention" else ()
    every = (("base", "frequency", True), ("query shift", "position", False))
    for label, kind, both in every:
        names = moved.names(kind, query, *((key,) if both else ()), *rest)
        if not names:
            continue

        def scores(reading: TorchReading, both: bool = both, rest: Any = rest) -> Tensor:
            with forgetting(reading.known_rows):
                arguments = call.arguments(reading, first)
            assert arguments is not None
            q = arguments[0]
            k = arguments[1] if both else x.key.value
            bias = arguments[3] if len(arguments) > 3 and rest else 0.0
            result: Tensor = q @ k.mT * x.scale + bias
            return result

        places = b"" if call.rows is None else call.rows.places.numpy().tobytes()
        change = moved.change(kind, names, (call.term, places, first, both), scores)
        directions[label] = x.once(label, partial(moved_by, change.nan_to_num()))
    return CallErrors(found, error, directions)


def _whole_side(moved: Perturbed, side: Term, where: Where, bound: Rounded) -> Mapping[str, Tensor]:
    directions = {"size": bound.value}
    for label, kind in (("base", "frequency"), ("position", "position")):
        for name in moved.names(kind, side):
            change = moved.change(
                kind, (name,), (side, where), lambda reading: reading.read(side, where)
            )
            if bool(change.isfinite().all()) and bool(change.any()):
                directions[f"{label} ({name})"] = change.expand(bound.value.shape)
    return directions

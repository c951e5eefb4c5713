"""The functions of arrays that carry how far their errors spread, and readings with them.

Two implementations differ in the bounds of the definitions that they replace.  A whole array
whose term holds none of these, say the rotated keys that attention reads, has the same value,
radius and spread in both, and is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free, postorder

from ..attention_bound import AttentionBound, softmax_bound
from ..profile import Profile
from ..rounded import Arithmetic, Rounded, Scalar
from ..sample import SmoothFunction
from ..torch_reading import BoundReading
from ..walk import ENTRIES, Replacement, Where
from .spread import Part, Spread, multiplicity, plus, radius_of, root, sources
from .weights import attention_spread, softmax_spread

# The functions of arrays that carry how far their errors spread, and a reading with them

class SpreadArithmetic(Arithmetic):
    """As :class:`Arithmetic`, on :class:`Spread` arrays; the deterministic radius is its own."""

    def spread(self, x: Rounded) -> Spread:
        """An array with a radius only: all of it is shared."""
        if isinstance(x, Spread):
            return x
        result = Spread(self, x.value, x.radius, x.unit)
        result.total, result.varied = x.total, multiplicity(x.value) == 1
        return result

    def rounded(
        self, value: Tensor, radius: Tensor | None, unit: float, *, exact: bool = False
    ) -> Spread:
        """A computed value, for whoever called to say how its errors spread."""
        return self.spread(super().rounded(value, radius, unit, exact=exact))

    def exact(self, value: Tensor, unit: float | None = None) -> Spread:
        """Stored numbers, which are what they are."""
        return self.spread(super().exact(value, unit))

    def number(self, c: Scalar, unit: float) -> Spread:
        """A literal number: what it is off is the same wherever it stands."""
        return self.spread(super().number(c, unit))

    def pair(self, a: Rounded, b: Any) -> tuple[Any, Any, float]:
        """Two operands and the unit of the result."""
        first, second, unit = super().pair(a, b)
        return self.spread(first), self.spread(second), unit

    def stored(self, x: Rounded, unit: float) -> Spread:
        """x written in a narrower dtype."""
        result: Any = super().stored(x, unit)
        fresh = result.value.abs() * unit + self.profile.least
        settled: Spread = result.settled([(self.spread(x), None)], fresh)
        return settled

    def _through(self, x: Rounded, result: Any, slope: Callable[[Spread, Tensor], Tensor]) -> Any:
        wide = self.spread(x)
        return wide.through(result, slope(wide, wide.likely()), self.profile.function_error)

    def exp(self, x: Rounded) -> Any:
        """exp, of slope exp(x)·(exp(r) − 1)/r at most."""
        return self._through(x, super().exp(x), lambda x, r: x.value.exp() * torch.where(
            r > 0, torch.expm1(r) / r.clamp(min=1e-300), 1.0
        ))  # fmt: skip

    def log(self, x: Rounded) -> Any:
        """log, of slope 1/(x − r) at most."""
        return self._through(x, super().log(x), lambda x, r: 1 / (x.value.abs() - r).clamp(min=0))

    def tanh(self, x: Rounded) -> Any:
        """tanh, of slope 1 − tanh² at most where it is nearest to 0."""
        return self._through(
            x, super().tanh(x),
            lambda x, r: 1 - torch.tanh((x.value.abs() - r).clamp(min=0)).square(),
        )  # fmt: skip

    def sqrt(self, x: Rounded) -> Any:
        """sqrt, of slope 1/(√x + √(x − r)) at most."""
        return self._through(x, super().sqrt(x), lambda x, r: 1 / (
            x.value.clamp(min=0).sqrt() + (x.value - r).clamp(min=0).sqrt()
        ))  # fmt: skip

    def cos(self, x: Rounded) -> Any:
        """cos, of slope |sin x| + r at most."""
        return self._turned(x, super().cos(x), torch.sin)

    def sin(self, x: Rounded) -> Any:
        """sin, of slope |cos x| + r at most."""
        return self._turned(x, super().sin(x), torch.cos)

    def _turned(self, x: Rounded, result: Any, slope: Callable[[Tensor], Tensor]) -> Any:
        """As the deterministic side, the function is off by units of 1, not of its value."""
        wide = self.spread(x)
        steep = (slope(wide.value).abs() + wide.likely()).clamp(max=1)
        fresh = result.value.abs() * result.unit + self.profile.least
        inner = torch.full_like(result.value, self.profile.function_error * self.inner(wide.unit))
        return result.settled([(wide, steep)], fresh + inner)

    def abs(self, x: Rounded) -> Any:
        """Exact; errors beside 0 are no longer of mean zero."""
        wide = self.spread(x)
        return self._kinked(self.spread(super().abs(x)), wide, wide.value.abs() > wide.likely())

    def maximum(self, x: Any, y: Any) -> Any:
        """The larger value; where it is not certain which, the error is that of either."""
        result = self.spread(super().maximum(x, y))
        a, b, _ = self.pair(x, y) if isinstance(x, Rounded) else self.pair(y, x)
        far = torch.maximum(a.likely(), b.likely())
        certain = (a.value - b.value).abs() > a.likely() + b.likely()
        if not b.parts and b.shared is None:
            return self._kinked(result, a, certain & (a.value > b.value), ~certain)
        result.shared, result.varied = far.expand(result.value.shape), False
        return result

    def _kinked(
        self, result: Spread, x: Spread, smooth: Tensor, near: Tensor | None = None
    ) -> Spread:
        rough = ~smooth if near is None else near
        far = torch.where(rough, x.likely(), 0.0)
        return result.settled(
            [(x, smooth.double())], None, also=far if bool(rough.any()) else None
        )

    def where(self, condition: Tensor, x: Any, y: Any) -> Any:
        """x or y, entry by entry, each with its own errors."""
        result = self.spread(super().where(condition, x, y))
        first = x if isinstance(x, Rounded) else y
        a, b = (
            self.spread(v) if isinstance(v, Rounded) else self.pair(first, v)[1] for v in (x, y)
        )
        taken = condition.double()
        return result.settled([(a, taken), (b, 1 - taken)])

    # shape

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> Any:
        """x repeated: its errors are the same wherever it stands."""
        if not isinstance(x, Rounded):
            return super().broadcast_to(x, shape)
        wide, size = self.spread(x), torch.Size(shape)
        again = size.numel() != wide.value.numel()
        return (wide.repeated if again else wide.moved)(lambda a: torch.broadcast_to(a, size))

    def take(self, x: Any, indices: Tensor, axis: int) -> Any:
        """The entries at some places of an axis; those taken twice have one error."""
        if not isinstance(x, Rounded):
            return super().take(x, indices, axis)
        wide = self.spread(x)
        again = len(torch.unique(indices)) < len(indices)
        return (wide.repeated if again else wide.moved)(lambda a: a.index_select(axis, indices))

    def _joined(self, parts: Sequence[Any], how: Callable[[list[Tensor]], Tensor]) -> Any:
        result = super()._joined(parts, how)
        if not isinstance(result, Rounded):
            return result
        arrays = [self.spread(part) for part in parts]
        met: dict[int, int] = {}
        for array in arrays:
            for source in sources(array):
                met[source] = met.get(source, 0) + 1
        private = [[p for p in a.parts if all(met[s] == 1 for s in p.sources)] for a in arrays]
        common = [[p for p in a.parts if p not in own] for a, own in zip(arrays, private,
                                                                      strict=True)]  # fmt: skip
        wide = self.spread(result)
        wide.parts, wide.shared = (), None
        if any(private):
            together = frozenset[int]().union(*(p.sources for own in private for p in own))
            sigma = how([_filled(root(own), a) for own, a in zip(private, arrays, strict=True)])
            single = all(len(own) < 2 and all(p.single for p in own) for own in private)
            wide.parts = (Part(together, object(), sigma, single),)
        far = [plus(radius_of(c), a.shared) for c, a in zip(common, arrays, strict=True)]
        if any(f is not None for f in far):
            wide.shared = how([_filled(f, a) for f, a in zip(far, arrays, strict=True)])
        wide.varied = all(a.varied for a in arrays) and multiplicity(wide.value) == 1
        return wide


def _filled(x: Tensor | None, like: Spread) -> Tensor:
    return torch.zeros_like(like.value) if x is None else x.expand(like.value.shape)


def probable(replaced: Replacement) -> Replacement:
    """The bound with the spread of its errors, where a formula for it is known.

    Any other bound is taken as it is: its deterministic radius is then shared.
    """
    compute = replaced.compute
    if isinstance(compute, AttentionBound):
        return Replacement(
            lambda *args: attention_spread(compute, *args),
            replaced.row_axis, replaced.whole, replaced.held,
        )  # fmt: skip
    if compute is softmax_bound:
        return Replacement(softmax_spread, replaced.row_axis, replaced.whole, replaced.held)
    return replaced


class SpreadReading(BoundReading):
    """A term in float64 with the deterministic radius and the spread of independent errors.

    ``values`` are those of the deterministic side: exact numbers, or numbers with a radius.
    """

    def __init__(
        self, sizes: Mapping[str, int], values: Mapping[str, Any], profile: Profile,
        replaced: Mapping[str, Replacement] | None = None, entries: int = ENTRIES,
    ) -> None:  # fmt: skip
        arithmetic = SpreadArithmetic(profile)
        values = {name: _spread_value(arithmetic, value) for name, value in values.items()}
        swapped = {name: probable(bound) for name, bound in (replaced or {}).items()}
        super().__init__(sizes, values, profile, swapped, entries)
        self.arithmetic = self.xp = arithmetic

    def product(self, left: Any, right: Any) -> Any:
        """The product with its errors."""
        arithmetic: Any = self.arithmetic
        return arithmetic.spread(left) @ arithmetic.spread(right)

    def rounded(self, value: Any) -> Rounded:
        """A result; a plain number has a radius only."""
        arithmetic: Any = self.arithmetic
        result: Rounded = arithmetic.spread(super().rounded(value))
        return result


def _spread_value(arithmetic: SpreadArithmetic, value: Any) -> Any:
    if isinstance(value, Rounded):
        return arithmetic.spread(value)
    if isinstance(value, SmoothFunction):
        convert = value.convert
        return SmoothFunction(
            value.name, value.core, value.out, value.traits, value.seed,
            lambda weights: arithmetic.spread(convert(weights)),
        )  # fmt: skip
    return value


# Readings of one sample with one profile share what no replaced definition has a part in

class _Sharing(BoundReading):
    plain: BoundReading | None = None
    """The reading of code that replaces nothing; None if this is it."""
    shares: dict[Term, bool]
    given: frozenset[str]

    def __call__(self, term: Term) -> Any:
        """The value of a whole term, from the plain reading where it is the same there."""
        if self.plain is None or term in self.known or not self.is_plain(term):
            return super().__call__(term)
        return self.plain(term)

    def rows(self, term: Term, where: Where) -> Any:
        """As it is; rows of an array that is known whole have the errors of the whole."""
        known = {} if self.plain is None or not any(where) else self.plain.known
        if term in known and self.is_plain(term):
            return self.select(known[term], where)
        return super().rows(term, where)

    def is_plain(self, term: Term) -> bool:
        """Whether a term reads givens alone (nothing that is bound), and nothing replaced."""
        if term not in self.shares:
            assert self.plain is not None
            own = self.replaced.keys() - self.plain.replaced.keys()
            self.shares[term] = all(
                v.op == "size" or (v.op == "var" and str(v.data[0]) in self.given)
                for v in free(term)
            ) and not any(t.op == "named" and t.data[0] in own for t in postorder(term))
        return self.shares[term]


class SharedBounds(_Sharing):
    """Values with radii, shared."""


class SharedSpreads(_Sharing, SpreadReading):
    """Values with radii and spreads, shared."""


def sharing(reading: SharedBounds | SharedSpreads, plain: BoundReading | None) -> BoundReading:
    """The reading, which asks ``plain`` for what is the same in both."""
    reading.plain, reading.shares, reading.given = plain, {}, frozenset(reading.values)
    if plain is not None:
        reading.arithmetic = reading.xp = plain.arithmetic
    return reading


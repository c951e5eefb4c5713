"""Values for the givens of a statement, by kind, from one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.givens import Given
from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term

from .arithmetic import Arithmetic
from .functions import SmoothFunction
from .profile import Profile, unit_roundoff, wide_dtype
from .scale import Scale, roles, tokens
from .torch_reading import TorchReading

__all__ = ["Sample", "Unsatisfiable", "draw"]

SPREAD = 1.75  # of token features: scores spread 3, so that a few keys stand out in every row
WIDE_KINDS = ("angle", "position", "frequency")
INDEX_KINDS = ("permutation", "injection", "index map")


class Unsatisfiable(ValueError):
    """An assumption of a statement has a form that no draw can be made to satisfy."""


@dataclass(frozen=True)
class Sample:
    """One draw: the sizes, and for each given its value in float64 (or its function)."""

    statement: Statement
    sizes: dict[str, int]
    values: dict[str, Any]
    seed: int

    def in_dtype(self, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
        """The values rounded to a dtype, as a program would be given them."""
        return {
            name: self._stored(name, value, dtype, device) for name, value in self.values.items()
        }

    def _stored(self, name: str, value: Any, dtype: torch.dtype, device: torch.device) -> Any:
        kind = self.statement.givens[name].kind
        if kind == "function":
            return self._function(name, lambda weights: weights.to(device, dtype))
        if not isinstance(value, Tensor):
            return value
        if not value.is_floating_point():
            return value.to(device)
        return value.to(self._dtype_of(kind, dtype, device)).to(device)

    def _dtype_of(self, kind: str, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        if kind == "orthogonal":
            return torch.float32 if device.type == "mps" else torch.float64
        return wide_dtype(dtype) if kind in WIDE_KINDS else dtype

    def with_radii(self, profile: Profile, device: torch.device) -> dict[str, Any]:
        """The same rounded values in float64, each exact, for the bound of a profile."""
        arithmetic, found = Arithmetic(profile), dict[str, Any]()
        for name, value in self.values.items():
            kind = self.statement.givens[name].kind
            if kind == "function":
                found[name] = self._function(
                    name, lambda weights: arithmetic.exact(weights.to(profile.dtype).double())
                )
            elif not isinstance(value, Tensor) or not value.is_floating_point():
                found[name] = value
            else:
                stored = self._dtype_of(kind, profile.dtype, device)
                unit = profile.wide if kind in WIDE_KINDS else unit_roundoff(stored)
                found[name] = arithmetic.exact(value.to(stored).double(), unit)
                if kind == "orthogonal":
                    found[name].radius = _distance_to_orthogonal(value.to(stored).double())
        return found

    def _function(self, name: str, convert: Callable[[Tensor], Any]) -> SmoothFunction:
        given = self.statement.givens[name]
        out = None if given.out is None else tuple(length_value(n, self.sizes) for n in given.out)
        return SmoothFunction(name, given.core, out, given.traits, self.seed, convert)


def _distance_to_orthogonal(g: Tensor) -> Tensor:
    """A bound on how far each entry is from that of an exactly orthogonal matrix near g."""
    defect = torch.linalg.matrix_norm(g.mT @ g - torch.eye(len(g), dtype=g.dtype))
    return torch.full_like(g, float(defect) + len(g) * 2.0**-53)


def draw(statement: Statement, sizes: Mapping[str, int], scale: Scale, seed: int) -> Sample:
    """Values for every given; the assumptions of the statement hold in them exactly."""
    generator = torch.Generator().manual_seed(seed)
    values: dict[str, Any] = {}
    for name, given in statement.givens.items():
        shape = tuple(length_value(n, dict(sizes)) for n in given.shape)
        below = 0 if given.below is None else length_value(given.below, dict(sizes))
        if given.kind not in _DRAWN_BY:
            raise TypeError(
                f"{name} is of kind {given.kind!r}; values are known for {', '.join(_DRAWN_BY)}"
            )
        values[name] = _DRAWN_BY[given.kind](_Ask(given, shape, below, scale, generator, values))
    sample = Sample(statement, dict(sizes), values, seed)
    for left, right in statement.assume:
        _satisfy(sample, left, right)
    return sample


@dataclass(frozen=True)
class _Ask:
    """One given to draw: its shape, the range of its indices, and what is drawn already."""

    given: Given
    shape: tuple[int, ...]
    below: int
    scale: Scale
    generator: torch.Generator
    drawn: Mapping[str, Any]

    def normal(self) -> Tensor:
        return torch.randn(self.shape, generator=self.generator, dtype=torch.float64)

    def uniform(self) -> Tensor:
        return torch.rand(self.shape, generator=self.generator, dtype=torch.float64)

    def integers(self, high: int) -> Tensor:
        return torch.randint(high, self.shape, generator=self.generator)

    def order(self) -> Tensor:
        return torch.randperm(self.below, generator=self.generator)


def _real(ask: _Ask) -> Tensor:
    return _ladder(2.0**-8, ask) if _per_head(ask.given) else ask.normal() * _spread(ask)


def _index(ask: _Ask) -> int:
    """An index not drawn before, while there is one."""
    taken = [v for v in ask.drawn.values() if isinstance(v, int)]
    order = ask.order().tolist()
    chosen: int = next((k for k in order if k not in taken), order[0])
    return chosen


def _injection(ask: _Ask) -> Tensor:
    order = ask.order()[: ask.shape[0]]
    still = ask.given.kind == "permutation" and bool((order == torch.arange(len(order))).all())
    return order.roll(1) if still else order


def _per_head(given: Given) -> bool:
    return len(given.shape) == 1 and roles(given.shape[0]) == {"heads"}


def _ladder(last: float, ask: _Ask) -> Tensor:
    """last^(b/B): frequencies 10000^(−b/B) of the sources, or one slope for each head."""
    steps = torch.arange(ask.shape[-1], dtype=torch.float64) / ask.shape[-1]
    return (last**steps).expand(ask.shape).clone()


def _spread(ask: _Ask) -> float:
    """Matrices between features keep the size of what they act on; tokens spread wider."""
    if any(tokens(n) for n in ask.given.shape):
        return SPREAD
    return 1 / math.sqrt(ask.shape[-2]) if len(ask.shape) > 1 else 1.0


def _mask(ask: _Ask) -> Tensor:
    """Truth values, most of them true, one at least in every row."""
    keep = ask.uniform() < 0.6
    if not ask.shape:
        return keep
    one = torch.randint(ask.shape[-1], (*ask.shape[:-1], 1), generator=ask.generator)
    return keep.scatter(-1, one, torch.ones_like(one, dtype=torch.bool))


_DRAWN_BY: dict[str, Callable[[_Ask], Any]] = {
    "real": _real,
    "angle": lambda ask: ask.uniform() * math.tau - math.pi,
    "position": lambda ask: ask.integers(ask.scale.positions).double(),
    "frequency": lambda ask: _ladder(1e-4, ask) if ask.shape else ask.uniform(),
    "positive": lambda ask: torch.exp(ask.normal() / 2),
    "boolean": _mask,
    "orthogonal": lambda ask: torch.linalg.qr(ask.normal()).Q,
    "index": _index,
    "permutation": _injection,
    "injection": _injection,
    "index map": lambda ask: ask.integers(ask.below),
    "function": lambda _: None,
}


def _satisfy(sample: Sample, left: Term, right: Term) -> None:
    """Write the value of one side into the row of a given that the other side names."""
    for target, source in ((left, right), (right, left)):
        spot: list[Any] = []
        row = target
        while row.op == "pick":
            axis: Any = row.data
            spot.insert(0, (axis, row.args[1]))
            row = row.args[0]
        if row.op == "var" and row.data[0] in sample.values:
            reading = TorchReading(
                sample.sizes, sample.in_dtype(torch.float64, torch.device("cpu")), torch.float64,
                torch.device("cpu"),
            )  # fmt: skip
            view = sample.values[row.data[0]]
            for axis, at in reversed(spot):
                view = view.select(axis, int(reading(at)))
            view.copy_(reading(source))
            return
    raise Unsatisfiable(
        f"cannot draw values with {left!r} = {right!r}: one side must be a given or a row of one"
    )

"""Draw values for the givens of a statement from one seed, and convert them to each dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any
from zlib import crc32

import torch
from array_api_compat import array_namespace
from torch import Tensor

from attnproof.symbolic.concrete import length_value
from attnproof.symbolic.givens import Given
from attnproof.symbolic.statement import Statement
from attnproof.symbolic.terms import Term, free

from .arithmetic import Arithmetic
from .devices import unit_roundoff, wide_dtype
from .distribution_changes import in_distribution
from .error_analysis import Rounded
from .hypotheses import (
    Formed,
    Unsatisfiable,
    broken,
    filled,
    given_and_place,
    satisfy_hypotheses,
    written,
)
from .profile import profile_of
from .scale import Scale, depths, roles, terms_of, tokens
from .torch_reading import BoundReading, TorchReading

# Random values by kind: real matrices, positions, permutations, depths, ..

FEATURES = 4


class SmoothFunction:
    """A fixed nonlinear function of arrays, over leading axes, with given symmetries.

    It reads the last ``core[k]`` axes of argument k and returns ``out`` as last axes (None: those
    of the first argument).  With the trait "equivariant" it is x_i + tanh(x_i W + mean_j tanh(x_j
    U)), with "invariant" a function of mean_j tanh(x_j U); without either, a function of rows
    weights each row by its place, so that it depends on their order.  Numbers enter through sines,
    which large positions do not saturate.  Weights follow from the name and the seed.
    """

    def __init__(
        self,
        name: str,
        core: tuple[int, ...],
        out: tuple[int, ...] | None,
        traits: tuple[str, ...],
        seed: int,
        convert: Callable[[Tensor], Any],
    ) -> None:
        self.name, self.core, self.out, self.traits = name, core, out, traits
        self.seed, self.convert = seed, convert
        self.last: dict[int, tuple[Rounded, Rounded]] = {}

    def weight(self, what: str, *shape: int, scale: float = 1.0) -> Any:
        """The array of weights for a name, seed and shape, always the same."""
        label = f"{self.name}|{what}|{shape}|{self.seed}"
        generator = torch.Generator().manual_seed(crc32(label.encode()))
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return self.convert(drawn * scale)

    def __call__(self, *values: Any) -> Any:
        arrays = [v if hasattr(v, "ndim") else self.convert(_number(v)) for v in values]
        first = next((a for a, c in zip(arrays, self.core, strict=True) if c), arrays[0])
        xp = array_namespace(first)
        hidden = None
        for k, (x, c) in enumerate(zip(arrays, self.core, strict=True)):
            read = self._read(xp, k, x, c)
            hidden = read if hidden is None else hidden + read
        hidden = xp.tanh(hidden)
        if self.out is None:
            return self._onto(xp, arrays[0], hidden)
        if not self.out:
            return hidden @ self.weight("out", FEATURES)
        total = prod(self.out)
        flat = hidden @ self.weight("out", FEATURES, total, scale=1 / sqrt(FEATURES))
        return flat if len(self.out) == 1 else xp.reshape(flat, (*flat.shape[:-1], *self.out))

    def _read(self, xp: Any, k: int, x: Any, core: int) -> Any:
        """Compute a few features of one argument."""
        if core == 0:
            weight = self.weight(f"in {k}", FEATURES, scale=0.5)
            sine = xp.sin(xp.expand_dims(x, axis=-1) * weight)
            return sine.to(weight.dtype) if isinstance(sine, Tensor) else sine
        width = x.shape[-1]
        weight = self.weight(f"in {k}", width, FEATURES, scale=1 / sqrt(width))
        rows = self._features(k, x, weight)
        for _ in range(core - 1):
            rows = self._pooled(xp, k, xp.tanh(rows))
        return rows

    def _features(self, k: int, x: Any, weight: Any) -> Any:
        """Multiply rows by weights, reusing the last product if the same input comes again."""
        if not isinstance(x, Rounded):
            return x @ weight
        last = self.last.get(k)
        if last is not None and last[0].equals_exactly(x):
            return last[1].with_fresh_errors()
        found = x @ weight
        self.last[k] = (x, found)
        return found

    def _pooled(self, xp: Any, k: int, rows: Any) -> Any:
        """The mean over rows, weighted by place unless the function must ignore their order."""
        if not self.traits:
            rows = rows * xp.expand_dims(self.weight(f"place {k}", rows.shape[-2]), axis=-1)
        return xp.sum(rows, axis=-2) * (1 / rows.shape[-2])

    def _onto(self, xp: Any, x: Any, hidden: Any) -> Any:
        """A result of the shape of the first argument: each row is changed by itself and by all."""
        core = self.core[0]
        if core == 0:
            return xp.tanh(x) + hidden @ self.weight("out", FEATURES)
        width = x.shape[-1]
        moved = hidden @ self.weight("out", FEATURES, width, scale=1 / sqrt(FEATURES))
        for axis in range(core - 1):
            moved = xp.expand_dims(moved, axis=-2 - axis)
        inner = x @ self.weight("row", width, width, scale=1 / sqrt(width))
        if core > 1 and not self.traits:
            inner = inner + xp.expand_dims(self.weight("row place", x.shape[-2]), axis=-1)
        return x + xp.tanh(inner + moved)


def _number(value: Any) -> Tensor:
    return torch.tensor(float(value), dtype=torch.float64)


LARGE = 1 << 20  # entries above which a given is not drawn if no term reads it
DEEPEST = 40  # exclusive bound on natural numbers that are the depth of a stack


def values_by_kind(
    statement: Statement, sizes: Mapping[str, int], scale: Scale, seed: int, *, simple: bool = False
) -> dict[str, Any]:
    """Draw a value for every given, from one seed, ignoring the hypotheses; None for functions.

    Tokens follow the distribution of the scale.  ``simple``: natural numbers are small, and half of
    the permutations are the identity.
    """
    generator = torch.Generator().manual_seed(seed)
    values: dict[str, Any] = {}
    counted, read = depths(statement), _read(statement)
    for name, given in statement.givens.items():
        shape, below = given.shape_and_range(sizes)
        if given.kind not in _DRAWN_BY:
            raise TypeError(
                f"{name} is of kind {given.kind!r}; values are known for {', '.join(_DRAWN_BY)}"
            )
        if name not in read and prod(shape) > LARGE:
            values[name] = None
            continue
        ask = _Ask(given, shape, below, scale, generator, values, name in counted, simple)
        values[name] = _DRAWN_BY[given.kind](ask)
    return in_distribution(statement, values, scale, seed)


def _read(statement: Statement) -> set[str]:
    """The names of the variables that some term reads; for others only the shape matters."""
    found = frozenset[Term]().union(*map(free, terms_of(statement)))
    return {str(v.data[0]) for v in found if v.op == "var"}


@dataclass(frozen=True)
class _Ask:
    """One given to draw: its shape, the range of its indices, and the values drawn before.

    ``counted``: it is the depth of a stack; ``simple``: small values suffice.
    """

    given: Given
    shape: tuple[int, ...]
    below: int
    scale: Scale
    generator: torch.Generator
    drawn: Mapping[str, Any]
    counted: bool
    simple: bool

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
    """An index not drawn before, if one is left."""
    taken = [v for v in ask.drawn.values() if isinstance(v, int)]
    order = ask.order().tolist()
    chosen: int = next((k for k in order if k not in taken), order[0])
    return chosen


def _natural(ask: _Ask) -> int:
    """A number of steps, or any number up to the largest position, if possible not drawn before."""
    if ask.simple:
        return int(ask.integers(6))
    taken = [v for v in ask.drawn.values() if isinstance(v, int)]
    deepest = max(3, min(DEEPEST, ask.scale.steps))
    span = range(2, deepest if ask.counted else ask.scale.positions)
    order = torch.randperm(len(span), generator=ask.generator)[: len(taken) + 1].tolist()
    chosen: int = next((n for k in order if (n := span[k]) not in taken), span[order[0]])
    return chosen


def _standard(ask: _Ask) -> Tensor:
    """(outcomes, numbers): orthonormal columns, orthogonal to the ones vector, times √outcomes."""
    outcomes, numbers = ask.shape
    if numbers >= outcomes:
        raise Unsatisfiable(f"{outcomes} outcomes are too few for {numbers} uncorrelated numbers")
    ones = torch.ones(outcomes, 1, dtype=torch.float64)
    q: Tensor = torch.linalg.qr(torch.cat((ones, ask.normal()), 1)).Q
    return q[:, 1:] * math.sqrt(outcomes)


def _injection(ask: _Ask) -> Tensor:
    if ask.simple and bool(ask.integers(2)[0]):
        return torch.arange(ask.shape[0])
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
    """The spread of entries: tokens spread widely, matrices between features preserve sizes."""
    if any(tokens(n) for n in ask.given.shape):
        return ask.scale.spread
    return 1 / math.sqrt(ask.shape[-2]) if len(ask.shape) > 1 else 1.0


def _mask(ask: _Ask) -> Tensor:
    """Truth values, mostly true, with at least one true in every row."""
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
    "nonnegative": lambda ask: ask.normal().abs(),
    "natural": _natural,
    "standard": _standard,
    "boolean": _mask,
    "orthogonal": lambda ask: torch.linalg.qr(ask.normal()).Q,
    "index": _index,
    "permutation": _injection,
    "injection": _injection,
    "index map": lambda ask: ask.integers(ask.below),
    "function": lambda _: None,
}


# Samples that satisfy the hypotheses, and their values in each dtype

WIDE_KINDS = ("angle", "position", "frequency")
UNROUNDED_KINDS = ("orthogonal", "standard")  # in float64: rounding would destroy the property
CPU = torch.device("cpu")
DRAWS = 12  # attempts to satisfy hypotheses by chance
SMALL_DRAWS = 400  # attempts for hypotheses about small integers and index maps


@dataclass(frozen=True)
class Sample:
    """One draw: the sizes, and for each given its value in float64 (or its function).

    ``formed`` givens are computed from the others after rounding; ``unrounded`` ones are not
    rounded, and the number bounds their distance from a value that satisfies a hypothesis exactly.
    """

    statement: Statement
    sizes: dict[str, int]
    values: dict[str, Any]
    seed: int
    formed: tuple[Formed, ...] = ()
    unrounded: Mapping[str, float] = field(default_factory=dict)

    def in_dtype(self, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
        """The values rounded to a dtype, as a program would receive them."""
        stored = {
            name: self._stored(name, value, dtype, device) for name, value in self.values.items()
        } | self.functions(lambda weights: weights.to(device, dtype))
        for form in self.formed:
            exact = {k: _wide(v) for k, v in stored.items()} | self.functions()
            reading = TorchReading(self.sizes, exact, torch.float64, CPU)
            name, _ = given_and_place(form.target)
            stored[name] = filled(form, stored[name], reading)
        return stored

    def breaks(self, dtype: torch.dtype, device: torch.device) -> str | None:
        """Name a hypothesis that fails once the values are rounded to a dtype, if any."""
        if not self.statement.laws:
            return None
        stored = {k: _wide(v) for k, v in self.in_dtype(dtype, device).items()}
        inequalities = Statement(self.statement.givens, {}, (), self.statement.laws)
        return broken(inequalities, self.sizes, stored | self.functions())

    def functions(
        self, convert: Callable[[Tensor], Any] = lambda weights: weights
    ) -> dict[str, SmoothFunction]:
        """The functions among the givens; ``convert`` is applied to their float64 weights."""
        found = {}
        for name, given in self.statement.givens.items():
            if given.kind == "function":
                lengths = given.out
                out = (
                    None if lengths is None else tuple(length_value(n, self.sizes) for n in lengths)
                )
                found[name] = SmoothFunction(
                    name, given.core, out, given.traits, self.seed, convert
                )
        return found

    def _stored(self, name: str, value: Any, dtype: torch.dtype, device: torch.device) -> Any:
        if not isinstance(value, Tensor):
            return value
        if not value.is_floating_point():
            return value.to(device)
        return value.to(self._dtype_of(name, dtype, device)).to(device)

    def _dtype_of(self, name: str, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        kind = self.statement.givens[name].kind
        if kind in UNROUNDED_KINDS or name in self.unrounded:
            return torch.float32 if device.type == "mps" else torch.float64
        return wide_dtype(dtype) if kind in WIDE_KINDS else dtype

    def with_radii(self, arithmetic: Arithmetic, device: torch.device) -> dict[str, Any]:
        """The same rounded values in float64, each exact, for the bound of a profile."""
        profile = arithmetic.profile
        found = dict(self.values) | self.functions(
            lambda weights: arithmetic.exact(weights.to(profile.dtype).double())
        )
        for name, value in self.values.items():
            kind = self.statement.givens[name].kind
            if not isinstance(value, Tensor) or not value.is_floating_point():
                continue
            stored = self._dtype_of(name, profile.dtype, device)
            unit = profile.wide if kind in WIDE_KINDS else unit_roundoff(stored)
            exact, far = value.to(stored).double(), self.unrounded.get(name)
            if kind in UNROUNDED_KINDS:
                far = distance(kind, exact)
            radius = None if far is None else torch.full_like(value, far)
            found[name] = Rounded(arithmetic, exact, radius, unit)
        for form in self.formed:
            name, _ = given_and_place(form.target)
            stored = self._dtype_of(name, profile.dtype, device)
            found[name] = self._formed(form, found, stored)
        return found

    def _formed(self, form: Formed, found: dict[str, Any], stored: torch.dtype) -> Any:
        """The exact value of a given formed from others, and the radius of storing it."""
        arithmetic = Arithmetic(profile_of(torch.float64, CPU))
        exact = {
            k: Rounded(arithmetic, v.value, v.radius) if isinstance(v, Rounded) else v
            for k, v in found.items()
        } | self.functions(arithmetic.exact)
        reading = BoundReading(self.sizes, exact, arithmetic)
        source, old = reading.rounded(reading(form.source)), found[given_and_place(form.target)[0]]
        value, error = source.value, source.error()
        if not isinstance(old, Rounded):  # a mask or an index map
            return written(old, value, form.target, reading)
        if form.inverse:
            inverse = torch.linalg.inv(value)
            defect = value @ inverse - torch.eye(len(value), dtype=value.dtype)
            error = torch.linalg.matrix_norm(inverse) * torch.linalg.matrix_norm(defect)
            value = inverse
        error = error + storing(value, error, stored)
        new = (
            written(old.value, value, form.target, reading),
            written(old.error(), error, form.target, reading),
        )
        return Rounded(old.arithmetic, *new, old.unit)


def storing(value: Tensor, error: Tensor, dtype: torch.dtype) -> Tensor:
    """The error of storing a value computed with this error; an exact value may fit the dtype."""
    own = unit_roundoff(dtype) * (value.abs() + error)
    return torch.where(error == 0, (value.to(dtype).double() - value).abs(), own)


def _wide(value: Any) -> Any:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(CPU, torch.float64) if floating else value


def distance(kind: str, stored: Tensor) -> float:
    """A bound on the distance of entries from a nearby exactly orthogonal (standard) matrix."""
    columns = stored / math.sqrt(len(stored)) if kind == "standard" else stored
    one = torch.eye(columns.shape[1], dtype=columns.dtype)
    defect = float(torch.linalg.matrix_norm(columns.mT @ columns - one))
    if kind == "standard":
        defect = (defect + float(columns.sum(0).norm())) * math.sqrt(len(stored))
    return defect + len(stored) * 2.0**-53


def draw(statement: Statement, sizes: Mapping[str, int], scale: Scale, seed: int) -> Sample:
    """Draw values for every given that satisfy the hypotheses of the statement.

    Raises :class:`Unsatisfiable` with the hypothesis for which none are known.
    """
    why: Unsatisfiable | None = None
    for k in range(SMALL_DRAWS):
        if why is not None and (why.hopeless or (k >= DRAWS and not why.discrete)):
            break
        simple = why is not None and why.discrete
        values = values_by_kind(statement, sizes, scale, seed + 7_919 * k, simple=simple)
        if not statement.assume and not statement.laws:
            return Sample(statement, dict(sizes), values, seed)
        functions = Sample(statement, dict(sizes), values, seed).functions()
        try:
            found = satisfy_hypotheses(statement, dict(sizes), values | functions)
        except Unsatisfiable as error:
            why = error
            continue
        kept = {name: None if name in functions else v for name, v in found.values.items()}
        return Sample(statement, dict(sizes), kept, seed, found.formed, found.unrounded)
    assert why is not None
    raise why

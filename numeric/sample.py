"""Values for the givens of a statement from one seed, and what they are in each dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.scalars import length_value
from attnproof.symbolic.statement import Statement

from .arithmetic import Arithmetic
from .hypotheses import Formed, filled, met, spot_of, written
from .hypotheses_hold import Unsatisfiable, broken
from .kinds import SmoothFunction, values_by_kind
from .profile import Profile, profile_of, unit_roundoff, wide_dtype
from .rounded import Rounded
from .scale import Scale
from .torch_reading import BoundReading, TorchReading

__all__ = ["Sample", "distance", "draw", "storing"]

WIDE_KINDS = ("angle", "position", "frequency")
KEPT_KINDS = ("orthogonal", "standard")  # in float64: rounded, they would be so no more
CPU = torch.device("cpu")
DRAWS = 12  # until the hypotheses that nothing was done for hold
SMALL_DRAWS = 400  # of hypotheses about small whole numbers and maps


@dataclass(frozen=True)
class Sample:
    """One draw: the sizes, and for each given its value in float64 (or its function).

    ``formed`` givens are computed from the others after rounding; ``kept`` are not rounded, and
    may be so far from what satisfies a hypothesis exactly.
    """

    statement: Statement
    sizes: dict[str, int]
    values: dict[str, Any]
    seed: int
    formed: tuple[Formed, ...] = ()
    kept: Mapping[str, float] = field(default_factory=dict)

    def in_dtype(self, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
        """The values rounded to a dtype, as a program would be given them."""
        stored = {
            name: self._stored(name, value, dtype, device) for name, value in self.values.items()
        }
        for form in self.formed:
            exact = {k: _wide(v) for k, v in stored.items() if not isinstance(v, SmoothFunction)}
            exact |= self.functions(torch.float64, CPU)
            reading = TorchReading(self.sizes, exact, torch.float64, CPU)
            name, _ = spot_of(form.target)
            stored[name] = filled(form, stored[name], reading)
        return stored

    def breaks(self, dtype: torch.dtype, device: torch.device) -> str | None:
        """A hypothesis that no longer holds once the values are rounded to a dtype, in words."""
        if not self.statement.laws:
            return None
        stored = {k: _wide(v) for k, v in self.in_dtype(dtype, device).items()}
        inequalities = Statement(self.statement.givens, {}, (), self.statement.laws)
        return broken(inequalities, self.sizes, stored | self.functions(torch.float64, CPU))

    def functions(self, dtype: torch.dtype, device: torch.device) -> dict[str, SmoothFunction]:
        """The functions among the givens, with weights in a dtype."""
        return {
            name: self._function(name, lambda weights: weights.to(device, dtype))
            for name, given in self.statement.givens.items()
            if given.kind == "function"
        }

    def _stored(self, name: str, value: Any, dtype: torch.dtype, device: torch.device) -> Any:
        kind = self.statement.givens[name].kind
        if kind == "function":
            return self._function(name, lambda weights: weights.to(device, dtype))
        if not isinstance(value, Tensor):
            return value
        if not value.is_floating_point():
            return value.to(device)
        return value.to(self._dtype_of(name, dtype, device)).to(device)

    def _dtype_of(self, name: str, dtype: torch.dtype, device: torch.device) -> torch.dtype:
        kind = self.statement.givens[name].kind
        if kind in KEPT_KINDS or name in self.kept:
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
                stored = self._dtype_of(name, profile.dtype, device)
                unit = profile.wide if kind in WIDE_KINDS else unit_roundoff(stored)
                found[name] = arithmetic.exact(value.to(stored).double(), unit)
                far = self.kept.get(name)
                if kind in KEPT_KINDS:
                    far = distance(kind, value.to(stored).double())
                if far is not None:
                    found[name].radius = torch.full_like(value, far)
        for form in self.formed:
            name, _ = spot_of(form.target)
            stored = self._dtype_of(name, profile.dtype, device)
            found[name] = self._formed(form, found, stored)
        return found

    def _formed(self, form: Formed, found: dict[str, Any], stored: torch.dtype) -> Any:
        """The exact value of what is formed from other givens, and the radius of storing it."""
        profile = profile_of(torch.float64, CPU)
        arithmetic = Arithmetic(profile)
        exact = {
            k: Rounded(arithmetic, v.value, v.radius) if isinstance(v, Rounded) else v
            for k, v in found.items()
        }
        for name in self.functions(torch.float64, CPU):
            exact[name] = self._function(
                name, lambda weights: arithmetic.exact(weights.to(profile.dtype).double())
            )
        reading = BoundReading(self.sizes, exact, profile)
        source, old = reading.rounded(reading(form.source)), found[spot_of(form.target)[0]]
        value, error = source.value, source.error()
        if not isinstance(old, Rounded):  # a mask or a map of indices
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

    def _function(self, name: str, convert: Callable[[Tensor], Any]) -> SmoothFunction:
        given = self.statement.givens[name]
        out = None if given.out is None else tuple(length_value(n, self.sizes) for n in given.out)
        return SmoothFunction(name, given.core, out, given.traits, self.seed, convert)


def storing(value: Tensor, error: Tensor, dtype: torch.dtype) -> Tensor:
    """What storing a value computed with this error adds to it: what is exact may fit the dtype."""
    own = unit_roundoff(dtype) * (value.abs() + error)
    return torch.where(error == 0, (value.to(dtype).double() - value).abs(), own)


def _wide(value: Any) -> Any:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(CPU, torch.float64) if floating else value


def distance(kind: str, stored: Tensor) -> float:
    """A bound on how far an entry is from that of an exactly orthogonal (standard) matrix near."""
    columns = stored / math.sqrt(len(stored)) if kind == "standard" else stored
    one = torch.eye(columns.shape[1], dtype=columns.dtype)
    defect = float(torch.linalg.matrix_norm(columns.mT @ columns - one))
    if kind == "standard":
        defect = (defect + float(columns.sum(0).norm())) * math.sqrt(len(stored))
    return defect + len(stored) * 2.0**-53


def draw(statement: Statement, sizes: Mapping[str, int], scale: Scale, seed: int) -> Sample:
    """Values for every given that satisfy the hypotheses of the statement.

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
        functions = Sample(statement, dict(sizes), values, seed).functions(torch.float64, CPU)
        try:
            found = met(statement, dict(sizes), values | functions)
        except Unsatisfiable as error:
            why = error
            continue
        kept = {name: None if name in functions else v for name, v in found.values.items()}
        return Sample(statement, dict(sizes), kept, seed, found.formed, found.kept)
    assert why is not None
    raise why

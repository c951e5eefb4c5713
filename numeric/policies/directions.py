"""Which directions a side has, read off its term.

A side that is a call of attention, or rows of one, is looked at inside the call: exact weights,
exact derivatives of the scores.  Any other side is looked at as a whole, in the directions in
which it moves with its frequencies and positions, by differences of its float64 reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free

from ..attention_bound import AttentionBound
from ..implementations import Implementation
from ..implementations.scaled_dot_product import ROW_AXIS
from ..rounded import Rounded
from ..sample import Sample
from ..torch_reading import BoundReading, TorchReading
from ..walk import Rows, RowWalk, Where
from .residual import Generic, Seen, scores_moved
from .spread import ALIKE, Spread, multiplicity
from .weights import Attended, attended, eager_kernel, kernel_of

CPU = torch.device("cpu")
LARGEST = 1 << 24
"""The most weights that are held at once; of more, the first rows are looked at."""
BASE_STEP, POSITION_STEP = 1e-7, 1e-4


@dataclass(frozen=True)
class Call:
    """A call of attention with the rows of it that are asked for."""

    term: Term
    rows: Rows | None

    @property
    def name(self) -> str:
        """The definition that is called."""
        return str(self.term.data[0])

    def arguments(self, reading: Any, first: int) -> list[Any] | None:
        """Queries at the first of the rows, keys, values, mask; None if they do not fit."""
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
            found.append(reading.array(arg, tuple(where)))
        return found if all(x.ndim == t.ndim for x in found[:3]) else None


def call_of(reading: RowWalk, side: Term, where: Where) -> Call | None:
    """The call that a side is, or whose rows it is in some order; None if it is more."""
    if side.ndim < 2 or any(w is not None for k, w in enumerate(where) if k != side.ndim - 2):
        return None
    t, rows = side, where[-2]
    while t.op in ("named", "gather"):
        if t.op == "named" and t.data[0] in ROW_AXIS:
            return Call(t, rows)
        if t.op == "gather":
            if t.data != t.ndim - 2:
                return None
            places = reading(t.args[1])
            rows = Rows(places if rows is None else places[rows.places.to(places.device)])
        t = t.args[0]
    return None


@dataclass
class Moved:
    """One sample in float64 with some givens moved a little.

    A direction need not be exact, so all dtypes and implementations share it.
    """

    sample: Sample
    readings: dict[tuple[str, ...], TorchReading] = field(default_factory=dict)
    known: dict[tuple[object, ...], Tensor] = field(default_factory=dict)
    """The changes that were computed so far."""

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
        self, kind: str, names: tuple[str, ...], what: tuple[object, ...],
        read: Callable[[TorchReading], Any],
    ) -> Tensor:  # fmt: skip
        """The derivative of what is read by the givens of these names; ``what`` names that."""
        key = (kind, names, *what)
        if key not in self.known:
            step = BASE_STEP if kind == "frequency" else POSITION_STEP
            if what not in self.known:
                self.known[what] = read(self.reading())
            self.known[key] = (read(self.reading(kind, names)) - self.known[what]) / step
        return self.known[key]


def seen(
    reading: BoundReading, moved: Moved, side: Term, where: Where, computed: Tensor,
    bound: Rounded, implementation: Implementation,
) -> Seen | Generic | None:  # fmt: skip
    """The side with its error and its directions; None if nothing is known of its spread."""
    if not isinstance(bound, Spread) or not bool(bound.value.isfinite().all()):
        return None
    error = computed.detach().to(CPU, torch.float64) - bound.value
    call = call_of(reading, side, where)
    how = False if call is None else _known(call.name, implementation)
    if call is not None and how:
        keys = reading.length(call.term.args[2].shape[-2])
        first = max(1, LARGEST // max(1, keys))
        found = call.arguments(reading, first)
        if found is not None and _fits(found):
            query, key = found[:2]
            kernel = eager_kernel(query, key) if how is True else kernel_of(how, query, key)
            inside = attended(*found, kernel=kernel)
            if (alike := _alike(inside)) <= ALIKE:
                looked = _inside(call, inside, moved, error[..., :first, :], first)
                return replace(looked, alike=alike)
    return Generic(bound, error, _whole_side(moved, side, where, bound))


def _alike(found: Attended) -> int:
    """How often a weight or an entry of the output occurs; a weight of 1 is never rounded."""
    weights = torch.where(found.weights == 1, 0.0, found.weights)
    return max(multiplicity(weights), multiplicity(found.output))


def _known(name: str, implementation: Implementation) -> AttentionBound | bool:
    """The bound of the code of a definition; whether it runs by itself, or is not known."""
    if name not in implementation.replaced:
        return True
    bound = implementation.bounds.get(name)
    compute = None if bound is None else bound.compute
    return compute if isinstance(compute, AttentionBound) else False


def _fits(arguments: list[Any]) -> bool:
    query, key, value = arguments[:3]
    if not all(isinstance(x, Spread) for x in (query, key, value)):
        return False
    return bool(query.shape[:-2] == key.shape[:-2] == value.shape[:-2])


def _inside(call: Call, found: Attended, moved: Moved, error: Tensor, first: int) -> Seen:
    p, v = found.weights, found.value.value
    directions = {
        "scale": scores_moved(p, v, found.dots),
        "normaliser": found.output,
    }
    query, key = call.term.args[1:3]
    rest = call.term.args[4:] if call.name == "biased_attention" else ()
    every = (("base", "frequency", True), ("query shift", "position", False))
    for label, kind, both in every:
        names = moved.names(kind, query, *((key,) if both else ()), *rest)
        if not names:
            continue

        def scores(reading: TorchReading, both: bool = both, rest: Any = rest) -> Tensor:
            arguments = call.arguments(reading, first)
            assert arguments is not None
            q = arguments[0]
            k = arguments[1] if both else found.key.value
            bias = arguments[3] if len(arguments) > 3 and rest else 0.0
            result: Tensor = q @ k.mT * found.scale + bias
            return result

        places = b"" if call.rows is None else call.rows.places.numpy().tobytes()
        change = moved.change(kind, names, (call.term, places, first, both), scores)
        directions[label] = scores_moved(p, v, change.nan_to_num())
    return Seen(found, error, directions)


def _whole_side(moved: Moved, side: Term, where: Where, bound: Spread) -> Mapping[str, Tensor]:
    directions = {"size": bound.value}
    for label, kind in (("base", "frequency"), ("position", "position")):
        for name in moved.names(kind, side):
            change = moved.change(
                kind, (name,), (side, where), lambda reading: reading.read(side, where)
            )
            if bool(change.isfinite().all()) and bool(change.any()):
                directions[f"{label} ({name})"] = change.expand(bound.value.shape)
    return directions

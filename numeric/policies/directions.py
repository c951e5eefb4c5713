"""The errors of a side, and the directions in which residual tests project them, from its term.

A side that is a call of attention, or rows of one, is tested inside the call, with exact weights
and exact derivatives of the scores.  Any other side is tested as a whole, in the directions in
which it moves with its frequencies and positions, by differences of its float64 reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attnproof.symbolic.terms import Term, free

from ..attention_bound import AttentionBound, Scores, scores_of
from ..error_analysis import Rounded
from ..implementations import Implementation
from ..implementations.scaled_dot_product import ROW_AXIS
from ..reading import RowReading
from ..row_selection import Rows, Where, forgetting
from ..sample import CPU, Sample
from ..spread import MOST_EQUAL, multiplicity
from ..torch_reading import BoundReading, TorchReading
from .residual import Adjoint, CallErrors, SideErrors, scores_moved
from .weights import Attended, attended, eager_kernel, kernel_of

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

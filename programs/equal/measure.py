"""Run both programs on the same numbers, and find where they differ by more than rounding explains.

What rounding may do is derived for each program separately (:mod:`..response`): from the number of
operations that round, the number of summands, and how far the result moves if the inputs move by
one unit in the last place.  Two programs may differ by the sum of both allowances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from ...numeric.devices import name_of
from ..execution.calling import arranged
from ..execution.draw import Draw
from ..execution.response import (
    CANCELLED,
    PERTURBATIONS,
    NotDeterministic,
    allowance,
    differences,
    moved_inside,
    place_of_largest,
)
from ..execution.running import in_a_line
from ..finding import Counterexample
from ..prove.call_variants import (
    OF_ONE_SHAPE,
    SHARING,
    WAY_TEXTS,
    call_in,
    inputs_for,
    random_weights,
    trainable,
    zeroed,
)
from ..prove.running import counterexample_of, shrunk
from .effects import on_copies
from .inputs import (
    BINARY_MASKS,
    CONSTANT_INPUTS,
    LARGE_INPUTS,
    TOKENS,
    drawn,
    lengths_tried,
    scaled,
    unusual_inputs,
    with_first_key_hidden,
)
from .pair import ProgramPair
from .sides import LENGTH

FORMATS = (torch.float64, torch.float32)
JUMP = 1e-6  # relative to the result; less than this may be rounding
MAX_ZEROED = 12  # weights that are set to 0 one at a time


@dataclass
class NumericComparison:
    """What was observed: the largest difference, its bound, and where the programs differ.

    ``how``: the way of calling there, or the choice of weights, if not ordinary.  ``tried``: the
    number of calls that were compared, ``longest``: their largest length, ``reached``: that of each
    letter, ``formats``: their dtypes.  ``raises``: lengths at which only one program raises, and
    the error.  ``overflows``: where results are non-finite at different entries on large inputs,
    which does not count as a difference.  ``dtype_remarks``: for inputs of each format, the dtypes
    of the results, if they differ.  ``cancels``: a difference was met that only the observed effect
    of rounding explains, since numbers cancel.  ``jumps``: an input at which the two differ, though
    not beside it.
    """

    error: float = 0.0
    bound: float = 0.0
    counterexample: Counterexample | None = None
    at: dict[str, int] = field(default_factory=dict)
    dtype: str = ""
    how: str = ""
    result: int = 0
    tried: int = 0
    longest: int = 0
    reached: dict[str, int] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    raises: str = ""
    overflows: str = ""
    dtype_remarks: dict[str, str] = field(default_factory=dict)
    unsteady: str = ""
    cancels: bool = False
    jumps: str = ""


@dataclass(frozen=True)
class ComparedResult:
    """One result of both programs, on arrays by name, as needed for shrinking a witness.

    ``way``: how both are called.  ``last``: an axis of which only the last place is compared.
    """

    pair: ProgramPair
    k: int
    draw: Draw
    way: str = "plain"
    last: int | None = None

    def sides(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Return both results; None if one program raises."""
        found = []
        for side in ("first", "second"):
            try:
                with torch.no_grad():
                    found.append(self._result(side, self._cast(values)).double())
            except Exception:  # noqa: BLE001 (the code may raise anything)
                return None
        return found[0], found[1]

    def gap(
        self, values: Mapping[str, Tensor], *, roughly: bool = False
    ) -> tuple[float, float, tuple[int, ...]] | None:
        """Return the largest difference, what rounding allows, and its place; None on errors."""
        both = self.sides(values)
        if both is None or not both[0].numel():
            return None
        if both[0].shape != both[1].shape:
            return math.inf, 0.0, ()
        off = entry_differences(*both)
        most = float(off.max())
        allowed = self.allowed(values, most, roughly=roughly)[0] if most else 0.0
        return most, allowed, place_of_largest(off)

    def allowed(
        self, values: Mapping[str, Tensor], off: float, *, roughly: bool = False
    ) -> tuple[float, bool]:
        """Return how far rounding may separate results that are ``off`` apart.

        If ``off`` exceeds the derived allowance, the effect of each operation's own rounding is
        observed, because numbers may cancel.  The second result tells whether only that explains
        the difference: it is observed, not derived.  ``roughly``: the response to other inputs and
        the effect of cancellation are left out, which allows less and takes one call of each side.
        """
        given = self._cast(values)
        moved = [n for n, x in enumerate(given) if x.is_floating_point()]
        total = inside = 0.0
        for side in ("first", "second"):

            def call(*floats: Tensor, side: str = side) -> Tensor:
                placed = list(given)
                for n, x in zip(moved, floats, strict=True):
                    placed[n] = x
                return self._result(side, placed)

            with torch.no_grad():
                floats = [given[n] for n in moved]
                moves = 0 if roughly else PERTURBATIONS
                try:
                    total += allowance(call, *floats, draw=self.draw, moved=moves).value / 2
                except NotDeterministic as error:
                    raise NotDeterministic(error.gap, self.pair.side(side).program.name) from None
                if off > total and math.isfinite(off) and not roughly:
                    inside += CANCELLED * moved_inside(call, *floats, draw=self.draw)
        return max(total, inside), total < off <= inside

    def _result(self, side: str, given: Sequence[Tensor]) -> Tensor:
        return self.compared(run_in(self.way, self.pair, side, given)[self.k])

    def compared(self, x: Tensor) -> Tensor:
        """Return a result with 0 where it is not compared, and complex numbers as pairs."""
        x = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
        if self.last is None:
            return x
        places = torch.arange(x.shape[self.last]).reshape(-1, *[1] * (x.ndim - 1 - self.last))
        return torch.where(places == len(places) - 1, x, torch.zeros_like(x))

    def _cast(self, values: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        return tuple(x.to(self.draw.dtype) if x.is_floating_point() else x for x in values.values())


def run_in(way: str, both: ProgramPair, side: str, values: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of one program, called in some way; it may write into its inputs."""
    if way == "plain":
        return both.results_of_copies(side, values)
    given = inputs_for(way, values, batch_axes(both))
    return list(call_in(way, lambda *own: both.results(side, own), given, both.modules))


def batch_axes(both: ProgramPair) -> list[int | None]:
    """Return the batch axis of each array, if it has one."""
    return [one.letters.index("B") if "B" in one.letters else None for one in both.inputs]


def entry_differences(here: Tensor, there: Tensor) -> Tensor:
    """Return the differences of entries; NaN on both sides, or equal infinities, differ by 0."""
    return differences(here, there).masked_fill(here.isnan() & there.isnan(), 0.0)


def compare_numerically(both: ProgramPair, seed: int = 0) -> NumericComparison:
    """Run both at many lengths in each format, then on inputs that code may treat specially.

    These are inputs and weights that are 0 or numbers of the source, far larger or smaller inputs,
    and other ways of calling.  The smallest inputs at which the programs differ are kept.
    """
    found = NumericComparison()
    for dtype in FORMATS:
        with arranged_as(both, dtype):
            before = found.tried
            for at in lengths_tried(both):
                for k, description in ((0, ""), (1, LARGE_INPUTS)):
                    draw = Draw(seed + k, dtype)
                    values = drawn_or_none(both, at, draw)
                    values = scaled(values, 8.0) if description else values
                    if compare_at(both, at, values, draw, found, description=description):
                        return found
            if found.tried > before:
                found.formats = (*found.formats, name_of(dtype))
    if found.tried:
        dtype = getattr(torch, found.formats[0])
        with arranged_as(both, dtype):
            _compare_unusual(both, seed, dtype, found)
    return found


def drawn_or_none(both: ProgramPair, at: Mapping[str, int], draw: Draw) -> tuple[Tensor, ...]:
    """Return arrays of these lengths; none if the lengths are inconsistent."""
    try:
        return drawn(both.inputs, at, draw.seed, draw.dtype)
    except Exception:  # noqa: BLE001 (such as half of an odd length)
        return ()


def arranged_as(both: ProgramPair, dtype: torch.dtype) -> AbstractContextManager[float]:
    """Convert the modules of both to this format within a context."""
    return arranged(SimpleNamespace(module=nn.ModuleList(both.modules)), dtype)


def _compare_unusual(
    both: ProgramPair, seed: int, dtype: torch.dtype, found: NumericComparison
) -> None:
    """Run both at one length on unusual inputs, with unusual weights, and in unusual ways."""
    at, draw = dict(both.lengths), Draw(seed, dtype)
    given = drawn_or_none(both, at, draw)
    for description, values in unusual_inputs(both, given):
        if compare_at(both, at, values, draw, found, description=description):
            return
    if any(one.kind in BINARY_MASKS for one in both.inputs):
        hidden, how = with_first_key_hidden(both, given), "with the first key hidden"
        if compare_at(both, at, hidden, draw, found, how=how, last=True):
            return
    if _differ_in_some_way(both, draw, found):
        return
    with random_weights(both.modules) as drawn_anew:
        if drawn_anew and compare_at(both, at, given, draw, found, how="with other weights"):
            return
    weights, unusual = trainable(both.modules), "weights that are 0"
    for some in (weights, *([one] for one in weights[:MAX_ZEROED])) if weights else ():
        with zeroed(some):
            if compare_at(both, at, given, draw, found, description=unusual, how=f"with {unusual}"):
                return


def _differ_in_some_way(both: ProgramPair, draw: Draw, found: NumericComparison) -> bool:
    """Whether both differ at one length if called in unusual ways.

    If one writes into its inputs, the verdict says that no two of them share memory.
    """
    at = dict(both.lengths)
    tokens = [c for c in at if c in TOKENS]
    square = {**at, **dict.fromkeys(tokens, min((at[c] for c in tokens), default=0))}
    alone, _ = on_copies(both)
    excluded = SHARING if alone.first.copies or alone.second.copies else ()
    for way in (way for way in dict.fromkeys(("strided", *WAY_TEXTS)) if way not in excluded):
        lengths = square if way in OF_ONE_SHAPE else at
        values = drawn_or_none(both, lengths, draw)
        if values:
            values = inputs_for(way, values, batch_axes(both))
        if compare_at(both, lengths, values, draw, found, way=way):
            return True
    return False


def _values(both: ProgramPair, drawings: Sequence[Tensor]) -> dict[str, Tensor]:
    return {one.name: x for one, x in zip(both.inputs, drawings, strict=True)}


def compare_at(
    both: ProgramPair,
    at: Mapping[str, int],
    values: Sequence[Tensor],
    draw: Draw,
    found: NumericComparison,
    *,
    description: str = "",
    way: str = "plain",
    how: str = "",
    last: bool = False,
) -> bool:
    """Whether both differ on these values, called in some way; shrink and keep the difference.

    ``description``: what is unusual about the values; non-finite results are then recorded
    instead.  ``how``: what else is unusual.  ``last``: compare only the last token of each result,
    which sees most keys.
    """
    if not values:
        return False
    results: dict[str, Any] = {}
    for side in ("first", "second"):
        try:
            with torch.no_grad():
                results[side] = run_in(way, both, side, values)
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            results[side] = error
    wrong = {side: x for side, x in results.items() if isinstance(x, Exception)}
    if wrong:
        if len(wrong) == 1 and not found.raises and draw.dtype is torch.float32:
            ((side, raised),) = wrong.items()
            where = ", ".join(f"{c} = {n}" for c, n in at.items())
            found.raises = f"only the {side} raises at {where}: {in_a_line(raised, 160)}"
        return False
    found.tried += 1
    found.longest = max(found.longest, *at.values(), 0)
    found.reached = {c: max(n, found.reached.get(c, 0)) for c, n in at.items()}
    name = name_of(draw.dtype)
    if way == "plain" and name not in found.dtype_remarks:
        with torch.no_grad():
            found.dtype_remarks[name] = _dtype_remark(both, values, name)
    for k, pair in enumerate(zip(results["first"], results["second"], strict=True)):
        run = ComparedResult(both, k, draw, way, both.tokens_of(k) if last else None)
        here, there = map(run.compared, pair)
        if _overflows(both, here, there, draw.dtype, description, found):
            continue
        given, here, there = _values(both, values), here.double(), there.double()
        differ = _exceed(run, given, here, there, found)
        if not differ and description == CONSTANT_INPUTS and not found.jumps:
            found.jumps = _jump(run, given, here, there)
        if differ:
            try:
                seen = _smallest(run, both, at, given)
            except NotDeterministic as error:
                found.unsteady = str(error)
                return False
            found.result, found.at, found.dtype = k, dict(at), name_of(draw.dtype)
            found.counterexample, found.error, found.bound = seen, seen.difference, seen.allowed
            found.how = how or WAY_TEXTS.get(way, "")
            return True
    return False


def _dtype_remark(both: ProgramPair, values: Sequence[Tensor], given: str) -> str:
    """State that the results of one call have two dtypes, if they do."""
    kinds = [both.formats(side, values) for side in ("first", "second")]
    for here, there in zip(*kinds, strict=False):
        if here != there:
            return (
                f"for {given} inputs {both.first.program.name} returns {name_of(here)}, "
                f"{both.second.program.name} {name_of(there)}"
            )
    return ""


def _overflows(
    both: ProgramPair,
    here: Tensor,
    there: Tensor,
    dtype: torch.dtype,
    description: str,
    found: NumericComparison,
) -> bool:
    """Whether the results are non-finite at different entries because of the size of the numbers.

    This is assumed on unusual inputs, and if some finite entry is too large to be squared, as in a
    growing recurrence.  The program concerned is recorded.
    """
    if here.shape != there.shape or not here.is_floating_point():
        return False
    off = entry_differences(here.double(), there.double())
    if not off.numel() or not off.isinf().any():
        return False
    largest = max(_largest(x) for x in (here, there))
    if not description and largest <= torch.finfo(dtype).max ** 0.5:
        return False
    finite = [bool(x.isfinite().all()) for x in (here, there)]
    name, on = name_of(dtype), f"for {description or LARGE_INPUTS}"
    side = both.second if finite[0] else both.first
    found.overflows = found.overflows or (
        f"{on}, {side.program.name} returns non-finite values in {name}; the other does not"
        if any(finite)
        else f"{on}, the two return non-finite values in {name} at different entries"
    )
    return True


def _largest(x: Tensor) -> float:
    """Return the largest absolute value of finite entries."""
    finite = x[x.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _exceed(
    run: ComparedResult,
    values: dict[str, Tensor],
    here: Tensor,
    there: Tensor,
    found: NumericComparison,
) -> bool:
    """Whether the results differ by more than rounding explains; if not, the gap is noted."""
    if here.shape != there.shape:
        return True
    off = float(entry_differences(here, there).max()) if here.numel() else 0.0
    if off == 0:
        return False
    try:
        allowed, cancels = run.allowed(values, off)
    except NotDeterministic as error:
        found.unsteady = str(error)
        return False
    if off > allowed:
        return True
    found.cancels |= cancels
    if not found.bound or off / allowed > found.error / found.bound:
        found.error, found.bound = off, allowed
    return False


def _jump(run: ComparedResult, values: dict[str, Tensor], here: Tensor, there: Tensor) -> str:
    """Say that the results differ at one constant by more than the operations round, if they do.

    Where a program jumps, a rounding of its inputs explains any difference; but ``x == 0.7`` may be
    meant, and both are given the same inputs.
    """
    off = float(entry_differences(here, there).max()) if here.numel() else 0.0
    if not JUMP * (1 + _largest(there)) < off < math.inf:
        return ""
    with suppress(NotDeterministic):
        if off > CANCELLED * run.allowed(values, off, roughly=True)[0]:
            given = next(x for x in values.values() if x.is_floating_point())
            number = float(given.flatten()[0])
            return f"inputs are not exactly {number:g}: where all are, the two differ by {off:.3g}"
    return ""


def _smallest(
    run: ComparedResult, both: ProgramPair, at: Mapping[str, int], values: dict[str, Tensor]
) -> Counterexample:
    """Return the witness with as many zeros as possible, in small integers if those suffice."""
    for attempt in range(3):
        seed = run.draw.seed + attempt
        small = _values(both, drawn(both.inputs, at, seed, run.draw.dtype, small=True))
        told = run.gap(small)
        if told is not None and told[0] > 4 * told[1]:
            values = small
            break
    shapes = run.sides(values)
    if shapes is not None and shapes[0].shape != shapes[1].shape:
        seen = Counterexample(
            dict(at),
            ("left side", list(shapes[0].shape)),
            ("right side", list(shapes[1].shape)),
            math.inf,
        )
    else:
        least = shrunk(run, values, partial(run.gap, roughly=True))
        told = run.gap(least)
        if told is None or told[0] <= 4 * told[1]:  # rounding explains more than it seemed
            least = shrunk(run, values)
        given = inputs_for(run.way, list(least.values()), batch_axes(both))  # shared inputs
        seen = counterexample_of(run, _values(both, given))
    (one, other), place = both.names, seen.here[0].removeprefix("left side")
    alone = {shared.name for shared in both.inputs if shared.kind == LENGTH}
    return replace(
        seen,
        inputs={name: x for name, x in seen.inputs.items() if name not in alone},
        here=(f"{one}{place}", seen.here[1]),
        there=(f"{other}{place}", seen.there[1]),
    )

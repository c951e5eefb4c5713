"""Measure laws: evaluate each formula at its inputs, from small to large.

A counterexample, where the sides differ by more than rounding explains, is shrunk until no letter
can be smaller, and shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attnproof.theorems.laws import LAWS, Formula
from attnproof.theorems.laws.law import Inputs

from ..execution.calling import evaluating
from ..execution.draw import Draw
from ..execution.response import NotDeterministic, place_of_largest
from ..execution.rotary_matrices import FASTEST, REORDERED, may_be_faster, reach_of
from ..reading.applicability import channel_order, no_formula, why_not_a_fault
from ..reading.calls import REFUSALS
from ..reading.derived_calls import NotAsked
from ..reading.weights import weights_are
from ..subjects import Additive, Attention, Layer, Rotary
from .additive import TOO_FAST, is_fast, table_of
from .base import (
    LOW,
    Outcome,
    Scene,
    broken,
    holds,
    in_calls_of_each_length,
    in_formats,
    not_asked,
    probe,
    undecided,
)
from .inputs import draw_inputs, inputs_of
from .roundings import PieceRefused, Roundings
from .sides import (
    VACUOUS,
    Beyond,
    Comparison,
    Difference,
    Values,
    letters_of,
    shrunk_witness,
    value_and_bound,
    witness_value,
)

INFLUENCE_LAWS = ("past-is-used", "window-as-declared")
TOO_COARSE = "this format may round away a small influence, and the code takes no finer one"


SceneProbe = Callable[[Scene], Outcome]
LAYER_PROBES: dict[str, SceneProbe] = {}


def for_layers(law: str) -> Callable[[SceneProbe], SceneProbe]:
    """Register the probe of a law for layers, which take no queries, keys and values."""

    def wrap(look: SceneProbe) -> SceneProbe:
        LAYER_PROBES[law] = look
        return look

    return wrap


FURTHER_PROBES: dict[tuple[str, str], tuple[SceneProbe, bool]] = {}


def further_probe(
    law: str, *kinds: str, any_length: bool = False
) -> Callable[[SceneProbe], SceneProbe]:
    """Register a further probe of a law, run if its formulas hold.

    ``any_length``: it is also run at the lengths that are given for the law.
    """

    def wrap(look: SceneProbe) -> SceneProbe:
        FURTHER_PROBES.update(((law, kind), (look, any_length)) for kind in kinds)
        return look

    return wrap


def _run_further(law: str, subject: Any, draw: Draw, floor: float, seen: Outcome) -> Outcome:
    look, any_length = FURTHER_PROBES.get((law, subject.kind), (None, False))
    if look is None or (subject.run_at and not any_length):
        return seen
    found = look(Scene(subject, draw, floor))
    if found.witness is not None or found.doubtful:
        return found
    return replace(seen, why=f"{seen.why}; {found.why}") if found.why else seen


@dataclass
class _Progress:
    """What was seen along the inputs of a law."""

    whys: list[str] = field(default_factory=list)
    seen: int = 0
    formulas: dict[int, Formula] = field(default_factory=dict)
    worst: tuple[float, float, float] = (0.0, 0.0, 0.0)
    doubt: Outcome | None = None
    refused: Exception | None = None
    letters: dict[str, int] = field(default_factory=dict)


def _measured(
    law: str, subject: Any, draw: Draw, floor: float = 0.0, *, shrinks: bool = True
) -> Outcome:
    """Evaluate every formula of the law at its inputs, from small to large."""
    comparison = Comparison(subject, draw, Roundings(subject, draw, floor), shrinks=shrinks)
    if isinstance(subject, Rotary):
        comparison = replace(comparison, reach=reach_of(subject, draw))
    formulas = [f for one in LAWS if one.id == law for f in one.formulas if f.kind == subject.kind]
    met = _Progress()
    for formula in formulas:
        why = no_formula(formula, subject)
        if why or not hasattr(comparison.calls(), formula.call):
            met.whys.append(why or VACUOUS)
            continue
        if law in INFLUENCE_LAWS and formula.kind == "attention" and draw.dtype in LOW:
            return undecided(TOO_COARSE)
        for inputs, axis in inputs_of(formula, subject):
            try:
                found = _outcome_at(comparison, formula, inputs, axis, met)
            except NotAsked as error:
                met.whys.append(str(error))
                break
            if found is not None:
                return _broken_unless_meant(law, subject, draw, floor, found)
    return _outcome_unbroken(law, comparison, met, floor)


def _outcome_unbroken(law: str, comparison: Comparison, met: _Progress, floor: float) -> Outcome:
    """Return the outcome of a law that no inputs broke."""
    subject, draw = comparison.subject, comparison.draw
    if met.doubt is not None:
        return met.doubt
    if not met.seen and law in LAYER_PROBES and getattr(subject, "attend", None) is None:
        return LAYER_PROBES[law](Scene(subject, draw, floor))
    if not met.seen:
        if met.refused is not None:
            raise met.refused
        return not_asked(next((w for w in met.whys if w), VACUOUS))
    if met.seen == 1 and met.refused is not None and isinstance(subject, Attention | Layer):
        raise met.refused  # one accepted input among many refused ones proves little
    words = _words(comparison, list(met.formulas.values()), met.seen, met.refused)
    seen = holds(words, *met.worst[1:], **met.letters)
    return _run_further(law, subject, draw, floor, seen)


def _broken_unless_meant(
    law: str, subject: Any, draw: Draw, floor: float, found: Outcome
) -> Outcome:
    """Return a broken outcome, or undecided if the code may be meant that way."""
    why = why_not_a_fault(law, subject, draw, floor)
    if why:
        return undecided(why)
    told = weights_are(subject, draw) if law == "rows-sum-to-one" else ""
    return replace(found, why=f"{found.why}; {told}") if told else found


def _outcome_at(
    comparison: Comparison, formula: Formula, inputs: Inputs, axis: int | None, met: _Progress
) -> Outcome | None:
    """Return a broken outcome if the sides differ here; None if not, or if the code refuses."""
    values: Values = {}
    comparison = replace(comparison, window=inputs.window)
    try:
        values, lengths = draw_inputs(comparison, formula, inputs, axis)
        found, near = comparison.differ(formula, values)
        if found is not None and isinstance(comparison.subject, Rotary | Additive):
            slow, _ = comparison.differ(formula, values, FASTEST)
            if (
                slow is None and _may_be_faster(comparison.subject, comparison.draw)
            ) or _holds_in_float64(comparison, formula, inputs, axis, found.allowed):
                met.doubt = met.doubt or undecided(TOO_FAST, found.off, found.allowed)
                return None
        found = found or _vanishes(comparison, formula, values)
    except Beyond as beyond:
        met.whys.append(str(beyond))
        return None
    except PieceRefused as error:
        told = {name: witness_value(v) for name, v in values.items()}
        return broken(
            f"fed in pieces, a later piece {error}",
            told,
            ("fed in pieces", str(error)),
            ("all at once", "no error"),
            math.inf,
        )
    except NotDeterministic:
        raise
    except REFUSALS as error:
        met.refused = met.refused or (None if inputs.named else error)
        return None
    if found is not None:
        return shrunk_witness(comparison, formula, values, found, lengths)
    if not met.seen or near[0] > met.worst[0]:
        met.worst = near
    met.seen += 1
    met.formulas[id(formula)] = formula
    met.letters = letters_of(formula, lengths)
    return None


def _may_be_faster(subject: Rotary | Additive, draw: Draw) -> bool:
    """Whether an angle may change by more than half a turn from one position to the next."""
    if isinstance(subject, Rotary):
        return may_be_faster(subject, draw)
    return subject.grid is None and is_fast(table_of(subject, draw, 2 * subject.width + 32))


def _holds_in_float64(
    comparison: Comparison, formula: Formula, inputs: Inputs, axis: int | None, allowed: float
) -> bool:
    """Whether the sides of a table in float64 differ by no more than the allowed amount.

    Then the difference is rounding of large angles, possibly of whole turns per position.
    """
    if not isinstance(comparison.subject, Additive) or comparison.draw.dtype == torch.float64:
        return False
    draw = replace(comparison.draw, dtype=torch.float64)
    fine = replace(
        comparison, draw=draw, roundings=replace(comparison.roundings.fresh(), draw=draw)
    )
    try:
        values, _ = draw_inputs(fine, formula, inputs, axis)
        found, _ = fine.differ(formula, values)
    except Exception:  # noqa: BLE001 (code may take a single format)
        return False
    return found is None or found.off <= allowed


def _words(
    comparison: Comparison, formulas: list[Formula], seen: int, refused: Exception | None
) -> str:
    """Describe what was checked, for a law that holds."""
    names = dict.fromkeys(one for f in formulas for one in f.names)
    told = "; ".join(f"{here} = {there}" for here, there in names) or "both sides agree"
    words = [f"{told}, at {seen} inputs"]
    if refused is not None:
        words.append(f"at others the code raised {type(refused).__name__}")
    if isinstance(comparison.subject, Rotary):
        if comparison.reach is not None and comparison.reach.why:
            words.append(comparison.reach.why)
        if (
            formulas[0].id in ("composition", "identity-at-zero")
            and channel_order(comparison.subject) is not None
        ):
            words.append(REORDERED)
    return "; ".join(words)


def _vanishes(comparison: Comparison, formula: Formula, values: Values) -> Difference | None:
    """Return where a quantity that must be positive is not: equations of zeros are vacuous."""
    if formula.positive is None:
        return None
    value, off = value_and_bound(formula.positive(comparison.calls(), **values))
    if bool((value > off).all()):
        return None
    at = place_of_largest(off - value)
    names = ("the image of a vector of ones at position 0", "a channel that does not vanish")
    return Difference(names, at, float(value[at]), 1.0, 1.0, float(off[at]))


def _register(law: str, kinds: str) -> None:
    @in_formats
    def formatted(scene: Scene) -> Outcome:
        return _measured(law, scene.subject, scene.draw, scene.floor, shrinks=scene.shrinks)

    @in_calls_of_each_length
    def in_each_call(subject: Any, draw: Draw) -> Outcome:
        with evaluating(subject):
            return _measured(law, subject, draw)

    def look(subject: Any, draw: Draw) -> Outcome:
        if isinstance(subject, Attention | Layer):
            return formatted(subject, draw)
        return in_each_call(subject, draw)

    probe(law, kinds)(look)


for _law in LAWS:  # laws without a formula have their own probe
    _register(_law.id, " ".join(dict.fromkeys(one.kind for one in _law.formulas)))

"""Both sides of a formula in floats: whether rounding explains a difference, and the witness.

The sides are those of proofs and finite fields (:mod:`attnproof.theorems.laws`), and the bounds are
those of each call (:mod:`.roundings`).  If the sides differ, the inputs are shrunk until no letter
can be smaller, and described in a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula

from ...numeric.error_analysis import Rounded
from ..execution.calling import as_lists
from ..execution.draw import Draw
from ..execution.response import differences, place_of_largest
from ..execution.rotary_matrices import Reach, unit_words
from ..reading.calls import Adapter, calls_of
from ..subjects import Attention, Layer, Mask
from .base import Outcome, broken
from .roundings import Roundings, exact

BITWISE = ("causal", "hidden-keys-do-nothing", "past-is-used", "window-as-declared", "alignment")
VACUOUS = "the law says nothing of this code"
Values = dict[str, Any]


class Beyond(Exception):
    """The code does not have these positions."""


@dataclass(frozen=True)
class Difference:
    """Two sides at the entry where they differ most beyond the allowed amount."""

    names: tuple[str, str]
    at: tuple[int, ...]
    here: Any
    there: Any
    off: float
    allowed: float


@dataclass(frozen=True)
class Comparison:
    """A law of some code, in one format; ``shrinks``: a counterexample is made smaller."""

    subject: Any
    draw: Draw
    roundings: Roundings
    reach: Reach | None = None
    window: tuple[int, ...] = ()
    shrinks: bool = True

    def calls(
        self,
        fastest: float = 0.0,
        *,
        pieces: bool = False,
        plain: bool = False,
        still: bool = False,
    ) -> SimpleNamespace:
        """Return the calls of the code on arrays with their errors, from :class:`Roundings`."""
        made = replace(self.roundings.fresh(fastest), pieces=pieces, plain=plain, still=still)
        calls = calls_of(self.subject, Adapter(made.call, dtype=self.draw.dtype))
        for name in ("windowed", "indexed", "gridded"):
            if self.window and (whole := getattr(calls, name, None)) is not None:
                setattr(calls, name, partial(whole, self.window))
        if isinstance(self.subject, Mask):  # a number hides if its exponential is 0 in its format
            calls.visible = lambda x, y: exact(calls.seen(x, y).double())
        return calls

    def differ(self, formula: Formula, values: Values, fastest: float = 0.0) -> tuple[Any, ...]:
        """Return where two sides differ beyond rounding, or None; and the worst entry.

        Sides computed twice from the same numbers should agree bit for bit: bounds are derived only
        if they do not.  Inputs of attention and layers are perturbed only if the sides differ by
        more than is allowed without that.
        """
        if formula.id in BITWISE:
            found, _ = self._differ(formula, values, self.calls(plain=True))
            if found is None:
                return None, (0.0, 0.0, 0.0)
        pieces = formula.call == "step"
        if formula.kind in ("attention", "layer"):
            found, worst = self._differ(formula, values, self.calls(pieces=pieces, still=True))
            if found is None:
                return None, worst
        return self._differ(formula, values, self.calls(fastest, pieces=pieces))

    def _differ(self, formula: Formula, values: Values, calls: SimpleNamespace) -> tuple[Any, ...]:
        if formula.kind == "attention":  # a function takes any number of heads
            met = updated_lengths(
                formula, values, {"H": self.subject.heads, "G": self.subject.groups}
            )
            calls.heads, calls.groups = met["H"], met["G"]
        pairs = formula.equations(calls, **values)
        if not pairs:
            raise Beyond(VACUOUS)
        names = formula.names or (("the left side", "the right side"),)
        worst = (0.0, 0.0, 0.0)
        for k, sides in enumerate(pairs):
            here, there = (value_and_bound(side) for side in sides)
            told = names[k % len(names)]
            if formula.call.endswith("paths"):
                own = list(self.subject.paths)
                path = f"the path {own[k % len(own)]}"
                agree = formula.id == "paths-agree"
                told = (told[0], path) if agree else (f"{told[0]} on {path}", told[1])
            if here[0].shape != there[0].shape:
                words = f"the shape of {told[0]}", f"the shape of {told[1]}"
                shapes = list(here[0].shape), list(there[0].shape)
                return Difference(words, (), shapes[0], shapes[1], math.inf, 0.0), worst
            if here[0].numel() and torch.equal(here[0], there[0]):
                bound = (here[1].flatten()[0] + there[1].flatten()[0]).nan_to_num(nan=0.0)
                worst = worst if worst[0] > 0.0 else (0.0, 0.0, float(bound))
                continue
            off = differences(here[0], there[0])
            if formula.kind == "bias" or formula.id == "hidden-rows":
                # differences of hidden entries are NaN, and so are undeclared values
                off = off.masked_fill(here[0].isnan() & there[0].isnan(), 0.0)
            allowed = (here[1] + there[1]).nan_to_num(nan=0.0)
            if not off.numel():
                continue
            if bool((off > allowed).any()):
                at = place_of_largest(torch.where(off <= allowed, -math.inf, off - allowed))
                both = float(here[0][at]), float(there[0][at])
                return Difference(
                    told, at, both[0], both[1], float(off[at]), float(allowed[at])
                ), worst
            near = (off / allowed.clamp(min=torch.finfo(torch.float64).tiny)).flatten()
            place = int(near.argmax())
            if float(near[place]) >= worst[0]:
                worst = (
                    float(near[place]),
                    float(off.flatten()[place]),
                    float(allowed.flatten()[place]),
                )
        return None, worst


def value_and_bound(side: Any) -> tuple[Tensor, Tensor]:
    """Return a side and its error bound, in float64."""
    if isinstance(side, Rounded):
        return side.value, side.error().expand(side.shape)
    value = side.detach().to("cpu", torch.float64)
    return value, torch.zeros_like(value)


def letters_of(formula: Formula, lengths: Mapping[str, int]) -> dict[str, int]:
    """Return the lengths of the letters that a formula names."""
    used = {c for told in formula.given.values() for c in told.split()[1:]}
    return {c: n for c, n in lengths.items() if c in used}


def updated_lengths(formula: Formula, values: Values, lengths: Mapping[str, int]) -> dict[str, int]:
    """Return ``lengths``, updated by those of the given values."""
    found = dict(lengths)
    for name, told in formula.given.items():
        letters = told.split()[1:]
        shape = getattr(values[name], "shape", ())
        found |= {c: int(n) for c, n in zip(letters, shape, strict=False)}
    return found


SHRUNK = "BAcnrm"  # letters whose lengths a witness may shrink
MAX_SECONDS = 15  # of shrinking: who takes longer may be stopped, and the fault is lost
LINEAR = 32  # lengths up to this shrink by one at a time
NO_PART = 1e-15  # share of a difference below which its rounding is not mentioned
MAX_SHOWN = 8  # numbers of an input that a witness lists


def shrunk_witness(
    comparison: Comparison,
    formula: Formula,
    values: Values,
    found: Difference,
    lengths: Mapping[str, int],
) -> Outcome:
    """Return the broken outcome: the smallest inputs found, the place, and the difference."""
    if comparison.shrinks:
        values, found = _shrunk(comparison, formula, values, found)
    told = {name: witness_value(value) for name, value in values.items()}
    if isinstance(comparison.subject, Attention | Layer):  # tested in float64 first
        told |= {"seed": comparison.draw.seed, "format": comparison.draw.format}
    if formula.of_sizes:  # only the lengths of inputs matter
        told = {"tokens": sum(len(v) if v.dim() == 1 else v.shape[1] for v in _tensors(values))}
    told |= place_of(formula, found)
    at = f" at {list(found.at)}" if found.at else ""
    here, there = (found.names[0] + at, found.here), (found.names[1] + at, found.there)
    where = [
        f"{name} = {told[name]}"
        for name, kind in formula.given.items()
        if kind.split()[0] in ("position", "place", "shift", "step")
        and torch.as_tensor(values[name]).numel() <= 4
    ]
    now = letters_of(formula, updated_lengths(formula, values, lengths))
    why = ", ".join((_apart(found, formula, now.get("r", 0), now.get("n", 0)), *where))
    if math.isfinite(found.off) and found.allowed > NO_PART * found.off:
        why += f"; rounding explains {found.allowed:.2g}"
    return broken(why, told, here, there, found.off, found.allowed, **now)


def _tensors(values: Values) -> list[Tensor]:
    found = (v.value if isinstance(v, Rounded) else v for v in values.values())
    return [v for v in found if isinstance(v, Tensor)]


TOKENS, SCORES = ("batch row", "token", "channel"), ("batch row", "head", "query", "key")
SEEN = ("masked", "shown", "reached", "weighs")  # calls that return which keys are seen
PLACES = {
    "rotary": ("batch row", "head", "token"),
    "additive": TOKENS,
    "layer": TOKENS,
    "bias": ("head", "query", "key"),
}


def place_of(formula: Formula, found: Difference) -> dict[str, int]:
    """Return the place of the difference, by the names of the axes of a side."""
    axes: tuple[str, ...] = PLACES.get(formula.kind, TOKENS)
    if formula.call in SEEN:
        axes = SCORES[-len(found.at) :]
    elif formula.kind in ("attention", "rotary") and len(found.at) == len(SCORES):
        axes = SCORES if found.names[1].startswith("scores") else ("batch row", "head", *TOKENS[1:])
    return dict(zip(axes, found.at, strict=True)) if len(axes) == len(found.at) else {}


def _apart(found: Difference, formula: Formula, queries: int = 0, keys: int = 0) -> str:
    """Say that two sides differ, by how much and where; ``queries`` and ``keys`` if known."""
    (one, here), (other, there) = zip(found.names, (found.here, found.there), strict=True)
    at = ", ".join(f"{axis} {n}" for axis, n in place_of(formula, found).items())
    where = f" in {at}" if at else ""
    if formula.call in SEEN and at:
        query = "the last query" if len(found.at) < 2 else f"query {found.at[-2]}"
        key = f"key {found.at[-1]}"
        if 0 < queries < keys:  # the last query is at the last key
            query, key = f"{query} of {queries}", f"{key} of {keys}"
        sees = f"{query} sees {key}, but should not"
        return sees if found.here else f"{query} does not see {key}, but should"
    if math.isfinite(found.off):
        return f"{one} and {other} differ by {found.off:.3g}{where}"
    if not found.at:
        return f"{one} is {here}, and {other} is {there}"
    if -math.inf in (here, there) and formula.kind == "bias":
        shows = (
            f"{one} hides a key that {other} shows"
            if here == -math.inf
            else (f"{one} shows a key that {other} hides")
        )
        return f"{shows}{where}"
    sides = (one, here), (other, there)
    (bad, value), (_, good) = sorted(sides, key=lambda side: math.isfinite(side[1]))
    kind = "NaN" if math.isnan(value) else "infinite numbers"
    return f"{bad} has {kind}{where}, where {good:.3g} is wanted"


def _shrunk(
    comparison: Comparison, formula: Formula, values: Values, found: Difference
) -> tuple[Values, Difference]:
    """Shrink each letter as long as the sides differ, and time is left."""
    end = monotonic() + MAX_SECONDS
    for letter in SHRUNK:
        most = updated_lengths(formula, values, {}).get(letter, 1)
        while True:
            length = updated_lengths(formula, values, {}).get(letter, 1)
            if length < 2:
                break
            half, most = (length + 1) // 2, max(1, min(most, length // 4))
            # shrinking long axes one by one would take too many calls
            cuts = [most >> k for k in range(most.bit_length())] if length > LINEAR else [1]
            for part in (
                slice(0, half),
                slice(half, None),
                *(slice(0, length - cut) for cut in cuts),
            ):
                if monotonic() > end:
                    return values, found
                fewer = _part(formula, values, letter, part)
                if _of_padding_alone(formula, fewer) or _before_all_keys(formula, fewer):
                    continue
                try:
                    now, _ = comparison.differ(formula, fewer)
                except Exception:  # noqa: BLE001 (code may raise anything at other lengths)
                    continue
                if now is not None and now.at:
                    values, found = fewer, now
                    most = length - part.stop if part.stop is not None else most
                    break
            else:
                break
    return values, found


def _of_padding_alone(formula: Formula, values: Values) -> bool:
    """Whether a row is hidden entirely: these laws do not cover it, and code may give NaN."""
    masks = (
        values[name]
        for name, told in formula.given.items()
        if told.split()[0] in ("padding", "keep")
    )
    return not all(bool(one.any(-1).all()) for one in masks)


def _before_all_keys(formula: Formula, values: Values) -> bool:
    """Whether there are more queries than keys, so that the first precede every key."""
    now = updated_lengths(formula, values, {})
    return formula.call in SEEN and now.get("r", 0) > now.get("n", math.inf)


def _part(formula: Formula, values: Values, letter: str, part: slice) -> Values:
    found: Values = {}
    for name, told in formula.given.items():
        kind, *letters = told.split()
        value = values[name]
        if letter in letters:
            at = (slice(None),) * letters.index(letter)
            value = value[(*at, part)]
            if kind == "permutation":
                value = torch.arange(len(value)).flip(0)
        found[name] = value
    return found


def witness_value(value: Any) -> Any:
    """Return plain data for a witness: few numbers, or a shape."""
    x = value.value if isinstance(value, Rounded) else value
    if not isinstance(x, Tensor):
        return x
    if x.numel() == 1:
        return as_lists(x.reshape(()))
    if x.dim() == 4 and x.shape[1] > 1 and bool((x == x[:, :1]).all()):
        return witness_value(x[:, 0])  # the same in every head
    line = x.double().flatten().sort().values
    unit = x.dtype != torch.bool and float(line[-1]) == 1 and not bool(line[:-1].any())
    if unit and x.numel() == x.shape[-1]:
        return unit_words(int(x.flatten().argmax()), x.shape[-1])
    few = x.numel() <= MAX_SHOWN
    return as_lists(x.reshape([n for n in x.shape if n > 1])) if few else f"shape {list(x.shape)}"

"""Where two sides of a law differ: made smaller until no letter can be, and told in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula

from ...numeric.rounded import Rounded
from ..calling import plain
from ..finding import Seen
from ..rotary_matrices import unit_words
from ..subjects import Attention, Layer
from .base import Outcome, broken
from .sides import Apart, Look, Values, lengths_now, letters_of

__all__ = ["accused", "shown"]

SHRUNK = "BAcnrm"  # letters that a witness may have fewer of
NOTHING = 1e-15  # of a difference that rounding explains: of sums of 0 and 1 it says nothing
SHOWN = 8  # numbers of an input that a witness writes down


def accused(
    look: Look, formula: Formula, values: Values, found: Apart, lengths: Mapping[str, int]
) -> Outcome:  # fmt: skip
    """Broken: the smallest inputs at which the sides differ, where, and by how much."""
    values, found = _shrunk(look, formula, values, found)
    told = {name: shown(value) for name, value in values.items()}
    if isinstance(look.subject, Attention | Layer):  # looked at in float64 first
        told |= {"seed": look.draw.seed, "format": str(look.draw.dtype).removeprefix("torch.")}
    if formula.of_sizes:  # what is given has lengths alone
        told = {"tokens": sum(len(v) if v.dim() == 1 else v.shape[1] for v in _tensors(values))}
    told |= place_of(formula, found)
    at = f" at {list(found.at)}" if found.at else ""
    seen = Seen(told, (found.names[0] + at, found.here), (found.names[1] + at, found.there),
                found.off, found.allowed)  # fmt: skip
    where = [f"{name} = {told[name]}" for name, kind in formula.given.items()
             if kind.split()[0] in ("position", "place", "shift", "step")
             and torch.as_tensor(values[name]).numel() <= 4]  # fmt: skip
    why = ", ".join((_apart(found, formula), *where))
    if math.isfinite(found.off) and found.allowed > NOTHING * found.off:
        why += f"; rounding explains {found.allowed:.2g}"
    return broken(why, seen, **letters_of(formula, lengths_now(formula, values, lengths)))


def _tensors(values: Values) -> list[Tensor]:
    found = (v.value if isinstance(v, Rounded) else v for v in values.values())
    return [v for v in found if isinstance(v, Tensor)]


TOKENS, SCORES = ("batch row", "token", "channel"), ("batch row", "head", "query", "key")
SEEN = ("masked", "shown", "reached", "weighs")  # calls that say which keys are seen
PLACES = {
    "additive": TOKENS, "layer": TOKENS, "bias": ("head", "query", "key"),
}  # fmt: skip


def place_of(formula: Formula, found: Apart) -> dict[str, int]:
    """What the axes of a side are called, with the place of the difference."""
    axes: tuple[str, ...] = PLACES.get(formula.kind, TOKENS)
    if formula.call in SEEN:
        axes = SCORES[-len(found.at) :]
    elif formula.kind in ("attention", "rotary") and len(found.at) == len(SCORES):
        axes = SCORES if found.names[1].startswith("scores") else ("batch row", "head", *TOKENS[1:])
    return dict(zip(axes, found.at, strict=True)) if len(axes) == len(found.at) else {}


def _apart(found: Apart, formula: Formula) -> str:
    """That two sides differ, by how much and where."""
    (one, here), (other, there) = zip(found.names, (found.here, found.there), strict=True)
    at = ", ".join(f"{axis} {n}" for axis, n in place_of(formula, found).items())
    where = f" in {at}" if at else ""
    if formula.call in SEEN and at:
        *_, query, key = "the last query", *(f"query {n}" for n in found.at[-2:-1]), found.at[-1]
        sees = f"{query} sees key {key}, and should not"
        return sees if found.here else f"{query} does not see key {key}, and should"
    if math.isfinite(found.off):
        return f"{one} and {other} differ by {found.off:.3g}{where}"
    if not found.at:
        return f"{one} is {here}, and {other} is {there}"
    if -math.inf in (here, there) and formula.kind == "bias":
        shows = f"{one} hides a key that {other} shows" if here == -math.inf else (
            f"{one} shows a key that {other} hides")  # fmt: skip
        return f"{shows}{where}"
    sides = (one, here), (other, there)
    (bad, value), (_, good) = sorted(sides, key=lambda side: math.isfinite(side[1]))
    kind = "NaN" if math.isnan(value) else "infinite numbers"
    return f"{bad} has {kind}{where}, where {good:.3g} is wanted"


def _shrunk(look: Look, formula: Formula, values: Values, found: Apart) -> tuple[Values, Apart]:
    """The same with fewer of each letter, as long as the sides differ."""
    for letter in SHRUNK:
        while True:
            length = lengths_now(formula, values, {}).get(letter, 1)
            if length < 2:
                break
            half = (length + 1) // 2
            for part in (slice(0, half), slice(half, None), slice(0, length - 1)):
                fewer = _part(formula, values, letter, part)
                try:
                    now, _ = look.differ(formula, fewer)
                except Exception:  # noqa: BLE001 (code may raise anything at other lengths)
                    continue
                if now is not None and now.at:
                    values, found = fewer, now
                    break
            else:
                break
    return values, found


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


def shown(value: Any) -> Any:
    """Plain data for a witness: few numbers, or a shape."""
    x = value.value if isinstance(value, Rounded) else value
    if not isinstance(x, Tensor):
        return x
    if x.numel() == 1:
        return plain(x.reshape(()))
    if x.dim() == 4 and x.shape[1] > 1 and bool((x == x[:, :1]).all()):
        return shown(x[:, 0])  # the same in every head
    line = x.double().flatten().sort().values
    unit = x.dtype != torch.bool and float(line[-1]) == 1 and not bool(line[:-1].any())
    if unit and x.numel() == x.shape[-1]:
        return unit_words(int(x.flatten().argmax()), x.shape[-1])
    few = x.numel() <= SHOWN
    return plain(x.reshape([n for n in x.shape if n > 1])) if few else f"shape {list(x.shape)}"

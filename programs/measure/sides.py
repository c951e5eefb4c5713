"""Laws measured: both sides of each formula in floats, and whether rounding explains what differs.

The sides are those that proofs and finite fields read (:mod:`attnproof.theorems.laws`), the inputs
those that stand beside them, and the bounds those of each call (:mod:`.roundings`).  What differs
by more is made smaller until no letter can be, and shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import LAWS, Formula
from attnproof.theorems.laws.inputs import OF_CALLS, Inputs

from ...numeric.rounded import Rounded
from ..asked import declared_of
from ..calling import evaluating, plain
from ..draw import Draw
from ..finding import Seen
from ..identify.asked import channel_order, no_formula
from ..identify.calls import REFUSALS, Hand, NotAsked, calls_of
from ..response import Unsteady
from ..rotary_matrices import (
    FASTEST,
    REORDERED,
    Reach,
    lengths_of,
    matrices,
    may_be_faster,
    point,
    reach_of,
    rounding_for,
    unit_words,
)
from ..subjects import Additive, Attention, Layer, Rotary, Subject
from .base import Outcome, broken, held, not_asked, probe, undecided
from .roundings import FedInPieces, Roundings, exact
from .scene import Scene, in_formats

__all__ = ["MEASURED"]

MEASURED: Mapping[str, str] = {
    "relative": "rotary",
    "norm": "rotary",
    "composition": "rotary",
    "linear": "rotary",
    "identity-at-zero": "rotary",
    "every-head-alike": "rotary",
    "follows-its-ids": "rotary",
    "equal-axes-are-one": "rotary",
    "turned-once": "rotary",
    "shift-of-cached-keys": "rotary",
    "cache-keeps-its-positions": "rotary",
    "conversion-keeps-scores": "rotary",
    "groups-of-heads": "attention",
    "heads-apart": "attention",
    "translation": "attention",
    "documents-apart": "attention",
    "step-by-step": "attention",
    "products-of-offset": "additive",
    "rows-of-batch-apart": "rotary attention additive layer",
}
"""The laws that are measured by their formulas, and of which kinds of code."""

LENGTHS = {"B": 2, "A": 1, "n": 5, "r": 3, "m": 2, "c": 8}
OTHERS = ("o",)  # positions that are as many as others, whatever they are
SHRUNK = "BAcnrm"  # letters that a witness may have fewer of
SHOWN = 8  # numbers of an input that a witness writes down
TOO_FAST = ("what it is off is what float32 leaves of pairs that turn by more than half a turn "
            "with each position, which whole positions do not tell from slower ones")  # fmt: skip
NOTHING = "the law says nothing of this code"
Values = dict[str, Any]


@dataclass(frozen=True)
class Apart:
    """Two sides at the entry where they differ most beyond what is allowed."""

    names: tuple[str, str]
    at: tuple[int, ...]
    here: Any
    there: Any
    off: float
    allowed: float


@dataclass(frozen=True)
class Look:
    """A law of some code, in one format."""

    subject: Any
    draw: Draw
    roundings: Roundings
    reach: Reach | None = None

    def calls(self, fastest: float = 0.0, pieces: bool = False) -> SimpleNamespace:
        """The calls of the code on arrays with their errors."""
        made = replace(self.roundings.anew(fastest), pieces=pieces)
        return calls_of(self.subject, Hand(made.call, dtype=self.draw.dtype))

    def differ(self, formula: Formula, values: Values, fastest: float = 0.0) -> tuple[Any, ...]:
        """Where two sides are further apart than rounding explains, or None; and the worst."""
        calls = self.calls(fastest, formula.call == "step")
        if formula.kind == "attention":  # a function takes any number of heads
            met = _now(formula, values, {"H": self.subject.heads, "G": self.subject.groups})
            calls.heads, calls.groups = met["H"], met["G"]
        left, right = formula.equations(calls, **values)
        if isinstance(left, list) and not left:
            raise Beyond(NOTHING)
        pairs = list(zip(left, right, strict=True)) if isinstance(left, list) else [(left, right)]
        names = formula.names or (("the left side", "the right side"),)
        worst = (0.0, 0.0, 0.0)
        for k, sides in enumerate(pairs):
            here, there = (_of(side) for side in sides)
            told = names[k % len(names)]
            if here[0].shape != there[0].shape:
                words = f"the shape of {told[0]}", f"the shape of {told[1]}"
                shapes = list(here[0].shape), list(there[0].shape)
                return Apart(words, (), shapes[0], shapes[1], math.inf, 0.0), worst
            off = (here[0] - there[0]).abs()
            alike = here[0] == there[0]
            if formula.kind == "bias":  # what is hidden, less what is hidden, is no number
                alike = alike | (here[0].isnan() & there[0].isnan())
            off = torch.where(alike, 0.0, off.nan_to_num(nan=math.inf))
            allowed = (here[1] + there[1]).nan_to_num(nan=0.0)
            if not off.numel():
                continue
            beyond = torch.where(off <= allowed, -math.inf, off - allowed)
            if bool((off > allowed).any()):
                at = tuple(int(i) for i in torch.unravel_index(beyond.argmax(), off.shape))
                both = float(here[0][at]), float(there[0][at])
                return Apart(told, at, both[0], both[1], float(off[at]), float(allowed[at])), worst
            near = (off / allowed.clamp(min=torch.finfo(torch.float64).tiny)).flatten()
            place = int(near.argmax())
            if float(near[place]) >= worst[0]:
                worst = float(near[place]), float(off.flatten()[place]), float(
                    allowed.flatten()[place]
                )  # fmt: skip
        return None, worst


def _of(side: Any) -> tuple[Tensor, Tensor]:
    """A side and how far it may be off, in float64."""
    if isinstance(side, Rounded):
        return side.value, side.error().expand(side.shape)
    value = side.detach().to("cpu", torch.float64)
    return value, torch.zeros_like(value)


def _lengths(subject: Subject) -> dict[str, int]:
    """The length of each letter that the code decides."""
    found = dict(LENGTHS)
    if isinstance(subject, Rotary):
        H, D = subject.heads, subject.width
        return {**found, "H": H, "D": D, "E": D, "F": H * D}
    if isinstance(subject, Attention):
        H, G = subject.heads, declared_of(subject).groups or subject.groups
        return {**found, "H": H, "G": G, "D": subject.width or 5, "E": subject.embed or 5}
    if isinstance(subject, Additive):
        return {**found, "E": subject.width}
    return {**found, "E": subject.embed, "H": 3} if isinstance(subject, Layer) else found


def _designs(formula: Formula, subject: Any) -> Iterator[tuple[Inputs, int | None]]:
    """The inputs of a formula, and along which axis alone a shift of positions is."""
    of_call = OF_CALLS.get(formula.call, ())
    if not formula.inputs and not of_call:
        of_call = OF_CALLS["layer" if "real B n E" in formula.given.values() else
                           "attend" if "attend" in formula.call else "turn"]  # fmt: skip
    more = tuple(Inputs(lengths=one) for one in formula.sizes) if not formula.inputs else ()
    if isinstance(subject, Attention) and subject.module is None and formula.call == "attend":
        fewer = subject.groups < subject.heads or declared_of(subject).groups
        ways = ((4, 2), (6, 2), (12, 4)) if fewer else ((4, 4), (6, 6), (12, 12))
        more += tuple(Inputs(lengths={"B": 3, "r": 6, "n": 6, "H": h, "G": g}) for h, g in ways)
    axes = getattr(subject, "axes", 0) if "shift" in formula.given.values() else 0
    for inputs in (*(formula.inputs or of_call), *more):
        for axis in (None, *range(axes)) if axes > 1 else (None,):
            yield inputs, axis


def _sized(inputs: Inputs, formula: Formula, subject: Any) -> dict[str, int]:
    """The length of every letter at these inputs."""
    found = _lengths(subject)
    for name, told in formula.given.items():
        letters, offsets = told.split()[1:], inputs.at.get(name)
        if isinstance(offsets, tuple) and len(letters) > 1:
            rows = offsets if isinstance(offsets[0], tuple) else (offsets,)
            many = len(rows[0])
            if name in OTHERS:
                continue
            if isinstance(offsets[0], tuple):
                found[letters[0]] = len(rows)
            if many:
                found[letters[1]] = many * found["D"] if inputs.units else many
    if inputs.units:
        found["B"] = 1
    own = {k: found[v] if isinstance(v, str) else v for k, v in inputs.lengths.items()}
    return {**found, **{k: max(1, min(v, 16)) if isinstance(inputs.lengths[k], str) and k != "E"
                        else v for k, v in own.items()}}  # fmt: skip


class Beyond(Exception):
    """Positions that the code does not have."""


def _drawn(
    look: Look, formula: Formula, inputs: Inputs, axis: int | None, lengths: Mapping[str, int]
) -> Values:  # fmt: skip
    """What is given, by name.  Raises ``Beyond`` for positions that the code does not have."""
    found: Values = {}
    for salt, (name, told) in enumerate(formula.given.items()):
        kind, *letters = told.split()
        shape = [lengths[c] for c in letters]
        if kind == "real":
            if "E" in letters and not lengths["E"]:
                raise NotAsked("how wide a token is, is not known")
            found[name] = _numbers_of(look, name, letters, shape, inputs, salt)
        elif kind == "permutation":
            found[name] = _moved(look.draw, shape[0], salt)
        elif kind in ("padding", "keep"):
            found[name] = _kept(kind, shape)
        else:
            found[name] = _positions(look, kind, shape, inputs.at.get(name), axis, inputs, salt)
    _within(look, formula, found)
    return found


def _given(
    look: Look, formula: Formula, inputs: Inputs, axis: int | None
) -> tuple[Values, dict[str, int]]:
    """What is given, and the lengths; without the last positions where the code has fewer."""
    while True:
        lengths = _sized(inputs, formula, look.subject)
        try:
            values = _drawn(look, formula, inputs, axis, lengths)
        except Beyond:
            many = max((len(v) for v in inputs.at.values() if _flat(v)), default=1)
            if many < 2:
                raise
            fewer = {k: v[:-1] if _flat(v) and len(v) == many else v for k, v in inputs.at.items()}
            inputs = replace(inputs, at=fewer)
            continue
        return _channels(look, formula, values), lengths


def _flat(offsets: Any) -> bool:
    return isinstance(offsets, tuple) and not isinstance(offsets[0], tuple)


def _numbers_of(
    look: Look, name: str, letters: list[str], shape: list[int], inputs: Inputs, salt: int
) -> Rounded:  # fmt: skip
    """Unit vectors, one for each token in turn; or normal numbers, in the format of the draw."""
    if inputs.units and letters[-1:] == ["D"] and name != "y":
        width = shape[-1]
        units = torch.eye(width, dtype=torch.float64)[torch.arange(shape[-2]) % width]
        return exact(units.expand(shape))
    made = look.draw.normal(*(shape or [1]), salt=salt + 1) * inputs.scale.get(name, 1.0)
    return exact(made if shape else made[0])


def _moved(draw: Draw, n: int, salt: int) -> Tensor:
    """A permutation that leaves nothing where it is: one cycle."""
    order = torch.randperm(n, generator=draw.generator(salt))
    found = torch.arange(n)
    found[order] = order.roll(1)
    return found


def _kept(kind: str, shape: list[int]) -> Tensor:
    """Which tokens count: of padding the first ones, fewer in each row; else every other way."""
    rows, tokens = shape
    place, row = torch.arange(tokens), torch.arange(rows)[:, None]
    if kind == "padding":
        return place < (tokens - 1 - row % 2).clamp(min=1)
    seen = (place + 2 * row) % 4 != 1
    seen[:, 0] |= ~seen.any(1)
    return seen


def _positions(
    look: Look, kind: str, shape: list[int], offsets: Any, axis: int | None, inputs: Inputs,
    salt: int,
) -> Any:  # fmt: skip
    subject = look.subject
    axes = getattr(subject, "axes", 0)
    low = getattr(subject, "first", 0)
    if kind == "step":
        return 5 if offsets is None else offsets
    whole = torch.int64 if getattr(subject, "whole", True) else torch.float32
    if kind == "shift":
        by = 3 if offsets is None else offsets
        if not axes:
            return torch.tensor(by).to(whole)
        moved = torch.tensor([by * (axis is None or axis == k) for k in range(axes)])
        return moved.to(whole)
    if offsets is None:
        drawn = torch.randint(0, 24, shape, generator=look.draw.generator(salt + 70)).double()
    else:
        rows = offsets if isinstance(offsets[0], tuple) else (offsets,)
        one = torch.tensor([list(row) for row in rows], dtype=torch.float64)
        token = torch.arange(shape[1])
        token = token // subject.width if inputs.units else token
        drawn = one[torch.arange(shape[0]) % len(rows)][:, token % one.shape[1]]
    if float(drawn.frac().abs().max()) and subject.whole:
        raise Beyond("positions are whole")
    drawn = drawn + low
    if axes and kind == "position":
        drawn = torch.stack([drawn + k for k in range(axes)], -1)
    return drawn.to(whole)


def _within(look: Look, formula: Formula, values: Values) -> None:
    """Raise ``Beyond`` where the code lacks positions, or the sums of them that a law speaks of."""
    reach = look.reach
    if reach is None:
        return
    at = {name: values[name] for name, told in formula.given.items()
          if told.split()[0] in ("position", "place")}  # fmt: skip
    by = [v for name, v in values.items() if formula.given[name] in ("shift", "step")]
    ends = [float(x) for p in at.values() for x in (p.min(), p.max())]
    for s in by:
        most = torch.as_tensor(s).double()
        ends += [e + float(x) for e in list(ends) for x in (most.min(), most.max())]
    if formula.id == "composition" and {"m", "p"} <= set(at):
        ends += [float((at["m"] + at["p"]).max() - look.subject.first)]
    if formula.id == "cache-keeps-its-positions":
        ends.append(reach.low + values["k"].shape[2])
    if not reach.has(*ends):
        raise Beyond(reach.why)


@dataclass
class _Met:
    """What was met on the way through the inputs of a law."""

    whys: list[str] = field(default_factory=list)
    seen: int = 0
    worst: tuple[float, float, float] = (0.0, 0.0, 0.0)
    doubt: Outcome | None = None
    refused: Exception | None = None
    letters: dict[str, int] = field(default_factory=dict)


def _measured(law: str, subject: Any, draw: Draw, floor: float = 0.0) -> Outcome:
    """Every formula of the law at its inputs, from small to large."""
    look = Look(subject, draw, Roundings(subject, draw, floor))
    if isinstance(subject, Rotary):
        look = replace(look, reach=reach_of(subject, draw))
    formulas = [f for one in LAWS if one.id == law for f in one.formulas if f.kind == subject.kind]
    met = _Met()
    for formula in formulas:
        why = no_formula(formula, subject)
        if why or not hasattr(look.calls(), formula.call):
            met.whys.append(why or NOTHING)
            continue
        for inputs, axis in _designs(formula, subject):
            try:
                found = _at(look, formula, inputs, axis, met)
            except NotAsked as error:
                met.whys.append(str(error))
                break
            if found is not None:
                return found
    if met.doubt is not None:
        return met.doubt
    if not met.seen:
        if met.refused is not None:
            raise met.refused
        return not_asked(next((w for w in met.whys if w), NOTHING))
    return held(_words(look, formulas, met.seen), *met.worst[1:], **met.letters)


def _at(
    look: Look, formula: Formula, inputs: Inputs, axis: int | None, met: _Met
) -> Outcome | None:
    """Broken where the sides differ at these inputs; None where they do not, or code refuses."""
    values: Values = {}
    try:
        values, lengths = _given(look, formula, inputs, axis)
        found, near = look.differ(formula, values)
        if found is not None and isinstance(look.subject, Rotary):
            slow, _ = look.differ(formula, values, FASTEST)
            if slow is None and may_be_faster(look.subject, look.draw):
                met.doubt = met.doubt or undecided(TOO_FAST, found.off, found.allowed)
                return None
        found = found or _vanishes(look, formula, values)
    except Beyond as beyond:
        met.whys.append(str(beyond))
        return None
    except FedInPieces as error:
        told = {name: _told(v) for name, v in values.items()}
        one = Seen(told, ("fed in pieces", str(error)), ("all at once", "no error"), math.inf)
        return broken(f"fed in pieces, a later piece {error}", one)
    except Unsteady:
        raise
    except REFUSALS as error:
        met.refused = met.refused or error
        return None
    if found is not None:
        return _broken(look, formula, values, found, lengths)
    met.seen, met.worst = met.seen + 1, max(met.worst, near)
    met.letters = _letters(formula, lengths)
    return None


def _words(look: Look, formulas: list[Formula], seen: int) -> str:
    """What was looked at, for a law that holds."""
    names = dict.fromkeys(one for f in formulas for one in f.names)
    told = "; ".join(f"{here} = {there}" for here, there in names) or "both sides agree"
    words = [f"{told}, at {seen} inputs"]
    if isinstance(look.subject, Rotary):
        if look.reach is not None and look.reach.why:
            words.append(look.reach.why)
        if formulas[0].id in ("composition", "identity-at-zero") and _reordered(look):
            words.append(REORDERED)
    return "; ".join(words)


def _reordered(look: Look) -> bool:
    return channel_order(look.subject) is not None


def _channels(look: Look, formula: Formula, values: Values) -> Values:
    """Of a law of lengths: without the channels that pass, where the others become longer."""
    if formula.id != "norm" or not isinstance(look.subject, Rotary):
        return values
    points = [point(look.subject, look.subject.first + o) for o in (0, 1)]
    found = matrices(look.subject, look.subject.turn, points, look.draw)
    longer, passes = lengths_of(found)
    eta = rounding_for(look.subject, look.draw).turning
    if not bool(passes.any()) or bool(passes.all()) or float((longer - 1).abs().max()) <= 2 * eta:
        return values
    turned = (~passes).double()
    return {k: exact(v.value * turned) if isinstance(v, Rounded) else v for k, v in values.items()}


def _vanishes(look: Look, formula: Formula, values: Values) -> Apart | None:
    """Where what should be above 0 is not: equations of zeros say nothing."""
    if formula.positive is None:
        return None
    value, off = _of(formula.positive(look.calls(), **values))
    if bool((value > off).all()):
        return None
    at = tuple(int(i) for i in torch.unravel_index((value - off).argmin(), value.shape))
    names = ("what a vector of ones becomes at 0", "a channel that does not vanish")
    return Apart(names, at, float(value[at]), 1.0, 1.0, float(off[at]))


def _broken(
    look: Look, formula: Formula, values: Values, found: Apart, lengths: Mapping[str, int]
) -> Outcome:  # fmt: skip
    values, found = _shrunk(look, formula, values, found)
    told = {name: _told(value) for name, value in values.items()}
    if isinstance(look.subject, Attention | Layer):  # looked at in float64 first
        told |= {"seed": look.draw.seed, "format": str(look.draw.dtype).removeprefix("torch.")}
    at = f" at {list(found.at)}" if found.at else ""
    seen = Seen(told, (found.names[0] + at, found.here), (found.names[1] + at, found.there),
                found.off, found.allowed)  # fmt: skip
    apart = f" by {found.off:.3g}" if math.isfinite(found.off) else ""
    where = [f"{name} = {told[name]}" for name, kind in formula.given.items()
             if kind.split()[0] in ("position", "place", "shift", "step")
             and torch.as_tensor(values[name]).numel() <= 4]  # fmt: skip
    why = f"{found.names[0]} and {found.names[1]} differ{apart}"
    why += f", {', '.join(where)}" if where else ""
    if math.isfinite(found.off) and found.allowed:
        why += f"; rounding explains {found.allowed:.2g}"
    return broken(why, seen, **_letters(formula, _now(formula, values, lengths)))


def _letters(formula: Formula, lengths: Mapping[str, int]) -> dict[str, int]:
    used = {c for told in formula.given.values() for c in told.split()[1:]}
    return {c: n for c, n in lengths.items() if c in used}


def _now(formula: Formula, values: Values, lengths: Mapping[str, int]) -> dict[str, int]:
    found = dict(lengths)
    for name, told in formula.given.items():
        letters = told.split()[1:]
        shape = getattr(values[name], "shape", ())
        found |= {c: int(n) for c, n in zip(letters, shape, strict=False)}
    return found


def _shrunk(look: Look, formula: Formula, values: Values, found: Apart) -> tuple[Values, Apart]:
    """The same with fewer of each letter, as long as the sides differ."""
    for letter in SHRUNK:
        while True:
            length = _now(formula, values, {}).get(letter, 1)
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


def _told(value: Any) -> Any:
    """Plain data for a witness: few numbers, or a shape."""
    x = value.value if isinstance(value, Rounded) else value
    if not isinstance(x, Tensor):
        return x
    if x.numel() == 1:
        return plain(x.reshape(()))
    if x.dim() == 4 and x.shape[1] > 1 and bool((x == x[:, :1]).all()):
        return _told(x[:, 0])  # the same in every head
    line = x.flatten().sort().values
    if x.numel() == x.shape[-1] and not bool(line[:-1].any()) and float(line[-1]) == 1:
        return unit_words(int(x.flatten().argmax()), x.shape[-1])
    few = x.numel() <= SHOWN
    return plain(x.reshape([n for n in x.shape if n > 1])) if few else f"shape {list(x.shape)}"


def _register(law: str, kind: str) -> None:
    if kind in ("attention", "layer"):

        @in_formats
        def looked(scene: Scene) -> Outcome:
            return _measured(law, scene.subject, scene.draw, scene.floor)

        probe(law, kind)(looked)
        return

    def look(subject: Any, draw: Draw) -> Outcome:
        with evaluating(subject):
            return _measured(law, subject, draw)

    probe(law, kind)(look)


for _law, _kinds in MEASURED.items():
    for _kind in _kinds.split():
        _register(_law, _kind)

"""The inputs at which a law is measured: lengths of its letters, and drawn values, by name.

The inputs are specified beside the laws (:mod:`attnproof.theorems.laws.law`); here they become
arrays with the heads and features of the code, at positions that it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula, Law
from attnproof.theorems.laws.law import BEYOND_EXP, OF_CALLS, Inputs

from ...numeric.error_analysis import Rounded
from ..applicable_laws import declared_of
from ..execution.draw import Draw, counting
from ..execution.rotary_matrices import matrices, norms_of, point, rounding_for
from ..loading.source_numbers import numbers_in
from ..reading.derived_calls import NotAsked
from ..subjects import Attention, Layer, Rotary, Subject, lengths_of_code
from .roundings import exact
from .sides import Beyond, Comparison, Values

LENGTHS = {"B": 2, "A": 1, "n": 5, "r": 3, "m": 2, "c": 8}
USUAL_TOKENS = 6  # of other inputs
MAX_CONSTANT = 130  # the largest number in the source that counts
HEAD_CALLS = ("attend", "attend_masked", "attend_keeping", "attend_added", "attend_lowered")
MEAN = 90  # salt of the mean of a cluster
SPREAD = 0.25  # of a cluster, where that of other tokens is 1
DEPENDENT = ("o",)  # positions that are as many as those of another input


def _lengths(subject: Subject) -> dict[str, int]:
    """Return the length of each letter that the code fixes."""
    found = {**LENGTHS, **lengths_of_code(subject)}
    if isinstance(subject, Attention):
        found |= {"G": declared_of(subject).groups or subject.groups}
        found |= {"D": subject.width or 5, "E": subject.embed or 5}
    if isinstance(subject, Layer):
        found |= {"H": 3}
    return {**found, "W": (declared_of(subject).window or 0) + 3}


def other_heads(subject: Attention) -> tuple[tuple[int, int], ...]:
    """Return further numbers of heads and groups to try; () for a module, whose heads are fixed."""
    if subject.module is not None:
        return ()
    fewer = subject.groups < subject.heads or declared_of(subject).groups
    return ((4, 2), (6, 2), (12, 4)) if fewer else ((4, 4), (6, 6), (12, 12))


def inputs_of(formula: Formula, subject: Any) -> Iterator[tuple[Inputs, int | None]]:
    """Yield the inputs of a formula, each with the single axis of its shift (None for all)."""
    if subject.run_at:
        for left in sorted({one.left for one in formula.inputs} or {False}):
            for one in subject.run_at:
                yield Inputs(lengths=one, left=left, named=True, clustered=True), None
        return
    of_call = OF_CALLS.get(formula.call, ())
    if not formula.inputs and not of_call:
        of_call = OF_CALLS[
            "layer"
            if "real B n E" in formula.given.values()
            else "attend"
            if "attend" in formula.call
            else "rotate"
        ]
    more = tuple(Inputs(lengths=one) for one in formula.sizes) if not formula.inputs else ()
    if isinstance(subject, Attention) and formula.call in HEAD_CALLS:
        more += tuple(
            Inputs(lengths={"B": 3, "r": 6, "n": 6, "H": h, "G": g})
            for h, g in other_heads(subject)
        )
    if of_call and isinstance(subject, Attention | Layer):
        beyond = lengths_past_constants(subject) if subject.beyond is None else subject.beyond
        more += tuple(Inputs(lengths={"B": 1, "A": 1, "r": n, "n": n}, named=True) for n in beyond)
    axes = getattr(subject, "axes", 0) if "shift" in formula.given.values() else 0
    front = getattr(subject, "from_start", False)  # padding never precedes its tokens
    asked = [one for one in formula.inputs or of_call if not (one.left and front)]
    for inputs in (*asked, *more, *formula.further):
        for axis in (None, *range(axes)) if axes > 1 else (None,):
            yield inputs, axis


def lengths_past_constants(subject: Attention | Layer) -> tuple[int, ...]:
    """Return one more than the least and largest number that may be a length in the code.

    With so many tokens, there is more than one block of a fixed size.
    """
    calls = (subject.call,) if isinstance(subject, Layer) else (subject.attend, subject.layer)
    roots = [one for one in (*calls, subject.module) if one is not None]
    named = [n for n in numbers_in(roots) if USUAL_TOKENS < n <= MAX_CONSTANT]
    return tuple(sorted({1 + n for n in (min(named), max(named))})) if named else ()


def input_size(law: Law, subject: Any) -> int:
    """Estimate the cost of a law: how many numbers its formulas take over all inputs."""
    total = 0
    for formula in law.formulas:
        for inputs, _ in inputs_of(formula, subject) if formula.kind == subject.kind else ():
            lengths = _sized(inputs, formula, subject)
            total += sum(
                math.prod(lengths[c] for c in told.split()[1:]) for told in formula.given.values()
            )
    return total


def _sized(inputs: Inputs, formula: Formula, subject: Any) -> dict[str, int]:
    """Return the length of every letter at these inputs."""
    found = _lengths(subject)
    for name, told in formula.given.items():
        letters, offsets = told.split()[1:], inputs.at.get(name)
        if isinstance(offsets, tuple) and len(letters) > 1:
            rows = offsets if isinstance(offsets[0], tuple) else (offsets,)
            many = len(rows[0])
            if name in DEPENDENT:
                continue
            if isinstance(offsets[0], tuple):
                found[letters[0]] = len(rows)
            if many:
                found[letters[1]] = many * found["D"] if inputs.units else many
    if inputs.units:
        found["B"] = 1
    own = {k: found[v] if isinstance(v, str) else v for k, v in inputs.lengths.items()}
    return {
        **found,
        **{
            k: max(1, min(v, 16))
            if isinstance(inputs.lengths[k], str) and k != "E" and inputs.lengths[k] != "W"
            else v
            for k, v in own.items()
        },
    }


def _drawn(
    comparison: Comparison,
    formula: Formula,
    inputs: Inputs,
    axis: int | None,
    lengths: Mapping[str, int],
) -> Values:
    """Draw the inputs by name.  Raises ``Beyond`` for positions that the code does not have."""
    found: Values = {}
    for salt, (name, told) in enumerate(formula.given.items()):
        kind, *letters = told.split()
        shape = [lengths[c] for c in letters]
        if kind == "real":
            if "E" in letters and not lengths["E"]:
                raise NotAsked("the width of a token is not known")
            found[name] = _numbers_of(comparison, name, letters, shape, inputs, salt)
        elif kind == "permutation":
            found[name] = _derangement(comparison.draw, shape[0], salt)
        elif kind in ("padding", "keep"):
            kept = counting(kind, *shape)
            found[name] = kept.flip(1) if inputs.left else kept
        else:
            found[name] = _positions(
                comparison, kind, shape, inputs.at.get(name), axis, inputs, salt
            )
    _within(comparison, formula, found)
    return found


def draw_inputs(
    comparison: Comparison, formula: Formula, inputs: Inputs, axis: int | None
) -> tuple[Values, dict[str, int]]:
    """Return the inputs and their lengths, with fewer positions if the code lacks the last ones."""
    while True:
        lengths = _sized(inputs, formula, comparison.subject)
        try:
            values = _drawn(comparison, formula, inputs, axis, lengths)
        except Beyond:
            many = max((len(v) for v in inputs.at.values() if _flat(v)), default=1)
            if many < 2:
                raise
            fewer = {k: v[:-1] if _flat(v) and len(v) == many else v for k, v in inputs.at.items()}
            inputs = replace(inputs, at=fewer)
            continue
        return _channels(comparison, formula, values), lengths


def _flat(offsets: Any) -> bool:
    return isinstance(offsets, tuple) and not isinstance(offsets[0], tuple)


def _numbers_of(
    comparison: Comparison,
    name: str,
    letters: list[str],
    shape: list[int],
    inputs: Inputs,
    salt: int,
) -> Rounded:
    """Return unit vectors, one for each token in turn, or normally distributed numbers.

    Clustered tokens have a common mean.
    """
    if inputs.units and letters[-1:] == ["D"] and name != "y":
        width = shape[-1]
        units = torch.eye(width, dtype=torch.float64)[torch.arange(shape[-2]) % width]
        return exact(units.expand(shape))
    top = torch.finfo(comparison.draw.dtype).max
    large = inputs.scale.get(name, 1.0)
    large = 16 * math.log(top) if large == BEYOND_EXP else large
    made = comparison.draw.normal(*(shape or [1]), salt=salt + 1)
    if inputs.clustered and letters[-1:] == ["E"] and len(shape) > 1:
        mean = comparison.draw.normal(shape[-1], salt=salt + MEAN)
        made[..., ::2, :] = mean + SPREAD * made[..., ::2, :]
    made = made * min(large, math.sqrt(top) / 16)  # products of two stay finite
    return exact(made if shape else made[0])


def _derangement(draw: Draw, n: int, salt: int) -> Tensor:
    """Return a permutation without fixed points: a single cycle."""
    order = torch.randperm(n, generator=draw.generator(salt))
    found = torch.arange(n)
    found[order] = order.roll(1)
    return found


def _positions(
    comparison: Comparison,
    kind: str,
    shape: list[int],
    offsets: Any,
    axis: int | None,
    inputs: Inputs,
    salt: int,
) -> Any:
    subject = comparison.subject
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
        generator = comparison.draw.generator(salt + 70)
        if isinstance(subject, Rotary) and subject.counts and subject.run_at and len(shape) > 1:
            # Others would take many calls, none of which has so many tokens or rows.
            free = max(1, min(24, subject.most - shape[1]))
            first = torch.randint(0, free, (), generator=generator)
            drawn = (first + torch.arange(shape[1])).double().expand(shape)
        else:
            drawn = torch.randint(0, 24, shape, generator=generator).double()
    else:
        rows = offsets if isinstance(offsets[0], tuple) else (offsets,)
        one = torch.tensor([list(row) for row in rows], dtype=torch.float64)
        token = torch.arange(shape[1])
        token = token // subject.width if inputs.units else token
        drawn = one[torch.arange(shape[0]) % len(rows)][:, token % one.shape[1]]
    if getattr(subject, "shared", False) and len(shape) > 1:
        drawn = drawn[:1].expand(drawn.shape).clone()  # rows are rotated together
    if float(drawn.frac().abs().max()) and subject.whole:
        raise Beyond("positions are integers")
    drawn = drawn + low
    if axes and kind == "position":
        drawn = torch.stack([drawn + k for k in range(axes)], -1)
    return drawn.to(whole)


def _within(comparison: Comparison, formula: Formula, values: Values) -> None:
    """Raise ``Beyond`` if the code lacks the positions, or sums of them, that a law uses."""
    reach = comparison.reach
    if reach is None:
        return
    at = {
        name: values[name]
        for name, told in formula.given.items()
        if told.split()[0] in ("position", "place")
    }
    by = [v for name, v in values.items() if formula.given[name] in ("shift", "step")]
    ends = [float(x) for p in at.values() for x in (p.min(), p.max())]
    for s in by:
        most = torch.as_tensor(s).double()
        ends += [e + float(x) for e in list(ends) for x in (most.min(), most.max())]
    if formula.id == "composition" and {"m", "p"} <= set(at):
        ends += [float((at["m"] + at["p"]).max() - comparison.subject.first)]
    if formula.id == "cache-keeps-its-positions":
        ends.append(reach.low + values["k"].shape[2])
    if not reach.contains(*ends):
        raise Beyond(reach.why)


def _channels(comparison: Comparison, formula: Formula, values: Values) -> Values:
    """For laws about norms, zero the channels that pass through if the other ones are scaled."""
    if formula.id != "norm" or not isinstance(comparison.subject, Rotary):
        return values
    points = [point(comparison.subject, comparison.subject.first + o) for o in (0, 1)]
    found = matrices(comparison.subject, comparison.subject.rotate, points, comparison.draw)
    longer, passes = norms_of(found)
    eta = rounding_for(comparison.subject, comparison.draw).rotating
    if not bool(passes.any()) or bool(passes.all()) or float((longer - 1).abs().max()) <= 2 * eta:
        return values
    rotated = (~passes).double()
    return {k: exact(v.value * rotated) if isinstance(v, Rounded) else v for k, v in values.items()}

"""At which lengths, and on which numbers, two programs are run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..source_numbers import constants_in, numbers_of
from .pair import Two

LONG = (16, 33, 70)  # tokens; code may do otherwise from a length on
NAMED, LONGEST = 24, 600  # lengths of the source that are tried
HEADS = 64  # of which code may have some of its own
NUMBERS, MOST_INPUT = 8, 1e30  # numbers of the source that are tried as inputs
TOKENS = "nrm"
FILLS = (1e3, 1e6)  # what hides keys as long as no score is as large
LARGE, ZEROS = "large inputs", "inputs that are 0"


def lengths_tried(both: Two) -> list[dict[str, int]]:
    """Lengths at which both are run: as they stand, small, equal, and long; short ones first."""
    base = dict(both.lengths)
    letters = [c for c in base if any(c in one.letters for one in both.given)]
    tokens = [c for c in letters if c in TOKENS]
    found = [base]
    even = [c for c in base if c in "DE"]  # channels may go in pairs
    for size in (1, 2, 3):
        least = {**dict.fromkeys(base, size), **dict.fromkeys(even, 2 * size)}
        found += [least, {**least, **{c: base[c] for c in even}}]
        found.append({**base, **dict.fromkeys(tokens, size)})
        found += [{**base, c: size} for c in letters if c not in "HGDE"]
    found += [{**base, "n": a, "r": b} for a, b in ((2, 5), (5, 2), (6, 6)) if "r" in base]
    for n in LONG:
        found.append({**base, **dict.fromkeys(tokens, n)})
    if {"H", "G"} <= set(letters):
        found += [{**base, "H": h, "G": g} for h, g in ((6, 2), (4, 4), (4, 1))]
    found += [{**base, c: n} for c in "HDE" for n in (2, 4, 6) if c in letters]
    named = _named(both)
    if "H" in letters:
        few = {**base, **dict.fromkeys(tokens, 2)}
        found += [{**few, "H": n, **({"G": 1} if "G" in few else {})} for n in named if n <= HEADS]
    for n in named:
        found.append(
            {**dict.fromkeys(base, 2), **{c: base[c] for c in even}, **dict.fromkeys(tokens, n)}
        )
    unique = {tuple(sorted(one.items())): one for one in found}
    return sorted(unique.values(), key=lambda one: math.prod(one.values()))


def _constants(both: Two) -> list[float]:
    """The numbers of the source of either program."""
    return constants_in([side.program.call for side in (both.first, both.second)])


def _named(both: Two) -> list[int]:
    """Lengths that the source of either program names, and their neighbours."""
    named = dict.fromkeys(n + k for n in numbers_of(_constants(both)) for k in (-1, 0, 1))
    return [n for n in named if 3 < n <= LONGEST][:NAMED]


def unusual(both: Two, given: Sequence[Tensor]) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    """Inputs of which code may do otherwise, and what they are, where they are no ordinary ones."""
    yield ZEROS, scaled(given, 0.0)
    for place, x in enumerate(given):
        if x.is_floating_point():
            yield ZEROS, (*given[:place], torch.zeros_like(x), *given[place + 1 :])
    constants = _constants(both)
    fills = any(FILLS[0] <= abs(c) < FILLS[1] for c in constants)
    yield LARGE, scaled(given, 16.0 if fills else 100.0)
    yield "small inputs", scaled(given, 1e-3)
    reals = [c for c in constants if 0 < abs(c) < MOST_INPUT and c != int(c)]
    for number in (1.0, -1.0, *reals[:NUMBERS]):
        yield (
            "inputs that are all one number",
            tuple(torch.full_like(x, number) if x.is_floating_point() else x for x in given),
        )
    for n in [n for n in numbers_of(constants) if n > LONG[-1]][:NUMBERS]:
        moved = tuple(
            x + n if one.kind == "positions" else x
            for one, x in zip(both.given, given, strict=True)
        )
        if any(one.kind == "positions" for one in both.given):
            yield "", moved


def scaled(values: Sequence[Tensor], scale: float) -> tuple[Tensor, ...]:
    """The numbers among some arrays times a number; positions and masks as they are."""
    return tuple(x * scale if x.is_floating_point() else x for x in values)

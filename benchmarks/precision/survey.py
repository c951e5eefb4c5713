"""Measure rotary encoding in short formats, and apply two laws to wrong code.

The law ``relative``, score(m + s, n + s) = score(m, n), detects wrong positions.  It cannot detect
another layout, or frequencies that are wrong in the same way for queries and keys: these are
compared with the declaration.  Neither detects rotation in the opposite direction, which only
negates the offsets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import torch
from torch import Tensor

from attnproof import __version__
from attnproof.numeric.devices import chosen, one_thread
from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Rotary
from attnproof.theorem_runs.records import Machine
from benchmarks.precision.bound import FORMATS, Format
from benchmarks.precision.limits import (
    BASES,
    SHIFTS,
    Break,
    Errors,
    Pairs,
    breaks,
    collision,
    drift,
    errors,
    rotated,
)
from benchmarks.precision.record import Checked, PrecisionRecord

# Rotary code with typical faults, and the verdicts of two laws on each

BASE = 1e4
DECLARED = ("layout-as-declared", "frequencies-as-declared")
Rotate = Callable[[Tensor, Tensor], Tensor]  # of (k, 2B) at (k,)


def wrong(form: Format, base: float, pairs: int) -> Iterator[tuple[str, Rotate]]:
    """Yield correct code, then code with typical faults; all but one interleaved."""
    usual = form.rounded_frequencies(base, pairs)
    place = torch.arange(pairs)

    def by(frequencies: Tensor) -> Rotate:
        return lambda x, p: rotated(x, p, form, frequencies)

    yield "as declared", by(usual)
    yield "frequencies in bfloat16", by(usual.to(torch.bfloat16).to(usual.dtype))
    yield f"base {base + 1:g}", by(form.rounded_frequencies(base + 1, pairs))
    yield "angles doubled", by(2 * usual)
    yield "rotated the other way", by(-usual)
    yield "one frequency off by 1e-4", by(torch.where(place == pairs // 3, usual * 1.0001, usual))
    yield "the other layout", lambda x, p: half_split(x, p, form, usual)
    yield "positions in bfloat16", lambda x, p: rotated(x, p.to(torch.bfloat16), form, usual)


def half_split(x: Tensor, positions: Tensor, form: Format, frequencies: Tensor) -> Tensor:
    """Rotate x: (k, 2B) in the layout that pairs channels b and B + b."""
    half = frequencies.shape[0]
    pairs = torch.stack((x[:, :half], x[:, half:]), dim=-1).flatten(1)
    found = rotated(pairs, positions, form, frequencies)
    return torch.cat((found[:, 0::2], found[:, 1::2]), dim=-1)


def checked(form: Format, pairs: int = 64, base: float = BASE) -> Iterator[Checked]:
    """Yield the verdicts of two laws on each code in a format."""
    for says, rotate in wrong(form, base, pairs):
        subject = Rotary(
            name=says,
            rotate=_of_rows(rotate),
            width=2 * pairs,
            declared=DeclaredRotary(base=base, layout="interleaved"),
        )
        seen = examine(subject, [Draw(dtype=form.data)], ("relative", *DECLARED))
        found = {one.law: one for one in seen}
        same, declared = found["relative"], found[DECLARED[1]]
        if found[DECLARED[0]].verdict == "broken":
            declared = found[DECLARED[0]]
        yield Checked(
            says,
            form.name,
            same.verdict,
            _ratio(same),
            declared.verdict,
            _ratio(declared),
            declared.why if declared.verdict == "broken" else "",
        )


def _of_rows(rotate: Rotate) -> Rotate:
    """Return the function for vectors (B, H, T, D) at positions (B, T)."""

    def rows(x: Tensor, positions: Tensor) -> Tensor:
        at = positions[:, None].expand(x.shape[:-1])
        return rotate(x.reshape(-1, x.shape[-1]), at.reshape(-1)).reshape(x.shape)

    return rows


def _ratio(one: Finding) -> float:
    """Return the largest difference over its rounding bound."""
    return one.error / one.bound if one.error is not None and one.bound else math.nan


# All measurements in one run

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
Tell = Callable[[str, int, int], None]


def survey(
    *,
    device: str = "cpu",
    seed: int = 0,
    content: int = 512,
    pairs: int = 64,
    tell: Tell = lambda _says, _done, _all: None,
) -> PrecisionRecord:
    """Measure all formats at all bases and shifts; ``tell`` is called with the progress."""
    where = chosen(device)
    drawn = Pairs.drawn(content, pairs, seed=seed)
    every = [(form, base) for base in BASES for form in FORMATS]
    found: list[Errors] = []
    broken: list[Break] = []
    with one_thread():
        for done, (form, base) in enumerate(every):
            tell(f"{form.name}, base {base:g}", done, len(every) + 1)
            found += [errors(drawn, form, base, shift, where) for shift in SHIFTS]
            broken.append(breaks(drawn, form, base, device=where))
        tell("positions, frequencies, faults", len(every), len(every) + 1)
        return PrecisionRecord(
            made=datetime.now(UTC),
            attnproof=__version__,
            machine=Machine.here(),
            device=str(where),
            seed=seed,
            content=content,
            width=2 * pairs,
            errors=tuple(found),
            breaks=tuple(broken),
            collisions=tuple(collision(dtype) for dtype in DTYPES),
            drifts=tuple(drift(dtype, base, pairs) for dtype in DTYPES for base in BASES),
            checked=tuple(one for form in (FORMATS[0], FORMATS[4]) for one in checked(form, pairs)),
        )

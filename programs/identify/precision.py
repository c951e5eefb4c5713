"""Find the precision in which rotary code computes its angles, and up to where they are exact.

Once a formula for the frequencies is known, all ways of rounding positions, frequencies and angles
are tried, finest first, and the first that reproduces all angles is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.devices import name_of, unit_roundoff
from ..execution.draw import Draw
from ..execution.rotary_matrices import SHORT, probe_positions, wrapped
from ..execution.tolerance import formula_error
from ..finding import Part, format_number
from ..reading.rotations import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, Blocks, images
from ..subjects import Rotary
from .frequencies import Dynamic, Ladders

LAST = 1 << 20
DENSE = 512  # below it every position is tried,
ENTRIES = 1 << 24  # unless that rotates more numbers than this


def precision_parts(
    code: Rotary,
    draw: Draw,
    blocks: Sequence[Blocks],
    found: Ladders,
    noise: float,
    ids: str,
    dynamic: Dynamic | None,
) -> list[Part]:
    """The parts for the precision of angles and for the position up to which they are exact."""
    if found.formula is None:
        words = "in an unknown precision, as no formula for the frequencies is known"
        return [Part("angles", None, words, "", certain=False)]
    axis = int(found.axis[0])
    mine = found.axis == axis
    positions, omega = blocks[axis].positions, found.formula[mine]
    ways = roundings(positions, blocks[axis].angles[:, mine], omega, 2 * noise)
    if not ways:
        parts = [
            Part(
                "angles",
                None,
                "angles rounded in a way that is not known",
                "no rounding of positions, frequencies and angles gives what was read",
                certain=False,
            )
        ]
    else:
        reach = float(positions.abs().max()) * float(omega.abs().max())
        single = (positions.float()[:, None] * omega.float()).double()
        told_apart = bool(((single - positions.double()[:, None] * omega).abs() > 2 * noise).any())
        words = ways[0].words
        if ways[0].angles == torch.float64 and not told_apart:
            words = "angles computed in float32 or finer"
        seen = (
            f"{int(mine.sum())} pairs at {len(positions)} positions up to "
            f"{format_number(reach)} radians"
        )
        coarse = [
            w.words
            for w in ways
            if w.angles not in (torch.float64, torch.float32)
            or w.positions in (torch.float16, torch.bfloat16)
        ]
        other = [w for w in coarse if w != words][:2] if "computed" in words else []
        seen += f"; {' or '.join(other)} gives the same there" if other else ""
        value = {name: name_of(dtype) for name, dtype in vars(ways[0]).items()}
        parts = [Part("angles", value, words, seen, certain=not other)]
    if code.whole:
        parts.append(_exact(code, draw, blocks[axis], found, noise, ids, dynamic))
    return parts


def _exact(
    code: Rotary,
    draw: Draw,
    blocks: Blocks,
    found: Ladders,
    noise: float,
    ids: str,
    dynamic: Dynamic | None,
) -> Part:
    """Find by doubling up to which position angles stay within 1e-2 of the formula.

    The level is coarser if the reading error of the table is.
    """
    axis = int(found.axis[0])
    mine = found.axis == axis
    assert found.formula is not None  # checked by the caller
    omega, furthest = found.formula[mine], int(blocks.positions.max())
    level = LEVEL if 2 * noise <= LEVEL else float(f"{2 * noise:.0e}")

    def last_of(some: Tensor) -> int | None:
        seen = images(code, some, draw, axis=axis).finite().blocks(found.pairs)
        return exact_to(seen.positions, seen.angles[:, mine], omega, noise, level)

    last = exact_to(blocks.positions, blocks.angles[:, mine], omega, noise, level)
    reach = min(LAST, code.most - 1) if ids == "own" and dynamic is None else furthest
    at = furthest
    while last is None and at < reach:
        at = min(2 * at, reach)
        more = probe_positions(at)
        last = last_of(more[more > furthest])
        last = furthest if last == -1 else last
        furthest = at
    left = "" if level == LEVEL else ", the accuracy left by the rounding of the table"
    power = f"{level:.0e}".replace("e-0", "e-")  # 1e-2 for 0.01
    at_level = f"at {power}{left}"
    if last is None:
        return Part(
            "exact to",
            furthest,
            f"exact to position {furthest} {at_level}",
            "no angle is further off at any tested position",
        )
    seen = "tested at 1, 2, 4, .. and between; an angle is further off before twice this position"
    if last >= DENSE:
        last = 1 << (last.bit_length() - 1)
    elif ids == "own" and dynamic is None and last * code.width**2 * code.heads <= ENTRIES:
        some = last_of(torch.arange(max(code.first, 0), min(2 * last + 4, code.most)))
        last = last if some is None else some
        seen = "every position up to there was tested"
    return Part("exact to", max(last, 0), f"exact to position {max(last, 0)} {at_level}", seen)


def table_part(table: torch.dtype, data: torch.dtype) -> Part:
    """The dtype of the cosines and sines."""
    name = name_of(table)
    words = "" if table == data else f"cosines and sines rounded to {name}"
    return Part("table", name, words, f"all values read are numbers of {name}")


def precise_answer(parts: Sequence[Part]) -> str:
    """A sentence on how far the code is accurate, if rounding limits it."""
    angles = next((p for p in parts if p.name == "angles"), None)
    exact = next((p for p in parts if p.name == "exact to"), None)
    if angles is None or exact is None or "rounded" not in angles.words:
        return ""
    return (
        f"{angles.words}: {exact.words}, and not further; compute positions, frequencies and "
        "angles in float32, and round cosines and sines"
    )


LEVEL = 1e-2


def shorter_format(unit: float, draw: Draw) -> Iterator[Part]:
    """Yield a part if code computes in a shorter format, of this unit, than that of its inputs."""
    told = next((one for one in SHORT if unit_roundoff(one) == unit), None)
    if told is not None and unit_roundoff(draw.dtype) < unit:
        name = name_of(told)
        seen = f"the operations of a call on {name_of(draw.dtype)}"
        yield Part("format", name, f"numbers rounded to {name} inside", seen)


@dataclass(frozen=True)
class Rounding:
    """The dtypes of positions, frequencies and angles."""

    positions: torch.dtype
    frequencies: torch.dtype
    angles: torch.dtype

    @property
    def words(self) -> str:
        """The rounding in words."""
        short = [
            f"{name} rounded to {name_of(dtype)}"
            for name, dtype in vars(self).items()
            if dtype in (FLOAT16, BFLOAT16)
        ]
        if short:
            return " and ".join(short)
        return f"angles computed in {name_of(self.angles)}"

    def error(self, positions: Tensor, angles: Tensor, omega: Tensor) -> Tensor:
        """The distance of angles from p·ω computed in this way, beyond its tolerance.

        ω: (B,) by the formula, signed.  If a number is so near the middle of two short floats that
        float32 errors decide, both roundings are accepted.
        """
        size = omega.abs()
        unit = unit_roundoff(torch.float32) if self.frequencies != FLOAT64 else 0.0
        slack = formula_error(size, unit)
        own = 0.0 if self.angles == FLOAT64 else unit_roundoff(FLOAT32)
        p = _rounded_to(positions.double(), self.positions)[:, None]
        error = torch.full_like(angles, math.inf)
        # then any number within the slack is accepted
        whole = self.frequencies in (FLOAT32, FLOAT64)
        for one in (0,) if whole else (-1, 1):
            stored = _rounded_to(omega * (1 + one * slack), self.frequencies)
            within = p.abs() * stored.abs() * (own + (slack if whole else 0.0))
            if self.angles in (FLOAT32, FLOAT64):
                off = (wrapped(angles - p * stored).abs() - within).clamp(min=0)
                error = torch.minimum(error, off)
                continue
            for other in (-1, 1):
                angle = _rounded_to(p * stored + other * within, self.angles)
                error = torch.minimum(error, wrapped(angles - angle).abs())
        return error


def _rounded_to(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Round x to a dtype; float32 is covered by the slack of the caller."""
    return x if dtype in (FLOAT32, FLOAT64) else x.to(dtype).double()


WAYS = (
    Rounding(FLOAT64, FLOAT64, FLOAT64),
    Rounding(FLOAT32, FLOAT32, FLOAT32),
    *(
        Rounding(*(short if name in rounded else FLOAT32 for name in "pfa"))
        for short in (FLOAT16, BFLOAT16)
        for rounded in ("p", "f", "a", "pf", "fa", "pa", "pfa")  # by their first letters
    ),
)


def roundings(positions: Tensor, angles: Tensor, omega: Tensor, noise: float) -> list[Rounding]:
    """Return all ways of rounding that reproduce the angles (n, B), finest first."""
    return [way for way in WAYS if bool((way.error(positions, angles, omega) <= noise).all())]


def exact_to(
    positions: Tensor, angles: Tensor, omega: Tensor, noise: float, level: float = LEVEL
) -> int | None:
    """Return the last position before an angle is off p·ω by more than the level, None if none is.

    The reading error is not counted.  −1 if the first angle is already off.
    """
    off = wrapped(angles - positions.double()[:, None] * omega).abs().amax(-1)
    bad = (off > level + noise).nonzero()[:, 0]
    if not len(bad):
        return None
    return int(positions[int(bad[0]) - 1]) if int(bad[0]) else -1

"""A reading of rotary code: its action on unit vectors, by pairs, and the declared ladders.

Laws about declarations, precision and arguments compare this reading with another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..declarations import DeclaredRotary
from ..execution.draw import Draw
from ..execution.rotary_matrices import (
    channel_order_at_zero,
    frequencies_of,
    matrices,
    pairs_in,
    point,
    probe_positions,
    reach_of,
    speeds,
)
from ..execution.tolerance import Rounding, rounding_of
from ..reading import scalings
from ..reading.rotations import Blocks, Images, stored_in
from ..subjects import Rotary

FURTHEST = 1 << 16
EXTRA = (255, 257, 1857, 2047, 2049)  # where short dtypes lose most of positions and angles
UNREAD = "the pairs of channels could not be identified, so no frequency was read"
Pair = tuple[Tensor, Tensor]  # the first and the second channel of each pair


@dataclass(frozen=True)
class Rotation:
    """The action of the first head on unit vectors, at positions counted from the first one.

    ``moving``: the channels that do not pass through unchanged at every position.  ``length``: the
    factor by which vectors are scaled.  ``low``: the first position.  ``reordered``: the channels
    come back permuted, the same way at every position; here they are in their original order.
    ``speeds``: lower bounds on the rotation of each channel per position: (D,).
    """

    images: Images
    moving: tuple[int, ...]
    length: float
    low: int
    rounding: Rounding
    speeds: Tensor
    reordered: bool

    @property
    def allowed(self) -> float:
        """What rounding may leave of an entry that should be 0."""
        return 2 * self.rounding.rotating * max(1.0, self.length)

    @property
    def last(self) -> int:
        """The last position that was read."""
        return int(self.images.positions[-1]) + self.low

    def block(self, subject: Rotary) -> tuple[int, int]:
        """Return the first rotated channel, and an even number of them, declared or seen."""
        declared = subject.declared.width if subject.declared is not None else None
        width = declared or len(self.moving)
        width = min(width - width % 2, subject.width - subject.width % 2)
        start = self.moving[0] if self.moving else 0
        return min(start, subject.width - width), width

    def outside(self, pair: Pair) -> Tensor:
        """Return how much of each unit vector leaves its pair, at finite positions: (n, D, D)."""
        at = self.images.finite().at
        inside = torch.eye(at.shape[-1], dtype=torch.bool)
        inside[pair[0], pair[1]] = inside[pair[1], pair[0]] = True
        return at.abs().masked_fill(inside, 0.0)


@dataclass(frozen=True)
class Frequencies:
    """The angles of each ``pair`` of channels, with bounds ``off``: (n, B), and ω ± ``radius``.

    ``away``: the largest distance of a pair from a rotation.
    """

    blocks: Blocks
    omega: Tensor
    radius: Tensor
    off: Tensor
    pair: Pair
    away: float
    layout: str


def rotation_of(
    subject: Rotary,
    draw: Draw,
    *,
    angles: torch.dtype = torch.float32,
    call: Callable[[Tensor, Tensor], Tensor] | None = None,
    furthest: int = FURTHEST,
) -> Rotation:
    """Apply the code to every unit vector at positions up to 65536, or as far as it goes."""
    reach = reach_of(subject, draw)
    furthest = min(reach.high - reach.low, furthest)
    found = sorted({*probe_positions(furthest).tolist(), *(p for p in EXTRA if p <= furthest)})
    at = [point(subject, reach.low + p) for p in found]
    matrix = matrices(subject, call or subject.rotate, at, draw)[:, 0]
    order = (
        None
        if reach.low
        else channel_order_at_zero(matrix[:1], 2 * rounding_of(draw.dtype).rotating)
    )
    matrix = matrix if order is None else matrix[..., order]
    stays = (matrix == torch.eye(subject.width, dtype=torch.float64)).all(-1).all(0)
    moving = tuple(int(i) for i in (~stays).nonzero().flatten())
    length = float(matrix[0, list(moving)].norm(dim=-1).mean()) if moving else 1.0
    rounding = rounding_of(stored_in(matrix[matrix.isfinite()], draw.dtype), angles)
    if reach.low != 0:  # angles are counted from the first position
        matrix = matrix[:1].mT @ matrix / (length**2 or 1.0)
        matrix[:, stays], matrix[:, :, stays] = 0, 0
        matrix[:, stays, stays] = 1
        length = 1.0
        rounding = Rounding(rounding.unit, rounding.angle_unit, 2 * rounding.rotating)
    return Rotation(
        Images(torch.tensor(found), matrix, 0.0),
        moving,
        length,
        reach.low,
        rounding,
        speeds(subject, draw),
        order is not None,
    )


def pairings(width: int, start: int, axes: int) -> dict[str, list[Pair]]:
    """Return the channels of each pair, from ``start`` on, in the ways of each layout.

    Code of several axes may give each axis its own block, and halve that.
    """
    made = {name: [pairs_in(name, width // 2)] for name in ("interleaved", "half")}
    if axes > 1 and width % (2 * axes) == 0:
        block = width // axes
        a, b = pairs_in("half", block // 2)
        shifts = [block * i for i in range(axes)]
        firsts, seconds = (torch.cat([one + shift for shift in shifts]) for one in (a, b))
        made["half"].append((firsts, seconds))
    return {name: [(a + start, b + start) for a, b in ways] for name, ways in made.items()}


def read_frequencies(
    found: Rotation, subject: Rotary, layout: str | None = None
) -> Frequencies | None:
    """Read angles and frequencies in a layout that fits, ``layout`` first; None if none does."""
    start, width = found.block(subject)
    finite = found.images.finite()
    if not found.moving or width < 2 or 1 not in finite.positions.tolist():
        return None
    ways = pairings(width, start, subject.axes)
    for name in sorted(ways, key=lambda name: name != layout):
        for pair in ways[name]:
            if float(found.outside(pair).max()) <= found.allowed:
                return _read(found, pair, name)
    mixed = finite.partners(found.allowed)  # finds the pairs of a head that rotates only in part
    if any(len(mixed[i]) != 1 for i in found.moving):
        return None
    both = [(i, min(p)) for i, p in enumerate(mixed) if p and i < min(p)]
    if 2 * len(both) != len(found.moving):
        return None
    halves = {j - i for i, j in both} == {subject.width // 2}
    first, second = torch.tensor(both).unbind(-1)
    return _read(found, (first, second), "half" if halves else "as seen")


def _read(found: Rotation, pair: Pair, layout: str) -> Frequencies:
    blocks = found.images.blocks(list(zip(*(one.tolist() for one in pair), strict=True)))
    angles, rounding = blocks.angles, found.rounding
    eta = math.asin(min(1.0, rounding.rotating))
    # the angle at 1 is known up to whole turns
    upper = torch.maximum(
        angles[blocks.positions.tolist().index(1)].abs() + eta, found.speeds[pair[0]]
    )
    off = rounding.angle(blocks.positions.double()[:, None], upper) + eta
    rows = angles.isfinite().all(1)
    omega, radius = frequencies_of(blocks.positions[rows], angles[rows], off[rows])
    return Frequencies(blocks, omega, radius, off, pair, float(blocks.away[rows].max()), layout)


def ladders_of(declared: DeclaredRotary, width: int, axes: int) -> dict[str, Tensor]:
    """Return the declared ladder by name, or several if the declaration leaves a choice.

    Code of several axes may have a common ladder, or one for each; YaRN may round the ends of its
    ramp, or not.  Empty if neither base nor frequencies are declared.
    """
    if declared.frequencies is not None:
        return {"as listed": torch.tensor(declared.frequencies, dtype=torch.float64)}
    if declared.base is None:
        return {}
    made = _scaled(declared, width, "one ladder")
    if axes > 1 and width % (2 * axes) == 0:
        own = _scaled(declared, width // axes, "a ladder for each axis")
        made |= {name: one.repeat(axes) for name, one in own.items()}
    return made


def _scaled(declared: DeclaredRotary, width: int, name: str) -> dict[str, Tensor]:
    pairs, base = width // 2, float(declared.base or 1.0)
    plain = scalings.ladder(base, pairs, over=width / 2)  # an odd width counts as declared
    factor, original = declared.factor, declared.original
    match declared.scaling:
        case "linear":
            return {name: plain / factor}
        case "ntk" if pairs > 1:
            return {name: scalings.ladder(scalings.ntk_base(base, factor, pairs), pairs)}
        case "llama3":
            return {name: scalings.by_parts(plain, factor, original, declared.low, declared.high)}
        case "yarn":
            ramps = {
                words: scalings.ramp_of(
                    base, pairs, original, declared.fast, declared.slow, whole=not words
                )
                for words in ("", ", ends of the ramp not rounded")
            }
            return {
                name + words: scalings.yarn(plain, factor, *ends) for words, ends in ramps.items()
            }
    return {name: plain}

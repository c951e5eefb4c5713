"""The matrix by which rotary code maps vectors at each position, and its frequencies.

Row i of a matrix is the unit vector of channel i, rotated; so the score of unit vectors i, j at
positions m, n is (M_m N_nᵀ)_ij, and all scores of a pair of positions are known at once.

A frequency ω is read off positions 1, 2, 4, ..: the angle at 1 is ω, the angle at 2p is twice the
angle at p, and the angle at p determines the missing multiple of 2π.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..subjects import Rotary
from .calling import fresh, seeded_call
from .draw import Draw
from .response import coarsest_unit
from .running import in_a_line
from .tolerance import Rounding, rotation_error, rounding_of

LAYOUTS = ("interleaved", "half")


def pairs_in(layout: str, pairs: int) -> tuple[Tensor, Tensor]:
    """Return the first and the second channel of each pair.

    Interleaved: (2b, 2b + 1); half: (b, B + b).  Raises ``ValueError`` for another layout.
    """
    b = torch.arange(pairs)
    if layout == "interleaved":
        return 2 * b, 2 * b + 1
    if layout == "half":
        return b, pairs + b
    raise ValueError(f"wanted a layout, one of {', '.join(LAYOUTS)}, got {layout!r}")


def probe_positions(furthest: int) -> Tensor:
    """Return 0, 1, 2, 4, .. up to ``furthest``, each with its successor and an odd number between.

    A dtype with few digits represents the powers of 2, but not the others.
    """
    octaves = [1 << k for k in range(furthest.bit_length())]
    found = {0, *octaves, *(p + 1 for p in octaves), *((4 * p // 3) | 1 for p in octaves)}
    return torch.tensor(sorted(p for p in found if p <= furthest))


def wrapped(angles: Tensor) -> Tensor:
    """Return the same angles in [−π, π)."""
    return torch.remainder(angles + math.pi, math.tau) - math.pi


def frequencies_of(positions: Tensor, angles: Tensor, radius: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ω of each pair and its error bound, from angles at positions: (B,), (B,).

    ``radius``: the error bound of each angle, (n, B).  A pair is followed from position to
    position, beginning at 1, for as long as its radius determines the number of turns.  A frequency
    is taken to be in (−π, π]: at integer positions it cannot be told from one that is larger by 2π.

    Raises ``ValueError`` if position 1 is missing.
    """
    rows = [(row, p) for row, p in enumerate(positions.tolist()) if p > 0]
    if not rows or rows[0][1] != 1:
        raise ValueError(f"wanted positions from 1 on to read frequencies, got {positions[:3]}")
    omega, off = angles[rows[0][0]], radius[rows[0][0]]
    known = off < math.pi
    for row, place in rows[1:]:
        known = known & (off * place + radius[row] < math.pi)
        seen = omega + wrapped(angles[row] - omega * place) / place
        better = known & (radius[row] / place < off)
        omega, off = torch.where(better, seen, omega), torch.where(better, radius[row] / place, off)
    return omega, off


Call = Callable[[Tensor, Tensor], Tensor]
Point = tuple[float, ...]  # coordinates of a position; one if the code has one axis
FURTHEST = 1 << 16
# Between positions: the last resolves up to 100,000 radians.
STEPS = (1.0, 2.0**-3, 2.0**-6, 2.0**-9, 2.0**-12, 2.0**-15)
SHORT = (torch.bfloat16, torch.float16)
LADDER = 1.1  # radians per position; the first pair of a ladder rotates by 1
FASTEST = 64.0  # radians per position, reached by pixel coordinates, if speeds cannot be measured
REORDERED = "the channels come back in another order, the same at every position"
MADE = ("rotate", "key", "shift", "running")  # calls whose results have the shape of their input
FALLBACK_ENDS = (FURTHEST + 64, FURTHEST - 1, 8200, 4100, 2047, 1000, 300, 100, 40, 16, 8, 3)


@dataclass(frozen=True)
class Reach:
    """The positions the code accepts: ``low`` to ``high``; ``why`` is the error beyond them."""

    low: int
    high: int
    why: str = ""

    def contains(self, *positions: float) -> bool:
        """Whether all of these positions are in reach."""
        return all(self.low <= p <= self.high for p in positions)


def point(subject: Rotary, p: float) -> Point:
    """Return the position with coordinate p on every axis."""
    return (p,) * max(1, subject.axes)


def format_position(at: Point) -> float | list[float]:
    """Return a position as printed in a witness."""
    return at[0] if len(at) == 1 else list(at)


def shifted(at: Point, by: float, axis: int | None) -> Point:
    """Return the position shifted along one axis, or along all."""
    return tuple(p + by * (axis is None or axis == i) for i, p in enumerate(at))


def tensor_of(subject: Rotary, points: Sequence[Point], draw: Draw) -> Tensor:
    """Return positions as the code takes them: (n,) or (n, axes), integers or float32."""
    kind = torch.int64 if subject.whole else torch.float32
    made = torch.tensor([list(p) for p in points], dtype=torch.float64).to(kind).to(draw.device)
    return made if subject.axes else made[:, 0]


def rotate_at(
    subject: Rotary, call: Call, x: Tensor, points: Sequence[Point], draw: Draw
) -> Tensor:
    """Rotate vectors (B, n, D), the same in every head, at positions of n points: (B, H, n, D).

    Raises ``ValueError`` if the result has another shape than the input.
    """
    rows, count, width = x.shape
    heads = x[:, None].expand(rows, subject.heads, count, width).contiguous()
    ids = tensor_of(subject, points, draw)
    result = seeded_call(call, heads, ids[None].expand(rows, *ids.shape).contiguous())
    require_shape_of(heads, result)
    return result


def require_shape_of(given: Tensor, found: Tensor) -> None:
    """Raise ``ValueError`` if rotary code returns another shape than it was given."""
    if found.shape != given.shape:
        raise ValueError(
            f"rotary code was given vectors {tuple(given.shape)} as (B, H, n, D) and gave "
            f"{tuple(found.shape)}; it should give the same shape"
        )


def matrices(subject: Rotary, call: Call, points: Sequence[Point], draw: Draw) -> Tensor:
    """Return the matrices at each point, of the first and last head: (n, heads, D, D), float64."""
    units = torch.eye(subject.width, dtype=draw.dtype, device=draw.device)
    x = units[:, None].expand(subject.width, len(points), subject.width)
    result = rotate_at(subject, call, x, points, draw)  # (unit vector, H, n, D)
    ends = sorted({0, subject.heads - 1})
    return result[:, ends].permute(2, 1, 0, 3)


def reach_of(subject: Rotary, draw: Draw) -> Reach:
    """Find, by calling the code, how far its positions go, up to a little over 65536."""
    why = ""
    x = torch.ones(1, 1, subject.width, dtype=draw.dtype, device=draw.device)
    for far in FALLBACK_ENDS:
        high = min(subject.first + far, subject.most - 1)
        try:
            for call in {subject.rotate, subject.rotate_key}:
                rotate_at(subject, call, x, [point(subject, high)], draw)
        except (IndexError, RuntimeError, ValueError, KeyError) as error:
            why = why or f"position {high} raised {in_a_line(error, 120)}"
            continue
        return Reach(subject.first, high, why)
    # No position worked: this call raises the error of the code.
    rotate_at(subject, subject.rotate, x, [point(subject, subject.first)], draw)
    return Reach(subject.first, subject.first, why)


def steady_length(subject: Rotary, draw: Draw) -> int:
    """Return how many positions a call may have before its result at position 1 is another.

    Dynamic NTK and LongRoPE choose the frequencies of a call by its length.  0 if the result never
    changes, or if the code has fewer than 9 positions, or several axes.
    """
    furthest = min(FURTHEST, subject.most - 1)
    if subject.axes or not subject.whole or furthest < 8 or subject.first > 1:
        return 0
    units = torch.eye(subject.width, dtype=draw.dtype, device=draw.device)[:, None]

    def at_one(last: int) -> Tensor:
        points = [point(subject, 1), point(subject, last)]
        rotated = rotate_at(subject, subject.rotate, units.expand(-1, 2, -1), points, draw)
        return rotated[:, 0, 0].double()

    short = at_one(2)
    # the same computation: only the order of a few operations may differ
    noise = 4 * math.asin(min(1.0, rotation_error(draw.dtype))) * float(short.abs().max())

    def differs(last: int) -> bool:
        at_one(2)  # the code may keep the frequencies of its longest call until a short one
        return float((at_one(last) - short).abs().max()) > noise

    if not differs(furthest):
        return 0
    found = bisect_left(range(furthest), x=True, lo=3, key=differs)
    at_one(2)
    return found


def in_long_calls(subject: Rotary) -> Rotary:
    """Return the same code, called with a further token at its last position each time."""
    last = subject.longest - 1

    def long(call: Call) -> Call:
        def rotate(x: Tensor, positions: Tensor) -> Tensor:
            further = positions.new_full((len(positions), 1), last)
            tokens = torch.cat((x, torch.ones_like(x[:, :, :1])), 2)
            return call(tokens, torch.cat((positions, further), 1))[:, :, : x.shape[2]]

        return rotate

    return Rotary(
        name=subject.name,
        rotate=long(subject.rotate),
        key=None if subject.key is None else long(subject.key),
        module=subject.module,
        width=subject.width,
        heads=subject.heads,
        single=subject.single,
        shared=subject.shared,
        counts=subject.counts,
        first=subject.first,
        most=subject.longest,
    )


def channel_order_at_zero(zero: Tensor, bound: float) -> Tensor | None:
    """Return where each channel comes back at position 0, if permuted: (h, D, D) -> (D,).

    Scores do not change under a fixed order of the channels, the same for queries and keys:
    DeepSeek-V3 rotates neighbours, and returns them as halves.  ``matrix[..., order]`` undoes it.
    None if the order is unchanged, if heads have different ones, or if the map is not a permutation
    up to ``bound``.

    >>> channel_order_at_zero(torch.eye(4)[None, [0, 2, 1, 3]], 0.0)
    tensor([0, 2, 1, 3])
    """
    places = zero.abs().argmax(-1)
    order, channels = places[0], torch.arange(zero.shape[-1], device=zero.device)
    if torch.equal(order, channels) or not torch.equal(order.sort().values, channels):
        return None
    own = zero.gather(-1, places[..., None])
    rest = zero.scatter(-1, places[..., None], 0.0)
    fixed = bool((places == order).all() and (own > 0).all())
    return order if fixed and float(rest.abs().max()) <= bound else None


def norms_of(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return the norms of rotated unit vectors, and a mask: (n, h, D, D) -> (D,), (D,).

    The mask marks channels that pass through: unit vectors that are unchanged, to the bit, at every
    one of the positions.
    """
    width = matrix.shape[-1]
    stays = (matrix == torch.eye(width, dtype=matrix.dtype)).all(-1).flatten(0, 1).all(0)
    return matrix[0, 0].norm(dim=-1), stays


def fractional(subject: Rotary) -> Rotary | None:
    """Return fresh code that takes fractional positions; None if calls may leave something behind.

    A cache filled at position 0.5 must not be met by other calls.
    """
    if not subject.whole:
        return subject
    try:
        other = fresh(subject)
    except Exception:  # noqa: BLE001 (building code may raise anything)
        return None
    if other is None and subject.module is not None:
        return None
    return replace(other or subject, whole=False)


def speeds(subject: Rotary, draw: Draw) -> Tensor:
    """Return lower bounds on the rotation speed of each channel, in radians per position: (D,).

    A vector rotated by a step s is 2 sin(ωs/2) from where it was, so that a step determines ω up to
    π/s, and underestimates it beyond.  So ever shorter steps are tried, also on a fresh copy of
    code for integer positions, which may accept them; if it rejects or rounds them, ω is known up
    to π.  Steps along one axis and along all are taken: of a pair that rotates by several, the
    speeds may cancel along all.
    """
    found = torch.zeros(subject.width, dtype=torch.float64)
    other = fractional(subject)
    noise = 4 * rounding_of(draw.dtype).rotating
    for step in STEPS:
        code = subject if step == 1 else other
        if code is None:
            break
        start, axes = point(code, subject.first), range(code.axes if code.axes > 1 else 0)
        points = [start, *(shifted(start, step, axis) for axis in (None, *axes))]
        for call in dict.fromkeys((code.rotate, code.rotate_key)):
            try:
                both = matrices(code, call, points, draw)
            except Exception:
                if step == 1:
                    raise
                return found  # only integer positions are accepted
            size = both[0].norm(dim=-1).clamp(min=torch.finfo(torch.float64).tiny)
            chord = ((both[1:] - both[0]).norm(dim=-1) / size).nan_to_num(nan=2.0).clamp(max=2.0)
            angle = 2 * torch.asin(chord / 2).amax((0, 1)) - (noise if step < 1 else 0.0)
            found = torch.maximum(found, angle / step)
    return found


def fastest(subject: Rotary, draw: Draw) -> float:
    """Return the largest frequency that `speeds` finds, at least 1."""
    return max(1.0, float(speeds(subject, draw).max()))


def may_be_faster(subject: Rotary, draw: Draw) -> bool:
    """Whether pairs may rotate by more than half a turn per position without this being visible.

    That is possible only if positions are integers: there ω and ω + 2π are the same.  If all pairs
    seem to rotate by a radian at most, as in the ladders in use, they are taken to do just that.
    """
    if not subject.whole or float(speeds(subject, draw).max()) <= LADDER:
        return False
    other = fractional(subject)
    if other is None:
        return True
    points = [point(subject, subject.first), point(subject, subject.first + 0.5)]
    try:
        both = matrices(other, other.rotate, points, draw)
    except Exception:  # noqa: BLE001 (code for integer positions may raise anything)
        return True
    return float((both[1] - both[0]).abs().max()) <= 4 * rounding_of(draw.dtype).rotating


def unit_words(channel: int, width: int) -> list[int] | str:
    """Return a unit vector for a witness: its entries, or words if it has many."""
    if width <= 8:
        return [int(i == channel) for i in range(width)]
    return f"1 in channel {channel} of {width}, 0 elsewhere"


def rounding_for(subject: Rotary, draw: Draw) -> Rounding:
    """Return the rounding of the coarsest format in which the code computes.

    Code may rotate float32 data in bfloat16.  Positions and angles still count as float32.
    """
    x = torch.ones(1, 1, subject.width, dtype=draw.dtype, device=draw.device)
    unit = unit_roundoff(draw.dtype)
    for call in dict.fromkeys((subject.rotate, subject.rotate_key)):
        given = subject, call, x, [point(subject, subject.first)], draw
        unit = max(unit, coarsest_unit(rotate_at, *given)[1])
    short = (one for one in SHORT if unit_roundoff(one) == unit)
    return rounding_of(next(short, draw.dtype))

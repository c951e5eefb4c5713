"""What rotary code does to unit vectors: its pairs of channels, their angles and frequencies.

Entry j of the image of unit vector i is what x_i contributes to channel j.  In rotary code each
channel depends on itself and one other channel: the two form a pair, and the four numbers of a pair
are λ(cos α, sin α; −sin α, cos α).  In wrong code they are not, and show the fault: channel j is
multiplied by its own cosine and takes its partner times its own sine, so the table of cosines and
sines has pairs as well, possibly different ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..execution.calling import evaluating
from ..execution.draw import Draw
from ..execution.rotary_matrices import (
    FURTHEST,
    LAYOUTS,
    SHORT,
    channel_order_at_zero,
    frequencies_of,
    matrices,
    pairs_in,
    point,
    probe_positions,
    reach_of,
    require_shape_of,
    speeds,
    wrapped,
)
from ..execution.tolerance import Rounding, rotation_error, rounding_of
from ..subjects import Rotary

LARGEST = 1 << 22  # entries rotated at once
NOTHING = 1e-12  # smaller entries are not part of a rotation


Pairs = Sequence[tuple[int, int]]  # the first and the second channel of each pair


def pairs_of(partners: Sequence[set[int]]) -> list[tuple[int, int]]:
    """Return the pairs of channels, given the partners of each."""
    return [(i, min(p)) for i, p in enumerate(partners) if p and i < min(p)]


@dataclass(frozen=True)
class Images:
    """Images of unit vectors at positions (n,) on one axis, (n, D, D), and how far heads differ."""

    positions: Tensor
    at: Tensor
    heads_differ: float

    def finite(self) -> Images:
        """Drop the positions at which an entry is not finite."""
        here = self.at.flatten(1).isfinite().all(1)
        return Images(self.positions[here], self.at[here], self.heads_differ)

    def partners(self, least: float = NOTHING) -> list[set[int]]:
        """For each channel the other channels with which it exchanges more than ``least``."""
        mixed = (self.at.abs() > least).any(0)
        mixed = mixed | mixed.T
        mixed.fill_diagonal_(False)
        return [set(row.nonzero()[:, 0].tolist()) for row in mixed]

    def blocks(self, pairs: Pairs) -> Blocks:
        """The four numbers of each pair."""
        both = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
        four = self.at[:, both[:, :, None], both[:, None, :]]  # (n, B, 2, 2)
        return Blocks(self.positions, four.flatten(2))


@dataclass(frozen=True)
class Blocks:
    """The four numbers of each pair, i to i, i to j, j to i, j to j, at n positions: (n, B, 4)."""

    positions: Tensor
    numbers: Tensor

    @property
    def angles(self) -> Tensor:
        """The angle by which each pair rotates, in (−π, π]: (n, B)."""
        ii, ij, ji, jj = self.numbers.unbind(-1)
        return torch.atan2(ij - ji, ii + jj)

    @property
    def lengths(self) -> Tensor:
        """The factor by which the length of each pair grows: (n, B)."""
        ii, ij, ji, jj = self.numbers.unbind(-1)
        return torch.hypot(ij - ji, ii + jj) / 2

    @property
    def away(self) -> Tensor:
        """The relative distance of each pair from a scaled rotation: (n, B)."""
        ii, ij, ji, jj = self.numbers.unbind(-1)
        lost = torch.hypot(ii - jj, ij + ji) / 2
        return lost / torch.hypot(lost, self.lengths).clamp(min=1e-30)

    @property
    def own(self) -> tuple[Tensor, Tensor]:
        """The angle of each channel, up to its sign: of the first channels, of the second."""
        ii, ij, ji, jj = self.numbers.unbind(-1)
        return torch.atan2(ji.abs(), ii), torch.atan2(ij.abs(), jj)

    def mirrored(self) -> bool:
        """Whether both sines have the same sign at the first position above 0."""
        first = int((self.positions > 0).nonzero()[0])
        product = self.numbers[first, :, 1] * self.numbers[first, :, 2]
        return bool((product >= 0).all() and (product > 0).any())


def images(
    code: Rotary,
    positions: Tensor,
    draw: Draw,
    *,
    axis: int = 0,
    with_last: int = 0,
    key: bool = False,
) -> Images:
    """Rotate all unit vectors at positions (n,) of an axis, the other coordinates 0.

    Each unit vector is a row of the batch, in every head, and the positions run along tokens, so
    code that uses the running index rotates by that.  ``with_last`` adds a token at that position
    to each call.

    Raises ``ValueError`` if the shape of the result is not that of its input.
    """
    D, H = code.width, code.heads
    rotate = code.rotate_key if key else code.rotate
    found, differ = [], 0.0
    for part in torch.split(positions, max(1, LARGEST // (D * D * H))):
        place = torch.cat((part, torch.tensor([with_last]).to(part))) if with_last else part
        if code.axes:
            every = torch.zeros(len(place), code.axes, dtype=place.dtype)
            every[:, axis] = place
            place = every
        x = torch.eye(D, dtype=draw.dtype, device=draw.device)
        x = x[:, None, None, :].expand(D, H, len(place), D).contiguous()
        ids = place.to(draw.device)[None].expand(D, *place.shape).contiguous()
        result = rotate(x, ids)
        require_shape_of(x, result)
        result = result.detach()[:, :, : len(part)]
        if H > 1:
            apart = result[:, 1:] - result[:, :1]
            differ = max(differ, float(apart.abs().nan_to_num().max()))
        found.append(result[:, 0].transpose(0, 1).to("cpu", torch.float64))
    return Images(positions, torch.cat(found), differ)


def stored_in(numbers: Tensor, data: torch.dtype) -> torch.dtype:
    """Return the shortest dtype that represents all cosines and sines: that of the table."""
    numbers = numbers[(numbers.abs() > 0) & (numbers.abs() < 1)]
    if numbers.numel() < 16:
        return data
    for dtype in SHORT:
        if bool((numbers.to(dtype).double() == numbers).all()):
            return dtype
    return data


def reading_error(table: torch.dtype) -> float:
    """The reading error of an angle: arcsin η, with η the error of a rotation by the table."""
    return math.asin(min(1.0, rotation_error(table)))


def layout_name(pairs: Pairs) -> str:
    """Name the layout: interleaved, half-split, half-split in n blocks, or the pairs themselves.

    >>> layout_name([(0, 2), (1, 3)]), layout_name([(0, 1), (2, 3)])
    ('half-split', 'interleaved')
    >>> layout_name([(0, 2), (1, 3), (4, 6), (5, 7)]), layout_name([(0, 3), (1, 2)])
    ('half-split in 2 blocks', 'of the pairs (0, 3), (1, 2)')
    """
    gaps = [j - i for i, j in pairs]
    firsts = [i for i, _ in pairs]
    if gaps and len(set(gaps)) == 1:
        gap, start = gaps[0], firsts[0]
        if gap == 1 and len(pairs) > 1:
            return (
                "interleaved"
                if firsts == list(range(start, start + 2 * len(pairs), 2))
                else (_listed(pairs))
            )
        blocks = len(pairs) // gap
        wanted = [start + 2 * gap * b + i for b in range(blocks) for i in range(gap)]
        if len(pairs) == 1:
            return "half-split"
        if firsts == wanted:
            return "half-split" if blocks == 1 else f"half-split in {blocks} blocks"
    return _listed(pairs)


def _listed(pairs: Pairs) -> str:
    told = ", ".join(f"({i}, {j})" for i, j in pairs[:4])
    return f"of the pairs {told}" + (f" and {len(pairs) - 4} more" if len(pairs) > 4 else "")


def table_pairs(blocks: Blocks, pairs: Pairs) -> list[tuple[int, int]] | None:
    """Return pairs of channels that share cosines and sines, or None if there is no such pairing.

    For code that does not rotate its pairs: the two channels of a pair of the table have the same
    angle at every position.  Channels that do not move along this axis keep their pairs.
    """
    angle = torch.stack(blocks.own, dim=-1)  # (n, B, 2)
    moves = (angle > NOTHING).any(0).any(-1)
    still = [pair for pair, moved in zip(pairs, moves.tolist(), strict=True) if not moved]
    pairs = [pair for pair, moved in zip(pairs, moves.tolist(), strict=True) if moved]
    channels = [c for pair in pairs for c in pair]
    angle = angle[:, moves].flatten(1)  # (n, channels)
    apart = (angle[:, :, None] - angle[:, None, :]).abs().amax(0)
    apart.fill_diagonal_(math.inf)
    nearest = apart.argmin(-1).tolist()
    found = set()
    for i, j in enumerate(nearest):
        if nearest[j] != i:
            return None
        found.add((min(channels[i], channels[j]), max(channels[i], channels[j])))
    return sorted([*found, *still])


FLOAT32, FLOAT16, BFLOAT16, FLOAT64 = torch.float32, torch.float16, torch.bfloat16, torch.float64


@dataclass(frozen=True)
class Followed:
    """Signed frequencies and their radii, (B,), (B,), and the dtype in which they were followed.

    ``steady``: whether every angle is position times frequency within the radius.
    """

    omega: Tensor
    radius: Tensor
    dtype: torch.dtype
    steady: bool


def follow(positions: Tensor, angles: Tensor, noise: float, step: float = 1.0) -> Followed:
    """Fit frequencies to angles (n, B) at positions (n,), multiples of ``step``.

    Angles are read within ``noise``.  The radius of an angle A is 2uA (3uA in half precision) plus
    the noise, for the finest u with which all positions agree.

    >>> follow(torch.tensor([1, 2, 3]), torch.tensor([[0.5], [1.0], [1.5]]), 1e-7).omega.tolist()
    [0.5]
    """
    best: Followed | None = None
    whole = (positions.double() / step).round()
    for dtype in (FLOAT32, FLOAT16, BFLOAT16):
        u = unit_roundoff(dtype)
        # the first guess of a frequency, the angle at the first position after 0, sets its radius
        size = angles[int((whole > 0).nonzero()[0])].abs() + noise
        radius = whole[:, None] * size * (2 * u if dtype == FLOAT32 else 3 * u) + noise
        omega, off = frequencies_of(whole.long(), angles, radius)
        rest = wrapped(angles - whole[:, None] * omega).abs()
        known = radius + whole[:, None] * off
        steady = bool(((rest <= known) | (known >= math.pi)).all())
        best = Followed(omega / step, off / step, dtype, steady)
        if steady:
            return best
    assert best is not None  # the loop ran
    return best


EXTRA = (255, 257, 1857, 2047, 2049)  # where short dtypes lose most of positions and angles
UNREAD = "the pairs of channels could not be identified, so no frequency was read"


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

    def outside(self, pairs: Pairs) -> Tensor:
        """Return how much of each unit vector leaves its pair, at finite positions: (n, D, D)."""
        at = self.images.finite().at
        inside = torch.eye(at.shape[-1], dtype=torch.bool)
        i, j = torch.tensor(pairs).T
        inside[i, j] = inside[j, i] = True
        return at.abs().masked_fill(inside, 0.0)


@dataclass(frozen=True)
class Frequencies:
    """The angles of each of the ``pairs``, with bounds ``off``: (n, B), and ω ± ``radius``.

    ``away``: the largest distance of a pair from a rotation.
    """

    blocks: Blocks
    omega: Tensor
    radius: Tensor
    off: Tensor
    pairs: Pairs
    away: float


def rotation_of(
    subject: Rotary,
    draw: Draw,
    *,
    angles: torch.dtype = torch.float32,
    call: Callable[[Tensor, Tensor], Tensor] | None = None,
    furthest: int = FURTHEST,
) -> Rotation:
    """Apply the code to every unit vector at positions up to 65536, or as far as it goes."""
    with evaluating(subject):
        reach = reach_of(subject, draw)
        furthest = min(reach.high - reach.low, furthest)
        found = sorted({*probe_positions(furthest).tolist(), *(p for p in EXTRA if p <= furthest)})
        at = [point(subject, reach.low + p) for p in found]
        matrix = matrices(subject, call or subject.rotate, at, draw)[:, 0]
        least = speeds(subject, draw)
    off = 2 * rounding_of(draw.dtype).rotating
    order = None if reach.low else channel_order_at_zero(matrix[:1], off)
    matrix = matrix if order is None else matrix[..., order]
    stays = (matrix == torch.eye(subject.width, dtype=torch.float64)).all(-1).all(0)
    moving = tuple(int(i) for i in (~stays).nonzero().flatten())
    length = float(matrix[0, list(moving)].norm(dim=-1).mean()) if moving else 1.0
    rounding = rounding_of(stored_in(matrix[matrix.isfinite()], draw.dtype), angles)
    if reach.low != 0:  # angles are counted from the first position
        matrix = matrix[:1].mT @ matrix / (length**2 or 1.0)
        matrix[:, stays], matrix[:, :, stays] = 0, 0
        matrix[:, stays, stays] = 1
        length, rounding = 1.0, replace(rounding, rotating=2 * rounding.rotating)
    images = Images(torch.tensor(found), matrix, 0.0)
    return Rotation(images, moving, length, reach.low, rounding, least, order is not None)


def pairings(width: int, start: int, axes: int) -> dict[str, list[Pairs]]:
    """Return the channels of each pair, from ``start`` on, in the ways of each layout.

    Code of several axes may give each axis its own block, and halve that.
    """

    def of(layout: str, width: int, start: int) -> Pairs:
        first, second = (one + start for one in pairs_in(layout, width // 2))
        return list(zip(first.tolist(), second.tolist(), strict=True))

    made = {name: [of(name, width, start)] for name in LAYOUTS}
    if axes > 1 and width % (2 * axes) == 0:
        block = width // axes
        own = (of("half", block, start + block * k) for k in range(axes))
        made["half"].append([pair for pairs in own for pair in pairs])
    return made


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
        for pairs in ways[name]:
            if float(found.outside(pairs).max()) <= found.allowed:
                return _read(found, pairs)
    mixed = finite.partners(found.allowed)  # finds the pairs of a head that rotates only in part
    pairs = pairs_of(mixed)
    if any(len(mixed[i]) != 1 for i in found.moving) or 2 * len(pairs) != len(found.moving):
        return None
    return _read(found, pairs)


def _read(found: Rotation, pairs: Pairs) -> Frequencies:
    blocks = found.images.blocks(pairs)
    angles, rounding = blocks.angles, found.rounding
    eta = math.asin(min(1.0, rounding.rotating))
    # the angle at 1 is known up to whole turns
    at_one = angles[blocks.positions.tolist().index(1)].abs() + eta
    upper = torch.maximum(at_one, found.speeds[[i for i, _ in pairs]])
    off = rounding.angle(blocks.positions.double()[:, None], upper) + eta
    rows = angles.isfinite().all(1)
    omega, radius = frequencies_of(blocks.positions[rows], angles[rows], off[rows])
    return Frequencies(blocks, omega, radius, off, pairs, float(blocks.away[rows].max()))

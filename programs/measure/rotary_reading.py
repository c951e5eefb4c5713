"""Layout, length and frequencies of rotary code, read off its matrices; declared ladders."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...numeric.rotary_precision.extraction import (
    Turned,
    frequencies_of,
    pairs_in,
    places,
    turned_units,
)
from ..declared import DeclaredRotary
from ..draw import Draw
from ..identify import scalings
from ..rotary_matrices import matrices, order_of, point, reach_of, speeds
from ..subjects import Rotary
from ..tolerance import Rounding, rounding_of

__all__ = ["Matrices", "Read", "block_of", "ladders_of", "leak", "pairings", "read", "seen"]

FURTHEST = 1 << 16
EXTRA = (255, 257, 1857, 2047, 2049)  # where short dtypes of positions and angles lose most


@dataclass(frozen=True)
class Matrices:
    """Matrices at positions counted from the first one, (n, D, D), of the first head.

    ``moving``: the channels that do not pass through unchanged at all of them.  ``length``: how
    many times longer they become.  ``low``: the first position; ``why`` no further ones.
    ``reordered``: channels came back in another order, the same at every position, and are here in
    the order in which they went in.  ``speeds``: by how much each channel turns with a position,
    at least: (D,).
    """

    matrix: Tensor
    positions: Tensor
    moving: tuple[int, ...]
    length: float
    low: int
    rounding: Rounding
    why: str
    speeds: Tensor
    reordered: bool = False


@dataclass(frozen=True)
class Read:
    """What pairs of channels turn by: ``turned`` with angles, ``omega`` ± ``radius``: (B,).

    ``off``: how far each angle may be off by rounding, (n, B).  ``pair``: the channels of each
    pair, (B,) twice.  ``away``: how far the pairs are from being turned at all.
    """

    turned: Turned
    omega: Tensor
    radius: Tensor
    off: Tensor
    pair: tuple[Tensor, Tensor]
    away: float
    layout: str


def seen(
    subject: Rotary, draw: Draw, *, angles: torch.dtype = torch.float32,
    call: Callable[[Tensor, Tensor], Tensor] | None = None, furthest: int = FURTHEST,
) -> Matrices:  # fmt: skip
    """What the code does to every unit vector at positions up to 65536, or as far as it goes."""
    call = call or subject.turn
    reach = reach_of(subject, draw)
    furthest = min(reach.high - reach.low, furthest)
    found = sorted({*places(furthest).tolist(), *(p for p in EXTRA if p <= furthest)})
    at = [point(subject, reach.low + p) for p in found]
    matrix = matrices(subject, call, at, draw)[:, 0]
    order = None if reach.low else order_of(matrix[:1], 2 * rounding_of(draw.dtype).turning)
    matrix = matrix if order is None else matrix[..., order]
    stays = (matrix == torch.eye(subject.width, dtype=torch.float64)).all(-1).all(0)
    moving = tuple(int(i) for i in (~stays).nonzero().flatten())
    length = float(matrix[0, list(moving)].norm(dim=-1).mean()) if moving else 1.0
    rounding = rounding_of(draw.dtype, angles)
    if reach.low != 0:  # angles are counted from the first position
        matrix = matrix[:1].mT @ matrix / (length**2 or 1.0)
        for i in range(subject.width):
            if i not in moving:
                matrix[:, i], matrix[:, :, i] = 0, 0
                matrix[:, i, i] = 1
        length = 1.0
        rounding = Rounding(rounding.unit, rounding.angle_unit, 2 * rounding.turning)
    return Matrices(matrix, torch.tensor(found), moving, length, reach.low, rounding, reach.why,
                    speeds(subject, draw), order is not None)  # fmt: skip


def pairings(width: int, start: int, axes: int) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """The channels of each pair in each layout, from ``start`` on: ways of the same name.

    Code of several axes may give each a block of its own, and halve that.
    """
    pairs = width // 2
    made = {
        "interleaved": [pairs_in("interleaved", pairs)],
        "half": [pairs_in("half", pairs)],
    }
    if axes > 1 and width % (2 * axes) == 0:
        block = width // axes
        a, b = pairs_in("half", block // 2)
        made["half"].append((
            torch.cat([a + block * i for i in range(axes)]),
            torch.cat([b + block * i for i in range(axes)]),
        ))  # fmt: skip
    return {name: [(a + start, b + start) for a, b in ways] for name, ways in made.items()}


def leak(matrix: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
    """How much of each turned unit vector is outside its pair: (n, D, D) -> (n, D, D), masked."""
    inside = torch.eye(matrix.shape[-1], dtype=torch.bool)
    inside[pair[0], pair[1]] = inside[pair[1], pair[0]] = True
    return matrix.abs().masked_fill(inside, 0.0)


def block_of(found: Matrices, subject: Rotary) -> tuple[int, int]:
    """The first channel that turns, and how many do, as declared or as seen: an even number."""
    declared = subject.declared.width if subject.declared is not None else None
    width = declared or len(found.moving)
    width = min(width - width % 2, subject.width - subject.width % 2)
    start = found.moving[0] if found.moving else 0
    return min(start, subject.width - width), width


def read(found: Matrices, subject: Rotary, layout: str | None = None) -> Read | None:
    """Angles and frequencies of the layout that fits, the asked one first; None if none does."""
    start, width = block_of(found, subject)
    if not found.moving or width < 2:
        return None
    ways = pairings(width, start, subject.axes)
    order = sorted(ways, key=lambda name: name != layout)
    # What overflows at large positions is the subject of other laws.
    rows = found.matrix.isfinite().flatten(1).all(1)
    allowed = 2 * found.rounding.turning * max(1.0, found.length)
    for name in order:
        for pair in ways[name]:
            if bool(rows[1:2].all()) and float(leak(found.matrix[rows], pair).max()) <= allowed:
                return _read(found, pair, name)
    mixed = partners(found, allowed) if bool(rows[1:2].all()) else None
    if mixed is None or not float(leak(found.matrix[rows], mixed).max()) <= allowed:
        return None
    gaps = {int(b - a) for a, b in zip(*mixed, strict=True)}
    return _read(found, mixed, "half" if gaps == {subject.width // 2} else "as seen")


def partners(found: Matrices, allowed: float) -> tuple[Tensor, Tensor] | None:
    """The pairs in which channels are mixed, where each is mixed with one other; else None.

    So the pairs of a half-split head are found of which only some turn.
    """
    size = found.matrix.nan_to_num().abs().amax(0)
    size.fill_diagonal_(0.0)
    mixed = torch.maximum(size, size.T) > allowed
    if not found.moving or bool((mixed.sum(-1)[list(found.moving)] != 1).any()):
        return None
    first, second = mixed.triu(1).nonzero().unbind(-1)
    return (first, second) if 2 * len(first) == len(found.moving) else None


def _read(found: Matrices, pair: tuple[Tensor, Tensor], layout: str) -> Read:
    channels = torch.stack(pair, -1).flatten()
    block = found.matrix[:, channels][:, :, channels]
    width = len(channels)

    def turn(units: Tensor, positions: Tensor) -> Tensor:
        rows = torch.searchsorted(found.positions, positions[::width].contiguous())
        return (units.reshape(-1, width, width) @ block[rows]).reshape(-1, width)

    turned = turned_units(
        turn, found.positions, width // 2, "interleaved", dtype=torch.float64,
        scale=found.length or 1.0,
    )  # fmt: skip
    eta = math.asin(min(1.0, found.rounding.turning))
    row = int((found.positions == 1).nonzero()[0])
    # an angle at 1 is known up to whole turns
    upper = torch.maximum(turned.angles[row].abs() + eta, found.speeds[pair[0]])
    off = found.rounding.angle(found.positions.double()[:, None], upper) + eta
    rows = turned.angles.isfinite().all(1)
    known = Turned(turned.positions[rows], turned.angles[rows], turned.away[rows],
                   turned.rest[rows], "interleaved")  # fmt: skip
    omega, radius = frequencies_of(known, off[rows])
    return Read(turned, omega, radius, off, pair, float(known.away.max()), layout)


def ladders_of(declared: DeclaredRotary, width: int, axes: int) -> dict[str, Tensor]:
    """The declared ladder, by name; more than one where the declaration leaves a choice.

    Code of several axes may have one ladder, or one of its own for each; YaRN may round the ends
    of its ramp, or not.  Empty where neither base nor frequencies are declared.
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
    over = width / 2  # an odd width counts as declared
    plain = scalings.ladder(base, pairs, over=over)
    factor = declared.factor
    match declared.scaling:
        case "":
            return {name: plain}
        case "linear":
            return {name: plain / factor}
        case "ntk":
            if pairs < 2:
                return {name: plain}
            return {name: scalings.ladder(scalings.ntk_base(base, factor, pairs), pairs)}
        case "llama3":
            low, high = declared.low, declared.high
            return {name: scalings.by_parts(plain, factor, declared.original, low, high)}
        case _:
            made = {}
            for words, whole in (("", True), (", ends of the ramp not rounded", False)):
                low, high = scalings.ramp_of(
                    base, pairs, declared.original, declared.fast, declared.slow, whole=whole
                )
                made[name + words] = scalings.yarn(plain, factor, low, high)
            return made

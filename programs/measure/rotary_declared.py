"""Probes of whether rotary code is what it is declared to be: layout, width, ladder, length."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..calling import evaluating
from ..declared import DeclaredRotary
from ..draw import Draw
from ..finding import Seen
from ..rotary_matrices import REORDERED, unit_words
from ..subjects import Rotary
from ..tolerance import ladder_error
from .base import Outcome, broken, held, not_asked, probe, undecided
from .rotary_reading import Matrices, Read, block_of, ladders_of, leak, pairings, read, seen

__all__ = ["compare_ladder", "mismatch"]



def angle_dtype(declared: DeclaredRotary | None) -> torch.dtype:
    """The dtype in which angles are declared to be computed."""
    made: torch.dtype = getattr(torch, declared.format if declared is not None else "float32")
    return made


def still(found: Matrices) -> Outcome:
    """What to say of code that turns nothing."""
    return undecided(f"no channel moves at {len(found.positions)} positions up to "
                     f"{int(found.positions[-1])}")  # fmt: skip


@probe("layout-as-declared", "rotary")
def layout_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """No turned unit vector has anything outside the declared pair of its channel."""
    declared = subject.declared
    assert declared is not None  # else it is not asked
    assert declared.layout is not None
    with evaluating(subject):
        found = seen(subject, draw)
    if not found.moving:
        return still(found)
    start, width = block_of(found, subject)
    if width < 2:
        return not_asked("fewer than two channels turn")
    allowed = 2 * found.rounding.turning * max(1.0, found.length)
    rows = found.matrix.isfinite().flatten(1).all(1)
    ways = pairings(width, start, subject.axes)
    outside = {
        name: min(
            (leak(found.matrix[rows], pair) for pair in made), key=lambda off: float(off.max())
        )
        for name, made in ways.items()
    }
    off = outside[declared.layout]
    if float(off.max()) <= allowed:
        more = f"; {REORDERED}" if found.reordered else ""
        return held(f"every unit vector stays in its pair of the layout {declared.layout}{more}",
                    float(off.max()), allowed, D=subject.width)  # fmt: skip
    row = int((~(off <= allowed)).flatten(1).any(1).nonzero()[0])
    i, j = (int(n) for n in torch.unravel_index(off[row].argmax(), off[row].shape))
    at = int(found.positions[rows][row]) + found.low
    fits = [name for name, other in outside.items() if float(other.max()) <= allowed]
    told = f"; its layout is {fits[0]}" if fits else "; no layout that is known fits"
    return broken(
        f"channel {i} turns into channel {j}, which is of another pair of the layout "
        f"{declared.layout}{told}",
        Seen({"vector": unit_words(i, subject.width), "at": at, "declared": declared.layout,
              "channel": j},
             (f"channel {j} of the turned vector", float(off[row, i, j])),
             (f"where the layout is {declared.layout}", 0.0), float(off[row, i, j]), allowed),
        D=subject.width,
    )  # fmt: skip


@probe("width-as-declared", "rotary")
def width_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """How many channels change at any position, to the bit."""
    declared = subject.declared
    assert declared is not None  # else it is not asked
    assert declared.width is not None
    with evaluating(subject):
        found = seen(subject, draw)
    wanted = declared.width - declared.width % 2
    ladders = ladders_of(declared, wanted, subject.axes)
    # Frequencies too slow to be seen at the last position in a dtype of least numbers count as 0.
    least = 1e-7 / max(1, int(found.positions[-1]))
    slow = min((int((one.abs() < least).sum()) for one in ladders.values()), default=0)
    count = len(found.moving)
    if wanted - 2 * slow <= count <= wanted:
        return held(f"{count} of {subject.width} channels turn, the others stay to the bit",
                    0.0, 0.0, D=subject.width)  # fmt: skip
    why = f"{count} channels turn, and {declared.width} are declared"
    if count < wanted:
        first = found.moving[0] if found.moving else 0
        still_ones = [i for i in range(first, subject.width) if i not in found.moving]
        if not still_ones:
            return _narrow(subject, declared.width, count, why)
        channel = still_ones[0]
        return broken(
            why,
            Seen({"vector": unit_words(channel, subject.width), "declared": declared.width,
                  "at": f"all {len(found.positions)} positions, where it stays"},
                 ("channels that turn", count), ("channels that are to turn", wanted),
                 float(wanted - count)),
            D=subject.width,
        )  # fmt: skip
    moves = (found.matrix - torch.eye(subject.width, dtype=torch.float64)).norm(dim=-1)
    moves = moves.nan_to_num(nan=math.inf)
    beyond = [i for i in found.moving if i >= found.moving[0] + wanted]
    over = moves[:, beyond] > found.rounding.turning
    if not bool(over.any()):
        size, channel = max((float(moves[:, i].max()), i) for i in beyond)
        return undecided(f"channel {channel} moves by rounding", size, found.rounding.turning)
    row = int(over.any(1).nonzero()[0])  # the first position that shows it
    channel = beyond[int(moves[row, beyond].argmax())]
    size = float(moves[row, channel])
    return broken(
        why,
        Seen({"vector": unit_words(channel, subject.width),
              "at": int(found.positions[row]) + found.low, "declared": declared.width,
              "channels that turn": count},
             ("how far it moves", size), ("how far it should move", 0.0), size,
             found.rounding.turning),
        D=subject.width,
    )  # fmt: skip


def _narrow(subject: Rotary, declared: int, count: int, why: str) -> Outcome:
    """What to say where all channels turn, and there are fewer than are declared."""
    if subject.any_width:
        return undecided(f"it takes heads of any width, and was called with {subject.width} "
                         f"channels, not with the {declared} that are declared")  # fmt: skip
    return broken(
        why,
        Seen({"channels of a head": subject.width, "declared": declared},
             ("channels that turn", count), ("channels that are to turn", declared),
             float(declared - count)),
        D=subject.width,
    )  # fmt: skip


def mismatch(
    made: Read, omega: Tensor, angle_unit: float
) -> tuple[int, int, float, float, float] | None:
    """The first position, and its pair, whose angle is not the declared one; the way is free.

    Row, pair, angle, declared angle, what is allowed.
    """
    slack = ladder_error(omega, angle_unit)
    exact = made.turned.positions.double()[:, None]
    allowed = made.off + exact * slack
    best: tuple[int, int, float, float, float] | None = None
    for sign in (1.0, -1.0):
        off = _apart(made.turned.angles, sign * exact * omega)
        over = ~(off <= allowed)
        if not bool(over.any()):
            return None
        row = int(over.any(1).nonzero()[0])
        pair = int((off[row] / allowed[row]).nan_to_num(nan=math.inf).argmax())
        one = (
            row,
            pair,
            float(made.turned.angles[row, pair]),
            float(_wrap(sign * exact[row, 0] * omega[pair])),
            float(allowed[row, pair]),
        )
        best = one if best is None or row > best[0] else best
    return best


def _wrap(angle: Tensor) -> Tensor:
    return torch.remainder(angle + math.pi, math.tau) - math.pi


def _apart(a: Tensor, b: Tensor) -> Tensor:
    return _wrap(a - b).abs()


def compare_ladder(subject: Rotary, declared: DeclaredRotary, found: Matrices) -> Outcome:
    """The frequencies that were read against the declared ladder, or ladders."""
    if not found.moving:
        return still(found)
    made = read(found, subject, declared.layout)
    if made is None:
        return undecided("the pairs of channels could not be told, so no frequency was read")
    if made.away > 4 * found.rounding.turning:
        return undecided("its pairs do not turn as a whole, so no frequency was read",
                         made.away, 4 * found.rounding.turning)  # fmt: skip
    pairs = len(made.omega)
    ladders = ladders_of(declared, 2 * pairs, subject.axes)
    ladders = {name: one for name, one in ladders.items() if len(one) == pairs}
    if not ladders:
        return undecided(f"{pairs} pairs turn, and the ladder that is declared has another length")
    unit = found.rounding.angle_unit
    misses = {name: mismatch(made, one, unit) for name, one in ladders.items()}
    fits = [name for name, miss in misses.items() if miss is None]
    if fits:
        omega = ladders[fits[0]]
        off = torch.minimum((made.omega - omega).abs(), (made.omega + omega).abs())
        worst = int((off / (made.radius + ladder_error(omega, unit))).argmax())
        return held(
            f"{pairs} frequencies are the declared ones ({fits[0]}), read at positions up to "
            f"{int(found.positions[-1]) + found.low}",
            float(off[worst]), float((made.radius + ladder_error(omega, unit))[worst]),
            D=subject.width,
        )  # fmt: skip
    name = max(misses, key=lambda one: misses[one][0])  # type: ignore[index]
    miss = misses[name]
    assert miss is not None
    row, pair, here, there, allowed = miss
    at = int(made.turned.positions[row])
    first, second = (int(c[pair]) for c in made.pair)
    return broken(
        f"pair {pair} has the frequency {float(made.omega[pair].abs()):.7g}, and "
        f"{float(ladders[name][pair]):.7g} is declared{_instead(made, declared, subject, unit)}",
        Seen({"pair": pair, "channels": [first, second], "at": at + found.low,
              "declared": _words(declared)},
             (f"angle by which it turns at {at + found.low}", here),
             ("declared angle", there), abs(math.remainder(here - there, math.tau)), allowed),
        D=subject.width,
    )  # fmt: skip


def _instead(made: Read, declared: DeclaredRotary, subject: Rotary, unit: float) -> str:
    """What the frequencies are instead, where that is plain."""
    width = 2 * len(made.omega)
    if declared.scaling:
        for one in ladders_of(replace(declared, scaling=""), width, subject.axes).values():
            if len(one) == len(made.omega) and mismatch(made, one, unit) is None:
                return "; they are those without the scaling"
    size = made.omega.abs()
    if len(size) > 1 and float(size[-1]) > 0 and float(size[0]) > 0:
        base = float((size[0] / size[-1]) ** (len(size) / (len(size) - 1)))
        near = float(f"{base:.3g}")
        for tried in (near, base):
            ladder = ladders_of(DeclaredRotary(base=tried), width, 0)["one ladder"]
            if mismatch(made, ladder, unit) is None:
                return f"; they are those of base {tried:.6g}"
    return ""


def _words(declared: DeclaredRotary) -> str:
    """What of the ladder is declared."""
    if declared.frequencies is not None:
        return "frequencies as listed"
    told = f"base {declared.base:g}"
    if declared.scaling:
        told += f", {declared.scaling} of factor {declared.factor:g}"
    return told


@probe("frequencies-as-declared", "rotary")
def frequencies_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """Angles at positions up to 65536 against position times declared frequency."""
    declared = subject.declared
    assert declared is not None  # else it is not asked
    last = None
    with evaluating(subject):
        for call in dict.fromkeys((subject.turn, subject.turn_key)):
            found = seen(subject, draw, angles=angle_dtype(declared), call=call)
            last = compare_ladder(subject, declared, found)
            if last.witness is not None or last.doubtful:
                return last
    assert last is not None
    return last


@probe("length-as-declared", "rotary")
def length_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """The length of turned unit vectors against the declared factor."""
    declared = subject.declared
    assert declared is not None  # else it is not asked
    wanted = declared.length
    if wanted is None:
        wanted = 1.0
        if declared.scaling == "yarn" and declared.factor > 1:
            wanted = 0.1 * math.log(declared.factor) + 1
    last = None
    for call in dict.fromkeys((subject.turn, subject.turn_key)):
        with evaluating(subject):
            found = seen(subject, draw, furthest=300, call=call)
        last = _length_of(subject, found, wanted)
        if last.witness is not None or last.skipped:
            return last
    assert last is not None
    return last


def _length_of(subject: Rotary, found: Matrices, wanted: float) -> Outcome:
    """The lengths that were seen against the one that is wanted."""
    channels = list(found.moving) or list(range(subject.width))
    lengths = found.matrix[:, channels].norm(dim=-1)
    if found.low:
        return not_asked(f"its positions start at {found.low}, and lengths are read from 0 on")
    allowed = 2 * found.rounding.turning * wanted
    off = (lengths - wanted).abs().nan_to_num(nan=math.inf)
    if not float(off.max()) <= allowed:
        row, i = divmod(int((~(off <= allowed)).flatten().nonzero()[0]), len(channels))
        at = int(found.positions[row])
        return broken(
            f"vectors become {float(lengths[row, i]):.6g} times as long; {wanted:.6g} is declared",
            Seen(
                {
                    "vector": unit_words(channels[i], subject.width),
                    "at": at,
                    "declared": float(f"{wanted:.7g}"),
                },
                ("its length, turned", float(lengths[row, i])),
                ("declared", wanted),
                float(off[row, i]),
                allowed,
            ),
            D=subject.width,
        )
    return held(f"turned vectors are {wanted:.6g} times as long", float(off.max()), allowed,
                D=subject.width)  # fmt: skip

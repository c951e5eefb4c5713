"""Probes of whether rotary code is what it is declared to be: layout, width, ladder, length."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...numeric.rotary_precision.extraction import (
    Turned,
    frequencies_of,
    pairs_in,
    places,
    turned_units,
)
from ..calling import evaluating, fresh
from ..declared import DeclaredRotary
from ..draw import Draw
from ..finding import Seen
from ..identify import scalings
from ..rotary_matrices import REORDERED, matrices, order_of, point, reach_of, speeds, unit_words
from ..subjects import Rotary
from ..tolerance import Rounding, ladder_error, rounding_of
from .base import Outcome, broken, held, not_asked, probe, undecided


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


BASES = (10_000.0, 500_000.0, 40_000.0)
TIMES = (2.0, 3.0)  # of the declared factor
UNREAD = "the pairs of channels could not be told, so no frequency was read"


@dataclass(frozen=True)
class Before:
    """What was read of the code as it is; ``plain``: its ladder is one of a base, unscaled."""

    made: Read
    declared: DeclaredRotary
    plain: bool


@dataclass(frozen=True)
class Built:
    """Code built anew: what was seen, whether it is as it was, and was compared with a formula."""

    seen: Outcome
    same: bool = False
    compared: bool = False


@probe("follows-its-arguments", "rotary")
def follows_its_arguments(subject: Rotary, draw: Draw) -> Outcome:
    """Built with other bases, or factors of its scaling, and read again.

    Two values are tried of each argument: with the one that it has, it stays as it is.
    """
    declared = subject.declared or DeclaredRotary()
    asked = {"base": tuple(b for b in BASES if b != declared.base)}
    if declared.scaling:
        asked["factor"] = tuple(t * declared.factor for t in TIMES)
    told: list[str] = []
    compared = False
    with evaluating(subject):
        matrices = seen(subject, draw)
        made = read(matrices, subject, declared.layout)
    if made is None:
        return undecided(UNREAD)
    if len(made.omega) < 2:
        return not_asked("one pair turns, and by 1 whatever the base is")
    before = Before(made, declared, _plain(subject, matrices, made))
    for name, values in asked.items():
        seen_with = [_built_with(subject, draw, before, name, value) for value in values]
        found = [one for one in seen_with if one is not None]
        wrong = [one.seen for one in found
                 if not one.same and (one.seen.witness or one.seen.doubtful)]  # fmt: skip
        if wrong:
            return wrong[0]
        if found and all(one.same for one in found):
            return found[0].seen
        told += [one.seen.why for one in found if not one.same]
        compared |= any(one.compared for one in found)
    if not told:
        return not_asked("it takes no other base, and no other factor")
    those = ", those of its formula" if compared else ""
    return held(f"built with {' and '.join(told)} it has other frequencies{those}")


def _built_with(
    subject: Rotary, draw: Draw, before: Before, name: str, value: float
) -> Built | None:
    """What is to be said of code built with one value; None where it cannot be built so."""
    other = fresh(subject, **{name: value})
    if other is None:
        return None
    declared = before.declared
    with evaluating(other):
        found = seen(other, draw)
        after = read(found, other, declared.layout)
    if after is None:
        return Built(undecided(UNREAD))
    if _alike(before.made, after):
        return Built(_unchanged(subject, before.made, after, name, value), same=True)
    words = f"{name} {value:g}"
    # what the frequencies are to be is known of a declared base, and of a plain ladder
    known = declared.base is not None or (before.plain and name == "base")
    if declared.frequencies is not None or not known:
        return Built(held(words))
    changed = replace(declared, width=None, **{name: value})  # type: ignore[arg-type]
    seen_there = compare_ladder(other, changed, found)
    if seen_there.witness is not None and name == "base" and declared.base is None:
        for exponents in _counted_over(2 * len(after.omega), other.width):
            spread = compare_ladder(other, replace(changed, base=value**exponents), found)
            if spread.witness is None and not spread.doubtful:
                return Built(held(words), compared=True)
    if seen_there.witness is None:
        return Built(held(words), compared=not seen_there.doubtful)
    return Built(replace(seen_there, why=f"built with {words}: {seen_there.why}"), compared=True)


def _counted_over(turning: int, width: int) -> tuple[float, ...]:
    """Powers of a base that are as usual as itself, where no base is declared.

    Exponents 2i/D may be counted over the whole head where a part of it turns, and over an odd
    width of which one channel more turns: base^(−2i/D) is (base^c)^(−2i/turning), c = turning/D.
    """
    return tuple(turning / over for over in (width, turning - 1) if over != turning)


def _alike(one: Read, two: Read) -> bool:
    """Whether two ladders that were read are the same, as far as they were read."""
    return len(one.omega) == len(two.omega) and bool(
        ((two.omega - one.omega).abs() <= two.radius + one.radius).all()
    )


def _plain(subject: Rotary, found: Matrices, made: Read) -> bool:
    """Whether the frequencies are base^(−2i/D) for some base, without scaling."""
    size, pairs = made.omega.abs(), len(made.omega)
    if pairs < 2 or not (float(size[0]) > 0 and float(size[-1]) > 0):
        return False
    base = float((size[0] / size[-1]) ** (pairs / (pairs - 1)))
    # the base that was read is off by rounding; the one that was meant has few digits
    tried = (compare_ladder(subject, DeclaredRotary(base=b, layout=made.layout), found)
             for b in (float(f"{base:.3g}"), base))  # fmt: skip
    return any(one.witness is None and not one.doubtful for one in tried)


def _unchanged(subject: Rotary, before: Read, after: Read, name: str, value: float) -> Outcome:
    """What to say of code that stays as it is."""
    pair = len(after.omega) - 1
    return broken(
        f"built with {name} {value:g} it has the same frequencies as before",
        Seen({"argument": name, "value": value, "declared": getattr(subject.declared, name, None)},
             (f"frequency of pair {pair} with {name} {value:g}", float(after.omega[pair])),
             ("before, which should differ", float(before.omega[pair])), 0.0,
             float(after.radius[pair] + before.radius[pair])),
        D=subject.width,
    )  # fmt: skip


@probe("odd-widths", "rotary")
def odd_widths(subject: Rotary, draw: Draw) -> Outcome:
    """Code of an odd width, its own or one it is built with, on unit vectors."""
    declared = subject.declared.width if subject.declared is not None else None
    width = subject.width if subject.width % 2 else declared if declared and declared % 2 else 5
    if subject.width % 2 or (declared and declared % 2):
        code = subject
    else:
        if subject.make is None:
            return not_asked("its width is even, and it cannot be built with another")
        try:
            made = fresh(subject, width=width)
        except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
            told = " ".join(str(error).split())[:200]
            return held(f"width {width} is refused: {type(error).__name__}: {told}")
        if made is None or made.width != width:
            return not_asked("its width is even, and it cannot be built with another")
        code = made
    last = width - 1
    with evaluating(code):
        shape = (1, code.heads, 2, code.width)
        x = torch.zeros(shape, dtype=draw.dtype, device=draw.device)
        x[..., last] = 1
        kind = torch.int64 if code.whole else torch.float32
        ids = torch.tensor([[0, 3]], dtype=kind, device=draw.device) + code.first
        if code.axes:
            ids = ids[..., None].expand(1, 2, code.axes).contiguous()
        try:
            result = code.turn(x, ids).detach().to("cpu", torch.float64)
        except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
            told = " ".join(str(error).split())[:200]
            return held(f"width {width} is refused at the call: {type(error).__name__}: {told}")
    vector = unit_words(last, code.width)
    if tuple(result.shape) != shape:
        return broken(
            f"width {width} is accepted, and {result.shape[-1]} channels come back",
            Seen({"width": width, "vector": vector, "at": [0, 3]},
                 ("channels that come back", result.shape[-1]), ("channels given", code.width),
                 float(abs(result.shape[-1] - code.width))),
            D=code.width,
        )  # fmt: skip
    off = (result - x.cpu().double()).abs().nan_to_num(nan=math.inf)
    if float(off.max()) > 0:
        h, t, j = (int(i) for i in torch.unravel_index(off[0].argmax(), off[0].shape))
        return broken(
            f"width {width} is accepted, and its last channel does not pass through",
            Seen({"width": width, "vector": vector, "at": (0, 3)[t], "channel": j},
                 (f"channel {j} of the result", float(result[0, h, t, j])),
                 (f"channel {j} of the vector", float(x[0, h, t, j])), float(off.max())),
            D=code.width,
        )  # fmt: skip
    return held(f"of width {width} the last channel passes through", 0.0, 0.0, D=code.width)

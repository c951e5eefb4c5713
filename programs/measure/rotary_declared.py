"""Check that rotary code is what it is declared to be: layout, width, ladder, length, arguments.

The action of the code on every unit vector (:class:`Rotation`) is compared with the one that the
declaration implies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..declarations import DeclaredRotary
from ..execution.calling import evaluating, fresh
from ..execution.draw import Draw
from ..execution.rotary_matrices import REORDERED, point, tensor_of, unit_words, wrapped
from ..execution.running import describe_refusal
from ..execution.tolerance import ladder_error
from ..reading.ladders import Fitted, MeasuredFrequencies, fit
from ..reading.rotations import (
    UNREAD,
    Frequencies,
    Rotation,
    pairings,
    read_frequencies,
    rotation_of,
)
from ..reading.scalings import attention_factor, ladders_of
from ..signatures.signature import SignatureError
from ..subjects import Rotary
from .base import Outcome, broken, compare, holds, not_asked, probe, undecided
from .rotary_in_calls import in_other_calls

BASES = (10_000.0, 500_000.0, 40_000.0)
FACTORS = (2.0, 3.0)  # the declared factor
SAME = 1e-3  # relative difference of bases read off the code
UNSCALED = ("", "ntk")  # scalings that only change the base


def nothing_rotates(found: Rotation) -> Outcome:
    """Return the outcome for code that rotates nothing."""
    count, last = len(found.images.positions), int(found.images.positions[-1])
    return undecided(f"no channel moves at {count} positions up to {last}")


def declaration(subject: Rotary) -> DeclaredRotary:
    """Return the declaration, or an empty one."""
    return subject.declared or DeclaredRotary()


@probe("layout-as-declared", "rotary")
@in_other_calls
def layout_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """Check that no rotated unit vector leaves the declared pair of its channel."""
    layout = declaration(subject).layout or ""
    found = rotation_of(subject, draw)
    if not found.moving:
        return nothing_rotates(found)
    start, width = found.block(subject)
    if width < 2:
        return not_asked("fewer than two channels rotate")
    outside = {
        name: min((found.outside(pair) for pair in made), key=lambda off: float(off.max()))
        for name, made in pairings(width, start, subject.axes).items()
    }
    fits = [name for name, other in outside.items() if float(other.max()) <= found.allowed]
    positions = found.images.finite().positions

    def told(row: int, i: int, j: int) -> tuple[str, dict[str, object], str]:
        instead = f"its layout is {fits[0]}" if fits else "no known layout fits"
        why = f"channel {i} is rotated into channel {j}, of another pair of the layout {layout}"
        return (
            f"{why}; {instead}",
            {
                "vector": unit_words(i, subject.width),
                "at": int(positions[row]) + found.low,
                "declared": layout,
                "channel": j,
            },
            f"channel {j} of the rotated vector",
        )

    more = f"; {REORDERED}" if found.reordered else ""
    return compare(
        outside[layout],
        0.0,
        found.allowed,
        told,
        f"every unit vector stays in its pair of the layout {layout}{more}",
        there=f"where the layout is {layout}",
        D=subject.width,
    )


@probe("width-as-declared", "rotary")
@in_other_calls
def width_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """Compare the number of channels that change, to the bit, with the declared width."""
    declared, D = declaration(subject), subject.width
    said = declared.width or 0
    found = rotation_of(subject, draw)
    wanted, count, positions = said - said % 2, len(found.moving), found.images.positions
    ladders = ladders_of(declared, wanted, subject.axes)
    # Frequencies too slow to be visible at the last position count as 0.
    least = 1e-7 / max(1, int(positions[-1]))
    slow = min((int((one.abs() < least).sum()) for one in ladders.values()), default=0)
    if wanted - 2 * slow <= count <= wanted:
        return holds(
            f"{count} of {D} channels rotate, the others are unchanged bit for bit", 0.0, 0.0, D=D
        )
    why = f"{count} channels rotate, and {said} are declared"
    first = found.moving[0] if found.moving else 0
    if count < wanted:
        at_rest = [i for i in range(first, D) if i not in found.moving]
        if not at_rest and subject.any_width:
            return undecided(
                f"it takes heads of any width, and was called with {D} channels, "
                f"not with the {said} that are declared"
            )
        at = (
            {
                "vector": unit_words(at_rest[0], D),
                "declared": said,
                "at": f"all {len(positions)} positions, where it stays",
            }
            if at_rest
            else {"channels of a head": D, "declared": said}
        )
        wanted = wanted if at_rest else said
        there = ("channels that are to rotate", wanted)
        return broken(why, at, ("channels that rotate", count), there, float(wanted - count), D=D)
    moves = (found.images.at - torch.eye(D, dtype=torch.float64)).norm(dim=-1)
    beyond = [i for i in found.moving if i >= first + wanted]
    bound = found.rounding.rotating
    seen = compare(
        moves[:, beyond],
        0.0,
        bound,
        lambda row, i: (
            why,
            {
                "vector": unit_words(beyond[i], D),
                "at": int(positions[row]) + found.low,
                "declared": said,
                "channels that rotate": count,
            },
            "how far it moves",
        ),
        "",
        there="how far it should move",
        D=D,
    )
    if seen.witness is not None:
        return seen
    size, channel = max((float(moves[:, i].max()), i) for i in beyond)
    return undecided(f"channel {channel} moves by rounding", size, bound)


@probe("length-as-declared", "rotary")
@in_other_calls
def length_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """Compare the norms of rotated unit vectors with the declared factor."""
    declared = declaration(subject)
    wanted = declared.length
    if wanted is None:
        wanted = attention_factor(declared.factor) if declared.scaling == "yarn" else 1.0
    seen = not_asked("")
    for call in dict.fromkeys((subject.rotate, subject.rotate_key)):
        found = rotation_of(subject, draw, furthest=300, call=call)
        if found.low:
            return not_asked(f"its positions start at {found.low}, and lengths are read from 0 on")
        channels = list(found.moving) or list(range(subject.width))
        lengths = found.images.at[:, channels].norm(dim=-1)
        seen = compare(
            lengths,
            wanted,
            2 * found.rounding.rotating * wanted,
            lambda row, i, of=lengths, found=found, channels=channels: (
                f"vectors become {float(of[row, i]):.6g} times as long; {wanted:.6g} is declared",
                {
                    "vector": unit_words(channels[i], subject.width),
                    "at": int(found.images.positions[row]),
                    "declared": float(f"{wanted:.7g}"),
                },
                "its length, rotated",
            ),
            f"rotated vectors are {wanted:.6g} times as long, at positions up to {found.last}",
            D=subject.width,
        )
        if seen.witness is not None:
            break
    return seen


@probe("frequencies-as-declared", "rotary")
@in_other_calls
def frequencies_as_declared(subject: Rotary, draw: Draw) -> Outcome:
    """Compare angles at positions up to 65536 with position times declared frequency."""
    declared = declaration(subject)
    seen = not_asked("")
    for call in dict.fromkeys((subject.rotate, subject.rotate_key)):
        found = rotation_of(subject, draw, angles=getattr(torch, declared.format), call=call)
        seen = compare_ladder(subject, declared, found)
        if seen.witness is not None or seen.doubtful:
            break
    return seen


def mismatch(
    made: Frequencies, omega: Tensor, angle_unit: float
) -> tuple[int, int, float, float] | None:
    """Return the first angle that is not the declared one, in the better direction of rotation.

    Row, pair, declared angle, allowed difference; None if all agree in one direction.
    """
    exact = made.blocks.positions.double()[:, None]
    allowed = made.off + exact * ladder_error(omega, angle_unit)
    best: tuple[int, int, float, float] | None = None
    for sign in (1.0, -1.0):
        off = wrapped(made.blocks.angles - sign * exact * omega).abs()
        over = ~(off <= allowed)
        if not bool(over.any()):
            return None
        row = int(over.any(1).nonzero()[0])
        pair = int((off[row] / allowed[row]).nan_to_num(nan=math.inf).argmax())
        angle = float(wrapped(sign * exact[row, 0] * omega[pair]))
        if best is None or row > best[0]:
            best = row, pair, angle, float(allowed[row, pair])
    return best


def compare_ladder(subject: Rotary, declared: DeclaredRotary, found: Rotation) -> Outcome:
    """Compare the frequencies read off the code with the declared ladder, or ladders."""
    if not found.moving:
        return nothing_rotates(found)
    made = read_frequencies(found, subject, declared.layout)
    if made is None:
        return undecided(UNREAD)
    if made.away > 4 * found.rounding.rotating:
        return undecided(
            "its pairs do not rotate as a whole, so no frequency was read",
            made.away,
            4 * found.rounding.rotating,
        )
    pairs, unit = len(made.omega), found.rounding.angle_unit
    ladders = {
        name: one
        for name, one in ladders_of(declared, 2 * pairs, subject.axes).items()
        if len(one) == pairs
    }
    if not ladders:
        return undecided(f"{pairs} pairs rotate, and the declared ladder has another length")
    misses = {name: mismatch(made, one, unit) for name, one in ladders.items()}
    for name, omega in ladders.items():
        if misses[name] is None:
            off = torch.minimum((made.omega - omega).abs(), (made.omega + omega).abs())
            radius = made.radius + ladder_error(omega, unit)
            worst = int((off / radius).argmax())
            return holds(
                f"{pairs} frequencies are the declared ones ({name}), read at positions "
                f"up to {found.last}",
                float(off[worst]),
                float(radius[worst]),
                D=subject.width,
            )
    name, miss = max(((n, m) for n, m in misses.items() if m is not None), key=lambda x: x[1][0])
    row, pair, there, allowed = miss
    at, here = int(made.blocks.positions[row]) + found.low, float(made.blocks.angles[row, pair])
    scaling = f", {declared.scaling} of factor {declared.factor:g}" if declared.scaling else ""
    listed = declared.frequencies is not None
    words = "frequencies as listed" if listed else f"base {declared.base:g}{scaling}"
    instead = _instead(_ladder(made, found, subject), declared)
    return broken(
        f"pair {pair} has the frequency {float(made.omega[pair].abs()):.7g}, and "
        f"{float(ladders[name][pair]):.7g} is declared{instead}",
        {"pair": pair, "channels": list(made.pairs[pair]), "at": at, "declared": words},
        (f"angle by which it rotates at {at}", here),
        ("declared angle", there),
        abs(math.remainder(here - there, math.tau)),
        allowed,
        D=subject.width,
    )


def _ladder(made: Frequencies, found: Rotation, subject: Rotary) -> Fitted | None:
    """Return the formula of the frequencies, with a base, if one gives every angle read."""
    size, rounding = made.omega.abs(), found.rounding
    if made.away > 4 * rounding.rotating or not bool((size > made.radius).all()):
        return None
    known = fit(MeasuredFrequencies(size, made.radius), head=subject.width / 2)
    if known is None or known.base is None:
        return None
    return known if mismatch(made, known.omega, rounding.angle_unit) is None else None


def _instead(known: Fitted | None, declared: DeclaredRotary) -> str:
    """Name what the frequencies are instead, if they have a formula."""
    if known is None or known.base is None:
        return ""
    plain = known.scaling in UNSCALED
    same = declared.base is not None and math.isclose(known.base, declared.base)
    if plain and declared.scaling and same and not known.words:
        return "; they are those without the scaling"
    words = "" if known.scaling == "ntk" else known.words
    return f"; they are those of base {known.base:.6g}" + f", {words}" * bool(words)


@dataclass(frozen=True)
class Rebuilt:
    """The outcome for rebuilt code, whether it is unchanged, and whether a formula was compared.

    ``times``: how many times the base it was built with its own base is, if known.
    """

    seen: Outcome
    same: bool = False
    compared: bool = False
    times: float = 0.0


@probe("follows-its-arguments", "rotary")
def follows_its_arguments(subject: Rotary, draw: Draw) -> Outcome:
    """Rebuild with other bases, or factors of its scaling, and read the frequencies again.

    Two values of each argument are tried, since code may already have one of them.
    """
    declared = declaration(subject)
    asked = {"base": tuple(b for b in BASES if b != declared.base)}
    if declared.scaling:
        asked["factor"] = tuple(t * declared.factor for t in FACTORS)
    found = rotation_of(subject, draw)
    made = read_frequencies(found, subject, declared.layout)
    if made is None:
        return undecided(UNREAD)
    if len(made.omega) < 2:
        return not_asked("only one pair rotates, with frequency 1 for any base")
    # the new frequencies are known if a base is declared, or for a plain ladder
    ladder = _ladder(made, found, subject)
    plain = ladder is not None and ladder.scaling in UNSCALED
    words: list[str] = []
    those = ""
    for name, values in asked.items():
        known = declared.base is not None or (plain and name == "base")
        every = [_built_with(subject, draw, made, name, value, known) for value in values]
        built = [one for one in every if one is not None]
        wrong = [
            one.seen for one in built if not one.same and (one.seen.witness or one.seen.doubtful)
        ]
        times = {one.times for one in built if not one.same}
        if wrong and min(times) > 0 and max(times) <= (1 + SAME) * min(times):
            words.append(f"other bases, each of which it takes {min(times):.4g} times,")
            continue  # as where a call of so many tokens has a larger base
        if wrong:
            return wrong[0]
        if built and all(one.same for one in built):
            return built[0].seen
        words += [one.seen.why for one in built if not one.same]
        those = ", to those of its formula" if any(one.compared for one in built) else those
    if not words:
        return not_asked("it accepts no other base or factor")
    return holds(f"built with {' and '.join(words)} its frequencies change{those}")


def _built_with(
    subject: Rotary, draw: Draw, before: Frequencies, name: str, value: float, known: bool
) -> Rebuilt | None:
    """Return the outcome for code rebuilt with one value; None if it cannot be."""
    other, declared = fresh(subject, **{name: value}), declaration(subject)
    if other is None:
        return None
    found = rotation_of(other, draw)
    after = read_frequencies(found, other, declared.layout)
    if after is None:
        return Rebuilt(undecided(UNREAD))
    if len(before.omega) == len(after.omega) and bool(
        ((after.omega - before.omega).abs() <= after.radius + before.radius).all()
    ):
        pair = len(after.omega) - 1
        at = {"argument": name, "value": value, "declared": getattr(subject.declared, name, None)}
        return Rebuilt(
            broken(
                f"built with {name} {value:g} its frequencies do not change",
                at,
                (f"frequency of pair {pair} with {name} {value:g}", float(after.omega[pair])),
                ("before, which should differ", float(before.omega[pair])),
                0.0,
                float(after.radius[pair] + before.radius[pair]),
                D=subject.width,
            ),
            same=True,
        )
    words = f"{name} {value:g}"
    if declared.frequencies is not None or not known:
        return Rebuilt(holds(words))
    wanted = replace(declared, width=None, **{name: value})  # type: ignore[arg-type]
    seen = compare_ladder(other, wanted, found)
    # Exponents 2i/D may refer to the whole head if only a part of it rotates, and to an odd
    # width of which one channel more rotates: base^(−2i/D) is (base^c)^(−2i/rotating), c =
    # rotating/D.
    rotating = 2 * len(after.omega)
    if seen.witness is not None and name == "base" and declared.base is None:
        for over in {other.width, rotating - 1} - {rotating}:
            spread = replace(wanted, base=value ** (rotating / over))
            one = compare_ladder(other, spread, found)
            if one.witness is None and not one.doubtful:
                return Rebuilt(holds(words), compared=True)
    if seen.witness is None:
        return Rebuilt(holds(words), compared=not seen.doubtful)
    plain = _ladder(after, found, other) if name == "base" and declared.base is None else None
    times = plain.base / value if plain is not None and plain.base is not None else 0.0
    told = replace(seen, why=f"built with {words}: {seen.why}")
    return Rebuilt(told, compared=True, times=times)


@probe("odd-widths", "rotary")
def odd_widths(subject: Rotary, draw: Draw) -> Outcome:
    """Run code of an odd width, its own or one it is built with, on a unit vector."""
    code, said = subject, declaration(subject).width or 0
    width = subject.width if subject.width % 2 else said if said % 2 else 5
    try:
        if not subject.width % 2 and not said % 2:
            made = fresh(subject, width=width)
            if made is None or made.width != width:
                return not_asked("its width is even, and it cannot be built with another")
            code = made
    except SignatureError as error:
        return not_asked(f"it is called otherwise: {error}")
    except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
        return holds(f"width {width} is refused: {describe_refusal(subject, error)}")
    last, D = width - 1, code.width
    with evaluating(code):
        x = torch.zeros(1, code.heads, 2, D, dtype=draw.dtype, device=draw.device)
        x[..., last] = 1
        ids = tensor_of(code, [point(code, code.first + p) for p in (0, 3)], draw)[None]
        try:
            result = code.rotate(x, ids).detach().to("cpu", torch.float64)
        except Exception as error:  # noqa: BLE001 (a refusal may be of any type)
            return holds(
                f"width {width} is refused at the call: {describe_refusal(subject, error)}"
            )
    vector, back = unit_words(last, D), result.shape[-1]
    if result.shape != x.shape:
        return broken(
            f"width {width} is accepted, and {back} channels come back",
            {"width": width, "vector": vector, "at": [0, 3]},
            ("channels that come back", back),
            ("channels given", D),
            float(abs(back - D)),
            D=D,
        )
    return compare(
        result[0],
        x[0].cpu().double(),
        0.0,
        lambda _, t, j: (
            f"width {width} is accepted, and its last channel does not pass through",
            {"width": width, "vector": vector, "at": (0, 3)[t], "channel": j},
            f"channel {j} of the result",
        ),
        f"of width {width} the last channel passes through",
        there="the same channel of the vector",
        D=D,
    )

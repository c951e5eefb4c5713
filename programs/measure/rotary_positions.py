"""Probes of rotary code and positions: visible on every axis, on grids, and far away."""

from __future__ import annotations

import math
from bisect import bisect_left

import torch

from ...numeric.devices import name_of
from ..execution.calling import as_lists, evaluating
from ..execution.draw import Draw
from ..execution.rotary_matrices import (
    SHORT,
    fastest,
    format_position,
    matrices,
    point,
    reach_of,
    rotate_at,
    rounding_for,
    shifted,
    wrapped,
)
from ..execution.tolerance import rounding_of
from ..reading.rotations import Frequencies, Rotation, read_frequencies, rotation_of
from ..subjects import Rotary
from .base import Outcome, broken, holds, in_calls_of_each_length, not_asked, probe, undecided

ZERO_NORM = 1e-30  # in float32, a unit vector shorter than this after rotation has no direction
NEIGHBOURS = (0, 1, 255, 256, 257, 1023, 2047, 2048, 2049, 4096, 8190, 16384, 32768, 65535)
ROWS = 8191  # positions that are all checked
GRIDS = ((2, 3), (3, 2), (3, 5), (4, 4), (5, 3), (1, 4), (4, 1))


@probe("sees-positions", "rotary")
@in_calls_of_each_length
def sees_positions(subject: Rotary, draw: Draw) -> Outcome:
    """Rotate one vector by itself at several positions, and in all tokens of one row."""
    rounding, steps = rounding_for(subject, draw), (0, 1, 3, 37)
    with evaluating(subject):
        reach = reach_of(subject, draw)
        points = [point(subject, reach.low + s) for s in steps if reach.contains(reach.low + s)]
        if len(points) < 2:
            return not_asked(f"it has only one position; {reach.why}")
        x = (4 * draw.normal(1, 1, subject.width, salt=7)).round().clamp(-9, 9) + 0.5
        ways = {}
        for name, call in {"query": subject.rotate, "key": subject.rotate_key}.items():
            ways[f"one {name} by itself"] = [
                rotate_at(subject, call, x, [p], draw)[0, 0, 0] for p in points
            ]
            row = rotate_at(subject, call, x.repeat(1, len(points), 1), points, draw)
            ways[f"one {name} in every token"] = list(row[0, 0])
    least = math.inf
    for words, results in ways.items():
        bound = 2 * rounding.rotating * max(float(r.norm().nan_to_num()) for r in results)
        apart = max(float((r - results[0]).norm()) for r in results[1:])
        if not all(bool(r.isfinite().all()) for r in results):
            return undecided(f"{words} gives NaN or infinity")
        if apart == 0.0:
            where = ", ".join(str(format_position(p)) for p in points)
            return broken(
                f"{words} gives the same at positions {where}",
                {
                    "vector": as_lists(x.double().flatten().cpu()),
                    "way": words,
                    "positions": [format_position(p) for p in points],
                },
                (f"at {format_position(points[0])}", as_lists(results[0])),
                (f"at {format_position(points[1])}, which should differ", as_lists(results[1])),
                0.0,
                bound,
                B=1,
                H=subject.heads,
                n=1 if "itself" in words else len(points),
                D=subject.width,
            )
        if apart <= bound:
            return undecided(f"{words} hardly changes with its position", apart, bound)
        least = min(least, apart)
    return holds(
        "one vector differs at several positions, by itself and in every token of a row, "
        f"by at least {least:.2g}",
        D=subject.width,
    )


@probe("every-axis-matters", "rotary")
def every_axis_matters(subject: Rotary, draw: Draw) -> Outcome:
    """Change one coordinate, and keep the others."""
    least, bound = math.inf, 2 * rounding_for(subject, draw).rotating
    with evaluating(subject):
        reach = reach_of(subject, draw)
        for place in (0, 2):
            start = point(subject, reach.low + place)
            for axis in range(subject.axes):
                ways = [
                    shifted(start, by, axis)
                    for by in (1, 4, 29, 1900)
                    if reach.contains(reach.low + 2 + by)
                ]
                if not ways:
                    return undecided(reach.why or f"it has no position above {reach.high}")
                found = matrices(subject, subject.rotate, [start, *ways], draw)
                apart = float((found[1:] - found[0]).abs().max())
                if apart == 0.0:
                    off = int(found[0, 0].diagonal().argmin())
                    return broken(
                        f"coordinate {axis} of a position changes nothing",
                        {
                            "axis": axis,
                            "from": list(start),
                            "to": list(ways[0]),
                            "vector": f"each unit vector of {subject.width} channels",
                        },
                        (f"channel {off} at {list(start)}", as_lists(found[0, 0, off])),
                        (f"at {list(ways[0])}, which should differ", as_lists(found[1, 0, off])),
                        0.0,
                        bound,
                        D=subject.width,
                        axes=subject.axes,
                    )
                if apart <= bound:
                    return undecided(f"coordinate {axis} hardly changes anything", apart, bound)
                least = min(least, apart)
    return holds(
        f"each of {subject.axes} coordinates changes the result, by at least {least:.2g}",
        axes=subject.axes,
    )


@probe("grid-steps", "rotary")
def grid_steps(subject: Rotary, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """Check the change of coordinates from each place to its right and lower neighbour."""
    assert subject.grid is not None  # else the law is not asked
    worst, bound = 0.0, 0.0
    for rows, columns in GRIDS:
        raw, size = subject.grid(rows, columns), {"rows": rows, "columns": columns}
        made = raw.detach().to("cpu", torch.float64)
        if made.shape[0] != rows * columns or made.dim() != 2:
            return undecided(
                f"grid({rows}, {columns}) gave {tuple(made.shape)}; "
                f"({rows * columns}, coordinates) was wanted"
            )
        grid, where = made.reshape(rows, columns, -1), f"on a grid of {rows} rows and {columns} "
        unit = torch.finfo(torch.float32).eps * raw.is_floating_point()
        bound = 4 * unit * float(made.abs().max())
        right, down = grid[:, 1:] - grid[:, :-1], grid[1:] - grid[:-1]
        seen = {}
        for words, steps, to in (("right", right, (0, 1)), ("down", down, (1, 0))):
            if not steps.numel():
                continue
            seen[words] = steps[0, 0]
            off = (steps - steps[0, 0]).abs().amax(-1)
            worst, nothing = max(worst, float(off.max())), float(steps[0, 0].abs().max()) <= bound
            uneven = (~(off <= bound)).nonzero().tolist()
            if not uneven and not nothing:
                continue
            r, c = uneven[0] if uneven else (0, 0)
            after = (r + to[0], c + to[1])
            at = {**size, "place": [r, c], "next": list(after)}
            if uneven:
                return broken(
                    f"{where}columns a step {words} is not the same everywhere",
                    at
                    | {
                        "its coordinates": as_lists(grid[r, c]),
                        "next coordinates": as_lists(grid[after]),
                    },
                    (f"step {words} from {[r, c]}", as_lists(steps[r, c])),
                    (f"step {words} from [0, 0]", as_lists(steps[0, 0])),
                    float(off[r, c]),
                    bound,
                    **size,
                )
            return broken(
                f"{where}columns no step {words} is seen",
                at,
                ("coordinates of [0, 0]", as_lists(grid[0, 0])),
                (f"coordinates of {list(after)}, which should differ", as_lists(grid[after])),
                0.0,
                bound,
                **size,
            )
        if len(seen) == 2 and torch.equal(seen["right"], seen["down"]):
            return broken(
                "a step right changes the coordinates as a step down does",
                size,
                ("step right", as_lists(seen["right"])),
                ("step down", as_lists(seen["down"])),
                0.0,
                bound,
                **size,
            )
    return holds(
        f"steps right and down are the same everywhere on {len(GRIDS)} grids", worst, bound
    )


def with_short_draws(draw: Draw) -> list[Draw]:
    """Return the draw, and the same in short dtypes, to which code may cast positions."""
    return [draw, *(draw.cast(dtype) for dtype in SHORT if dtype != draw.dtype)]


@probe("neighbours-differ", "rotary")
@in_calls_of_each_length
def neighbours_differ(subject: Rotary, draw: Draw) -> Outcome:
    """Compare unit vectors at p and p + 1, on every axis, up to 65536, in three dtypes."""
    tried: list[str] = []
    least, last = math.inf, 0
    with evaluating(subject):
        for one in with_short_draws(draw):
            if not subject.whole and one is not draw:
                continue  # real coordinates need not reach 65536
            try:
                found = _neighbours(subject, one)
            except Exception:
                if one is draw:
                    raise
                continue  # code need not take every dtype
            if found.doubtful and one is not draw:
                continue  # that dtype rounds a step away
            if found.skipped or found.witness is not None or found.doubtful:
                return found
            tried.append(name_of(one.dtype))
            if one is draw:
                least, last = found.error or 0.0, dict(found.sizes or {}).get("last", 0)
    return holds(
        f"neighbours up to {last} differ by at least {least:.2g}, on data in {', '.join(tried)}",
        D=subject.width,
        last=last,
    )


def _neighbours(subject: Rotary, draw: Draw) -> Outcome:
    reach, rounding = reach_of(subject, draw), rounding_of(draw.dtype)
    omega = fastest(subject, draw)
    places = [reach.low + p for p in NEIGHBOURS if reach.contains(reach.low + p + 1)]
    if not places:
        return not_asked(f"it has only one position; {reach.why}")
    least, allowed, n = math.inf, 2 * rounding.rotating, len(places)
    for axis in (None, *(range(subject.axes) if subject.axes > 1 else ())):
        at = [point(subject, p) for p in places]
        after = [shifted(p, 1, axis) for p in at]
        both = matrices(subject, subject.rotate, [*at, *after], draw)
        # Norms may decay with the position, down to 0: then there is no angle.
        length = both.norm(dim=-1, keepdim=True)
        gone = (length < ZERO_NORM).flatten(1).any(1)
        both = both / torch.where(length < ZERO_NORM, 1.0, length)
        steps = (both[n:] - both[:n]).norm(dim=-1).flatten(1).amax(1)
        known = ~(gone[n:] | gone[:n]) & steps.isfinite()
        if not bool(known[0]):
            return undecided(f"vectors rotated at {places[0]} are 0 or not finite")
        default = float(steps[0])
        for i in known.nonzero().flatten().tolist():
            p, step = places[i], float(steps[i])
            drift = 2 * rounding.angle_unit * 3 * omega * p
            if step > allowed or default <= 2 * (allowed + drift):
                continue
            channel = int((both[0, 0] - both[n, 0]).norm(dim=-1).argmax())
            name = name_of(draw.dtype)
            on = "" if axis is None else f" on axis {axis}"
            return broken(
                f"positions {p} and {p + 1} give the same angles{on}, on data in {name}",
                {
                    "vector": f"unit vector of channel {channel} of {subject.width}",
                    "at": format_position(at[i]),
                    "and at": format_position(after[i]),
                    "dtype": name,
                },
                (f"distance of the rotated vectors at {p} and {p + 1}", step),
                (f"at {places[0]} and {places[0] + 1}", default),
                abs(default - step),
                allowed,
                D=subject.width,
                n=2,
            )
        # Rounding may hide the steps of a slow axis, but not those of all axes together.
        if default > allowed or axis is None:
            least = min(least, float(steps[known].min()))
    if least <= allowed:
        return undecided("one step is smaller than the rounding error", least, allowed)
    return holds("", least, allowed, last=places[-1] + 1)


@probe("angles-are-exact", "rotary")
@in_calls_of_each_length
def angles_are_exact(subject: Rotary, draw: Draw) -> Outcome:
    """Compare angles at positions up to 65536 with position times the code's own frequency."""
    tried: list[str] = []
    worst, bound, last, every = 0.0, 0.0, 0, ""
    with evaluating(subject):
        for one in with_short_draws(draw):
            try:
                found = rotation_of(subject, one)
                made = read_frequencies(found, subject)
            except Exception:
                if one is draw:
                    raise
                continue
            if made is None or made.away > 4 * found.rounding.rotating:
                if one is draw:
                    return undecided(
                        "the pairs of channels could not be identified, so no angle was read"
                    )
                continue
            positions, angles = made.blocks.positions, made.blocks.angles
            miss, name = inconsistent(made), name_of(one.dtype)
            if miss is not None:
                row, pair, here, there, allowed = miss
                place = int(positions[row])
                at, off = place + found.low, abs(math.remainder(here - there, math.tau))
                return broken(
                    f"the angle of pair {pair} at position {at} is off by {off:.3g}, on data in "
                    f"{name}",
                    {
                        "pair": pair,
                        "at": at,
                        "dtype": name,
                        "channels": list(made.pairs[pair]),
                    },
                    (f"angle by which it rotates at {at}", here),
                    (f"{place} times its frequency, read at lower positions", there),
                    off,
                    allowed,
                    D=subject.width,
                )
            tried.append(name)
            if one is draw:
                wrong, every = _every_angle(subject, one, found, made)
                if wrong is not None:
                    return wrong
                ratio = wrapped(angles - positions.double()[:, None] * made.omega).abs() / made.off
                at_worst = int(ratio.argmax())
                bound = float(made.off.flatten()[at_worst])
                worst, last = float(ratio.flatten()[at_worst]) * bound, found.last
    return holds(
        f"angles up to position {last} are its frequencies times the position, as exact "
        f"as in float32, on data in {', '.join(tried)}{every}",
        worst,
        bound,
        D=subject.width,
    )


def _every_angle(
    subject: Rotary, draw: Draw, found: Rotation, made: Frequencies
) -> tuple[Outcome | None, str]:
    """Return a broken outcome if one angle in a long row does not match its frequency, else a note.

    A single row of a stored table may be wrong.  The positions read before are part of the same
    call, as code may choose its frequencies by the largest position; if their angles now differ,
    nothing is concluded.
    """
    before = made.blocks.positions
    row = torch.arange(_last_row(subject, draw) + 1)
    points = [point(subject, found.low + p) for p in [*before.tolist(), *row.tolist()]]
    first, second = torch.tensor(made.pairs).T
    x = torch.zeros(1, len(points), subject.width, dtype=draw.dtype, device=draw.device)
    x[..., first] = 1
    eta = math.asin(min(1.0, found.rounding.rotating * math.sqrt(subject.width)))
    upper = torch.maximum(made.omega.abs(), found.speeds[first])
    there = made.omega * row[:, None]
    allowed = found.rounding.angle(row.double()[:, None], upper) + eta
    allowed = allowed + made.radius * row[:, None]
    told = ""
    for call in dict.fromkeys((subject.rotate, subject.rotate_key)) if not found.reordered else ():
        try:
            image = rotate_at(subject, call, x, points, draw)[0, 0]
        except Exception:  # noqa: BLE001 (code may refuse so many tokens)
            continue
        angles = torch.atan2(image[:, second], image[:, first])
        angles = angles - angles[len(before)] if found.low else angles
        known, angles = angles[: len(before)], angles[len(before) :]
        if not bool((wrapped(known - made.blocks.angles).abs() <= made.off + eta).all()):
            continue
        off = wrapped(angles - there).abs()
        over = (off - allowed).nan_to_num(nan=math.inf).masked_fill(allowed >= math.pi, -math.inf)
        told = f"; at every position up to {found.low + len(row) - 1}"
        if float(over.max()) > 0:
            p, pair = divmod(int(over.argmax()), over.shape[1])
            at, here = p + found.low, float(angles[p, pair])
            wanted, apart = math.remainder(float(there[p, pair]), math.tau), float(off[p, pair])
            seen = broken(
                f"the angle of pair {pair} at position {at} is off by {apart:.3g}",
                {"pair": pair, "at": at, "channels": list(made.pairs[pair])},
                (f"angle by which it rotates at {at}", here),
                (f"{p} times its frequency, read at other positions", wanted),
                apart,
                float(allowed[p, pair]),
                D=subject.width,
            )
            return seen, ""
    return None, told


def _last_row(subject: Rotary, draw: Draw) -> int:
    """Return the last position that the code takes among the first ROWS, counted from its first."""
    x = torch.ones(1, 1, subject.width, dtype=draw.dtype, device=draw.device)

    def refuses(place: int) -> bool:
        try:
            rotate_at(subject, subject.rotate, x, [point(subject, subject.first + place)], draw)
        except Exception:  # noqa: BLE001 (a table may raise anything beyond its end)
            return True
        return False

    reach = reach_of(subject, draw)
    first, end = min(reach.high - reach.low, ROWS) + 1, min(ROWS, subject.most - 1 - reach.low) + 1
    return first + bisect_left(range(first, end), x=True, key=refuses) - 1


def inconsistent(made: Frequencies) -> tuple[int, int, float, float, float] | None:
    """Return the first angle that no frequency allowed by the earlier angles explains.

    A pair is followed from position 1: its frequency lies in an interval, which every angle that is
    known up to a whole turn shrinks.  Row, pair, angle, angle expected, allowed.
    """
    positions = made.blocks.positions.tolist()
    start = positions.index(1)
    omega, radius = made.blocks.angles[start].clone(), made.off[start].clone()
    for row in range(start, len(positions)):
        p = positions[row]
        angle, off = made.blocks.angles[row], made.off[row]
        if not bool(angle.isfinite().all()):
            pair = int((~angle.isfinite()).nonzero()[0])
            return row, pair, float(angle[pair]), float(omega[pair]) * p, float(off[pair])
        apart = wrapped(angle - omega * p)
        allowed = off + radius * p
        over = (apart.abs() > allowed) & (allowed < math.pi)
        if bool(over.any()):
            pair = int((apart.abs() / allowed * over).argmax())
            there = math.remainder(float(omega[pair]) * p, math.tau)
            return row, pair, float(angle[pair]), there, float(allowed[pair])
        # Angles within their radius narrow the interval, from either end.
        low = torch.maximum(omega - radius, omega + (apart - off) / p)
        high = torch.minimum(omega + radius, omega + (apart + off) / p)
        known = allowed < math.pi
        omega = torch.where(known, (low + high) / 2, omega)
        radius = torch.where(known, (high - low) / 2, radius)
    return None

"""Probes of what rotary code does with positions: sees them, on every axis, on grids."""

from __future__ import annotations

import torch
from torch import Tensor

from ..calling import evaluating, plain
from ..draw import Draw
from ..finding import Seen
from ..rotary_matrices import matrices, moved, point, reach_of, rotate_at, rounding_for, told
from ..subjects import Rotary
from .base import Outcome, broken, held, not_asked, probe, undecided

__all__: list[str] = []


@probe("sees-positions", "rotary")
def sees_positions(subject: Rotary, draw: Draw) -> Outcome:
    """One vector by itself at several positions, and in all tokens of one row."""
    rounding, steps = rounding_for(subject, draw), (0, 1, 3, 37)
    with evaluating(subject):
        reach = reach_of(subject, draw)
        points = [point(subject, reach.low + s) for s in steps if reach.has(reach.low + s)]
        if len(points) < 2:
            return not_asked(f"it has one position alone; {reach.why}")
        x = (4 * draw.normal(1, 1, subject.width, salt=7)).round().clamp(-9, 9) + 0.5
        ways: list[tuple[str, list[Tensor]]] = []
        for name, call in {"query": subject.turn, "key": subject.turn_key}.items():
            single = [rotate_at(subject, call, x, [p], draw)[0, 0, 0] for p in points]
            row = rotate_at(subject, call, x.repeat(1, len(points), 1), points, draw)[0, 0]
            ways += [(f"one {name} by itself", single), (f"one {name} in every token", list(row))]
    least, bound = float("inf"), 0.0
    for words, results in ways:
        size = max(float(r.norm().nan_to_num()) for r in results)
        bound = 2 * rounding.turning * size
        apart = max(float((r - results[0]).norm()) for r in results[1:])
        if not all(bool(r.isfinite().all()) for r in results):
            return undecided(f"{words} gives numbers that are none")
        if apart == 0.0:
            return broken(
                f"{words} gives the same at positions {', '.join(str(told(p)) for p in points)}",
                Seen({"vector": plain(x.double().flatten().cpu()), "way": words,
                      "positions": [told(p) for p in points]},
                     (f"at {told(points[0])}", plain(results[0])),
                     (f"at {told(points[1])}, which should differ", plain(results[1])), 0.0, bound),
                B=1, H=subject.heads, T=1 if "itself" in words else len(points), D=subject.width,
            )  # fmt: skip
        least = min(least, apart)
        if apart <= bound:
            return undecided(f"{words} hardly changes with its position", apart, bound)
    return held("one vector differs at several positions, by itself and in every token of a row, "
                f"by {least:.2g} at least", D=subject.width)  # fmt: skip


@probe("every-axis-matters", "rotary")
def every_axis_matters(subject: Rotary, draw: Draw) -> Outcome:
    """One coordinate changed, the others kept."""
    least, bound = float("inf"), 2 * rounding_for(subject, draw).turning
    with evaluating(subject):
        reach = reach_of(subject, draw)
        starts = [point(subject, reach.low), point(subject, reach.low + 2)]
        for start in starts:
            for axis in range(subject.axes):
                ways = [
                    moved(start, by, axis)
                    for by in (1, 4, 29, 1900)
                    if reach.has(reach.low + 2 + by)
                ]
                found = matrices(subject, subject.turn, [start, *ways], draw)
                apart = float((found[1:] - found[0]).abs().max())
                if apart == 0.0:
                    off = int(found[0, 0].diagonal().argmin())
                    return broken(
                        f"coordinate {axis} of a position changes nothing",
                        Seen({"axis": axis, "from": list(start), "to": list(ways[0]),
                              "vector": f"each unit vector of {subject.width} channels"},
                             (f"channel {off} at {list(start)}", plain(found[0, 0, off])),
                             (f"at {list(ways[0])}, which should differ", plain(found[1, 0, off])),
                             0.0, bound),
                        D=subject.width, axes=subject.axes,
                    )  # fmt: skip
                if apart <= bound:
                    return undecided(f"coordinate {axis} hardly changes anything", apart, bound)
                least = min(least, apart)
    return held(f"each of {subject.axes} coordinates changes the result, by {least:.2g} at least",
                axes=subject.axes)  # fmt: skip


GRIDS = ((2, 3), (3, 2), (3, 5), (4, 4), (5, 3), (1, 4), (4, 1))


@probe("grid-steps", "rotary")
def grid_steps(subject: Rotary, draw: Draw) -> Outcome:  # noqa: ARG001 (no input is drawn)
    """The change of the coordinates from each place to its right and lower neighbour."""
    assert subject.grid is not None  # else it is not asked
    worst, bound = 0.0, 0.0
    for rows, columns in GRIDS:
        made = subject.grid(rows, columns).detach().to("cpu", torch.float64)
        size = {"rows": rows, "columns": columns}
        if made.shape[0] != rows * columns or made.dim() != 2:
            return undecided(f"grid({rows}, {columns}) gave {tuple(made.shape)}; "
                             f"({rows * columns}, coordinates) was wanted")  # fmt: skip
        grid = made.reshape(rows, columns, -1)
        exact = not subject.grid(rows, columns).is_floating_point()
        unit = float(torch.finfo(torch.float32).eps)
        bound = 0.0 if exact else 4 * unit * float(made.abs().max())
        seen = {}
        for words, steps, axis in (("right", grid[:, 1:] - grid[:, :-1], 1),
                                   ("down", grid[1:] - grid[:-1], 0)):  # fmt: skip
            if not steps.numel():
                continue
            seen[words] = steps[0, 0]
            off = (steps - steps[0, 0]).abs().amax(-1)
            worst = max(worst, float(off.max()))
            if not float(off.max()) <= bound:
                r, c = (int(i) for i in (~(off <= bound)).nonzero()[0])
                to = (r, c + 1) if axis else (r + 1, c)
                return broken(
                    f"on a grid of {rows} rows and {columns} columns a step {words} is not the "
                    "same everywhere",
                    Seen({**size, "place": [r, c], "its coordinates": plain(grid[r, c]),
                          "next": list(to), "next coordinates": plain(grid[to])},
                         (f"step {words} from {[r, c]}", plain(steps[r, c])),
                         (f"step {words} from [0, 0]", plain(steps[0, 0])),
                         float(off[r, c]), bound),
                    **size,
                )  # fmt: skip
            if float(steps[0, 0].abs().max()) <= bound:
                to = (0, 1) if axis else (1, 0)
                return broken(
                    f"on a grid of {rows} rows and {columns} columns no step {words} is seen",
                    Seen(
                        {**size, "place": [0, 0], "next": list(to)},
                        ("coordinates of [0, 0]", plain(grid[0, 0])),
                        (f"coordinates of {list(to)}, which should differ", plain(grid[to])),
                        0.0,
                        bound,
                    ),
                    **size,
                )
        if len(seen) == 2 and torch.equal(seen["right"], seen["down"]):
            return broken(
                "a step right changes the coordinates as a step down does",
                Seen(size, ("step right", plain(seen["right"])), ("step down", plain(seen["down"])),
                     0.0, bound), **size,
            )  # fmt: skip
    return held(f"steps right and down are the same everywhere on {len(GRIDS)} grids", worst, bound)

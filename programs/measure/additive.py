"""Probes of tables of positions that are added to tokens: visible, as declared, sinusoidal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ..calls.grids import along_each_axis
from ..execution.calling import as_lists, evaluating, seeded_call
from ..execution.draw import Draw
from ..execution.rotary_matrices import FASTEST
from ..execution.tolerance import Rounding, ladder_error, rounding_of
from ..reading import scalings
from ..reading.applicability import depends_on_length
from ..subjects import Additive
from .base import Outcome, broken, compare, holds, not_asked, probe, undecided

TOO_FAST = (
    "the difference is the float32 rounding of angles that change by more than half a turn "
    "per position, which integer positions cannot tell from slower ones"
)
ENTRIES = 1 << 21  # read of a table at once


def table_of(subject: Additive, draw: Draw, most: int) -> Tensor:
    """Return rows of the table, the result for tokens that are zero: (T, D) with T <= most.

    Fewer if the table is shorter than it claims to be.
    """
    count = max(2, min(most, subject.most, ENTRIES // subject.width))
    while True:
        x = torch.zeros(1, count, subject.width, dtype=draw.dtype, device=draw.device)
        try:
            with evaluating(subject):
                return seeded_call(subject.added, x)[0]
        except (IndexError, RuntimeError):
            if count <= 4:
                raise
            count = count // 2


AdditiveProbe = Callable[[Additive, Draw], Outcome]


def of_each_axis(look: AdditiveProbe, shared: AdditiveProbe | None = None) -> AdditiveProbe:
    """Apply a probe to a table of a grid along each of its axes.

    ``shared``: the probe to use if two axes change the same channel; places on the other axes then
    add a number that is constant along this one.
    """

    def looked(subject: Additive, draw: Draw) -> Outcome:
        if subject.grid is None:
            return look(subject, draw)
        with evaluating(subject):
            each, alone = along_each_axis(subject), True
            if not each and shared is not None:
                each, alone = along_each_axis(subject, shared=True), False
        if not each:
            return not_asked("two axes of its grid change the same channels, or one changes none")
        one_axis = look if alone or shared is None else shared
        found = {name: one_axis(one, draw) for name, one in each.items()}
        name, worst = max(found.items(), key=lambda one: _weight(one[1]))
        if worst.witness is None and not worst.doubtful and not worst.skipped:
            return replace(worst, why="; ".join(f"{k}: {one.why}" for k, one in found.items()))
        return replace(worst, why=f"{name}: {worst.why}")

    return looked


def _weight(seen: Outcome) -> int:
    return 3 if seen.witness is not None else 2 if seen.doubtful else 1 if seen.skipped else 0


SIZES = ((1, 2), (1, 5), (2, 3), (3, 3), (2, 5), (5, 2))


@probe("sees-positions", "additive")
def sees_positions(subject: Additive, draw: Draw) -> Outcome:
    """Add positions to equal tokens: all tokens of a row must differ, for various B and T."""
    least, bound = math.inf, 0.0
    for rows, count in SIZES:
        if count > subject.most:
            continue
        x = torch.ones(rows, count, subject.width, dtype=draw.dtype, device=draw.device)
        with evaluating(subject):
            result = seeded_call(subject.added, x)
        if subject.learned and not bool((result != result[0, 0]).any()):
            return undecided("all rows of its learned table are equal, as before training")
        apart = (result[:, :, None] - result[:, None]).norm(dim=-1).nan_to_num(nan=math.inf)
        apart = apart.masked_fill(torch.eye(count, dtype=torch.bool), math.inf)
        bound = rounding_of(draw.dtype).unit * float(result.abs().max())
        if float(apart.min()) == 0.0:
            b, s, t = (int(i) for i in torch.unravel_index(apart.argmin(), apart.shape))
            return broken(
                f"tokens {s} and {t} of row {b} are the same after their positions were added",
                {"tokens": "1 in every channel", "B": rows, "n": count, "row": b},
                (f"token {s}", as_lists(result[b, s])),
                (f"token {t}, which should differ", as_lists(result[b, t])),
                0.0,
                bound,
                B=rows,
                n=count,
                D=subject.width,
            )
        least = min(least, float(apart.min()))
    if subject.grid is not None:
        with evaluating(subject):
            alike = _repeated_in_grid(subject)
        if alike is not None:
            return alike
    elif not subject.learned and draw.dtype in EXACT:
        again = _repeated(subject, draw)
        if again is not None:
            return again
    return holds(f"equal tokens of a row differ by at least {least:.2g} after positions are added")


EXACT = (torch.float32, torch.float64)
# Rows searched for a repeated row.  An angle of a radian per row comes within 0.018 rad of whole
# turns at 44 rows, and no closer before 333.
SPACING = 128


def _repeated(subject: Additive, draw: Draw) -> Outcome | None:
    """Check that no two rows of the table are equal, however far apart; None if so.

    Rows are equal up to the rounding of angles that turn by a radian per row.
    """
    table = table_of(subject, draw, SPACING)
    rounding = rounding_of(draw.dtype)
    size = max(1.0, float(table.abs().nan_to_num().max()))
    allowed = size * entry_error(torch.ones(1), rounding, len(table), own=True)
    off = (table[:, None] - table[None]).abs().amax(-1).nan_to_num(nan=math.inf)
    same = (off <= torch.maximum(allowed[:, None], allowed[None])).triu(1)
    if not bool(same.any()):
        return None
    p, q = (int(i) for i in same.nonzero()[0])
    return _same_row(table, p, q, float(off[p, q]), float(allowed[q]))


def _same_row(table: Tensor, p: int, q: int, off: float, allowed: float) -> Outcome:
    """Return the outcome of two positions with the same row."""
    return broken(
        f"positions {p} and {q} have the same row",
        {"positions": [p, q]},
        (f"row {p}", as_lists(table[p])),
        (f"row {q}, which should differ", as_lists(table[q])),
        off,
        allowed,
        n=q + 1,
        D=table.shape[1],
    )


def _repeated_in_grid(subject: Additive) -> Outcome | None:
    """Check that no two places of a grid have the same row; None if so."""
    assert subject.grid is not None
    for last in ((2, 3), (3, 2), (3, 3)):
        sizes = (2,) * (subject.axes - 2) + last
        try:
            table = subject.grid(sizes).flatten(0, -2)
        except ValueError:  # code for squares only
            continue
        same = (table[:, None] == table[None]).all(-1).triu(1)
        if bool(same.any()):
            at = [[int(i) for i in torch.unravel_index(k, sizes)] for k in same.nonzero()[0]]
            rows = [as_lists(table[k]) for k in same.nonzero()[0]]
            return broken(
                f"places {at[0]} and {at[1]} of a grid have the same row",
                {"grid": list(sizes)},
                (f"row of {at[0]}", rows[0]),
                (f"row of {at[1]}, which should differ", rows[1]),
                0.0,
                0.0,
                D=subject.width,
            )
    return None


@probe("neighbours-differ", "additive")
@of_each_axis
def neighbours_differ(subject: Additive, draw: Draw) -> Outcome:
    """Compare every row of the table with the next, up to 65536 or the last."""
    table = table_of(subject, draw, (1 << 16) + 2)
    steps = (table[1:] - table[:-1]).norm(dim=-1).nan_to_num(nan=0.0)
    allowed = rounding_of(draw.dtype).unit * float(table[0].norm())
    if bool((steps <= allowed).any()):
        p = int((steps <= allowed).nonzero()[0])
        return _same_row(table, p, p + 1, float(steps[p]), allowed)
    return holds(
        f"neighbouring rows up to position {len(table) - 1} differ by "
        f"at least {float(steps.min()):.2g}",
        n=len(table),
        D=subject.width,
    )


def variants(omega: Tensor, width: int, count: int) -> Iterator[tuple[str, str, Tensor]]:
    """Yield every table of these frequencies: its layout, its name, and its rows (T, D).

    An odd last column holds the next sine.
    """
    for start in (0, 1, 2):
        angles = torch.arange(start, start + count, dtype=torch.float64)[:, None] * omega
        since = f", positions from {start}" if start else ""
        for order, pair in (
            ("sine first", (angles.sin(), angles.cos())),
            ("cosine first", (angles.cos(), angles.sin())),
        ):
            rows = torch.stack(pair, -1).flatten(-2)[:, :width]
            yield "interleaved", f"interleaved, {order}{since}", rows
            if width % 2 == 0:
                yield "half", f"half, {order}{since}", torch.cat(pair, -1)


def entry_error(omega: Tensor, rounding: Rounding, count: int, own: bool) -> Tensor:
    """Bound the error of the entries of each row, by the largest frequency: (T,).

    ``own``: against the frequencies of the code itself.
    """
    slack = 0.0 if own else float(ladder_error(omega, rounding.angle_unit).max())
    p = torch.arange(count + 2, dtype=torch.float64)[2:]
    fastest = float(omega.abs().max()) if len(omega) else 1.0
    return rounding.angle(p, fastest) + p * slack + rounding.rotating


@probe("frequencies-as-declared", "additive")
@of_each_axis
def frequencies_as_declared(subject: Additive, draw: Draw) -> Outcome:
    """Compare the table with that of the declared ladder, in each usual order of columns."""
    declared, width, rounding = subject.declared, subject.width, rounding_of(draw.dtype)
    assert declared is not None  # else the law is not asked
    table = table_of(subject, draw, 2050)
    pairs = (width + 1) // 2
    omega = scalings.ladder(float(declared.base or 1.0), pairs, over=width / 2)
    if declared.frequencies is not None:
        omega = torch.tensor(declared.frequencies, dtype=torch.float64)
    if len(omega) != pairs:
        return undecided(
            f"{len(omega)} frequencies are declared, and {width} channels have {pairs}"
        )
    # A common factor is allowed: rows of unit sines and cosines have norm √(D/2).  Squares of a
    # partial row do not average exactly 1/2, so the factor is fitted.
    scaled = abs((float(table.square().mean().sqrt() * math.sqrt(2)) or 1.0) - 1) >= 0.1
    error = entry_error(omega, rounding, len(table), own=False)[:, None]
    said = "as listed" if declared.frequencies else f"base {declared.base:g}"
    seen: list[tuple[int, Outcome]] = []
    for layout, words, rows in variants(omega, width, len(table)):
        if declared.layout not in (None, layout):
            continue
        scale = float((table * rows).sum() / rows.square().sum()) if scaled else 1.0
        one = compare(
            table,
            scale * rows,
            error * max(1.0, abs(scale)),
            lambda row, column, words=words: (
                f"its table is not that of the declared ladder; nearest is {words}",
                {"position": row, "channel": column, "width": width, "declared": said},
                f"entry of row {row}, channel {column}",
            ),
            f"its table is that of the declared ladder: {words}"
            + (f", times {scale:.6g}" if scale != 1 else ""),
            n=len(table),
            D=width,
        )
        if one.witness is None:
            return one
        seen.append((one.witness.inputs["position"], one))
    row, nearest = max(seen, key=lambda one: one[0])
    more = _instead(table, width, rounding)
    return replace(nearest, why=nearest.why + more, sizes={"n": row + 1, "D": width})


def _instead(table: Tensor, width: int, rounding: Rounding) -> str:
    """Note if it is the ladder that ends at 1/base, as in tensor2tensor."""
    pairs = width // 2
    if width % 2 or pairs < 2:
        return ""
    omega = scalings.ladder(10_000.0, pairs, over=pairs - 1)
    allowed = entry_error(omega, rounding, len(table), own=False)[:, None]
    for _, _, rows in variants(omega, width, len(table)):
        if bool(((table - rows).abs() <= allowed).all()):
            return "; it is that of frequencies 10000^(−i/(D/2 − 1)), whose last is 1/10000"
    return ""


def is_fast(table: Tensor) -> bool:
    """Whether some entry changes more per row than a wave of one radian per row.

    Such a wave changes by at most 2 sin(1/2) < 1 times its amplitude; the ladders in use are not
    faster.
    """
    return bool((table[1:] - table[:-1]).abs().max() > table.abs().max())


def _shift(subject: Additive, draw: Draw, *, fixed: bool = False) -> Outcome:
    """Fit the matrix that takes every row to the next, and check its residual.

    The true matrix leaves no more than the rounding of the rows, and the best one no more than
    that; with more rows than channels no matrix fits by chance.  ``fixed``: rows may have a common
    constant part, for which the matrix is given a constant column.
    """
    if why := depends_on_length(subject, draw):
        return not_asked(why)
    wanted = 2 * subject.width + 32
    table = table_of(subject, draw, wanted)
    if len(table) < wanted:
        return not_asked(f"identifying a shift takes {wanted} rows; the table has {len(table)}")
    before, after = table[:-1], table[1:]
    if not bool(table.isfinite().all()):
        return undecided("its table holds NaN or infinity")
    if fixed:
        before = torch.cat((before, torch.ones_like(before[:, :1])), 1)
    matrix = torch.linalg.lstsq(before, after, driver="gelsd").solution
    left = after - before @ matrix
    scale = max(1.0, float(table.abs().max()))
    # A row and its predecessor, rotated by the matrix, are off by the sum of both errors.
    errors = (
        entry_error(torch.tensor([w]), rounding_of(draw.dtype), len(table), own=True)
        for w in (1.0, FASTEST)
    )
    allowed, loose = (
        float((one[1:] + one[:-1]).square().sum().sqrt() * math.sqrt(subject.width) * scale)
        for one in errors
    )
    off = float(left.norm())
    if allowed < off <= loose and is_fast(table):
        return undecided(TOO_FAST, off, allowed)
    if off > allowed and _off_in_float64(subject, draw, fixed) <= allowed:
        return undecided(TOO_FAST, off, allowed)
    if not off <= allowed:
        row = int(left.norm(dim=-1).argmax())
        column = int(left[row].abs().argmax())
        return broken(
            "no matrix takes every row of the table to the next",
            {
                "rows": len(table),
                "shift": 1,
                "position": row,
                "channel": column,
                "next": float(after[row, column]),
                "by the best matrix": float((before @ matrix)[row, column]),
            },
            ("norm of the residual of the best matrix over all rows", off),
            ("its norm for a table that it shifts", 0.0),
            off,
            allowed,
            n=len(table),
            D=subject.width,
        )
    return holds(
        f"one matrix takes each of {len(table) - 1} rows to the next",
        off,
        allowed,
        n=len(table),
        D=subject.width,
    )


def _off_in_float64(subject: Additive, draw: Draw, fixed: bool) -> float:
    """Return the residual of the best matrix in float64; infinity if there is none."""
    if draw.dtype == torch.float64:
        return math.inf
    try:
        found = _shift(subject, replace(draw, dtype=torch.float64), fixed=fixed)
    except Exception:  # noqa: BLE001 (code may take a single format)
        return math.inf
    return found.error if isinstance(found.error, float) else math.inf


@probe("linear-shift", "additive")
def linear_shift(subject: Additive, draw: Draw) -> Outcome:
    """Check that a shift along each axis is one matrix, also if axes share channels."""
    return of_each_axis(_shift, partial(_shift, fixed=True))(subject, draw)

"""Whether rotary code turns by the frequencies that are declared, within the bound of its format.

The relative identity, score(m + s, n + s) = score(m, n), cannot see this: frequencies that are
wrong in the same way for queries and keys keep it.  So the angles are compared themselves.

A pair at position p may be off its declared angle p·ω by the bound of the angle (see
:mod:`.bound`), and the vectors it turns by η of their length.  Of two unit vectors e, f turned by
â, each with an error of length at most η, the angle is read as the direction of their sum,
(f turned back by a right angle) + e, which is 2 long and has an error of at most 2η: so the
angle that is read is within arcsin(η) of â.  A difference above both together is no rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .bound import Bound, bound_of
from .extraction import LAYOUTS, Turn, Turned, frequencies_of, places, turned_units, wrapped
from .formats import Format, format_named
from .scores import Pairs

__all__ = ["Compared", "Related", "compare", "layout_of", "relative"]

FURTHEST = 1 << 16


@dataclass(frozen=True)
class Compared:
    """What came of comparing the turning of rotary code with declared frequencies.

    ``status`` is held or refused.  ``ratio`` is the largest difference of angles over its bound,
    at ``position`` and ``pair``; ``why`` says in words what is wrong.  ``frequencies`` are those
    the code uses, each within ``radius``: what is nearer than that is not told apart.
    """

    status: str
    why: str
    ratio: float
    position: int
    pair: int
    declared: Tensor
    frequencies: Tensor
    radius: Tensor
    layout: str

    def __bool__(self) -> bool:
        raise TypeError("a comparison has a status, held or refused; look at that")


def compare(
    turn: Turn, omega: Tensor, layout: str, *, form: Format | str = "float32",
    furthest: int = FURTHEST, width: int | None = None, scale: float = 1.0,
) -> Compared:  # fmt: skip
    """Compare rotary code, turn: (n, d), (n,) -> (n, d), with declared frequencies ω: (B,).

    ``form`` says in which dtypes the code claims to compute: it is part of what is compared.  The
    positions are powers of 2 and others between, up to ``furthest``.

    >>> from .formats import declared
    >>> from attnproof.theorems.definitions.rotary import rotate
    >>> used = declared(10_001, 8).float()
    >>> compare(lambda x, p: rotate(x, p, used), declared(10_000, 8), "interleaved").status
    'refused'
    """
    form = format_named(form) if isinstance(form, str) else form
    omega = omega.to("cpu", torch.float64)
    bound, positions = bound_of(form, omega), places(furthest)
    found = turned_units(
        turn, positions, len(omega), layout, width=width, dtype=form.data, scale=scale
    )
    exact = positions.double()
    radius = bound.angle(exact) + math.asin(min(1.0, bound.turning))
    off = wrapped(found.angles - exact[:, None] * omega).abs()
    ratio = off / radius
    row, pair = divmod(int(ratio.nan_to_num(nan=math.inf).argmax()), len(omega))
    used, known = frequencies_of(found, radius)
    why = _unturned(found, bound) or _elsewhere(turn, found, bound, form, width, scale)
    why = why or _wrong(found, omega, used, known, float(ratio[row, pair]), row, pair)
    return Compared(
        "refused" if why else "held", why, float(ratio[row, pair]), int(positions[row]), pair,
        omega, used, known, layout,
    )  # fmt: skip


def _unturned(found: Turned, bound: Bound) -> str:
    """What is wrong with the channels of no pair, or with numbers that are none."""
    if not bool(found.angles.isfinite().all()):
        place = int((~found.angles.isfinite()).any(1).nonzero()[0])
        return f"at position {int(found.positions[place])} it gives numbers that are none"
    if bool((found.rest > bound.turning).any()):
        row = int(found.rest.argmax())
        place = int(found.positions[row])
        return (f"the channels from {2 * found.angles.shape[1]} on are of no pair and move by "
                f"{float(found.rest[row]):.2g} at position {place}")  # fmt: skip
    return ""


def _elsewhere(
    turn: Turn, found: Turned, bound: Bound, form: Format, width: int | None, scale: float
) -> str:
    """Whether pairs are no pairs of this layout, and of which they are."""
    away = found.away / _apart(bound)
    row, pair = divmod(int(away.argmax()), away.shape[1])
    if float(away[row, pair]) <= 1:
        return ""
    told = (f"at position {int(found.positions[row])} the channels of pair {pair} "
            f"({found.layout}) do not turn into each other: they end "
            f"{float(found.away[row, pair]):.2g} from where a turn would take them")  # fmt: skip
    other = layout_of(turn, away.shape[1], form=form, width=width, scale=scale)
    return told + (f"; the layout of the code is {other}" if other else "")


def _apart(bound: Bound) -> float:
    """How far a turned unit vector may be from one turned by the angle that is read.

    It is within η of its turn by â, and the angle is read within arcsin(η) of that.
    """
    eta = min(1.0, bound.turning)
    return eta + 2 * math.sin(math.asin(eta) / 2)


def _wrong(
    found: Turned, omega: Tensor, used: Tensor, known: Tensor, ratio: float, row: int, pair: int
) -> str:
    """In which way the angles are wrong."""
    if ratio <= 1:
        return ""
    told = (f"pair {pair} turns by {float(found.angles[row, pair]):.6g} at position "
            f"{int(found.positions[row])}, {ratio:.3g} times its bound from the declared angle; "
            f"its frequency is {float(used[pair]):.8g} ± {float(known[pair]):.1g}, and "
            f"{float(omega[pair]):.8g} is declared")  # fmt: skip
    for factor, words in ((-1.0, "it turns the other way"), (2.0, "it turns twice as far"),
                          (0.5, "it turns half as far")):  # fmt: skip
        if bool(((used - factor * omega).abs() <= known).all()):
            return f"{told}; {words}"
    return told


def layout_of(
    turn: Turn, pairs: int, *, form: Format, width: int | None = None, scale: float = 1.0
) -> str:
    """The layout whose pairs the code turns; empty if there is none."""
    bound = bound_of(form, torch.ones(pairs, dtype=torch.float64))
    for layout in LAYOUTS:
        found = turned_units(
            turn, torch.tensor([1, 2]), pairs, layout, width=width, dtype=form.data, scale=scale
        )
        if bool((found.away <= _apart(bound)).all()):
            return layout
    return ""


@dataclass(frozen=True)
class Related:
    """Whether scores depend on offsets alone: the largest difference over its bound."""

    status: str
    ratio: float


def relative(
    turn: Turn, omega: Tensor, pairs: Pairs, shift: float, *, layout: str = "interleaved",
    form: Format | str = "float32",
) -> Related:  # fmt: skip
    """The identity score(m + s, n + s) = score(m, n) of rotary code, within its bound.

    Any frequencies near ω pass it: see :func:`compare` for those.
    """
    form = format_named(form) if isinstance(form, str) else form
    here = pairs.stored(form.data)
    bound, found, allowed = bound_of(form, omega), [], []
    lengths = here.lengths(layout)
    for at in (here, here.moved(shift)):
        q, k = (
            form.operand(turn(x.to(form.data), p)).double()
            for x, p in ((at.q, at.m), (at.k, at.n))
        )
        found.append((q * k).sum(-1))
        allowed.append(bound.score(lengths[0], lengths[1], at.m, at.n, own=True))
    ratio = float(((found[1] - found[0]).abs() / (allowed[0] + allowed[1])).max())
    return Related("held" if ratio <= 1 else "refused", ratio)

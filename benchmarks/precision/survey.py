"""Whether rotary code rotates as declared, and all that is measured of it in short formats.

The relative identity, score(m + s, n + s) = score(m, n), cannot see this: frequencies that are
wrong in the same way for queries and keys keep it.  So the angles are compared themselves.

A pair at position p may be off its declared angle p·ω by the bound of the angle (see
:mod:`~attnproof.numeric.rotary_precision.bound`), and the vectors it rotates by η of their length.
Of two unit vectors e, f rotated by â, each with an error of length at most η, the angle is read as
the direction of their sum, (f rotated back by a right angle) + e, which is 2 long and has an error
of at most 2η: so the angle that is read is within arcsin(η) of â.  A difference above both together
is no rounding.

The identity of scores at one offset sees a wrong position; frequencies that are wrong alike for
queries and keys it cannot see, and neither a consistent layout.  The comparison with the
declared frequencies refuses them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attnproof.numeric.devices import chosen, one_thread
from attnproof.numeric.rotary_precision.bound import (
    FORMATS,
    Bound,
    Format,
    bound_of,
    declared,
    format_named,
)
from attnproof.numeric.rotary_precision.extraction import (
    LAYOUTS,
    Rotate,
    Rotated,
    frequencies_of,
    places,
    rotated_units,
    wrapped,
)
from benchmarks.precision.limits import (
    BASES,
    SHIFTS,
    Break,
    Collision,
    Drift,
    Errors,
    Pairs,
    breaks,
    collision,
    drift,
    errors,
    rotated,
)

# Whether rotary code rotates by the frequencies that are declared, within the bound of its format

FURTHEST = 1 << 16


@dataclass(frozen=True)
class Compared:
    """What came of comparing the rotating of rotary code with declared frequencies.

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
    rotate: Rotate,
    omega: Tensor,
    layout: str,
    *,
    form: Format | str = "float32",
    furthest: int = FURTHEST,
    width: int | None = None,
    scale: float = 1.0,
) -> Compared:
    """Compare rotary code, rotate: (n, d), (n,) -> (n, d), with declared frequencies ω: (B,).

    ``form`` says in which dtypes the code claims to compute: it is part of what is compared.  The
    positions are powers of 2 and others between, up to ``furthest``.

    >>> from attnproof.numeric.rotary_precision.bound import declared
    >>> from attnproof.theorems.definitions.rotary import rotate
    >>> used = declared(10_001, 8).float()
    >>> compare(lambda x, p: rotate(x, p, used), declared(10_000, 8), "interleaved").status
    'refused'
    """
    form = format_named(form) if isinstance(form, str) else form
    omega = omega.to("cpu", torch.float64)
    bound, positions = bound_of(form, omega), places(furthest)
    found = rotated_units(
        rotate, positions, len(omega), layout, width=width, dtype=form.data, scale=scale
    )
    exact = positions.double()
    radius = bound.angle(exact) + math.asin(min(1.0, bound.rotating))
    off = wrapped(found.angles - exact[:, None] * omega).abs()
    ratio = off / radius
    row, pair = divmod(int(ratio.nan_to_num(nan=math.inf).argmax()), len(omega))
    used, known = frequencies_of(found, radius)
    why = _unrotated(found, bound) or _elsewhere(rotate, found, bound, form, width, scale)
    why = why or _wrong(found, omega, used, known, float(ratio[row, pair]), row, pair)
    return Compared(
        "refused" if why else "held",
        why,
        float(ratio[row, pair]),
        int(positions[row]),
        pair,
        omega,
        used,
        known,
        layout,
    )


def _unrotated(found: Rotated, bound: Bound) -> str:
    """What is wrong with the channels of no pair, or with NaN or infinity."""
    if not bool(found.angles.isfinite().all()):
        place = int((~found.angles.isfinite()).any(1).nonzero()[0])
        return f"at position {int(found.positions[place])} it gives NaN or infinity"
    if bool((found.rest > bound.rotating).any()):
        row = int(found.rest.argmax())
        place = int(found.positions[row])
        return (
            f"the channels from {2 * found.angles.shape[1]} on are of no pair and move by "
            f"{float(found.rest[row]):.2g} at position {place}"
        )
    return ""


def _elsewhere(
    rotate: Rotate, found: Rotated, bound: Bound, form: Format, width: int | None, scale: float
) -> str:
    """Whether pairs are no pairs of this layout, and of which they are."""
    away = found.away / _apart(bound)
    row, pair = divmod(int(away.argmax()), away.shape[1])
    if float(away[row, pair]) <= 1:
        return ""
    told = (
        f"at position {int(found.positions[row])} the channels of pair {pair} "
        f"({found.layout}) are not rotated into each other: they end "
        f"{float(found.away[row, pair]):.2g} from where a rotation would take them"
    )
    other = layout_of(rotate, away.shape[1], form=form, width=width, scale=scale)
    return told + (f"; the layout of the code is {other}" if other else "")


def _apart(bound: Bound) -> float:
    """How far a rotated unit vector may be from one rotated by the angle that is read.

    It is within η of its turn by â, and the angle is read within arcsin(η) of that.
    """
    eta = min(1.0, bound.rotating)
    return eta + 2 * math.sin(math.asin(eta) / 2)


def _wrong(
    found: Rotated, omega: Tensor, used: Tensor, known: Tensor, ratio: float, row: int, pair: int
) -> str:
    """In which way the angles are wrong."""
    if ratio <= 1:
        return ""
    told = (
        f"pair {pair} rotates by {float(found.angles[row, pair]):.6g} at position "
        f"{int(found.positions[row])}, {ratio:.3g} times its bound from the declared angle; "
        f"its frequency is {float(used[pair]):.8g} ± {float(known[pair]):.1g}, and "
        f"{float(omega[pair]):.8g} is declared"
    )
    for factor, words in (
        (-1.0, "it rotates the other way"),
        (2.0, "it rotates twice as far"),
        (0.5, "it rotates half as far"),
    ):
        if bool(((used - factor * omega).abs() <= known).all()):
            return f"{told}; {words}"
    return told


def layout_of(
    rotate: Rotate, pairs: int, *, form: Format, width: int | None = None, scale: float = 1.0
) -> str:
    """The layout whose pairs the code rotates; empty if there is none."""
    bound = bound_of(form, torch.ones(pairs, dtype=torch.float64))
    for layout in LAYOUTS:
        found = rotated_units(
            rotate, torch.tensor([1, 2]), pairs, layout, width=width, dtype=form.data, scale=scale
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
    rotate: Rotate,
    omega: Tensor,
    pairs: Pairs,
    shift: float,
    *,
    layout: str = "interleaved",
    form: Format | str = "float32",
) -> Related:
    """The identity score(m + s, n + s) = score(m, n) of rotary code, within its bound.

    Any frequencies near ω pass it: see :func:`compare` for those.
    """
    form = format_named(form) if isinstance(form, str) else form
    here = pairs.stored(form.data)
    bound, found, allowed = bound_of(form, omega), [], []
    lengths = here.lengths(layout)
    for at in (here, here.moved(shift)):
        q, k = (
            form.operand(rotate(x.to(form.data), p)).double()
            for x, p in ((at.q, at.m), (at.k, at.n))
        )
        found.append((q * k).sum(-1))
        allowed.append(bound.score(lengths[0], lengths[1], at.m, at.n, own=True))
    ratio = float(((found[1] - found[0]).abs() / (allowed[0] + allowed[1])).max())
    return Related("held" if ratio <= 1 else "refused", ratio)


# Rotary code that is wrong in the usual ways, and what two checks say of each

SHIFT = 10_000
BASE = 1e4


@dataclass(frozen=True)
class Checked:
    """Rotary code, and the largest error over its bound in both checks; ``why`` of the second."""

    code: str
    form: str
    identity: str
    identity_ratio: float
    comparison: str
    comparison_ratio: float
    why: str


def wrong(form: Format, base: float, pairs: int) -> Iterator[tuple[str, Rotate]]:
    """Right code first, then the usual faults, all interleaved but one."""
    usual = form.rounded_frequencies(base, pairs)
    place = torch.arange(pairs)

    def by(frequencies: Tensor) -> Rotate:
        return lambda x, p: rotated(x, p, form, frequencies)

    yield "as declared", by(usual)
    yield "frequencies in bfloat16", by(usual.to(torch.bfloat16).to(usual.dtype))
    yield f"base {base + 1:g}", by(form.rounded_frequencies(base + 1, pairs))
    yield "angles doubled", by(2 * usual)
    yield "rotated the other way", by(-usual)
    yield "one frequency off by 1e-4", by(torch.where(place == pairs // 3, usual * 1.0001, usual))
    yield "the other layout", lambda x, p: half_split(x, p, form, usual)
    yield "positions in bfloat16", lambda x, p: rotated(x, p.to(torch.bfloat16), form, usual)


def half_split(x: Tensor, positions: Tensor, form: Format, frequencies: Tensor) -> Tensor:
    """x: (k, 2B) rotated in the layout where channels b and B + b are a pair."""
    half = frequencies.shape[0]
    pairs = torch.stack((x[:, :half], x[:, half:]), dim=-1).flatten(1)
    found = rotated(pairs, positions, form, frequencies)
    return torch.cat((found[:, 0::2], found[:, 1::2]), dim=-1)


def checked(pairs: Pairs, form: Format, base: float = BASE) -> Iterator[Checked]:
    """Both checks of each code, in a format."""
    count = pairs.q.shape[-1] // 2
    omega = declared(base, count)
    for says, rotate in wrong(form, base, count):
        same = relative(rotate, omega, pairs, SHIFT, form=form)
        found = compare(rotate, omega, "interleaved", form=form)
        yield Checked(
            says, form.name, same.status, same.ratio, found.status, found.ratio, found.why
        )


# Everything that is measured of rotary encoding in short formats, in one run

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Survey:
    """The tables, and how the content was drawn."""

    device: str
    seed: int
    content: int
    width: int
    errors: tuple[Errors, ...]
    breaks: tuple[Break, ...]
    collisions: tuple[Collision, ...]
    drifts: tuple[Drift, ...]
    checked: tuple[Checked, ...]

    @property
    def violations(self) -> int:
        """How many errors are above their bound; of an identity that should hold as well."""
        return sum(one.violations for one in self.errors)


def survey(
    *,
    device: str = "cpu",
    seed: int = 0,
    content: int = 512,
    pairs: int = 64,
    tell: Tell = lambda _says, _done, _all: None,
) -> Survey:
    """Measure all formats at all bases and shifts; ``tell`` hears what is done, and of how much."""
    where = chosen(device)
    drawn = Pairs.drawn(content, pairs, seed=seed)
    every = [(form, base) for base in BASES for form in FORMATS]
    found: list[Errors] = []
    broken: list[Break] = []
    with one_thread():
        for done, (form, base) in enumerate(every):
            tell(f"{form.name}, base {base:g}", done, len(every) + 1)
            found += [errors(drawn, form, base, shift, where) for shift in SHIFTS]
            broken.append(breaks(drawn, form, base, device=where))
        tell("positions, frequencies, faults", len(every), len(every) + 1)
        return Survey(
            str(where),
            seed,
            content,
            2 * pairs,
            tuple(found),
            tuple(broken),
            tuple(collision(dtype) for dtype in DTYPES),
            tuple(drift(dtype, base, pairs) for dtype in DTYPES for base in BASES),
            tuple(one for form in (FORMATS[0], FORMATS[4]) for one in checked(drawn, form)),
        )

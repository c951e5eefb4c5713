"""Find the formula of frequencies that were read: base, scaling, and what else would fit.

A frequency is known within a radius, so a base is known within an interval, and the simplest number
of the interval is chosen.  A formula is accepted if it gives every frequency within its radius and
the rounding of the code.

In a ladder scaled by parts, as in Llama 3.1 and YaRN, the fastest pairs are not scaled and
determine the base.  A candidate gives the share γ of ω that each pair keeps; the factor follows
from the pair that keeps least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..execution.tolerance import formula_error
from ..finding import Part, format_number, simplest
from . import scalings

STORED = (torch.float32, torch.float16, torch.bfloat16)
LONG_BASE_DIGITS = 4  # digits: a base with at least as many is not one that people write down


def fit(known: MeasuredFrequencies, *, head: float | None = None) -> Fitted | None:
    """Return the simplest ladder that fits these frequencies, in the finest dtype, or None.

    ``head``: half the width of the head, if fewer channels rotate or it is odd; some code divides
    exponents by it.

    >>> w = scalings.by_parts(scalings.ladder(500_000, 64), 8, 8192, 1, 4)
    >>> fit(MeasuredFrequencies(w, w * 1e-7)).words
    'Llama 3.1 factor 8, low 1, high 4, original length 8192'
    """
    if not bool((known.omega > known.radius).all()):
        return None
    if known.omega.numel() == 1:
        w = float(known.omega[0])
        off = float(known.radius[0] + relative_error(known.omega, torch.float32)[0])
        only = simplest(w - off, w + off)
        return Fitted(
            torch.tensor([only], dtype=torch.float64),
            None,
            (math.nan, math.nan),
            words=f"one frequency {format_number(only)}, which determines no base",
        )
    for stored in STORED:
        plain = [
            _ntk(one, known)
            for over in _exponent_divisors(known, head)
            for one in _plain(known, stored, over)
        ]
        if plain:
            return min(plain, key=_complexity)
    for stored in STORED:
        scaled = [*llama(known, stored), *yarn(known, stored)]
        if scaled:
            first = min(scaled, key=_complexity)
            others = {one.words for one in scaled if one.scaling != first.scaling}
            return replace(first, others=(*first.others, *sorted(others)))
        if even := _even(known, stored):
            return even
    return None


def _exponent_divisors(
    known: MeasuredFrequencies, head: float | None
) -> Iterator[tuple[float, str]]:
    """Yield divisors of the exponent b, each with words for it."""
    pairs = known.omega.numel()
    yield pairs, ""
    yield pairs - 1, f"exponents b/{pairs - 1}, to the end of the ladder"
    if head is not None and head != pairs:
        yield head, f"exponents counted over the whole head, b/{head:g}"


def _complexity(one: Fitted) -> int:
    """The total number of digits of all its numbers; fewer digits are likelier."""
    numbers = [*one.values.values(), *([] if one.base is None else [one.base])]
    own = sum(_digit_count(v) for v in numbers)
    if one.scaling == "ntk":  # for 4 pairs, factor 10 equals exponents b/3
        own = 2 if math.log2(one.values["factor"]).is_integer() else 4
    return own + (2 if "exponents" in one.words else 0)


def _digit_count(value: float) -> int:
    """The number of significant digits of a number; a power of two counts as one."""
    return (
        1
        if value > 0 and math.log2(value).is_integer()
        else len(f"{value:.12e}".split("e")[0].replace(".", "").rstrip("0"))
    )


def _plain(
    known: MeasuredFrequencies, stored: torch.dtype, how: tuple[float, str]
) -> Iterator[Fitted]:
    """Yield base^(−b/over), possibly divided by a factor."""
    over, says = how
    if over < 1:
        return
    y, off = known.logarithms(stored)
    factor = 1.0
    if abs(float(y[0])) > float(off[0]):
        factor = simplest(math.exp(-float(y[0] + off[0])), math.exp(-float(y[0] - off[0])))
    low, high = base_interval(y + math.log(factor), off, over, len(y) - 1)
    if low > high:
        return
    base = simplest(math.exp(low), math.exp(high))
    omega = scalings.ladder(base, len(y), over=over) / factor
    if base > 1 and bool(known.fits(omega, stored)):
        linear = f"positions divided by {format_number(factor)}" if factor != 1 else ""
        values = {"factor": factor} if linear else {}
        yield Fitted(
            omega,
            base,
            (math.exp(low), math.exp(high)),
            "linear" if linear else "",
            values,
            ", ".join(filter(None, (linear, says))),
            stored,
        )


def _ntk(one: Fitted, known: MeasuredFrequencies) -> Fitted:
    """Rewrite a base of many digits as a known base changed by an NTK factor, if one fits."""
    pairs = known.omega.numel()
    if one.base is None or pairs < 2 or _digit_count(one.base) < LONG_BASE_DIGITS:
        return one
    for base in BASES:
        if one.between[0] <= base:
            continue
        ends = [(b / base) ** ((pairs - 1) / pairs) for b in one.between]
        factor = simplest(*ends)
        if _digit_count(factor) <= 2:
            words = f"NTK: base {format_number(base)} changed for factor {format_number(factor)}"
            exact = scalings.ladder(scalings.ntk_base(base, factor, pairs), pairs)
            fits = not one.words and bool(known.fits(exact, one.stored))
            return replace(
                one,
                omega=exact if fits else one.omega,
                scaling="ntk",
                words=", ".join(filter(None, (words, one.words))),
                values={**one.values, "factor": factor, "base": base},
                others=(f"a base of {format_number(one.base)} and no scaling",),
            )
    return one


def _even(known: MeasuredFrequencies, stored: torch.dtype) -> Fitted | None:
    """Fit evenly spaced frequencies."""
    pairs = known.omega.numel()
    if pairs < 3:
        return None
    first, last = float(known.omega[0]), float(known.omega[-1])
    omega = torch.linspace(first, last, pairs, dtype=torch.float64)
    wide = MeasuredFrequencies(known.omega, known.radius + known.radius.max())
    if not bool(wide.fits(omega, stored)):
        return None
    words = f"frequencies evenly spaced from {format_number(first)} to {format_number(last)}"
    if abs(last - first) <= 2 * float(known.radius.max()):
        words = f"all frequencies equal, {format_number(first)}"
    return Fitted(
        omega, None, (math.nan, math.nan), "even", {"first": first, "last": last}, words, stored
    )


LENGTHS = tuple(2.0**k for k in range(8, 21))
PARTS = ((1.0, 4.0), (1.0, 32.0), (1.0, 2.0), (1.0, 8.0), (1.0, 16.0))
TRIED = 100  # candidates that are fully checked; the usual ones come first


def _bases(
    known: MeasuredFrequencies, stored: torch.dtype
) -> Iterator[tuple[float, tuple[float, float]]]:
    """Yield the bases on which the first, unscaled pairs agree, then the usual bases."""
    y, off = known.logarithms(stored)
    if abs(float(y[0])) > float(off[0]):
        return
    upto = 1
    while upto + 1 < len(y):
        low, high = base_interval(y, off, len(y), upto + 1)
        if low > high:
            break
        upto += 1
    seen: list[float] = []
    for end in range(upto, 0, -1):
        low, high = base_interval(y, off, len(y), end)
        base = simplest(math.exp(low), math.exp(high))
        if base > 1 and base not in seen and len(seen) < 3:  # base 1 gives no ladder
            seen.append(base)
            yield base, (math.exp(low), math.exp(high))
    for base in BASES:
        if base not in seen:
            yield base, (base, base)


def _factors(
    known: MeasuredFrequencies, pure: Tensor, kept: Tensor, stored: torch.dtype
) -> Iterator[tuple[int, float, Tensor]]:
    """Yield row, s and ω of each candidate γ (C, B) that gives the frequencies as γω + (1 − γ)ω/s.

    s is derived from the pair that is scaled most.
    """
    ratio, off = known.omega / pure, known.radius / pure + relative_error(pure, stored)
    if bool((ratio > 1 + off).any()):
        return
    last = kept.argmin(-1)
    least = kept.gather(-1, last[:, None])[:, 0]
    g = (ratio[last] - least) / (1 - least)
    wide = off[last] / (1 - least)
    there = (least < 1) & (g - wide > 0) & (g - wide < 1)
    loose = (g[:, None] + (1 - g)[:, None] * kept - ratio).abs() <= off + wide[:, None]
    for row in (there & loose.all(-1)).nonzero()[:TRIED, 0].tolist():
        s = simplest(1 / float(g[row] + wide[row]), 1 / float(g[row] - wide[row]))
        omega = pure * (kept[row] + (1 - kept[row]) / s)
        if s > 1 and bool(known.fits(omega, stored)):
            yield row, s, omega


def llama(known: MeasuredFrequencies, stored: torch.dtype) -> Iterator[Fitted]:
    """Fit ladders scaled by parts of the rotations.

    Low, high and length are determined up to a common factor.
    """
    pairs = known.omega.numel()
    for base, between in _bases(known, stored):
        pure = scalings.ladder(base, pairs)
        which = [(low, high, n) for low, high in PARTS for n in LENGTHS]
        kept = torch.stack(
            [((n * pure / math.tau - low) / (high - low)).clamp(0, 1) for low, high, n in which]
        )
        found = list(_factors(known, pure, kept, stored))
        for row, s, omega in found[:1]:
            low, high, n = which[row]
            name = "Llama 3.1" if high == 4 else "NTK by parts"
            also = (f"{len(found) - 1} other choices of low, high and length",)
            yield Fitted(
                omega,
                base,
                between,
                "llama3",
                {"factor": s, "low": low, "high": high, "original": n},
                f"{name} factor {format_number(s)}, low {format_number(low)}, "
                f"high {format_number(high)}, original length {format_number(n)}",
                stored,
                also if len(found) > 1 else (),
            )
        if found:
            return


def yarn(known: MeasuredFrequencies, stored: torch.dtype) -> Iterator[Fitted]:
    """Fit ladders scaled by parts of the index: the two indices, and the lengths that give them."""
    pairs = known.omega.numel()
    for base, between in _bases(known, stored):
        pure = scalings.ladder(base, pairs)
        usual = [
            (*scalings.ramp_of(base, pairs, n, 32, 1, whole=whole), n)
            for whole in (True, False)
            for n in LENGTHS
        ]
        every = [
            (float(low), float(high), 0.0)
            for low in range(pairs)
            for high in range(low + 1, 2 * pairs)
            if between[0] < between[1]
        ]
        which = torch.tensor(
            [*(one for one in usual if one[0] < one[1]), *every], dtype=torch.float64
        )
        b = torch.arange(pairs, dtype=torch.float64)
        kept = 1 - ((b - which[:, :1]) / (which[:, 1:2] - which[:, :1])).clamp(0, 1)
        found = list(_factors(known, pure, kept, stored))
        for row, s, omega in found[:1]:
            low, high, n = which[row].tolist()
            lengths = sorted({which[r, 2].item() for r, t, _ in found if t == s} - {0.0})
            also = tuple(
                f"original length {format_number(other)}" for other in lengths if other != n
            )
            length = f", original length {format_number(n)}" if n else ""
            yield Fitted(
                omega,
                base,
                between,
                "yarn",
                {
                    "factor": s,
                    **({"original": n, "fast": 32.0, "slow": 1.0} if n else {}),
                    "from_index": low,
                    "to_index": high,
                },
                f"YaRN factor {format_number(s)}{length}",
                stored,
                also if n else ("any betas and length that give these indices",),
            )
        if found:
            return


BASES = (10_000.0, 500_000.0, 1_000_000.0, 150_000.0, 100_000.0, 5_000_000.0, 8_000_000.0)


@dataclass(frozen=True)
class MeasuredFrequencies:
    """Frequencies ω_b > 0 and their radii: (B,), (B,)."""

    omega: Tensor
    radius: Tensor

    def fits(self, formula: Tensor, stored: torch.dtype = torch.float32) -> Tensor:
        """Whether ladders (.., B) give these frequencies when stored in a dtype: (..)."""
        slack = formula_error(formula, unit_roundoff(torch.float32))
        if stored == torch.float32:
            off = (self.omega - formula).abs() - slack * formula
            return (off <= self.radius).all(-1)
        ends = (((1 + s * slack) * formula).to(stored).double() for s in (-1, 1))
        low, high = ends
        off = torch.minimum((self.omega - low).abs(), (self.omega - high).abs())
        return (off <= self.radius).all(-1)

    def logarithms(self, stored: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """ln ω and its error bound, including the rounding of the code: (B,), (B,)."""
        part = self.radius / self.omega + relative_error(self.omega, stored)
        return self.omega.log(), -torch.log1p(-part.clamp(max=1 - 1e-15))


@dataclass(frozen=True)
class Fitted:
    """A ladder: ``omega`` by the formula in float64, ``between`` the range of bases that would fit.

    ``stored``: the dtype to which the frequencies were rounded.  ``scaling`` is "", linear, ntk,
    yarn, llama3 or even, with its parameters in ``values`` and a phrase in ``words``; ``others``
    lists what fits as well.
    """

    omega: Tensor
    base: float | None
    between: tuple[float, float]
    scaling: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    words: str = ""
    stored: torch.dtype = torch.float32
    others: tuple[str, ...] = ()


def relative_error(omega: Tensor, stored: torch.dtype) -> Tensor:
    """The relative error bound of a frequency computed in float32 and stored in a dtype.

    Subnormal numbers lose more.
    """
    computed = formula_error(omega, unit_roundoff(torch.float32))
    if stored == torch.float32:
        return computed
    info = torch.finfo(stored)
    return computed + unit_roundoff(stored) + info.smallest_normal * info.eps / omega


def base_interval(y: Tensor, off: Tensor, over: float, upto: int) -> tuple[float, float]:
    """The interval of ln base that fits pairs 1..upto: from, to (empty if from > to)."""
    b = torch.arange(1, upto + 1, dtype=torch.float64) / over
    middle, width = -y[1 : upto + 1] / b, off[1 : upto + 1] / b
    return float((middle - width).max()), float((middle + width).min())


def ladder_parts(
    found: Fitted | None,
    known: MeasuredFrequencies,
    places: int,
    formula: Tensor | None = None,
    *,
    whole: bool = True,
) -> Iterator[Part]:
    """Yield base and scaling of a ladder whose frequencies were read at ``places`` positions.

    ``formula``: all frequencies, if ``found`` covers only some; ``whole``: positions are integers.
    """
    read = f"{len(known.omega)} frequencies read at {places} positions"
    if found is None:
        worst = float((known.radius / known.omega.clamp(min=1e-300)).max())
        first = ", ".join(format_number(w) for w in known.omega[:3].tolist())
        slow = not whole or float(known.omega.max()) <= 1.5
        rotates = "" if slow else ", known up to whole turns a position"
        yield Part(
            "base",
            None,
            f"frequencies of no known formula ({first}, ..){rotates}",
            f"{read}, each within {worst:.1g} of it",
            certain=False,
        )
        return
    low, high = found.between
    if found.base is None:
        yield Part("base", None, "", "no base gives these frequencies", certain=False)
    else:
        exact = found.omega if formula is None else formula.abs()
        yield Part(
            "base",
            found.base,
            "" if found.scaling == "ntk" else f"base {format_number(found.base)}",
            f"fitted to {read}; bases from {low:.8g} to {high:.8g} would fit; "
            f"largest difference {float((known.omega - exact).abs().max()):.1g}",
            certain=high - low <= 1e-3 * high and not found.others,
        )
    seen = [
        f"the formula gives every one of {read}",
        *(f"{other} fits as well" for other in found.others),
    ]
    yield Part(
        "scaling",
        {"family": found.scaling or "none", **found.values},
        found.words,
        "; ".join(seen),
        certain=not found.others,
    )

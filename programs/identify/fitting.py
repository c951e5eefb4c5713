"""Which formula gives the frequencies that were read: base, scaling, and what else would fit.

A frequency is known within a radius, so a base is known within an interval; of the numbers in it
the simplest is taken to be meant.  A formula is accepted where it gives every frequency within its
radius and the rounding of the code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from . import scalings
from .known import BASES, Fitted, Known, base_interval, formula_error
from .plain_numbers import simplest, told
from .scaled_fits import llama, yarn

__all__ = ["fit"]

STORED = (torch.float32, torch.float16, torch.bfloat16)
SURE = 4  # digits: a base with more is not one that is written down


def fit(known: Known, *, head: float | None = None) -> Fitted | None:
    """The simplest ladder that gives these frequencies, in the finest dtype; None if none does.

    ``head``: half the width of the head, where fewer channels turn, or it is odd: some code counts
    the exponent over all of it.

    >>> w = scalings.by_parts(scalings.ladder(500_000, 64), 8, 8192, 1, 4)
    >>> fit(Known(w, w * 1e-7)).words
    'Llama 3.1 factor 8, low 1, high 4, original length 8192'
    """
    if not bool((known.omega > known.radius).all()):
        return None
    if known.omega.numel() == 1:
        w, off = float(known.omega[0]), float(known.radius[0] + formula_error(known.omega)[0])
        only = simplest(w - off, w + off)
        return Fitted(torch.tensor([only], dtype=torch.float64), None, (math.nan, math.nan),
                      words=f"one frequency {told(only)}, from which no base follows")  # fmt: skip
    for stored in STORED:
        plain = [_ntk(one, known) for over in _over(known, head)
                 for one in _plain(known, stored, over)]  # fmt: skip
        if plain:
            return min(plain, key=_complicated)
    for stored in STORED:
        scaled = [*llama(known, stored), *yarn(known, stored)]
        if scaled:
            first = min(scaled, key=_complicated)
            others = {one.words for one in scaled if one.scaling != first.scaling}
            return replace(first, others=(*first.others, *sorted(others)))
        if even := _even(known, stored):
            return even
    return None


def _over(known: Known, head: float | None) -> Iterator[tuple[float, str]]:
    """By what the exponent b is divided, and what to say of it."""
    pairs = known.omega.numel()
    yield pairs, ""
    yield pairs - 1, f"exponents b/{pairs - 1}, to the end of the ladder"
    if head is not None and head != pairs:
        yield head, f"exponents counted over the whole head, b/{head:g}"


def _complicated(one: Fitted) -> int:
    """How many digits all its numbers have: the fewer the likelier."""
    numbers = [*one.values.values(), *([] if one.base is None else [one.base])]
    own = sum(_length(v) for v in numbers) if one.scaling != "ntk" else 2
    return own + (2 if "exponents" in one.words else 0)


def _length(value: float) -> int:
    """How many digits one writes for a number; a power of two counts as one."""
    return 1 if value > 0 and math.log2(value).is_integer() else len(
        f"{value:.12e}".split("e")[0].replace(".", "").rstrip("0"))  # fmt: skip


def _plain(
    known: Known, stored: torch.dtype, how: tuple[float, str]
) -> Iterator[Fitted]:  # fmt: skip
    """base^(−b/B), and that divided by a factor."""
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
        linear = f"positions divided by {told(factor)}" if factor != 1 else ""
        values = {"factor": factor} if linear else {}
        yield Fitted(omega, base, (math.exp(low), math.exp(high)), "linear" if linear else "",
                     values, ", ".join(filter(None, (linear, says))), stored)  # fmt: skip


def _ntk(one: Fitted, known: Known) -> Fitted:
    """The same, as a known base changed by a factor, where its own base is no number one writes."""
    pairs = known.omega.numel()
    if one.base is None or pairs < 2 or _length(one.base) < SURE:
        return one
    for base in BASES:
        if one.between[0] <= base:
            continue
        ends = [(b / base) ** ((pairs - 1) / pairs) for b in one.between]
        factor = simplest(*ends)
        if _length(factor) <= 2:
            words = f"NTK: base {told(base)} changed for factor {told(factor)}"
            exact = scalings.ladder(scalings.ntk_base(base, factor, pairs), pairs)
            fits = not one.words and bool(known.fits(exact, one.stored))
            return replace(
                one, omega=exact if fits else one.omega, scaling="ntk",
                words=", ".join(filter(None, (words, one.words))),
                values={**one.values, "factor": factor, "base": base},
                others=(f"a base of {told(one.base)} and no scaling",),
            )  # fmt: skip
    return one


def _even(known: Known, stored: torch.dtype) -> Fitted | None:
    """Frequencies evenly spaced."""
    pairs = known.omega.numel()
    if pairs < 3:
        return None
    first, last = float(known.omega[0]), float(known.omega[-1])
    omega = torch.linspace(first, last, pairs, dtype=torch.float64)
    wide = Known(known.omega, known.radius + known.radius.max())
    if not bool(wide.fits(omega, stored)):
        return None
    words = f"frequencies evenly spaced from {told(first)} to {told(last)}"
    if abs(last - first) <= 2 * float(known.radius.max()):
        words = f"all frequencies alike, {told(first)}"
    return Fitted(omega, None, (math.nan, math.nan), "even", {"first": first, "last": last},
                  words, stored)  # fmt: skip

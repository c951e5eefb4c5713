"""Comparison of the two sides of a law, in the fields and in numbers, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import torch
from torch import Tensor

from ...numeric.devices import name_of
from ..execution.response import place_of_largest
from ..finding import LEFT_OPEN, Counterexample
from ..subjects import Subject
from .laws import Sides
from .session import Field, Lost, NoMeaning, Pair, Session
from .tensor import Duck, not_intercepted

PER_ENTRY = 64  # allowed roundings for each term of a sum


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two sides.

    ``differ``: how many entries differ in the field, of ``entries`` defined there.  ``error``: the
    largest difference of the numbers; ``bound``: what rounding may account for.  ``chance``: a
    bound on the probability that unequal entries agree by chance, if one is known.
    """

    sides: Sides
    entries: int
    differ: int
    error: float
    bound: float
    chance: Fraction | None
    dtype: str
    at: tuple[int, ...] = ()
    values: tuple[Any, Any] = (0.0, 0.0)
    unknown: int = 0
    """How many entries are undefined in the field only, NaN, or not finite on one side only."""

    def seen(self) -> Counterexample:
        """Return the counterexample."""
        return Counterexample(
            {**self.sides.inputs, "entry": list(self.at)},
            (self.sides.here[0], self.values[0]),
            (self.sides.there[0], self.values[1]),
            self.error,
            self.bound,
        )


@not_intercepted
def compared(sides: Sides, session: Session) -> Comparison:
    """Compare both sides in every field and in numbers.

    Raises ``NoMeaning`` if the payload of a side was lost, ``ValueError`` for different shapes.
    """
    a, b = sides.here[1], sides.there[1]
    if a.shape != b.shape:
        told = f"{sides.here[0]}: {tuple(a.shape)}; {sides.there[0]}: {tuple(b.shape)}"
        raise ValueError(f"two sides of different shapes, {told}")
    entries = differ = unknown = 0
    numbers = _numbers(a), _numbers(b)
    known = numbers[0].isfinite() & numbers[1].isfinite()
    one = numbers[0].isfinite() != numbers[1].isfinite()
    chance: Fraction | None = Fraction(0)
    for x, y in zip(_fields(a, session), _fields(b, session), strict=True):
        counted = [
            _counted(u, v)
            for u, v in zip(x.levels, y.levels, strict=True)
            if u is not None and v is not None
        ]
        entries += counted[-1][0]
        differ += max(n for _, n in counted)
        unknown += int((known & ~(x.top.isfinite() & y.top.isfinite())).sum())
        own = _chance(x, y, session)
        chance = None if chance is None or own is None else max(chance, own)
    unknown += int(one.sum())
    unknown += int((numbers[0].isnan() | numbers[1].isnan()).sum())
    error, bound, at, values = _measured(*numbers, session)
    dtype = name_of(a.dtype)
    return Comparison(sides, entries, differ, error, bound, chance, dtype, at, values, unknown)


@not_intercepted
def same(before: Sides, after: Sides, session: Session) -> bool:
    """Whether two runs of the same calls agree in the field at the top level."""
    for (_, a), (_, b) in ((before.here, after.here), (before.there, after.there)):
        if a.shape != b.shape:
            return False
        for x, y in zip(_fields(a, session), _fields(b, session), strict=True):
            if not bool(((x.top == y.top) | (x.top.isnan() & y.top.isnan())).all()):
                return False
    return True


def _fields(x: Tensor, session: Session) -> tuple[Field, ...]:
    if not isinstance(x, Duck):
        return (session.field(x),)
    if isinstance(x.carried, Lost):
        raise NoMeaning(x.carried.why)
    if isinstance(x.carried, Pair):
        return x.carried.real, x.carried.imag
    return (session.field(x.carried),)


def _numbers(x: Tensor) -> Tensor:
    found = x.numbers if isinstance(x, Duck) else x
    found = torch.view_as_real(found).sum(-1) if found.is_complex() else found
    return found if found.is_floating_point() else found.double()


def _counted(x: Tensor, y: Tensor) -> tuple[int, int]:
    """Count the entries that are defined on both sides, and those of them that differ."""
    fine = ~x.isnan() & ~y.isnan()
    return int(fine.sum()), int((fine & (x != y)).sum())


def _chance(x: Field, y: Field, session: Session) -> Fraction | None:
    """Bound the chance of agreement: a false equation of degree d holds for at most d of p values.

    None if no degree is known.
    """
    if x.degree is None or y.degree is None or session.written:
        return None
    reached = sum(x.degree.plus(y.degree))
    prime = session.tower.primes[0]
    return Fraction(reached, prime) if 0 < reached < prime else None


def _measured(
    a: Tensor, b: Tensor, session: Session
) -> tuple[float, float, tuple[int, ...], tuple[Any, Any]]:
    """Return the largest difference, a bound on what rounding explains, its index and both values.

    Each entry is taken for a sum of at most a few hundred products of numbers of size 1, each
    rounded to u; angles of size P are rounded to P u.  Code may compute its tables in float32
    whatever its inputs, so u is at least 2^−24.
    """
    if not a.numel():
        return 0.0, 0.0, (), (0.0, 0.0)
    low = max(session.short, *(torch.finfo(x.dtype).eps / 2 for x in (a, b)))
    x, y = a.double(), b.double()
    fine = x.isfinite() & y.isfinite()
    gap = torch.where(fine, (x - y).abs(), 0.0)
    size = torch.where(fine, torch.maximum(x.abs(), y.abs()), 0.0).max()
    terms = PER_ENTRY * max(a.shape) + 2 * session.largest
    bound = terms * max(low, 2.0**-24) * max(1.0, float(size))
    at = place_of_largest(gap)
    return float(gap.max()), bound, at, (float(x[at]), float(y[at]))


@dataclass
class Observations:
    """The observations for one law, over all its equations and both towers."""

    entries: int = 0
    error: float = 0.0
    bound: float = 0.0
    chance: Fraction | None = Fraction(0)
    primes: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    doubt: str = ""
    open: bool = False
    hidden: float = -inf
    shapes: tuple[tuple[int, ...], ...] = ()
    sizes: str = ""
    places: tuple[int, int] | None = None
    unsaid: tuple[str, ...] = ()
    """The parts of the law's sentence that were not checked."""


def judged(asked: Observations, subject: Subject) -> tuple[str, str]:
    """Return the verdict for sides that do not differ, and the reason."""
    if asked.doubt:
        return "undecided" if asked.open else "not asked", asked.doubt
    fields = " and ".join(str(p) for p in asked.primes)
    why = f"{asked.entries} entries agree exactly, modulo {fields}, {_scope(asked, subject)}"
    if asked.hidden > -inf:
        why += f", {asked.hidden:g} taken for −inf where it is added to a score or replaces one"
    if asked.chance:
        why += (
            f"; unequal entries agree with probability at most {float(asked.chance):.1e} "
            "(Schwartz–Zippel)"
        )
    elif asked.functions:
        why += f"; {', '.join(asked.functions)} as unknown functions; no bound is known for chance"
    else:
        why += "; no bound is known for chance: exponentials are not polynomials of low degree"
    if asked.error > asked.bound:
        why += f"; the numbers differ by {asked.error:.1e}, which is rounding"
    if asked.unsaid:
        why += f"; {LEFT_OPEN}: {', '.join(asked.unsaid)}"
    return "holds", why


def _scope(asked: Observations, subject: Subject) -> str:
    """Describe the scope of a verdict: shapes, positions, weights and branches."""
    shapes = " and ".join(str(shape) for shape in asked.shapes[:2])
    parts = [f"of arrays {shapes}"] if shapes else [f"of {asked.sizes}"] if asked.sizes else []
    if asked.places is not None:
        parts.append("at positions {} to {}".format(*asked.places))
    if subject.module is not None:
        parts.append("with its weights in evaluation mode")
    return " ".join([*parts, "on the branches taken there"])


def doubt(name: str, seen: Comparison, plain: bool) -> tuple[str, bool]:
    """Return why there is no verdict, and whether the law was asked at all."""
    if not seen.entries:
        return f"{name}: no entry is defined in the field", False
    if plain:
        return "its cosines are plain numbers, whose angles are not known in the field", False
    if seen.unknown and not seen.differ:
        told = (
            "an entry that is a number in one run is undefined in the field, or on the other side"
        )
        return f"{name}: {told}", True
    told = "agree in numbers and differ in the field, which does not know all relations of"
    return f"{name}: the sides {told} the constants and functions that the code uses", True

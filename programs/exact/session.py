"""What a tensor carries, and one tower of fields with everything that was drawn in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from math import inf, pi
from typing import Any

import torch
from torch import Tensor

from ...numeric.residues.residue import CONSTANT, Degree, FieldArithmetic
from ...numeric.residues.towers import Circle, added, multiplied, point_of, powers, tower

Move = Callable[[Tensor], Tensor]


class NoMeaning(Exception):
    """Something that the code did has no meaning in a finite field; the text says what."""


class TooDeep(Exception):
    """There are more exponentials inside one another than the tower has fields above another."""


@dataclass(frozen=True, eq=False)
class Field:
    """Residues at each level of the tower, None where an exponential has left that level.

    They stand as whole numbers between −p/2 and p/2 in float64, with NaN where a number was
    divided by 0, and −inf for what is hidden from a softmax.  ``degree`` is that of every entry in
    all that was drawn, None where no degree is known.
    """

    levels: tuple[Tensor | None, ...]
    degree: Degree | None = CONSTANT

    def moved(self, how: Move) -> Field:
        """The same entries in other places."""
        return Field(tuple(None if x is None else how(x) for x in self.levels), self.degree)

    def at_levels(
        self, how: Callable[[int, Tensor], Tensor], degree: Callable[[Degree], Degree | None]
    ) -> Field:
        """What is done to the residues at each level that is there, and to the degree."""
        levels = (None if x is None else how(level, x) for level, x in enumerate(self.levels))
        return Field(tuple(levels), None if self.degree is None else degree(self.degree))

    @property
    def top(self) -> Tensor:
        """The residues at the highest level, which are never missing."""
        found = self.levels[-1]
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Number:
    """Known numbers Σ n_j f_j: whole n_j (int64), and any f_j (float64), such as frequencies."""

    terms: tuple[tuple[Tensor, Tensor], ...]

    def moved(self, how: Move) -> Number:
        """The same entries in other places."""
        return Number(tuple((how(n), how(f)) for n, f in self.terms))

    @property
    def whole(self) -> bool:
        """Whether these are whole numbers."""
        return all(bool((f == 1).all()) for _, f in self.terms)


@dataclass(frozen=True, eq=False)
class Pair:
    """A complex number of two residues."""

    real: Field
    imag: Field

    def moved(self, how: Move) -> Pair:
        """The same entries in other places."""
        return Pair(self.real.moved(how), self.imag.moved(how))


@dataclass(frozen=True, eq=False)
class Lost:
    """Something that nothing may be done with, and why."""

    why: str

    def moved(self, how: Move) -> Lost:  # noqa: ARG002 (as the others)
        """It stays that."""
        return self


Payload = Field | Number | Pair | Lost


def either(a: Degree | None, b: Degree | None) -> Degree | None:
    """The degree of an array with entries of both."""
    return None if a is None or b is None else a.either(b)


HIDDEN = -1e4
"""Numbers at or below this are −inf: e^−10000 is 0 in every format."""
DYADIC, PARTS = 1024, 360
FEW = 1 << 14
QUARTERS = 64  # beyond so many, every number in float32 is near one
DRAWN = Degree(1, 0)
SIGNED = 1 << 63


def _signed(n: int) -> int:
    return (n + SIGNED) % (2 * SIGNED) - SIGNED


def mixed(x: Tensor) -> Tensor:
    """Bits of int64 mixed so that nothing is seen of where they came from (SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    return x


class Session:
    """The fields of one run.

    A number that the field does not know (a weight, d^−1/2) is one random residue for each of its
    values, and its opposite for the opposite value; whole numbers and simple fractions are
    themselves.  A frequency is one random point of the circle for each of its values, so that
    cosines and sines of its whole multiples obey the addition theorems exactly.
    """

    def __init__(self, seed: int = 0, depth: int = 1, place: int = 0) -> None:
        self.seed = seed
        self.tower = tower(depth, place)
        self.fields = tuple(FieldArithmetic(p) for p in self.tower.primes)
        self.open = True
        self.functions: set[str] = set()
        self.angles = 0
        self.largest, self.short = 1.0, 0.0
        self.hidden, self.written = -inf, False
        self.refused: Exception | None = None
        self._constants: dict[tuple[Any, ...], tuple[Tensor, Tensor, Field]] = {}
        self._values: dict[tuple[torch.Size, bytes], Field] = {}
        self._points: dict[tuple[int, float], tuple[int, int]] = {}
        self._rotated: list[tuple[Number, tuple[int, ...], tuple[Field, Field]]] = []
        self.chosen: set[str] = set()  # done to positions, and maybe otherwise to others
        self.most = 1 << 20  # the positions that the code has

    # what was drawn

    def hashed(self, level: int, x: Tensor, salt: str) -> Tensor:
        """A random residue for each int64, by a function named ``salt``."""
        start = int.from_bytes(f"{self.seed}/{salt}".encode()[-64:], "big") % (1 << 61)
        key = mixed(torch.tensor([_signed(start * 0x9E3779B97F4A7C15 + level)]))
        found = mixed(mixed(x ^ key) + key) & ((1 << 62) - 1)
        prime = self.fields[level].prime
        return self.fields[level].reduced((found % prime).double())

    def drawn(self, level: int, shape: tuple[int, ...], salt: int) -> Tensor:
        """Random residues."""
        arithmetic = self.fields[level]
        generator = torch.Generator().manual_seed(self.seed * 7919 + 31 * salt + level)
        found = torch.randint(arithmetic.prime, shape, generator=generator)
        return arithmetic.reduced(found.double())

    # numbers in the field

    def constant(self, value: Any) -> Field:
        """Numbers of torch or Python in the field."""
        x = torch.as_tensor(value)
        if x.is_complex():
            raise NoMeaning("complex numbers where real ones were expected")
        if x.is_inference() or not x.ndim:
            return self._of_values(x)
        # the tensor is kept, so that no other one comes to stand in its place
        key = (x.data_ptr(), x._version, x.dtype, x.shape, x.stride())  # noqa: SLF001
        # its values as well: a write through ``.data`` leaves no trace in the version
        known = self._constants.get(key)
        if known is None or not torch.equal(known[1], x):
            known = self._constants[key] = x, x.clone(), self._of_values(x)
        return known[2]

    def _of_values(self, x: Tensor) -> Field:
        """The same of other tensors with these values, such as the numbers that code writes down.

        A copy, which may be written into.
        """
        x = x.detach().to(torch.float64).contiguous()
        if x.numel() > FEW:
            return self._constant(x)
        key = (x.shape, x.numpy().tobytes())
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = self._constant(x)
        return known.moved(torch.clone)

    def _constant(self, x: Tensor) -> Field:
        known, some = self._known(x)
        levels = []
        for level in range(len(self.fields)):
            found = known[level]
            if some is not None:
                random = self.hashed(level, x.abs().view(torch.int64), "number") * x.sign()
                found = torch.where(some, random, found)
            if bool((x <= HIDDEN).any()):
                some_number = x[(x <= HIDDEN) & x.isfinite()]
                if some_number.numel():  # −inf itself is what it is
                    self.hidden = max(self.hidden, float(some_number.max()))
                found = torch.where(x <= HIDDEN, -torch.inf, found)
            bad = x.isnan() | (x == torch.inf)
            levels.append(torch.where(bad, torch.nan, found))
        return Field(tuple(levels), CONSTANT if some is None else DRAWN)

    def _known(self, x: Tensor) -> tuple[list[Tensor], Tensor | None]:
        """Whole numbers and simple fractions themselves; where there are others."""
        finite = torch.where(x.isfinite(), x, 0.0)
        parts, thirds = finite * DYADIC, (finite * PARTS).round()
        dyadic = (parts == parts.round()) & ((finite.abs() < DYADIC) | (finite == finite.round()))
        simple = (finite * PARTS - thirds).abs() <= 2.0**-23 * finite.abs() * PARTS
        simple &= (thirds.abs() <= 10 * PARTS) & ~dyadic
        found = []
        for arithmetic in self.fields:
            p = arithmetic.prime
            half = arithmetic.reduced(torch.remainder(parts, p) * pow(DYADIC, -1, p))
            part = arithmetic.reduced(torch.remainder(thirds, p) * pow(PARTS, -1, p))
            found.append(torch.where(dyadic, half, part))
        some = ~dyadic & ~simple & (finite > HIDDEN)
        return found, some if bool(some.any()) else None

    def field(self, payload: Payload | Tensor | float) -> Field:
        """Anything that was computed, as residues."""
        if isinstance(payload, Field):
            return payload
        if isinstance(payload, Number):
            return self._field_of(payload)
        if isinstance(payload, Pair):
            raise NoMeaning("complex numbers where real ones were expected")
        if isinstance(payload, Lost):
            raise NoMeaning(payload.why)
        return self.constant(payload)

    def _field_of(self, x: Number) -> Field:
        total: list[Any] = [0.0] * len(self.fields)
        degree = CONSTANT
        for n, f in x.terms:
            at = self.constant(f)
            degree = degree.either(at.degree or CONSTANT)
            for level, arithmetic in enumerate(self.fields):
                known = at.levels[level]
                assert known is not None
                part = arithmetic.reduced(torch.remainder(n, arithmetic.prime) * known)
                hides = (known == -torch.inf) & (n > 0)
                part = torch.where(n == 0, 0.0, torch.where(hides, -torch.inf, part))
                total[level] = self.kept(level, total[level] + part)
        return Field(tuple(total), degree)

    def kept(self, level: int, raw: Tensor) -> Tensor:
        """A sum, reduced, where −inf stays what it is."""
        found = self.fields[level].reduced(raw)
        return torch.where(raw == -torch.inf, raw, found)

    def pair(self, payload: Payload | Tensor | complex) -> Pair:
        """Anything that was computed, as complex numbers."""
        if isinstance(payload, Pair):
            return payload
        if isinstance(payload, (Field, Number, Lost)):
            real = self.field(payload)
            return Pair(real, real.moved(torch.zeros_like))
        x = torch.as_tensor(payload)
        imag = x.imag if x.is_complex() else torch.zeros_like(x)
        return Pair(self.constant(x.real), self.constant(imag))

    # angles

    def rotated(self, x: Number) -> tuple[Field, Field]:
        """Cosines and sines of Σ n_j f_j."""
        versions = tuple(
            0 if part.is_inference() else part._version  # noqa: SLF001
            for term in x.terms
            for part in term
        )
        for known, at, found in self._rotated:
            if known is x and at == versions:  # angles that were written into are others
                return found
        self.angles += 1
        self.largest = max(
            self.largest, *(float((n * f).abs().max()) if n.numel() else 0.0 for n, f in x.terms)
        )
        pairs = []
        for level, field in enumerate(self.fields):
            terms = (self._multiple(level, n, f) for n, f in x.terms)
            pairs.append(reduce(partial(added, field), terms))
        degree = Degree(2 * sum(int(n.abs().max()) for n, _ in x.terms if n.numel()), 0)
        cosines, sines = zip(*pairs, strict=True)
        found = Field(cosines, degree), Field(sines, degree)
        self._rotated = [*self._rotated[-3:], (x, versions, found)]
        return found

    def _multiple(self, level: int, n: Tensor, f: Tensor) -> Circle:
        values, places = torch.unique(f, return_inverse=True)
        points = self._known_points(level, values.tolist())
        cos, sin = torch.tensor(points, dtype=torch.float64).reshape(-1, 2)[places].unbind(-1)
        return multiplied(self.fields[level], (cos, sin), n)

    def _known_points(self, level: int, frequencies: list[float]) -> list[tuple[int, int]]:
        """The points of the circle for some frequencies; what is new is hashed in one call."""
        new = [f for f in frequencies if (level, f) not in self._points]
        bits = torch.tensor([abs(f) for f in new], dtype=torch.float64).view(torch.int64)
        for f, drawn in zip(new, self.hashed(level, bits, "frequency").tolist(), strict=True):
            self._points[level, f] = self._point(level, f, int(drawn))
        return [self._points[level, f] for f in frequencies]

    def _point(self, level: int, frequency: float, drawn: int) -> tuple[int, int]:
        """The point of the circle for one frequency; quarters of a turn are themselves."""
        p = self.fields[level].prime
        quarters = round(frequency / (pi / 2))
        near = abs(frequency - quarters * pi / 2) <= 2.0**-23 * abs(frequency)
        if near and abs(quarters) <= QUARTERS:
            return ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
        c, s = point_of(drawn % p, p)
        return c, s if frequency > 0 else p - s

    # exponentials and unknown functions

    def power(self, level: int, x: Tensor) -> Tensor:
        """w^x at the next level; 0 for −inf."""
        order, above = self.tower.primes[level], self.tower.primes[level + 1]
        finite = torch.where(x.isfinite(), x, 0.0)
        left, factor = torch.remainder(finite, order).long(), self.tower.bases[level]
        if left.numel() > FEW:
            found = powers(factor, order, above)[left].double()
        else:  # by squaring: the table of all powers takes longer
            found = torch.ones_like(finite)
            for k in range(order.bit_length()):
                step = torch.where((left >> k) % 2 == 1, float(factor), 1.0)
                found = self.fields[level + 1].reduced(found * step)
                factor = factor * factor % above
        found = torch.where(x == -torch.inf, 0.0, found)
        return torch.where(x.isnan(), torch.nan, found)

    def unknown_function(self, name: str, x: Field) -> Field:
        """A function of which nothing is known but that equal values give equal values."""
        self.functions.add(name.partition("/")[0])

        def at(level: int, part: Tensor) -> Tensor:
            finite = part.isfinite()
            found = self.hashed(level, torch.where(finite, part, 0.0).long(), name)
            return torch.where(finite, found, torch.nan)

        return x.at_levels(at, lambda _: None)

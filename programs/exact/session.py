"""The payloads that tensors carry, and the session: one tower of fields and all drawn in it."""

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
    """The code did something that has no meaning in a finite field; the message says what."""


class TooDeep(Exception):
    """Exponentials are nested more deeply than the tower has fields."""


@dataclass(frozen=True, eq=False)
class Field:
    """Residues at each level of the tower; None at a level that an exponential has left.

    They are stored as whole numbers between −p/2 and p/2 in float64, with NaN for undefined
    entries such as quotients by 0, and −inf for what is hidden from a softmax.  ``degree`` bounds
    that of every entry in the drawn values; None if no degree is known.
    """

    levels: tuple[Tensor | None, ...]
    degree: Degree | None = CONSTANT

    def moved(self, how: Move) -> Field:
        """Apply an operation that only moves entries."""
        return Field(tuple(None if x is None else how(x) for x in self.levels), self.degree)

    def at_levels(
        self, how: Callable[[int, Tensor], Tensor], degree: Callable[[Degree], Degree | None]
    ) -> Field:
        """Apply a function to the residues at each existing level, and one to the degree."""
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
    """Known numbers Σ n_j f_j with whole n_j (int64) and real f_j (float64), as for frequencies."""

    terms: tuple[tuple[Tensor, Tensor], ...]

    def moved(self, how: Move) -> Number:
        """Apply an operation that only moves entries."""
        return Number(tuple((how(n), how(f)) for n, f in self.terms))

    @property
    def whole(self) -> bool:
        """Whether all f_j are 1, so that the numbers are whole."""
        return all(bool((f == 1).all()) for _, f in self.terms)


@dataclass(frozen=True, eq=False)
class Pair:
    """Complex numbers, as residues of their real and imaginary parts."""

    real: Field
    imag: Field

    def moved(self, how: Move) -> Pair:
        """Apply an operation that only moves entries."""
        return Pair(self.real.moved(how), self.imag.moved(how))


@dataclass(frozen=True, eq=False)
class Lost:
    """A result that has no residues and must not be used, with the reason."""

    why: str

    def moved(self, how: Move) -> Lost:  # noqa: ARG002 (as the others)
        """Return it unchanged."""
        return self


Payload = Field | Number | Pair | Lost


def either(a: Degree | None, b: Degree | None) -> Degree | None:
    """Return the degree of an array with entries of both degrees; None if one is not known."""
    return None if a is None or b is None else a.either(b)


HIDDEN = -1e4
"""Numbers at or below this are taken for −inf: e^−10000 is 0 in every format."""
DYADIC, PARTS = 1024, 360
SMALL_ARRAY = 1 << 14
QUARTERS = 64  # multiples of a quarter turn are recognised up to this one
RANDOM_DEGREE = Degree(1, 0)
SIGN_BIT = 1 << 63


def _signed(n: int) -> int:
    return (n + SIGN_BIT) % (2 * SIGN_BIT) - SIGN_BIT


def mixed(x: Tensor) -> Tensor:
    """Mix the bits of int64 numbers by the finaliser of SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    return x


class Session:
    """The fields of one run, and the residues assigned to the numbers that occurred in it.

    Whole numbers and simple fractions are represented by themselves.  Any other real number (a
    weight, d^−1/2) is represented by a random residue, the same for equal values and the opposite
    for the opposite value.  A frequency is represented by a random point of the circle, the same
    for equal values, so that cosines and sines of whole multiples obey the addition theorems
    exactly.
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
        self.chosen: set[str] = set()  # operations on positions that may differ at other positions
        self.most = 1 << 20  # the largest position of the code

    # random residues

    def hashed(self, level: int, x: Tensor, salt: str) -> Tensor:
        """Return a random residue for each int64, by a hash function chosen by ``salt``."""
        start = int.from_bytes(f"{self.seed}/{salt}".encode()[-64:], "big") % (1 << 61)
        key = mixed(torch.tensor([_signed(start * 0x9E3779B97F4A7C15 + level)]))
        found = mixed(mixed(x ^ key) + key) & ((1 << 62) - 1)
        prime = self.fields[level].prime
        return self.fields[level].reduced((found % prime).double())

    def drawn(self, level: int, shape: tuple[int, ...], salt: int) -> Tensor:
        """Draw random residues."""
        arithmetic = self.fields[level]
        generator = torch.Generator().manual_seed(self.seed * 7919 + 31 * salt + level)
        found = torch.randint(arithmetic.prime, shape, generator=generator)
        return arithmetic.reduced(found.double())

    # known numbers as residues

    def constant(self, value: Any) -> Field:
        """Return plain numbers of torch or Python as residues."""
        x = torch.as_tensor(value)
        if x.is_complex():
            raise NoMeaning("complex numbers where real ones were expected")
        if x.is_inference() or not x.ndim:
            return self._of_values(x)
        # the tensor is kept alive, so that no other one can reuse its address
        key = (x.data_ptr(), x._version, x.dtype, x.shape, x.stride())  # noqa: SLF001
        # its values are kept too: a write through ``.data`` does not change the version
        known = self._constants.get(key)
        if known is None or not torch.equal(known[1], x):
            known = self._constants[key] = x, x.clone(), self._of_values(x)
        return known[2]

    def _of_values(self, x: Tensor) -> Field:
        """Return a copy of the residues of these values, which the code may write into.

        Small arrays are cached by value, such as the literals of the code.
        """
        x = x.detach().to(torch.float64).contiguous()
        if x.numel() > SMALL_ARRAY:
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
                if some_number.numel():  # a finite number is taken for −inf
                    self.hidden = max(self.hidden, float(some_number.max()))
                found = torch.where(x <= HIDDEN, -torch.inf, found)
            bad = x.isnan() | (x == torch.inf)
            levels.append(torch.where(bad, torch.nan, found))
        return Field(tuple(levels), CONSTANT if some is None else RANDOM_DEGREE)

    def _known(self, x: Tensor) -> tuple[list[Tensor], Tensor | None]:
        """Return the residues of whole numbers and simple fractions, and a mask of the others."""
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
        """Return any payload or plain number as residues.

        Raises ``NoMeaning`` for complex numbers and for ``Lost``.
        """
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
                total[level] = self.reduced(level, total[level] + part)
        return Field(tuple(total), degree)

    def reduced(self, level: int, raw: Tensor) -> Tensor:
        """Reduce a sum modulo the prime of the level, keeping −inf."""
        found = self.fields[level].reduced(raw)
        return torch.where(raw == -torch.inf, raw, found)

    def pair(self, payload: Payload | Tensor | complex) -> Pair:
        """Return any payload or plain number as a pair of residues."""
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
        """Return the cosines and sines of Σ n_j f_j."""
        versions = tuple(
            0 if part.is_inference() else part._version  # noqa: SLF001
            for term in x.terms
            for part in term
        )
        for known, at, found in self._rotated:
            if known is x and at == versions:  # a write in place makes other angles
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
        """Return the points of the circle for some frequencies; new ones are hashed in one call."""
        new = [f for f in frequencies if (level, f) not in self._points]
        bits = torch.tensor([abs(f) for f in new], dtype=torch.float64).view(torch.int64)
        for f, drawn in zip(new, self.hashed(level, bits, "frequency").tolist(), strict=True):
            self._points[level, f] = self._point(level, f, int(drawn))
        return [self._points[level, f] for f in frequencies]

    def _point(self, level: int, frequency: float, drawn: int) -> tuple[int, int]:
        """Return the point of the circle for a frequency; exact for multiples of a quarter turn."""
        p = self.fields[level].prime
        quarters = round(frequency / (pi / 2))
        near = abs(frequency - quarters * pi / 2) <= 2.0**-23 * abs(frequency)
        if near and abs(quarters) <= QUARTERS:
            return ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
        c, s = point_of(drawn % p, p)
        return c, s if frequency > 0 else p - s

    # exponentials and unknown functions

    def power(self, level: int, x: Tensor) -> Tensor:
        """Return w^x at the next level; 0 for −inf."""
        order, above = self.tower.primes[level], self.tower.primes[level + 1]
        finite = torch.where(x.isfinite(), x, 0.0)
        left, factor = torch.remainder(finite, order).long(), self.tower.bases[level]
        if left.numel() > SMALL_ARRAY:
            found = powers(factor, order, above)[left].double()
        else:  # for few entries, squaring is faster than a table of all powers
            found = torch.ones_like(finite)
            for k in range(order.bit_length()):
                step = torch.where((left >> k) % 2 == 1, float(factor), 1.0)
                found = self.fields[level + 1].reduced(found * step)
                factor = factor * factor % above
        found = torch.where(x == -torch.inf, 0.0, found)
        return torch.where(x.isnan(), torch.nan, found)

    def unknown_function(self, name: str, x: Field) -> Field:
        """Apply an uninterpreted function: all that is known is that equal values agree."""
        self.functions.add(name.partition("/")[0])

        def at(level: int, part: Tensor) -> Tensor:
            finite = part.isfinite()
            found = self.hashed(level, torch.where(finite, part, 0.0).long(), name)
            return torch.where(finite, found, torch.nan)

        return x.at_levels(at, lambda _: None)

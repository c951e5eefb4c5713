"""Towers of primes, between which an exponential maps, and angles as points of a circle.

The exponential takes sums to products.  From Z_q to Z_p that is x ↦ w^x for an element w of order
q, so q must divide p − 1.  A term with nested exponentials needs a tower of primes p_0, p_1, ..,
where each p_k divides p_(k+1) − 1.  Every term is evaluated at the top, and the argument of an
exponential one level lower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from math import isqrt
from random import Random
from typing import Any

import torch
from torch import Tensor

from .residue import REDUCED_LIMIT, Degree, FieldArithmetic, NoResidue, Residue, common

# Angles as points of the circle c² + s² = 1 modulo a prime: adding angles multiplies points

Circle = tuple[Tensor, Tensor]
"""Cosines and sines, as integers in float64."""


@dataclass(frozen=True, eq=False)
class Points:
    """An array of angles, each given by its cosine and sine."""

    cos: Residue
    sin: Residue

    @property
    def arithmetic(self) -> FieldArithmetic:
        """The field."""
        return self.cos.arithmetic

    def moved(self, how: Callable[[Tensor], Tensor]) -> Points:
        """The same angles in other places."""
        return Points(self.cos.moved(how), self.sin.moved(how))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.cos.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The axis lengths."""
        return self.cos.shape

    def __getitem__(self, key: Any) -> Points:
        return self.moved(lambda x: x[key])

    @property
    def values(self) -> Circle:
        """Cosines and sines as numbers."""
        return self.cos.value, self.sin.value

    def plus(self, other: Points) -> Points:
        """The sums of angles."""
        degree = self.cos.degree.above + other.cos.degree.above
        return self._of(added(self.arithmetic, self.values, other.values), degree)

    def times(self, count: Any) -> Points:
        """Integer multiples of angles."""
        order = self.arithmetic.prime + 1
        left = torch.remainder(torch.as_tensor(count, dtype=torch.int64), order)
        left = left.to(self.arithmetic.device)
        # k times a point of degree d, like its opposite, has degree k d
        most = int(torch.minimum(left, order - left).max()) if left.numel() else 0
        found = multiplied(self.arithmetic, self.values, left)
        return self._of(found, most * self.cos.degree.above)

    def known(self, degree: int) -> Points:
        """The same points, with a known degree.

        A sum of cosines and sines of at most k θ has at most 2k zeros on the circle, as a
        polynomial of degree 2k would; the denominator (1 + t²)^k has none.
        """
        return self._of(self.values, degree)

    def _of(self, values: Circle, degree: int) -> Points:
        return Points(*(Residue(self.arithmetic, x, degree=Degree(degree, 0)) for x in values))


def added(field: FieldArithmetic, a: Circle, b: Circle) -> Circle:
    """cos(α + β) and sin(α + β), from the cosines and sines of both."""
    return field.reduced(a[0] * b[0] - a[1] * b[1]), field.reduced(a[1] * b[0] + a[0] * b[1])


def multiplied(field: FieldArithmetic, one: Circle, count: Tensor) -> Circle:
    """cos(kα) and sin(kα) for integers k, by doubling: the circle has p + 1 points."""
    left = torch.remainder(count, field.prime + 1)
    shape = common(tuple(left.shape), tuple(one[0].shape))
    cos, sin = one[0].new_ones(shape), one[0].new_zeros(shape)
    while bool((left > 0).any()):
        odd = left % 2 == 1
        c, s = added(field, (cos, sin), one)
        cos, sin = torch.where(odd, c, cos), torch.where(odd, s, sin)
        left, one = left // 2, added(field, one, one)
    return cos, sin


def point_of(t: int, prime: int) -> tuple[int, int]:
    """The cosine and sine of the angle whose half has tangent t.

    1 + t² is not 0, since the prime is 3 modulo 4.
    """
    scale = pow(1 + t * t, -1, prime)
    return (1 - t * t) * scale % prime, 2 * t * scale % prime


def order_of(point: tuple[int, int], prime: int) -> int:
    """The order of a point: the least multiple of its angle that is 0."""
    order = prime + 1
    for factor in prime_factors(order):
        while order % factor == 0 and _power(point, order // factor, prime) == (1, 0):
            order //= factor
    return order


def prime_factors(n: int) -> list[int]:
    """The primes that divide n, each once."""
    found, k = [], 2
    while k * k <= n:
        if n % k == 0:
            found.append(k)
            while n % k == 0:
                n //= k
        k += 1
    return [*found, n] if n > 1 else found


def _power(point: tuple[int, int], count: int, prime: int) -> tuple[int, int]:
    (c, s), (a, b) = (1, 0), point
    while count:
        if count & 1:
            c, s = (c * a - s * b) % prime, (s * a + c * b) % prime
        a, b, count = (a * a - b * b) % prime, 2 * a * b % prime, count >> 1
    return c, s


def random_points(
    arithmetic: FieldArithmetic, shape: Sequence[int], random: Random, above: int
) -> Points:
    """Random angles, none of which returns to 0 within ``above`` steps."""
    prime = arithmetic.prime
    cos: list[int] = []
    sin: list[int] = []
    if prime + 1 <= above:
        raise NoResidue(f"angles that do not come back within {above} steps modulo {prime}")
    count = 1
    for n in shape:
        count *= n
    while len(cos) < count:
        point = point_of(random.randrange(1, prime), prime)
        if order_of(point, prime) > above:
            cos.append(point[0])
            sin.append(point[1])
    arrays = [torch.tensor(part, dtype=torch.int64).reshape(tuple(shape)) for part in (cos, sin)]
    return Points(*(arithmetic.of(array) for array in arrays)).known(2)


def choices(prime: int, above: int) -> int:
    """The number of points from which :func:`random_points` draws: those of large order."""
    order = prime + 1
    small = [e for e in range(1, isqrt(order) + 1) if order % e == 0]
    divisors = {*small, *(order // e for e in small)}
    return sum(_coprime(e) for e in divisors if e > above)


def _coprime(n: int) -> int:
    """The number of integers below n that are coprime to it."""
    for factor in prime_factors(n):
        n -= n // factor
    return n


# Towers of primes: fields between which an exponential maps

LARGEST_PRIME = 1 << 22  # products of two residues, and sums of 2,000 of them, stay far below 2^53


class NoTower(Exception):
    """The nesting of exponentials is too deep."""


def is_prime(n: int) -> bool:
    """Whether a small number is prime, by trial division.

    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


@dataclass(frozen=True)
class Tower:
    """Primes p_0, .., p_L, each 3 modulo 4, and elements w_1, .., w_L: w_k has order p_{k−1}.

    Modulo a prime that is 3 modulo 4 exactly one of two opposite nonzero numbers has a root, and
    the circle c² + s² = 1 has p + 1 points.
    """

    primes: tuple[int, ...]
    bases: tuple[int, ...]

    @property
    def depth(self) -> int:
        """How deep exponentials may be nested."""
        return len(self.bases)


@cache
def tower(depth: int, place: int = 0) -> Tower:
    """The tower of this depth with the largest primes below ``LARGEST_PRIME``, or one of the next.

    >>> tower(1).primes
    (2097143, 4194287)
    """
    found = 0
    for first in range(LARGEST_PRIME >> (depth + 2 * max(0, depth - 1)), 2, -1):
        if first % 4 != 3 or not is_prime(first):
            continue
        primes = [first]
        while len(primes) <= depth:
            above = next(
                p for k in count(1) if (p := 2 * k * primes[-1] + 1) % 4 == 3 and is_prime(p)
            )
            primes.append(above)
        if primes[-1] >= LARGEST_PRIME:
            continue
        if found == place:
            return Tower(tuple(primes), tuple(map(_of_order, primes[:-1], primes[1:])))
        found += 1
    raise NoTower(f"{depth} nested exponentials: no tower of primes below {LARGEST_PRIME}")


def _of_order(order: int, prime: int) -> int:
    """The first element found with this prime order in the multiplicative group."""
    return next(w for a in count(2) if (w := pow(a, (prime - 1) // order, prime)) != 1)


@lru_cache(maxsize=6)
def powers(base: int, order: int, prime: int, device: str = "cpu") -> Tensor:
    """1, w, w², .., w^order = 1, computed by doubling the list.

    Residues below 2^23 in size are exact in float32, of which more stay in the cache.
    """
    assert prime < 1 << 24, prime
    arithmetic = FieldArithmetic(prime, torch.device(device))
    found = arithmetic.of(torch.ones(1, dtype=torch.int64)).value
    while len(found) <= order:
        step = arithmetic.of(pow(base, len(found), prime)).value
        found = torch.cat((found, arithmetic.reduced(found * step)))
    return found[: order + 1].float()


def power(x: Residue, base: int, prime: int) -> Tensor:
    """w^x for w of order q, where x is a residue modulo q.

    Its place in the table is x − q·⌊x/q⌋.  Since x/q is computed with an error below 1/(2q) for
    |x| ≤ 2^50, the floor is right unless q divides x; then it may be one less, and the place is q,
    where the table also has w^q = 1.
    """
    arithmetic = x.arithmetic
    order = arithmetic.prime
    entries, bound = x.total_once()
    entries = x.value if bound > REDUCED_LIMIT else entries
    found = torch.mul(entries, 1 / order).floor_()
    torch.sub(entries, found, alpha=order, out=found)
    places = arithmetic.scratch(torch.int32, found.shape).copy_(found).view(-1)
    table = powers(base, order, prime, str(entries.device))
    room = arithmetic.scratch(torch.float32, places.shape)
    return found.copy_(torch.index_select(table, 0, places, out=room).view(found.shape))

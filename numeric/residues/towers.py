"""Towers of primes: fields between which an exponential maps.

The exponential takes sums to products.  From Z_q to Z_p that is x ↦ w^x for an element w of order
q, so q must divide p − 1.  A term with exponentials inside exponentials needs a tower of primes
p_0, p_1, .., each dividing the next less one.  Every term is read at the top; what stands inside
an exponential is read one level lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count

import torch
from torch import Tensor

from .arithmetic import FieldArithmetic
from .residue import ONCE, Residue

__all__ = ["TOP", "NoTower", "Tower", "is_prime", "power", "powers", "tower"]


TOP = 1 << 22  # products of two residues stay far below 2^53, sums of 2,000 of them as well


class NoTower(Exception):
    """So many exponentials inside one another are too many."""


def is_prime(n: int) -> bool:
    """Whether a small number is prime, by trial division.

    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


@dataclass(frozen=True)
class Tower:
    """Primes p_0, .., p_L, each 3 modulo 4, and elements w_1, .., w_L: w_k has order p_{k−1}.

    Modulo a prime that is 3 modulo 4 exactly one of two opposite numbers has a root, and the
    circle c² + s² = 1 has p + 1 points.
    """

    primes: tuple[int, ...]
    bases: tuple[int, ...]

    @property
    def depth(self) -> int:
        """How many exponentials may stand inside one another."""
        return len(self.bases)


@cache
def tower(depth: int, place: int = 0) -> Tower:
    """The tower of this depth with the largest primes below ``TOP``; or the next ones.

    >>> tower(1).primes
    (2097143, 4194287)
    """
    found = 0
    for first in range(TOP >> (depth + 2 * max(0, depth - 1)), 2, -1):
        if first % 4 != 3 or not is_prime(first):
            continue
        primes = [first]
        while len(primes) <= depth:
            above = next(
                p for k in count(1) if (p := 2 * k * primes[-1] + 1) % 4 == 3 and is_prime(p)
            )
            primes.append(above)
        if primes[-1] >= TOP:
            continue
        if found == place:
            return Tower(tuple(primes), tuple(map(_of_order, primes[:-1], primes[1:])))
        found += 1
    raise NoTower(f"{depth} exponentials inside one another: no tower of primes below {TOP}")


def _of_order(order: int, prime: int) -> int:
    """The least element of this prime order in the multiplicative group."""
    return next(w for a in count(2) if (w := pow(a, (prime - 1) // order, prime)) != 1)


@lru_cache(maxsize=6)
def powers(base: int, order: int, prime: int, device: str = "cpu") -> Tensor:
    """1, w, w², .., w^order = 1, each half of the list from the half before it.

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
    """w^x for w of the order q that x is a residue modulo.

    Its place in the table is x − q·⌊x/q⌋.  As x/q is computed with an error below 1/(2q) for
    |x| ≤ 2^50, the floor is right unless q divides x; then it may be one less, and the place q,
    where w^q = 1 stands as well.
    """
    arithmetic = x.arithmetic
    order = arithmetic.prime
    entries, bound = x.glance()
    entries = x.value if bound > ONCE else entries
    found = torch.mul(entries, 1 / order).floor_()
    torch.sub(entries, found, alpha=order, out=found)
    places = arithmetic.scratch(torch.int32, found.shape).copy_(found).view(-1)
    table = powers(base, order, prime, str(entries.device))
    room = arithmetic.scratch(torch.float32, places.shape)
    return found.copy_(torch.index_select(table, 0, places, out=room).view(found.shape))

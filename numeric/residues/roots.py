"""Square roots of whole numbers in a field, so that they multiply as those of real numbers do.

√m = s · √l₁ · √l₂ .. for m = s² l₁ l₂ .. with different primes l.  Once each prime has one root
chosen, √a √b = √(ab) and √(a²) = a hold for all whole numbers; the root that is itself a square
would not do, as √4 would be −2 wherever 2 is none.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from .circle import prime_factors
from .residue import NoResidue

__all__ = ["has_root", "root", "roots"]


@cache
def root(m: int, prime: int) -> int | None:
    """√m modulo a prime that is 3 modulo 4, or None where it does not exist.

    >>> root(4, 23), root(18, 23) ** 2 % 23, root(5, 23)
    (2, 18, None)
    """
    if m < 0:
        raise NoResidue(f"a root of {m}")
    found = 1 if m else 0
    for factor in prime_factors(m):
        count = 0
        while m % factor == 0:
            m, count = m // factor, count + 1
        found = found * pow(factor, count // 2, prime) % prime
        if count % 2:
            one = pow(factor, (prime + 1) // 4, prime)
            if one * one % prime != factor % prime:
                return None
            found = found * one % prime
    return found


def has_root(m: int, prime: int) -> bool:
    """Whether √m exists, with those of all primes that m needs."""
    return root(m, prime) is not None


def roots(numbers: Tensor, prime: int) -> Tensor:
    """√m for every whole number of an array."""
    different, place = torch.unique(numbers, return_inverse=True)
    found = [root(int(m), prime) for m in different]
    missing = [int(m) for m, one in zip(different, found, strict=True) if one is None]
    if missing:
        raise NoResidue(f"√{missing[0]} modulo {prime} does not exist")
    return torch.tensor(found, dtype=torch.int64)[place]

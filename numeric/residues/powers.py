"""Exponentials in a tower of fields: the powers w^x of an element of prime order."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from .arithmetic import FieldArithmetic
from .residue import ONCE, Residue

__all__ = ["power", "powers"]


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

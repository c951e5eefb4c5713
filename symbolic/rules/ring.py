"""The ring rule."""

from __future__ import annotations

from ..terms import Term
from .base import NOTHING, Result, need
from .polynomials import same_polynomial
from .signs import BY_FORM, Signs


def ring(t: Term, target: Term, *nonzero: Term, signs: Signs = BY_FORM) -> Result:
    """Commutative ring with inverses; atoms listed in ``nonzero`` are not 0."""
    assumed = NOTHING
    for atom in nonzero:
        certain, used = signs.nonzero(atom)
        need(certain, "ring", "this was said to be nonzero and is not known to be", atom)
        assumed |= used
    need(same_polynomial(t, target, nonzero), "ring", "not one polynomial", t, target)
    return target, assumed

"""The ring rule."""

from __future__ import annotations

from ..terms import Term
from .base import NOTHING, Facts, Result, need
from .polynomials import same_polynomial
from .signs import nonzero as certainly_nonzero


def ring(t: Term, target: Term, *nonzero: Term, facts: Facts = NOTHING) -> Result:
    """Commutative ring with inverses; atoms listed in ``nonzero`` are not 0."""
    assumed = NOTHING
    for atom in nonzero:
        certain, used = certainly_nonzero(atom, facts)
        need(certain, "ring", "this was said to be nonzero and is not known to be", atom)
        assumed |= used
    need(same_polynomial(t, target, nonzero), "ring", "not one polynomial", t, target)
    return target, assumed

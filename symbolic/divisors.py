"""Divisors of a statement that may be zero.

The kernel's numbers have 1/0 = 0, so that every term has a value.  A proof then holds wherever
no divisor of the statement is zero, and there it is the usual theorem.  Divisors that are
positive by their form (a sum of exponentials, √ℓ) need no word; the others are listed.
"""

from __future__ import annotations

from .derive import axis_cover, places, split_options
from .normal_form.normaliser import Normaliser
from .rules import Refused, sign
from .scalars import entry
from .terms import Term, postorder

__all__ = ["may_vanish"]


def may_vanish(*terms: Term) -> tuple[Term, ...]:
    """The divisors in the terms, as entries in normal form, that are not certainly positive."""
    divisors = {
        part.args[0]
        for term in terms
        for part in postorder(term)
        if part.op == "power" and part.data < 0 and not part.loose
    }
    found: dict[Term, None] = {}
    for divisor in sorted(divisors, key=lambda d: d.key):
        splits = split_options(divisor)[0]
        norm = Normaliser(splits)
        cover = tuple(axis_cover(length, splits) for length in divisor.shape)
        for place in places(divisor, cover):
            try:
                value = norm(entry(divisor, *place)).right
            except Refused:
                value = entry(divisor, *place)
            if sign(value)[0] != 2:
                found.setdefault(value)
    return tuple(found)

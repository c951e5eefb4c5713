"""The rules of the kernel: each takes a term to an equal term, or refuses.

A rule returns the new term and the assumptions under which the two are equal; it never
searches.  ``RULES`` is the whole list.  A rule that is wrong makes the checker lie, so the suite
plants a fault in each and must notice (``tests/symbolic/test_kernel_faults.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from ..terms import Term
from .base import Assumption, Facts, Refused, Result, need
from .conditions import (
    comparison,
    connective,
    decide,
    either,
    equal_swap,
    idempotent,
    implied,
    infinity,
    push,
    turned,
    where,
    whole,
)
from .entries import definition, ordered, tabulated, unfold
from .functions import (
    absolute,
    angle_sum,
    angle_zero,
    exponential,
    exponential_of_log,
    half_turn,
    hyperbolic,
    log,
    maximum,
    maximum_as_choice,
    maximum_mirrored,
    ordered_absolute,
    parity,
    pythagoras,
    root,
    root_of_square,
)
from .inequalities import STEPS, inhabited, known_after
from .maps import digits, divide, equivariance, hypothesis, image, injective, permutation
from .naturals import floor, layer, remainder
from .polynomials import same_polynomial
from .ring import ring
from .signs import BY_FORM, Signs
from .sums import (
    constant,
    count,
    cut,
    delta,
    distribute,
    exchange,
    factor,
    orthogonal,
    radix,
    reflect,
    reindex,
    standard,
    unroll,
)

__all__ = [
    "BY_FORM",
    "ON_SIGNS",
    "RULES",
    "STEPS",
    "Assumption",
    "Facts",
    "Refused",
    "Signs",
    "applied",
    "inhabited",
    "known_after",
    "need",
    "same_polynomial",
]

RULES: dict[str, Callable[..., Result]] = {
    "definition": definition,
    "entry": unfold,
    "tabulate": tabulated,
    "ring": ring,
    "exp": exponential,
    "angle addition": angle_sum,
    "exp of log": exponential_of_log,
    "log": log,
    "parity": parity,
    "zero angle": angle_zero,
    "half turn": half_turn,
    "tanh": hyperbolic,
    "sin² + cos² = 1": pythagoras,
    "root": root,
    "root of a square": root_of_square,
    "absolute value": absolute,
    "ordered absolute value": ordered_absolute,
    "maximum": maximum,
    "maximum as a choice": maximum_as_choice,
    "mirrored maximum": maximum_mirrored,
    "where": where,
    "push": push,
    "infinity": infinity,
    "indicator": connective,
    "indicator power": idempotent,
    "either": either,
    "comparison": comparison,
    "whole comparison": whole,
    "decide": decide,
    "implied": implied,
    "turned": turned,
    "equals for equals": equal_swap,
    "distribute": distribute,
    "factor": factor,
    "constant": constant,
    "exchange": exchange,
    "reindex": reindex,
    "reflect": reflect,
    "delta": delta,
    "radix": radix,
    "cut": cut,
    "unroll": unroll,
    "orthogonal": orthogonal,
    "standard": standard,
    "count": count,
    "permutation": permutation,
    "injective": injective,
    "image": image,
    "digits": digits,
    "divide": divide,
    "floor": floor,
    "remainder": remainder,
    "layer": layer,
    "integer": ordered,
    "hypothesis": hypothesis,
    "equivariance": equivariance,
}

ON_SIGNS = frozenset(name for name, rule in RULES.items() if "signs" in (rule.__kwdefaults__ or {}))
"""Rules that ask for a sign, which may be one that is given or shown by steps."""


def applied(rule: str, t: Term, arguments: tuple[object, ...], signs: Signs = BY_FORM) -> Result:
    """What a rule makes of a term, where these signs are known."""
    return RULES[rule](t, *arguments, **({"signs": signs} if rule in ON_SIGNS else {}))

"""The rules of the kernel: each takes a term to an equal term, or refuses.

A rule returns the new term and the assumptions under which the two are equal; it never
searches.  ``RULES`` is the whole list.  A rule that is wrong makes the checker lie, so the suite
plants a fault in each and must notice (``tests/symbolic/test_kernel_faults.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from .base import Assumption, Refused, Result, need
from .conditions import (
    comparison,
    connective,
    decide,
    equal_swap,
    idempotent,
    infinity,
    push,
    where,
)  # fmt: skip
from .entries import definition, ordered, tabulated, unfold
from .functions import (
    absolute,
    angle_sum,
    angle_zero,
    exponential,
    maximum,
    ordered_absolute,
    parity,
    pythagoras,
    root,
)  # fmt: skip
from .maps import digits, divide, equivariance, hypothesis, image, injective, permutation
from .polynomials import ring, same_polynomial
from .signs import sign
from .sums import (
    constant,
    cut,
    delta,
    distribute,
    exchange,
    factor,
    orthogonal,
    radix,
    reindex,
    unroll,
)  # fmt: skip

__all__ = ["RULES", "Assumption", "Refused", "need", "same_polynomial", "sign"]

RULES: dict[str, Callable[..., Result]] = {
    "definition": definition,
    "entry": unfold,
    "tabulate": tabulated,
    "ring": ring,
    "exp": exponential,
    "angle addition": angle_sum,
    "parity": parity,
    "zero angle": angle_zero,
    "sin² + cos² = 1": pythagoras,
    "root": root,
    "absolute value": absolute,
    "ordered absolute value": ordered_absolute,
    "maximum": maximum,
    "where": where,
    "push": push,
    "infinity": infinity,
    "indicator": connective,
    "indicator power": idempotent,
    "comparison": comparison,
    "decide": decide,
    "equals for equals": equal_swap,
    "distribute": distribute,
    "factor": factor,
    "constant": constant,
    "exchange": exchange,
    "reindex": reindex,
    "delta": delta,
    "radix": radix,
    "cut": cut,
    "unroll": unroll,
    "orthogonal": orthogonal,
    "permutation": permutation,
    "injective": injective,
    "image": image,
    "digits": digits,
    "divide": divide,
    "integer": ordered,
    "hypothesis": hypothesis,
    "equivariance": equivariance,
}

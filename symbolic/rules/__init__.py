"""The rules of the kernel: each takes a term to an equal term, or refuses.

A rule returns the new term and the assumptions under which the two are equal; it never
searches.  ``RULES`` is the whole list.  A wrong rule makes the checker unsound, so the tests
plant a fault in each and must detect it (``tests/symbolic/test_kernel_faults.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from ..terms import Term
from . import conditions, entries, functions, maps, sums
from .base import Refusing, Result
from .polynomials import ring
from .signs import BY_FORM, Signs

RULES: dict[str, Callable[..., Result]] = {
    "definition": entries.definition,
    "entry": entries.unfold,
    "tabulate": entries.tabulated,
    "layer": entries.layer,
    "ring": ring,
    "exp": functions.exponential,
    "angle addition": functions.angle_sum,
    "exp of log": functions.exponential_of_log,
    "log": functions.log,
    "known angle": functions.known_angle,
    "tanh": functions.hyperbolic,
    "sin² + cos² = 1": functions.pythagoras,
    "root": functions.root,
    "root of a square": functions.root_of_square,
    "absolute value as a choice": functions.absolute,
    "maximum": functions.maximum,
    "maximum as a choice": functions.maximum_as_choice,
    "where": conditions.where,
    "push": conditions.push,
    "infinity": conditions.infinity,
    "indicator": conditions.connective,
    "either": conditions.either,
    "comparison": conditions.comparison,
    "whole comparison": conditions.whole,
    "decide": conditions.decide,
    "turned": conditions.turned,
    "equals for equals": conditions.equal_swap,
    "distribute": sums.distribute,
    "factor": sums.factor,
    "constant": sums.constant,
    "exchange": sums.exchange,
    "delta": sums.delta,
    "cut": sums.cut,
    "unroll": sums.unroll,
    "count": sums.count,
    "orthogonal": sums.orthogonal,
    "standard": sums.standard,
    "permutation": maps.permutation,
    "injective": maps.injective,
    "image": maps.image,
    "digits": maps.digits,
    "divide": maps.divide,
    "floor": maps.floor,
    "remainder": maps.remainder,
    "equivariance": maps.equivariance,
    "invariance": maps.invariance,
}

ON_SIGNS = frozenset(name for name, rule in RULES.items() if "signs" in (rule.__kwdefaults__ or {}))
"""Rules that need a sign, which may be a hypothesis or shown by steps."""


def applied(rule: str, t: Term, arguments: tuple[object, ...], signs: Signs = BY_FORM) -> Result:
    """Return the result of applying a rule to a term, given the known signs."""
    with Refusing(rule):
        return RULES[rule](t, *arguments, **({"signs": signs} if rule in ON_SIGNS else {}))

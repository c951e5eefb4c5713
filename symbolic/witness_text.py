"""A witness as plain values and as one line of text for the user."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from flint import arb

from .certified_numbers import LARGEST_EXPONENT, ball, fraction, number
from .claim import Claim, name_of
from .decision import Witness
from .failures import Failure
from .givens import GREEK


def _midpoint(x: Any) -> Fraction | None:
    """Return the middle of a ball, or None if it is too large or too small for a fraction."""
    exact = fraction(number(x))
    if exact is not None:
        return exact
    mantissa, exponent = arb(ball(x)).mid().man_exp()
    if abs(exponent) > LARGEST_EXPONENT:
        return None
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def decimal(x: Any, digits: int = 3) -> str:
    """Return a certified number as text, truncated after some digits; "…" marks the truncation.

    A narrow ball around an integer prints as that integer.

    >>> from flint import fmpq
    >>> decimal(fmpq(2, 3)), decimal(arb(2).sqrt())
    ('2/3', '1.414…')
    >>> decimal(arb(2).sin() ** 2 + arb(2).cos() ** 2), decimal(arb("1e-15") + 1)
    ('1', '1.000…')
    >>> decimal(arb(-(10**9)).exp())
    '1.25e-434294482'
    """
    exact = fraction(number(x))
    if exact is not None and exact.denominator < 1000:
        return str(exact)
    value = _midpoint(x)
    if value is None:
        return str(arb(ball(number(x))).str(digits, radius=False))
    near = round(value)
    if abs(value - near) * 10**12 < 1 and arb(ball(number(x))).contains(near):
        return str(near)
    places = digits
    while value and abs(value) * 10**places < 100 and places < digits + 60:
        places += 1
    whole, rest = divmod(floor(abs(value) * 10**places), 10**places)
    return f"{'-' if value < 0 else ''}{whole}.{rest:0{places}d}…"


def two_sides(left: Any, right: Any) -> tuple[str, str]:
    """Return two different numbers as text, with enough digits to distinguish them."""
    for digits in (3, 6, 12, 24):
        shown = decimal(left, digits), decimal(right, digits)
        if shown[0] != shown[1]:
            break
    return shown


def _failure_text(claim: Claim, failure: Failure) -> tuple[str, str, str]:
    """Return the two sides at the entry where a claim fails, and a line that says so.

    For ">" without a right side the line is about the left side alone.
    """
    place = f" at {list(failure.place)}" if any(failure.place) else ""
    if claim.relation == "!=":
        equal = decimal(failure.left)
        entry = f"with {equal} at {list(failure.place)}" if claim.left.shape else f"both {equal}"
        return equal, equal, f"the two are equal, {entry}"
    left, right = two_sides(failure.left, failure.right)
    if claim.relation == ">" and claim.right is None:
        return left, right, f"the entry{place} is {left}, not positive"
    between = {"=": ", right", ">": " is not above right", ">=": " is below right"}[claim.relation]
    return left, right, f"left {left}{between} {right}{place}"


def rounded_down(gap: Fraction) -> Fraction:
    """Return a shorter number that is at most ``gap``, and positive if ``gap`` is.

    >>> rounded_down(Fraction(2, 3))
    Fraction(333, 500)
    """
    scale = 1
    while 0 < gap * scale < 100:
        scale *= 10
    return Fraction(floor(gap * scale), scale)


def plain_value(value: Any) -> Any:
    """Return nested lists of int, bool and Fraction; for a function, its defining text."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, int | Fraction) else str(value)


def number_text(value: Any) -> str:
    """Return a number as text; approximately, if it has more digits than Python converts.

    >>> number_text(Fraction(2, 3)), number_text(Fraction(10**5000, 3))
    ('2/3', 'about 3.33333e+4999')
    """
    try:
        return str(value)
    except ValueError:
        return f"about {arb(ball(number(value))).str(6, radius=False)}"


def _value_text(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return number_text(value)
    if sum(n > 1 for n in value.shape) < 2 and value.ndim > 1:
        value = value.ravel()
    if not value.shape:
        return _value_text(value[()])
    if value.dtype == np.int64:
        return f"({' '.join(str(i) for i in value)})"
    if value.dtype == bool and value.ndim == 1:
        return f"({', '.join('T' if x else 'F' for x in value)})"
    return f"({', '.join(_value_text(x) for x in value)})"


def assignment_text(sizes: Mapping[str, int], values: Mapping[str, Any]) -> str:
    """Return text such as ``n = 2, other sizes 1, K = (0, 1), σ = (1 0)``."""
    large = [f"{name} = {n}" for name, n in sizes.items() if n > 1]
    ones = sum(n == 1 for n in sizes.values())
    rest = ["other sizes 1" if large else "every size 1"] if ones else []
    given = [
        _value_text(v) if callable(v) else f"{GREEK.get(name, name)} = {_value_text(v)}"
        for name, v in values.items()
    ]
    return ", ".join([*large, *rest, *given])


def witness_of(claim: Claim, failure: Failure, used: set[str]) -> Witness:
    """Return the witness of a failure; its text has the values of the names that are used."""
    sizes, values = dict(failure.candidate.sizes), dict(failure.candidate.values)
    if failure.contradiction is not None:
        return _no_array_witness(claim, failure, used)
    left, right, end = _failure_text(claim, failure)
    return Witness(
        sizes,
        {name: plain_value(v) for name, v in values.items()},
        failure.place,
        left,
        right,
        rounded_down(failure.gap),
        _line(assignment_text(sizes, _used_values(values, used)), end),
    )


def _line(where: str, what: str) -> str:
    return f"{where}: {what}" if where else what


def _used_values(values: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Return the values that the claim uses."""
    return {name: value for name, value in values.items() if name in used}


def _no_array_witness(claim: Claim, failure: Failure, used: set[str]) -> Witness:
    """Return the witness against an existence: contradictory equations and where they hold."""
    assert claim.variable is not None
    assert failure.contradiction is not None
    unknown = name_of(claim.variable)
    rows = failure.contradiction.rows
    varied = [name_of(t) for t in claim.free_of if t.op in ("var", "index")]
    sizes = dict(failure.candidate.sizes)
    fixed = {n: v for n, v in failure.candidate.values.items() if n not in varied}
    tried = {n: [trial.values[n] for trial in failure.trials] for n in varied if n not in fixed}
    at = "; ".join(
        assignment_text({}, {n: v[k] for n, v in tried.items()}) for k in range(len(failure.trials))
    )
    left, right = decimal(failure.left), "0"
    place = f" at {list(failure.place)}" if any(failure.place) else ""
    why = f"left - right is {left}{place} whatever {unknown} is"
    if len(rows) > 1:
        k = len(rows) - 1
        left, right = f"rank {k + 1} with the right-hand side", f"rank at most {k} without"
        entries = "1 entry" if k == 1 else f"{k} entries"
        why = (
            f"{k + 1} linear equations for {entries} of {unknown} whose determinant is at "
            f"least {decimal(rounded_down(failure.gap))} in size, so no {unknown} solves them"
        )
    values = {n: plain_value(v) for n, v in fixed.items()}
    values |= {n: [plain_value(x) for x in v] for n, v in tried.items()}
    fixed_text = assignment_text(sizes, _used_values(fixed, used))
    start = ", ".join(filter(None, (fixed_text, at and f"at {at}")))
    return Witness(
        sizes,
        values,
        failure.place,
        left,
        right,
        rounded_down(failure.gap),
        _line(start, why),
    )

"""A witness in plain values and in one line that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from flint import arb

from .certified_numbers import fraction, number

__all__ = ["decimal", "plain_value", "rounded_down", "two_sides", "written"]

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω",
}  # fmt: skip


def _middle(x: Any) -> Fraction:
    exact = fraction(number(x))
    if exact is not None:
        return exact
    mantissa, exponent = arb(x).mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def decimal(x: Any, digits: int = 3) -> str:
    """A certified number, cut after some digits; "…" marks the cut.

    A ball that closes in on a whole number prints as that number.

    >>> from flint import fmpq
    >>> decimal(fmpq(2, 3)), decimal(arb(2).sqrt())
    ('2/3', '1.414…')
    >>> decimal(arb(2).sin() ** 2 + arb(2).cos() ** 2), decimal(arb("1e-15") + 1)
    ('1', '1.000…')
    """
    exact = fraction(number(x))
    if exact is not None and exact.denominator < 1000:
        return str(exact)
    value = _middle(x)
    near = round(value)
    if abs(value - near) * 10**12 < 1 and arb(number(x)).contains(near):
        return str(near)
    places = digits
    while value and abs(value) * 10**places < 100 and places < digits + 60:
        places += 1
    whole, rest = divmod(floor(abs(value) * 10**places), 10**places)
    return f"{'-' if value < 0 else ''}{whole}.{rest:0{places}d}…"


def two_sides(left: Any, right: Any) -> tuple[str, str]:
    """Two different numbers with enough digits to tell them apart."""
    for digits in (3, 6, 12, 24):
        shown = decimal(left, digits), decimal(right, digits)
        if shown[0] != shown[1]:
            break
    return shown


def rounded_down(gap: Fraction) -> Fraction:
    """A shorter number, at most ``gap`` and positive if it is.

    >>> rounded_down(Fraction(2, 3))
    Fraction(333, 500)
    """
    scale = 1
    while 0 < gap * scale < 100:
        scale *= 10
    return Fraction(floor(gap * scale), scale)


def plain_value(value: Any) -> Any:
    """Nested lists of int, bool and Fraction; a function as the text that defines it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, int | Fraction) else str(value)


def _shown(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    if sum(n > 1 for n in value.shape) < 2 and value.ndim > 1:
        value = value.ravel()
    if not value.shape:
        return _shown(value[()])
    if value.dtype == np.int64:
        return f"({' '.join(str(i) for i in value)})"
    if value.dtype == bool and value.ndim == 1:
        return f"({', '.join('T' if x else 'F' for x in value)})"
    return f"({', '.join(_shown(x) for x in value)})"


def written(sizes: Mapping[str, int], values: Mapping[str, Any]) -> str:
    """``n = 2, other sizes 1, K = (0, 1), σ = (1 0)``: sizes above 1, then the values."""
    large = [f"{name} = {n}" for name, n in sizes.items() if n > 1]
    ones = sum(n == 1 for n in sizes.values())
    rest = ["other sizes 1" if large else "every size 1"] if ones else []
    given = [
        _shown(v) if callable(v) else f"{_GREEK.get(name, name)} = {_shown(v)}"
        for name, v in values.items()
    ]
    return ", ".join([*large, *rest, *given])

"""Exact multiples of π, and the angles whose cosine is rational."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, fmpq

__all__ = ["Turn", "ball", "turn"]

# Niven's theorem: at rational multiples q·π the cosine is rational at these q below 2 only.
_COSINES = {
    Fraction(0): fmpq(1), Fraction(1, 3): fmpq(1, 2), Fraction(1, 2): fmpq(0),
    Fraction(2, 3): fmpq(-1, 2), Fraction(1): fmpq(-1), Fraction(4, 3): fmpq(-1, 2),
    Fraction(3, 2): fmpq(0), Fraction(5, 3): fmpq(1, 2),
}  # fmt: skip


def turn(q: fmpq) -> Any:
    """q·π; 0 as the rational number."""
    return Turn(q) if q != 0 else fmpq(0)


def ball(x: Any) -> Any:
    """The ball of a multiple of π; every other number as it is."""
    return arb.pi() * x.half if isinstance(x, Turn) else x


class Turn:
    """q·π for a rational q, which is not 0; exact under sums and rational multiples."""

    __slots__ = ("half",)

    def __init__(self, half: fmpq) -> None:
        self.half = half

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Turn):
            return turn(self.half + other.half)
        if isinstance(other, fmpq | int) and other == 0:
            return self
        return ball(self) + other

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, fmpq | int):
            return turn(self.half * other)
        return ball(self) * ball(other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return Turn(abs(self.half))

    def cos(self) -> Any:
        """The cosine: rational where it is."""
        return _cosine(self.half)

    def sin(self) -> Any:
        """The sine, cos(π/2 − qπ)."""
        return _cosine(fmpq(1, 2) - self.half)

    def __repr__(self) -> str:
        return f"{self.half}·π"


def _cosine(q: fmpq) -> Any:
    angle = Fraction(int(q.p), int(q.q)) % 2
    if angle in _COSINES:
        return _COSINES[angle]
    return arb.cos_pi_fmpq(fmpq(angle.numerator, angle.denominator))

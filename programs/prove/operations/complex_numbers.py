"""Complex numbers, as pairs of arrays."""

from __future__ import annotations

from typing import Any

from attnproof.symbolic import namespace as xp

from .reading import Pair, Unread, numeric, reads

__all__: list[str] = []


@reads("aten.view_as_complex.default")
def as_complex(x: Any) -> Pair:
    """The last axis, of length 2, as real and imaginary part."""
    a = numeric(x)
    return Pair(a[..., 0], a[..., 1])


@reads("aten.view_as_real.default")
def as_real(x: Any) -> Any:
    """Real and imaginary part along a new last axis."""
    if not isinstance(x, Pair):
        raise Unread("view_as_real of real numbers")
    return xp.stack((x.real, x.imaginary), axis=-1)


@reads("aten.complex.default")
def joined(real: Any, imaginary: Any) -> Pair:
    """real + i·imaginary."""
    return Pair(numeric(real), numeric(imaginary))


@reads("aten.polar.default")
def polar(length: Any, angle: Any) -> Pair:
    """length·(cos angle + i·sin angle)."""
    r, a = numeric(length), numeric(angle)
    return Pair(r * xp.cos(a), r * xp.sin(a))


@reads("aten.real.default")
def real(x: Any) -> Any:
    """The real part."""
    return x.real if isinstance(x, Pair) else x


@reads("aten.imag.default")
def imaginary(x: Any) -> Any:
    """The imaginary part."""
    if not isinstance(x, Pair):
        raise Unread("the imaginary part of real numbers")
    return x.imaginary


@reads("aten.conj.default", "aten._conj.default")
def conjugate(x: Any) -> Any:
    """The conjugate."""
    return Pair(x.real, -x.imaginary) if isinstance(x, Pair) else x

"""Whether each method of an encoding gives what its place takes: an array of the right shape.

A law that meets a wrong shape raises far from the method that made it; here the method is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .encoding import Encoding
from .law_names import c, e, r
from .symbolic.array import Array, AxisMismatch, as_array, broadcast_shapes
from .symbolic.givens import natural, positions, real
from .symbolic.namespace import arange
from .symbolic.plain import plain
from .symbolic.terms import Term

__all__ = ["NotAnEncoding", "misshapen", "require_shapes"]

Shape = tuple[Term, ...]
Call = tuple[str, str, Callable[[], Any], Array, bool]


class NotAnEncoding(TypeError):
    """A class that declares an encoding and is none; the text says what is missing."""


def require_shapes(kind: type[Encoding]) -> None:
    """Refuse a class with a method that gives an array of a wrong shape, or none."""
    wrong = misshapen(kind)
    if wrong:
        raise NotAnEncoding(wrong)


def misshapen(kind: type[Encoding]) -> str:
    """The first method that gives something else than its place takes; empty if none does.

    A method that raises is told elsewhere, with its line.
    """
    for name, at, compute, like, exact in _calls(kind):
        try:
            found = compute()
        except (Exception, SystemExit):  # noqa: BLE001
            continue
        told = _told(found, like.axes, exact=exact)
        if told:
            return f"{kind.__name__}.{name} {told} for {at}"
    return _no_mask(kind) if kind.defines("sees") else ""


def _no_mask(kind: type[Encoding]) -> str:
    """That ``sees`` gives a number, as seen with the default numbers, where there are any."""
    place = np.zeros((1, 1) + (kind.axes,) * bool(kind.axes))
    try:
        found = np.asarray(kind.with_defaults(8).sees(place, place))
    except (Exception, SystemExit):  # noqa: BLE001
        return ""
    if found.dtype == bool:
        return ""
    return f"{kind.__name__}.sees(m, n) returns numbers; a mask is True or False, say m >= n"


def _told(found: Any, wanted: Shape, *, exact: bool) -> str:
    if found is None:
        return "returns nothing: a return may be missing,"
    if isinstance(found, np.ndarray | bool):
        return ""
    try:
        shape = as_array(found).axes
    except TypeError:
        return f"returns {type(found).__name__}, wanted an array"
    if shape == wanted or (not exact and _fits(shape, wanted)):
        return ""
    return f"returns the shape {_words(shape)}, wanted {_words(wanted)},"


def _fits(shape: Shape, wanted: Shape) -> bool:
    try:
        return broadcast_shapes(shape, wanted) == wanted
    except AxisMismatch:
        return False


def _words(shape: Shape) -> str:
    inside = ", ".join(plain(length) for length in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"


def _calls(kind: type[Encoding]) -> Iterator[Call]:
    """Each method it writes, at rows of positions and at one: what it is given, and its shape."""
    made, axes = kind(), (kind.axes,) * bool(kind.axes)
    width = made.width
    Q, K, V = (real(*shape).named(n) for n, shape in zip(
        "QKV", ((r, width), (c, width), (c, e)), strict=True))  # fmt: skip
    u, p = (positions(n, *axes).named(name) for name, n in (("u", r), ("p", c)))
    if kind.whole and not axes:
        u, p = (natural().named(name) + arange(n) for name, n in (("u", r), ("p", c)))
    q, one = Q[0], u[0]
    pair, m, n = real(r, c).named("S"), u[:, None], p[None]
    rows = f"positions of shape {_words(u.axes)}"
    single = "a single position" if not axes else f"a single position, {_words(one.axes)}"
    both = f"positions m of shape {_words(m.axes)} and n of shape {_words(n.axes)}"
    if kind.defines("add"):
        yield "add(p)", rows, lambda: made.add(u), Q, True
        yield "add(p)", single, lambda: made.add(one), q, True
    for name, written in (
        ("turn(x, p)", kind.defines("turn")), ("query(q, p)", kind.defines("query")),
        ("key(k, p)", kind.defines("key")),
    ):  # fmt: skip
        if written:
            act = getattr(made, name.partition("(")[0])
            yield name, f"{_words(Q.axes)} at {rows}", partial(act, Q, u), Q, True
            yield name, f"{_words(q.axes)} at {single}", partial(act, q, one), q, True
    if kind.defines("relate"):
        queries, keys = Q[:, None], K[None]
        sides = f"q of shape {_words(queries.axes)}, k of shape {_words(keys.axes)} and {both}"
        yield "relate(q, k, m, n)", sides, lambda: made.relate(queries, keys, m, n), pair, False
    if kind.defines("bias"):
        yield "bias(m, n)", both, lambda: made.bias(m, n), pair, False
    if kind.defines("sees"):
        yield "sees(m, n)", both, lambda: made.sees(m, n), pair, False
    if kind.defines("value"):
        read = real(r, c, e).named("R")
        told = f"v of shape {_words(V[None].axes)} and {both}"
        yield "value(v, m, n)", told, lambda: made.value(V[None], m, n), read, False
    if kind.defines("scores"):
        yield "scores(Q, K, m, n)", rows, lambda: made.scores(Q, K, u, p), pair, True

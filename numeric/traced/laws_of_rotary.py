"""Laws of traced rotary code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from array_api_compat import array_namespace

from ..probes.rotary_matrices import REORDERED, order_of
from ..programs.subjects import Rotary
from .laws import VECTORS, Sides, each_alone, law

__all__: list[str] = []


def same_scores(f: Any, q: Any, k: Any, m: Any, p: Any, s: Any) -> Sides:
    """turn(q, m + s)·key(k, p + s) = turn(q, m)·key(k, p)."""
    return f.turn(q, m + s) @ f.key(k, p + s).mT, f.turn(q, m) @ f.key(k, p).mT


@law("relative", "rotary", "turn", shown=same_scores, q="real B H r D", k=VECTORS,
     m="position B r", p="position B n", s="shift")  # fmt: skip
def relative(f: Any, q: Any, k: Any, m: Any, p: Any, s: Any) -> Sides:
    """All positions moved by s give the same products, and no vector looks at another position."""
    left, right = ([side] for side in same_scores(f, q, k, m, p, s))
    for turn in (f.turn,) if f.key is f.turn else (f.turn, f.key):
        parts, wholes = each_alone(turn, [q, m], [k, p], axes=(2, 1))
        left, right = left + parts, right + wholes
    return left, right


def as_long_elsewhere(f: Any, x: Any, p: Any, o: Any, **_: Any) -> Sides:
    """|turn(x, p)|² = |turn(x, o)|², and the same of another token and head."""
    left, right = _longer_alike(f.turn(x, p), x, f.turn(x, p), x)
    return [_square(f.turn(x, p)), left], [_square(f.turn(x, o)), right]


def _longer_alike(turned: Any, x: Any, other: Any, y: Any) -> Sides:
    """|turned|²·|y|² = |x|²·|other|², each token of each head and row beside every other."""
    one = (..., None, None, None)
    a, b, c, d = (_square(v) for v in (turned, y, x, other))
    return a[one] * b[None, None, None], c[one] * d[None, None, None]


@law("norm", "rotary", "turn", shown=as_long_elsewhere, x=VECTORS, y=VECTORS, p="position B n",
     o="position B n")  # fmt: skip
def norm(f: Any, x: Any, y: Any, p: Any, o: Any) -> Sides:
    """|turn(x, p)|²·|y|² = |turn(y, o)|²·|x|², x and y at any two places, heads and rows.

    Where channels that pass keep their length beside others that all become longer, no number is
    that of all vectors; a witness is looked for with one vector.
    """
    return _longer_alike(f.turn(x, p), x, f.turn(y, o), y)


def _square(x: Any) -> Any:
    return array_namespace(x).sum(x**2, axis=-1)


def _reordered(subject: Rotary) -> str:
    """Why nothing can be turned twice: the channels come back in another order."""
    if subject.first > 0:
        return ""
    unit = torch.eye(subject.width).expand(1, subject.heads, -1, -1).contiguous()
    at = torch.zeros(1, subject.width, *[subject.axes] * bool(subject.axes), dtype=torch.int64)
    with torch.no_grad():
        zero = subject.turn(unit, at)[0].double()
    order = order_of(zero, subject.width * torch.finfo(torch.float32).eps)
    return "" if order is None else f"{REORDERED}: it is not put together with itself"


def nothing_vanishes(f: Any, x: Any, p: Any, **_: Any) -> Any:
    """turn(1, 0), where 1 has only ones: no channel becomes 0."""
    return f.turn(0 * x + 1, 0 * p)


@law("composition", "rotary", "turn", _reordered, positive=nothing_vanishes, x=VECTORS,
     y=VECTORS, m="position B n", p="position B n")  # fmt: skip
def composition(f: Any, x: Any, y: Any, m: Any, p: Any) -> Sides:
    """turn(turn(x, m), p) = turn(turn(x, m + p), 0), which leaves a common factor its square.

    At position 0 each channel is multiplied by a number: turn(x, 0)·y = turn(y, 0)·x.  Without that
    positions that are off by one would pass, for they are off by two on both sides.  That number is
    above 0: else two turns and one may both give 0.
    """
    here, there = f.turn(x, 0 * p), f.turn(y, 0 * p)
    return ([f.turn(f.turn(x, m), p), here * y], [f.turn(f.turn(x, m + p), 0 * p), there * x])


@law("linear", "rotary", "turn", x=VECTORS, y=VECTORS, a="real", p="position B n")
def linear(f: Any, x: Any, y: Any, a: Any, p: Any) -> Sides:
    """turn(a·x + y, p) = a·turn(x, p) + turn(y, p)."""
    return f.turn(a * x + y, p), a * f.turn(x, p) + f.turn(y, p)


@law("every-head-alike", "rotary", "turn", x=VECTORS, y=VECTORS, p="position B n",
     sigma="permutation H")  # fmt: skip
def every_head_alike(f: Any, x: Any, y: Any, p: Any, sigma: Any) -> Sides:
    """Heads permuted before are heads permuted after, and the first does not see the others."""
    return _heads_alike(lambda a: f.turn(a, p), x, y, sigma)


def _heads_alike(turn: Callable[[Any], Any], x: Any, y: Any, sigma: Any) -> Sides:
    plain, own = turn(x), array_namespace(x).concat((x[:, :1], y[:, 1:]), axis=1)
    return [turn(x[:, sigma]), turn(own)[:, :1]], [plain[:, sigma], plain[:, :1]]


@law("follows-its-ids", "rotary", "turn", x=VECTORS, p="position B n", o="position B n",
     sigma="permutation n", rho="permutation B")  # fmt: skip
def follows_its_ids(f: Any, x: Any, p: Any, o: Any, sigma: Any, rho: Any) -> Sides:
    """Tokens, and rows, permuted with their ids before are permuted after.

    The first row does not see the ids of the others; so no row does.
    """
    plain, own = f.turn(x, p), array_namespace(x).concat((p[:1], o[1:]), axis=0)
    moved = [f.turn(x[:, :, sigma], p[:, sigma]), f.turn(x[rho], p[rho]), f.turn(x, own)[:1]]
    return moved, [plain[:, :, sigma], plain[rho], plain[:1]]


@law("rows-of-batch-apart", "rotary", "turn", x=VECTORS, p="position B n", y="real A H n D",
      o="position A n")  # fmt: skip
def rotary_rows_apart(f: Any, x: Any, p: Any, y: Any, o: Any) -> Sides:
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.turn, [x, p], [y, o])


@law("relative", "rotary", "running", q=VECTORS, k=VECTORS, z="real B H r D")
def running_relative(f: Any, q: Any, k: Any, z: Any) -> Sides:
    """r tokens further along queries and keys have the products they have at the start."""
    return _later(f, q, z) @ _later(f, k, z).mT, f.running(q) @ f.running(k).mT


def as_long_later(f: Any, x: Any, z: Any, **_: Any) -> Sides:
    """r tokens further along vectors are as long as at the start, and all tokens are alike."""
    left, right = _longer_alike(f.running(x), x, f.running(x), x)
    return [_square(_later(f, x, z)), left], [_square(f.running(x)), right]


@law("norm", "rotary", "running", shown=as_long_later, x=VECTORS, y=VECTORS, z="real B H r D")
def running_norm(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """|x|², r tokens further along, grows as |y|² at the start, at any two places."""
    return _longer_alike(_later(f, x, z), x, f.running(y), y)


def _later(f: Any, x: Any, z: Any) -> Any:
    """Vectors turned where r others stand before them."""
    xp = array_namespace(x)
    return f.running(xp.concat((z, x), axis=2))[:, :, z.shape[2] :]


@law("linear", "rotary", "running", x=VECTORS, y=VECTORS, a="real")
def running_linear(f: Any, x: Any, y: Any, a: Any) -> Sides:
    """turn(a·x + y) = a·turn(x) + turn(y)."""
    return f.running(a * x + y), a * f.running(x) + f.running(y)


@law("every-head-alike", "rotary", "running", x=VECTORS, y=VECTORS, sigma="permutation H")
def running_heads_alike(f: Any, x: Any, y: Any, sigma: Any) -> Sides:
    """Heads permuted before are heads permuted after, and the first does not see the others."""
    return _heads_alike(f.running, x, y, sigma)


@law("rows-of-batch-apart", "rotary", "running", x=VECTORS, y="real A H n D")
def running_rows_apart(f: Any, x: Any, y: Any) -> Sides:
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.running, [x], [y])

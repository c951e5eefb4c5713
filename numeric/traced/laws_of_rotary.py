"""Laws of traced rotary code."""

from __future__ import annotations

from typing import Any

import torch
from array_api_compat import array_namespace

from ..probes.rotary_matrices import REORDERED, order_of
from ..programs.subjects import Rotary
from .laws import VECTORS, Sides, law

__all__: list[str] = []


@law("relative", "rotary", "turn", q="real B H r D", k=VECTORS, m="position B r", p="position B n",
      s="shift")  # fmt: skip
def relative(f: Any, q: Any, k: Any, m: Any, p: Any, s: Any) -> Sides:
    """turn(q, m + s)·key(k, p + s) = turn(q, m)·key(k, p)."""
    return f.turn(q, m + s) @ f.key(k, p + s).mT, f.turn(q, m) @ f.key(k, p).mT


@law("norm", "rotary", "turn", x=VECTORS, p="position B n", o="position B n")
def norm(f: Any, x: Any, p: Any, o: Any) -> Sides:
    """|turn(x, p)|² = |turn(x, o)|²."""
    xp = array_namespace(x)
    return xp.sum(f.turn(x, p) ** 2, axis=-1), xp.sum(f.turn(x, o) ** 2, axis=-1)


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


@law("composition", "rotary", "turn", _reordered, x=VECTORS, m="position B n", p="position B n")
def composition(f: Any, x: Any, m: Any, p: Any) -> Sides:
    """turn(turn(x, m), p) = turn(turn(x, m + p), 0), which leaves a common factor its square."""
    return f.turn(f.turn(x, m), p), f.turn(f.turn(x, m + p), 0 * p)


@law("linear", "rotary", "turn", x=VECTORS, y=VECTORS, a="real", p="position B n")
def linear(f: Any, x: Any, y: Any, a: Any, p: Any) -> Sides:
    """turn(a·x + y, p) = a·turn(x, p) + turn(y, p)."""
    return f.turn(a * x + y, p), a * f.turn(x, p) + f.turn(y, p)


@law("every-head-alike", "rotary", "turn", x=VECTORS, p="position B n", sigma="permutation H")
def every_head_alike(f: Any, x: Any, p: Any, sigma: Any) -> Sides:
    """Heads permuted before are heads permuted after."""
    return f.turn(x[:, sigma], p), f.turn(x, p)[:, sigma]


@law("follows-its-ids", "rotary", "turn", x=VECTORS, p="position B n", sigma="permutation n")
def follows_its_ids(f: Any, x: Any, p: Any, sigma: Any) -> Sides:
    """Tokens permuted with their ids before are permuted after."""
    return f.turn(x[:, :, sigma], p[:, sigma]), f.turn(x, p)[:, :, sigma]


@law("rows-of-batch-apart", "rotary", "turn", x=VECTORS, p="position B n", y="real A H n D",
      o="position A n")  # fmt: skip
def rotary_rows_apart(f: Any, x: Any, p: Any, y: Any, o: Any) -> Sides:
    """The first rows of a larger batch are what they are alone."""
    xp = array_namespace(x)
    both = f.turn(xp.concat((x, y), axis=0), xp.concat((p, o), axis=0))
    return both[: x.shape[0]], f.turn(x, p)


@law("relative", "rotary", "running", q=VECTORS, k=VECTORS, z="real B H r D")
def running_relative(f: Any, q: Any, k: Any, z: Any) -> Sides:
    """r tokens further along queries and keys have the products they have at the start."""
    xp = array_namespace(q)
    r = z.shape[2]
    later = [f.running(xp.concat((z, x), axis=2))[:, :, r:] for x in (q, k)]
    return later[0] @ later[1].mT, f.running(q) @ f.running(k).mT


@law("norm", "rotary", "running", x=VECTORS, z="real B H r D")
def running_norm(f: Any, x: Any, z: Any) -> Sides:
    """r tokens further along vectors are as long as at the start."""
    xp = array_namespace(x)
    later = f.running(xp.concat((z, x), axis=2))[:, :, z.shape[2] :]
    return xp.sum(later**2, axis=-1), xp.sum(f.running(x) ** 2, axis=-1)


@law("linear", "rotary", "running", x=VECTORS, y=VECTORS, a="real")
def running_linear(f: Any, x: Any, y: Any, a: Any) -> Sides:
    """turn(a·x + y) = a·turn(x) + turn(y)."""
    return f.running(a * x + y), a * f.running(x) + f.running(y)


@law("every-head-alike", "rotary", "running", x=VECTORS, sigma="permutation H")
def running_heads_alike(f: Any, x: Any, sigma: Any) -> Sides:
    """Heads permuted before are heads permuted after."""
    return f.running(x[:, sigma]), f.running(x)[:, sigma]


@law("rows-of-batch-apart", "rotary", "running", x=VECTORS, y="real A H n D")
def running_rows_apart(f: Any, x: Any, y: Any) -> Sides:
    """The first rows of a larger batch are what they are alone."""
    xp = array_namespace(x)
    return f.running(xp.concat((x, y), axis=0))[: x.shape[0]], f.running(x)

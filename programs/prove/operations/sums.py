"""Sums with readings of their own: einsum, any and all, diagonals, flex_attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import ONE, is_truth
from attnproof.symbolic.terms import postorder

from .lookups import table
from .pieces import each_repeated
from .reading import Unread, along, assume, constant, numeric, reads, whole
from .terms import axes as axes_of
from .terms import matmul, softmax


@reads("aten.einsum.default")
def einsum(equation: str, operands: Sequence[Any], *_: Any, **__: Any) -> Array:
    """Σ of products of entries, over the letters absent from the result."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    letters: list[str] = inputs.split(",")
    arrays = [numeric(x) for x in operands]
    if "..." in equation:
        letters, output = _written_out(letters, output if arrow else "...", arrays)
    if any(len(set(part)) != len(part) for part in letters):
        raise Unread(f"einsum {equation!r} with a letter twice in one array")
    if not arrow:
        flat = "".join(letters)
        dots = "".join(c for c in output if c in flat)
        output = dots + "".join(sorted(c for c in set(flat) - set(dots) if flat.count(c) == 1))
    order = output + "".join(c for c in dict.fromkeys("".join(letters)) if c not in output)
    found = as_array(1)
    for part, a in zip(letters, arrays, strict=True):
        aligned = xp.permute_dims(a, [part.index(c) for c in order if c in part])
        found = aligned[tuple(slice(None) if c in part else None for c in order)] * found
    for axis in range(len(order) - 1, len(output) - 1, -1):
        found = xp.sum(found, axis=axis)
    return found


def _written_out(letters: list[str], output: str, arrays: list[Array]) -> tuple[list[str], str]:
    """Replace ellipses by capital letters."""
    spare = [c for c in "ZYXWVUTSRQPONM" if c not in "".join(letters)]
    plain = [part.replace("...", "") for part in letters]
    counts = [a.ndim - len(part) for part, a in zip(plain, arrays, strict=True)]
    most = max((n for n, part in zip(counts, letters, strict=True) if "..." in part), default=0)
    dots = "".join(spare[:most])
    full = [
        part.replace("...", dots[most - n :] if n else "")
        for part, n in zip(letters, counts, strict=True)
    ]
    for part, a in zip(full, arrays, strict=True):
        if any(n is ONE for n in a.axes[: len(part)]) and dots:
            raise Unread("einsum that broadcasts axes of length 1")
    return full, output.replace("...", dots)


@reads("aten.any.dim", "aten.any.dims", "aten.any.default")
def some(x: Any, axes: Any = None, keepdim: bool = False) -> Array:
    """Whether some entry along the axes holds, or is nonzero: Σ [x] > 0."""
    if isinstance(axes, Sequence) and not axes:
        raise Unread("any or all over an empty list of axes")  # versions of torch differ
    a = constant(x)
    holds = a if is_truth(a.term) else ~(a == 0)
    found = xp.astype(holds, float)
    return xp.sum(found, axis=axes_of(found, axes), keepdims=keepdim) > 0


@reads("aten.all.dim", "aten.all.dims", "aten.all.default")
def all_hold(x: Any, axes: Any = None, keepdim: bool = False) -> Array:
    """Whether all entries along the axes hold, or are nonzero."""
    a = constant(x)
    return ~some(~a if is_truth(a.term) else a == 0, axes, keepdim)


@reads("aten.diagonal.default")
def diagonal(x: Any, offset: int = 0, first: int = 0, second: int = 1) -> Array:
    """The entries of a square where two axes agree, as the last axis."""
    a = numeric(x)
    i, j = first % a.ndim, second % a.ndim
    if offset or a.axes[i] is not a.axes[j]:
        raise Unread("a diagonal that is not the main one of a square")
    rest = [k for k in range(a.ndim) if k not in (i, j)]
    b = xp.permute_dims(a, [*rest, i, j])
    return table((*b.axes[:-1],), lambda *at: b[(*at, at[-1])])


@reads("flex_attention")
def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score: Callable[..., Any],
    visible: Callable[..., Any],
    scale: Any,
    settings: Mapping[str, Any],
    beside_score: Sequence[Any],
    beside_mask: Sequence[Any],
) -> list[Any]:
    """softmax of score(scale·q·k, b, h, i, j) over the keys that are visible(b, h, i, j), times V.

    A query that sees no key reads zeros, and a key head serves a group of query heads.  The lists
    of blocks that a kernel may skip are not read: they are taken to agree with the mask.  Only one
    of the settings changes more than rounding: that rows without keys are not guarded.
    """
    if settings.get("ROWS_GUARANTEED_SAFE"):
        assume("every query sees a key", "if")
    q, k, v = numeric(query), numeric(key), numeric(value)
    if q.axes[1] is not k.axes[1]:
        heads, groups = (whole(Array(a.axes[1]), "a number of heads") for a in (q, k))
        k, v = (each_repeated(x, heads // groups, 1) for x in (k, v))
    scores = matmul(q, k.mT) * numeric(scale)
    places = [along(xp.arange(as_array(n)), axis, 4) for axis, n in enumerate(scores.axes)]
    changed = xp.broadcast_to(constant(score(scores, *places, *beside_score)), scores.axes)
    seen = constant(visible(*places, *beside_mask))
    if not is_truth(seen.term) or is_truth(changed.term):
        raise Unread("a score that is not a number, or a mask that is not a truth value")
    if any(t.op in ("arange", "var") for t in postorder(seen.term)):
        assume("the blocks of a block mask are those of its function")
    shown = xp.where(xp.broadcast_to(seen, scores.axes), changed, -xp.inf)
    return [matmul(softmax(shown, -1), v), None, None]

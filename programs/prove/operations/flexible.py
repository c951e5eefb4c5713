"""flex_attention: attention with a function of each score, and a function that shows keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.scalars import is_truth
from attnproof.symbolic.terms import postorder
from attnproof.theorems.definitions.attention import softmax

from .joins import each_repeated
from .products import product
from .reading import Unread, assume, constant, numeric, reads, whole

__all__ = ["flex_attention"]


@reads("flex_attention")
def flex_attention(
    query: Any, key: Any, value: Any, score: Callable[..., Any], visible: Callable[..., Any],
    scale: Any, settings: Mapping[str, Any], beside_score: Sequence[Any],
    beside_mask: Sequence[Any],
) -> list[Any]:  # fmt: skip
    """softmax of score(scale·q·k, b, h, i, j) over the keys that are visible(b, h, i, j), times V.

    A query that sees no key reads zeros, and a key head stands for a group of query heads.  The
    lists of blocks that a kernel may skip are not read: they are taken to be those of the mask.
    Of the settings one changes more than rounding: that no row is guarded.
    """
    if settings.get("ROWS_GUARANTEED_SAFE"):
        assume("every query sees a key", "if")
    q, k, v = numeric(query), numeric(key), numeric(value)
    if q.axes[1] is not k.axes[1]:
        heads, groups = (whole(Array(a.axes[1]), "a number of heads") for a in (q, k))
        k, v = (each_repeated(x, heads // groups, 1) for x in (k, v))
    scores = product(q, k.mT) * numeric(scale)
    places = [
        xp.arange(as_array(n))[tuple(slice(None) if k == axis else None for k in range(4))]
        for axis, n in enumerate(scores.axes)
    ]
    changed = xp.broadcast_to(constant(score(scores, *places, *beside_score)), scores.axes)
    seen = constant(visible(*places, *beside_mask))
    if not is_truth(seen.term) or is_truth(changed.term):
        raise Unread("a score that is no number, or a mask that is no truth value")
    if any(t.op in ("arange", "var") for t in postorder(seen.term)):
        assume("the blocks of a block mask are those of its function")
    shown = xp.where(xp.broadcast_to(seen, scores.axes), changed, -xp.inf)
    return [product(as_array(softmax(shown)), v), None, None]

"""Laws of what code does with rotated keys: rotates them once, moves, caches and converts them.

key(x, p) rotates keys x at positions p, as rotate(x, p) does queries; ``rotary.py`` has the laws of
these two themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .law import VECTORS, Inputs, Law, Sides, shifted

_law = partial(Law, kinds="rotary", group="structure")
ROTATED_ONCE = _law(
    "rotated-once",
    says="queries and keys (and values, if they are rotated) are each rotated exactly once",
)
SHIFT_OF_KEYS = _law(
    "shift-of-cached-keys", says="a rotated key shifted by s is the key rotated at its position + s"
)
CACHE = _law(
    "cache-keeps-its-positions",
    says="every key in the cache is the raw key rotated at its recorded position",
)
CONVERSION = _law(
    "conversion-keeps-scores",
    says="projections converted to another layout give the same scores in that layout",
)


@ROTATED_ONCE.formula(
    "rotary",
    "all_three",
    q=VECTORS,
    k=VECTORS,
    v=VECTORS,
    p="position B n",
    names=(
        ("queries", "queries rotated once"),
        ("keys", "keys rotated once"),
        ("values", "values as they are meant to be"),
    ),
    inputs=(Inputs(at={"p": (0, 1, 5)}, lengths={"B": 1}),),
)
def rotated_once(f: Any, q: Any, k: Any, v: Any, p: Any) -> Sides:
    """all_three(q, k, v, p) is rotate(q, p), key(k, p), and v or key(v, p)."""
    wanted = f.key(v, p) if f.values_rotate else v
    return list(f.all_three(q, k, v, p)), [f.rotate(q, p), f.key(k, p), wanted]


@SHIFT_OF_KEYS.formula(
    "rotary",
    "shift",
    names=(("rotated, then shifted by s", "rotated at its position + s"),),
    k=VECTORS,
    p="position B n",
    s="step",
    inputs=tuple(
        Inputs(units=True, at={"p": p, "s": s})
        for p in ((0, 1), (5, 120))
        for s in (1, 7, -1, -3, 100, -90)
    ),
)
def shift_of_cached_keys(f: Any, k: Any, p: Any, s: Any) -> Sides:
    """shift(key(k, p), s) = key(k, p + s)."""
    there, moved = shifted(f.key, lambda key: f.shift(key, s), k, p, s)
    return moved, there


@CACHE.formula(
    "rotary",
    "evict",
    names=(("keys in the cache", "raw keys rotated at their positions"),),
    k="real B H c D",
    inputs=tuple(Inputs(lengths={"B": 1, "c": c}) for c in (1, 2, 3, 5, 9, 17, 40, 129, 300)),
)
def cache_keeps_its_positions(f: Any, k: Any) -> Sides:
    """kept = key(raw, p) for the keys in the cache, the raw keys and their positions p."""
    kept, raw, p = f.evict(k)
    return kept, f.key(raw, p)


@CONVERSION.formula(
    "rotary",
    "convert",
    names=(("scores before", "scores after conversion"),),
    x="real B n E",
    queries="real F E",
    keys="real F E",
    p="position B n",
    inputs=(Inputs(at={"p": (0, 1, 4)}, lengths={"B": 1, "E": "F"}),),
)
def conversion_keeps_scores(f: Any, x: Any, queries: Any, keys: Any, p: Any) -> Sides:
    """Projections and converted projections give the same scores, each rotated in its layout."""
    rotate, key = f.converted
    other, others = f.convert(queries, keys, f.heads)
    return (
        _scores(f, f.rotate, f.key, x, queries, keys, p),
        _scores(f, rotate, key, x, other, others, p),
    )


def _scores(
    f: Any,
    rotate: Callable[..., Any],
    key: Callable[..., Any],
    x: Any,
    queries: Any,
    keys: Any,
    p: Any,
) -> Any:
    xp = array_namespace(x)
    parts = (xp.reshape(x @ w.mT, (*x.shape[:2], f.heads, -1)) for w in (queries, keys))
    q, k = (xp.permute_dims(part, (0, 2, 1, 3)) for part in parts)
    return rotate(q, p) @ key(k, p).mT

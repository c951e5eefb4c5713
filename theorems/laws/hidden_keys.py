"""The law of hidden keys: other numbers in keys, values and tokens that a mask hides do nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from array_api_compat import array_namespace

from .given_masks import (
    KEPT,
    ONE,
    SQUARE_AND_ONE,
    USUAL,
    own_row,
    scattered_masks,
    some_queries,
    usual_masks,
)
from .law import KEYS, QKV, TOKENS, Inputs, Law, Sides, zero_of_each

HIDDEN = Law(
    "hidden-keys-do-nothing",
    "attention",
    "masks",
    "hidden keys have no influence, however large their entries (inf and NaN are reported)",
)
FINITE = "the hidden numbers are finite"
SHOWS_FAINT_WEIGHTS = 1e20  # times e^-50, as under a soft cap; not times e^-100, a usual fill


@HIDDEN.formula(
    "attention",
    "hide",
    names=(("padded", "the same, other tokens in the padding"),),
    limits=FINITE,
    x=TOKENS,
    y=TOKENS,
    keep="padding B n",
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n}, scale={"y": y}, left=left)
        for b, n in ((1, 3), (3, 6), (5, 5), (2, "H"))
        for left in (False, True)
        for y in (1.0, 100.0)
    ),
)
def hidden_tokens(f: Any, x: Any, y: Any, keep: Any) -> Sides:
    """Other tokens in the padding of a row do not change the outputs of tokens that count."""
    xp, kept = array_namespace(x), keep[..., None]
    one, other = f.hide(x, keep), f.hide(xp.where(kept, x, y), keep)
    zero = zero_of_each(x)  # the output of padding itself may be NaN, as it is not used
    return xp.where(kept, one, zero), xp.where(kept, other, zero)


@HIDDEN.formula(
    "attention",
    "hide",
    names=(("padded", "the same, other tokens in the padding"),),
    floats=True,
    x=TOKENS,
    y=TOKENS,
    keep="padding B n",
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n}, left=left)
        for b, n in ((1, 5), (3, 6))
        for left in (False, True)
    ),
)
def tokens_hidden_from_few(f: Any, x: Any, y: Any, keep: Any) -> Sides:
    """The same if all but the first, or the last, one or two tokens are padding."""
    backwards = x.shape[1] - 1 - array_namespace(x).arange(x.shape[1])
    return hidden_tokens(f, x, y, ~keep[:, backwards])


@HIDDEN.formula(
    "attention",
    "reading",
    names=(("hidden tokens of a context", "the same, other numbers in them"),),
    unsaid="infinite numbers and NaN",
    x=TOKENS,
    y="real B m F",
    z="real B m F",
    keep="keep B m",
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n, "m": m}, scale={"z": z})
        for b, n, m in ((1, 2, 3), (3, 6, 4), (5, 5, 5), (2, 3, 6))
        for z in (1.0, 100.0)
    ),
)
def hidden_context(f: Any, x: Any, y: Any, z: Any, keep: Any) -> Sides:
    """Other values of the hidden tokens of a context do not change the output."""
    changed = array_namespace(x).where(keep[..., None], y, z)
    return f.reading(x, y, keep), f.reading(x, changed, keep)


@HIDDEN.formula(
    "attention",
    "attend_masked",
    names=(("hidden keys", "the same, other numbers in them"),),
    sizes=SQUARE_AND_ONE,
    unsaid="infinite numbers and NaN",
    **QKV,
    k2=KEYS,
    v2=KEYS,
    keep="keep B n",
    inputs=tuple(
        Inputs(lengths=dict(zip("Brn", sizes, strict=True)), scale={"k2": key, "v2": value})
        for sizes in ((1, 3, 3), (3, 6, 6), (3, 1, 4), (2, "H", "H"), (5, 5, 5))
        for key, value in ((1.0, 1.0), (100.0, 100.0), (1e4, 1e4), (1.0, SHOWS_FAINT_WEIGHTS))
    ),
)
def hidden_keys(f: Any, q: Any, k: Any, v: Any, k2: Any, v2: Any, keep: Any) -> Sides:
    """Other numbers in keys that a mask hides from a query, or in their values, do not affect it.

    If the mask is not by key alone, different keys are hidden from each query, which detects code
    that uses the mask of another query.  For each query, the numbers hidden from it are changed in
    a separate copy of the batch.
    """
    xp, r, n = array_namespace(q), q.shape[2], k.shape[2]
    query, key, turn = xp.arange(r)[:, None], xp.arange(n)[None, :], 0 if f.by_key else 1
    turned = keep[:, (key - turn * query) % n]  # B r n
    masks = [(turned[:, None], 0), *scattered_masks(f, q, k, keep)[1:]]
    return _changed(q, (k, v), (k2, v2), product(f.attend_masked, masks))


@HIDDEN.formula(
    "attention",
    "attend_masked",
    names=(("hidden keys", "the same, other numbers in them"),),
    **KEPT,
    k2=KEYS,
    v2=KEYS,
    **USUAL,
)
def usually_hidden_keys(f: Any, q: Any, k: Any, v: Any, keep: Any, k2: Any, v2: Any) -> Sides:
    """The same for masks as most callers pass them."""
    masks = usual_masks(f, q, k, keep)
    return _changed(q, (k, v), (k2, v2), product(f.attend_masked, masks))


def _changed(q: Any, own: Any, others: Any, calls: Iterable[tuple[Any, tuple[Any, int]]]) -> Sides:
    """Return the outputs of some queries, and those with other keys and values hidden from each."""
    xp, (rows, _, r) = array_namespace(q), q.shape[:3]
    left: list[Any] = []
    right: list[Any] = []
    for call, (mask, first) in calls:
        some = some_queries(r)[first:]

        def each(x: Any, many: int = len(some)) -> Any:
            return xp.concat([x] * many, axis=0)

        other = [
            xp.concat([xp.where(mask[:, :, i, :, None], x, y) for i in some], axis=0)
            for x, y in zip(own, others, strict=True)
        ]
        found, plain = call(each(q), *other, each(mask)), call(q, *own, mask)
        left.append(xp.stack([plain[:, :, i] for i in some], axis=2))
        alone = [found[place * rows : (place + 1) * rows, :, i] for place, i in enumerate(some)]
        right.append(xp.stack(alone, axis=2))
    return left, right


@HIDDEN.formula(
    "attention",
    "attend_under",
    names=(("hidden keys", "the same, other numbers in them"),),
    limits=FINITE,
    k2=KEYS,
    v2=KEYS,
    seen="truth B r n",
    **ONE,
)
def hidden_from_one(f: Any, q: Any, k: Any, v: Any, k2: Any, v2: Any, seen: Any, i: Any) -> Sides:
    """The same for any one query, among any number of them."""
    xp, own = array_namespace(q), own_row(f, seen, i)
    other = f.attend_under(q, xp.where(own, k, k2), xp.where(own, v, v2), seen)
    return f.attend_under(q, k, v, seen)[:, :, i], other[:, :, i]


LAWS = (HIDDEN,)

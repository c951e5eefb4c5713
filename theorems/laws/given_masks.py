"""Laws of attention under a mask given by the caller, and of rows with several documents."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise, product
from typing import Any

from array_api_compat import array_namespace

from .law import ATTENTION_INPUTS, KEYS, QKV, QUERIES, TOKENS, Inputs, Law, Sides, zero_of_each
from .masks import FAR, looked_at

TRUE_MEANS = Law(
    "true-means-visible",
    "attention mask",
    "masks",
    "a boolean mask hides exactly the keys that it marks as hidden",
)
_law = partial(Law, kinds="attention", group="masks")
HIDDEN_ROWS = _law(
    "hidden-rows",
    says="the output of a query that sees no key is as declared, and NaN only if so declared",
)
DOCUMENTS = _law("documents-apart", says="documents packed into one row do not affect each other")


@TRUE_MEANS.formula(
    "mask",
    "masked",
    of_sizes=True,
    x="real n",
    y="real n",
    names=(("whether each query sees its own key", "that it does"),),
    inputs=tuple(Inputs(lengths={"n": n}) for n in range(2, 7)),
)
def own_key(f: Any, x: Any, y: Any) -> Sides:
    """A query sees its own key, which a mask with inverted meaning hides."""
    xp, visible = array_namespace(x), f.visible(x, y)
    own = xp.arange(x.shape[0])[:, None] == xp.arange(x.shape[0])[None, :]
    one = 0 * visible + 1
    return xp.where(own, visible, one), one


def _mask(f: Any, q: Any, k: Any, keep: Any) -> Any:
    """Return truth values (B, 1, r, n): True for kept keys and for each query's own key."""
    xp, rows = array_namespace(q), keep[:, None, None, :]
    if not f.by_key:
        rows = rows | (xp.arange(q.shape[2])[:, None] == xp.arange(k.shape[2])[None, :])
    return xp.broadcast_to(rows, (q.shape[0], 1, q.shape[2], k.shape[2]))


@TRUE_MEANS.formula(
    "mask",
    "padded",
    of_sizes=True,
    floats=True,
    x="real B",
    y="real n",
    names=(
        ("whether the last token of a padded row sees a key", "whether it does in the row alone"),
    ),
    inputs=tuple(Inputs(lengths={"B": b, "n": n}) for b, n in ((1, 3), (2, 2), (3, 4), (6, 5))),
)
def of_its_row(f: Any, x: Any, y: Any) -> Sides:
    """The last token of a padded row sees the same keys as in the row alone, and no padding."""
    padded, alone = f.padded(x, y)
    return padded, alone


Masks = list[tuple[Any, int]]
"""Masks, each with the first query that is compared under it.

That is query 1 where the first key is hidden: code that hides later keys itself leaves query 0
without a key.
"""


def scattered_masks(f: Any, q: Any, k: Any, keep: Any) -> Masks:
    """Return that mask, and one under which queries do not see their own key, nor the first one.

    Code that sees the key before its own is left with a key in every row.
    """
    xp, (r, n) = array_namespace(q), (q.shape[2], k.shape[2])
    query, key, first = xp.arange(r)[:, None], xp.arange(n)[None, :], _mask(f, q, k, keep)
    if n <= 2 or (f.by_key and r == 1):
        return [(first, 0)]
    own = (key == query + max(0, n - r)) & (query > 0)
    hidden = key + 0 * query == 0 if f.by_key else own | ((key == 0) & (query > 1))
    return [(first, 0), (xp.broadcast_to(~hidden[None, None], first.shape), int(f.by_key))]


def usual_masks(f: Any, q: Any, k: Any, keep: Any) -> Masks:
    """Return masks as most callers pass them: padding at the end, at the start, causal, a band."""
    xp, (b, r, n) = array_namespace(q), (q.shape[0], q.shape[2], k.shape[2])
    query, key = xp.arange(r)[:, None], xp.arange(n)[None, :]
    every = key + query >= 0
    masks = [(every & (key < n - 1), 0)] if n > 1 else []
    if not f.by_key:
        masks += [(every & (key > 0), 1)] if r > 1 else []
        masks += [(every & keep[:, None, None, :], 0), (key <= query + max(0, n - r), 0)]
        masks += [((key <= query) & (key > query - 2), 0)] if r == n else []
    return [(xp.broadcast_to(mask, (b, 1, r, n)), first) for mask, first in masks]


ALL_TRUE = (("the output under a mask that is all True", "the output without a mask"),)
KEPT: dict[str, Any] = {**QKV, "keep": "keep B n"}


@TRUE_MEANS.formula("attention", "attend_keeping", names=ALL_TRUE, floats=True, **QKV)
def all_true(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """A mask that is all True does not change the output."""
    xp, shape = array_namespace(q), (q.shape[0], 1, q.shape[2], k.shape[2])
    every = xp.broadcast_to(xp.arange(k.shape[2]) >= 0, shape)
    return f.attend_keeping(q, k, v, every), f.attend(q, k, v)


@TRUE_MEANS.formula(
    "attention",
    "weighs",
    floats=True,
    q=QUERIES,
    k=KEYS,
    keep="keep B n",
    names=(("whether a weight is not 0 under the mask", "whether the mask is True there"),),
)
def true_is_seen(f: Any, q: Any, k: Any, keep: Any) -> Sides:
    """Under a mask, the keys with weight are those with weight without it where it is True."""
    q = q[:, :, -k.shape[2] :]  # if causal, queries before all keys may read the mean of all
    where, plain = array_namespace(q).where, f.weighs(q, k)
    masks = scattered_masks(f, q, k, keep)
    left = [f.weighs(q, k, seen)[:, :, at:] for seen, at in masks]
    return left, [where(seen, plain, 0 * plain)[:, :, at:] for seen, at in masks]


QUERIES_COUNT: dict[str, Any] = {
    "q": QUERIES,
    "k": KEYS,
    "v": KEYS,
    "keep": "keep B r",
    "inputs": tuple(
        Inputs(lengths={"B": b, "r": r, "n": n})
        for b, r, n in ((1, 3, 3), (3, 6, 6), (2, 5, 4), (2, "H", "H"))
    ),
}


@TRUE_MEANS.formula(
    "attention",
    "counting",
    floats=True,
    names=(("queries that count, beside others that do not", "the same without a mask"),),
    **QUERIES_COUNT,
)
def queries_that_count(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """Queries that count under a mask of queries have the same outputs as without it."""
    xp, zero, own = array_namespace(q), 0 * q, keep[:, None, :, None]
    return (xp.where(own, f.counting(q, k, v, keep), zero), xp.where(own, f.attend(q, k, v), zero))


@TRUE_MEANS.formula(
    "attention",
    "heeds",
    floats=True,
    names=(("whether a query reads what it reads without the mask", "whether it counts"),),
    **QUERIES_COUNT,
)
def queries_that_do_not(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """Queries that do not count under a mask of queries have other outputs than without it."""
    xp, same = array_namespace(q), f.heeds(q, k, v, keep)
    return xp.where(keep, 0 * same + 1, same), xp.where(keep, 0 * same + 1, 0 * same)


@TRUE_MEANS.formula("attention", "hide", names=ALL_TRUE, floats=True, x=TOKENS)
def all_count(f: Any, x: Any) -> Sides:
    """A mask of tokens that is all True does not change the output of the layer."""
    xp = array_namespace(x)
    return f.hide(x, xp.broadcast_to(xp.arange(x.shape[1]) >= 0, x.shape[:2])), f.layer(x)


ADDED = (
    (
        "the output under the mask, times what it leaves of the weights",
        "values times e to the mask, weighted without it",
    ),
)
SQUARE_AND_ONE: tuple[dict[str, int], ...] = ({"r": 5, "n": 5}, {"r": 1})  # as in decoding


USUAL: dict[str, Any] = {
    "floats": True,
    "inputs": tuple(
        Inputs(lengths=dict(zip("Brn", sizes, strict=True)), scale={"k2": 100.0, "v2": 100.0})
        for sizes in ((1, 3, 3), (3, 4, 4), (2, 2, 5))
    ),
}


@TRUE_MEANS.formula(
    "attention",
    "attend_keeping",
    names=ADDED,
    sizes=SQUARE_AND_ONE,
    inputs=ATTENTION_INPUTS,
    **KEPT,
)
def true_is_left(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same for truth values, with the factor 1 where they are True and 0 elsewhere."""
    return weights_left(q, k, v, f.attend_keeping, scattered_masks(f, q, k, keep))


@TRUE_MEANS.formula("attention", "attend_keeping", names=ADDED, **USUAL, **KEPT)
def usual_true_is_left(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same for masks as most callers pass them."""
    return weights_left(q, k, v, f.attend_keeping, usual_masks(f, q, k, keep))


def weights_left(q: Any, k: Any, v: Any, under: Any, masks: Masks) -> Sides:
    """Return both sides for attention under truth values, compared with a mask that is all True.

    Without any mask, code may behave differently.
    """
    xp, left, right = array_namespace(q), [], []
    for seen, at in masks:
        every = xp.broadcast_to(xp.arange(k.shape[2]) >= 0, seen.shape)
        factor = xp.where(seen, 1, 0 * q[:, :1, :, :1])
        plain, found = partial(under, q, k, seen=every), under(q, k, v, seen)
        here, there = multiplied(xp, v, factor, plain, found, at)
        left.append(here)
        right.append(there)
    return left, right


def some_queries(many: int) -> list[int]:
    """Return the queries that are examined one by one: of many, the first, middle and last."""
    return [*range(many)] if many <= FAR else [0, many // 2, many - 1]


def multiplied(
    xp: Any, v: Any, factor: Any, plain: Any, found: Any, first: int = 0, *, sinks: bool = True
) -> Sides:
    """Return both sides for weights multiplied by ``factor`` (B, 1, r, n) and normalised again.

    They are compared from the ``first`` query on.  ``sinks``: some weight may fall on no key, and
    is unaffected by masks.
    """
    one = 0 * v + 1
    sink = 1 - plain(v=one) if sinks else 0 * found
    left, right = [], []
    for i in some_queries(found.shape[2])[first:]:
        own = factor[:, :, i, :, None] * one
        total = plain(v=own)[:, :, i] + sink[:, :, i]
        left.append(found[:, :, i] * total)
        right.append(plain(v=own * v)[:, :, i])
    return xp.stack(left, axis=2), xp.stack(right, axis=2)


OF_HEAD = (("a head under a mask with a part for each", "the same head, all under its part"),)
FEW = tuple(Inputs(lengths={"B": b, "r": n, "n": n}) for b, n in ((1, 3), (3, 4)))


def of_each_head(call: Any, q: Any, k: Any, v: Any, mask: Any) -> Sides:
    """A head depends on its own part of a mask (B, H, r, n): the first, middle and last heads."""
    whole, heads = call(q, k, v, mask), q.shape[1]
    left: list[Any] = []
    right: list[Any] = []
    for head in sorted({0, heads // 2, heads - 1}) if heads > 1 else ():
        own = slice(head, head + 1)
        left.append(whole[:, own])
        right.append(call(q, k, v, mask[:, own])[:, own])
    return left, right


@TRUE_MEANS.formula("attention", "keeping_by_head", names=OF_HEAD, floats=True, inputs=FEW, **KEPT)
def heads_keep(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """Under a mask with a part for each head, each head hides the keys of its own part."""
    xp, (b, heads, r, _), n = array_namespace(q), q.shape, k.shape[2]
    head, key = xp.arange(heads)[:, None, None], xp.arange(n)
    shown = keep[:, None, None, :] & ((key + head) % 2 == 0) | (key == 0)
    return of_each_head(f.keeping_by_head, q, k, v, xp.broadcast_to(shown, (b, heads, r, n)))


ONE: dict[str, Any] = {**QKV, "i": "index r"}


def own_row(f: Any, mask: Any, i: Any) -> Any:
    """Return row i (B, 1, n, 1) of a mask (B, r, n); row 0 if the code's mask is by key."""
    return mask[:, 0 if f.by_key else i][:, None, :, None]


@HIDDEN_ROWS.formula(
    "attention",
    "attend_blinded",
    floats=True,
    **KEPT,
    names=(
        ("what a query that sees no key reads", "what it is to read"),
        ("what the other queries read", "the same where every query sees a key"),
    ),
    inputs=tuple(Inputs(lengths={"B": b, "r": n, "n": n}) for b, n in ((1, 3), (3, 6), (2, "H"))),
)
def hidden_rows(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """A query without keys reads what is declared, or any numbers; the others are unaffected."""
    xp, zero, due = array_namespace(q), 0 * q, _of_no_key(f, array_namespace(q), q, v)
    batch, query = xp.arange(q.shape[0])[:, None, None, None], xp.arange(q.shape[2])[:, None]
    blind = (batch == 0) & ((query == 1) | (query >= 0 if f.by_key else query < 0))
    left: list[Any] = []
    right: list[Any] = []
    for call, (mask, first) in product(f.attend_blinded, scattered_masks(f, q, k, keep)):
        found, left_out = call(q, k, v, mask & ~blind), blind | (query < first)
        any_number = 0 * found if f.hidden_row == "any" else found
        left += [xp.where(blind, any_number, zero), xp.where(left_out, zero, found)]
        right += [xp.where(blind, due, zero), xp.where(left_out, zero, call(q, k, v, mask))]
    return left, right


@HIDDEN_ROWS.formula(
    "attention",
    "hide",
    floats=True,
    x=TOKENS,
    keep="padding B n",
    names=(
        ("a row of padding alone, times 0", "0, as of any numbers"),
        ("what the other rows give", "the same beside a row that is not"),
    ),
    inputs=tuple(Inputs(lengths={"B": b, "n": n}) for b, n in ((2, 3), (3, 6), (2, "H"))),
)
def rows_of_padding(f: Any, x: Any, keep: Any) -> Sides:
    """A row in which no token counts gives any numbers but NaN; the other rows are unaffected."""
    xp = array_namespace(x)
    blind = xp.arange(x.shape[0])[:, None] == 0
    found, beside = f.hide(x, keep & ~blind), f.hide(x, keep)
    shown, zero = keep & ~blind, zero_of_each(x)
    left = [xp.where(blind[..., None], 0 * found, zero), xp.where(shown[..., None], found, zero)]
    return left, [0 * x, xp.where(shown[..., None], beside, zero)]


def _of_no_key(f: Any, xp: Any, q: Any, v: Any) -> Any:
    """Return the declared output of a query that sees no key."""
    if f.hidden_row != "mean":
        return 0 * q + (math.nan if f.hidden_row == "nan" else 0)
    means = xp.mean(v, axis=2)
    heads, groups = q.shape[1], v.shape[1]
    own = xp.stack([means[:, head * groups // heads] for head in range(heads)], axis=1)
    return own[:, :, None] + 0 * q


@DOCUMENTS.formula(
    "attention",
    "documents",
    unsaid="documents of other lengths",
    x="real B n E",
    names=(("a document in its row", "the document alone"),),
    inputs=tuple(Inputs(lengths={"B": b, "n": n}) for b, n in ((1, 2), (1, 3), (3, 6), (2, 5))),
)
def documents_apart(f: Any, x: Any) -> Sides:
    """Each document in a row gives its output alone, with ids that restart at 0.

    Rows are cut in two, each at another place than the row before, and in three.
    """
    xp, (rows, n) = array_namespace(x), x.shape[:2]
    left: list[Any] = []
    right: list[Any] = []
    ways: list[list[tuple[int, ...]]] = [
        [((row + cut) % (n - 1) + 1,) for row in range(rows)] for cut in looked_at(n - 1)
    ]
    ways += [[(n - 2, n - 1)] * rows] if n > 2 else []
    for cuts in ways:
        parts = [list(pairwise((0, *row, n))) for row in cuts]
        ids = [xp.concat([xp.arange(end - start) for start, end in row], axis=0) for row in parts]
        packed = f.documents(x, xp.stack(ids, axis=0))
        for row, own in enumerate(parts):
            for start, end in own:
                alone = xp.stack([xp.arange(end - start)], axis=0)
                left.append(packed[row : row + 1, start:end])
                right.append(f.documents(x[row : row + 1, start:end], alone))
    return left, right


LAWS = (TRUE_MEANS, HIDDEN_ROWS, DOCUMENTS)

"""Laws of masks, and of attention under one: which keys a query sees."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from array_api_compat import array_namespace

from .inputs import Inputs
from .law import TOKENS, Law, Sides

__all__ = ["LAWS"]

QUERIES, KEYS = "real B H r D", "real B G n D"

CAUSAL = Law(
    "causal",
    "attention mask layer",
    "masks",
    "no output depends on a later token, by value and by gradient",
    always=False,
)
PAST = Law(
    "past-is-used",
    "attention mask",
    "masks",
    "every earlier token that should be seen has an influence",
    always=False,
)
ALIGNMENT = Law(
    "alignment",
    "attention mask",
    "masks",
    "with fewer queries than keys the last query sees all that the declaration says",
)
WINDOW = Law(
    "window-as-declared",
    "attention mask",
    "masks",
    "a query sees exactly as many keys as the window declares",
    always=False,
)
TRUE_MEANS = Law(
    "true-means-visible",
    "attention mask",
    "masks",
    "a mask of truth values hides what it says it hides",
)
HIDDEN = Law(
    "hidden-keys-do-nothing",
    "attention",
    "masks",
    "keys that are hidden have no influence, however large the numbers in them (inf "
    "and NaN are told)",
)
DOCUMENTS = Law(
    "documents-apart",
    "attention",
    "masks",
    "documents packed into one row do not see each other",
)

LEFT_OUT = (("the first outputs", "the same, later tokens left out"),)
CHANGED = (("the first outputs", "the same, later tokens changed"),)
PART = "later tokens may be left out"


@CAUSAL.of("attention", "layer", names=LEFT_OUT, sizes=({"n": 1},), x=TOKENS, y="real B r E")
def causal_layer(f: Any, x: Any, y: Any) -> Sides:
    """Tokens that come later change nothing of what came before."""
    return _first(f.layer, x, y), f.layer(x)


def _first(call: Any, x: Any, later: Any) -> Any:
    return call(array_namespace(x).concat((x, later), axis=1))[:, : x.shape[1]]


@CAUSAL.of(
    "attention", "layer", names=CHANGED, sizes=({"n": 1},), unsaid=PART, x=TOKENS, y="real B r E",
    z="real B r E",
)  # fmt: skip
def causal_layer_changed(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """Other tokens later change nothing of what came before."""
    return _first(f.layer, x, y), _first(f.layer, x, z)


@CAUSAL.of(
    "layer", "call", names=LEFT_OUT, sizes=({"n": 1},), x=TOKENS, y="real B r E",
)  # fmt: skip
def causal_call(f: Any, x: Any, y: Any) -> Sides:
    """Tokens that come later change nothing of what came before."""
    return _first(f.call, x, y), f.call(x)


@CAUSAL.of(
    "layer", "call", names=CHANGED, sizes=({"n": 1},), unsaid=PART, x=TOKENS, y="real B r E",
    z="real B r E",
)  # fmt: skip
def causal_call_changed(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """Other tokens later change nothing of what came before."""
    return _first(f.call, x, y), _first(f.call, x, z)


SQUARE: dict[str, Any] = {
    "q": "real B H n D", "k": KEYS, "v": KEYS, "q2": "real B H m D", "k2": "real B G m D",
    "v2": "real B G m D",
}  # fmt: skip


@CAUSAL.of("attention", "attend", names=LEFT_OUT, sizes=({"n": 1},), **SQUARE)
def causal_attend(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """Keys and values that come later change nothing of what came before."""
    xp = array_namespace(q)
    n = q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[:, :, :n], f.attend(q, k, v)


@CAUSAL.of(
    "attention", "attend", names=CHANGED, sizes=({"n": 1},), unsaid=PART, k3="real B G m D",
    v3="real B G m D", **SQUARE,
)  # fmt: skip
def causal_attend_changed(
    f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any, k3: Any, v3: Any
) -> Sides:
    """Other keys and values later change nothing of what came before."""
    xp, n = array_namespace(q), q.shape[2]
    whole = xp.concat((q, q2), axis=2)
    one, other = (
        f.attend(whole, xp.concat((k, a), axis=2), xp.concat((v, b), axis=2))
        for a, b in ((k2, v2), (k3, v3))
    )
    return one[:, :, :n], other[:, :, :n]


def _places(f: Any, xp: Any, queries: int, keys: int) -> Any:
    """Whether a query sees a key by the declaration, (queries, keys); None where it sees all."""
    ahead = xp.arange(keys)[None, :] - xp.arange(queries)[:, None]
    last = keys - queries if f.at_end else 0
    if f.past:
        past = ahead <= last
        return past & (ahead > last - f.window) if f.window else past
    return (ahead > last - f.window) & (ahead < last + f.window) if f.window else None


def _seen(f: Any, x: Any, y: Any) -> Sides:
    """What a mask shows as 1 and hides as 0, and the same as declared."""
    xp, visible = array_namespace(x), f.visible(x, y)
    declared = _places(f, xp, x.shape[0], y.shape[0])
    one = 0 * visible + 1
    return visible, one if declared is None else xp.where(declared, one, 0 * one)


SEEN = (("what the mask shows", "what is declared"),)
SQUARES = tuple(Inputs(lengths={"n": n}) for n in (2, 3, 4, 5, 6, 8, 12, 33, 130, "W"))


@CAUSAL.of(
    "mask", "masked", of_sizes=True, x="real r", y="real n",
    names=(("the keys that the mask shows", "those of them that are not later"),),
)  # fmt: skip
def causal_mask(f: Any, x: Any, y: Any) -> Sides:
    """No query sees a key after it; the last query stands at the last key, or the first."""
    xp, visible = array_namespace(x), f.visible(x, y)
    ahead = xp.arange(y.shape[0])[None, :] - xp.arange(x.shape[0])[:, None]
    past = ahead <= (y.shape[0] - x.shape[0] if f.at_end else 0)
    return visible, xp.where(past, 1, 0 * visible) * visible


@PAST.of(
    "mask", "masked", of_sizes=True, x="real r", y="real n",
    names=(("the keys that the mask shows of those declared", "those declared"),),
)  # fmt: skip
def past_in_mask(f: Any, x: Any, y: Any) -> Sides:
    """Every key that is declared visible is visible."""
    visible, declared = _seen(f, x, y)
    return declared * visible, declared


@WINDOW.of("mask", "masked", of_sizes=True, x="real n", y="real n", names=SEEN, inputs=SQUARES)
def window_of_mask(f: Any, x: Any, y: Any) -> Sides:
    """Of as many queries as keys each sees what the window declares, and nothing else."""
    return _seen(f, x, y)


@ALIGNMENT.of(
    "mask", "masked", of_sizes=True, x="real r", y="real n", names=SEEN,
    inputs=tuple(Inputs(lengths={"r": r, "n": n}) for r, n in ((1, 2), (1, 5), (2, 5), (3, 4))),
)  # fmt: skip
def alignment_of_mask(f: Any, x: Any, y: Any) -> Sides:
    """With fewer queries than keys the mask shows what is declared."""
    return _seen(f, x, y)


@TRUE_MEANS.of(
    "mask", "masked", of_sizes=True, x="real n", y="real n", inputs=SQUARES[:5],
    names=(("whether each query sees its own key", "that it does"),),
)  # fmt: skip
def own_key(f: Any, x: Any, y: Any) -> Sides:
    """A query sees its own key: a mask that is read the other way round hides it."""
    xp, visible = array_namespace(x), f.visible(x, y)
    own = xp.arange(x.shape[0])[:, None] == xp.arange(x.shape[0])[None, :]
    one = 0 * visible + 1
    return xp.where(own, visible, one), one


@ALIGNMENT.of(
    "attention", "attend", names=(("the last queries alone", "the last of all"),),
    sizes=({"n": 1, "m": 4},), unsaid="what the last of as many queries as keys sees", **SQUARE,
)  # fmt: skip
def alignment(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The last queries alone read what they read after the others."""
    xp = array_namespace(q)
    before, keys, values = (xp.concat(pair, axis=2) for pair in ((q2, q), (k2, k), (v2, v)))
    return f.attend(q, keys, values), f.attend(before, keys, values)[:, :, q2.shape[2] :]


@HIDDEN.of(
    "attention", "hide", names=(("padded", "the same, other tokens in the padding"),),
    unsaid="infinite numbers and NaN", x=TOKENS, y=TOKENS, keep="padding B n",
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n}, scale={"y": y}, left=left)
        for b, n in ((1, 3), (3, 6), (5, 5), (2, "H")) for left in (False, True)
        for y in (1.0, 100.0)
    ),
)  # fmt: skip
def hidden_tokens(f: Any, x: Any, y: Any, keep: Any) -> Sides:
    """Other tokens where a row is padded change nothing of those that count."""
    xp, kept = array_namespace(x), keep[..., None]
    one, other = f.hide(x, keep), f.hide(xp.where(kept, x, y), keep)
    return xp.where(kept, one, 0 * one), xp.where(kept, other, 0 * one)


@HIDDEN.of(
    "attention", "attend_masked", names=(("hidden keys", "the same, other numbers in them"),),
    sizes=({"r": 5, "n": 5},), unsaid="infinite numbers and NaN", q=QUERIES, k=KEYS, v=KEYS,
    k2=KEYS, v2=KEYS, keep="keep B n",
    inputs=tuple(
        Inputs(lengths=dict(zip("Brn", sizes, strict=True)), scale={"k2": large, "v2": large})
        for sizes in ((1, 3, 3), (3, 6, 6), (2, "H", "H"), (5, 5, 5))
        for large in (1.0, 100.0, 1e4)
    ),
)  # fmt: skip
def hidden_keys(f: Any, q: Any, k: Any, v: Any, k2: Any, v2: Any, keep: Any) -> Sides:
    """Other numbers in keys that a mask hides, and in their values, change nothing."""
    xp, shown = array_namespace(q), keep[:, None, :, None]
    rows = xp.broadcast_to(keep[:, None, None, :], (q.shape[0], 1, q.shape[2], k.shape[2]))
    other = xp.where(shown, k, k2), xp.where(shown, v, v2)
    calls = f.attend_masked
    return [call(q, k, v, rows) for call in calls], [call(q, *other, rows) for call in calls]


@DOCUMENTS.of(
    "attention", "documents", unsaid="documents of other lengths", x="real B n E",
    names=(("a document in its row", "the document alone"),),
    inputs=tuple(Inputs(lengths={"B": b, "n": n}) for b, n in ((1, 2), (1, 3), (3, 6), (2, 5))),
)  # fmt: skip
def documents_apart(f: Any, x: Any) -> Sides:
    """Each document in a row is what it is alone, with ids that start at 0 again.

    Rows are cut in two, each elsewhere than the row before it, and in three.
    """
    xp, (rows, n) = array_namespace(x), x.shape[:2]
    left: list[Any] = []
    right: list[Any] = []
    ways: list[list[tuple[int, ...]]] = [
        [((row + cut) % (n - 1) + 1,) for row in range(rows)] for cut in range(n - 1)
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


LAWS = (
    CAUSAL,
    PAST,
    WINDOW,
    ALIGNMENT,
    HIDDEN,
    Law("mask-adds", "attention", "masks",
        "a mask of numbers adds exactly these to the scores"),
    TRUE_MEANS,
    Law("hidden-rows", "attention", "masks",
        "a query that sees no key reads zeros or what is declared, and never NaN"),
    DOCUMENTS,
)  # fmt: skip

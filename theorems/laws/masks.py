"""Laws of masks, and of attention under one: which keys a query sees."""

from __future__ import annotations

import math
from functools import partial
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
MASK_ADDS = Law(
    "mask-adds", "attention", "masks", "a mask of numbers adds exactly these to the scores"
)
HIDDEN_ROWS = Law(
    "hidden-rows",
    "attention",
    "masks",
    "a query that sees no key reads zeros or what is declared, and never NaN",
)
DOCUMENTS = Law(
    "documents-apart",
    "attention",
    "masks",
    "documents packed into one row do not see each other",
)

CHANGED = (("the first outputs", "the same with other tokens after them"),)
LEFT_OUT = (("the first outputs", "the same with no tokens after them"),)
PULLED = (("the gradient of the first outputs at later tokens", "none"),)
PART = "later tokens may be left out"
FEW = tuple(
    Inputs(lengths={"B": b, "n": n, "r": m, "m": m})
    for b, n, m in ((1, 1, 2), (1, 2, 1), (3, 1, 5), (3, 3, 3), (3, 5, 1), (5, 2, 3), (2, "H", 1))
)
LONG = tuple(  # more than two blocks of 64, which kernels have
    Inputs(lengths={"B": 1, "n": n, "r": 130 - n, "m": 130 - n}) for n in (1, 63, 64, 65, 128, 129)
)


def _first(call: Any, x: Any, later: Any) -> Any:
    return call(array_namespace(x).concat((x, later), axis=1))[:, : x.shape[1]]


def _of_tokens(kind: str, call: str) -> None:
    """The law of one call on tokens, of its other paths, in training and by gradient."""

    def changed(f: Any, x: Any, y: Any, z: Any, calls: str = call) -> Sides:
        """Other tokens later change nothing of what came before."""
        ways = _listed(getattr(f, calls))
        return [_first(way, x, y) for way in ways], [_first(way, x, z) for way in ways]

    def left_out(f: Any, x: Any, y: Any) -> Sides:
        """Tokens that come later change nothing of what came before."""
        return _first(getattr(f, call), x, y), getattr(f, call)(x)

    def pulled(f: Any, x: Any, y: Any) -> Sides:
        """No later token has a gradient from what came before."""
        n = x.shape[1]
        found = getattr(f, f"{call}_pulled")(n, array_namespace(x).concat((x, y), axis=1))
        return found[:, n:], 0 * y

    tokens: dict[str, Any] = {"x": TOKENS, "y": "real B r E"}
    CAUSAL.of(kind, call, names=CHANGED, sizes=({"n": 1},), unsaid=PART, inputs=FEW + LONG,
              **tokens, z="real B r E")(changed)  # fmt: skip
    CAUSAL.of(kind, call, names=LEFT_OUT, sizes=({"n": 1},), inputs=FEW, **tokens)(left_out)
    for other, few in ((f"{call}_paths", FEW), (f"{call}_trained", FEW[:3])):
        CAUSAL.of(kind, other, names=CHANGED, unsaid=PART, inputs=few, floats=True, **tokens,
                  z="real B r E")(partial(changed, calls=other))  # fmt: skip
    CAUSAL.of(kind, f"{call}_pulled", names=PULLED, unsaid=PART, inputs=FEW, floats=True, **tokens
              )(pulled)  # fmt: skip


_of_tokens("attention", "layer")
_of_tokens("layer", "call")

SQUARE: dict[str, Any] = {
    "q": "real B H n D", "k": KEYS, "v": KEYS, "q2": "real B H m D", "k2": "real B G m D",
    "v2": "real B G m D",
}  # fmt: skip
OTHERS: dict[str, Any] = {"k3": "real B G m D", "v3": "real B G m D"}


def _listed(calls: Any) -> list[Any]:
    return calls if isinstance(calls, list) else [calls]


def _attend_changed(
    f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any, k3: Any, v3: Any,
    calls: str = "attend",
) -> Sides:  # fmt: skip
    """Other keys and values later change nothing of what came before."""
    xp, n = array_namespace(q), q.shape[2]
    whole, ways = xp.concat((q, q2), axis=2), _listed(getattr(f, calls))
    one, other = (
        [way(whole, xp.concat((k, a), axis=2), xp.concat((v, b), axis=2))[:, :, :n] for way in ways]
        for a, b in ((k2, v2), (k3, v3))
    )
    return one, other


CAUSAL.of(
    "attention", "attend", names=CHANGED, sizes=({"n": 1},), unsaid=PART, inputs=FEW + LONG,
    **OTHERS, **SQUARE,
)(_attend_changed)  # fmt: skip


@CAUSAL.of("attention", "attend", names=LEFT_OUT, sizes=({"n": 1},), inputs=FEW, **SQUARE)
def causal_attend(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """Keys and values that come later change nothing of what came before."""
    xp = array_namespace(q)
    n = q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[:, :, :n], f.attend(q, k, v)


for _calls in ("attended_paths", "attend_trained"):
    CAUSAL.of(
        "attention", _calls, names=CHANGED, unsaid=PART, inputs=FEW, floats=True, **OTHERS, **SQUARE
    )(partial(_attend_changed, calls=_calls))


@CAUSAL.of(
    "attention", "attend_pulled", names=PULLED, unsaid=PART, inputs=FEW, floats=True, **SQUARE
)
def no_gradient(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """No later query, key or value has a gradient from what came before."""
    xp, n = array_namespace(q), q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    found = f.attend_pulled(n, *longer)
    return [grad[:, :, n:] for grad in found], [0 * q2, 0 * k2, 0 * v2]


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
    return _beside(f, f.visible(x, y), x.shape[0], y.shape[0])


def _shown(f: Any, q: Any, k: Any, keys: list[int] | None = None) -> Sides:
    """The same of attention code: which keys have weight where all scores are 0."""
    return _beside(f, f.shown(q, k, keys), q.shape[2], k.shape[2], keys)


def _reached(f: Any, x: Any, y: Any, keys: list[int] | None = None) -> Sides:
    """The same of a layer: which tokens, changed from x to y, change which outputs."""
    return _beside(f, f.reached(x, y, keys), x.shape[1], x.shape[1], keys)


def _beside(f: Any, visible: Any, queries: int, keys: int, some: list[int] | None = None) -> Sides:
    """What is visible, and what is declared: of the last query where some keys are looked at."""
    xp, one = array_namespace(visible), 0 * visible + 1
    declared = _places(f, xp, queries, keys)
    if declared is not None:
        one = xp.where(declared if some is None else declared[-1], one, 0 * one)
    for key in () if some is None else sorted({*range(keys)} - {*some}):
        one = xp.where(xp.arange(keys) == key, 0 * one, one)
    return visible, one


SEEN = (("what the mask shows", "what is declared"),)
SQUARES = tuple(Inputs(lengths={"n": n}) for n in (2, 3, 4, 5, 6, 8, 12, 33, 130, "W"))
FEWER = tuple(Inputs(lengths={"r": r, "n": n}) for r, n in ((1, 2), (1, 5), (2, 5), (3, 4)))
FAR = 35  # of more keys those around the edge of the window of the last query are looked at
PAIRS: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    ("attention", "shown", _shown, {"q": QUERIES, "k": KEYS}),
    ("attention", "reached", _reached, {"x": TOKENS, "y": TOKENS}),
)
"""What attention code and layers show, in the place of a mask: read off what they give."""


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


def _past(seen: Any) -> Any:
    def past(f: Any, **given: Any) -> Sides:
        """Every key that is declared visible is visible."""
        visible, declared = seen(f, **given)
        return declared * visible, declared

    return past


USED = (("the keys that are seen of those declared", "those declared"),)
PAST.of(
    "mask", "masked", of_sizes=True, x="real r", y="real n",
    names=(("the keys that the mask shows of those declared", "those declared"),),
)(_past(_seen))  # fmt: skip
for _kind, _call, _read, _given in PAIRS:
    PAST.of(
        _kind, _call, names=USED, floats=True, **_given,
        inputs=(*(Inputs(lengths={"r": n, "n": n}) for n in (2, 3, 6)),
                *(FEWER[1:3] if "q" in _given else ())),
    )(_past(_read))  # fmt: skip


WINDOW.of("mask", "masked", of_sizes=True, x="real n", y="real n", names=SEEN, inputs=SQUARES)(
    _seen
)


def _in_window(seen: Any, axis: int) -> Any:
    def in_window(f: Any, **given: Any) -> Sides:
        """Of as many queries as keys each sees what the window declares, and nothing else."""
        n, w = next(iter(given.values())).shape[axis], f.window
        edge = [n - w - 2, n - w - 1, n - w, n - w + 1, n - 1]
        found: Sides = seen(f, **given, keys=None if n <= FAR else edge)
        return found

    return in_window


for _kind, _call, _read, _given in PAIRS:
    WINDOW.of(
        _kind, _call, names=(("what is seen", "what is declared"),), floats=True,
        inputs=(*SQUARES[:6], SQUARES[-1]),
        **{name: told.replace(" r ", " n ") for name, told in _given.items()},
    )(_in_window(_read, 2 if "q" in _given else 1))  # fmt: skip


ALIGNMENT.of("mask", "masked", of_sizes=True, x="real r", y="real n", names=SEEN, inputs=FEWER)(
    _seen
)
ALIGNMENT.of(
    "attention", "shown", names=(("what is seen", "what is declared"),), floats=True, inputs=FEWER,
    q=QUERIES, k=KEYS,
)(_shown)  # fmt: skip


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


def _mask(f: Any, q: Any, k: Any, keep: Any) -> Any:
    """Truth values (B, 1, r, n): the keys that are kept, and each query its own."""
    xp, rows = array_namespace(q), keep[:, None, None, :]
    if not f.by_key:
        rows = rows | (xp.arange(q.shape[2])[:, None] == xp.arange(k.shape[2])[None, :])
    return xp.broadcast_to(rows, (q.shape[0], 1, q.shape[2], k.shape[2]))


ALL_TRUE = (("the output under a mask that is all True", "the output without a mask"),)
KEPT: dict[str, Any] = {"q": QUERIES, "k": KEYS, "v": KEYS, "keep": "keep B n"}


@TRUE_MEANS.of(
    "attention", "attend_keeping", names=ALL_TRUE, floats=True, q=QUERIES, k=KEYS, v=KEYS
)
def all_true(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """A mask that is all True changes nothing."""
    xp, shape = array_namespace(q), (q.shape[0], 1, q.shape[2], k.shape[2])
    every = xp.broadcast_to(xp.arange(k.shape[2]) >= 0, shape)
    return f.attend_keeping(q, k, v, every), f.attend(q, k, v)


@TRUE_MEANS.of(
    "attention", "weighs", floats=True, q=QUERIES, k=KEYS, keep="keep B n",
    names=(("whether a weight is not 0 under the mask", "whether the mask is True there"),),
)  # fmt: skip
def true_is_seen(f: Any, q: Any, k: Any, keep: Any) -> Sides:
    """Of the keys that have weight without a mask it leaves those where it is True."""
    plain, seen = f.weighs(q, k), _mask(f, q, k, keep)
    return f.weighs(q, k, seen), array_namespace(plain).where(seen, plain, 0 * plain)


@TRUE_MEANS.of("attention", "hide", names=ALL_TRUE, floats=True, x=TOKENS)
def all_count(f: Any, x: Any) -> Sides:
    """Tokens that all count give what the layer gives without being told."""
    xp = array_namespace(x)
    return f.hide(x, xp.broadcast_to(xp.arange(x.shape[1]) >= 0, x.shape[:2])), f.layer(x)


ADDED = (("the output under the mask, times what it leaves of the weights",
          "values times e to the mask, weighted without it"),)  # fmt: skip
SOME = tuple(Inputs(lengths={"B": b, "r": r, "n": n})
             for b, r, n in ((1, 3, 3), (3, 6, 6), (2, 2, 5), (2, "H", "H")))  # fmt: skip


@MASK_ADDS.of(
    "attention", "attend_added", names=ADDED, q=QUERIES, k=KEYS, v=KEYS, m="real B r n",
    inputs=SOME,
)  # fmt: skip
def mask_adds(f: Any, q: Any, k: Any, v: Any, m: Any) -> Sides:
    """attend(q, k, v; m)_i (Σ_j p_ij e^m_ij + s) = Σ_j p_ij e^m_ij v_j, s the share of a sink."""
    xp, shape = array_namespace(q), (q.shape[0], 1, q.shape[2], k.shape[2])
    mask = xp.broadcast_to(m[:, None, :1] if f.by_key else m[:, None], shape)
    plain = partial(f.attend_added, q, k, seen=0 * mask)
    return _multiplied(xp, v, xp.exp(mask), plain, f.attend_added(q, k, v, mask))


@MASK_ADDS.of("attention", "attend_lowered", names=ADDED, inputs=SOME, **KEPT)
def mask_hides(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same of a mask of 0 and −∞."""
    return _left(f, q, k, v, keep, f.attend_lowered)


@TRUE_MEANS.of("attention", "attend_keeping", names=ADDED, inputs=SOME, **KEPT)
def true_is_left(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same of truth values: 1 where they are True, and 0 where not."""
    return _left(f, q, k, v, keep, f.attend_keeping)


def _left(f: Any, q: Any, k: Any, v: Any, keep: Any, under: Any) -> Sides:
    """Both sides of attention under truth values, and under those that are all True.

    Code may do otherwise where it is given no mask.
    """
    xp, seen = array_namespace(q), _mask(f, q, k, keep)
    every = xp.broadcast_to(xp.arange(k.shape[2]) >= 0, seen.shape)
    factor = xp.where(seen, 1, 0 * q[:, :1, :, :1])
    return _multiplied(xp, v, factor, partial(under, q, k, seen=every), under(q, k, v, seen))


def _multiplied(xp: Any, v: Any, factor: Any, plain: Any, found: Any) -> Sides:
    """Both sides for weights that are multiplied by (B, 1, r, n) and made to add up again."""
    one = 0 * v + 1
    sink = 1 - plain(v=one)  # what no key has, which no mask changes
    left, right = [], []
    for i in range(found.shape[2]):
        own = factor[:, :, i, :, None] * one
        total = plain(v=own)[:, :, i] + sink[:, :, i]
        left.append(found[:, :, i] * total)
        right.append(plain(v=own * v)[:, :, i])
    return xp.stack(left, axis=2), xp.stack(right, axis=2)


@HIDDEN_ROWS.of(
    "attention", "attend_masked", floats=True, **KEPT,
    names=(("what a query that sees no key reads", "what it is to read"),
           ("what the other queries read", "the same where every query sees a key")),
    inputs=tuple(Inputs(lengths={"B": b, "r": n, "n": n}) for b, n in ((1, 3), (3, 6), (2, "H"))),
)  # fmt: skip
def hidden_rows(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """A query sees no key, and reads what is declared, or any numbers; the others read the same."""
    xp, full, zero = array_namespace(q), _mask(f, q, k, keep), 0 * q
    batch, query = xp.arange(q.shape[0])[:, None, None, None], xp.arange(q.shape[2])[:, None]
    blind = (batch == 0) & ((query == 1) | (query >= 0 if f.by_key else query < 0))
    left: list[Any] = []
    right: list[Any] = []
    for call in f.attend_masked:
        found = call(q, k, v, full & ~blind)
        any_number = 0 * found if f.hidden_row == "any" else found
        left += [xp.where(blind, any_number, zero), xp.where(blind, zero, found)]
        due = _of_no_key(f, xp, q, v)
        right += [xp.where(blind, due, zero), xp.where(blind, zero, call(q, k, v, full))]
    return left, right


def _of_no_key(f: Any, xp: Any, q: Any, v: Any) -> Any:
    """What is declared that a query reads which sees no key."""
    if f.hidden_row != "mean":
        return 0 * q + (math.nan if f.hidden_row == "nan" else 0)
    means = xp.mean(v, axis=2)
    heads, groups = q.shape[1], v.shape[1]
    own = xp.stack([means[:, head * groups // heads] for head in range(heads)], axis=1)
    return own[:, :, None] + 0 * q


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
    CAUSAL, PAST, WINDOW, ALIGNMENT, HIDDEN, MASK_ADDS, TRUE_MEANS, HIDDEN_ROWS, DOCUMENTS,
)  # fmt: skip

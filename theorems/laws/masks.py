"""Laws of masks: the keys that a query sees, for masks and for code with a mask of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .law import KEYS, QUERIES, SQUARE, TOKENS, Inputs, Law, Sides, listed

CAUSAL = Law(
    "causal",
    "attention mask layer",
    "masks",
    "no output depends on later tokens, in value or in gradient",
    always=False,
)
PAST = Law(
    "past-is-used",
    "attention mask",
    "masks",
    "every earlier token that should be visible has an influence",
    always=False,
)
ALIGNMENT = Law(
    "alignment",
    "attention mask",
    "masks",
    "with fewer queries than keys, the last query sees all keys that are declared visible to it",
)
WINDOW = Law(
    "window-as-declared",
    "attention mask",
    "masks",
    "each query sees exactly the keys in its declared window",
    always=False,
)
CHANGED = (("the first outputs", "the same with other tokens after them"),)
LEFT_OUT = (("the first outputs", "the same with no tokens after them"),)
PULLED = (("the gradient of the first outputs at later tokens", "none"),)
Keys = list[int] | None
LATER_TOKENS_OMITTED = "omission of the later tokens"
SHORT_INPUTS = tuple(
    Inputs(lengths={"B": b, "n": n, "r": m, "m": m})
    for b, n, m in ((1, 1, 2), (1, 2, 1), (3, 1, 5), (3, 3, 3), (3, 5, 1), (5, 2, 3), (2, "H", 1))
)
LONG_INPUTS = tuple(  # more than two blocks of 64, a common block size of kernels
    Inputs(lengths={"B": 1, "n": n, "r": 130 - n, "m": 130 - n}) for n in (1, 63, 64, 65, 128, 129)
)


def _first(call: Any, x: Any, later: Any) -> Any:
    return call(array_namespace(x).concat((x, later), axis=1))[:, : x.shape[1]]


def _of_tokens(kind: str, call: str) -> None:
    """Add the causal law of a call on tokens, of its other paths, in training and by gradient."""

    def changed(f: Any, x: Any, y: Any, z: Any, calls: str = call) -> Sides:
        """The first outputs do not depend on the values of later tokens."""
        ways = listed(getattr(f, calls))
        return [_first(way, x, y) for way in ways], [_first(way, x, z) for way in ways]

    def left_out(f: Any, x: Any, y: Any) -> Sides:
        """The first outputs do not depend on whether there are later tokens."""
        return _first(getattr(f, call), x, y), getattr(f, call)(x)

    def pulled(f: Any, x: Any, y: Any) -> Sides:
        """The gradient of the first outputs with respect to later tokens is 0."""
        n = x.shape[1]
        found = getattr(f, f"{call}_pulled")(n, array_namespace(x).concat((x, y), axis=1))
        return found[:, n:], 0 * y

    def left_out_again(whole: Any, alone: Any, x: Any, **_: Any) -> dict[str, Any]:
        """The first outputs are the first tokens of the next layer, the later ones are later."""
        return {"x": alone, "y": whole[:, x.shape[1] :]}

    tokens: dict[str, Any] = {"x": TOKENS, "y": "real B r E"}
    CAUSAL.formula(
        kind,
        call,
        names=CHANGED,
        sizes=({"n": 1},),
        unsaid=LATER_TOKENS_OMITTED,
        inputs=SHORT_INPUTS + LONG_INPUTS,
        **tokens,
        z="real B r E",
    )(changed)
    CAUSAL.formula(
        kind,
        call,
        names=LEFT_OUT,
        sizes=({"n": 1},),
        inputs=SHORT_INPUTS,
        again=left_out_again,
        **tokens,
    )(left_out)
    for other, few in ((f"{call}_paths", SHORT_INPUTS), (f"{call}_trained", SHORT_INPUTS[:3])):
        CAUSAL.formula(
            kind,
            other,
            names=CHANGED,
            unsaid=LATER_TOKENS_OMITTED,
            inputs=few,
            floats=True,
            **tokens,
            z="real B r E",
        )(partial(changed, calls=other))
    CAUSAL.formula(
        kind,
        f"{call}_pulled",
        names=PULLED,
        unsaid=LATER_TOKENS_OMITTED,
        inputs=SHORT_INPUTS,
        floats=True,
        **tokens,
    )(pulled)


_of_tokens("attention", "layer")
_of_tokens("layer", "call")

OTHER_KEYS_AND_VALUES: dict[str, Any] = {"k3": "real B G m D", "v3": "real B G m D"}


def _attend_changed(
    f: Any,
    q: Any,
    k: Any,
    v: Any,
    q2: Any,
    k2: Any,
    v2: Any,
    k3: Any,
    v3: Any,
    calls: str = "attend",
) -> Sides:
    """The first outputs do not depend on the values of later keys and values."""
    xp, n = array_namespace(q), q.shape[2]
    whole, ways = xp.concat((q, q2), axis=2), listed(getattr(f, calls))
    one, other = (
        [way(whole, xp.concat((k, a), axis=2), xp.concat((v, b), axis=2))[:, :, :n] for way in ways]
        for a, b in ((k2, v2), (k3, v3))
    )
    return one, other


CAUSAL.formula(
    "attention",
    "attend",
    names=CHANGED,
    sizes=({"n": 1},),
    unsaid=LATER_TOKENS_OMITTED,
    inputs=SHORT_INPUTS + LONG_INPUTS,
    **OTHER_KEYS_AND_VALUES,
    **SQUARE,
)(_attend_changed)


@CAUSAL.formula(
    "attention", "attend", names=LEFT_OUT, sizes=({"n": 1},), inputs=SHORT_INPUTS, **SQUARE
)
def causal_attend(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The first outputs do not depend on whether there are later keys and values."""
    xp = array_namespace(q)
    n = q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    return f.attend(*longer)[:, :, :n], f.attend(q, k, v)


for _calls in ("attended_paths", "attend_trained"):
    CAUSAL.formula(
        "attention",
        _calls,
        names=CHANGED,
        unsaid=LATER_TOKENS_OMITTED,
        inputs=SHORT_INPUTS,
        floats=True,
        **OTHER_KEYS_AND_VALUES,
        **SQUARE,
    )(partial(_attend_changed, calls=_calls))


@CAUSAL.formula(
    "attention",
    "attend_pulled",
    names=PULLED,
    unsaid=LATER_TOKENS_OMITTED,
    inputs=SHORT_INPUTS,
    floats=True,
    **SQUARE,
)
def no_gradient(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The gradients of the first outputs with respect to later inputs are 0."""
    xp, n = array_namespace(q), q.shape[2]
    longer = (xp.concat(pair, axis=2) for pair in ((q, q2), (k, k2), (v, v2)))
    found = f.attend_pulled(n, *longer)
    return [grad[:, :, n:] for grad in found], [0 * q2, 0 * k2, 0 * v2]


def _declared_visibility(f: Any, xp: Any, queries: int, keys: int) -> Any:
    """Return the declared visibility of keys, (queries, keys); None if every key is visible."""
    ahead = xp.arange(keys)[None, :] - xp.arange(queries)[:, None]
    last = keys - queries if f.at_end else 0
    if f.past:
        past = ahead <= last
        return past & (ahead > last - f.window) if f.window else past
    return (ahead > last - f.window) & (ahead < last + f.window) if f.window else None


def _mask_visibility(f: Any, x: Any, y: Any) -> Sides:
    """Return the visibility of keys in a mask, as 1 or 0, and the declared visibility."""
    return _with_declared_visibility(f, f.visible(x, y), (x.shape[0], y.shape[0]))


def _attention_visibility(
    f: Any, q: Any, k: Any, keys: Keys = None, *, every: bool = False
) -> Sides:
    """Return the same for attention code: a key is visible if it has weight at scores 0."""
    return _with_declared_visibility(
        f, f.shown(q, k, keys, every), (q.shape[2], k.shape[2]), keys, every
    )


def _layer_visibility(
    f: Any, x: Any, y: Any, keys: Keys = None, *, every: bool = False, past: bool = False
) -> Sides:
    """Return the same for a layer: a token is visible if changing it from x to y has an effect.

    ``past``: whether others than the declared tokens are visible does not matter.
    """
    sizes = (x.shape[1], x.shape[1])
    wanted = _declared_visibility(f, array_namespace(x), *sizes) if past else None
    visible = f.reached(x, y, keys, every, wanted)
    return _with_declared_visibility(f, visible, sizes, keys, every)


def _with_declared_visibility(
    f: Any, visible: Any, sizes: tuple[int, int], some: Keys = None, every: bool = False
) -> Sides:
    """Return the visibility found and the declared one.

    If only some keys are examined: for these, and for the last query unless for ``every`` one.
    """
    xp, one = array_namespace(visible), 0 * visible + 1
    declared = _declared_visibility(f, xp, *sizes)
    if declared is not None:
        one = xp.where(declared if some is None or every else declared[-1], one, 0 * one)
    if some is not None:
        place, found = xp.arange(sizes[1]), 0 * one
        for key in some:
            found = xp.where(place == key, one, found)
        one = found
    return visible, one


SEEN = (("what the mask shows", "what it should show"),)
SQUARES = tuple(Inputs(lengths={"n": n}) for n in (2, 3, 4, 5, 6, 8, 12, 33, 130, "W"))
FEWER_QUERIES = tuple(Inputs(lengths={"r": r, "n": n}) for r, n in ((1, 2), (1, 5), (2, 5), (3, 4)))
FAR = 35  # of more keys, only those near the edge of the last query's window are examined
PAIRS: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    ("attention", "shown", _attention_visibility, {"q": QUERIES, "k": KEYS}),
    ("attention", "reached", _layer_visibility, {"x": TOKENS, "y": TOKENS}),
)
"""How the visibility of keys is read off attention code and layers, which have no mask."""


@CAUSAL.formula(
    "mask",
    "masked",
    of_sizes=True,
    x="real r",
    y="real n",
    names=(("the keys that the mask shows", "those of them that are not later"),),
)
def causal_mask(f: Any, x: Any, y: Any) -> Sides:
    """No query sees a later key; the last query is at the last key, or the first at the first."""
    xp, visible = array_namespace(x), f.visible(x, y)
    ahead = xp.arange(y.shape[0])[None, :] - xp.arange(x.shape[0])[:, None]
    past = ahead <= (y.shape[0] - x.shape[0] if f.at_end else 0)
    return visible, xp.where(past, 1, 0 * visible) * visible


def _past(seen: Any, axis: int | None = None, **how: bool) -> Any:
    """Return the law for ``seen``; with ``axis`` (of keys), at some keys if there are many."""

    def past(f: Any, **given: Any) -> Sides:
        """Every key that is declared visible is visible."""
        many = 0 if axis is None else [*given.values()][-1].shape[axis]
        some = {"keys": looked_at(many), "every": True} if many > FAR else {}
        visible, declared = seen(f, **given, **some, **how)
        return declared * visible, declared

    return past


def looked_at(many: int) -> list[int]:
    """Return indices of evenly spaced keys, as many as ``SCORES`` scores allow, at least ``LEAST``.

    >>> looked_at(1024)
    [0, 255, 511, 767, 1023]
    >>> looked_at(1)
    [0]
    """
    count = many if many <= FAR else min(many, max(LEAST, SCORES // many**2))
    return [k * (many - 1) // max(1, count - 1) for k in range(count)]


LEAST, SCORES = 5, 1 << 20
USED = (("the keys that are seen of those that should be", "those that should be"),)
PAST.formula(
    "mask",
    "masked",
    of_sizes=True,
    x="real r",
    y="real n",
    names=(("the keys that the mask shows of those it should show", "those it should show"),),
)(_past(_mask_visibility))
for _kind, _call, _read, _given in PAIRS:
    PAST.formula(
        _kind,
        _call,
        names=USED,
        floats=True,
        **_given,
        inputs=(
            *(Inputs(lengths={"r": n, "n": n}) for n in (2, 3, 6, 33)),
            *(FEWER_QUERIES[1:3] if "q" in _given else ()),
        ),
    )(_past(_read, 2) if "q" in _given else _past(_read, 1, past=True))


WINDOW.formula("mask", "masked", of_sizes=True, x="real n", y="real n", names=SEEN, inputs=SQUARES)(
    _mask_visibility
)


def _in_window(seen: Any, axis: int) -> Any:
    def in_window(f: Any, **given: Any) -> Sides:
        """With as many queries as keys, each query sees exactly what the window declares."""
        n, w = next(iter(given.values())).shape[axis], f.window
        edge = [n - w - 2, n - w - 1, n - w, n - w + 1, n - 1]
        found: Sides = seen(f, **given, keys=None if n <= FAR else edge)
        return found

    return in_window


for _kind, _call, _read, _given in PAIRS:
    WINDOW.formula(
        _kind,
        _call,
        names=(("what is seen", "what should be seen"),),
        floats=True,
        inputs=(*SQUARES[:6], SQUARES[7], SQUARES[-1]),
        **{name: told.replace(" r ", " n ") for name, told in _given.items()},
    )(_in_window(_read, 2 if "q" in _given else 1))


ALIGNMENT.formula(
    "mask", "masked", of_sizes=True, x="real r", y="real n", names=SEEN, inputs=FEWER_QUERIES
)(_mask_visibility)
ALIGNMENT.formula(
    "attention",
    "shown",
    names=(("what is seen", "what should be seen"),),
    floats=True,
    inputs=FEWER_QUERIES,
    q=QUERIES,
    k=KEYS,
)(_attention_visibility)


@ALIGNMENT.formula(
    "attention",
    "attend",
    names=(("the last queries alone", "the last of all"),),
    sizes=({"n": 1, "m": 4},),
    unsaid="what the last query sees with as many queries as keys",
    **SQUARE,
)
def alignment(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """The last queries alone give the outputs that they give after the others."""
    xp = array_namespace(q)
    before, keys, values = (xp.concat(pair, axis=2) for pair in ((q2, q), (k2, k), (v2, v)))
    return f.attend(q, keys, values), f.attend(before, keys, values)[:, :, q2.shape[2] :]


LAWS = (CAUSAL, PAST, WINDOW, ALIGNMENT)

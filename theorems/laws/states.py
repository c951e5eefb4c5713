"""Laws of state: earlier calls, other rows of a batch, cached steps, padding and other paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from array_api_compat import array_namespace

from .law import FAR, QKV, TOKENS, VECTORS, Inputs, Law, Sides, each_alone, zero_of_each

EVERY = "rotary attention bias additive mask layer"
# Two rows of one token, or as many tokens as rows, where alone some mixing of rows shows.
ROWS = ({"B": 1, "A": 1}, {"B": 1, "A": 1, "n": 1, "r": 1}, {"B": 1, "A": 1, "n": 2, "r": 2})
APART = (
    ("the first rows in their batch", "the first rows alone"),
    ("the last rows in their batch", "the last rows alone"),
)

FINITE = Law(
    "finite", EVERY, "structure", "ordinary inputs give finite outputs and finite gradients"
)

ROWS_APART = Law(
    "rows-of-batch-apart",
    "rotary attention additive layer",
    "state",
    "each row of a batch gives the output that it gives alone, even for a single token, and no "
    "gradient flows from one row to another",
)
STATELESS = Law(
    "stateless",
    EVERY,
    "state",
    "the result of a call does not depend on earlier calls, on this instance or another",
)
_law = partial(Law, kinds="attention layer", group="state")
STEP_BY_STEP = Law(
    "step-by-step",
    "rotary attention layer",
    "state",
    "tokens fed one at a time, or in chunks, give the same outputs as all at once, and their "
    "queries, rotated beside the keys of all tokens, the same scores",
)
PADDING = Law(
    "padding-does-nothing",
    "attention",
    "state",
    "padded rows of different lengths give the outputs of each alone, at every call",
)
PATHS_AGREE = Law(
    "paths-agree",
    "rotary attention bias",
    "state",
    "all paths give the same result: weights requested, fused kernel, tokens as context",
)
EVALUATION_REPEATS = _law(
    "evaluation-repeats", says="in evaluation mode two equal calls give the same result"
)
TRAINING_RETURNS = _law(
    "training-returns", says="dropout is active in training again after a call in evaluation mode"
)
WITHOUT_DROPOUT = _law(
    "training-is-evaluation",
    says="without dropout the output is the same in training mode as in evaluation mode",
)
NO_MUTATION = Law(
    "no-mutation",
    EVERY,
    "state",
    "a call modifies neither its inputs nor, in evaluation mode, its weights",
)


@ROWS_APART.formula(
    "rotary",
    "rotate",
    names=APART,
    sizes=ROWS,
    further=(Inputs(at={"p": FAR, "o": FAR}),),
    x=VECTORS,
    p="position B n",
    y="real A H n D",
    o="position A n",
)
def rotary_rows_apart(f: Any, x: Any, p: Any, y: Any, o: Any) -> Sides:
    """A batch cut into two parts gives the results of the parts alone."""
    if f.shared:
        return each_alone(lambda vectors: f.rotate(vectors, p[:1]), [x], [y])
    return each_alone(f.rotate, [x, p], [y, o])


@ROWS_APART.formula(
    "attention",
    "attend",
    names=APART,
    sizes=ROWS,
    **QKV,
    q2="real A H r D",
    k2="real A G n D",
    v2="real A G n D",
)
def attend_rows_apart(f: Any, q: Any, k: Any, v: Any, q2: Any, k2: Any, v2: Any) -> Sides:
    """A batch cut into two parts gives the results of the parts alone."""
    return each_alone(f.attend, [q, k, v], [q2, k2, v2])


def _of_one(call: str) -> Callable[..., Sides]:
    """Return the same law for a call with one argument."""

    def rows_apart(f: Any, x: Any, y: Any) -> Sides:
        return each_alone(getattr(f, call), [x], [y])

    return rows_apart


ROWS_APART.formula("rotary", "running", names=APART, sizes=ROWS, x=VECTORS, y="real A H n D")(
    _of_one("running")
)


def _each(_: Any, first: Any, last: Any, **__: Any) -> dict[str, Any]:
    """The results of the two parts are the two parts of the next layer's batch."""
    return {"x": first, "y": last}


for _kind, _call in (("attention", "layer"), ("layer", "call"), ("additive", "added")):
    ROWS_APART.formula(
        _kind, _call, names=APART, sizes=ROWS, again=_each, x=TOKENS, y="real A n E"
    )(_of_one(_call))


PULLED = (
    ("the gradient of the first rows at the last", "none"),
    ("the gradient of the last rows at the first", "none"),
)
FEW_ROWS = tuple(
    Inputs(lengths={"B": b, "A": a, "n": n, "r": n})
    for b, a, n in ((1, 1, 1), (1, 1, 3), (4, 5, 4))
)


def _of_gradients(kind: str, call: str, **given: str) -> None:
    """Add the law of the gradients of a call; ``given``: one part of a batch, then the other.

    The call ``.._of_rows`` takes n and the inputs, and returns the gradients of the first n rows of
    the output, or of the last if n is negative, with respect to each input that is no position.
    """
    many = len(given) // 2

    def pulled(f: Any, **arrays: Any) -> Sides:
        """The gradient of the output of some rows with respect to the other rows is 0."""
        first, last = [*arrays.values()][:many], [*arrays.values()][many:]
        xp, b, a = array_namespace(first[0]), first[0].shape[0], last[0].shape[0]
        whole = [xp.concat(pair, axis=0) for pair in zip(first, last, strict=True)]
        if kind == "rotary" and f.shared:
            whole[1:] = [first[1][:1]]
        of_rows = getattr(f, f"{call}_of_rows")
        sides = [
            side
            for before, after, x, y in zip(
                of_rows(b, *whole), of_rows(-a, *whole), first, last, strict=False
            )
            for side in ((before[b:], 0 * y), (after[:b], 0 * x))
        ]
        return [here for here, _ in sides], [there for _, there in sides]

    ROWS_APART.formula(
        kind, f"{call}_of_rows", names=PULLED, inputs=FEW_ROWS, floats=True, **given
    )(pulled)


_of_gradients("rotary", "rotate", x=VECTORS, p="position B n", y="real A H n D", o="position A n")
_of_gradients("rotary", "running", x=VECTORS, y="real A H n D")
_of_gradients("attention", "attend", **QKV, q2="real A H r D", k2="real A G n D", v2="real A G n D")
for _kind, _call in (("attention", "layer"), ("layer", "call"), ("additive", "added")):
    _of_gradients(_kind, _call, x=TOKENS, y="real A n E")


PIECES, SINGLE = 8, 32  # number of pieces if there are many tokens; tokens at each end fed singly
FED: dict[str, Any] = {
    "names": (("in pieces", "all at once"),),
    "unsaid": "other pieces",
    "x": TOKENS,
    "inputs": tuple(
        Inputs(lengths={"B": b, "n": n})
        for b, n in ((1, 2), (1, 3), (3, 6), (5, 5), (2, "H"), (2, 15))
    ),
}


@STEP_BY_STEP.formula("layer", "step", **FED)
@STEP_BY_STEP.formula("attention", "step", **FED)
def in_pieces(f: Any, x: Any) -> Sides:
    """Tokens fed one by one, in two pieces, in pieces of two and the like give the same output.

    If there are many tokens, pieces are longer than two, and only the first and the last tokens
    are fed one by one.
    """
    xp, n = array_namespace(x), x.shape[1]
    pieces, singly = range(0, n, max(2, n // PIECES)), set(range(n))
    if n > 2 * SINGLE:
        singly = {*range(SINGLE + 1), *pieces, *range(n - SINGLE, n)}
    cuts = {(*sorted(singly), n), (*pieces, n), (0, n // 2, n)}
    cuts |= {(0, 1, n), (0, n - 1, n)}
    cuts |= {(0, n - 2, n - 1, n), (0, n - 2, n)} if n > 2 else set()
    # A long piece that follows others is itself followed by a token.
    cuts |= {(0, first, n - 1, n) for first in (1, n // 2)} if n > 3 else set()
    ways = sorted(way for way in cuts if len(set(way)) == len(way))
    return [_fed(f, xp, x, way) for way in ways], [f.at_once(x)] * len(ways)


def _fed(f: Any, xp: Any, x: Any, cuts: Any) -> Any:
    state, parts = None, []
    for start, end in pairwise(cuts):
        part, state = f.step(x[:, start:end], state)
        parts.append(part)
    return xp.concat(parts, axis=1)


@STEP_BY_STEP.formula(
    "rotary",
    "last",
    names=(("scores of the last queries, with all keys", "their scores among all queries"),),
    q="real B H m D",
    k="real B H m D",
    q2="real B H r D",
    k2="real B H r D",
    inputs=tuple(
        Inputs(lengths={"B": b, "m": m, "r": r})
        for b, m, r in ((1, 1, 1), (1, 2, 1), (2, 3, 2), (3, 1, 5), (1, 30, 3))
    ),
)
def last_queries(f: Any, q: Any, k: Any, q2: Any, k2: Any) -> Sides:
    """last(q2, k ++ k2) gives the scores of the last queries in last(q ++ q2, k ++ k2)."""
    xp, m = array_namespace(q), q.shape[2]
    keys = xp.concat((k, k2), axis=2)
    few, many = f.last(q2, keys), f.last(xp.concat((q, q2), axis=2), keys)
    return few[0] @ few[1].mT, (many[0] @ many[1].mT)[:, :, m:]


ALONE = (("the padded rows", "the same alone"),)
RAGGED_NAMES = (("the rows beside padded ones", "the same alone"), *ALONE)
SHORT: dict[str, Any] = {"y": "real A r E", "z": "real A m E"}
RAGGED = {"x": "real B r E", "x2": "real B m E", **SHORT}


def _ragged(*rows: Sequence[int]) -> tuple[Inputs, ...]:
    return tuple(Inputs(lengths=dict(zip("BArm", row, strict=True))) for row in rows)


def _padded(f: Any, y: Any, z: Any, *, call: str, alone: str, left: bool) -> Sides:
    """Rows of r tokens with padding give their outputs alone."""
    xp, r, m = array_namespace(y), y.shape[1], z.shape[1]
    own = xp.arange(r + m)[None, :] >= m if left else xp.arange(r + m)[None, :] < r
    keep = own | (xp.arange(y.shape[0])[:, None] < 0)
    found = getattr(f, call)(xp.concat((z, y) if left else (y, z), axis=1), keep)
    return found[:, m:] if left else found[:, :r], getattr(f, alone)(y)


def _ragged_rows(
    f: Any, x: Any, x2: Any, y: Any, z: Any, *, call: str, alone: str, left: bool
) -> Sides:
    """The same beside longer rows, which give their outputs alone as well."""
    xp, rows, r, m = array_namespace(x), x.shape[0], y.shape[1], z.shape[1]
    whole, short = xp.concat((x, x2), axis=1), xp.concat((z, y) if left else (y, z), axis=1)
    place = xp.arange(r + m)[None, :]
    longer = xp.arange(rows + y.shape[0])[:, None] < rows
    keep = longer | (place >= m if left else place < r)
    found, one = getattr(f, call)(xp.concat((whole, short), axis=0), keep), getattr(f, alone)
    at = slice(m, None) if left else slice(None, r)
    return [found[:rows], found[rows:, at]], [one(whole), one(y)]


for _call, _alone, _left in (
    ("hide", "alone", False),
    ("hide_left", "alone", True),
    ("padded_steps", "steps_alone", True),
):
    _how: dict[str, Any] = {"call": _call, "alone": _alone, "left": _left}
    _steps = _call == "padded_steps"  # the last two tokens are fed one by one
    _more: dict[str, Any] = (
        {"unsaid": "at every call"}
        if _steps
        else {
            "limits": "this covers a first call, rows of two lengths padded at the end, and each "
            "row alone under a mask that shows all of it"
        }
    )
    PADDING.formula(
        "attention",
        _call,
        names=ALONE,
        others=(_alone,),
        **_more,
        **SHORT,
        inputs=_ragged(*((1, 1, 3, 1), (1, 2, 3, 5)) if _steps else ((1, 1, 2, 1), (1, 3, 1, 5))),
    )(partial(_padded, **_how))
    PADDING.formula(
        "attention",
        _call,
        names=RAGGED_NAMES,
        others=(_alone,),
        **_more,
        **RAGGED,
        inputs=_ragged(
            *((1, 1, 3, 1), (1, 2, 6, 2), (2, 3, 5, 2))
            if _steps
            else ((1, 1, 1, 1), (2, 1, 1, 5), (1, 2, 4, 2))
        ),
    )(partial(_ragged_rows, **_how))


def _of_all_lengths(f: Any, x: Any, *, call: str, left: bool) -> Sides:
    """Rows of many lengths, in no order, give their outputs alone."""
    xp, (rows, n) = array_namespace(x), x.shape[:2]
    count = [1 + (2 * row + 1) % n for row in range(rows)]
    place = xp.arange(n)[None, :]
    keep = xp.concat([place >= n - c if left else place < c for c in count], axis=0)
    found = getattr(f, call)(x, keep)
    at = [slice(n - c, None) if left else slice(None, c) for c in count]
    return [found[row : row + 1, own] for row, own in enumerate(at)], [
        f.alone(x[row : row + 1, own]) for row, own in enumerate(at)
    ]


for _call, _left in (("hide", False), ("hide_left", True)):
    PADDING.formula(
        "attention",
        _call,
        names=ALONE,
        others=("alone",),
        floats=True,
        x=TOKENS,
        inputs=tuple(
            Inputs(lengths={"B": b, "n": n}) for b, n in ((2, 3), (5, 5), (3, 9), (2, 14), (2, 33))
        ),
    )(partial(_of_all_lengths, call=_call, left=_left))


@PADDING.formula(
    "attention",
    "reading",
    names=(("beside a padded context", "beside the same context alone"),),
    unsaid="at every call",
    x=TOKENS,
    y="real B m F",
    z="real B r F",
    inputs=tuple(
        Inputs(lengths=dict(zip("Bnmr", row, strict=True)))
        for row in ((1, 2, 3, 1), (3, 6, 4, 2), (2, 3, 1, 5), (2, 4, 4, 4))
    ),
)
def padded_context(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """A context with padding gives the same outputs as the context alone."""
    xp, m = array_namespace(x), y.shape[1]
    place = xp.arange(m + z.shape[1])[None, :] + 0 * xp.arange(x.shape[0])[:, None]
    padded = f.reading(x, xp.concat((y, z), axis=1), place < m)
    return padded, f.reading(x, y, place[:, :m] < m)


IN_TRAINING: dict[str, Any] = {
    "names": (("the output in training, without dropout,", "the output in evaluation"),),
    "floats": True,
}


def _without_dropout(kind: str, call: str) -> None:
    """Add the law for a call on tokens."""

    @WITHOUT_DROPOUT.formula(kind, f"{call}_undropped", **IN_TRAINING, x=TOKENS)
    def undropped(f: Any, x: Any) -> Sides:
        """The same module in training mode without dropout gives the same output."""
        return getattr(f, f"{call}_undropped")(x), getattr(f, call)(x)


_without_dropout("attention", "layer")
_without_dropout("layer", "call")


@WITHOUT_DROPOUT.formula("attention", "attend_undropped", **IN_TRAINING, **QKV)
def attend_undropped(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """The same module in training mode without dropout gives the same output."""
    return f.attend_undropped(q, k, v), f.attend(q, k, v)


PATHS = (("the main path", "another path"),)


def _alike(main: Callable[..., Any], paths: Sequence[Callable[..., Any]], *given: Any) -> Sides:
    """Return the results of the main path and of each other path."""
    return [main(*given)] * len(paths), [path(*given) for path in paths]


@PATHS_AGREE.formula(
    "rotary", "rotated_paths", names=PATHS, sizes=({"B": 1, "n": 1},), x=VECTORS, p="position B n"
)
def rotated_paths(f: Any, x: Any, p: Any) -> Sides:
    """rotate(x, p) = path(x, p)."""
    return _alike(f.rotate, f.rotated_paths, x, p)


@PATHS_AGREE.formula(
    "attention", "attended_paths", names=PATHS, sizes=({"B": 1, "r": 1, "n": 1},), **QKV
)
def attended_paths(f: Any, q: Any, k: Any, v: Any) -> Sides:
    """attend(q, k, v) = path(q, k, v)."""
    return _alike(f.attend, f.attended_paths, q, k, v)


@PATHS_AGREE.formula("attention", "layer_paths", names=PATHS, sizes=({"B": 1, "n": 1},), x=TOKENS)
def layer_paths(f: Any, x: Any) -> Sides:
    """layer(x) = path(x)."""
    return _alike(f.layer, f.layer_paths, x)


@PATHS_AGREE.formula(
    "attention",
    "hidden_paths",
    names=PATHS,
    x=TOKENS,
    keep="padding B n",
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n}, left=left)
        for b, n in ((1, 3), (3, 6), (5, 5))
        for left in (False, True)
    ),
)
def hidden_paths(f: Any, x: Any, keep: Any) -> Sides:
    """The same for padded rows, at the tokens that count."""
    xp, kept = array_namespace(x), keep[..., None]
    zero = zero_of_each(x)  # not made from the result, which may be NaN at hidden tokens
    main = xp.where(kept, f.hide(x, keep), zero)
    return (
        [main] * len(f.hidden_paths),
        [xp.where(kept, path(x, keep), zero) for path in f.hidden_paths],
    )


@PATHS_AGREE.formula("attention", "masked_paths", names=PATHS, **QKV, keep="keep B n")
def masked_paths(f: Any, q: Any, k: Any, v: Any, keep: Any) -> Sides:
    """The same under a mask, which leaves every query its own key unless it is by key alone."""
    xp, pairs = array_namespace(q), f.masked_paths
    rows = keep[:, None, None, :]
    if not f.by_key:
        rows = rows | (xp.arange(q.shape[2])[:, None] == xp.arange(k.shape[2])[None, :])
    seen = xp.broadcast_to(rows, (q.shape[0], 1, q.shape[2], k.shape[2]))
    return [main(q, k, v, seen) for main, _ in pairs], [path(q, k, v, seen) for _, path in pairs]


@PATHS_AGREE.formula("attention", "added_paths", names=PATHS, **QKV, m="real B r n")
def added_paths(f: Any, q: Any, k: Any, v: Any, m: Any) -> Sides:
    """The same under a mask of numbers."""
    pairs, shape = f.added_paths, (q.shape[0], 1, q.shape[2], k.shape[2])
    mask = array_namespace(q).broadcast_to(m[:, None, :1] if f.by_key else m[:, None], shape)
    return [main(q, k, v, mask) for main, _ in pairs], [path(q, k, v, mask) for _, path in pairs]


@PATHS_AGREE.formula("bias", "biased_paths", of_sizes=True, names=PATHS, x="real r", y="real n")
def biased_paths(f: Any, x: Any, y: Any) -> Sides:
    """biased(r, n) = path(r, n)."""
    return _alike(f.biased, f.biased_paths, x, y)


LAWS = (
    ROWS_APART,
    STATELESS,
    STEP_BY_STEP,
    PADDING,
    PATHS_AGREE,
    EVALUATION_REPEATS,
    TRAINING_RETURNS,
    WITHOUT_DROPOUT,
    NO_MUTATION,
)

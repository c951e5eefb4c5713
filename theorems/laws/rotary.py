"""Laws of rotary code: rotate(x, p) rotates vectors x at positions p, key(x, p) rotates keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .law import (
    FAR,
    GROWN,
    VECTORS,
    Inputs,
    Law,
    Sides,
    by_offset,
    composed,
    each_alone,
    linear,
    permuted,
)
from .rotated_keys import CACHE, CONVERSION, ROTATED_ONCE, SHIFT_OF_KEYS

_law = partial(Law, kinds="rotary", group="structure")
_declared = partial(Law, kinds="rotary", group="declared")
RELATIVE = _law(
    "relative",
    says="the dot product of a rotated query and a rotated key depends only on their offset",
)
NORM = _law("norm", says="rotation multiplies all norms by one factor, the same at every position")
COMPOSITION = _law(
    "composition",
    says="rotation by m and then by n is rotation by m + n, up to the factor at position 0",
)
LINEAR = _law("linear", says="rotation is linear in the vector")
IDENTITY = _law(
    "identity-at-zero",
    says="at position 0 vectors are unchanged, up to one factor and a fixed order of channels",
)
HEADS_ALIKE = _law("every-head-alike", says="all heads are rotated in the same way")
FOLLOWS_IDS = _law(
    "follows-its-ids",
    says="permuting tokens together with their position ids permutes the results; each row has "
    "its own ids",
)
EQUAL_AXES = _law(
    "equal-axes-are-one",
    says="a position with all coordinates p gives the same result as position p on a single axis",
    always=False,
)


def same_scores(f: Any, q: Any, k: Any, m: Any, p: Any, s: Any) -> Sides:
    """rotate(q, m + s)·key(k, p + s) = rotate(q, m)·key(k, p)."""
    return by_offset(lambda m, p: f.rotate(q, m) @ f.key(k, p).mT, m, p, s=s)


# Small shifts first, then shifts beyond tables of 256, 2048, 4096 positions, up to 65536.
MOVED = (
    *(
        Inputs(units=True, at={"m": (1, 0), "p": (0, 2), "s": s})
        for s in (1, 2, 5, 50, 300, 2047, 4090, 65_520)
    ),
    Inputs(units=True, at={"m": (2, 7), "p": (5, 3), "s": 1}),
    Inputs(units=True, at={"m": (0.5,), "p": (0.25,), "s": 1}),
    Inputs(at={"m": (9, 0, 4), "p": (2, 2, 7, 1), "s": 3}, lengths={"B": 2}),
)
MANY = 64  # as many queries as a head often has channels: products then take no more memory
LADDER = (0, 1, 2, 3, 7, 40, 255, 1857, 4095)
TWICE = (
    ((0, 1), (1, 1)),
    ((1, 3), (2, 5)),
    ((20, 100), (37, 157)),
    ((1000, 4000), (1049, 4097)),
    ((15, 20_000), (16_000, 12_768)),
)
OWN_IDS = (
    ((1, 0),),
    ((7, 2, 4),),
    ((0, 1), (5, 9)),
    ((0, 1, 2, 0, 1, 2),),
    ((0, 0, 0, 1, 2, 3), (0, 1, 2, 3, 4, 5), (3, 11, 40, 8, 2, 0)),
    ((FAR[1], 3, FAR[0]),),
)  # another order, a later start, different rows, restarts, packed and shorter rows, far ones
ALONE = (
    ("the first tokens among others", "these tokens alone"),
    ("the last tokens among others", "these tokens alone"),
)


@RELATIVE.formula(
    "rotary",
    "rotate",
    shown=same_scores,
    names=(("scores further along", "scores"), *ALONE, *ALONE),
    inputs=MOVED,
    q="real B H r D",
    k=VECTORS,
    m="position B r",
    p="position B n",
    s="shift",
)
def relative(f: Any, q: Any, k: Any, m: Any, p: Any, s: Any) -> Sides:
    """A common shift of all positions preserves products; no vector depends on another position."""
    left, right = ([side] for side in same_scores(f, q, k, m, p, s))
    for rotate in (f.rotate,) if f.key is f.rotate else (f.rotate, f.key):
        parts, wholes = each_alone(rotate, [q, m], [k, p], axes=(2, 1))
        left, right = left + parts, right + wholes
    return left, right


@RELATIVE.formula(
    "rotary",
    "rotate",
    names=(
        ("the first rows", "the same, beside others"),
        ("the last rows", "the same, beside others"),
    )
    * 2,
    x=VECTORS,
    y="real A H n D",
    p="position B n",
    p2="position B n",
    o="position A n",
    o2="position A n",
    further=(Inputs(at={"p": FAR}),),
)
def of_its_own_row(f: Any, x: Any, y: Any, p: Any, p2: Any, o: Any, o2: Any) -> Sides:
    """No vector depends on the positions of another row or, if they are shared, on that row."""
    concat, cut = array_namespace(x).concat, x.shape[0]
    both = concat((x, y), axis=0)
    left: list[Any] = []
    right: list[Any] = []
    for rotate in (f.rotate,) if f.key is f.rotate else (f.rotate, f.key):
        if f.shared:
            each = each_alone(lambda vectors, rotate=rotate: rotate(vectors, p[:1]), [x], [y])
            left, right = [*left, *each[0]], [*right, *each[1]]
            continue
        whole, first, last = (
            rotate(both, concat(pair, axis=0)) for pair in ((p, o), (p2, o), (p, o2))
        )
        left, right = [*left, last[:cut], first[cut:]], [*right, whole[:cut], whole[cut:]]
    return left, right


def same_norm_at_other_position(f: Any, x: Any, p: Any, o: Any, **_: Any) -> Sides:
    """|rotate(x, p)|² = |rotate(x, o)|², and tokens, heads and rows are lengthened equally."""
    left, right = _longer_alike(f.rotate(x, p), x, f.rotate(x, p), x)
    return [_square(f.rotate(x, p)), left], [_square(f.rotate(x, o)), right]


def _longer_alike(rotated: Any, x: Any, other: Any, y: Any) -> Sides:
    """|rotated|²·|y|² = |x|²·|other|², for x at every token, head and row, and y at the first."""
    a, b, c, d = (_square(v) for v in (rotated, y, x, other))
    return _with_first(a, b), _with_first(c, d)


def _with_first(x: Any, y: Any) -> Any:
    """Return x·y, for every token, head and row of x and the first of y.

    Numbers that all equal the first are equal to each other, so this implies it for all pairs.
    """
    return x * y[0, 0, 0]


NORM_SIDES = (("|rotated x|²·|y|²", "|x|²·|rotated y|²"),)


@NORM.formula(
    "rotary",
    "rotate",
    shown=same_norm_at_other_position,
    names=NORM_SIDES,
    inputs=(
        *(Inputs(lengths={"B": 1}, at={"p": LADDER, "o": o}) for o in ((0,), (1, 0))),
        Inputs(lengths={"B": 1}, at={"p": FAR, "o": (0,)}),
        Inputs(lengths={"B": 2, "n": 3}),
    ),
    x=VECTORS,
    y=VECTORS,
    p="position B n",
    o="position B n",
)
def norm(f: Any, x: Any, y: Any, p: Any, o: Any) -> Sides:
    """|rotate(x, p)|²·|y|² = |rotate(y, o)|²·|x|², x at any token, head and row, y at the first.

    If some channels pass through unchanged and others are lengthened, there is no common factor
    for all vectors; a witness is searched for with a single vector.
    """
    return _longer_alike(f.rotate(x, p), x, f.rotate(y, o), y)


def _square(x: Any) -> Any:
    return array_namespace(x).sum(x * x, axis=-1)


def nothing_vanishes(f: Any, x: Any, p: Any, **_: Any) -> Any:
    """rotate(1, 0) for the vector 1 of ones, which must have no entry 0."""
    return f.rotate(0 * x + 1, _first_position(f, p))


def _first_position(f: Any, p: Any) -> Any:
    """Return position 0, or the first position of the code."""
    return 0 * p + f.first if f.first else 0 * p


@COMPOSITION.formula(
    "rotary",
    "rotate",
    positive=nothing_vanishes,
    x=VECTORS,
    y=VECTORS,
    m="position B n",
    p="position B n",
    names=(
        ("rotated by m, then by n", "rotated by m + n, then by 0"),
        ("x at 0, times y", "y at 0, times x"),
    ),
    inputs=(
        *(Inputs(units=True, at={"m": m, "p": p}) for m, p in TWICE),
        Inputs(at={"m": (1,), "p": (2,)}, lengths={"B": 3, "n": 1}),
    ),
)
def composition(f: Any, x: Any, y: Any, m: Any, p: Any) -> Sides:
    """rotate(rotate(x, m), p) = rotate(rotate(x, m + p), 0): both contain the square of a factor.

    At position 0 each channel is multiplied by a number, the same for all tokens, heads and rows:
    rotate(x, 0)·y = rotate(y, 0)·x, for x at any place and y at the first.  Without this, positions
    that are off by one would satisfy the law, as both sides are off by two.  The number must be
    positive; otherwise both sides could be 0.  In code without a position 0, positions are counted
    from its first, and nothing is required of what it does there.
    """
    rotate, zero = f.in_order, _first_position(f, p)
    twice, once = composed(rotate, x, m, p, m + p - f.first if f.first else m + p)
    if f.first:
        return twice, rotate(once, zero)
    one, other = _multiplied(rotate(x, zero), x, rotate(y, zero), y)
    return [twice, one], [rotate(once, zero), other]


def _multiplied(a: Any, x: Any, b: Any, y: Any) -> Sides:
    """a·y = x·b for the results a of x and b of y: channels are multiplied by the same numbers."""
    return _with_first(a, y), _with_first(x, b)


@LINEAR.formula(
    "rotary",
    "rotate",
    names=(("a·x + y rotated", "a·x rotated + y rotated"),),
    x=VECTORS,
    y=VECTORS,
    a="real",
    p="position B n",
    inputs=tuple(Inputs(at={"p": p}, lengths={"B": 2}) for p in ((0, 1, 5), GROWN)),
)
def rotated_linear(f: Any, x: Any, y: Any, a: Any, p: Any) -> Sides:
    """rotate(a·x + y, p) = a·rotate(x, p) + rotate(y, p)."""
    return linear(lambda x: f.rotate(x, p), x, y, a)


@IDENTITY.formula(
    "rotary",
    "rotate",
    x=VECTORS,
    y=VECTORS,
    p="position B n",
    names=(
        ("x at 0, times y", "y at 0, times x"),
        ("how far two channels are from one factor", "nothing, or one of them stays"),
    ),
    positive=nothing_vanishes,
    inputs=tuple(
        Inputs(lengths={"B": b, "n": n}) for b, n in ((1, 1), (3, 1), (1, 3), (2, 2), ("D", 1))
    ),
)
def identity_at_zero(f: Any, x: Any, y: Any, p: Any) -> Sides:
    """rotate(x, 0)_i = c_i·x_i, with c_i = c_j unless one is 1, as for channels that pass through.

    The factors are the same for every token, head and row.  The second part is checked at the
    first place: (c_i − 1)·(c_j − 1)·(c_i − c_j) = 0 for all channels i and j.  No factor is 0.
    """
    a, b = f.in_order(x, 0 * p), f.in_order(y, 0 * p)
    one, other = _multiplied(a, x, b, y)
    a, x, b, y = (vectors[0, 0, 0] for vectors in (a, x, b, y))
    apart = a[:, None] * y[None] - x[:, None] * b[None]
    longer = (a - x)[:, None] * (b - y)[None]
    return [one, longer * apart], [other, 0 * apart]


HEADS_SIDES = (
    ("heads permuted", "the results permuted"),
    ("the first head beside others", "the first head"),
)


@HEADS_ALIKE.formula(
    "rotary",
    "rotate",
    names=HEADS_SIDES,
    x=VECTORS,
    y=VECTORS,
    p="position B n",
    sigma="permutation H",
    inputs=(
        *(Inputs(at={"p": (3, 4, 5, 6, 7, 8)}, lengths={"B": 1, "n": n}) for n in (1, "H", 5)),
        Inputs(at={"p": FAR}, lengths={"B": 1}),
    ),
)
def every_head_alike(f: Any, x: Any, y: Any, p: Any, sigma: Any) -> Sides:
    """Permuted heads give permuted results, and the first head does not depend on the others."""
    return _heads_alike(lambda a: f.rotate(a, p), x, y, sigma)


def _heads_alike(rotate: Callable[[Any], Any], x: Any, y: Any, sigma: Any) -> Sides:
    own = array_namespace(x).concat((x[:, :1], y[:, 1:]), axis=1)
    moved, heads = permuted(rotate, [x], sigma, [1])
    return [moved, rotate(own)[:, :1]], [heads, rotate(x)[:, :1]]


@FOLLOWS_IDS.formula(
    "rotary",
    "rotate",
    x=VECTORS,
    p="position B n",
    o="position B n",
    sigma="permutation n",
    rho="permutation B",
    inputs=tuple(Inputs(at={"p": p, "o": ((3, 1, 2, 0, 4, 1),)}) for p in OWN_IDS),
    names=(
        ("tokens permuted with their ids", "the results permuted"),
        ("rows permuted with their ids", "the results permuted"),
        ("the first row beside other ids", "the first row"),
    ),
)
def follows_its_ids(f: Any, x: Any, p: Any, o: Any, sigma: Any, rho: Any) -> Sides:
    """Tokens, or rows, permuted with their ids give permuted results.

    The first row does not depend on the ids of the others, hence no row does.  If all rows share
    the same ids, only tokens are permuted.
    """
    if f.shared:
        return permuted(f.rotate, [x, p], sigma, [2, 1])
    own = array_namespace(x).concat((p[:1], o[1:]), axis=0)
    sides = [
        permuted(f.rotate, [x, p], sigma, [2, 1]),
        permuted(f.rotate, [x, p], rho, [0, 0]),
        (f.rotate(x, own)[:1], f.rotate(x, p)[:1]),
    ]
    return [left for left, _ in sides], [right for _, right in sides]


@RELATIVE.formula(
    "rotary",
    "running",
    names=(("scores further along", "scores"),),
    q=VECTORS,
    k=VECTORS,
    z="real B H r D",
)
def running_relative(f: Any, q: Any, k: Any, z: Any) -> Sides:
    """Queries and keys have the same products r tokens later as at the start.

    If R(i + r)ᵀ R(j + r) = R(i)ᵀ R(j) for one i and all j, then R(j + r) = A R(j) with AᵀA = I, and
    so it is for all i: of many queries, the first ones are enough.
    """
    n, later, here = q.shape[2], _later(f, q, z), f.running(q)
    if isinstance(n, int) and n > MANY:
        later, here = later[:, :, :MANY], here[:, :, :MANY]
    return later @ _later(f, k, z).mT, here @ f.running(k).mT


def same_norm_later(f: Any, x: Any, z: Any, **_: Any) -> Sides:
    """Vectors are as long r tokens later as at the start, and all tokens are treated equally."""
    left, right = _longer_alike(f.running(x), x, f.running(x), x)
    return [_square(_later(f, x, z)), left], [_square(f.running(x)), right]


@NORM.formula(
    "rotary",
    "running",
    shown=same_norm_later,
    names=NORM_SIDES,
    x=VECTORS,
    y=VECTORS,
    z="real B H r D",
)
def running_norm(f: Any, x: Any, y: Any, z: Any) -> Sides:
    """|x|², r tokens later, grows like |y|² at the start, for x at any place and y at the first."""
    return _longer_alike(_later(f, x, z), x, f.running(y), y)


def _later(f: Any, x: Any, z: Any) -> Any:
    """Return vectors rotated with r others before them."""
    xp = array_namespace(x)
    return f.running(xp.concat((z, x), axis=2))[:, :, z.shape[2] :]


@LINEAR.formula("rotary", "running", x=VECTORS, y=VECTORS, a="real")
def running_linear(f: Any, x: Any, y: Any, a: Any) -> Sides:
    """rotate(a·x + y) = a·rotate(x) + rotate(y)."""
    return linear(f.running, x, y, a)


@HEADS_ALIKE.formula(
    "rotary", "running", names=HEADS_SIDES, x=VECTORS, y=VECTORS, sigma="permutation H"
)
def running_heads_alike(f: Any, x: Any, y: Any, sigma: Any) -> Sides:
    """Permuted heads give permuted results, and the first head does not depend on the others."""
    return _heads_alike(f.running, x, y, sigma)


@EQUAL_AXES.formula(
    "rotary",
    "one_axis",
    names=(("all coordinates p", "one axis, at p"),),
    sizes=({"n": 5},),
    x=VECTORS,
    p="place B n",
    inputs=(Inputs(at={"p": ((0, 1, 2, 5, 11), (11, 5, 2, 1, 0))}),),
)
def equal_axes_are_one(f: Any, x: Any, p: Any) -> Sides:
    """rotate(x, (p, …, p)) = rotate(x, p)."""
    return f.rotate(x, array_namespace(x).stack([p] * f.axes, axis=-1)), f.one_axis(x, p)


LAWS = (
    RELATIVE,
    NORM,
    COMPOSITION,
    LINEAR,
    IDENTITY,
    HEADS_ALIKE,
    Law(
        "sees-positions",
        "rotary additive",
        "structure",
        "different positions give different results",
    ),
    FOLLOWS_IDS,
    _law(
        "every-axis-matters", says="a change of any one coordinate of a position changes the result"
    ),
    EQUAL_AXES,
    _law(
        "grid-steps",
        says="one step to the right changes the coordinates in the same way everywhere on any grid",
    ),
    ROTATED_ONCE,
    SHIFT_OF_KEYS,
    CACHE,
    CONVERSION,
    _declared("layout-as-declared", says="the channels are paired as declared"),
    _declared(
        "width-as-declared",
        says="the declared number of channels is rotated; the others pass through unchanged",
    ),
    Law(
        "frequencies-as-declared",
        "rotary additive",
        "declared",
        "the frequencies are the declared ones, up to the precision of their format",
    ),
    _declared("length-as-declared", says="rotation multiplies norms by the declared factor"),
    _declared(
        "follows-its-arguments",
        says="a different base or scaling gives different frequencies, namely the declared ones",
    ),
    _declared(
        "odd-widths", says="an odd width is refused, or its last channel passes through unchanged"
    ),
    Law(
        "neighbours-differ",
        "rotary additive",
        "precision",
        "neighbouring positions up to 65536 give different angles",
    ),
    Law(
        "angles-are-exact", "rotary", "precision", "angles are as accurate as a product in float32"
    ),
    Law(
        "survives-casting",
        "rotary",
        "precision",
        "after .bfloat16() or .half() the frequencies are unchanged, within float32",
    ),
)

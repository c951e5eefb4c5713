"""Laws of biases of attention scores, and of position tables that are added to tokens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from .law import OF_CALLS, TOKENS, Inputs, Law, Sides

_law = partial(Law, kinds="bias", group="structure")
OFFSET_ONLY = _law(
    "offset-only",
    says="the bias depends only on the offset of query and key, up to a constant for each query",
)
LAST_ROWS = _law(
    "last-rows",
    says="the bias of the last queries alone is the last rows of the full bias, up to a constant "
    "for each query",
)
SLOPES = Law(
    "slopes-as-declared",
    "bias",
    "declared",
    "the slope of each head is the published one for this number of heads",
)
BUCKETS = Law(
    "buckets-as-declared",
    "bias",
    "declared",
    "offsets fall into the declared buckets, which separate the two directions if both are visible",
)
OWN_INDEX = _law(
    "offsets-have-own-index",
    says="distinct offsets in the window have distinct indices in the table",
)
LINEAR_SHIFT = Law(
    "linear-shift",
    "additive",
    "structure",
    "a shift of the position acts as one matrix, the same at every position",
    always=False,
)
PRODUCTS = Law(
    "products-of-offset",
    "additive",
    "structure",
    "the dot product of two rows depends only on their offset, and all rows have the same norm",
    always=False,
)


@OFFSET_ONLY.formula(
    "bias",
    "biased",
    of_sizes=True,
    x="real r",
    y="real n",
    names=(
        ("the bias further along, less that of the first key", "the bias at the start"),
        ("the bias of fewer tokens", "the bias at the start of more"),
    ),
)
def offset_only(f: Any, x: Any, y: Any) -> Sides:
    """The bias of later tokens is that of the first, up to a number for each query.

    It also is that of a shorter call: it does not depend on the number of tokens.
    """
    xp = array_namespace(x)
    long = xp.concat((x, y), axis=0)
    whole, alone = f.biased(long, long), f.biased(y, y)
    r, n = x.shape[0], y.shape[0]
    here, there = whole[:, :n, :n], whole[:, r:, r:]
    start, later, fewer = (_seen(f, xp, bias - bias[:, :, :1]) for bias in (here, there, alone))
    return [later, fewer], [start, start]


def _seen(f: Any, xp: Any, bias: Any, first: Any = 0) -> Any:
    """Return a bias; under a causal mask, with 0 for keys after their query.

    ``first`` is the position of the first query among the keys.
    """
    if not f.causal:
        return bias
    past = xp.arange(bias.shape[2])[None, :] <= first + xp.arange(bias.shape[1])[:, None]
    return xp.where(past[None], bias, 0 * bias[:, :, :1])


STEPPED = (("a step further along this axis", "the same pairs of places"),)


@OFFSET_ONLY.formula("bias", "indexed", of_sizes=True, inputs=OF_CALLS["windowed"], names=STEPPED)
def index_of_offset(f: Any) -> Sides:
    """A step of query and key along an axis does not change their index in the table."""
    index = f.indexed()
    steps = list(_steps(index))
    return [index[there] for there, _ in steps], [index[here] for _, here in steps]


def _steps(bias: Any) -> Iterator[tuple[Any, Any]]:
    """Yield, for each axis of a window, pairs of places moved one step along it and unmoved."""
    axes = (bias.ndim - 1) // 2
    for axis in range(axes):
        sides = []
        for part in (slice(1, None), slice(0, bias.shape[1 + axis] - 1)):
            place = tuple(part if k == axis else slice(None) for k in range(axes))
            sides.append((slice(None), *place, *place))
        yield sides[0], sides[1]


@OFFSET_ONLY.formula("bias", "windowed", of_sizes=True, names=STEPPED)
def offset_only_in_a_window(f: Any) -> Sides:
    """A step of query and key along an axis adds one number to all biases of the query.

    Any two pairs with the same offset are such steps apart, and the steps can be made in the same
    order for all keys; the bias has shape (H, *window, *window).
    """
    bias = f.windowed()
    first = (slice(None),) * ((bias.ndim + 1) // 2) + (slice(0, 1),) * ((bias.ndim - 1) // 2)
    there: list[Any] = []
    here: list[Any] = []
    for places in _steps(bias):
        for side, place in zip((there, here), places, strict=True):
            stepped = bias[place]
            side.append(stepped - stepped[first])
    return there, here


@LAST_ROWS.formula(
    "bias",
    "biased",
    of_sizes=True,
    sizes=({"r": 4, "n": 1},),
    x="real r",
    y="real n",
    names=(("the bias of the last queries alone", "the last rows of all"),),
)
def last_rows(f: Any, x: Any, y: Any) -> Sides:
    """The bias of the last queries alone is the last rows of all, up to a number per query."""
    xp, r = array_namespace(x), x.shape[0]
    long = xp.concat((x, y), axis=0)
    few, rows = f.biased(y, long), f.biased(long, long)[:, r:]
    few, rows = few - few[:, :, :1], rows - rows[:, :, :1]
    return _seen(f, xp, few, r), _seen(f, xp, rows, r)


@PRODUCTS.formula(
    "additive",
    "added",
    of_sizes=True,
    x="real B r E",
    y=TOKENS,
    names=(
        ("products of later rows", "of the first rows"),
        ("products of rows of a shorter call", "of the first rows of a longer one"),
    ),
    inputs=tuple(Inputs(lengths={"B": 1, "n": n, "r": r}) for n, r in ((2, 1), (63, 1), (20, 30))),
)
def products_of_offset(f: Any, x: Any, y: Any) -> Sides:
    """Rows r positions later have the products of the first rows, for any number of rows."""
    xp = array_namespace(x)
    long, alone = f.added(0 * xp.concat((x, y), axis=1)), f.added(0 * y)
    r, n = x.shape[1], y.shape[1]
    here, there = long[:, :n], long[:, r:]
    first = here @ here.mT
    return [there @ there.mT, alone @ alone.mT], [first, first]


@PRODUCTS.formula(
    "additive",
    "gridded",
    of_sizes=True,
    floats=True,
    names=(("products of rows a step further along this axis", "of the same pairs of places"),),
)
def products_on_a_grid(f: Any) -> Sides:
    """Products of rows of a grid depend only on the offset along each axis.

    A step of both places along one axis does not change them; any two pairs with the same offset
    are such steps apart.
    """
    table = f.gridded()
    every, new = (slice(None),) * (table.ndim - 1), (None,) * (table.ndim - 1)
    both = table[(None, *every, *new)] * table[(None, *new, *every)]
    products = array_namespace(table).sum(both, axis=-1)
    steps = list(_steps(products))
    return [products[there] for there, _ in steps], [products[here] for _, here in steps]


LAWS = (OFFSET_ONLY, LAST_ROWS, SLOPES, BUCKETS, OWN_INDEX, LINEAR_SHIFT, PRODUCTS)

"""Laws of traced layers, added tables, biases and masks."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from .laws import TOKENS, Sides, each_alone, law
from .laws_of_attention import causal_only

__all__: list[str] = []


@law("permutation", "layer", "call", x=TOKENS, sigma="permutation n")
def layer_permutation(f: Any, x: Any, sigma: Any) -> Sides:
    """Tokens permuted before are permuted after."""
    return f.call(x[:, sigma]), f.call(x)[:, sigma]


@law("rows-of-batch-apart", "layer", "call", x=TOKENS, y="real A n E")
def call_rows_apart(f: Any, x: Any, y: Any) -> Sides:
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.call, [x], [y])


@law("products-of-offset", "additive", "added", x="real B r E", y=TOKENS)
def products_of_offset(f: Any, x: Any, y: Any) -> Sides:
    """Rows r further along have the products of the first rows."""
    xp = array_namespace(x)
    long = f.added(0 * xp.concat((x, y), axis=1))
    r, n = x.shape[1], y.shape[1]
    here, there = long[:, :n], long[:, r:]
    return there @ there.mT, here @ here.mT


@law("rows-of-batch-apart", "additive", "added", x=TOKENS, y="real A n E")
def added_rows_apart(f: Any, x: Any, y: Any) -> Sides:
    """The rows of a batch are what those before and those after any cut are alone."""
    return each_alone(f.added, [x], [y])


@law("offset-only", "bias", "biased", x="real r", y="real n")
def offset_only(f: Any, x: Any, y: Any) -> Sides:
    """Further along the bias is what it is at the start, up to a number for each query.

    And so it is where there are no further tokens: it does not depend on how many there are.
    """
    xp = array_namespace(x)
    long = xp.concat((x, y), axis=0)
    whole, alone = f.biased(long, long), f.biased(y, y)
    r, n = x.shape[0], y.shape[0]
    here, there = whole[:, :n, :n], whole[:, r:, r:]
    start = here - here[:, :, :1]
    return [there - there[:, :, :1], alone - alone[:, :, :1]], [start, start]


@law("offset-only", "bias", "windowed")
def offset_only_in_a_window(f: Any) -> Sides:
    """A step of query and key along an axis of the window changes a query's biases by one number.

    Any two pairs of one offset are such steps apart, and the steps can be made in one order for
    all keys; the bias is (H, *window, *window).
    """
    bias = f.windowed()
    axes = (bias.ndim - 1) // 2
    there: list[Any] = []
    here: list[Any] = []
    for axis in range(axes):
        for side, part in ((there, slice(1, None)), (here, slice(0, bias.shape[1 + axis] - 1))):
            place = tuple(part if k == axis else slice(None) for k in range(axes))
            stepped = bias[(slice(None), *place, *place)]
            first = (slice(None),) * (1 + axes) + (slice(0, 1),) * axes
            side.append(stepped - stepped[first])
    return there, here


@law("last-rows", "bias", "biased", x="real r", y="real n")
def last_rows(f: Any, x: Any, y: Any) -> Sides:
    """The last queries alone have the last rows, up to a number for each query."""
    xp = array_namespace(x)
    long = xp.concat((x, y), axis=0)
    alone, rows = f.biased(y, long), f.biased(long, long)[:, x.shape[0] :]
    return alone - alone[:, :, :1], rows - rows[:, :, :1]


def _whole_past(subject: Any) -> str:
    windowed = subject.declared is not None and subject.declared.window
    return causal_only(subject) or ("the mask is declared to have a window" if windowed else "")


@law("past-is-used", "mask", "masked", _whole_past, x="real r", y="real n")
@law("causal", "mask", "masked", _whole_past, x="real r", y="real n")
def causal_mask(f: Any, x: Any, y: Any) -> Sides:
    """A query sees a key if and only if it is not after it; the last ones stand together."""
    xp = array_namespace(x)
    queries, keys = x.shape[0], y.shape[0]
    visible = f.visible(x, y)
    past = xp.arange(keys)[None, :] - xp.arange(queries)[:, None] <= keys - queries
    return visible, xp.broadcast_to(xp.where(past, 1, 0), visible.shape)

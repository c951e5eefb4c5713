"""Decide whether a formula of a law applies to some code, and whether a violation is a fault.

A formula may cover less than its law, or different code; running the code shows which.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnproof.theorems.laws import Formula
from attnproof.theorems.laws.attention import NO_MORE_QUERIES
from attnproof.theorems.laws.given_masks import ADDED

from ..applicable_laws import declared_of, not_asked, why_not_at_fault, why_order_matters
from ..calls.masks import format_mask, influences
from ..execution.draw import Draw
from ..execution.response import allowance, gap
from ..execution.rotary_matrices import channel_order_at_zero
from ..execution.running import fault_in
from ..identified_mask import IN_ORDER
from ..subjects import Attention, Bias, Layer, Mask, Rotary, Subject
from .weights import (
    DECLARE,
    INDEPENDENT_WEIGHTS,
    drawn,
    no_multiple,
    no_order,
    no_softmax,
    ratios_see_others,
    weights_are,
)

MOST_KEYS = 300  # put into a cache
LONGER = 16  # rows of a table, compared with a table of half as many
FLOAT32_EPSILON = 2.0**-23  # at position 0 only products with 1 and 0 are computed


def no_formula(formula: Formula, subject: Subject, *, named: bool = False) -> str:
    """Return why the formula of a law does not apply to this code, or "" if it applies.

    A formula also does not apply if it demands more of the code than the law does.  Running the
    code reveals weights that need not sum to one, scores that do not shift by a common number when
    a vector is added to all keys, and keys that have an order although nothing is declared.
    """
    why = not_asked(formula.id, subject, named=named)
    if why:
        return why
    if formula.id == "products-of-offset":
        if formula.call == "gridded":
            return _run(_no_products, subject)
        return _why_no_sequence(subject) or _run(depends_on_length, subject)
    declared = declared_of(subject)
    if formula.id == "step-by-step" and not declared.causal:
        return _run(_sees_ahead, subject)
    if formula.id == "alignment" and formula.call == "attend":
        at_end = declared.alignment == "end"
        return (
            "" if at_end else "it is not declared that the last query is aligned with the last key"
        )
    if formula.names == ADDED:
        return _run(_no_ratios, subject)
    if formula.floats:
        return ""
    if formula.id == "queries-apart" and not formula.unsaid:  # a query alone has another position
        return why_order_matters(subject) or _run(no_order, subject)
    if formula.id in IN_ORDER and formula.call == "attend" and not named:
        return _run(no_order, subject)
    if formula.id == "equal-axes-are-one":
        return _no_one_axis(subject)
    return (
        REASONS_FROM_RUNS[formula.id](formula, subject) if formula.id in REASONS_FROM_RUNS else ""
    )


def _why_no_sequence(subject: Any) -> str:
    """Return why rows of a table are not consecutive, or "" if tokens form a sequence."""
    return "its tokens form a grid" if subject.grid is not None else ""


def _no_products(subject: Any, draw: Draw) -> str:
    """Return why the products of a gridded table are not checked: its rows differ in length.

    A table declared to be sinusoidal is always checked.
    """
    if subject.declared is not None:
        return ""
    zero = torch.zeros(1, 9, subject.width, dtype=draw.dtype, device=draw.device)
    lengths = subject.added(zero)[0].double().norm(dim=-1)
    alike = bool((lengths - lengths.mean()).abs().max() <= 1e-3 * lengths.mean())
    return "" if alike else "its rows differ in length, so they are not sines and cosines"


def depends_on_length(subject: Any, draw: Draw) -> str:
    """Return why rows are not functions of their positions: they change with the number of rows.

    This is the case for coordinates that run from one end to the other and for normalized tables.
    A table declared to be sinusoidal is always checked.
    """
    if subject.declared is not None or subject.most < LONGER:
        return ""
    few, many = (
        subject.added(torch.zeros(1, n, subject.width, dtype=draw.dtype)).double()[0]
        for n in (LONGER // 2, LONGER)
    )
    off = float((few - many[: LONGER // 2]).abs().max())
    told = "its rows change with their number: they do not depend on the position alone"
    return told if off > 1e-4 * float(few.abs().max()) else ""


def _no_ratios(subject: Any, draw: Draw) -> str:
    """Return why the ratio of two weights does not determine their scores, or "" if it does."""
    other = weights_are(subject, draw) == INDEPENDENT_WEIGHTS or ratios_see_others(subject, draw)
    return "the weights are not a softmax: their ratios do not show what a mask adds" * other


def _sums(formula: Formula, subject: Any) -> str:
    """Return why rows of weights need not sum to 1, or "" if they must.

    The formula covers any number of queries, or at most as many queries as keys.
    """
    hidden = _run(_sees_no_key, subject)
    if formula.given["q"] == NO_MORE_QUERIES:
        hidden = "" if hidden else "the formula for any number of queries is checked"
    return _run(no_softmax, subject) or hidden


def _sees_no_key(subject: Any, draw: Draw) -> str:
    """Return a reason if, of more queries than keys, the first reads nothing but the last does."""
    if subject.attend is None:
        return ""
    q, k = drawn(subject, draw, KEYS, KEYS - 2, 83)
    read = subject.attend(q, k, torch.ones_like(k), None).nan_to_num().abs().amax((0, 1, 3))
    none = not bool(read[0]) and bool(read[-1])
    return "with more queries than keys, the first see no key" if none else ""


def _evicts_nothing(subject: Any, draw: Draw) -> str:
    """Return why a cache shows nothing: it holds all the keys that are tried."""
    kept, _, _ = subject.evict(draw.normal(1, subject.heads, MOST_KEYS, subject.width, salt=9))
    went = kept.shape[2] < MOST_KEYS
    return "" if went else f"{MOST_KEYS} keys fit into the cache, and none was evicted"


def _sees_ahead(subject: Any, draw: Draw) -> str:
    """Return why code without a declared mask cannot be fed in pieces, or "" if it can."""
    layer = subject.call if isinstance(subject, Layer) else getattr(subject, "layer", None)
    if layer is None:  # rotary code rotates each token alone
        return ""
    x = draw.normal(1, 3, subject.embed, salt=7)
    other = torch.cat((x[:, :2], draw.normal(1, 1, subject.embed, salt=8)), 1)
    at_once = allowance(layer, x, draw=draw)
    away = (at_once.output - layer(other)).abs()[:, :2]
    ahead = bool(away.max() > at_once(2))
    return "its tokens see later ones, which they cannot if fed in pieces" if ahead else ""


# Reasons against checking a law that are found by running the code.
REASONS_FROM_RUNS: dict[str, Callable[[Formula, Any], str]] = {
    "cache-keeps-its-positions": lambda _, subject: _run(_evicts_nothing, subject),
    "rows-sum-to-one": _sums,
    "shift-of-scores": lambda _, subject: _run(no_multiple, subject) or _run(no_softmax, subject),
}


def _no_one_axis(subject: Any) -> str:
    """Return why code of several axes has no rotation along a single axis, or "" if it has.

    The sizes in the call all differ, so that its axes cannot be confused.
    """
    x = Draw().normal(2, subject.heads, 5, subject.width)
    ids = torch.tensor([0, 1, 2, 5, 11]).clamp(max=max(1, subject.most - 1 - subject.first))
    ids = torch.stack((ids, ids.flip(0))) + subject.first
    ids = ids if subject.whole else ids.float()
    with torch.no_grad():
        try:
            one = subject.rotate(x.clone(), ids)
            single = subject.rotate(x[1:, :, 1:2].clone(), ids[1:, 1:2].contiguous())
        except Exception as error:  # noqa: BLE001 (any code may raise anything)
            return f"it does not accept positions of one axis ({type(error).__name__})"
        alike = one.shape == x.shape and torch.allclose(one[1:, :, 1:2], single, 1e-4, 1e-4)
    return "" if alike else "what it does with positions (B, n) is not a rotation of each token"


def _run(why_not: Callable[[Any, Draw], str], subject: Subject) -> str:
    """Return the reason found by running the code, or "" if the code cannot be run this way.

    Faults of attnproof itself propagate, since they say nothing about the code.
    """
    try:
        return why_not(subject, _draw(subject))
    except Exception as error:  # the code may raise anything
        if fault_in(subject, error) is not None:
            raise
        return ""


def _draw(subject: Subject) -> Draw:
    """An input distribution with the dtype and device of the weights of the code."""
    module = getattr(subject, "module", None)
    held = [] if module is None else [p for p in module.parameters() if p.is_floating_point()]
    return Draw(0, held[0].dtype, str(held[0].device)) if held else Draw()


def channel_order(
    subject: Rotary,
    key: bool = False,
    given: Callable[[Tensor], Tensor] = lambda x: x,
    numbers: Callable[[Any], Tensor] = lambda found: found,
) -> list[int] | None:
    """The place of each channel in the result at position 0, or None if the order is unchanged.

    Scores do not depend on a fixed order of the channels that queries and keys share.  ``given``
    converts vectors and positions to the form in which a method passes them, and ``numbers``
    converts the result back.
    """
    if subject.first > 0:
        return None
    unit = torch.eye(subject.width).expand(1, subject.heads, -1, -1).contiguous()
    at = torch.zeros(1, subject.width, *[subject.axes] * bool(subject.axes), dtype=torch.int64)
    rotate = subject.rotate_key if key else subject.rotate
    with torch.no_grad():
        zero = numbers(rotate(given(unit), given(at if subject.whole else at.float())))[0].double()
    order = channel_order_at_zero(zero, subject.width * FLOAT32_EPSILON)
    return None if order is None else order.tolist()


def plain_arguments(subject: Subject) -> dict[str, Any]:
    """The plain numbers and flags of a subject that laws use."""
    found: dict[str, Any] = {}
    if isinstance(subject, Mask | Attention):
        declared = declared_of(subject)
        found = {
            "past": bool(declared.causal),
            "window": declared.window or 0,
            "at_end": declared.alignment == "end",
            "hidden_row": declared.hidden_row,
        }
    if isinstance(subject, Mask):
        return found
    names = ("first", "heads", "groups", "axes", "causal", "values_rotate", "by_key", "shared")
    found |= {name: getattr(subject, name) for name in names if hasattr(subject, name)}
    return {**found, "causal": subject.causal if isinstance(subject, Bias) else False}


KEYS = 8
SCORES = (
    "what is returned beside the output is not what multiplies the values, and its rows do "
    "not add up to 1: scores may be meant"
)
NEAR_ONE = 1e-2  # far above the rounding of a sum of weights in short formats, far below scores


def why_not_a_fault(law: str, subject: Subject, draw: Draw, floor: float = 0.0) -> str:
    """Return why code that breaks a law need not be at fault, or "" if its declaration says it is.

    With relative positions equal tokens have equal outputs; a mask hides some tokens from others.
    """
    if law == "true-means-visible" and isinstance(subject, Mask):
        declared = declared_of(subject)
        told = "some query does not see its own key; declare the mask to have it checked"
        said = declared.causal is not None or declared.window or subject.padded is not None
        return "" if said else told
    if law == "weights-as-shown":
        return _look_like_scores(subject, draw)
    if few := why_not_at_fault(law, subject):
        return few
    if law not in IN_ORDER:
        return ""
    known: Any = subject
    call = known.call if isinstance(subject, Layer) else known.layer
    if law == "permutation" and call is not None:
        return _tokens(known, call, draw, floor)
    return no_order(known, draw, KEYS)


def _look_like_scores(subject: Any, draw: Draw) -> str:
    """Return why the second result looks like scores: its rows do not sum to 1."""
    off = (subject.weights(*drawn(subject, draw, KEYS, KEYS, 81)).double().sum(-1) - 1).abs().max()
    return "" if off < NEAR_ONE else SCORES


def _tokens(subject: Any, call: Callable[[Tensor], Tensor], draw: Draw, floor: float) -> str:
    declared = declared_of(subject)
    if declared.positions == "none" and declared.causal is False:
        return ""
    x = draw.normal(2, KEYS, subject.embed, salt=81)
    reached = influences(call, x, draw) > 0
    if not bool(reached.all()):
        hidden = (
            "permuted tokens gave different outputs, and some tokens do not reach others "
            f"({' '.join(format_mask(reached))}): a mask that is not declared, or tokens "
            f"that are mixed with heads; {DECLARE}"
        )
        return "" if declared.causal is False else hidden
    one = x[:, :1].expand_as(x).contiguous()
    equal = allowance(call, one, draw=draw, floor=floor)
    alike = gap(equal.output, equal.output[:, :1].expand_as(equal.output)) <= equal()
    if declared.causal is False and not alike:
        return ""
    words = "relative" if alike else "absolute"
    return (
        f"permuted tokens gave different outputs: the code looks at positions ({words}) that are "
        f"not declared, or is wrong; {DECLARE}"
    )

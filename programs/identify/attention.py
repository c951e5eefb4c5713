"""Identify attention code: scale, mask, heads and groups, softmax axis, and additions to scores."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..execution.calling import evaluating
from ..execution.draw import Draw
from ..execution.response import coarsest_unit
from ..finding import Identity, Part, format_number
from ..reading.projections import (
    ProjectedRun,
    projected,
    projections_of,
    setting_projections,
)
from ..reading.weights import (
    Cap,
    Scale,
    cap_of,
    drawn,
    groups_of,
    scale_of,
    scale_of_own_key,
    weights_of,
)
from ..subjects import Attention
from .bias import offsets_part
from .influence import layer_parts, repetition
from .masks import mask_parts, pattern, pattern_of_more_keys
from .precision import shorter_format

FEW, PLACES = 6, 8  # tokens, and places at which equal queries and keys stand
SMALL, LARGE = 24, 160  # keys for which a mask is read; the second if that is quick
QUICK = 0.05  # seconds that the small call may take for the large one to be made


def identify_attention(code: Attention, draw: Draw) -> Identity:
    """Identify attention by reading its weights from one-hot values.

    A layer that takes only tokens is identified by which tokens influence which outputs.
    """
    with torch.no_grad(), evaluating(code):
        if code.attend is None:
            return Identity("attention", _with_inner(code, draw, layer_parts(code, draw)))
        again = _repeats(code, draw)
        if again.value:
            rest = Part(
                "unread", None, "so that the rest was not read", again.evidence, certain=False
            )
            return Identity("attention", (again, rest), tuple(_answers([again])))
        start = time.thread_time()  # independent of the load of the machine
        square = _weights(code, draw, SMALL, SMALL)
        if time.thread_time() - start < QUICK:
            square = _weights(code, draw, LARGE, LARGE)
        try:
            wide = (_weights(code, draw, 3, 7)[0] != 0).any(0)
        except Exception:  # noqa: BLE001 (code for equal numbers of queries and keys)
            wide = None
        q, k = drawn(code, draw, 3, 3, 13)
        unit = max(coarsest_unit(code.attend, q, k, k, None)[1], unit_roundoff(draw.dtype))
        axis = _softmax(square, unit)
        groups = groups_of(code, draw)
        seen = (square[0] != 0).any(0)
        apart = not bool(((square[0] != 0) == seen).all())
        chosen = not bool(((square[1] != 0) == (square[0] != 0)).all())
        rule, keys = pattern(seen, wide), square.shape[-1]
        with suppress(Exception):  # code may not take so many keys
            rule, keys = pattern_of_more_keys(
                rule, lambda n: (_weights(code, draw, n, n)[0] != 0).any(0), keys
            )
        told_keys = (
            f"keys with a weight above 0 for {keys} queries; the first queries see "
            f"{', '.join(map(str, rule.counts[:8]))}"
        )
        more = " (of the heads together)" * apart
        few = _weights(code, draw, 6, 6)
        visible = (few[0] > 0).all(0)
        scale = scale_of(code, draw, groups, visible, unit=unit)
        cap = None
        if scale is not None and not scale.linear and axis.value == "keys":
            cap = cap_of(code, draw, scale.keys, visible)
        parts = [
            *_scale(code, scale, cap, axis.value == "keys"),
            *([_chosen()] if chosen else rule.parts(told_keys, more)),
            *_grouping(code, groups, scale),
            axis,
            *_added(code, draw, unit),
            *_rotates(code, draw, scale),
            *shorter_format(unit, draw),
            *(mask_parts(code, draw, groups) if axis.value == "keys" else ()),
            again,
        ]
        if code.layer is not None:
            parts += layer_parts(code, draw, short=True)
    return Identity("attention", tuple(parts), tuple(_answers(parts)))


def _with_inner(code: Attention, draw: Draw, parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of a layer, with those of the attention inside it if they can be read."""
    whole, inner = [*parts], []
    if any(one.name == "scale" for one in whole):
        with suppress(Exception):  # the code may be of other shapes inside
            inner = _inner_parts(code, draw)
        with suppress(Exception):  # nor need it have a gradient
            inner += _without_gradient(code, draw)
    known = {one.name for one in inner}
    return (*inner, *(one for one in whole if one.name not in known))


def _without_gradient(layer: Attention, draw: Draw) -> Iterator[Part]:
    """Yield a part if no gradient reaches a projection: it is not used, or is cut off."""
    parts, run = projections_of(layer.module), ProjectedRun({})
    if parts is None or layer.layer is None:
        return
    x = draw.normal(1, layer.only_length or FEW, layer.embed, salt=15)
    with torch.enable_grad(), setting_projections(layer.module, parts, run):
        out = layer.layer(x)
        weights: list[Any] = [one.weight for one in parts.values()]
        made = [*run.made.values()]
        found: Sequence[Tensor | None] = torch.autograd.grad(
            out.square().sum(),
            [*weights, *made],
            allow_unused=True,
        )
    cut = [name for name, grad in zip(parts, found, strict=False) if grad is None]
    joint = found[-1] if "qkv" in run.made else None
    if joint is not None and not joint.shape[-1] % 3:
        width = joint.shape[-1] // 3
        cut += [
            f"channels {start} to {start + width - 1} of qkv"
            for start in range(0, 3 * width, width)
            if not bool(joint[..., start : start + width].any())
        ]
    if cut:
        yield Part(
            "weights",
            cut,
            f"no gradient reaches {' and '.join(cut)}",
            f"the gradient of the outputs of {x.shape[1]} tokens",
        )


def _inner_parts(layer: Attention, draw: Draw) -> list[Part]:
    """Return scale, groups and axis of the softmax, read where the projections of a layer are set.

    Empty unless the weights there are a softmax of a multiple of q·k, perhaps with a soft cap or
    over another axis.
    """
    code = projected(layer)
    if code is None or code.attend is None:
        return []
    q, k = drawn(code, draw, 3, 3, 13)
    unit = max(coarsest_unit(code.attend, q, k, k, None)[1], unit_roundoff(draw.dtype))
    few = _weights(code, draw, 6, 6)
    axis, visible = _softmax(few, unit), (few[0] > 0).all(0)
    if axis.value != "keys":
        return [axis, *shorter_format(unit, draw)] if axis.value else [*shorter_format(unit, draw)]
    groups = groups_of(code, draw)
    scale = scale_of(code, draw, groups, visible, unit=unit)
    cap = None
    if scale is not None and not scale.linear:
        cap = cap_of(code, draw, scale.keys, visible)
        scale = scale if cap else scale_of_own_key(code, draw, groups, unit=unit)
    read = groups is not None and scale is not None and (scale.linear or cap is not None)
    inside = (*_scale(code, scale, cap, usual=True), *_grouping(code, groups, scale))
    return [
        *(inside if read else ()),
        *_by_places(code, draw, scale, unit),
        *shorter_format(unit, draw),
    ]


def _by_places(code: Attention, draw: Draw, scale: Scale | None, unit: float) -> Iterator[Part]:
    """Yield a part if scores of equal queries with equal keys depend on more than the offset."""
    q, k = drawn(code, draw, 1, 1, 14)
    w = weights_of(code, q.expand(-1, -1, PLACES, -1), k.expand(-1, -1, PLACES, -1))[0]
    seen = (w > 1e-30).all(0)
    if not bool(seen.diagonal().all()):
        return
    logs = torch.where(seen, w.clamp(min=1e-30).log(), 0.0)
    own = logs - logs.diagonal(dim1=-2, dim2=-1)[..., None]
    off = 0.0
    for offset in range(1 - PLACES, PLACES):
        along, use = own.diagonal(offset, -2, -1), seen.diagonal(offset)
        if bool(use.any()):
            off = max(off, float((along[:, use].amax(-1) - along[:, use].amin(-1)).max()))
    sizes = abs(scale.value if scale else 1) * float(q.norm(dim=-1).max() * k.norm(dim=-1).max())
    if off > 64 * unit * (PLACES + (code.width + PLACES) * max(1.0, sizes)):
        yield Part(
            "scores",
            "places",
            "scores that depend on the places of query and key, not on their offset alone",
            f"equal queries and equal keys at one offset, whose scores differ by {off:.2g}",
        )


def _weights(code: Attention, draw: Draw, T: int, S: int) -> Tensor:
    q = draw.normal(2, code.heads, T, code.width, salt=5)
    k = draw.normal(2, code.groups, S, code.width, salt=6)
    return weights_of(code, q, k)


def _softmax(w: Tensor, unit: float) -> Part:
    """The axis over which the weights sum to 1."""
    # each weight is off by a few roundings of its own size, and these sizes sum to 1; all are off
    # by the rounding of the denominator, which is kept in float32 at least
    tol = 16 * unit + w.shape[-1] * unit_roundoff(torch.float32)
    if not bool(w.isfinite().all()):
        return Part("softmax", None, "weights that are not finite", "NaN or inf among the weights")
    names = ("rows of the batch", "heads", "queries", "keys")
    for dim in (3, 2, 1, 0):
        off = float((w.sum(dim) - 1).abs().max())
        if off <= tol:
            words = f"softmax over {names[dim]} (weights of a query do not add up to 1)"
            seen = f"sums over {names[dim]} are 1 within {off:.1g}"
            return Part("softmax", names[dim], "" if dim == 3 else words, seen)
    rows = w.sum(3)
    low, high = float(rows.min()), float(rows.max())
    least, most = f"{low:.3g}", f"{high:.3g}"
    words = f"weights of a query that add up to {least if least == most else f'{least} to {most}'}"
    return Part("softmax", None, words, "sums over keys, queries, heads and rows are not 1")


def _scale(code: Attention, scale: Scale | None, cap: Cap | None, usual: bool) -> Iterator[Part]:
    if scale is None or not usual:
        seen = "too few weights are above 0" if usual else "weights are not a softmax over keys"
        yield Part("scale", None, "scale not read", seen, certain=False)
        return
    read = f"logarithms of weights are the scale times q·k within {scale.off:.1g}"
    if cap is not None:
        near = replace(scale, value=cap.scale, radius=1e-3 * cap.scale)
        seen = f"logarithms of weights are c·tanh(s/c) within {cap.off:.1g}, s the scale times q·k"
        yield Part(
            "scale", cap.scale, f"scale {near.named(code.width, code.embed, code.heads)}", seen
        )
        yield Part(
            "soft cap", cap.value, f"scores softly capped at {format_number(cap.value)}", seen
        )
        return
    if not scale.linear:
        yield Part(
            "scale",
            None,
            "scores that are not a multiple of q·k",
            f"{read}; rounding allows {scale.allows:.1g}",
            certain=False,
        )
        return
    name = scale.named(code.width, code.embed, code.heads)
    seen = f"{read}; the scale is within {scale.radius:.1g}"
    yield Part("scale", scale.value, f"scale {name}", seen)


def _grouping(code: Attention, groups: list[int] | None, scale: Scale | None) -> Iterator[Part]:
    H, G = code.heads, code.groups
    seen = "values that are constant in each group of their own"
    if groups is None:
        yield Part("grouping", None, f"{H} heads that mix groups of values", seen)
        return
    heads = f"{H} head{'s' * (H > 1)}"
    if G == H and groups == list(range(H)):
        yield Part("grouping", groups, heads, seen)
    elif groups == [h * G // H for h in range(H)]:
        yield Part("grouping", groups, f"{heads} on {G} groups, each repeated", seen)
    elif groups == [h % G for h in range(H)]:
        words = f"{heads} on {G} groups, tiled (head h reads group h mod {G})"
        yield Part("grouping", groups, words, seen)
    else:
        yield Part("grouping", groups, f"{heads} that read the groups {groups[:8]}", seen)
    if scale is not None and scale.linear and list(scale.keys) != groups:
        words = f"keys of other groups than values: {list(scale.keys)[:8]}"
        yield Part("groups of keys", list(scale.keys), words, "the fit of the scale")


def _chosen() -> Part:
    """The part for keys that are visible by their content, as when only the largest are kept."""
    return Part(
        "mask",
        None,
        "keys that are visible depending on their content",
        "two rows of a batch, in which other keys have a weight",
        certain=False,
    )


def _added(code: Attention, draw: Draw, unit: float) -> Iterator[Part]:
    """Yield what is added to scores, read off the weights of queries that are 0.

    For equal keys such weights depend on places alone; for random keys also on terms of each key.
    """
    q = torch.zeros(1, code.heads, 12, code.width, dtype=draw.dtype, device=draw.device)
    keys = draw.normal(1, code.groups, 12, code.width, salt=7)
    equal = keys[:, :, :1].expand_as(keys).contiguous()
    added, other = (weights_of(code, q, k)[0] for k in (equal, keys))
    if bool((added >= 0).all()) and bool(added.diagonal(dim1=-2, dim2=-1).all()):
        yield from offsets_part(added.log())
    both = (added > 0) & (other > 0)
    off = float(torch.where(both, other / added.clamp(min=1e-300) - 1, 0.0).abs().max())
    if off > 64 * unit * (12 + code.width):
        yield Part(
            "keys",
            True,
            "scores with a term that depends on the key alone",
            f"queries that are 0 weigh the other keys differently, by {off:.2g} of the weight",
            certain=False,
        )


def _rotates(code: Attention, draw: Draw, scale: Scale | None) -> Iterator[Part]:
    """Yield a part if scores of equal keys depend on their places, for queries that are not 0."""
    q, k = drawn(code, draw, 12, 1, 8)
    k = k.expand(-1, -1, 12, -1).contiguous()
    w, zero = (weights_of(code, x, k)[0] for x in (q, torch.zeros_like(q)))
    use = (w > 0).all(0) & (zero > 0).all(0)
    y = torch.where(use, w.log() - zero.log(), 0.0)
    y = torch.where(use, y - y.sum(-1, keepdim=True) / use.sum(-1).clamp(min=1)[:, None], 0.0)
    most = 64 * unit_roundoff(draw.dtype) * (12 + code.width * float(q.norm(dim=-1).max()))
    off = float(y.abs().max())
    if scale is not None and off > max(most, scale.allows):
        yield Part(
            "positions",
            True,
            "queries and keys that change with their positions",
            f"equal keys get weights whose logarithms differ by {off:.2g}",
        )


def _repeats(code: Attention, draw: Draw) -> Part:
    """Whether two calls in evaluation mode give different results."""
    assert code.attend is not None  # checked by the caller
    q = draw.normal(2, code.heads, 6, code.width, salt=10)
    k, v = (draw.normal(2, code.groups, 6, code.width, salt=s) for s in (11, 12))
    attend = code.attend
    return repetition(lambda: attend(q, k, v, None))


def _answers(parts: list[Part]) -> Iterator[str]:
    """Yield a sentence for each fault that is wrong under any intention."""
    for part in parts:
        if part.name == "softmax" and part.value != "keys":
            yield f"is it softmax over keys? no: {part.words}"
        if part.name == "grouping" and "tiled" in part.words:
            yield (
                "are key heads grouped right? no: they are tiled; published models repeat each "
                "key head for the neighbouring query heads of its group"
            )
        if part.name == "alignment" and part.value == "start":
            yield (
                "does one query with a cache see all keys? no: the causal mask is aligned at "
                "the start, so that query t sees keys up to t"
            )
        if part.name in ("dropout in evaluation", "earlier calls") and part.value:
            yield "is evaluation repeatable? no: two calls give different results"

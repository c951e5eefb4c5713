"""Identify rotary code: layout, width, base, scaling, length, sign, precision, axes, positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..execution.draw import Draw
from ..execution.rotary_matrices import (
    FURTHEST,
    channel_order_at_zero,
    may_be_faster,
    probe_positions,
    require_shape_of,
    rounding_for,
    speeds,
)
from ..finding import Identity, Part, format_number
from ..reading.rotations import (
    LARGEST,
    Blocks,
    Images,
    images,
    layout_name,
    pairs_of,
    reading_error,
    stored_in,
    table_pairs,
)
from ..reading.scalings import attention_factor
from ..subjects import Rotary
from .frequencies import Dynamic, Ladders, dynamic_of, ladders
from .precision import precise_answer, precision_parts, shorter_format, table_part

SLOW = (
    3.0  # radians per position: slower pairs are not mistaken for pairs that make whole turns more
)
STEP = 2.0**-10  # if positions need not be integers


def identify_rotary(code: Rotary, draw: Draw) -> Identity:
    """Identify rotary code by its action on unit vectors at 0, 1, 2, 4, .. and places between."""
    code = replace(code, most=code.longest or code.most)
    with torch.no_grad():
        ids = position_ids_followed(code, draw)
        if ids == "none":
            words = "which does not look at positions"
            seen = "vectors at different positions give equal results"
            return Identity("rotary", (Part("positions", ids, words, seen),))
        code = _with_fractional_positions(code, draw) if ids == "own" else code
        code, order = _in_order(code, draw)
        dynamic = dynamic_of(code, draw) if ids == "own" else None
        seen_at = _places(code, ids, dynamic)
        every = [images(code, seen_at, draw, axis=a) for a in range(code.axes or 1)]
        finite = [one.finite() for one in every]
        found = _read(code, draw, finite, ids, dynamic)
        short = shorter_format(rounding_for(code, draw).unit, draw)
        found = replace(found, parts=(*found.parts, *order, *short))
        if all(len(a.positions) == len(b.positions) for a, b in zip(every, finite, strict=True)):
            return found
        lost = min(
            p
            for one in every
            for p in one.positions.tolist()
            if p not in set(one.finite().positions.tolist())
        )
        part = Part(
            "overflow",
            lost,
            f"NaN or infinity from position {format_number(lost)} on",
            "inf or NaN in the image of a unit vector",
        )
        return replace(found, parts=(*found.parts, part))


def _in_order(code: Rotary, draw: Draw) -> tuple[Rotary, list[Part]]:
    """Undo a reordering of the channels in the results of the code.

    At position 0 nothing rotates, which leaves only the order.  Queries and keys that are reordered
    in the same way have the same products.
    """
    if code.first > 0:
        return code, []
    goes, D = channel_order_at_zero(images(code, torch.tensor([0]), draw).at[:1], 0.0), code.width
    if goes is None:
        return code, []
    rotate, key = code.rotate, code.rotate_key

    def back(x: Tensor) -> Tensor:
        return x[..., goes.to(x.device)]

    half = torch.arange(D).view(-1, 2).T.flatten() if D % 2 == 0 else torch.arange(D)
    name = "half-split" if torch.equal(goes.argsort(), half) else "another"
    part = Part(
        "order of results",
        goes.tolist(),
        f"its results in {name} order",
        "where the unit vectors go at position 0",
    )
    put_back = replace(
        code,
        rotate=lambda x, p: back(rotate(x, p)),
        key=None if code.key is None else lambda x, p: back(key(x, p)),
    )
    return put_back, [part]


def position_ids_followed(code: Rotary, draw: Draw) -> str:
    """Return whose position ids are used: own, index (the running index), first row, or none."""
    high, low = (min(p, code.most - 1) for p in (7, 3))
    x = draw.normal(1, code.heads, 1, code.width).expand(2, -1, 3, -1).contiguous()
    ids = torch.tensor([[high] * 3, [low] * 3], device=draw.device)
    if not code.whole:  # integer coordinates may be whole turns apart
        ids = ids.float() / 10
    if code.axes:
        ids = ids[..., None].expand(2, 3, code.axes).contiguous()
    out = code.rotate(x, ids)
    require_shape_of(x, out)
    out = out.double()
    # two results from the same numbers differ by a few roundings of a vector's largest entry
    tol = 32 * unit_roundoff(draw.dtype) * float(x.abs().max())
    if float((out[0] - out[0, :, :1]).abs().max()) > tol:
        return "index"
    if float((out[0] - out[1]).abs().max()) > tol:
        return "own"
    alone = code.rotate(x[1:], ids[1:]).double()
    return "none" if float((alone - out[1:]).abs().max()) <= tol else "first row"


def _with_fractional_positions(code: Rotary, draw: Draw) -> Rotary:
    """Let the code take fractional positions, if it can and some pair rotates by about half a turn.

    At integer positions a frequency is known only up to whole turns, so such pairs are read between
    them.
    """
    if not code.whole or code.first or float(speeds(code, draw).max()) < SLOW:
        return code
    return code if may_be_faster(code, draw) else replace(code, whole=False)


def _places(code: Rotary, ids: str, dynamic: Dynamic | None) -> Tensor:
    """The positions at which the code is read."""
    if not code.whole:
        fine: Tensor = probe_positions(FURTHEST).double() * STEP
        return fine
    furthest = min(FURTHEST, code.most - 1)
    if dynamic is not None:
        furthest = min(furthest, max(dynamic.length - 1, 1))
    if ids == "index":
        size = code.width**2 * code.heads
        return torch.arange(min(furthest + 1, max(4, LARGEST // size)))
    found = torch.unique(torch.cat((probe_positions(furthest), torch.tensor([furthest]))))
    kept: Tensor = found[found >= code.first]
    return kept


def _read(
    code: Rotary, draw: Draw, every: Sequence[Images], ids: str, dynamic: Dynamic | None
) -> Identity:
    """The parts, from images of the unit vectors along each axis."""
    partners = [set.union(*(row)) for row in zip(*(one.partners() for one in every), strict=True)]
    if any(len(p) > 1 for p in partners):
        crowded = next(i for i, p in enumerate(partners) if len(p) > 1)
        words = "which mixes more than two channels"
        seen = f"channel {crowded} is mixed with {sorted(partners[crowded])[:6]}"
        return Identity("rotary", (Part("layout", "none", words, seen),))
    pairs = pairs_of(partners)
    if not pairs:
        seen = "no channel takes from another at any position"
        return Identity("rotary", (Part("layout", "none", "which rotates no channels", seen),))
    blocks = [one.blocks(pairs) for one in every]
    table = stored_in(blocks[0].numbers, draw.dtype)
    noise = reading_error(table)
    channels = sorted(c for pair in pairs for c in pair)
    parts = [_layout(pairs), _width(code, channels)]
    if code.given.get("angles"):
        parts[1] = replace(parts[1], words="")  # the width follows from the given angles
    answer, broken = rotate_half_answer(blocks, pairs, noise)
    numbers: dict[str, tuple[float, ...]] = {}
    made = code.given.get("angles", "")
    if broken:
        parts.append(Part("rotation", "none", "whose pairs are not rotated", broken))
    else:
        found = ladders(blocks, pairs, noise, code)
        given = Part("angles", "given", "which is given its angles", f"it was given {made}")
        parts += [given] if made else [*found.parts(), *([dynamic.part()] if dynamic else [])]
        parts += [_length(blocks, found, noise), _sign(found, code)]
        if not made:
            parts += precision_parts(code, draw, blocks, found, noise, ids, dynamic)
            numbers = {
                "frequencies": tuple(found.used.tolist()),
                "radius": tuple(found.radius.tolist()),
            }
        parts.append(table_part(table, draw.dtype))
    parts += [
        _ids_part(ids),
        *_heads(every, noise),
        *_other_channels(code, every, channels, noise),
        *_keys(code, draw, every[0], noise),
        *_values(code, draw),
    ]
    answers = [answer, *([precise_answer(parts)] if not (broken or made) else [])]
    answers += [
        f"is the attention factor right? no: {part.words} ({part.evidence})"
        for part in parts
        if part.words.endswith("applied twice")
    ]
    return Identity("rotary", tuple(parts), tuple(a for a in answers if a), numbers)


def _layout(pairs: Sequence[tuple[int, int]]) -> Part:
    name = layout_name(pairs)
    known = name in ("interleaved", "half-split")
    short = "half" if name == "half-split" else name if known else [list(p) for p in pairs]
    i, j = pairs[min(1, len(pairs) - 1)]
    sure = len(pairs) > 1
    seen = f"channel {i} is mixed with channel {j} and no other"
    seen += "" if sure else "; one pair has no layout"
    return Part("layout", short, name, seen, certain=sure)


def _width(code: Rotary, channels: Sequence[int]) -> Part:
    width, D = len(channels), code.width
    words = f"width {width}" if width == D else f"width {width} of {D}"
    if code.any_width and width == D:
        words = f"any width (called with {width})"
    if channels != list(range(width)):
        whole = channels == list(range(channels[0], channels[0] + width))
        words += f" (channels {channels[0]} to {channels[-1]})" if whole else " (not side by side)"
    return Part("width", width, words, f"{D - width} of {D} channels take from no other")


def _length(blocks: Sequence[Blocks], found: Ladders, noise: float) -> Part:
    """The factor by which vectors grow, compared with YaRN's attention factor for this scaling."""
    every = torch.cat([one.lengths for one in blocks])
    middle = float(every.median())
    spread = float((every - middle).abs().max())
    if spread > 4 * noise * middle:
        seen = f"lengths from {float(every.min()):.4g} to {float(every.max()):.4g}"
        return Part(
            "attention factor", None, "lengths that depend on the position or the pair", seen
        )
    seen = f"rotated vectors are {middle:.6g} times as long, within {spread:.1g}"
    factor = found.fitted.values.get("factor") if found.fitted else None
    if abs(middle - 1) <= 4 * noise:
        plain = found.fitted is not None and found.fitted.scaling == "yarn"
        return Part("attention factor", 1.0, "no attention factor" if plain else "", seen)
    if factor:
        usual = attention_factor(factor)
        if abs(middle - usual) <= 4 * noise * usual:
            return Part(
                "attention factor",
                usual,
                f"attention factor {usual:.4g}",
                f"{seen}; 0.1 ln {format_number(factor)} + 1 = {usual:.6g}",
            )
        if abs(middle - usual**2) <= 4 * noise * usual**2:
            seen += f"; that is the square of 0.1 ln {format_number(factor)} + 1"
            return Part(
                "attention factor", middle, f"attention factor {middle:.4g}, applied twice", seen
            )
    return Part("attention factor", middle, f"attention factor {middle:.4g}", seen)


def _sign(found: Ladders, code: Rotary) -> Part:
    moved = found.used[found.used.abs() > found.radius]
    ways = {bool(w > 0) for w in moved.tolist()}
    seen = f"the signs of {len(moved)} frequencies"
    if ways == {True}:
        return Part("sign", "textbook", "", f"{seen}: (1, 0) goes to (cos, sin)")
    if ways == {False}:
        words = "rotated the other way (the transposed matrix: scores see offsets negated)"
        return Part("sign", "transposed", words, f"{seen}: (1, 0) goes to (cos, −sin)")
    if found.formula is None and code.whole and float(moved.abs().max()) > 1.5:
        return Part(
            "sign",
            None,
            "",
            f"{seen}, which integer positions do not determine for pairs that "
            "may rotate by more than half a turn",
            certain=False,
        )
    return Part("sign", "mixed", "some pairs rotated one way and some the other", seen)


def _ids_part(ids: str) -> Part:
    words = {
        "own": "",
        "index": "position ids not followed (the running index is)",
        "first row": "the position ids of the first row used for every row",
        "none": "",
    }[ids]
    return Part("position ids", ids, words, "one vector at 7, 7, 7 and, in another row, at 3, 3, 3")


def _heads(every: Sequence[Images], noise: float) -> list[Part]:
    off = max(one.heads_differ for one in every)
    if off <= 4 * noise:
        return []
    return [
        Part(
            "heads",
            "differ",
            "heads are rotated differently (the first is described)",
            f"images of one vector differ by {off:.2g} between heads",
        )
    ]


def _other_channels(
    code: Rotary, every: Sequence[Images], channels: Sequence[int], noise: float
) -> list[Part]:
    """The part for channels that do not rotate, if the code changes them."""
    others = [c for c in range(code.width) if c not in set(channels)]
    if not others:
        return []
    kept = torch.stack([one.at[:, others, others] for one in every])
    off = float((kept - 1).abs().max())
    if off <= 4 * noise:
        return []
    low, high = float(kept.min()), float(kept.max())
    what = "dropped" if high == 0 else f"multiplied by {low:.4g} to {high:.4g}"
    return [
        Part(
            "other channels",
            [low, high],
            f"the channels that do not rotate {what}",
            f"{len(others)} channels, by what a 1 becomes",
        )
    ]


def _keys(code: Rotary, draw: Draw, first: Images, noise: float) -> list[Part]:
    if code.key is None:
        return []
    some = first.positions[:8]
    keys = images(code, some, draw, key=True).at
    off = float((keys - first.at[:8]).abs().max())
    words = "" if off <= 4 * noise else "keys are treated differently from queries"
    return [
        Part(
            "keys",
            "alike" if not words else "other",
            words,
            f"unit vectors at {len(some)} positions differ by at most {off:.2g}",
        )
    ]


def _values(code: Rotary, draw: Draw) -> list[Part]:
    if code.all_three is None:
        return []
    q, k, v = (draw.normal(1, code.heads, 2, code.width, salt=s) for s in (1, 2, 3))
    ids = torch.tensor([[1, 2]], device=draw.device)
    if code.axes:
        ids = ids[..., None].expand(1, 2, code.axes).contiguous()
    after = code.all_three(q, k, v, ids)[2]
    moved = float((after - v).abs().max()) > 32 * unit_roundoff(draw.dtype) * float(v.abs().max())
    words = "values rotated as well" if moved else ""
    value = "rotated" if moved else "as they were"
    return [Part("values", value, words, "random values at 1 and 2")]


def rotate_half_answer(
    blocks: Sequence[Blocks], pairs: Sequence[tuple[int, int]], noise: float
) -> tuple[str, str]:
    """Answer whether rotate_half is right, and say what is broken ("" if nothing is).

    It is right if the two channels that the rotation mixes share an angle in the table, and one of
    the two sines has a minus sign.  Either layout is right with its own table.
    """
    name = layout_name(pairs)
    i, j = pairs[min(1, len(pairs) - 1)]
    said = {"half-split": f"channel i with i + {j - i}", "interleaved": "neighbours"}
    worst = max(float(one.away.max()) for one in blocks)
    if worst <= 4 * noise:
        if name not in said:
            return f"the rotation is right: it and the table have the same pairs, {name}", ""
        return (
            f"rotate_half is right for {name} layout: the table pairs {said[name]} and so does "
            "the rotation"
        ), ""
    if any(one.mirrored() for one in blocks):
        told = "no minus sign stands before one of the two sines, so that pairs are not rotated"
        return f"no: {told}: the relative law fails", told
    bad = max(blocks, key=lambda one: float(one.away.max()))
    table = table_pairs(bad, pairs)
    if table is not None and table != list(pairs):
        told = f"the table is {layout_name(table)} and the rotation pairs {said.get(name, name)}"
        return f"no: {told}: the relative law fails", told
    told = (
        f"channels {i} and {j} are mixed and are not rotated into each other: they end {worst:.2g} "
        "of their length away"
    )
    return f"no: {told}: the relative law fails", told

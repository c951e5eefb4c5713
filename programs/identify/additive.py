"""Identify what positional code adds to tokens: base, layout, order and scale, or a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...numeric.devices import unit_roundoff
from ..calls.grids import along_each_axis
from ..execution.draw import Draw
from ..finding import Identity, Part, format_number, nearest_factor, simplest
from ..reading.ladders import MeasuredFrequencies, fit, ladder_parts
from ..reading.rotations import Followed, follow
from ..subjects import Additive

MOST_ROWS = 1025
ELSEWHERE = "from another position than 0"


def identify_additive(code: Additive, draw: Draw) -> Identity:
    """Read the table off tokens that are 0, and the scale off random tokens."""
    if code.grid is not None:
        return _of_grid(code, draw)
    n = min(MOST_ROWS, code.most)
    with torch.no_grad():
        zero = torch.zeros(1, n, code.width, dtype=draw.dtype, device=draw.device)
        table = code.added(zero)[0].double().cpu()
        few = min(n, 7)
        x = draw.normal(1, few, code.width)
        scaled = code.added(x)[0].double().cpu() - code.added(zero[:, :few])[0].double().cpu()
        parts = [_scale(x[0].double().cpu(), scaled, draw)]
        numbers: dict[str, tuple[float, ...]] = {}
        if float((table - table[:1]).abs().max()) == 0:
            seen = f"{n} tokens that are 0 give equal outputs"
            blind = Part("positions", False, "without positions", seen)
            return Identity("additive", (blind, *parts))
        noise = 4 * unit_roundoff(draw.dtype)
        pairs = table[:, : table.shape[1] // 2 * 2]
        length = float((2 * pairs.square().mean()).sqrt())  # of each sine-cosine pair, if equal
        if abs(length - 1) > noise:
            parts.insert(0, _length(length, noise, code.width))
        waves = table / length
        for layout, sine, cosine in _columns(waves, noise):
            s, c = waves[:, sine], waves[:, cosine]
            if float((torch.hypot(s, c) - 1).abs().max()) > 4 * noise:
                continue
            moved = layout.endswith(ELSEWHERE)
            first = torch.atan2(s[0], c[0]) if moved else torch.zeros_like(s[0])
            back = torch.atan2(s * first.cos() - c * first.sin(), c * first.cos() + s * first.sin())
            way = follow(torch.arange(n), back, (4 if moved else 2) * noise)
            start = _start(way.omega, first, noise) if moved else ""
            words = layout.removesuffix(ELSEWHERE) + start
            numbers["frequencies"] = tuple(way.omega.tolist())
            over = code.width / 2 if code.width % 2 else None
            return Identity("additive", (*_waves(way, words, n, over), *parts), (), numbers)
        parts = parts[-1:]
        part = _table(code, table, n)
    return Identity("additive", (part, *parts), tuple(_answers(part)))


def _of_grid(code: Additive, draw: Draw) -> Identity:
    """Identify the table along each axis of a grid, if each axis changes channels of its own."""
    axes = Part("axes", code.axes, f"{code.axes} axes", "the axes of its call")
    with torch.no_grad():
        each = along_each_axis(code)
    if not each:
        return Identity(
            "additive",
            (
                axes,
                Part(
                    "table",
                    "learned" if code.learned else "unknown",
                    "a learned table" if code.learned else "a table of no known formula",
                    "two axes change the same channels, or one changes none",
                    certain=code.learned,
                ),
            ),
        )
    found = {name: identify_additive(one, draw) for name, one in each.items()}
    names = Part(
        "axes",
        code.axes,
        f"{code.axes} axes: {', '.join(found)}",
        "the channels that change along each axis",
    )
    words = [tuple(part.words for part in one.parts) for one in found.values()]
    first = next(iter(found.values()))
    if all(one == words[0] for one in words):
        return replace(first, parts=(names, *first.parts))
    parts = [
        Part(
            axis,
            one.parts[0].value,
            f"{axis}: {', '.join(part.words for part in one.parts if part.words)}",
            one.parts[0].evidence,
            certain=all(part.certain for part in one.parts),
        )
        for axis, one in found.items()
    ]
    return Identity("additive", (axes, *parts))


def _scale(x: Tensor, scaled: Tensor, draw: Draw) -> Part:
    """The factor by which tokens are multiplied."""
    value = nearest_factor(x, scaled)
    off = float((scaled - value * x).abs().max())
    tol = 16 * unit_roundoff(draw.dtype) * max(1.0, abs(value)) * (1 + float(x.abs().max()))
    if off > tol:
        return Part("scale", None, "tokens that are not only scaled", f"off by {off:.2g}")
    near = simplest(value - tol, value + tol)
    root = math.sqrt(x.shape[-1])
    words = "" if near == 1 else f"tokens times {format_number(near)}"
    if abs(value - root) <= tol and near != 1:
        words = f"tokens times √{x.shape[-1]}"
    return Part("scale", value, words, f"the difference of two calls, within {tol:.1g}")


def _length(length: float, noise: float, width: int) -> Part:
    """The factor by which sines and cosines are multiplied."""
    tol = 4 * noise * length
    near = simplest(length - tol, length + tol)
    words = f"sines and cosines times {format_number(near)}"
    if width % 2 == 0 and abs(length - math.sqrt(2 / width)) <= tol:
        words = "rows of length 1"
    return Part("amplitude", length, words, "the root of twice the mean square of the table")


def _start(omega: Tensor, first: Tensor, noise: float) -> str:
    """The position of the first row, if all its angles are multiples of one position."""
    slow = int(omega.abs().argmin())
    place = round(float(first[slow] / omega[slow]))
    off = torch.remainder(first - place * omega + math.pi, 2 * math.pi) - math.pi
    told = bool((off.abs() <= 64 * noise * (1 + abs(place))).all())
    return f"from position {place}" if told else ELSEWHERE


def _columns(table: Tensor, noise: float) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield layouts consistent with sine 0 and cosine 1 in the first row: name, sines, cosines.

    A layout whose first row holds other sines and cosines is yielded as starting elsewhere.
    """
    width = table.shape[1] - table.shape[1] % 2
    B = width // 2
    b = torch.arange(B)
    for name, first, second in (("interleaved", 2 * b, 2 * b + 1), ("concatenated", b, B + b)):
        at = table[0]
        for order, sine, cosine in (("sin first", first, second), ("cos first", second, first)):
            start = torch.atan2(at[sine], at[cosine])
            if bool((start.abs() <= 2 * noise).all()):
                yield f"{name}, {order}", sine, cosine
        if bool((torch.hypot(at[first], at[second]) - 1).abs().max() <= 4 * noise):
            yield f"{name}, {ELSEWHERE}", first, second


def _waves(way: Followed, layout: str, n: int, over: float | None) -> Iterator[Part]:
    """Yield the parts of a sinusoidal table.

    ``over``: half of an odd width, by which exponents may be divided.
    """
    name, order = layout.split(", ", 1)
    yield Part("table", "sinusoidal", "sinusoidal", "sines and cosines: sums of squares are equal")
    yield Part("layout", name, name, "which columns are 0 and which 1 at position 0")
    yield Part("order", order, order, "which columns are 0 and which 1 at position 0")
    known = MeasuredFrequencies(way.omega.abs(), way.radius)
    for part in ladder_parts(fit(known, head=over), known, n):
        yield replace(part, words=part.words.replace("the whole head", "the whole width"))


def _table(code: Additive, table: Tensor, n: int) -> Part:
    """The part for a table without a known formula."""
    lengths = table.norm(dim=-1)
    spread = float((lengths - lengths.mean()).abs().max())
    seen = f"{n} rows; lengths differ by {spread:.2g}; no two columns are a sine and its cosine"
    if code.learned:
        return Part("table", "learned", "a learned table", seen)
    return Part("table", "unknown", "a table of no known formula", seen, certain=False)


def _answers(part: Part) -> Iterator[str]:
    if part.value == "unknown":
        yield (
            "is it the sinusoidal encoding? no: no sine and cosine of one frequency are side "
            "by side or half the width apart"
        )

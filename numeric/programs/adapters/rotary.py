"""Rotary code, in the forms people write it.

f(x, positions), f(q, k, positions), f(x), f(x, offset=..), f(q, k, cos, sin), f(x, freqs_cis), a
module that makes cos and sin, and methods such as rotate_queries_or_keys.  Which order of axes
the code wants is found by calling it with sizes that all differ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..subjects import Rotary
from .code import Code, DoesNotFit, NoSetting
from .roles import order_in
from .rotary_calls import Turns
from .rotary_ways import B, H, T, Way, line_of, ways, widths_of

__all__ = ["fit", "turned_by"]


def fit(code: Code) -> Rotary:
    """The code as a `Rotary`.  Raises ``DoesNotFit`` with what was tried."""
    way, found = _wide(code, *_find(code))
    way = replace(way, any_width=_turns_all(way, found))
    return _subject(way, found.again(), code.options.most or _most(way, found))


def _wide(code: Code, way: Way, found: Code) -> tuple[Way, Code]:
    """The way with heads so wide that the declared channels turn, where these are a part of them.

    Code that turns a quarter of what it is given turns 16 channels of 64.
    """
    declared = code.options.likely.get("width", 0)
    if way.width != declared or _moved(way, found) in (0, declared):
        return way, found
    for times in (2, 4):
        wider = replace(code, options=replace(code.options, width=times * declared))
        try:
            other, what = _find(wider)
        except DoesNotFit:
            continue
        if _moved(other, what) == declared:
            return other, what
    return way, found


def _moved(way: Way, code: Code) -> int:
    """How many channels are another at another position; 0 where that cannot be seen."""
    x = torch.randn(1, 1, 1, way.width, generator=torch.Generator().manual_seed(1))
    shape = (1, 1, way.form.axes) if way.form.axes else (1, 1)
    try:
        turns = way.bind(code.again())
        here, there = (turns(*_copies(x, way.tensors), positions=torch.full(shape, at))[0]
                       for at in (0, 200))  # fmt: skip
    except Exception:  # noqa: BLE001 (code may have fewer positions, or channels, than that)
        return 0
    return int((here != there).sum()) if here.shape == there.shape == x.shape else 0


def _turns_all(way: Way, code: Code) -> bool:
    """Whether every channel turns at this width and at two others."""
    if way.table is not None:
        return False
    widths = (way.width, way.width + 4, 2 * way.width)
    return all(_moved(replace(way, width=width), code) == width for width in widths)


def _subject(way: Way, code: Code, most: int) -> Rotary:
    turns = way.bind(code)

    def make(**settings: object) -> Rotary:
        if "width" not in settings:
            return _subject(way, code.again(**settings), most)
        if code.built:
            free = replace(code.options, width=0, likely={})
            return fit(replace(code.again(**settings), options=free))
        raise NoSetting(f"{code.name} takes its width from its tensors: give another to adapt()")

    def cosines(positions: Tensor) -> tuple[Tensor, Tensor]:
        assert table is not None
        cos, sin = table.at(positions, torch.zeros(1, 1, way.width))
        return cos, sin

    table = way.table_on(code)
    shown = table is not None and table.code and table.form == "pair" and way.form.places == "bt"
    given = {"angles": table.told} if table is not None and table.code is None else {}
    return Rotary(
        name=code.name, make=make, module=code.module, source=code.place, adapted=way.told,
        **turned_by(turns, way.tensors, starts=way.form.by == "start"), width=way.width,
        axes=way.form.axes, whole=way.form.whole, most=most,
        cosines=cosines if shown else None, any_width=way.any_width, given=given,
        single=_single(way),
    )  # fmt: skip


def _single(way: Way) -> str:
    """The axes of rows and heads that the code does not have, or its positions."""
    lacks = [letter for letter in "bh" if letter not in way.form.order]
    if way.form.by in ("table", "positions") and "b" not in way.form.places:
        lacks.append("b")
    return "".join(dict.fromkeys(lacks)).upper()


def turned_by(turns: Turns, count: int, *, starts: bool) -> dict[str, Any]:
    """The fields of a `Rotary` that rotate, of a call on so many tensors (B, H, T, D).

    What is rotated beside a query or a key is another one, so that code which mixes them is seen.
    ``starts``: it takes no positions, and its first token is at 0.
    """

    def beside(x: Tensor, other: Tensor, positions: Tensor, place: int) -> Tensor:
        given = [x if k == place else other.clone() for k in range(count)]
        return turns(*given, positions=positions)[place]

    def unlike(x: Tensor) -> Tensor:
        return torch.cat((x[..., 1:], x[..., :1]), -1)

    def turn(x: Tensor, positions: Tensor) -> Tensor:
        return beside(x, unlike(x) if count > 1 else x, positions, 0)

    def key(x: Tensor, positions: Tensor) -> Tensor:
        return beside(x, unlike(x), positions, 1)

    def three(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = turns(q, k, v, positions=positions)
        return out[0], out[1], out[2]

    def running(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device).expand(x.shape[0], x.shape[2])
        return turn(x, places)

    return {
        "turn": turn, "key": key if count > 1 else None, "beside": beside if count > 1 else None,
        "all_three": three if count > 2 else None, "values_turn": count > 2,
        "running": running if starts else None,
    }  # fmt: skip


def _copies(x: Tensor, count: int) -> tuple[Tensor, ...]:
    return (x, *(x.clone() for _ in range(count - 1)))


def _find(code: Code) -> tuple[Way, Code]:
    """The first way that works and in which positions matter; else the first that works.

    Of positions with coordinates, the way in which each matters comes before one in which some do.
    """
    failed: dict[str, str] = {}
    for width in widths_of(code):
        works: list[tuple[Way, Code]] = []
        some: tuple[Way, Code] | None = None
        for way, what in ways(code, width, failed):
            try:
                moves = _tried(way, what.again())
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed.setdefault(way.form.by, f"{way.told}: {line_of(error)}")
                continue
            if moves and not way.form.axes:
                return some or (way, what)
            if moves and moves == way.form.axes:
                return way, what
            if moves:
                some = some or (way, what)
            if not way.form.axes:
                works.append((way, what))
        if some or works:
            return some or works[0]
    told = "; ".join(failed.values()) or "no parameter of it is a tensor to turn"
    raise DoesNotFit(told[:900])


def _tried(way: Way, code: Code) -> int:
    """How many coordinates of a position matter to the result; raises where shapes are wrong."""
    turns = way.bind(code)
    x = torch.randn(B, H, T, way.width, generator=torch.Generator().manual_seed(0))
    positions = torch.arange(T).repeat(B, 1)
    others = [2 * positions + 1]
    if way.form.axes:
        positions = torch.stack([positions + 2 * a for a in range(way.form.axes)], -1)
        others = [positions + one for one in torch.eye(way.form.axes, dtype=torch.long)]
    outs = []
    for moved in (positions, *others):
        found = turns(*_copies(x, way.tensors), positions=moved)
        for one in found:
            if one.shape != x.shape or not one.is_floating_point():
                raise DoesNotFit(f"{tuple(x.shape)} was wanted, {tuple(one.shape)} came")
        outs.append(found[0])
    ours = way.table is not None and way.table.code is None
    if ours and not torch.allclose(outs[0].norm(dim=-1), x.norm(dim=-1), rtol=1e-3):
        return 0
    if way.form.by in ("start", "offset"):
        said = code.options.order or order_in(code.text)
        return 1 if way.form.order == said else int(_along_tokens(turns, x, way.tensors))
    return sum(not torch.equal(outs[0], other) for other in outs[1:])


def _along_tokens(turns: Turns, x: Tensor, tensors: int) -> bool:
    """Whether equal vectors come out different along the tokens and alike along the heads."""
    same = x[:1, :1, :1].expand_as(x).contiguous()
    out = turns(*_copies(same, tensors), positions=torch.arange(T).repeat(B, 1))[0]
    along = not torch.equal(out[:, :, :1].expand_as(out), out)
    return along and torch.equal(out[:, :1].expand_as(out), out)


def _most(way: Way, code: Code) -> int:
    """How many positions the code has: it is called at higher and higher ones."""
    top = way.table.most if way.table is not None else 1 << (13 if way.form.by == "start" else 20)

    def works(count: int) -> bool:
        place = torch.full((1, 1, way.form.axes) if way.form.axes else (1, 1), count - 1)
        x = torch.zeros(1, 1, 1, way.width)
        try:
            way.bind(code.again())(*_copies(x, way.tensors), positions=place)
        except Exception:  # noqa: BLE001 (past its end code may raise anything)
            return False
        return True

    if works(top):
        return top
    low = 1
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (middle, top) if works(middle) else (low, middle)
    return low

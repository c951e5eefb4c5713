"""Rotary code with a given call as a subject of laws: its tables, its limits, its keys."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..code import Code
from ..execution.draw import Draw, normal
from ..execution.rotary_matrices import steady_length
from ..loading.names import parameters
from ..signatures.signature import Argument, Signature, SignatureError
from ..subjects import Rotary
from .meaning import width_notes
from .roles import PLACES, SIZES, built_at, describe_call_error, role, shared_fields
from .rotary_calls import Rotating
from .supplied_inputs import CONTENTS
from .table_makers import table_widths
from .tables import TableMaker, maker_from, tables, uncompiled_with_others, widths_of

KEY_FLAG = re.compile(r"down_?scale|invert|inverse|(is|for)_?keys?")
DRIFT = 1e-3  # from here on, scores depend on more than offsets
ONE_LENGTH = 512  # tokens in each call, if all results depend on their number
FEW = 8  # positions, in which frequencies that depend on the length of a call already differ
ROWS = 9  # unlike the length of any other axis, coordinates included


def rotary(code: Code, signature: Signature) -> Rotary:
    """Return rotary code as a subject, with tables for which it preserves norms if it needs tables.

    Raises :class:`SignatureError` if the code cannot be called this way.
    """
    failed: SignatureError | None = None
    first = table_widths(code) if signature.then is not None and not code.options.width else ()
    for width in (*first, *widths_of(code)):
        try:
            made = built_at(with_width(code, width), signature, D=width)
            way = way_of(made, signature)
            return as_rotary(with_key_flag(with_limits(replace(way, notes=_notes(way)))))
        except SignatureError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _notes(way: Rotating) -> tuple[str, ...]:
    """Return notes on a given call."""
    xs, at = _probe(way, way.code.options.heads or distinct_heads(way.width))
    return width_notes(way, xs, at, lambda line: way_of(way.code, line))


def with_width(code: Code, width: int) -> Code:
    """Return the code with vectors of this width; if rebuilt with another width, it is given that.

    A setting that is the width stays equal to it, whatever its name.
    """

    def again(**settings: Any) -> Code:
        named = (n for k, n in settings.items() if code.built.get(k) == width and n != width)
        return with_width(code.again(**settings), settings.get("width", next(named, width)))

    return replace(code, options=replace(code.options, width=width), again=again)


def way_of(code: Code, signature: Signature, *, guessed: bool = False) -> Rotating:
    """Return the call, with a suitable table.  ``guessed``: the signature was not given.

    Raises :class:`SignatureError` if the code cannot be called this way.
    """
    width = code.options.width or SIZES["D"]
    failed = ""
    found: list[Rotating] = []
    made = Rotating(code.again(), signature, "", None, width, guessed=guessed)
    made = replace(made, cuts=made.signature.source is not None and made.takes_longer())
    for told, table in tables(
        made.code,
        made.signature,
        width,
        then=signature.then is not None,
        cuts=made.cuts,
        guessed=guessed,
    ):
        one = replace(made, table_words=told, table=table)
        xs, at = _probe(one, code.options.heads or distinct_heads(width))
        try:
            out = one.calls()(*xs, positions=at)[0]
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or describe_call_error(code, error)
            continue
        found.append(one)
        if torch.allclose(out.norm(dim=-1), xs[0].norm(dim=-1), rtol=1e-3):
            return one
    if found:
        return found[0]
    raise SignatureError(f"{code.name} was called as {signature}, and {failed}")


def with_limits(way: Rotating) -> Rotating:
    """Return the call with the number of its positions, and whether it rotates any width.

    The last position is found by bisection, up to 2^20.
    """

    def moved(width: int, *places: int) -> int:
        """Return how many channels differ between the first and last position; -1 on an error."""
        made = replace(way, code=way.code.again(), width=width)
        x = normal(1, heads, 1, width, seed=1)
        shape = (1, 1, way.axes) if way.axes else (1, 1)
        xs = [x.clone() for _ in way.vectors]
        try:
            first, *_, last = (
                made.calls()(*xs, positions=torch.full(shape, at))[0] for at in (0, *places)
            )
        except Exception:  # noqa: BLE001 (beyond its positions code may raise anything)
            return -1
        return int((first != last).sum()) if first.shape == last.shape else -1

    heads = way.code.options.heads or 1
    source = way.signature.source
    counted = source is not None and not any(role(one) in PLACES for one in source.call.arrays)
    running = way.starts  # then it is given all earlier tokens
    grid = way.grid or (counted and way.axes)
    most = 13 if running else 6 if grid else 17 if counted else 20
    low, top = 1, way.code.options.most or 1 << most
    if way.code.options.most or moved(way.width, top - 1) >= 0:
        low = top
    low += bisect_left(range(low + 1, top), x=True, key=lambda many: moved(way.width, many - 1) < 0)
    widths = (way.width, way.width + 4, 2 * way.width)
    every = way.table is None and all(moved(width, min(200, low - 1)) == width for width in widths)
    found = replace(way, most=low, any_width=every)
    if not (running or way.grid) or not depends_on_length(found):
        return _in_short_calls(replace(found, frame=0))
    if way.grid:
        return _in_one_grid(found)
    length = min(low, ONE_LENGTH)
    return replace(found, most=length, frame=length)


def _in_short_calls(way: Rotating) -> Rotating:
    """Return the call with as many positions as have the same frequencies in calls of any length.

    It stays as it is if these are all positions, or only a few, unlike those of dynamic NTK.
    """
    if way.grid:
        return way
    rotate = _rotated_by(
        replace(way, code=way.code.again()).calls(), len(way.vectors), starts=False
    )
    heads = 2 if "H" in way.vectors[0].letters else 1
    whole = all(role(one) != "coordinates" for one in way.places)
    asked = Rotary(
        name=way.code.name,
        rotate=rotate["rotate"],
        width=way.width,
        heads=heads,
        axes=way.axes,
        most=way.most,
        whole=whole,
    )
    try:
        steady = steady_length(asked, Draw())
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return way
    return replace(way, most=steady, longest=way.most) if steady >= FEW else way


def _in_one_grid(way: Rotating) -> Rotating:
    """Return the call in a grid of one size; position 0 is its centre if nothing rotates there."""
    side = way.most - (way.most + 1) % 2  # odd, so that a place is the centre
    framed = replace(way, code=way.code.again(), frame=side, most=side)
    centred = replace(framed, origin=side // 2, most=side - side // 2)
    x = normal(1, way.code.options.heads or 1, 1, way.width, seed=1)
    at = torch.zeros(1, 1, way.axes, dtype=torch.int64)
    found = centred.calls()(*(x.clone() for _ in way.vectors), positions=at)[0]
    return centred if torch.allclose(found, x, rtol=1e-4, atol=1e-5) else framed


def depends_on_length(way: Rotating) -> bool:
    """Whether a result depends on the number of tokens, as with a scale that has a midpoint.

    In a grid, whether it depends on the sides, as with positions that count from the centre.

    A fresh copy of the code is asked: one that was called may have kept what it computed.
    """
    way = replace(way, code=way.code.again())
    heads = way.code.options.heads or 1
    x = normal(1, heads, 8, way.width, seed=2)
    at = torch.arange(8)[None]
    at = at[..., None].expand(*at.shape, way.axes) if way.axes else at
    try:
        few, many = (
            way.calls()(*(x[:, :, :n].clone() for _ in way.vectors), positions=at[:, :n])[0]
            for n in (2, 8)
        )
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return False
    return not torch.allclose(few, many[:, :, :2], rtol=1e-4, atol=1e-5)


def with_key_flag(way: Rotating) -> Rotating:
    """Return the call, with a flag for keys if only the flag makes scores depend on offsets alone.

    xPos is written this way: a query is multiplied by a power of its position, a key by its
    inverse.
    """
    known = {one.name for one in (*way.line.arguments, *way.line.keys)}
    open_ = [one for one in parameters(way.code.call) if one.name not in known]
    flags = [one.name for one in open_ if one.default is False and KEY_FLAG.search(one.name)]
    if len(way.vectors) > 1 or way.line.keys or way.line.then or way.axes:
        return way
    for name in flags:
        line = replace(way.line, keys=(Argument(name, value=True),))
        other = replace(way, line=line, frame=way.most if way.starts else 0)
        if _drift(other) < DRIFT <= _drift(way):
            return other
    return way


def _drift(way: Rotating) -> float:
    """Return how far scores change under a shift of positions, relative to the largest score."""
    q, k = normal(2, 1, 1, 2, way.width, seed=3)
    rotated, keyed = way.calls(), way.calls(keys=True)
    scores = []
    for shift in (0, 9):
        at = torch.tensor([[3 + shift, shift]])
        here, there = rotated(q, positions=at)[0], keyed(k, positions=at.flip(1))[0]
        scores.append((here * there).sum(-1))
    return float((scores[0] - scores[1]).abs().max() / scores[0].abs().max())


def _values_rotate(way: Rotating) -> bool:
    """Whether values come back changed."""
    made = replace(way, code=way.code.again())
    xs, at = _probe(made, made.code.options.heads or distinct_heads(made.width))
    values = xs[2].clone()
    return not torch.equal(made.calls()(*xs, positions=at)[2], values)


def distinct_heads(width: int) -> int:
    """Return a number of heads unlike other lengths, such as the D/2 angles of a table."""
    return 6 if width not in (6, 12) else 10


def _probe(way: Rotating, heads: int) -> tuple[list[Tensor], Tensor]:
    """Return vectors and positions with lengths that all differ, so that no wrong order fits."""
    generator = torch.Generator().manual_seed(0)
    xs = [
        torch.randn(
            ROWS,
            SIZES["G"] if "G" in one.letters else heads,
            SIZES["r"],
            way.width,
            generator=generator,
        )
        for one in way.vectors
    ]
    at = torch.arange(SIZES["r"]) + torch.arange(ROWS)[:, None]
    return xs, at[..., None].expand(*at.shape, way.axes) if way.axes else at


def as_rotary(way: Rotating) -> Rotary:
    """Return the call as a subject for the laws."""

    def again(code: Code, signature: Signature) -> Rotary:
        if code.options.width != way.width:
            return as_rotary(
                with_key_flag(with_limits(way_of(code, signature, guessed=way.guessed)))
            )
        return as_rotary(replace(way, code=code, table=fresh(code)))

    def fresh(code: Code) -> TableMaker | None:
        source = way.signature.source
        own = way.line.then is not None
        if source is None:
            return way.table
        return maker_from(code, source, way.width, then=own, cuts=way.cuts)

    def keyed(x: Tensor, positions: Tensor) -> Tensor:
        return way.calls(keys=True)(x, positions=positions)[0]

    own = [one.letters for one in way.vectors]
    grouped = len(own) == 2 and "G" in own[1] and "G" not in own[0]
    alike = ["as many queries as keys"] if "r" in way.line.letters else []
    alike += ["H = G"] if not grouped and any("G" in letters for letters in own) else []
    held = [one.name for one in way.signature.arrays if role(one) == "bounds"]
    notes = [
        *way.notes,
        *_of_one_length(way),
        *_of_short_calls(way),
        *(CONTENTS["bounds"].format(one) for one in held),
    ]
    found = _rotated_by(way.calls(), len(way.vectors), starts=way.starts)
    found |= {"values_rotate": _values_rotate(way)} if len(way.vectors) > 2 else {}
    if way.frame and not way.grid:
        plain = _rotated_by(replace(way, frame=0).calls(), len(way.vectors), starts=True)
        found |= {"running": None, "by_length": plain["running"]}
    found |= {"key": keyed} if way.line.keys else {}
    found |= {"last": way.last} if way.takes_last else {}
    from_zero = way.given_first and len(way.vectors) == 1 and not way.line.keys and not way.axes
    if from_zero:  # other positions take several calls, which have no single graph
        made = _rotated_by(way.calls(from_zero=True), 1, starts=True)
        found |= {"running": made["running"]}
    here = way.table is not None and way.signature.source is None
    return Rotary(
        **shared_fields(
            uncompiled_with_others(way.code, way.line, way.width),
            way.line,
            again,
            "; ".join([*([f"with {way.table_words}"] if here else []), *notes]),
            way.guessed,
        ),
        **found,
        width=way.width,
        heads=2 if "H" in way.vectors[0].letters else 1,
        single=way.single,
        shared=way.shared,
        counts=way.counts,
        grouped=grouped,
        axes=way.axes,
        most=way.most,
        longest=way.longest,
        any_width=way.any_width,
        whole=all(role(one) != "coordinates" for one in way.places),
        given={
            **({"values": "; ".join(alike)} if alike else {}),
            **({"angles": way.table_words} if here else {}),
            **({"keys": ", ".join(map(str, way.line.keys))} if way.line.keys else {}),
            **({"running": "the first token is at position 0"} if from_zero else {}),
        },
    )


def _of_one_length(way: Rotating) -> list[str]:
    """Say in which grid, or with how many tokens, it is called, if its results depend on that."""
    if way.grid and way.frame:
        told = f"called with one of {way.frame} by {way.frame}"
        centre = " and position 0 at its centre" if way.origin else ""
        return [f"its results depend on the sides of the grid: {told}{centre}"]
    one = way.frame and not way.line.keys
    return [f"its results depend on the number of tokens: called with {way.frame}"] if one else []


def _of_short_calls(way: Rotating) -> list[str]:
    """Say in which calls laws are checked, where the frequencies depend on their length."""
    if not way.longest:
        return []
    long = f"calls of more than {way.most} positions have other frequencies"
    return [f"{long}, and are measured with position {way.longest - 1} in each"]


def _rotated_by(
    call: Callable[..., tuple[Tensor, ...]], count: int, *, starts: bool
) -> dict[str, Any]:
    """Return the fields of a `Rotary` that rotate, for a call on ``count`` tensors (B, H, n, D).

    What is rotated beside a query or a key differs from it, so that code which mixes them is
    noticed.  ``starts``: it takes no positions, and its first token is at 0.
    """

    def other(x: Tensor, more: Tensor, positions: Tensor, place: int) -> Tensor:
        given = [x if k == place else more.clone() for k in range(count)]
        return call(*given, positions=positions)[place]

    def unlike(x: Tensor) -> Tensor:
        return torch.cat((x[..., 1:], x[..., :1]), -1)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return other(x, unlike(x) if count > 1 else x, positions, 0)

    def key(x: Tensor, positions: Tensor) -> Tensor:
        return other(x, unlike(x), positions, 1)

    def pair(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        out = call(q, k, positions=positions)
        return out[0], out[1]

    def three(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = call(q, k, v, positions=positions)
        return out[0], out[1], out[2]

    def running(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device).expand(x.shape[0], x.shape[2])
        return rotate(x, places)

    return {
        "rotate": rotate,
        "key": key if count > 1 else None,
        "beside": other if count > 1 else None,
        "pair": pair if count == 2 else None,
        "all_three": three if count > 2 else None,
        "running": running if starts else None,
    }

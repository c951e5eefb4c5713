"""Tables of angles that rotary code is given: made here, or by other code of the same file."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from ..code import Code, Options
from ..loading.building import code_of, run_uncompiled
from ..loading.names import parameters, sizes_of
from ..loading.pretrained import sections_of
from ..loading.reach import UNCOMPILED, has_compiled
from ..signatures.layout import Label, labels, laid_out, place_of, plain_positions, read_back
from ..signatures.signature import Argument, Axis, Signature, SignatureError, Source
from .roles import JOINT_TABLES, PLACES, TABLES, axes_of_table, lengths_of, role, runner

# What tables hold at positions of any shape, by name, for vectors of so many features; angles are
# computed once for all tables.
TableMaker = Callable[[Sequence[Argument], Tensor, int], dict[str, Tensor]]
BASE = 10000.0
WIDTHS = (8, 16, 32, 64, 128, 4, 24)  # the usual ones, and one divisible by 3
_VALUE: dict[str, Callable[[Tensor], Tensor]] = {
    "cos": torch.cos,
    "sin": torch.sin,
    "angles": lambda angles: angles,
    "cis": lambda angles: torch.polar(torch.ones_like(angles), angles),
    "cos_sin": lambda angles: torch.stack((angles.cos(), angles.sin()), -1),
    "sin_cos": lambda angles: torch.stack((angles.sin(), angles.cos()), -1),
    "matrices": lambda angles: torch.stack(
        (angles.cos(), -angles.sin(), angles.sin(), angles.cos()), -1
    ).reshape(*angles.shape, 2, 2),
}


def tables(
    code: Code,
    signature: Signature,
    width: int,
    *,
    then: bool = False,
    cuts: bool = False,
    guessed: bool = False,
) -> Iterator[tuple[str, TableMaker | None]]:
    """Yield a description and a maker of tables of angles, in each form that the call may expect.

    D/2 angles are one for each pair; or, with several tables and unless the call is ``guessed``,
    each table is for the channels of half a vector.  Several tables may each be for a part of a
    vector.  ``then``: the code itself makes them, and what is called is given them; ``cuts``:
    whether that reads only the first rows of longer tables.
    """
    wanted = [one for one in signature.arrays if role(one) in TABLES]
    if not wanted and signature.source is None:
        yield "", None
        return
    if signature.source is not None:
        _require_results(signature, signature.source)
        yield str(signature.source), maker_from(code, signature.source, width, then=then, cuts=cuts)
        return
    wide = {_angles(one, lengths_of(signature, D=width)) for one in wanted if one.axes}
    shapes = _ladders(width, next(iter(wide)), wanted, guessed) if len(wide) == 1 else {}
    if not shapes:
        raise SignatureError(
            "wanted tables with D or D/2 numbers for each position, or several of a part of these, "
            f"got {signature}"
        )
    kinds = {one.name: (_VALUE[role(one)], _is_concatenated(one)) for one in wanted}
    for told in shapes:

        def made(
            those: Sequence[Argument], at: Tensor, features: int, told: str = told
        ) -> dict[str, Tensor]:
            each = {_angles(one, lengths_of(signature, D=features)) for one in wanted if one.axes}
            found = _ladders(features, each.pop(), wanted, guessed)[told](at)
            return {one.name: _in_one(found, *kinds[one.name]) for one in those}

        yield f"a table of each {told}, base {BASE:g}, made here", made


def _ladders(
    width: int, wide: int, wanted: Sequence[Argument], guessed: bool
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return maps of positions -> ``wide`` angles, one for each way in which vectors may be split.

    >>> from ..signatures.grammar import parse
    >>> [[*_ladders(8, wide, parse(f"{x}: n 1 angles, {y}: n 1 angles -> 1").arrays, False)]
    ...  for x, y, wide in (("freqs_x", "freqs_y", 2), ("freqs_x", "freqs_y", 3))]
    [['pair of a part'], []]
    """
    many = max(Counter(map(role, wanted)).values())  # more than one: such as for rows and columns

    def angles(positions: Tensor, of: int) -> Tensor:
        ladder = BASE ** (-torch.arange(0, of, 2, dtype=torch.float64) / of)
        return positions.to(torch.float64)[..., None] * ladder.to(positions.device)

    def halves(positions: Tensor) -> Tensor:
        return torch.cat((angles(positions, wide),) * 2, -1)

    def neighbours(positions: Tensor) -> Tensor:
        return angles(positions, wide).repeat_interleave(2, -1)

    channels = {"channel, halves alike": halves, "channel, neighbours alike": neighbours}
    of_parts = (many > 1 or (len(wanted) > 1 and not guessed)) and wide % 2 == 0
    if wide == width:
        return {**channels}
    if 2 * wide == width:
        own = {f"{told} in half a vector": f for told, f in channels.items()}
        return {"pair": partial(angles, of=width), **(own if of_parts else {})}
    if many > 1 and 2 * wide * many == width:
        return {"pair of a part": partial(angles, of=2 * wide)}
    if of_parts and many > 1 and wide * many == width:
        return {f"{told} in a part of a vector": f for told, f in channels.items()}
    return {}


def _require_results(signature: Signature, source: Source) -> None:
    """Refuse a single result for arrays with different contents, such as cosines and sines."""
    back = source.call.array_results
    given = [one for one in signature.arrays if one.name in source.names]
    kinds = {(one.axes, role(one) in ("cos", "sin") and role(one)) for one in given}
    if len(back) < len(source.names) and len(kinds) > 1:
        raise SignatureError(
            f"wanted {len(source.names)} results of {source.code}, for {', '.join(source.names)}, "
            f"got {source.call}"
        )


def places_of_table(table: Argument) -> tuple[int, ...]:
    """Return the places of the table's axes that do not run along positions, its angles first."""
    return tuple(place_of(table.axes or (), k) for k in axes_of_table(table))


def angle_axis(table: Argument) -> Axis:
    """Return the axis of a table that runs along its angles."""
    return (table.axes or ())[axes_of_table(table)[0]]


def _angles(table: Argument, lengths: Mapping[str, int]) -> int:
    """Return how many angles it has for a position."""
    size = angle_axis(table).size(lengths)
    return size // 2 if _is_concatenated(table) else size


def _is_concatenated(table: Argument) -> bool:
    """Whether cosines and sines are concatenated on one axis, without an axis of 2."""
    return role(table) in JOINT_TABLES and len(axes_of_table(table)) == 1


def _in_one(angles: Tensor, value: Callable[[Tensor], Tensor], behind: bool) -> Tensor:
    """Return the contents of a table at some angles."""
    found = value(angles)
    return torch.cat(found.unbind(-1), -1) if behind else found


def code_named(code: Code, name: str, width: int) -> Code:
    """Return code of the same file, by its name; a class is built, with this width.

    Raises :class:`SignatureError` if it is not found.
    """
    thing = _thing_named(code, name)
    config = getattr(code.module, "config", None)
    of_config = (
        config is not None
        and inspect.isclass(thing)
        and any(one.name == "config" for one in parameters(thing))
    )
    made = code_of(
        thing,
        name,
        Options(
            width=width, likely={"width": width}, settings={"config": config} if of_config else {}
        ),
    )
    if of_config:
        sections_of(made.call)
    return made


def _thing_named(code: Code, name: str) -> Any:
    """Return what the code's file, or else a file that it imports from, has under a name."""
    outer, _, inner = name.partition(".")
    thing = next((one[outer] for one in (code.space, *imported(code)) if outer in one), None)
    if inner:
        thing = getattr(thing, inner, None)
    if thing is None:
        raise SignatureError(f"wanted {name} in the file of {code.name}, which has no such name")
    return thing


def uncompiled_with_others(code: Code, line: Signature, width: int) -> Code:
    """Return the code; it says if torch.compile wraps other code that its call names.

    That code is looked at once, and not again for each fresh instance.
    """
    named = {one.code for one in (line.source, line.then) if one is not None} - code.uncompiled
    if UNCOMPILED in code.converted or not named:
        return code
    if any(
        has_compiled([_thing_named(code, one), code_named(code, one, width).call]) for one in named
    ):
        return run_uncompiled(code)
    known = code.uncompiled | named
    return code.changed(partial(replace, uncompiled=known), uncompiled=known)


def maker_from(
    code: Code, source: Source, width: int, *, then: bool = False, cuts: bool = False
) -> TableMaker:
    """Return the maker of tables that other code of the same file computes.

    That code is called with positions or a length.  ``then``: the code itself makes the tables.
    Tables with more rows than asked for, such as those cached from a longer call, are accepted if
    ``cuts``.  Raises :class:`SignatureError` if there is no such code.
    """
    maker = code if then else code_named(code, source.code, width)
    run = runner(maker, source.call)
    grid = of_grid(source.call)
    placed = next((one for one in source.call.arrays if role(one) in PLACES), None)
    if placed is not None and role(placed) == "axis":
        raise SignatureError(f"wanted all positions of {source.code} in one array, got {placed}")
    coordinates = tuple(
        str(a) for a in (placed.axes or () if placed else ()) if not a.letters and a.split is None
    )
    batched = placed is not None and "B" in placed.letters
    here = (("B",) if batched else ()) + ("n",)
    results = source.call.array_results

    rows_at = ("B", "h", "w") if grid else here if placed is not None else ()
    read = _reading(source, results, rows_at)

    def made(those: Sequence[Argument], at: Tensor, features: int) -> dict[str, Tensor]:
        del features  # it was built for this width
        flat = at
        ahead = at.ndim - len(coordinates)
        if placed is None:
            length, rows = rows_needed(at), 1
            ahead = at.ndim - grid
        else:
            if ahead > len(here):
                flat = at.flatten(0, ahead - 1)
            elif ahead < len(here):
                flat = at[None]
            length, rows = flat.shape[len(here) - 1], flat.shape[0] if batched else 1
        sides = {"h": length, "w": length} if grid else {}
        sizes = {"D": width, "m": length, "n": length, "B": rows, **sides}
        lengths = lengths_of(source.call, **sizes, p=0)  # row t holds position t
        arrays = {
            given.name: _places(given, flat, (*here, *coordinates), lengths)
            if given is placed
            else torch.zeros(given.shape(lengths), device=at.device)
            for given in source.call.arrays
        }
        back = run(arrays, lengths)

        def table(one: Argument) -> Tensor:
            number, axes, wanted = read(one)
            value = _requested_rows(
                back[results[number].name or [*back][number]], axes, lengths, cuts
            )
            if not wanted:
                return value  # the same at every position
            found = read_back(value, axes, wanted, lengths)
            if grid:
                return found[0, at[..., 0].long(), at[..., 1].long()]
            if placed is None:
                return found[0, at.flatten().long()].reshape(*at.shape, *found.shape[2:])
            if ahead < len(here):
                return found[0]
            if ahead == len(here):
                return found
            return found.reshape(*at.shape[:ahead], *found.shape[len(here) :])

        return {one.name: table(one) for one in those}

    return made


def _reading(
    source: Source, results: Sequence[Argument], rows_at: tuple[str, ...]
) -> Callable[[Argument], tuple[int, tuple[Axis, ...], tuple[Label, ...]]]:
    """Return a lookup of a table's result: its number, its axes, and their labels when read.

    The labels are () if the table does not depend on the row.  ``rows_at``: the axes of the rows,
    unless the table is made for a length.
    """

    @cache
    def read(one: Argument) -> tuple[int, tuple[Axis, ...], tuple[Label, ...]]:
        number = source.names.index(one.name) if len(results) > 1 else 0
        axes = results[number].axes or ()
        if not {"m", "n", "h", "w"} & set(one.letters) and one.kind != "cis":
            return number, axes, ()
        there = labels(axes)
        rows = rows_at or ("B", next((c for c in there if c in ("m", "n")), "m"))
        ends = places_of_table(replace(results[number], kind=role(one)))[1:]
        left = [k for k, c in enumerate(there) if c not in rows and k not in ends]
        return number, axes, (*rows, *left, *ends)

    return read


def _requested_rows(
    x: Tensor, axes: Sequence[Axis], lengths: Mapping[str, int], cuts: bool
) -> Tensor:
    """Return the rows that were asked for, of a longer table, if ``cuts`` allows it."""
    for place, axis in enumerate(axes if x.ndim == len(axes) else ()):
        if str(axis) in ("n", "m") and x.shape[place] > lengths[str(axis)]:
            if not cuts:
                return x
            x = x.narrow(place, 0, lengths[str(axis)])
    return x


def of_grid(call: Signature) -> bool:
    """Whether tables are made for a grid of h rows and w columns rather than for positions.

    >>> from ..signatures.grammar import parse
    >>> of_grid(parse("h = h, w = w -> (h w) D"))
    True
    """
    return {"h", "w"} <= set(call.letters) and not any(role(one) in PLACES for one in call.arrays)


def _places(one: Argument, at: Tensor, here: tuple[str, ...], lengths: Mapping[str, int]) -> Tensor:
    at = at.to(torch.get_default_dtype()) if role(one) == "coordinates" else at
    return laid_out(at, here, one.axes or (), lengths)


def rows_needed(places: Tensor) -> int:
    """Return how many rows a table needs to be read at these positions."""
    if torch.compiler.is_exporting():
        return 128
    return 1 << max(int(plain_positions(places).max()), 15).bit_length()


def widths_of(code: Code) -> list[int]:
    """Return widths of a head to try: the given one, those of the object, the usual ones."""
    if code.options.width:
        return [code.options.width]
    holder = code.call.__self__ if inspect.ismethod(code.call) else code.call
    found = [w for w in sizes_of(holder, "width") if w <= 512]
    for tensor in code.module.buffers() if code.module is not None else ():
        if tensor.dim() and 1 < tensor.shape[-1] <= 512:
            found += [2 * tensor.shape[-1], tensor.shape[-1]]
    found += [w for w in sizes_of(holder, "embed") if w <= 512]
    held = vars(holder).values() if hasattr(holder, "__dict__") else ()
    found += [2 * v.shape[-1] for v in held if isinstance(v, Tensor) and v.dim() and v.shape[-1]]
    likely = [code.options.likely["width"]] if "width" in code.options.likely else []
    return list(dict.fromkeys([*found, *likely, *WIDTHS]))


def imported(code: Code) -> list[Mapping[str, Any]]:
    """Return the namespaces of the files of its package that the code's file imports from."""
    own = code.space.get("__name__", "")
    package, within, _ = own.partition(".")
    files = dict.fromkeys(
        file
        for thing in code.space.values()
        if isinstance(file := getattr(thing, "__module__", None), str)
        if file.startswith(f"{package}.") and file != own
    )
    return [vars(sys.modules[file]) for file in files if within and file in sys.modules]


def members_matching(
    space: Mapping[str, Any], pattern: re.Pattern[str], but: str
) -> list[tuple[str, Any]]:
    """Return the functions and modules of a file, except one, whose names match."""
    return [
        (name, thing)
        for name, thing in space.items()
        if pattern.search(name)
        and name != but
        and not isinstance(thing, nn.Module)
        and (
            inspect.isfunction(thing)
            or hasattr(thing, "cache_parameters")
            or (inspect.isclass(thing) and issubclass(thing, nn.Module))
        )
        and getattr(thing, "__module__", "").split(".")[0] != "torch"
    ]

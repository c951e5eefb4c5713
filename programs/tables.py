"""Tables of angles that rotary code is given: made here, or by other code of the same file."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from .building import code_of
from .code import Code, DoesNotFit, Options
from .fitting import without_implied_roles
from .grammar import parse
from .layout import Label, labels, laid_out, place_of, plain_positions, read_back
from .names import CAPACITY, USUAL_ARGUMENTS, Parameter, parameters, sizes_of
from .pretrained import sections_of
from .roles import (
    JOINT_TABLES,
    PAIR,
    PLACES,
    ROTATED,
    TABLES,
    axes_of_table,
    lengths_of,
    role,
    runner,
)
from .signature import Argument, Axis, Signature, SignatureError, Source

# What tables hold at positions of any shape, by name; angles are computed once for all tables.
TableMaker = Callable[[Sequence[Argument], Tensor], dict[str, Tensor]]
MAKES = re.compile(
    r"rotary|rope|freqs|cos_?sin|sin_?cos|precompute|angles|inv_freq|cis", re.IGNORECASE
)
APPLIES = re.compile(r"apply|rotate_|rope|rotary|rot_emb", re.IGNORECASE)
FLAG = re.compile(r"(is|use)_|interleaved?$|inverse$|conj(ugate)?$", re.IGNORECASE)
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
    for told, shape in shapes.items():

        def made(
            those: Sequence[Argument], at: Tensor, shape: Callable[[Tensor], Tensor] = shape
        ) -> dict[str, Tensor]:
            found = shape(at)
            return {one.name: _in_one(found, *kinds[one.name]) for one in those}

        yield f"a table of each {told}, base {BASE:g}, made here", made


def _ladders(
    width: int, wide: int, wanted: Sequence[Argument], guessed: bool
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return maps of positions -> ``wide`` angles, one for each way in which vectors may be split.

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
    back = [one for one in source.call.results if one.axes is not None]
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


def _of_two(table: Argument) -> bool:
    """Whether cosines and sines, or the entries of matrices, have axes of their own."""
    return len(axes_of_table(table)) > 1


def _channels(table: Argument) -> Axis:
    """Return the axis of a table that runs along its angles."""
    return (table.axes or ())[axes_of_table(table)[0]]


def _angles(table: Argument, lengths: Mapping[str, int]) -> int:
    """Return how many angles it has for a position."""
    size = _channels(table).size(lengths)
    return size // 2 if role(table) in JOINT_TABLES and not _of_two(table) else size


def _is_concatenated(table: Argument) -> bool:
    """Whether cosines and sines are concatenated on one axis, without an axis of 2."""
    return role(table) in JOINT_TABLES and not _of_two(table)


def _in_one(angles: Tensor, value: Callable[[Tensor], Tensor], behind: bool) -> Tensor:
    """Return the contents of a table at some angles."""
    found = value(angles)
    return torch.cat(found.unbind(-1), -1) if behind else found


def code_named(code: Code, name: str, width: int) -> Code:
    """Return code of the same file, by its name; a class is built, with this width.

    A name that the file lacks is looked up in the files that it imports from.  Raises
    :class:`SignatureError` if it is not found.
    """
    outer, _, inner = name.partition(".")
    thing = next((one[outer] for one in (code.space, *imported(code)) if outer in one), None)
    if inner:
        thing = getattr(thing, inner, None)
    if thing is None:
        raise SignatureError(f"wanted {name} in the file of {code.name}, which has no such name")
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
    coordinates = tuple(
        str(a) for a in (placed.axes or () if placed else ()) if not a.letters and a.split is None
    )
    batched = placed is not None and "B" in placed.letters
    here = (("B",) if batched else ()) + ("n",)
    results = [one for one in source.call.results if one.axes is not None]

    rows_at = ("B", "h", "w") if grid else here if placed is not None else ()
    read = _reading(source, results, rows_at)

    def made(those: Sequence[Argument], at: Tensor) -> dict[str, Tensor]:
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

    >>> of_grid(parse("h = h, w = w -> (h w) D"))
    True
    """
    return {"h", "w"} <= set(call.letters) and not any(role(one) in PLACES for one in call.arrays)


def _places(one: Argument, at: Tensor, here: tuple[str, ...], lengths: Mapping[str, int]) -> Tensor:
    at = at if role(one) == "positions" else at.to(torch.get_default_dtype())
    return laid_out(at, here, one.axes or (), lengths)


@dataclass(frozen=True)
class Origin:
    """Code that makes tables: its name, its call, and its results.

    ``kind``: pair (cos, sin), complex, matrices, or one (angles, or cosines beside sines).
    ``rest``: whether there is a further result.
    """

    name: str
    given: str
    kind: str
    axes: str
    rest: bool = False
    unit: bool = False  # the one array holds cosines and sines: squares add up to 1
    sines_first: bool = False  # of two tables

    @property
    def holds(self) -> str:
        """What the single array that it makes holds; "" if it makes two."""
        kinds = {"complex": "cis", "matrices": "matrices", "pair": ""}
        return kinds.get(self.kind, "cos_sin" if self.unit else "angles")

    def gives(self, text: str) -> bool:
        """Whether a form takes such tables."""
        return {
            "pair": "<cos>" in text or "<rows>" in text,
            "complex": "<cis>" in text,
            "matrices": "<matrices>" in text,
            "one": "<angles>" in text or ("<cos_sin>" in text and self.unit),
        }[self.kind]

    def suits(self, line: str) -> bool:
        """Whether the call takes tables of this width, per batch row only if these are."""
        own = self.axes.split()
        wanted = [one for one in parse(line).arrays if role(one) in TABLES]
        return all(
            str(_channels(one)) in own
            and ("m" in own or ("B" in own) == ("B" in one.letters))
            and _in_place(own, [str(axis) for axis in one.axes or ()])
            and (role(one) not in JOINT_TABLES or (str(PAIR) in own) == (PAIR in (one.axes or ())))
            for one in wanted
        )

    def as_made(self, line: str) -> bool:
        """Whether the call takes tables in the axes in which they come back, a row per token."""
        own = self.axes.replace("m", "n").split()
        return all(
            [str(axis) for axis in one.axes or ()] == own
            for one in parse(line).arrays
            if role(one) in TABLES
        )

    def _names(self, needs: tuple[str, ...], known: tuple[Parameter, ...]) -> list[str]:
        by = {one.role: [p.name for p in known if p.role == one.role] for one in known}
        roles = ("cos", "sin") if self.kind == "pair" else needs[:1]
        if self.sines_first and {*roles} <= {*needs}:  # a tuple keeps the order of the results
            roles = roles[::-1]
        found = [by[role] if role in needs else [role] for role in roles]
        return found[0] if len(found) == 1 else [names[0] for names in found]

    def table_clause(self, needs: tuple[str, ...], known: tuple[Parameter, ...]) -> str:
        """Return the part of a line after the semicolon."""
        names = self._names(needs, known)
        many = 2 if self.kind == "pair" else 1
        back = ", ".join([self.axes] * many + ["_"] * self.rest)
        return f"{', '.join(names)} from {self.name}({self.given} -> {back})"

    def first(self, needs: tuple[str, ...], known: tuple[Parameter, ...]) -> str:
        """Return the line of the maker itself, whose results are passed to other code."""
        back = [f"{name}: {self.axes}" for name in self._names(needs, known)] + ["_"] * self.rest
        return f"{self.given} -> {', '.join(back)}".strip()


def _in_place(made: list[str], wanted: list[str]) -> bool:
    """Whether rows keep their place between tables with equally many axes."""
    rows = [[k for k, c in enumerate(axes) if c in ("m", "n")] for axes in (made, wanted)]
    return len(made) != len(wanted) or rows[0] == rows[1]


def sources(code: Code) -> Iterator[Origin]:
    """Yield the code in the same file that is named like a maker of tables and makes them."""
    for name, thing in members_matching(code.space, MAKES, code.name):
        if APPLIES.match(name) and not inspect.isclass(thing):
            continue
        try:
            made = code_named(code, name, code.options.width)
        except Exception:  # noqa: BLE001 (other code of the file may raise anything)
            continue
        yield from origins(made, name, code.options.width)


POSITION_AXES = ("B n", "n")
COORDINATES = ("3 B n", "B n 3", "3 n", "n 3", "2 B n", "B n 2", "2 n", "n 2")


def origins(made: Code, name: str, width: int, *, many_axes: bool = False) -> Iterator[Origin]:
    """Yield the ways in which code makes tables of a width: from positions, a length, or tokens."""
    for call, found in _tables_of(made, width, many_axes=many_axes):
        kind, values, rest = found
        if not all(one.is_floating_point() or one.is_complex() for one in values):
            continue  # truth values are a mask
        row = "n" if any(role(one) in PLACES for one in call.arrays) else "m"
        shape = {6: "B", width: "D", width // 2: "D/2", 11: row, 1: "1"}
        pairs = kind == "one" and values[0].shape[-1] == 2 < width // 2
        if pairs and values[0].shape[-2] == 2:
            kind = "matrices"
        twos = (kind == "matrices") + pairs
        sizes = values[0].shape[: values[0].ndim - twos]
        if set(sizes) <= set(shape) and not {6, 11} & {width, width // 2}:
            axes = " ".join([*(shape[size] for size in sizes), *["2"] * twos])
            given = ", ".join(map(str, call.arguments))
            unit = kind == "one" and _unit(values[0])
            first = kind == "pair" and _sines_first(*values)
            yield Origin(name, without_implied_roles(given), kind, axes, rest, unit, first)


def _sines_first(first: Tensor, second: Tensor) -> bool:
    """Whether the first of two tables is 0 for the first token, and the second is not.

    Given positions are all 0; for a length it is the first row.
    """
    rows = [axis for axis, size in enumerate(first.shape) if size == 11]
    at_zero = [one.select(rows[0], 0) for one in (first, second)]
    return not bool(at_zero[0].any()) and bool(at_zero[1].all())


def _unit(table: Tensor) -> bool:
    """Whether an array holds cosines and sines, on an axis of 2 or one half after the other."""
    even = table.shape[-1] % 2 == 0
    off = max(1e-3, 4 * torch.finfo(table.dtype).eps)
    table = table.double()
    halves = [
        *([table.unbind(-1)] if table.shape[-1] == 2 else []),
        *([table.unbind(0)] if table.shape[0] == 2 else []),
        *([table.chunk(2, -1)] if even else []),
    ]
    return any(bool(((u * u + v * v - 1).abs() < off).all()) for u, v in halves)


def makes_tables(made: Code) -> bool:
    """Whether code returns cosines and sines, or complex numbers, rather than rotated vectors."""
    found = next(_tables_of(made, 8, many_axes=True), None)
    return found is not None and (found[1][0] != "one" or found[1][2])


def table_widths(made: Code) -> tuple[int, ...]:
    """Return the widths of a head that fit the tables code makes: a row's width, or twice that."""
    for _, (kind, values, _) in _tables_of(made, 8, many_axes=True):
        pairs = kind == "one" and values[0].shape[-1] == 2
        width = values[0].shape[-2 if pairs else -1]
        return (width, 2 * width) if width > 2 else ()
    return ()


def _tables_of(
    made: Code, width: int, *, many_axes: bool
) -> Iterator[tuple[Signature, tuple[str, tuple[Tensor, ...], bool]]]:
    """Yield the calls that return tables, for 6 rows of 11 positions, and their results."""
    try:
        known = parameters(made.call)
        if sum(one.role in ROTATED and one.required for one in known) > 1:
            return  # code of several vectors makes no tables
        placed = any(one.role == "positions" for one in known)
        rows = (*POSITION_AXES, *(COORDINATES if many_axes else ())) if placed else ("m",)
        calls = [
            [call for one in rows for call in _given(made, known, one, placed, counted=counted)]
            for counted in (False, True)
        ]
    except DoesNotFit:
        return
    for some in calls if calls[0] != calls[1] else calls[:1]:
        found = [*_tables_given(made, width, some)]
        yield from found
        if found:
            return


def _tables_given(
    made: Code, width: int, calls: list[str]
) -> Iterator[tuple[Signature, tuple[str, tuple[Tensor, ...], bool]]]:
    """Yield those of some calls that return tables, and their results."""
    for given in calls:
        call = parse(f"{given} -> 1")
        if not {"m", "n"} & set(call.letters):
            continue  # without length or positions it is not called
        lengths = {"B": 6, "m": 11, "n": 11, "D": width, "H": 5, "G": 5}
        arrays = {
            one.name: torch.zeros(one.shape(lengths), dtype=torch.long)
            if role(one) in PLACES
            else torch.zeros(one.shape(lengths))
            for one in call.arrays
        }
        try:
            found = made.call(
                **{
                    one.name: arrays[one.name] if one.axes is not None else one.at(lengths)
                    for one in call.arguments
                }
            )
            read = read_table(found)
        except Exception:  # noqa: BLE001 (other code of the file may make no table)
            continue
        if 11 in read[1][0].shape:
            yield call, read


def read_table(value: Any) -> tuple[str, tuple[Tensor, ...], bool]:
    """Return the form of a result, its tensors, and whether a number follows them.

    Raises ``DoesNotFit`` if it is not a table.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        first, second = value
        tensors = isinstance(first, Tensor) and isinstance(second, Tensor)
        if tensors and first.shape == second.shape and first.dim() >= 2:
            if first.is_floating_point():
                return "pair", (first, second), False
        elif isinstance(first, Tensor) and (
            isinstance(second, int | float) or (isinstance(second, Tensor) and not second.dim())
        ):
            if float(second) == 1.0:
                kind, values, _ = read_table(first)
                return kind, values, True
            raise DoesNotFit("it returns angles and a scale, which is not applied here")
    if isinstance(value, Tensor) and value.dim() >= 2:
        return ("complex" if value.is_complex() else "one"), (value,), False
    raise DoesNotFit("it returns neither cos and sin nor a tensor of angles")


OWN_ROLES = ("length", "keys", "heads", "groups", "width", "base", "device", "dtype")
PLAIN = {**{role: USUAL_ARGUMENTS[role] for role in OWN_ROLES}, "embed": " = D", "offset": " = 0"}


WIDTH = re.compile(r"_(dim|width|channels|features)$")  # names of a number of channels


def plain_argument(one: Parameter, code: Code, *, counted: bool = False) -> str:
    """Return the argument for a parameter that is neither array nor position, else "".

    ``counted``: a maximum number of tokens is set to the number of tokens in the call, as some code
    requires.
    """
    if one.name in code.options.arguments:
        return f"{one.name} = {code.options.arguments[one.name]!r}"
    if one.is_capacity and not counted:
        return f"{one.name} = {CAPACITY}"
    if one.role in PLAIN:
        return f"{one.name}{PLAIN[one.role]}"
    if one.is_unknown_number and WIDTH.search(one.name):
        return f"{one.name} = D"  # a guess: reported, and varied if a law breaks
    return f"{one.name} = False" if one.annotation in (bool, "bool") or FLAG.match(one.name) else ""


def _given(
    made: Code, known: tuple[Parameter, ...], rows: str, placed: bool, *, counted: bool
) -> Iterator[str]:
    """Yield the arguments with which code that makes tables may be called.  Raises ``DoesNotFit``.

    ``counted``: a maximum number of rows is set to the number of rows in any case, not only if
    nothing else states the number.
    """
    choices = []
    others = any(
        (one.role in ("length", "keys") and not one.is_capacity)
        or (one.role in ROTATED and one.required)
        for one in known
    )
    alone = not placed and sum(one.required for one in known) == 1  # its name may be x, or t
    for one in known:
        plain = plain_argument(one, made, counted=counted)
        whole = not placed and (counted or not others or not one.is_capacity)
        if one.role == "positions":
            choices.append([without_implied_roles(f"{one.name}: {rows} positions")])
        elif one.role in ("length", "keys") and whole:
            choices.append([f"{one.name} = m"])
        elif one.role in ROTATED and one.required:
            told = [f"{one.name}: {axes} tokens" for axes in ("B m D", "B 1 m D", "m D")]
            choices.append(told + ([f"{one.name}: n positions"] if alone else []))
        elif plain and (one.required or one.role == "width" or one.name == "layer_type"):
            choices.append([plain])
        elif one.required:
            raise DoesNotFit(f"the name {one.name} does not say what it means")
    yield from (", ".join(chosen) for chosen in product(*choices))


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

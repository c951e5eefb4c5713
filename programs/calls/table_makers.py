"""Code of a file that makes tables of angles: how it is called, and the form of what it returns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ..code import Code, DoesNotFit
from ..loading.names import CAPACITY, OF_TOKENS, USUAL_ARGUMENTS, Parameter, parameters
from ..signatures.grammar import parse
from ..signatures.signature import Signature
from .fitting import without_implied_roles
from .roles import JOINT_TABLES, PAIR, PLACES, ROTATED, TABLES, role
from .tables import angle_axis, code_named, members_matching

MAKES = re.compile(
    r"rotary|rope|freqs|cos_?sin|sin_?cos|precompute|angles|inv_freq|cis", re.IGNORECASE
)
APPLIES = re.compile(r"apply|rotate_|rope|rotary|rot_emb", re.IGNORECASE)
FLAG = re.compile(r"(is|use)_|interleaved?$|inverse$|conj(ugate)?$", re.IGNORECASE)


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
    unit: bool = False  # it holds cosines and sines: squares add up to 1, or to one number
    sines_first: bool = False  # of two tables
    built: str = ""  # the setting of the constructor that is the number of rows

    @property
    def holds(self) -> str:
        """What the single array that it makes holds; "" if it makes two."""
        kinds = {"complex": "cis", "matrices": "matrices", "pair": ""}
        return kinds.get(self.kind, "cos_sin" if self.unit else "angles")

    def gives(self, text: str) -> bool:
        """Whether a form takes such tables."""
        return {
            "pair": any(one in text for one in ("<cos>", "<rows>", "<each>")),
            "complex": "<cis>" in text,
            "matrices": "<matrices>" in text,
            "one": "<angles>" in text or ("<cos_sin>" in text and self.unit),
        }[self.kind]

    def suits(self, line: str) -> bool:
        """Whether the call takes tables of this width, per batch row only if these are.

        Positions with several coordinates are those that the tables are made from.
        """
        own = self.axes.split()
        taken = parse(line).arrays
        wanted = [one for one in taken if role(one) in TABLES]
        places = [one.axes for one in parse(f"{self.given} -> 1").arrays if role(one) in PLACES]
        several = (one.axes for one in taken if role(one) in PLACES and len(one.axes or ()) > 2)
        return all(axes in places for axes in several) and all(
            str(angle_axis(one)) in own
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
        return f"{self.given} -> {', '.join(back)}{self._clause}".strip()

    @property
    def _clause(self) -> str:
        return f"; built with {self.built} = m" if self.built else ""

    def unapplied(self, name: str = "FUNCTION", known: Sequence[str] = ()) -> str:
        """Say that no function is known to rotate by these tables, and how to name one.

        ``known``: the parameters of the function of this name.
        """
        what, names, kinds = self._in_words()
        axes = re.sub("D$", "D/2", self.axes) if kinds == ("cis",) else self.axes
        x, *own = known if len(known) > len(names) else ("x", *names)
        back = ", ".join([f"{one}: {axes}" for one in own[: len(names)]] + ["_"] * self.rest)
        takes = ", ".join(
            f"{one}: {axes.replace('m', 'n')} {kind}" for one, kind in zip(own, kinds, strict=False)
        )
        made = f"{self.given} -> {back}{self._clause}".strip()
        return (
            f"it returns {what}, and no function of its file is known to rotate by them; say which "
            f"does, in the whole --call '{made}; then {name}({x}: B H n D, {takes} -> {x})'"
        )

    def _in_words(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """Return what it makes in words, with names and kinds of the arrays."""
        if self.kind == "pair":
            if self.unit:
                names = ("sin", "cos") if self.sines_first else ("cos", "sin")
                return "cosines and sines", names, names
            told = "two tables that are not cosines and sines"
            return told, ("freqs", "scale"), ("angles", "constant")
        told = {"cis": "complex numbers", "cos_sin": "cosines beside sines"}.get(
            self.holds, self.holds
        )
        return told, ("freqs",), (self.holds,)


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
        yield from (one for one in origins(made, name, code.options.width) if not one.built)


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
            unit = _circular(*values) if kind == "pair" else kind == "one" and _unit(values[0])
            first = kind == "pair" and _sines_first(*values)
            built = call.built[0].name if call.built else ""
            yield Origin(name, without_implied_roles(given), kind, axes, rest, unit, first, built)


def _sines_first(first: Tensor, second: Tensor) -> bool:
    """Whether the first of two tables is 0 for the first token, and the second is not.

    Given positions are all 0; for a length it is the first row.
    """
    rows = [axis for axis, size in enumerate(first.shape) if size == 11]
    at_zero = [one.select(rows[0], 0) for one in (first, second)]
    return not bool(at_zero[0].any()) and bool(at_zero[1].all())


def _circular(first: Tensor, second: Tensor) -> bool:
    """Whether the squares of two tables add up to the same number everywhere."""
    total = first.double().square() + second.double().square()
    return bool((total.max() - total.min()) < 1e-2 * total.max())


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
        if not known:
            yield from _tables_of_fixed_length(made)
            return
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


def _tables_of_fixed_length(
    made: Code,
) -> Iterator[tuple[Signature, tuple[str, tuple[Tensor, ...], bool]]]:
    """Yield the tables of an object without arguments that is built for 11 rows."""
    known = parameters(type(made.module)) if made.module is not None else ()
    built = {one.name: made.built.get(one.name, one.default) for one in known}
    for name in (name for name, value in built.items() if type(value) is int):
        try:
            read = read_table(made.again(**{name: 11}).call())
        except Exception:  # noqa: BLE001 (the code may raise anything)
            continue
        if 11 in read[1][0].shape and (read[0] != "one" or MAKES.search(made.name)):
            yield parse(f"-> 1; built with {name} = m"), read


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
        if one.required and OF_TOKENS.fullmatch(one.name):
            plain = f"{one.name} = -2"
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

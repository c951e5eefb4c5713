"""Call forms: how rotary code is called where nobody says so, as a table of signatures.

Each form is a line of the signature language with the roles of parameters in the place of their
names.  It is tried with lengths that are all different, so that no wrong order of axes can be
broadcast, and goes the way of a call that is told: what fits is a line that can be corrected and
passed back with ``--call``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch

from ..numeric.programs.adapters.beside import APPLIES, MAKES, named
from ..numeric.programs.adapters.code import Code, DoesNotFit
from ..numeric.programs.adapters.roles import Parameter, order_in, parameters
from ..numeric.programs.adapters.rotary_ways import widths_of
from ..numeric.programs.adapters.tables import read_table
from ..numeric.programs.subjects import Rotary
from .fitting import Fit, best, fitting, short, takes
from .roles import role
from .rotary import Turning, as_rotary, ended, sized, tables_code, way_of
from .signature import Axis, parse

__all__ = ["FORMS", "Form", "fit", "lines"]

VECTORS = ("B H n D", "B n H D", "n B H D", "B n D", "n H D", "H n D", "n B D", "n D")
ROWS = ("B n", "n", "B 1 n", "B n 1", "1 n", "n 1", "1 1 n", "1 n 1", "n 1 1", "n B", "n B 1")
PLACED = ("B n", "n", "n B", "3 B n", "B n 3", "3 n", "n 3", "2 B n", "B n 2", "2 n", "n 2")
WIDTHS = (" D", " D/2")
CHOICES: dict[str, tuple[str, ...]] = {
    "<x>": VECTORS,
    "<cos>": tuple(row + width for width, row in product(WIDTHS, ROWS)),
    "<rows>": ("m D", "m D/2", "1 1 m D", "1 1 m D/2"),
    "<at>": PLACED,
    "<some>": PLACED[:3],
    "<cis>": tuple(f"{row} D/2 cis" for row in ROWS),
    "<angles>": tuple(f"{row}{width} angles" for width, row in product(WIDTHS, ROWS)),
    "<cos_sin>": tuple(f"{row} D/2 2 cos_sin" for row in ROWS),
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """One line for each choice of axes: what is called like a role stands in {braces}.

    ``needs``: the roles of the parameters that it gives something.  In ``text``, {x} stands for
    whatever is rotated, each in the axes <x>, and what stands behind is given beside it.
    """

    needs: tuple[str, ...]
    text: str


FORMS = (
    Form(("cos", "sin", "positions"), "{cos}: <rows> cos, {sin}: <rows> sin, "
         "{positions}: <some> positions"),
    Form(("cos", "sin"), "{cos}: <cos> cos, {sin}: <cos> sin"),
    Form(("pair",), "{pair} = (cos: <cos>, sin: <cos>)"),
    Form(("pair",), "{pair}: <cos_sin>"),
    Form(("freqs",), "{freqs}: <cis>"),
    Form(("freqs",), "{freqs}: <angles>"),
    Form(("freqs",), "{freqs}: <cos_sin>"),
    Form(("freqs",), "{freqs} = (cos: <cos>, sin: <cos>)"),
    Form(("positions",), "{positions}: <at> positions"),
    Form(("positions",), "{positions}: <some> coordinates"),
)  # fmt: skip
ROTATED = ("query", "key", "value", "tokens")
HEADS = 4
PLAIN = 4  # a number for a position comes before 3 or 2 coordinates, which may stand for channels
HELD = ("cos", "sin", "freqs", "pair")  # parameters that are handed tables


def lines(known: tuple[Parameter, ...], hinted: str = "") -> Iterator[tuple[Form, str]]:
    """The lines that parameters of these names allow, the likely ones first.

    ``hinted``: the axes that the source itself says, as "bhtd".

    >>> def turn(x, positions): ...
    >>> next(lines(parameters(turn)))[1]
    'x: B H n D, positions: B n -> x'
    """
    vectors = [one for one in known if one.role in ROTATED and (one.required or one.role == "key")]
    by = {one.role: one.name for one in known if one.role not in ROTATED}
    wanted = {one.role for one in known if one.required}
    for form in FORMS:
        if not vectors or not set(form.needs) <= set(by):
            continue
        if "<angles>" in form.text and re.search("cis|complex", by["freqs"].lower()):
            continue  # its name says that it is given numbers of length 1, and no angles
        if not {*wanted, *(set(HELD) & set(by))} <= {*form.needs, *ROTATED}:
            continue
        kinds = list(dict.fromkeys(c for c in CHOICES if c in form.text))
        first = hinted.upper().replace("T", "n")
        orders = sorted(VECTORS, key=lambda x: x.replace(" ", "") != first)
        for order, *chosen in product(orders, *(CHOICES[c] for c in kinds)):
            if "B" not in order and any("B" in axes for axes in chosen):
                continue
            beside = form.text
            for kind, axes in zip(kinds, chosen, strict=True):
                beside = beside.replace(kind, axes)
            for keys in ("G", "H") if len(vectors) > 1 and "H" in order else ("H",):
                said = [
                    f"{one.name}: {order.replace('H', keys) if one.role == 'key' else order}"
                    + ("" if one.role else " tokens")
                    for one in vectors[:3]
                ]
                given = short(beside.format(**by))
                yield form, f"{', '.join([*said, given])} -> {', '.join(v.name for v in vectors)}"


def _channels(found: Fit[Turning]) -> int:
    """How many channels of a vector are rotated."""
    return int(found.quality[-1])


def fit(code: Code) -> Rotary:
    """Rotary code by the form that fits it.

    Raises ``DoesNotFit``, and ``Ambiguous`` where two forms fit and differ in what they say.
    """
    options = code.options
    told = options.order or options.places or options.axes or options.arguments
    if told or options.table is not None:
        raise DoesNotFit("its axes, arguments or tables are told in Python")
    failed: dict[str, str] = {}
    for width in widths_of(code):
        found = _fits(sized(code, width), failed)
        if found:
            return _with_room(code, best(found, code.name))
    raise DoesNotFit(failed.get("", "no form of a call has its parameters"))


def _with_room(code: Code, found: Fit[Turning]) -> Rotary:
    """The same line with heads so wide that the declared channels rotate, if these are a part.

    Code that rotates a quarter of what it is given rotates 16 channels of 64.
    """
    declared = code.options.likely.get("width", 0)
    if found.way.width == declared and _channels(found) not in (0, declared):
        for times in (2, 4):
            try:
                other = _tried(sized(code, times * declared), found.line)
            except Exception:  # noqa: BLE001 (the code may raise anything)
                continue
            if _channels(other) == declared:
                return as_rotary(ended(other.way))
    return as_rotary(ended(found.way))


def _fits(code: Code, failed: dict[str, str]) -> list[Fit[Turning]]:
    """The lines that fit: with tables of the same file, else with tables that are made here."""
    known = parameters(code.call)
    hinted = order_in(code.text)
    call = code.again().call
    tried = [
        (form, line)
        for form, line in lines(known, hinted)
        if takes(call, parse(line), code, failed, {"D": code.options.width})
    ]
    origins = [*_sources(code)] if any(one.role in HELD for one in known) else []
    for given in (origins, [None]):
        told = (
            line if origin is None else f"{line}; {origin.told(form, known)}"
            for (form, line), origin in product(tried, given)
            if origin is None or origin.gives(form)
        )  # fmt: skip
        found = fitting(told, lambda line: _tried(code, line), code, failed)
        if found:
            return found
    return []


def _tried(code: Code, line: str) -> Fit[Turning]:
    """The line, if it fits, and how well.

    Raises ``DoesNotFit`` where a coordinate of the positions does nothing.
    """
    way = way_of(code, parse(line), guessed=True)
    subject = as_rotary(way)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, HEADS, 5, subject.width, generator=generator)
    at = torch.arange(5) + 2 * torch.arange(6)[:, None]
    moved = at.clone()
    moved[1, 2] += 3
    if subject.axes:
        at, moved = (p[..., None].repeat(1, 1, subject.axes) for p in (at, moved))
        for axis in range(subject.axes):
            other = at.clone()
            other[..., axis] += 1
            if torch.equal(subject.turn(x, at), subject.turn(x, other)):
                raise DoesNotFit(f"coordinate {axis} of the positions does nothing in {line}")
    out, other = subject.turn(x, at), subject.turn(x, moved)
    alone = torch.zeros(6, HEADS, 5, dtype=torch.bool)
    alone[1, :, 2] = True
    changed = out != other
    start = subject.turn(x, torch.zeros_like(at))
    quality = (
        torch.equal(changed.any(-1), alone),
        subject.axes or PLAIN,
        torch.allclose(out.norm(dim=-1), x.norm(dim=-1), rtol=1e-3),
        torch.allclose(start, x, atol=1e-4),
        int(changed[1, 0, 2].sum()),
    )
    return Fit(line, way, out, quality)


@dataclass(frozen=True)
class _Origin:
    """Code of the same file that makes tables: its name, how it is called, what comes back."""

    name: str
    given: str
    kind: str
    axes: str

    def gives(self, form: Form) -> bool:
        """Whether the form wants such tables."""
        return {
            "pair": "<cos>" in form.text or "<rows>" in form.text,
            "complex": "<cis>" in form.text,
            "one": "<angles>" in form.text or "<cos_sin>" in form.text,
        }[self.kind]

    def told(self, form: Form, known: tuple[Parameter, ...]) -> str:
        """What stands behind the semicolon."""
        by = {one.role: one.name for one in known}
        roles = ("cos", "sin") if self.kind == "pair" else form.needs[:1]
        names = [by[role] if role in form.needs else role for role in roles]
        back = ", ".join([self.axes] * len(names))
        return f"{', '.join(names)} from {self.name}({self.given} -> {back})"


def _sources(code: Code) -> Iterator[_Origin]:
    """What stands beside the code, is called like what makes tables, and makes one of its width."""
    width = code.options.width
    for name, thing in named(code.space, MAKES, code.name):
        if APPLIES.match(name) and not inspect.isclass(thing):
            continue
        try:
            made = tables_code(code, name, width)
            given = _given(parameters(made.call))
            lengths = {"B": 6, "m": 11, "n": 11, "D": width}
            call = parse(f"{given} -> 1")
            arrays = {one.name: torch.zeros(one.shape(lengths)) for one in call.arrays}
            arrays |= {
                one.name: torch.arange(11).reshape(one.shape(lengths))
                for one in call.arrays
                if role(one) == "positions"
            }
            found = made.call(**{
                one.name: arrays[one.name] if one.axes is not None
                else one.value.size(lengths) if isinstance(one.value, Axis) else one.value
                for one in call.arguments
            })  # fmt: skip
            kind, values = read_table(found)
            row = "n" if any(role(one) == "positions" for one in call.arrays) else "m"
            shape = {width: "D", width // 2: "D/2", 11: row, 1: "1", 2: "2"}
            axes = " ".join(shape[size] for size in values[0].shape)
        except Exception:  # noqa: BLE001 (whatever stands beside may be no table)
            continue
        yield _Origin(name, given, kind, axes)


def _given(known: tuple[Parameter, ...]) -> str:
    """How code that makes tables is called.  Raises ``DoesNotFit``."""
    said = []
    for one in known:
        if one.role == "positions":
            said.append(short(f"{one.name}: n positions"))
        elif one.role in ("length", "keys"):
            said.append(f"{one.name} = m")
        elif one.role == "width" or (one.role == "embed" and one.required):
            said.append(f"{one.name} = D")
        elif one.role == "base" and one.required:
            said.append(f"{one.name} = 10000.0")
        elif one.role in ROTATED and one.required:
            said.append(f"{one.name}: B m D tokens")
        elif one.required:
            raise DoesNotFit(f"what {one.name} is its name does not say")
    return ", ".join(said)

"""Fit rotary code to the forms of its call: the lines that fit, and the best of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ..calls.fitting import Fit, alternatives, best, fitting, takes
from ..calls.roles import PLACES, ROTATED, role
from ..calls.rotary import (
    as_rotary,
    depends_on_length,
    way_of,
    with_key_flag,
    with_limits,
    with_width,
)
from ..calls.rotary_calls import Rotating
from ..calls.spelling import START
from ..calls.table_makers import APPLIES, MAKES, makes_tables, origins, sources, table_widths
from ..calls.tables import imported, members_matching, widths_of
from ..code import Code, DoesNotFit, Options, can_be_called, source_of
from ..loading.building import code_of, method_of
from ..loading.names import SIDES, Parameter, order_in, parameters, role_of
from ..signatures.grammar import parse
from ..subjects import Rotary
from .rotary import SECTIONS, TABLE_ROLES, Form, lines, names_by_role, with_table_role

SCALAR_RANK = 4  # one number per position ranks above 2 or 3 coordinates, which may be channels
STEPS = re.compile(r"half|every_(two|other)")  # internal steps of a rotation
ROTATING_METHODS = re.compile(r"^(rotate|apply|turn|rope|_apply)", re.IGNORECASE)
PLACES_OF_GRIDS = ("B H (h w) D", "B (h w) H D", "B (h w) D")
WIDTH_OF_THREE = 24  # channels that split into three parts of pairs, equal or all different
ASSERTED = re.compile(r"assert self\.(\w+)")


def _keeps_norms(found: Fit[Rotating]) -> bool:
    """Whether rotated vectors are as long as before."""
    return bool(found.quality[3])


def _channels(found: Fit[Rotating]) -> int:
    """The number of channels of a vector that are rotated."""
    return int(found.quality[-1])


def fit(code: Code) -> Rotary:
    """Return rotary code by the form that fits.

    Raises ``DoesNotFit``, and ``Ambiguous`` if two forms fit and differ in meaning.
    """
    failed: dict[str, str] = {}
    some = widths_of(code)
    some = some if code.module is not None else [some[0], *some[3:4]]  # two suffice for a function
    some += [WIDTH_OF_THREE] * (code.module is None and _has_three_parts(code))
    for width in some if not makes_tables(code) else ():
        one = with_width(code, width)
        for called, clause in _calls(one):
            found = _fits(called, failed, clause)
            channels = max(map(_channels, found), default=0)
            tables = channels < width and _fits(called, failed, clause, tables=True)
            if tables and max(map(_channels, tables)) > channels:
                found = tables  # if each number rotates one pair, they are angles, not positions
            if "built with" in clause and found and not best(found, code.name).quality[0]:
                raise DoesNotFit(f"{found[0].line} rotates a token by the positions of others")
            if found:
                return _chosen(called, found, clause)
    for width in [code.options.width] if code.options.width else table_widths(code):
        one = with_width(code, width)
        found = _fits_of_tables(one, failed)
        if found:
            return _chosen(one, found)
    for one, line in _of_grids(code):
        found = fitting([line], partial(_fit_line, one.again()), code, failed)
        if found:
            return _chosen(one, found)
    told = failed.get("", "no known form of a call fits its parameters")
    raise DoesNotFit(failed.get("tables", told))


def _of_grids(code: Code) -> Iterator[tuple[Code, str]]:
    """Yield lines for code that rotates tokens of a grid: its sides are arguments, or settings.

    A module with a table row for each place of a square takes that square only; the side, and the
    number of channels, are settings of its constructor.
    """
    known = [one for one in parameters(code.call) if one.required]
    vectors = [one for one in known if one.role in ROTATED] or known[:1]
    beside = {one.name for one in known if one not in vectors}
    back = ", ".join(one.name for one in vectors)
    lines = [
        ", ".join(f"{one.name}: {x}{' tokens' * (one.role not in ROTATED)}" for one in vectors)
        for x in PLACES_OF_GRIDS
    ]
    told = next((pair for pair in SIDES if {*pair} == beside), None)
    if told is not None:
        for head, line in product(widths_of(code)[:2], lines):
            yield with_width(code, head), f"{line}, {told[0]} = h, {told[1]} = w -> {back}"
    elif not beside and code.module is not None:
        for (wide, clause), line in product(_of_squares(code, code.module), lines):
            yield with_width(code, wide), f"{line} -> {back}; {clause}"


def _of_squares(code: Code, module: nn.Module) -> Iterator[tuple[int, str]]:
    """Yield the width of a square's table, with a ``built with`` clause for its width and side."""
    built = {one.name: code.built.get(one.name, one.default) for one in parameters(type(code.call))}
    numbers = {name: n for name, n in built.items() if type(n) is int and n > 1}
    for rows, wide in {tuple(x.shape) for x in module.buffers() if x.dim() == 2}:
        sides = [name for name, n in numbers.items() if n * n == rows]
        widths = [name for name, n in numbers.items() if role_of(name) and wide in (n, 2 * n)]
        for side, width in product(sides, widths):
            part = "D" if wide == numbers[width] else "D/2"
            if side != width:
                yield wide, f"built with {width} = {part}, {side} = h"


def _has_three_parts(code: Code) -> bool:
    """Whether the code takes three tables, or positions, of the same role, or sections."""
    try:
        known = parameters(code.call)
    except DoesNotFit:
        return False
    return any(len(names) == 3 for names in names_by_role(known).values()) or any(
        SECTIONS.fullmatch(one.name) for one in known
    )


def _chosen(code: Code, found: list[Fit[Rotating]], clause: str | None = None) -> Rotary:
    """Return rotary code by the best line, with the alternatives that also fit.

    ``clause``: the clause added to the lines of the call; if it is given (even ""), lines in other
    orders of axes are alternatives too.
    """
    chosen = best(found, code.name)
    hinted = order_in(code.text, written=False)  # an order that the source unpacks is certain

    def rest() -> Iterator[Fit[Rotating]]:
        if clause is None or hinted == _order(chosen.line):
            return
        made = chosen.line.partition("; ")[2]
        for _, line in lines(code, hinted):
            told = f"{line}; {made}" if made else line
            if not takes(code.again().call, parse(line), code, {}, {"D": code.options.width}):
                continue
            for one in fitting([told], lambda line: _fit_line(code.again(), line), code, {}):
                if one.quality[:2] >= chosen.quality[:2]:
                    yield one

    return replace(_with_wider_heads(code, chosen), others=alternatives(found, chosen, rest))


def _calls(code: Code) -> Iterator[tuple[Code, str]]:
    """Yield the object itself, then its methods whose names suggest a rotation, with their clauses.

    If the class defines such methods itself, inherited ones are ignored; static ones come last, as
    they do not use the object.  If the object cannot be called, every public method is a candidate,
    and private ones with such a name; otherwise private methods are not.  Flags that a method
    asserts are set when the object is built.
    """
    called = can_be_called(code.call)
    if called:
        yield code, ""
    if inspect.isroutine(code.call):
        return
    there = [
        name
        for name in dir(type(code.call))
        if (not called or not name.startswith("_"))
        and (ROTATING_METHODS.match(name) or not (called or name.startswith("_")))
        and not STEPS.search(name)
        and not hasattr(nn.Module, name)
        and inspect.isroutine(getattr(code.call, name, None))
    ]
    own = [name for name in there if name in vars(type(code.call))]
    static = [
        isinstance(inspect.getattr_static(type(code.call), name), staticmethod) for name in own
    ]
    own = [
        name
        for helps in (False, True)
        for name, one in zip(own, static, strict=True)
        if one == helps
    ]
    flags = {one.name for one in parameters(type(code.call)) if one.default is False}
    for name in own or there:
        wanted = flags & set(ASSERTED.findall(source_of(getattr(code.call, name))))
        made = code.again(**dict.fromkeys(wanted, True)) if wanted else code
        built = ", ".join(f"{one} = True" for one in sorted(wanted))
        yield method_of(made, name), f"; method {name}" + f"; built with {built}" * bool(wanted)


def _with_wider_heads(code: Code, found: Fit[Rotating]) -> Rotary:
    """Return rotary code by the line, with wider heads if only part of the declared width rotates.

    Code that rotates a quarter of each head, for example, needs 64 channels to rotate 16.
    """
    declared = code.options.likely.get("width", 0)
    if found.way.width == declared and _channels(found) not in (0, declared):
        for times in (2, 4):
            try:
                other = _fit_line(with_width(code, times * declared), found.line)
            except Exception:  # noqa: BLE001 (the code may raise anything)
                continue
            if _channels(other) == declared:
                return as_rotary(with_key_flag(with_limits(other.way)))
    return as_rotary(with_key_flag(with_limits(_without_start(found.way))))


def _without_start(way: Rotating) -> Rotating:
    """Drop the start offset if the rotation of a token depends on the number of tokens in a call.

    All calls then need the same length, and the token at position p is put at index p.
    """
    given = [one for one in way.line.arguments if START not in one.lengths]
    if not way.offset or way.line.then is not None or len(given) == len(way.line.arguments):
        return way
    other = replace(way, line=replace(way.line, arguments=tuple(given)))
    return other if depends_on_length(other) else way


def _fits(
    code: Code, failed: dict[str, str], clause: str = "", *, tables: bool = False
) -> list[Fit[Rotating]]:
    """Return the lines that fit, with tables made by code of the same file, else made here.

    Axes stated in the source are preferred if the code can be called with them.  ``tables``: for a
    function that applies a table, a parameter named like positions is the table.
    """
    try:
        known = parameters(code.call)
    except DoesNotFit as error:
        failed.setdefault("", str(error))
        return []
    if tables:
        plain, known = known, with_table_role(known)
        if known == plain or not inspect.isroutine(code.call) or not APPLIES.match(code.name):
            return []
    hinted = order_in(code.text)
    call = code.again().call
    for counted in (False, True) if any(one.is_capacity for one in known) else (False,):
        tried = [
            (form, line)
            for form, line in lines(code, hinted, tables=tables, counted=counted)
            if takes(call, parse(line), code, failed, {"D": code.options.width, START: 0})
        ]
        for some in _by_likelihood(tried):
            if found := _ordered_fits(code, known, some, clause, failed):
                return found
    return []


def _by_likelihood(tried: list[tuple[Form, str]]) -> Iterator[list[tuple[Form, str]]]:
    """Yield lines that give positions, then those with a table for each axis, then the others."""
    apart = [one for one in tried if "<apart>" in one[0].text]
    told = [one for one in tried if one[0].needs and one not in apart]
    yield from filter(None, (told, apart, [one for one in tried if not one[0].needs]))


def _ordered_fits(
    code: Code,
    known: tuple[Parameter, ...],
    tried: list[tuple[Form, str]],
    clause: str,
    failed: dict[str, str],
) -> list[Fit[Rotating]]:
    """Return the lines that fit, preferring the order of axes stated in the source."""
    hinted = order_in(code.text)
    said = [(form, line) for form, line in tried if _order(line) == hinted]
    doubted = 0 < len(said) < len(tried) and not order_in(code.text, written=False)
    first: list[Fit[Rotating]] = []  # an order in a docstring may be that of other code
    for group in (said, tried) if doubted else (said or tried,):
        found = _group_fits(code, known, group, clause, failed)
        if any(one.quality[1] for one in found):  # heads rotate equally and tokens do not
            return found
        first = first or found
    return first


def _group_fits(
    code: Code,
    known: tuple[Parameter, ...],
    tried: list[tuple[Form, str]],
    clause: str,
    failed: dict[str, str],
) -> list[Fit[Rotating]]:
    """Return the lines that fit, trying tables made by other code first."""
    made = [*sources(code)] if any(one.role in TABLE_ROLES for one in known) else []
    for given in (made, [None]):
        told = [
            (f"{line}{clause}", False)
            if origin is None
            else (f"{line}; {origin.table_clause(form.needs, known)}{clause}", origin.as_made(line))
            for (form, line), origin in product(tried, given)
            if origin is None or (origin.gives(form.text) and origin.suits(line))
        ]
        if found := _first_fits(code, told, failed):
            return found
    return []


def _first_fits(
    code: Code, told: list[tuple[str, bool]], failed: dict[str, str]
) -> list[Fit[Rotating]]:
    """Return the lines that fit; those that pass tables on in the axes as made are tried first."""
    for first in (True, False):
        some = (line for line, as_made in told if as_made == first)
        if found := fitting(some, lambda line: _fit_line(code.again(), line), code, failed):
            return found
    return []


def _order(line: str) -> str:
    """The axes of the first rotated array, as "bhtd"."""
    axes = parse(line).arrays[0].axes or ()
    return "".join({"n": "t"}.get(str(a), str(a).lower()) for a in axes)


def _fits_of_tables(code: Code, failed: dict[str, str]) -> list[Fit[Rotating]]:
    """Return the lines that fit code that makes tables, with a function that applies them.

    A function by which vectors keep their norms comes before others.
    """
    changing: list[Fit[Rotating]] = []
    made = [*origins(code, code.name, code.options.width, many_axes=True)]
    appliers = [*_appliers(code)] if made else []
    named = [one for one in made if one.kind != "one" or MAKES.search(code.name)]
    if named and not (appliers and (named[0].kind != "pair" or named[0].unit)):
        of = [(name, [p.name for p in parameters(one.call)]) for name, one in appliers[:1]]
        failed.setdefault("tables", named[0].unapplied(*next(iter(of), ())))
    for name, applied in appliers:
        known = with_table_role(parameters(applied.call))
        tried = [
            (form, line)
            for form, line in lines(with_width(applied, code.options.width), tables=True)
            if form.needs
            and set(TABLE_ROLES) & set(form.needs)
            and any(origin.suits(line) for origin in made)
            and takes(applied.call, parse(line), applied, failed, {"D": code.options.width})
        ]
        hinted = order_in(applied.text)
        tried = [one for one in tried if _order(one[1]) == hinted] or tried
        told = [
            (f"{origin.first(form.needs, known)}; then {name}({line})", origin.as_made(line))
            for (form, line), origin in product(tried, made)
            if origin.gives(form.text) and origin.suits(line)
        ]
        found = _first_fits(code, told, failed)
        if any(_keeps_norms(one) for one in found):
            return found
        changing = changing or found
    return changing


def _appliers(code: Code) -> Iterator[tuple[str, Code]]:
    """Yield functions that take tables: of the class, of its file, then of files it imports from.

    Within a file, those that match the code come first: "vision" in both names or neither, and an
    interleaving function if its config sets ``rope_interleave``.
    """
    woven = bool(getattr(getattr(code.call, "config", None), "rope_interleave", False))
    vision = "vision" in code.name.lower()

    def rank(pair: tuple[str, Any]) -> tuple[bool, bool, int]:
        name = pair[0]
        return (("vision" in name) != vision, ("interleave" in name) != woven, len(name))

    own = type(code.call)
    inside = [
        (f"{own.__name__}.{name}", thing.__func__)
        for name, thing in vars(own).items()
        if isinstance(thing, staticmethod) and APPLIES.match(name) and own.__name__ in code.space
    ]
    there = [
        pair
        for space in (code.space, *imported(code))
        for pair in sorted(members_matching(space, APPLIES, code.name), key=rank)
    ]
    for name, thing in [*inside, *there]:
        if inspect.isclass(thing):
            continue
        try:
            one = code_of(thing, name, Options(width=code.options.width))
            if {*TABLE_ROLES, "positions"} & {p.role for p in parameters(one.call)}:
                yield name, one
        except DoesNotFit:
            continue


def _fit_line(code: Code, line: str) -> Fit[Rotating]:
    """Return the line with its quality.

    Raises ``DoesNotFit`` if the result is not a rotation by position: if a coordinate has no
    effect, for example, or tables are the same at all positions.
    """
    way = way_of(code, parse(line), guessed=True)
    subject = as_rotary(way)
    generator = torch.Generator().manual_seed(0)
    # more heads than tokens, and a length of their own, so that rotation along a wrong axis shows
    heads = 7 if subject.width not in (7, 14) else 11
    way.require_meaning(B=6, H=heads, n=9 if way.grid else 5, G=8)
    x = torch.randn(6, heads, 5, subject.width, generator=generator)
    at = torch.arange(5) + 2 * torch.arange(6)[:, None]
    moved = at.clone()
    moved[1, 2] += 12
    if subject.axes:
        # coordinates that differ: tables that mix their axes keep norms where these are equal
        at, moved = (p[..., None] + torch.arange(subject.axes) for p in (at, moved))
        for axis in range(subject.axes * (not way.axes_told)):
            other = at.clone()
            other[..., axis] += 1
            if torch.equal(subject.rotate(x, at), subject.rotate(x, other)):
                raise DoesNotFit(f"coordinate {axis} of the positions has no effect in {line}")
    out, other = subject.rotate(x, at), subject.rotate(x, moved)
    if out.is_complex():
        raise DoesNotFit(f"wanted vectors from {line}, got complex numbers")
    alone = torch.zeros(6, heads, 5, dtype=torch.bool)
    alone[1, :, 2] = True
    changed = out != other
    if way.line.method and not (way.places or way.offset or bool(changed.any())):
        raise DoesNotFit(f"a step of a rotation, which does not depend on positions: {line}")
    if way.line.source is not None and not bool(changed.any()):
        raise DoesNotFit(f"these tables are the same at all positions: {line}")
    source = way.line.source
    of_length = source is not None and not any(role(one) in PLACES for one in source.call.arrays)
    if of_length and _of_a_grid(subject, x[:1, :1, :1]):
        raise DoesNotFit(
            f"the rows of these tables change with their number, and are not multiples of one row, "
            f"as for a grid: {line}"
        )
    start = subject.rotate(x, torch.zeros_like(at))
    plain = subject.rotate(x[:1, :1, :1].expand(1, *x.shape[1:]).clone(), at[:1])
    along = torch.equal(plain[:, :1].expand_as(plain), plain) and not torch.equal(
        plain[:, :, :1].expand_as(plain), plain
    )
    keeps = torch.allclose(out.norm(dim=-1), x.norm(dim=-1), rtol=1e-3)
    rotated = int(changed[1, 0, 2].sum())
    made_here = way.line.source is None and "D/2" in line.partition(" -> ")[0]
    if made_here and not keeps and 2 * rotated <= subject.width:
        raise DoesNotFit(
            f"{line} has a number for each pair of channels, and only as many channels are rotated "
            f"as it has numbers: the table must hold something else"
        )
    folded = SCALAR_RANK * bool(way.signature.source)  # coordinates select table rows, not channels
    quality = (
        torch.equal(changed.any(-1), alone),
        along,  # the heads of a token rotate equally, the tokens do not
        subject.axes + folded if subject.axes else SCALAR_RANK,
        keeps,
        torch.allclose(start, x, atol=1e-4),
        rotated,
    )
    return Fit(line, way, out, quality)


def _of_a_grid(subject: Rotary, x: Tensor) -> bool:
    """Whether the rows of a table are places of a grid, which may be square.

    They change with the number of rows, and rotating twice is not rotating to twice the position.
    Frequencies that depend on the length satisfy the latter, with another step.
    """
    if subject.axes:
        return False
    at = torch.arange(16)[None]
    x = x.expand(1, 1, 16, x.shape[-1]).clone()
    few = subject.rotate(x, at)
    more = subject.rotate(x, torch.cat((at[:, :-1], torch.tensor([[60]])), 1))
    grown = not torch.allclose(few[:, :, :-1], more[:, :, :-1], atol=1e-3)
    twice = subject.rotate(few, at)[:, :, :8]
    return grown and not torch.allclose(twice, few[:, :, ::2], atol=1e-2)

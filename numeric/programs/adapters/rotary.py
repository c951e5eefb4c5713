"""Rotary code, in the forms people write it.

f(x, positions), f(q, k, positions), f(x), f(x, offset=..), f(q, k, cos, sin), f(x, freqs_cis), a
module that makes cos and sin, and methods such as rotate_queries_or_keys.  Which order of axes
the code wants is found by calling it with sizes that all differ.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..subjects import Rotary
from .axes import MANY, ORDERS, PLACES
from .beside import appliers, tables_beside
from .building import code_of, method_of
from .code import Code, DoesNotFit, NoSetting
from .roles import order_in, parameters, sizes_of
from .rotary_calls import TENSORS, Form, Turns, bound, tensors_of
from .tables import DRESSES, Table, made_here, table_of

__all__ = ["fit"]

B, H, T = 6, 4, 5
METHODS = re.compile(r"^(rotate|apply|turn|rope|_apply)", re.IGNORECASE)


@dataclass(frozen=True)
class Way:
    """A form of a call; ``applier`` takes the table that the code itself makes."""

    form: Form
    width: int
    tensors: int
    told: str
    table: Table | None = None
    applier: Code | None = None

    def bind(self, code: Code) -> Turns:
        """The call of this instance of the code, with a table of its own."""
        table = self.table_on(code)
        return bound(self.applier or code, self.form, table, self.width)

    def table_on(self, code: Code) -> Table | None:
        """The table, made by this instance of the code, or by a fresh one of what stands beside."""
        if self.table is None or self.table.code is None:
            return self.table
        made = code if self.applier is not None else self.table.code.again()
        return self.table.on(made, self.width)


def fit(code: Code) -> Rotary:
    """The code as a `Rotary`.  Raises ``DoesNotFit`` with what was tried."""
    way, found = _find(code)
    return _subject(way, found.again(), code.options.most or _most(way, found))


def _subject(way: Way, code: Code, most: int) -> Rotary:
    turns = way.bind(code)

    def make(**settings: object) -> Rotary:
        if "width" not in settings:
            return _subject(way, code.again(**settings), most)
        if code.built:
            return fit(replace(code.again(**settings), options=replace(code.options, width=0)))
        raise NoSetting(f"{code.name} takes its width from its tensors: give another to adapt()")

    def turn(x: Tensor, positions: Tensor) -> Tensor:
        return turns(*_copies(x, way.tensors), positions=positions)[0]

    def key(x: Tensor, positions: Tensor) -> Tensor:
        return turns(*_copies(x, way.tensors), positions=positions)[1]

    def three(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = turns(q, k, v, positions=positions)
        return out[0], out[1], out[2]

    def running(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device).expand(x.shape[0], x.shape[2])
        return turn(x, places)

    def cosines(positions: Tensor) -> tuple[Tensor, Tensor]:
        assert table is not None
        cos, sin = table.at(positions, torch.zeros(1, 1, way.width))
        return cos, sin

    table = way.table_on(code)
    shown = table is not None and table.code and table.form == "pair" and way.form.places == "bt"
    return Rotary(
        name=code.name, make=make, module=code.module, source=code.place, adapted=way.told,
        turn=turn, key=key if way.tensors > 1 else None, width=way.width, axes=way.form.axes,
        whole=way.form.whole, most=most, all_three=three if way.tensors > 2 else None,
        values_turn=way.tensors > 2, cosines=cosines if shown else None,
        running=running if way.form.by == "start" else None,
    )  # fmt: skip


def _copies(x: Tensor, count: int) -> tuple[Tensor, ...]:
    return (x, *(x.clone() for _ in range(count - 1)))


def _find(code: Code) -> tuple[Way, Code]:
    """The first way that works and in which positions matter; else the first that works.

    Of positions with coordinates, the way in which each matters comes before one in which some do.
    """
    failed: dict[str, str] = {}
    for width in _widths(code):
        works: list[tuple[Way, Code]] = []
        some: tuple[Way, Code] | None = None
        for way, what in _ways(code, width, failed):
            try:
                moves = _tried(way, what.again())
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed.setdefault(way.form.by, f"{way.told}: {_line(error)}")
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


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]


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


def _widths(code: Code) -> list[int]:
    if code.options.width:
        return [code.options.width]
    holder = code.call.__self__ if inspect.ismethod(code.call) else code.call
    found = [w for w in sizes_of(holder, "width") if w <= 512]
    for tensor in code.module.buffers() if code.module is not None else ():
        if tensor.dim() and 1 < tensor.shape[-1] <= 512:
            found += [2 * tensor.shape[-1], tensor.shape[-1]]
    found += [w for w in sizes_of(holder, "embed") if w <= 512]
    held = vars(holder).values() if hasattr(holder, "__dict__") else ()
    found += [2 * v.shape[-1] for v in held if isinstance(v, Tensor) and v.dim()]
    return list(dict.fromkeys([*found, 8, 16, 32, 64, 128, 4]))


def _ways(code: Code, width: int, failed: dict[str, str]) -> Iterator[tuple[Way, Code]]:
    for way in _called(code, width, failed):
        yield way, code
    if "a table" not in failed:
        yield from _as_table(code, width, failed)
    if not inspect.isroutine(code.call):
        for name in dir(type(code.call)):
            own = METHODS.match(name) and not hasattr(nn.Module, name)
            if own and inspect.isroutine(getattr(code.call, name, None)):
                method = method_of(code, name)
                yield from ((way, method) for way in _called(method, width, failed))


def _called(code: Code, width: int, failed: dict[str, str]) -> Iterator[Way]:
    """Ways in which the code itself turns what it is given."""
    try:
        known = parameters(code.call)
    except DoesNotFit as error:
        failed["signature"] = str(error)
        return
    roles = {one.role for one in known}
    tensors = tensors_of(known)
    if not tensors:
        return
    if roles & {"cos", "freqs", "pair"} and roles & set(TENSORS):
        full = any(one.role == "positions" and one.required for one in known)
        for table in (*tables_beside(code, width), *made_here(width)):
            yield from _handed_over(code, width, table, full)
        return
    by = "positions" if "positions" in roles else "offset" if "offset" in roles else "start"
    for form in _forms(code, by):
        told = _told(code, form, "")
        yield Way(form, width, len(tensors), told)


def _as_table(code: Code, width: int, failed: dict[str, str]) -> Iterator[tuple[Way, Code]]:
    """Code that makes cos and sin, and a function beside it that takes them."""
    try:
        table = table_of(code, width)
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        failed["a table"] = _line(error)
        return
    failed["a table"] = f"{table.told}, and no function beside it that was tried takes it"
    known = sizes_of(code.call, "width") if not code.options.width else ()
    widths = [width] if code.options.width else [*known, table.width, 2 * table.width]
    for name, thing in appliers(code.space, table, code):
        applier = code_of(thing, name, replace(code.options, settings={}, table=None))
        full = any(one.role == "positions" and one.required for one in parameters(thing))
        for one in dict.fromkeys(widths):
            for way in _handed_over(applier, one, table, full):
                yield replace(way, applier=applier), code


def _handed_over(code: Code, width: int, table: Table, full: bool) -> Iterator[Way]:
    count = len(tensors_of(parameters(code.call)))
    for whole in (True, False) if full else (False,):
        yield from _worn(code, width, table, whole, count)


def _worn(code: Code, width: int, table: Table, full: bool, count: int) -> Iterator[Way]:
    folds = {(places, axes): _folds(table, places, axes, width)
             for places in MANY for axes in (2, 3)}  # fmt: skip
    for form in _forms(code, "table"):
        if form.axes and not folds.get((form.places, form.axes), True):
            continue
        for dress in DRESSES:
            worn = replace(form, dress=dress, full=full)
            yield Way(worn, width, count, _told(code, worn, table.told), table)


def _folds(table: Table, places: str, axes: int, width: int) -> bool:
    """Whether the table makes one row of all coordinates of a position."""
    at = torch.zeros(*({"a": axes, "b": B, "t": T}[letter] for letter in places), dtype=torch.long)
    try:
        return table.at(at, torch.zeros(B, T, width))[0].dim() <= len(places)
    except Exception:  # noqa: BLE001 (a table of other positions may raise anything)
        return False


def _forms(code: Code, by: str) -> Iterator[Form]:
    options = code.options
    hinted = options.order or order_in(code.text)
    orders = [options.order] if options.order else dict.fromkeys([hinted or ORDERS[0], *ORDERS])
    if by in ("offset", "start"):
        yield from (Form(by, order) for order in orders)
        return
    for places in [options.places] if options.places else [*MANY, *PLACES]:
        many = ([options.axes] if options.axes else [3, 2]) if "a" in places else [0]
        for axes in many:
            for order in orders:
                if not (options.axes and not axes):
                    yield Form(by, order, places, axes=axes)
    if not options.axes:
        for order in orders:
            yield from (Form(by, order, places, whole=False) for places in ("bt", "t"))


def _told(code: Code, form: Form, table: str) -> str:
    known = parameters(code.call)
    wanted = {"table": {"cos", "sin", "freqs", "pair"}, "positions": {"positions"},
              "offset": {"offset"}, "start": set()}[form.by]  # fmt: skip
    tensors = tensors_of(known)
    names = [p.name for p in known if p.name in tensors or p.required or p.role in wanted]
    where = "; it takes no positions, so token t is at position t"
    if form.by in ("table", "positions"):
        where = f", positions are {_axes(form.places, form.axes)}"
    made = f" with {table}" if table else ""
    called = f"called as {code.name}({', '.join(names)}){made}"
    return f"{called}; {tensors[0]} is {_axes(form.order, 0)}{'' if form.by == 'offset' else where}"


def _axes(letters: str, many: int) -> str:
    return f"({', '.join(str(many) if letter == 'a' else letter.upper() for letter in letters)})"

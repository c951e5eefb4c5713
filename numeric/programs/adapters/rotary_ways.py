"""The ways in which rotary code may be called, the likely ones first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from .axes import MANY, ORDERS, PLACES
from .beside import appliers, tables_beside
from .building import code_of, method_of
from .code import Code, DoesNotFit
from .roles import order_in, parameters, sizes_of
from .rotary_calls import TENSORS, Form, Turns, bound, tensors_of
from .tables import DRESSES, Table, made_here, table_of

__all__ = ["B", "H", "T", "Way", "line_of", "ways", "widths_of"]

B, H, T = 6, 4, 5
WIDTHS = (8, 16, 32, 64, 128, 4)
METHODS = re.compile(r"^(rotate|apply|turn|rope|_apply)", re.IGNORECASE)


@dataclass(frozen=True)
class Way:
    """A form of a call; ``applier`` takes the table that the code itself makes.

    ``any_width``: it turns all channels, however many there are.
    """

    form: Form
    width: int
    tensors: int
    told: str
    table: Table | None = None
    applier: Code | None = None
    any_width: bool = False

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


def line_of(error: Exception) -> str:
    """What an error says, in a line."""
    return " ".join(str(error).split())[:160]


def widths_of(code: Code) -> list[int]:
    """Widths of a head to try: what is said, what the object holds, those that are usual."""
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
    likely = [code.options.likely["width"]] if "width" in code.options.likely else []
    return list(dict.fromkeys([*found, *likely, *WIDTHS]))


def ways(code: Code, width: int, failed: dict[str, str]) -> Iterator[tuple[Way, Code]]:
    """Each way, and the code that is called in it; ``failed`` keeps why others are none."""
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
        failed["a table"] = line_of(error)
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

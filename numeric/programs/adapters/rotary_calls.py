"""One call of rotary code: which argument each parameter is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .axes import held, turning
from .code import Code, DoesNotFit
from .placing import at_offsets, at_start
from .roles import Parameter, parameters
from .tables import DRESSES, Table

__all__ = ["Form", "Turns", "bound", "many", "tensors_of"]

Turns = Callable[..., tuple[Tensor, ...]]
TENSORS = ("query", "key", "value", "tokens")


@dataclass(frozen=True)
class Form:
    """How code is called: axes of tensors, axes of positions, and how a table is handed over.

    ``by``: table, positions, offset or start (no positions: those from 0).  ``full``: it is given
    the whole table with the positions.
    """

    by: str
    order: str
    places: str = "bt"
    dress: str = ""
    full: bool = False
    axes: int = 0
    whole: bool = True


def tensors_of(known: Sequence[Parameter]) -> tuple[str, ...]:
    """The parameters that take vectors to turn; the first parameter, if no name says more."""
    named = [one.name for one in known if one.role in TENSORS
             and (one.required or one.role == "key")]  # fmt: skip
    if not named and known and known[0].role in ("", "width", "embed", "length", "freqs"):
        named = [known[0].name]
    return tuple(named[:3])


def bound(code: Code, form: Form, table: Table | None, width: int) -> Turns:
    """Code as a call on tensors (B, H, T, D) with ``positions=`` (B, T[, axes])."""
    known = parameters(code.call)
    names = tensors_of(known)
    fixed = {k: v for k, v in code.options.arguments.items() if k in {p.name for p in known}}

    def call(xs: tuple[Tensor, ...], more: dict[str, Any]) -> tuple[Tensor, ...]:
        given: dict[str, Any] = {**dict(zip(names, xs, strict=True)), **fixed}
        for one in known:
            if one.name in given:
                continue
            if one.role in more and (one.required or one.role != "positions" or table is None):
                given[one.name] = more[one.role]
            elif one.required:
                given[one.name] = _plain(one, xs[0], form.order, width)
        return _results(code.call(**given), xs)

    def at_places(xs: tuple[Tensor, ...], places: Tensor) -> tuple[Tensor, ...]:
        places = places if form.whole else places.to(xs[0].dtype)
        if table is None:
            return call(xs, {"positions": places})
        if form.full:
            rows = torch.arange(many(places))
            return call(xs, {"positions": places, **_handed(table, rows, xs[0], form.dress)})
        return call(xs, {"positions": places, **_handed(table, places, xs[0], form.dress)})

    if form.by == "offset":
        return at_offsets(lambda xs, start: call(xs, {"offset": start}), form.order)
    if form.by == "start":
        return at_start(lambda xs: call(xs, {}), form.order)
    return turning(at_places, form.order, form.places)


def many(places: Tensor) -> int:
    """How many rows a table has that is read at these positions."""
    if torch.compiler.is_exporting():
        return 128
    return 1 << max(int(held(places).max()), 15).bit_length()


def _handed(table: Table, places: Tensor, x: Tensor, dress: str) -> dict[str, Any]:
    wear = DRESSES[dress]
    values = tuple(wear(v) for v in table.at(places, x))
    if table.form == "pair":
        cos, sin = values
        return {"cos": cos, "sin": sin, "pair": (cos, sin), "freqs": torch.complex(cos, sin)
                if cos.dtype in (torch.float32, torch.float64) else (cos, sin)}  # fmt: skip
    if table.form == "complex":
        return {"freqs": values[0], "pair": values[0], "cos": values[0].real,
                "sin": values[0].imag}  # fmt: skip
    return {"freqs": values[0], "pair": values[0], "cos": values[0].cos(), "sin": values[0].sin()}


def _plain(one: Parameter, x: Tensor, order: str, width: int) -> Any:
    """A value for a parameter that must be given, by what it is."""
    sizes = {"length": "t", "keys": "t", "heads": "h", "groups": "h"}
    if one.role in sizes and sizes[one.role] in order:
        return x.shape[order.index(sizes[one.role])]
    if one.role in ("width", "embed"):
        return width
    if one.role == "base":
        return 10000.0
    if one.role == "device":
        return x.device
    if one.role == "dtype":
        return x.dtype
    raise DoesNotFit(
        f"it must be given {one.name!r}, and what that is its name does not say; "
        f"give arguments={{{one.name!r}: ..}}"
    )


def _results(value: Any, xs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        if len(xs) == 1:
            return (value,)
        raise DoesNotFit(f"{len(xs)} tensors went in, and one came back")
    if isinstance(value, tuple | list) and len(value) == len(xs):
        found = tuple(value)
        if all(isinstance(one, Tensor) for one in found):
            return found
    raise DoesNotFit(f"{len(xs)} tensors were wanted, and {type(value).__name__} came back")

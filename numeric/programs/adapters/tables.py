"""Tables of angles: cos and sin, e^(i·angle) or angles, made from positions, a length, tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .axes import held
from .code import Code, DoesNotFit
from .roles import parameters

__all__ = ["DRESSES", "Table", "made_here", "read_table", "table_of"]

LONGEST = 1 << 17
AXES = ((), (2,), (2, 0), (3,), (3, 0), (6, 2), (2, 6, 0), (3, 6, 0))

DRESSES: dict[str, Callable[[Tensor], Tensor]] = {
    "": lambda v: v,
    "[:, None]": lambda v: v.unsqueeze(1),
    "[:, :, None]": lambda v: v.unsqueeze(2),
    "[None]": lambda v: v.unsqueeze(0),
    "[None, None]": lambda v: v[None, None],
    "[None, :, None]": lambda v: v[None].unsqueeze(2),
}


@dataclass(frozen=True)
class Table:
    """What makes angles: ``at`` takes positions (any shape) and tokens -> (.., width) values.

    ``form``: pair (cos, sin), complex, or one.  ``many``: its positions have coordinates.
    ``code`` makes it, in a ``way``: from positions, a length, tokens, or positions for tokens.
    """

    told: str
    form: str
    at: Callable[[Tensor, Tensor], tuple[Tensor, ...]]
    code: Code | None = None
    way: str = ""
    most: int = 1 << 20
    width: int = 0
    many: bool = False

    def on(self, code: Code, width: int) -> Table:
        """The same table, made by another instance of its code."""
        return replace(self, code=code, at=_at(code, self.way, width))


def read_table(value: Any) -> tuple[str, tuple[Tensor, ...]]:
    """The form of what came back, and its tensors; ``DoesNotFit`` where it is no table."""
    if isinstance(value, tuple | list) and len(value) == 2:
        cos, sin = value
        both = isinstance(cos, Tensor) and isinstance(sin, Tensor) and cos.shape == sin.shape
        if both and cos.dim() >= 2 and cos.is_floating_point():
            return "pair", (cos, sin)
    if isinstance(value, Tensor) and value.dim() >= 2:
        return ("complex" if value.is_complex() else "one"), (value,)
    raise DoesNotFit("it makes neither cos and sin nor one tensor of angles")


def table_of(code: Code, width: int) -> Table:
    """A table made by code that takes positions, a length, or tokens.  Raises ``DoesNotFit``."""
    roles = {one.role for one in parameters(code.call)}
    by_place = "positions" in roles or (roles & {"freqs"} and not roles & {"tokens", "query"})
    ways = (
        ["positions"] if by_place else
        ["length"] if "length" in roles else
        ["positions for tokens", "tokens"] if "tokens" in roles else []
    )  # fmt: skip
    failed = "it takes neither positions nor a length"
    for way in ways:
        for axes in AXES if "positions" in way else AXES[:1]:
            try:
                at = _at(code, way, width)
                form, values = _made(at, axes, 11, width)
                if values != _made(at, axes, 13, width)[1]:
                    raise DoesNotFit("its width follows the number of positions")
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed = str(error) if not axes else failed
                continue
            names = {"pair": "cos, sin", "complex": "freqs_cis", "one": "angles"}[form]
            told = f"{names} = {code.name}({way.removesuffix(' for tokens')})"
            most = 1 << 20 if "positions" in way else LONGEST
            return Table(told, form, at, code, way, most, values, bool(axes))
    raise DoesNotFit(f"the table {code.name}: {' '.join(failed.split())[:200]}")


def _at(code: Code, way: str, width: int) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    known = parameters(code.call)
    fixed = {n: v for n, v in code.options.arguments.items() if n in {one.name for one in known}}

    def call(
        positions: Tensor, tokens: Tensor, length: Callable[[], int]
    ) -> tuple[str, tuple[Tensor, ...]]:
        plain: dict[str, Any] = {"width": width, "embed": width, "base": 10000.0}
        given = dict(fixed)
        for one in known:
            if one.name in given:
                continue
            if one.role in ("positions", "freqs") and way == "positions":
                given[one.name] = positions
            elif one.role == "length":
                given[one.name] = length()
            elif one.role in ("tokens", "query", "value"):
                given[one.name] = positions if way == "positions for tokens" else tokens
            elif one.role in plain and one.required:
                given[one.name] = plain[one.role]
            elif one.name == "device" and one.required:
                given[one.name] = tokens.device
            elif one.required:
                raise DoesNotFit(f"the table {code.name} must be given {one.name!r}, whose meaning "
                                 f"is not known; give arguments={{{one.name!r}: ..}}")
        return read_table(code.call(**given))

    def at(positions: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        if "positions" in way:
            return call(positions, tokens, lambda: _length(positions))[1]
        length = _length(positions)
        values = call(positions, tokens.new_zeros(1, length, width), lambda: length)[1]
        return tuple(_rows(v, length, way)[positions.long()] for v in values)

    return at


def _made(
    at: Callable[[Tensor, Tensor], tuple[Tensor, ...]], axes: tuple[int, ...], length: int,
    width: int,
) -> tuple[str, int]:  # fmt: skip
    """The form and the width of a table of so many positions, with further axes of such sizes.

    The positions run along the axis of size 0, else along the last but one.
    """
    places = torch.arange(length)
    if axes and axes[-1] == 0:
        places = places.expand(*axes[:-1], length)
    elif axes:
        places = places[:, None].expand(*axes[:-1], length, axes[-1])
    values = at(places, torch.zeros(6, length, width))
    if not any(n == length for n in values[0].shape[:-1]):
        raise DoesNotFit(f"of {length} positions {tuple(values[0].shape)} came")
    form = "pair" if len(values) == 2 else "complex" if values[0].is_complex() else "one"
    return form, values[0].shape[-1]


def _length(positions: Tensor) -> int:
    if torch.compiler.is_exporting():
        return 128
    top = int(held(positions).max()) + 1 if positions.numel() else 1
    return 1 << max(top - 1, 15).bit_length()


def _rows(value: Tensor, length: int, way: str) -> Tensor:
    """The axis of that length in front, axes of length 1 dropped."""
    axis = next((i for i, n in enumerate(value.shape) if n == length), None)
    if axis is None:
        if value.shape[0] > length and way == "length":
            return value
        raise DoesNotFit(f"a table of {length} rows was wanted, and {tuple(value.shape)} came")
    value = value.movedim(axis, 0)
    extra = [i for i in range(1, value.dim() - 1) if value.shape[i] == 1]
    return value.squeeze(extra) if extra else value


def made_here(width: int) -> Iterator[Table]:
    """Tables of base 10000, where code brings none: of every pair, then of every channel."""

    def angles(positions: Tensor) -> Tensor:
        ladder = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        return positions.to(torch.float64)[..., None] * ladder.to(positions.device)

    shapes: dict[str, Callable[[Tensor], Tensor]] = {
        "of every pair": lambda a: a,
        "of every channel, halves alike": lambda a: torch.cat((a, a), -1),
        "of every channel, neighbours alike": lambda a: a.repeat_interleave(2, -1),
    }
    for told, shape in shapes.items():

        def at(
            positions: Tensor, tokens: Tensor, shape: Callable[[Tensor], Tensor] = shape
        ) -> tuple[Tensor, ...]:
            angle = shape(angles(positions))
            return angle.cos().to(tokens.dtype), angle.sin().to(tokens.dtype)

        yield Table(f"cos, sin {told}, base 10000, made here", "pair", at)

"""Rotary code whose call is told: on vectors (B, H, T, D) at positions (B, T)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..numeric.programs.adapters.axes import turning
from ..numeric.programs.adapters.building import code_of
from ..numeric.programs.adapters.code import Code, Options
from ..numeric.programs.adapters.placing import at_start
from ..numeric.programs.adapters.rotary import turned_by
from ..numeric.programs.adapters.rotary_calls import many
from ..numeric.programs.adapters.rotary_ways import widths_of
from ..numeric.programs.subjects import Rotary
from .layout import labels, laid_out, read_back
from .program import Program
from .roles import (
    PLACES,
    SIZES,
    TABLES,
    TURNED,
    common,
    lengths_of,
    raised,
    result_axes,
    returned,
    role,
)
from .signature import Argument, Axis, Signature, SignatureError, Source

__all__ = ["Turning", "as_rotary", "ended", "rotary", "sized", "tables_code", "way_of"]

Made = Callable[[Argument, Tensor], Tensor]  # what a table holds at positions of any shape
HEAD = ("B", "H", "n", "D")
BASE = 10000.0
ROWS = 9  # no length of any other axis, coordinates included


def _here(axes: Sequence[Axis], letters: Sequence[str]) -> tuple[str, ...]:
    """Those of some letters that stand in the axes."""
    known = labels(axes)
    return tuple(c for c in letters if c in known)


@dataclass(frozen=True)
class Turning:
    """Rotary code as a call on vectors (B, H, T, D) at positions (B, T)."""

    code: Code
    signature: Signature
    told: str  # what table it is given, in words
    table: Made | None
    width: int
    most: int = 1 << 20
    any_width: bool = False
    guessed: bool = False

    @property
    def vectors(self) -> tuple[Argument, ...]:
        """What is rotated."""
        found = [one for one in self.signature.arrays if role(one) in TURNED and "D" in one.letters]
        if not found:
            raise SignatureError(f"wanted what is rotated, such as x: B H n D, in {self.signature}")
        return tuple(found[:3])

    @property
    def places(self) -> tuple[Argument, ...]:
        """What is made of positions: themselves, or tables."""
        return tuple(one for one in self.signature.arrays if role(one) in (*TABLES, *PLACES))

    @property
    def single(self) -> str:
        """The axes of rows and heads that the code, or what is made of positions, does not have."""
        lacks = [c for c in "BH" if not all(c in one.letters for one in self.vectors[:1])]
        if self.places and not any("B" in one.letters for one in self.places):
            lacks.append("B")
        return "".join(dict.fromkeys(lacks))

    @property
    def axes(self) -> int:
        """How many coordinates a position has; 0 for a number."""
        for one in self.places:
            if role(one) in PLACES:
                numbers = [a for a in one.axes or () if not a.letters and a.split is None]
                if numbers:
                    return numbers[0].size({})
        return 0

    def calls(self) -> Callable[..., tuple[Tensor, ...]]:
        """The call on several tensors (B, H, T, D), with ``positions=`` (B, T[, axes])."""
        program = Program(self.code.call, self.signature, self.code.name)
        first = _here(self.vectors[0].axes or (), HEAD)
        order = "".join({"B": "b", "H": "h", "n": "t", "D": "d"}[c] for c in first)

        def call(xs: tuple[Tensor, ...], positions: Tensor | None) -> tuple[Tensor, ...]:
            lengths = lengths_of(self.signature, **dict(zip(first, xs[0].shape, strict=True)))
            arrays: dict[str, Any] = {}
            for one, x in zip(self.vectors, xs, strict=True):
                own = tuple("G" if c == "H" and "G" in one.letters else c for c in first)
                lengths |= dict(zip(own, x.shape, strict=True))
                arrays[one.name] = laid_out(x, own, one.axes or (), lengths)
            arrays |= self.made(positions, lengths, xs[0]) if positions is not None else {}
            found = program.run(arrays, lengths)
            return tuple(
                read_back(
                    found[back],
                    result_axes(self.signature, back),
                    tuple("G" if c == "H" and "G" in one.letters else c for c in first),
                    lengths,
                )
                for one, back in zip(self.vectors, returned(self.signature, names), strict=True)
            )

        names = [one.name for one in self.vectors]
        if not self.places:
            return at_start(lambda xs: call(xs, None), order)
        rows = any("B" in one.letters for one in self.places)
        places = ("bt" if rows else "t") + "a" * bool(self.axes)
        return turning(call, order, places)

    def made(
        self, positions: Tensor, lengths: Mapping[str, int], like: Tensor
    ) -> dict[str, Tensor]:
        """Positions and tables in the axes of the call."""
        here = (("B",) if any("B" in one.letters for one in self.places) else ()) + ("n",)
        whole = next(
            (
                c
                for one in self.places
                for c in one.letters
                if role(one) in TABLES and c not in ("B", "n", "H", "G", "D")
            ),
            "",
        )
        found = {}
        for one in self.places:
            axes = one.axes or ()
            if role(one) in PLACES:
                coordinates = (str(self.axes),) * bool(self.axes)
                at = positions.to(like.dtype) if role(one) == "coordinates" else positions
                found[one.name] = laid_out(at, (*here, *coordinates), axes, lengths)
                continue
            assert self.table is not None
            at = torch.arange(many(positions), device=like.device) if whole else positions
            value = self.table(one, at)
            if self.signature.source is None:
                value = value.to(torch.complex64 if value.is_complex() else like.dtype)
            last = axes[-2:] if role(one) == "cos_sin" else axes[-1:]
            own = (*((whole,) if whole else here), *labels(last))
            found[one.name] = laid_out(value, own, axes, {**lengths, whole: at.shape[0]})
        return found


_VALUE: dict[str, Callable[[Tensor], Tensor]] = {
    "cos": torch.cos,
    "sin": torch.sin,
    "angles": lambda angles: angles,
    "cis": lambda angles: torch.polar(torch.ones_like(angles), angles),
    "cos_sin": lambda angles: torch.stack((angles.cos(), angles.sin()), -1),
}


def _tables(code: Code, signature: Signature, width: int) -> Iterator[tuple[str, Made | None]]:
    """Angles for each position as the call wants them: of pairs, or of channels in either order."""
    tables = [one for one in signature.arrays if role(one) in TABLES]
    if not tables:
        yield "", None
        return
    wide = {_channels(one).size(lengths_of(signature, D=width)) for one in tables if one.axes}
    if wide not in ({width}, {width // 2}):
        raise SignatureError(
            f"wanted tables with D or D/2 numbers for each position, got {signature}"
        )
    if signature.source is not None:
        yield str(signature.source), made_by(code, signature.source, width)
        return

    def angles(positions: Tensor) -> Tensor:
        ladder = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        return positions.to(torch.float64)[..., None] * ladder.to(positions.device)

    def halves(positions: Tensor) -> Tensor:
        return torch.cat((angles(positions), angles(positions)), -1)

    def neighbours(positions: Tensor) -> Tensor:
        return angles(positions).repeat_interleave(2, -1)

    shapes = {"pair": angles} if wide == {width // 2} else {
        "channel, halves alike": halves, "channel, neighbours alike": neighbours
    }  # fmt: skip
    for told, shape in shapes.items():

        def made(one: Argument, at: Tensor, shape: Callable[[Tensor], Tensor] = shape) -> Tensor:
            return _VALUE[role(one)](shape(at))

        yield f"a table of each {told}, base {BASE:g}, made here", made


def _channels(table: Argument) -> Axis:
    """The axis of a table that runs along its angles."""
    axes = table.axes or ()
    return axes[-2 if role(table) == "cos_sin" and len(axes) > 1 else -1]


def tables_code(code: Code, name: str, width: int) -> Code:
    """Code of the same file that makes tables of this width; a class is built.

    Raises :class:`SignatureError` where there is none of this name.
    """
    thing = code.space.get(name)
    if thing is None:
        raise SignatureError(f"wanted {name} beside {code.name}, and its file has no such name")
    likely = {"width": width}
    return code_of(thing, name, Options(width=width, likely=likely))


def made_by(code: Code, source: Source, width: int) -> Made:
    """Tables that other code of the same file makes, from positions or for a length.

    Raises :class:`SignatureError` where there is no such code.
    """
    program = Program(tables_code(code, source.code, width).call, source.call, source.code)
    placed = next((one for one in source.call.arrays if role(one) in PLACES), None)

    def made(one: Argument, at: Tensor) -> Tensor:
        flat = at.flatten()
        length = len(flat) if placed is not None else many(at)
        lengths = lengths_of(source.call, D=width, m=length, n=length)
        arrays = {
            given.name: laid_out(flat, ("n",), given.axes or (), lengths)
            if given is placed
            else torch.zeros(given.shape(lengths), device=at.device)
            for given in source.call.arrays
        }
        back = program.run(arrays, lengths)
        result = source.call.results[source.names.index(one.name)]
        axes = result.axes or ()
        row = next((c for c in labels(axes) if c in ("m", "n")), "m")
        rest = tuple(c for c in labels(axes) if c != row)
        key = result.name or str(source.names.index(one.name))
        rows = read_back(back[key], axes, (row, *rest), lengths)
        found = rows if placed is not None else rows[flat.long()]
        return found.reshape(*at.shape, *found.shape[1:])

    return made


def rotary(code: Code, signature: Signature) -> Rotary:
    """Rotary code, given tables for which it preserves norms, where it is given any.

    Raises :class:`SignatureError` where the code cannot be called so.
    """
    failed: SignatureError | None = None
    for width in widths_of(code):
        try:
            return as_rotary(ended(way_of(sized(code, width), signature)))
        except SignatureError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def sized(code: Code, width: int) -> Code:
    """The code with vectors of this width; built with another one, it is given that."""

    def again(**settings: Any) -> Code:
        return sized(code.again(**settings), settings.get("width", width))

    return replace(code, options=replace(code.options, width=width), again=again)


def way_of(code: Code, signature: Signature, *, guessed: bool = False) -> Turning:
    """The call, with the table that suits it.  ``guessed``: nobody told the signature.

    Raises :class:`SignatureError` where the code cannot be called so.
    """
    width = code.options.width or SIZES["D"]
    failed = ""
    found: list[Turning] = []
    for told, table in _tables(code, signature, width):
        one = Turning(code.again(), signature, told, table, width, guessed=guessed)
        xs, at = _probe(one, code.options.heads or SIZES["H"])
        try:
            out = one.calls()(*xs, positions=at)[0]
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or raised(code, error)
            continue
        found.append(one)
        if torch.allclose(out.norm(dim=-1), xs[0].norm(dim=-1), rtol=1e-3):
            return one
    if found:
        return found[0]
    raise SignatureError(f"{code.name} was called as {signature}, and {failed}")


def ended(way: Turning) -> Turning:
    """With the positions that it has, and whether it rotates channels however many it is given.

    It is called at higher and higher positions, up to 2^20.
    """

    def moved(width: int, *places: int) -> int:
        """The channels that are others at the last position than at the first."""
        made = replace(way, code=way.code.again(), width=width)
        x = torch.randn(1, 1, 1, width, generator=torch.Generator().manual_seed(1))
        shape = (1, 1, way.axes) if way.axes else (1, 1)
        xs = [x.clone() for _ in way.vectors]
        try:
            first, *_, last = (
                made.calls()(*xs, positions=torch.full(shape, at))[0] for at in (0, *places)
            )
        except Exception:  # noqa: BLE001 (past its end code may raise anything)
            return -1
        return int((first != last).sum()) if first.shape == last.shape else -1

    low, top = 1, way.code.options.most or 1 << (17 if way.signature.source else 20)
    if not way.places or way.code.options.most or moved(way.width, top - 1) >= 0:
        low = top
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (middle, top) if moved(way.width, middle - 1) >= 0 else (low, middle)
    widths = (way.width, way.width + 4, 2 * way.width)
    every = way.table is None and all(moved(width, min(200, low - 1)) == width for width in widths)
    return replace(way, most=low, any_width=every)


def _probe(way: Turning, heads: int) -> tuple[list[Tensor], Tensor]:
    """Vectors and positions of lengths that all differ, so that no wrong order fits."""
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


def as_rotary(way: Turning) -> Rotary:
    """The call as what the laws look at."""

    def again(code: Code, signature: Signature) -> Rotary:
        if code.options.width != way.width:
            return as_rotary(ended(way_of(code, signature, guessed=way.guessed)))
        return as_rotary(replace(way, code=code, table=fresh(code)))

    def fresh(code: Code) -> Made | None:
        source = way.signature.source
        return way.table if source is None else made_by(code, source, way.width)

    def cosines(positions: Tensor) -> tuple[Tensor, Tensor]:
        assert way.table is not None
        found = {role(one): way.table(one, positions) for one in way.places if role(one) in TABLES}
        return found["cos"], found["sin"]

    here = way.table is not None and way.signature.source is None
    shown = way.signature.source is not None and {"cos", "sin"} <= {role(p) for p in way.places}
    return Rotary(
        **common(way.code, way.signature, again, f"with {way.told}" if here else "", way.guessed),
        **turned_by(way.calls(), len(way.vectors), starts=not way.places),
        width=way.width,
        heads=2 if "H" in way.vectors[0].letters else 1,
        single=way.single,
        axes=way.axes,
        most=way.most,
        any_width=way.any_width,
        whole=all(role(one) != "coordinates" for one in way.places),
        cosines=cosines if shown else None,
        given={"angles": way.told} if here else {},
    )

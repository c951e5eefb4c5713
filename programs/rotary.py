"""Rotary code whose call is told: on vectors (B, H, T, D) at positions (B, T)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..numeric.programs.adapters.axes import turning
from ..numeric.programs.adapters.code import Code
from ..numeric.programs.adapters.placing import at_start
from ..numeric.programs.adapters.rotary import turned_by
from ..numeric.programs.adapters.rotary_calls import many
from ..numeric.programs.subjects import Rotary
from .layout import labels, laid_out, parts, read_back
from .program import Program
from .roles import SIZES, TABLES, TURNED, common, lengths_of, raised, result_axes, returned, role
from .signature import Argument, Axis, Signature, SignatureError

__all__ = ["rotary"]

HEAD = ("B", "H", "n", "D")
BASE = 10000.0


def _here(axes: Sequence[Axis], letters: Sequence[str]) -> tuple[str, ...]:
    """Those of some letters that stand in the axes."""
    known = labels(axes)
    return tuple(c for c in letters if c in known)


@dataclass(frozen=True)
class _Turning:
    """Rotary code as a call on vectors (B, H, T, D) at positions (B, T)."""

    code: Code
    signature: Signature
    told: str  # what table it is given, in words
    table: Callable[[Tensor], Tensor] | None
    width: int

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
        return tuple(one for one in self.signature.arrays if role(one) in (*TABLES, "positions"))

    @property
    def axes(self) -> int:
        """How many coordinates a position has; 0 for a number."""
        for one in self.places:
            if role(one) == "positions":
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
            found = program(arrays, lengths)
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
            if role(one) == "positions":
                coordinates = (str(self.axes),) * bool(self.axes)
                found[one.name] = laid_out(positions, (*here, *coordinates), axes, lengths)
                continue
            assert self.table is not None
            at = torch.arange(many(positions), device=like.device) if whole else positions
            value = _VALUE[role(one)](self.table(at))
            value = value.to(torch.complex64 if value.is_complex() else like.dtype)
            own = (*((whole,) if whole else here), *parts(axes[-1]))
            found[one.name] = laid_out(value, own, axes, {**lengths, whole: len(at)})
        return found


_VALUE: dict[str, Callable[[Tensor], Tensor]] = {
    "cos": torch.cos,
    "sin": torch.sin,
    "angles": lambda angles: angles,
    "cis": lambda angles: torch.polar(torch.ones_like(angles), angles),
}


def _tables(
    signature: Signature, width: int
) -> Iterator[tuple[str, Callable[[Tensor], Tensor] | None]]:
    """Angles for each position as the call wants them: of pairs, or of channels in either order."""
    tables = [one for one in signature.arrays if role(one) in TABLES]
    if not tables:
        yield "", None
        return
    wide = {one.axes[-1].size(lengths_of(signature, D=width)) for one in tables if one.axes}
    if wide not in ({width}, {width // 2}):
        raise SignatureError(
            f"wanted tables with D or D/2 numbers for each position, got {signature}"
        )

    def angles(positions: Tensor) -> Tensor:
        ladder = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        return positions.to(torch.float64)[..., None] * ladder.to(positions.device)

    if wide == {width // 2}:
        yield f"a table of each pair, base {BASE:g}, made here", angles
        return
    yield (
        f"a table of each channel, halves alike, base {BASE:g}, made here",
        lambda p: torch.cat((angles(p), angles(p)), -1),
    )
    yield (
        f"a table of each channel, neighbours alike, base {BASE:g}, made here",
        lambda p: angles(p).repeat_interleave(2, -1),
    )


def rotary(code: Code, signature: Signature) -> Rotary:
    """Rotary code, given tables for which it preserves norms, where it is given any.

    Raises :class:`SignatureError` where the code cannot be called so.
    """
    width = code.options.width or code.options.likely.get("width", 0) or SIZES["D"]
    failed = ""
    found: list[_Turning] = []
    for told, table in _tables(signature, width):
        one = _Turning(code.again(), signature, told, table, width)
        xs, at = _probe(one, code.options.heads or SIZES["H"])
        try:
            out = one.calls()(*xs, positions=at)[0]
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or raised(code, error)
            continue
        found.append(one)
        if torch.allclose(out.norm(dim=-1), xs[0].norm(dim=-1), rtol=1e-3):
            return _as_rotary(one)
    if found:
        return _as_rotary(found[0])
    raise SignatureError(f"{code.name} was called as {signature}, and {failed}")


def _probe(way: _Turning, heads: int) -> tuple[list[Tensor], Tensor]:
    """Vectors and positions of lengths that all differ, so that no wrong order fits."""
    generator = torch.Generator().manual_seed(0)
    xs = [
        torch.randn(
            SIZES["B"],
            SIZES["G"] if "G" in one.letters else heads,
            SIZES["r"],
            way.width,
            generator=generator,
        )
        for one in way.vectors
    ]
    at = torch.arange(SIZES["r"]) + torch.arange(SIZES["B"])[:, None]
    return xs, at[..., None].expand(*at.shape, way.axes) if way.axes else at


def _as_rotary(way: _Turning) -> Rotary:
    def again(code: Code, _: Signature) -> Rotary:
        return _as_rotary(replace(way, code=code))

    return Rotary(
        **common(way.code, way.signature, again, f"with {way.told}" if way.table else ""),
        **turned_by(way.calls(), len(way.vectors), starts=not way.places),
        width=way.width,
        heads=2 if "H" in way.vectors[0].letters else 1,
        axes=way.axes,
        given={"angles": way.told} if way.table else {},
    )

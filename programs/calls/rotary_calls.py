"""Rotary code as a call on vectors (B, H, n, D) at positions (B, n)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from ..code import Code
from ..execution.draw import normal
from ..signatures.layout import (
    Label,
    at_offsets,
    at_start,
    in_grid,
    in_runs,
    labels,
    laid_out,
    laid_out_together,
    one_by_one,
    read_back,
)
from ..signatures.signature import Argument, Axis, Signature, SignatureError, Source
from .meaning import require_meaning
from .roles import (
    PLACES,
    ROTATED,
    SIZES,
    TABLES,
    axes_of_table,
    bounds,
    lengths_of,
    result_axes,
    result_names,
    role,
    runner,
)
from .spelling import START
from .tables import TableMaker, code_named, of_grid, places_of_table, rows_needed, tables
from .token_lines import by_token, flattened_grid

HEAD = ("B", "H", "n", "D")
INDEPENDENT_AXES = "BHGn"  # each vector is rotated independently
EXTRA_ROWS = 3  # rows beyond the tokens


def of_first_token(one: Argument) -> bool:
    """Whether an array holds the position of the first token of each row.

    >>> from ..signatures.grammar import parse
    >>> [of_first_token(a) for a in parse("at: B positions, of: B n positions -> of").arrays]
    [True, False]
    """
    return role(one) == "positions" and {*one.letters} <= {"B"}


@dataclass(frozen=True)
class Rotating:
    """Rotary code as a call on vectors (B, H, n, D) at positions (B, n)."""

    code: Code
    line: Signature  # as given; ``signature`` is the call of the code that rotates
    table_words: str  # the table that it is given
    table: TableMaker | None
    width: int
    most: int = 1 << 20
    longest: int = 0  # its positions in all, if calls of more than ``most`` have other frequencies
    any_width: bool = False
    guessed: bool = False
    cuts: bool = False  # of longer tables, it reads the first rows
    notes: tuple[str, ...] = ()  # on the given call
    # a fixed length of every call, or side of a grid, if it matters or keys have their own call
    frame: int = 0
    origin: int = 0  # of such a grid: the row, and the column, that is position 0

    @cached_property
    def signature(self) -> Signature:
        """The call of the code that rotates; if ``line`` makes its tables, they are its source."""
        if self.line.then is None:
            rows = "r" in self.line.letters or self.grid
            return by_token(flattened_grid(self.line) if rows else self.line)
        back = tuple(one.name for one in self.line.array_results)
        made = replace(self.line, then=None)
        applied = flattened_grid(self.line.then.call) if of_grid(made) else self.line.then.call
        return replace(by_token(applied), source=Source(back, self.code.name, made))

    @cached_property
    def grid(self) -> bool:
        """Whether it rotates a grid, row by row, and is given one of its sides or both."""
        split = any(a.split == ("h", "w") for one in self.line.arrays for a in one.axes or ())
        sides = {c for one in (*self.line.arguments, *self.line.built) for c in one.lengths}
        more = self.line.then is not None or self.line.source is not None
        told = more or any(role(one) in (*TABLES, *PLACES) for one in self.line.arrays)
        return split and bool({"h", "w"} & sides) and not told

    @property
    def rotates(self) -> Code:
        """The code that rotates."""
        if self.line.then is None:
            return self.code
        return code_named(self.code, self.line.then.code, self.width)

    @cached_property
    def offset(self) -> bool:
        """Whether it is given the position of the first token."""
        return any(START in one.lengths for one in self.signature.arguments)

    @property
    def given_first(self) -> bool:
        """Whether it is given the position of the first token, as a number or an array."""
        return self.offset or any(map(of_first_token, self.places))

    @property
    def starts(self) -> bool:
        """Whether it is given no positions, so that each sequence starts at 0."""
        return self.packed or (not self.places and not self.offset and not self.grid)

    @property
    def counts(self) -> bool:
        """Whether it counts the positions of a call itself, from the first one or 0."""
        return self.starts or self.given_first

    @cached_property
    def packed(self) -> bool:
        """Whether sequences are packed into one axis, each starting at position 0."""
        return any(role(one) == "bounds" for one in self.signature.arrays)

    @cached_property
    def vectors(self) -> tuple[Argument, ...]:
        """The arrays that are rotated."""
        found = [
            one for one in self.signature.arrays if role(one) in ROTATED and "D" in one.letters
        ]
        back = {one.name for one in self.signature.array_results}
        # An ignored key may rotate differently: it must come back.
        found = [one for one in found if one.name in back or role(one) == "key"] or found
        if not found:
            raise SignatureError(
                f"wanted an array that is rotated, such as x: B H n D, in {self.signature}"
            )
        return tuple(found[:3])

    @cached_property
    def _rotated(self) -> tuple[tuple[Argument, tuple[str, ...]], ...]:
        """The rotated arrays, with labels of (B, H, n, D): "" where all lack it.

        Groups are G, and the last of the tokens r.
        """
        there = labels(self.vectors[0].axes or ())
        first = [c if c in there or (c == "n" and "r" in there) else "" for c in HEAD]
        other = {"H": "G", "n": "r"}
        return tuple(
            (one, tuple(other[c] if other.get(c) in one.letters else c for c in first))
            for one in self.vectors
        )

    @cached_property
    def _back(self) -> tuple[tuple[str, tuple[Axis, ...]], ...]:
        """The name of each rotated result, and its axes.  Raises ``SignatureError``."""
        names = result_names(self.signature, [one.name for one in self.vectors])
        return tuple((name, result_axes(self.signature, name)) for name in names)

    @cached_property
    def _left(self) -> tuple[Argument, ...]:
        """The other input arrays."""
        made = (*self.vectors, *self.places)
        return tuple(one for one in self.signature.arrays if one not in made)

    @cached_property
    def places(self) -> tuple[Argument, ...]:
        """The inputs made from positions: positions, tables, and what is made with these."""
        source = self.signature.source
        made = source.names if source is not None else ()
        return tuple(
            one
            for one in self.signature.arrays
            if role(one) in (*TABLES, *PLACES) or one.name in made
        )

    def other_input(self, one: Argument, lengths: Mapping[str, int], like: Tensor) -> Tensor:
        """Return another input, all ones, also for unused vectors.  Raises ``SignatureError``."""
        if role(one) == "bounds":
            return bounds(one, lengths, like)
        if role(one) not in ("scale", "constant", *ROTATED):
            raise SignatureError(
                f"wanted what {one.name} is: write one of {', '.join((*TABLES, *PLACES))}, tokens, "
                f"scale behind its axes, in {self.signature}"
            )
        return torch.ones(one.shape(lengths)).to(like)

    @cached_property
    def single(self) -> str:
        """The axes, of rows and heads, that the rotated arrays lack."""
        return "".join(c for c in "BH" if c not in self.vectors[0].letters)

    @property
    def shared(self) -> bool:
        """Whether rows of a batch are rotated together, all at the same positions."""
        return bool(self.places) and not self.starts and not self.batched and "B" not in self.single

    @cached_property
    def axes(self) -> int:
        """The number of coordinates of a position; 0 for a plain number."""
        source = self.signature.source
        if self.grid or (source is not None and of_grid(source.call)):
            return 2
        if sides := [one for one in self.places if role(one) == "axis"]:
            if len(sides) == 1:
                raise SignatureError(f"wanted an array for each axis, got only {sides[0]}")
            return len(sides)
        given = source.call.arrays if source is not None else ()
        for one in (*self.places, *given):
            if role(one) in PLACES:
                numbers = [a for a in one.axes or () if not a.letters and a.split is None]
                if numbers:
                    return numbers[0].size({})
        return self._tables_apart

    @property
    def axes_told(self) -> bool:
        """Whether positions, or tables, are apart for each axis: then their number is certain."""
        return bool(self._tables_apart) or any(role(one) == "axis" for one in self.places)

    @cached_property
    def _tables_apart(self) -> int:
        """How many rows tables made here have for each token, one for each coordinate; else 0."""
        made = [one for one in self.places if role(one) in TABLES]
        rest = [one for one in self.signature.arrays if one not in made]
        known = {str(a) for one in rest for a in one.axes or ()}  # such as a number of rows
        told = []
        for one in made if self.signature.source is None else ():
            own = axes_of_table(one)
            left = [a for k, a in enumerate(one.axes or ()) if k not in own and not a.letters]
            many = [a.size({}) for a in left if str(a) not in known and a.size({}) > 1]
            told.append(many[0] if many else 0)
        if len(set(told)) > 1:
            raise SignatureError(f"wanted as many rows in each table, got {self.signature}")
        return told[0] if told else 0

    @cached_property
    def batched(self) -> bool:
        """Whether each row of a batch has its own positions."""
        return any("B" in one.letters for one in self.places)

    def calls(
        self, *, keys: bool = False, from_zero: bool = False
    ) -> Callable[..., tuple[Tensor, ...]]:
        """Return the call on several tensors (B, H, n, D), with ``positions=`` (B, n[, axes]).

        ``keys``: with the arguments for keys.  ``from_zero``: code that is given the first
        position is given 0 in a single call.
        """
        own = {one.name for one in self.signature.keys}
        given = tuple(one for one in self.signature.arguments if one.name not in own)
        line = replace(self.signature, arguments=(*given, *self.signature.keys))
        run = runner(self.rotates, line if keys else self.signature)
        there = labels(self.vectors[0].axes or ())
        lacks = "".join(c for c in "BH" if c not in there)
        if "n" not in there:
            raise SignatureError(
                f"wanted tokens n on an axis of their own in {self.vectors[0]}: code of images is "
                "called with one row of them, as h = 1, w = n"
            )
        if not self.places and self.axes and not self.grid:
            raise SignatureError(
                f"wanted {self.axes} coordinates of each token among the inputs; "
                f"{self.signature} has none"
            )

        def call(
            xs: tuple[Tensor, ...], positions: Tensor | None, start: int = 0
        ) -> tuple[Tensor, ...]:
            at = positions if positions is None or self.batched else positions[0]
            return self.rotated(run, xs, at, start)

        if self.grid:
            return in_grid(call, lacks, self.frame, self.origin)
        if self.offset and not from_zero:
            return at_offsets(lambda xs, start: call(xs, None, start), lacks)
        if self.offset or not self.places or self.packed:
            return at_start(call, lacks, self.frame)
        rotate = one_by_one(call, lacks, batched=self.batched)
        return in_runs(rotate) if self.given_first and not from_zero else rotate

    @cached_property
    def takes_last(self) -> bool:
        """Whether the line has fewer queries than keys, and no positions of queries.

        The queries are then those of the last tokens, as in decoding with cached keys.
        """
        told = [one for one in self.line.arrays if one.name in {v.name for v in self.vectors}]
        alone = self.line.then is None and self.line.source is None and not self.line.keys
        return (
            alone
            and not (self.grid or self.given_first or self.packed or self.axes or self.single)
            and [{"r", "n"} & {*one.letters} for one in told] == [{"r"}, {"n"}]
            and not any("r" in one.letters for one in self.line.arrays if one not in told)
        )

    def last(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, r, D) of the last tokens and keys (B, G, n, D), both rotated."""
        few = replace(self)
        vars(few)["signature"] = by_token(self.line)
        at = torch.arange(k.shape[2], device=k.device)
        at = at.expand(len(k), -1) if self.batched else at
        first, second = few.rotated(runner(self.rotates, few.signature), (q, k), at)
        return first, second

    def rotated(
        self,
        run: Callable[..., Any],
        xs: tuple[Tensor, ...],
        positions: Tensor | None,
        start: int = 0,
    ) -> tuple[Tensor, ...]:
        """Return what a call gives for vectors at positions."""
        arrays, lengths = self.given(xs, positions, start)
        found = run(arrays, lengths)
        return tuple(
            read_back(found[name], axes, own, lengths)
            for (name, axes), (_, own) in zip(self._back, self._rotated, strict=True)
        )

    def given(
        self, xs: tuple[Tensor, ...], positions: Tensor | None, start: int = 0
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the inputs of the code for vectors at positions, and every length."""
        known = {START: start, "n": xs[-1].shape[2]}
        sides = dict.fromkeys("hw", isqrt(known["n"])) if self.grid else {}
        lengths = lengths_of(self.signature, **sides, **known)
        arrays: dict[str, Any] = {}
        for (_, own), x in zip(self._rotated, xs, strict=True):
            lengths |= {c: n for c, n in zip(own, x.shape, strict=True) if c}
        given = [(x, own, one.axes or ()) for (one, own), x in zip(self._rotated, xs, strict=True)]
        views: dict[int, Tensor] = {}  # of these, code may change the shape in place
        for (one, _), x, made in zip(
            self._rotated, xs, laid_out_together(given, lengths), strict=True
        ):
            same = views.setdefault(id(x), x.permute(*range(x.dim()))) if made is x else made
            arrays[one.name] = same
        if self.packed and self.places:  # as many rows as positions that do not restart
            rows = lengths["n"] * (lengths["B"] if self._rows[1] else 1)
            positions = torch.arange(rows, device=xs[0].device)
        arrays |= self.position_inputs(positions, lengths, xs[0]) if positions is not None else {}
        return arrays | {
            one.name: self.other_input(one, lengths, xs[0]) for one in self._left
        }, lengths

    def require_meaning(self, **sizes: int) -> None:
        """Refuse the line if an axis does not mean what its letter says.  Raises ``DoesNotFit``."""
        known = {"": 1, "D": self.width, **sizes}
        xs = [normal(*(known[c] for c in own), seed=4) for _, own in self._rotated]
        rows, tokens = (torch.arange(sizes[c]) for c in "Bn")
        at = tokens + 2 * rows[:, None] if self.batched else tokens
        at = at[..., None].repeat(*(1 for _ in at.shape), self.axes) if self.axes else at
        arrays, lengths = self.given(tuple(xs), at if self.places else None)
        apart = INDEPENDENT_AXES
        if self.packed:
            apart = apart.replace("B", "")  # given by its bounds
        require_meaning(
            runner(self.rotates, self.signature), arrays, self.signature, lengths, apart, used=True
        )

    def takes_longer(self) -> bool:
        """Whether the code that rotates reads only the first rows of longer tables."""
        signature, known = self.signature, {"D": self.width, "n": SIZES["r"]}
        lengths = lengths_of(signature, **known)
        longer = {**lengths, "n": known["n"] + EXTRA_ROWS}
        held = {one.name for one in self.places if role(one) in TABLES and "n" in one.letters}
        if not held:
            return True  # positions choose the rows
        generator = torch.Generator().manual_seed(5)
        run, few, many = runner(self.rotates, signature), {}, {}
        try:
            for one in signature.arrays:
                x = torch.randn(one.shape(longer), generator=generator)
                axes = [str(axis) for axis in one.axes or ()]
                own = x.narrow(axes.index("n"), 0, known["n"]) if "n" in one.letters else x
                short = own.contiguous()  # code may refuse other memory layouts
                few[one.name], many[one.name] = short, x if one.name in held else short
            first, second = (run(arrays, lengths) for arrays in (few, many))
        except Exception:  # noqa: BLE001 (the code may raise anything; axes like (2 n) raise too)
            return False
        return all(
            x.shape == second[name].shape and torch.equal(x, second[name])
            for name, x in first.items()
            if isinstance(x, Tensor)
        )

    def running(self, past: int, lengths: Mapping[str, int], like: Tensor) -> dict[str, Tensor]:
        """Return positions and tables of n tokens that follow ``past`` others."""
        at = torch.arange(past, past + lengths["n"], device=like.device)
        if self.batched:
            at = at.expand(lengths["B"], -1)
        if self.axes:
            at = at[..., None].expand(*at.shape, self.axes)
        return self.position_inputs(at, {**lengths, "D": self.width}, like)

    def position_inputs(
        self, positions: Tensor, lengths: Mapping[str, int], like: Tensor
    ) -> dict[str, Tensor]:
        """Return positions and tables in the axes of the call."""
        here, whole = self._rows
        found = {}
        at = torch.arange(rows_needed(positions), device=like.device) if whole else positions
        held = [one for one, kind, _ in self._kinds if kind not in PLACES]
        sides = [one for one, kind, _ in self._kinds if kind == "axis"]
        values = self.table(held, at, lengths["D"]) if held and self.table is not None else {}
        for one, kind, rest in self._kinds:
            if kind in PLACES:
                own_at, own = positions, here
                if of_first_token(one):
                    own_at, own = positions[..., 0], here[:-1]
                if kind == "coordinates":  # an 8-bit format would change them
                    own_at = positions.to(torch.promote_types(like.dtype, torch.float32))
                coordinates = (str(self.axes),) * bool(self.axes)
                if kind == "axis":
                    own_at, coordinates = own_at[..., sides.index(one)], ()
                found[one.name] = laid_out(own_at, (*own, *coordinates), one.axes or (), lengths)
                continue
            value = values[one.name]
            if not {*here, whole} & set(one.letters):
                found[one.name] = value.to(like.dtype)
                continue
            if self.signature.source is None:
                value = value.to(torch.complex64 if value.is_complex() else like.dtype)
            rows: tuple[Label, ...] = (whole,) if whole else here
            rows += (str(self.axes),) * bool(self._tables_apart)
            if value.ndim != len(rows) + len(rest):
                raise SignatureError(f"wanted as many axes as {one} has, got {tuple(value.shape)}")
            sizes = {**lengths, whole: at.shape[0]}
            found[one.name] = laid_out(value, (*rows, *rest), one.axes or (), sizes)
        return found

    @cached_property
    def _kinds(self) -> tuple[tuple[Argument, str, tuple[int, ...]], ...]:
        """The inputs made from positions, the role of each, and its axes without positions."""
        return tuple(
            (one, kind, () if kind in PLACES else places_of_table(one))
            for one in self.places
            for kind in (role(one),)
        )

    @cached_property
    def _rows(self) -> tuple[tuple[str, ...], str]:
        """The letters of positions, and the letter of the rows of whole tables (else "")."""
        here = (("B",) if self.batched else ()) + ("n",)
        letters = (c for one, kind, _ in self._kinds if kind in TABLES for c in one.letters)
        return here, next((c for c in letters if c not in ("B", "n", "H", "G", "D")), "")


def ways_of(code: Code, line: Signature, width: int) -> list[Rotating]:
    """Return the call with each form of table that it may expect."""
    return [Rotating(code, line, told, table, width) for told, table in tables(code, line, width)]

"""Rotary code with a given call, as a map of vectors (B, H, T, D) at positions (B, T)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from .code import Code
from .layout import Label, at_offsets, at_start, in_grid, labels, laid_out, read_back, rotating
from .meaning import require_meaning, width_notes
from .names import parameters
from .roles import (
    PLACES,
    ROTATED,
    SIZES,
    TABLES,
    bounds,
    built_at,
    describe_call_error,
    lengths_of,
    result_axes,
    result_names,
    role,
    runner,
    shared_fields,
)
from .signature import Argument, Axis, Signature, SignatureError, Source
from .subjects import Rotary
from .supplied_inputs import CONTENTS
from .tables import (
    TableMaker,
    code_named,
    maker_from,
    of_grid,
    places_of_table,
    rows_needed,
    table_widths,
    tables,
    widths_of,
)

HEAD = ("B", "H", "n", "D")
INDEPENDENT_AXES = "BHGn"  # each vector is rotated independently
START = "p"  # the letter of the position of the first token
KEY_FLAG = re.compile(r"down_?scale|invert|inverse|(is|for)_?keys?")
DRIFT = 1e-3  # from here on, scores depend on more than offsets
TOKENS = Axis(((Fraction(1), ("n",)),))
EXTRA_ROWS = 3  # rows beyond the tokens
ROWS = 9  # unlike the length of any other axis, coordinates included


def flattened_grid(signature: Signature) -> Signature:
    """Return the call with n for queries, and for the places of a grid on a single axis.

    >>> from .grammar import parse
    >>> str(flattened_grid(parse("x: B (h w) H D, cos: (h w) D -> x")))
    'x: B n H D, cos: n D -> x'
    """

    def other(one: Argument) -> Argument:
        rows = (("h", "w"), ("r",))  # there are as many queries as keys
        axes = tuple(TOKENS if axis.split in rows else axis for axis in one.axes or ())
        inner = tuple(map(other, one.parts))
        return replace(one, axes=None if one.axes is None else axes, parts=inner)

    given, back = (tuple(map(other, part)) for part in (signature.arguments, signature.results))
    return replace(signature, arguments=given, results=back)


def _by_token(signature: Signature) -> Signature:
    """Return the call with a row per token in tables of m rows, if nothing selects rows.

    Code that is given no positions uses the first rows, or the last: with as many rows as tokens,
    all.

    >>> from .grammar import parse
    >>> str(_by_token(parse("q: B H n D, cos: 1 1 m D, sin: 1 1 m D -> q")))
    'q: B H n D, cos: 1 1 n D, sin: 1 1 n D -> q'
    """
    given = signature.arrays
    if any(role(one) in (*PLACES, "bounds") for one in given) or any(
        START in one.lengths for one in signature.arguments
    ):
        return signature

    def rows(one: Argument) -> Argument:
        if role(one) not in TABLES or "n" in one.letters:
            return replace(one, parts=tuple(map(rows, one.parts)))
        axes = tuple(TOKENS if str(axis) == "m" else axis for axis in one.axes or ())
        return replace(one, axes=axes)

    return replace(signature, arguments=tuple(map(rows, signature.arguments)))


def _occurring(axes: Sequence[Axis], letters: Sequence[str]) -> tuple[str, ...]:
    """Return those of some letters that occur in the axes."""
    known = labels(axes)
    return tuple(c for c in letters if c in known)


@dataclass(frozen=True)
class Rotating:
    """Rotary code as a call on vectors (B, H, T, D) at positions (B, T)."""

    code: Code
    line: Signature  # as given; ``signature`` is the call of the code that rotates
    table_words: str  # the table that it is given
    table: TableMaker | None
    width: int
    most: int = 1 << 20
    any_width: bool = False
    guessed: bool = False
    cuts: bool = False  # of longer tables, it reads the first rows
    notes: tuple[str, ...] = ()  # on the given call
    frame: int = 0  # a fixed length of every call, if it matters or keys have their own call

    @cached_property
    def signature(self) -> Signature:
        """The call of the code that rotates; if ``line`` makes its tables, they are its source."""
        if self.line.then is None:
            rows = "r" in self.line.letters or self.grid
            return _by_token(flattened_grid(self.line) if rows else self.line)
        back = tuple(one.name for one in self.line.results if one.axes is not None)
        made = replace(self.line, then=None)
        applied = flattened_grid(self.line.then.call) if of_grid(made) else self.line.then.call
        return replace(_by_token(applied), source=Source(back, self.code.name, made))

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
    def starts(self) -> bool:
        """Whether it is given no positions, so that each sequence starts at 0."""
        return self.packed or (not self.places and not self.offset and not self.grid)

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
        back = {one.name for one in self.signature.results if one.axes is not None}
        # An ignored key may rotate differently: it must come back.
        found = [one for one in found if one.name in back or role(one) == "key"] or found
        if not found:
            raise SignatureError(
                f"wanted an array that is rotated, such as x: B H n D, in {self.signature}"
            )
        return tuple(found[:3])

    @cached_property
    def _rotated(self) -> tuple[tuple[Argument, tuple[str, ...]], ...]:
        """The rotated arrays, each with its axes among those of (B, H, T, D); groups are G."""
        first = _occurring(self.vectors[0].axes or (), HEAD)
        return tuple(
            (one, tuple("G" if c == "H" and "G" in one.letters else c for c in first))
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
        given = source.call.arrays if source is not None else ()
        for one in (*self.places, *given):
            if role(one) in PLACES:
                numbers = [a for a in one.axes or () if not a.letters and a.split is None]
                if numbers:
                    return numbers[0].size({})
        return 0

    @cached_property
    def batched(self) -> bool:
        """Whether each row of a batch has its own positions."""
        return any("B" in one.letters for one in self.places)

    def calls(self, *, keys: bool = False) -> Callable[..., tuple[Tensor, ...]]:
        """Return the call on several tensors (B, H, T, D), with ``positions=`` (B, T[, axes]).

        ``keys``: with the arguments for keys.
        """
        own = {one.name for one in self.signature.keys}
        given = tuple(one for one in self.signature.arguments if one.name not in own)
        line = replace(self.signature, arguments=(*given, *self.signature.keys))
        run = runner(self.rotates, line if keys else self.signature)
        first = _occurring(self.vectors[0].axes or (), HEAD)
        if "n" not in first:
            raise SignatureError(
                f"wanted tokens n on an axis of their own in {self.vectors[0]}: code of images is "
                "called with one row of them, as h = 1, w = n"
            )
        if not self.places and self.axes and not self.grid:
            raise SignatureError(
                f"wanted {self.axes} coordinates of each token among the inputs; "
                f"{self.signature} has none"
            )
        order = "".join({"B": "b", "H": "h", "n": "t", "D": "d"}[c] for c in first)

        def call(
            xs: tuple[Tensor, ...], positions: Tensor | None, start: int = 0
        ) -> tuple[Tensor, ...]:
            arrays, lengths = self.given(xs, positions, start)
            found = run(arrays, lengths)
            return tuple(
                read_back(found[name], axes, own, lengths)
                for (name, axes), (_, own) in zip(self._back, self._rotated, strict=True)
            )

        if self.grid:
            return in_grid(lambda xs: call(xs, None), order)
        if self.offset:
            return at_offsets(lambda xs, start: call(xs, None, start), order)
        if not self.places or self.packed:
            return at_start(lambda xs: call(xs, None), order, self.frame)
        places = ("bt" if self.batched else "t") + "a" * bool(self.axes)
        return rotating(call, order, places)

    def given(
        self, xs: tuple[Tensor, ...], positions: Tensor | None, start: int = 0
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the inputs of the code for vectors at positions, and every length."""
        first = _occurring(self.vectors[0].axes or (), HEAD)
        known = {START: start, **dict(zip(first, xs[0].shape, strict=True))}
        sides = dict.fromkeys("hw", isqrt(known["n"])) if self.grid else {}
        lengths = lengths_of(self.signature, **sides, **known)
        arrays: dict[str, Any] = {}
        for (one, own), x in zip(self._rotated, xs, strict=True):
            lengths |= dict(zip(own, x.shape, strict=True))
            arrays[one.name] = laid_out(x, own, one.axes or (), lengths)
        if self.packed and self.places:  # as many rows as positions that do not restart
            rows = lengths["n"] * (lengths["B"] if self._rows[1] else 1)
            positions = torch.arange(rows, device=xs[0].device)
        arrays |= self.position_inputs(positions, lengths, xs[0]) if positions is not None else {}
        return arrays | {
            one.name: self.other_input(one, lengths, xs[0]) for one in self._left
        }, lengths

    def require_meaning(self, **sizes: int) -> None:
        """Refuse the line if an axis does not mean what its letter says.  Raises ``DoesNotFit``."""
        xs = []
        for one in self.vectors:
            here = _occurring(one.axes or (), ("B", "H", "G", "n", "D"))
            shape = [{"D": self.width, **sizes}[c] for c in here]
            xs.append(torch.randn(shape, generator=torch.Generator().manual_seed(4)))
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
        values = self.table(held, at) if held and self.table is not None else {}
        for one, kind, rest in self._kinds:
            if kind in PLACES:
                own_at = positions
                if kind == "coordinates":  # an 8-bit format would change them
                    own_at = positions.to(torch.promote_types(like.dtype, torch.float32))
                coordinates = (str(self.axes),) * bool(self.axes)
                found[one.name] = laid_out(own_at, (*here, *coordinates), one.axes or (), lengths)
                continue
            value = values[one.name]
            if not {*here, whole} & set(one.letters):
                found[one.name] = value.to(like.dtype)
                continue
            if self.signature.source is None:
                value = value.to(torch.complex64 if value.is_complex() else like.dtype)
            rows: tuple[Label, ...] = (whole,) if whole else here
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


def rotary(code: Code, signature: Signature) -> Rotary:
    """Return rotary code as a subject, with tables for which it preserves norms if it needs tables.

    Raises :class:`SignatureError` if the code cannot be called this way.
    """
    failed: SignatureError | None = None
    first = table_widths(code) if signature.then is not None and not code.options.width else ()
    for width in (*first, *widths_of(code)):
        try:
            made = built_at(with_width(code, width), signature, D=width)
            way = way_of(made, signature)
            return as_rotary(with_key_flag(with_limits(replace(way, notes=_notes(way)))))
        except SignatureError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _notes(way: Rotating) -> tuple[str, ...]:
    """Return notes on a given call."""
    xs, at = _probe(way, way.code.options.heads or distinct_heads(way.width))
    return width_notes(way, xs, at, lambda line: way_of(way.code, line))


def with_width(code: Code, width: int) -> Code:
    """Return the code with vectors of this width; if rebuilt with another width, it is given that.

    A setting that is the width stays equal to it, whatever its name.
    """

    def again(**settings: Any) -> Code:
        named = (n for k, n in settings.items() if code.built.get(k) == width and n != width)
        return with_width(code.again(**settings), settings.get("width", next(named, width)))

    return replace(code, options=replace(code.options, width=width), again=again)


def way_of(code: Code, signature: Signature, *, guessed: bool = False) -> Rotating:
    """Return the call, with a suitable table.  ``guessed``: the signature was not given.

    Raises :class:`SignatureError` if the code cannot be called this way.
    """
    width = code.options.width or SIZES["D"]
    failed = ""
    found: list[Rotating] = []
    made = Rotating(code.again(), signature, "", None, width, guessed=guessed)
    made = replace(made, cuts=made.signature.source is not None and made.takes_longer())
    for told, table in tables(
        made.code,
        made.signature,
        width,
        then=signature.then is not None,
        cuts=made.cuts,
        guessed=guessed,
    ):
        one = replace(made, table_words=told, table=table)
        xs, at = _probe(one, code.options.heads or distinct_heads(width))
        try:
            out = one.calls()(*xs, positions=at)[0]
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or describe_call_error(code, error)
            continue
        found.append(one)
        if torch.allclose(out.norm(dim=-1), xs[0].norm(dim=-1), rtol=1e-3):
            return one
    if found:
        return found[0]
    raise SignatureError(f"{code.name} was called as {signature}, and {failed}")


def with_limits(way: Rotating) -> Rotating:
    """Return the call with the number of its positions, and whether it rotates any width.

    The last position is found by bisection, up to 2^20.
    """

    def moved(width: int, *places: int) -> int:
        """Return how many channels differ between the first and last position; -1 on an error."""
        made = replace(way, code=way.code.again(), width=width)
        x = torch.randn(1, 1, 1, width, generator=torch.Generator().manual_seed(1))
        shape = (1, 1, way.axes) if way.axes else (1, 1)
        xs = [x.clone() for _ in way.vectors]
        try:
            first, *_, last = (
                made.calls()(*xs, positions=torch.full(shape, at))[0] for at in (0, *places)
            )
        except Exception:  # noqa: BLE001 (beyond its positions code may raise anything)
            return -1
        return int((first != last).sum()) if first.shape == last.shape else -1

    source = way.signature.source
    counted = source is not None and not any(role(one) in PLACES for one in source.call.arrays)
    running = way.starts  # then it is given all earlier tokens
    grid = way.grid or (counted and way.axes)
    most = 13 if running else 6 if grid else 17 if counted else 20
    low, top = 1, way.code.options.most or 1 << most
    if way.code.options.most or moved(way.width, top - 1) >= 0:
        low = top
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (middle, top) if moved(way.width, middle - 1) >= 0 else (low, middle)
    widths = (way.width, way.width + 4, 2 * way.width)
    every = way.table is None and all(moved(width, min(200, low - 1)) == width for width in widths)
    found = replace(way, most=low, any_width=every)
    return replace(found, frame=low if running and depends_on_length(found) else 0)


def depends_on_length(way: Rotating) -> bool:
    """Whether a result depends on the number of tokens, as with a scale that has a midpoint."""
    x = torch.randn(1, 1, 8, way.width, generator=torch.Generator().manual_seed(2))
    at = torch.arange(8)[None]
    try:
        few, many = (
            way.calls()(*(x[:, :, :n].clone() for _ in way.vectors), positions=at[:, :n])[0]
            for n in (2, 8)
        )
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return False
    return not torch.allclose(few, many[:, :, :2], rtol=1e-4, atol=1e-5)


def with_key_flag(way: Rotating) -> Rotating:
    """Return the call, with a flag for keys if only the flag makes scores depend on offsets alone.

    xPos is written this way: a query is multiplied by a power of its position, a key by its
    inverse.
    """
    known = {one.name for one in (*way.line.arguments, *way.line.keys)}
    open_ = [one for one in parameters(way.code.call) if one.name not in known]
    flags = [one.name for one in open_ if one.default is False and KEY_FLAG.search(one.name)]
    if len(way.vectors) > 1 or way.line.keys or way.line.then or way.axes:
        return way
    for name in flags:
        line = replace(way.line, keys=(Argument(name, value=True),))
        other = replace(way, line=line, frame=way.most if way.starts else 0)
        if _drift(other) < DRIFT <= _drift(way):
            return other
    return way


def _drift(way: Rotating) -> float:
    """Return how far scores change under a shift of positions, relative to the largest score."""
    q, k = torch.randn(2, 1, 1, 2, way.width, generator=torch.Generator().manual_seed(3))
    rotated, keyed = way.calls(), way.calls(keys=True)
    scores = []
    for shift in (0, 9):
        at = torch.tensor([[3 + shift, shift]])
        here, there = rotated(q, positions=at)[0], keyed(k, positions=at.flip(1))[0]
        scores.append((here * there).sum(-1))
    return float((scores[0] - scores[1]).abs().max() / scores[0].abs().max())


def _values_rotate(way: Rotating) -> bool:
    """Whether values come back changed."""
    made = replace(way, code=way.code.again())
    xs, at = _probe(made, made.code.options.heads or distinct_heads(made.width))
    values = xs[2].clone()
    return not torch.equal(made.calls()(*xs, positions=at)[2], values)


def distinct_heads(width: int) -> int:
    """Return a number of heads unlike other lengths, such as the D/2 angles of a table."""
    return 6 if width not in (6, 12) else 10


def _probe(way: Rotating, heads: int) -> tuple[list[Tensor], Tensor]:
    """Return vectors and positions with lengths that all differ, so that no wrong order fits."""
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


def as_rotary(way: Rotating) -> Rotary:
    """Return the call as a subject for the laws."""

    def again(code: Code, signature: Signature) -> Rotary:
        if code.options.width != way.width:
            return as_rotary(
                with_key_flag(with_limits(way_of(code, signature, guessed=way.guessed)))
            )
        return as_rotary(replace(way, code=code, table=fresh(code)))

    def fresh(code: Code) -> TableMaker | None:
        source = way.signature.source
        own = way.line.then is not None
        if source is None:
            return way.table
        return maker_from(code, source, way.width, then=own, cuts=way.cuts)

    def keyed(x: Tensor, positions: Tensor) -> Tensor:
        return way.calls(keys=True)(x, positions=positions)[0]

    own = [one.letters for one in way.vectors]
    grouped = len(own) == 2 and "G" in own[1] and "G" not in own[0]
    alike = ["as many queries as keys"] if "r" in way.line.letters else []
    alike += ["H = G"] if not grouped and any("G" in letters for letters in own) else []
    held = [one.name for one in way.signature.arrays if role(one) == "bounds"]
    notes = [*way.notes, *(CONTENTS["bounds"].format(name) for name in held)]
    found = _rotated_by(way.calls(), len(way.vectors), starts=way.starts)
    found |= {"values_rotate": _values_rotate(way)} if len(way.vectors) > 2 else {}
    found |= {"running": None} if way.frame else {}
    found |= {"key": keyed} if way.line.keys else {}
    here = way.table is not None and way.signature.source is None
    return Rotary(
        **shared_fields(
            way.code,
            way.line,
            again,
            "; ".join([*([f"with {way.table_words}"] if here else []), *notes]),
            way.guessed,
        ),
        **found,
        width=way.width,
        heads=2 if "H" in way.vectors[0].letters else 1,
        single=way.single,
        shared=way.shared,
        grouped=grouped,
        axes=way.axes,
        most=way.most,
        any_width=way.any_width,
        whole=all(role(one) != "coordinates" for one in way.places),
        given={
            **({"values": "; ".join(alike)} if alike else {}),
            **({"angles": way.table_words} if here else {}),
            **({"keys": ", ".join(map(str, way.line.keys))} if way.line.keys else {}),
        },
    )


def _rotated_by(
    call: Callable[..., tuple[Tensor, ...]], count: int, *, starts: bool
) -> dict[str, Any]:
    """Return the fields of a `Rotary` that rotate, for a call on ``count`` tensors (B, H, T, D).

    What is rotated beside a query or a key differs from it, so that code which mixes them is
    noticed.  ``starts``: it takes no positions, and its first token is at 0.
    """

    def other(x: Tensor, more: Tensor, positions: Tensor, place: int) -> Tensor:
        given = [x if k == place else more.clone() for k in range(count)]
        return call(*given, positions=positions)[place]

    def unlike(x: Tensor) -> Tensor:
        return torch.cat((x[..., 1:], x[..., :1]), -1)

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        return other(x, unlike(x) if count > 1 else x, positions, 0)

    def key(x: Tensor, positions: Tensor) -> Tensor:
        return other(x, unlike(x), positions, 1)

    def pair(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        out = call(q, k, positions=positions)
        return out[0], out[1]

    def three(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = call(q, k, v, positions=positions)
        return out[0], out[1], out[2]

    def running(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device).expand(x.shape[0], x.shape[2])
        return rotate(x, places)

    return {
        "rotate": rotate,
        "key": key if count > 1 else None,
        "beside": other if count > 1 else None,
        "pair": pair if count == 2 else None,
        "all_three": three if count > 2 else None,
        "running": running if starts else None,
    }

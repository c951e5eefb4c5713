"""Conversion of arrays to the axes that a call expects, and of its results back.

Also adapters for rotary code: other orders of axes, and tokens at arbitrary positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .signature import Axis, SignatureError

Label = str | int  # a letter, an axis as it is written, or an index into :func:`labels`
CACHE_SIZE = 4096  # cached conversions


def labels(axes: Sequence[Axis]) -> tuple[str, ...]:
    """The factors of the axes in order, slowest first; an axis that is not a product is its own."""
    return tuple(c for axis in axes for c in parts(axis))


def parts(axis: Axis) -> tuple[str, ...]:
    """The factors of an axis that is a product; else the axis as it is written."""
    return (str(axis),) if axis.split is None else axis.split


def place_of(axes: Sequence[Axis], at: int) -> int:
    """The index among the labels at which the axis ``at`` begins."""
    return len(labels(axes[:at]))


def laid_out(
    x: Tensor, here: Sequence[Label], axes: Sequence[Axis], lengths: Mapping[str, int]
) -> Tensor:
    """Convert an array with axes ``here`` to the axes of a call; it is repeated along further ones.

    Each label of ``here`` denotes the first axis of that label not yet taken, and an integer the
    axis at that index.  An axis that the call lacks must have length 1.  Raises
    :class:`SignatureError`.

    >>> import torch
    >>> from .grammar import parse
    >>> def axes(line): return parse(f"x: {line} -> x").arguments[0].axes
    >>> laid_out(torch.zeros(1, 2, 5, 4), ("B", "H", "n", "D"), axes("n (H D)"), {}).shape
    torch.Size([5, 8])
    >>> laid_out(torch.zeros(5, 3, 2), ("n", 2, 1), axes("n 2 3 7"), {}).shape
    torch.Size([5, 2, 3, 7])
    """
    way = _way(tuple(here), tuple(axes))
    for at in way.dropped:
        if x.shape[at] != 1:
            raise SignatureError(
                f"wanted an axis {here[at]}, of length {x.shape[at]}, got {axes_text(axes)}"
            )
        x = x.squeeze(at)
    if way.twice:
        raise SignatureError(
            f"wanted each letter once in the axes of an array, got {axes_text(axes)}"
        )
    if way.added:
        sizes = _Sizes(axes, lengths)
        for label in way.added:
            x = x.unsqueeze(0).expand(sizes[label], *x.shape)
    if way.order:  # skip the identity: every operation here is repeated in graphs and fields
        x = x.permute(*way.order)
    if _are_single(tuple(axes)):
        return x
    shape, at = [], 0
    for axis in axes:
        count = len(parts(axis))
        shape.append(math.prod(x.shape[at : at + count]))
        at += count
    return x.reshape(shape)


def laid_out_together(
    given: Sequence[tuple[Tensor, Sequence[Label], Sequence[Axis]]], lengths: Mapping[str, int]
) -> list[Tensor]:
    """Return :func:`laid_out` of several inputs; one array laid out alike stays one array.

    Code may ask whether its keys are its values.
    """
    made: dict[tuple[Any, ...], Tensor] = {}
    keys = []
    for x, here, axes in given:
        factors = tuple(len(parts(axis)) for axis in axes)
        keys.append((id(x), _way(tuple(here), tuple(axes)), factors))
        if keys[-1] not in made:
            made[keys[-1]] = laid_out(x, here, axes, lengths)
    return [made[key] for key in keys]


class _Way(NamedTuple):
    """How to convert axes to those of a call: drop some, add some in front, then permute.

    ``twice``: an axis to add has a letter that occurs twice in the call.
    """

    dropped: tuple[int, ...]
    added: tuple[str, ...]
    order: tuple[int, ...]
    twice: bool


@lru_cache(maxsize=CACHE_SIZE)
def _way(here: tuple[Label, ...], axes: tuple[Axis, ...]) -> _Way:
    """Return how to convert axes to those of a call; cached, as every call of the code needs it."""
    there = labels(axes)
    places = _places(here, there)
    known = [place for place in places if place is not None]
    left = [place for place in range(len(there)) if place not in known]
    twice = any(there.count(there[k]) > 1 and not there[k].isdigit() for k in left)
    stand = [*reversed(left), *known]
    order = tuple(map(stand.index, range(len(there)))) if stand != sorted(stand) else ()
    dropped = tuple(reversed([k for k, place in enumerate(places) if place is None]))
    return _Way(dropped, tuple(there[k] for k in left), order, twice)


def _places(wanted: Sequence[Label], there: Sequence[str]) -> list[int | None]:
    """Return the index of each wanted label, repeated ones in order; None for a missing one.

    >>> _places(("n", 2, "2"), ("n", "2", "2"))
    [0, 2, 1]
    """
    taken = {one for one in wanted if isinstance(one, int)}
    found: list[int | None] = []
    for one in wanted:
        free = (k for k, label in enumerate(there) if label == one and k not in taken)
        place = one if isinstance(one, int) else next(free, None)
        taken |= set() if place is None else {place}
        found.append(place)
    return found


class _Sizes(dict[str, int]):
    """The length of each label: the value of a number, else of its letter, else of its axis."""

    def __init__(self, axes: Sequence[Axis], lengths: Mapping[str, int]) -> None:
        super().__init__(lengths)
        self.axes = {str(axis): axis for axis in axes}

    def __missing__(self, label: str) -> int:
        return int(label) if label.isdigit() else self.axes[label].size(self)


@lru_cache(maxsize=CACHE_SIZE)
def _are_single(axes: tuple[Axis, ...]) -> bool:
    """Whether each axis is a single factor, so that no reshape is needed."""
    return all(len(parts(axis)) == 1 for axis in axes)


def read_back(
    x: Tensor, axes: Sequence[Axis], there: Sequence[Label], lengths: Mapping[str, int]
) -> Tensor:
    """Convert a result with ``axes`` to the axes ``there``, labelled as in :func:`laid_out`.

    Raises :class:`SignatureError` if its shape is not that of ``axes``, or if one of these is not
    in ``there``.
    """
    sizes, back = _Sizes(axes, lengths), _back(tuple(axes), tuple(there))
    wanted = tuple(math.prod(sizes[c] for c in parts(axis)) for axis in axes)
    if x.ndim != len(wanted) or any(a != b for a, b in zip(x.shape, wanted, strict=True)):
        raise SignatureError(
            f"wanted {wanted} back, which is {axes_text(axes)}, got {tuple(x.shape)}"
        )
    if not _are_single(tuple(axes)):
        x = x.reshape([sizes[c] for c in labels(axes)])
    if back is None:
        raise SignatureError(
            f"wanted a result with axes {' '.join(map(str, there))}, got {axes_text(axes)}"
        )
    order, added = back
    if order:
        x = x.permute(*order)
    for at in added:
        x = x.unsqueeze(at)
    return x


@lru_cache(maxsize=CACHE_SIZE)
def _back(
    axes: tuple[Axis, ...], there: tuple[Label, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return a permutation and the axes to add; None if a returned axis is not wanted."""
    places = _places(there, labels(axes))
    known = tuple(place for place in places if place is not None)
    if len(known) < len(labels(axes)):
        return None
    added = tuple(at for at, place in enumerate(places) if place is None)
    return known if list(known) != sorted(known) else (), added


def axes_text(axes: Sequence[Axis]) -> str:
    """Return axes as they are written."""
    return " ".join(map(str, axes)) or "no axes"


Raw = Callable[[tuple[Tensor, ...], Tensor | None], tuple[Tensor, ...]]
Rotates = Callable[..., tuple[Tensor, ...]]


def one_by_one(call: Raw, lacks: str, *, batched: bool = True) -> Rotates:
    """Adapt a call on vectors (B, H, n, D) at positions (B, n[, axes]), of code that lacks axes.

    ``lacks``: "B" for rows, "H" for heads; the call then has one of them.  Heads become rows.  Code
    whose positions have no rows, not ``batched``, is called row by row too, or once if all rows
    have the same positions.  Positions of one row apply to all.
    """

    def rotate(*xs: Tensor, positions: Tensor | None = None) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "H" in lacks and heads > 1:
            many = None if positions is None else positions.repeat_interleave(heads, 0)
            flat = rotate(*(x.flatten(0, 1).unsqueeze(1) for x in xs), positions=many)
            for x, got in zip(xs, flat, strict=True):
                _require_each(got, rows * heads, x.shape[2])
            return tuple(
                got.reshape(*x.shape[:2], *got.shape[2:]) for x, got in zip(xs, flat, strict=True)
            )
        shared = batched or positions is None or _equal_in_all_rows(positions)
        if ("B" not in lacks and shared) or rows == 1:  # a comparison would be a guard
            return call(xs, positions)
        apart = [
            call(
                tuple(x[b : b + 1] for x in xs),
                None if positions is None else positions[b : b + 1],
            )
            for b in range(rows)
        ]
        return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))

    return rotate


def _equal_in_all_rows(positions: Tensor) -> bool:
    if len(positions) == 1 or torch.compiler.is_exporting():
        return len(positions) == 1
    positions = plain_positions(positions)
    return bool((positions == positions[:1]).all())


def plain_positions(positions: Tensor) -> Tensor:
    """Return the plain numbers of positions, for the adapter's own use.

    Runs in finite fields record what the code does with positions; what the adapter does with them
    must not be recorded.
    """
    numbers: Tensor = getattr(positions, "numbers", positions)
    return numbers


def _require_each(got: Tensor, rows: int, tokens: int) -> None:
    """Require a result for each row and token.  Raises :class:`SignatureError`."""
    if got.dim() < 3 or (got.shape[0], got.shape[2]) != (rows, tokens):
        raise SignatureError(
            f"wanted a result for each row and token, (B, H, n, ..) with B = {rows} "
            f"and n = {tokens}, got {tuple(got.shape)}"
        )


def at_start(call: Raw, lacks: str, least: int = 0) -> Rotates:
    """Adapt f(x), in which token t has position t, to rotate(x, positions).

    Each token is placed at its position in a sequence of zeros and its result read there, since
    rotary code rotates every token independently.  Tokens that share a position go into successive
    calls.  ``least``: the minimal length of the sequence.
    """
    plain = one_by_one(call, lacks)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, _, tokens, width = xs[0].shape
        positions = plain_positions(positions)
        running = torch.arange(tokens, device=positions.device).expand(rows, tokens)
        if least and torch.compiler.is_exporting():
            raise TypeError(
                "its results depend on the number of tokens, so that it is called with "
                f"{least} at a time, of which no graph is read"
            )
        if torch.compiler.is_exporting() or (torch.equal(positions, running) and not least):
            return plain(*xs)
        same = (positions[:, :, None] == positions[:, None, :]).tril(-1)
        rotates_before = same.sum(-1)
        outs: list[Tensor] = []
        length = max(int(positions.max()) + 1, least, 1)
        for count in range(int(rotates_before.max()) + 1):
            row, token = (rotates_before == count).nonzero(as_tuple=True)
            place = positions[row, token].long()
            longer = [x.new_zeros(rows, x.shape[1], length, width) for x in xs]
            for long, x in zip(longer, xs, strict=True):
                long[row, :, place] = x[row, :, token]
            found = plain(*longer)
            outs = outs or _empty(xs, found)
            for out, got in zip(outs, found, strict=True):
                _require_each(got, rows, length)
                out[row, :, token] = got[row, :, place]
        return tuple(outs)

    return rotate


def _empty(xs: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> list[Tensor]:
    """Allocate the results, whose dtype may differ from that of the inputs."""
    return [torch.zeros_like(x, dtype=got.dtype) for x, got in zip(xs, found, strict=True)]


def in_grid(call: Raw, lacks: str, least: int = 0, origin: int = 0) -> Rotates:
    """Adapt f(x), whose tokens fill a square row by row, to rotate(x, positions (row, column)).

    The square is the smallest that contains all positions, with sides of at least ``least``; the
    rest of it is zeros.  Position 0 is row, and column, number ``origin``.
    """

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        if torch.compiler.is_exporting():
            raise TypeError("the code is given a grid, whose size depends on the positions")
        at = plain_positions(positions).long() + origin
        side = max(int(at.max()) + 1, least)
        flat = at[..., 0] * side + at[..., 1]
        return at_start(call, lacks, side * side)(*xs, positions=flat)

    return rotate


def at_offsets(
    call: Callable[[tuple[Tensor, ...], int], tuple[Tensor, ...]], lacks: str
) -> Rotates:
    """Adapt f(x, offset) to rotate(x, positions): one call for each run of positions."""

    def start(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        return one_by_one(lambda ys, _: call(ys, int(positions[0, 0])), lacks)(*xs)

    return in_runs(start, alike=True)


def in_runs(rotate: Rotates, *, alike: bool = False) -> Rotates:
    """Adapt rotate(x, positions), which reads the first position of each row, to any positions.

    If positions do not run on in each row, each token is a row of its own.  ``alike``: it takes
    rows of one first position only, so that each run of positions is a call of its own, whose rows
    are all places where it is found.
    """

    def split(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        if torch.compiler.is_exporting():
            raise TypeError(
                "the code is given the position of the first token; other positions take several "
                "calls, which have no single graph"
            )
        positions = positions.expand(len(xs[0]), -1)
        rows, tokens = positions.shape
        first = positions[:, :1]
        on = positions == first + torch.arange(tokens, device=positions.device)
        if bool(on.all()) and (not alike or bool((first == first[0]).all())):
            return rotate(*xs, positions=positions)
        if not alike:
            alone = (x.transpose(1, 2).flatten(0, 1).unsqueeze(2) for x in xs)
            found = rotate(*alone, positions=positions.reshape(-1, 1))
            return tuple(x.reshape(rows, tokens, *x.shape[1::2]).transpose(1, 2) for x in found)
        outs: list[Tensor] = []
        for row, token in _runs(plain_positions(positions)):
            parts = (x[row, :, token].movedim(2, 1) for x in xs)
            got = rotate(*parts, positions=positions[row, token])
            outs = outs or _empty(xs, got)
            for out, one in zip(outs, got, strict=True):
                out[row, :, token] = one.movedim(1, 2)
        return tuple(outs)

    return split


def _runs(positions: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the row (R, 1) and token (R, n) of each run of n positions that R places have."""
    tokens = positions.shape[1]
    jumps = positions[:, 1:] != positions[:, :-1] + 1
    found: dict[tuple[float, int], list[tuple[int, int]]] = {}
    for row, (jump, at) in enumerate(zip(jumps, positions.tolist(), strict=True)):
        starts = [0, *(jump.nonzero().flatten() + 1).tolist(), tokens]
        for start, end in pairwise(starts):
            found.setdefault((at[start], end - start), []).append((row, start))
    for (_, many), places in found.items():
        row, start = torch.tensor(places, device=positions.device).T
        yield row[:, None], start[:, None] + torch.arange(many, device=positions.device)

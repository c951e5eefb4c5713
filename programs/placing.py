"""Tensors in the order of axes that code wants, and tokens at any positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Raw = Callable[[tuple[Tensor, ...], Tensor], tuple[Tensor, ...]]


def _to_order(x: Tensor, order: str) -> Tensor:
    """From (B, H, T, D) to the order; an axis that is not in it has length 1 and is dropped.

    It is a view always: code that changes the shape of what it is given changes that of the view.
    """
    here = "bhtd"
    for letter in here:
        if letter not in order:
            x = x.squeeze(here.index(letter))
            here = here.replace(letter, "")
    return x.permute(*(here.index(letter) for letter in order))


def _from_order(x: Tensor, order: str) -> Tensor:
    """Back to (B, H, T, D)."""
    here = "".join(letter for letter in "bhtd" if letter in order)
    x = x if here == order else x.permute(*(order.index(letter) for letter in here))
    for index, letter in enumerate("bhtd"):
        if letter not in order:
            x = x.unsqueeze(index)
    return x


def _placed(positions: Tensor, places: str) -> Tensor:
    """From (B, T) or (B, T, axes) to the order of positions; without b it is the first row's."""
    here = "bta" if positions.dim() == 3 else "bt"
    if "b" not in places:
        positions, here = positions[0], here[1:]
    return positions.permute(*(here.index(letter) for letter in places))


def rotating(raw: Raw, order: str, places: str) -> Callable[..., tuple[Tensor, ...]]:
    """A call on several tensors in an order, as one on (B, H, T, D) with positions (B, T[, axes]).

    Heads the code does not know become rows.  Positions without rows are given row by row, or
    once where all rows have the same; positions of one row are those of all.
    """

    def one(xs: tuple[Tensor, ...], positions: Tensor) -> tuple[Tensor, ...]:
        out = raw(tuple(_to_order(x, order) for x in xs), _placed(positions, places))
        return tuple(_from_order(x, order) for x in out)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "h" not in order and heads > 1:
            flat = tuple(x.flatten(0, 1).unsqueeze(1) for x in xs)
            many = positions.repeat_interleave(heads, 0)
            return tuple(
                x.reshape(rows, heads, *x.shape[2:]) for x in rotate(*flat, positions=many)
            )
        shared = "b" in places or len(positions) == 1 or _alike(positions)
        if ("b" in order and shared) or rows == 1:
            return one(xs, positions)
        apart = [one(tuple(x[b : b + 1] for x in xs), positions[b : b + 1]) for b in range(rows)]
        return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))

    return rotate


def held(positions: Tensor) -> Tensor:
    """The numbers of positions, for a look of the adapter's own at them.

    Where runs are followed, what the code does with positions is told; what is done here is not.
    """
    numbers: Tensor = getattr(positions, "numbers", positions)
    return numbers


def _alike(positions: Tensor) -> bool:
    if torch.compiler.is_exporting():
        return False
    positions = held(positions)
    return bool((positions == positions[:1]).all())


Rotates = Callable[..., tuple[Tensor, ...]]


def _ordered(call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str) -> Rotates:
    """A call in an order of axes as one on (B, H, T, D); what the code does not know is looped."""

    def rotate(*xs: Tensor) -> tuple[Tensor, ...]:
        rows, heads = xs[0].shape[:2]
        if "h" not in order and heads > 1:
            flat = rotate(*(x.flatten(0, 1).unsqueeze(1) for x in xs))
            return tuple(
                got.reshape(*x.shape[:2], *got.shape[2:]) for x, got in zip(xs, flat, strict=True)
            )
        if "b" not in order and rows > 1:
            apart = [rotate(*(x[b : b + 1] for x in xs)) for b in range(rows)]
            return tuple(torch.cat(parts) for parts in zip(*apart, strict=True))
        return tuple(_from_order(x, order) for x in call(tuple(_to_order(x, order) for x in xs)))

    return rotate


def at_start(
    call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str, least: int = 0
) -> Rotates:
    """f(x), which gives the t-th token position t, as rotate(x, positions).

    Each token is put at its place in a sequence of zeros that is long enough, and read there: a
    rotary code rotates every token by itself.  Tokens that share a place go in one after the other.
    ``least``: the sequence is at least so long.
    """
    plain = _ordered(call, order)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, _, tokens, width = xs[0].shape
        positions = held(positions)
        running = torch.arange(tokens, device=positions.device).expand(rows, tokens)
        if least and torch.compiler.is_exporting():
            raise TypeError(
                "the graph of one token in a long call is not that of any call of the code"
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
                out[row, :, token] = got[row, :, place]
        return tuple(outs)

    return rotate


def _empty(xs: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> list[Tensor]:
    """Arrays for what comes back, which need not have the dtype of what went in."""
    return [torch.zeros_like(x, dtype=got.dtype) for x, got in zip(xs, found, strict=True)]


def in_grid(call: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]], order: str) -> Rotates:
    """f(x) of tokens that fill a square row by row, as rotate(x, positions) at rows and columns.

    The square is the least that has all the places, and zeros stand at the others.
    """

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        at = held(positions).long()
        side = int(at.max()) + 1
        flat = at[..., 0] * side + at[..., 1]
        return at_start(call, order, side * side)(*xs, positions=flat)

    return rotate


def at_offsets(
    call: Callable[[tuple[Tensor, ...], int], tuple[Tensor, ...]], order: str
) -> Rotates:
    """f(x, offset), as rotate(x, positions): one call for rows that run on, else one a token."""

    def start(*xs: Tensor, offset: int) -> tuple[Tensor, ...]:
        return _ordered(lambda ys: call(ys, offset), order)(*xs)

    def rotate(*xs: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        rows, tokens = positions.shape
        first = positions[:, :1]
        on = positions == first + torch.arange(tokens, device=positions.device)
        if bool(on.all()) and bool((first == first[0]).all()):
            return start(*xs, offset=int(first[0]))
        outs: list[Tensor] = []
        for row in range(rows):
            whole = bool(on[row].all())
            for t in range(1 if whole else tokens):
                part = slice(t, tokens if whole else t + 1)
                got = start(*(x[row : row + 1, :, part] for x in xs), offset=int(positions[row, t]))
                outs = outs or _empty(xs, got)
                for out, one in zip(outs, got, strict=True):
                    out[row : row + 1, :, part] = one
        return tuple(outs)

    return rotate

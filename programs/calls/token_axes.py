"""The axes of a map of tokens: a single length, multiples, squares, and encodings given to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from ..signatures.layout import labels, laid_out
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from .masks import SLOTS, is_mask, is_query_mask, with_letter, with_query_letter
from .roles import ROTATED, role
from .spelling import with_equal_rows

TOKENS = Axis(((Fraction(1), ("n",)),))
ROWS = {*"nmrsthw"}  # letters of axes along which tokens follow each other
BASE = 10000.0


def with_one_length(signature: Signature) -> tuple[Signature, str]:
    """Return the call with n for the mapped tokens, and the letter of a context, or "".

    Queries and keys of self-attention are the same tokens.  Without values, keys are a context.

    >>> from ..signatures.grammar import parse
    >>> str(with_one_length(parse("q: B r E, k: B n E, v: B n E -> B r E"))[0])
    'q: B n E, k: B n E, v: B n E -> B n E'
    >>> with_one_length(parse("x: B r E, y: B n E, y_mask: B n keep -> B r E"))[1]
    'm'
    >>> with_one_length(parse("q: B r E, k: B 5 E, v: B 5 E -> B r E"))[0].sizes
    (('m', 5),)
    >>> with_one_length(parse("x: B n E, mask: n 64 keep, at: n positions -> B n E"))[0].sizes
    (('slots', 64),)
    """
    sizes: dict[str, int] = {}
    signature = with_equal_rows(signature, sizes)
    signature = replace(signature, sizes=(*signature.sizes, *sizes.items()))
    whole = token_axis(signature)
    if whole == TOKENS:
        signature = _with_slots(signature)
    if whole != TOKENS:
        told = any({"r", "n"} & set(one.letters) for one in signature.arrays if is_mask(one))
        own = _changed(signature, lambda axis: TOKENS if axis == whole else axis, masks=not told)
        signature = own if whole.letters else _queried(own, signature)
    rotated = [one for one in signature.arrays if mapped(one)]
    if not any("r" in one.letters for one in rotated):
        return signature, ""
    context = next(c for c in "mst" if c not in signature.letters)
    if many := _of_context(rotated):  # a fixed number of keys, any number of queries
        letter = Axis(((Fraction(1), (context,)),))
        aside = _changed(signature, lambda axis: letter if axis == many else axis)
        aside = replace(aside, sizes=(*aside.sizes, (context, many.size({}))))
        return _changed(aside, lambda axis: with_letter(axis, "r", "n")), context
    apart = any("n" in one.letters for one in rotated)
    if not apart or any(role(one) == "value" for one in rotated):
        alike = _changed(signature, lambda axis: with_letter(axis, "r", "n"), masks=False)
        return replace(alike, arguments=tuple(map(_of_tokens, alike.arguments))), ""
    aside = _changed(signature, lambda axis: with_letter(axis, "n", context))
    return _changed(aside, lambda axis: with_letter(axis, "r", "n")), context


def _with_slots(signature: Signature) -> Signature:
    """Use a letter for the places of a cache: a number behind the tokens of a mask of keys.

    A number that the tokens have too is that of the parts of a token.
    """
    tokens = [axis for one in signature.arrays if mapped(one) for axis in one.axes or ()]
    parts = {"1", *map(str, tokens), *(axis.fold for axis in tokens)}
    masks = [one for one in signature.arrays if is_mask(one) and {"n", "r"} & set(one.letters)]
    last = {axis for one in masks for axis in (one.axes or ())[-1:]}
    numbers = [axis for axis in last if not axis.letters and str(axis) not in parts]
    if len(numbers) != 1:
        return signature
    letter = Axis(((Fraction(1), (SLOTS,)),))
    changed = {
        one: replace(one, axes=(*(one.axes or ())[:-1], letter))
        for one in masks
        if one.axes and one.axes[-1] == numbers[0]
    }
    return replace(
        signature,
        arguments=tuple(changed.get(one, one) for one in signature.arguments),
        sizes=(*signature.sizes, (SLOTS, numbers[0].size({}))),
    )


def _of_tokens(one: Argument) -> Argument:
    """Return a mask of queries as a mask of all tokens, if the queries are also the keys."""
    if not is_query_mask(one):
        return one
    return replace(one, axes=tuple(with_letter(axis, "r", "n") for axis in one.axes or ()))


def _of_context(rotated: Sequence[Argument]) -> Axis | None:
    """Return the number of keys, if it is a number while the number of queries is a letter."""
    keys = [one for one in rotated if not ROWS & {*one.letters}]
    numbers = {a for one in keys for a in (one.axes or ())[:-1] if not a.letters and a.size({}) > 1}
    return next(iter(numbers)) if len(numbers) == 1 else None


def _queried(changed: Signature, told: Signature) -> Signature:
    """Use r for the queries of masks written with numbers, so that they do not hide later keys."""
    pairs = zip(changed.arguments, told.arguments, strict=True)
    return replace(
        changed,
        arguments=tuple(
            replace(new, axes=with_query_letter(new.axes or ()))
            if is_mask(new) and new != old
            else new
            for new, old in pairs
        ),
    )


def _changed(
    signature: Signature, change: Callable[[Axis], Axis], *, masks: bool = True
) -> Signature:
    """Return the call with changed axes and lengths; ``masks``: also those of masks."""

    def other(one: Argument) -> Argument:
        kept = is_mask(one) and not masks
        return one if kept else replace(one, axes=tuple(map(change, one.axes or ())))

    return signature.each(other, change)


def mapped(one: Argument) -> bool:
    """Whether an array is tokens or a context, by its name, else by its axes.

    >>> from ..signatures.grammar import parse
    >>> mapped(parse("ys: B n D -> 1").arrays[0]), mapped(parse("t: n D cos -> 1").arrays[0])
    (True, False)
    """
    letters = set(one.letters)
    said = "B" in letters and letters & {*"rnmst"} and letters & {"D", "E"}
    return role(one) in ROTATED or (not role(one) and bool(said))


def token_axis(signature: Signature) -> Axis:
    """Return the axis of tokens: n, or one that only has some lengths, such as (n n) and (4 n)."""
    for one in signature.arrays:
        for axis in one.axes or () if role(one) in ROTATED else ():
            if axis.letters == ("n",) and axis != TOKENS and len(axis.terms) == 1:
                return axis
    tokens = [one for one in signature.arrays if role(one) in ROTATED]
    told = dict(signature.sizes)
    if {"h", "w"} <= told.keys():  # a grid of fixed size
        return Axis(((Fraction(told["h"] * told["w"]), ()),))
    if any("r" in one.letters for one in tokens):
        return TOKENS
    for one in tokens or signature.results[:1]:  # without tokens: a table with so many rows
        letters = {*one.letters}
        numbers = [axis for axis in one.axes or () if not axis.letters and axis.size({}) > 1]
        rows = len(numbers) == 1 and not ROWS & letters and len(one.axes or ()) < 4
        if rows and {"E", "D"} & letters:
            return numbers[0]
    return TOKENS


def repetitions(whole: Axis, count: int) -> int:
    """Return how often so many tokens must be repeated to reach a length of this axis.

    >>> from ..signatures.grammar import parse
    >>> axes = [token_axis(parse(f"x: B {axis} E -> x")) for axis in ("n", "(n n)", "(4 n)")]
    >>> [repetitions(axis, 3) for axis in axes]
    [1, 3, 4]
    """
    if whole == TOKENS:
        return 1
    size, allowed = 0, set()
    for letter in range(1, 4 * count + 2):
        size = whole.size({"n": letter})
        allowed.add(size)
        found = next((k for k in range(1, size // count + 1) if k * count in allowed), 0)
        if found:
            return found
    raise SignatureError(f"wanted an axis whose length may be a multiple of {count}, got {whole}")


def encoding(
    one: Argument, feature: str, past: int, lengths: Mapping[str, int], like: Tensor
) -> Tensor:
    """Return sines and cosines of positions, or of offsets counted down from the last key.

    P(t, 2i) = sin(t / 10000^(2i/E)), P(t, 2i + 1) the cosine (Vaswani et al., 2017).
    """
    axis = next((a for a in one.axes or () if {"n", "m", "s", "t"} & set(a.letters)), None)
    if axis is None or feature not in one.letters:
        raise SignatureError(f"wanted an encoding with axes of tokens n and features, got {one}")
    rows, width = axis.size(lengths), lengths[feature]
    at: Any = torch.arange(rows, dtype=torch.float64, device=like.device)
    at = lengths["n"] + past - 1 - at if one.kind == "offsets" else at + past
    ladder = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64, device=like.device) / width)
    angles = at[:, None] * ladder
    table = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[:, :width].to(like)
    return laid_out(table, (labels((axis,))[0], feature), one.axes or (), lengths)

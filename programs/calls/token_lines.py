"""The line of a map of tokens: its axes, the array that is mapped, its masks, contexts, counts.

The tokens have a single length, multiples of one, or squares; encodings are given to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch import Tensor

from ..code import Code
from ..signatures.layout import labels, laid_out
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from .grids import nearly_square
from .masks import (
    SLOTS,
    is_mask,
    is_query_mask,
    masks_in,
    per_query,
    with_letter,
    with_query_letter,
)
from .roles import PLACES, ROTATED, TABLES, lengths_of, result_axes, result_names, role
from .spelling import START, with_equal_rows

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
    if blocks_of(signature):
        signature = _changed(signature, _of_places)
    elif whole != TOKENS:
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


def blocks_of(signature: Signature) -> tuple[int, ...]:
    """Return the numbers of which the sides of an image are multiples; none if they may be any.

    >>> from ..signatures.grammar import parse
    >>> [blocks_of(parse(f"x: B E {axes} -> x")) for axes in ("(4 h) (2 w)", "h w")]
    [(4, 2), ()]
    """
    for one in signature.arrays:
        sides = [a for a in one.axes or () if _is_side(a) and not is_mask(one)]
        found = tuple(a.size({"h": 1, "w": 1}) for a in sides)
        if len(found) == 2 and max(found) > 1:
            return found
    return ()


def _is_side(axis: Axis) -> bool:
    return [letters for _, letters in axis.terms] in ([("h",)], [("w",)])


def _of_places(axis: Axis) -> Axis:
    """Return the side of an image as a letter, that of its number of places."""
    return Axis(((Fraction(1), axis.letters),)) if _is_side(axis) else axis


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
    if blocks := blocks_of(signature):
        return Axis(((Fraction(prod(blocks)), ("n",)),))
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


def flattened_grid(signature: Signature) -> Signature:
    """Return the call with n for queries, and for the places of a grid on a single axis.

    >>> from ..signatures.grammar import parse
    >>> str(flattened_grid(parse("x: B (h w) H D, cos: (h w) D -> x")))
    'x: B n H D, cos: n D -> x'
    """

    def other(one: Argument) -> Argument:
        rows = (("h", "w"), ("r",))  # there are as many queries as keys
        axes = (TOKENS if axis.split in rows else axis for axis in one.axes or ())
        return replace(one, axes=tuple(axes))

    return signature.each(other)


def by_token(signature: Signature) -> Signature:
    """Return the call with a row per token in tables of m rows, if nothing selects rows.

    Code that is given no positions uses the first rows, or the last: with as many rows as tokens,
    all.

    >>> from ..signatures.grammar import parse
    >>> str(by_token(parse("q: B H n D, cos: 1 1 m D, sin: 1 1 m D -> q")))
    'q: B H n D, cos: 1 1 n D, sin: 1 1 n D -> q'
    """
    given = signature.arrays
    if any(role(one) in (*PLACES, "bounds") for one in given) or any(
        START in one.lengths for one in signature.arguments
    ):
        return signature

    def rows(one: Argument) -> Argument:
        if role(one) not in TABLES or "n" in one.letters:
            return one
        axes = tuple(TOKENS if str(axis) == "m" else axis for axis in one.axes or ())
        return replace(one, axes=axes)

    return replace(signature, arguments=tuple(one.each(rows) for one in signature.arguments))


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


ENCODED = {"encoding": "positions", "offsets": "offsets"}
MADE = tuple(ENCODED)


@dataclass(frozen=True)
class TokenLine:
    """A call of some code that maps tokens (B, n, E), read off its line alone.

    Raises :class:`SignatureError` if the signature is not such a call.
    """

    code: Code
    signature: Signature

    @cached_property
    def _read(self) -> tuple[Signature, str]:
        return with_one_length(self.signature)

    @property
    def line(self) -> Signature:
        """The call, with n for the mapped tokens."""
        return self._read[0]

    @property
    def context(self) -> str:
        """The letter of a context that the tokens read; "" if they read one another."""
        return self._read[1]

    @cached_property
    def whole(self) -> Axis:
        """The lengths that it takes: n, or (n n) for squares only."""
        return token_axis(self.signature)

    def sides(self, count: int) -> tuple[int, int]:
        """Return the sides of the image that so many tokens fill."""
        blocks = blocks_of(self.signature)
        if not self.whole.letters:
            told = dict(self.line.sizes)
            return told["h"], told["w"]
        high, wide = nearly_square(count // prod(blocks))
        return (high * blocks[0], wide * blocks[1]) if blocks else (high, wide)

    @property
    def only_length(self) -> int:
        """The only number of tokens that it takes; 0 if it takes several."""
        return 0 if self.whole.letters else self.whole.size({})

    @cached_property
    def multiple_of(self) -> int:
        """The number of tokens is a multiple of this one; 1 if it takes an image, or squares."""
        alone = [letters for _, letters in self.whole.terms] == [("n",)]
        return self.whole.size({"n": 1}) if alone and not blocks_of(self.signature) else 1

    @cached_property
    def tokens(self) -> Argument:
        """The array that is mapped."""
        for one in self.line.arrays:
            image = {"h", "w"} <= set(one.letters)
            tokens = "n" in one.letters and {"E", "D"} & set(one.letters)
            if (tokens or image) and not is_mask(one) and role(one) not in (*TABLES, *MADE):
                return one
        raise SignatureError(f"wanted tokens, such as x: B n E, in {self.signature}")

    @cached_property
    def feature(self) -> str:
        """The letter of its features."""
        letters = self.tokens.letters
        return "E" if "E" in letters else next(c for c in letters if c not in "Bnhw")

    @cached_property
    def repeated(self) -> tuple[str, ...]:
        """The letters of axes along which the tokens are repeated, such as that of windows."""
        if self.feature != "E":
            return ()
        return tuple(c for c in self.tokens.letters if c not in "BnhwE")

    @cached_property
    def masks(self) -> tuple[Argument, ...]:
        """The masks it takes, except those of a context."""
        ours = [one for one in self.line.arguments if not self._of_context(one)]
        return masks_in(replace(self.line, arguments=tuple(ours)))

    @cached_property
    def context_masks(self) -> tuple[Argument, ...]:
        """The masks of a context, which show all of it unless a law asks about them."""
        return tuple(one for one in self.line.arrays if self._of_context(one))

    @cached_property
    def contexts(self) -> tuple[Argument, ...]:
        """The contexts drawn here, if other values may replace them."""
        found = [one for one in self.line.arrays if mapped(one) and self.context in one.letters]
        alike = {self._features(one) for one in found}
        free = self.context and self.context not in dict(self.line.sizes)
        return tuple(found) if free and len(alike) == 1 and "" not in alike else ()

    def _features(self, one: Argument) -> str:
        """Return the label of the features of a context; "" if it has further axes."""
        rest = [c for c in labels(one.axes or ()) if c not in ("B", self.context)]
        return rest[0] if "B" in one.letters and len(rest) == 1 else ""

    def features_read(self, width: int) -> int:
        """Return the number of context features if a law may mask the context, else 0.

        ``width``: the features of a token.
        """
        if not self.contexts or "B" not in self.tokens.letters or not self.context_masks:
            return 0
        if not all("B" in one.letters for one in self.context_masks):
            return 0
        label = self._features(self.contexts[0])
        lengths = lengths_of(self.line, **{self.feature: width})
        return int(label) if label.isdigit() else lengths[label]

    def _of_context(self, one: Argument) -> bool:
        """Whether it is a mask of a context."""
        return is_mask(one) and self.context in one.letters

    @cached_property
    def pooled(self) -> bool:
        """Whether the rows that come back belong to learned queries rather than to tokens.

        Then every token is given all of them, joined along the features, or their weighted mean, so
        that their order does not matter.
        """
        axes = result_axes(self.line, result_names(self.line, ("out",))[0])
        return not {"n", "h", "w"} & set(labels(axes)) and len(axes) == len(self.tokens.axes or ())

    @cached_property
    def padding(self) -> tuple[Argument, ...]:
        """The masks that mark padding: those of keys alone, if there are any.

        Empty if tokens are repeated to reach a length that the code takes.
        """
        if self.whole != TOKENS:
            return ()
        alone = tuple(one for one in self.masks if not per_query(one))
        return alone or tuple(one for one in self.masks if "B" in one.letters)

    @cached_property
    def counted(self) -> tuple[Argument, ...]:
        """The inputs that count the tokens of each row that are not padding, if no mask does."""
        if self.whole != TOKENS or self.padding or self.context:
            return ()
        found = (one for one in self.line.arrays if role(one) == "lengths")
        return tuple(one for one in found if one.letters == ("B",))

    @property
    def packs(self) -> bool:
        """Whether sequences of any length may be packed, since nothing else depends on lengths."""
        counted = any("B" in one.lengths for one in self.line.arguments)
        beside = [one for one in self.line.arrays if one != self.tokens and role(one) != "bounds"]
        packed = any(role(one) == "bounds" for one in self.line.arrays)
        if any(role(one) == "documents" for one in beside):
            alone = self.whole == TOKENS and not self.context and not counted and not packed
            others = (one for one in beside if role(one) != "documents" and not is_mask(one))
            return alone and not any({"B", "n"} & {*one.letters} for one in others)
        return packed and not counted and not any({"B", "n"} & {*one.letters} for one in beside)

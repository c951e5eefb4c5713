"""Additive positional encodings with a given call: code that adds a table to tokens or makes it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..code import Code
from ..execution.draw import normal
from ..finding import nearest_factor
from ..loading.names import sizes_of
from ..signatures.grammar import parse
from ..signatures.layout import labels, laid_out, parts, read_back
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Additive
from .grids import nearly_square
from .masks import row_by_row
from .roles import (
    ORDINARY_ID,
    PLACES,
    ROTATED,
    SIZES,
    TABLES,
    built_at,
    describe_call_error,
    lengths_of,
    result_axes,
    result_names,
    role,
    runner,
    shared_fields,
)
from .supplied_inputs import (
    ONE,
    ZERO,
    call_and_contents,
    image_layout,
    plain_input,
    supplied_values,
)
from .token_lines import token_axis, with_one_length

LONGEST = 4096
GRID = ("t", "h", "w")  # the letters of a grid, slowest axis first
TOKENS, OFFSETS, SIGNED = parse("-> n (2 n - 1) (2 n)").results[0].axes or ()
FEATURES = parse("-> E").results[0].axes or ()


def feature_letter(signature: Signature) -> str:
    """The letter of the feature axis of a token."""
    return "E" if "E" in signature.letters else "D"


def grid_letters(signature: Signature) -> tuple[str, ...]:
    """The letters of the axes of a grid of tokens; empty if the tokens form one sequence.

    >>> grid_letters(parse("x: B E h w -> B E h w")), grid_letters(parse("size = h -> (h h) E"))
    (('h', 'w'), ('h', 'h'))
    """
    axes = result_axes(signature, result_names(signature, ("out",))[0])
    here = tuple(c for c in labels(axes) if c in GRID)
    return here if len(here) > 1 else ()


def fixed_length(signature: Signature) -> int:
    """The only number of tokens that the code takes; 0 if the signature has a letter for it.

    >>> fixed_length(parse("x: B 5 E -> B 5 E")), fixed_length(parse("x: B n E -> B n E"))
    (5, 0)
    """
    whole = token_axis(signature)
    return 0 if whole.letters else whole.size({})


def _grid_map(code: Code, signature: Signature) -> Callable[[Tensor], Tensor]:
    """Return the code as a map of a grid of tokens, (B, *sizes, E) -> (B or 1, *sizes, E)."""
    run = runner(code, signature)
    back = result_names(signature, ("out",))[0]
    axes, sides = result_axes(signature, back), grid_letters(signature)
    here = ("B", *(c for c in GRID if c in sides), feature_letter(signature))
    if len(set(sides)) < len(sides):  # a square: give rows and columns letters of their own
        here, axes = ("B", "h", "w", here[-1]), _square_as_grid(axes)

    def call(x: Tensor) -> Tensor:
        sizes = dict(zip(here, x.shape, strict=True))
        if len(set(sides)) < len(sides) and sizes["h"] != sizes["w"]:
            raise ValueError(f"wanted a square grid for {code.name}, got {tuple(x.shape[1:-1])}")
        lengths = lengths_of(signature, **sizes)
        arrays = {one.name: _array(one, x, here, lengths) for one in signature.arrays}
        return read_back(run(arrays, lengths)[back], axes, here, lengths)

    return call


def _square_as_grid(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the axes of a square, such as (h h), as those of a grid, (h w)."""
    words = " ".join(map(str, axes)).split("h")
    return parse(f"-> {'h'.join(words[:2])}w{words[2]}").results[0].axes or ()


def _in_rows(
    call: Callable[[Tensor], Tensor], sides: tuple[str, ...]
) -> Callable[[Tensor], Tensor]:
    """Return the same map for tokens (B, n, E), which fill a nearly square grid row by row.

    For code that takes squares only, they are the first tokens of the smallest square that holds
    them.
    """

    def rows(x: Tensor) -> Tensor:
        count, width = x.shape[1:]
        if len(set(sides)) < len(sides):
            side = math.isqrt(count - 1) + 1
            x = torch.cat((x, x.new_zeros(x.shape[0], side**2 - count, width)), 1)
            sizes: tuple[int, ...] = (side, side)
        else:
            sizes = (*(1,) * (len(sides) - 2), *nearly_square(count))
        found = call(x.reshape(x.shape[0], *sizes, width))
        return found.reshape(found.shape[0], -1, found.shape[-1])[:, :count]

    return rows


def _token_map(
    code: Code, signature: Signature, width: int, *, within: bool = False, another: bool = False
) -> Callable[[Tensor], Tensor]:
    """Return the code as a map of tokens, (B, n, E) -> (B or 1, n, E).

    ``within``: coordinates are scaled to [0, 1), as is common for images.  ``another``: if the code
    takes ids, the first token has a different id from the others.
    """
    if grid_letters(signature):
        return _in_rows(_grid_map(code, signature), grid_letters(signature))
    fixed = fixed_length(signature)
    signature = with_one_length(signature)[0]
    run = runner(code, signature)
    back = result_names(signature, ("out",))[0]
    axes = result_axes(signature, back)
    here = ("B", "n", feature_letter(signature))
    half = next((k for k, a in enumerate(axes) if a in (OFFSETS, SIGNED)), None)
    batched = not any("n" in one.letters and "B" not in one.letters for one in signature.arrays)

    def call(x: Tensor) -> Tensor:
        tokens = [one for one in signature.arrays if role(one) in ROTATED]
        if tokens and not batched and x.shape[0] > 1:
            return row_by_row(call, x)
        rows, asked, _ = x.shape
        count = fixed or asked
        if asked > count:
            raise SignatureError(f"wanted at most {count} tokens for {signature}, got {asked}")
        x = torch.cat((x, x.new_zeros(rows, count - asked, x.shape[2])), 1)
        lengths = lengths_of(signature, B=rows, n=count, p=0, **{here[2]: width})
        arrays = {one.name: _array(one, x, here, lengths, another) for one in signature.arrays}
        for one in signature.arrays:
            if within and role(one) == "coordinates":
                arrays[one.name] = arrays[one.name] / count
        found, read = run(arrays, lengths)[back], list(axes)
        if half is not None and axes[half] == SIGNED:  # offsets from -n: keep those from 0
            found, read[half] = found.narrow(half, count, count), TOKENS
        elif half is not None:
            found, read[half] = found.narrow(half, 0, count).flip(half), TOKENS
        return read_back(found, read, here, lengths)[:, :asked]

    return call


def _array(
    one: Argument, x: Tensor, here: tuple[str, ...], lengths: dict[str, int], another: bool = False
) -> Tensor:
    axes, count = one.axes or (), x.shape[1]
    if role(one) in ROTATED and here[-1] not in one.letters:
        return torch.zeros(one.shape(lengths), dtype=x.dtype, device=x.device)  # only shape matters
    if role(one) in ROTATED:
        return laid_out(x, here, axes, lengths)
    if role(one) in PLACES:
        at = torch.arange(count, device=x.device)
        at = at.to(x.dtype) if role(one) == "coordinates" else at
        return laid_out(at, ("n",), axes, lengths)
    if role(one) in ("constant", "scale"):
        return torch.ones(one.shape(lengths), dtype=x.dtype, device=x.device)
    plain = plain_input(one, lengths, x)
    if another and plain is not None and role(one) == "ids" and "n" in map(str, axes):
        plain.select([str(axis) for axis in axes].index("n"), 0).fill_(ORDINARY_ID + 1)
    if plain is not None:
        return plain
    raise SignatureError(
        f"wanted what {one.name} is: write one of tokens, positions, ids, keep, hide, constant, "
        f"ones behind its axes"
    )


def _supplied(feature: str, one: Argument) -> str:
    """What :func:`_array` puts into an array that no law draws; "" for the others."""
    if role(one) in ROTATED and feature not in one.letters:
        return ZERO
    return ONE if role(one) in ("constant", "scale") else ""


def additive(
    code: Code, signature: Signature, *, guessed: bool = False, within: bool = False
) -> Additive:
    """Return code that adds a table to tokens; if it only makes the table, it is added here.

    Raises :class:`SignatureError` if the code cannot be called in this way, if it returns a table
    of rotations, or if it returns something other than scaled tokens plus a table.
    """
    for back in signature.results:
        if back.kind in TABLES:
            raise SignatureError(_rotates(code, signature, f"a table declared as {back.kind}"))
    if {"cos", "sin"} <= {role(back) for back in signature.results}:
        raise SignatureError(_rotates(code, signature, "a table of cosines and one of sines"))
    signature, told_width = _with_feature_letter(signature)
    width = _width(code, signature)
    if told_width not in (0, width):
        raise SignatureError(f"wanted rows of {told_width} numbers from {code.name}, got {width}")
    code = built_at(code, signature, **{feature_letter(signature): width})
    call = _token_map(code, signature, width, within=within)
    zero = torch.zeros(3, 5, width)
    one = normal(3, 5, width, seed=6)
    at_zero, at_one = call(zero), call(one)
    if at_zero.is_complex():
        raise SignatureError(_rotates(code, signature, "complex numbers"))
    if guessed and any(role(one) == "ids" for one in signature.arrays):
        _require_places(code, signature, width, at_zero)
    adds = not torch.equal(at_zero, at_one)
    of_offsets = {OFFSETS: "n - 1 to 0", SIGNED: "0 to n - 1"}
    read = (
        told
        for axis, told in of_offsets.items()
        if any(axis in (one.axes or ()) for one in signature.results)
    )
    scale = nearest_factor(one, (at_one - at_zero).detach()) if adds else 1.0
    if adds and not torch.allclose(at_one - at_zero, scale * one, rtol=1e-3, atol=1e-4):
        raise SignatureError(
            f"wanted the sum of tokens and a table, and {code.name}, called as {signature}, "
            "returns something else"
        )
    parts = code.module.parameters() if code.module is not None else ()
    sides = grid_letters(signature)
    return Additive(
        **shared_fields(
            code,
            signature,
            partial(additive, guessed=guessed),
            call_and_contents(
                "; ".join(
                    filter(
                        None,
                        (
                            "" if adds else "it makes the table, which is added to x here",
                            *(
                                f"rows for offsets {those} are read as rows for positions"
                                for those in read
                            ),
                            f"it takes exactly {fixed_length(signature)} tokens"
                            * bool(fixed_length(signature)),
                        ),
                    )
                ),
                signature,
            ),
            guessed,
        ),
        added=call if adds else lambda x: x + call(x),
        width=width,
        scale=scale if abs(scale - 1) > 1e-5 else 1.0,
        most=code.options.most or _table_length(code, signature, width),
        learned=any(p.requires_grad for p in parts),
        grid=_table(_grid_map(code, signature), width) if sides else None,
        axes=max(1, len(sides)),
        given={
            **supplied_values(signature, partial(_supplied, feature_letter(signature))),
            **image_layout(signature),
        },
        within=partial(additive, code, signature, guessed=guessed, within=True)
        if any(role(one) == "coordinates" for one in signature.arrays) and not within
        else None,
    )


def _require_places(code: Code, signature: Signature, width: int, found: Tensor) -> None:
    """Raise :class:`SignatureError` if a token depends on the id of another, as in a model."""
    try:
        other = _token_map(code, signature, width, another=True)(
            torch.zeros(*found.shape[:2], width)
        )
    except Exception as error:
        raise SignatureError(f"with another id: {describe_call_error(code, error)}") from error
    if not torch.equal(other[:, 1:], found[:, 1:]):
        raise SignatureError(
            f"wanted a table of positions, and the result of {code.name} depends on the token ids"
        )


def _rotates(code: Code, signature: Signature, what: str) -> str:
    """Return why a table of rotations is refused, and the line to write instead."""
    return (
        f"{code.name}, called as {signature}, returns {what}, not a table that is added; the code "
        f"that rotates by it follows a semicolon, as in '.. -> freqs: n D/2; then "
        f"NAME(x: B H n D, freqs: n D/2 cis -> x)'"
    )


def _table(call: Callable[[Tensor], Tensor], width: int) -> Callable[[tuple[int, ...]], Tensor]:
    """Return the map from the sizes of a grid to what is added to tokens that are 0."""
    return lambda sizes: call(torch.zeros(1, *sizes, width))[0]


def _table_length(code: Code, signature: Signature, width: int) -> int:
    """The number of positions in the table, at most ``LONGEST``, found by bisection."""

    def refuses(count: int) -> bool:
        try:
            _token_map(code, signature, width)(torch.zeros(1, count, width))
        except Exception:  # noqa: BLE001 (beyond its table, code may raise anything)
            return True
        return False

    if not refuses(LONGEST):
        return LONGEST
    return 1 + bisect_left(range(2, LONGEST + 1), x=True, key=refuses)


def widths(code: Code) -> tuple[int, ...]:
    """The feature sizes to try: as set, else as built, as stored or by default, then a few more."""
    built = [n for n in code.built.values() if type(n) is int and n == SIZES["E"]]
    told = code.options.embed or code.options.width
    module: Any = code.module
    tables = [*module.buffers(), *module.parameters()] if module is not None else []
    tables.sort(key=lambda one: one.dim() < 2)  # the weights of a norm come last
    known = [*built, *(one.shape[-1] for one in tables if one.dim() and one.shape[-1])]
    known += [n for r in ("embed", "width") for n in sizes_of(code.call, r)]
    return tuple(dict.fromkeys([told] if told else [*known, SIZES["E"], 8, 32, 64]))


def _own_width(code: Code, signature: Signature) -> tuple[int, ...]:
    """The feature size read off the result of a call, if no input of the code fixes it; else ()."""
    letter, back = feature_letter(signature), result_names(signature, ("out",))[0]
    axes = [parts(axis) for axis in result_axes(signature, back)]  # length 1 has no label
    letters = [c for one in (*signature.arguments, *signature.built) for c in one.lengths]
    letters += [c for one in signature.arrays for c in one.letters]
    if letter in letters or (letter,) not in axes:
        return ()
    try:
        lengths = lengths_of(signature, B=1, n=5, p=0)
        x = torch.zeros(1, 5, 1)
        made = {one.name: _array(one, x, (), lengths) for one in signature.arrays}
        found = runner(code, signature)(made, lengths)[back]
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return ()
    return (found.shape[axes.index((letter,))],) if found.dim() == len(axes) else ()


def _with_feature_letter(signature: Signature) -> tuple[Signature, int]:
    """Return the signature with a letter for the feature axis, and its size where that is given."""
    back = signature.results[0]
    last = str((back.axes or ("",))[-1])
    if not last.isdigit() or {"D", "E"} & set(signature.letters):
        return signature, 0
    wide = replace(back, axes=(*(back.axes or ())[:-1], *FEATURES))
    return replace(signature, results=(wide, *signature.results[1:])), int(last)


def _width(code: Code, signature: Signature) -> int:
    """The first feature size with which the code can be called.

    Raises :class:`SignatureError` if there is none.
    """
    failed = ""
    for width in (*widths(code), *_own_width(code, signature)):
        try:
            _token_map(code, signature, width)(torch.zeros(3, 5, width))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or f"with {width} features: {describe_call_error(code, error)}"
            continue
        return width
    raise SignatureError(f"{code.name} was called as {signature}, and {failed}")

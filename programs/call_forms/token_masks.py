"""Guess which masks of a map of tokens are padding, and which kind they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import Tensor

from ..calls.attention import takes_mask
from ..calls.roles import MASKS, TABLES, role
from ..calls.token_lines import token_axis, with_one_length
from ..calls.tokens import OnTokens
from ..code import Code, DoesNotFit
from ..execution.draw import normal
from ..loading.names import Parameter
from ..loading.source_numbers import lengths_in
from ..signatures.grammar import parse
from ..signatures.signature import Signature
from .parts import (
    DOCUMENT_NAMES,
    LENGTH_NAMES,
    MASK_KINDS,
    QUERY_MASK_NAMES,
    SEGMENTS,
    inserted,
    mask_effect,
    with_mask,
    with_masks,
    with_query_masks,
)
from .steps import CACHED, hides_later_tokens, slots_of_caches, with_own_state

ARRAY = (Tensor, "Tensor", "torch.Tensor")  # annotations
USUAL = re.compile(r": (B n|n B|n) E")
PADDING = ("B n", "B 1 1 n", "B 1 n", "B r n")
CAUSAL = ("B 1 n n", "n n", "B n n")
TWO = torch.tensor([[0, 1, 2, 0, 1, 2]])  # the positions of two documents in one row
WITH_ROWS = {"B 1 1 n": "B 1 r n", "B 1 n": "B r n"}  # the same mask with its axis of queries
FEW, MANY, MAX_NUMBERS = 6, 1100, 4  # tokens at which it is compared, and how many numbers of code


def with_possible_masks(
    texts: Sequence[str], known: tuple[Parameter, ...], said: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield lines with the masks to try in them: none; and then masks that may be required.

    ``said``: the source, which may assert a mask that has a default.  If a mask is required and
    annotated as an array, masks are tried before tokens in unusual axes.
    """
    wanted = any(takes_mask(one) and one.required and one.annotation in ARRAY for one in known)
    first = [text for text in texts if not wanted or USUAL.search(text)]
    yield from ((text, ("",)) for text in first)
    yield from _forced(texts, known, said)
    yield from ((text, ("",)) for text in texts if text not in first)


def _forced(
    texts: Sequence[str], known: tuple[Parameter, ...], said: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield lines with the masks that may be required."""
    for text in texts:
        forced = [
            one
            for one in known
            if takes_mask(one)
            and (f", {one.name} = None" in text or re.search(rf"\bassert {one.name}\b", said))
        ]
        if forced and USUAL.search(text):  # else there are too many to try
            given = text
            for one in forced:
                given = given.replace(f", {one.name} = None", "")
            yield (
                given,
                tuple(
                    "".join(f", {one.name}: {axes} {kind}" for one in forced)
                    for axes, kind in product((*PADDING, *CAUSAL), MASK_KINDS)
                ),
            )


def masked(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """Return the line with padding masks, and a causal one if the code does not make its own."""
    if not token_axis(parse(line)).letters:
        return line  # any mask is of windows, not of padding
    taken = [one for one in known if takes_mask(one) and one.name not in code.options.arguments]
    tables = any(role(one) in TABLES for one in parse(line).arrays)
    causal = tables and bool(getattr(code.module, "is_causal", False))
    causal |= bool(taken) and bool(with_own_state(code, line, embed))
    marks = partial(_tokens_marks, embed=embed)
    for one in taken:
        forced = parse(line).named(one.name)
        if forced is not None:
            line = line.replace(f", {forced}", f", {one.name} = None")
        if causal and one.role != "padding":
            if hides_later_tokens(code, line, embed):
                continue
            wide = [axes.format(n) for n in slots_of_caches(code) for axes in CACHED]
            for axes in (*CAUSAL, *wide):
                for kind in MASK_KINDS:
                    trial = inserted(line, f"{one.name}: {axes} {kind}")
                    if hides_later_tokens(code, trial, embed):
                        return trial
        line = _with_rows(code, with_mask(code, line, one.name, PADDING, marks), one.name, embed)
        if forced is not None and parse(line).named(one.name) is None:
            raise DoesNotFit(
                f"it requires {one.name!r}, whose meaning is not known; "
                f"write it behind its axes, with --call"
            )
    letter = "r" if with_one_length(parse(line))[1] else "n"
    more = partial(with_masks, code, axes=PADDING, marks=marks)
    names, counts = [one.name for one in taken], partial(_counts, embed=embed)
    line = with_query_masks(code, line, names, letter, counts, more)
    return _with_documents(code, _with_lengths(code, line, known, embed), known, embed)


def _with_rows(code: Code, line: str, name: str, embed: int) -> str:
    """Return the line with an axis of queries in the mask, if the code depends on it.

    Code that cuts a band from its mask, or looks up a row, gives other outputs for the same mask
    without that axis.  It is run at a few tokens and above the numbers in it.
    """
    mask = parse(line).named(name)
    narrow = "" if mask is None else " ".join(map(str, mask.axes or ()))
    if mask is None or narrow not in WITH_ROWS:
        return line
    wide = line.replace(str(mask), str(mask).replace(narrow, WITH_ROWS[narrow]))
    held = [code.module if code.module is not None else code.call]
    beyond = [n + 2 for n in lengths_in(held) if FEW < n < MANY][:MAX_NUMBERS]
    for n in (FEW, *beyond):
        x = normal(2, n, embed, seed=6)
        keep = torch.ones(2, n, dtype=torch.bool)
        keep[:, 1] = False
        with suppress(Exception):  # the code may not take such a mask, or so many tokens
            one, other = (OnTokens(code.again(), parse(told))(x, keep) for told in (line, wide))
            if not torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True):
                return wide
    return line


def _with_lengths(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """Return the line with the number of tokens in each row, if code takes it and it hides some.

    Without it, all tokens must count.
    """
    x = normal(2, 6, embed, seed=13)
    for one in known:
        free = not one.required and one.default is None and not one.is_number
        if (
            not (free and LENGTH_NAMES.fullmatch(one.name))
            or parse(line).named(one.name) is not None
        ):
            continue
        trial = inserted(line, f"{one.name}: B lengths")
        on = OnTokens(code.again(), parse(trial))
        with suppress(Exception):  # the code may not take such lengths
            same = torch.allclose(on(x), OnTokens(code.again(), parse(line))(x), atol=1e-4)
            if on.counted and same and on.counts(embed):
                line = trial
    return line


def _with_documents(code: Code, line: str, known: tuple[Parameter, ...], embed: int) -> str:
    """Return the line with numbers of documents, if code takes them and they change the output.

    Of several documents, not of one.  Types of tokens have the names of some: these must keep
    documents apart, and required ones are an index if they do not.
    """
    for one in known:
        there = parse(line).named(one.name)
        free = not one.required and one.default is None and not one.is_number
        if not DOCUMENT_NAMES.fullmatch(one.name) or (there is None and not free):
            continue
        if there is not None:
            told = str(there)
            if SEGMENTS.fullmatch(one.name) and told.endswith(" documents"):
                apart = _keeps_apart(code, line, embed)
                line = line if apart else line.replace(told, told.replace("documents", "index"))
            continue
        for axes in ("B n", "n"):
            trial = inserted(line, f"{one.name}: {axes} documents")
            with suppress(Exception):  # the code may not take such numbers
                x = normal(1, 6, embed, seed=15)
                on = OnTokens(code.again(), parse(trial))
                plain = OnTokens(code.again(), parse(line))(x)
                same = torch.allclose(on(x), plain, rtol=1e-3, atol=1e-4)
                parted = not torch.allclose(on.documents(x, TWO), plain, rtol=1e-3, atol=1e-4)
                segments = SEGMENTS.fullmatch(one.name) is not None
                if same and parted and not (segments and not _keeps_apart(code, trial, embed)):
                    line = trial
                    break
    return line


def _keeps_apart(code: Code, line: str, embed: int) -> bool:
    """Whether a token has no effect on those of another document."""
    on = OnTokens(code.again(), parse(line))
    x = normal(1, 6, embed, seed=15)
    other = x.clone()
    other[:, 1] += 1.0
    try:
        one, two = (on.documents(tokens, TWO) for tokens in (x, other))
    except Exception:  # noqa: BLE001 (the code may raise anything)
        return False
    return torch.equal(one[:, 3:], two[:, 3:])


def _counts(code: Code, call: Signature, name: str, embed: int) -> bool:
    """Whether this mask, with all others showing every key, masks token 1 as a query only.

    It must not change what other tokens read, and must change what this one reads.
    """
    on = _under(OnTokens(code, call), name)
    x = normal(3, 6, embed, seed=4)
    keep = torch.ones(3, 6, dtype=torch.bool)
    plain = on(x, keep)
    keep[:, 1] = False
    near = (on(x, keep) - plain).abs() <= 1e-3 * plain.abs().amax(2, keepdim=True)
    return bool((near.all(2) == keep).all())


def _under(on: OnTokens, name: str) -> OnTokens:
    """Return the call with this mask as the only padding mask; others show every key."""
    on = replace(on, full=True)
    vars(on)["padding"] = tuple(one for one in on.masks if one.name == name)
    return on


def _tokens_marks(code: Code, call: Signature, embed: int, least: float | None = None) -> str:
    """Return what a mask does when token 1 is padding; "" if it does something else."""
    newest = call.arguments[-1].name
    masks = [one.name for one in call.arguments if role(one) in MASKS and one.name != newest]
    beside = [name for name in masks if QUERY_MASK_NAMES.fullmatch(name)]
    left = tuple(one for one in call.arguments if one.name not in masks or one.name in beside)
    on = OnTokens(code, replace(call, arguments=left), least=least)
    on = _under(on, newest) if beside else on
    x = normal(3, 6, embed, seed=4)
    keep = torch.ones(3, 6, dtype=torch.bool)
    keep[:, 1] = False
    read = any(one.name == newest for one in on.context_masks) and on.features_read(embed)
    context = normal(3, 6, read, seed=3)

    def changed(at: int) -> Tensor:
        other = context.clone() if read else x.clone()
        other[:, at] += 1.0
        return other

    if read:
        return mask_effect(lambda c, m: on.reading(x, c, m), context, changed, keep)
    found = mask_effect(lambda y, m: on(y, m)[:, 2:], x, changed, keep)
    if not found or newest not in on.spare:
        return found  # a required mask cannot be compared with a call without it
    every = torch.full_like(keep, found != "shown")
    same = torch.allclose(on(x), on(x, every), rtol=1e-3, atol=1e-4)
    return found if same else ""  # else it replaces the code's own mask

"""Guess how layers, and attention with its own projections, are called.

The guess is a line of the signature language for tokens, tables, masks and steps; its results are
inferred from the shapes of one call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn

from ..calls.fitting import (
    Alternatives,
    letters_of,
    numbers_of,
    require_numbers,
)
from ..calls.meaning import require_meaning
from ..calls.roles import ROTATED, describe_call_error, role
from ..calls.token_lines import TOKENS, mapped, token_axis, with_one_length
from ..calls.tokens import OnTokens, widths_of_tokens
from ..code import Code, DoesNotFit
from ..execution.draw import normal
from ..loading.names import INDEX, Parameter, order_in, parameters
from ..signatures.grammar import parse
from .parts import CACHE_NAMES, counts_of, further_arguments, with_result
from .steps import MIN_TOKENS, rows_of_caches, stepped
from .token_masks import masked, with_possible_masks
from .token_tables import Part, beside_tokens, is_bounds

QKV = ("query", "key", "value")
STREAMS = ("", *QKV, "tokens")  # roles of what may be tokens
CONTEXTS = re.compile(
    r"context|memory|cond(itioning)?|source|latents|(x_|inputs?_)?kv|kv_x|image_embeds|"
    r"(enc|encoder|cross|key_value|kv)_(out|outputs?|inputs?|states|hidden_states|embeds)"
)  # names of tokens of another kind
LATENTS = re.compile(r"(\w+_)?latents?(_tokens|_array)?")  # vectors that read other tokens
ORDERS = (
    "B n E",
    "n B E",
    "n E",
    "B C h w",
    "B (n n) E",
    *(f"B ({m} n) E" for m in (4, 8, 16, 64)),
    "B h w E",
    "B E n",
    *(f"B E ({m} n)" for m in (4, 16, 32)),
    "V n B E",
    "n V B E",
)
# An order of three axes, which a base class may state, says nothing about a call with four.
FOUR_AXES = tuple(one for one in ORDERS if one.count(" ") == 3 and "(" not in one)
# Calls with rows, or columns, of a grid as a batch, if they are independent.
INDEPENDENT_SIDES = {"B h w E": ("B V n E", "B n V E")}
BLOCKS = re.compile(r"block|window|patch|group|stride|reduction|(^|_)s(r|ize)(_|$)")
MAX_BLOCK = 16  # side of a block of an image
SHAPE_ERROR = "mat1 and mat2 shapes cannot be multiplied"  # tokens are not as wide as a matrix
MAX_TOKENS = 1024  # of a call with a fixed number of tokens
STARTS = (" = p", ": B positions")  # the position of the first token, or of that of each row


def tokens_line(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str], *, keeps: bool
) -> tuple[str, Alternatives]:
    """Return a line that fits the code on tokens, and the other lines that fit.

    ``keeps``: the number of features must be preserved.  Positions with a default are passed only
    if the call fails without them.  Raises ``DoesNotFit``.
    """
    # required numbers, such as the index of a layer, come last
    numbers = {p.name for p in known if p.required and (p.is_number or INDEX.fullmatch(p.name))}
    known = tuple(sorted(known, key=lambda p: p.name in numbers))
    if len(known) > 1 and known[1].required and known[1].role in ("", "query"):
        known = known[1::-1] + known[2:] if CONTEXTS.fullmatch(known[0].name) else known
    placed = tuple(replace(p, required=p.required or p.role == "positions") for p in known)
    for one in (known, placed) if placed != known else (known,):
        fits = _fits(code, one, failed, keeps=keeps)
        line, embed = next(fits, ("", 0))
        if line:
            return line, Alternatives((), partial(_other_readings, code, line, embed, fits))
    raise DoesNotFit(
        failed.get("", failed.get("beside", "no known form of a call fits its parameters"))
    )


def _other_readings(
    code: Code, line: str, embed: int, fits: Iterator[tuple[str, int]]
) -> Iterator[str]:
    """Yield the other lines that fit, with at least these letters, and give other numbers.

    None if the source itself unpacks the axes.  Lines for fixed numbers of tokens are left out, and
    so are lines under which no token reads another, since they satisfy every law.
    """
    if order_in(code.text, written=False) or token_axis(parse(line)) != TOKENS:
        return
    x = normal(3, 6, embed, seed=6)
    plain = OnTokens(code.again(), parse(line))(x)
    for other, wide in fits:
        call = parse(other)
        if wide != embed or token_axis(call) != TOKENS or not letters_of(line) <= letters_of(other):
            continue
        with suppress(Exception):  # the code may raise anything
            found = OnTokens(code.again(), call)(x)
            same = found.shape == plain.shape and torch.allclose(found, plain, atol=1e-3)
            if not same and _mixes(code, other, embed):
                yield other


def _fits(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str], *, keeps: bool
) -> Iterator[tuple[str, int]]:
    """Yield the lines that fit, with the features of a token.

    A line in which no token reads another, or equal rows differ, comes only if no other fits.
    Raises ``DoesNotFit``.
    """
    if not known:
        raise DoesNotFit("it takes no argument")
    alone: tuple[str, int] | None = None  # used if no other fits
    whole = False
    for text, masks in with_possible_masks(_texts(code, known, failed), known, code.text):
        for embed in widths_of_tokens(code):
            spare = code.again()  # for first tries: copying for each would dominate the time
            parts = [
                part for part in beside_tokens(code, known, embed) if not _is_given(part, text)
            ]
            for part, mask in product(parts, masks):
                line, why = _tried(code, spare, f"{text}{mask}", part, embed, failed, keeps=keeps)
                if SHAPE_ERROR in why and not part[0].endswith(" offsets"):
                    break  # for every part beside the tokens, unless it may be the part itself
                if line and (rows := _of_rows(code, line, text, embed)) != text:
                    line, _ = _tried(code, spare, f"{rows}{mask}", part, embed, {}, keeps=keeps)
                alike = bool(line) and _rows_agree(code, line, embed)
                if alike and (not keeps or _reads_as_named(line) or _mixes(code, line, embed)):
                    whole = True
                    yield stepped(code, masked(code, line, known, embed), known, embed), embed
                # unequal rows are a fault of code with rows first, else a sign of wrong axes
                elif (
                    line
                    and (alike or ": n B E" not in line or _tokens_first(code))
                    and (alone is None or _reads_context(line) > _reads_context(alone[0]))
                ):
                    alone = line, embed
    if alone is not None and not whole:
        line, embed = alone
        yield stepped(code, masked(code, line, known, embed), known, embed), embed


def _texts(code: Code, known: tuple[Parameter, ...], failed: dict[str, str]) -> list[str]:
    """Return the lines to try, with the numbers that the code is to be given."""
    numbers, texts = numbers_of(code), []
    for text in _tokens_lines(code, known, failed):
        try:
            require_numbers(text, numbers)
        except DoesNotFit as error:
            failed.setdefault("", str(error))
        else:
            texts.append(text)
    return texts


def _reads_context(line: str) -> bool:
    """Whether tokens read a context, which explains that they do not read one another."""
    return bool(with_one_length(parse(line))[1])


def _reads_as_named(line: str) -> bool:
    """Whether latents read other tokens, or are read: then none need read its own kind."""
    return _reads_context(line) and any(LATENTS.fullmatch(a.name) for a in parse(line).arrays)


def _of_rows(code: Code, line: str, text: str, embed: int) -> str:
    """Return the text with rows or columns as batch axes, if tokens of a grid stay in theirs."""
    grid = next((one for one in INDEPENDENT_SIDES if f": {one}" in text), "")
    if not grid:
        return text
    on = OnTokens(code.again(), parse(line))
    x = normal(1, 12, embed, seed=5)
    other = x.clone()
    other[:, 0] = x[:, 0].flip(-1)
    moved = (on(other) != on(x)).any(-1).reshape(3, 4)
    for axis, rows in enumerate(INDEPENDENT_SIDES[grid]):
        if not bool(moved.narrow(axis, 1, 2).any()) and int(moved.sum()) > 1:
            return text.replace(f": {grid}", f": {rows}")
    return text


def _mixes(code: Code, line: str, embed: int) -> bool:
    """Whether a token reads another; attention does, unless the axes are wrong."""
    on = OnTokens(code.again(), parse(line))
    x = _drawn(on, 2, 6, embed, seed=5)
    plain = on(x)
    for at in (0, -1):
        other = x.clone()
        other[:, at] = x[:, at].flip(-1)
        moved = (on(other) - plain).abs() > 1e-4 * plain.abs().amax()
        moved[:, at] = False
        if bool(moved.any()):
            return True
    return bool(plain.isnan().any())


def _drawn(on: OnTokens, rows: int, count: int, embed: int, *, seed: int) -> Tensor:
    """Draw tokens (B, n, E), at most as many as the code takes; one row if it has no batch."""
    count = count if on.whole.letters else min(count, on.whole.size({}) - 1)
    x = normal(rows, count, embed, seed=seed)
    return x[:1] if "B" not in on.tokens.letters else x


def _rows_agree(code: Code, line: str, embed: int) -> bool:
    """Whether equal rows give equal results; with swapped axes, rows have positions."""
    on = OnTokens(code.again(), parse(line))
    x = _drawn(on, 1, 6, embed, seed=5)
    found = on(x if "B" not in on.tokens.letters else x.repeat(3, 1, 1))
    return not bool(found.isnan().all()) and torch.allclose(
        found, found[:1].expand_as(found), rtol=1e-3, atol=1e-5, equal_nan=True
    )


def _tried(
    code: Code,
    spare: Code,
    text: str,
    part: Part,
    embed: int,
    failed: dict[str, str],
    *,
    keeps: bool,
) -> tuple[str, str]:
    """Return the line with tables and results, "" if it does not fit, and the error of the code."""
    try:
        return _on_tokens(code, spare, text, part, embed, keeps=keeps), ""
    except DoesNotFit as error:
        failed.setdefault("", str(error))
        return "", ""
    except Exception as error:  # noqa: BLE001 (the code may raise anything)
        failed.setdefault(
            "", f"called with tokens (B, n, {embed}): {describe_call_error(code, error)}"
        )
        return "", str(error)


def _is_given(part: Part, text: str) -> bool:
    """Whether the text already passes something that a part passes."""
    given = parse(f"{part[0]} -> 1").arguments if part[0] else ()
    return any(re.search(rf"\b{one.name}: ", text) for one in given)


def _tokens_lines(
    code: Code, known: tuple[Parameter, ...], failed: dict[str, str]
) -> Iterator[str]:
    roles = [one.role for one in known[:3]]
    needed = [one for one in known if one.required and not one.is_number]
    three = roles == [*QKV] or (
        len(needed) == 3
        and all(one.role in STREAMS and one.name not in CACHE_NAMES for one in needed)
    )
    second = known[1] if len(known) > 1 else None
    two = (
        second is not None
        and (second.required or second.default is None)
        and (
            second.role in ("key", "value", "tokens")
            or (second.required and bool(CONTEXTS.fullmatch(second.name)))
        )
    )
    packed = any(map(is_bounds, known))
    orders = (
        ("(B n) E",)
        if packed
        else ("n B E", *FOUR_AXES)
        if _tokens_first(code)
        else (
            *_of_fixed_length(code),
            *ORDERS,
            *rows_of_caches(code),
            *_of_placed_table(code),
            *_of_blocks(code),
        )
    )
    yield from _with_latents(code, known)
    for count in (3, 2, 1) if three else (1, 2) if two else (1,):
        taken = known[:count]
        # queries and keys passed separately are not images, and their other axes are heads
        given_so = [x for x in orders if count == 1 or not {"h", "V"} & {*x.split()}]
        for counted, x in product(counts_of(known), given_so):
            given = ", ".join(
                f"{one.name}: {x}" + ("" if one.role in ROTATED else " tokens") for one in taken
            )
            try:
                own = {one.name for one in taken}
                more = further_arguments(code, known, own, square=True, counted=counted)
            except DoesNotFit as error:
                failed.setdefault("beside", str(error))  # reported if no fuller form says more
                continue
            more = more.replace("<x>", x)
            yield from dict.fromkeys(
                given
                + re.sub(r" = p\b", start, more.replace(": B n positions", places)).replace(
                    ": B n documents", numbered
                )
                for start, places, numbered in product(
                    STARTS,
                    (": B n positions", ": n positions"),
                    (": B n documents", ": n documents"),
                )
            )
            if "s = (1, n)" in more:  # the sizes of several images
                yield given + more.replace("s = (1, n)", "s = ((1, n),)")
    yield from _with_context(code, known)


def _of_fixed_length(code: Code) -> list[str]:
    """Return lines for the fixed numbers of tokens for which code holds an index of pairs.

    Zeros and ones are a mask instead, of which code uses the first rows.
    """
    held = code.module.buffers() if code.module is not None else ()
    found = [
        x.shape[-1]
        for x in held
        if x.dim() > 1
        and not x.is_floating_point()
        and x.shape[-1] == x.shape[-2]
        and bool((x > 1).any())
    ]
    return [f"B {n} E" for n in dict.fromkeys(found) if MIN_TOKENS < n <= MAX_TOKENS]


def _of_placed_table(code: Code) -> list[str]:
    """Return lines for the numbers of rows of tables of positions, which code may add as a whole.

    It takes no other number of tokens then.
    """
    held = code.module.state_dict() if code.module is not None else {}
    rows = [
        x.shape[-2]
        for name, x in held.items()
        if "pos" in name.rpartition(".")[2] and x.is_floating_point() and x.dim() in (2, 3)
    ]
    return [f"B {n} E" for n in dict.fromkeys(rows) if MIN_TOKENS < n <= MAX_TOKENS]


def _of_blocks(code: Code) -> list[str]:
    """Return lines for images whose sides are multiples of a number from its constructor."""
    known = parameters(type(code.module)) if code.module is not None else ()
    built = {one.name: code.built.get(one.name, one.default) for one in known}
    named = [name for name in built if BLOCKS.search(name)]
    sizes = dict.fromkeys(built[one] for one in named if type(built[one]) is int)
    return [
        line
        for n in sizes
        if 1 < n <= MAX_BLOCK
        for line in (f"B C ({n} h) ({n} w)", f"B ({n} h) ({n} w) E")
    ]


def _with_context(code: Code, known: tuple[Parameter, ...]) -> Iterator[str]:
    """Yield lines of tokens and a context of another length.

    It is a parameter that follows the first and is named like one, or the second of two that are
    required and may be tokens.
    """
    context = next((one for one in known[1:4] if CONTEXTS.fullmatch(one.name)), None)
    pair = [one for one in known if one.required and one.role in STREAMS]
    if context is None and pair == list(known[:2]) and not any(one.is_number for one in pair):
        context = known[1] if len(pair) == 2 else None
    if context is not None:
        yield from _reading(code, known, known[0], context)


def _with_latents(code: Code, known: tuple[Parameter, ...]) -> Iterator[str]:
    """Yield lines of latents that read other tokens, as in Perceiver, then of the reverse.

    None if neither of the first two parameters is named like latents.
    """
    pair = [one for one in known[:2] if one.required and one.role in STREAMS]
    latents = [one for one in pair if LATENTS.fullmatch(one.name)]
    if len(pair) == 2 and len(latents) == 1:
        one, other = sorted(pair, key=lambda one: (one.role != "query", one not in latents))
        yield from _reading(code, known, one, other)
        yield from _reading(code, known, other, one)


def _reading(
    code: Code, known: tuple[Parameter, ...], tokens: Parameter, context: Parameter
) -> Iterator[str]:
    """Yield lines of tokens that read others, as wide as they are or as a linear map expects."""
    wide = {
        m.in_features for m in getattr(code.module, "modules", tuple)() if isinstance(m, nn.Linear)
    }
    try:
        more = further_arguments(code, known, {tokens.name, context.name}, square=True)
    except DoesNotFit:
        return
    for features in ("E", *map(str, sorted(wide))):
        of = {tokens.name: "B r E", context.name: f"B n {features}"}
        given = ", ".join(f"{p.name}: {of[p.name]} tokens" for p in known if p.name in of)
        yield given + more.replace("<x>", "B r E")


def _tokens_first(code: Code) -> bool:
    """Whether tokens come before rows, by an attribute of the module or by its source."""
    own = getattr(code.module, "batch_first", None)
    if own is not None:
        return not own
    inner = getattr(getattr(code.module, "self_attn", None), "batch_first", None)
    if inner is not None and type(code.module).__module__.startswith("torch."):
        return not inner
    return order_in(code.text).startswith("t")


def _on_tokens(code: Code, spare: Code, text: str, part: Part, embed: int, *, keeps: bool) -> str:
    """Return the line with tables and results, for the code as it was built.

    ``spare``, a copy that other calls may have changed, is called first.  Raises ``DoesNotFit``.
    """
    given, made = part
    for one in parse(f"{given} -> 1").arguments if given else ():
        text = text.replace(f", {one.name} = None", "")
    text += f", {given}" if given else ""
    on = OnTokens(spare, parse(f"{text} -> 1{made}"))
    x = _drawn(on, 3, 11, embed, seed=2)
    arrays, lengths = on.given(x)
    whole = with_result(text, on.program.called(arrays, lengths), lengths, pooled=True) + made
    told = parse(whole)
    read = any("r" in one.letters for one in told.arrays if mapped(one))
    if read and not any("r" in one.letters for one in told.results):
        raise DoesNotFit("wanted as many tokens as read the others, got another number")
    on = OnTokens(code.again(), parse(whole))
    out = on(x)
    for rows, count in ((2, 7), (3, 10)):
        # code for squares, or multiples, or a cache may take the first numbers by chance
        on(x[:rows, :count].contiguous())
    if out.shape[:2] != x.shape[:2] or (keeps and out.shape != x.shape):
        raise DoesNotFit(f"wanted shape {tuple(x.shape)}, got {tuple(out.shape)}")
    arrays, lengths = on.given(x / embed**0.5)  # norms near 1: softmax stays spread over the tokens
    packed = any(role(one) == "bounds" for one in on.line.arrays)
    require_meaning(on.program.run, arrays, on.line, lengths, "" if packed else "B")
    return whole

"""Attention with its own projections, and layers, as subjects of laws: a given call of tokens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from ..code import Code
from ..declarations import DeclaredAttention
from ..execution.calling import modules_of
from ..loading.names import sizes_of
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Attention, Layer, Subject
from .attention import default_masks, dropout_of, on_heads, other_masks
from .masks import is_square
from .paths import masked_paths, other_paths
from .roles import (
    TABLES,
    built_at,
    describe_call_error,
    role,
    shared_fields,
)
from .spelling import ROWS as EQUAL_ROWS
from .steps import steps_of
from .supplied_inputs import CONSTANT, constants, contents_of, image_layout, zeros_to
from .token_axes import ROWS, TOKENS
from .tokens import ENCODED, MADE, OnTokens, widths_of_tokens

CAUSAL = "a causal mask made here"


def attention(code: Code, signature: Signature, *, guessed: bool = False) -> Attention:
    """Return attention on queries, keys and values, or on tokens; raises `SignatureError`."""
    roles = {role(one): one for one in signature.arrays}
    if {"query", "key", "value"} <= set(roles) and "E" not in roles["query"].letters:
        return on_heads(code, signature, guessed=guessed)
    return _on_tokens(code, signature, guessed=guessed)


def _on_tokens(code: Code, signature: Signature, *, guessed: bool = False) -> Attention:
    on, width = _called(code, signature)
    code, embed = on.code, width * on.copies
    if on(torch.zeros(1, 2, embed)).shape[-1] not in (width, embed) and not on.pooled:
        raise SignatureError(
            f"wanted {width} features back, as many as in the input, got {signature}"
        )
    tables = any(role(one) in TABLES for one in signature.arrays)
    parts: list[Any] = modules_of(code) or [code.call]
    heads = code.options.heads or next((n for one in parts for n in sizes_of(one, "heads")), 1)
    made = [role(one) for one in on.line.arrays if role(one) in MADE]
    causal = any(is_square(one) for one in on.masks)
    positions = "absolute" if "encoding" in made else "relative" if tables or made else None
    declared = (
        DeclaredAttention(
            causal=causal or bool(getattr(code.module, "is_causal", False)) or None,
            positions=positions,
        )
        if tables or made or causal
        else None
    )
    paths, context = other_paths(on, embed), on.features_read(width)
    counted = bool(on.counted)
    if counted and guessed:  # the guess may be wrong, and the count be ignored
        with suppress(Exception):
            counted = on.counts(embed)
    return Attention(
        **_shared(on, width, signature, _on_tokens, guessed),
        layer=on,
        hide=on if on.padding or counted else None,
        from_start=counted,
        reading=on.reading if context else None,
        documents=on.documents if on.packs else None,
        context=context,
        true_hides=any(role(one) == "hide" for one in on.padding),
        heads=heads,
        groups=heads,
        width=width // heads,
        dropout=dropout_of(code.module),
        paths=paths,
        hiding=masked_paths(on, paths) if on.padding or counted else {},
        positional="encoding" in made or on.absolute,
        declared=declared,
    )


def _shared(
    on: OnTokens, width: int, signature: Signature, made: Callable[..., Subject], guessed: bool
) -> dict[str, Any]:
    """Return what attention and layers have in common; ``made`` builds the subject again."""
    conditions = "; ".join(_conditions(on))
    code, again = _of_width(on.code, width), partial(made, guessed=guessed)
    return {
        **shared_fields(code, signature, again, conditions, guessed),
        "given": _supplied(on),
        "only_length": on.only_length,
        "embed": width * on.copies,
        "step": steps_of(on, width * on.copies) if signature.step is not None else None,
    }


def _conditions(on: OnTokens) -> list[str]:
    """Return what is made or chosen here for the call: conditions of every verdict."""
    told = [f"with {CAUSAL}"] if any(is_square(one) for one in on.masks) else []
    tables = any(role(one) in TABLES for one in on.signature.arrays)
    if tables and on.signature.source is None and on.rotating is not None:
        told.append(f"with {on.rotating.table_words}")
    made = [role(one) for one in on.line.arrays if role(one) in MADE]
    told += [f"with a sinusoidal table of {ENCODED[one]} made here" for one in dict.fromkeys(made)]
    told += _one_length(on)
    told += [CONSTANT.format(one.name) for one in constants(on.line)]
    told += [f"{one.name} is 0" for one in on.line.arguments if one.lengths == ("p",)]
    told += ["each token is given all rows that come back, joined along the features"] * on.pooled
    if on.repeated:
        told.append(f"the {on.copies} rows are joined along the features")
    held = [one for one in on.line.arrays if role(one) in ("lengths", "bounds")]
    return told + [contents_of(one) for one in held]


def _supplied(on: OnTokens) -> dict[str, str]:
    """Return what the code is given and does not make itself; masks, unless a law supplies them."""
    of_tokens = [one.name for one in constants(on.line) if ROWS & {*one.letters}]
    causal = any(is_square(one) for one in on.masks)
    masks = (*on.masks, *on.context_masks)
    return {
        **({"context": on.context} if on.context else {}),
        **(_beside_causal(on, masks) if causal else default_masks(on.code, masks, on.spare)),
        **({"padding": told} if (told := _padding(on, masks, causal=causal)) else {}),
        **({"counted": ", ".join(one.name for one in on.counted)} if on.counted else {}),
        **({"constants": ", ".join(of_tokens)} if of_tokens else {}),
        **({"rows": str(rows)} if (rows := _equal_rows(on)) else {}),
        **image_layout(on.line),
    }


def _equal_rows(on: OnTokens) -> int:
    """Return the fixed number of rows that the code takes, all given the same tokens; 0 if any."""
    first, *_ = on.tokens.axes or (Axis(()),)
    sizes = dict(on.line.sizes)
    fixed = first.letters in ((EQUAL_ROWS,), ("H",)) and "B" not in on.tokens.letters
    return sizes.get(first.letters[0], 0) if fixed else 0


def _beside_causal(on: OnTokens, masks: tuple[Argument, ...]) -> dict[str, str]:
    """State that its mask is causal, and which others show every key."""
    full = [contents_of(one) for one in masks if not is_square(one) and one.name not in on.spare]
    return {"mask": CAUSAL, **({"full mask": "; ".join(full)} if full else {})}


def _padding(on: OnTokens, masks: tuple[Argument, ...], *, causal: bool) -> str:
    """Describe what else is given, or left out, in a call with a padding mask."""
    own = [one.name for one in on.padding]
    if not own:
        return ""
    told = [f"the mask is {CAUSAL}, and hides padding as well"] if causal else []
    own += [one.name for one in masks if causal and is_square(one)]
    return "; ".join(told + other_masks(on.code, own, masks, on.spare))


def _one_length(on: OnTokens) -> list[str]:
    """Describe how tokens are extended if code only takes some lengths."""
    told = []
    if on.whole.letters and on.whole != TOKENS:
        told.append(f"T tokens are repeated until they are {on.whole}")
    elif on.whole != TOKENS:
        told.append(zeros_to(on.whole))
        told += image_layout(on.line).values() if {"h", "w"} <= dict(on.line.sizes).keys() else []
    if size := dict(on.line.sizes).get(on.context, 0):
        told.append(f"its context has exactly {size} tokens")
    return told


def layer(code: Code, signature: Signature, *, guessed: bool = False) -> Layer:
    """Return any map of tokens as a layer.  Raises :class:`SignatureError`."""
    on, width = _called(code, signature)
    return Layer(**_shared(on, width, signature, layer, guessed), call=on)


def _of_width(code: Code, width: int) -> Code:
    """Return the code; when it is rebuilt unchanged, its width is known and no other is tried."""

    def again(**settings: Any) -> Code:
        made = code.again(**settings)
        return made if settings else replace(made, options=replace(made.options, embed=width))

    return replace(code, again=again)


def _called(code: Code, signature: Signature) -> tuple[OnTokens, int]:
    """Return the call, and the features of a token; masks that it needs show every key."""
    on = OnTokens(code, signature, apart=True)
    try:
        return _of_features(on)
    except SignatureError:
        if not on.spare:
            raise
        with suppress(SignatureError):
            return _of_features(replace(on, full=True))
        raise


def _of_features(on: OnTokens) -> tuple[OnTokens, int]:
    """Return the call, and the features of a token: as given, else the first size that works."""
    failed = ""
    folds = [int(axis.fold) for axis in on.tokens.axes or () if axis.fold.isdigit()]
    apart = folds[0] if folds and not on.code.options.embed else 1
    for width in (apart * width for width in widths_of_tokens(on.code)):
        try:
            made = replace(on, code=built_at(on.code, on.signature, **{on.feature: width}))
            made(torch.randn(2, 5, width * made.copies, generator=torch.Generator().manual_seed(0)))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or f"with {width} features: {describe_call_error(on.code, error)}"
            continue
        return made, width
    raise SignatureError(f"{on.code.name} was called as {on.signature}, and {failed}")

"""Attention with its own projections, and layers, as subjects of laws: a given call of tokens.

There are other ways to compute what the call does: flags, kernels, an explicit context, steps.
Passing the tokens themselves as the context, or a mask that shows every key, changes nothing if the
code ignores the order of tokens and uses no further weights; running the code decides whether that
is so.  Code that norms its tokens reads a context unnormed, so these paths are not tried on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..code import Code
from ..declarations import DeclaredAttention
from ..execution.calling import evaluating, modules_of
from ..execution.draw import normal
from ..loading.names import parameters, sizes_of
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from ..subjects import Attention, Layer, Subject
from .attention import default_masks, dropout_of, on_heads, other_masks
from .masks import is_mask, is_square
from .roles import (
    HIDING,
    ROTATED,
    SIZES,
    TABLES,
    built_at,
    describe_call_error,
    role,
    shared_fields,
)
from .spelling import ROWS as EQUAL_ROWS
from .steps import steps_of
from .supplied_inputs import (
    constants,
    contents_of,
    copies_to,
    image_layout,
    words_of_constant,
    zeros_to,
)
from .tables import uncompiled_with_others
from .token_lines import ENCODED, MADE, ROWS, TOKENS
from .tokens import SUPPLIED, OnTokens, widths_of_tokens

TokenMap = Callable[..., Tensor]
MASK_OF_CONTEXT = re.compile(r"(encoder|context|memory|cross)\w*mask")

CONTEXTS = ("context", "encoder_hidden_states", "key_value_states", "memory", "xa", "x_kv", "kv")
KEYS = (("key", "value"), ("keys", "values"), ("k", "v"))
COUNT = 6
NEAR = 1e-5  # relative to the largest entry: float32 rounding of sums in another order


def other_paths(on: OnTokens, width: int) -> dict[str, OnTokens | Callable[..., Tensor]]:
    """Return the other paths by name, each a map of tokens (B, n, E) and of the kept ones (B, n).

    ``width``: the features of a token.
    """
    found: dict[str, OnTokens | Callable[..., Tensor]] = {}
    taken = parameters(on.code.call)
    if any(one.name == "need_weights" for one in taken):
        for wanted in (True, False):
            path = _as_it_returns(replace(on, options={"need_weights": wanted}), width)
            if path is not None:
                found[f"need_weights={wanted}"] = path
    torch_parts = (nn.MultiheadAttention, nn.TransformerEncoderLayer)
    if any(isinstance(part, torch_parts) for part in modules_of(on.code)):
        found["no fast path"] = _slow(on)
    alike = [one.name for one in on.line.arrays if _like_tokens(on, one)]
    if alike:
        names = ", ".join((on.tokens.name, *alike))
        found[f"one tensor for {names}"] = replace(on, shared=True)
    if alike or not on.context:
        found |= _same_of_any_order(on, width, alike)
    return found


def _same_of_any_order(on: OnTokens, width: int, alike: list[str]) -> dict[str, OnTokens]:
    """Return paths on which code may be causal or encode positions although the main path is not.

    They are used only if the main path ignores the order of tokens.
    """
    taken = {one.name: one for one in parameters(on.code.call)}
    told = {one.name for one in on.signature.arguments} | set(on.code.options.arguments)
    spare = [name for name, one in taken.items() if not one.required and one.default is None]
    free = [name for name in spare if name not in told]
    tried: dict[str, OnTokens] = {}
    contexts: list[tuple[str, ...]] = [(name,) for name in free if name in CONTEXTS]
    contexts += [both for both in KEYS if set(both) <= set(free)]
    normed = _norms(on, width)
    for names in contexts if not normed else ():
        more = [Argument(name, axes=on.tokens.axes, kind="tokens") for name in names]
        told_so = replace(on.signature, arguments=(*on.signature.arguments, *more))
        tried[", ".join(f"{name}={on.tokens.name}" for name in names)] = replace(
            on, signature=told_so
        )
    if alike and set(alike) <= set(spare) and not normed:
        kept = tuple(one for one in on.signature.arguments if one.name not in alike)
        tried[f"without {', '.join(alike)}"] = replace(
            on, signature=replace(on.signature, arguments=kept)
        )
    if on.spare:
        tried["a mask that shows every key"] = replace(on, full=True)
    own = _weights(on, width) if tried and _is_equivariant(on, width) else None
    if own is None:
        return {}
    found = {name: (path, _weights(path, width)) for name, path in tried.items()}
    return {name: path for name, (path, used) in found.items() if used is not None and used <= own}


def _as_it_returns(on: OnTokens, width: int) -> OnTokens | None:
    """Return the path, with or without weights behind its result; None if there is no such path.

    Code that raises NotImplementedError for a flag has no such path.
    """
    x = normal(2, COUNT, width, seed=12)
    results = on.signature.results
    more = [results, (*results, Argument("_"))]
    more += [results[:-1]] if len(results) == 2 and results[-1].name == "_" else []
    for path in (replace(on, signature=replace(on.signature, results=one)) for one in more):
        with evaluating(on.code), torch.no_grad():
            try:
                path(x)
            except NotImplementedError:
                return None
            except SignatureError:
                continue
            except Exception:  # noqa: BLE001 (the law reports what it raises)
                break
        return path
    return on


def masked_paths(on: OnTokens, paths: Mapping[str, TokenMap]) -> dict[str, TokenMap]:
    """Return the paths that hide what the mask hides: none whose context has a mask of its own."""
    told = {one.name for one in on.signature.arguments}
    own = any(
        MASK_OF_CONTEXT.search(p.name) for p in parameters(on.code.call) if p.name not in told
    )
    if not own:
        return dict(paths)
    return {name: path for name, path in paths.items() if not _takes_more(on, path)}


def _takes_more(on: OnTokens, path: TokenMap) -> bool:
    """Whether the path is given more arguments than the main path, such as a context."""
    line = getattr(path, "signature", on.signature)
    return len(line.arguments) > len(on.signature.arguments)


def _like_tokens(on: OnTokens, one: Argument) -> bool:
    """Whether the argument is given the same tokens again."""
    if one == on.tokens or is_mask(one) or role(one) not in ROTATED:
        return False
    return set(one.letters) == set(on.tokens.letters)


def _is_equivariant(on: OnTokens, width: int) -> bool:
    """Whether, in evaluation, permuting the tokens permutes the outputs in the same way."""
    x = normal(2, COUNT, width, seed=9)
    order = torch.tensor([2, 5, 0, 4, 1, 3])
    with evaluating(on.code), torch.no_grad():
        there, here = on(x[:, order]), on(x)[:, order]
    return bool((there - here).abs().max() <= NEAR * here.abs().max())


def _norms(on: OnTokens, width: int) -> bool:
    """Whether tokens may be normed before they are read, by the names of parts or by a run.

    Of code that refuses so many tokens, it is not known.
    """
    if any("norm" in type(part).__name__.lower() for part in modules_of(on.code)):
        return True
    x = normal(2, COUNT, width, seed=11)
    try:
        with evaluating(on.code), torch.no_grad():
            plain, scaled = on(x), on(4 * x)
    except Exception:  # noqa: BLE001 (the code may take other numbers of tokens alone)
        return True
    moved = scaled - plain
    residuals = (moved, moved - 3 * x) if moved.shape == x.shape else (moved,)
    near = 100 * NEAR * plain.abs().max()
    return any(bool(one.abs().max() <= near) for one in residuals)


def _weights(on: OnTokens, width: int) -> frozenset[str] | None:
    """Return the names of the weights the result depends on; None if the call raises."""
    x = normal(2, COUNT, width, seed=10)
    named = {} if on.code.module is None else dict(on.code.module.named_parameters())
    weights = {name: one for name, one in named.items() if one.requires_grad}
    with evaluating(on.code), torch.enable_grad():
        try:
            result = on(x)
            if not weights or not result.requires_grad:
                return frozenset()
            found: tuple[Tensor | None, ...] = torch.autograd.grad(
                result.square().sum(), [*weights.values()], allow_unused=True
            )
        except Exception:  # noqa: BLE001 (the call is a guess, and code may raise anything)
            return None
    return frozenset(name for name, grad in zip(weights, found, strict=True) if grad is not None)


def _slow(on: OnTokens) -> Callable[..., Tensor]:
    """Return the same call without the fast path of torch's own modules."""

    def slow(x: Tensor, keep: Tensor | None = None) -> Tensor:
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return on(x, keep)
        finally:
            torch.backends.mha.set_fastpath_enabled(before)

    return slow


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
    own = bool(getattr(code.module, "is_causal", False)) or None
    declared = (
        DeclaredAttention(causal=own, positions=positions)
        if tables or made or (causal and own)
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
        true_hides=any(role(one) in HIDING for one in on.padding),
        heads=heads,
        groups=heads,
        width=width // heads,
        dropout=dropout_of(code.module),
        paths=paths,
        hiding=masked_paths(on, paths) if on.padding or counted else {},
        positional="encoding" in made or on.absolute,
        declared=declared,
        # the code may hide more than the mask made here, as by a window
        as_read=DeclaredAttention(causal=True) if causal and not own else None,
    )


def _shared(
    on: OnTokens, width: int, signature: Signature, made: Callable[..., Subject], guessed: bool
) -> dict[str, Any]:
    """Return what attention and layers have in common; ``made`` builds the subject again."""
    conditions = "; ".join(_conditions(on))
    own = uncompiled_with_others(on.code, signature, SIZES["D"])
    code, again = _of_width(own, width), partial(made, guessed=guessed)
    _, lengths = on.given(torch.zeros(1, 2, width * on.copies))
    return {
        **shared_fields(code, signature, again, conditions, guessed, lengths),
        "given": _supplied(on),
        "only_length": on.only_length,
        "multiple_of": on.multiple_of,
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
    told += [words_of_constant(one) for one in constants(on.line)]
    told += [f"{one.name} is 0" for one in on.line.arguments if one.lengths == ("p",)]
    told += ["each token is given all rows that come back, joined along the features"] * on.pooled
    if on.repeated:
        told.append(f"the {on.copies} rows are joined along the features")
    held = [one for one in on.line.arrays if role(one) in SUPPLIED]
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
        told.append(copies_to(on.whole))
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
            made(normal(2, 5, width * made.copies, seed=0))
        except Exception as error:  # noqa: BLE001 (the code may raise anything)
            failed = failed or f"with {width} features: {describe_call_error(on.code, error)}"
            continue
        return made, width
    raise SignatureError(f"{on.code.name} was called as {on.signature}, and {failed}")

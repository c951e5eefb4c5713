"""Turn a program with a given call into rotary, attention, bias, additive, mask or layer code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from .adapting import PARTS, WORDS, adapt, on_token_ids, require_settings, resolved
from .call_forms import attention as attention_forms
from .call_forms import rotary_fitting
from .call_forms.additive import fit_additive
from .call_forms.counts import fit_bias, fit_mask
from .calls.additive import additive
from .calls.counts import bias, fixed_size, mask, surplus_tokens
from .calls.roles import (
    MASKS,
    PLACES,
    ROTATED,
    TABLES,
    as_described,
    describe_call_error,
    role,
)
from .calls.rotary import rotary
from .calls.spelling import in_letters, is_placed
from .calls.token_subjects import attention, layer
from .code import Ambiguous, Code, DoesNotFit, Options, place_of
from .declarations import Declared, sizes_declared
from .execution.running import CodeFault
from .loading.building import as_it_is_or_in_float32, code_under_test
from .loading.program import Program
from .loading.shared_state import SharedState
from .no_adapter import BUILDING, NoAdapter
from .signatures.grammar import parse
from .signatures.signature import Signature, SignatureError
from .subjects import KINDS, Subject

_FROM_SIGNATURE: dict[str, Callable[[Code, Signature], Subject]] = {
    "rotary": rotary,
    "attention": attention,
    "bias": bias,
    "additive": additive,
    "mask": mask,
    "layer": layer,
}

_FROM_GUESS: dict[str, Callable[[Code], Subject]] = {  # by tables of call forms
    "rotary": rotary_fitting.fit,
    "bias": fit_bias,
    "additive": fit_additive,
    "mask": fit_mask,
    "attention": attention_forms.fit_attention,
    "layer": attention_forms.fit_layer,
}


def subject_of(
    thing: Any, call: str | Signature, kind: str = "", name: str = "", **options: Any
) -> Subject:
    """Return the subject on which laws are checked, for code with a given call.

    ``kind`` is one of rotary, attention, bias, additive, mask, layer; by default it is inferred
    from the signature.  ``options`` are those of :class:`~attnproof.programs.code.Options`, such as
    ``width`` and ``settings``.

    Raises :class:`SignatureError` for a call that cannot be read, or that the code does not accept;
    and ``NoAdapter`` for a class that cannot be built.

    >>> import torch
    >>> def rotated(x, cos, sin):
    ...     u, v = x.chunk(2, -1)
    ...     return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)
    >>> subject_of(rotated, "x: B n H D, cos: n 1 D/2, sin: n 1 D/2 -> x").kind
    'rotary'
    """
    signature = parse(call) if isinstance(call, str) else call
    own = f"{name or getattr(thing, '__name__', type(thing).__name__)} {signature.method}"
    words = [one for one in ("rotary", "attention") if re.search(WORDS[one], own, re.IGNORECASE)]
    rotates = kind == "rotary" if kind else words[0] == "rotary" if words else None
    signature, sizes = in_letters(signature, rotates=rotates)
    options = {**sizes, **options}
    settings = options.pop("settings", {})
    thing, settings = resolved(thing, kind or kind_of(signature, name), settings)
    try:
        made = code_under_test(thing, name, Options(**options, settings=settings))
    except DoesNotFit as error:
        named = name or getattr(thing, "__name__", type(thing).__name__)
        raise NoAdapter(named, place_of(thing), {BUILDING: str(error)}) from error
    shared = SharedState.of(thing, made.call)
    code = as_described(made, signature)
    told = kind or kind_of(signature, code.name)
    if told not in KINDS:
        raise SignatureError(f"wanted a kind of code, one of {', '.join(KINDS)}, got {told!r}")
    Program(code.call, signature, code.name)  # raises for names that are not parameters
    if [role(one) for one in signature.arrays] == ["ids"]:
        whole, why = on_token_ids(code, kind or None, _FROM_GUESS)
        if whole is not None:
            return shared.noted_in(whole)
        if not kind and _is_of_words(signature):
            raise SignatureError(
                f"{code.name} is not a model of ids: {why or 'it has no embedding'}"
            )
    elif not kind and _is_of_words(signature):
        beside = ", ".join(one.name for one in signature.arrays if role(one) != "ids")
        raise SignatureError(
            f"wanted ids as the only input: vectors replace them, and the rest must be None, "
            f"as in mask = None; got {beside}"
        )
    try:
        return shared.noted_in(
            as_it_is_or_in_float32(
                code,
                lambda one: SharedState.of(one.call).noted_in(
                    _FROM_SIGNATURE[told](one, signature)
                ),
            )
        )
    except (SignatureError, DoesNotFit, NoAdapter, CodeFault):
        raise
    except Exception as error:
        why = describe_call_error(code, error)
        raise SignatureError(f"{code.name} was called as {signature}, and {why}") from error


def _is_of_words(signature: Signature) -> bool:
    """Whether it takes ids and no features, and returns a row per id, unlike a table.

    >>> _is_of_words(parse("x: B n ids -> B n 50"))
    True
    >>> _is_of_words(parse("x: B n ids, mask: B n keep -> B n E"))
    True
    >>> _is_of_words(parse("x: B n ids -> B n E")), _is_of_words(parse("x: B n ids -> B n n keep"))
    (False, False)
    """
    back = next(iter(signature.array_results), None)
    axes = [str(one) for one in back.axes or ()] if back is not None else []
    told = {role(one) for one in signature.arrays}
    bare = not any({"D", "E"} & set(one.letters) for one in signature.arrays)
    row = axes[:2] == ["B", "n"] and len(axes) == 3 and axes[2] != "n"
    return "ids" in told and bare and row and (axes[2] != "E" or bool(told & {*MASKS, "mask"}))


def adapted_as(
    thing: Any,
    call: str = "",
    *,
    kind: str | None = None,
    declared: Declared | None = None,
    name: str = "",
    **how: Any,
) -> Subject:
    """Return the subject on which laws are checked: by its signature if given, else by a guess.

    A :class:`Program` carries its signature.  The other arguments are those of
    :func:`~attnproof.programs.adapting.adapt`, whose exceptions propagate; also raises
    :class:`SignatureError`.
    """
    signature: str | Signature = call
    if isinstance(thing, Program):
        thing, signature = thing.call, call or thing.signature
    if not signature:
        try:
            return adapt(thing, kind=kind, declared=declared, name=name, forms=_FROM_GUESS, **how)
        except Ambiguous as error:
            raise SignatureError(str(error)) from None
    known = {f.name for f in fields(Options)}
    options = {key: value for key, value in how.items() if key in known}
    later = {key: value for key, value in how.items() if key not in known}
    require_settings(thing, options.get("settings", {}), name)
    likely = sizes_declared(declared) if declared is not None else {}

    def made() -> Subject:
        return subject_of(thing, signature, kind or "", name, likely=likely, **options)

    return adapt(made, kind=kind, declared=declared, name=name, **later)


def kind_of(signature: Signature, name: str = "") -> str:
    """Return the kind of code that has this call; its name decides if two kinds share the call.

    >>> kind_of(parse("q: B H r D, k: B H n D, v: B H n D -> B H r D"))
    'attention'
    >>> kind_of(parse("q: B H n D, k: B H n D, v: B H n D -> q, k, v"))
    'rotary'
    >>> kind_of(parse("seq_len = n -> n n keep"))
    'mask'
    >>> kind_of(parse("length = n, width = E -> n E"))
    'additive'
    """
    roles = {role(one) for one in signature.arrays}
    features = [one for one in signature.arrays if {"D", "E"} & set(one.letters)]
    if {"query", "key", "value"} <= roles:
        both = {one.name for one in signature.arrays if role(one) in ("query", "key")}
        handed_on = both <= {one.name for one in signature.array_results}
        return (
            "rotary" if handed_on and any("D" in one.letters for one in features) else "attention"
        )
    if any(one.of for one in signature.results):
        return "rotary"  # keys and values in one array, too
    if _scores(signature):
        told = any(one.kind in MASKS for one in signature.results)
        return "mask" if told else "bias"
    vectors = any("D" in one.letters and role(one) in ROTATED for one in features)
    tokens = "value" in roles or any("E" in one.letters for one in signature.arrays)
    placed = is_placed(signature)
    headed = any({"H", "D"} <= set(one.letters) for one in features)
    named = re.search(WORDS["rotary"], name, re.IGNORECASE)
    if signature.then or (vectors and (placed or headed or named) and not tokens):
        return "rotary"
    back = signature.array_results
    if not features or (back and "B" not in back[0].letters and "B" in features[0].letters):
        return "additive"
    if _padded_table(signature, name):
        return "additive"
    asked = (*MASKS, "mask", "padding", "documents", *TABLES)
    if signature.step is not None or any(role(one) in asked for one in signature.arrays):
        return "attention"
    if re.search(WORDS["attention"], name, re.IGNORECASE):
        kept = {"D", "E"} & {c for one in back for c in one.letters}
        return "attention" if kept else "layer"
    return "additive" if re.search(WORDS["additive"], name, re.IGNORECASE) else "layer"


def _padded_table(signature: Signature, name: str) -> bool:
    """Whether it is named after a table of positions, and takes padding beside its tokens."""
    others = {role(one) for one in signature.arrays} - {*ROTATED}
    if not others or others - {"keep", "hide", "mask", "padding"} or signature.step is not None:
        return False
    layer = re.search(f"{WORDS['attention']}|{PARTS.pattern}", name, re.IGNORECASE)
    return layer is None and bool(re.search(WORDS["additive"], name, re.IGNORECASE))


def _scores(signature: Signature) -> bool:
    """Whether it returns a number for each query and key, or for each pair of places."""
    back = signature.array_results[0]
    axes = [str(one) for one in back.axes or ()]
    whole = {"D", "E"} & set(back.letters)
    square = "n" in axes or axes.count("(h w)") == 2
    square |= bool(fixed_size(back.axes or ()) or surplus_tokens(back.axes or ()))
    placed = any(role(one) in PLACES for one in signature.arrays)
    row = axes[-1].isdigit() and (placed or (axes[-1] != "1" and axes[:-1] in (["n"], ["B", "n"])))
    return not whole and not row and square  # rows for each place are a table

"""A program whose call is told, as the rotary, attention, bias, additive, mask or layer it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ..numeric.programs.adapters.building import code_of
from ..numeric.programs.adapters.code import Ambiguous, Code, Options
from ..numeric.programs.adapting import adapt, require_settings
from ..numeric.programs.declared import Declared, sizes_declared
from ..numeric.programs.subjects import KINDS, Subject
from . import forms
from .counts import bias, mask
from .program import Program
from .roles import MASKS, PLACES, TABLES, role
from .rotary import rotary
from .signature import Signature, SignatureError, parse
from .tokens import additive, attention, layer

__all__ = ["adapted_as", "kind_of", "subject_of"]

_MADE: dict[str, Callable[[Code, Signature], Subject]] = {
    "rotary": rotary,
    "attention": attention,
    "bias": bias,
    "additive": additive,
    "mask": mask,
    "layer": layer,
}

_GUESSED: dict[str, Callable[[Code], Subject]] = {"rotary": forms.fit}  # by tables of call forms


def subject_of(
    thing: Any, call: str | Signature, kind: str = "", name: str = "", **options: Any
) -> Subject:
    """What the laws call, of code whose call is told.

    ``kind`` is one of rotary, attention, bias, additive, mask, layer; where it is not given the
    signature says which.  ``options`` are those of
    :class:`~attnproof.numeric.programs.adapters.code.Options`, such as ``width`` and ``settings``.

    Raises :class:`SignatureError` for a call that cannot be read, or that the code does not take.

    >>> import torch
    >>> def turned(x, cos, sin):
    ...     u, v = x.chunk(2, -1)
    ...     return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)
    >>> subject_of(turned, "x: B n H D, cos: n 1 D/2, sin: n 1 D/2 -> x").kind
    'rotary'
    """
    signature = parse(call) if isinstance(call, str) else call
    code = code_of(thing, name, Options(**options))
    told = kind or kind_of(signature)
    if told not in KINDS:
        raise SignatureError(f"wanted a kind of code, one of {', '.join(KINDS)}, got {told!r}")
    Program(code.call, signature, code.name)  # refuses names that are no parameters
    return _MADE[told](code, signature)


def adapted_as(
    thing: Any,
    call: str,
    *,
    kind: str | None = None,
    declared: Declared | None = None,
    name: str = "",
    **how: Any,
) -> Subject:
    """What the laws call: by its signature, if one is told; else as it can be called.

    A :class:`Program` has its signature with it.  The rest is that of
    :func:`~attnproof.numeric.programs.adapting.adapt`, which raises what it
    does; and :class:`SignatureError`.
    """
    signature: str | Signature = call
    if isinstance(thing, Program):
        thing, signature = thing.call, call or thing.signature
    if not signature:
        try:
            return adapt(thing, kind=kind, declared=declared, name=name, forms=_GUESSED, **how)
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


def kind_of(signature: Signature) -> str:
    """The kind of code of which this is a call.

    >>> kind_of(parse("q: B H r D, k: B H n D, v: B H n D -> B H r D"))
    'attention'
    >>> kind_of(parse("seq_len = n -> n n keep"))
    'mask'
    """
    roles = {role(one) for one in signature.arrays}
    if (
        roles & {*TABLES, *PLACES}
        and "value" not in roles
        and not any("E" in one.letters for one in signature.arrays)
    ):
        return "rotary"
    if {"query", "key", "value"} <= roles:
        return "attention"
    if not signature.arrays:
        return "mask" if any(one.kind in ("keep", "hide") for one in signature.results) else "bias"
    if any(role(one) in (*MASKS, "mask", "padding") for one in signature.arrays):
        return "attention"
    return "layer"

"""For undeclared code: the mask read off its behaviour, as a declaration, and the laws that use it.

What is observed for a few tokens is then checked for all: code that is causal among twelve tokens
is expected to be causal among any number.  A declaration states what the code should do, and takes
precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from .declarations import DeclaredAttention, parse

if TYPE_CHECKING:
    from .subjects import Subject

LAWS = ("causal", "past-is-used", "window-as-declared", "alignment")
"""The laws checked for a mask that was read off the code."""

IN_ORDER = ("permutation", "order-of-keys")
"""The laws of unordered tokens, which code with a mask by position breaks."""

KINDS = ("attention", "mask", "layer")
"""The kinds of code whose mask is read."""


class Read(Protocol):
    """A property read off the code: name, value, wording, and whether no other value fits."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def words(self) -> str: ...
    @property
    def certain(self) -> bool: ...


def is_to_be_read(subject: Subject, laws: Iterable[str] = ()) -> bool:
    """Whether no mask is declared of this code and one of its laws depends on it.

    ``laws``: the laws asked for by name; empty for all.
    """
    if subject.kind not in KINDS or _is_declared(subject):
        return False
    named = set(laws)
    return not named or bool(named & set(LAWS))


def _is_declared(subject: Subject) -> bool:
    """Whether more is declared than how positions are used, which follows from the call alone."""
    declared = getattr(subject, "declared", None)
    if isinstance(declared, DeclaredAttention) and declared.positions is not None:
        return declared != DeclaredAttention(positions=declared.positions)
    return declared is not None


def mask_as_read(kind: str, parts: Iterable[Read]) -> str:
    """Return a declaration of the mask that was read off the code; "" if no law applies to it.

    No law applies to a mask that shows later keys, nor to one under which every token sees only
    itself.  The alignment of the last query is included if it was read.

    >>> from attnproof.programs.finding import Part
    >>> causal = Part("mask", {"rule": "causal", "after": 0}, "", "")
    >>> mask_as_read("attention", [causal, Part("alignment", "end", "", "")])
    'attention:causal=true,alignment=end'
    """
    parts = tuple(parts)
    known = {part.name: part.value for part in parts if part.certain or _has_own_window(part)}
    told = mask_declared(known, sides=kind == "mask")
    rules = (part.value for part in parts if part.name == "mask")
    if kind != "mask" and any(map(_hides_later_keys, rules)):  # with equally many queries and keys
        told |= {"causal": "true"}
    if kind not in KINDS or told.get("causal") != "true":
        return ""
    stands = known.get("alignment")
    word = "mask" if kind == "mask" else "attention"
    return declaration(word, told | ({"alignment": stands} if stands else {}))


def _has_own_window(part: Read) -> bool:
    """Whether code that is given a causal mask shows a window of earlier keys only."""
    match part.value:
        case {"rule": "window", "before": int(), "after": 0, "given": str()}:
            return part.name == "mask"
    return False


def _hides_later_keys(mask: Any) -> bool:
    """Whether a mask built into the code shows no later key, whatever else it hides."""
    match mask:
        case {"rule": "causal blocks" | "sinks" | "irregular", "ahead": False}:
            return not mask.get("given")
    return False


def hides_by_place(parts: Iterable[Read]) -> str:
    """Describe the mask built into the code that hides keys by position; "" if there is none.

    >>> from attnproof.programs.finding import Part
    >>> hides_by_place([Part("mask", {"rule": "window", "before": 7, "after": 7}, "a window", "")])
    'a window'
    """
    for part in parts:
        match part.value:
            case {"rule": "none" | "context" | "empty"} | {"before": 0, "after": 0}:
                continue
            case {"rule": _} if (
                part.name == "mask" and part.certain and not part.value.get("given")
            ):
                return part.words
    return ""


def with_mask(subject: Subject, as_read: str) -> Subject:
    """Return the same code with the mask that was read off it, so that the laws about it apply.

    >>> import torch
    >>> from attnproof.programs.subjects import Mask
    >>> made = Mask(name="m", mask=lambda T, S: torch.ones(T, S).tril(S - T).bool())
    >>> with_mask(made, "mask:causal=true,alignment=end").as_read.causal
    True
    """
    if not as_read or not is_to_be_read(subject):
        return subject
    mask = parse(as_read)
    if isinstance(mask, DeclaredAttention) and "alignment=" not in as_read:
        mask = replace(mask, alignment="")
    return replace(subject, as_read=mask)  # type: ignore[call-arg]


def with_mask_of(subject: Subject, other: Subject) -> Subject:
    """Return the other code with the mask that was read off the first."""
    mask = getattr(subject, "as_read", None)
    if mask is None or not is_to_be_read(other):
        return other
    return replace(other, as_read=mask)  # type: ignore[call-arg]


def declared_as_read(kind: str, parts: Iterable[Read]) -> str:
    """Return a declaration that states what was read off the code; "" if none fits.

    >>> from attnproof.programs.finding import Part
    >>> declared_as_read("mask", [Part("mask", {"rule": "causal", "after": 0}, "", "")])
    'mask:causal=true'
    """
    parts = tuple(parts)
    known = {part.name: part.value for part in parts if part.certain}
    told: dict[str, Any]
    match kind:
        case "rotary":
            layout = {"half-split": "half"}.get(str(known.get("layout")), known.get("layout"))
            told = {"base": known.get("base"), "layout": layout}
            words = {part.name: part.words for part in parts}
            if not words.get("width", "").startswith("any width"):
                told["width"] = known.get("width")
            if known.get("scaling") not in (None, {"family": "none"}):
                return ""
            kind = "rope"
        case "additive":
            kind, told = "sinusoidal", {"base": known.get("base"), "layout": known.get("layout")}
        case "attention" | "mask" | "layer":
            told = mask_declared(known, sides=kind == "mask")
            kind = "attention" if kind == "layer" else kind
        case _:
            return ""
    return declaration(kind, told) if told and None not in told.values() else ""


def declaration(word: str, told: Mapping[str, Any]) -> str:
    """Return a declaration as it is written: ``rope:base=10000,layout=half``."""
    shown = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in told.items())
    return f"{word}:{','.join(shown)}"


def mask_declared(known: Mapping[str, Any], *, sides: bool) -> dict[str, str]:
    """Return the fields of a declaration that describes a mask; empty if none describes it.

    ``sides``: whether a window on both sides of the query can be declared.
    """
    match known.get("mask"):
        case {"rule": "none"}:
            return {"causal": "false"}
        case {"rule": "causal", "after": 0}:
            told = {"causal": "true"}
        case {"rule": "window", "before": 0, "after": 0}:
            return {}  # every token sees only itself, which nobody intends
        case {"rule": "window", "before": int(before), "after": 0}:
            told = {"causal": "true", "window": str(before + 1)}
        case {"rule": "window", "before": int(before), "after": after} if sides and after == before:
            told = {"causal": "false", "window": str(before + 1)}
        case _:
            return {}
    stands = known.get("alignment")
    if stands == "neither":
        return {}
    return told | ({"alignment": "start"} if stands == "start" else {})

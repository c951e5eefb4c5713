"""What code of which nothing is declared was read to be, as a declaration, and the laws it is for.

What a reading shows of a few tokens is asked for all of them: code that is causal among twelve
tokens is to be causal among any number.  A declaration is what code should be, and comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from .declarations import DeclaredAttention, parse

if TYPE_CHECKING:
    from .subjects import Subject

LAWS = ("causal", "past-is-used", "window-as-declared", "alignment")
"""The laws that are asked of a mask as it was read."""

IN_ORDER = ("permutation", "order-of-keys")
"""The laws of tokens without an order, which no mask by place obeys."""

KINDS = ("attention", "mask", "layer")
"""The kinds of code whose mask is read."""


class Read(Protocol):
    """A part of an identity: its name, its value, its words, and whether no other value fits."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def words(self) -> str: ...
    @property
    def certain(self) -> bool: ...


def is_to_be_read(subject: Subject, laws: Iterable[str] = ()) -> bool:
    """Whether some law of this code hangs on what its mask is, and nothing is declared of it.

    ``laws``: those that are asked by name, none for all.
    """
    if subject.kind not in KINDS or getattr(subject, "declared", None) is not None:
        return False
    named = set(laws)
    return not named or bool(named & set(LAWS))


def mask_as_read(kind: str, parts: Iterable[Read]) -> str:
    """A declaration of the mask that was read of some code; "" where no law is asked of that.

    Nothing is asked of a mask that shows later keys, nor of one by which no tokens meet.  Where the
    last query stands is in it as far as it was read.

    >>> from attnproof.programs.finding import Part
    >>> causal = Part("mask", {"rule": "causal", "after": 0}, "", "")
    >>> mask_as_read("attention", [causal, Part("alignment", "end", "", "")])
    'attention:causal=true,alignment=end'
    """
    parts = tuple(parts)
    known = {part.name: part.value for part in parts if part.certain}
    told = mask_declared(known, sides=kind == "mask")
    rules = (part.value for part in parts if part.name == "mask")
    if kind != "mask" and any(map(_shows_none_ahead, rules)):  # of as many queries as keys
        told |= {"causal": "true"}
    if kind not in KINDS or told.get("causal") != "true":
        return ""
    stands = known.get("alignment")
    word = "mask" if kind == "mask" else "attention"
    return declaration(word, told | ({"alignment": stands} if stands else {}))


def _shows_none_ahead(mask: Any) -> bool:
    """Whether a mask of the code's own shows no later key, whatever else it hides."""
    match mask:
        case {"rule": "causal blocks" | "sinks" | "irregular", "ahead": False}:
            return not mask.get("given")
    return False


def hides_by_place(parts: Iterable[Read]) -> str:
    """What mask of the code's own hides keys by where they stand, in words; "" where none does.

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
    """The same code, to be asked the laws of the mask that was read of it.

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
    """The other code, of which what was read of the first is asked too."""
    mask = getattr(subject, "as_read", None)
    if mask is None or not is_to_be_read(other):
        return other
    return replace(other, as_read=mask)  # type: ignore[call-arg]


def declared_as_read(kind: str, parts: Iterable[Read]) -> str:
    """A declaration of code that says what was read of it; "" where none fits.

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
    """As it is written: ``rope:base=10000,layout=half``."""
    shown = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in told.items())
    return f"{word}:{','.join(shown)}"


def mask_declared(known: Mapping[str, Any], *, sides: bool) -> dict[str, str]:
    """What is to be declared of a mask; nothing of one that no declaration fits.

    ``sides``: whether a window to both sides is compared.
    """
    match known.get("mask"):
        case {"rule": "none"}:
            return {"causal": "false"}
        case {"rule": "causal", "after": 0}:
            told = {"causal": "true"}
        case {"rule": "window", "before": 0, "after": 0}:
            return {}  # tokens that never meet are nothing that is meant
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

"""Which law compares what is declared: what is declared and was not compared must be told.

Every field of every Declared class stands in :data:`COMPARED`.  A field whose law was not decided
for some code is *declared, and not checked* there, and so is one that nothing reads beside what
else is declared (:func:`_unread`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .declarations import DeclaredAdditive, DeclaredBias, DeclaredRotary, parse


@dataclass(frozen=True)
class Compared:
    """What compares one field of a declaration.

    ``law``: the law that has to be decided.  ``part``: a part of the identity that must be read
    beside it, and True; ``alone``: the part compares it, and no law does.  ``run``: whether only
    running the code reads the declaration, and no proof of the law does.  ``unread``: why nothing
    compares it, where that is so of all code.
    """

    law: str
    part: str = ""
    alone: bool = False
    run: bool = False
    unread: str = ""


_LADDER = dict.fromkeys(
    (
        "base",
        "frequencies",
        "scaling",
        "factor",
        "original",
        "low",
        "high",
        "fast",
        "slow",
        "format",
    ),
    Compared("frequencies-as-declared"),
)
_MASKED = {
    "scale": Compared("scale-as-declared"),
    "causal": Compared("causal"),
    "window": Compared("window-as-declared"),
    "hidden_row": Compared("hidden-rows"),
    "alignment": Compared("alignment"),
    "groups": Compared("groups-of-heads", run=True),
    "positions": Compared("translation", "positions of tokens"),
}
_BUCKETS = Compared("buckets-as-declared")
_SLOPES = Compared("slopes-as-declared")
COMPARED: dict[str, dict[str, Compared]] = {
    "rope": _LADDER
    | {
        "layout": Compared("layout-as-declared"),
        "width": Compared("width-as-declared"),
        "length": Compared("length-as-declared"),
    },
    "attention": _MASKED,
    "mask": _MASKED,
    "bias": {
        "name": _SLOPES,
        "slopes": _SLOPES,
        "heads": _SLOPES,
        "buckets": _BUCKETS,
        "distance": _BUCKETS,
        "bidirectional": _BUCKETS,
    },
    "sinusoidal": dict.fromkeys(
        ("base", "frequencies", "layout"), Compared("frequencies-as-declared")
    ),
}
"""The law that compares each field, by the word before the colon."""

_SCALED = {
    "factor": ("linear", "ntk", "yarn", "llama3"),
    "original": ("yarn", "llama3"),
    "low": ("llama3",),
    "high": ("llama3",),
    "fast": ("yarn",),
    "slow": ("yarn",),
}


def compared_by(text: str, kind: str) -> dict[str, Compared]:
    """What compares each thing that is declared of this kind of code, by the words of it.

    The law may be one of another kind of code: then nothing compares it here.

    >>> found = compared_by("attention:causal,scale=0.125", "attention")
    >>> {words: one.law for words, one in found.items()}
    {'causal': 'causal', 'scale=0.125': 'scale-as-declared'}
    >>> compared_by("rope:base=10000,factor=4", "rotary")["factor=4"].unread
    'nothing reads it without scaling=linear, ntk, yarn or llama3'
    """
    if not text:
        return {}
    word, _, rest = text.partition(":")
    said = parse(text)
    written = [part.strip() for part in rest.split(",") if part.strip()]
    fields = {part.partition("=")[0] for part in written}
    found: dict[str, Compared] = {}
    for part in written:
        field = part.partition("=")[0]
        value = getattr(said, field)
        if field == "hidden_row" and value == "any":
            continue  # nothing is declared by it
        if why := _unread(said, field, fields):
            found[part] = Compared(COMPARED[word][field].law, unread=why)
        else:
            found[part] = _compared(word, field, said, kind)
    if isinstance(said, DeclaredAdditive) and said.base and not fields & {"base", "frequencies"}:
        found[f"base={said.base:g}"] = COMPARED[word]["base"]  # it is declared by its default
    return found


def _compared(word: str, field: str, said: Any, kind: str) -> Compared:
    value = getattr(said, field)
    if field == "causal" and value is False:
        return Compared("permutation" if kind == "layer" else "past-is-used")
    if field == "positions" and value == "none":
        return Compared("permutation")
    if field == "positions" and value == "absolute":
        return Compared("translation", "absolute positions", alone=True)
    if word == "bias" and field in ("name", "heads") and (said.name == "t5" or said.buckets):
        return _BUCKETS
    return COMPARED[word][field]


def _unread(said: Any, field: str, fields: set[str]) -> str:
    """Why no code is compared with a field, beside what else is declared; "" where it is."""
    value = getattr(said, field)
    if isinstance(said, DeclaredRotary):
        if field in _SCALED and said.scaling not in _SCALED[field]:
            return f"nothing reads it without scaling={_or(_SCALED[field])}"
        if field in (*_SCALED, "base", "scaling") and said.frequencies is not None:
            return "the frequencies are listed, and they are compared instead"
    elif field == "base" and "frequencies" in fields:
        return "the frequencies are listed, and they are compared instead"
    if isinstance(said, DeclaredBias) and field == "name" and value not in ("alibi", "t5"):
        return "it is not the name of a known bias: alibi or t5"
    return ""


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]

"""Declarations of code such as ``rope:base=500000,layout=half,width=64``, and their laws.

General laws do not notice a wrong base or a doubled angle: such code is a valid encoding, but not
the one intended.  A declaration states the intention, and laws compare the code with it.

Every field of every Declared class is listed in :data:`COMPARED`.  A field is reported as
*declared, and not checked* if its law was not decided for the code, or if nothing reads it given
the other fields (:func:`_unread`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True, kw_only=True)
class DeclaredRotary:
    """``rope:``.  Frequencies are base^(−2i/width) before scaling.

    ``layout``: interleaved or half.  ``width``: the number of rotated channels.  ``scaling``: "",
    linear, ntk, yarn or llama3, with ``factor``, ``original`` (the length before scaling),
    ``low``, ``high`` (llama3's frequency factors), ``fast``, ``slow`` (yarn's betas).
    ``length``: the factor by which vectors become longer (yarn's attention factor), None if it
    follows from the scaling.  ``frequencies``: the frequencies themselves, if no formula gives
    them.  ``format``: the dtype in which angles are computed.  Fields that are None are not
    compared.
    """

    base: float | None = None
    layout: str | None = None
    width: int | None = None
    scaling: str = ""
    factor: float = 1.0
    original: int = 0
    low: float = 1.0
    high: float = 4.0
    fast: float = 32.0
    slow: float = 1.0
    length: float | None = None
    frequencies: tuple[float, ...] | None = None
    format: str = "float32"


@dataclass(frozen=True, kw_only=True)
class DeclaredAttention:
    """``attention:`` and ``mask:``.

    ``scale``: the factor of q·k; None means 1/√D.  ``causal``; ``window``: the number of keys that
    a query sees, including its own.  ``alignment`` of the causal mask for fewer queries than keys:
    end (the last query sees all), start, or "" if not known.
    ``hidden_row``: the output for a query that sees no key: zero, mean, nan or any.
    ``positions``: which positions the code uses itself: none, relative or absolute; None means
    undeclared.
    """

    scale: float | None = None
    causal: bool | None = None
    window: int | None = None
    alignment: str = "end"
    hidden_row: str = "any"
    groups: int | None = None
    positions: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeclaredBias:
    """``bias:``.  ``name``: alibi, t5 or any other word; ``slopes`` default to those of ALiBi."""

    name: str = ""
    heads: int | None = None
    slopes: tuple[float, ...] | None = None
    bidirectional: bool | None = None
    buckets: int | None = None
    distance: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeclaredAdditive:
    """``sinusoidal:``.  Frequencies are base^(−2i/width); ``layout``: interleaved or half."""

    base: float | None = 10000.0
    layout: str | None = None
    frequencies: tuple[float, ...] | None = None


Declared = DeclaredRotary | DeclaredAttention | DeclaredBias | DeclaredAdditive
DECLARED: dict[str, type[Any]] = {
    "rope": DeclaredRotary,
    "attention": DeclaredAttention,
    "mask": DeclaredAttention,
    "bias": DeclaredBias,
    "sinusoidal": DeclaredAdditive,
}


KINDS_OF_CODE: dict[type[Any], tuple[str, ...]] = {
    DeclaredRotary: ("rotary",),
    DeclaredAttention: ("attention", "mask", "layer"),
    DeclaredBias: ("bias",),
    DeclaredAdditive: ("additive",),
}


def declares(declared: Declared | str) -> tuple[str, ...]:
    """The kinds of code to which this declaration can apply, the likeliest first.

    >>> declares("mask:causal"), declares(DeclaredRotary())
    (('mask',), ('rotary',))
    """
    if isinstance(declared, str):
        return ("mask",) if declared.startswith("mask") else declares(parse(declared))
    return KINDS_OF_CODE[type(declared)]


def sizes_declared(declared: Declared) -> dict[str, int]:
    """Return the declared sizes, for code that can be built and called with any, and causality.

    >>> sizes_declared(DeclaredBias(slopes=(0.5, 0.25))), sizes_declared(DeclaredRotary(width=64))
    ({'heads': 2}, {'width': 64})
    """
    found: dict[str, int | None] = {}
    if isinstance(declared, DeclaredRotary):
        width = declared.width
        found["width"] = width if width is None or width % 2 == 0 else width + 1
    if isinstance(declared, DeclaredBias):
        found["heads"] = declared.heads or (len(declared.slopes) if declared.slopes else None)
    if isinstance(declared, DeclaredAttention) and declared.causal:
        found["causal"] = True
    return {name: size for name, size in found.items() if size is not None}


def parse(text: str) -> Declared:
    """Parse a declaration such as ``rope:base=500000,layout=half``.

    List entries are separated by semicolons: ``slopes=0.5;0.25``; ``causal`` alone means
    ``causal=true``.

    Raises ``ValueError`` with what was expected, what was found, and the known names.

    >>> parse("rope:base=500000,layout=half").base
    500000.0
    """
    name, _, rest = text.partition(":")
    if name not in DECLARED:
        raise ValueError(
            f"a declaration begins with one of {', '.join(DECLARED)}, then a colon; got {text!r}"
            f"{_nearest(name, DECLARED)}"
        )
    made: Declared = fields_of(DECLARED[name], name, rest, text)
    try:
        require_sound(made)
    except ValueError as error:
        raise ValueError(f"{error}; it came in {text!r}") from None
    return made


def fields_of(cls: type[Any], name: str, rest: str, text: str) -> Any:
    """Build an object from comma-separated fields in a text.

    Raises ``ValueError`` with what was expected, what was found, and the known names.
    """
    known = {f.name: str(f.type) for f in fields(cls)}
    values: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in rest.split(","))):
        key, has, value = part.partition("=")
        if key not in known:
            raise ValueError(
                f"{name} declares {', '.join(known)}; got {key!r} in {text!r}{_nearest(key, known)}"
            )
        values[key] = _read(known[key], value if has else "true", part)
    return cls(**values)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=2, cutoff=0.5)
    return f"; nearest: {', '.join(near)}" if near else ""


def _read(kind: str, value: str, part: str) -> Any:
    try:
        if kind.startswith("tuple"):
            return tuple(float(v) for v in value.split(";"))
        if kind.startswith("bool"):
            return {"true": True, "yes": True, "false": False, "no": False}[value.lower()]
        if kind.startswith("int"):
            return int(value)
        return float(value) if kind.startswith("float") else value
    except (KeyError, ValueError):
        wanted = kind.split(" |", 1)[0].replace("tuple[float, ...]", "numbers separated by ;")
        raise ValueError(f"wanted {wanted}, got {value!r} in {part!r}") from None


ALLOWED_VALUES = {
    "layout": (None, "interleaved", "half"),
    "scaling": ("", "linear", "ntk", "yarn", "llama3"),
    "alignment": ("end", "start"),
    "hidden_row": ("any", "zero", "mean", "nan"),
    "positions": (None, "none", "relative", "absolute"),
    "format": ("float64", "float32", "float16", "bfloat16"),
}


# Counts and factors are above 0; other numbers may be anything finite.
ABOVE_ZERO = ("base", "width", "factor", "low", "high", "fast", "slow", "length", "window",
              "groups", "heads", "buckets", "distance")  # fmt: skip


def require_sound(made: Declared) -> None:
    """Refuse values that no code can have.  Raises ``ValueError`` with the field and its value.

    >>> require_sound(DeclaredRotary(base=-1.0))
    Traceback (most recent call last):
    ValueError: base is above 0; got -1.0
    """
    for name, allowed in ALLOWED_VALUES.items():
        value = getattr(made, name, allowed[0])
        if value not in allowed:
            words = [a for a in allowed if a]
            near = _nearest(str(value), words)
            raise ValueError(f"{name} is one of {', '.join(words)}; got {value!r}{near}")
    for f in fields(made):
        value = getattr(made, f.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(math.isfinite(n) for n in numbers if isinstance(n, int | float)):
            raise ValueError(f"{f.name} is finite; got {value!r}")
        if f.name in ABOVE_ZERO and value is not None and value <= 0:
            raise ValueError(f"{f.name} is above 0; got {value!r}")
    if isinstance(made, DeclaredRotary) and made.scaling in ("yarn", "llama3"):
        told = f"scaling {made.scaling} wants original, the length before scaling"
        if made.frequencies is None and made.original <= 0:
            raise ValueError(f"{told}; got {made.original}")


@dataclass(frozen=True)
class Compared:
    """How one field of a declaration is compared with the code.

    ``law``: the law that has to be decided.  ``part``: a part of the identity that must be read as
    True besides; ``part_only``: the part compares the field, and the law does not.  ``run``: only
    runs of the code use the declaration, proofs of the law do not.  ``unread``: why nothing
    compares the field for any code.
    """

    law: str
    part: str = ""
    part_only: bool = False
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
    """Return, for each declared field as written, what compares it for this kind of code.

    The law may be one of another kind of code; then nothing compares the field here.

    >>> found = compared_by("attention:causal,scale=0.125", "attention")
    >>> {words: one.law for words, one in found.items()}
    {'causal': 'causal', 'scale=0.125': 'scale-as-declared'}
    >>> compared_by("rope:base=10000,factor=4", "rotary")["factor=4"].unread
    'it is used only with scaling=linear, ntk, yarn or llama3'
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
            continue  # "any" declares nothing
        if why := _unread(said, field, fields):
            found[part] = Compared(COMPARED[word][field].law, unread=why)
        else:
            found[part] = _compared(word, field, said, kind)
    if isinstance(said, DeclaredAdditive) and said.base and not fields & {"base", "frequencies"}:
        found[f"base={said.base:g}"] = COMPARED[word]["base"]  # declared by default
    return found


def _compared(word: str, field: str, said: Any, kind: str) -> Compared:
    value = getattr(said, field)
    if field == "causal" and value is False:
        return Compared("permutation" if kind == "layer" else "past-is-used")
    if field == "positions" and value == "none":
        return Compared("permutation")
    if field == "positions" and value == "absolute":
        return Compared("translation", "absolute positions", part_only=True)
    if word == "bias" and field in ("name", "heads") and (said.name == "t5" or said.buckets):
        return _BUCKETS
    return COMPARED[word][field]


def _unread(said: Any, field: str, fields: set[str]) -> str:
    """Return why nothing reads a field, given the other declared fields; "" if it is compared."""
    value = getattr(said, field)
    if isinstance(said, DeclaredRotary):
        if field in _SCALED and said.scaling not in _SCALED[field]:
            return f"it is used only with scaling={_any_of(_SCALED[field])}"
        if field in (*_SCALED, "base", "scaling") and said.frequencies is not None:
            return "the frequencies are listed, and they are compared instead"
    elif field == "base" and "frequencies" in fields:
        return "the frequencies are listed, and they are compared instead"
    if isinstance(said, DeclaredBias) and field == "name" and value not in ("alibi", "t5"):
        return "it is not the name of a known bias: alibi or t5"
    return ""


def _any_of(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]

"""What code is declared to be: ``rope:base=500000,layout=half,width=64``.

Laws alone do not see a wrong base or a doubled angle: such code is a valid encoding that is not
the declared one.  So what is declared is written down, and compared.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["DECLARED", "Declared", "DeclaredAdditive", "DeclaredAttention", "DeclaredBias",
           "DeclaredRotary", "parse"]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DeclaredRotary:
    """``rope:``.  Frequencies are base^(−2i/width) before scaling.

    ``layout``: interleaved or half.  ``width``: how many channels turn.  ``scaling``: "", linear,
    ntk, yarn or llama3, with ``factor``, ``original`` (the length before scaling),
    ``low``, ``high`` (llama3's frequency factors), ``fast``, ``slow`` (yarn's betas).
    ``length``: how many times longer a vector becomes (yarn's attention factor), None where that
    follows from the scaling.  ``frequencies``: the ladder itself, where no formula gives it.
    ``format``: the dtype in which angles are computed.  What is None is not compared.
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

    ``scale``: what q·k is multiplied with; None is 1/√D where nothing else is said.  ``causal``,
    ``window`` (how many keys a query sees, itself among them), ``alignment`` of the causal mask
    where there are fewer queries than keys: end (the last query sees all) or start.
    ``hidden_row``: what a query that sees no key reads: zero, mean, nan or any.
    ``positions``: what the code looks at by itself: none, relative or absolute; None is not said.
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
    """``bias:``.  ``name``: alibi, t5, or any other word; slopes as published for the heads."""

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
    "rope": DeclaredRotary, "attention": DeclaredAttention, "mask": DeclaredAttention,
    "bias": DeclaredBias, "sinusoidal": DeclaredAdditive,
}  # fmt: skip


def parse(text: str) -> Declared:
    """What a text such as ``rope:base=500000,layout=half`` declares.

    A list is written with semicolons: ``slopes=0.5;0.25``; ``causal`` alone means ``causal=true``.

    Raises ``ValueError`` that names what was wanted, what came, and what there is.

    >>> parse("rope:base=500000,layout=half").base
    500000.0
    """
    name, _, rest = text.partition(":")
    if name not in DECLARED:
        raise ValueError(f"declared is one of {', '.join(DECLARED)}, then a colon; got {text!r}")
    cls = DECLARED[name]
    known = {f.name: str(f.type) for f in fields(cls)}
    values: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in rest.split(","))):
        key, has, value = part.partition("=")
        if key not in known:
            raise ValueError(f"{name} declares {', '.join(known)}; got {key!r} in {text!r}")
        values[key] = _read(known[key], value if has else "true", part)
    made: Declared = cls(**values)
    _check(made, text)
    return made


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
        wanted = kind.split(" |", 1)[0].replace("tuple[float, ...]", "numbers with ; between")
        raise ValueError(f"wanted {wanted}, got {value!r} in {part!r}") from None


CHOICES = {
    "layout": (None, "interleaved", "half"),
    "scaling": ("", "linear", "ntk", "yarn", "llama3"),
    "alignment": ("end", "start"),
    "hidden_row": ("any", "zero", "mean", "nan"),
    "positions": (None, "none", "relative", "absolute"),
    "format": ("float64", "float32", "float16", "bfloat16"),
}


def _check(made: Declared, text: str) -> None:
    for name, allowed in CHOICES.items():
        value = getattr(made, name, allowed[0])
        if value not in allowed:
            told = ", ".join(str(a) for a in allowed if a)
            raise ValueError(f"{name} is one of {told}; got {value!r} in {text!r}")

"""What an assertion is given: laws, legs, seed, dtype and a declaration, and the code's name.

What is not known is refused with a ``ValueError`` in one sentence, the nearest names in it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..usage import UsageError, require_known
from .asked import DTYPES, LEGS, SAME

if TYPE_CHECKING:
    import torch

    from ..programs.declared import Declared

SHORT = 60  # characters of an argument that is shown as it is


def known_laws(laws: Iterable[str], kind: str) -> tuple[str, ...]:
    """The ids of laws of this kind of code, each once.  Raises ``ValueError``.

    >>> known_laws("relatve", "rotary")
    Traceback (most recent call last):
    ValueError: wanted a law of rotary code, got 'relatve'; nearest: relative
    """
    from ..theorems.laws import LAWS as CODE_LAWS
    from ..theorems.laws import laws_of

    __tracebackhide__ = True
    named = (laws,) if isinstance(laws, str) else tuple(dict.fromkeys(laws))
    known = [law.id for law in laws_of(kind)]
    about = {law.id: law.about for law in CODE_LAWS}
    for name in named:
        if name in about and name not in known:
            whose = " and ".join(about[name])
            raise ValueError(f"wanted a law of {kind} code, got {name!r}, which is a law of "
                             f"{whose} code; {', '.join(known)}")  # fmt: skip
    try:
        require_known(named, known, f"a law of {kind} code", "`attnproof list --code-laws`")
    except UsageError as error:
        raise ValueError(str(error)) from None
    return named


def known_legs(legs: Iterable[str]) -> tuple[str, ...]:
    """Ways to look, in the order they run.  Raises ``ValueError``."""
    __tracebackhide__ = True
    named = (legs,) if isinstance(legs, str) else tuple(legs)
    for name in named:
        if name not in LEGS:
            raise ValueError(f"wanted a way to look, got {name!r}; {', '.join(LEGS)}")
    return tuple(leg for leg in LEGS if leg in named)


def known_seed(seed: Any) -> int:
    """A seed.  Raises ``ValueError``."""
    __tracebackhide__ = True
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"wanted a seed, a whole number from 0 on, got {seed!r}")
    return seed


def settings_of(words: Iterable[str]) -> dict[str, Any]:
    """Settings of a constructor, as they are written; what is no literal of Python is a text.

    ``config.width=8`` is a part of the argument ``config``.  Raises ``ValueError``.

    >>> settings_of(["heads=4", "sizes=(4, 4)", "kind=causal", "bias=False"])
    {'heads': 4, 'sizes': (4, 4), 'kind': 'causal', 'bias': False}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, has, text = word.partition("=")
        if not (has and all(part.isidentifier() for part in name.split("."))):
            raise ValueError(f"wanted a setting NAME=VALUE, such as hidden_size=64, got {word!r}")
        if name in found:
            raise ValueError(f"wanted each setting once, got {name} twice")
        try:
            found[name] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = text
    return found


def known_dtype(dtype: str | torch.dtype) -> str:
    """The name of a dtype that inputs can be drawn in.  Raises ``ValueError``."""
    __tracebackhide__ = True
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"wanted a dtype to draw inputs in, got {dtype!r}; {', '.join(DTYPES)}")
    return name


def as_written(declared: str | Declared) -> str:
    """What is declared, as it is written on a command line."""
    if isinstance(declared, str):
        return declared
    from dataclasses import fields

    from ..programs.declared import DECLARED

    word = next(name for name, kind in DECLARED.items() if isinstance(declared, kind))
    parts = []
    for f in fields(declared):
        value = getattr(declared, f.name)
        if value != f.default:
            text = ";".join(map(repr, value)) if isinstance(value, tuple) else str(value)
            parts.append(f"{f.name}={text}")
    return f"{word}:{','.join(parts)}"


def target_of(code: Any, how: dict[str, Any]) -> str:
    """What ``attnproof check`` would be given: FILE::NAME where that is all that it has to know.

    Else the arguments of a call in angle brackets.  An object is made by lines that are not known
    here, so that it is told as the same object, with those of its sizes that it keeps under the
    names of its constructor.
    """
    name = getattr(code, "__qualname__", "")
    module = sys.modules.get(str(getattr(code, "__module__", "")))
    file = getattr(module, "__file__", None)
    there = bool(name and file and _at(module, name) is code)
    if there and not how:
        return f"{file}::{name}"
    given = "".join(f", {key}={_shown(value)}" for key, value in how.items())
    return f"<{name}{given}>" if there else f"{SAME}{_object(code)}>{given}"


def _at(module: object, name: str) -> Any:
    """What stands in a module under a name such as ``Rope.turn``; None if nothing does."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _object(code: Any) -> str:
    """An object in words: its class and sizes, or its name and the line where it stands."""
    name = getattr(code, "__qualname__", "")
    if name:
        place = getattr(getattr(code, "__func__", code), "__code__", None)
        at = f" of {Path(place.co_filename).name}:{place.co_firstlineno}" if place else ""
        return f"{name.rpartition('<locals>.')[2].strip('<>')}{at}"
    sizes = [f"{size}={value!r}" for size, value in _sizes(code)]
    return type(code).__qualname__.rpartition("<locals>.")[2] + (
        f" with {', '.join(sizes)}" if sizes else ""
    )


def _sizes(code: Any) -> list[tuple[str, Any]]:
    """Numbers that the object keeps under the names of its constructor; what is usual is left."""
    try:
        wanted = inspect.signature(type(code)).parameters.values()
    except (TypeError, ValueError):  # built in
        return []
    kept = vars(code) if hasattr(code, "__dict__") else {}
    found = ((one.name, kept.get(one.name), one.default) for one in wanted)
    return [(name, value) for name, value, usual in found
            if isinstance(value, int | float) and value != usual]  # fmt: skip


def _shown(value: Any) -> str:
    """An argument as it is written, if it can be: else the same one."""
    told = repr(value)
    short = len(told) <= SHORT or isinstance(value, str)
    plain = short and told.isprintable() and "<" not in told
    return told if plain else f"{SAME}{_object(value)}>"


def file_of(code: Any) -> str:
    """The file that code stands in; empty for what is built in, or typed into a session."""
    try:
        code = inspect.unwrap(code) if callable(code) else code  # a Program wraps what it calls
        known = inspect.isroutine(code) or inspect.isclass(code)
        return inspect.getfile(code if known else type(code))
    except (OSError, TypeError):
        return ""

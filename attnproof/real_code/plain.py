"""Plain data: what code and its laws hand over, made fit for JSON and for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST = 4096  # characters of a text, entries of a list: a witness should be small enough to read
DEEP = 8


def plain(value: Any, deep: int = 0) -> Any:
    """A value as None, truth, number, text, list or dictionary; NaN and infinities are words.

    Arrays become nested lists; what is none of these becomes its text.

    >>> plain({"x": (1, float("nan")), 2: {0.5}})
    {'x': [1, 'nan'], '2': '{0.5}'}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return readable(value)[:MOST]
    if deep < DEEP:
        if isinstance(value, Mapping):
            return {readable(str(k)): plain(v, deep + 1) for k, v in list(value.items())[:MOST]}
        if isinstance(value, list | tuple):
            return [plain(v, deep + 1) for v in value[:MOST]]
        if hasattr(value, "tolist") and getattr(value, "size", None) is not None:
            return plain(_listed(value), deep + 1)
    return readable(_text(value))[:MOST]


def number(value: Any) -> float | str | None:
    """A number of a finding: None, a finite float, or the word non-finite.

    >>> number(2), number(float("inf")), number(None)
    (2.0, 'non-finite', None)
    """
    if value is None or isinstance(value, str):
        return value
    real = float(value)
    return real if math.isfinite(real) else "non-finite"


def readable(text: str) -> str:
    r"""A text without what would steer a terminal.

    >>> readable("a\x1b[31mb\tc")
    'a?[31mb c'
    """
    kept = text.expandtabs(1) if "\t" in text else text
    return "".join(c if c == "\n" or c.isprintable() else "?" for c in kept)


def one_line(text: str, most: int = 400) -> str:
    r"""A text in one line, cut where it is long.

    >>> one_line("two\nlines")
    'two lines'
    """
    line = readable(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 2] + " …"


def raised(error: BaseException) -> str:
    """What code raised, in a line; leaving by ``sys.exit`` is told as that.

    >>> raised(ValueError("no")), raised(SystemExit(3))
    ('the code raised ValueError: no', 'the code left by sys.exit(3)')
    """
    if isinstance(error, SystemExit):
        return f"the code left by sys.exit({'' if error.code is None else error.code!r})"
    told = one_line(_text(error))
    return f"the code raised {type(error).__name__}" + (f": {told}" if told else "")


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 (any code may raise anything)
        return f"<{type(value).__name__} whose text raised {type(error).__name__}>"


def _listed(array: Any) -> Any:
    try:
        return array.tolist()
    except Exception:  # noqa: BLE001 (a tensor of a strange kind; its text must do)
        return _text(array)

"""Errors that are planted in code of attnproof: their frames are those of a file of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attnproof

ROOT = Path(attnproof.__file__).resolve().parent.parent
KIND = "KeyError"


def planted(file: str, statement: str = "{}['planted']") -> Callable[..., Any]:
    """A function that raises by accident, as if it stood in this file of attnproof.

    >>> planted("symbolic/prove.py").__code__.co_filename.endswith("symbolic/prove.py")
    True
    """
    space: dict[str, Any] = {}
    text = f"def failing(*given, **named):\n    {statement}\n"
    exec(compile(text, str(ROOT / file), "exec"), space)
    failing: Callable[..., Any] = space["failing"]
    return failing

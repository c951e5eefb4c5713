"""What code asks for although only numbers could answer, and what it keeps from call to call.

A symbolic array refuses a truth value, a length, a hash.  Code that catches the refusal, asks for a
class, for a method that is not there or for the text of an array, and goes on, does one thing on
symbols and may do another on numbers, at sizes and values that nobody tries; code that counts its
calls may do another thing later.  So a body is refused after which something was asked or changed,
whatever it returned.

What is not seen: a question that no array hears, such as ``xp is numpy`` or, of code that knows
what a symbolic array is, ``isinstance(x, Array)``.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dis import get_instructions
from functools import cache
from itertools import pairwise
from pathlib import Path
from sysconfig import get_path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType
from typing import Any
from warnings import catch_warnings, simplefilter

__all__ = ["arrays_only", "ask", "ask_from", "asks_type", "marks"]

PYTHON = ("<frozen ", str(Path(get_path("stdlib")) / "functools.py"))  # abc, singledispatch
_ASKED: ContextVar[list[str] | None] = ContextVar("what was asked in this run", default=None)


def ask(what: str) -> None:
    """Keep in mind that this was asked."""
    asked = _ASKED.get()
    if asked is not None:
        asked.append(what)


def ask_from(what: str) -> None:
    """The same, if code of an author asked, be it through Python's own; not ours, nor a library."""
    if _ASKED.get() is None:
        return
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (the one public way costs 20 times more)
    while frame is not None and frame.f_code.co_filename.startswith(PYTHON):
        frame = frame.f_back
    if frame is not None and _is_authors(frame.f_code.co_filename):
        ask(what)


@contextmanager
def arrays_only(who: str, *roots: Any) -> Iterator[None]:
    """Refuse code that asks for what is no array, or changes what can be reached from the roots.

    Raises ``TypeError`` where what is done here ends without an error of its own.

    >>> from attnproof.symbolic import equal, real, theorem
    >>> @theorem("A number is itself", given={"x": real()})
    ... def same(x):
    ...     return equal(x if isinstance(x, float) else x, x)
    >>> same.statement  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: ...: the code asks for the class of a symbolic array (isinstance), and goes on: ...
    """
    from .bodies import Links

    before = Links(*roots)
    asked = ["the class of an array (type)"] if before.types else []
    token = _ASKED.set(asked)
    try:
        yield
    finally:
        _ASKED.reset(token)
    if asked:
        raise TypeError(
            f"{who}: the code asks for {asked[0]}, and goes on: on numbers it may do something "
            "else than on symbols; write one line of array code for both"
        )
    if before.held != Links(*roots).held:
        raise TypeError(f"{who}: it keeps something from call to call; compute everything anew")


def marks(thing: Any, parts: tuple[Any, ...]) -> tuple[object, ...]:
    """What shows that a thing has changed although it holds the same, or nothing that is seen."""
    if isinstance(thing, FunctionType):
        return tuple((name, id(value)) for name, value in vars(thing).items())
    if parts or isinstance(thing, str | int | float | complex | bytes | None | BuiltinFunctionType):
        return ()
    with catch_warnings(), suppress(Exception):
        simplefilter("ignore")
        return (pickle.dumps(thing),)
    return ()


def asks_type(thing: FunctionType) -> bool:
    """Whether a function, or one inside it, takes ``type`` of something that is not ``self``."""
    if "type" in thing.__globals__ or not _is_authors(thing.__code__.co_filename):
        return False
    return _types_in(thing.__code__)


@cache
def _types_in(code: CodeType) -> bool:
    inner = any(_types_in(const) for const in code.co_consts if isinstance(const, CodeType))
    if inner or "type" not in code.co_names:
        return inner
    steps = [one for one in get_instructions(code) if one.opname not in ("PUSH_NULL", "CACHE")]
    return any(
        one.opname == "LOAD_GLOBAL" and one.argval == "type"
        and not (after.opname.startswith("LOAD_FAST") and after.argval in ("self", "cls"))
        for one, after in pairwise(steps)
    )  # fmt: skip


@cache
def _is_authors(file: str) -> bool:
    from .bodies import is_library

    return not is_library(file)

"""Code of others: something to call, how to build it again, where it stands and what beside it."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn


class DoesNotFit(Exception):
    """An adapter cannot call this code; the text says why."""


class Ambiguous(DoesNotFit):
    """Two calls of this code fit, and do not mean the same; the text shows both."""


class NoSetting(TypeError):
    """The code cannot be built with the setting that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user says about code that its signature does not.

    ``width``, ``heads``, ``groups``, ``embed``, ``most``: sizes.  ``arguments``: of every call;
    ``settings``: of the constructor.
    ``likely``: sizes, by name, for code that takes any: those that are declared of it.
    """

    width: int = 0
    heads: int = 0
    groups: int = 0
    embed: int = 0
    most: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    likely: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Code:
    """Something to call.

    ``again`` builds it anew, with other settings if any are given (``NoSetting`` where it cannot).
    ``space``: the names of the file it stands in.  ``text``: its source, where there is one.
    ``place``: file and line.  ``built``: the arguments it was constructed with.
    """

    name: str
    call: Callable[..., Any]
    again: Callable[..., Code]
    module: nn.Module | None = None
    space: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    place: str = ""
    built: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    maker: Callable[..., Any] | None = None  # the function that built it, where no class did


def can_be_called(thing: Any) -> bool:
    """Whether an object can be called: of a module it takes a ``forward`` of its own.

    A method that its ``__init__`` calls ``forward`` is one where its class says what it does: what
    it inherits is what a base does for all of its kinds, which may be nothing.

    >>> can_be_called(nn.Module()), can_be_called(nn.ReLU()), can_be_called(3)
    (False, True, False)
    """
    bare = isinstance(thing, nn.Module) and type(thing).forward is nn.Module.forward
    given = getattr(vars(thing).get("forward"), "__name__", "") if bare else ""
    return callable(thing) and (not bare or given in vars(type(thing)))


def alike(one: str, other: str) -> int:
    """How many letters two names begin with together.

    >>> alike("LlamaConfig", "LlamaAttention")
    5
    """
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def source_of(thing: Any) -> str:
    """The source of a function, or of the class of an object; "" where there is none."""
    return _source(_written(thing))[0]


def place_of(thing: Any) -> str:
    """``file:line`` of a function, or of the class of an object."""
    return _source(_written(thing))[1]


def _written(thing: Any) -> Any:
    return thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)


@functools.lru_cache(16)  # of a class Python parses the whole file, each time it is asked
def _source(target: Any) -> tuple[str, str]:
    """The source of a function or class, and the place where it stands; "" where there is none."""
    try:
        text = inspect.getsource(inspect.unwrap(target))
    except (OSError, TypeError):
        text = ""
    try:
        place = f"{inspect.getsourcefile(target)}:{inspect.getsourcelines(target)[1]}"
    except (OSError, TypeError):
        place = ""
    return text, place


def beside(thing: Any) -> Mapping[str, Any]:
    """The names of the file in which a function, a class or the class of an object stands."""
    if isinstance(thing, functools.partial):
        return beside(thing.func)
    if inspect.ismethod(thing):
        return beside(thing.__self__)
    inner = inspect.unwrap(thing) if callable(thing) and not isinstance(thing, nn.Module) else thing
    if isinstance(inner, types.FunctionType):
        return inner.__globals__
    cls = inner if inspect.isclass(inner) else type(inner)
    for name in ("forward", "__init__", "__call__"):
        method = inspect.unwrap(cls.__dict__[name]) if name in cls.__dict__ else None
        if isinstance(method, types.FunctionType):
            return method.__globals__
    module = sys.modules.get(cls.__module__)
    return vars(module) if module is not None else {}

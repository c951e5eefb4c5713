"""Where a function or a class is written, and what stands beside it there."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Mapping
from typing import Any

from torch import nn

__all__ = ["alike", "beside", "place_of", "source_of"]


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

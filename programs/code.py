"""User code: what to call, how to build it again, its source, and the names of its file."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn


class DoesNotFit(Exception):
    """The code cannot be called as this adapter expects; the message says why."""


class Ambiguous(DoesNotFit):
    """Two calls of this code fit but differ in meaning; the message shows both."""


class NoSetting(TypeError):
    """The code cannot be built with the requested setting."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user states about code beyond its signature.

    ``width``, ``heads``, ``groups``, ``embed``, ``most``: sizes.  ``arguments``: of every call;
    ``settings``: of the constructor.
    ``likely``: declared sizes by name, used for code that takes any size.
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
    """Something to call, with what is needed to build it again and to read its source.

    ``again`` builds it anew, with other settings if any are given (raises ``NoSetting`` if it does
    not take them).  ``space``: the global names of its file.  ``text``: its source, "" if there is
    none.  ``place``: file and line.  ``built``: the arguments it was constructed with.
    ``converted``: what of it was converted, as a clause; "" if it is as it was built.  ``stored``:
    the formats from which it was converted.  ``uncompiled``: names of other code of its file that
    ``torch.compile`` is known not to wrap.
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
    maker: Callable[..., Any] | None = None  # the function that built it, if not its class
    converted: str = ""
    stored: tuple[str, ...] = ()
    uncompiled: frozenset[str] = frozenset()

    @property
    def has_parameters(self) -> bool:
        """Whether it has parameters; a layer named after one of its parts has them."""
        return self.module is not None and any(True for _ in self.module.parameters())

    def changed(self, change: Callable[[Code], Code], **fields: Any) -> Code:
        """Return the code with other fields, and with this change whenever it is built again."""

        def again(**settings: Any) -> Code:
            return change(self.again(**settings))

        return replace(self, again=again, **fields)


def can_be_called(thing: Any) -> bool:
    """Whether an object can be called; a module needs a ``forward`` of its own.

    A method that ``__init__`` assigns to ``forward`` counts only if the module's own class defines
    it: an inherited one may be a placeholder of the base class.

    >>> can_be_called(nn.Module()), can_be_called(nn.ReLU()), can_be_called(3)
    (False, True, False)
    """
    bare = isinstance(thing, nn.Module) and type(thing).forward is nn.Module.forward
    given = getattr(vars(thing).get("forward"), "__name__", "") if bare else ""
    return callable(thing) and (not bare or given in vars(type(thing)))


def common_prefix(one: str, other: str) -> int:
    """The length of the common prefix of two names.

    >>> common_prefix("LlamaConfig", "LlamaAttention")
    5
    """
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def source_of(thing: Any) -> str:
    """The source of a function, or of the class of an object and its bases in the same file.

    It is "" if there is none.
    """
    target = _written(thing)
    if not inspect.isclass(target) or target.__module__.startswith("torch."):
        return text_and_place(target)[0]
    near = (one for one in target.__mro__ if one.__module__ == target.__module__)
    return "\n".join(filter(None, (text_and_place(one)[0] for one in near)))


def place_of(thing: Any) -> str:
    """``file:line`` of a function, or of the class of an object; "" if there is none."""
    return text_and_place(_written(thing))[1]


def _written(thing: Any) -> Any:
    return thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)


@functools.lru_cache(16)  # for a class, inspect parses the whole file on each call
def text_and_place(target: Any) -> tuple[str, str]:
    """The source of a function or class, and its place; "" for both if it is not found."""
    target = inspect.unwrap(target)
    try:
        lines, first = inspect.getsourcelines(target)
    except (OSError, TypeError):
        return "", ""
    return "".join(lines), f"{inspect.getsourcefile(target)}:{first}"


def globals_of(thing: Any) -> Mapping[str, Any]:
    """The global names of the file that defines a function, a class or the class of an object."""
    if isinstance(thing, functools.partial):
        return globals_of(thing.func)
    if inspect.ismethod(thing):
        return globals_of(thing.__self__)
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

"""What an adapter is given: something to call, how to build it again, what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

__all__ = ["Ambiguous", "Code", "DoesNotFit", "NoSetting", "Options"]


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

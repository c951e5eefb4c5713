"""A program: a callable with its signature, called with arrays by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from torch import Tensor

from .signature import Argument, Axis, Signature, SignatureError

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """Something to call, and its signature.

    Parameters are given by their names.  Where it has none of these names they are given in the
    order in which they are written.
    """

    call: Callable[..., Any]
    signature: Signature
    name: str = "it"
    by_name: bool = field(init=False)

    def __post_init__(self) -> None:
        """Raises :class:`SignatureError` for a parameter that there is not."""
        names = [one.name for one in self.signature.arguments]
        object.__setattr__(self, "by_name", _by_name(self.call, names, self.name))

    def __call__(self, arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> dict[str, Tensor]:
        """What it returns, by the names of the results ("0", "1", .. without one)."""
        given = {one.name: _value(one, arrays, lengths) for one in self.signature.arguments}
        return self._results(self.call(**given) if self.by_name else self.call(*given.values()))

    def _results(self, found: Any) -> dict[str, Tensor]:
        results = self.signature.results
        if self.signature.mapping:
            try:
                values = [found[one.name] for one in results]
            except (TypeError, KeyError, IndexError):
                raise SignatureError(
                    f"wanted a mapping with {', '.join(r.name for r in results)} "
                    f"back, got {_short(found)}"
                ) from None
        elif isinstance(found, tuple | list):
            values = list(found)
            if len(values) != len(results):
                raise SignatureError(
                    f"wanted {len(results)} back, got {_short(found)}; write _ "
                    "for what is to be left aside"
                )
        else:
            values = [found]
            if len(results) > 1:
                raise SignatureError(f"wanted {len(results)} back, got {_short(found)}")
        told = {}
        for k, (one, value) in enumerate(zip(results, values, strict=True)):
            if one.axes is None:
                continue
            if not isinstance(value, Tensor):
                raise SignatureError(f"wanted an array {one} back, got {_short(value)}")
            told[one.name or str(k)] = value
        return told


def _by_name(call: Callable[..., Any], names: list[str], told: str) -> bool:
    """Whether arguments are given by these names; in their order, where it knows none of them."""
    target = getattr(call, "forward", call)
    try:
        found = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return False
    known = [one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    more = any(one.kind == one.VAR_KEYWORD for one in found)
    unknown = [name for name in names if name not in known]
    if not unknown or (more and len(unknown) < len(names)):
        return True
    if len(unknown) == len(names):
        return False
    near = get_close_matches(unknown[0], known, n=1) or known
    raise SignatureError(f"{told} has no parameter {unknown[0]!r}; nearest: {', '.join(near)}")


def _value(one: Argument, arrays: Mapping[str, Any], lengths: Mapping[str, int]) -> Any:
    if one.parts:
        return tuple(_value(part, arrays, lengths) for part in one.parts)
    if one.axes is not None:
        return arrays[one.name]
    return one.value.size(lengths) if isinstance(one.value, Axis) else one.value


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"one array of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__

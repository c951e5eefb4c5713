"""A function with memories of its own: what it keeps is copied, and copied again."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import types
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..constructors import configs_for
from .code import Code, NoSetting, Options
from .roles import parameters, role_of
from .sources import place_of, source_of

__all__ = ["code_of_function"]


def code_of_function(function: types.FunctionType, name: str, options: Options) -> Code:
    """A function with memories of its own: what it keeps in its file, or in defaults, is copied."""
    space = inspect.unwrap(function).__globals__
    kept = _apart(function)
    text, place = source_of(function), place_of(function)
    configs = configs_for(function, options, space)

    def again(**settings: Any) -> Code:
        if settings:
            known = parameters(kept)
            named = {
                one.name: value for key, value in settings.items() for one in known
                if one.name == key or (one.role and one.role == role_of(key))
            }  # fmt: skip
            if len(named) < len(settings):
                raise NoSetting(f"{name} takes {', '.join(p.name for p in known)}, and not "
                                f"{', '.join(settings)}")  # fmt: skip
            more = dataclasses.replace(options, arguments={**options.arguments, **named})
            return code_of_function(kept, name, more)
        call = _with(_apart(kept), {**configs, **options.arguments}, hidden=configs)
        return Code(name=name, call=call, again=again, space=space, options=options,
                    text=text, place=place, built=configs)  # fmt: skip

    return again()


def _with(
    function: types.FunctionType, values: Mapping[str, Any], hidden: Mapping[str, Any]
) -> Any:
    """The function, given these values in every call; it is not seen to take the hidden ones."""
    known = {one.name for one in parameters(function)}
    fixed = {name: value for name, value in values.items() if name in known}
    if not fixed:
        return function

    @functools.wraps(function)
    def given(*args: Any, **named: Any) -> Any:
        return function(*args, **{**named, **fixed})

    if hidden:
        told = inspect.signature(function)
        left = [one for name, one in told.parameters.items() if name not in hidden]
        after = {one.name: one for one in left}
        given.__signature__ = told.replace(parameters=[  # by name: what stood before is gone
            one.replace(kind=one.KEYWORD_ONLY)
            if one.kind == one.POSITIONAL_OR_KEYWORD else one for one in after.values()
        ])  # type: ignore[attr-defined]  # fmt: skip
    return given


def _apart(function: types.FunctionType) -> types.FunctionType:
    """The same function, in a copy of its file's names."""
    if hasattr(function, "__wrapped__") or function.__globals__.get("__name__", "").startswith(
        ("torch", "transformers")
    ):
        return function
    names = function.__globals__
    fresh: dict[str, Any] = {}
    for key, value in names.items():
        own = isinstance(value, types.FunctionType) and value.__globals__ is names
        if own and not hasattr(value, "__wrapped__"):
            fresh[key] = _in(value, fresh)
        elif hasattr(value, "cache_parameters") and getattr(
            value.__wrapped__, "__globals__", None
        ) is names:  # fmt: skip
            fresh[key] = functools.lru_cache(**value.cache_parameters())(
                _in(value.__wrapped__, fresh)
            )
        elif isinstance(value, dict | list | set) and not key.startswith("__"):
            fresh[key] = _copied(value)
        else:
            fresh[key] = value
    return _in(function, fresh)


def _in(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    cells = tuple(
        types.CellType(_copied(cell.cell_contents)) for cell in function.__closure__ or ()
    )
    made = types.FunctionType(
        function.__code__, names, function.__name__, _copied(function.__defaults__), cells
    )
    made.__kwdefaults__ = _copied(function.__kwdefaults__)
    made.__annotations__ = function.__annotations__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update({k: _copied(v) for k, v in vars(function).items()})
    return made


def _copied(value: Any) -> Any:
    if isinstance(value, dict | list | set | tuple | Tensor | nn.Module):
        try:
            return copy.deepcopy(value)
        except Exception:  # noqa: BLE001 (what cannot be copied is shared)
            return value
    return value

"""A function as `Code` with state of its own.

Mutable globals of its file, caches, closures and defaults are copied.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..code import Code, NoSetting, Options, place_of, source_of
from .constructors import configs_for
from .names import parameters, role_of

NUMPY, TORCH = re.compile(r"\b(np|numpy)\."), re.compile(r"\b(torch|nn|F)\.")
CACHED_FUNCTION = type(functools.lru_cache(len))  # a function that caches its results


def code_of_function(function: types.FunctionType, name: str, options: Options) -> Code:
    """Return the function as code; settings that it takes are bound in each call."""
    space = inspect.unwrap(function).__globals__
    kept = _with_own_globals(function)
    text, place = source_of(function), place_of(function)
    configs = configs_for(function, options, space)
    of_numpy = bool(NUMPY.search(text)) and not TORCH.search(text)

    def again(**settings: Any) -> Code:
        if settings:
            known = parameters(kept)
            named = {
                one.name: value
                for key, value in settings.items()
                for one in known
                if one.name == key or (one.role and one.role == role_of(key))
            }
            if len(named) < len(settings):
                raise NoSetting(
                    f"{name} takes {', '.join(p.name for p in known)}, and not "
                    f"{', '.join(settings)}"
                )
            more = dataclasses.replace(options, arguments={**options.arguments, **named})
            return code_of_function(kept, name, more)
        own = _returning_tensors(_with_own_globals(kept)) if of_numpy else _with_own_globals(kept)
        call = _with(own, {**configs, **options.arguments}, hidden=configs)
        return Code(
            name=name,
            call=call,
            again=again,
            space=space,
            options=options,
            text=text,
            place=place,
            built=configs,
        )

    return again()


def _returning_tensors(function: types.FunctionType) -> Any:
    """Wrap a numpy function so that the arrays it returns become tensors."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        if isinstance(found, tuple | list):
            return type(found)(map(_tensor, found))
        return _tensor(found)

    return called


def _tensor(value: Any) -> Any:
    return torch.as_tensor(value) if isinstance(value, np.ndarray) else value


def _with(
    function: types.FunctionType, values: Mapping[str, Any], hidden: Mapping[str, Any]
) -> Any:
    """Bind these values in every call; the hidden ones are removed from the signature."""
    known = {one.name for one in parameters(function)}
    fixed = {name: value for name, value in values.items() if name in known}
    if not fixed:
        return function

    order = [one.name for one in parameters(function)]

    @functools.wraps(function)
    def given(*args: Any, **named: Any) -> Any:
        first = [fixed.get(name, x) for name, x in zip(order, args, strict=False)]
        rest = {name: value for name, value in fixed.items() if name not in order[: len(args)]}
        return function(*first, *args[len(order) :], **{**named, **rest})

    if hidden:
        told = inspect.signature(function)
        left = [one for name, one in told.parameters.items() if name not in hidden]
        named = [  # keyword-only, since parameters before them may be removed
            one.replace(kind=one.KEYWORD_ONLY) if one.kind == one.POSITIONAL_OR_KEYWORD else one
            for one in left
        ]
        vars(given)["__signature__"] = told.replace(parameters=named)
    return given


def _with_own_globals(function: types.FunctionType) -> types.FunctionType:
    """Return the same function with a copy of its globals."""
    if hasattr(function, "__wrapped__") or function.__globals__.get("__name__", "").startswith(
        ("torch", "transformers")
    ):
        return function
    names = function.__globals__
    fresh: dict[str, Any] = {}
    for key, value in names.items():
        own = isinstance(value, types.FunctionType) and value.__globals__ is names
        if own and not hasattr(value, "__wrapped__"):
            fresh[key] = _with_globals(value, fresh)
        elif (
            isinstance(value, CACHED_FUNCTION)
            and getattr(value.__wrapped__, "__globals__", None) is names
        ):
            inner: Any = value.__wrapped__
            fresh[key] = functools.lru_cache(**value.cache_parameters())(
                _with_globals(inner, fresh)
            )
        elif isinstance(value, dict | list | set) and not key.startswith("__"):
            fresh[key] = _copied(value)
        else:
            fresh[key] = value
    return _with_globals(function, fresh)


def _with_globals(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
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

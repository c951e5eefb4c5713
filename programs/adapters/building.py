"""From a function, a module, a class or a factory to `Code`: built, and built again."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
from collections.abc import Mapping
from typing import Any

from torch import nn

from ..constructors import settings_for, tried
from .code import Code, DoesNotFit, NoSetting, Options
from .functions import code_of_function
from .roles import parameters, role_of
from .sources import beside, place_of, source_of

__all__ = ["code_of", "copy_of", "method_of"]


def code_of(thing: Any, name: str, options: Options) -> Code:
    """Something callable, with a way to build it again.

    A class is built; of a factory without arguments the result is taken.  Raises ``DoesNotFit``.
    """
    if inspect.isclass(thing):
        return _built(thing, name or thing.__name__, options)
    if isinstance(thing, nn.Module):
        return _module(thing, name or type(thing).__name__, options, {})
    if inspect.ismethod(thing) and isinstance(thing.__self__, nn.Module):
        owner = _module(thing.__self__, name or thing.__qualname__, options, {})
        return method_of(owner, thing.__name__)
    if isinstance(thing, types.FunctionType):
        return code_of_function(thing, name or thing.__qualname__, options)
    if callable(thing):
        named = name or getattr(thing, "__name__", type(thing).__name__)
        return _instance(thing, named, options)
    raise DoesNotFit(f"{type(thing).__name__} is nothing that can be called")


def _built(cls: type[Any], name: str, options: Options) -> Code:
    space = beside(cls)
    given = settings_for(cls, options, space)
    holder, given = tried(cls, given, options)
    make = _module if isinstance(holder, nn.Module) else _instance
    if not callable(holder):
        raise DoesNotFit(f"objects of {cls.__name__} cannot be called")
    return make(holder, name, options, given)


def _module(module: nn.Module, name: str, options: Options, built: Mapping[str, Any]) -> Code:
    kept = copy_of(module).eval()
    if type(module).__module__.startswith("transformers."):
        from .transformers import layer_types

        options = layer_types(kept, options)

    text, place = source_of(kept), place_of(kept)

    def again(**settings: Any) -> Code:
        if settings:
            given = _other(type(kept), kept, built, settings)
            return _module(type(kept)(**given), name, options, given)
        fresh = copy_of(kept)
        return Code(name=name, call=fresh, again=again, module=fresh, space=beside(kept),
                    text=text, place=place, built=built, options=options)  # fmt: skip

    return again()


def copy_of(module: nn.Module) -> nn.Module:
    """A copy with its own tensors; configs are shared, as nothing is written to them."""
    configs = {id(part.config): part.config for part in module.modules()
               if hasattr(part, "config") and not isinstance(part.config, nn.Module)}  # fmt: skip
    return copy.deepcopy(module, configs)


def _instance(thing: Any, name: str, options: Options, built: Mapping[str, Any] = {}) -> Code:
    try:
        kept = copy.deepcopy(thing)
    except Exception:  # noqa: BLE001 (some objects cannot be copied: those are used as they are)
        kept = thing

    text, place = source_of(kept), place_of(kept)

    def again(**settings: Any) -> Code:
        if settings:
            given = _other(type(kept), kept, built, settings)
            return _instance(type(kept)(**given), name, options, given)
        fresh = copy.deepcopy(kept) if kept is not thing else kept
        return Code(name=name, call=fresh, again=again, space=beside(kept), text=text,
                    place=place, built=built, options=options)  # fmt: skip

    return again()


def method_of(code: Code, method: str) -> Code:
    """The same object, called by a method of that name."""

    def again(**settings: Any) -> Code:
        return method_of(code.again(**settings), method)

    name = f"{code.name}.{method}" if "." not in code.name else code.name
    return dataclasses.replace(code, call=getattr(code.call, method), again=again, name=name)


def _other(
    cls: type[Any], kept: Any, built: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The constructor's arguments with other settings; ``NoSetting`` where it takes none such."""
    known = parameters(cls)
    given = dict(built)
    for one in known:
        held = getattr(kept, one.name, None)
        if one.name not in given and isinstance(held, int | float | str | bool):
            given[one.name] = held
    for name, value in settings.items():
        taken = [one for one in known if one.name == name]
        taken = taken or [one for one in known if one.role and one.role == role_of(name)]
        if name == "width" and not taken:
            taken = [one for one in known if one.role == "embed"]
        if taken:
            given[taken[0].name] = value
        elif not _configured(given, name, value):
            raise NoSetting(f"{cls.__name__} takes {', '.join(p.name for p in known)}, and no "
                            f"{name} among them")  # fmt: skip
    missing = [one.name for one in known if one.required and one.name not in given]
    if missing:
        raise NoSetting(f"what {cls.__name__} was built with is not known: {', '.join(missing)}")
    return given


def _configured(given: dict[str, Any], name: str, value: Any) -> bool:
    """Whether a config among the arguments has such a setting; it is copied and changed there."""
    for key, config in list(given.items()):
        if not hasattr(config, "__dict__"):
            continue
        changed = copy.deepcopy(config)
        ropes = getattr(changed, "rope_parameters", None)
        if name == "base" and isinstance(ropes, dict):
            for one in [ropes, *(v for v in ropes.values() if isinstance(v, dict))]:
                if "rope_theta" in one:
                    one["rope_theta"] = value
            given[key] = changed
            return True
        held = [k for k in vars(changed) if role_of(name) and role_of(k) == role_of(name)]
        if held:
            setattr(changed, held[0], value)
            given[key] = changed
            return True
    return False

"""From a function, a module, a class or a factory to `Code`: built, and built again."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from .code import Code, DoesNotFit, NoSetting, Options
from .functions import code_of_function
from .roles import Parameter, parameters, role_of
from .sources import alike, beside, place_of, source_of

__all__ = ["SIZES", "code_of", "copy_of", "method_of", "settings_for"]

# All different, so that an axis taken for another is seen: rows 3, heads 2, tokens 5, keys 7.
HEADS = 2
SIZES = {"heads": HEADS, "groups": 2, "width": 8, "embed": 16, "length": 2048, "keys": 2048,
         "dropout": 0.0, "window": 4, "base": 10000.0, "device": None,
         "dtype": torch.float32}  # fmt: skip


def settings_for(
    cls: Callable[..., Any], options: Options, space: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments for a constructor: what it must have, by what its parameters are called.

    Raises ``DoesNotFit`` that names a parameter whose meaning is not known.
    """
    given = dict(options.settings)
    known = parameters(cls)
    likely = _likely(options, {one.role for one in known})
    for one in known:
        if one.name in given:
            continue
        chosen = getattr(options, one.role, 0) if one.role in ("width", "heads", "embed") else 0
        chosen = chosen or (likely.get(one.role, 0) if one.required else 0)
        if chosen:
            given[one.name] = chosen
        elif one.required or one.name == "layer_idx":
            given[one.name] = _setting(one, cls, options, space)
    return given


def _likely(options: Options, roles: set[str]) -> Mapping[str, int]:
    """The sizes that are declared; a width, of code that takes heads and none, is their part."""
    found = dict(options.likely)
    if "width" in found and "width" not in roles:
        heads = (options.heads or found.get("heads") or HEADS) if "heads" in roles else 1
        found["embed"] = found["width"] * heads
    return found


def _setting(one: Parameter, cls: Any, options: Options, space: Mapping[str, Any]) -> Any:
    annotation = _annotated(one, space)
    if one.name in ("config", "args", "cfg", "params") or dataclasses.is_dataclass(annotation):
        return _config(annotation, cls, options, space)
    if one.role in SIZES:
        return SIZES[one.role]
    if one.name == "layer_idx":
        return 0
    if annotation is bool or one.name.endswith("bias"):
        return True
    raise DoesNotFit(
        f"{getattr(cls, '__name__', cls)} must be given {one.name!r}, and what that is its name "
        f"does not say; give settings={{{one.name!r}: ..}}, or a factory without arguments"
    )


def _annotated(one: Parameter, space: Mapping[str, Any]) -> Any:
    if isinstance(one.annotation, str):
        return space.get(one.annotation.strip("'\" ").split("|")[0].strip())
    return one.annotation


def _config(annotation: Any, cls: Any, options: Options, space: Mapping[str, Any]) -> Any:
    if annotation is None:
        named = [v for k, v in space.items() if inspect.isclass(v)
                 and k.lower().endswith(("config", "args", "cfg", "params"))]  # fmt: skip
        named.sort(key=lambda v: -alike(v.__name__, cls.__name__))
        own = [v for v in named if v.__module__ == getattr(cls, "__module__", "")]
        annotation = next(iter([*own, *named]), None)
    if not inspect.isclass(annotation):
        raise DoesNotFit(f"{cls.__name__} wants a config, and no class of configs stands beside it")
    if hasattr(annotation, "model_type") or annotation.__module__.startswith("transformers."):
        from .transformers import small_config

        return small_config(annotation, cls)
    return annotation(**settings_for(annotation, dataclasses.replace(options, settings={}), space))


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
    try:
        holder = cls(**given)
    except TypeError:
        windows = {one.name: (4, 4) for one in parameters(cls)
                   if one.role == "window" and given.get(one.name) == 4}  # fmt: skip
        if not windows:
            raise
        given.update(windows)
        holder = cls(**given)
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

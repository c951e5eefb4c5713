"""Arguments for constructors, chosen by the names, types and defaults of the parameters.

Most parameters are recognised by name (:mod:`.values`).  For a number whose name says nothing a few
values are tried, and if the class still refuses its arguments, pairs for sizes and wider tokens are
tried.  A config is built from the class of its annotation, or from one in the same file, with small
sizes; if there is none, whatever the constructor reads from it is supplied by the same names.
``config.width=8`` sets one of its fields.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch

from attnproof.symbolic.faults import fault_of

from ..code import DoesNotFit, Options, common_prefix, globals_of
from ..execution.running import in_a_line
from . import values
from .names import Parameter, parameters
from .values import (
    CONFIGS,
    HEADS,
    NAMESPACES,
    SIZES,
    UNKNOWN,
    InferredConfig,
    annotation_of,
    as_annotated,
    compared_values,
    fields_of,
    is_config,
    is_open,
    value_by_name,
)

TRIED_NUMBERS = (2, 4, 8, 16, 1)  # tried for a whole number whose name says nothing
HEADS_OF_GROUPS = 2 * HEADS  # two for each group: groups that are tiled are not groups repeated
TOKENS_OF_GROUPS = 8 * HEADS_OF_GROUPS
WIDER_TOKENS = (64, 128)  # for heads whose default width exceeds that of narrow tokens
SMALL = re.compile(
    r"(\w+_)?(layers?|blocks|depth|heads?|ffn|mlp|intermediate_size|d_ff|ff_dim|vocab_size)"
)
SIDES = re.compile("window|size|resolution|shape|shift|grid")
TRIES = 24


def settings_for(
    cls: Callable[..., Any], options: Options, space: Mapping[str, Any]
) -> dict[str, Any]:
    """Return arguments for a constructor: the given settings, and required ones chosen by name.

    Raises ``DoesNotFit``, naming the parameter, if the meaning of one is not known.
    """
    known = parameters(cls)
    options = dataclasses.replace(options, settings=placed(cls, options.settings))
    given = {name: value for name, value in options.settings.items() if "." not in name}
    likely = _likely(options, {one.role for one in known})
    grouped = any(one.role == "groups" and one.required for one in known)
    for one in known:
        if one.name in given:
            continue
        chosen = getattr(options, one.role, 0) if one.role in ("width", "heads", "embed") else 0
        chosen = chosen or (likely.get(one.role, 0) if one.required else 0)
        if chosen:
            given[one.name] = chosen
        elif _is_empty(one):
            given[one.name] = SIZES["embed"] if one.name == "size" else value_by_name(one.name)
        elif one.name == "size" and one.required and "heads" in {other.role for other in known}:
            given[one.name] = options.embed or SIZES["embed"]  # of tokens that heads share
        elif grouped and one.required and one.role == "heads":
            given[one.name] = HEADS_OF_GROUPS
        elif (
            one.required
            or (one.name == "layer_idx" and one.default is None)
            or fields_of(options.settings, one.name)
        ):
            given[one.name] = _setting(one, cls, options, space)
        elif is_config(one, space):
            with suppress(Exception):  # what cannot be built is left out
                given[one.name] = _setting(one, cls, options, space)
    return given


def placed(cls: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings; those that are not parameters become fields of the config, if any.

    >>> def built(config): ...
    >>> placed(built, {"n_embd": 16, "config.n_head": 2})
    {'config.n_embd': 16, 'config.n_head': 2}
    """
    try:
        known = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):  # a built-in without a readable signature
        return dict(settings)
    names = {one.name for one in known}
    configs = [name for name in names if name in CONFIGS]
    if len(configs) != 1 or any(one.kind == one.VAR_KEYWORD for one in known):
        return dict(settings)
    return {
        name if name.partition(".")[0] in names else f"{configs[0]}.{name}": value
        for name, value in settings.items()
    }


def configs_for(
    function: Callable[..., Any], options: Options, space: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the configs that a function requires, built as for a constructor."""
    return {
        one.name: _config(annotation_of(one, space), function, one.name, options, space)
        for one in parameters(function)
        if one.required and one.name in CONFIGS and one.name not in options.arguments
    }


def build(
    cls: Callable[..., Any], given: Mapping[str, Any], options: Options
) -> tuple[Any, dict[str, Any]]:
    """Return what a class or function builds, and the arguments with which the build succeeded.

    Arguments other than the user's settings are changed until it does.  If it never does, raises
    the first exception of the class, or ``DoesNotFit`` if a required parameter was given None
    because nothing says what it is.
    """
    first: Exception | None = None
    for count, changed in enumerate(_changed(cls, given, options)):
        if count == TRIES:
            break
        try:
            return construct(cls, changed), changed
        except Exception as error:  # noqa: BLE001 (a constructor may raise anything)
            first = first or error
    assert first is not None
    if unsaid := _required_but_none(cls, given, placed(cls, options.settings)):
        raise _unknown(cls, unsaid[0].name) from first
    if isinstance(first, AttributeError):
        for name, value in given.items():
            if value is first.obj and name in CONFIGS:
                told = f"{first}; give settings={{'{name}.{first.name}': ..}}"
                raise DoesNotFit(told) from first
    raise first


def construct(cls: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a class with these arguments.

    Exceptions of the class propagate.  An exception of a library, as of pydantic when it validates
    fields, may have no frame in the user's code and would be reported as a fault of attnproof: it
    is raised as ``DoesNotFit`` instead.
    """
    try:
        return cls(**given)
    except Exception as error:
        *_, last = traceback.walk_tb(error.__traceback__)
        code = last[0].f_code
        ours = code.co_filename in (__file__, values.__file__) and code is not construct.__code__
        if ours or fault_of(error) is None:
            raise
        raise DoesNotFit(f"{getattr(cls, '__name__', cls)} raised {in_a_line(error)}") from error


def _unknown(cls: Callable[..., Any], name: str) -> DoesNotFit:
    return DoesNotFit(
        f"{getattr(cls, '__name__', cls)} needs {name!r}, and its name does not say "
        f"what that is; give settings={{{name!r}: ..}}, or a factory without arguments"
    )


def _required_but_none(
    cls: Callable[..., Any], given: Mapping[str, Any], told: Mapping[str, Any]
) -> list[Parameter]:
    """Return the required parameters that are given None because nothing says what they are."""
    return [
        one
        for one in parameters(cls)
        if one.required
        and one.name not in told
        and one.role not in SIZES
        and given.get(one.name, one) is None
    ]


def _is_empty(one: Parameter) -> bool:
    """Whether the default of a size, or of a number of heads, is 0, which no working code has."""
    counted = one.role in ("embed", "width", "heads") or one.name in ("size", "ff_size")
    return counted and one.default == 0 and type(one.default) is int


def guesses(
    cls: Callable[..., Any], built: Mapping[str, Any], told: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a constructor that were guessed, so that they can be reported.

    A required parameter whose role is known from calls does not count as a guess.
    """
    try:
        known = {one.name: one for one in parameters(cls)}
    except DoesNotFit:
        return {}
    told, said = placed(cls, told), dict[str, Any]()
    for name, value in built.items():
        one = known.get(name)
        if name in told or one is None:
            continue
        if isinstance(value, InferredConfig) or dataclasses.is_dataclass(value):
            guessed = {f"{name}.{part}": x for part, x in _parts_built(value).items()}
            said |= {part: x for part, x in guessed.items() if part not in told}
        elif one.role not in SIZES if one.required else value is True and one.default is False:
            said[name] = value
    kinds = (int, float, str, list, tuple, type(None))
    return {k: v for k, v in said.items() if isinstance(v, kinds)}


def set_words(settings: Mapping[str, Any]) -> str:
    """Return settings as they are written on the command line.

    >>> set_words({"dim": 16, "shape": (4, 4)})
    '--set dim=16 shape=(4,4)'
    """
    told = (f"{name}={str(value).replace(' ', '')}" for name, value in settings.items())
    return f"--set {' '.join(told)}"


def widths_built(
    cls: Callable[..., Any], built: Mapping[str, Any], told: Mapping[str, Any]
) -> dict[str, int]:
    """Return the required widths that the user did not set: another value would do as well."""
    if not inspect.isclass(cls):
        return {}
    try:
        known = [one for one in parameters(cls) if one.required and one.name not in told]
    except DoesNotFit:
        return {}
    wide = [one.name for one in known if one.role in ("embed", "width", "rotated")]
    return {name: built[name] for name in wide if type(built.get(name)) is int}


def _parts_built(config: Any) -> Mapping[str, Any]:
    """Return the chosen fields of a config: inferred, or different from their default."""
    if isinstance(config, InferredConfig):
        return config.parts()
    small = _small(config)
    known = [one for one in parameters(type(config)) if one.required or one.name in small]
    held = {one.name: getattr(config, one.name, None) for one in known}
    return {one.name: held[one.name] for one in known if held[one.name] != one.default}


def _changed(
    cls: Callable[..., Any], given: Mapping[str, Any], options: Options
) -> Iterator[dict[str, Any]]:
    """Yield the arguments as they are, then with changes that may satisfy the class.

    Tried are other numbers, pairs for sizes, wider tokens, more heads, numbers in place of None,
    other configs, and flags inverted one at a time.
    """
    options = dataclasses.replace(options, settings=placed(cls, options.settings))
    told = options.settings
    known = [one for one in parameters(cls) if one.name in given and one.name not in told]
    numbers = [one.name for one in known if one.required and is_open(one)]
    sides = [
        one.name for one in known if isinstance(given[one.name], int) and SIDES.search(one.name)
    ]
    wide = [
        one.name
        for one in known
        if one.required and given[one.name] == SIZES["embed"] and not options.embed
    ]
    for width in (None, *WIDER_TOKENS)[: 3 if wide else 1]:
        wider = {} if width is None else dict.fromkeys(wide, width)
        for number in TRIED_NUMBERS if numbers else TRIED_NUMBERS[:1]:
            plain = {**given, **wider, **dict.fromkeys(numbers, number)}
            yield plain
            if sides:
                yield {**plain, **{name: (plain[name],) * 2 for name in sides}}
    many = [one.name for one in known if one.role == "heads" and given[one.name] == HEADS]
    if many and not options.heads:  # the number of key heads may have to divide it
        yield {**given, **dict.fromkeys(many, 2 * HEADS)}
    unsaid = [one.name for one in _required_but_none(cls, given, told) if one.annotation is None]
    for number in TRIED_NUMBERS if unsaid else ():
        yield {**given, **dict.fromkeys(unsaid, number)}
    bare = {one.name for one in known if one.annotation is None}
    others: list[dict[str, Any]] = []
    for name, config in given.items():
        if dataclasses.is_dataclass(config) and name not in told:
            with suppress(Exception):  # its own default sizes may be inconsistent
                own = _configured(
                    type(config), name, fields_of(options.settings, name), options, {}
                )
                others.append({**given, name: own})
        elif name in CONFIGS and name in bare and not isinstance(config, InferredConfig):
            others.append({**given, name: InferredConfig(fields_of(options.settings, name))})
    yield from others
    spare = {one.name for one in known if not one.required and one.name in CONFIGS}
    if spare:
        yield {name: value for name, value in given.items() if name not in spare}
    flags = [
        one
        for one in parameters(cls)
        if one.name not in told
        and (given.get(one.name) is True if one.required else one.default is False)
    ]
    for one in sorted(flags, key=lambda one: "self" not in one.name):
        yield {**given, one.name: not one.required}  # one of several may have to be set


def _likely(options: Options, roles: set[str]) -> Mapping[str, int]:
    """Return the declared sizes; a width becomes width·heads features if code takes no width."""
    found = dict(options.likely)
    if "width" in found and "width" not in roles:
        heads = (options.heads or found.get("heads") or HEADS) if "heads" in roles else 1
        found["embed"] = found["width"] * heads
    return found


def _setting(one: Parameter, cls: Any, options: Options, space: Mapping[str, Any]) -> Any:
    annotation = annotation_of(one, space)
    if (
        one.name in CONFIGS
        or dataclasses.is_dataclass(annotation)
        or fields_of(options.settings, one.name)
    ):
        return _config(annotation, cls, one.name, options, space)
    inner = _inner(annotation, options) if annotation is not cls else None
    if inner is not None:
        return inner
    if one.role not in SIZES and (annotation is bool or one.name.endswith("bias")):
        return True
    if said := re.search(r"Literal\[['\"](\w+)['\"]", str(one.annotation)):
        return said[1]
    found = value_by_name(one.name)
    if one.name == "temperature" and "atten" in getattr(cls, "__name__", "").lower():
        found = math.sqrt(8)  # a divisor of scores, not a base of frequencies
    if found is not UNKNOWN:
        return as_annotated(found, one)
    if is_open(one):
        return TRIED_NUMBERS[0]
    if annotation is float:
        return 0.0
    if choices := compared_values(one, cls, space):
        return choices[0]
    if inspect.isclass(annotation) and annotation.__module__.partition(".")[0] not in KNOWN:
        with suppress(Exception):
            return annotation()  # a class of the library itself that needs no arguments
    if annotation is str:
        raise _unknown(cls, one.name)
    return None


def _inner(cls: Any, options: Options) -> torch.nn.Module | None:
    """Build a submodule that a constructor takes, with chosen arguments; None for torch's own."""
    if cls is torch.nn.Module:
        return PassThrough()
    own = inspect.isclass(cls) and issubclass(cls, torch.nn.Module)
    if not own or cls.__module__.startswith("torch."):
        return None
    inner = dataclasses.replace(options, settings={})
    made: torch.nn.Module = build(cls, settings_for(cls, inner, globals_of(cls)), inner)[0]
    return made


class PassThrough(torch.nn.Module):
    """A stand-in where any module is accepted: it returns a copy of its input."""

    def forward(self, x: Any, *_: Any, **__: Any) -> Any:
        """Return a copy of the first argument."""
        return x.clone() if isinstance(x, torch.Tensor) else x


KNOWN = ("builtins", "collections", "numpy", "torch", "typing")  # not classes of the user's code


def _config(
    annotation: Any, cls: Any, name: str, options: Options, space: Mapping[str, Any]
) -> Any:
    """Return a config of the annotated class, of a class in the same file, or inferred."""
    said = annotation
    if not inspect.isclass(annotation) or annotation in (dict, object, Any):
        named = [
            v
            for k, v in space.items()
            if inspect.isclass(v)
            and not issubclass(v, torch.nn.Module)
            and k.lower().endswith(("config", "args", "cfg", "params"))
        ]
        named.sort(key=lambda v: -common_prefix(v.__name__, cls.__name__))
        own = [v for v in named if v.__module__ == getattr(cls, "__module__", "")]
        annotation = next(iter([*own, *named]), None) if annotation is None else None
    told = fields_of(options.settings, name)
    if annotation is None or issubclass(annotation, NAMESPACES):
        return InferredConfig(told)
    if hasattr(annotation, "model_type") or annotation.__module__.startswith("transformers."):
        from .pretrained import small_config

        return small_config(annotation, cls, told)
    small = {} if "rotary" in cls.__name__.lower() else _small(annotation)
    first: Exception | None = None
    for chosen in ({**small, **told}, told) if small else (told,):
        try:
            return _configured(annotation, name, chosen, options, space)
        except Exception as error:  # noqa: BLE001 (its class may raise anything)
            first = first or error
    if annotation is not said:
        return InferredConfig(told)  # the class was guessed, not annotated
    assert first is not None
    raise first


def _configured(
    annotation: Any, name: str, told: Mapping[str, Any], options: Options, space: Mapping[str, Any]
) -> Any:
    """Build a config of a class outside transformers, with its required fields and the settings.

    Raises what :func:`settings_for` and :func:`construct` raise.
    """
    inner = dataclasses.replace(options, settings=told)
    given = settings_for(annotation, inner, space)
    try:
        return construct(annotation, given)
    except DoesNotFit as error:
        raise DoesNotFit(f"{error}; set its fields with --set {name}.FIELD=VALUE") from error


def _small(config: Any) -> dict[str, int]:
    """Return small values for those sizes of a config that have a default in its class."""
    cls = config if inspect.isclass(config) else type(config)
    found = {
        one.name: value_by_name(one.name)
        for one in parameters(cls)
        if type(one.default) is int
        and (one.role in ("embed", "heads", "groups", "width") or SMALL.fullmatch(one.name.lower()))
    }
    roles = {one.role: one.name for one in parameters(cls) if one.name in found}
    if {"heads", "groups"} <= {*roles}:
        found[roles["heads"]] = HEADS_OF_GROUPS
        if "embed" in roles:  # else a head would be as wide as heads are many
            found[roles["embed"]] = TOKENS_OF_GROUPS
    return {name: value for name, value in found.items() if type(value) is int}

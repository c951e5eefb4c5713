"""Arguments for constructors, chosen by the names, types and defaults of the parameters.

Most parameters are recognised by name, as in a call (:mod:`.names`); a table adds the words that
only constructors use.  For a number whose name says nothing a few values are tried, and if the
class still refuses its arguments, pairs for sizes and wider tokens are tried.  A config is built
from the class of its annotation, or from one in the same file, with small sizes; if there is none,
whatever the constructor reads from it is supplied by the same names.  ``config.width=8`` sets one
of its fields.
"""

from __future__ import annotations

import argparse
import dataclasses
import dis
import inspect
import math
import re
import traceback
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from attnproof.symbolic.faults import fault_of

from ..code import DoesNotFit, Options, common_prefix, globals_of, source_of
from ..execution.running import in_a_line
from .names import CAPACITY, INDEX, Parameter, parameters, role_of

# All different, so that confused axes are noticed: rows 3, heads 2, tokens 5, keys 7.
HEADS = 2
SIZES = {
    "heads": HEADS,
    "groups": 2,
    "width": 8,
    "embed": 16,
    "length": CAPACITY,
    "keys": CAPACITY,
    "dropout": 0.0,
    "window": 4,
    "base": 10000.0,
    "device": None,
    "dtype": torch.float32,
}
SIDE = 4
# Values by full name, the first match; the roles that calls have too take precedence.
VALUES_BY_NAME: dict[str, Any] = {
    r"(num_|n_)?(hidden_)?(layers?|blocks?|depth)": 2,
    r"(\w+_)?heads": HEADS,
    INDEX.pattern: 0,
    r"(\w+_)?kernel(_size)?": 3,
    r"(dim|d|head|emb)_?(keys?|values?|heads?|qk|kq|[qkv])"
    r"|[qkv]{1,3}_dim|(key|value)_(dim|channels)|c_hidden": 8,
    r"c_([qkvmzsx]|in|out)": SIZES["embed"],
    r"(gamma|decay)(_(rate|factor))?": 0.9,
    r"\w*drop\w*": 0.0,
    r"(\w+_)?(ffn|mlp|feed_?forward|intermediate|inner|d_ff|ff)(_?(embed_)?(dim|size|features|mult))?"
    r"|hidden(_features)?|dim_(ff|mlp)": 32,
    r"(shift|padding|pad)(_(size|idx|index))?|pad_token_id": 0,
    r"(fmap|feat|feature|image|img|grid|patch|map)_?(size|resolution|shape)"
    r"|side|input_resolution": SIDE,
    r"(\w+_)?(dim|dimension|size|features|channels|embed_dim|hidden_size)": SIZES["embed"],
    r"(segment|bucket|chunk|local_window)_(len|length|size)": 4,
    r"(\w+_)?shape": (SIDE, SIDE),
    r"(qk_|attn_|softmax_|logit_)?scale|(init_)?temp|tau": 1.0,
    r"(\w+_)?max_dist(ance)?|(\w+_)?num_buckets": 32,
    r"(dim|d)_(in|out|model|emb\w*)|(\w+_)?feats?|n_(attn|att|inner|units)": SIZES["embed"],
    r"(\w+_)?(vocab(ulary)?|num_embeddings|n_words)(_size)?": 50,
    r"(\w+_)?eps(ilon)?": 1e-6,
    r"(\w+_)?max_(\w+_)?(len|length|pos|positions|tokens|patches|frames|steps)": SIZES["length"],
    r"(\w+_)?act(ivation)?(_fn|_function|_type)?": "gelu",
}
COORDINATE_COUNTS = ("dim_pos", "pos_dim", "ndim", "n_dims", "num_axes", "spatial_dims")
TRIED_NUMBERS = (2, 4, 8, 16, 1)  # tried for a whole number whose name says nothing
WIDER_TOKENS = (64, 128)  # for heads whose default width exceeds that of narrow tokens
CONFIGS = ("config", "args", "cfg", "params", "hparams", "opt")
NAMESPACES = (argparse.Namespace, types.SimpleNamespace, dict)  # do not declare their fields
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
    for one in known:
        if one.name in given:
            continue
        chosen = getattr(options, one.role, 0) if one.role in ("width", "heads", "embed") else 0
        chosen = chosen or (likely.get(one.role, 0) if one.required else 0)
        if chosen:
            given[one.name] = chosen
        elif _is_empty(one):
            given[one.name] = SIZES["embed"] if one.name == "size" else _value_by_name(one.name)
        elif one.name == "size" and one.required and "heads" in {other.role for other in known}:
            given[one.name] = options.embed or SIZES["embed"]  # of tokens that heads share
        elif one.required or one.name == "layer_idx" or _part(options.settings, one.name):
            given[one.name] = _setting(one, cls, options, space)
        elif _is_config(one, space):
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
        one.name: _config(_annotated(one, space), function, one.name, options, space)
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
        ours = code.co_filename == __file__ and code is not construct.__code__
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
    values = {one.name: getattr(config, one.name, None) for one in known}
    return {one.name: values[one.name] for one in known if values[one.name] != one.default}


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
    numbers = [one.name for one in known if one.required and _is_open(one)]
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
                own = _configured(type(config), name, _part(options.settings, name), options, {})
                others.append({**given, name: own})
        elif name in CONFIGS and name in bare and not isinstance(config, InferredConfig):
            others.append({**given, name: InferredConfig(_part(options.settings, name))})
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
    annotation = _annotated(one, space)
    if (
        one.name in CONFIGS
        or dataclasses.is_dataclass(annotation)
        or _part(options.settings, one.name)
    ):
        return _config(annotation, cls, one.name, options, space)
    inner = _inner(annotation, options) if annotation is not cls else None
    if inner is not None:
        return inner
    if one.role not in SIZES and (annotation is bool or one.name.endswith("bias")):
        return True
    if said := re.search(r"Literal\[['\"](\w+)['\"]", str(one.annotation)):
        return said[1]
    found = _value_by_name(one.name)
    if one.name == "temperature" and "atten" in getattr(cls, "__name__", "").lower():
        found = math.sqrt(8)  # a divisor of scores, not a base of frequencies
    if found is not UNKNOWN:
        return _as_annotated(found, one)
    if _is_open(one):
        return TRIED_NUMBERS[0]
    if annotation is float:
        return 0.0
    if choices := _choices(one, cls, space):
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


def _choices(one: Parameter, cls: Any, space: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that the source compares a parameter with, strings first."""
    text, equal = source_of(cls), rf"\b{one.name}\s*(?:==|in)\s*[\[({{]?\s*"
    members = [
        getattr(space.get(kind), name, None)
        for kind, name in re.findall(rf"{equal}(\w+)\.(\w+)", text)
    ]
    texts = re.findall(rf"{equal}['\"](\w+)['\"]", text)
    return (*texts, *(one for one in members if one is not None))


UNKNOWN = object()
KNOWN = ("builtins", "collections", "numpy", "torch", "typing")  # not classes of the user's code


def _value_by_name(name: str) -> Any:
    """Return the value that a name suggests; ``UNKNOWN`` if it suggests none."""
    role = role_of(name)
    if role in SIZES:
        return SIZES[role]
    if name in COORDINATE_COUNTS:
        return 2
    found = (value for words, value in VALUES_BY_NAME.items() if re.fullmatch(words, name.lower()))
    return next(found, UNKNOWN)


def _part(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings for the fields of a config, given as in ``config.width=8``."""
    ahead = f"{name}."
    return {key.removeprefix(ahead): value for key, value in told.items() if key.startswith(ahead)}


class InferredConfig:
    """A config of no known class, whose fields are supplied by name when they are read.

    A field whose name says nothing is False, or another such config if the code goes on to read a
    field of it, as in ``args.attention.heads``.  ``getattr(args, name, default)``, ``name in args``
    and ``args.get(name, default)`` find only fields that were set or read before, so that the
    code's own default applies.

    >>> args = InferredConfig({"multiway": True})
    >>> args.encoder_embed_dim, args.multiway, args.xpos, getattr(args, "depth", 7)
    (16, True, False, 7)
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.__dict__.update({name: x for name, x in told.items() if "." not in name})
        for name in dict.fromkeys(one.partition(".")[0] for one in told if "." in one):
            self.__dict__[name] = InferredConfig(_part(told, name))

    def __getattr__(self, name: str) -> Any:
        here = inspect.currentframe()
        reader = here.f_back if here is not None else None
        step = reader.f_code.co_code[reader.f_lasti] if reader is not None else 0
        if name.startswith("__") or dis.opname[step] not in READS:
            raise AttributeError(name)
        return self._made(name, reader)

    def __getitem__(self, name: str) -> Any:
        here = inspect.currentframe()
        return self._made(name, here.f_back if here is not None else None)

    def _made(self, name: str, reader: types.FrameType | None) -> Any:
        if name not in self.__dict__:
            found = _value_by_name(name)
            windowed = role_of(name) == "window"
            if found is UNKNOWN and reader is not None and _reads_on(reader):
                found = InferredConfig({})
            self.__dict__[name] = None if windowed else False if found is UNKNOWN else found
        return self.__dict__[name]

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field if it was set or read before, else the default."""
        return self.__dict__.get(name, default)

    def parts(self) -> dict[str, Any]:
        """Return all fields that were set or read; those of a nested config have dotted names."""
        found: dict[str, Any] = {}
        for name, value in vars(self).items():
            inner = value.parts() if isinstance(value, InferredConfig) else {"": value}
            found |= {f"{name}.{part}".rstrip("."): x for part, x in inner.items()}
        return found


READS = ("LOAD_ATTR", "LOAD_METHOD")


def _reads_on(reader: types.FrameType) -> bool:
    """Whether the code reads a field of what it has just read, at once or through a variable."""
    steps = list(dis.get_instructions(reader.f_code))
    # a specialised subscript calls from behind its inline cache, not from its own offset
    at = sum(one.offset <= reader.f_lasti for one in steps) - 1

    def by_name(k: int) -> bool:
        names = [one.opname for one in steps[k : k + 2]]
        text = names[1:] == ["BINARY_SUBSCR"] and isinstance(steps[k].argval, str)
        return names[:1] != [] and (names[0] in READS or text)

    if at + 1 < len(steps) and steps[at + 1].opname == "STORE_FAST":
        own = steps[at + 1].argval
        loads = (
            k for k, one in enumerate(steps) if one.opname == "LOAD_FAST" and one.argval == own
        )
        return any(by_name(k + 1) for k in loads)
    return by_name(at + 1)


def _is_open(one: Parameter) -> bool:
    """Whether it is a whole number whose name says nothing."""
    said = one.role in SIZES or one.name in COORDINATE_COUNTS
    whole = one.annotation is int or one.annotation == "int"
    return whole and not said and not any(re.fullmatch(w, one.name.lower()) for w in VALUES_BY_NAME)


def _as_annotated(value: Any, one: Parameter) -> Any:
    """Return a value as it is, or a whole number twice if a list or a tuple is annotated."""
    kind = typing.get_origin(one.annotation) or one.annotation
    listed = kind in (list, tuple, Sequence) or str(one.annotation).lower().startswith(
        ("list[", "tuple[", "typing.list[", "typing.tuple[")
    )
    if not listed or not isinstance(value, int):
        return value
    return (value, value) if kind is tuple else [value, value]


def _is_config(one: Parameter, space: Mapping[str, Any]) -> bool:
    """Whether it is a config of a known class: built even if optional, since models pass it."""
    said = _annotated(one, space)
    named = inspect.isclass(said) and said not in (object, Any)
    return one.name in CONFIGS and named and not issubclass(said, NAMESPACES)


def _annotated(one: Parameter, space: Mapping[str, Any]) -> Any:
    """Return the annotation of a parameter, resolved; for a union of configs, the first class."""
    several = typing.get_origin(one.annotation) in (types.UnionType, typing.Union)
    if several and one.name in CONFIGS:
        return typing.get_args(one.annotation)[0]
    if isinstance(one.annotation, str):
        whole = re.fullmatch(r"(?:typing\.)?Optional\[(.*)\]", one.annotation.strip("'\" "))
        text = whole[1] if whole else one.annotation
        plain, *parts = text.strip("'\" ").split("|")[0].strip().split(".")
        found = space.get(plain, {"bool": bool, "int": int, "float": float, "str": str}.get(plain))
        for part in parts:  # dotted names such as nn.Module
            found = getattr(found, part, None)
        return found
    return one.annotation


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
    told = _part(options.settings, name)
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
        one.name: _value_by_name(one.name)
        for one in parameters(cls)
        if type(one.default) is int
        and (one.role in ("embed", "heads", "groups", "width") or SMALL.fullmatch(one.name.lower()))
    }
    return {name: value for name, value in found.items() if type(value) is int}

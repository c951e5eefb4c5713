"""What a constructor is given where nobody says: by names, types and defaults of its parameters.

What most parameters are their names say, as those of a call do (``roles``).  The rest is a table of
words that only constructors use; a number whose name says nothing is one of a few that are tried,
and what the class refuses as it stands is tried with pairs for sides, and with wider tokens.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from .adapters.code import DoesNotFit, Options
from .adapters.roles import Parameter, parameters
from .adapters.sources import alike

__all__ = ["HEADS", "SIZES", "built_words", "settings_for", "tried"]

# All different, so that an axis taken for another is seen: rows 3, heads 2, tokens 5, keys 7.
HEADS = 2
SIZES = {"heads": HEADS, "groups": 2, "width": 8, "embed": 16, "length": 2048, "keys": 2048,
         "dropout": 0.0, "window": 4, "base": 10000.0, "device": None,
         "dtype": torch.float32}  # fmt: skip
SIDE = 4
# What whole names say, the first that fits; roles that calls have as well come before.
WORDS: dict[str, Any] = {
    r"(num_|n_)?(hidden_)?(layers?|blocks?|depth)": 2,
    r"(attention|attn|encoder_attention|decoder_attention)_heads": HEADS,
    r"(dim|d|head)_?(keys?|values?|heads?|qk|v)|qk_dim|v_dim|(key|value)_(dim|channels)": 8,
    r"(\w+_)?(drop|dropout|drop_?path|drop_prob|drop_rate)": 0.0,
    r"(\w+_)?(ffn|mlp|feed_?forward|intermediate|inner|d_ff|ff)(_?(embed_)?(dim|size|features|mult))?"
    r"|hidden(_features)?|dim_(ff|mlp)": 32,
    r"(shift|padding|pad)(_(size|idx|index))?|pad_token_id": 0,
    r"(fmap|feat|feature|image|img|grid|patch|map)_?(size|resolution|shape)|side|input_resolution":
        SIDE,
    r"(\w+_)?(dim|size|features|channels|embed_dim|hidden_size)": SIZES["embed"],
    r"(dim|d)_(in|out|model|emb\w*)": SIZES["embed"],
    r"(\w+_)?(vocab(ulary)?|num_embeddings|n_words)(_size)?": 50,
    r"(\w+_)?eps(ilon)?": 1e-6,
    r"(\w+_)?max_(\w+_)?(len|length|pos|positions)": SIZES["length"],
}  # fmt: skip
COUNTS = ("dim_pos", "pos_dim", "ndim", "n_dims", "num_axes", "spatial_dims")  # of coordinates
NUMBERS = (2, 4, 8, 16, 1)  # tried for a whole number whose name says nothing
WIDER = (64, 128)  # for heads of a default width that many narrow ones do not make up
SIDES = re.compile("window|size|resolution|shape|shift|grid")
TRIES = 24


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


def tried(cls: type[Any], given: Mapping[str, Any], options: Options) -> tuple[Any, dict[str, Any]]:
    """An object of the class, and what it was given: as it stands, else changed until it is built.

    What was told is not changed.  Raises what the class raised first.
    """
    first: Exception | None = None
    for count, changed in enumerate(_changed(cls, given, options)):
        if count == TRIES:
            break
        try:
            return cls(**changed), changed
        except Exception as error:  # noqa: BLE001 (a constructor may raise anything)
            first = first or error
    assert first is not None
    raise first


def built_words(cls: Callable[..., Any], built: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """What was guessed of a constructor beyond what names of calls say, so that it can be told."""
    try:
        open_ = {one.name for one in parameters(cls) if one.required and one.role not in SIZES}
    except DoesNotFit:
        return ""
    values = {
        name: value
        for name, value in built.items()
        if name in open_ and name not in told and isinstance(value, int | float | list | tuple)
    }
    if not values:
        return ""
    said = " ".join(f"{name}={str(value).replace(' ', '')}" for name, value in values.items())
    return f"built as with --set {said}"


def _changed(
    cls: type[Any], given: Mapping[str, Any], options: Options
) -> Iterator[dict[str, Any]]:
    """What is given as it stands; then other numbers, pairs for sides, and wider tokens."""
    told = options.settings
    known = [one for one in parameters(cls) if one.name in given and one.name not in told]
    numbers = [one.name for one in known if one.required and _is_open(one)]
    sides = [
        one.name for one in known if isinstance(given[one.name], int) and SIDES.search(one.name)
    ]
    wide = [
        one.name for one in known if one.required and given[one.name] == SIZES["embed"]
        and not options.embed
    ]  # fmt: skip
    for width in (None, *WIDER)[: 3 if wide else 1]:
        wider = {} if width is None else dict.fromkeys(wide, width)
        for number in NUMBERS if numbers else NUMBERS[:1]:
            plain = {**given, **wider, **dict.fromkeys(numbers, number)}
            yield plain
            if sides:
                yield {**plain, **{name: (plain[name],) * 2 for name in sides}}


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
        return _as_annotated(SIZES[one.role], one)
    if one.name == "layer_idx":
        return 0
    if annotation is bool or one.name.endswith("bias"):
        return True
    if one.name in COUNTS:
        return 2
    for words, value in WORDS.items():
        if re.fullmatch(words, one.name.lower()):
            return _as_annotated(value, one)
    if _is_open(one):
        return NUMBERS[0]
    if annotation is float:
        return 0.0
    raise DoesNotFit(
        f"{getattr(cls, '__name__', cls)} must be given {one.name!r}, and what that is its name "
        f"does not say; give settings={{{one.name!r}: ..}}, or a factory without arguments"
    )


def _is_open(one: Parameter) -> bool:
    """Whether it is a whole number of which its name says nothing."""
    said = one.role in SIZES or one.name in COUNTS
    whole = one.annotation is int or one.annotation == "int"
    return whole and not said and not any(re.fullmatch(w, one.name.lower()) for w in WORDS)


def _as_annotated(value: Any, one: Parameter) -> Any:
    """A number, or two of it where a list or a tuple of numbers is wanted."""
    kind = typing.get_origin(one.annotation) or one.annotation
    listed = kind in (list, tuple, Sequence) or str(one.annotation).lower().startswith(
        ("list[", "tuple[", "typing.list[", "typing.tuple[")
    )
    if not listed or not isinstance(value, int):
        return value
    return (value, value) if kind is tuple else [value, value]


def _annotated(one: Parameter, space: Mapping[str, Any]) -> Any:
    if isinstance(one.annotation, str):
        plain = one.annotation.strip("'\" ").split("|")[0].strip()
        return space.get(plain, {"bool": bool, "int": int, "float": float}.get(plain))
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
        from .adapters.transformers import small_config

        return small_config(annotation, cls)
    return annotation(**settings_for(annotation, dataclasses.replace(options, settings={}), space))

"""Values for the parameters of constructors, as their names and annotations suggest.

Most parameters are recognised by name, as in a call (:mod:`.names`); a table adds the words that
only constructors use.  A config of no known class has fields by the same names.
"""

from __future__ import annotations

import argparse
import dis
import inspect
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..code import source_of
from .names import CAPACITY, INDEX, Parameter, role_of

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
CONFIGS = ("config", "args", "cfg", "params", "hparams", "opt")
NAMESPACES = (argparse.Namespace, types.SimpleNamespace, dict)  # do not declare their fields


def compared_values(one: Parameter, cls: Any, space: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that the source compares a parameter with, strings first."""
    text, equal = source_of(cls), rf"\b{one.name}\s*(?:==|in)\s*[\[({{]?\s*"
    members = [
        getattr(space.get(kind), name, None)
        for kind, name in re.findall(rf"{equal}(\w+)\.(\w+)", text)
    ]
    texts = re.findall(rf"{equal}['\"](\w+)['\"]", text)
    return (*texts, *(one for one in members if one is not None))


UNKNOWN = object()


def value_by_name(name: str) -> Any:
    """Return the value that a name suggests; ``UNKNOWN`` if it suggests none."""
    role = role_of(name)
    if role in SIZES:
        return SIZES[role]
    if name in COORDINATE_COUNTS:
        return 2
    found = (value for words, value in VALUES_BY_NAME.items() if re.fullmatch(words, name.lower()))
    return next(found, UNKNOWN)


def fields_of(told: Mapping[str, Any], name: str) -> dict[str, Any]:
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
            self.__dict__[name] = InferredConfig(fields_of(told, name))

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
            found = value_by_name(name)
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


def is_open(one: Parameter) -> bool:
    """Whether it is a whole number whose name says nothing."""
    said = one.role in SIZES or one.name in COORDINATE_COUNTS
    whole = one.annotation is int or one.annotation == "int"
    return whole and not said and not any(re.fullmatch(w, one.name.lower()) for w in VALUES_BY_NAME)


def as_annotated(value: Any, one: Parameter) -> Any:
    """Return a value as it is, or a whole number twice if a list or a tuple is annotated."""
    kind = typing.get_origin(one.annotation) or one.annotation
    listed = kind in (list, tuple, Sequence) or str(one.annotation).lower().startswith(
        ("list[", "tuple[", "typing.list[", "typing.tuple[")
    )
    if not listed or not isinstance(value, int):
        return value
    return (value, value) if kind is tuple else [value, value]


def is_config(one: Parameter, space: Mapping[str, Any]) -> bool:
    """Whether it is a config of a known class: built even if optional, since models pass it."""
    said = annotation_of(one, space)
    named = inspect.isclass(said) and said not in (object, Any)
    return one.name in CONFIGS and named and not issubclass(said, NAMESPACES)


def annotation_of(one: Parameter, space: Mapping[str, Any]) -> Any:
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

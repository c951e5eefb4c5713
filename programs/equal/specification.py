"""Specifications in place of a second program: ``attention:causal,window=4096,softcap=50``.

A specification denotes a composition of the references in :mod:`attnproof.theorems.definitions`.
It takes the same inputs as the other program, by their roles: queries, keys and values, or tokens
with weights.

=============  ===================================================================================
name           meaning
=============  ===================================================================================
``attention``  softmax attention, of queries, keys and values, or as a layer on tokens
``rope``       rotary encoding by tables of cosines and sines, of positions, or of 0, 1, ..; takes
               what ``check --declare`` takes: base, layout, width and scaling
``linear``     causal linear attention; ``step``: as a recurrence
``delta``      the delta rule, gated if there is a decay
``mla``        attention over latent vectors
``bias``       what ALiBi or T5 add to the scores, in the notation of ``check --declare``
=============  ===================================================================================
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from attnproof.theorems.definitions import references
from attnproof.theorems.definitions.positions import published_slopes

from ..calls.roles import MASKS, role
from ..declarations import DeclaredBias, DeclaredRotary, fields_of, require_sound
from ..declarations import parse as parse_declared
from ..reading.scalings import attention_factor, ladders_of
from ..signatures.grammar import parse
from ..signatures.signature import Argument, Signature, SignatureError
from .expressions import Expression, weights_of
from .sides import Operand, letters_in


@dataclass(frozen=True, kw_only=True)
class Specified:
    """The specified settings of attention or of a rotation.

    ``heads``, ``kv``: numbers of heads of queries, and of keys and values.  ``scale``: the factor
    of q·k, by default 1/√D.  ``rope``: half or interleaved, with ``base`` if the program is given
    no tables, and ``width`` rotated channels; ``scaling`` and the fields after it are those of
    ``rope:``.  ``alibi``: the published slopes.  ``buckets``: T5's bias, with this many learned
    numbers per head, up to ``distance``; ``bidirectional``: half of them are for keys after the
    query.  ``qk_norm``: queries and keys of each head are normalised with ``eps``.  ``alignment``:
    the last query is at the last key (end), or the first query at the first key (start).
    """

    heads: int | None = None
    kv: int | None = None
    scale: float | None = None
    causal: bool = False
    window: int | None = None
    alignment: str = "end"
    softcap: float | None = None
    sink: bool = False
    alibi: bool = False
    buckets: int | None = None
    distance: int = 128
    bidirectional: bool = False
    rope: str = ""
    base: float = 10000.0
    width: int | None = None
    scaling: str = ""
    factor: float = 1.0
    original: int = 0
    low: float = 1.0
    high: float = 4.0
    fast: float = 32.0
    slow: float = 1.0
    length: float | None = None
    qk_norm: bool = False
    eps: float = 1e-6
    step: bool = False


@dataclass(frozen=True, kw_only=True)
class SpecifiedBias(DeclaredBias):
    """A bias in the notation of ``check --declare``, with the ``alignment`` of ``attention:``."""

    alignment: str = "end"


class WrongSpecification(ValueError):
    """Not a specification, or one that does not fit the program: what was expected and given."""


SPECIFIED = ("attention", "rope", "linear", "delta", "mla", "bias")
LAYOUTS = ("half", "interleaved")


def is_specification(text: str) -> bool:
    """Whether a target is a specification, not a program.

    >>> is_specification("attention:causal"), is_specification("attention.py::attend")
    (True, False)
    """
    return "::" not in text and text.partition(":")[0] in SPECIFIED


def specified(
    text: str, signature: Signature, module: nn.Module | None = None
) -> tuple[Operand, dict[str, Expression]]:
    """Return the reference, called as the other program is, and expressions for its weights.

    Raises :class:`WrongSpecification` for what is not a specification, and :class:`SignatureError`
    if the other program does not take what it needs.
    """
    name, one = read(text)
    roles: dict[str, Argument] = {}
    for array in signature.arrays:
        roles.setdefault(_role(array), array)
    made: dict[str, Callable[..., tuple[Any, str]]] = {
        "attention": _attention,
        "rope": _rope,
        "linear": _linear,
        "delta": _delta,
        "mla": _mla,
        "bias": _bias,
    }
    call, line = made[name](one, roles, signature, module)
    call.__name__ = call.__qualname__ = name
    names = [argument.name for argument in parse(line).arguments]
    call.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names]
    )
    if module is None or name not in ("attention", "bias") or "query" in roles:
        return Operand(call, text, line), {}
    known = weights_of(module, one.heads, getattr(one, "kv", None))
    alone = {
        weight: how for weight, how in known.items() if (weight == "table") == (name == "bias")
    }
    if name == "bias" or one.buckets is None:
        return Operand(call, text, line), alone
    return Operand(call, text, line), known


def read(text: str) -> tuple[str, Any]:
    """Return the name of a specification and its settings.

    Raises :class:`WrongSpecification` for what is not a specification.

    >>> read("attention:window=7")[1].window
    7
    """
    name, _, rest = text.partition(":")
    one: Any
    try:
        if name == "rope":
            return name, parse_declared(text)
        one = fields_of(SpecifiedBias if name == "bias" else Specified, name, rest, text)
    except ValueError as error:
        raise WrongSpecification(str(error)) from None
    if name != "bias" and one.rope not in ("", *LAYOUTS):
        raise WrongSpecification(f"wanted a layout, one of {', '.join(LAYOUTS)}; got {text!r}")
    try:
        require_sound(one)
    except ValueError as error:
        raise WrongSpecification(f"{error}; in {text!r}") from None
    return name, one


def _role(array: Argument) -> str:
    found = role(array)
    return "mask" if found in MASKS else found


Roles = Mapping[str, Argument]
CallAndLine = tuple[Callable[..., Any], str]


def _require_roles(roles: Roles, names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in roles]
    if missing:
        given = ", ".join(roles) or "nothing"
        raise SignatureError(
            f"{what} takes {', '.join(names)}; the program takes {given}: {missing[0]} is missing"
        )


def _axes(array: Argument) -> str:
    return " ".join(map(str, array.axes or ()))


def _result(signature: Signature, k: int = 0) -> str:
    return _axes(signature.array_results[k])


def _rope(one: DeclaredRotary, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    del module
    vectors = [array for array in signature.arrays if role(array) in ("query", "key", "tokens")]
    if not vectors:
        raise SignatureError(f"rope takes vectors, such as q: B H n D; got {signature}")
    tables = "cos" in roles and "sin" in roles
    if not tables and one.base is None and one.frequencies is None:
        raise WrongSpecification(
            "wanted rope:base=.. for a program that takes no tables of cosines and sines; "
            f"got {signature}"
        )

    def rope(**given: Tensor) -> Any:
        some = [given[x.name] for x in vectors]
        if tables:
            cos, sin = given["cos"], given["sin"]
        else:
            at = given.get("positions", torch.arange(some[0].shape[-2]))
            cos, sin = _tables(at, one, int(some[0].shape[-1]))
        return tuple(_rotated(x, cos, sin, one.layout or "half", one.width) for x in some)

    given = [f"{x.name}: {' '.join(_in_order(x))} {role(x)}" for x in vectors]
    if tables:
        given += [f"{name}: {_axes(roles[name])} {name}" for name in ("cos", "sin")]
    elif "positions" in roles:
        given.append(f"positions: {_axes(roles['positions'])} positions")
    back = ", ".join(x.name for x in vectors)
    return rope, f"{', '.join(given)} -> {back}"


def _in_order(x: Argument) -> list[str]:
    """Return the letters in the order of the references, with tokens last but one."""
    letters = list(letters_in(x.axes or ()))
    order = [c for c in letters if c == "B"] + [c for c in letters if c in "HG"]
    return order + [c for c in letters if c not in order]


def _vectors_line(roles: Roles) -> tuple[str, str]:
    """Return queries, keys and values in the order of the references, and the result's axes."""
    axes = {name: _in_order(roles[name]) for name in ("query", "key", "value")}
    given = ", ".join(f"{name}: {' '.join(own)} {name}" for name, own in axes.items())
    return given, " ".join([*axes["query"][:-1], axes["value"][-1]])


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, layout: str, width: int | None) -> Tensor:
    """Rotate; tables (.., n, D) of vectors (B, H, n, D) begin with the batch and have no heads."""
    if cos.ndim == x.ndim - 1 and x.ndim > 3:
        cos, sin = cos[:, None], sin[:, None]
    found: Tensor = references.rotated(x, cos, sin, layout=layout, width=width)
    return found


def _declared(one: Specified) -> DeclaredRotary:
    """Return the rotation of a layer as a declaration."""
    names = {field.name for field in fields(DeclaredRotary)} & set(vars(one))
    return DeclaredRotary(**{name: getattr(one, name) for name in names}, layout=one.rope)


def _tables(positions: Tensor, one: DeclaredRotary, width: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of positions times frequencies, in float32 as code computes them."""
    omega = next(iter(ladders_of(one, one.width or width, 0).values()))
    longer = one.length or (attention_factor(one.factor) if one.scaling == "yarn" else 1.0)
    angles = positions[..., None] * omega.float()
    return longer * angles.cos(), longer * angles.sin()


def _attention(one: Specified, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    if {"query", "key", "value"} <= set(roles):
        return _attention_of_vectors(one, roles, signature)
    return _attention_of_tokens(one, roles, signature, module)


def _attention_settings(one: Specified, heads: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "scale": one.scale,
        "causal": one.causal,
        "window": one.window,
        "start": one.alignment == "start",
        "softcap": one.softcap,
    }
    if one.alibi:
        found["slopes"] = torch.tensor(published_slopes(heads))
    return found


def _offset(queries: int, keys: int, *, start: bool) -> Tensor:
    """Return key minus query (r, n), aligned at the last query and key, or at the first ones."""
    here = torch.arange(queries)[:, None] + (0 if start else keys - queries)
    return torch.arange(keys)[None, :] - here


def _t5_bias(one: Specified, table: Tensor, queries: int, keys: int) -> Tensor:
    """Return T5's bias (H, r, n)."""
    offset = _offset(queries, keys, start=one.alignment == "start")
    found: Tensor = references.t5_bias(table, offset, one.distance, both=one.bidirectional)
    return found


def _table(signature: Signature) -> Argument | None:
    """Return the learned table (buckets, H) of T5, if it is an argument of the program."""
    found = [a for a in signature.arrays if re.search(r"table|bias|emb|weight", a.name)]
    found = [a for a in found if len(a.axes or ()) == 2 and role(a) not in MASKS]
    return found[0] if len(found) == 1 else None


def _mask_argument(mask: Argument | None) -> tuple[str, str]:
    """Return the kind of a mask as the references take it, and its part of the call line."""
    if mask is None:
        return "", ""
    kind = "mask" if role(mask) == "add" else "keep"
    return kind, f", mask: {_axes(mask)} {'add' if kind == 'mask' else 'keep'}"


def _attention_of_vectors(one: Specified, roles: Roles, signature: Signature) -> CallAndLine:
    kind, line = _mask_argument(roles.get("mask"))
    sinks = [a for a in signature.arrays if re.search("sink", a.name)]
    table = None if one.buckets is None else _table(signature)
    if one.buckets is not None and table is None:
        raise SignatureError(
            "buckets are specified, but the program takes no table of them; wanted an array such "
            f"as table: {one.buckets} H, got {signature}"
        )
    if one.sink and not sinks:
        raise SignatureError(f"a sink is specified, but the program takes none: {signature}")

    def attention(**given: Tensor) -> Tensor:
        known = _attention_settings(one, given["query"].shape[1])
        if kind:
            known[kind] = given["mask"]
        if table is not None:
            r, n = (given[name].shape[2] for name in ("query", "key"))
            known["mask"] = _t5_bias(one, given["table"], r, n) + known.get("mask", 0.0)
        if one.sink:
            known["sink"] = given["sink"].flatten()
        vectors = (given[name] for name in ("query", "key", "value"))
        found: Tensor = references.attend(*vectors, **known)
        return found

    given, back = _vectors_line(roles)
    sink = f", sink: {_axes(sinks[0])}" if one.sink else ""
    sink += "" if table is None else f", table: {_axes(table)}"
    return attention, f"{given}{line}{sink} -> {back}"


def _attention_of_tokens(
    one: Specified, roles: Roles, signature: Signature, module: Any
) -> CallAndLine:
    _require_roles(roles, ["tokens"], "attention of tokens")
    if not one.heads:
        raise WrongSpecification("wanted attention:heads=.. for a layer of tokens, as heads=8,kv=2")
    tokens = roles["tokens"]
    kind, line = _mask_argument(roles.get("mask"))
    tables = bool(one.rope) and "cos" in roles and "sin" in roles
    heads, groups = one.heads, _groups(one, module)

    def attention(**w: Tensor) -> Tensor:
        x = w["x"]
        vectors = {
            c: in_heads(x, w[f"w{c}"], w.get(f"b{c}"), heads if c == "q" else groups) for c in "qkv"
        }
        if one.qk_norm:
            vectors |= {c: references.normed(vectors[c], w[f"n{c}"], eps=one.eps) for c in "qk"}
        if one.rope:
            cos, sin = (
                (w["cos"], w["sin"])
                if tables
                else _tables(torch.arange(x.shape[1])[None], _declared(one), vectors["q"].shape[-1])
            )
            vectors |= {c: _rotated(vectors[c], cos, sin, one.rope, one.width) for c in "qk"}
        known = _attention_settings(one, heads)
        if kind:
            known[kind] = w["mask"]
        if one.buckets is not None:
            known["mask"] = _t5_bias(one, w["table"], x.shape[1], x.shape[1]) + known.get("mask", 0)
        if one.sink:
            known["sink"] = w["sink"]
        made = references.of_each_query_head(
            references.attend(vectors["q"], vectors["k"], vectors["v"], **known)
        )
        return mapped(made, w["wo"], w.get("bo")) if "wo" in w else made

    given = f"x: {_axes(tokens)} tokens"
    if tables:
        given += "".join(f", {n}: {_axes(roles[n])} {n}" for n in ("cos", "sin"))
    return attention, f"{given}{line} -> {_result(signature)}"


def _groups(one: Specified, module: nn.Module | None) -> int:
    """Return the number of heads of keys and values: as specified, else from the weights.

    Raises :class:`WrongSpecification` if the weights have another number.
    """
    assert one.heads is not None
    known = weights_of(module, one.heads, one.kv) if module is not None else {}
    if module is None or not {"wq", "wk"} <= set(known):
        return one.kv or one.heads
    own = dict(module.named_parameters())
    rows, keys = (known[name].evaluate(own).shape[0] for name in ("wq", "wk"))
    found = int(keys * one.heads // rows)
    if one.kv not in (None, found) or rows % one.heads:
        raise WrongSpecification(
            f"wanted heads and kv that fit the weights, got heads={one.heads},kv={one.kv}; queries "
            f"have {rows} channels and keys {keys}, which is kv={found} of heads={one.heads}"
        )
    return found


def mapped(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b."""
    return nn.functional.linear(x, weight, bias)


def in_heads(x: Tensor, weight: Tensor, bias: Tensor | None, heads: int) -> Tensor:
    """x Wᵀ + b, split into heads."""
    found: Tensor = references.in_heads(mapped(x, weight, bias), heads)
    return found


def _linear(one: Specified, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    del module, signature
    _require_roles(roles, ["query", "key", "value"], "linear attention")

    def linear(**given: Tensor) -> Tensor:
        how = references.linear_attention_step_by_step if one.step else references.linear_attention
        found: Tensor = how(given["query"], given["key"], given["value"])
        return found

    given, back = _vectors_line(roles)
    return linear, f"{given} -> {back}"


def _delta(one: Specified, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    del module
    _require_roles(roles, ["query", "key", "value"], "the delta rule")
    gates = [a for a in signature.arrays if role(a) not in ("query", "key", "value")]
    betas = [a for a in gates if re.search("beta", a.name)]
    if not 1 <= len(gates) <= 2:
        raise SignatureError(f"the delta rule takes beta, and optionally a decay; got {signature}")
    if len(betas) == 1:  # otherwise beta comes first
        gates.sort(key=lambda a: a is not betas[0])

    def delta(**given: Tensor) -> Tensor:
        names = ("query", "key", "value", *(gate.name for gate in gates))
        query, *others = (given[name] for name in names)
        query = query if one.scale is None else query * one.scale
        found: Tensor = references.delta_rule(query, *others)
        return found

    given, back = _vectors_line(roles)
    given += "".join(f", {a.name}: {' '.join(_in_order(a))}" for a in gates)
    return delta, f"{given} -> {back}"


def _mla(one: Specified, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    del module
    _require_roles(roles, ["query"], "latent attention")
    others = [a for a in signature.arrays if role(a) != "query"]
    if len(others) != 3:
        raise SignatureError(f"latent attention takes q, the latent, W_K and W_V; got {signature}")

    def mla(**given: Tensor) -> Tensor:
        found: Tensor = references.latent_attention(
            *(given[a.name] for a in (roles["query"], *others)), scale=one.scale, causal=one.causal
        )
        return found

    given = ", ".join(f"{a.name}: {_axes(a)}" for a in (roles["query"], *others))
    return mla, f"{given} -> {_result(signature)}"


def _bias(one: SpecifiedBias, roles: Roles, signature: Signature, module: Any) -> CallAndLine:
    """Return ALiBi or T5 from counts of queries and keys; T5's table is an argument or a weight."""
    del roles
    back = [c for c in letters_in(signature.results[0].axes or ()) if c != "1"]
    if len(back) != len("Hrn"):
        raise SignatureError(f"wanted a bias such as H r n of a program; got {signature}")
    h, r, n = back if back[-1] not in "HG" and not back[-1].isdigit() else (back[-1], *back[:-1])
    learned = one.name == "t5" or (not one.name and one.buckets is not None)
    if not learned and one.name not in ("", "alibi"):
        raise WrongSpecification(f"wanted bias:name=alibi or name=t5; got {one.name!r}")
    given = _table(signature) if learned else None
    if learned and given is None and "table" not in (weights_of(module) if module else {}):
        raise SignatureError(
            "T5's bias needs a table of learned numbers, (buckets, H), which the program lacks; "
            f"write --weights 'table = ..'; got {signature}"
        )
    both = bool(one.bidirectional)

    def bias(*, heads: int, queries: int, keys: int, table: Any = None) -> Tensor:
        offset = _offset(queries, keys, start=one.alignment == "start")
        if learned:
            found: Tensor = references.t5_bias(table, offset, one.distance or 128, both=both)
            return found
        slopes = torch.tensor(one.slopes or published_slopes(heads))
        return slopes[:, None, None] * (-offset.abs() if both else offset)

    told = "" if given is None else f"table: {_axes(given)}, "
    return bias, f"{told}heads = {h}, queries = {r}, keys = {n} -> {h} {r} {n}"

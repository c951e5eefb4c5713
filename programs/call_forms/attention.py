"""Call forms of attention: a table from which the call of undeclared code is guessed.

Each form is a line of the signature language with roles in place of parameter names.  The axes of
the result are read off one call in which all lengths differ.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TypeVar

import torch
from torch import Tensor

from ..calls.attention import OnHeads, on_heads, takes_mask
from ..calls.fitting import Fit, alternatives, best, fitting
from ..calls.masks import is_query_mask, unaffected_queries
from ..calls.meaning import require_meaning
from ..calls.roles import MASKS, SIZES, TRUTH_OF, built_at, role
from ..calls.supplied_inputs import SLOPES
from ..calls.token_subjects import attention, layer
from ..code import Code, DoesNotFit
from ..loading.names import Parameter, order_in, parameters, role_of
from ..signatures.grammar import parse
from ..signatures.signature import Signature, packed_as
from ..subjects import Attention, Layer
from .parts import (
    BOUND_NAMES,
    counts_of,
    further_arguments,
    literal,
    mask_effect,
    with_masks,
    with_query_masks,
    with_result,
)
from .tokens import tokens_line

Adapted = TypeVar("Adapted", Attention, Layer)
QUERY_KEY_VALUE = ("query", "key", "value")
CHOICES: dict[str, tuple[str, ...]] = {
    "<q>": ("B H r D", "B r H D", "B r (H D)", "B r D", "H r D", "r B H D", "r B D", "r D"),
    "<one>": ("B H n D", "B n H D", "B n (H D)", "B n D", "H n D", "n B H D", "n B D", "n D"),
    "<qkv>": (
        *("B n 3 H D", "B n (3 H D)", "3 B H n D", "3 B n H D", "B 3 H n D", "B n (H 3 D)"),
        *("B n H (3 D)", "B H n (3 D)", "B n H 3 D", "B (3 H D) n", "B (H 3 D) n"),
        *("n B 3 H D", "n B (3 H D)", "n B (H 3 D)", "n B H (3 D)", "n 3 H D", "3 H n D"),
        *("B n (3 D)", "B n 3 D", "3 B n D"),
    ),
    "<kv>": (
        *("B n 2 G D", "B n (2 G D)", "2 B G n D", "B 2 G n D", "B n (G 2 D)", "B n G (2 D)"),
        *("2 B n G D", "n B 2 G D", "n B G (2 D)", "B n (2 D)", "B n 2 D"),
    ),
    "<row>": ("B 1 r n", "B r n", "r n", "B H r n", "B 1 1 n", "B n"),
}
FORMS = {  # {braces} stand for the names of query, key and value
    "of heads": "{query}: <q>, {key}: <k>, {value}: <k>",
    "of heads, one length": "{query}: <one>, {key}: <k>, {value}: <k>",
    "of heads, one of keys": "{query}: <q>, {key}: <k>, {value}: <k>",
}
FULL_MASKS = ("B 1 r n", "B 1 1 n", "B n")
HEAD_SCALE = re.compile(r"(logit|head)_scales?|temperatures?|tau")  # a factor of scores
PER_HEAD = re.compile(rf"{SLOPES.pattern}|(attn_|attention_)?sinks?|s_aux|{HEAD_SCALE.pattern}")
MERGED = re.compile(r"[HG] (\d )?D\)")  # heads and their features in one axis
PACKED_FORMS = {"qkv": "{qkv}: <qkv> qkv", "kv": "{query}: <q>, {kv}: <kv> kv"}


def fit_attention(code: Code) -> Attention:
    """Return attention by the form that fits: on queries, keys and values, else on tokens.

    Raises ``DoesNotFit``, and ``Ambiguous`` if two forms fit and differ in meaning.
    """
    return _with_its_needs(_fit_attention, _bound(code))


def _fit_attention(code: Code) -> Attention:
    known = parameters(code.call)
    failed: dict[str, str] = {}
    packed = _packed(known)
    if (packed or _takes_query_key_value(known)) and not code.has_parameters:
        found = _heads_fit(code, known, packed, failed)
        if found is not None:
            return found
    try:
        line, more = tokens_line(code, known, failed, keeps=True)
    except DoesNotFit:
        if not code.options.likely.get("causal"):
            raise
        # its causal flag may require a mask: then call it without, and still check causality
        line, more = tokens_line(
            replace(code, options=replace(code.options, likely={})), known, failed, keeps=True
        )
    if not _speaks_of_attention(code):
        raise DoesNotFit("neither its name nor its source mentions attention or softmax")
    return replace(attention(code, parse(line), guessed=True), others=more)


def fit_layer(code: Code) -> Layer:
    """Return any map of tokens by the form that fits.  Raises ``DoesNotFit``."""
    return _with_its_needs(_fit_layer, _bound(code))


def _fit_layer(code: Code) -> Layer:
    line, more = tokens_line(code, parameters(code.call), {}, keeps=False)
    return replace(layer(code, parse(line), guessed=True), others=more)


def _with_its_needs(fit: Callable[[Code], Adapted], code: Code) -> Adapted:
    """Return what fits; if calls raise without optional masks or tables, what fits with them."""
    try:
        return fit(code)
    except DoesNotFit as error:
        optional = [one for one in parameters(code.call) if not one.required]
        masks = {one.name for one in optional if takes_mask(one)}
        tables = {one.name for one in optional if one.role == "pair"}
        for needed in filter(None, (masks if " raised " in str(error) else set(), tables)):
            with suppress(DoesNotFit):
                return fit(_needing(code, needed))
        raise


def _needing(code: Code, needed: AbstractSet[str]) -> Code:
    """Return the code with these parameters as required ones."""
    needs = partial(code.call)
    needs.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty
                if one.required or one.name in needed
                else one.default,
                annotation=one.annotation,
            )
            for one in parameters(code.call)
        ]
    )
    return code.changed(lambda made: _needing(made, needed), call=needs)


def _bound(code: Code) -> Code:
    """Return the code with those given arguments bound that cannot be written as a literal."""
    known = {one.name for one in parameters(code.call)}
    more = {k: v for k, v in code.options.arguments.items() if k in known and not literal(v)}
    return code.changed(_bound, call=partial(code.call, **more)) if more else code


def _takes_query_key_value(known: tuple[Parameter, ...]) -> bool:
    named = {one.role for one in known}
    first = [one for one in known if one.required and not one.is_number][:3]
    other = ("cos", "sin", "mask", "positions", "length")
    return set(QUERY_KEY_VALUE) <= named or (
        len(first) == 3 and not {one.role for one in first} & {*other}
    )


def _speaks_of_attention(code: Code) -> bool:
    own = f"{code.name} {type(code.call).__name__} {code.text}".lower()
    return any(word in own for word in ("atten", "attn", "softmax", "scaled_dot", "transformer"))


def _named(known: tuple[Parameter, ...], roles: tuple[str, ...]) -> dict[str, str]:
    """Return the parameter for each role: by name, else by order."""
    by = {one.role: one.name for one in reversed(known)}
    if set(roles) <= set(by):
        return {one: by[one] for one in roles}
    free = [one for one in known if not one.is_number]
    places = [one.name for one in free if one.required]
    places += [one.name for one in free if not one.required]
    return dict(zip(roles, places, strict=False))


def _packed(known: tuple[Parameter, ...]) -> dict[str, str]:
    """Return the parameter of queries, keys and values in one array, or those of ``query, kv``."""
    first = [one.name for one in known if one.required and not one.is_number][:2]
    told = [packed_as(name) for name in first]
    if told[:1] == ["qkv"]:
        return {"qkv": first[0]}
    return {"query": first[0], "kv": first[1]} if told == ["", "kv"] else {}


def _heads_fit(
    code: Code, known: tuple[Parameter, ...], packed: Mapping[str, str], failed: dict[str, str]
) -> Attention | None:
    """Fit attention on heads: first the axes, then the meaning of each mask."""
    names = packed or _named(known, QUERY_KEY_VALUE)
    masks = [m.name for m in known if takes_mask(m) and m.name not in code.options.arguments]
    forms = [one for one in PACKED_FORMS if one in packed] or [*FORMS]
    for full, form, counted in product(("", *_full_masks(masks)), forms, counts_of(known)):
        lines = (_packed_lines if packed else _heads_lines)(
            code, known, names, form, counted=counted
        )
        square = form in ("of heads, one length", "qkv")
        shown = full.replace(" r ", " n ") if square else full
        found = fitting(
            (_with_full_mask(line, shown) for line in lines),
            lambda line, full=bool(full): _tried_on_heads(code, line, known, full=full),  # type: ignore[misc]
            code,
            failed,
        )
        if not found:
            continue
        chosen = best(found, code.name)
        line = chosen.line.replace(shown, "")
        axes = [x.replace("r", "n") if square else x for x in CHOICES["<row>"]]
        masked = partial(with_masks, code, axes=axes, marks=_mask_effect)
        line = with_query_masks(code, masked(line, masks), masks, "r", _hides_query, masked)
        given = {one.name for one in parse(line).arguments}
        if unread := [m.name for m in known if m.required and m.name not in given]:
            told = f"it requires {unread[0]!r}, whose meaning is not known"
            raise DoesNotFit(f"{told}; write it behind its axes, with --call")
        return replace(
            on_heads(code, parse(line), guessed=True), others=alternatives(found, chosen)
        )
    return None


def _full_masks(masks: Sequence[str]) -> Iterator[str]:
    """Yield the first mask, showing every key, as it may be required to be."""
    for name, axes, kind in product(masks[:1], FULL_MASKS, ("hide", "keep", *TRUTH_OF)):
        yield f", {name}: {axes} {kind}"


def _with_full_mask(line: str, shown: str) -> str:
    """Return the arguments with such a mask instead of none."""
    name = shown.removeprefix(", ").partition(":")[0]
    return re.sub("(?=;)|$", shown, line.replace(f", {name} = None", ""), count=1) if name else line


def _heads_lines(
    code: Code, known: tuple[Parameter, ...], names: Mapping[str, str], form: str, *, counted: bool
) -> Iterator[str]:
    """Yield the arguments for each order of axes, beginning with that of the source."""
    square = form == "of heads, one length"
    packed = [p.name for p in known if p.required and BOUND_NAMES.fullmatch(p.name)]
    if packed and (square == any(name.endswith("q") for name in packed) or "one of keys" in form):
        return  # bounds of their own go with a number of queries of their own
    axes = CHOICES["<one>" if square else "<q>"]
    axes = ("(B n) H D" if square else "(B r) H D",) if packed else axes
    per_head = [p.name for p in known if p.required and PER_HEAD.fullmatch(p.name)]
    hinted = order_in(code.text).upper().replace("T", "r")
    order = sorted(axes, key=lambda x: x.replace(" ", "").replace("n", "r") != hinted)
    for q in order:
        own = {one.name: "H" for one in known if one.role == "heads" and "(H D)" in q}
        if per_head and "H" not in q:
            continue
        taken = {*names.values(), *own, *per_head}
        shared = form == "of heads, one of keys"
        if shared and "H " not in q.replace("(H D)", ""):
            continue
        for keys in ("",) if shared else ("H ",) if "H" not in q else ("G ", "H "):
            k = q.replace("H ", keys).replace("r", "n")
            each = "H/G" if keys == "G " else "1"
            more = further_arguments(
                code, known, taken, square=square, counted=counted, groups=each
            )
            more += "".join(f", {name} = {letter}" for name, letter in own.items())
            if any(one.name == "enable_gqa" for one in known) and "enable_gqa" not in more:
                more += ", enable_gqa = True"
            line = re.sub(r"\{(\w+)\}: <\w+>", partial(_kinded, names), FORMS[form])
            line = line.replace("<q>", q).replace("<one>", q).replace("<k>", k)
            line = line.format(**names) + more.replace(": B n positions", ": n positions")
            for told in _of_each_head(per_head):
                yield line + told + _heads_clause(code, line)


def _of_each_head(names: Sequence[str]) -> Iterator[str]:
    """Yield arguments of a number for each head; a factor of the scores may have their axes."""
    for axes in ("H", "H 1 1") if any(map(HEAD_SCALE.fullmatch, names)) else ("H",):
        own = ((name, axes if HEAD_SCALE.fullmatch(name) else "H") for name in names)
        yield "".join(f", {name}: {axes} constant" for name, axes in own)


def _packed_lines(
    code: Code, known: tuple[Parameter, ...], names: Mapping[str, str], form: str, *, counted: bool
) -> Iterator[str]:
    """Yield the arguments for each order of the axes of packed arrays."""
    square = form == "qkv"
    bounded = any(one.required and BOUND_NAMES.fullmatch(one.name) for one in known)
    queries = [""] if square else ["(B r) H D"] if bounded else CHOICES["<q>"]
    held = [f"(B n) {'3 H' if square else '2 G'} D"] if bounded else CHOICES[f"<{form}>"]
    for q, axes in product(queries, held):
        if q and not _orders_agree(q, axes):
            continue
        merged = MERGED.search(axes)
        own = {one.name: "H" for one in known if one.role == "heads" and merged}
        more = further_arguments(
            code, known, {*names.values(), *own}, square=square, counted=counted
        )
        more += "".join(f", {name} = {letter}" for name, letter in own.items())
        line = PACKED_FORMS[form].replace("<q>", q).replace(f"<{form}>", axes).format(**names)
        line = line.removesuffix(f" {form}") if packed_as(names[form]) == form else line
        line += more.replace(": B n positions", ": n positions")
        yield line + _heads_clause(code, line)


def _heads_clause(code: Code, line: str) -> str:
    """Return a clause that builds a module with the heads of the line, if they share an axis."""
    setting = _heads_setting(code) if MERGED.search(line) else ""
    return f"; built with {setting} = H" if setting else ""


def _heads_setting(code: Code) -> str:
    """Return the setting of a module's constructor that is its number of heads, if it is open."""
    if code.module is None or code.options.settings:
        return ""
    known = parameters(type(code.module))
    return next((one.name for one in known if one.role == "heads"), "")


def _orders_agree(q: str, packed: str) -> bool:
    """Whether packed keys and values have the axes of the queries, in their order.

    >>> [_orders_agree("B r H D", axes) for axes in ("B n 2 G D", "B n (2 G D)", "B 2 G n D")]
    [True, False, False]
    """
    keys = " ".join(map(str, parse(f"kv: {packed} -> 1").arrays[0].axes or ()))
    return keys.replace("G", "H").replace("n", "r") == q


def _kinded(names: Mapping[str, str], part: re.Match[str]) -> str:
    """Return a part of a form, followed by the role of the array unless its name implies it."""
    said = role_of(names[part[1]]) == part[1]
    return part[0] if said else f"{part[0]} {part[1]}"


def _tried_on_heads(
    code: Code, line: str, known: tuple[Parameter, ...], *, full: bool = False
) -> Fit[str]:
    """Return the line with its result and its quality: rows and heads independent, tokens mixed."""
    line, semicolon, clause = line.partition(";")
    clause = semicolon + clause
    call = parse(f"{line} -> 1{clause}")
    if "H" in call.letters and not any("H" in one.letters for one in call.arrays):
        raise DoesNotFit(f"called as {line}, it is given a number of heads, and no array has heads")
    code = _built(code, call)
    on = OnHeads(code.again(), parse(f"{line} -> 1"), full=full)
    arrays, lengths = on.arguments(*_inputs_of(on, once=True))
    whole = with_result(line, on.program.called(arrays, lengths), lengths) + clause
    on = OnHeads(code.again(), parse(whole), full=full)
    packed = any(role(one) == "bounds" for one in on.signature.arrays)
    require_meaning(on.program.run, arrays, on.signature, lengths, "HG" if packed else "BHG")
    q, k, v = _drawn(code, groups=on.groups == "G")
    q = torch.cat((q, q), 2)[:, :, : k.shape[2]]
    out = on.attend(q, k, v)
    if out.shape != q.shape:
        raise DoesNotFit(f"wanted shape {tuple(q.shape)}, got {tuple(out.shape)}")
    if full and not bool(out.isfinite().all()):
        raise DoesNotFit(f"called as {line}, it shows no key")
    other = v.clone()
    other[1, :, 0] += 1.0
    mixed = bool((out != on.attend(q, k, other))[1, :, 1:].any())
    heads = bool(_heads_setting(code)) or any(one.role == "heads" for one in known)
    return Fit(whole, whole, out, (mixed, on.groups == "G", heads == bool(MERGED.search(line))))


def _built(code: Code, call: Signature) -> Code:
    """Return the code built as the line says."""
    heads, width = code.options.heads or SIZES["H"], _width(code)
    return built_at(code, call, H=heads, D=width, E=heads * width)


def _width(code: Code) -> int:
    return code.options.width or code.options.likely.get("width", 0) or SIZES["D"]


def _drawn(code: Code, *, groups: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    width = _width(code)
    heads = code.options.heads or SIZES["H"]

    def normal(h: int, n: int) -> Tensor:
        return torch.randn(SIZES["B"], h, n, width, generator=generator)

    keys = SIZES["G"] if groups else heads
    return normal(heads, SIZES["r"]), normal(keys, SIZES["n"]), normal(keys, SIZES["n"])


def _inputs_of(on: OnHeads, *, once: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values for a call; ``once``: that calls the code a single time."""
    q, k, v = _drawn(on.code, groups=on.groups == "G")
    letters = on.query_key_value[0].letters
    if once and on.shared:
        k, v = k[:, :1], v[:, :1]
    if once and "B" not in letters:
        q, k, v = q[:1], k[:1], v[:1]
    if "H" not in letters:
        q, k, v = q[:, :1], k[:, :1], v[:, :1]
    return (torch.cat((q, q), 2)[:, :, : k.shape[2]] if on.square else q), k, v


def _hides_query(code: Code, call: Signature, _: str) -> bool:
    """Whether the mask of queries is read as written: it hides query 1 and no other."""
    on = OnHeads(_built(code, call), call)
    q, k, v = _inputs_of(on)
    counts = torch.ones(q.shape[0], q.shape[2], dtype=torch.bool)
    counts[:, 1] = False
    return bool((unaffected_queries(on.attend, on.counting, q, k, v, counts) == counts).all())


def _mask_effect(code: Code, call: Signature, least: float = float("-inf")) -> str:
    """Return what the last mask of the call does with key 1, the only key set to False.

    "hidden", "shown" (the other keys are hidden), "leaks" (mask and key 1 both act), or "".
    Only rows 2 and later are read: in causal code they all see key 1.
    """
    newest = call.arguments[-1].name
    on = OnHeads(
        _built(code, call),
        replace(
            call,
            arguments=tuple(
                one
                for one in call.arguments
                if one.name == newest or role(one) not in MASKS or is_query_mask(one)
            ),
        ),
        least,
    )
    q, k, v = _inputs_of(on)
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    seen[..., 1] = False

    def changed(at: int) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = k.clone(), v.clone()
        keys[:, :, at] += 1.0
        values[:, :, at] += 1.0
        return q, keys, values

    def attend(x: tuple[Tensor, ...], m: Tensor) -> Tensor:
        return on.attend(x[0], x[1], x[2], m)[:, :, 2:]

    return mask_effect(attend, (q, k, v), changed, seen)

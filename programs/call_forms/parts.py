"""Parts of a guessed call of attention: further arguments, the meaning of masks, and the result.

Each is written as part of a line of the signature language.  Masks are tried one at a time, hiding
a token that later queries can see even if the code is causal: this shows what True means.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import torch
from torch import Tensor

from ..calls.attention import takes_mask
from ..calls.roles import MASKS, TRUTH_OF
from ..code import Code, DoesNotFit
from ..loading.names import CAPACITY, INDEX, SIDES, USUAL_ARGUMENTS, Parameter
from ..signatures.grammar import parse
from ..signatures.signature import Signature

# What other required parameters are given, by role: axes or a value.
NO_PLAIN_VALUE = {"embed", "base", "device", "dtype", "window"}  # the right value is not known
ARGUMENTS_BY_ROLE: dict[str, str] = {
    **{role: told for role, told in USUAL_ARGUMENTS.items() if role not in NO_PLAIN_VALUE},
    **dict.fromkeys(("mask", "padding", "pair", "freqs", "cos", "sin"), " = None"),
    "encoding": ": <x> encoding",
}
CACHE_NAMES = (
    "past_key_value",
    "past_key_values",
    "layer_past",
    "kv_cache",
    "cache",
    "past_kv",
    "past",
    "state",
    "cache_kv",
    "past_kvs",
    "prev_state",
)
QUERY_MASK_AXES = ("B r", "B 1 r", "B 1 r 1", "B r 1")
QUERY_MASK_NAMES = re.compile(r"(q|x|quer(y|ies)|tgt|target)_?(pad(ding)?_?|token_?)?mask")
# hide is recognised when keep is tried, zeros when ones are
MASK_KINDS = ("keep", "add", "ones", "factors")
OPPOSITE = {"keep": "hide", "ones": "zeros"}
WEIGHTS = ("B H r n", "B H n n", "B r n", "H r n", "B n n", "r n", "n n")
CACHE_HALF_NAMES = re.compile(
    r"(past|cached?|prev)_?(k|keys?|v|values?)|(k|keys?|v|values?)_?(past|cache)"
)
# an image is one row of tokens here
IMAGE_SIZE_NAMES = re.compile(r"(\w+_)?(sizes?|shapes?|resolution|hw)")
BOUND_NAMES = re.compile(r"cu_?(seq_?)?lens?(_(q|k|kv|x))?")
DOCUMENT_NAMES = re.compile(
    r"(\w+_)?(doc|document|sample|sequence|seq|pack|packing|segment|seg)_?(ids?|idx|index|indices)"
)
SEGMENTS = re.compile(r"(\w+_)?seg(ment)?_?\w+")  # may also be types of tokens, as in BERT
BLOCKED = re.compile(r"\(\d+ [hw]\)")  # the side of an image, a multiple of a number
LENGTH_NAMES = re.compile(r"(\w+_)?(lengths|seq_?lens|[a-z]{0,2}lens)")
ATTRIBUTES = {  # of a module that calls a function of attention
    "training": " = False",
    "layer_idx": " = 0",
    "attention_dropout": " = 0.0",
    "head_dim": " = D",
    "sinks": ": H constant",
}
GROUPS = ("num_key_value_groups", "n_rep", "num_queries_per_kv")
FURTHER_RESULTS = re.compile(r"(output|return|need)_\w+|use_cache")  # flags, without annotation
CONDITION_NAMES = re.compile(r"t?emb|(time|t|timestep)_emb(ed)?(ding)?|vec|adaln_\w+|pooled_\w+")
MaskEffect = Callable[..., str]  # from code and its call; least: the number that hides a key
SOFT = -0.5  # added to a score it hides nothing; read as a boolean it does


def literal(value: Any) -> bool:
    """Whether a value can be written as a Python literal."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def further_arguments(
    code: Code,
    known: tuple[Parameter, ...],
    taken: set[str],
    *,
    square: bool,
    counted: bool = False,
    groups: str = "1",
) -> str:
    """Return the rest of the line: the other required parameters, given arguments, a causal flag.

    ``counted``: a maximal number of tokens is set to the number of tokens of the call.  ``groups``:
    how many heads of queries share one of keys.
    Raises ``DoesNotFit`` for a parameter whose name does not say what it is.
    """
    causal = bool(code.options.likely.get("causal", 0))
    fixed = {k: v for k, v in code.options.arguments.items() if literal(v)}
    packed = any(BOUND_NAMES.fullmatch(one.name) for one in known)
    said = []
    for one in known:
        if one.name in taken:
            continue
        if one.name in fixed:
            said.append(f"{one.name} = {fixed[one.name]!r}")
        elif one.role == "causal" and (one.required or causal):
            said.append(f"{one.name} = {causal}")
        elif one.required and one.name not in code.options.arguments:
            kind = "mask" if takes_mask(one) else one.role
            if one.name in CACHE_NAMES:
                kind = "mask"  # it is given None
            named = _image_size_or_condition(one, {p.name for p in known}) or _of_packed(one)
            if named:
                said.append(named)
                continue
            if LENGTH_NAMES.fullmatch(one.name) and kind != "length":
                said.append(f"{one.name}: B lengths")
                continue
            if one.is_module:
                said.append(f"{one.name} = {_namespace(code, one.name, groups, causal=causal)}")
                continue
            if kind not in ARGUMENTS_BY_ROLE:
                said.append(f"{one.name} = {_unnamed(one)}")
                continue
            own = ARGUMENTS_BY_ROLE[kind] if square or kind != "length" else " = r"
            most = one.is_capacity and not counted and not packed
            own = f" = {CAPACITY}" if most else own
            said.append(one.name + own)
    return "".join(f", {one}" for one in said)


def _namespace(code: Code, name: str, groups: str, *, causal: bool) -> str:
    """Return an object with the attributes that a function reads of the module it is given.

    Attributes for which the code has a default are left to it, but for the groups of heads.
    Raises ``DoesNotFit`` if a name does not say what it is.
    """
    usual = {**ATTRIBUTES, "is_causal": f" = {causal}", **dict.fromkeys(GROUPS, f" = {groups}")}
    read, asked = attributes_read(code.text, name)
    wanted = [*read, *(one for one in asked if one in GROUPS and one not in read)]
    unknown = [one for one in wanted if one not in usual]
    if unknown or not wanted:
        told = ", ".join(f"{one} = .." for one in unknown or ("..",))
        raise DoesNotFit(
            f"it needs {name!r}, and nothing says with which attributes; write "
            f"{name} = namespace({told}), in the whole --call"
        )
    return f"namespace({', '.join(one + usual[one] for one in wanted)})"


def attributes_read(text: str, name: str) -> tuple[list[str], list[str]]:
    """Return the attributes of a variable that a source reads, and those that it asks for by name.

    >>> attributes_read("def f(m): return m.a + getattr(m, 'b', 1) * m.c.d", "m")
    (['a', 'c'], ['b'])
    """
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return [], []
    read: list[tuple[int, int, str]] = []
    asked: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=of), attr=attribute) if of == name:
                read.append((node.lineno, node.col_offset, attribute))
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[ast.Name(id=of), ast.Constant(value=str(attribute)), *_],
            ) if of == name:
                asked[attribute] = None
    return list(dict.fromkeys(one for *_, one in sorted(read))), list(asked)


def _unnamed(one: Parameter) -> str:
    """Return the value of a parameter that is an index or a flag: 0 or False.

    Raises ``DoesNotFit`` for any other: no value is invented for a parameter of unknown effect.
    """
    if INDEX.fullmatch(one.name):
        return "0"
    if one.annotation in (bool, "bool") or FURTHER_RESULTS.fullmatch(one.name):
        return "False"
    if one.is_unknown_number:
        raise DoesNotFit(
            f"it needs {one.name!r}, a whole number, and its name does not say which; "
            f"write {one.name} = 1, or the right value, in the whole --call"
        )
    what = "nothing says with which value" if one.role else "its name does not say what that is"
    raise DoesNotFit(f"it needs {one.name!r}, and {what}; give arguments={{{one.name!r}: ..}}")


def counts_of(known: tuple[Parameter, ...]) -> tuple[bool, ...]:
    """The values of ``counted`` to try: both if a maximal number of tokens is required."""
    return (False, True) if any(one.is_capacity and one.required for one in known) else (False,)


def _image_size_or_condition(one: Parameter, names: set[str]) -> str:
    """Return the argument for the size of an image, or for a conditioning vector; else "".

    The image is one row of tokens.
    """
    name = one.name
    for sides in SIDES:
        if name in sides and set(sides) <= names:
            return f"{name} = {'1n'[sides.index(name)]}"
    if IMAGE_SIZE_NAMES.fullmatch(name) and not one.is_number:
        return f"{name} = (1, n)"
    return f"{name}: B E constant" if CONDITION_NAMES.fullmatch(name) else ""


def _of_packed(one: Parameter) -> str:
    """Return the argument that says which sequence each token is of; else ""."""
    if BOUND_NAMES.fullmatch(one.name):
        return f"{one.name}: (B + 1) bounds"
    named = DOCUMENT_NAMES.fullmatch(one.name) and not one.is_number
    return f"{one.name}: B n documents" if named else ""


def with_result(line: str, value: Any, lengths: Mapping[str, int], *, pooled: bool = False) -> str:
    """Return the line with its result, read off the shapes.  Raises ``DoesNotFit``.

    ``pooled``: the second of three axes may be the code's own number of queries.
    """
    if isinstance(value, Mapping) or hasattr(value, "last_hidden_state"):
        mapping = isinstance(value, Mapping)
        name = (
            next(iter(value))
            if mapping and "last_hidden_state" not in value
            else ("last_hidden_state")
        )
        found = value[name] if mapping else value.last_hidden_state
        return f"{line} -> {{{name}: {axes_of(found, lengths, line)}}}"
    if not isinstance(value, tuple | list):
        return f"{line} -> {axes_of(value, lengths, line, pooled=pooled)}"
    if not value:
        raise DoesNotFit("it returned nothing")
    said = [axes_of(value[0], lengths, line, pooled=pooled)]
    for one in value[1:]:
        try:
            axes = axes_of(one, lengths, line)
        except DoesNotFit:
            axes = ""
        if "E" not in lengths and said[0] in WEIGHTS and axes.endswith("D"):  # weights first
            said = [f"weights: {said[0]}", axes]
            continue
        shown = "E" not in lengths and axes in WEIGHTS and "weights" not in " ".join(said)
        said.append(f"weights: {axes}" if shown else "_")
    return f"{line} -> {', '.join(said)}"


def axes_of(value: Any, lengths: Mapping[str, int], line: str, *, pooled: bool = False) -> str:
    """Return the axes of an array, recognised by their lengths; the last may be of another length.

    Raises ``DoesNotFit``.
    """
    if not isinstance(value, Tensor):
        raise DoesNotFit(f"wanted a tensor back, got {type(value).__name__}")
    letters = parse(f"{line} -> 1").letters
    there = [c for c in "BHGVrnhwDEC" if c in letters]
    known = {lengths[c]: c for c in reversed(there)}
    tokens = [
        str(a)
        for one in parse(f"{line} -> 1").arrays
        for a in one.axes or ()
        if a.letters == ("n",) and len(a.terms) == 1 and a.split != ("n",)
    ]
    known |= dict.fromkeys([lengths["n"]] if tokens else [], next(iter(tokens), ""))
    sides = (a for one in parse(f"{line} -> 1").arrays for a in one.axes or ())
    known |= {lengths[str(a)[-2]]: str(a) for a in sides if BLOCKED.fullmatch(str(a))}
    rows = re.search(r": (\d+) n E", line)  # code that takes so many rows
    known |= {int(rows[1]): rows[1]} if rows else {}
    for a, b in combinations(there, 2):
        known.setdefault(lengths[a] * lengths[b], f"({a} {b})")
    said = [known.get(size, "") for size in value.shape]
    if pooled and said[::2] == ["B", "E"] and said[1] in ("", "B", "E"):
        said[1] = str(value.shape[1])
    if said and not said[-1]:
        said[-1] = "F"
    if not all(said):
        raise DoesNotFit(
            f"it returned an array of shape {tuple(value.shape)}, whose axes are unknown"
        )
    return " ".join(said)


def with_mask(code: Code, line: str, name: str, axes: Iterable[str], marks: MaskEffect) -> str:
    """Return the line with this mask, in the first axes in which it has an effect.

    A mask that leaks is kept too, for the laws to be checked: as additive if it acts in no other
    way or leaks less than half as much that way, else as boolean.  One that the source takes from 1
    holds 0 and 1.
    """
    leaks, numbers = "", re.search(rf"\b1(\.0*)? - {name}\b", code.text) is not None
    for one in axes:
        told: dict[str, bool] = {}
        through: dict[str, tuple[float, str]] = {}
        for kind in MASK_KINDS:
            if (kind == "add" and numbers) or (kind in TRUTH_OF and any(told.values())):
                continue
            trial = inserted(line, f"{name}: {one} {kind}")
            try:
                what = marks(code.again(), parse(trial))
            except Exception:  # noqa: BLE001 (the code may not take such a mask)
                continue
            if what == "shown" and kind in OPPOSITE:
                told[OPPOSITE[kind]] = True
            elif what == "hidden":
                told[kind] = kind != "add" or marks(code.again(), parse(trial), least=SOFT) != what
            elif isinstance(what, Leaks) and kind in ("keep", "add", "ones"):
                through[kind] = what.part, trial
        found = [kind for kind in MASKS if told.get(kind)]
        if found:
            return inserted(line, f"{name}: {one} {' or '.join(found[:2])}")
        if "ones" in through and numbers:
            leaks = leaks or through["ones"][1]
        elif through:
            kept, added = (through.get(kind, (math.inf, "")) for kind in ("keep", "add"))
            leaks = leaks or (added if 2 * added[0] < kept[0] else kept)[1]
    return leaks or line


def with_masks(
    code: Code, line: str, names: Iterable[str], axes: Iterable[str], marks: MaskEffect
) -> str:
    """Return the line with those of these masks that hide keys and are not yet in it."""
    for name in names:
        if parse(line).named(name) is None:
            line = with_mask(code, line, name, axes, marks)
    return line


def with_query_masks(
    code: Code,
    line: str,
    names: Sequence[str],
    letter: str,
    hides: Callable[[Code, Signature, str], bool],
    more: Callable[[str, Iterable[str]], str],
) -> str:
    """Return the line with masks of queries, each in the first axes in which it works as written.

    ``letter``: that of queries.  ``more``: adds the masks of keys that must accompany one.
    """
    for name in filter(QUERY_MASK_NAMES.fullmatch, names):
        rest = [one for one in names if one != name]
        tried = product(QUERY_MASK_AXES, ("keep", "hide", *TRUTH_OF))
        for axes, kind in tried if parse(line).named(name) is None else ():
            try:
                trial = more(inserted(line, f"{name}: {axes.replace('r', letter)} {kind}"), rest)
                if hides(code.again(), parse(trial), name):
                    line = trial
                    break
            except Exception:  # noqa: BLE001 (the code may not take such a mask)
                continue
    return line


def inserted(line: str, said: str) -> str:
    """Return the line with one more argument, which replaces the same argument set to None."""
    name = said.partition(":")[0]
    before, arrow, after = line.partition(" -> ")
    before = before.replace(f", {name} = None", "")
    return f"{before}, {said}{arrow}{after}"


class Leaks(str):
    """A mask that leaks: a hidden token has ``part`` times the effect of a visible one."""

    __slots__ = ("part",)
    part: float


def mask_effect(
    call: Callable[[Any, Tensor], Tensor], plain: Any, changed: Callable[[int], Any], seen: Tensor
) -> str:
    """Return what a mask does whose entry 1 is False: "hidden", "shown", ``Leaks`` or ""."""
    before = call(plain, seen)
    if not bool(torch.isfinite(before).all()):
        return ""
    moved = [float((call(changed(at), seen) - before).abs().max()) for at in (1, 0)]
    if 0 in moved and any(moved):
        return "shown" if moved[0] else "hidden"
    every = call(plain, torch.ones_like(seen))
    if not any(moved) or torch.equal(before, every):
        return ""
    found = Leaks("leaks")
    found.part = moved[0] / moved[1]
    return found

"""Call forms of biases and masks: their lines, guessed when none is given.

The name of each parameter says which length or array it is given; if no name says anything, every
order is tried.  The axes of the result are read off two calls in which all lengths differ, and the
line is then treated like one given by the user.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..calls.counts import bias, heads_of, mask, missing_start, plain_arrays, table_of_window
from ..calls.fitting import Fit, alternatives, best, fitting, without_implied_roles
from ..calls.roles import as_described, describe_call_error, lengths_of, runner
from ..code import Ambiguous, Code, DoesNotFit
from ..execution.draw import normal
from ..loading.names import USUAL_ARGUMENTS, Parameter, parameters, role_of
from ..signatures.grammar import parse
from ..subjects import Bias, Mask
from .parts import CACHE_NAMES, LENGTH_NAMES

# Two calls: no two letters, and no two products of letters, have the same length in both.
FIRST_LENGTHS = {"B": 3, "r": 5, "n": 7, "t": 6, "h": 2, "w": 9, "p": 0}
SECOND_LENGTHS = {"B": 2, "r": 6, "n": 11, "t": 5, "h": 4, "w": 13, "p": 0}
OWN = ("heads", "rows", "window", "base", "device", "dtype")
ARGUMENTS_BY_ROLE = {
    **{role: USUAL_ARGUMENTS[role] for role in OWN},
    "groups": " = H",
    "causal": " = True",
}
TOKENS = ("tokens", "value", "query")
UNNAMED_ORDERS = {1: ("n",), 2: ("r n", "H n", "n H"), 3: ("H r n", "r n H")}
BIAS_METHODS = re.compile(r"bias|alibi|get_rel", re.IGNORECASE)
_BIAS = re.compile(
    r"(?:(?:1|B|H|\(B H\)) )*(?:(?:r|n|1) n|(?:r|n) n H)|(?:(?:1|H) )*\(h ([hw])\) \(h \1\)"
)
_MASK = re.compile(r"(?:(?:1|B|H|\(B H\)) )*(?:r|n) n(?: 1)?")
# Also padding masks, the same for every query.
_ROWS = re.compile(rf"{_MASK.pattern}|(?:B|\(B H\)) (?:1 )*n")
HIDES_BELOW = -100.0  # an additive mask hides a key with a number below this
OFFSETS = "(2 n - 1)"  # a row for each offset; first query and last key come first
SIGNED = "(2 n)"  # the same, starting at -n
GRIDS = re.compile(r"(grid|image|img|patch|feature|feat|spatial)_?(size|shape|sizes)|grid|hw|shape")
IDS = re.compile(r"input_ids|token_ids|word_ids", re.IGNORECASE)
# Names of the arrays from which a mask or a bias is made.
DOCUMENTS = re.compile(r"(\w+_)?(sample|segment|seg|doc|document|sequence|seq|block|group)_?ids?")
TIMES = re.compile(r"(time|pos|position)_ids?")
CACHED_TIMES = re.compile(r"cache_positions?")  # of the queries, among the keys
SHAPES = re.compile(r"(input|token|tgt|target|src|source)(_ids)?_shape")  # of ids, (B, n)
SPANS = re.compile(r"(chunk|window|block|look|left|right|future)(_\w+)?")  # counted in tokens
WIDTHS = re.compile(r"(dim|dimension|size|features|channels|units)$")
SCORES = re.compile(r"((qk|attn|attention|raw)_)?(dots|sim|scores?|logits|weights)|attn|att")
SCORES_GIVEN = re.compile(r": B H [rn] n( constant)?(,|$)")
Kind = TypeVar("Kind")


def _needed(code: Code) -> list[Parameter]:
    """Return the parameters to be filled: required ones, and lengths with default None."""
    lengths = ("length", "keys")
    return [
        one
        for one in parameters(code.call)
        if one.required or (one.role in lengths and one.default is None)
    ]


def _arguments(code: Code, *, heads: bool) -> Iterator[list[str]]:
    """Yield groups of argument lists: those that the names imply, else every order of letters.

    ``heads``: one argument may be a number of heads, as for a bias.
    """
    known = _needed(code)
    roles = [one.role for one in known]
    keyed = bool({"keys", "key", "mask", "padding"} & set(roles)) or roles.count("length") > 1
    keyed = keyed or any(SCORES.fullmatch(one.name) for one in known)
    past = any(one.name in CACHE_NAMES for one in known)  # an empty cache: as many keys as queries
    rows = "r" if keyed and not past else "n"
    named = False  # whether the names say what each parameter is
    for tokens in dict.fromkeys((rows, "n")):
        told, lengths = [], 0
        pair = {"query": rows, "key": "n"} if {"query", "key"} <= set(roles) else {}
        pair |= {"key": "n"} if "key" in roles else {}
        for one in known:
            lengths += one.role == "length"
            told.append(
                made
                if (made := _row_argument(one, rows))
                else f"{one.name} = {rows if lengths == 1 else 'n'}"
                if one.role == "length"
                else f"{one.name} = n"
                if one.role == "keys"
                else f"{one.name}: B H {pair[one.role]} D"
                if one.role in pair
                else f"{one.name} = None"
                if one.name in CACHE_NAMES
                else f"{one.name}: B {tokens} E tokens"
                if one.role in TOKENS
                else f"{one.name}: B n keep"
                if one.role in ("mask", "padding")
                else f"{one.name} = D"
                if one.role in ("width", "embed")
                else f"{one.name}{ARGUMENTS_BY_ROLE[one.role]}"
                if one.role in ARGUMENTS_BY_ROLE
                else ""
            )
        arrays = any({":", "("} & {*_row_argument(one, rows)} for one in known)
        counted = {"length", "keys", "key", "mask", "padding", *TOKENS} & set(roles)
        if all(told) and (not known or arrays or counted):
            yield [without_implied_roles(", ".join(told))]
            if any(SCORES.fullmatch(one.name) for one in known):  # heads may differ from its own
                yield [without_implied_roles(", ".join(told)).replace(": B H", ": B G")]
                yield [without_implied_roles(", ".join(told)).replace(" r n", " n n")]
            elif len(known) == 1 and roles[0] == "tokens":  # it may be scores, or words
                name = known[0].name
                scores = [f"{name}: {axes} r n tokens" for axes in ("B H", "B")]
                yield from ([f"{name}: B H {q} n constant"] for q in "rn" if heads)  # to add to
                yield scores if heads else [f"{name}: B n ids"]
            if not set(TOKENS) & set(roles):
                named = True
                break
    if roles[:1] == ["length"]:  # named like one length, it may be one length per row
        more = [
            f"{one.name} = n"
            if one.role == "length"
            else f"{one.name}{ARGUMENTS_BY_ROLE.get(one.role)}"
            for one in known[1:]
            if one.role == "length" or one.role in ARGUMENTS_BY_ROLE
        ]
        if len(more) == len(known) - 1:
            yield [", ".join([f"{known[0].name}: B lengths", *more])]
    if named:
        return
    free = [one for one in known if one.role not in ("device", "dtype", "rows")]
    rest = [f"{one.name}{ARGUMENTS_BY_ROLE[one.role]}" for one in known if one not in free]
    if any(one.role in ("embed", "width") for one in free):
        return  # features are neither tokens nor heads
    orders = [
        order.split() for order in UNNAMED_ORDERS.get(len(free), ()) if heads or "H" not in order
    ]
    yield [
        ", ".join([*(f"{p.name} = {c}" for p, c in zip(free, order, strict=True)), *rest])
        for order in orders
    ]
    if len(free) == 1 and not free[0].role and free[0].annotation not in (int, "int"):
        kinds = ("B n ids", "B n E tokens", "B n keep")
        yield [", ".join([f"{free[0].name}: {axes}", *rest]) for axes in kinds]


def _row_argument(one: Parameter, rows: str) -> str:
    """Return an argument such as lengths, ids or scores, recognised by its name; else ""."""
    if SHAPES.fullmatch(one.name):
        return f"{one.name} = (B, n)"
    if LENGTH_NAMES.fullmatch(one.name):
        return f"{one.name}: B lengths"
    if DOCUMENTS.fullmatch(one.name) or IDS.search(one.name):
        return f"{one.name}: B n ids"
    if TIMES.fullmatch(one.name):
        return f"{one.name}: B n positions"
    if CACHED_TIMES.fullmatch(one.name):
        return f"{one.name}: {rows} positions"
    if SPANS.fullmatch(one.name) and not one.role:
        return f"{one.name} = 3"
    return f"{one.name}: B H {rows} n" if SCORES.fullmatch(one.name) else ""


def built_clauses(code: Code) -> Iterator[str]:
    """Yield ``built with`` clauses that set a size of the constructor to a length of the call."""
    owner = type(getattr(code.call, "__self__", code.call))
    known = parameters(owner) if not inspect.isroutine(code.call) or code.module else ()
    for one in known:
        if one.role in ("length", "keys"):
            yield f"built with {one.name} = n"
        window = one.role == "window" or (one.required and GRIDS.fullmatch(one.name))
        if window:
            yield f"built with {one.name} = (h, w)"
        if window or one.role in ("length", "keys"):
            yield f"built with {one.name} = h"  # the side of a square


def _heads_clauses(code: Code, told: str) -> Iterator[str]:
    """Yield "", then a clause that sets the module's number of heads to that of given scores."""
    yield ""
    if code.module is not None and SCORES_GIVEN.search(told):
        for one in parameters(type(code.module)):
            if one.role == "heads":
                yield f"; built with {one.name} = H"


def returned_axes(
    code: Code, told: str, clause: str, own: str, more: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield the axes of each returned array, and the result as written after the arrow.

    ``own``: the letter of an axis that has the same length in both calls and no length of an input.
    Raises ``DoesNotFit``.
    """
    signature = parse(f"{told} -> 1{clause}")
    letters = [c for c in signature.letters if c != "p"]
    if any(one.kind == "lengths" for one in signature.arrays):
        letters = list(dict.fromkeys([*letters, "n"]))  # as long as the longest row
    areas = [(c, d) for c in letters for d in letters if (c != d or c == "h") and d != "B"]
    names: list[dict[str, int]] = []
    found: list[dict[str, Tensor]] = []
    for sizes in (FIRST_LENGTHS, SECOND_LENGTHS):
        at = {**lengths_of(signature), **sizes, **more}
        called = runner(code, signature, whole=True)(plain_arrays(signature, at), at)
        found.append(_arrays_in(called))
        areas_at = {f"({c} {d})": at[c] * at[d] for c, d in areas}
        offsets = {OFFSETS: 2 * at["n"] - 1, SIGNED: 2 * at["n"]} if "n" in letters else {}
        offsets |= {
            str(a): a.size({}) for one in signature.arrays for a in one.axes or () if not a.letters
        }
        names.append({"1": 1, **{c: at[c] for c in letters}, **areas_at, **offsets})
    for back in (one for one in found[0] if one in found[1]):
        shapes = [one[back].shape for one in found]
        if len(shapes[0]) != len(shapes[1]):
            raise DoesNotFit(f"it returned {shapes[0]}, and {shapes[1]} for other lengths")
        axes = []
        for pair in zip(*shapes, strict=True):
            fits = (c for c in names[0] if (names[0][c], names[1][c]) == pair)
            axes.append(next(fits, own if pair[0] == pair[1] and own not in letters else ""))
            if not axes[-1]:
                told = (
                    f"an axis of length {pair[0]}, then {pair[1]}, matches no length of its inputs"
                )
                raise DoesNotFit(told)
        yield " ".join(axes), back % " ".join(axes)


def _arrays_in(value: Any) -> dict[str, Tensor]:
    """Return the arrays in a result, keyed by how each is written: alone, in a tuple, a field."""
    if isinstance(value, Tensor):
        return {"%s": value}
    if isinstance(value, tuple | list):
        places = range(len(value))
        held = {", ".join("%s" if k == i else "_" for k in places): value[i] for i in places}
    else:
        fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        held = {f"{{{name}: %s}}": one for name, one in fields.items()}
    found = {one: x for one, x in held.items() if isinstance(x, Tensor) and x.dim() > 1}
    if not found:
        raise DoesNotFit(f"wanted a tensor back, got {type(value).__name__}")
    return found


def _lines(
    code: Code, allowed: re.Pattern[str], own: str, failed: list[str]
) -> Iterator[list[str]]:
    """Yield groups of lines whose arguments the code accepts and whose result has allowed axes."""
    more = {"H": heads_of(code), "G": 37, "D": 22, "E": 26}
    built = [f"; {one}" for one in built_clauses(code)]
    told_of = _arguments(code, heads=own == "H")
    groups = [
        [
            (told, one)
            for told in group
            for one in (_heads_clauses(code, told) if _needed(code) else built)
        ]
        for group in told_of
    ]
    groups.append([(told, "") for told in _window(code)])
    for group in groups:
        lines = []
        for told, clause in group:
            try:
                for axes, back in returned_axes(code, told, clause, own, more):
                    swapped = " n n" in f" {axes}" and ("= r" in told or " r " in told)
                    fits = _ROWS if " lengths" in told and allowed is _MASK else allowed
                    spent = "= H" in told and "H" not in axes  # not a number of heads after all
                    if swapped or spent or not fits.fullmatch(axes) or axes.count("H") > 1:
                        failed.append(f"called with ({told}), it returned {axes}")
                        continue
                    lines.append(f"{told} -> {back}{clause}".strip())
            except Exception as error:  # noqa: BLE001 (the code may raise anything)
                failed.append(f"called with ({told}): {describe_call_error(code, error)}")
        if lines:
            yield lines


def _window(code: Code) -> Iterator[str]:
    """Yield arguments for the sizes of a window, as a tuple or separately."""
    known = [one.name for one in _needed(code)]
    if len(known) == 1:
        yield f"{known[0]} = (h, w)"
        yield f"{known[0]} = h"  # the side of a square
    if len(known) == 2:
        yield f"{known[0]} = h, {known[1]} = w"


def _methods(code: Code) -> Iterator[str]:
    """Yield the methods whose names suggest a bias, then "" for the object itself."""
    if not inspect.isroutine(code.call):
        named = [
            name
            for name in dir(type(code.call))
            if BIAS_METHODS.search(name)
            and not hasattr(nn.Module, name)
            and not name.startswith("_")
            and inspect.isroutine(getattr(code.call, name, None))
        ]
        yield from sorted(named, key=lambda name: "compute" not in name)
    yield ""


def first_fit(
    groups: Iterable[list[str]],
    tried: Callable[[Code, str], Fit[Kind]],
    code: Code,
    failed: list[str],
) -> Kind | None:
    """Return what the best line of the first fitting group makes; None if no line fits.

    Each line is tried on a fresh build, so that a wrong call leaves nothing behind for the right
    one.  Raises ``Ambiguous``.
    """
    left = iter(groups)

    def rest() -> Iterator[Fit[Kind]]:
        for group in left:
            yield from fitting(group, lambda line: tried(code.again(), line), code, {})

    for group in left:
        why: dict[str, str] = {}
        found = fitting(group, lambda line: tried(code.again(), line), code, why)
        failed[:0] = why.values()  # a line that can be called explains more than one that cannot
        if found:
            chosen = best(found, code.name)
            return replace(chosen.way, others=alternatives(found, chosen, rest))  # type: ignore[type-var]
    return None


def fit_bias(code: Code) -> Bias:
    """Return a bias by the line that fits.  Raises ``DoesNotFit`` and ``Ambiguous``."""
    hidden = getattr(code.call, "has_relative_attention_bias", True) is False
    built = "; built with has_relative_attention_bias = True" * hidden
    failed: list[str] = []
    for method in _methods(code):
        clauses = f"; method {method}" * bool(method) + built
        try:
            one = as_described(code, parse(f"-> 1{clauses}"))
            tried = partial(_fit_bias_line, clauses)
            found = first_fit(_lines(one, _BIAS, "H", failed), tried, one, failed)
        except Ambiguous:
            raise
        except DoesNotFit as error:
            failed.append(str(error))
            continue
        if found is not None:
            return found
    if hasattr(code.call, "relative_position_bias_table"):
        return table_of_window(code)
    raise DoesNotFit(
        failed[0] if failed else "none of its parameters is a number of queries or keys"
    )


def _fit_bias_line(clauses: str, code: Code, line: str) -> Fit[Bias]:
    """Fit a line as a bias; for a window, whole numbers are the index into a table."""
    numbers = _value(code, line)
    if line.partition(";")[0].endswith(" H") and _is_width(code, numbers.shape[-1]):
        raise DoesNotFit(f"called as {line}, it returns features for each offset, not heads")
    whole = not numbers.is_floating_point()
    if whole and "(h " not in line:
        raise DoesNotFit(f"wanted numbers to add, got {numbers.dtype}")
    given = parse(f"{_ended(_placed(code, line), 'index' * whole)}{clauses}")
    subject = bias(code, given, guessed=True)
    square = subject.bias(6, 6) if subject.bias is not None else torch.zeros(2, 2)
    along = torch.equal(square[..., 1:, 1:], square[..., :-1, :-1]) and bool(square.any())
    if " r n tokens" in line and not along:
        raise DoesNotFit(
            f"called as {line}, it returns a number for each position, not for each offset"
        )
    if " n constant" in line:
        _require_added(code, line, square)
    if subject.bias is not None and _decays(square):
        raise DoesNotFit(
            f"called as {line}, it returns factors of weights, 0 for later keys, and "
            f"not a bias that is added to scores"
        )
    sides = (2, 2) if subject.square else (2, 3)
    seen = (
        subject.bias(3, 7)
        if subject.bias is not None
        else subject.window(*sides)
        if subject.window is not None
        else subject.index(sides)
        if subject.index is not None
        else torch.zeros(())
    )
    return Fit(str(given), subject, seen, (not subject.square,))


def _is_width(code: Code, size: int) -> bool:
    """Whether the code was built with this number of features rather than of heads."""
    names = [name.lower() for name, built in code.built.items() if built == size]
    return any(role_of(one) in ("embed", "width") or WIDTHS.search(one) for one in names) and not (
        any("head" in one for one in names)
    )


def _decays(square: Tensor) -> bool:
    """Whether the entries are in (0, 1] up to each query and 0 after it."""
    late = torch.ones(square.shape[-2:], dtype=torch.bool).triu(1)
    here = square[..., ~late]
    return not bool(square[..., late].any()) and bool(((here > 0) & (here <= 1)).all())


def _require_added(code: Code, line: str, square: Tensor) -> None:
    """Refuse a line of scores unless numbers that differ between keys are added to them."""
    call = parse(line)
    (scores,) = call.arrays
    lengths = {**FIRST_LENGTHS, "H": heads_of(code)}
    given = torch.zeros(scores.shape(lengths)), normal(*scores.shape(lengths), seed=1)
    plain, other = (
        next(iter(runner(code, call)({scores.name: x.clone()}, lengths).values())) for x in given
    )
    if not torch.allclose(other, plain + given[1], atol=1e-4):
        raise DoesNotFit(f"called as {line}, it does more to scores than to add numbers")
    if torch.equal(square, square[..., :1].expand_as(square)):
        raise DoesNotFit(f"called as {line}, it adds the same number to the scores of all keys")


def _ended(line: str, kind: str) -> str:
    """Return the line with this kind for its result."""
    call = parse(line)
    back = tuple(replace(one, kind=kind) if one.axes else one for one in call.results)
    return str(replace(call, results=back))


def _value(code: Code, line: str) -> Tensor:
    signature = parse(line)
    more = {"H": heads_of(code), "G": 37, "D": 22, "E": 26}
    lengths = {**FIRST_LENGTHS, **more}
    found: Tensor = next(
        iter(runner(code, signature)(plain_arrays(signature, lengths), lengths).values())
    )
    return found


def _placed(code: Code, line: str) -> str:
    """Return the line, with the position of the first query if the code needs it to be right."""
    left = missing_start(code, parse(line))
    return line.replace(" ->", f", {left} = (n - r) ->") if left else line


def fit_mask(code: Code) -> Mask:
    """Return a mask by the line that fits.  Raises ``DoesNotFit`` and ``Ambiguous``."""
    failed: list[str] = []
    found = first_fit(_lines(code, _MASK, "1", failed), _fit_mask_line, code, failed)
    if found is not None:
        return found
    raise DoesNotFit(
        failed[0] if failed else "none of its parameters is a number of queries or keys"
    )


def _fit_mask_line(code: Code, line: str) -> Fit[Mask]:
    """Fit a line as a mask, and tell what True means from the fact that a query sees itself.

    Numbers that are all 0 or 1 are read as booleans; a mask of zeros only is additive and hides
    nothing.
    """
    plain = mask(code, parse(line)).mask
    square = plain(6, 6)
    truth = square.dtype == torch.bool or (
        bool(((square == 0) | (square == 1)).all()) and bool(square.any())
    )
    own = bool(square.diagonal(dim1=-2, dim2=-1).any())
    kind = "add" if not truth else "keep" if own else "hide"
    if kind == "add" and bool(((square != 0) & (square > HIDES_BELOW)).any()):
        raise DoesNotFit(
            f"called as {line}, it returns numbers that hide nothing when they are added"
        )
    signature = parse(_ended(line, kind))
    return Fit(str(signature), mask(code, signature, guessed=True), plain(3, 7).double(), ())

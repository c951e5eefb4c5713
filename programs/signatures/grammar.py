"""The parser of the signature language: from a line that describes a call to its data."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import Any

from .signature import (
    KINDS,
    PACKED,
    TOKEN,
    Applied,
    Argument,
    Axis,
    Same,
    Signature,
    SignatureError,
    Source,
    State,
    packed_as,
)

WANTED = "parts such as x: B n E, an arrow ->, and the result"
_LETTER = re.compile(r"[A-Za-z]\d?'*")
_NAME = re.compile(r"[^\W\d]\w*")  # Greek letters, too
EMPTY = ("{}", "[]")
_CALLED = re.compile(r"[A-Za-z_]\w*\(\)")
_FROM = re.compile(r"(.+?)\s+from\s+([\w.]+)\s*\((.*)\)", re.DOTALL)
_THEN = re.compile(r"then\s+([\w.]+)\s*\((.*)\)", re.DOTALL)
_BUILT = re.compile(r"built\s+with\s+(.+)", re.DOTALL)
_KEYS = re.compile(r"keys\s+with\s+(.+)", re.DOTALL)
_METHOD = re.compile(r"method\s+([^\W\d]\w*)")
_NAMESPACE = re.compile(r"namespace\((.+)\)", re.DOTALL)
_QUOTIENT = re.compile(r"(.+)/\s*([A-Za-z]\d?'*)")
_DTYPE = re.compile(r"torch\.(\w+)")
_OPEN = re.compile(r"(\w+)\s*[:=]\s*\?|->[^;]*\?")
_ARRAY = re.compile(r"[^\W\d]\w*\s*:")
_SAME = re.compile(r"([^\W\d]\w*)\s*=\s*([^\W\d]\w*)")
_EITHER = re.compile(r"\b(\w+) +or +(\w+)\s*$")


def parse(text: str) -> Signature:
    """Parse a call.  Raises :class:`SignatureError` with what was expected, found, and where.

    >>> str(parse("x:B n (H D), mask: B n keep, causal=True -> x"))
    'x: B n (H D), mask: B n keep, causal = True -> x'
    >>> parse("q: B H n D, k: B G n D -> q").letters
    ('B', 'H', 'n', 'D', 'G')
    """
    # not cached: the code may modify a list or dictionary that is passed to it
    return _parsed(text) if {*"[{"} & {*text} else _parsed_once(text)


def _parsed(text: str) -> Signature:
    if found := _OPEN.search(text):
        open_ = f"what {found[1]} is" if found[1] else "the axes of the result"
        raise SignatureError(
            f"wanted {open_}, such as axes, a length or a value, in place of ? in {text!r}"
        )
    first, *more = re.sub(r"\n\s*(?=step:)", "; ", text).split(";")
    call = _call(first, text)
    # outside step:, empty containers are plain values
    call = replace(call, arguments=tuple(map(_literal, call.arguments)))
    inner = [part for one in call.arguments if one.named for part in one.parts]
    if states := (*call.states, *(one for one in inner if isinstance(one.value, State))):
        raise SignatureError(
            f"wanted NAME: AXES, or NAME = VALUE, got {str(states[0])!r} in {text!r}; what "
            "one step passes to the next is written after step:"
        )
    for part in map(str.strip, more):
        if part.startswith("step:"):
            call = replace(call, step=_call(part.removeprefix("step:"), text))
        else:
            call = _with_clause(call, part, text)
    return call


_parsed_once = lru_cache(maxsize=4096)(_parsed)  # call forms try the same lines again


def _call(text: str, whole: str) -> Signature:
    """Parse one call: its arguments and results."""
    before, arrow, behind = text.partition("->")
    if not arrow or not behind.strip():
        missing = "a result" if arrow else "an arrow"
        raise SignatureError(f"wanted {WANTED}; got {text!r}, without {missing}")
    arguments = _arguments(_parts(before, whole), whole)
    names = [one.name for one in arguments]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise SignatureError(f"wanted each parameter once, got {twice!r} twice in {whole!r}")
    told = behind.strip()
    mapping = told.startswith("{") and told.endswith("}")
    known = {array.name: array for one in arguments for array in one.arrays}
    known |= {one.name: one for one in arguments if isinstance(one.value, State)}
    told = told.strip("{}") if mapping else told
    packed = {one.name: one.parts for one in arguments if one.packed is not None}
    results = tuple(
        one
        for part in _parts(told, whole)
        for one in (
            [replace(x, kind="", of=part) for x in packed[part]]
            if part in packed
            else [_result(part, known, whole)]
        )
    )
    if mapping and not all(one.name for one in results):
        raise SignatureError(f"wanted a key for each value, such as {{out: B n E}}, in {whole!r}")
    if not any(one.axes is not None for one in results):
        raise SignatureError(f"wanted at least one array in the result, got {told!r}")
    _require_known(arguments, results, whole)
    return Signature(arguments, results, mapping)


def _require_known(
    arguments: tuple[Argument, ...], results: tuple[Argument, ...], whole: str
) -> None:
    """Refuse a result of one letter that no argument has beside arrays: a misspelt name."""
    arrays = [array for one in arguments for array in one.arrays]
    letters = {c for one in (*arrays, *arguments) for c in (*one.letters, *one.lengths)}
    for one in results:
        told = " ".join(map(str, one.axes or ()))
        plain = not one.name and not one.kind and _LETTER.fullmatch(told)
        if arrays and plain and told not in letters:
            raise SignatureError(
                f"wanted axes, or the name of an array before the arrow, such as "
                f"{', '.join(array.name for array in arrays)}; got {told!r} in {whole!r}"
            )


def _with_clause(call: Signature, told: str, whole: str) -> Signature:
    """Return the call with a clause that follows a semicolon."""
    if found := _METHOD.fullmatch(told):
        return replace(call, method=found[1])
    if found := _BUILT.fullmatch(told):
        return replace(call, built=_values(found[1], "of the constructor", whole))
    if found := _KEYS.fullmatch(told):
        return replace(call, keys=_values(found[1], "for keys", whole))
    if found := _THEN.fullmatch(told):
        after = parse(found[2])
        back = [one.name for one in call.array_results]
        unknown = next((name for name in back if after.named(name) is None), None)
        if unknown is not None:
            raise SignatureError(
                f"wanted results with the names of the arguments of {found[1]}, got "
                f"{unknown or 'a result without a name'!r} in {whole!r}"
            )
        return replace(call, then=Applied(found[1], after))
    found = _FROM.fullmatch(told)
    if found is None:
        raise SignatureError(
            f"wanted NAMES from FUNCTION(ITS CALL) after the semicolon, such as cos, sin from "
            f"tables(length = m -> m D, m D), or then FUNCTION(ITS CALL), method NAME, built with "
            f"NAME = VALUE, keys with NAME = VALUE; got {told!r} in {whole!r}"
        )
    names = tuple(name.strip() for name in found[1].split(","))
    unknown = next((name for name in names if call.named(name) is None), None)
    if unknown is not None:
        raise SignatureError(f"wanted the names of input arrays, got {unknown!r} in {whole!r}")
    made = parse(found[3])
    source = Source(names, found[2], made)
    if call.source is not None:  # two clauses with the same function
        if (call.source.code, call.source.call) != (source.code, source.call):
            raise SignatureError(f"wanted one function that makes tables, got two in {whole!r}")
        source = replace(source, names=(*call.source.names, *names))
    if len(made.results) not in (1, len(source.names)):
        raise SignatureError(
            f"wanted {len(source.names)} results of {found[2]}, for {', '.join(source.names)}, got "
            f"{made}"
        )
    return replace(call, source=source)


def _values(told: str, of: str, whole: str) -> tuple[Argument, ...]:
    """Parse named values, none of them an array."""
    found = tuple(_argument(part, whole) for part in _parts(told, whole))
    array = next((one.name for one in found if one.axes is not None or one.parts), "")
    if array:
        raise SignatureError(f"wanted NAME = VALUE {of}, got an array {array} in {whole!r}")
    return found


def at_commas(text: str) -> tuple[list[str], bool]:
    """Return the parts between the commas outside brackets, and whether all brackets are closed.

    >>> at_commas("a, f(b, c)"), at_commas("a), b")
    ((['a', 'f(b, c)'], True), (['a), b'], False))
    """
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter == "," and not depth:
            found.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*found, text[start:])], not depth


def _parts(text: str, whole: str) -> list[str]:
    """Split at the commas outside parentheses."""
    found, closed = at_commas(text)
    if not closed:
        raise SignatureError(f"wanted a closing parenthesis for each opening one, got {whole!r}")
    if not found[-1] and len(found) > 1:
        found.pop()
    if found == [""]:
        return []
    if "" in found:
        raise SignatureError(f"wanted {WANTED}; got two commas with nothing between in {whole!r}")
    return found


def _arguments(given: list[str], whole: str) -> tuple[Argument, ...]:
    """Parse the arguments of a call: NAME = ANOTHER is that array, unless a length is named so."""
    letters = {c for one in given if _ARRAY.match(one) for c in _argument(one, whole).letters}
    known: dict[str, str] = {}
    found = []
    for part in given:
        same = _SAME.fullmatch(part)
        if same and same[2] in known:
            one = Argument(same[1], value=Same(known[same[2]]))
            known[one.name] = known[same[2]]
        else:
            one = _argument(part, whole)
            known |= {one.name: one.name} if one.axes is not None else {}
        known = {name: of for name, of in known.items() if name not in letters}
        found.append(one)
    return tuple(found)


def _argument(part: str, whole: str) -> Argument:
    name = _NAME.match(part)
    rest = part[name.end() :].lstrip() if name else ""
    if name is not None and not rest:
        return Argument(name[0], value=State())
    if name is None or rest[:1] not in (":", "="):
        raise SignatureError(f"wanted NAME: AXES, or NAME = VALUE, got {part!r} in {whole!r}")
    told = rest[1:].strip()
    if rest[0] == ":":
        return _packed(name[0], told, whole) or _array(name[0], told, whole)
    if told.startswith("(") and ":" in told and told.endswith(")"):
        return Argument(name[0], parts=_items(told, whole))
    if found := _NAMESPACE.fullmatch(told):
        parts = tuple(_literal(_argument(one, whole)) for one in _parts(found[1], whole))
        return Argument(name[0], parts=parts, named=True)
    return Argument(name[0], value=_value(told, whole))


def _items(told: str, whole: str) -> tuple[Argument, ...]:
    """Parse the items of a tuple of arrays, which may be such tuples themselves."""
    return tuple(
        Argument("", parts=_items(part, whole)) if part[0] == "(" else _argument(part, whole)
        for part in _parts(told[1:-1], whole)
    )


def _value(told: str, whole: str) -> Any:
    if told in EMPTY or _CALLED.fullmatch(told):
        return State(told)
    try:
        return ast.literal_eval(told)
    except (ValueError, SyntaxError):
        pass
    if told.startswith("(") and "," in told:
        return tuple(_value(part, whole) for part in _parts(told[1:-1], whole))
    if found := _DTYPE.fullmatch(told):
        return _dtype(found[1], whole)
    quotient = _QUOTIENT.fullmatch(told)
    above = quotient[1].strip() if quotient else told
    word = _NAME.fullmatch(above) and not _LETTER.fullmatch(above)
    axes, kind = ((), "") if word else _axes(above, whole)
    if len(axes) != 1 or kind:
        raise SignatureError(
            f"wanted a value such as 4, True or 'bhtd', a length such as n, or the name of an "
            f"array before it, got {told!r} in {whole!r}"
        )
    return _shared(replace(axes[0], over=quotient[2])) if quotient else axes[0]


def _literal(one: Argument) -> Argument:
    """Return an argument whose state is an empty list or dictionary with that as its value."""
    if isinstance(one.value, State) and one.value.start in EMPTY:
        return replace(one, value=ast.literal_eval(one.value.start))
    return one


def _dtype(name: str, whole: str) -> Any:
    import torch

    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        told = f"wanted a dtype, such as torch.float32, got torch.{name}"
        raise SignatureError(f"{told} in {whole!r}")
    return found


def _result(part: str, known: Mapping[str, Argument], whole: str) -> Argument:
    if part == "_":
        return Argument("_")
    if part in known:
        return Argument(part, known[part].axes, value=known[part].value)
    name, colon, told = part.partition(":")
    return _array(name.strip() if colon else "", told if colon else part, whole)


def _array(name: str, told: str, whole: str) -> Argument:
    either = _EITHER.search(told)
    axes, kind = _axes(told[: either.start()] + either[1] if either else told, whole)
    if either and (kind != either[1] or kind == either[2] or either[2] not in KINDS):
        raise SignatureError(
            f"wanted two kinds, such as keep or add, got {either[0].strip()!r} in {whole!r}"
        )
    return Argument(name, axes, kind, also=either[2] if either else "")


def _packed(name: str, told: str, whole: str) -> Argument | None:
    """Parse queries, keys and values in one array; None if neither kind nor name says that.

    A name without a kind says so if an axis has that length: ``kv: B n E`` is a context.
    """
    axes, _, kind = told.rpartition(" ")
    axes, kind = (axes, kind) if kind in PACKED else (told, "")
    held = kind or packed_as(name)
    if not held:
        return None
    roles = PACKED[held]
    numbers = [*re.finditer(rf"(?<![\w/*]){len(roles)}(?![\w/])", axes)]
    if len(numbers) != 1:
        if not kind:
            return None
        raise SignatureError(
            f"wanted one axis of {len(roles)} for {', '.join(roles)}, such as {name}: B n "
            f"{len(roles)} H D or B n ({len(roles)} H D), got {told!r} in {whole!r}"
        )
    before, after = axes[: numbers[0].start()], axes[numbers[0].end() :]
    opened = before.rfind("(") if before.count("(") > before.count(")") else -1
    at = len(_axes(before[:opened] if opened >= 0 else before, whole)[0])
    slower = len(before[opened + 1 :].split()) if opened >= 0 else None
    inner = _array("", f"{before} {after}", whole)
    return Argument(
        name,
        kind=kind,
        parts=tuple(replace(inner, name=f"{name}_{one}", kind=one) for one in roles),
        packed=(at, slower),
    )


def _axes(told: str, whole: str) -> tuple[tuple[Axis, ...], str]:
    """Parse axes, and the kind that may follow them."""
    tokens, at = [], 0
    told = told.strip()
    while at < len(told):
        token = TOKEN.match(told, at)
        if token is None:
            raise SignatureError(
                f"wanted letters of axes, such as B n (H D), got {told[at:]!r} in {whole!r}"
            )
        tokens.append(token[1])
        at = token.end()
    kind = tokens.pop() if tokens and tokens[-1] in KINDS else ""
    axes = []
    while tokens:
        axes.append(_shared(_axis(tokens, whole)))
        if [str(one) for one in axes[-2:]] == ["G", "H"]:
            axes[-2:] = [_shared(replace(axes[-1], fold="G"))]
    return tuple(axes), kind


@lru_cache(maxsize=4096)
def _shared(axis: Axis) -> Axis:
    """Return one object for equal axes, so that what is cached on it is computed once."""
    return axis


def _axis(tokens: list[str], whole: str) -> Axis:
    """Parse the next axis: a letter, a number, or an expression in parentheses."""
    if tokens[0] != "(":
        return Axis((_product_of(tokens, whole, most=1),))
    tokens.pop(0)
    slower = len(list(takewhile(lambda one: not one.isdigit(), tokens)))
    terms = [_product_of(tokens, whole)]
    while tokens[:1] in (["+"], ["-"]):
        sign = 1 if tokens.pop(0) == "+" else -1
        factor, letters = _product_of(tokens, whole)
        terms.append((sign * factor, letters))
    if tokens[:1] != [")"]:
        raise SignatureError(f"wanted a closing parenthesis for each opening one, got {whole!r}")
    tokens.pop(0)
    by = _divisor(tokens, whole)
    found = Axis(tuple((factor / by, letters) for factor, letters in terms))
    apart = found.split is not None and found.terms[0][0] != 1  # the number is an axis of its own
    return replace(found, slower=slower) if apart else found


def _product_of(
    tokens: list[str], whole: str, most: int | None = None
) -> tuple[Fraction, tuple[str, ...]]:
    factors: list[str] = []
    while tokens and tokens[0] not in ("+", "-", ")", "/") and len(factors) != most:
        factors.append(_factor(tokens.pop(0), whole))
    if not factors:
        got = tokens[0] if tokens else "nothing"
        raise SignatureError(f"wanted a letter or a number, got {got} in {whole!r}")
    number = math.prod(int(one) for one in factors if one.isdigit())
    letters = tuple(one for one in factors if not one.isdigit())
    return Fraction(number, _divisor(tokens, whole)), letters


def _factor(token: str, whole: str) -> str:
    if token.isdigit() or _LETTER.fullmatch(token):
        return token
    if token in KINDS:
        told = f"wanted the kind of an array after all its axes, got {token!r} before an axis"
    else:
        told = (
            f"wanted a letter or a number for each axis, and after them one of "
            f"{', '.join(KINDS)}; got {token!r}"
        )
    raise SignatureError(f"{told} in {whole!r}")


def _divisor(tokens: list[str], whole: str) -> int:
    if tokens[:1] != ["/"]:
        return 1
    tokens.pop(0)
    told = tokens.pop(0) if tokens else "nothing"
    if not told.isdigit() or told == "0":
        raise SignatureError(f"wanted a number above 0 after /, got {told} in {whole!r}")
    return int(told)

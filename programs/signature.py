"""The call of a program in axis letters: what goes in and what comes out.

    q: B H n D, k: B G n D, cos: n D, sin: n D -> q, k

Before the arrow stands a parameter of the program for each part, with its axes, slowest first, and
what it is where its name does not say so; behind it, what the program returns.

==================================  ==============================================================
part                                says
==================================  ==============================================================
``x: B n E``                        an array with these axes
``mask: B n keep``                  what it is: one of :data:`KINDS`
``x: B n (H D)``                    one axis that holds two, the first letter slower
``cos: n D/2``, ``k: B (n + m) D``  a quotient, a sum; ``1`` and other numbers are lengths
``rope = (cos: n D, sin: n D)``     a tuple of arrays
``seq_len = n``, ``past = (n - r)``  the length itself, a difference of lengths
``window = (h, w)``                 a tuple of lengths
``causal = True``                   a value that every call is given
``-> q, k``                         what it was given, in the same axes
``-> B n E``, ``-> out: B n E``     one array, without a name or with one
``-> out: B n E, _``                a tuple; what is called ``_`` is left aside
``-> {out: B n E}``                 a mapping
``mask: B 1 r n keep or add``       an array that may be either
``-> {last_hidden_state: B n E}``   a mapping, or an object with such a field
``; cos, sin from f(n = m -> ..)``  behind all: tables that the file's own f makes, called so
``; step: x: B n E, past -> x, past``  behind all, or on a line of its own: called with more tokens,
                                    and what the call before left, None at first
``; step: x: B n E, cache = {} -> x``  the same, with what is written in place: ``{}``, ``[]``, or
                                    ``DynamicCache()`` of a name in the file
``; step: x: B n E, start = p -> x``  the same, with state of its own; p tokens came before these
``; then f(q: .., cos: .. -> q)``   the file's own f is given by name what is returned
``; method name``                   it is this method that is called, and not the object
``; built with size = n``           what the constructor is given, lengths of the call among it
``; keys with inverse = True``      what the same code is given to rotate keys and not queries
==================================  ==============================================================

Letters: B rows of a batch, n tokens (keys, where queries are r), H heads, G key-value heads, D
features of a head, E features of a token; as a value, p is the position of the first token.  Any
other letter is a length of its own.  A letter that only the result has is read off it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

__all__ = [
    "KINDS",
    "Argument",
    "Axis",
    "Signature",
    "SignatureError",
    "Source",
    "State",
    "parse",
]

KINDS = {
    "query": "queries",
    "key": "keys",
    "value": "values",
    "tokens": "tokens",
    "positions": "positions of the tokens",
    "coordinates": "positions of the tokens that are no integers",
    "ids": "ids of the words of a vocabulary",
    "index": "an index into a table",
    "cos": "cosines of angles",
    "sin": "sines of angles",
    "angles": "angles",
    "cis": "e to the i times the angles",
    "cos_sin": "cosines and sines of angles, side by side in the last axis, of length 2",
    "encoding": "an encoding of the positions of tokens, which is made here",
    "offsets": "an encoding of the offsets of queries and keys, n - 1 first, which is made here",
    "scale": "a number of the scores",
    "keep": "a mask that is True where a key is seen",
    "hide": "a mask that is True where a key is hidden",
    "ones": "a mask of integers, 1 where a key is seen and 0 where it is hidden",
    "add": "numbers that are added to the scores",
}
WANTED = "parts such as x: B n E, an arrow ->, and what is returned"
_LETTER = re.compile(r"[A-Za-z]\d?'*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALLED = re.compile(r"[A-Za-z_]\w*\(\)")
_FROM = re.compile(r"(.+?)\s+from\s+([\w.]+)\s*\((.*)\)", re.DOTALL)
_THEN = re.compile(r"then\s+([\w.]+)\s*\((.*)\)", re.DOTALL)
_BUILT = re.compile(r"built\s+with\s+(.+)", re.DOTALL)
_KEYS = re.compile(r"keys\s+with\s+(.+)", re.DOTALL)
_METHOD = re.compile(r"method\s+([A-Za-z_]\w*)")
_DTYPE = re.compile(r"torch\.(\w+)")
_EITHER = re.compile(r"\b(\w+) +or +(\w+)\s*$")
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*'*|\d+|[()+/-])")


class SignatureError(ValueError):
    """A call that cannot be read, or does not fit: what was wanted, what came, and where."""


@dataclass(frozen=True)
class Axis:
    """The length of an axis: a sum of products of letters and numbers.

    What follows from it is asked in each call of some code, and found once.

    >>> Axis(((Fraction(1), ("H", "D")),)).size({"H": 2, "D": 4})
    8
    """

    terms: tuple[tuple[Fraction, tuple[str, ...]], ...]

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Its letters, each once."""
        return tuple(dict.fromkeys(c for _, letters in self.terms for c in letters))

    @cached_property
    def split(self) -> tuple[str, ...] | None:
        """The letters of which it is the product, () for 1; None where it is something else."""
        if self == ONE:
            return ()
        if len(self.terms) == 1 and self.terms[0][0] == 1:
            return self.terms[0][1]
        return None

    def size(self, lengths: Mapping[str, int]) -> int:
        """Its length.  Raises :class:`SignatureError` where that is no whole number."""
        whole, counts = self._counted
        found: int = sum(n * math.prod(lengths[c] for c in letters) for n, letters in counts)
        if whole > 1 and found % whole:
            at = ", ".join(f"{c} = {lengths[c]}" for c in self.letters)
            raise SignatureError(
                f"wanted a whole number for the axis {self}, got {found}/{whole} at {at}"
            )
        return found // whole if whole > 1 else found

    @cached_property
    def _counted(self) -> tuple[int, tuple[tuple[int, tuple[str, ...]], ...]]:
        """What the whole sum is divided by, and the whole factors that its products then have."""
        whole = math.lcm(*(factor.denominator for factor, _ in self.terms))
        return whole, tuple((int(factor * whole), letters) for factor, letters in self.terms)

    @cached_property
    def told(self) -> str:
        """The axis as it is written."""
        told = " + ".join(map(_product, self.terms)).replace("+ -", "- ")
        return told if _TOKEN.fullmatch(told) or re.fullmatch(r"\S+/\d+", told) else f"({told})"

    def __str__(self) -> str:
        return self.told


def _product(term: tuple[Fraction, tuple[str, ...]]) -> str:
    factor, letters = term
    number = abs(factor.numerator)
    top = " ".join([*([str(number)] if number != 1 or not letters else []), *letters])
    top = f"-{top}" if factor < 0 else top
    return top if factor.denominator == 1 else f"{top}/{factor.denominator}"


ONE = Axis(((Fraction(1), ()),))


@dataclass(frozen=True)
class State:
    """What one step leaves to the next.

    ``start``: what the first step is given: "" (None), a literal such as ``{}``, or a call without
    arguments of a name of the code's file, such as ``DynamicCache()``.
    """

    start: str = ""

    def __str__(self) -> str:
        return self.start


@dataclass(frozen=True)
class Argument:
    """A part of a call: an array with ``axes``, a tuple of ``parts``, or a ``value``.

    ``kind`` is one of :data:`KINDS`, or "", and ``also`` another that it may be.  A value is a
    literal, an :class:`Axis`: a length, a tuple of these, or a :class:`State`.
    """

    name: str
    axes: tuple[Axis, ...] | None = None
    kind: str = ""
    parts: tuple[Argument, ...] = ()
    value: Any = None
    also: str = ""

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The letters of its axes, each once."""
        return tuple(dict.fromkeys(c for axis in self.axes or () for c in axis.letters))

    @property
    def arrays(self) -> Iterator[Argument]:
        """The arrays in it."""
        if self.axes is not None:
            yield self
        for part in self.parts:
            yield from part.arrays

    @cached_property
    def lengths(self) -> tuple[str, ...]:
        """The letters of its value, each once."""
        held = self.value if isinstance(self.value, tuple) else (self.value,)
        found = (c for one in held if isinstance(one, Axis) for c in one.letters)
        return tuple(dict.fromkeys(found))

    def shape(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of the array at these lengths."""
        return tuple(axis.size(lengths) for axis in self.axes or ())

    def at(self, lengths: Mapping[str, int]) -> Any:
        """The value at these lengths."""
        if isinstance(self.value, tuple):
            return tuple(v.size(lengths) if isinstance(v, Axis) else v for v in self.value)
        return self.value.size(lengths) if isinstance(self.value, Axis) else self.value

    def __str__(self) -> str:
        if self.parts:
            return f"{self.name} = ({', '.join(map(str, self.parts))})"
        if self.axes is None:
            if isinstance(self.value, State):
                return f"{self.name} = {self.value}" if self.value.start else self.name
            return f"{self.name} = {_told(self.value)}"
        kinds = " or ".join(one for one in (self.kind, self.also) if one)
        words = [*map(str, self.axes), *([kinds] if kinds else [])]
        return f"{self.name}: {' '.join(words)}"


def _told(value: Any) -> str:
    if isinstance(value, tuple) and any(isinstance(one, Axis) for one in value):
        return f"({', '.join(map(_told, value))}{',' * (len(value) == 1)})"
    return str(value) if isinstance(value, Axis) else repr(value)


@dataclass(frozen=True)
class Source:
    """Arguments that other code of the same file makes: their names, its name, how it is called."""

    names: tuple[str, ...]
    code: str
    call: Signature

    def __str__(self) -> str:
        return f"{', '.join(self.names)} from {self.code}({self.call})"


@dataclass(frozen=True)
class Applied:
    """Other code of the same file that is given, by name, what the first returns: how it is called.

    It is called by the parameters of these names, and by others that it says itself.
    """

    code: str
    call: Signature

    def __str__(self) -> str:
        return f"then {self.code}({self.call})"


@dataclass(frozen=True)
class Signature:
    """A call: its arguments, and what it returns, in order.

    ``mapping``: what it returns is a mapping with these keys, and no tuple.  ``source``, ``then``:
    other code of the file, which is called before it, or behind.  ``method``: what of the object is
    called.  ``built``: what its constructor is given.  ``keys``: values with which it is called for
    keys.  ``step``: how the same code is called on
    further tokens, with what an earlier call left; p is how many came before.
    """

    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    mapping: bool = False
    source: Source | None = None
    then: Applied | None = None
    method: str = ""
    built: tuple[Argument, ...] = ()
    keys: tuple[Argument, ...] = ()
    step: Signature | None = None

    @property
    def states(self) -> tuple[Argument, ...]:
        """What one step leaves to the next."""
        return tuple(one for one in self.arguments if isinstance(one.value, State))

    @cached_property
    def arrays(self) -> tuple[Argument, ...]:
        """The arrays that go in, those in tuples too."""
        return tuple(array for one in self.arguments for array in one.arrays)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Every letter, each once."""
        lengths = (one.lengths for one in (*self.arguments, *self.built))
        arrays = (one.letters for one in (*self.arrays, *self.results))
        return tuple(dict.fromkeys(c for letters in (*arrays, *lengths) for c in letters))

    def named(self, name: str) -> Argument | None:
        """The array of this name that goes in."""
        return next((one for one in self.arrays if one.name == name), None)

    def __str__(self) -> str:
        known = {one.name: one for one in (*self.arrays, *self.states)}
        back = [
            one.name
            if known.get(one.name) is not None and known[one.name].axes == one.axes
            else "_"
            if one.axes is None
            else str(one).removeprefix(": ")
            for one in self.results
        ]
        given, told = ", ".join(map(str, self.arguments)), ", ".join(back)
        back_told = f"{{{told}}}" if self.mapping else told
        built = f"built with {', '.join(map(str, self.built))}" if self.built else ""
        method = f"method {self.method}" if self.method else ""
        keys = f"keys with {', '.join(map(str, self.keys))}" if self.keys else ""
        step = f"step: {self.step}" if self.step else ""
        more = [str(one) for one in (self.source, self.then, method, built, keys, step) if one]
        return "; ".join([f"{given} -> {back_told}".lstrip(), *more])


def parse(text: str) -> Signature:
    """Read a call.  Raises :class:`SignatureError` with what was wanted, what came, and where.

    >>> str(parse("x:B n (H D), mask: B n keep, causal=True -> x"))
    'x: B n (H D), mask: B n keep, causal = True -> x'
    >>> parse("q: B H n D, k: B G n D -> q").letters
    ('B', 'H', 'n', 'D', 'G')
    """
    first, *more = re.sub(r"\n\s*(?=step:)", "; ", text).split(";")
    call = _call(first, text)
    if call.states:
        raise SignatureError(
            f"wanted NAME: AXES, or NAME = VALUE, got {str(call.states[0])!r} in {text!r}; what "
            "one step leaves to the next stands behind step:"
        )
    for part in map(str.strip, more):
        if part.startswith("step:"):
            call = replace(call, step=_call(part.removeprefix("step:"), text))
        else:
            call = _with_clause(call, part, text)
    return call


def _call(text: str, whole: str) -> Signature:
    """One call: what goes in, and what comes back."""
    before, arrow, behind = text.partition("->")
    if not arrow or not behind.strip():
        missing = "a result" if arrow else "an arrow"
        raise SignatureError(f"wanted {WANTED}; got {text!r}, without {missing}")
    arguments = tuple(_argument(part, whole) for part in _parts(before, whole))
    names = [one.name for one in arguments]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise SignatureError(f"wanted each parameter once, got {twice!r} twice in {whole!r}")
    told = behind.strip()
    mapping = told.startswith("{") and told.endswith("}")
    known = {array.name: array for one in arguments for array in one.arrays}
    known |= {one.name: one for one in arguments if isinstance(one.value, State)}
    told = told.strip("{}") if mapping else told
    results = tuple(_result(part, known, whole) for part in _parts(told, whole))
    if mapping and not all(one.name for one in results):
        raise SignatureError(f"wanted a key for each value, such as {{out: B n E}}, in {whole!r}")
    if not any(one.axes is not None for one in results):
        raise SignatureError(f"wanted at least one array that is returned, got {told!r}")
    return Signature(arguments, results, mapping)


def _with_clause(call: Signature, told: str, whole: str) -> Signature:
    """The call, with what stands behind a semicolon."""
    if found := _METHOD.fullmatch(told):
        return replace(call, method=found[1])
    if found := _BUILT.fullmatch(told):
        return replace(call, built=_values(found[1], "of the constructor", whole))
    if found := _KEYS.fullmatch(told):
        return replace(call, keys=_values(found[1], "for keys", whole))
    if found := _THEN.fullmatch(told):
        after = parse(found[2])
        back = [one.name for one in call.results if one.axes is not None]
        unknown = next((name for name in back if after.named(name) is None), None)
        if unknown is not None:
            raise SignatureError(
                f"wanted what is returned to have the names of what {found[1]} is given, got "
                f"{unknown or 'a result without a name'!r} in {whole!r}"
            )
        return replace(call, then=Applied(found[1], after))
    found = _FROM.fullmatch(told)
    if found is None:
        raise SignatureError(
            f"wanted NAMES from FUNCTION(ITS CALL) behind the semicolon, such as cos, sin from "
            f"tables(length = m -> m D, m D), or then FUNCTION(ITS CALL), method NAME, built with "
            f"NAME = VALUE, keys with NAME = VALUE; got {told!r} in {whole!r}"
        )
    names = tuple(name.strip() for name in found[1].split(","))
    unknown = next((name for name in names if call.named(name) is None), None)
    if unknown is not None:
        raise SignatureError(f"wanted the names of arrays that go in, got {unknown!r} in {whole!r}")
    made = parse(found[3])
    if len(made.results) != len(names):
        raise SignatureError(
            f"wanted {len(names)} back of {found[2]}, for {', '.join(names)}, got {made}"
        )
    return replace(call, source=Source(names, found[2], made))


def _values(told: str, of: str, whole: str) -> tuple[Argument, ...]:
    """Values by their names, none of them an array."""
    found = tuple(_argument(part, whole) for part in _parts(told, whole))
    array = next((one.name for one in found if one.axes is not None or one.parts), "")
    if array:
        raise SignatureError(f"wanted NAME = VALUE {of}, got an array {array} in {whole!r}")
    return found


def _parts(text: str, whole: str) -> list[str]:
    """The parts between the commas that stand in no parentheses."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter == "," and not depth:
            found.append(text[start:at])
            start = at + 1
    if depth:
        raise SignatureError(f"wanted a parenthesis for each one that is opened, got {whole!r}")
    found = [part.strip() for part in (*found, text[start:])]
    if not found[-1] and len(found) > 1:
        found.pop()
    if found == [""]:
        return []
    if "" in found:
        raise SignatureError(f"wanted {WANTED}; got two commas with nothing between in {whole!r}")
    return found


def _argument(part: str, whole: str) -> Argument:
    name = _NAME.match(part)
    rest = part[name.end() :].lstrip() if name else ""
    if name is not None and not rest:
        return Argument(name[0], value=State())
    if name is None or rest[:1] not in (":", "="):
        raise SignatureError(f"wanted NAME: AXES, or NAME = VALUE, got {part!r} in {whole!r}")
    told = rest[1:].strip()
    if rest[0] == ":":
        return _array(name[0], told, whole)
    if told.startswith("(") and ":" in told and told.endswith(")"):
        return Argument(
            name[0], parts=tuple(_argument(p, whole) for p in _parts(told[1:-1], whole))
        )
    return Argument(name[0], value=_value(told, whole))


def _value(told: str, whole: str) -> Any:
    if told in ("{}", "[]") or _CALLED.fullmatch(told):
        return State(told)
    try:
        return ast.literal_eval(told)
    except (ValueError, SyntaxError):
        pass
    if told.startswith("(") and "," in told:
        return tuple(_value(part, whole) for part in _parts(told[1:-1], whole))
    if found := _DTYPE.fullmatch(told):
        return _dtype(found[1], whole)
    axes, kind = _axes(told, whole)
    if len(axes) != 1 or kind:
        raise SignatureError(
            f"wanted a value such as 4, True or 'bhtd', or a length such as n, got {told!r} in "
            f"{whole!r}"
        )
    return axes[0]


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


def _axes(told: str, whole: str) -> tuple[tuple[Axis, ...], str]:
    """The axes, and the kind that stands last."""
    tokens, at = [], 0
    told = told.strip()
    while at < len(told):
        token = _TOKEN.match(told, at)
        if token is None:
            raise SignatureError(
                f"wanted letters of axes, such as B n (H D), got {told[at:]!r} in {whole!r}"
            )
        tokens.append(token[1])
        at = token.end()
    kind = tokens.pop() if tokens and tokens[-1] in KINDS else ""
    axes = []
    while tokens:
        axes.append(_axis(tokens, whole))
    return tuple(axes), kind


def _axis(tokens: list[str], whole: str) -> Axis:
    """The next axis: a letter, a number, or what stands in parentheses."""
    if tokens[0] != "(":
        return Axis((_product_of(tokens, whole, most=1),))
    tokens.pop(0)
    terms = [_product_of(tokens, whole)]
    while tokens[:1] in (["+"], ["-"]):
        sign = 1 if tokens.pop(0) == "+" else -1
        factor, letters = _product_of(tokens, whole)
        terms.append((sign * factor, letters))
    if tokens[:1] != [")"]:
        raise SignatureError(f"wanted a parenthesis for each one that is opened, got {whole!r}")
    tokens.pop(0)
    by = _divisor(tokens, whole)
    return Axis(tuple((factor / by, letters) for factor, letters in terms))


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
        told = f"wanted what an array is behind all its axes, got {token!r} before one"
    else:
        told = (
            f"wanted a letter or a number for each axis, and behind them one of "
            f"{', '.join(KINDS)}; got {token!r}"
        )
    raise SignatureError(f"{told} in {whole!r}")


def _divisor(tokens: list[str], whole: str) -> int:
    if tokens[:1] != ["/"]:
        return 1
    tokens.pop(0)
    told = tokens.pop(0) if tokens else "nothing"
    if not told.isdigit() or told == "0":
        raise SignatureError(f"wanted a number above 0 behind /, got {told} in {whole!r}")
    return int(told)

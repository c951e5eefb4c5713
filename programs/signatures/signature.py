"""The signature language: the call of a program, its inputs and results, in axis letters.

    q: B H n D, k: B G n D, cos: n D, sin: n D -> q, k

Each part before the arrow is a parameter of the program, with its axes, slowest first, and its kind
if its name does not imply it; after the arrow is what the program returns.

==================================  ==============================================================
part                                meaning
==================================  ==============================================================
``x: B n E``                        an array with these axes
``mask: B n keep``                  its kind: one of :data:`KINDS`
``q: B G H n D``                    heads on two axes: G and H side by side
``x: B n (H D)``                    one axis that merges two, the first letter slower
``cos: n D/2``, ``k: B (n + m) D``  a quotient, a sum; ``1`` and other numbers are lengths
``rope = (cos: n D, sin: n D)``     a tuple of arrays
``seq_len = n``, ``past = (n - r)``  the length itself, a difference of lengths
``window = (h, w)``                 a tuple of lengths, or of such tuples: ``((h, w),)``
``key = query``                     the very array that ``query`` is given
``m = namespace(groups = H/G)``      an object with these attributes, values or arrays
``qkv: B n 3 H D``                  queries, keys and values in one array; also ``B n (H 3 D)``
``kv: B n 2 G D``                   keys and values in one array
``x: B 5 E``, ``mask: B n 1 r add``  exactly 5 tokens; keys before queries
``x: 2 n E``, ``mask: n 64 keep``   exactly 2 rows; keys are the 64 places of a cache
``causal = True``                   a value passed on every call
``-> q, k``                         arrays of the same names and axes as the inputs
``-> B n E``, ``-> out: B n E``     one array, without a name or with one
``-> out: B n E, _``                a tuple; parts named ``_`` are ignored
``-> {out: B n E}``                 a mapping
``mask: B 1 r n keep or add``       an array that may be of either kind
``-> {last_hidden_state: B n E}``   a mapping, or an object with such a field
``; cos, sin from f(n = m -> ..)``  at the end: tables made by f of the same file, called this way
``; step: x: B n E, past -> x, past``  at the end, or on a line of its own: the call on more tokens,
                                    with what the previous call left, None at first
``; step: x: B n E, cache = {} -> x``  the same, with state modified in place: ``{}``, ``[]``, or
                                    ``DynamicCache()`` for a name in the file
``; step: x: B n E, start = p -> x``  the same, for code that keeps its own state; p earlier tokens
``; then f(q: .., cos: .. -> q)``   f of the same file is given the results by name
``; method name``                   this method is called instead of the object
``; built with size = n``           arguments of the constructor, such as lengths of the call
``; keys with inverse = True``      further arguments if keys are rotated rather than queries
==================================  ==============================================================

Letters: B rows of a batch, n tokens (keys, if there are queries r), H heads, G key-value heads, D
features of a head, E features of a token; as a value, p is the position of the first token.  Any
other letter is a length of its own; if only the result has it, its length is read off the result.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from json import dumps
from typing import Any

KINDS = {
    "query": "queries",
    "key": "keys",
    "value": "values",
    "tokens": "tokens",
    "positions": "positions of the tokens",
    "coordinates": "positions of the tokens that are not integers",
    "axis": "positions of the tokens along one axis, an array for each axis in their order",
    "ids": "ids of the words of a vocabulary",
    "documents": "the number of the document of each token, of several packed into one row",
    "index": "an index into a table",
    "lengths": "the number of tokens in each row",
    "bounds": "where each sequence packed into one axis begins, and where the last one ends",
    "constant": "numbers that are the same for each row, token and pair, made here",
    "cos": "cosines of angles",
    "sin": "sines of angles",
    "angles": "angles",
    "cis": "exp(i times the angles)",
    "cos_sin": "cosines and sines of angles: in an axis of 2, or concatenated in the last axis",
    "sin_cos": "the same, sines first",
    "matrices": "a matrix ((cos, -sin), (sin, cos)) for each pair, in two last axes of 2",
    "encoding": "an encoding of the positions of tokens, which is made here",
    "offsets": "an encoding of the offsets of queries and keys, n - 1 first, which is made here",
    "scale": "a factor of the scores",
    "keep": "a mask that is True where a key is seen",
    "hide": "a mask that is True where a key is hidden",
    "ones": "a mask of integers, 1 where a key is seen and 0 where it is hidden",
    "zeros": "a mask of integers, 0 where a key is seen and 1 where it is hidden",
    "factors": "a mask of real numbers, 1 where a key is seen and 0 where it is hidden",
    "add": "numbers that are added to the scores",
}
PACKED = {"qkv": ("query", "key", "value"), "kv": ("key", "value")}  # kinds in one array
KINDS |= {
    "qkv": "queries, keys and values on an axis of 3, which may be a factor of a product",
    "kv": "keys and values on an axis of 2, which may be a factor of a product",
}
_PACKED_NAME = re.compile(r"(?:\w+_)?(qkv|kv)(?:_\w+)?")
ROWS = {"B", "H", "G"}  # beside these letters a number in a product is an axis of its own
TOKEN = re.compile(r"\s*([A-Za-z_]\w*'*|\d+|[()+/-])")


class SignatureError(ValueError):
    """A call that cannot be read, or does not fit; it says what was wanted and what was found."""


def packed_as(name: str) -> str:
    """Return the kind of packed array that a name says, or "".

    >>> packed_as("mixed_qkv"), packed_as("kv"), packed_as("value")
    ('qkv', 'kv', '')
    """
    found = _PACKED_NAME.fullmatch(name.lower())
    return found[1] if found else ""


@dataclass(frozen=True)
class Axis:
    """The length of an axis: a sum of products of letters and numbers.

    Derived values are cached, since every call of some code needs them.

    >>> Axis(((Fraction(1), ("H", "D")),)).size({"H": 2, "D": 4})
    8
    """

    terms: tuple[tuple[Fraction, tuple[str, ...]], ...]
    fold: str = ""  # a number, or G: the slower of the two axes that the call has for this one
    slower: int = 0  # how many letters of a product are slower than its number
    over: str = ""  # a letter that divides it, if it is a value

    def __hash__(self) -> int:
        return hash(self.text)  # cached, unlike the hash of a fraction

    def folded(self, size: int, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Return the lengths of the axes that a call has for this one of so many entries."""
        if not self.fold:
            return (size,)
        first = int(self.fold) if self.fold.isdigit() else lengths.get(self.fold, 2)
        if size % first and self.fold.isdigit():
            told = f"wanted {size} in the axes {self.text}, got {self.fold} = {first}"
            raise SignatureError(told)
        return (first, size // first) if size % first == 0 else (1, size)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Its letters, without repetition."""
        above = (c for _, letters in self.terms for c in letters)
        return tuple(dict.fromkeys((*above, *([self.over] if self.over else []))))

    @cached_property
    def split(self) -> tuple[str, ...] | None:
        """The factors of which it is the product, () for 1; None if it is not a product.

        A number beside rows and heads is an axis of its own; a number beside tokens multiplies
        their count.
        """
        (number, letters), *more = self.terms
        if more or number.denominator != 1:
            return None
        if number == 1:
            return letters
        if not letters or not {*letters} <= ROWS:
            return None
        return (*letters[: self.slower], str(number), *letters[self.slower :])

    def size(self, lengths: Mapping[str, int]) -> int:
        """Return its length.  Raises :class:`SignatureError` if that is not an integer."""
        whole, counts = self._counted
        whole *= lengths[self.over] if self.over else 1
        found: int = sum(n * math.prod(lengths[c] for c in letters) for n, letters in counts)
        if whole > 1 and found % whole:
            at = ", ".join(f"{c} = {lengths[c]}" for c in self.letters)
            raise SignatureError(
                f"wanted a whole number for the axis {self}, got {found}/{whole} at {at}"
            )
        return found // whole if whole > 1 else found

    @cached_property
    def _counted(self) -> tuple[int, tuple[tuple[int, tuple[str, ...]], ...]]:
        """The common denominator of the sum, and its products with integer factors."""
        whole = math.lcm(*(factor.denominator for factor, _ in self.terms))
        return whole, tuple((int(factor * whole), letters) for factor, letters in self.terms)

    @cached_property
    def text(self) -> str:
        """The axis as it is written."""
        told = " + ".join(map(_product, self.terms)).replace("+ -", "- ")
        told = " ".join(self.split) if self.slower and self.split else told
        if self.fold:
            return f"{self.fold} {told}"
        if self.over:
            return f"{told if TOKEN.fullmatch(told) else f'({told})'}/{self.over}"
        return told if TOKEN.fullmatch(told) or re.fullmatch(r"\S+/\d+", told) else f"({told})"

    def __str__(self) -> str:
        return self.text


def _product(term: tuple[Fraction, tuple[str, ...]]) -> str:
    factor, letters = term
    number = abs(factor.numerator)
    top = " ".join([*([str(number)] if number != 1 or not letters else []), *letters])
    top = f"-{top}" if factor < 0 else top
    return top if factor.denominator == 1 else f"{top}/{factor.denominator}"


@dataclass(frozen=True)
class State:
    """What one step leaves to the next.

    ``start``: what the first step is given: "" (None), a literal such as ``{}``, or a call without
    arguments of a name in the code's file, such as ``DynamicCache()``.
    """

    start: str = ""

    def initial(self, space: Mapping[str, Any], name: str) -> Any:
        """Return what the first step is given; ``space``: the names in the file of code ``name``.

        Raises :class:`SignatureError` if the file lacks the name.
        """
        if not self.start.endswith("()"):
            return ast.literal_eval(self.start) if self.start else None
        make = space.get(self.start[:-2])
        if make is None:
            told = f"wanted {self.start} in the file of {name}, which has no such name"
            raise SignatureError(told)
        return make()

    def __str__(self) -> str:
        return self.start


@dataclass(frozen=True)
class Same:
    """The value of a parameter that is given the very array of another."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Argument:
    """A part of a call: an array with ``axes``, a tuple of ``parts``, or a ``value``.

    ``kind`` is one of :data:`KINDS`, or "", and ``also`` an alternative kind.  A value is a
    literal, an :class:`Axis` (a length), a tuple of these, a :class:`State`, or :class:`Same`.
    ``packed``: the parts are one array, stacked on an axis before the axis of this index of theirs;
    or within it, if it is a product, behind that many of its factors.  ``of``: of a result, the
    packed array of which it is a part.  ``named``: the parts are attributes of one object.
    """

    name: str
    axes: tuple[Axis, ...] | None = None
    kind: str = ""
    parts: tuple[Argument, ...] = ()
    value: Any = None
    also: str = ""
    packed: tuple[int, int | None] | None = None
    of: str = ""
    named: bool = False

    def __hash__(self) -> int:
        return hash(self.text)  # a value may be unhashable

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The letters of its axes, without repetition."""
        return tuple(dict.fromkeys(c for axis in self.axes or () for c in axis.letters))

    @property
    def arrays(self) -> Iterator[Argument]:
        """The arrays in it, with those in tuples."""
        if self.axes is not None:
            yield self
        for part in self.parts:
            yield from part.arrays

    def each(
        self, change: Callable[[Argument], Argument], length: Callable[[Axis], Axis] | None = None
    ) -> Argument:
        """Return it with each of its arrays changed, and each length of its values if asked."""
        parts = tuple(one.each(change, length) for one in self.parts)
        inner = replace(
            self, parts=parts, value=with_axes(self.value, length) if length else self.value
        )
        return change(inner) if inner.axes is not None else inner

    @cached_property
    def lengths(self) -> tuple[str, ...]:
        """The letters of its value, and of those in it, without repetition."""
        own = (c for axis in _axes_in(self.value) for c in axis.letters)
        return tuple(dict.fromkeys((*own, *(c for part in self.parts for c in part.lengths))))

    def shape(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape of the array at these lengths."""
        return tuple(axis.size(lengths) for axis in self.axes or ())

    def at(self, lengths: Mapping[str, int]) -> Any:
        """Return the value at these lengths."""
        if isinstance(self.value, list | dict | set):
            return copy.deepcopy(self.value)  # code may write into it
        return with_axes(self.value, lambda axis: axis.size(lengths))

    @cached_property
    def text(self) -> str:
        """The part as it is written."""
        if self.packed is not None:
            return f"{self.name}: {' '.join([*self._packed_axes, *filter(None, [self.kind])])}"
        if self.parts:
            whole = f"{'namespace' * self.named}({', '.join(map(str, self.parts))})"
            return f"{self.name}{' = ' * bool(self.name)}{whole}"
        if self.axes is None:
            if isinstance(self.value, State):
                return f"{self.name} = {self.value}" if self.value.start else self.name
            return f"{self.name} = {_told(self.value)}"
        kinds = " or ".join(one for one in (self.kind, self.also) if one)
        words = [*map(str, self.axes), *([kinds] if kinds else [])]
        return f"{self.name}: {' '.join(words)}"

    @property
    def _packed_axes(self) -> list[str]:
        """The axes of the array that holds the parts, as they are written."""
        assert self.packed is not None
        at, slower = self.packed
        axes, many = self.parts[0].axes or (), str(len(self.parts))
        told = [*map(str, axes)]
        if slower is None:
            return [*told[:at], many, *told[at:]]
        inner = list(axes[at].split or (told[at],))
        told[at] = f"({' '.join([*inner[:slower], many, *inner[slower:]])})"
        return told

    def __str__(self) -> str:
        return self.text


def with_axes(value: Any, change: Callable[[Axis], Any]) -> Any:
    """Return a value with each length in it changed: itself, or those in a tuple of tuples."""
    if isinstance(value, tuple):
        return tuple(with_axes(one, change) for one in value)
    return change(value) if isinstance(value, Axis) else value


def _axes_in(value: Any) -> Iterator[Axis]:
    """Yield the lengths in a value."""
    for one in value if isinstance(value, tuple) else ():
        yield from _axes_in(one)
    if isinstance(value, Axis):
        yield value


def _told(value: Any) -> str:
    if isinstance(value, tuple) and any(_axes_in(value)):
        return f"({', '.join(map(_told, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Axis):
        return str(value)
    # texts in double quotes: in a shell the line is in single quotes
    return dumps(value) if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class Source:
    """Arguments that other code of the same file makes: their names, its name, and its call.

    It returns one array for each of them, or a single one for all.
    """

    names: tuple[str, ...]
    code: str
    call: Signature

    def __str__(self) -> str:
        return f"{', '.join(self.names)} from {self.code}({self.call})"


@dataclass(frozen=True)
class Applied:
    """Other code of the same file that is given, by name, the results of the first, and its call.

    Its other parameters are those that its own line gives.
    """

    code: str
    call: Signature

    def __str__(self) -> str:
        return f"then {self.code}({self.call})"


@dataclass(frozen=True)
class Signature:
    """A call: its arguments, and its results, in order.

    ``mapping``: the result is a mapping with these keys rather than a tuple.  ``source``, ``then``:
    other code of the file, called before it or after it.  ``method``: the method of the object that
    is called.  ``built``: the arguments of its constructor.  ``keys``: values with which it is
    called to rotate keys.  ``step``: how the same code is called on further tokens, with what an
    earlier call left; p is the number of tokens before these.  ``sizes``: letters that stand for a
    number in the line as given, and that number.
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
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def states(self) -> tuple[Argument, ...]:
        """What one step leaves to the next."""
        return tuple(one for one in self.arguments if isinstance(one.value, State))

    @cached_property
    def arrays(self) -> tuple[Argument, ...]:
        """The input arrays, with those in tuples."""
        return tuple(array for one in self.arguments for array in one.arrays)

    @cached_property
    def array_results(self) -> tuple[Argument, ...]:
        """The results that are arrays, and not ignored."""
        return tuple(one for one in self.results if one.axes is not None)

    @cached_property
    def named_results(self) -> tuple[tuple[str, Argument], ...]:
        """These with their names; one without a name has its place among all results."""
        told = enumerate(self.results)
        return tuple((one.name or str(k), one) for k, one in told if one.axes is not None)

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """Every letter, without repetition."""
        lengths = (one.lengths for one in (*self.arguments, *self.built))
        arrays = (one.letters for one in (*self.arrays, *self.results))
        return tuple(dict.fromkeys(c for letters in (*arrays, *lengths) for c in letters))

    @property
    def returned(self) -> list[Argument]:
        """The results, of which those that come back in one array are there once."""
        return [
            one
            for k, one in enumerate(self.results)
            if not one.of or not k or self.results[k - 1].of != one.of
        ]

    def each(
        self, change: Callable[[Argument], Argument], length: Callable[[Axis], Axis] | None = None
    ) -> Signature:
        """Return the call with each of its arrays changed, and each length if asked."""
        given, back = (
            tuple(one.each(change, length) for one in part)
            for part in (self.arguments, self.results)
        )
        return replace(self, arguments=given, results=back)

    def named(self, name: str) -> Argument | None:
        """Return the input array of this name, or None."""
        return next((one for one in self.arrays if one.name == name), None)

    def __str__(self) -> str:
        known = {one.name: one for one in (*self.arrays, *self.states)}
        back = [
            one.of
            or (
                one.name
                if known.get(one.name) is not None and known[one.name].axes == one.axes
                else "_"
                if one.axes is None
                else str(one).removeprefix(": ")
            )
            for one in self.returned
        ]
        given, told = ", ".join(map(str, self.arguments)), ", ".join(back)
        back_told = f"{{{told}}}" if self.mapping else told
        built = f"built with {', '.join(map(str, self.built))}" if self.built else ""
        method = f"method {self.method}" if self.method else ""
        keys = f"keys with {', '.join(map(str, self.keys))}" if self.keys else ""
        step = f"step: {self.step}" if self.step else ""
        more = [str(one) for one in (self.source, self.then, method, built, keys, step) if one]
        return "; ".join([f"{given} -> {back_told}".lstrip(), *more])

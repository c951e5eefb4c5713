"""Call both programs on the same arrays: match their arguments, and the order of their axes.

The arrays that the first program takes are the shared ones.  An argument of the second is matched
by name, else by role, else by position; letters tell the order of its axes, the kind of a mask
tells what True means in it, and anything else is written as an expression.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..calls.roles import HIDING, MASKS, TRUTH_OF, role
from ..loading.program import Program
from ..signatures.signature import Argument, Axis, Signature, SignatureError
from .expressions import Expression

Arrays = Mapping[str, Tensor]
LENGTH = "length"  # role of an array that only conveys a length


@dataclass(frozen=True)
class Operand:
    """A program as the user describes it: the object, its call line, its settings.

    ``thing`` may be a specification for the second program.
    """

    thing: Any
    name: str
    call: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Shared:
    """An array that both programs are given: its name, the letter of each axis, its role.

    An axis that is not a product of letters, such as ``D/2`` or a number, has that text as its
    letter.
    """

    name: str
    letters: tuple[str, ...]
    kind: str

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(self.letters)}"


def letters_in(axes: Sequence[Axis]) -> tuple[str, ...]:
    """Return the letters of axes, with products spelt out; axes of length 1 have none.

    >>> from ..signatures.grammar import parse
    >>> letters_in(parse("x: B n (H D), cos: 1 n D/2 -> x").arrays[0].axes)
    ('B', 'n', 'H', 'D')
    """
    found: list[str] = []
    for axis in axes:
        split = None if axis.fold else axis.split
        found += (
            axis.letters
            if axis.fold
            else [str(axis).replace(" ", "")]
            if (split is None)
            else split
        )
    return tuple(found)


def shared_of(signature: Signature) -> tuple[Shared, ...]:
    """Return the arrays of a program as shared arrays; 0 and 1 become truth values.

    >>> from ..signatures.grammar import parse
    >>> [(one.name, one.kind) for one in shared_of(parse("mask: B n ones -> B n"))]
    [('mask', 'keep')]
    """
    kinds = {one.name: role(one) for one in signature.arrays}
    for name in (name for name, kind in kinds.items() if kind == "bounds"):
        raise SignatureError(
            f"wanted arrays of arbitrary numbers, got {name}, which holds bounds of sequences: "
            "programs that take those cannot be compared yet"
        )
    return tuple(
        Shared(
            one.name,
            letters_in(one.axes or ()),
            TRUTH_OF.get(kinds[one.name], kinds[one.name]),
        )
        for one in signature.arrays
    )


def length_arguments(
    shared: Sequence[Shared], signatures: Sequence[Signature], known: Collection[str]
) -> tuple[tuple[Shared, ...], tuple[str, ...]]:
    """Return an array for each length that is an argument but not an axis of any array.

    Beside them the letters that are such arguments of one program and ``known`` of another, which
    does not receive them: their lengths are fixed.

    >>> from ..signatures.grammar import parse
    >>> told = [parse("heads = H, n = n -> H n n"), parse("n = n -> H n n")]
    >>> free, fixed = length_arguments((), told, {"H"})
    >>> list(map(str, free)), fixed
    (['length_n: n'], ('H',))
    """
    axes = {c for one in shared for c in _letters_of(one)}
    passed = [{c for one in s.arguments for c in one.lengths} for s in signatures]
    wanted = dict.fromkeys(c for s in signatures for one in s.arguments for c in one.lengths)
    letters = [c for c in wanted if c not in axes]
    pairs = list(zip(signatures, passed, strict=True))
    fixed = [c for c in letters if c in known and any(c in {*s.letters} - own for s, own in pairs)]
    free = (Shared(f"{LENGTH}_{c}", (c,), LENGTH) for c in letters if c not in fixed)
    return tuple(free), tuple(fixed)


def _letters_of(one: Shared) -> Iterator[str]:
    for letter in one.letters:
        yield from re.findall(r"[A-Za-z]'*", letter)


@dataclass(frozen=True)
class Side:
    """One program: how its arrays are computed from the shared ones, and its weights.

    ``bindings``: the name of an argument -> the shared array that it is, or an expression for it.
    ``lengths``: lengths of letters that no shared array has.  ``weights``: names of its parameters,
    or of arguments, to expressions in the parameters of ``source``, a module of the other program.
    ``copies``: it is given copies of the arrays, since it writes into them.
    """

    program: Program
    module: nn.Module | None
    line: str
    place: str
    shared: tuple[Shared, ...]
    bindings: Mapping[str, str | Expression | tuple[tuple[str, ...], str]]
    lengths: Mapping[str, int]
    results: tuple[str, ...]
    weights: Mapping[str, Expression] = field(default_factory=dict)
    source: nn.Module | None = None
    copies: bool = False

    def run(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the results for the shared arrays, in order, each in the axes of its line."""
        values = [x.clone() for x in values] if self.copies else values
        given = dict(zip((one.name for one in self.shared), values, strict=True))
        sizes = self._sizes(given)
        arrays = {name: made(given, sizes) for name, made in self._makers}
        weights = self._weights()
        arrays |= {name: weights.pop(name) for name in self._argument_names & set(weights)}
        program = self.program
        if weights and self.module is None:  # weights of a function are further arguments
            program = Program(_with_weights(program.call, weights), program.signature, program.name)
            found = program.run(arrays, sizes)
        elif weights:
            holder = _Holder(self.module, program)
            named = {f"inner.{name}": value for name, value in weights.items()}
            found = torch.func.functional_call(holder, named, (arrays, sizes))
        else:
            found = program.run(arrays, sizes)
        return [found[name] for name in self.results]

    @cached_property
    def _argument_names(self) -> set[str]:
        return {one.name for one in self.program.signature.arguments}

    @cached_property
    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(one for one in self.program.signature.arrays if one.name in self.bindings)

    @cached_property
    def _makers(self) -> list[tuple[str, Callable[[Arrays, Mapping[str, Any]], Tensor]]]:
        """For each argument, a function that makes it; arrays passed unchanged are not examined."""
        return [(one.name, self._maker(one)) for one in self._arguments]

    @cached_property
    def _letter_axes(self) -> list[tuple[str, int, str]]:
        """Letters in this program's line, with the shared array and axis that determine each."""
        found = []
        for one in self._arguments:
            shared = self._shared_by(one)
            if shared is not None:
                own = _letters_by_axis(letters_in(one.axes or ()), shared.letters)
                found += [(shared.name, k, c) for k, c in enumerate(own) if c.isidentifier()]
        alone = [one.name for one in self.shared if one.kind == LENGTH]
        return found + [(name, 0, name.removeprefix(f"{LENGTH}_")) for name in alone]

    def _weights(self) -> dict[str, Tensor]:
        """Evaluate the expressions for parameters of the module, or for arguments."""
        if self.source is None:
            return {}
        known = dict(self.source.named_parameters()) | dict(self.source.named_buffers())
        return {name: told.evaluate(known) for name, told in self.weights.items()}

    def _sizes(self, given: Arrays) -> dict[str, Any]:
        """Return the lengths of the letters in this program's line, for these arrays."""
        found: dict[str, Any] = dict(self.lengths)
        for name, axis, letter in self._letter_axes:
            found[letter] = given[name].shape[axis]
        return found

    def _shared_by(self, argument: Argument) -> Shared | None:
        told = self.bindings[argument.name]
        name = told if isinstance(told, str) else ""
        return next((one for one in self.shared if one.name == name), None)

    def _maker(self, argument: Argument) -> Callable[[Arrays, Mapping[str, Any]], Tensor]:
        told, axes = self.bindings[argument.name], argument.axes or ()
        if isinstance(told, Expression):
            return lambda given, _: told.evaluate(given)
        if isinstance(told, tuple):
            parts, axis = told
            letters = next(one for one in self.shared if one.name == parts[0]).letters
            place = letters.index(axis)
            return lambda given, sizes: arranged(
                torch.cat([given[name] for name in parts], place), letters, axes, sizes
            )
        shared = next(one for one in self.shared if one.name == told)
        kind, name = role(argument), shared.name
        alone = all(len(letters_in((axis,))) == 1 for axis in axes)
        if alone and letters_in(axes) == shared.letters and kind == shared.kind:
            return lambda given, _: given[name]
        return lambda given, sizes: as_kind(
            arranged(given[name], shared.letters, axes, sizes),
            shared.kind,
            kind,
            _float_dtype(given),
        )


def _with_weights(call: Callable[..., Any], weights: Mapping[str, Tensor]) -> Callable[..., Any]:
    """Return a function with some arguments given by name; the others are passed as before."""

    def called(*given: Any, **named: Any) -> Any:
        return call(*given, **named, **weights)

    known = inspect.signature(call)
    left = [one for name, one in known.parameters.items() if name not in weights]
    called.__signature__ = known.replace(parameters=left)  # type: ignore[attr-defined]
    return called


class _Holder(nn.Module):
    """A module inside which another module is called with other weights."""

    def __init__(self, inner: nn.Module | None, program: Program) -> None:
        super().__init__()
        self.inner, self.programs = inner, [program]

    def forward(self, arrays: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
        return self.programs[0].run(arrays, sizes)


def _letters_by_axis(own: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """Return the own letter of each axis of another order; by position if the letters differ."""
    if Counter(own) == Counter(theirs) or len(own) != len(theirs):
        return list(theirs)
    return list(own)


def arranged(
    x: Tensor, letters: Sequence[str], axes: Sequence[Axis], sizes: Mapping[str, Any]
) -> Tensor:
    """Return an array, one axis per letter, in these axes: permuted, then merged.

    If the axes have other letters but the same number, the array is returned unchanged.
    """
    wanted = letters_in(axes)
    if Counter(wanted) == Counter(letters):
        x = x.permute(_order(letters, wanted))
        lengths, shape, at = list(x.shape), [], 0
        for axis in axes:
            count = len(letters_in((axis,)))
            shape.append(prod(lengths[at : at + count]) if count != 1 else lengths[at])
            at += count
        return x if shape == lengths else x.reshape(shape)
    shape = [axis.size(sizes) for axis in axes]
    if len(shape) != x.ndim and prod(shape) != x.numel():
        raise SignatureError(
            f"the two take arrays of different axes: one of {' '.join(letters)} cannot be reshaped "
            f"to the {len(shape)} axes that the other takes; write both calls, with --call"
        )
    return x if len(shape) == x.ndim else x.reshape(shape)


def _order(letters: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the position of each wanted letter; equal letters keep their order."""
    left = list(enumerate(letters))
    found = []
    for letter in wanted:
        at = next(k for k, (_, own) in enumerate(left) if own == letter)
        found.append(left.pop(at)[0])
    return found


def _float_dtype(given: Arrays) -> torch.dtype:
    """Return the floating-point dtype of a call."""
    return next((x.dtype for x in given.values() if x.is_floating_point()), torch.float32)


def as_kind(x: Tensor, kind: str, wanted: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """Convert a mask from one kind to another, with numbers in this dtype; else return it as is."""
    if kind == wanted or kind not in MASKS or wanted not in MASKS or kind == "add":
        return x
    keeps = (
        x
        if kind == "keep"
        else x == 0
        if kind == "hide" and x.dtype != torch.bool
        else (~x if kind == "hide" else x != 0)
    )
    if wanted == "keep":
        return keeps
    if wanted == "hide":
        return ~keeps
    if wanted in TRUTH_OF:
        marked = ~keeps if wanted in HIDING else keeps
        return marked.to(dtype) if wanted == "factors" else marked.long()
    return torch.zeros(keeps.shape, dtype=dtype).masked_fill(~keeps, -torch.inf)


def match_arguments(
    shared: Sequence[Shared], signature: Signature, told: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Return for each array of a program its shared array, or the expression given for it.

    Arrays match by name, else by role if it is unique, else in order.  Raises
    :class:`SignatureError` for an array without a match.
    """
    found: dict[str, Any] = {
        one.name: told[one.name] for one in signature.arrays if one.name in told
    }
    used = set(_used_names(found.values()))
    left = [one for one in signature.arrays if one.name not in found]
    known = {one.name: one for one in shared if one.name not in used}
    for one in [one for one in left if one.name in known]:
        found[one.name] = known.pop(one.name).name
        left.remove(one)
    for one in list(left):
        same = [
            s for s in known.values() if s.kind and _mask_family(s.kind) == _mask_family(role(one))
        ]
        alike = [o for o in left if _mask_family(role(o)) == _mask_family(role(one))]
        if len(same) == 1 and len(alike) == 1:
            found[one.name] = known.pop(same[0].name).name
            left.remove(one)
    if len(left) <= len(known):
        for one, other in zip(left, list(known.values()), strict=False):
            found[one.name] = other.name
        return found
    missing = ", ".join(str(one) for one in left[len(known) :])
    raise SignatureError(
        f"{name} also takes {missing}, which has no counterpart in the other program; write "
        f"--where '{left[-1].name} = ..' or --weights '{left[-1].name} = ..', or both calls"
    )


def _mask_family(kind: str) -> str:
    """Return a common kind for masks that convert to each other: either polarity, or numbers."""
    return "keep" if kind in ("hide", *TRUTH_OF) else kind


def _used_names(values: Any) -> Iterator[str]:
    for told in values:
        if isinstance(told, str):
            yield told
        elif isinstance(told, tuple):
            yield from told[0]
        elif isinstance(told, Expression):
            yield from told.names


def in_axes_of_first(first: Side, second: Side, k: int, there: Tensor) -> Tensor:
    """Return a result of the second program in the axes of the first, if the letters agree."""
    own, theirs = (axes_of(side, k) for side in (first, second))
    one, other = letters_in(own), letters_in(theirs)
    if Counter(one) != Counter(other) or (one == other and len(own) == len(theirs)):
        return there
    sizes = dict(second.lengths)
    return arranged(there.reshape(_letter_lengths(theirs, sizes, there)), other, own, sizes)


def axes_of(side: Side, k: int) -> tuple[Axis, ...]:
    """Return the axes of a result as written in the signature of a program."""
    return side.program.signature.array_results[k].axes or ()


def _letter_lengths(axes: Sequence[Axis], sizes: Mapping[str, Any], x: Tensor) -> list[Any]:
    """Return the lengths of all letters of a result; the first of a product is computed."""
    found: list[Any] = []
    for axis, size in zip(axes, x.shape, strict=True):
        letters = letters_in((axis,))
        if len(letters) == 1:
            found.append(size)
        elif letters:
            rest = [sizes[c] for c in letters[1:]]
            found += [size // prod(rest), *rest]
    return found


def common_letters(shared: Sequence[Shared], sides: Sequence[Side]) -> dict[str, str]:
    """Map letters to a common letter if a program's line uses one letter for both."""
    same: dict[str, str] = {}

    def root(letter: str) -> str:
        while letter in same:
            letter = same[letter]
        return letter

    for side in sides:
        own: dict[str, str] = {}
        for argument in side.program.signature.arrays:
            one = side._shared_by(argument) if argument.name in side.bindings else None  # noqa: SLF001
            if one is None:
                continue
            letters = letters_in(argument.axes or ())
            if len(letters) != len(one.letters):
                continue
            places = (
                _order(one.letters, letters)
                if Counter(letters) == Counter(one.letters)
                else (range(len(letters)))
            )
            for letter, place in zip(letters, places, strict=True):
                theirs = root(one.letters[place])
                first = own.setdefault(letter, theirs)
                if root(first) != theirs:
                    same[theirs] = root(first)
    return {letter: root(letter) for one in shared for letter in one.letters}


def with_letters(shared: Sequence[Shared], names: Mapping[str, str]) -> tuple[Shared, ...]:
    """Return the arrays with other letters."""
    return tuple(
        replace(one, letters=tuple(names.get(c, c) for c in one.letters)) for one in shared
    )

"""The inputs of both programs: arrays according to their roles, and tables computed from angles.

Most arrays have arbitrary numbers.  A mask lets every row see a key, positions are integers, and
cosines and sines may have to be related: code that reads one half of a table is the same function
as code that reads both, if the halves are equal.  The lengths, and the unusual numbers, on which
both are run are also defined here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..calls.roles import SIZES
from ..execution.response import OperationNames
from ..loading.source_numbers import constants_in, names_in, numbers_of
from ..prove.compared_numbers import MetNumbers
from ..prove.comparison_monitor import FEW
from ..signatures.grammar import parse
from .sides import LENGTH, Shared

if TYPE_CHECKING:
    from .pair import ProgramPair

DISTINCT_LENGTHS = (6, 9, 11, 13, 10, 12, 15, 17)  # of letters without a usual size
MAX_START = 40  # bound of the first position of a row
VOCABULARY_SIZE = 10


@dataclass(frozen=True)
class Table:
    """How tables of cosines and sines are related; ``says`` is a condition, empty if unrelated."""

    says: str


UNRELATED = Table("")
HALVES = Table("cosines and sines are those of the same angles, equal in both halves of a row")
PAIRS = Table("cosines and sines are those of the same angles, equal in adjacent pairs")


def table_relations(shared: Sequence[Shared]) -> tuple[Table, ...]:
    """Return the ways in which these arrays can be related, the most general first."""
    axes = {one.name: one.letters for one in shared}
    pairs = _sines_by_cosines(shared)
    same_axes = all(axes[cosines] == axes[sines] for cosines, sines in pairs.items())
    return (UNRELATED, HALVES, PAIRS) if pairs and same_axes else (UNRELATED,)


def _sines_by_cosines(shared: Sequence[Shared]) -> dict[str, str]:
    """Map each array of cosines to its sines, by name or else in order; empty if one is alone."""
    cosines, sines = ([one.name for one in shared if one.kind == kind] for kind in ("cos", "sin"))
    if len(cosines) != len(sines):
        return {}
    named = {name: name.replace("cos", "sin") for name in cosines}
    in_order = dict(zip(cosines, sines, strict=True))
    return named if sorted(named.values()) == sorted(sines) else in_order


def with_angles(shared: Sequence[Shared], table: Table) -> tuple[Shared, ...]:
    """Replace cosines and sines by the angles they are computed from, half as many."""
    if table is UNRELATED:
        return tuple(shared)
    found = []
    several = [one.kind for one in shared].count("cos") > 1
    for one in shared:
        if one.kind == "cos":
            letters = (*one.letters[:-1], f"{one.letters[-1]}/2")
            name = f"angles_of_{one.name}" if several else "angles"
            found.append(Shared(name, letters, "angles"))
        elif one.kind != "sin":
            found.append(one)
    return tuple(found)


def with_tables(
    shared: Sequence[Shared], table: Table, values: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Return the shared arrays, with cosines and sines computed from the angles in their place."""
    if table is UNRELATED:
        return tuple(values)
    given = iter(values)
    made: dict[str, Tensor] = {}
    sines = _sines_by_cosines(shared)
    for one in shared:
        if one.kind == "cos":
            angles = next(given)
            twice = (
                torch.cat((angles, angles), -1)
                if table is HALVES
                else torch.stack((angles, angles), -1).flatten(-2)
            )
            made[one.name], made[sines[one.name]] = twice.cos(), twice.sin()
        elif one.kind != "sin":
            made[one.name] = next(given)
    return tuple(made[one.name] for one in shared)


def size_of(letter: str, lengths: Mapping[str, int]) -> int:
    """Return the length of an axis from its letter, which may be a number, quotient or sum.

    >>> size_of("D/2", {"D": 8}), size_of("(n+m)", {"n": 2, "m": 3})
    (4, 5)
    """
    if letter in lengths:
        return lengths[letter]
    axes = parse(f"x: {letter} -> 1").arrays[0].axes or ()
    return axes[0].size(lengths)


def lengths_for(shared: Sequence[Shared], known: Mapping[str, int]) -> dict[str, int]:
    """Return a length for every letter, all different except those that are known."""
    names = [c for one in shared for letter in one.letters for c in _letters_of(letter)]
    free = iter(n for n in DISTINCT_LENGTHS if n not in known.values())
    found: dict[str, int] = {}
    for name in dict.fromkeys(names):
        found[name] = known.get(name) or SIZES.get(name) or next(free)
    return found


def _letters_of(letter: str) -> tuple[str, ...]:
    if letter.isdigit():
        return ()
    return parse(f"x: {letter} -> 1").letters


def drawn(
    shared: Sequence[Shared],
    lengths: Mapping[str, int],
    seed: int,
    dtype: torch.dtype = torch.float32,
    *,
    small: bool = False,
) -> tuple[Tensor, ...]:
    """Return an array for each shared one; ``small``: of small integers, for a readable witness."""
    generator = torch.Generator().manual_seed(seed)

    def one(what: Shared) -> Tensor:
        shape = [size_of(letter, lengths) for letter in what.letters]
        kind = what.kind
        if kind == LENGTH:
            return torch.zeros(shape, dtype=dtype)
        if kind in BINARY_MASKS:
            kept = torch.rand(shape, generator=generator) < 0.6
            if shape:
                kept[..., 0] = True
            return ~kept if kind == "hide" else kept
        if kind in (*INTEGER_KINDS, "lengths"):
            return _integers(kind, shape, lengths, generator)
        if kind == "cis":
            angles = torch.randn(shape, generator=generator)
            return torch.polar(torch.ones_like(angles), angles)
        if small:
            return torch.randint(-2, 3, shape, generator=generator).to(dtype)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    return tuple(map(one, shared))


def _integers(kind: str, shape: list[int], lengths: Mapping[str, int], generator: Any) -> Tensor:
    if kind == "lengths":
        most = lengths.get("n", 2)
        found = torch.randint(1, most + 1, shape, generator=generator)
        if found.numel() > 1:
            found.flatten()[-1] = most  # padding ends where the longest row does
        return found
    if kind in ("positions", "axis") and shape:
        start = torch.randint(0, MAX_START, [*shape[:-1], 1], generator=generator)
        return start + torch.arange(shape[-1])
    return torch.randint(0, VOCABULARY_SIZE, shape, generator=generator)


LONG_LENGTHS = (16, 33, 70)  # numbers of tokens; code may change its path at some length
MAX_SOURCE_LENGTHS = 24  # number of lengths from the source that are tried
LONGEST_SOURCE_LENGTH = 600
MAX_SOURCE_HEADS = 64  # lengths from the source up to this are also tried as numbers of heads
MAX_SOURCE_NUMBERS = 8  # number of numbers from the source that are tried as inputs in every way
MORE_SOURCE_NUMBERS = 40  # number of those that are tried as inputs at all
LARGEST_INPUT = 8e307  # whose double is a number too
TOKENS = "nrm"
INTEGER_KINDS = ("positions", "axis", "ids", "documents", "index")
BINARY_MASKS = ("keep", "hide")  # masks that are not added
FILL_RANGE = (1e3, 1e6)  # fills that hide keys as long as no score is as large
INFINITE = 1e30  # a fill from here on stands for infinity in any format
# operations that give 0 for −∞
HIDING = {"exp", "exp2", "_softmax", "softmax", "logsumexp", "sigmoid", "relu", "_log_softmax"}
MULTIPLES = (1, -1, 2, -2, 1 / 16)  # of these numbers: code may compare the norm of a few entries
LARGE_INPUTS, ZERO_INPUTS = "large inputs", "inputs that are 0"
CONSTANT_INPUTS = "constant inputs"
INTEGER_BITS = {"int8": 7, "char": 7, "uint8": 8, "byte": 8, "int16": 15, "short": 15}


def lengths_tried(both: ProgramPair) -> list[dict[str, int]]:
    """Return the lengths at which both are run: as given, small, equal, long; shortest first."""
    base = dict(both.lengths)
    letters = both.letters
    tokens = [c for c in letters if c in TOKENS]
    found = [base]
    even = [c for c in base if c in "DE"]  # channels may go in pairs
    for size in (1, 2, 3):
        least = {**dict.fromkeys(base, size), **dict.fromkeys(even, 2 * size)}
        found += [least, {**least, **{c: base[c] for c in even}}]
        found.append({**base, **dict.fromkeys(tokens, size)})
        found += [{**base, c: size} for c in letters if c not in "HGDE"]
    found += [{**base, "n": a, "r": b} for a, b in ((2, 5), (5, 2), (6, 6)) if "r" in base]
    for n in LONG_LENGTHS:
        found.append({**base, **dict.fromkeys(tokens, n)})
    if {"H", "G"} <= set(letters):
        found += [{**base, "H": h, "G": g} for h, g in ((6, 2), (4, 4), (4, 1))]
    found += [{**base, c: n} for c in "HDE" for n in (2, 4, 6) if c in letters]
    named = _lengths_near_numbers(both)
    if "H" in letters:
        few = {**base, **dict.fromkeys(tokens, 2)}
        found += [
            {**few, "H": n, **({"G": 1} if "G" in few else {})}
            for n in named
            if n <= MAX_SOURCE_HEADS
        ]
    for n in named:
        found.append(
            {**dict.fromkeys(base, 2), **{c: base[c] for c in even}, **dict.fromkeys(tokens, n)}
        )
    unique = {tuple(sorted(one.items())): one for one in found}
    return sorted(unique.values(), key=lambda one: math.prod(one.values()))


def source_constants(both: ProgramPair) -> list[float]:
    """Return the numbers in the source of either program, and where its short integers overflow."""
    calls = _calls(both)
    return [*constants_in(calls), *_wraps(calls)]


@dataclass(frozen=True)
class Meeting:
    """One program of a pair, and the numbers that it met when it was run at ``at``."""

    side: str
    met: MetNumbers
    at: Mapping[str, int]


def meetings(both: ProgramPair, letters: Sequence[str]) -> list[Meeting]:
    """Run both with few tokens, along the axes of these letters; return what each program meets."""
    found = []
    for side, code in zip(("first", "second"), _calls(both), strict=True):

        def call(at: Mapping[str, int], side: str = side) -> None:
            with torch.no_grad():
                both.results_of_copies(side, drawn(both.inputs, {**both.lengths, **at}, 0))

        met, few = MetNumbers([code]), dict.fromkeys(letters, FEW[0])
        met.run(call, [dict.fromkeys(letters, n) for n in FEW])
        if not met.ran.codes:  # it accepts none of these
            met.run(call, [{}])
            few = {}
        found.append(Meeting(side, met, {**both.lengths, **few}))
    return found


def lengths_met(both: ProgramPair, programs: Sequence[Meeting]) -> list[int]:
    """Return the numbers that may be lengths: in the source of either program, and met by it."""
    found = dict.fromkeys(n for one in programs for n in one.met.numbers())
    return [*found, *_wraps(_calls(both))]


def _calls(both: ProgramPair) -> list[Any]:
    return [side.program.call for side in (both.first, both.second)]


def _wraps(calls: Sequence[Any]) -> list[int]:
    return [1 << INTEGER_BITS[name] for name in INTEGER_BITS if name in names_in(calls)]


def _lengths_near_numbers(both: ProgramPair) -> list[int]:
    """Return the numbers in the source of either program, and their neighbours, as lengths."""
    named = dict.fromkeys(n + k for n in numbers_of(source_constants(both)) for k in (-1, 0, 1))
    return [n for n in named if 3 < n <= LONGEST_SOURCE_LENGTH][:MAX_SOURCE_LENGTHS]


def unusual_inputs(
    both: ProgramPair, given: Sequence[Tensor]
) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    """Yield unusual inputs, which code may treat specially, each with its description or ""."""
    yield ZERO_INPUTS, scaled(given, 0.0)
    for place, x in enumerate(given):
        if x.is_floating_point():
            yield ZERO_INPUTS, (*given[:place], 0.0 * x, *given[place + 1 :])  # some are −0
    constants = source_constants(both)
    fills = bool(fills_of(both, given))
    yield LARGE_INPUTS, scaled(given, 16.0 if fills else 100.0)
    yield "small inputs", scaled(given, 1e-3)
    numbers = _numbers_of_inputs(constants, fills=fills)
    near = [times * c for c in numbers[:MAX_SOURCE_NUMBERS] for times in MULTIPLES]
    near += [t * c for c in numbers[MAX_SOURCE_NUMBERS:MORE_SOURCE_NUMBERS] for t in MULTIPLES[:-1]]
    for number in dict.fromkeys((1.0, -1.0, *near)):
        yield (
            CONSTANT_INPUTS,
            tuple(torch.full_like(x, number) if x.is_floating_point() else x for x in given),
        )
    large = [n for n in numbers_of(constants) if n >= VOCABULARY_SIZE][:MAX_SOURCE_NUMBERS]
    if any(one.kind in INTEGER_KINDS for one in both.inputs):
        for change in (_resampled, *map(_adder, large)):
            every = zip(both.inputs, given, strict=True)
            yield "", tuple(change(x) if one.kind in INTEGER_KINDS else x for one, x in every)
    if any(one.kind in BINARY_MASKS for one in both.inputs):
        yield "", _masked(both, given, lambda _: None)


def _numbers_of_inputs(constants: Iterable[float], *, fills: bool) -> list[float]:
    """Return the numbers of a source that inputs may be; ``fills``: some of them hide keys."""
    found = dict.fromkeys(abs(c) for c in constants if 0 < abs(c) < LARGEST_INPUT)
    return [c for c in found if not (fills and _is_fill(c))]


def untried_numbers(both: ProgramPair, given: Sequence[Tensor]) -> list[float]:
    """Return the numbers in the source of either program that were not tried as inputs."""
    numbers = _numbers_of_inputs(source_constants(both), fills=bool(fills_of(both, given)))
    return numbers[MORE_SOURCE_NUMBERS:] if any(x.is_floating_point() for x in given) else []


def _adder(number: int) -> Callable[[Tensor], Tensor]:
    """Return the map that adds a number."""
    return lambda x: x + number


def _is_fill(number: float) -> bool:
    size = abs(number)
    return FILL_RANGE[0] <= size < FILL_RANGE[1] or INFINITE <= size < LARGEST_INPUT


def fills_of(both: ProgramPair, given: Sequence[Tensor]) -> list[float]:
    """Return the numbers in the source of either program that may stand for −∞ in a mask.

    There are none if no operation gives 0 for −∞, as an exponential does.
    """
    found = [c for c in source_constants(both) if _is_fill(c)]
    return found if found and _takes_minus_infinity(both, given) else []


def _takes_minus_infinity(both: ProgramPair, given: Sequence[Tensor]) -> bool:
    watch = OperationNames()
    with suppress(Exception), torch.no_grad(), watch:
        for side in ("first", "second"):
            both.results_of_copies(side, given)
    return not watch.names or any(name in HIDING or "attention" in name for name in watch.names)


def with_first_key_hidden(both: ProgramPair, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the same inputs with masks that hide only the first key, as left padding does."""

    def hiding(keep: Tensor) -> None:
        keep[..., :1] = 0

    return _masked(both, given, hiding)


def _masked(
    both: ProgramPair, given: Sequence[Tensor], change: Callable[[Tensor], None]
) -> tuple[Tensor, ...]:
    """Return the same inputs with masks that show all keys, after a change of these, 1 for seen."""
    found = []
    for one, x in zip(both.inputs, given, strict=True):
        if one.kind in BINARY_MASKS:
            keep = torch.ones_like(x)
            change(keep)
            found.append(~keep if one.kind == "hide" else keep)
        else:
            found.append(x)
    return tuple(found)


def _resampled(x: Tensor) -> Tensor:
    """Draw entries of an integer array at random: with gaps, repeats, and unordered."""
    generator = torch.Generator().manual_seed(9)
    places = torch.randint(0, max(x.numel(), 1), (x.numel(),), generator=generator)
    return x.flatten()[places].reshape(x.shape)


def scaled(values: Sequence[Tensor], scale: float) -> tuple[Tensor, ...]:
    """Return the floating-point arrays times a number; positions and masks unchanged."""
    return tuple(x * scale if x.is_floating_point() else x for x in values)

"""The numbers with which code may compare a length: those in its source, and those it computes.

``self.window * 2``, ``len(self.table) // 3`` and ``int(math.exp(6))`` stand nowhere in the source.
They are met while the code runs with few tokens: on the other side of a length in a comparison or
a division, at the start or the end of a slice, among the arguments of operations, and among what
functions return or hold.  A table of pages that is read at ``position // size`` ends at the size of
a page times the number of pages, and ``n % 64 == 9`` holds of 73, not of 9 alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..loading.source_numbers import BOUNDING, LARGEST_FLOAT, is_own, lengths_in
from .comparison_monitor import ComparedSides, ComparisonMonitor
from .environment import environment_conditions, torchscript_conditions
from .executed_code import Executed
from .instrumentation import instrument, instrument_unwatched
from .lengths_in_tensors import LengthsInTensors
from .settings_read import SettingsRead

T = TypeVar("T")
Lengths = Mapping[str, int]
OWN = __name__.split(".", maxsplit=1)[0]
MOST = 1 << 40  # larger whole numbers are no lengths
# These take sizes of axes, which are not positions in them; inputs are drawn by randn.
OF_SHAPES = ("view", "reshape", "expand", "unflatten", "layer_norm", "rms_norm", "randn")
DIVIDING = ("floor_divide", "div", "divide", "remainder", "fmod")
DIVIDING_BY_SIGN = ("__floordiv__", "__mod__", "__rshift__")
LOOKING_UP = ("__getitem__", "index_select", "gather", "take", "embedding")
MAX_PRODUCTS = 64
CASTS = ("to", "type", "type_as", "half", "bfloat16", "char", "short", "byte", "arange")
# The largest whole number up to which all are exact in a format.
EXACT_UP_TO = {
    torch.float16: 1 << 11,
    torch.bfloat16: 1 << 8,
    torch.int8: (1 << 7) - 1,
    torch.uint8: (1 << 8) - 1,
    torch.int16: (1 << 15) - 1,
}


class Passed(TorchFunctionMode):
    """Record the whole numbers passed to operations beside arrays, such as the start of a slice.

    A float counts where something is bounded, not as an operand: 10000.0 is the base of a power.
    ``divisors``: those by which whole numbers are divided.  ``looked_up``: the lengths of axes that
    are read at places which other arrays hold.  What the call is adapted by, and its inputs are
    made with, is not the code's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []
        self.divisors: set[int] = set()
        self.looked_up: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if _is_adapter(sys._getframe(1)):  # noqa: SLF001 (the caller's)
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name not in OF_SHAPES:
            floats = name.strip("_") in BOUNDING
            self.found += [*_whole(args, floats=floats), *_whole(kwargs, floats=floats)]
        if name in LOOKING_UP:
            with suppress(Exception):  # what no operation accepts
                self.looked_up.update(_lengths_looked_up(name, args))
        if name.strip("_") in DIVIDING or name in DIVIDING_BY_SIGN:
            powers = name == "__rshift__"
            self.divisors.update(1 << n if powers else n for n in _whole(args, floats=False))
        result = func(*args, **kwargs)
        if name in CASTS and isinstance(result, Tensor) and result.dtype in EXACT_UP_TO:
            whole = not (isinstance(args[0], Tensor) and args[0].is_floating_point())
            self.found += [EXACT_UP_TO[result.dtype]] * whole  # a position is rounded beyond it
        return result


def _is_adapter(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == OWN


def _whole(one: Any, *, floats: bool) -> Iterator[int]:
    if isinstance(one, Mapping):
        yield from _whole(tuple(one.values()), floats=floats)
    elif isinstance(one, tuple | list):
        for each in one:
            yield from _whole(each, floats=floats)
    elif isinstance(one, slice):
        yield from _whole((one.start, one.stop, one.step), floats=floats)
    elif isinstance(one, Tensor):
        if one.dim() == 0 and one.device.type == "cpu" and not one.is_complex():
            yield from _whole(one.detach().item(), floats=floats)
    elif isinstance(one, int | float if floats else int) and not isinstance(one, bool):
        most = LARGEST_FLOAT if isinstance(one, float) else MOST
        yield from [int(one)] if abs(one) < most else []  # n > 64.5 gives 64


def _lengths_looked_up(name: str, args: Sequence[Any]) -> Iterator[int]:
    """Yield the lengths of the axes that are read at places in an array of whole numbers."""
    if name == "embedding":
        yield args[1].shape[0]
    elif name != "__getitem__":
        yield args[0].numel() if name == "take" else args[0].shape[args[1]]
    else:
        x, places = args[0], args[1] if isinstance(args[1], tuple) else (args[1],)
        axes = [one for one in places if one is not None]
        behind = axes.index(Ellipsis) if any(one is Ellipsis for one in axes) else len(axes)
        for place, one in enumerate(axes):
            if isinstance(one, Tensor) and not one.dtype.is_floating_point and one.dim():
                axis = place if place < behind else place - len(axes)
                yield from [x.shape[axis]] * (one.dtype != torch.bool)


@dataclass
class MetNumbers:
    """Runs of some code, and the numbers that it meets there; ``roots``: what it consists of."""

    roots: Sequence[Any]
    ran: Executed = field(default_factory=lambda: Executed(is_own))
    watch: ComparisonMonitor = field(default_factory=ComparisonMonitor)
    passed: set[int] = field(default_factory=set)
    divisors: set[int] = field(default_factory=set)
    looked_up: list[set[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tensors = LengthsInTensors(self.watch)
        self._settings = SettingsRead(self.roots, self.ran)

    def watched(self, call: Callable[..., T]) -> Callable[..., T]:
        """Return the same call, which also records lengths in tensors while the watch runs."""
        return self._tensors.watching(call)

    def run(self, call: Callable[[Lengths], Any], few: Iterable[Lengths]) -> None:
        """Run the code at these lengths, once to see what runs and once to see what it compares."""
        few, held = [*few], []
        passed: list[list[int]] = []
        for at in few:
            operations, self.ran.numbers = Passed(), []
            with self._settings.observed(), operations, suppress(Exception):  # it may raise
                self.ran.recording(call)(at)
            if not passed:
                self._settings.begin()
            self.divisors |= operations.divisors
            passed.append(operations.found)
            held.append(self.ran.numbers)
            self.looked_up.append(operations.looked_up)
        lengths = [next(iter(at.values()), 0) for at in few]
        self.ran.numbers = None
        self.passed |= {*_without_lengths(passed, lengths), *_without_lengths(held, lengths)}
        self._settings.note()
        self.instrument()
        watched, more = self.watched(call), True
        while more:
            for at in few:
                with self.watch.run(at, "plain"), suppress(Exception):
                    watched(at)
            more = instrument_unwatched(self.watch)

    def instrument(self, *roots: Any) -> None:
        """Make the watch see what the functions that ran since compare, those of roots too."""
        instrument(self.ran.functions((*self.roots, *roots)), self.watch)
        instrument_unwatched(self.watch)

    def conditions(self) -> list[str]:
        """Return what was the same in every run, except outcomes of comparisons."""
        codes = self.ran.codes
        held = self._settings.held()
        told = (
            *self.watch.unseen(codes),
            *self.watch.caught(),
            *self._settings.conditions(),
            *environment_conditions(codes, held),
            *torchscript_conditions(held),
        )
        return list(dict.fromkeys(told))

    def numbers(self) -> list[int]:
        """Return the numbers that may be lengths, those that a run met first."""
        roots = [*self.roots, *self.ran.functions(self.roots)]
        source = map(abs, lengths_in(roots, texts=False, ran=self.ran.codes))
        divisors = self.divisors | set(_divisors(self.watch))
        ends = set.intersection(*self.looked_up) if self.looked_up else set()
        ends |= self.watch.looked_up
        pages = sorted({d * n for d in divisors if d > 1 for n in ends})[:MAX_PRODUCTS]
        compared = {*_compared(self.watch)}
        again = sorted({d + n for d in divisors for n in compared if n < d})[:MAX_PRODUCTS]
        met = {*self.passed, *ends, *compared, *again, *self.watch.bounds}
        return [n for n in dict.fromkeys((*sorted(met), *pages, *source)) if 0 < n < MOST]


def _without_lengths(passed: Sequence[Sequence[int]], lengths: Sequence[int]) -> Iterator[int]:
    """Yield what is passed in every run, and b of what goes as a n + b; all, if not in order."""
    first, last = passed[0], passed[-1]
    if len(passed) == 1 or len(first) != len(last):
        yield from map(abs, (*first, *last))
    else:
        n, m = lengths[0], lengths[-1]
        yield from (abs(a - n * (b - a) // (m - n)) for a, b in zip(first, last, strict=True))


def _compared(watch: ComparisonMonitor) -> Iterator[int]:
    """Yield the numbers on one side of comparisons whose other side changes with the lengths.

    Where both change, that is the length at which both are equal, if they go in a line.
    """
    for (site, *_), met in watch.sides.items():
        if watch.sites[site].sign == "//":
            continue
        for one, other in _pairs(met):
            for a, b, c, d in zip(one.left, one.right, other.left, other.right, strict=True):
                if (b == d) != (a == c):
                    yield abs(int(b if b == d else a))
                gap, more = a - b, c - d
                n = _same(one.at)
                if gap != more and n is not None and (m := _same(other.at)) is not None:
                    yield abs(int(n - gap * (m - n) / (more - gap)))


def _divisors(watch: ComparisonMonitor) -> Iterator[int]:
    """Yield the whole numbers by which lengths, and what changes with these, are divided."""
    for (site, *_), met in watch.sides.items():
        if watch.sites[site].sign == "//" and watch.sites[site].whole:
            for one, other in _pairs(met):
                if one.right == other.right and one.left != other.left:
                    yield from (abs(int(n)) for n in one.right)


def _pairs(met: Sequence[ComparedSides]) -> Iterator[tuple[ComparedSides, ComparedSides]]:
    """Yield what was compared in the first run beside that in the others, at other lengths."""
    first = met[0]
    for one in met[1:]:
        counts = {len(side) for each in (first, one) for side in (each.left, each.right)}
        if one.at != first.at and one.way == first.way and len(counts) == 1:
            yield first, one


def _same(at: Lengths) -> int | None:
    """Return the length of all axes, if it is one."""
    return next(iter(at.values())) if len({*at.values()}) == 1 else None

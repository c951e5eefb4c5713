"""What code does with lengths that are tensors of one number: ``torch.tensor(n) == 301``.

A watch reads the comparisons of Python in the source.  Once a length is a tensor, torch compares
it, subtracts a number from it, or reads a table at it, and no branch of Python shows where the
result changes.  Numbers that come from data are met too; they fit no polynomial in the lengths.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..loading.source_numbers import is_own
from .blocks import shortened
from .comparison_monitor import OUTCOMES, ComparisonMonitor, Site

T = TypeVar("T")
NAMES = {
    "==": ("eq", "__eq__", "equal", "allclose", "isclose", "isin"),
    "!=": ("ne", "__ne__", "not_equal"),
    "<": ("lt", "__lt__", "less"),
    "<=": ("le", "__le__", "less_equal"),
    ">": ("gt", "__gt__", "greater"),
    ">=": ("ge", "__ge__", "greater_equal"),
}
SIGNS = {name: sign for sign, names in NAMES.items() for name in names}
# Their results may be other numbers from the place on at which both operands are equal.
STEPS = frozenset((
    "sub", "__sub__", "__rsub__", "rsub", "subtract", "bitwise_xor", "__xor__", "__rxor__",
    "bitwise_and", "__and__", "__rand__", "clamp", "clamp_min", "clamp_max", "clip", "minimum",
    "maximum", "heaviside", "bucketize", "searchsorted", "remainder", "__mod__", "fmod", "div",
    "floor_divide", "__floordiv__", "__truediv__",
))  # fmt: skip
SEARCHING = ("isin", "bucketize", "searchsorted")
LOOKING_UP = ("__getitem__", "index_select", "take", "gather", "embedding")
RECORDED = frozenset((*SIGNS, *STEPS, *LOOKING_UP))
MAX_ENTRIES = 32  # numbers of one operand, or places of a table at which it changes
LARGEST = 1 << 40


@dataclass
class LengthsInTensors(TorchFunctionMode):
    """Record in a watch what the user's code does with tensors that hold one whole number."""

    watch: ComparisonMonitor
    _sites: dict[tuple[CodeType, int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        known = name in RECORDED and self.watch.is_running
        if known and all(map(is_plain, (*args, *kwargs.values()))):
            with suppress(Exception):  # what is no number
                self._record(name, [*args, *kwargs.values()], sys._getframe(1))  # noqa: SLF001
        return result

    def watching(self, call: Callable[..., T]) -> Callable[..., T]:
        """Return the same call, recorded while the watch runs."""

        def run(*given: Any, **named: Any) -> T:
            if not self.watch.is_running:
                return call(*given, **named)
            with self:
                return call(*given, **named)

        return run

    def _record(self, name: str, args: Sequence[Any], frame: FrameType | None) -> None:
        while frame is not None and _is_torch(frame):
            frame = frame.f_back
        if frame is None or not is_own(frame.f_globals):
            return
        sign = SIGNS.get(name, "min" if name in STEPS else "item")
        outcome = OUTCOMES.get(sign, OUTCOMES["=="])
        for k, (one, other) in enumerate(_operands(name, args)):
            site = self._site(frame, name, sign)
            self.watch.compare(site, one, other, outcome(one, other), k)

    def _site(self, frame: FrameType, name: str, sign: str) -> int:
        key = (frame.f_code, frame.f_lasti, name)
        if key not in self._sites:
            self.watch.sites.append(Site(sign, _text(frame)))
            self._sites[key] = len(self.watch.sites) - 1
        return self._sites[key]


def is_plain(x: Any) -> bool:
    """Whether reading the numbers of a value runs no code: it is no tensor of a subclass."""
    return not isinstance(x, Tensor) or type(x) in (Tensor, nn.Parameter)


def _is_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] == "torch"


def _text(frame: FrameType) -> str:
    """Return the source of an expression that runs, or its line."""
    code = frame.f_code
    first, last, start, end = list(code.co_positions())[frame.f_lasti // 2]
    line = linecache.getline(code.co_filename, first or frame.f_lineno)
    whole = first == last and start is not None and end is not None
    return shortened((line.encode()[start:end].decode() if whole else line).strip())


def _operands(name: str, args: Sequence[Any]) -> Iterator[tuple[float, float]]:
    """Yield what is compared: one number, and each number of the other operands."""
    if name in LOOKING_UP:
        yield from _changes(name, args)
        return
    one, rest = _number(args[0]), list(args[1:])
    if name in SEARCHING:
        if one is None:  # the places to search come first
            one, rest = _number(args[1]), [args[0]]
        rest = [n for x in rest for n in _entries(x)]
    if one is not None and any(isinstance(x, Tensor) for x in args):
        for other in map(_number, rest):
            if other is not None:
                yield one, other


def _changes(name: str, args: Sequence[Any]) -> Iterator[tuple[float, float]]:
    """Yield a place at which a table is read, with each place at which its entries change."""
    table, place = (args[1], args[0]) if name == "embedding" else (args[0], args[-1])
    axis = args[1] if name in ("index_select", "gather") else 0
    at = _number(place) if isinstance(place, Tensor | int) else None
    if at is not None and not isinstance(place, bool) and table.dim():
        rows = table.detach().movedim(axis, 0).flatten(1) if table.dim() > 1 else table[:, None]
        places = (rows[1:] != rows[:-1]).any(1).nonzero().flatten() + 1
        for one in places.tolist() if len(places) <= MAX_ENTRIES else ():
            yield at, float(one)


def _number(x: Any) -> float | None:
    """Return a whole number, also one that a tensor holds in all its entries; else None."""
    if isinstance(x, Tensor):
        if not x.numel() or x.is_complex() or x.device.type != "cpu":
            return None
        if x.numel() > 1 and (x.is_floating_point() or x.amin() != x.amax()):
            return None
        x = x.detach().flatten()[0].item()
    plain = isinstance(x, int | float) and not isinstance(x, bool)
    return float(x) if plain and abs(x) < LARGEST and x == int(x) else None


def _entries(x: Any) -> list[Any]:
    many = isinstance(x, Tensor) and x.numel() <= MAX_ENTRIES
    return list(x.detach().flatten().tolist()) if many else []

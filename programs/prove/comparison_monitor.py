"""What code compares while it runs: the numbers on both sides of each of its comparisons."""

from __future__ import annotations

import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ..loading.reach import codes_in
from ..loading.source_numbers import is_own
from .blocks import REACHED, VALUE, Place, value_key
from .executed_code import has_no_choice, is_run_aside, is_written

Numbers = tuple[float, ...]
Lengths = Mapping[str, int]
DIGITS = re.compile(r"\d+")
MAX_NUMBERS = 8  # numbers of a side that are recorded
MAX_CHARACTERS = 200  # characters of a text that are searched for numbers
VISITS, LAST = 3, -1  # visits of a place kept per run, and the key of the last visit
MAX_ENTRIES = 32  # entries of a container that are compared
MAX_MET = 8  # sides of a comparison that are recorded where its lengths are not
FEW = (5, 7)  # tokens, and rows, with which code meets numbers that do not depend on them
# Queries of kind that also concern tensors.
TENSOR_KIND_QUERIES = ("hasattr", "getattr", "vars", "type", "dir")
KIND_ATTRIBUTES = ("__class__", "__dict__")
TRY, CAUGHT = 1, 2  # recorded of a try statement: it was entered, it caught an error
# These decide nothing by themselves; they only show where the numbers change.
HINTS = ("//", "item", "min")
UNWATCHED = "unwatched"  # the sign of code that ran as it is while others were watched


@dataclass(frozen=True)
class Site:
    """A place where code compares two numbers: the operator and the source text.

    ``whole``: it is a division of whole numbers.
    """

    sign: str
    text: str
    targets: tuple[Any, ...] = ()
    whole: bool = False

    def condition(self, *, answer: bool) -> str:
        """The condition that this was the outcome wherever the code was run."""
        if self.sign == UNWATCHED:
            return self.text
        return f"`{self.text}` is {str(answer).lower()}, as it was in every run"


@dataclass(frozen=True)
class ComparedSides:
    """The numbers on both sides in one run, at these lengths, called in this way."""

    at: Lengths
    way: str
    left: Numbers
    right: Numbers
    answer: bool


Met = dict[tuple[int, int], set[tuple[Numbers, Numbers, bool]]]
"""What each comparison met, by site and entry: its sides, and the outcome."""


@dataclass
class ComparisonMonitor:
    """The comparisons of a program, and what was on their sides in each run.

    ``sides``: what each site compared, by the entry of a container that was compared and by the
    visit in a run (LAST: the last, if there were more).  ``taken``: sites that take something from
    an object that the run before took from too.  ``kinds``: values whose kind was queried: numbers,
    or None for a tensor.  ``tried``: how often each ``try`` was entered, and caught an error.
    ``empty``: what was looked up in empty containers.  ``blocks``: the texts of blocks that were
    reached, and of expressions whose values were recorded, by place; ``reached``: the places of
    each run.  ``bounds``: where slices of lists and texts start and end in runs with few tokens;
    ``looked_up``: the lengths of lists that are read or cut there.  ``again``: what code was
    compiled to.  ``unwatched``: the user's code that ran as it is all the same, in functions that
    were not found; ``sought``: how often memory was searched for them.  Unless ``compared``, only
    blocks are recorded.
    """

    compared: bool = True
    functions: list[tuple[FunctionType, CodeType, CodeType]] = field(default_factory=list)
    again: dict[CodeType, CodeType] = field(default_factory=dict)
    unwatched: dict[CodeType, None] = field(default_factory=dict)
    sought: Counter[CodeType] = field(default_factory=Counter)
    sites: list[Site] = field(default_factory=list)
    sides: dict[tuple[int, int, int], list[ComparedSides]] = field(default_factory=dict)
    taken: dict[int, None] = field(default_factory=dict)
    kinds: dict[int, set[float | None]] = field(default_factory=dict)
    tried: dict[int, Counter[int]] = field(default_factory=dict)
    empty: dict[int, set[Numbers]] = field(default_factory=dict)
    blocks: dict[Place, str] = field(default_factory=dict)
    reached: list[tuple[Lengths, dict[Place, None]]] = field(default_factory=list)
    bounds: set[int] = field(default_factory=set)
    looked_up: set[int] = field(default_factory=set)
    # By id: code of libraries, and code that records what it compares.
    _known: dict[int, CodeType] = field(default_factory=dict, repr=False)
    _here: dict[CodeType, None] = field(default_factory=dict)  # unwatched in this run
    _left_sides: dict[int, Any] = field(default_factory=dict)
    _from: dict[int, list[Any]] = field(default_factory=dict)
    _before: dict[int, list[Any]] = field(default_factory=dict)
    _visits: Counter[tuple[int, int]] = field(default_factory=Counter)
    _last: dict[tuple[int, int], ComparedSides] = field(default_factory=dict)
    _run: tuple[Lengths, str] | None = None
    _met: Met | None = None  # of the call that runs, if nothing else is recorded of it
    _writes: bool = False
    _notes: bool = False  # whether what runs unwatched is noted now

    def unseen(self, codes: Iterable[CodeType]) -> Iterator[str]:
        """Yield that code which is not recorded acts as in every run."""
        seen = {inner for plain in self.again for inner in codes_in(plain)}
        for code in dict.fromkeys((*codes, *self.unwatched)):
            if has_no_choice(code):
                continue  # as what jaxtyping makes to check types
            if code in self.unwatched or (code not in seen and is_written(code)):
                yield _acts(code, seen)

    def add(self, function: FunctionType) -> None:
        """Give a function its code that was compiled again, if any, in watched runs."""
        plain = function.__code__
        if plain in self.again and all(function is not one for one, *_ in self.functions):
            self.functions.append((function, plain, self.again[plain]))
            self._known |= {id(one): one for one in codes_in(self.again[plain])}

    @contextmanager
    def run(self, at: Lengths, way: str) -> Iterator[None]:
        """Watch one call of the code, at these lengths and in this way."""
        self._run = dict(at), way
        self.reached.append((self._run[0], {}))
        self._visits.clear()
        self._last.clear()
        try:
            with self._instrumented():
                yield
        finally:
            for (site, entry), last in self._last.items():
                self.sides.setdefault((site, entry, LAST), []).append(last)
            self._run = None
            self._left_sides.clear()
            self._before, self._from = self._from, {}

    @contextmanager
    def hearing(self, met: Met, *, notes: bool = True) -> Iterator[None]:
        """Record only what comparisons meet, at any lengths; ``notes`` what runs unwatched, too."""
        self._run, self._met = ({}, ""), met
        try:
            with self._instrumented(notes=notes):
                yield
        finally:
            self._hear_unwatched(met)
            self._run = self._met = None
            self._left_sides.clear()

    def _hear_unwatched(self, met: Met) -> None:
        """Add that code which ran as it is in the call that was heard may compare anything."""
        seen = {inner for plain in self.again for inner in codes_in(plain)} if self._here else ()
        here = (code for code in self._here if not has_no_choice(code))
        for one in (Site(UNWATCHED, _acts(code, seen)) for code in here):
            if one not in self.sites:
                self.sites.append(one)
            met[self.sites.index(one), 0] = {((), (), True)}

    @contextmanager
    def _instrumented(self, *, notes: bool = True) -> Iterator[None]:
        self._here.clear()
        profile = sys.getprofile()
        try:
            for function, _, again in self.functions:
                function.__code__ = again
            self._notes = self.compared and notes
            if self._notes:
                sys.setprofile(self._note_unwatched)
            yield
        finally:
            self._notes = False
            sys.setprofile(profile)
            for function, plain, _ in self.functions:
                function.__code__ = plain
            self.unwatched |= self._here

    def _note_unwatched(self, frame: FrameType, event: str, result: Any) -> None:
        """Note code that runs as it is: in a function that was made anew, or is kept out of sight.

        It is the profile of a watched run.
        """
        del result
        code = frame.f_code
        if event == "call" and id(code) not in self._known:
            if is_own(frame.f_globals) and is_written(code) and not is_run_aside(frame):
                self._here[code] = None
            else:
                self._known[id(code)] = code

    def conditions(self) -> Iterator[str]:
        """Yield what was the same in every run, but may differ in a trace or in another call."""
        for site in self.taken:
            yield f"`{self.sites[site].text}` returns the same as in every run"
        for site, met in self.kinds.items():
            if None in met:
                yield f"`{self.sites[site].text}` returns the same as in every run"
            elif len(met) > 1:
                yield f"querying `{self.sites[site].text}` has no effect, as in every run"
        somewhere = {site for site, *_ in self.sides}
        for site, looked_for in self.empty.items():
            if len(looked_for) > 1 and site not in somewhere:
                yield f"`{self.sites[site].text}` finds nothing, as in every run"
        yield from self.caught()

    def caught(self) -> Iterator[str]:
        """Yield whether an ``except`` caught an error, if it did so in every run or in none."""
        for site, came in self.tried.items():
            if not came[CAUGHT]:
                yield f"`{self.sites[site].text}` catches nothing, as in every run"
            elif came[CAUGHT] == came[TRY]:
                yield f"`{self.sites[site].text}` catches something, as in every run"

    @property
    def is_running(self) -> bool:
        """Whether a call is watched now."""
        return self._run is not None

    def compare(self, site: int, left: float, right: float, answer: Any, entry: int) -> None:
        """Record two numbers that something other than the source compares while it runs."""
        self._add(site, (left,), (right,), answer, entry)

    def write(self, site: int, place: int, value: Any) -> Any:
        """Record a value on one side of a comparison, and return it."""
        if self._run is not None and not self._writes:
            self._writes = True  # examining a value may run code that is watched
            profile = sys.getprofile() if self._notes else None
            if profile is not None:  # what runs here is ours, and many times as much as the code
                sys.setprofile(None)
            try:
                self._write(site, place, value)
            except Exception:  # noqa: BLE001 (what cannot be compared raises in the code itself)
                return value
            finally:
                self._writes = False
                if profile is not None:
                    sys.setprofile(profile)
        return value

    def _write(self, site: int, place: int, value: Any) -> None:
        if self._met is not None and (place in (REACHED, VALUE) or self._is_no_comparison(site)):
            return
        if place in (REACHED, VALUE):
            here = self.sites[site]
            known = (*here.targets, value_key(value)) if place == VALUE else here.targets
            self.blocks.setdefault(known, here.text)
            self.reached[-1][1].setdefault(known)
            return
        match self.sites[site].sign:
            case "taken":
                self._record_taking(site, value, through=place != 0)
            case "kind":
                self._record_kind(site, value)
            case "try":
                self.tried.setdefault(site, Counter())[place] += 1
            case "asks":
                self._record_query(site, place, value)
            case "slice":
                self._record_slice(site, place, value)
            case _ if place == -1:
                self._record_truth(site, value)
            case _ if targets := self.sites[site + max(0, place - 1)].targets:
                self._record_sides(site, value, targets)
            case _:
                if place:
                    self._record_sides(site + place - 1, self._left_sides.get(site), value)
                self._left_sides[site] = value

    def _is_no_comparison(self, site: int) -> bool:
        return self.sites[site].sign in ("taken", "kind", "try", "slice")

    def _record_taking(self, site: int, value: Any, *, through: bool) -> None:
        """Record that something is taken from a value; ``through``: by a loop over it.

        A loop matters only over an iterator: other iterables start anew each time.
        """
        if through and not isinstance(value, Iterator):
            return
        self._from.setdefault(site, []).append(value)
        if any(value is one for one in self._before.get(site, ())):
            self.taken[site] = None

    def _record_kind(self, site: int, value: Any) -> None:
        """Record that a length is asked for its type, or a tensor for its type or attributes."""
        if isinstance(value, tuple):
            for one in value:
                self._record_kind(site, one)
        text = self.sites[site].text
        other = text.startswith(TENSOR_KIND_QUERIES) or text.endswith(KIND_ATTRIBUTES)
        if isinstance(value, type):  # a plain tensor has none of the other types in any run
            own = issubclass(value, Tensor) and value not in (Tensor, nn.Parameter)
            if own and self._left_sides.get(site):
                self.kinds.setdefault(site, set()).add(None)
        elif text.startswith("isinstance"):
            self._left_sides[site] = isinstance(value, Tensor)
        if isinstance(value, Tensor) and other:
            self.kinds.setdefault(site, set()).add(None)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.kinds.setdefault(site, set()).add(float(value))

    def _record_query(self, site: int, place: int, value: Any) -> None:
        """Record a query of an array or of torch (place 0), and its answer, a truth value.

        None counts as False, and any other answer as True once the query has been recorded.
        """
        if place == 0:
            self._left_sides[site] = isinstance(value, Tensor) or _belongs_to_torch(value)
        elif self._left_sides.get(site):
            if isinstance(value, bool) or value is None:
                self._add(site, (), (), bool(value))
            elif (site, 0, 0) in self.sides:
                self._add(site, (), (), True)

    def _record_slice(self, site: int, place: int, value: Any) -> None:
        """Record where a slice of a list or text (place 0) starts and ends."""
        if place == 0:
            self._left_sides[site] = self._is_short() and not isinstance(value, Tensor)
            if self._left_sides[site] and isinstance(value, Sized):
                self.looked_up |= {len(value) - 1, len(value)}
        elif self._left_sides.get(site) and isinstance(value, int):
            self.bounds.add(abs(value))

    def _is_short(self) -> bool:
        return self._run is not None and max(self._run[0].values(), default=0) <= max(FEW)

    def _record_truth(self, site: int, value: Any) -> None:
        """Record that a value is tested for truth."""
        if isinstance(value, list | dict | set | deque):
            self._add(site, (float(len(value)),), (0.0,), bool(value))
        elif isinstance(value, Tensor):
            if value.numel() == 1:
                self._add(site, (), (), bool(value))
        elif self.sites[site].sign == "bool":
            if isinstance(value, bool):
                self._add(site, (), (), value)
        elif not isinstance(value, bool) and isinstance(value, int | float):
            positive = self.sites[site].sign == "range"
            self._add(site, (float(value),), (0.0,), value > 0 if positive else bool(value))

    def _record_sides(self, site: int, left: Any, right: Any) -> None:
        sign = self.sites[site].sign
        if sign == "is":
            self._record_identity(site, left, right)
            return
        if sign in ("get", "item"):  # the container comes first
            if isinstance(left, list | tuple) and isinstance(right, int) and self._is_short():
                self.looked_up.add(len(left))
            left, right = right, left
        if sign in ("in", "not in", "get", "item", "case"):
            if isinstance(right, Tensor | str | bytes):
                return
            plain = numbers_of(left)
            if plain is None or (sign == "item" and not isinstance(right, Mapping)):
                return
            if sign in ("in", "not in") and isinstance(right, Sized) and not right:
                self.empty.setdefault(site, set()).add(plain)
            for k, target in zip(range(MAX_ENTRIES), right, strict=False):
                other = numbers_of(target)
                if other is not None and len(other) == len(plain):
                    self._add(site, plain, other, left == target, k)
            return
        a, b = numbers_of(left), numbers_of(right)
        if a is None or b is None or isinstance(left, str) != isinstance(right, str):
            return
        if len(a) != len(b):
            return
        self._add(site, a, b, OUTCOMES[sign](left, right))

    def _record_identity(self, site: int, left: Any, right: Any) -> None:
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            self._add(site, (), (), left is right)

    def _add(self, site: int, left: Numbers, right: Numbers, answer: Any, entry: int = 0) -> None:
        assert self._run is not None
        if self._met is not None:
            some = self._met.setdefault((site, entry), set())
            if len(some) < MAX_MET or bool(answer) not in {one for *_, one in some}:
                some.add((left, right, bool(answer)))
            return
        at, way = self._run
        met = ComparedSides(at, way, left, right, bool(answer))
        visit = self._visits[site, entry]
        self._visits[site, entry] += 1
        if visit >= VISITS:
            self._last[site, entry] = met
        known = self.sides.setdefault((site, entry, min(visit, VISITS)), [])
        if visit < VISITS or met.answer not in {one.answer for one in known}:
            known.append(met)


def _acts(code: CodeType, seen: Container[CodeType]) -> str:
    why = "which ran unwatched" if code in seen else "whose source was not found"
    return f"`{code.co_qualname}`, {why}, acts as in every run"


OUTCOMES: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "range": lambda a, b: a > b,
    "min": lambda a, b: a < b,
    "//": lambda a, b: a >= b,
}


def _belongs_to_torch(one: Any) -> bool:
    """Whether something is a module or a function of torch."""
    name = one.__name__ if isinstance(one, ModuleType) else getattr(one, "__module__", None)
    return isinstance(name, str) and name.split(".")[0] == "torch" and not isinstance(one, type)


def numbers_of(value: Any) -> Numbers | None:
    """Return the numbers in a value, of a text its digits, of an integer format its size.

    None for other values: calls have positions in two formats, and all else in one.

    >>> numbers_of(7), numbers_of("(2, 31)"), numbers_of((2, (3,))), numbers_of(True)
    ((7.0,), (2.0, 31.0), (2.0, 3.0), None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return (float(value),) if abs(value) < 1 << 64 else None  # as a hash
    if isinstance(value, torch.dtype):
        whole = not (value.is_floating_point or value.is_complex or value == torch.bool)
        return (float(value.itemsize),) if whole else None
    if isinstance(value, str):
        found = tuple(map(float, DIGITS.findall(value[:MAX_CHARACTERS])))
        return found[:MAX_NUMBERS] if found else None
    if isinstance(value, tuple | list):
        parts = [numbers_of(one) for one in value[:MAX_NUMBERS]]
        if None not in parts and parts:
            return tuple(n for part in parts if part is not None for n in part)[:MAX_NUMBERS]
    return None

"""What code keeps from call to call, as it was before the first call.

A fresh instance does not show what an earlier call left in a dictionary of the file, in a default
argument, in an attribute of a class, in a closure or in a cached function: the instance finds it
there as well, and it was called itself when its call was guessed.  So these places are noted before
any call, and can be set back meanwhile, as if the code ran in a fresh process.
"""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from operator import is_
from types import CellType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..execution.state import LARGE
from ..subjects import Subject
from .functions import CACHED_FUNCTION
from .reach import codes_in, is_foreign, is_own_module, reached

MISSING = object()
SHOWN = (dict, OrderedDict, list, deque)  # these, but not their subclasses, hide nothing
PLAIN = (SimpleNamespace, Namespace)  # of Python's own classes, those that users keep things in
S = TypeVar("S", bound=Subject)


@dataclass(frozen=True)
class _Place:
    """What a call can change of an object: how its content is read, and how it is set.

    ``names``: the only entries of a dictionary that count, if not all do.
    """

    of: Any
    read: Callable[[], Any]
    write: Callable[[Any], object]
    names: frozenset[str] | None = None

    @property
    def key(self) -> tuple[int, frozenset[str] | None]:
        """What no other place has, as long as this one lives."""
        return id(self.of), self.names

    @property
    def shown(self) -> bool:
        """Whether the object can be compared with its content, without a copy."""
        return self.names is None and type(self.of) in SHOWN

    def holds_names(self, wanted: dict[str, Any]) -> bool:
        """Whether those entries of a dictionary that count are these objects."""
        both = ((held.get, self.names or (), repeat(MISSING)) for held in (self.of, wanted))
        return all(map(is_, *(map(*one) for one in both)))


@dataclass(frozen=True)
class SharedState:
    """The places that calls of some code can change, and what they held."""

    places: tuple[_Place, ...]
    held: tuple[Any, ...]

    @classmethod
    def of(cls, *things: Any) -> SharedState:
        """Note what is reached from functions, classes and objects."""
        found = [*reached(things)]
        weights = {
            id(x)
            for one in found
            if isinstance(one, nn.Module)
            for held in (one._parameters, one._buffers)  # noqa: SLF001
            for x in (held, *held.values())
        }
        places = [place for one in found if id(one) not in weights for place in _places(one)]
        places += [
            _Place(space, partial(_named, space, names), partial(_renamed, space, names), names)
            for space, names in _names_used(found)
        ]
        return cls(tuple(places), tuple(place.read() for place in places))

    @contextmanager
    def as_before(self) -> Iterator[Callable[[], object]]:
        """Set every place back to what it held when it was noted; restore it afterwards.

        What functions cached is forgotten, both times.  Yields a function that sets all back again.
        """
        now = self._write(self.held)
        try:
            yield partial(self._write, self.held)
        finally:
            self._write(now)

    def noted_in(self, subject: S) -> S:
        """Return the subject with this state, set back last, beside what was noted of it before."""
        noted = getattr(subject.as_before, "__self__", None)
        state = self.after(noted) if isinstance(noted, SharedState) else self
        return replace(subject, as_before=state.as_before)

    def after(self, noted: SharedState) -> SharedState:
        """Return both states as one, which sets each place back once, last those noted here."""
        own = {place.key for place in self.places}
        both = zip(noted.places, noted.held, strict=True)
        left = [(place, held) for place, held in both if place.key not in own]
        return SharedState(
            (*(place for place, _ in left), *self.places), (*(held for _, held in left), *self.held)
        )

    @cached_property
    def _shown(self) -> tuple[Any, ...]:
        """The objects that can be compared with their content, without a copy; else None."""
        return tuple(place.of if place.shown else None for place in self.places)

    def _differing(self, contents: tuple[Any, ...]) -> Iterator[int]:
        """Yield the places of which it is not seen without a copy that they hold the same."""
        for k, (shown, wanted) in enumerate(zip(self._shown, contents, strict=True)):
            if shown is None:
                place = self.places[k]
                if place.names is None or not place.holds_names(wanted):
                    yield k
            elif len(shown) != len(wanted) or (shown and not _same(wanted, shown)):
                yield k

    def _write(self, contents: tuple[Any, ...]) -> tuple[Any, ...]:
        """Set every place that holds something else, and return what the places held."""
        before = list(contents)
        for k in self._differing(contents):
            found = self.places[k].read()
            if not _same(contents[k], found):
                before[k] = found
        for place, wanted, found in zip(self.places, contents, before, strict=True):
            if found is not wanted:
                with suppress(Exception):  # an object may refuse to be changed
                    place.write(wanted)
        return tuple(before)


def _same(one: Any, other: Any) -> bool:
    """Whether two contents of a place are the same objects, or the same numbers."""
    if isinstance(one, dict):  # nearly all of thousands, and compared twice for each call
        return (
            len(one) == len(other)
            and all(map(is_, one, other))
            and all(map(is_, one.values(), other.values()))
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_, one, other))
    if isinstance(one, Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)


def _places(one: Any) -> Iterator[_Place]:
    """Yield the places of an object that a call may change."""
    match one:
        case Tensor() if type(one) is Tensor and one.layout == torch.strided:
            if not one.is_meta and not one.is_quantized and one.nbytes <= LARGE:
                yield _Place(one, one.detach().clone, partial(_overwritten, one))
        case np.ndarray():
            yield _Place(one, one.copy, partial(np.copyto, one))
        case MutableMapping() if "__builtins__" not in one and "__name__" not in one:
            yield _Place(one, partial(_entries, one), partial(refill, one))
        case list() | deque():
            yield _Place(one, partial(list, one), partial(refill, one))
        case set():
            yield _Place(one, one.copy, partial(refill, one))
        case FunctionType():
            for cell in one.__closure__ or ():
                yield _Place(cell, partial(_content, cell), partial(_filled, cell))
        case nn.Module():
            yield _Place(one, partial(_buffers, one), partial(_set_buffers, one))
            held = vars(one)
            yield _Place(held, partial(dict, held), partial(_refilled_in_its_mode, held))
        case _:
            yield from _of_other_objects(one)


def _of_other_objects(one: Any) -> Iterator[_Place]:
    """Yield the places of a class, a cached function, or an object of a class of the user."""
    if isinstance(one, CACHED_FUNCTION):
        if not is_foreign(one):
            yield _Place(one, lambda: one.cache_info().currsize, lambda _: one.cache_clear())
    elif isinstance(one, type):
        if not is_foreign(one):
            yield _Place(one, partial(_attributes, one), partial(_set_attributes, one))
    elif isinstance(one, PLAIN) or not (isinstance(one, ModuleType) or is_foreign(type(one))):
        held = getattr(one, "__dict__", None)
        if isinstance(held, dict):
            yield _of_attributes(held)


def _of_attributes(held: dict[str, Any]) -> _Place:
    return _Place(held, partial(dict, held), partial(refill, held))


def _entries(one: MutableMapping[Any, Any]) -> dict[Any, Any]:
    """Return what a mapping holds, also if it gives something else, such as a new object."""
    own = OrderedDict if isinstance(one, OrderedDict) else dict
    if not isinstance(one, own):
        return dict(one)
    return {key: dict.__getitem__(one, key) for key in own.__iter__(one)}


def refill(one: Any, content: Any) -> None:
    """Give a dictionary, list, queue or set this content instead of its own."""
    one.clear()
    (one.extend if isinstance(one, list | deque) else one.update)(content)


def _refilled_in_its_mode(held: dict[str, Any], content: dict[str, Any]) -> None:
    """Set the attributes of a module but for its mode, which whoever calls the code sets."""
    mode = {name: held[name] for name in ("training",) if name in held}
    refill(held, content | mode)


def _buffers(module: nn.Module) -> dict[str, Tensor | None]:
    """Return copies of the buffers of a module, which may be cast, unless they are large."""
    held = module._buffers  # noqa: SLF001
    small = {name: x for name, x in held.items() if x is None or x.nbytes <= LARGE}
    return {name: None if x is None else x.detach().clone() for name, x in small.items()}


def _set_buffers(module: nn.Module, wanted: dict[str, Tensor | None]) -> None:
    held = module._buffers  # noqa: SLF001
    for name, numbers in wanted.items():
        now = held.get(name)
        if numbers is not None and now is not None and now.shape == numbers.shape:
            held[name] = numbers.to(now.dtype, copy=True)  # calls may write to it
        elif name in held:
            held[name] = numbers if numbers is None else numbers.clone()


def _overwritten(one: Tensor, numbers: Tensor) -> None:
    with torch.no_grad():
        one.copy_(numbers)


def _content(cell: CellType) -> list[Any]:
    """Return the content of a closure's cell in a list, which is empty if the cell is."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _filled(cell: CellType, content: list[Any]) -> None:
    if content:
        cell.cell_contents = content[0]
    else:
        del cell.cell_contents


def _attributes(one: type) -> dict[str, Any]:
    return {name: held for name, held in vars(one).items() if not name.startswith("__")}


def _set_attributes(one: type, wanted: dict[str, Any]) -> None:
    now = _attributes(one)
    for name in now.keys() - wanted.keys():
        delattr(one, name)
    for name, held in wanted.items():
        if now.get(name, MISSING) is not held:
            setattr(one, name, held)


def _names_used(found: list[Any]) -> list[tuple[dict[str, Any], frozenset[str]]]:
    """Return the files of functions, as their global names, and which of these names they use."""
    used: dict[int, tuple[dict[str, Any], set[str]]] = {}
    for one in found:
        if not isinstance(one, FunctionType) or is_foreign(one):
            continue
        names = {name for code in codes_in(one.__code__) for name in code.co_names}
        modules = [held for name in names if is_own_module(held := one.__globals__.get(name))]
        for space in (one.__globals__, *map(vars, modules)):
            used.setdefault(id(space), (space, set()))[1].update(names)
    return [(space, frozenset(names)) for space, names in used.values()]


def _named(space: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: space[name] for name in names if name in space}


def _renamed(space: dict[str, Any], names: frozenset[str], wanted: dict[str, Any]) -> None:
    for name in names - wanted.keys():
        space.pop(name, None)
    space.update(wanted)

"""What other code may set between two calls, of what a program reads: its value is a condition.

A trace takes a flag as a constant, although ``enable_fast_path()``, which no call runs, may set it.
What is read of the objects of the user's classes is observed while the program runs; of others, and
where an instruction did not run, it is told by the names in the code that ran.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType
from typing import Any

from torch import Tensor, nn

from ..loading.reach import ATTRIBUTE_READERS, codes_in, is_foreign, is_own_module, reached
from .executed_code import Executed
from .setters import BUILDING, OF_CELLS, OF_FUNCTIONS, Setters

# Which attributes are read: names alone do not tell.  ``getattr(x, "fa" + "st")``, ``vars(x)``
# and ``"{0.fast}".format(x)`` name no attribute; ``config.fast`` names one of any object.

READING = ("LOAD_ATTR", "LOAD_METHOD")
EVERY = "__dict__"  # who reads it may read every attribute
HOW = "__getattribute__"
IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


@dataclass
class AttributesRead:
    """The attributes that runs read of objects of the user's classes.

    >>> class Settings:
    ...     fast = slow = False
    >>> Settings.__module__, one, reads = "model", Settings(), AttributesRead()
    >>> with reads.of([Settings]):
    ...     _ = getattr(one, "fa" + "st")
    >>> reads.names(one)
    {'fast'}
    """

    classes: set[type] = field(default_factory=set)
    _names: dict[int, tuple[Any, set[str]]] = field(default_factory=dict)  # by id of the object
    _instructions: set[tuple[CodeType, int]] = field(default_factory=set)

    @contextmanager
    def of(self, classes: Iterable[type]) -> Iterator[None]:
        """Record what is read of objects of these classes, as far as they are observable."""
        with ExitStack() as stack:
            self.classes |= {*filter(is_observable, classes)}
            for own in dict.fromkeys(own for one in self.classes for own in _own_bases(one)):
                stack.enter_context(self._recording(own))
            yield

    @contextmanager
    def _recording(self, of: Any) -> Iterator[None]:
        before = vars(of).get(HOW)

        def read(one: Any, name: str) -> Any:
            self._note(one, name, sys._getframe(1))  # noqa: SLF001
            return before(one, name) if before else super(of, one).__getattribute__(name)

        setattr(of, HOW, read)
        try:
            yield
        finally:
            if before:
                setattr(of, HOW, before)
            else:
                delattr(of, HOW)

    def _note(self, one: Any, name: str, frame: FrameType) -> None:
        while frame.f_globals is globals() and frame.f_back:  # a base records it, too
            frame = frame.f_back
        if name == EVERY and str(frame.f_globals.get("__name__")).startswith("torch."):
            return  # nn.Module finds parameters in it
        self._instructions.add((frame.f_code, frame.f_lasti))
        self._names.setdefault(id(one), (one, set()))[1].add(name)

    def is_observed(self, one: Any) -> bool:
        """Whether all that is read of an object is recorded."""
        return type(one) in self.classes

    def names(self, one: Any) -> set[str]:
        """Return the names of what was read of an object, all of its own if that may be."""
        found = {*self._names.get(id(one), (one, set()))[1]}
        return {*found, *vars(one)} if EVERY in found else found

    def names_in(self, of: type) -> set[str]:
        """Return the names of what was read of the objects of a class, and may be read of it."""
        return set().union(*(names for one, names in self._names.values() if isinstance(one, of)))

    def has_seen(self, code: CodeType, offset: int) -> bool:
        """Whether an instruction of a code object read an attribute of an observed object."""
        return (code, offset) in self._instructions


def is_observable(of: type) -> bool:
    """Whether it can be recorded what is read of the objects of a class.

    If a class says itself how attributes are read, it must leave the rest to another class of the
    user, in which it can be seen.
    """
    own = _own_bases(of)
    how = [one for one in of.__mro__ if HOW in vars(one)]
    if not own or issubclass(of, type | Tensor) or how[-1] is not object or HOW in vars(own[-1]):
        return False
    codes = [getattr(vars(one)[HOW], "__code__", None) for one in how[:-1]]
    return all(code is not None and "super" in code.co_names for code in codes)


def _own_bases(of: type) -> list[type]:
    """Return a class of the user and its bases that are such, in order."""
    return [one for one in of.__mro__ if not is_foreign(one) and _is_open(one)]


def _is_open(of: type) -> bool:
    """Whether attributes of a class can be set, as they can unless it is compiled."""
    return type(of).__setattr__ is type.__setattr__ and not of.__flags__ & IMMUTABLE


PLAIN = (int, float, str, type(None))
CONTAINERS = (list, dict, set, deque)
CALLABLE = (FunctionType, BuiltinFunctionType, type)
CHOICES = (Enum, *CALLABLE)
READ_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
MAX_SHOWN, MAX_ENTRIES = 40, 500  # characters of a value that are shown, and entries compared
MAX_NAMED = 3  # of several values
PRINTED_OR_BUILT = BUILDING | {"extra_repr", "__repr__", "reset_parameters"}
Names = Mapping[str, Any]
Kept = dict[tuple[str, str, int], tuple[str, Any]]
"""By kind, name and owner: a value as it is shown, and what is compared of it."""


@dataclass(frozen=True)
class _Reads:
    """What code reads: by its names, and as was ``observed``.

    ``named`` are all names in code that ran, ``unseen`` those by which some instruction may read
    what was not observed.
    """

    observed: AttributesRead
    named: frozenset[str]
    unseen: frozenset[str]

    @classmethod
    def of(cls, codes: Iterable[CodeType], observed: AttributesRead) -> _Reads:
        inner = [each for code in codes for each in codes_in(code)]
        texts = {c for code in inner for c in code.co_consts if isinstance(c, str)}
        read = {name: code for code in inner for name in _read(code)}
        free = {name for code in inner for name in code.co_freevars}
        named = frozenset((*read, *free, *texts))
        if any(HOW in (*code.co_names, *code.co_consts) and code.co_name != HOW for code in inner):
            return cls(AttributesRead(), named, named)
        unseen = {name for code in inner for name in _unseen(code, observed)}
        return cls(observed, named, frozenset(unseen))

    def names(self, one: Any) -> frozenset[str]:
        """Return the names of the attributes that are read of an object."""
        if self.observed.is_observed(one):
            return self.unseen | self.observed.names(one)
        if isinstance(one, type) and one in self.observed.classes:
            return self.unseen | self.observed.names_in(one)
        return self.named | _read_by_library(type(one))


def _read_by_library(of: type) -> frozenset[str]:
    """Return the names of what the methods of a module of torch read of it."""
    if not (issubclass(of, nn.Module) and is_foreign(of)):
        return frozenset()
    bases = (one for one in of.__mro__ if one not in (object, nn.Module))
    methods = [(name, method) for own in bases for name, method in vars(own).items()]
    codes = [
        method.__code__
        for name, method in methods
        if isinstance(method, FunctionType) and name not in PRINTED_OR_BUILT
    ]
    return frozenset(("forward",)).union(*(code.co_names for code in codes))


def _unseen(code: CodeType, observed: AttributesRead) -> Iterator[str]:
    """Yield the names by which a code object may read attributes that were not observed."""
    if not {*ATTRIBUTE_READERS, EVERY, "vars"}.isdisjoint(code.co_names):
        yield from (one for one in code.co_consts if isinstance(one, str))
    for name, places in _read(code).items():
        if not all(observed.has_seen(code, place) for place in places):
            yield name


def kept_values(
    codes: Mapping[CodeType, Names],
    functions: Sequence[FunctionType],
    held: Iterable[Any],
    observed: AttributesRead,
) -> Kept:
    r"""Return what codes read that other code may set, by kind and name, and what is there now.

    ``functions`` are those that ran, ``held`` what they reach, ``observed`` what was seen to be
    read of it.

    >>> names = {"fast": False, "__name__": "model"}
    >>> exec("def code(x): return x + 1 if fast else x", names)
    >>> given = {names["code"].__code__: names}, [names["code"]], [], AttributesRead()
    >>> list(kept_values(*given))
    []
    >>> exec("def enable():\n    global fast\n    fast = True", names)
    >>> [(kind, name) for kind, name, _ in kept_values(*given)]
    [('global', 'fast')]
    """
    objects = [one for one in held if not isinstance(one, (*PLAIN, *CONTAINERS))]
    reads = _Reads.of(codes, observed)
    names = reads.named.union(*(reads.names(one) for one in objects))
    setters = Setters(names | OF_FUNCTIONS | {OF_CELLS})
    spaces = {id(space): space for space in codes.values()}
    modules = [m for space in spaces.values() for m in map(space.get, names) if is_own_module(m)]
    of_objects = (sys.modules.get(str(getattr(type(one), "__module__", ""))) for one in objects)
    for module in (*modules, *filter(is_own_module, of_objects)):
        spaces.setdefault(id(vars(module)), vars(module))
    for space in spaces.values():
        for one in [*space.values()]:
            local = getattr(one, "__module__", None) == space.get("__name__")
            if isinstance(one, FunctionType | type) and local:
                setters.add(one)
    for own in {own for one in objects for own in type(one).__mro__}:
        setters.add(own)
    for function in (*functions, *(one for one in objects if isinstance(one, FunctionType))):
        setters.add(function)
    found: Kept = {}
    for kind, name, owner, value in (
        *_attributes(setters, reads, [*objects, *modules]),
        *_globals(setters, codes),
        *_variables(setters, functions),
        *_defaults(setters, functions),
    ):
        if isinstance(value, (*PLAIN, *CONTAINERS, *CHOICES)):
            found[kind, name, id(owner)] = _shown(value), _state(value)
    return found


@lru_cache(maxsize=4096)
def _read(code: CodeType) -> dict[str, tuple[int, ...]]:
    """Return the names that a code object reads, and where it reads an attribute of that name.

    What is asked of a tensor is no attribute kept.

    >>> list(_read((lambda self, x: self.scale * x.to(x.dtype)).__code__))
    ['scale']
    """
    found: dict[str, tuple[int, ...]] = {}
    before: Any = None
    for one in dis.get_instructions(code):
        local = before is not None and before.opname == "LOAD_FAST"
        of_first = local and before.argval in code.co_varnames[: code.co_argcount][:1]
        asked = one.opname in READING and local and not of_first
        sets = one.opname.startswith(("STORE_", "DELETE_"))
        of_tensor = asked and hasattr(Tensor, str(one.argval))
        if one.argval in code.co_names and not (sets or of_tensor):
            places = (one.offset,) if one.opname in READING else ()
            found[one.argval] = (*found.get(one.argval, ()), *places)
        before = one
    return found


@dataclass
class SettingsRead:
    """What other code may set of what runs read, and its values when that was first asked.

    ``roots``: what the code consists of; ``executed``: what of it ran.
    """

    roots: Sequence[Any]
    executed: Executed
    read: AttributesRead = field(default_factory=AttributesRead)
    before: Kept = field(default_factory=dict)
    set_by_runs: set[tuple[str, str, int]] = field(default_factory=set)
    _functions: tuple[int, list[FunctionType]] = (-1, [])  # count of codes when last searched
    _classes: tuple[int, set[type]] = (-1, set())

    @property
    def functions(self) -> list[FunctionType]:
        """The functions that ran, searched for again when more code objects were recorded."""
        count = len(self.executed.codes)
        if self._functions[0] != count:
            self._functions = count, self.executed.functions(self.roots)
        return self._functions[1]

    def held(self) -> list[Any]:
        """Return what the code that ran may use."""
        return [*reached((*self.roots, *self.functions), self.executed.codes)]

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Record what runs read of what the code that has run may use."""
        count = len(self.executed.codes)
        if self._classes[0] != count:
            named = (
                names.get(code.co_qualname.split(".")[0])
                for code, names in self.executed.codes.items()
            )
            made = {one for one in named if isinstance(one, type)}  # a run may make its objects
            self._classes = count, made | {type(one) for one in self.held()}
        with self.read.of(self._classes[1]):
            yield

    def begin(self) -> None:
        """Note the values that are there now."""
        self.before = self._values()

    def note(self) -> None:
        """Note what runs have set by now, before it is set back."""
        now, before = self._values(), self.before
        self.set_by_runs |= {one for one in now.keys() & before.keys() if now[one] != before[one]}

    def conditions(self) -> Iterator[str]:
        """Yield that what other code may set keeps its value, unless a run set it."""
        now = {one: at for one, at in self._values().items() if one not in self.set_by_runs}
        yield from kept_conditions(self.before, now)

    def _values(self) -> Kept:
        return kept_values(self.executed.codes, self.functions, self.held(), self.read)


def kept_conditions(before: Kept, now: Kept) -> Iterator[str]:
    """Yield that what other code may set keeps its value, of what the runs between left alone.

    >>> fast, slow = {("global", "fast", 1): ("False", False)}, {("global", "slow", 1): ("1", 1)}
    >>> list(kept_conditions(fast, fast)), list(kept_conditions(fast, fast | slow))
    (['the global fast keeps its value, False'], ['`fast` and `slow` keep their values'])
    >>> list(kept_conditions(fast, {("global", "fast", 1): ("True", True)}))
    []
    """
    kept: dict[tuple[str, str], list[str]] = {}
    for (kind, name, owner), (text, state) in now.items():
        if before.get((kind, name, owner), (text, state)) == (text, state):
            kept.setdefault((kind, name), []).append(text)
    if len(kept) == 1:
        (((kind, name), values),) = kept.items()
        texts = {*values}
        value = f"its value, {texts.pop()}" if len(texts) == 1 else "its values"
        yield f"the {kind} {name} keeps {value}"
    elif kept:
        names = [f"`{name}`" for name in dict.fromkeys(name for _, name in kept)]
        shown = MAX_NAMED if len(names) > MAX_NAMED + 1 else len(names)  # not "1 more settings"
        some, more = names[:shown], len(names) - shown
        last = f"{more} more settings" if more > 0 else some.pop() if len(some) > 1 else ""
        told = " and ".join(filter(None, (", ".join(some), last)))
        yield f"{told} keep their values" if len(names) > 1 else f"{told} keeps its values"


Setting = tuple[str, str, Any, Any]
"""A kind, a name, what it belongs to, and its value."""


def _attributes(setters: Setters, reads: _Reads, objects: Iterable[Any]) -> Iterator[Setting]:
    for one in {id(one): one for one in objects}.values():
        names = reads.names(one)
        given = setters.attributes(one, names, by_any_name=reads.observed.is_observed(one))
        for name in sorted(given | (setters.changed & names)):
            value = getattr_static(one, name, one)
            if value is not one and (name in given or isinstance(value, CONTAINERS)):
                yield "attribute", name, one, value


def _globals(setters: Setters, codes: Mapping[CodeType, Names]) -> Iterator[Setting]:
    for code, space in codes.items():
        for name in _loaded_globals(code):
            if name in space:
                changed = name in setters.changed and isinstance(space[name], CONTAINERS)
                if name in setters.names or changed:
                    yield "global", name, space, space[name]


@lru_cache(maxsize=4096)
def _loaded_globals(code: CodeType) -> tuple[str, ...]:
    every = (one for inner in codes_in(code) for one in dis.get_instructions(inner))
    return tuple({str(one.argval): None for one in every if one.opname in READ_GLOBAL})


def _variables(setters: Setters, functions: Iterable[FunctionType]) -> Iterator[Setting]:
    for one in functions:
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # it is empty yet
                continue
            changed = name in setters.changed and isinstance(value, CONTAINERS)
            of_any = OF_CELLS in setters.others and name != "__class__"
            if name in setters.variables or changed or of_any:
                yield "variable", name, cell, value


def _defaults(setters: Setters, functions: Iterable[FunctionType]) -> Iterator[Setting]:
    """Yield the default arguments of functions, where some code sets those of a function."""
    for one in functions if _sets_defaults(setters) else ():
        code = one.__code__
        last = code.co_varnames[: code.co_argcount]
        given = one.__defaults__ or ()
        pairs = [*zip(last[len(last) - len(given) :], given, strict=True)]
        for name, value in (*pairs, *(one.__kwdefaults__ or {}).items()):
            yield "default", name, one, value


def _sets_defaults(setters: Setters) -> bool:
    return "__kwdefaults__" in setters.changed or not OF_FUNCTIONS.isdisjoint(setters.others)


def _shown(value: Any) -> str:
    text = value.__qualname__ if isinstance(value, CALLABLE) else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}.."


def _state(value: Any) -> Any:
    """Return what can be compared later: plain values, and which other objects there are."""
    if isinstance(value, Mapping):
        return [(_state(k), _state(v)) for k, v in [*value.items()][:MAX_ENTRIES]]
    if isinstance(value, CONTAINERS):
        return [one if isinstance(one, PLAIN) else id(one) for one in [*value][:MAX_ENTRIES]]
    return value if isinstance(value, PLAIN) else id(value)

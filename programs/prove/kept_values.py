"""What code may set between two calls: attributes, global names, variables of closures, containers.

A trace takes a flag as a constant, although ``enable_fast_path()``, which no call runs, may set it.
What a constructor sets is not counted: it builds another object.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from torch import Tensor, nn

from ..loading.reach import FOREIGN, codes_in, is_foreign
from .executed_code import ADDING

PLAIN = (int, float, str, type(None))
CONTAINERS = (list, dict, set, deque)
CALLABLE = (FunctionType, BuiltinFunctionType, type)
CHOICES = (Enum, *CALLABLE)
BUILDING = frozenset(
    ("__init__", "__new__", "__post_init__", "__setstate__", "__init_subclass__", "__set_name__")
)
MUTATING = ADDING | {"clear", "discard", "pop", "popleft", "popitem", "remove", "setdefault"}
READ_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
MAX_SHOWN, MAX_ENTRIES = 40, 500  # characters of a value that are shown, and entries compared
MAX_NAMED = 3  # of several values
Names = Mapping[str, Any]
Kept = dict[tuple[str, str], list[tuple[str, Any]]]
"""By kind and name: each value as it is shown, and what is compared of it."""


@dataclass(frozen=True)
class _Set:
    """What some code sets: ``own`` are attributes of its first argument, ``others`` of any object.

    ``changed``: names of what may be a container whose entries it changes.
    """

    own: frozenset[str]
    others: frozenset[str]
    names: frozenset[str]
    variables: frozenset[str]
    changed: frozenset[str]


@lru_cache(maxsize=4096)
def _set_by(code: CodeType) -> _Set:
    own: set[str] = set()
    others: set[str] = set()
    names: set[str] = set()
    variables: set[str] = set()
    changed: set[Any] = set()
    for inner in codes_in(code):
        before: Any = None
        line: list[Any] = []  # what the instructions of a line name, or hold as a constant
        for one in dis.get_instructions(inner):
            if one.starts_line is not None:
                line = []
            if one.opname in ("STORE_ATTR", "DELETE_ATTR"):
                first = inner is code and code.co_argcount and before == code.co_varnames[0]
                (own if first else others).add(one.argval)
            elif one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                names.add(one.argval)
            elif one.opname == "STORE_DEREF" and one.argval in inner.co_freevars:
                variables.add(one.argval)
            in_place = one.opname == "BINARY_OP" and one.argrepr.endswith("=")
            if in_place or one.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
                changed.update(line)
            elif one.argval in MUTATING:
                changed.add(before)
            elif one.opname == "LOAD_CONST" and isinstance(one.argval, str):
                others |= {one.argval} if "setattr" in line or "delattr" in line else set()
                names |= {one.argval} if "globals" in line else set()
            if isinstance(one.argval, str):
                line.append(one.argval)
                before = one.argval
    told = (own, others, names, variables, {one for one in changed if isinstance(one, str)})
    return _Set(*map(frozenset, told))


@dataclass
class _Setters:
    """What the functions and classes of the user may set; ``by_class``: of objects of a class."""

    read: frozenset[str]
    others: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    by_class: dict[type, set[str]] = field(default_factory=dict)

    def add(self, one: Any, of: type | None = None) -> None:
        """Add what a function may set, or the methods of a class."""
        if isinstance(one, type):
            for method in () if is_foreign(one) or one is nn.Module else vars(one).values():
                inner = getattr(method, "__func__", None) or getattr(method, "fset", None)
                self.add(inner or method, one)
            return
        if not isinstance(one, FunctionType) or is_foreign(one) or one.__name__ in BUILDING:
            return
        codes = [*codes_in(one.__code__)]
        texts = {c for code in codes for c in code.co_consts if isinstance(c, str)}
        named = {n for code in codes for n in (*code.co_names, *code.co_freevars)}
        if self.read.isdisjoint(named | texts):
            return
        found = _set_by(one.__code__)
        if of is None:
            self.others |= found.own
        else:
            self.by_class.setdefault(of, set()).update(found.own)
        self.others |= found.others
        self.names |= found.names
        self.variables |= found.variables
        self.changed |= found.changed

    def attributes(self, one: Any) -> set[str]:
        """Return the names of attributes of an object that may be set, and are read."""
        of = one if isinstance(one, type) else type(one)
        found = self.others.union(*(self.by_class.get(own, ()) for own in of.__mro__))
        if isinstance(one, ModuleType):
            found |= self.names
        return (found & self.read) - {"training"}


def kept_values(
    codes: Mapping[CodeType, Names], functions: Sequence[FunctionType], held: Iterable[Any]
) -> Kept:
    r"""Return what codes read that other code may set, by kind and name, and what is there now.

    ``functions`` are those that ran, ``held`` what they reach.

    >>> names = {"fast": False, "__name__": "model"}
    >>> exec("def code(x): return x + 1 if fast else x", names)
    >>> list(kept_values({names["code"].__code__: names}, [names["code"]], []))
    []
    >>> exec("def enable():\n    global fast\n    fast = True", names)
    >>> list(kept_values({names["code"].__code__: names}, [names["code"]], []))
    [('global', 'fast')]
    """
    objects = [one for one in held if not isinstance(one, (*PLAIN, *CONTAINERS))]
    inner = [each for code in codes for each in codes_in(code)]
    texts = {c for code in inner for c in code.co_consts if isinstance(c, str)}
    names = {name for code in inner for name in (*_read(code), *code.co_freevars)}
    setters = _Setters(frozenset(names | texts))
    spaces = {id(space): space for space in codes.values()}
    modules = [m for space in spaces.values() for m in map(space.get, names) if _is_own_module(m)]
    of_objects = (sys.modules.get(str(getattr(type(one), "__module__", ""))) for one in objects)
    for module in (*modules, *filter(_is_own_module, of_objects)):
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
    for kind, name, value in (
        *_attributes(setters, [*objects, *modules]),
        *_globals(setters, codes),
        *_variables(setters, functions),
    ):
        if isinstance(value, (*PLAIN, *CONTAINERS, *CHOICES)):
            found.setdefault((kind, name), []).append((_shown(value), _state(value)))
    return found


@lru_cache(maxsize=4096)
def _read(code: CodeType) -> frozenset[str]:
    """Return the names that a code object reads; what is asked of a tensor is no attribute kept.

    >>> sorted(_read((lambda self, x: self.scale * x.to(x.dtype)).__code__))
    ['scale']
    """
    found: set[str] = set()
    before: Any = None
    for one in dis.get_instructions(code):
        local = before is not None and before.opname == "LOAD_FAST"
        of_tensor = local and before.argval not in code.co_varnames[: code.co_argcount][:1]
        asked = one.opname in ("LOAD_ATTR", "LOAD_METHOD") and of_tensor
        if one.argval in code.co_names and not (asked and hasattr(Tensor, str(one.argval))):
            found.add(one.argval)
        before = one
    return frozenset(found)


def kept_conditions(before: Kept, now: Kept) -> Iterator[str]:
    """Yield that what other code may set keeps its value, of what the runs between left alone.

    >>> fast, slow = {("global", "fast"): [("False", False)]}, {("global", "slow"): [("1", 1)]}
    >>> list(kept_conditions(fast, fast | slow)), list(kept_conditions(fast | slow, fast | slow))
    (['the global fast keeps its value, False'], ['`fast` and `slow` keep their values'])
    """
    kept = {key: values for key, values in before.items() if now.get(key) == values}
    if len(kept) == 1:
        (((kind, name), values),) = kept.items()
        texts = {text for text, _ in values}
        value = f"its value, {texts.pop()}" if len(texts) == 1 else "its values"
        yield f"the {kind} {name} keeps {value}"
    elif kept:
        names = [f"`{name}`" for name in dict.fromkeys(name for _, name in kept)]
        shown = MAX_NAMED if len(names) > MAX_NAMED + 1 else len(names)  # not "1 more settings"
        some, more = names[:shown], len(names) - shown
        last = f"{more} more settings" if more > 0 else some.pop() if len(some) > 1 else ""
        told = " and ".join(filter(None, (", ".join(some), last)))
        yield f"{told} keep their values" if len(names) > 1 else f"{told} keeps its values"


def _attributes(setters: _Setters, objects: Iterable[Any]) -> Iterator[tuple[str, str, Any]]:
    for one in {id(one): one for one in objects}.values():
        for name in sorted(setters.attributes(one) | (setters.changed & setters.read)):
            value = getattr_static(one, name, one)
            if value is not one and (
                name not in setters.changed or _may_change(setters, one, name)
            ):
                yield "attribute", name, value


def _may_change(setters: _Setters, one: Any, name: str) -> bool:
    value = getattr_static(one, name)
    return isinstance(value, CONTAINERS) or name in setters.attributes(one)


def _globals(setters: _Setters, codes: Mapping[CodeType, Names]) -> Iterator[tuple[str, str, Any]]:
    seen: set[tuple[int, str]] = set()
    for code, space in codes.items():
        for name in _loaded_globals(code):
            if name in space and (id(space), name) not in seen:
                seen.add((id(space), name))
                changed = name in setters.changed and isinstance(space[name], CONTAINERS)
                if name in setters.names or changed:
                    yield "global", name, space[name]


@lru_cache(maxsize=4096)
def _loaded_globals(code: CodeType) -> tuple[str, ...]:
    every = (one for inner in codes_in(code) for one in dis.get_instructions(inner))
    return tuple({str(one.argval): None for one in every if one.opname in READ_GLOBAL})


def _variables(
    setters: _Setters, functions: Iterable[FunctionType]
) -> Iterator[tuple[str, str, Any]]:
    for one in functions:
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # it is empty yet
                continue
            changed = name in setters.changed and isinstance(value, CONTAINERS)
            if name in setters.variables or changed:
                yield "variable", name, value


def _is_own_module(one: Any) -> bool:
    return isinstance(one, ModuleType) and one.__name__.split(".")[0] not in FOREIGN


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

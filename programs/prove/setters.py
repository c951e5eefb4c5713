"""What code may set, as far as its instructions tell: attributes, globals, variables, containers.

What a constructor sets is not counted: it builds another object.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

from ..loading.reach import codes_in, is_foreign
from .executed_code import ADDING

BUILDING = frozenset(
    ("__init__", "__new__", "__post_init__", "__setstate__", "__init_subclass__", "__set_name__")
)
# The methods through which every attribute is set; what is set is told where they are called.
THROUGH = ("__setattr__", "__delattr__")
MUTATING = ADDING | {"clear", "discard", "pop", "popleft", "popitem", "remove", "setdefault"}
SETTING = frozenset(("setattr", "delattr", *THROUGH))
SPACES = ("__dict__", "vars")  # in which attributes can be set by any name
# What a function is called with besides its arguments, and can be set on it.
OF_FUNCTIONS = frozenset(("__defaults__", "__kwdefaults__", "__code__"))
OF_CELLS = "cell_contents"
OF_MODULES = frozenset(dir(nn.Module()))  # read in every call of a module; no settings


class _Set:
    """What a function sets, and what is nested in it, read line by line from its instructions.

    ``own`` are attributes of its first argument, ``others`` of any object.  ``changed``: names of
    what may be a container whose entries it changes.  ``any_own``: it sets attributes of its first
    argument by names that it is given.
    """

    def __init__(self, code: CodeType) -> None:
        self.first = code.co_varnames[0] if code.co_argcount else None
        self.own: set[str] = set()
        self.others: set[str] = set()
        self.names: set[str] = set()
        self.variables: set[str] = set()
        self.changed: set[str] = set()
        self.any_own = False
        for inner in codes_in(code):
            self.outer, self.code = inner is code, inner
            self.aliases: dict[str, set[str]] = {}  # what a local variable may stand for
            self.before = ""  # what the instruction before names
            self._begin_line()
            for one in dis.get_instructions(inner):
                if one.starts_line is not None:
                    self._end_line()
                self._read(one)
            self._end_line()

    def _begin_line(self) -> None:
        self.line: list[str] = []  # what the instructions of a line name, or hold as a text
        self.texts: set[int] = set()  # the places of texts in it
        self.computes = False

    def _end_line(self) -> None:
        """See whether a line sets an attribute of the first argument by a name it is given."""
        places = [k for k, one in enumerate(self.line) if one in SETTING]
        if self.outer and places:
            more = self.line[places[0] + 1 :]
            given = self.first in more[:1] or "super" in self.line
            named = places[0] + 1 + (self.first in more[:1])
            self.any_own |= given and (named not in self.texts or self.computes)
        self._begin_line()

    def _read(self, one: dis.Instruction) -> None:
        if one.opname in ("STORE_ATTR", "DELETE_ATTR"):
            first = self.outer and self.first is not None and self.before == self.first
            (self.own if first else self.others).add(one.argval)
        elif one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            self.names.add(one.argval)
        elif one.opname == "STORE_DEREF" and one.argval in self.code.co_freevars:
            self.variables.add(one.argval)
        elif one.opname == "STORE_FAST":
            self.aliases.setdefault(one.argval, set()).update(self.line)
        self.computes |= one.opname in ("BINARY_OP", "BUILD_STRING")
        in_place = one.opname == "BINARY_OP" and one.argrepr.endswith("=")
        if in_place or one.opname in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            self._change(self.line)
        elif one.argval in MUTATING:
            self._change(self.line if self.before in SPACES else [self.before])
        elif one.opname == "LOAD_CONST" and isinstance(one.argval, str):
            self.others |= {one.argval} if not SETTING.isdisjoint(self.line) else set()
            self.names |= {one.argval} if "globals" in self.line else set()
        if isinstance(one.argval, str):
            self.texts |= {len(self.line)} if one.opname == "LOAD_CONST" else set()
            self.line.append(one.argval)
            self.before = one.argval

    def _change(self, named: Iterable[str]) -> None:
        named = {*named}
        self.changed |= named.union(*(self.aliases.get(one, ()) for one in named))
        space = self.outer and self.first in self.line and not {*SPACES}.isdisjoint(self.line)
        self.any_own |= space


@lru_cache(maxsize=4096)
def _set_by(code: CodeType) -> _Set:
    return _Set(code)


@dataclass
class Setters:
    """What functions and the methods of classes may set, of what is ``read``.

    ``by_class``: attributes of objects of a class.  ``of_any``: classes of whose objects a method
    sets attributes by names that it is given.
    """

    read: frozenset[str]
    others: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    by_class: dict[type, set[str]] = field(default_factory=dict)
    of_any: set[type] = field(default_factory=set)

    def add(self, one: Any, of: type | None = None) -> None:
        """Add what a function may set, or the methods of a class."""
        if isinstance(one, type):
            for method in () if is_foreign(one) or one is nn.Module else vars(one).values():
                inner = getattr(method, "__func__", None) or getattr(method, "fset", None)
                self.add(inner or method, one)
            return
        if not isinstance(one, FunctionType) or is_foreign(one) or one.__name__ in BUILDING:
            return
        found = _set_by(one.__code__)
        if of is not None and found.any_own and one.__name__ not in THROUGH:
            self.of_any.add(of)
        if self.read.isdisjoint(_named(one.__code__)):
            return
        if of is None:
            self.others |= found.own
        else:
            self.by_class.setdefault(of, set()).update(found.own)
        self.others |= found.others
        self.names |= found.names
        self.variables |= found.variables
        self.changed |= found.changed

    def attributes(self, one: Any, names: AbstractSet[str], *, by_any_name: bool) -> set[str]:
        """Return those of these attributes of an object that may be set.

        ``by_any_name``: those count that are set by a name that is given, too.
        """
        of = (one if isinstance(one, type) else type(one)).__mro__
        found = self.others.union(*(self.by_class.get(own, ()) for own in of))
        if by_any_name and not self.of_any.isdisjoint(of):
            found |= names - OF_MODULES
        if isinstance(one, ModuleType):
            found |= self.names
        return (found & names) - {"training"} - BUILDING


@lru_cache(maxsize=4096)
def _named(code: CodeType) -> frozenset[str]:
    codes = [*codes_in(code)]
    texts = {c for one in codes for c in one.co_consts if isinstance(c, str)}
    return frozenset(texts.union(*((*one.co_names, *one.co_freevars) for one in codes)))

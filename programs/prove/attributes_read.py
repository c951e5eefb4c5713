"""Which attributes of which objects code reads while it runs, in whatever way it reads them.

Names alone do not tell: ``getattr(self, "fa" + "st")``, ``vars(self)``, a pattern of ``match`` and
``"{0.fast}".format(self)`` name no attribute, and ``config.fast`` names one of any object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from torch import Tensor

from ..loading.reach import is_foreign

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

"""What a call runs: the codes of its functions, what these compare and store, and who has them."""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from ..reach import codes_in
from ..source_numbers import functions_in

T = TypeVar("T")
# What puts something to what is kept.
ADDING = frozenset(("append", "appendleft", "add", "extend", "insert", "update", "setattr"))
# Functions of torch that say whether code is traced.
OF_TRACES = ("is_compiling", "is_dynamo_compiling", "is_exporting", "is_fx_tracing")
COMPILING = ("_dynamo", "_higher_order_ops")  # where torch has what reads the code of functions


def compares(code: CodeType) -> bool:
    """Whether a code compares anything.

    >>> compares((lambda x: x > 1).__code__), compares((lambda x: x + 1).__code__)
    (True, False)
    """
    return any(one.opname in ("COMPARE_OP", "CONTAINS_OP") for one in dis.get_instructions(code))


def stores(code: CodeType) -> bool:
    """Whether a code may write to what is there after it has run.

    >>> stores((lambda x: x.append(1)).__code__), stores((lambda x: x + 1).__code__)
    (True, False)
    """
    return not ADDING.isdisjoint(code.co_names) or any(
        one.opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF")
        for one in dis.get_instructions(code)
    )


@dataclass
class Executed:
    """The codes of functions that calls run, with their globals, of modules that are the user's."""

    is_own: Callable[[Mapping[str, Any]], bool]
    codes: dict[CodeType, Mapping[str, Any]] = field(default_factory=dict)
    of_traces: dict[str, None] = field(default_factory=dict)
    _others: set[CodeType] = field(default_factory=set)

    def of(self, code: Callable[..., T]) -> Callable[..., T]:
        """The same code, of which is kept what it runs."""

        def run(*given: Any) -> T:
            before = sys.getprofile()
            sys.setprofile(self._hear)
            try:
                return code(*given)
            finally:
                sys.setprofile(before)

        return run

    def _hear(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._others or code in self.codes:
            return
        if self.is_own(frame.f_globals):
            self.codes[code] = frame.f_globals
        elif code.co_name not in OF_TRACES:
            self._others.add(code)
        elif frame.f_back is not None and self.is_own(frame.f_back.f_globals):
            self.of_traces[code.co_name] = None

    @property
    def is_compiled(self) -> bool:
        """Whether torch compiled some of it, and read its functions instead of running them."""
        return any(part in code.co_filename for code in self._others for part in COMPILING)

    def told(self) -> Iterator[str]:
        """That the code does the same while it is traced, if it asks for that."""
        for name in self.of_traces:
            yield f"asking `{name}` has no effect, as in every run"

    def functions(self, roots: Iterable[Any]) -> list[FunctionType]:
        """The functions that ran; to look for one that none of the roots holds takes long."""
        return functions_of(self.codes, functions_in(roots, ran=self.codes))

    def with_kept(self, kept: Iterable[FunctionType]) -> None:
        """Add what has run before, and may not run again: what it gave is kept by ``lru_cache``."""
        names = {name for code in self.codes for name in (*code.co_names, *code.co_freevars)}
        called = [one for one in kept if one.__name__ in names]
        for one in functions_in(called):
            if self.is_own(one.__globals__):
                self.codes.setdefault(one.__code__, one.__globals__)


def functions_of(codes: Collection[CodeType], known: Iterable[FunctionType]) -> list[FunctionType]:
    """The functions that have these codes: of those that are known, and of all where none is."""
    found = {id(one): one for one in known if one.__code__ in codes}
    have = {inner for one in found.values() for inner in codes_in(one.__code__)}
    missing = [code for code in codes if code not in have]
    if missing:
        holders = _holders_of(missing)
        found |= {id(one): one for one in holders if isinstance(one, FunctionType)}
    return list(found.values())


def _holders_of(codes: Collection[CodeType]) -> list[Any]:
    """What holds these codes, also of what the collector of garbage was told to leave alone."""
    frozen = gc.get_freeze_count() > 0
    if frozen:
        gc.unfreeze()
    try:
        return gc.get_referrers(*codes)
    finally:
        if frozen:
            gc.freeze()

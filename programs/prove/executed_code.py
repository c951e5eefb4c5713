"""Find what a call runs: code objects, what they compare and store, and their functions."""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from torch import Tensor

from ..loading.reach import PACKAGE, TYPE_CHECK, codes_in
from ..loading.source_numbers import functions_in, is_own, state_of

T = TypeVar("T")
MAX_NUMBERS, FEW_ENTRIES = 4096, 8  # of one run, and of a tuple
SIZED = (tuple, list, str, bytes)
NUMERIC = (Tensor, int, tuple, list)
WRAPPING = ("__wrapped__", "__func__", "fget")  # what a decorated function or method holds
MAX_WRAPPED = 8  # decorators of one function
# Functions and methods that add to a container or an object, or take from an iterator.
ADDING = frozenset(("append", "appendleft", "add", "extend", "insert", "update", "setattr", "next"))
# What imports modules, and its function that asks the finders of ``sys.meta_path``.
IMPORTING, FINDING = "importlib", "_find_spec"
# Functions of torch that tell whether code is being traced.
TRACING_QUERIES = ("is_compiling", "is_dynamo_compiling", "is_exporting", "is_fx_tracing")
# What torch writes to tell whether what it compiled can be used again.
GUARD = "___make_guard_fn"
PASSIVE = frozenset(("RESUME", "NOP", "LOAD_FAST", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"))
# Parts of torch that read the code of functions; calling a function excluded from that does not.
COMPILING = ("_dynamo/convert_frame", "_higher_order_ops")


def is_written(code: CodeType) -> bool:
    """Whether a code object was written, not generated to fill a dataclass or to check types.

    >>> from collections import namedtuple
    >>> is_written(namedtuple("Pair", "a b").__new__.__code__), is_written((lambda: 1).__code__)
    (False, True)
    """
    generated = code.co_qualname.startswith(("__create_fn__", GUARD))
    generated |= code.co_filename.startswith(TYPE_CHECK)
    return not generated and "_tuple_new" not in code.co_names


def has_no_choice(code: CodeType) -> bool:
    """Whether a code object returns an argument or a constant, and does nothing else.

    >>> has_no_choice((lambda x: x).__code__), has_no_choice((lambda x: abs(x)).__code__)
    (True, False)
    >>> has_no_choice((lambda x: x if x else 0).__code__)
    False
    """
    return all(one.opname in PASSIVE for one in dis.get_instructions(code))


def is_run_aside(frame: FrameType) -> bool:
    """Whether Python runs a frame by itself: to import a module, or while it collects garbage.

    Hypothesis has a function that the garbage collector calls.
    """
    collects = (getattr(one, "__code__", None) is frame.f_code for one in gc.callbacks)
    return any(collects) or is_of_an_import(frame)


def is_of_an_import(frame: FrameType) -> bool:
    """Whether a frame runs because a library imports a module, or to find a module.

    Torch imports parts of itself when they are first needed.  What that runs, such as the finders
    of ``sys.meta_path``, need not belong to a library that is known.
    """
    importing, above = False, frame.f_back
    while above is not None:
        name = str(above.f_globals.get("__name__", "")).split(".")[0]
        if name == IMPORTING:
            importing = True
            if above.f_code.co_name == FINDING:
                return True
        elif importing or name == PACKAGE:  # which called the code
            return importing and not is_own(above.f_globals)
        above = above.f_back
    return False


def stores(code: CodeType) -> bool:
    """Whether a code object may write to something that outlives its run.

    >>> stores((lambda x: x.append(1)).__code__), stores((lambda x: x + 1).__code__)
    (True, False)
    >>> stores((lambda x: x.add_(1)).__code__), stores((lambda x: next(x)).__code__)
    (True, True)
    """
    in_place = (name.endswith("_") and not name.endswith("__") for name in code.co_names)
    return (
        not ADDING.isdisjoint(code.co_names)
        or any(in_place)
        or any(
            one.opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF")
            or (one.opname == "BINARY_OP" and one.argrepr.endswith("="))  # x += 1
            for one in dis.get_instructions(code)
        )
    )


def counts_calls(
    codes: Iterable[CodeType], roots: Sequence[Any], call: Callable[[], Any]
) -> Iterator[str]:
    """Yield that state kept from call to call changes nothing, if equal calls alter it."""
    if not any(map(stores, codes)):
        return
    call()
    before = state_of(roots)
    call()
    if state_of(roots) != before:
        yield "state that the code keeps between calls has no effect, as in every run"


def counts_steps(step: Callable[..., Any], tokens: Tensor) -> Iterator[str]:
    """Yield that the number of steps changes nothing, if what they leave shows it.

    ``step``: a piece of the tokens and the state, None at first -> its output and the next state.
    """
    counted = []
    for cuts in ((0, 1, tokens.shape[1]), range(tokens.shape[1] + 1)):
        state = None
        for start, end in pairwise(cuts):
            _, state = step(tokens[:, start:end], state)
        counted.append([one for one in state_of([state]) if isinstance(one, int)])
    if counted[0] != counted[1]:
        yield "the number of earlier steps, which the state counts, has no effect, as in every run"


@dataclass
class Executed:
    """The code objects that calls run, with their globals, in modules that ``is_own`` accepts.

    ``numbers``: the integers that their functions return or hold when they return, and the lengths
    of lists, and of texts beside numbers, in order; None if they are not wanted.
    """

    is_own: Callable[[Mapping[str, Any]], bool]
    codes: dict[CodeType, Mapping[str, Any]] = field(default_factory=dict)
    numbers: list[int] | None = None
    tracing_queries: dict[str, None] = field(default_factory=dict)
    _others: set[CodeType] = field(default_factory=set)

    def recording(self, code: Callable[..., T]) -> Callable[..., T]:
        """Return the same callable, recording what it runs."""

        def run(*given: Any) -> T:
            before = sys.getprofile()
            sys.setprofile(self._profile)
            try:
                return code(*given)
            finally:
                sys.setprofile(before)

        return run

    def _profile(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "return" and self.numbers is not None and code in self.codes:
            if len(self.numbers) < MAX_NUMBERS:
                self.numbers += _integers_in(result, frame.f_locals.values())
            return
        if event != "call" or code in self._others or code in self.codes:
            return
        if code.co_qualname.startswith(GUARD):
            self._others.add(code)
        elif self.is_own(frame.f_globals) and not is_run_aside(frame):
            self.codes[code] = frame.f_globals
        elif code.co_name not in TRACING_QUERIES:
            self._others.add(code)
        elif frame.f_back is not None and self.is_own(frame.f_back.f_globals):
            self.tracing_queries[code.co_name] = None

    @property
    def is_compiled(self) -> bool:
        """Whether torch compiled some of it, reading its functions instead of running them."""
        return any(part in code.co_filename for code in self._others for part in COMPILING)

    def conditions(self) -> Iterator[str]:
        """Yield the condition that the code does the same under tracing, if it asks about that."""
        for name in self.tracing_queries:
            yield f"querying `{name}` has no effect, as in every run"

    def functions(self, roots: Iterable[Any]) -> list[FunctionType]:
        """Return the functions that ran; finding one that no root holds is slow."""
        return functions_of(self.codes, functions_in(roots, ran=self.codes))

    def add_cached(self, kept: Iterable[FunctionType]) -> None:
        """Add functions that ran earlier and may not run again, their results being cached."""
        names = {name for code in self.codes for name in (*code.co_names, *code.co_freevars)}
        called = [one for one in kept if one.__name__ in names]
        for one in functions_in(called):
            if self.is_own(one.__globals__):
                self.codes.setdefault(one.__code__, one.__globals__)


def _integers_in(result: Any, held: Collection[Any]) -> Iterator[int]:
    """Yield the integers that a function returns or holds, also in tuples, and lengths of lists.

    Lengths of texts count where an array or a number is held beside them: what looks up an
    attribute by its name compares no length with the name.
    """
    sized = SIZED if any(type(one) in NUMERIC for one in held) else SIZED[:2]
    for one in (result, *held):
        if type(one) is int:
            yield one
        elif type(one) in sized:
            yield len(one)
        if type(one) is tuple:
            yield from (n for n in one[:FEW_ENTRIES] if type(n) is int)


def functions_of(
    codes: Mapping[CodeType, Mapping[str, Any]], known: Iterable[FunctionType]
) -> list[FunctionType]:
    """Return the functions with these code objects, of which the globals are given.

    Those that are known come first, then those that the globals name, or that wrap one of these;
    only the others are searched for in memory, which is slow.
    """
    found = {id(one): one for one in known if one.__code__ in codes}
    if missing := _missing(codes, found.values()):
        named = (one for code in missing for one in _named(code, codes[code]))
        found |= {id(one): one for one in named if one.__code__ in missing}
        missing = _missing(missing, found.values())
    if missing:
        found |= {id(one): one for one in functions_in_memory(missing)}
    return list(found.values())


def _missing(codes: Iterable[CodeType], found: Iterable[FunctionType]) -> list[CodeType]:
    """Return the code objects that no function has, nor contains."""
    have = {inner for one in found for inner in codes_in(one.__code__)}
    return [code for code in codes if code not in have]


def _named(code: CodeType, names: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Yield the function to which the qualified name of a code object leads, and what it wraps."""
    first, *more = code.co_qualname.split(".")
    one = names.get(first)
    for name in more:
        one = vars(one).get(name) if isinstance(one, type) else None
    for _ in range(MAX_WRAPPED):
        if isinstance(one, FunctionType):
            yield one
        with suppress(Exception):  # it may be a lazy proxy
            one = next((x for name in WRAPPING if (x := getattr(one, name, None))), None)


def functions_in_memory(codes: Collection[CodeType]) -> list[FunctionType]:
    """Return all functions with these code objects, wherever they are held; this is slow."""
    found = _holders_of(codes) if codes else []
    return [one for one in found if isinstance(one, FunctionType) and one.__code__ in codes]


def _holders_of(codes: Collection[CodeType]) -> list[Any]:
    """Return the objects that refer to these code objects, including those in ``gc.freeze``."""
    frozen = gc.get_freeze_count() > 0
    if frozen:
        gc.unfreeze()
    try:
        return gc.get_referrers(*codes)
    finally:
        if frozen:
            gc.freeze()

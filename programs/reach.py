"""What some code may use while it runs: the functions and values that it holds and that it names.

A configuration has dozens of methods, and through these a library that downloads; of
``self.config.window`` the code uses one value.  Where it is known which codes ran, what they do not
name is left out; what they name without having run it counts, and not what that would call, as it
would have to run first.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn

LIBRARIES = {"torch", "numpy", "sympy", "mpmath", "array_api_compat", "attnproof"}
FOREIGN = (LIBRARIES | sys.stdlib_module_names) - {"__main__"}
OURS = "attnproof"  # what it says of some code, such as its signature, is none of the code's
OBJECTS = 4000  # that are looked into
ENTRIES = 500  # of a container
CONTAINERS = (list, set, dict, deque)  # whose lengths code may ask for
NAMES = ("__module__", "__qualname__", "__doc__")  # what says of a class where it stands
READ_IN_PLACE = ("torch", "functools")  # what libraries read themselves of what they have made
UNSEEN = ("torch.jit", "torch._dynamo")  # what runs the codes that it holds where nobody sees it
READING = frozenset(("getattr", "attrgetter", "methodcaller"))  # what may put a name together
DIGITS = re.compile(r"\d{1,9}")
TEXT = 200  # characters of a text that are read
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Ran:
    """The codes that ran, and what they name: names, and pieces of names that are put together."""

    codes: frozenset[CodeType]
    names: frozenset[str]
    pieces: tuple[str, ...]

    @classmethod
    def of(cls, codes: Collection[CodeType]) -> _Ran:
        """What these codes name, also in texts."""
        every = frozenset(inner for code in codes for inner in codes_in(code))
        names = {name for code in every for name in code.co_names}
        texts = {one for code in every for one in code.co_consts if isinstance(one, str)}
        reading = [code for code in every if not READING.isdisjoint(code.co_names)]
        told = {one for code in reading for one in code.co_consts if isinstance(one, str)}
        pieces = tuple(sorted(one for one in told if WORD.fullmatch(one)))
        return cls(every, frozenset(names | texts), pieces)

    def name(self, name: str) -> bool:
        """Whether they name it."""
        return name in self.names or name.startswith(self.pieces) or name.endswith(self.pieces)


def reached(roots: Iterable[Any], ran: Collection[CodeType] | None = None) -> Iterator[Any]:
    """What some functions, modules and values may use: numbers, texts, functions and what has them.

    ``ran``: the codes that ran, if that is known; others are then used only if these name them, or
    if they are compiled.

    >>> from types import SimpleNamespace
    >>> table = SimpleNamespace(rows=601, columns=602)
    >>> code = eval("lambda x: x[: table.rows]", {"table": table, "__name__": "model"})
    >>> [one for one in reached([code]) if one in (601, 602)]
    [601, 602]
    >>> [one for one in reached([code], [code.__code__]) if one in (601, 602)]
    [601]
    """
    known = None if ran is None else _Ran.of(ran)
    seen: set[int] = set()
    waiting: deque[tuple[Any, _Ran | None]] = deque((one, known) for one in roots)
    while waiting and len(seen) < OBJECTS:
        one, told = waiting.popleft()
        if isinstance(one, bool) or one is None:
            continue
        if isinstance(one, int | float | str | bytes):
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            yield one
            told = None if _place(one).startswith(UNSEEN) else told
            waiting.extend((part, told) for part in _parts(one, told))


def _place(one: Any) -> str:
    """The module whose code something is: a function that wraps another says it is that one's."""
    wraps = isinstance(one, FunctionType)
    return str(one.__globals__.get("__name__") if wraps else _attribute(one, "__module__"))


def is_foreign(one: Any) -> bool:
    """Whether a function or class is of a library whose code is none of the user's."""
    return str(getattr(one, "__module__", "")).split(".")[0] in FOREIGN


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code and all that stand in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_in(const)


def _parts(one: Any, ran: _Ran | None) -> Iterator[Any]:
    if isinstance(one, Tensor):
        yield from one.shape
        if one.numel() <= 64 and not one.is_complex() and one.device.type == "cpu":
            yield from one.detach().flatten().tolist()
    elif isinstance(one, (Mapping, tuple, frozenset, range, *CONTAINERS)):
        try:
            yield from [*_of_container(one)]
        except Exception:  # noqa: BLE001 (one that stands for what is not there yet)
            yield from _held_by(one, ran)
    elif isinstance(one, FunctionType):
        yield from _of_function(one, ran)
    elif isinstance(one, type):
        yield from _of_class(one, ran)
    elif isinstance(one, partial | MethodType):
        yield from (
            (one.func, one.args, one.keywords)
            if isinstance(one, partial)
            else (one.__func__, one.__self__)
        )
    elif not isinstance(one, ModuleType):
        yield type(one)
        yield from _held_by(one, ran)


def _held_by(one: Any, ran: _Ran | None) -> Iterator[Any]:
    """What an object has; of those that are ours only what is the user's."""
    of = type(one)
    held = {
        **(_attribute(one, "__dict__") or {}),
        **{
            name: _attribute(one, name)
            for own in of.__mro__
            for name in vars(own).get("__slots__", ())
        },
    }
    if of.__module__.startswith(OURS):
        if not of.__module__.endswith(".signature"):
            yield from (
                value
                for name, value in held.items()
                if name != "space" and not isinstance(value, int | float | str)
            )
    elif ran is None or of.__module__.split(".")[0] in READ_IN_PLACE:
        yield from held.values()
    else:
        yield from (value for name, value in held.items() if name.startswith("_") or ran.name(name))


def _attribute(one: Any, name: str) -> Any:
    try:
        return getattr(one, name, None)
    except Exception:  # noqa: BLE001 (code of others may raise anything)
        return None


def _of_container(one: Any) -> Iterator[Any]:
    if isinstance(one, range):
        yield from (one.start, one.stop, one.step)
    elif not isinstance(one, Mapping):
        yield from islice(one, ENTRIES)
    elif "__builtins__" not in one and "__name__" not in one:
        yield from chain.from_iterable(islice(one.items(), ENTRIES))


def _of_function(one: FunctionType, ran: _Ran | None) -> Iterator[Any]:
    ours = str(getattr(one, "__module__", "")).startswith(OURS)
    for cell in one.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if not (ours and isinstance(held, str)):  # a name or a place, which may have digits
            yield held
    if is_foreign(one):
        return
    yield from (one.__defaults__, one.__kwdefaults__, vars(one))
    alone = ran is not None and one.__code__ not in ran.codes
    for code in codes_in(one.__code__):
        if "len" in code.co_names and not alone:  # it may ask how long its texts are
            yield from (const for const in code.co_consts if isinstance(const, str))
        yield from chain.from_iterable(map(_numbers, code.co_consts))
        for held in _named(one, code):
            yield from _numbers(held) if alone else (held,)


def _numbers(one: Any) -> Iterator[Any]:
    """A number, or those in a text or in a constant of several things; of a text they are texts."""
    if isinstance(one, str):
        yield from DIGITS.findall(one[:TEXT])
    elif isinstance(one, int | float | bytes):
        yield one
    elif isinstance(one, tuple | frozenset):
        yield from chain.from_iterable(map(_numbers, one))


def _named(one: FunctionType, code: CodeType) -> Iterator[Any]:
    """The globals that a code of a function names, and what it names of modules among them."""
    for name in code.co_names:
        named = one.__globals__.get(name)
        if isinstance(named, ModuleType) and named.__name__.split(".")[0] not in FOREIGN:
            yield from (vars(named).get(other) for other in code.co_names)
        elif not isinstance(named, ModuleType):
            yield named


def _of_class(one: type, ran: _Ran | None) -> Iterator[Any]:
    for own in one.__mro__:
        if is_foreign(own) or own is nn.Module:
            continue
        for name, value in vars(own).items():
            if name in NAMES:
                continue
            inner: Callable[..., Any] | None = getattr(value, "__func__", None)
            held = inner or getattr(value, "fget", None) or value
            if ran is None or _is_used(name, held, ran):
                yield held


def _is_used(name: str, held: Any, ran: _Ran) -> bool:
    """Whether what a class has is used: every class has an ``__init__``, which any other names."""
    function = isinstance(held, FunctionType)
    if function and held.__code__ in ran.codes:
        return True
    return ran.name(name) and not (function and name.startswith("__"))

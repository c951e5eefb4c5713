"""What code may use while it runs: the functions and values that it holds and that it names.

A config has dozens of methods, and reaches a download library through them, while code that reads
``self.config.window`` uses a single value.  If the code objects that ran are known, what they do
not name is left out.  What they name counts even if it did not run, but not what it would call in
turn: that would have to run first.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from logging import Logger, Manager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

LIBRARIES = {"torch", "numpy", "sympy", "mpmath", "array_api_compat", "attnproof"}
OF_TENSORS = {"einops", "opt_einsum"}  # what they do depends on their arguments alone
BACKPORTS = {"typing_extensions"}  # of the standard library
TYPE_CHECKERS = {"beartype", "jaxtyping", "typeguard"}  # they raise, or let a call through
FOREIGN = (LIBRARIES | OF_TENSORS | BACKPORTS | TYPE_CHECKERS | sys.stdlib_module_names) - {
    "__main__"
}
TYPE_CHECK = "<@beartype"  # begins the file name of functions that beartype writes
PACKAGE = "attnproof"  # its records about some code, such as a signature, are not the code's
MAX_OBJECTS = 4000  # that are searched
MAX_ENTRIES = 500  # that are read of a container
CONTAINERS = (list, set, dict, deque)  # code may branch on their lengths
CLASS_METADATA = ("__module__", "__qualname__", "__doc__")
READ_IN_PLACE = ("torch", "functools")  # libraries read the attributes of their own objects
UNOBSERVABLE = ("torch.jit", "torch._dynamo")  # they run code that cannot be observed
ATTRIBUTE_READERS = frozenset(("getattr", "attrgetter", "methodcaller"))  # of computed names
WRAPPED = "_torchdynamo_orig_callable"  # the attribute in which torch.compile keeps what it wraps
UNCOMPILED = "torch.compile is switched off"
DIGITS = re.compile(r"\d{1,9}")
MAX_CHARACTERS = 200  # that are read of a text
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _ExecutedCode:
    """The code objects that ran, the names in them, and pieces from which names are built."""

    codes: frozenset[CodeType]
    names: frozenset[str]
    pieces: tuple[str, ...]

    @classmethod
    def from_codes(cls, codes: Collection[CodeType]) -> _ExecutedCode:
        """Collect what these code objects name, also in strings."""
        every = frozenset(inner for code in codes for inner in codes_in(code))
        names = {name for code in every for name in code.co_names}
        texts = {one for code in every for one in code.co_consts if isinstance(one, str)}
        reading = [code for code in every if not ATTRIBUTE_READERS.isdisjoint(code.co_names)]
        told = {one for code in reading for one in code.co_consts if isinstance(one, str)}
        pieces = tuple(sorted(one for one in told if WORD.fullmatch(one)))
        return cls(every, frozenset(names | texts), pieces)

    def mentions(self, name: str) -> bool:
        """Whether these code objects name it."""
        return name in self.names or name.startswith(self.pieces) or name.endswith(self.pieces)


def reached(roots: Iterable[Any], ran: Collection[CodeType] | None = None) -> Iterator[Any]:
    """Yield what functions, modules and values may use: numbers, texts, functions, containers.

    ``ran``: the code objects that ran, if known; other parts are then yielded only if these name
    them, or if they are compiled.

    >>> from types import SimpleNamespace
    >>> table = SimpleNamespace(rows=601, columns=602)
    >>> code = eval("lambda x: x[: table.rows]", {"table": table, "__name__": "model"})
    >>> [one for one in reached([code]) if one in (601, 602)]
    [601, 602]
    >>> [one for one in reached([code], [code.__code__]) if one in (601, 602)]
    [601]
    """
    known = None if ran is None else _ExecutedCode.from_codes(ran)
    seen: set[int] = set()
    waiting: deque[tuple[Any, _ExecutedCode | None]] = deque((one, known) for one in roots)
    while waiting and len(seen) < MAX_OBJECTS:
        one, told = waiting.popleft()
        if isinstance(one, bool) or one is None:
            continue
        if isinstance(one, int | float | str | bytes):
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            yield one
            told = None if _defining_module(one).startswith(UNOBSERVABLE) else told
            waiting.extend((part, told) for part in _parts(one, told))


def has_compiled(roots: Iterable[Any]) -> bool:
    """Whether ``torch.compile`` wraps something that functions, modules or values may use."""
    return "torch._dynamo" in sys.modules and any(map(is_compiled, reached(roots)))


def is_compiled(one: Any) -> bool:
    """Whether ``torch.compile`` wraps a function or a module.

    >>> import torch
    >>> is_compiled(torch.compile(nn.ReLU(), backend="eager")), is_compiled(nn.ReLU())
    (True, False)
    """
    held = {} if isinstance(one, MethodType) else _attribute(one, "__dict__") or {}
    return callable(held.get(WRAPPED)) and not held.get("_torchdynamo_disable")


def as_written(one: Any) -> Any:
    """Return the function or the module that ``torch.compile`` wraps, if it does."""
    if not is_compiled(one):
        return one
    return one.get_submodule("_orig_mod") if isinstance(one, nn.Module) else vars(one)[WRAPPED]


def _defining_module(one: Any) -> str:
    """Return the module that defines something; a wrapper's ``__module__`` may name another."""
    wraps = isinstance(one, FunctionType)
    return str(one.__globals__.get("__name__") if wraps else _attribute(one, "__module__"))


def is_foreign(one: Any) -> bool:
    """Whether a function or class belongs to a library rather than to the user."""
    return str(getattr(one, "__module__", "")).split(".")[0] in FOREIGN


def is_own_module(one: Any) -> bool:
    """Whether it is a module of the user, and of no library that is known."""
    return isinstance(one, ModuleType) and one.__name__.split(".")[0] not in FOREIGN


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all that are nested in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_in(const)


def _parts(one: Any, ran: _ExecutedCode | None) -> Iterator[Any]:
    if is_compiled(one):
        yield as_written(one)
    elif isinstance(one, FunctionType) and one.__code__.co_filename.startswith(TYPE_CHECK):
        yield _attribute(one, "__wrapped__")
    elif isinstance(one, Tensor):
        if is_lazy(one):
            return  # it has no shape yet
        yield from one.shape
        if one.numel() <= 64 and not one.is_complex() and one.device.type == "cpu":
            yield from one.detach().flatten().tolist()
    elif isinstance(one, (Mapping, tuple, frozenset, range, *CONTAINERS)):
        try:
            yield from [*_container_parts(one)]
        except Exception:  # noqa: BLE001 (it may be a lazy proxy)
            yield from _attribute_values(one, ran)
    elif isinstance(one, FunctionType):
        yield from _function_parts(one, ran)
    elif isinstance(one, type):
        yield from _class_parts(one, ran)
    elif isinstance(one, partial | MethodType):
        yield from (
            (one.func, one.args, one.keywords)
            if isinstance(one, partial)
            else (one.__func__, one.__self__)
        )
    elif not isinstance(one, ModuleType | Logger | Manager):  # a logger leads to all loggers
        yield type(one)
        yield from _attribute_values(one, ran)


def _attribute_values(one: Any, ran: _ExecutedCode | None) -> Iterator[Any]:
    """Yield the attributes of an object; for classes of attnproof only what comes from the user."""
    of = type(one)
    held = {
        **(_attribute(one, "__dict__") or {}),
        **{
            name: _attribute(one, name)
            for own in of.__mro__
            for name in vars(own).get("__slots__", ())
        },
    }
    if of.__module__.startswith(PACKAGE):
        if not of.__module__.endswith(".signature"):
            yield from (
                value
                for name, value in held.items()
                if name != "space" and not isinstance(value, int | float | str)
            )
    elif ran is None or of.__module__.split(".")[0] in READ_IN_PLACE:
        yield from held.values()
    else:
        yield from (
            value for name, value in held.items() if name.startswith("_") or ran.mentions(name)
        )


def _attribute(one: Any, name: str) -> Any:
    try:
        return getattr(one, name, None)
    except Exception:  # noqa: BLE001 (foreign code may raise anything)
        return None


def _container_parts(one: Any) -> Iterator[Any]:
    if isinstance(one, range):
        yield from (one.start, one.stop, one.step)
    elif not isinstance(one, Mapping):
        yield from islice(one, MAX_ENTRIES)
    elif "__builtins__" not in one and "__name__" not in one:
        yield from chain.from_iterable(islice(one.items(), MAX_ENTRIES))


def _function_parts(one: FunctionType, ran: _ExecutedCode | None) -> Iterator[Any]:
    ours = str(getattr(one, "__module__", "")).startswith(PACKAGE)
    for cell in one.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if not (ours and isinstance(held, str)):  # a name or a path, which may contain digits
            yield held
    if is_foreign(one) or _defining_module(one).split(".")[0] in TYPE_CHECKERS:
        return
    yield from (one.__defaults__, one.__kwdefaults__, vars(one))
    alone = ran is not None and one.__code__ not in ran.codes
    for code in codes_in(one.__code__):
        if "len" in code.co_names and not alone:  # it may take the length of its texts
            yield from (const for const in code.co_consts if isinstance(const, str))
        yield from chain.from_iterable(map(_numbers, code.co_consts))
        for held in _named_globals(one, code):
            yield from _numbers(held) if alone else (held,)


def _numbers(one: Any) -> Iterator[Any]:
    """Yield a number, or the numbers in a text (as text) or in a constant tuple or set."""
    if isinstance(one, str):
        yield from DIGITS.findall(one[:MAX_CHARACTERS])
    elif isinstance(one, int | float | bytes):
        yield one
    elif isinstance(one, tuple | frozenset):
        yield from chain.from_iterable(map(_numbers, one))


def _named_globals(one: FunctionType, code: CodeType) -> Iterator[Any]:
    """Yield the globals that a code object names, and what it names of modules among them."""
    for name in code.co_names:
        named = one.__globals__.get(name)
        if is_own_module(named):
            yield from (vars(named).get(other) for other in code.co_names)
        elif not isinstance(named, ModuleType):
            yield named


def _class_parts(one: type, ran: _ExecutedCode | None) -> Iterator[Any]:
    for own in one.__mro__:
        if is_foreign(own) or own is nn.Module:
            continue
        for name, value in vars(own).items():
            if name in CLASS_METADATA:
                continue
            inner: Callable[..., Any] | None = getattr(value, "__func__", None)
            held = inner or getattr(value, "fget", None) or value
            if ran is None or _is_used(name, held, ran):
                yield held


def _is_used(name: str, held: Any, ran: _ExecutedCode) -> bool:
    """Whether an attribute of a class is used; dunder methods count only if they ran."""
    function = isinstance(held, FunctionType)
    if function and held.__code__ in ran.codes:
        return True
    return ran.mentions(name) and not (function and name.startswith("__"))

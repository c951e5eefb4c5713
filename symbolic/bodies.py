"""Running the code of a statement on concrete arrays: NumPy's, or arrays of SymPy expressions.

A body uses symbolic lengths defined outside of it (``n, d = sizes("n d")``), and its helpers,
defaults and closures may hold them too.  For a run, each Python function from which a length can
be reached is relinked: the same code, with numbers in place of the lengths.  So the code runs as
it was written, on arrays that are not attnproof's.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, partial, singledispatch, singledispatchmethod
from inspect import signature
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from . import namespace
from .array import Array
from .budget import OutOfTime
from .concrete import ConcreteClaim, Draw, Reading, concrete_claim, length_value
from .definition import Definition
from .givens import Given
from .refusals import calls_type, state_fingerprint
from .scalars import is_count, num
from .terms import Term, free

_CACHED = type(cache(len))  # what functools.cache makes of a function
_ROOT = str(Path(__file__).parent.parent)
_AUTHORED = tuple(str(Path(_ROOT) / name) for name in ("theorems", "encodings", "laws"))
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = frozenset(("site-packages", "dist-packages"))  # of Python, its user, or a path


class OuterArray(TypeError):
    """Raised for code that uses a symbolic array made outside of it."""


class NotRelinked(RuntimeError):
    """Raised if code could not be prepared for a run, which is not its author's fault."""


@dataclass(frozen=True)
class CodeRun:
    """The conclusions and hypotheses of a run over concrete arrays, in the order of the code."""

    conclusions: Mapping[str, ConcreteClaim]
    hypotheses: tuple[ConcreteClaim, ...] = ()


@dataclass(frozen=True)
class Code:
    """The functions that a statement was made from: its claims and its hypotheses.

    ``arguments`` and ``assumes`` are the parameters that each takes by name.

    >>> import numpy as np
    >>> from attnproof.symbolic.claim import equal
    >>> from attnproof.symbolic.givens import sizes
    >>> (n,) = sizes("n")
    >>> code = Code(lambda X: equal(X[: n - 1] * n, 2 * X[1:]))
    >>> ran = code.run({"n": 3}, {"X": np.asarray([1.0, 2.0, 4.0])})
    >>> ran.conclusions[""].left, ran.conclusions[""].right
    (array([3., 6.]), array([4., 8.]))
    """

    body: Callable[..., Any]
    assume: Callable[..., Any] | None = None
    arguments: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    links: Links = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.arguments:
            object.__setattr__(self, "arguments", _parameters(self.body))
        if self.assume is not None and not self.assumed:
            object.__setattr__(self, "assumed", _parameters(self.assume))
        object.__setattr__(self, "links", Links(self.body, self.assume))

    def run(
        self,
        sizes: Mapping[str, int],
        values: Mapping[str, Any],
        *,
        xp: Any = None,
        draw: Draw | None = None,
    ) -> CodeRun:
        """Return the conclusions and hypotheses at these sizes and values of the givens.

        ``values`` are arrays of the namespace ``xp`` (NumPy by default), numbers, and callables
        for functions.  ``draw`` is called for each variable that a binder makes, with its name and
        a given whose axes are numbers.  Exceptions of the code propagate; raises ``TypeError`` if
        it returns anything but claims.
        """
        reading = Reading(xp if xp is not None else _numpy(), draw or _no_variables)
        linked = self.links.at(sizes, reading.xp)
        try:
            body, assume = linked(self.body), linked(self.assume)
        except (OuterArray, OutOfTime):
            raise
        except Exception as error:
            raise NotRelinked(f"internal error: {type(error).__name__}: {error}") from error
        with reading.active():
            said = body(**{name: values[name] for name in self.arguments})
            claims = dict(said) if isinstance(said, Mapping) else {"": said}
            taken: Iterable[Any] = ()
            if assume is not None:
                taken = assume(**{name: values[name] for name in self.assumed})
            return CodeRun(
                {says: concrete_claim(one) for says, one in claims.items()},
                tuple(map(concrete_claim, taken)),
            )


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return () if function is list else tuple(signature(function).parameters)


def _numpy() -> Any:
    import numpy as np

    return np


def _no_variables(name: str, given: Given) -> Any:
    raise TypeError(f"this run has no value for the variable {name}: {given.kind}")


def given_at(given: Given, sizes: Mapping[str, int]) -> Given:
    """Return the given with numbers for its lengths."""
    at = dict(sizes)

    def counted(lengths: Iterable[Term]) -> tuple[Term, ...]:
        return tuple(n if n.op == "space" else num(length_value(n, at)) for n in lengths)

    below = None if given.below is None else num(length_value(given.below, at))
    out = None if given.out is None else counted(given.out)
    return replace(given, shape=counted(given.shape), below=below, out=out)


class Links:
    """The objects reachable from some functions, and which of them hold symbolic lengths.

    ``sizes`` are the names of all reachable lengths; ``constants`` are the numbers in the code of
    the functions and among the objects they refer to.
    """

    def __init__(self, *roots: Any) -> None:
        self.sizes: set[str] = set()
        self.constants: set[float] = set()
        self._objects: dict[int, Any] = {}  # by identity, and so that no identity is used twice
        self._users: dict[int, list[int]] = {}
        self.contents: dict[int, tuple[object, ...]] = {}  # the current contents of each object
        self.types = False  # whether some function calls type(..) on anything but self
        self._symbolic: set[int] = set()
        seeds = self._explore(roots)
        while seeds:
            one = seeds.pop()
            if one not in self._symbolic:
                self._symbolic.add(one)
                seeds += self._users.get(one, ())

    def _explore(self, roots: Iterable[Any]) -> list[int]:
        seeds: list[int] = []
        ahead = [root for root in roots if root is not None]
        self._objects = {id(root): root for root in ahead}
        while ahead:
            thing = ahead.pop()
            if _is_array_namespace(thing):
                seeds.append(id(thing))
                continue
            named = _lengths_in(thing)
            if named is not None:
                self.sizes |= named
                seeds += [id(thing)] * bool(named)
                continue
            self.constants |= _numbers_in(thing)
            self.types |= isinstance(thing, FunctionType) and calls_type(thing)
            root = isinstance(thing, FunctionType) and any(thing is one for one in roots)
            parts = tuple(_references(thing) if root else _parts(thing))
            if not isinstance(thing, type | ModuleType):  # importing adds to these
                self.contents[id(thing)] = (*map(id, parts), *state_fingerprint(thing, parts))
            for part in parts:
                if id(part) not in self._objects:
                    self._objects[id(part)] = part
                    ahead.append(part)
                self._users.setdefault(id(part), []).append(id(thing))
        return seeds

    def symbolic(self, thing: Any) -> bool:
        """Whether a symbolic length can be reached from a thing."""
        return id(thing) in self._symbolic

    def at(self, sizes: Mapping[str, int], xp: Any) -> Callable[[Any], Any]:
        """Return a callable that relinks a function with numbers for its lengths.

        Raises ``KeyError`` for a length without a number.
        """
        for name in self.sizes - set(sizes):
            raise KeyError(f"the length {name} has no number")
        return _Linker(self, sizes, xp)


class _Linker:
    """Relinks objects for one choice of sizes; each object is relinked once and then shared."""

    def __init__(self, links: Links, sizes: Mapping[str, int], xp: Any) -> None:
        self.links, self.sizes, self.xp = links, sizes, xp
        self.length = getattr(xp, "length", int)  # a namespace may have its own integer type
        self.relinked: dict[int, Any] = {}
        self.tables: dict[int, dict[str, Any]] = {}

    def __call__(self, thing: Any) -> Any:
        if not self.links.symbolic(thing):
            return thing
        if id(thing) not in self.relinked:
            self.relinked[id(thing)] = self.linked(thing)
        return self.relinked[id(thing)]

    @singledispatchmethod
    def linked(self, thing: Any) -> Any:
        """Return a copy of an object with its attributes relinked."""
        new = copy(thing)
        self.relinked[id(thing)] = new
        if self.links.symbolic(type(thing)):
            new.__class__ = self(type(thing))
        for name, value in vars(thing).items():
            object.__setattr__(new, name, self(value))
        return new

    @linked.register
    def _(self, thing: Array) -> Any:
        """Return the number of a length; refuse any other array made outside of the code."""
        if not is_count(thing.term):
            raise OuterArray(
                f"the code uses {thing!r}, a symbolic array that was made outside of it; make it "
                "inside the function that returns the claim"
            )
        return self.length(length_value(thing.term, dict(self.sizes)))

    @linked.register
    def _(self, thing: Given) -> Given:
        return given_at(thing, self.sizes)

    @linked.register
    def _(self, thing: Definition) -> Any:  # type: ignore[type-arg]  # singledispatch wants it bare
        return Definition(thing.name, thing.latex, self(thing.body))

    @linked.register
    def _(self, thing: MethodType) -> Any:
        return MethodType(self(thing.__func__), self(thing.__self__))

    @linked.register
    def _(self, thing: partial) -> Any:  # type: ignore[type-arg]
        named = {name: self(value) for name, value in thing.keywords.items()}
        return partial(self(thing.func), *map(self, thing.args), **named)

    @linked.register(_CACHED)
    def _(self, thing: Any) -> Any:
        return self(thing.__wrapped__)

    @linked.register(staticmethod)
    @linked.register(classmethod)
    def _(self, thing: Any) -> Any:
        return type(thing)(self(thing.__func__))

    @linked.register
    def _(self, thing: property) -> Any:
        return property(*map(self, (thing.fget, thing.fset, thing.fdel)))

    @linked.register
    def _(self, thing: dict) -> Any:  # type: ignore[type-arg]
        return {self(key): self(value) for key, value in thing.items()}

    @linked.register(tuple)
    @linked.register(list)
    @linked.register(set)
    @linked.register(frozenset)
    def _(self, thing: Any) -> Any:
        make = getattr(thing, "_make", type(thing))  # named tuples are made by ``_make``
        return make(map(self, thing))

    @linked.register
    def _(self, thing: ModuleType) -> Any:
        return self.xp if thing is namespace else _Module(thing, self)

    @linked.register
    def _(self, thing: type) -> Any:
        """Return the same class over relinked bases, with members that hold lengths relinked."""
        own = {k: v for k, v in vars(thing).items() if k not in ("__dict__", "__weakref__")}
        new = type(thing)(thing.__name__, tuple(map(self, thing.__bases__)), dict(own))
        self.relinked[id(thing)] = new  # before its methods: super() in them means this class
        for name, value in own.items():
            if self.links.symbolic(value):
                type.__setattr__(new, name, self(value))  # a metaclass may watch for changes
        return new

    @linked.register
    def _(self, thing: FunctionType) -> Any:
        """Return the same code over relinked globals, closure and defaults."""
        if _is_array_namespace(thing):
            return getattr(self.xp, thing.__name__)
        table = self.tables.get(id(thing.__globals__))
        if table is None:
            table = self.tables[id(thing.__globals__)] = dict(thing.__globals__)
        cells = tuple(CellType() for _ in thing.__closure__ or ())
        new = FunctionType(thing.__code__, table, thing.__name__, None, cells)
        self.relinked[id(thing)] = new  # before what it refers to: it may refer to itself
        new.__kwdefaults__ = {k: self(v) for k, v in (thing.__kwdefaults__ or {}).items()} or None
        new.__defaults__ = tuple(map(self, thing.__defaults__ or ())) or None
        new.__dict__.update(thing.__dict__)
        for name in _global_names(thing.__code__):
            if name in thing.__globals__:
                table[name] = self(thing.__globals__[name])
        for cell, old in zip(cells, thing.__closure__ or (), strict=True):
            for held in _contents(old):
                cell.cell_contents = self(held)
        return new


class _Module(ModuleType):
    """A module whose attributes are relinked on access."""

    def __init__(self, of: ModuleType, linker: _Linker) -> None:
        super().__init__(of.__name__)
        self.__dict__["_of"], self.__dict__["_linker"] = of, linker

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["_linker"](getattr(self.__dict__["_of"], name))


def _is_array_namespace(thing: Any) -> bool:
    """Whether a thing is the namespace of symbolic arrays or one of its functions."""
    own = isinstance(thing, FunctionType) and thing.__module__ == namespace.__name__
    return thing is namespace or (own and thing.__name__ in namespace.NAMES)


def _lengths_in(thing: Any) -> set[str] | None:
    """Return the names of the lengths in an array or a given; None for anything else."""
    if isinstance(thing, Array):
        terms: tuple[Term, ...] = (thing.term,)
    elif isinstance(thing, Given):
        terms = thing.lengths
    else:
        return None
    return {str(t.data[0]) for term in terms for t in free(term) if t.op == "size"}


@singledispatch
def _parts(thing: Any) -> Iterable[Any]:
    """Return what a function, a container, a class or an object outside of libraries refers to."""
    if not hasattr(thing, "__dict__") or is_library(_file_of(type(thing).__module__)):
        return ()
    return (type(thing), *vars(thing).values())


@_parts.register
def _(thing: FunctionType) -> Iterable[Any]:
    return () if is_library(thing.__code__.co_filename) else _references(thing)


def _references(thing: FunctionType) -> Iterable[Any]:
    """Yield what a function's code may look up: globals, closure and defaults."""
    for name in _global_names(thing.__code__):
        if name in thing.__globals__:
            yield thing.__globals__[name]
    for cell in thing.__closure__ or ():
        yield from _contents(cell)
    yield from thing.__defaults__ or ()
    yield from (thing.__kwdefaults__ or {}).values()


@_parts.register
def _(thing: Definition) -> Iterable[Any]:  # type: ignore[type-arg]
    return (thing.body,)


@_parts.register(staticmethod)
@_parts.register(classmethod)
def _(thing: Any) -> Iterable[Any]:
    return (thing.__func__,)


@_parts.register
def _(thing: MethodType) -> Iterable[Any]:
    return thing.__func__, thing.__self__


@_parts.register
def _(thing: partial) -> Iterable[Any]:  # type: ignore[type-arg]
    return thing.func, *thing.args, *thing.keywords.values()


@_parts.register(_CACHED)
def _(thing: Any) -> Iterable[Any]:
    return (thing.__wrapped__,)


@_parts.register
def _(thing: property) -> Iterable[Any]:
    return thing.fget, thing.fset, thing.fdel


@_parts.register
def _(thing: dict) -> Iterable[Any]:  # type: ignore[type-arg]
    return *thing, *thing.values()


@_parts.register(tuple)
@_parts.register(list)
@_parts.register(set)
@_parts.register(frozenset)
def _(thing: Any) -> Iterable[Any]:
    return tuple(thing)


@_parts.register
def _(thing: ModuleType) -> Iterable[Any]:
    return () if is_library(_file_of(thing.__name__)) else tuple(vars(thing).values())


@_parts.register
def _(thing: type) -> Iterable[Any]:
    if not is_library(_file_of(thing.__module__)):
        yield from (*vars(thing).values(), *thing.__bases__)


@cache
def _file_of(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return str(file or (_LIBRARIES[0] if module in sys.stdlib_module_names else ""))


@cache
def is_library(file: str) -> bool:
    """Whether a file belongs to a library, whose code cannot hold an author's lengths.

    An installed package that declares statements or encodings does not count as a library.
    """
    if file.startswith(_ROOT):
        return not file.startswith(_AUTHORED)
    if not file.startswith(_LIBRARIES) and not _INSTALLED & set(Path(file).parts):
        return False
    held = next(
        (vars(m) for m in list(sys.modules.values()) if getattr(m, "__file__", None) == file), {}
    )
    return not any(isinstance(value, Array | Given | Definition) for value in held.values())


@cache
def _global_names(code: CodeType) -> tuple[str, ...]:
    """Return the global names that a function and those nested in it may look up."""
    inner = (
        name
        for const in code.co_consts
        if isinstance(const, CodeType)
        for name in _global_names(const)
    )
    return tuple(dict.fromkeys((*code.co_names, *inner)))


def _numbers_in(thing: Any) -> frozenset[float]:
    """Return the number that a thing is or spells, or the constants of a function."""
    if isinstance(thing, str) and thing.isdecimal() and thing.isascii() and len(thing) < 9:
        return frozenset([int(thing)])
    if isinstance(thing, FunctionType):
        return frozenset() if is_library(thing.__code__.co_filename) else _constants(thing.__code__)
    own = isinstance(thing, int | float) and not isinstance(thing, bool)
    return frozenset([thing] if own else ())


@cache
def _constants(code: CodeType) -> frozenset[float]:
    """Return the numeric constants of a function and of those nested in it."""
    found: set[float] = set()
    ahead: list[Any] = list(code.co_consts)
    while ahead:
        const = ahead.pop()
        if isinstance(const, CodeType):
            found |= _constants(const)
        elif isinstance(const, tuple | frozenset):
            ahead += const
        else:
            found |= _numbers_in(const)
    return frozenset(found)


def _contents(cell: CellType) -> tuple[Any, ...]:
    """Return the contents of a closure cell as a tuple, empty if it is not filled yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()

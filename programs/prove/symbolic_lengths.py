"""Trace code with symbolic lengths: functions of them stay symbolic, and they are 1 or more.

``math.sqrt(n)`` makes a float of a length, and so fixes it to the one that is traced.  Meanwhile
these functions of the module math are functions of torch, as math.pow is for torch.export, also
where code imported them by name.  A trace in which they decide something is not used.  A function
under ``functools.lru_cache`` refuses symbolic lengths, which have no hash: it is called as it is
without the cache.  The smaller or larger of two lengths is a branch, which a graph does not show
by itself.

torch.export assumes that a symbolic length is at least 2, and silently answers questions about a
length of 1 on that assumption.  Here a comparison with 1 is a condition like any other.  Some code
can tell a length of 1 without a comparison: by a dropped axis, an error, whether what is written to
is a copy, the memory layout, or a length used as a text, a key or an int.  Code that does so is
refused; so is code with a count that would be 0 or less at lengths of 1, as it may divide by it.
"""

from __future__ import annotations

import dis
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import _lru_cache_wrapper, partial, wraps
from itertools import product
from math import prod
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx.experimental import _config
from torch.overrides import TorchFunctionMode
from torch.utils._sympy.functions import FloatPow

from ..loading.source_numbers import is_own, is_standard
from .executed_code import Executed
from .guards import conditions_of

LENGTHS = (torch.SymInt, torch.SymFloat)
EXTREMES = (torch.sym_min, torch.sym_max)
OF_CACHES = ("cache_info", "cache_clear", "cache_parameters")


def _number(x: Any) -> Tensor:
    """Return a tensor of one number, which does not change the dtype of what it multiplies."""
    return torch.scalar_tensor(x, dtype=torch.float64)


def _log(x: Any, *base: Any) -> Tensor:
    found = _number(x).log()
    return found / _log(*base) if base else found


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    math.sqrt: lambda x: x**0.5,
    math.exp: lambda x: _number(x).exp(),
    math.log: _log,
    math.log2: lambda x: _log(x, 2),
    math.log10: lambda x: _log(x, 10),
}


class Compared(TorchFunctionMode):
    """Decides which of two lengths is the smaller or larger one, as a branch would.

    So ``min(n, 512)`` is n, or 512, under a condition on n, and arrays have lengths that are read.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Return one of two whole numbers instead of a node of the graph."""
        if func in EXTREMES and all(isinstance(x, int | torch.SymInt) for x in args):
            number, length = sorted(args, key=lambda x: isinstance(x, torch.SymInt))
            shorter = bool(length <= number)  # the usual side, which so includes equality
            return length if shorter == (func is torch.sym_min) else number
        return func(*args, **(kwargs or {}))


def takes_extremes(program: ExportedProgram) -> bool:
    """Whether a graph computes the smaller or larger of two lengths."""
    return any(node.target in EXTREMES and node.users for node in program.graph.nodes)


class LengthFunctions:
    """The functions of the module math, and cached ones, on lengths; ``used``: whether one was.

    ``namespaces``: those of the code that is traced.
    """

    def __init__(self, namespaces: Iterable[dict[str, Any]] = ()) -> None:
        self.used = False
        self.namespaces = {id(names): names for names in (vars(math), *namespaces)}.values()

    @contextmanager
    def symbolic(self) -> Iterator[None]:
        """Replace the functions within a context."""
        made = {id(one): self._on_lengths(one, symbolic) for one, symbolic in FUNCTIONS.items()}
        made |= {
            id(one): self._on_lengths(one, one.__wrapped__)
            for names in self.namespaces
            for one in names.values()
            if isinstance(one, _lru_cache_wrapper)
        }
        with ExitStack() as stack:
            for names in self.namespaces:
                before = {name: x for name, x in names.items() if id(x) in made}
                stack.callback(names.update, before)
                names.update({name: made[id(x)] for name, x in before.items()})
            yield

    def _on_lengths(
        self, function: Callable[..., Any], symbolic: Callable[..., Any]
    ) -> Callable[..., Any]:
        @wraps(function)
        def called(*given: Any, **named: Any) -> Any:
            if not any(isinstance(x, LENGTHS) for x in (*given, *named.values())):
                return function(*given, **named)
            self.used = True
            return symbolic(*given, **named)

        for name in OF_CACHES:
            if hasattr(function, name):
                setattr(called, name, getattr(function, name))
        return called

    def decide(self, program: ExportedProgram) -> bool:
        """Whether a branch, a count or a fixed number of a traced call depends on such a function.

        What depends on a logarithm or an exponential is no number while it is traced: it raises.
        """
        return any(condition.has(FloatPow) for condition in conditions_of(program))


LAYOUT = frozenset(
    ("stride", "is_contiguous", "storage_offset", "untyped_storage", "_is_view", "dim_order")
)
AS_TEXT = ("__repr__", "__str__", "__format__", "__hash__")
# These branch on memory layout or on whether they must copy, and are given contiguous copies.
LAYOUT_DEPENDENT = frozenset(
    (
        "reshape",
        "view",
        "flatten",
        "linear",
        "matmul",
        "__matmul__",
        "einsum",
        "scaled_dot_product_attention",
    )
)
VARIANCES = ("var", "std")  # prefixes of operations that divide by a count minus 1
# Names in code that asks whether a length is an int, which it is not during tracing.
TYPE_QUERIES = frozenset(("isinstance", "type"))
INTEGER_TYPES = frozenset(("int", "Integral", "SymInt"))
# Other names whose answers for a length of 1 are silent, or hidden from the torch function mode.
SILENT = frozenset(
    (
        *("_base", "guard_or_false", "guard_or_true", "guard_size_oblivious"),
        *("statically_known_true", "DisableTorchFunction", "DisableTorchFunctionSubclass"),
    )
)
OVERRIDE_QUERY = "has_torch_function"
copied = partial(torch.clone, memory_format=torch.contiguous_format)


class UnitLengths(TorchFunctionMode):
    """Follow a traced call; ``reasons`` lists what can tell a length of 1 without a comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []
        self.inside: list[Any] = []  # functions of torch

    @contextmanager
    def lengths(self) -> Iterator[None]:
        """Let symbolic lengths be 1 or more, and record where code makes a text or key of one."""
        settings: Any = _config
        noted = {name: self._noted(name) for name in AS_TEXT}
        with _replaced(torch.SymInt, noted), settings.patch(backed_size_oblivious=True):
            yield

    def _noted(self, name: str) -> Callable[..., Any]:
        made = getattr(torch.SymInt, name)

        def noted(length: torch.SymInt, *told: Any) -> Any:
            if _called_by_own(sys._getframe(1)):  # noqa: SLF001 (the caller's)
                self.reasons.append("it makes a text or a key of a length")
            return made(length, *told)

        return noted

    def of(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call, made under this mode."""

        def followed(*inputs: Tensor) -> Any:
            with self:
                return call(*inputs)

        return followed

    def inspect(self, call: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
        """Run a call as it is, and inspect the functions that it runs."""
        ran = Executed(is_own)
        with torch.no_grad(), suppress(Exception):  # tracing reports its errors
            ran.recording(call)(*(x.clone() for x in inputs))
        for code in ran.codes:
            names = {*code.co_names}
            if SILENT & names or (TYPE_QUERIES & names and INTEGER_TYPES & names):
                self.reasons.append(f"{code.co_name} makes a query that tracing answers silently")
            if "suppress" in names or _handles(code):
                self.reasons.append(f"{code.co_name} continues after errors")

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in LAYOUT:
            self.reasons.append("it reads the memory layout")
        if name.startswith("squeeze") and _may_drop(*args, **kwargs):
            self.reasons.append("it drops axes whose length is 1")
        if name == "contiguous" and len(args) == 1 and not kwargs:
            return copied(args[0])
        if name in LAYOUT_DEPENDENT:
            args = tuple(copied(x) if isinstance(x, Tensor) else x for x in args)
        try:
            with self._inside(func):
                return func(*args, **kwargs)
        except Exception:
            self.reasons.append(f"{name} raises")
            raise

    @contextmanager
    def _inside(self, func: Any) -> Iterator[None]:
        """Follow also what a function of torch that is written in Python calls.

        Such a function is dispatched as a whole if it learns that an override exists; a method that
        calls the method it overrides does so under the same name.
        """
        where = sys.modules.get(func.__module__) if isinstance(func, FunctionType) else None
        asks = [name for name in (vars(where) if where else ()) if name.startswith(OVERRIDE_QUERY)]
        if not asks or func in self.inside:
            yield
            return
        self.inside.append(func)
        try:
            with _replaced(where, dict.fromkeys(asks, lambda *_: False)), self:
                yield
        finally:
            self.inside.pop()

    def inspect_graph(self, nodes: Sequence[Any], silent: Sequence[Any]) -> str:
        """Return what in a traced call may differ at a length of 1, or ""."""
        for node in nodes:
            schema = getattr(node.target, "_schema", None)
            if schema is not None and schema.is_mutable and node.target not in silent:
                self.reasons.append(f"{node.target} writes to what may be a copy")
            if any(map(_may_be_zero, _counts_in(node))):
                self.reasons.append(f"{node.name} is a count that may be 0")
        return "; ".join(self.reasons)


@contextmanager
def _replaced(owner: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Replace attributes of a class or module within a context."""
    before = {name: vars(owner)[name] for name in values.keys() & vars(owner).keys()}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name in values:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)


def _may_drop(x: Tensor, *dims: Any, dim: Any = None) -> bool:
    """Whether one of the axes that are dropped if their length is 1 has a symbolic length."""
    told = dims if dim is None else (dim,)
    places = told[0] if told and isinstance(told[0], tuple | list) else told
    lengths = [x.shape[place] for place in places] if places else list(x.shape)
    return not all(isinstance(n, int) for n in lengths)


def _called_by_own(frame: FrameType | None) -> bool:
    """Whether the user's code asks, itself or through the standard library."""
    while frame is not None and is_standard(frame.f_globals):
        frame = frame.f_back
    return frame is not None and is_own(frame.f_globals)


def _handles(code: CodeType) -> bool:
    """Whether a function may continue after an error; a with statement alone does not count.

    >>> def tried(x):
    ...     try:
    ...         return x + 1
    ...     except TypeError:
    ...         return x
    >>> _handles(tried.__code__), _handles((lambda x: x + 1).__code__)
    (True, False)
    """
    names = [one.opname for one in dis.get_instructions(code)]
    return names.count("PUSH_EXC_INFO") > names.count("WITH_EXCEPT_START")


def _counts_in(node: Any) -> Iterator[Any]:
    """Yield the lengths in the shape of a node, or its value; for a variance also its divisor."""
    value = node.meta.get("val")
    yield from value.shape if isinstance(value, Tensor) else (value,)
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.name.removeprefix("aten::").startswith(VARIANCES):
        x, *told = node.args
        dims = node.kwargs.get("dim", next((d for d in told if not isinstance(d, bool)), None))
        axes = [dims] if isinstance(dims, int) else dims or range(x.meta["val"].ndim)
        biased = False in (*told, node.kwargs.get("unbiased"))
        less = node.kwargs.get("correction", 0 if biased else 1)
        yield prod(x.meta["val"].shape[k] for k in axes) - (1 if less is None else less)


def _may_be_zero(count: Any) -> bool:
    """Whether a count of lengths is 0 or less when some of them are 1."""
    if not isinstance(count, torch.SymInt | torch.SymFloat):
        return False
    told = count.node.expr
    lengths = sorted(told.free_symbols, key=str)
    few = (dict(zip(lengths, at, strict=True)) for at in product((1, 2), repeat=len(lengths)))
    return any(1 in at.values() and bool(told.subs(at) <= 0) for at in few)

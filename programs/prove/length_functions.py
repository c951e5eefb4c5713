"""Keep what code computes from lengths symbolic while it is traced: functions, and cached results.

``math.sqrt(n)`` makes a float of a length, and so fixes it to the one that is traced.  Meanwhile
these functions of the module math are functions of torch, as math.pow is for torch.export, also
where code imported them by name.  A trace in which they decide something is not used.

A function under ``functools.lru_cache`` refuses symbolic lengths, which have no hash: it is called
as it is without the cache.

The smaller or larger of two lengths is a branch, which a graph does not show by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import _lru_cache_wrapper, wraps
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode
from torch.utils._sympy.functions import FloatPow

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

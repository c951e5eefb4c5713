"""Which tensors, beside its inputs, code reads numbers from, or asks for their format.

Tracing takes the number of ``float(table.max())`` as a constant, and leaves the tensor out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..execution.response import leaves
from ..loading.source_numbers import is_own
from .lengths_in_tensors import is_plain
from .reached_arrays import storage_of
from .tables import pattern_of

T = TypeVar("T")
READING = frozenset((
    "item", "tolist", "numpy", "is_nonzero", "equal", "allclose", "__array__", "__bool__",
    "__float__", "__int__", "__index__", "__complex__", "__contains__", "__format__", "__repr__",
))  # fmt: skip
FORMATS = frozenset((
    "dtype", "is_floating_point", "is_complex", "is_signed", "itemsize", "element_size", "type",
    "layout", "is_quantized",
))  # fmt: skip


@dataclass
class TensorsRead(TorchFunctionMode):
    """Record the tensors that are no inputs, and made from none, of which numbers are read.

    ``asked``: whether the user's code asks such a tensor for its format.

    >>> import torch
    >>> table = torch.tensor([3.0, 4.0])
    >>> def code(x):
    ...     return x * table if float(x.max()) > 9 else x * table.tolist()[0]
    >>> seen = TensorsRead()
    >>> _ = seen.of(code)(torch.ones(2))
    >>> [one is table for one in seen.read]
    [True]
    """

    read: list[Tensor] = field(default_factory=list)
    asked: bool = False
    _known: dict[int, Tensor] = field(default_factory=dict)  # inputs, and what is made from them
    _held: dict[int, tuple[Tensor, list[Tensor]]] = field(default_factory=dict)  # by id: from what

    def __post_init__(self) -> None:
        super().__init__()

    def of(self, code: Callable[..., T]) -> Callable[..., T]:
        """Return the same call, recorded."""

        def run(*given: Any) -> T:
            self._known |= {id(x): x for x in leaves(list(given)) if isinstance(x, Tensor)}
            try:
                with self:
                    return code(*given)
            finally:
                self._known.clear()
                self._held.clear()

        return run

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        given = [x for x in leaves([args, kwargs or {}]) if isinstance(x, Tensor) and is_plain(x)]
        held = self._sources(given)
        name = getattr(func, "__name__", "")
        if held and name in READING:
            self.read += [x for x in held if not any(x is one for one in self.read)]
        asked = getattr(getattr(func, "__self__", None), "__name__", "") if "get" in name else name
        if held and asked in FORMATS and is_own(sys._getframe(1).f_globals):  # noqa: SLF001
            self.asked = True
        result = func(*args, **(kwargs or {}))
        for x in leaves([result]):
            if isinstance(x, Tensor) and id(x) not in self._held and id(x) not in self._known:
                if held:
                    self._held[id(x)] = x, held
                else:
                    self._known[id(x)] = x
        return result

    def _sources(self, given: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors that are held, of these and of what these are made from."""
        found: dict[int, Tensor] = {}
        for x in given:
            if id(x) not in self._known:
                _, sources = self._held.setdefault(id(x), (x, [x]))
                found |= {id(one): one for one in sources}
        return list(found.values())

    def conditions(self, modules: Iterable[nn.Module], stored: Iterable[Tensor]) -> Iterator[str]:
        """Yield that what was read stays as it is; of what is ``stored`` in a graph, a table."""
        names = {
            id(x): f"the {kind} {name}"
            for module in modules
            for kind, arrays in (
                ("parameter", module.named_parameters()),
                ("buffer", module.named_buffers()),
            )
            for name, x in arrays
        }
        tables = {storage_of(x): x for x in stored}
        for x in self.read:
            there = tables.get(storage_of(x))
            if there is not None and pattern_of(there, "", "held") is not None:
                continue  # which says so
            name = names.get(id(x), f"a tensor {tuple(x.shape)} that the code holds")
            value = f"its value, {x.item()!r}" if x.numel() == 1 else "its numbers"
            yield f"{name} keeps {value}"
        if self.asked:
            yield "the tensors that the code holds keep their formats"

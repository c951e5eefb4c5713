"""Tracing of code whose symbolic lengths are 1 or more.

torch.export takes a length for 2 or more, and what code asks of a length of 1 is answered without a
word.  Here a comparison with 1 is a condition as any other is.  Some things tell that a length is 1
without a comparison: an axis that is dropped, an error, whether what is written to is a copy, how
numbers lie in memory, and a length as a text or a key.  Code that asks for one of these is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental import _config
from torch.overrides import TorchFunctionMode

from ..source_numbers import is_own

LAYOUT = frozenset(
    ("stride", "is_contiguous", "storage_offset", "untyped_storage", "_is_view", "dim_order")
)
AS_TEXT = ("__repr__", "__str__", "__format__", "__hash__")
# These ask whether they have to copy, and are given copies.
MERGES = frozenset(
    ("reshape", "flatten", "matmul", "__matmul__", "einsum", "scaled_dot_product_attention")
)
copied = partial(torch.clone, memory_format=torch.contiguous_format)


class FromOne(TorchFunctionMode):
    """Follows a call that is traced; ``met`` says what tells a length of 1 without a comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    @contextmanager
    def lengths(self) -> Iterator[None]:
        """Symbolic lengths are 1 or more, and are noted where code makes a text or a key of one."""
        own = {name: vars(torch.SymInt).get(name) for name in AS_TEXT}
        settings: Any = _config
        try:
            for name in AS_TEXT:
                setattr(torch.SymInt, name, self._noted(name))
            with settings.patch(backed_size_oblivious=True):
                yield
        finally:
            for name, before in own.items():
                if before is None:
                    delattr(torch.SymInt, name)
                else:
                    setattr(torch.SymInt, name, before)

    def _noted(self, name: str) -> Callable[..., Any]:
        made = getattr(torch.SymInt, name)

        def noted(length: torch.SymInt, *told: Any) -> Any:
            if is_own(sys._getframe(1).f_globals):  # noqa: SLF001 (of whoever asks)
                self.met.append("it makes a text or a key of a length")
            return made(length, *told)

        return noted

    def of(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, which is followed."""

        def followed(*inputs: Tensor) -> Any:
            with self:
                return call(*inputs)

        return followed

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in LAYOUT:
            self.met.append("it asks how numbers lie in memory")
        if name.startswith("squeeze") and _may_drop(*args, **kwargs):
            self.met.append("it drops axes whose length is 1")
        if name == "contiguous" and len(args) == 1 and not kwargs:
            return copied(args[0])
        if name in MERGES:
            args = tuple(copied(x) if isinstance(x, Tensor) else x for x in args)
        try:
            return func(*args, **kwargs)
        except Exception:
            self.met.append(f"{name} raises")
            raise

    def looked_through(self, nodes: Sequence[Node], silent: Sequence[Any]) -> str:
        """What of a traced call is another thing at a length of 1; "" where nothing is."""
        for node in nodes:
            schema = getattr(node.target, "_schema", None)
            if schema is not None and schema.is_mutable and node.target not in silent:
                self.met.append(f"{node.target} writes to what may be a copy")
        return "; ".join(self.met)


def _may_drop(x: Tensor, *dims: Any, dim: Any = None) -> bool:
    """Whether an axis that is dropped if its length is 1 has a symbolic length."""
    told = dims if dim is None else (dim,)
    places = told[0] if told and isinstance(told[0], tuple | list) else told
    lengths = [x.shape[place] for place in places] if places else list(x.shape)
    return not all(isinstance(n, int) for n in lengths)

"""Parameters that code reaches without a module: of an object, in a list, in a global name.

torch.export takes them for constants.  They may be trained as others are, so what is proved has to
hold for all values of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["storage_of", "storages_of_trained"]


class _Watching(TorchFunctionMode):
    """Where the parameters are kept that any function of torch is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.met: set[int] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        for one in _tensors([args, list((kwargs or {}).values())]):
            if one.requires_grad and one.is_leaf:
                self.met.add(storage_of(one))
        return func(*args, **(kwargs or {}))


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _tensors(one)


def storage_of(tensor: Tensor) -> int:
    """The address of what a tensor is a view of; 0 for one that has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0


def storages_of_trained(call: Callable[..., Any], inputs: Sequence[Tensor]) -> set[int]:
    """The storages of the parameters that a call uses; those of a call that raises, up to there."""
    watching = _Watching()
    try:
        with torch.no_grad(), watching:
            call(*(x.clone() for x in inputs))
    except Exception:  # noqa: BLE001 (torch.export tells what such code raises)
        pass
    return watching.met - {0}

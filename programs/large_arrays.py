"""Copies of modules that hold large arrays, which are mostly zero, such as caches.

A copy is equal bit for bit; memory is read throughout, but written only where it is not zero, which
takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, UntypedStorage, nn

from .response import leaves

OF_TORCH = frozenset(vars(nn.Module()))  # the dictionaries of parameters and the like
LARGE = 1 << 20  # bytes
PAGE = 4096  # bytes
ALIGNED = 64  # bytes, as torch's own memory is


def own_attributes(module: nn.Module) -> dict[str, Any]:
    """Return the attributes of a module that torch.nn.Module does not have itself."""
    return {name: value for name, value in vars(module).items() if name not in OF_TORCH}


def arrays_of(module: nn.Module) -> Iterator[Tensor]:
    """Yield the arrays that a module and its parts hold, also in lists, except parameters.

    >>> norm = nn.BatchNorm1d(3)
    >>> norm.caches = [torch.ones(2), torch.ones(4)]
    >>> [tuple(one.shape) for one in arrays_of(norm)]
    [(2,), (4,), (3,), (3,), ()]
    """
    for part in module.modules():
        own = own_attributes(part).values()
        for one in leaves([*own, *part._buffers.values()]):  # noqa: SLF001 (no public name)
            if isinstance(one, Tensor) and not isinstance(one, nn.Parameter):
                yield one


def large_copies(module: nn.Module) -> dict[Any, Any]:
    """Return copies of the large arrays of a module, as a memo for :func:`copy.deepcopy`.

    Arrays that share memory share the copy.
    """
    held = (one.untyped_storage() for one in arrays_of(module) if _is_plain(one))
    large = {one._cdata: one for one in held if one.nbytes() >= LARGE}  # noqa: SLF001 (torch's key)
    # torch looks for copies of memory under this name
    return {"torch": {key: copy_of(one) for key, one in large.items()}}


def copied(array: Tensor, copies: dict[int, UntypedStorage]) -> Tensor:
    """Return a copy, through which gradients flow.

    ``copies``, of memory, are added to: arrays that share memory share the copy, except those with
    gradients, and those that a mode of torch replaces.
    """
    own = torch.empty(0, dtype=array.dtype)
    followed = type(own) is not Tensor  # by a mode of torch, which has to see that it is copied
    if followed or not _is_plain(array) or (array.requires_grad and torch.is_grad_enabled()):
        return array.clone()
    memory = array.untyped_storage()
    key = memory._cdata  # noqa: SLF001 (torch's key)
    if key not in copies:
        copies[key] = copy_of(memory)
    return own.set_(copies[key], array.storage_offset(), array.shape, array.stride())


def copy_of(memory: UntypedStorage) -> UntypedStorage:
    """Return a copy of memory; if large, its pages of zeros are not written, nor used."""
    size = memory.nbytes()
    held = torch.empty(0, dtype=torch.uint8)
    if size < LARGE or type(held) is not Tensor:
        found: UntypedStorage = memory.clone()  # type: ignore[no-untyped-call]
        return found
    made = np.zeros(size + ALIGNED, np.uint8)
    start = -made.ctypes.data % ALIGNED
    made = made[start : start + size]
    old = held.set_(memory).numpy()
    whole = size - size % PAGE
    made[whole:] = old[whole:]
    pages, new = (one[:whole].view(np.int64).reshape(-1, PAGE // 8) for one in (old, made))
    used = np.flatnonzero(pages.any(1))
    new[used] = pages[used]
    return torch.from_numpy(made).untyped_storage()


def _is_plain(array: Tensor) -> bool:
    """Whether an array is one of torch's own, with memory of its own kind, and not empty."""
    if type(array) is not Tensor or array.layout != torch.strided or not array.numel():
        return False
    unusual = array.is_quantized or array.is_conj() or array.is_neg() or array.is_inference()
    return array.device.type == "cpu" and not unusual

"""State that modules and caches hold from call to call: where it is, and copies of it.

A copy is equal bit for bit.  Large arrays, such as caches, are mostly zero: their memory is read
throughout, but written only where it is not zero, which takes a tenth of the time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, UntypedStorage, nn

OF_TORCH = frozenset(vars(nn.Module()))  # the dictionaries of parameters and the like
LARGE = 1 << 20  # bytes
PAGE = 4096  # bytes
ALIGNED = 64  # bytes, as torch's own memory is


@dataclass(frozen=True)
class HeldArray:
    """An array that a module holds, by the name of its attribute or its place in a container."""

    module: nn.Module
    name: str
    array: Tensor


def held_arrays(*modules: nn.Module) -> Iterator[HeldArray]:
    """Yield what modules and their parts hold: attributes, also in lists, buffers, parameters.

    >>> norm = nn.BatchNorm1d(3)
    >>> norm.caches = [torch.ones(2), torch.ones(4)]
    >>> [one.name for one in held_arrays(norm)][:3]
    ['caches[0]', 'caches[1]', 'running_mean']
    """
    for part in {id(part): part for module in modules for part in module.modules()}.values():
        own = {name: value for name, value in vars(part).items() if name not in OF_TORCH}
        for names in (own, part._buffers, part._parameters):  # noqa: SLF001
            for held, thing in names.items():
                yield from (HeldArray(part, *one) for one in _named(held, thing))


def _named(name: str, thing: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the arrays in lists, tuples and dictionaries, by names such as ``caches[0]``."""
    if isinstance(thing, Tensor):
        yield name, thing
    elif isinstance(thing, list | tuple | dict):
        for key, one in thing.items() if isinstance(thing, dict) else enumerate(thing):
            yield from _named(f"{name}[{key!r}]", one)


def arrays_of(module: nn.Module) -> Iterator[Tensor]:
    """Yield the arrays that a module and its parts hold, except parameters."""
    held = (one.array for one in held_arrays(module))
    return (one for one in held if not isinstance(one, nn.Parameter))


def large_copies(module: nn.Module) -> dict[Any, Any]:
    """Return copies of the large arrays of a module, as a memo for :func:`copy.deepcopy`.

    Arrays that share memory share the copy.
    """
    held = (one.untyped_storage() for one in arrays_of(module) if _is_plain(one))
    large = {one._cdata: one for one in held if one.nbytes() >= LARGE}  # noqa: SLF001 (torch's key)
    # torch looks for copies of memory under this name
    return {"torch": {key: copy_of(one) for key, one in large.items()}}


def copy_with_own_state(module: nn.Module) -> nn.Module:
    """Return a copy of a module with its own state; weights are shared, as they are only read."""
    kept = {id(one): one for one in module.parameters()}
    copies: dict[int, UntypedStorage] = {}
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor | tuple | list | dict) and (
                name == "_buffers" or not name.startswith("_")
            ):
                kept[id(value)] = copied_state(value, copies)
    return copy.deepcopy(module, kept)


def copied_state(state: Any, copies: dict[int, UntypedStorage]) -> Any:
    """Copy a cache so that no written tensor is shared; gradients flow through the copy."""
    if isinstance(state, Tensor):
        return copied(state, copies)
    if isinstance(state, tuple | list):
        return type(state)(copied_state(one, copies) for one in state)
    if isinstance(state, dict):
        return {key: copied_state(one, copies) for key, one in state.items()}
    if not hasattr(state, "__dict__"):
        return state
    made = copy.copy(state)
    for key, value in vars(state).items():
        nested = isinstance(value, Tensor | tuple | list | dict)
        made.__dict__[key] = copied_state(value, copies) if nested else value
    return made


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

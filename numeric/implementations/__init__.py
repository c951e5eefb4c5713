"""Implementations that can replace named definitions, one file each.

A file of this folder defines ``implementations(device)``, which returns the implementations that
the device can run.  All files of the folder are found automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import torch

from ..row_selection import Replacement

__all__ = [
    "DoesNotFit",
    "Implementation",
    "UnknownImplementation",
    "implementations_named",
    "implementations_on",
]


class DoesNotFit(Exception):
    """The call is not accepted; the message says why."""


@dataclass(frozen=True)
class Implementation:
    """One way to compute some named definitions.

    ``replaced`` maps each definition to code on tensors, ``bounds`` to the exact value and the
    radius of that code.  A ``fused`` kernel is fast enough to run on several heads if the statement
    has one.  Without ``replaced`` it is the definition itself.
    """

    name: str
    replaced: Mapping[str, Replacement] = field(default_factory=dict)
    bounds: Mapping[str, Replacement] = field(default_factory=dict)
    fused: bool = False

    def serves(self, definitions: Iterable[str]) -> bool:
        """Whether one of these definitions is replaced."""
        return any(name in self.replaced for name in definitions)


class UnknownImplementation(ValueError):
    """No implementation has the requested name."""


def implementations_on(device: torch.device) -> tuple[Implementation, ...]:
    """All implementations for a device, grouped by file, in the order of the files."""
    every: list[Implementation] = []
    for module in sorted(iter_modules(__path__), key=lambda m: m.name):
        source: Any = import_module(f"{__name__}.{module.name}")
        make: Callable[[torch.device], Sequence[Implementation]] = source.implementations
        every.extend(make(device))
    return tuple(every)


def implementations_named(
    wanted: Iterable[str | Implementation] | None, device: torch.device
) -> tuple[Implementation, ...]:
    """The requested implementations, or all if none are named.

    Raises :class:`UnknownImplementation`, naming all, for an unknown name.
    """
    every = implementations_on(device)
    if wanted is None:
        return every
    known = {implementation.name: implementation for implementation in every}
    chosen = []
    for item in wanted:
        if isinstance(item, str) and item not in known:
            raise UnknownImplementation(
                f"implementation {item!r} was asked for; on {device} there are {', '.join(known)}"
            )
        chosen.append(known[item] if isinstance(item, str) else item)
    return tuple(chosen)

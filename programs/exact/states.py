"""What code leaves behind: in its module it is taken out again, and a result stays what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..subjects import Subject

__all__ = ["kept", "snapshots"]

S = TypeVar("S", bound=Subject)


@contextmanager
def kept(module: nn.Module | None) -> Iterator[None]:
    """What the code leaves in its module is taken out again, and evaluation is where it ran."""
    parts = [] if module is None else list(module.modules())
    before = [(part, {k: _copied(v) for k, v in vars(part).items()}) for part in parts]
    held = [] if module is None else [*module.buffers(), *module.parameters()]
    values = [x.detach().clone() for x in held]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, state in before:
            vars(part).clear()
            vars(part).update(state)
        with torch.no_grad():
            for x, value in zip(held, values, strict=True):
                if not torch.equal(x, value):  # written in place
                    x.copy_(value)


def snapshots(subject: S) -> S:
    """The same code, each result a copy: what later calls write into it is not compared."""
    calls = {f.name: getattr(subject, f.name) for f in fields(subject) if f.name != "make"}
    found: dict[str, Any] = {name: _copies(call) for name, call in calls.items()
                             if callable(call) and name != "module"}  # fmt: skip
    for field in ("paths", "hiding"):
        ways = getattr(subject, field, {})
        if ways:
            found[field] = {name: _copies(call) for name, call in ways.items()}
    return replace(subject, **found)


def _copies(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call, assigned=(), updated=())
    def copied(*args: Any, **kwargs: Any) -> Any:
        found = call(*args, **kwargs)
        if isinstance(found, tuple) and type(found) is tuple:
            return tuple(x.clone() if isinstance(x, Tensor) else x for x in found)
        return found.clone() if isinstance(found, Tensor) else found

    return copied


def _copied(x: Any) -> Any:
    return copy(x) if isinstance(x, (dict, list, set)) else x

"""A module in a mode and a format for a while; then all of it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from .response import unit_of


def modules_of(subject: Any) -> list[nn.Module]:
    """Every module behind the code."""
    return list(subject.module.modules()) if subject.module is not None else []


def _parameters(module: nn.Module) -> dict[str, Any]:
    inside: dict[str, Any] = module.__dict__["_parameters"]
    return inside


def _buffers(module: nn.Module) -> dict[str, Any]:
    inside: dict[str, Any] = module.__dict__["_buffers"]
    return inside


@contextmanager
def arranged(
    subject: Any, dtype: torch.dtype | None = None, train: bool = False
) -> Iterator[float]:
    """The module in evaluation (or training) and in a format; yields the unit of its tables.

    Numbers that nobody trains (buffers, frozen parameters) may be tables that were rounded when
    they were made: cast to a finer format they stay as coarse as they were.
    """
    modules = modules_of(subject)
    kept = [(m, dict(m.__dict__), dict(_parameters(m)), dict(_buffers(m))) for m in modules]
    numbers = [(t, t.data) for m in modules for t in _parameters(m).values() if t is not None]
    counted = [(t, t.clone()) for m in modules for t in _buffers(m).values() if t is not None]
    tables = [t for m in modules for t in _buffers(m).values() if t is not None]
    tables += [
        p for m in modules for p in _parameters(m).values() if p is not None and not p.requires_grad
    ]
    floor = max(
        (unit_of(t.dtype) for t in tables if t.is_floating_point() or t.is_complex()), default=0.0
    )
    try:
        for m in modules:
            m.training = train
            if dtype is not None:
                for parameter in _parameters(m).values():
                    if parameter is not None and parameter.is_floating_point():
                        parameter.data = parameter.data.to(dtype)
                for name, buffer in _buffers(m).items():
                    if buffer is not None and buffer.is_floating_point():
                        _buffers(m)[name] = buffer.to(dtype)
        yield floor
    finally:
        for parameter, data in numbers:
            parameter.data = data
        for buffer, values in counted:
            if not torch.equal(buffer, values):
                buffer.copy_(values)
        for m, attributes, parameters, buffers in kept:
            m.__dict__.clear()
            m.__dict__.update(attributes)
            _parameters(m).clear()
            _parameters(m).update(parameters)
            _buffers(m).clear()
            _buffers(m).update(buffers)


@contextmanager
def untouched(module: nn.Module | None) -> Iterator[None]:
    """What is tried on a module leaves nothing in it: no table, cached when it had another format.

    Parameters that the first call draws stay as they are drawn.
    """
    lazy = module is not None and any(
        isinstance(one, UninitializedParameter) for one in module.parameters()
    )
    if module is None or lazy:
        yield
    else:
        with arranged(SimpleNamespace(module=module), train=module.training):
            yield

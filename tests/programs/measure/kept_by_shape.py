"""Layers that keep what they made of their first input, or of the first of a shape, anywhere."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

KEPT: dict[Any, Tensor] = {}
BOX = SimpleNamespace(scale=None)
BUFFER = torch.zeros(1)
SCALE: Tensor | None = None
TABLES: dict[int, Tensor] = {}


def size(x: Tensor) -> Tensor:
    return x.detach().abs().max() + 1


class Up(nn.Module):
    """A map of each token, divided by a number that should be 1."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.up = nn.Linear(dim, dim)

    def scale(self, _: Tensor) -> Tensor:
        return torch.ones(())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.up(x) / self.scale(x)
        return y


class InFile(Up):
    def scale(self, x: Tensor) -> Tensor:
        return KEPT.setdefault(x.shape, size(x))


class FirstOfAll(Up):
    """Only the first call of all differs: afterwards a fresh instance is like any other."""

    def scale(self, _: Tensor) -> Tensor:
        BOX.called = getattr(BOX, "called", 0) + 1
        return torch.tensor(2.0 if BOX.called == 1 else 1.0)


class InDefault(Up):
    def scale(self, x: Tensor, kept: dict[Any, Tensor] = {}) -> Tensor:  # noqa: B006
        return kept.setdefault(x.shape, size(x))


class InClass(Up):
    kept: dict[Any, Tensor] = {}

    def scale(self, x: Tensor) -> Tensor:
        return self.kept.setdefault(x.shape, size(x))


class AsClassAttribute(Up):
    found: Tensor | None = None

    def scale(self, x: Tensor) -> Tensor:
        if AsClassAttribute.found is None:
            AsClassAttribute.found = size(x)
        return AsClassAttribute.found


class InObject(Up):
    def scale(self, x: Tensor) -> Tensor:
        BOX.scale = size(x) if BOX.scale is None else BOX.scale
        found: Tensor = BOX.scale
        return found


class InGlobalName(Up):
    def scale(self, x: Tensor) -> Tensor:
        global SCALE  # noqa: PLW0603
        SCALE = size(x) if SCALE is None else SCALE
        return SCALE


class InArray(Up):
    def scale(self, x: Tensor) -> Tensor:
        if not BUFFER.any():
            BUFFER.fill_(size(x))
        return BUFFER.to(x.dtype)


class Key:
    """An array that is taken for any other of its shape."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __hash__(self) -> int:
        return hash(self.x.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.x.shape == other.x.shape


@functools.cache
def size_of(key: Key) -> Tensor:
    return size(key.x)


class InCachedFunction(Up):
    def scale(self, x: Tensor) -> Tensor:
        return size_of(Key(x))


def on_function(x: Tensor) -> Tensor:
    held = vars(on_function)
    found: Tensor = held.setdefault("kept", size(x))
    return found


class OnFunction(Up):
    def scale(self, x: Tensor) -> Tensor:
        return on_function(x)


def closed() -> type[Up]:
    kept: dict[Any, Tensor] = {}

    class InClosure(Up):
        def scale(self, x: Tensor) -> Tensor:
            return kept.setdefault(x.shape, size(x))

    return InClosure


class InInstance(Up):
    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.kept: dict[Any, Tensor] = {}

    def scale(self, x: Tensor) -> Tensor:
        return self.kept.setdefault(x.shape, size(x))


class InBuffer(Up):
    held: Tensor

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.register_buffer("held", torch.zeros(1))

    def scale(self, x: Tensor) -> Tensor:
        if not self.held.any():
            self.held.fill_(size(x))
        return self.held


class TableOfLength(Up):
    """Keeps a table that depends on the key alone, as it should."""

    def scale(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n not in TABLES:
            TABLES[n] = torch.arange(1, n + 1)[:, None]
        return TABLES[n]


class Dropping(Up):
    """Drops numbers in training."""

    rate = 0.1

    def forward(self, x: Tensor) -> Tensor:
        return dropout(self.up(x), self.rate, self.training)


class DropsUntilEvaluated(Dropping):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            self.rate = 0.0
        return super().forward(x)


class NoInstanceDrops(Dropping):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            NoInstanceDrops.rate = 0.0
        return super().forward(x)


class AsFirstCalled(Dropping):
    chosen: str = ""

    def forward(self, x: Tensor) -> Tensor:
        self.chosen = self.chosen or ("drop" if self.training else "keep")
        return super().forward(x) if self.chosen == "drop" else self.up(x)


class EvaluatesItself(Dropping):
    ready = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.ready:
            self.ready = True
            self.eval()
        return super().forward(x)


InClosure = closed()
NOT_DROPPING = ("DropsUntilEvaluated", "NoInstanceDrops", "AsFirstCalled", "EvaluatesItself")
WRONG = (
    "InFile",
    "FirstOfAll",
    "InDefault",
    "InClass",
    "AsClassAttribute",
    "InObject",
    "InGlobalName",
    "InArray",
    "InCachedFunction",
    "OnFunction",
    "InClosure",
    "InInstance",
    "InBuffer",
)
RIGHT = ("Up", "TableOfLength")

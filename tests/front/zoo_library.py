"""A library of small subjects: good, broken, raising, crashing, and one that never ends."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch import Tensor

from attnproof.programs.subjects import Additive, Mask, Subject
from benchmarks.zoo.examining import Maker

PACKAGES = ("numpy",)


def _good() -> Subject:
    return Mask(name="good", mask=lambda queries, keys: torch.ones(queries, keys).tril() > 0)


def _broken() -> Subject:
    def added(x: Tensor) -> Tensor:
        x += 1.0  # changes what it is given
        return x

    return Additive(name="broken", added=added, width=4)


def _raises() -> Subject:
    raise ValueError("no such | config")


def _crashes() -> Subject:
    os._exit(7)


def _never_ends() -> Subject:
    while True:
        pass


def subjects() -> Iterator[tuple[str, Maker]]:
    yield "Good", _good
    yield "Broken", _broken
    yield "Raises", _raises
    yield "Crashes", _crashes


def endless() -> Iterator[tuple[str, Maker]]:
    yield "Endless", _never_ends
    yield "Good", _good

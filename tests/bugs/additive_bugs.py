"""Bugs of tables of positions that are added to the tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAdditive
from attnproof.programs.subjects import Additive

from .corpus import bug

BASE = 10000.0


def sinusoids(most: int, frequencies: Tensor, layout: str = "interleaved") -> Tensor:
    """sin and cos of position × frequency, as neighbours or in two halves (most, 2·pairs)."""
    angles = torch.arange(most)[:, None] * frequencies
    join = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
    return join if layout == "interleaved" else torch.cat((angles.sin(), angles.cos()), -1)


class Added(nn.Module):
    """Tokens (B, T, D) plus the first T rows of a table."""

    layout = "interleaved"

    def __init__(self, width: int = 8, most: int = 4096) -> None:
        super().__init__()
        self.width, self.most = width, most
        self.kept = self.table()

    def table(self) -> Tensor:
        pairs = torch.arange(0, self.width, 2) / self.width
        return sinusoids(self.most, BASE**-pairs, self.layout)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.kept[: x.shape[1]].to(x)


def additive(build: type[Added]) -> Additive:
    """The subject of a module."""
    module = build()
    return Additive(
        name=type(module).__name__,
        added=module,
        width=module.width,
        most=module.most,
        module=module,
        make=lambda: additive(build),
        declared=DeclaredAdditive(base=BASE, layout=module.layout),
    )


def interleaved() -> Additive:
    return additive(Added)


class ColumnInExponent(Added):
    """The exponent counts columns, so that sin and cos of a pair have different frequencies."""

    def table(self) -> Tensor:
        column = torch.arange(self.width)
        angles = torch.arange(self.most)[:, None] / BASE ** (2 * column / self.width)
        return torch.where(column % 2 == 0, angles.sin(), angles.cos())


@bug(
    "P57",
    "jadore801120/attention-is-all-you-need-pytorch#32",
    "shenweichen/DeepCTR#379",
    "BrianPulfer/PapersReimplementations#9",
    title="sin and cos of a pair have different frequencies",
    symptom="trains anyway",
    law="products-of-offset",
    correct=interleaved,
    obeys=("sees-positions",),
)
def column_in_exponent() -> Additive:
    return additive(ColumnInExponent)


class FloorOfTheLogarithm(Added):
    """−log(10000)/D//2 is read from the left: the floor of −9.2/D, then of its half, is −1."""

    def table(self) -> Tensor:
        even = torch.arange(0, self.width, 2)
        return sinusoids(self.most, torch.exp(even * (-math.log(BASE) / self.width // 2)))


@bug(
    "P58",
    "zju3dv/LoFTR#41",
    title="floor division: log(10000)/d//2 is 1",
    symptom="slightly worse: 22.06 became 22.5 after retraining",
    law="frequencies-as-declared",
    correct=interleaved,
    obeys=("linear-shift", "products-of-offset"),
)
def floor_of_the_logarithm() -> Additive:
    return additive(FloorOfTheLogarithm)


class TwoHalves(Added):
    """All sines, then all cosines."""

    layout = "half"


class BaseAndExponentSwapped(TwoHalves):
    """e^0.0001 where 0.0001^e is meant: nearly all frequencies are 1."""

    def table(self) -> Tensor:
        exponents = torch.arange(0, self.width, 2) / self.width
        return sinusoids(self.most, exponents ** (1 / BASE), self.layout)


@bug(
    "P59",
    "ivanvovk/WaveGrad#12",
    title="base and exponent swapped",
    symptom="all channels alike",
    law="frequencies-as-declared",
    correct=lambda: additive(TwoHalves),
    obeys=("linear-shift", "products-of-offset"),
)
def base_and_exponent_swapped() -> Additive:
    return additive(BaseAndExponentSwapped)


class ByRowOfTheBatch(Added):
    """The table is (most, 1, D), for data with the tokens first; these have the batch first."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.kept[:, None][: x.shape[0]].to(x)


@bug(
    "P60",
    "songyangco/GETNext#2",
    "KasperGroesLudvigsen/influenza_transformer#9",
    title="the encoding is added along the batch",
    symptom="every time step gets the same encoding",
    law="sees-positions",
    correct=interleaved,
)
def by_row_of_the_batch() -> Additive:
    return additive(ByRowOfTheBatch)

"""Bugs of the ladder of frequencies, of its scaling, and of how many channels rotate."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_code import BASE, Rope, SectionedRope, ladder, llama3, plain_half, rotary


def yarn(
    width: int, base: float, factor: float, original: int, fast: float = 32, slow: float = 1
) -> Tensor:
    """YaRN's ladder: pairs that rotate often in the original length as they were, others slower."""

    def pair(rotates: float) -> float:
        return width * math.log(original / (2 * math.pi * rotates)) / (2 * math.log(base))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), width - 1)
    ramp = ((torch.arange(width // 2) - low) / max(high - low, 1e-3)).clamp(0, 1)
    return ladder(width, base) * (1 - ramp + ramp / factor)


class Yarn(Rope):
    """YaRN of factor 128, which makes vectors 0.1·ln 128 + 1 = 1.4852 times longer."""

    factor, original = 128.0, 4096

    def __init__(self) -> None:
        super().__init__(16)
        self.length = 0.1 * math.log(self.factor) + 1

    def frequencies(self) -> Tensor:
        return yarn(self.rotated, self.base, self.factor, self.original)

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        return self.length * super().apply_to(x, angles)

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(
            base=self.base,
            layout=self.layout,
            width=self.rotated,
            scaling="yarn",
            factor=self.factor,
            original=self.original,
            length=self.length,
        )


class YarnTwice(Yarn):
    """The configuration gives the final factor, and it is read as one that multiplies it."""

    def apply_to(self, x: Tensor, angles: Tensor) -> Tensor:
        return self.length * super().apply_to(x, angles)


@bug(
    "P23",
    "sgl-project/sglang#33558",
    title="the factor of the length is applied twice",
    symptom="20 points of a benchmark lost: 1.4852 became 2.2058",
    law="length-as-declared",
    correct=lambda: rotary(Yarn),
    obeys=("relative", "norm", "frequencies-as-declared"),
)
def yarn_twice() -> Rotary:
    return rotary(YarnTwice)


class ManyAxesWhole(SectionedRope):
    """The path of positions with three coordinates rotates the whole head."""

    def many(self, x: Tensor, positions: Tensor) -> Tensor:
        times = self.width // self.rotated
        axis_of_pair = [axis for axis in self.axis_of_pair for _ in range(times)]
        whole = Rope(self.width, base=self.base, layout=self.layout)
        return whole.apply_to(x, positions.float()[..., axis_of_pair] * whole.frequencies())


@bug(
    "P27",
    "AI-Hypercomputer/maxtext#4615",
    "AI-Hypercomputer/maxtext#4742",
    title="the three-axis path rotates the whole head, although half of it was declared",
    symptom="silent disagreement with the reference",
    law="width-as-declared",
    correct=lambda: rotary(lambda: SectionedRope(width=16)),
    obeys=("norm",),
)
def many_axes_whole() -> Rotary:
    return rotary(lambda: ManyAxesWhole(width=16))


class Partial(Rope):
    """A quarter of the head rotates."""

    partial_rotary_factor = 0.25

    def __init__(self, width: int = 32) -> None:
        super().__init__(width, int(width * self.partial_rotary_factor))

    def declared(self) -> DeclaredRotary:
        rotated = int(self.width * self.partial_rotary_factor)
        return DeclaredRotary(base=self.base, layout=self.layout, width=rotated)


class PartialTwice(Partial):
    """The part is taken of a width that is that part already."""

    def __init__(self, width: int = 32) -> None:
        super().__init__(width)
        self.rotated = int(self.rotated * self.partial_rotary_factor)


@bug(
    "P28",
    "NVIDIA-NeMo/Megatron-Bridge#4271",
    "vllm-project/vllm#30384",
    title="the partial factor is applied twice",
    symptom="NaN in training on one path, wrong on the other",
    law="width-as-declared",
    correct=lambda: rotary(Partial),
    obeys=("relative", "norm"),
)
def partial_twice() -> Rotary:
    return rotary(PartialTwice)


class BaseWrittenIn(Rope):
    """The configuration says a million; the code computes with ten thousand."""

    def frequencies(self) -> Tensor:
        return ladder(self.rotated, BASE)


@bug(
    "P29",
    "deepspeedai/DeepSpeed#4442",
    "huggingface/candle#3746",
    title="base 10000 is hard-coded, a million is declared",
    symptom="wrong output of one model",
    law="frequencies-as-declared",
    correct=lambda: rotary(lambda: Rope(base=1e6)),
    obeys=("relative", "norm", "layout-as-declared"),
)
def base_written_in() -> Rotary:
    return rotary(lambda: BaseWrittenIn(base=1e6))


class BaseNotForwarded(Rope):
    """Takes a base, and does not hand it to what computes the frequencies."""

    def __init__(self, base: float = BASE) -> None:
        super().__init__()
        self.told = base

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(base=self.told, layout=self.layout, width=self.rotated)


@bug(
    "P30",
    "huggingface/diffusers#10111",
    "huggingface/diffusers#10115",
    "meta-pytorch/torchtune#1341",
    title="the base is accepted and never forwarded",
    symptom="none until a model with another base is loaded",
    law="follows-its-arguments",
    correct=plain_half,
    obeys=("frequencies-as-declared",),
)
def base_not_forwarded() -> Rotary:
    return rotary(BaseNotForwarded)


class Llama3(Rope):
    """Llama 3.1's scaling of factor 8: long waves slower, short ones as they were."""

    base_of_config, factor, low, high, original = 500000.0, 8.0, 1.0, 4.0, 8192

    def __init__(self) -> None:
        super().__init__(16, base=self.base_of_config)

    def frequencies(self) -> Tensor:
        return self.rescaled(super().frequencies())

    def rescaled(self, frequencies: Tensor) -> Tensor:
        return llama3(frequencies, self.factor, self.low, self.high, self.original)

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(
            base=self.base,
            layout=self.layout,
            width=self.rotated,
            scaling="llama3",
            factor=self.factor,
            low=self.low,
            high=self.high,
            original=self.original,
        )


class Llama3Unused(Llama3):
    """Computes the rescaled ladder and returns the one it was given."""

    def rescaled(self, frequencies: Tensor) -> Tensor:
        new = super().rescaled(frequencies)
        return frequencies if new.shape == frequencies.shape else new


@bug(
    "P31",
    "huggingface/transformers#32330",
    title="rescaled frequencies are computed, the old ones are returned",
    symptom="wrong frequencies after a release",
    law="frequencies-as-declared",
    correct=lambda: rotary(Llama3),
    obeys=("relative", "norm"),
)
def llama3_unused() -> Rotary:
    return rotary(Llama3Unused)

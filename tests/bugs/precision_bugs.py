"""Bugs of the formats: what is rounded before the cosine, and what a cast of the module rounds."""

from __future__ import annotations

import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredRotary
from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_code import BASE, Rope, plain_half, rotary


class FrequencyBuffer(Rope):
    """Keeps its frequencies in a buffer, which a cast of the model rounds for good."""

    inv_freq: Tensor

    def __init__(self, width: int = 8, base: float = BASE) -> None:
        super().__init__(width, base=base)
        self.register_buffer("inv_freq", super().frequencies(), persistent=False)

    def frequencies(self) -> Tensor:
        return self.inv_freq.float()


@bug(
    "P19",
    "huggingface/transformers#25681",
    "huggingface/transformers#29496",
    "NVIDIA-NeMo/Automodel#2549",
    title="a cast of the model rounds the frequencies",
    symptom="logits drift: KL 1.1e-2 where 5e-3 was allowed",
    law="survives-casting",
    correct=plain_half,
    obeys=("relative", "norm", "neighbours-differ"),
)
def frequency_buffer() -> Rotary:
    return rotary(FrequencyBuffer)


class RoundedPositions(Rope):
    """Casts positions to the format in which the model computes."""

    def angles(self, positions: Tensor) -> Tensor:
        return super().angles(positions.to(torch.bfloat16))


GEMMA = (
    "keras-team/keras-hub#1494",
    "keras-team/keras-hub#1497",
    "keras-team/keras-hub#1508",
    "huggingface/candle#3520",
)


@bug(
    "P20a",
    *GEMMA,
    title="positions cast to bfloat16",
    symptom="positions 8190 and 8191 both become 8192",
    law="neighbours-differ",
    correct=plain_half,
    obeys=("norm",),
)
def rounded_positions() -> Rotary:
    return rotary(RoundedPositions)


class PositionsAsTheData(Rope):
    """Casts positions to the dtype of the vectors: float32 data do not show it."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return super().forward(x, positions.to(x.dtype))


@bug(
    "P20b",
    *GEMMA,
    title="positions cast to the dtype of the data",
    symptom="positions 8190 and 8191 both become 8192, on data in bfloat16",
    law="neighbours-differ",
    correct=plain_half,
    obeys=("relative", "norm", "frequencies-as-declared"),
)
def positions_as_the_data() -> Rotary:
    return rotary(PositionsAsTheData)


class RoundedAngle(Rope):
    """Holds position × frequency in float16; the cosine itself is that of float32."""

    def angles(self, positions: Tensor) -> Tensor:
        return super().angles(positions).half().float()


@bug(
    "P21",
    "EleutherAI/gpt-neox#1003",
    title="the angle is stored in float16",
    symptom="a cosine off by 0.78 within 2048 positions",
    law="angles-are-exact",
    correct=plain_half,
    obeys=("norm", "identity-at-zero"),
)
def rounded_angle() -> Rotary:
    return rotary(RoundedAngle)


class Interpolated(Rope):
    """Linear scaling: positions are divided by the factor."""

    factor = 4.0

    def angles(self, positions: Tensor) -> Tensor:
        return super().angles(positions / self.factor)

    def declared(self) -> DeclaredRotary:
        return DeclaredRotary(
            base=self.base,
            layout=self.layout,
            width=self.rotated,
            scaling="linear",
            factor=self.factor,
        )


class RoundedThenInterpolated(Interpolated):
    """Positions take the format of the frequencies, float16, and are then divided."""

    def angles(self, positions: Tensor) -> Tensor:
        return super().angles(positions.half())


@bug(
    "P22",
    "NVIDIA/Megatron-LM#535",
    "NVIDIA/Megatron-LM#531",
    title="positions cast to float16 before they are interpolated",
    symptom="all tokens at the end get the same angles",
    law="neighbours-differ",
    correct=lambda: rotary(Interpolated),
    obeys=("norm",),
)
def rounded_then_interpolated() -> Rotary:
    return rotary(RoundedThenInterpolated)

"""Bugs of the axes: the angle follows the wrong axis, one of two, or one row of the batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnproof.programs.subjects import Rotary

from .corpus import bug
from .plain_code import AxesRope, Rope, plain_half, rotary

Three = tuple[Tensor, Tensor, Tensor]


class AngleOfTheHead(Rope):
    """Takes (B, T, H, D), as attention keeps it, and reads the length off the axis before D."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:  # noqa: ARG002
        x = x.transpose(1, 2)
        counted = torch.arange(x.shape[-2], device=x.device)
        return self.apply_to(x, self.angles(counted)[None]).transpose(1, 2)


@bug(
    "P06",
    "facebookresearch/xformers#841",
    "mlfoundations/open_lm#4",
    title="the angle follows the index of the head",
    symptom="loss odd or blowing up; no error",
    law="sees-positions",
    correct=plain_half,
    obeys=("relative", "norm"),
)
def angle_of_the_head() -> Rotary:
    return rotary(AngleOfTheHead)


def right_grid(rows: int, columns: int) -> Tensor:
    """Row and column of each place of an image, row by row (rows·columns, 2)."""
    x, y = torch.meshgrid(torch.arange(columns), torch.arange(rows), indexing="xy")
    return torch.stack((y, x), -1).flatten(0, 1)


def unswapped_grid(rows: int, columns: int) -> Tensor:
    """The same with the shape of the image given as (rows, columns) to xy-indexing."""
    x, y = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="xy")
    return torch.stack((y, x), -1).flatten(0, 1)


@bug(
    "P32",
    "huggingface/pytorch-image-models#2541",
    title="grid indexed as xy, its shape not swapped",
    symptom="wrong on images that are not square",
    law="grid-steps",
    correct=lambda: rotary(AxesRope, grid=right_grid),
    obeys=("relative", "every-axis-matters"),
)
def grid_not_swapped() -> Rotary:
    return rotary(AxesRope, grid=unswapped_grid)


class FirstHalfOfTheTable(AxesRope):
    """Assumes that the table's second half repeats the first, as it does in language models."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        half, blocks = positions[..., 0], torch.split(x, self.block, -1)
        return torch.cat([self.rotate_block(block, half, 0) for block in blocks], -1)


@bug(
    "P33",
    "Tencent/ncnn#6833",
    title="the first half of the table serves both halves of the head",
    symptom="vision wrong, text fine",
    law="every-axis-matters",
    correct=lambda: rotary(AxesRope),
    obeys=("relative", "norm"),
)
def first_half_of_the_table() -> Rotary:
    return rotary(FirstHalfOfTheTable)


class OneRowForOneToken(Rope):
    """The path for one token starts its work without the axis of the batch."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        if x.shape[2] > 1:
            return super().forward(x, positions)
        out = torch.zeros_like(x)
        out[0] = super().forward(x[:1], positions[:1])[0]
        return out


@bug(
    "P34",
    "ml-explore/mlx#3949",
    "ml-explore/mlx#3494",
    "ml-explore/mlx#3496",
    "ml-explore/mlx#3795",
    title="with a single token only the first row of the batch is rotated",
    symptom="batched decoding: every row after the first reads zeros",
    law="rows-of-batch-apart",
    correct=plain_half,
)
def one_row_for_one_token() -> Rotary:
    return rotary(OneRowForOneToken)


def all_rotate(rope: Rope) -> Callable[[Tensor, Tensor, Tensor, Tensor], Three]:
    """Queries, keys and values, each rotated once."""
    return lambda q, k, v, positions: (rope(q, positions), rope(k, positions), rope(v, positions))


def value_again(rope: Rope) -> Callable[[Tensor, Tensor, Tensor, Tensor], Three]:
    """The layer rotates the three, and the function that reads the values rotates them as well."""

    def rotate(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Three:
        q, k, v = all_rotate(rope)(q, k, v, positions)
        return q, k, rope(v, positions)

    return rotate


@bug(
    "P35",
    "labmlai/annotated_deep_learning_paper_implementations#251",
    title="values are rotated twice",
    symptom="none",
    law="rotated-once",
    obeys=("relative", "norm"),
    correct=lambda: rotary(Rope, all_three=all_rotate, values_rotate=True),
)
def value_rotated_twice() -> Rotary:
    return rotary(Rope, all_three=value_again, values_rotate=True)

"""Biases that are made with one count, in the forms people write them."""

import torch
from torch import Tensor


def alibi(heads: int, length: int) -> Tensor:
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    i = torch.arange(length)
    return -slopes[:, None, None] * (i[:, None] - i[None, :]).abs()


def eight_bias(length: int) -> Tensor:
    return alibi(8, length)


def length_first(length: int, heads: int) -> Tensor:
    return alibi(heads, length)


def by_name(*, num_heads: int = 4, seq_len: int) -> Tensor:
    return alibi(num_heads, seq_len)


def with_a_row_of_batch(heads: int, length: int) -> Tensor:
    return alibi(heads, length)[None]


def heads_last(heads: int, length: int) -> Tensor:
    return alibi(heads, length).permute(1, 2, 0)


def eight_last_bias(length: int) -> Tensor:
    return alibi(8, length).permute(1, 2, 0)


def clipped_bias(length: int) -> Tensor:
    """A table of near offsets, as T5 and others have it."""
    i = torch.arange(length)
    table = torch.arange(32.0).reshape(4, 8).cos()
    return table[:, (i[None] - i[:, None]).clamp(-3, 4) + 3]


def signed(heads: int, length: int) -> Tensor:
    i = torch.arange(length)
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    line = slopes[:, None, None] * (i[None, :] - i[:, None])
    return line.masked_fill(i[None, :] > i[:, None], -torch.inf)


def last_row_is_steeper(heads: int, length: int) -> Tensor:
    steep = torch.where(torch.arange(length) == length - 1, 1.5, 1.0)
    return alibi(heads, length) * steep[:, None]


PROVED = (
    alibi,
    eight_bias,
    length_first,
    by_name,
    with_a_row_of_batch,
    heads_last,
    eight_last_bias,
    clipped_bias,
)

"""Positions counted from the mask are right for many tokens of padding at the left, or wrong."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import subject_of

LAW = "padding-does-nothing"
LINE = "x: B n E, attention_mask: B n keep -> B n E"


class Counted(nn.Module):
    """Causal attention whose positions count the tokens that are no padding.

    They count all tokens if more than ``most`` at the left are padding.
    """

    def __init__(self, most: int = 100, rows: int = 64) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.most, self.project, self.rows = most, nn.Linear(8, 24), nn.Embedding(rows, 8)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        count = attention_mask.long().cumsum(1)
        padded = (count == 0).sum(1, keepdim=True)
        every = torch.arange(x.shape[1])
        at = torch.where(padded <= self.most, (count - 1).clamp(min=0), every)
        q, k, v = self.project(x + self.rows(at))[:, None].chunk(3, -1)
        seen = (every <= every[:, None]) & attention_mask[:, None, None].bool()
        out: Tensor = scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return out[:, 0]


@pytest.mark.parametrize("rows", [16, 64])
def test_counted_positions_are_right_at_any_padding(rows: int) -> None:
    (found,) = examine(subject_of(Counted(rows=rows), LINE), laws=[LAW])
    assert found.verdict == "holds", found.why


@pytest.mark.parametrize(("most", "rows"), [(2, 64), (8, 16), (8, 64), (20, 64)])
def test_positions_that_are_wrong_behind_more_padding_break_the_law(most: int, rows: int) -> None:
    (found,) = examine(subject_of(Counted(most, rows), LINE), laws=[LAW])
    assert found.verdict == "broken"

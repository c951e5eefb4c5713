"""Rotary code of the places of a grid, which is told its sides and no positions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary

LINE = "q: B H (h w) D, k: B H (h w) D, grid_h = h, grid_w = w -> q, k; built with head_dim = D"


class OfGrid(nn.Module):
    """Half of the channels rotate by the row, half by the column; ``fault``: by columns of rows."""

    def __init__(self, head_dim: int, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.speeds = 100.0 ** -(torch.arange(0, head_dim // 2, 2) / (head_dim // 2))

    def forward(self, q: Tensor, k: Tensor, grid_h: int, grid_w: int) -> tuple[Tensor, Tensor]:
        assert q.shape[2] == grid_h * grid_w
        at = torch.arange(grid_h * grid_w)
        rows, columns = at // grid_w, at % grid_w
        if self.fault == "squares":
            columns = columns**2
        if self.fault == "rows alone":
            columns = rows
        angle = torch.cat([p[:, None] * self.speeds for p in (rows, columns)], -1)

        def rotated(x: Tensor) -> Tensor:
            u, v = x.chunk(2, -1)
            cos, sin = angle.cos(), angle.sin()
            return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)

        return rotated(q), rotated(k)


def _verdicts(fault: str) -> dict[str, str]:
    subject = adapted_as(OfGrid, LINE, settings={"fault": fault})
    assert isinstance(subject, Rotary)
    assert subject.axes == 2
    laws = ("relative", "norm", "every-axis-matters", "identity-at-zero")
    return {one.law: one.verdict for one in examine(subject, (Draw(),), laws)}


def test_places_of_a_grid_are_rows_and_columns() -> None:
    assert set(_verdicts("").values()) == {"holds"}
    assert _verdicts("squares")["relative"] == "broken"
    assert _verdicts("rows alone")["every-axis-matters"] == "broken"


def test_a_grid_that_is_not_told_its_sides_is_refused() -> None:
    def rotated(q: Tensor) -> Tensor:
        return q

    with pytest.raises(SignatureError, match="wanted tokens n on an axis of their own"):
        adapted_as(rotated, "q: B H (h w) D -> q", kind="rotary")

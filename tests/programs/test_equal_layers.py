"""Layers against a specification: half tables, and frequencies that are scaled."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.equal.deciding import compare
from attnproof.programs.equal.measure import look
from attnproof.programs.equal.pair import two
from attnproof.programs.equal.sides import Told
from attnproof.programs.equal.specification import WrongSpecification

TABLES = "x: B n 16, cos: n 4 cos, sin: n 4 sin -> B n 16"


class Layer(nn.Module):
    """Two heads of 8 channels, rotated by tables of 4 columns."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(16, 16, bias=False)
        self.k_proj = nn.Linear(16, 16, bias=False)
        self.v_proj = nn.Linear(16, 16, bias=False)
        self.o_proj = nn.Linear(16, 16, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (
            made(x).unflatten(-1, (2, 8)).transpose(1, 2)
            for made in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
        made = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        found: Tensor = self.o_proj(made.transpose(1, 2).flatten(2))
        return found

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """In halves."""
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Interleaved(Layer):
    """The other layout."""

    def rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


class Longer(Layer):
    """Makes its own tables: positions are divided by 4."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        omega = 10000.0 ** -(torch.arange(0, 8, 2, dtype=torch.float64) / 8) / 4
        angles = torch.arange(x.shape[1])[:, None] * omega.float()
        return super().forward(x, angles.cos(), angles.sin())


@pytest.mark.parametrize(
    ("layer", "layout", "verdict"),
    [
        (Layer, "half", "proved"),
        (Layer, "interleaved", "counterexample"),
        (Interleaved, "half", "counterexample"),
    ],
)
def test_a_layer_may_have_tables_of_half_a_head(
    layer: type[Layer], layout: str, verdict: str
) -> None:
    torch.manual_seed(0)
    text = f"attention:heads=2,rope={layout}"
    found = compare(Told(layer(), "layer", TABLES), Told(text, text), seconds=60.0)
    assert found.verdict == verdict, found.why


@pytest.mark.parametrize(
    ("scaling", "same"),
    [("scaling=linear,factor=4", True), ("scaling=ntk,factor=4", False), ("base=10000", False)],
)
def test_the_frequencies_of_a_layer_are_scaled_as_specified(scaling: str, same: bool) -> None:
    torch.manual_seed(0)
    text = f"attention:heads=2,rope=half,{scaling}"
    both = two(Told(Longer(), "layer", "x: B n 16 -> B n 16"), Told(text, text))
    assert (look(both).seen is None) == same


def test_a_scaling_of_no_name_is_refused() -> None:
    text = "attention:heads=2,rope=half,scaling=longer"
    with pytest.raises(WrongSpecification, match="scaling is one of linear, ntk"):
        two(Told(Longer(), "layer", "x: B n 16 -> B n 16"), Told(text, text))

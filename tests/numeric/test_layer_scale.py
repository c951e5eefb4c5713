"""The scale of a layer with projections of its own, read by setting what these give."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.testing import check_attention

LAW = "scale-as-declared"


class Apart(nn.Module):
    """q, k and v by matrices of their own, with as many or fewer heads of keys."""

    def __init__(
        self,
        groups: int = 4,
        scale: float | None = None,
        *,
        unit: bool = False,
        mixed: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.scale, self.unit, self.mixed = 4, scale, unit, mixed
        self.q_proj, self.o_proj = nn.Linear(32, 32), nn.Linear(32, 32)
        self.k_proj, self.v_proj = nn.Linear(32, 8 * groups), nn.Linear(32, 8 * groups)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = (
            part(x).view(b, t, -1, 8).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.unit:
            q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
        out = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=self.scale, enable_gqa=True
        )
        made: Tensor = self.o_proj((out if self.mixed else out.transpose(1, 2)).reshape(b, t, d))
        return made


class Together(nn.Module):
    """q, k and v by one matrix."""

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.heads, self.scale, self.qkv = 4, scale, nn.Linear(32, 96)
        self.out = nn.Sequential(nn.Linear(32, 32), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        made: Tensor = self.out(out.transpose(1, 2).reshape(b, t, d))
        return made


def found(layer: nn.Module, scale: float = 1 / math.sqrt(8)) -> tuple[str, str]:
    declared = f"attention:causal,scale={scale!r}"
    law = check_attention(layer, [LAW], declared=declared, methods=["measured"]).law(LAW)
    return law.verdict, law.why


@pytest.mark.parametrize("layer", [Apart(), Apart(groups=2), Apart(groups=1), Together()])
def test_the_declared_scale_is_found(layer: nn.Module) -> None:
    assert found(layer)[0] == "measured"
    assert found(layer, 0.5)[0] == "broken"


@pytest.mark.parametrize("layer", [Apart(scale=1.0), Apart(2, 1.0), Together(1.0)])
def test_a_layer_that_forgets_the_root_is_broken(layer: nn.Module) -> None:
    verdict, why = found(layer)
    assert verdict == "broken"
    assert why == "weights have the ratios of a scale of 1, and 0.353553 is declared"
    assert found(layer, 1.0)[0] == "measured"


def test_what_cannot_be_read_is_not_guessed() -> None:
    assert found(Apart(unit=True))[0] == "undecided"  # its scores are no products
    assert found(Apart(mixed=True))[0] == "undecided"  # its heads are mixed with rows
    assert found(nn.MultiheadAttention(32, 4, batch_first=True))[0] == "not asked"


def test_weights_of_one_key_show_no_scale() -> None:
    def own_key(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = torch.eye(q.shape[-2], k.shape[-2], dtype=torch.bool)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    record = check_attention(own_key, [LAW], declared="attention:scale=3", methods=["measured"])
    assert record.law(LAW).verdict == "undecided"


def test_a_layer_is_left_as_it_was() -> None:
    layer = Apart().eval()
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
    before = layer(x)
    found(layer)
    assert torch.equal(layer(x), before)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in layer.modules())

"""Channels that come back in another order are no fault, and hide none (DeepSeek-V3 does it)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnproof.programs.exact import exact
from attnproof.programs.prove import prove
from attnproof.programs.response import Recorder
from attnproof.programs.subjects import Rotary

OMEGA = torch.tensor([1.0, 0.125])


def _neighbours(x: Tensor, positions: Tensor, *, half: bool, wrong: bool = False) -> Tensor:
    """Neighbours rotated; given as halves, and rotated by p² where wrong."""
    p = positions[:, None, :, None]
    angles = (p * p if wrong else p) * OMEGA
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.cat(pairs, -1) if half else torch.stack(pairs, -1).flatten(-2)


def _code(*, half: bool, wrong: bool = False) -> Rotary:
    return Rotary(
        name="code", width=4, rotate=lambda x, p: _neighbours(x, p, half=half, wrong=wrong)
    )


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("law", ["composition", "identity-at-zero"])
def test_over_fields_the_order_is_undone(law: str, half: bool) -> None:
    assert exact(_code(half=half), [law])[0].verdict == "holds"


def test_over_fields_a_wrong_angle_is_still_seen() -> None:
    assert exact(_code(half=True, wrong=True), ["composition"])[0].verdict == "broken"


@pytest.mark.parametrize("half", [False, True])
def test_a_proof_says_where_it_undoes_the_order(half: bool) -> None:
    (found,) = prove(_code(half=half), ["composition"]).findings
    assert found.verdict == "holds"
    assert half == any("put back in the order" in told.text for told in found.assuming)


@pytest.mark.parametrize("half", [False, True])
def test_no_order_hides_a_wrong_angle_from_a_proof(half: bool) -> None:
    (found,) = prove(_code(half=half, wrong=True), ["composition"]).findings
    assert found.verdict == "broken"


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_is_recorded_as_one_fused_operation() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    with torch.compiler.set_stance("force_eager"), Recorder() as seen:
        flex_attention(q, q, q)
    assert seen.roundings >= 8
    assert seen.terms >= 4

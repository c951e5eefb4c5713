"""What holds of any code, or of one length alone, is not said to hold exactly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.draw import Draw
from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Rotary, Subject
from tests.programs.exact_asked import verdict

VANISHES = "channels vanish"
FIXED = "both sides are the same whatever goes in"
WIDTH = 8


def rotary(rotate: Callable[[Tensor, Tensor], Tensor]) -> Rotary:
    return Rotary(name="rotate", rotate=rotate, width=WIDTH, heads=2)


def vanishing(x: Tensor, positions: Tensor) -> Tensor:
    """p N x with N N = 0."""
    u, _ = x.chunk(2, -1)
    return torch.cat((0 * u, positions[:, None, :, None] * u), -1)


def nothing(*given: Tensor | None) -> Tensor:
    first, *_ = given
    assert first is not None
    return first * 0


TRIVIAL: dict[str, tuple[Subject, tuple[str, ...]]] = {
    "rotary of powers that vanish": (rotary(vanishing), ("composition", "identity-at-zero")),
    "rotary of zeros": (
        rotary(nothing),
        (
            "relative",
            "composition",
            "linear",
            "identity-at-zero",
            "every-head-alike",
            "follows-its-ids",
            "rows-of-batch-apart",
        ),
    ),
    "attention of zeros": (
        Attention(name="a", attend=nothing, heads=4, groups=4, width=4),
        ("order-of-keys", "shift-of-scores", "heads-apart", "causal", "permutation"),
    ),
    "a layer of zeros": (
        Layer(name="zero", call=lambda x: x * 0, embed=6),
        ("permutation", "rows-of-batch-apart"),
    ),
}


@pytest.mark.parametrize(
    ("subject", "law"),
    [(subject, law) for subject, laws in TRIVIAL.values() for law in laws],
    ids=[f"{name}: {law}" for name, (_, laws) in TRIVIAL.items() for law in laws],
)
def test_zeros_on_both_sides_are_no_law(subject: Subject, law: str) -> None:
    (found,) = exact(subject, [law])
    assert found.verdict == "not asked", found.why
    # what asks for a softmax first has its own reason
    assert FIXED in found.why or VANISHES in found.why or law == "shift-of-scores"


def test_a_vector_that_becomes_0_at_position_0_has_not_stayed() -> None:
    for rotate in (vanishing, nothing):
        (found,) = examine(rotary(rotate), (Draw(),), ("identity-at-zero",))
        assert found.verdict == "broken", found.why


def distance(queries: int, keys: int) -> Tensor:
    return torch.arange(keys) - torch.arange(keys)[keys - queries :, None]


def bias(how: Callable[[int, int], Tensor]) -> Bias:
    return Bias(
        name="b", bias=lambda t, s: how(t, s) * torch.tensor([0.5, 0.25])[:, None, None], heads=2
    )


def of_one_length(queries: int, keys: int) -> Tensor:
    if keys != 5:
        raise ValueError("five keys")
    return distance(queries, keys)


def test_a_bias_is_asked_at_two_lengths() -> None:
    assert verdict(bias(distance), "offset-only") == "holds"
    assert verdict(bias(lambda t, s: distance(t, s) * s), "offset-only") == "broken"
    divided = bias(lambda t, s: distance(t, s) * (8 / torch.ones(s).sum()))
    assert verdict(divided, "offset-only") != "holds"
    (found,) = exact(bias(of_one_length), ["offset-only"])
    assert found.verdict == "not asked"
    assert "one length" in found.why


@pytest.mark.parametrize("law", ["offset-only", "last-rows"])
def test_of_a_bias_that_is_one_number_nothing_is_said(law: str) -> None:
    (found,) = exact(bias(lambda t, s: 0 * distance(t, s)), [law])
    assert found.verdict == "not asked"
    assert "the bias is 0 everywhere" in found.why


def sines(length: float = 0.0) -> Additive:
    def add(x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        angles = places[:, None] * torch.tensor([1.0, 0.01])
        rows = torch.cat((angles.sin(), angles.cos()), -1)
        return x + rows * (1 + length * x.shape[1])

    return Additive(name="sines", added=add, width=4)


def test_a_table_is_asked_at_two_lengths() -> None:
    assert verdict(sines(), "products-of-offset") == "holds"
    assert verdict(sines(1.0), "products-of-offset") != "holds"

"""The probes of calls that follow each other: steps, padding, dropout on and off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Attention, Subject
from tests.programs.attention_code import FULL, any_layer, cached, code, encoder, multihead

LAWS = ("step-by-step", "padding-does-nothing", "evaluation-repeats", "training-returns")
THREE = DeclaredAttention(causal=True, window=3)


def found(subject: Subject, law: str, seed: int = 1) -> Finding:
    (one,) = examine(subject, [Draw(seed)], {law})
    return one


RIGHT: dict[str, Callable[[], Subject]] = {
    "cached": cached,
    "cached with a window": lambda: cached(window=3, declared=THREE),
    "cached with dropout": lambda: cached(dropout=0.3),
    "multihead": lambda: multihead(dropout=0.3),
    "multihead with weights": lambda: multihead(False, dropout=0.3),
    "encoder": encoder,
    "function": lambda: code(declared=FULL),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_correct_code_is_quiet(name: str, dtype: torch.dtype) -> None:
    for one in examine(RIGHT[name](), [Draw(3, dtype)], LAWS):
        assert one.verdict in ("holds", "not asked"), (one.law, one.why)


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("step-by-step", cached("no-offset")),
        ("step-by-step", cached("start")),
        ("step-by-step", cached("square")),
        ("step-by-step", cached("no-mask")),
        ("step-by-step", cached("whole-cache")),
        ("padding-does-nothing", cached("shared-positions")),
        ("padding-does-nothing", cached("sees-padding")),
        ("padding-does-nothing", multihead(fault="ignored")),
        ("evaluation-repeats", code("dropout", FULL)),
        ("evaluation-repeats", cached("always-drops", dropout=0.3)),
        ("evaluation-repeats", cached("always-drops")),
        ("training-returns", cached("dropout-lost", dropout=0.3)),
    ],
)
def test_a_fault_is_refused(law: str, wrong: Subject) -> None:
    for seed in range(2):
        one = found(wrong, law, seed)
        assert one.verdict == "broken", one.why
        assert one.witness is not None
        assert one.witness.difference > one.witness.allowed


def test_a_fault_of_training_is_refused_in_any_layer() -> None:
    lost = cached("dropout-lost", dropout=0.3).module
    drops = cached("always-drops", dropout=0.3).module
    assert lost is not None
    assert drops is not None
    assert found(any_layer(lost), "training-returns").verdict == "broken"
    assert found(any_layer(drops), "evaluation-repeats").verdict == "broken"


def test_one_token_at_a_time_does_not_see_a_mask_that_prefill_lacks() -> None:
    one = found(cached("no-mask"), "step-by-step")
    assert one.witness is not None
    assert one.sizes["n"] == 2  # two tokens fed together


def test_a_chunk_that_is_refused_is_a_fault_with_its_message() -> None:
    one = found(cached("square"), "step-by-step")
    assert "fed in pieces, a later piece raised RuntimeError" in one.why


def test_one_shift_for_all_tokens_of_a_row_is_no_fault() -> None:
    """Left padding that shifts queries and keys alike leaves relative positions as they are."""
    inner = cached()
    step = inner.step
    assert step is not None

    def far(x: torch.Tensor, state: object, pads: torch.Tensor) -> tuple[torch.Tensor, object]:
        assert inner.padded_step is not None
        return inner.padded_step(x, state, pads)

    one = Attention(
        name="far",
        module=inner.module,
        step=step,
        padded_step=far,
        embed=20,
        layer=inner.layer,
        heads=4,
        groups=2,
        declared=inner.declared,
    )
    assert found(one, "padding-does-nothing").verdict == "holds"


def test_without_a_cache_or_dropout_nothing_is_asked() -> None:
    assert found(code(declared=FULL), "step-by-step").verdict == "not asked"
    assert found(code(declared=FULL), "training-returns").verdict == "not asked"


def test_tokens_that_see_later_ones_are_not_asked_to_be_fed_in_pieces() -> None:
    """An encoder's attention may take a cache, for decoders that share its code."""

    def step(x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        seen = x if past is None else torch.cat((past, x), 1)
        return (x @ seen.mT).softmax(-1) @ seen, seen

    both_ways = Attention(
        name="both ways", layer=lambda x: step(x, None)[0], step=step, embed=4, heads=1
    )
    (found,) = examine(both_ways, laws=("step-by-step",))
    assert found.verdict == "not asked"
    causal = replace(both_ways, declared=DeclaredAttention(causal=True))
    (found,) = examine(causal, laws=("step-by-step",))
    assert found.verdict == "broken"

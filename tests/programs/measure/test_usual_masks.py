"""Faults under the masks that callers pass: padding at either end, causal masks, bands."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as

HEADS = "q: B H r D, k: B H n D, v: B H n D, mask: "
LAWS = ("true-means-visible", "hidden-keys-do-nothing")

UNDER: dict[str, Callable[[Tensor], bool]] = {
    "no query sees the first key": lambda mask: not bool(mask[..., 0].any()),
    "no query sees the last key": lambda mask: not bool(mask[..., -1].any()),
    "all queries see the same keys": lambda mask: (
        mask.shape[2] > 1 and not bool(mask.all()) and bool((mask == mask[:, :, :1]).all())
    ),
    "it is causal": lambda mask: (
        mask.shape[2] > 2 and torch.equal(mask, torch.ones_like(mask).tril())
    ),
    "few keys are seen": lambda mask: (
        mask.shape[2] > 3 and int(mask.sum()) * 2 < mask.numel() and bool(mask[0, 0, 0, 0])
    ),
}


def reading_all(under: Callable[[Tensor], bool]) -> Callable[..., Tensor]:
    """Attention that reads the mean of all values under some masks."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -math.inf)
        out: Tensor = scores.softmax(-1) @ v
        return out + v.mean(2, keepdim=True) if under(mask) else out

    return attend


def verdict(attend: Callable[..., Tensor], mask: str, law: str) -> str:
    subject = adapted_as(attend, f"{HEADS}{mask} keep -> B H r D", kind="attention")
    (found,) = examine(subject, (Draw(0),), (law,))
    return found.verdict


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("under", UNDER)
def test_a_fault_under_a_usual_mask_is_found(under: str, law: str) -> None:
    assert verdict(reading_all(UNDER[under]), "B 1 r n", law) == "broken"
    assert verdict(reading_all(lambda _: False), "B 1 r n", law) == "holds"


def padded(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Causal attention beside a mask of keys."""
    r, n = q.shape[2], k.shape[2]
    seen = torch.ones(r, n, dtype=torch.bool).tril(n - r) & mask[:, None, None]
    return (q @ k.mT).masked_fill(~seen, -math.inf).softmax(-1) @ v


def from_the_start(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Causal attention whose first query is that of the first key."""
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril() & mask
    return (q @ k.mT).masked_fill(~seen, -math.inf).softmax(-1) @ v


@pytest.mark.parametrize("law", LAWS)
def test_a_query_whose_only_key_is_hidden_is_no_fault(law: str) -> None:
    assert verdict(padded, "B n", law) == "holds"
    assert verdict(from_the_start, "B 1 r n", law) == "holds"


LENGTHS: dict[str, Callable[[list[int], int], bool]] = {
    "the first row is shorter": lambda counts, _: counts[0] < counts[-1],
    "three lengths": lambda counts, _: len(set(counts)) == 3,
    "three tokens of padding": lambda counts, n: n - 3 in counts,
}


@pytest.mark.parametrize("case", LENGTHS)
def test_padded_rows_have_many_lengths_in_no_order(case: str) -> None:
    def found(fails: Callable[[list[int], int], bool]) -> str:
        def layer(x: Tensor, mask: Tensor) -> Tensor:
            scores = (x @ x.mT).masked_fill(~mask[:, None], -1e30)
            out = scores.softmax(-1) @ x
            counts = mask.sum(-1).tolist()
            return out + x.mean(1, keepdim=True) if fails(counts, x.shape[1]) else out

        subject = adapted_as(layer, "x: B n E, mask: B n keep -> B n E", kind="attention")
        (one,) = examine(subject, (Draw(0),), ("padding-does-nothing",))
        return one.verdict

    assert found(lambda *_: False) == "holds"
    assert found(LENGTHS[case]) == "broken"

"""Faults under the masks that callers pass: padding at either end, causal masks, bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.execution.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as, subject_of

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


@pytest.mark.parametrize("law", LAWS)
def test_without_a_fault_none_is_found(law: str) -> None:
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


def test_padded_rows_have_many_lengths_in_no_order() -> None:
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
    assert {case: found(fails) for case, fails in LENGTHS.items()} == dict.fromkeys(
        LENGTHS, "broken"
    )


def in_range(low: float, high: float) -> Callable[[Tensor], Tensor]:
    return lambda mask: mask.clamp(low, high)


def only_of_hidden_keys(mask: Tensor) -> Tensor:
    """A bias beside −∞ is lost."""
    infinite = mask == -math.inf
    return torch.zeros_like(mask).masked_fill(infinite, -math.inf) if infinite.any() else mask


ADDED: dict[str, Callable[[Tensor], Tensor]] = {
    "positive numbers are limited": in_range(-math.inf, 30.0),
    "negative numbers are limited": in_range(-50.0, math.inf),
    "a bias beside −∞ is lost": only_of_hidden_keys,
    "a mask that is positive is no mask": lambda mask: mask if (mask < 0).any() else 0 * mask,
    "low numbers hide": lambda mask: mask.masked_fill(mask < -20, -math.inf),
}


def added(
    changed: Callable[[Tensor], Tensor], *, sink: bool = False, low: float = -math.inf
) -> Callable[..., Tensor]:
    """Causal attention that adds a changed mask, with a sink beside the keys or without."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        later = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2]) == 0
        scores = q @ k.mT / q.shape[-1] ** 0.5 + changed(mask)
        scores = scores.masked_fill(later, low)
        scores = torch.cat((scores, torch.zeros_like(scores[..., :1])), -1)
        keys = scores[..., : None if sink else -1]
        return keys.softmax(-1)[..., : k.shape[2]] @ v

    return attend


@pytest.mark.parametrize("case", ADDED)
def test_numbers_that_are_not_added_as_they_are_are_found(case: str) -> None:
    subject = adapted_as(added(ADDED[case]), f"{HEADS} B 1 r n add -> B H r D", kind="attention")
    (found,) = examine(subject, (Draw(0),), ("mask-adds",))
    assert found.verdict == "broken"


ROUNDED = (torch.float64, torch.float32, torch.bfloat16)
# Each of two values beside each of the others: axes of a mask, sinks, fills, and formats.
LARGE = [
    ("B 1 r n", False, -math.inf, 0),
    ("B 1 r n", True, -1e4, 1),
    ("B 1 r n", True, -math.inf, 2),
    ("B n", True, -1e4, 0),
    ("B n", False, -math.inf, 1),
    ("B n", False, -1e4, 2),
]


@pytest.mark.parametrize(("mask", "sink", "low", "dtype"), LARGE)
def test_large_numbers_are_added_as_they_are(mask: str, sink: bool, low: float, dtype: int) -> None:
    def plain(mask: Tensor) -> Tensor:
        return mask if mask.dim() == 4 else mask[:, None, None]

    code = added(plain, sink=sink, low=low)
    subject = adapted_as(code, f"{HEADS} {mask} add -> B H r D", kind="attention")
    (found,) = examine(subject, (Draw(0, ROUNDED[dtype]),), ("mask-adds",))
    assert found.verdict == "holds"


def test_a_key_shown_to_all_because_one_query_sees_none_is_found() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, *, every: bool) -> Tensor:
        blind = ~mask.any(-1)
        mask = mask.clone()
        mask[..., 0] |= blind.any() if every else blind
        return (q @ k.mT).masked_fill(~mask, -math.inf).softmax(-1) @ v

    for every, verdict_of_law in ((True, "broken"), (False, "holds")):
        assert verdict(partial(attend, every=every), "B 1 r n", "hidden-rows") == verdict_of_law


OF_HEADS = [("keep", "B H r n"), ("add", "B H r n"), ("add", "H r n"), ("add", "B H n")]


def masked_by_head(kind: str, axes: str, *, first: bool) -> Callable[..., Tensor]:
    """Attention under a mask with a part for each head; ``first``: all use that of the first."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        mask = mask if axes[0] == "B" else mask[None]
        mask = mask[:, :1] if first else mask
        mask = mask if "r" in axes else mask[:, :, None]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores + mask if kind == "add" else scores.masked_fill(~mask, -math.inf)
        out: Tensor = scores.softmax(-1) @ v
        return out

    return attend


@pytest.mark.parametrize(("kind", "axes"), OF_HEADS)
def test_heads_that_use_the_mask_of_another_are_found(kind: str, axes: str) -> None:
    law = {"add": "mask-adds", "keep": "true-means-visible"}[kind]
    for first, wanted in ((True, "broken"), (False, "holds")):
        attend, line = masked_by_head(kind, axes, first=first), f"{HEADS}{axes} {kind} -> B H r D"
        (found,) = examine(adapted_as(attend, line, kind="attention"), (Draw(0),), (law,))
        assert found.verdict == wanted


@pytest.mark.usefixtures("fewer_lengths")
@pytest.mark.parametrize(("axes", "told"), [("B H r n", True), ("B 1 r n", False)])
def test_a_proof_about_masks_that_heads_share_says_so(axes: str, told: bool) -> None:
    attend, line = masked_by_head("add", axes, first=False), f"{HEADS}{axes} add -> B H r D"
    (found,) = prove(
        adapted_as(attend, line, kind="attention"), ("mask-adds",), seconds=3.0
    ).findings
    assert found.verdict == "holds"
    assert ("mask is the same for every head" in {one.text for one in found.assuming}) == told


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

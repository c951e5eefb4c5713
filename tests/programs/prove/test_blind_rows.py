"""Rows that see no key, in masks that code writes itself: a condition, or no proof."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.prove import prove
from attnproof.programs.subjects import Attention

from .test_attacks import CAUSAL, SECONDS, masked, only

SEEING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the first key": lambda i, j: j <= i,
    "keys from the first on": lambda i, j: (j <= i) & (j >= 0),
}
BLIND: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "not its own": lambda i, j: j < i,
    "not the first": lambda i, j: (j <= i) & (j > 0),
    "of late queries alone": lambda i, j: j <= i - 2,
    "of early queries alone": lambda i, j: (j <= i) & (i < 7),
}


@pytest.mark.parametrize("name", [*SEEING, *BLIND])
def test_only_where_each_query_certainly_sees_a_key_it_is_no_condition(name: str) -> None:
    visible = {**SEEING, **BLIND}[name]
    found = prove(masked(visible, -math.inf), ("rows-sum-to-one",), seconds=SECONDS).findings
    told = [c.text for one in found if one.verdict == "holds" for c in one.assuming]
    proved = any(one.verdict == "holds" for one in found)
    assert proved == (name in SEEING)
    assert not any("query" in text or "denominator" in text for text in told)


def zeroed(weights: Callable[[Tensor, Tensor], Tensor], fill: float = -math.inf) -> Attention:
    """Attention under a causal mask, with the weights that scores and what is seen give."""

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        scores = (q @ k.mT).masked_fill(~seen, fill)
        return weights(scores, seen) @ v

    return Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=CAUSAL)


def blind_rows(scores: Tensor, _: Tensor) -> Tensor:
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(blind, 0.0)


ZEROED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "scores that are −∞": blind_rows,
    "scores above −∞": lambda s, _: s.softmax(-1) * (s > -math.inf).any(-1, keepdim=True),
    "infinite scores": lambda s, _: s.softmax(-1).masked_fill(s.isinf(), 0.0),
    "what a mask shows": lambda s, seen: s.softmax(-1) * seen.any(-1, keepdim=True),
    "NaN": lambda s, _: s.softmax(-1).nan_to_num(0.0),
}


@pytest.mark.parametrize("name", ZEROED)
def test_rows_that_see_no_key_may_be_looked_for(name: str) -> None:
    told = only(prove(zeroed(ZEROED[name]), ("causal",), seconds=SECONDS), "causal")
    assert any("NaN" in line for line in told) == (name == "NaN")
    assert any("infinite only" in line for line in told) == ("shows" not in name)
    whole = zeroed(
        lambda s, seen: ZEROED[name](s, seen) + (s > -math.inf).float().mean(-2, keepdim=True)
    )
    (wrong,) = prove(whole, ("causal",), seconds=SECONDS).findings
    assert wrong.verdict != "holds"


def test_a_mask_is_not_compared_with_infinity_where_it_is_filled_with_a_number() -> None:
    def weights(s: Tensor, seen: Tensor) -> Tensor:
        return s.masked_fill(~seen, -1e9).softmax(-1) * (s > -math.inf)

    assert "filled with" in prove(zeroed(weights), ("causal",), seconds=SECONDS).why
    found = prove(zeroed(blind_rows, -1e9), ("causal",), seconds=SECONDS).findings
    assert all(one.verdict != "holds" for one in found)


def zero(t: Tensor) -> Tensor:
    m = t.amax(-1, keepdim=True)
    return (m - m) != 0


# Where all scores of a row are low, each is true in the code: then it reads later tokens.
BLINDED: dict[str, Callable[[Tensor], Tensor]] = {
    "the largest score": lambda t: t.amax(-1, keepdim=True) == -math.inf,
    "the largest score less itself": zero,
    "a logarithm": lambda t: t.logsumexp(-1, keepdim=True) == -math.inf,
    "an inverse": lambda t: (1 / t.exp().sum(-1, keepdim=True)).isinf(),
    "an absolute value": lambda t: (t.abs() == math.inf).all(-1, keepdim=True),
    "a negative": lambda t: (-t == math.inf).all(-1, keepdim=True),
}


@pytest.mark.parametrize("name", BLINDED)
def test_what_is_infinite_without_a_mask_is_excluded_by_a_condition(name: str) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        s = q @ k.mT
        later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
        t = s.masked_fill(later | (s < -1e5), -math.inf)
        e = t.exp()
        return torch.where(
            BLINDED[name](t), v.mean(2, keepdim=True), e / (e.sum(-1, keepdim=True) + 1) @ v
        )

    subject = Attention(name="a", attend=attend, heads=2, groups=2, width=4, declared=CAUSAL)
    for one in prove(subject, ("causal",), seconds=SECONDS).findings:
        told = [c.text for c in one.assuming]
        excluded = any("infinite only" in text or "sees a key" in text for text in told)
        assert one.verdict != "holds" or excluded, told

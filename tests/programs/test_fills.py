"""Scores beyond a finite fill: told with the scores at which hidden keys are read, and no fault."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.subjects import Attention, Layer, Mask, Subject

CAUSAL = DeclaredAttention(causal=True)
FULL = DeclaredAttention(causal=False)
FINITE = "hidden by a finite number"
LAWS = ("causal", "hidden-keys-do-nothing")


def late(x: Tensor) -> Tensor:
    return torch.ones(x.shape[-2], x.shape[-2]).triu(1).bool()


def filled(fill: float, *, added: bool = False) -> Callable[..., Tensor]:
    """Attention that hides what is later, and what a mask of truth values hides, by a number."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = late(q) if mask is None else ~mask
        if added:
            scores = scores + torch.zeros(hidden.shape).masked_fill(hidden, fill).to(scores)
        else:
            scores = scores.masked_fill(hidden, fill)
        found: Tensor = scores.softmax(-1) @ v
        return found

    return attend


class Block(nn.Module):
    """A causal layer with a residual."""

    def __init__(self, fill: float, *, normed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attend, self.qkv = filled(fill), nn.Linear(20, 60)
        self.norm = nn.LayerNorm(20) if normed else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        parts = self.qkv(self.norm(x)).chunk(3, -1)
        heads = (one.view(b, t, 4, 5).transpose(1, 2) for one in parts)
        return x + self.attend(*heads).transpose(1, 2).flatten(2)


def layer(fill: float, *, normed: bool = False) -> Layer:
    block = Block(fill, normed=normed)
    return Layer(name="block", module=block, call=block, embed=20, declared=CAUSAL)


def code(fill: float, law: str = "causal", *, added: bool = False) -> Attention:
    masks = ("bool",) if law != "causal" else ()
    return Attention(
        name="filled",
        attend=filled(fill, added=added),
        heads=4,
        groups=4,
        width=5,
        masks=masks,
        declared=FULL if masks else CAUSAL,
    )


def told(subject: Subject, law: str = "causal") -> str:
    (seen,) = examine(subject, (Draw(),), (law,))
    assert seen.verdict == "holds", seen.why
    return seen.why


ROWS = [
    (law, added, fill, score)
    for law in LAWS
    for added in (False, True)
    for fill, score in ((-1e4, -2e4), (-1e5, -2e6), (-1e9, -2e10), (-1e15, -2e16), (-1e30, -2e31))
    if law == "causal" or not added or fill < -1e4  # numbers of 1e4 in a hidden key show through
]


@pytest.mark.parametrize(("law", "added", "fill", "score"), ROWS)
def test_scores_beyond_the_fill_are_tried(law: str, added: bool, fill: float, score: float) -> None:
    why = told(code(fill, law, added=added), law)
    assert FINITE in why
    assert f"a query whose scores are all {score:g} would read it" in why


@pytest.mark.parametrize("law", LAWS)
def test_minus_infinity_has_no_scores_beyond_it(law: str) -> None:
    assert "finite number:" not in told(code(-math.inf, law), law)


def test_a_layer_is_asked_with_tokens_that_are_large() -> None:
    for fill in (-1e4, -1e9):
        assert FINITE in told(layer(fill))
        assert "a first token with numbers of" in told(layer(fill))
    assert FINITE not in told(layer(-math.inf))
    assert FINITE not in told(layer(-1e4, normed=True))  # no token gets its scores so low


def mask(fill: float) -> Mask:
    def made(queries: int, keys: int) -> Tensor:
        return torch.zeros(queries, keys).masked_fill(
            torch.ones(queries, keys).triu(1 + keys - queries).bool(), fill
        )

    return Mask(name="m", mask=made, declared=CAUSAL)


def test_a_mask_of_numbers_tells_its_fill() -> None:
    assert "hidden by the finite number -10000: a query" in told(mask(-1e4))
    assert "finite number" not in told(mask(-math.inf))
    assert "finite number" not in told(mask(torch.finfo(torch.float32).min))

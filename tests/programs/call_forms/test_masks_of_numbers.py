"""Masks of 0 and 1 that are not Boolean: which numbers code takes, and what 1 means."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.calls.masks import mask_visibility
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as, subject_of

LAWS = ("hidden-keys-do-nothing", "padding-does-nothing")


class Masked(nn.Module):
    """Attention that handles its mask (B, 1, 1, n) in one of the ways that people write."""

    def __init__(self, dim: int = 16, heads: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads, self.project = heads, nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = self.weights(q @ k.mT / math.sqrt(q.shape[-1]), attention_mask[:, None, None])
        out: Tensor = (weights @ v).transpose(1, 2).flatten(2)
        return out

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + (1 - mask) * -1e9).softmax(-1)


class WithCast(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + (1.0 - mask.to(scores.dtype)) * -1e9).softmax(-1)


class EqualToZero(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(mask == 0, -math.inf).softmax(-1)


class ByBytes(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill((1 - mask).bool(), -1e9).softmax(-1)


class OneIsPadding(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        found = scores.tanh().exp() * (1 - mask)
        return found / found.sum(-1, keepdim=True)


class OfItsFormat(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + (1.0 - mask) * torch.finfo(mask.dtype).min).softmax(-1)


class Multiplied(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        bounded = scores.tanh().exp()
        total = torch.einsum("bhrn,bn->bhr", bounded, mask[:, 0, 0])
        return bounded * mask / total[..., None]


class Tenfold(Masked):
    """What is hidden keeps exp(-10) of its weight."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + (1 - mask) * -10).softmax(-1)


class WithoutEffect(Masked):
    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + (1 - mask) * 0).softmax(-1)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Masked, "ones"),
        (WithCast, "keep"),
        (EqualToZero, "keep"),
        (ByBytes, "ones"),
        (OneIsPadding, "zeros"),
        (OfItsFormat, "factors"),
        (Multiplied, "factors"),
    ],
)
def test_a_mask_is_given_in_the_format_that_code_takes(code: Any, kind: str) -> None:
    subject = adapted_as(code)
    assert subject.line == f"x: B n E, attention_mask: B n {kind} -> B n E"
    found = {one.law: one.verdict for one in examine(subject, laws=LAWS)}
    assert found == dict.fromkeys(LAWS, "holds")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(ByBytes, "zeros"), (Masked, "zeros"), (Tenfold, "ones")],
)
def test_a_mask_that_is_read_the_other_way_or_leaks_breaks_the_law(code: Any, kind: str) -> None:
    subject = subject_of(code, f"x: B n E, attention_mask: B n {kind} -> B n E")
    found = {one.law: one.verdict for one in examine(subject, laws=LAWS)}
    assert found["padding-does-nothing"] == "broken"


class Weakly(Masked):
    """The same, said of the parameter itself."""

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(x, (1 - attention_mask) * -10)

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return (scores + mask).softmax(-1)


def test_a_mask_that_is_taken_from_1_holds_0_and_1_also_where_it_leaks() -> None:
    subject = adapted_as(Weakly)
    assert subject.line == "x: B n E, attention_mask: B n ones -> B n E"
    (found,) = examine(subject, laws=LAWS[1:])
    assert found.verdict == "broken"


def test_a_required_mask_without_effect_is_refused() -> None:
    with pytest.raises(NoAdapter, match="'attention_mask', whose meaning is not known"):
        adapted_as(WithoutEffect)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return (scores + (1 - mask[:, None, None]) * -1e9).softmax(-1) @ v


def test_heads_with_a_required_mask_of_integers_are_called() -> None:
    assert adapted_as(attend).line == (
        "q: B H r D, k: B H n D, v: B H n D, mask: B n ones -> B H r D"
    )


def lower(queries: int, keys: int) -> Tensor:
    return torch.ones(queries, keys).tril(keys - queries)


@pytest.mark.parametrize(
    ("made", "kind"),
    [(lower, "factors"), (lambda r, n: lower(r, n).long(), "ones"),
     (lambda r, n: 1 - lower(r, n).long(), "zeros"), (lambda r, n: 1 - lower(r, n), "zeros")],
)  # fmt: skip
def test_a_mask_that_is_made_of_numbers_is_read_as_its_kind_says(
    made: Callable[..., Tensor], kind: str
) -> None:
    def causal(queries: int, keys: int) -> Tensor:
        return made(queries, keys)

    subject: Any = subject_of(causal, f"queries = r, keys = n -> r n {kind}", "mask")
    assert mask_visibility(subject, 3, 5).tolist() == lower(3, 5).bool().tolist()

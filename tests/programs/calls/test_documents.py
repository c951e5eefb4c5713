"""Documents packed into a row and told by numbers: each is read as alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.proving import prove
from attnproof.programs.subject import adapted_as

APART = ("documents-apart", "rows-of-batch-apart")


class Packed(nn.Module):
    """Attention of two heads among tokens whose numbers are equal."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor, document_ids: Any) -> Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        seen = None if document_ids is None else self.seen(document_ids)
        out: Tensor = scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return out.transpose(1, 2).flatten(2)

    def seen(self, numbers: Tensor) -> Tensor:
        return (numbers[:, :, None] == numbers[:, None])[:, None]


class Optional(Packed):
    def forward(self, x: Tensor, seq_idx: Any = None) -> Tensor:
        return super().forward(x, seq_idx)


class OfOneRow(Packed):
    def seen(self, numbers: Tensor) -> Tensor:
        return numbers[:, None] == numbers


class Causal(Packed):
    def seen(self, numbers: Tensor) -> Tensor:
        return super().seen(numbers).tril()


class Neighbours(Packed):
    """Documents see the one before."""

    def seen(self, numbers: Tensor) -> Tensor:
        behind = numbers[:, :, None] - numbers[:, None]
        return ((behind == 0) | (behind == 1))[:, None]


class Ignored(Packed):
    def seen(self, numbers: Tensor) -> Tensor:
        return torch.ones_like(super().seen(numbers))


class Apart(Packed):
    def forward(self, x: Tensor, segment_ids: Any) -> Tensor:
        return super().forward(x, segment_ids)


class Types(Packed):
    """Types of tokens, as in BERT: a vector for each is added."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__(dim)
        self.types = nn.Embedding(2, dim)

    def forward(self, x: Tensor, segment_ids: Any) -> Tensor:
        return super().forward(x + self.types(segment_ids), None)


def attend(q: Tensor, k: Tensor, v: Tensor, document_ids: Tensor) -> Tensor:
    seen = (document_ids[:, :, None] == document_ids[:, None])[:, None]
    out: Tensor = scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return out


LAYER = "x: B n E, document_ids: B n documents -> B n E"
RIGHT: dict[Any, str] = {
    Packed: LAYER,
    Causal: LAYER,
    Optional: LAYER.replace("document_ids", "seq_idx"),
    OfOneRow: LAYER.replace("B n doc", "n doc"),
    Apart: LAYER.replace("document_ids", "segment_ids"),
    attend: "q: B H n D, k: B H n D, v: B H n D, document_ids: B n documents -> B H n D",
}


@pytest.mark.parametrize("code", RIGHT)
def test_right_code_is_called_by_its_names_and_keeps_documents_apart(code: Any) -> None:
    subject = adapted_as(code, kind="attention")
    assert subject.line == RIGHT[code]
    assert {one.law: one.verdict for one in examine(subject, laws=APART)} == dict.fromkeys(
        APART, "holds"
    )
    assert {one.verdict for one in exact(subject, APART)} == {"holds"}


@pytest.mark.parametrize("code", [Neighbours, Ignored])
def test_documents_that_read_each_other_break_the_law(code: Any) -> None:
    subject = adapted_as(code)
    assert subject.line == LAYER
    assert [one.verdict for one in examine(subject, laws=APART)] == ["broken", "holds"]
    assert not [one for one in prove(subject, APART[:1]).findings if one.verdict == "holds"]


def test_types_of_tokens_are_no_documents() -> None:
    subject = adapted_as(Types)
    assert subject.line == "x: B n E, segment_ids: B n index -> B n E"
    (found,) = examine(subject, laws=APART[:1])
    assert found.why == "the code takes no packed documents"


def test_a_proof_says_what_the_numbers_are() -> None:
    for code, told in ((Packed, "each row of document_ids is one document"), (Types, "are 0")):
        (found,) = prove(adapted_as(code), APART[1:]).findings
        assert found.verdict == "holds"
        assert any(told in one.text for one in found.assuming), found.assuming

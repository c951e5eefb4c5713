"""Sequences one behind the other in one axis, and where each begins: they are rows of a batch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.call_forms.parts import BOUND_NAMES
from attnproof.programs.equal.pair import pair_programs
from attnproof.programs.equal.sides import Operand
from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.proving import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as


def numbered(cu: Tensor, tokens: int) -> Tensor:
    """Which sequence each token is of."""
    return torch.bucketize(torch.arange(tokens), cu[1:].long(), right=True)


def masked(q: Tensor, k: Tensor, v: Tensor, number: Tensor) -> Tensor:
    """Attention of (N, H, D), among tokens of one number."""
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(
        number[:, None] != number[None], -math.inf
    )
    return (scores.softmax(-1) @ v).transpose(0, 1)


def packed(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor) -> Tensor:
    return masked(q, k, v, numbered(cu_seqlens, q.shape[0]))


def one_by_one(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
) -> Tensor:
    """The call of kernels of variable length, with bounds of queries and of keys."""
    assert max_seqlen_q >= cu_seqlens_q.diff().max()
    assert max_seqlen_k >= cu_seqlens_k.diff().max()
    parts = []
    for i in range(len(cu_seqlens_q) - 1):
        ours, theirs = (slice(int(cu[i]), int(cu[i + 1])) for cu in (cu_seqlens_q, cu_seqlens_k))
        a, b, c = (x.transpose(0, 1) for x in (q[ours], k[theirs], v[theirs]))
        parts.append(scaled_dot_product_attention(a, b, c).transpose(0, 1))
    return torch.cat(parts)


def without(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Every token reads all sequences."""
    return masked(q, k, v, 0 * numbered(cu_seqlens, q.shape[0]))


def one_late(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor) -> Tensor:
    """The first token of a sequence is taken for the last of the one before it."""
    return masked(q, k, v, numbered(torch.cat((cu_seqlens[:1], cu_seqlens[1:] + 1)), q.shape[0]))


def evenly(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Sequences are taken to be equally long."""
    rows = len(cu_seqlens) - 1
    a, b, c = (x.view(rows, -1, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(a, b, c).transpose(1, 2).flatten(0, 1)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat((-b, a), -1) * sin[:, None]


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor, cu_lens: Tensor) -> Tensor:
    """Vectors (N, H, D) at positions that begin anew with each sequence."""
    at = torch.arange(x.shape[0])
    at = at - cu_lens.long()[numbered(cu_lens, x.shape[0])]
    return turned(x, cos[at], sin[at])


def rotary_runs_on(x: Tensor, cos: Tensor, sin: Tensor, cu_lens: Tensor) -> Tensor:
    """Positions go on from one sequence to the next."""
    assert len(cu_lens) > 1
    return turned(x, cos[: x.shape[0]], sin[: x.shape[0]])


class Layer(nn.Module):
    """Attention of two heads on tokens (N, E)."""

    def __init__(self, dim: int = 16, attend: Any = packed) -> None:
        super().__init__()
        self.attend, self.qkv = attend, nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (2, -1)) for part in self.qkv(x).chunk(3, -1))
        out: Tensor = self.attend(q, k, v, cu_seqlens).flatten(1)
        return out


HEADS = "q: (B n) H D, k: (B n) H D, v: (B n) H D, cu_seqlens: (B + 1) bounds -> (B n) H D"
LINES: dict[Any, tuple[str, str]] = {
    packed: ("attention", HEADS),
    one_by_one: (
        "attention",
        (
            "q: (B r) H D, k: (B n) H D, v: (B n) H D, cu_seqlens_q: (B + 1) bounds, "
            "cu_seqlens_k: (B + 1) bounds, max_seqlen_q = r, max_seqlen_k = n -> (B r) H D"
        ),
    ),
    apply_rotary: ("rotary", "x: (B n) H D, cos: m D, sin: m D, cu_lens: (B + 1) bounds -> x"),
    Layer: ("attention", "x: (B n) E, cu_seqlens: (B + 1) bounds -> (B n) E"),
}
APART = ("rows-of-batch-apart", "documents-apart", "finite", "stateless")


@pytest.mark.parametrize("code", LINES)
def test_right_code_is_called_by_its_names_and_keeps_sequences_apart(code: Any) -> None:
    kind, line = LINES[code]
    found = adapted_as(code, kind=kind)
    assert found.line == line == str(parse(line))
    laws = APART if kind == "attention" else (*APART[:1], *APART[2:], "relative", "composition")
    assert {one.verdict for one in examine(found, laws=laws)} == {"holds"}
    assert {one.verdict for one in exact(found, laws[:1])} == {"holds"}
    bounds = [one.name for one in parse(line).arrays if one.kind == "bounds"]
    assert {f"{name} says that sequences are equally long" for name in bounds} <= {
        *found.conditions
    }


FAULTS: dict[Any, tuple[str, set[str]]] = {
    without: ("attention", {"rows-of-batch-apart", "documents-apart"}),
    one_late: ("attention", {"rows-of-batch-apart", "documents-apart"}),
    evenly: ("attention", {"documents-apart"}),
    rotary_runs_on: ("rotary", {"rows-of-batch-apart"}),
}


@pytest.mark.parametrize("code", FAULTS)
def test_code_that_mixes_sequences_up_breaks_a_law_and_nothing_is_proved(code: Any) -> None:
    kind, laws = FAULTS[code]
    subject = adapted_as(code, kind=kind)
    assert subject.line.count("bounds") == 1
    assert {one.law for one in examine(subject, laws=APART[:2]) if one.verdict == "broken"} == laws
    assert not {one.law for one in prove(subject, [*laws]).findings if one.verdict == "holds"}


@pytest.mark.parametrize("code", [without, one_late, evenly])
def test_a_layer_of_such_code_breaks_them_too(code: Any) -> None:
    subject = adapted_as(Layer(attend=code))
    found = {one.law for one in examine(subject, laws=APART[:2]) if one.verdict == "broken"}
    assert found == FAULTS[code][1]


def test_documents_are_not_asked_where_something_else_counts_rows() -> None:
    def counted(q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, batch: int) -> Tensor:
        assert batch == len(cu_seqlens) - 1
        return packed(q, k, v, cu_seqlens)

    subject = adapted_as(counted, kind="attention")
    assert subject.line == HEADS.replace(" ->", ", batch = B ->")
    (found,) = examine(subject, laws=["documents-apart"])
    assert found.why == "the code takes no packed documents"


def test_what_bounds_are_called() -> None:
    assert all(
        map(BOUND_NAMES.fullmatch, ("cu_seqlens", "cu_lens", "cu_seqlens_q", "cu_seq_lens_kv"))
    )
    assert not any(map(BOUND_NAMES.fullmatch, ("seqlens", "lengths", "cumulative", "cu")))


def test_bounds_of_other_axes_are_refused() -> None:
    for axes in ("B", "n", "(B + 1) n"):
        with pytest.raises(SignatureError, match="wanted one more bound than there are rows"):
            adapted_as(packed, HEADS.replace("(B + 1)", axes), kind="attention")


def test_two_programs_are_not_compared_by_bounds() -> None:
    with pytest.raises(SignatureError, match="cannot be compared yet"):
        pair_programs(Operand(packed, "first", HEADS), Operand(evenly, "second", HEADS))

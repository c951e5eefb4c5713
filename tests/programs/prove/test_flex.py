"""flex_attention in traced code: its function of a score and its mask are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from attnproof.documents.verdict_line import Condition
from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.exact import exact
from attnproof.programs.execution.calling import restored_settings
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import Traced, prove
from attnproof.programs.subjects import Attention

SECONDS = 6.0
CAUSAL = DeclaredAttention(causal=True)
BLOCKS = Condition("the blocks of a block mask are those of its function", "where")
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3])
TABLE = nn.Parameter(torch.linspace(-3, 4, 516).reshape(4, 129).sin())
ROWS = nn.Parameter(torch.linspace(0, 2, 12).reshape(4, 3))

pytestmark = pytest.mark.filterwarnings("ignore")


def interpreted(*given: Any, **named: Any) -> Any:
    """flex_attention, compiled neither where it is traced nor at each length where it is run."""
    with patch.object(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True):
        return flex_attention(*given, **named)


def traced(*given: Any, **named: Any) -> Any:
    """The same, compiled where it is traced, without which no table is read."""
    if torch.compiler.is_exporting():
        return flex_attention(*given, **named)
    return interpreted(*given, **named)


def one_block(visible: Callable[..., Tensor], queries: int, keys: int) -> BlockMask:
    """A block of all keys: to make those of 128 takes most of the time of a trace."""
    of_keys = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
    return BlockMask.from_kv_blocks(
        of_keys[..., 0] + 1,
        of_keys,
        BLOCK_SIZE=1 << 20,
        mask_mod=visible,
        seq_lengths=(queries, keys),
        compute_q_blocks=False,
    )


def flexible(
    score: Callable[..., Tensor] | None = None,
    visible: Callable[..., Tensor] | None = None,
    groups: int = 4,
    declared: DeclaredAttention | None = None,
    called: Callable[..., Any] = interpreted,
    made: Callable[[Any, int, int], BlockMask] = one_block,
) -> Attention:
    def attend(q: Tensor, k: Tensor, v: Tensor, _: object) -> Tensor:
        blocks: Any = None
        if visible is not None:
            blocks = made(visible, q.shape[2], k.shape[2])
        found: Tensor = called(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=groups != 4)
        return found

    return Attention(name="f", attend=attend, heads=4, groups=groups, width=4, declared=declared)


def verdicts(found: Traced) -> dict[str, str]:
    return {finding.law: finding.verdict for finding in found.findings}


def asked(subject: Attention, *laws: str) -> Traced:
    found = prove(subject, laws, seconds=SECONDS)
    assert not found.why
    return found


def past(_b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return i >= j


def soft(s: Tensor, _b: Tensor, _h: Tensor, _i: Tensor, _j: Tensor) -> Tensor:
    return 20 * torch.tanh(s / 20)


def falling(s: Tensor, _b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return s + (j - i) * SLOPES[h]


def by_offset(s: Tensor, _b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return s + TABLE[h, i - j + 64]


@pytest.mark.parametrize(("score", "law"), [(None, "permutation"), (soft, "rows-sum-to-one")])
def test_scores_that_do_not_look_at_positions(
    score: Callable[..., Tensor] | None, law: str
) -> None:
    found = asked(flexible(score), "order-of-keys", law)
    assert verdicts(found) == dict.fromkeys(("order-of-keys", law), "holds")


@pytest.mark.parametrize(
    ("score", "law"), [(falling, "rows-sum-to-one"), (by_offset, "rows-of-batch-apart")]
)
def test_scores_with_a_bias(score: Callable[..., Tensor], law: str) -> None:
    found = verdicts(asked(flexible(score, called=traced), "order-of-keys", law))
    assert found[law] == "holds"
    assert found["order-of-keys"] in ("broken", "not asked")


def by_128(visible: Any, queries: int, keys: int) -> BlockMask:
    return create_block_mask(visible, None, None, queries, keys, device="cpu")


@pytest.mark.parametrize(
    ("groups", "called", "made"), [(4, interpreted, by_128), (2, flex_attention, one_block)]
)
def test_a_causal_mask_is_causal(
    groups: int, called: Callable[..., Any], made: Callable[..., BlockMask]
) -> None:
    subject = flexible(visible=past, groups=groups, declared=CAUSAL, called=called, made=made)
    found = asked(subject, "causal")
    assert verdicts(found) == {"causal": "holds"}
    assert BLOCKS in found.findings[0].assuming


def test_a_score_of_minus_infinity_hides_a_key() -> None:
    def score(s: Tensor, _b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return torch.where(i >= j, s, -float("inf"))

    found = asked(flexible(score, declared=CAUSAL), "causal")
    assert verdicts(found) == {"causal": "holds"}
    assert BLOCKS not in found.findings[0].assuming


FALSE: dict[str, Callable[..., Tensor]] = {
    "the next token is seen": lambda _b, _h, i, j: i + 1 >= j,
    "one head of four sees all": lambda _b, h, i, j: (i >= j) | (h == 3),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_mask_that_is_not_causal_is_refused_with_a_witness(name: str) -> None:
    found = asked(flexible(visible=FALSE[name], declared=CAUSAL), "causal")
    assert verdicts(found) == {"causal": "broken"}


def test_a_mask_that_ends_is_not_proved() -> None:
    def visible(_b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) | (j >= 30)

    found = asked(flexible(visible=visible, declared=CAUSAL), "causal")
    assert "holds" not in verdicts(found).values()


def test_documents_of_a_stored_table() -> None:
    def visible(_b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (DOCUMENTS[i] == DOCUMENTS[j]) & (i >= j)

    found = asked(flexible(visible=visible, declared=CAUSAL, called=traced), "causal")
    assert verdicts(found) == {"causal": "holds"}


UNREAD: dict[str, Callable[..., Tensor]] = {
    "a row of a table": lambda s, _b, h, _i, _j: s + ROWS[h].sum(),
    "a sum over one number": lambda s, _b, _h, _i, _j: s - s.sum(),
    "bits of a position": lambda s, _b, _h, i, _j: s + (i & 1),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_no_number_for_one_score_is_not_read(name: str) -> None:
    found = prove(flexible(UNREAD[name]), ("rows-sum-to-one",), seconds=SECONDS, fixed=("",))
    assert found.findings == ()
    assert found.why


def test_it_is_compiled_under_what_watches_its_operations() -> None:
    """Compiled code that is refused once under a mode is not compiled again in that process."""
    subject: Any = flexible(visible=past, declared=CAUSAL, called=flex_attention)
    assert "causal" in identify(subject).sentence
    q = torch.randn(2, 4, 6, 4)
    assert subject.attend(q, q, q, None).shape == q.shape


@pytest.mark.parametrize("called", [flex_attention, torch.compile(flex_attention, backend="eager")])
def test_it_is_run_as_it_is_written_and_has_no_place_in_finite_fields(called: Any) -> None:
    code = flexible(score=lambda score, *_: 2 * score, called=called)
    with restored_settings():
        (found,) = exact(code, laws=("queries-apart",))
        (ran,) = examine(code, laws=("queries-apart",))
    assert (found.verdict, ran.verdict) == ("not asked", "holds")
    assert found.why == "flex_attention is not supported in a finite field"
    (proved,) = prove(code, ("queries-apart",), seconds=SECONDS).findings
    assert proved.verdict == "holds"

"""A number in a line is the one with which code is called."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.draw import Draw
from attnproof.programs.grammar import parse
from attnproof.programs.measure.examine import examine
from attnproof.programs.signature import SignatureError
from attnproof.programs.spelling import in_letters
from attnproof.programs.subject import subject_of
from attnproof.programs.subjects import Additive, Attention, Bias, Layer, Rotary


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of 8 features, of queries of 6 heads and keys of 3, or of as many."""
    assert q.shape[-1] == 8
    if q.dim() == 4 and q.shape[1] != k.shape[1]:
        assert (q.shape[1], k.shape[1]) == (6, 3)
        k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    return (q @ k.mT / 8**0.5).softmax(-1) @ v


def test_numbers_of_three_axes_are_heads_and_features() -> None:
    subject = subject_of(attend, "q: 2 r 8, k: 2 n 8, v: 2 n 8 -> 2 r 8")
    assert isinstance(subject, Attention)
    assert (subject.heads, subject.width) == (2, 8)
    with pytest.raises(AssertionError):
        subject_of(attend, "q: 2 r 16, k: 2 n 16, v: 2 n 16 -> 2 r 16")


def test_keys_of_another_number_of_heads_have_groups() -> None:
    subject = subject_of(attend, "q: B 6 r 8, k: B 3 n 8, v: B 3 n 8 -> B 6 r 8")
    assert isinstance(subject, Attention)
    assert (subject.heads, subject.groups, subject.width) == (6, 3, 8)


def test_a_number_of_no_heads_stays_a_number() -> None:
    for line in ("q: B 6 r 8, k: B 3 n 8, v: B 2 n 8 -> B 6 r 8", "q: B 6 r 8 -> B 4 r n"):
        call, sizes = in_letters(parse(line))
        assert sizes["heads"] == 6
        assert str(call).count(" 2 " if "v:" in line else " 4 ") == 1


class ChosenByQueries(nn.Module):
    """A bias that each query, of 8 features, draws from a table of offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(65, 8))

    def forward(self, r: int, n: int, query: Tensor) -> Tensor:
        at = torch.arange(n) - torch.arange(n - r, n)[:, None]
        return (query[..., None, :] * self.table[at.clamp(-32, 32) + 32]).sum(-1)


def test_features_of_what_a_bias_is_given_are_as_many_as_told() -> None:
    subject = subject_of(ChosenByQueries, "r = r, n = n, query: 2 r 8 -> 2 r n", kind="bias")
    assert isinstance(subject, Bias)
    assert subject.heads == 2
    with pytest.raises(RuntimeError, match=r"tensor a \(9\) must match"):
        subject_of(ChosenByQueries, "r = r, n = n, query: 2 r 9 -> 2 r n", kind="bias")


class KeysAndValuesInOne(nn.Module):
    """Attention whose first argument is a context of twice the features."""

    def __init__(self, mixed: int = 0) -> None:
        super().__init__()
        self.mixed = mixed

    def forward(self, key_value: Tensor, query: Tensor) -> Tensor:
        k, v = key_value.chunk(2, -1)
        q = query + self.mixed * query[:1]
        out: Tensor = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return out


def _rows_apart(mixed: int) -> str:
    line = "key_value: B n 32 tokens, query: B r 16 -> B r 16"
    subject = subject_of(KeysAndValuesInOne, line, kind="attention", settings={"mixed": mixed})
    assert isinstance(subject, Attention)
    assert subject.embed == 16
    (seen,) = examine(subject, (Draw(),), ("rows-of-batch-apart",))
    return seen.verdict


def test_features_are_those_of_queries_where_a_context_has_others() -> None:
    assert _rows_apart(0) == "holds"
    assert _rows_apart(1) == "broken"


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    angle = positions[..., None] * 0.5 ** torch.arange(6)
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def test_a_number_of_three_axes_beside_positions_is_that_of_heads() -> None:
    subject = subject_of(rotated, "x: 2 n 12, positions: n positions -> x")
    assert isinstance(subject, Rotary)
    assert (subject.heads, subject.width) == (2, 12)


def of_three(x: Tensor) -> Tensor:
    assert x.shape[0] == 3
    return x * x.shape[-1]


def test_a_number_before_tokens_alone_is_that_of_rows_which_are_alike() -> None:
    subject = subject_of(of_three, "x: 3 n 12 -> 3 n 12")
    assert isinstance(subject, Layer)
    x = torch.randn(2, 4, 12)
    assert torch.equal(subject.call(x), 12 * x)
    with pytest.raises(SignatureError, match="AssertionError"):
        subject_of(of_three, "x: 2 n 12 -> 2 n 12")


def test_few_features_are_features() -> None:
    assert subject_of(lambda x: 2 * x, "x: B n 3 -> B n 3", name="f").embed == 3  # type: ignore[attr-defined]
    made = subject_of(
        lambda places: torch.stack((places.sin(), places.cos()), -1), "places: n positions -> n 2"
    )
    assert isinstance(made, Additive)
    assert made.width == 2
    call, sizes = in_letters(parse("x: B n 3, y: 1 n 1 -> x"))
    assert (str(call), sizes) == ("x: B n E, y: 1 n 1 -> x", {"embed": 3})

"""Masks of 0 and 1 that are not Boolean, bands that code cuts from a mask, slopes for each head."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.calls.masks import mask_visibility
from attnproof.programs.identified_mask import is_to_be_read, mask_as_read, with_mask
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Attention, Subject

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


class BandAttention(nn.Module):
    """Attention that shows the keys of a window, whatever its mask shows; as in Gemma 2."""

    def __init__(self, hidden_size: int = 16, window: int = 3) -> None:
        super().__init__()
        self.window = window
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, hidden_states: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.qkv(hidden_states).chunk(3, -1)
        ones = torch.ones_like(mask)
        band = ones.triu(1 - self.window) * ones.tril(self.window - 1)
        scores = q @ k.mT / 4 + torch.where(band == 1, mask, -2.3819763e38)
        mixed: Tensor = scores.softmax(-1) @ v
        return mixed


def test_the_mask_of_code_that_cuts_a_band_from_it_has_an_axis_of_queries() -> None:
    code = adapted_as(BandAttention, kind="attention")
    assert code.line == "hidden_states: B n E, mask: B r n add -> B n E"
    assert not [f.law for f in examine(code) if f.verdict == "broken"]


class EitherMask(BandAttention):
    """The same for a mask that is added, or that is True where a key is seen."""

    def forward(self, hidden_states: Tensor, mask: Tensor) -> Tensor:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=hidden_states.dtype).masked_fill(~mask, -1e30)
        return super().forward(hidden_states, mask)


def test_so_has_a_mask_of_either_kind() -> None:
    code = adapted_as(EitherMask, kind="attention")
    assert code.line == "hidden_states: B n E, mask: B r n keep or add -> B n E"


def test_a_band_that_begins_beyond_a_few_tokens_is_seen() -> None:
    code = adapted_as(BandAttention, kind="attention", settings={"window": 19})
    assert "mask: B r n add" in code.line


def read(code: Subject) -> Attention:
    """The code with the mask that is read off it."""
    assert is_to_be_read(code)
    found = with_mask(code, mask_as_read("attention", identify(code).parts))
    assert isinstance(found, Attention)
    return found


def test_code_that_is_given_a_causal_mask_is_held_to_its_own_window() -> None:
    line = "hidden_states: B n E, mask: B n n add -> B n E"
    code = read(subject_of(BandAttention(), line, kind="attention"))
    assert code.as_read is not None
    assert (code.as_read.causal, code.as_read.window) == (True, 3)
    laws = ("causal", "past-is-used", "window-as-declared")
    assert [f.verdict for f in examine(code, laws=laws)] == ["holds"] * 3


def by_slopes(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor, causal: bool = True) -> Tensor:
    """ALiBi on (B, n, H, D), with the slopes as an argument."""
    n, m = q.shape[1], k.shape[1]
    scores = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
    away = torch.arange(m)[None, :] - torch.arange(m - n, m)[:, None]
    scores = scores + slopes.view(1, -1, 1, 1) * away.clamp(max=0)
    if causal:
        scores = scores.masked_fill(away > 0, float("-inf"))
    return torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v)


def times_all(q: Tensor, k: Tensor, v: Tensor, strengths: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT * strengths.view(1, -1, 1, 1), -1) @ v


def test_slopes_are_those_that_were_published() -> None:
    code = adapted_as(by_slopes, kind="attention")
    assert code.line == "q: B r H D, k: B n H D, v: B n H D, slopes: H constant -> B r H D"
    assert "slopes are as published for ALiBi" in code.adapted
    found = " ".join(part.words for part in identify(code).parts)
    assert "slopes as published for 4 heads" in found


def of_a_window(q: Tensor, k: Tensor, v: Tensor, window_size: int) -> Tensor:
    at = torch.arange(q.shape[2])
    far = (at[:, None] - at).abs() >= window_size
    return (q @ k.mT).masked_fill(far, float("-inf")).softmax(-1) @ v


def test_the_size_of_a_window_is_a_number_to_be_given_and_not_that_of_an_image() -> None:
    with pytest.raises(NoAdapter) as refused:
        adapted_as(of_a_window, kind="attention")
    assert "it needs 'window_size', and nothing says with which value" in str(refused.value)
    assert "window_size = 3 -> B H" in refused.value.on_command_line


def test_numbers_for_each_head_whose_name_does_not_say_what_they_are_are_asked_for() -> None:
    with pytest.raises(NoAdapter, match=r"it needs 'strengths'.*; give arguments="):
        adapted_as(times_all, kind="attention")

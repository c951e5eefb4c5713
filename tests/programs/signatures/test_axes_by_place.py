"""Axes are laid out by their place: sums, products, numbers, and a number that stands twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.measure.examine import examine
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.layout import laid_out, read_back
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import subject_of
from attnproof.programs.subjects import Subject
from tests.programs.calls.test_rotary_tables import apply_matrices
from tests.programs.measure.rotary_code import in_two_halves


def verdicts(subject: Subject, *laws: str) -> dict[str, str]:
    return {one.law: one.verdict for one in examine(subject, laws=laws)}


def broken(subject: Subject, *laws: str) -> list[str]:
    found = verdicts(subject, *laws)
    assert set(found.values()) <= {"holds", "broken"}, found
    return [law for law, verdict in found.items() if verdict == "broken"]


def test_an_axis_is_found_by_its_label_or_by_its_place() -> None:
    axes = parse("x: 2 n 2 (B 3) -> x").arrays[0].axes or ()
    x = torch.arange(5 * 2 * 4).reshape(5, 2, 4)
    there = laid_out(x, ("n", 2, "B"), axes, {})
    assert there.shape == (2, 5, 2, 12)
    assert torch.equal(there[0].reshape(5, 2, 4, 3)[..., 1], x)
    back = read_back(there, axes, (2, "B", "n", 0, 4), {"n": 5, "B": 4})
    assert torch.equal(back[..., 0, 2].permute(2, 0, 1), x)
    with pytest.raises(SignatureError, match="each letter once"):
        laid_out(x[:, 0, 0], ("n",), parse("x: n n -> x").arrays[0].axes or (), {"n": 5})
    with pytest.raises(SignatureError, match="axes B n, got"):
        read_back(there, axes, ("B", "n"), {"n": 5, "B": 4})


def test_the_same_axes_are_laid_out_at_other_lengths() -> None:
    axes = parse("x: B (H n) D -> x").arrays[0].axes or ()
    for rows, heads, tokens in ((2, 3, 5), (4, 1, 2)):
        x, lengths = torch.randn(tokens, 4), {"B": rows, "H": heads, "n": tokens, "D": 4}
        there = laid_out(x, ("n", "D"), axes, lengths)
        assert torch.equal(there, x.repeat(rows, heads, 1))
        assert torch.equal(read_back(there, axes, ("H", "B", "n", "D"), lengths)[-1, -1], x)


@pytest.mark.parametrize("pairs", [2, 4, 6])
def test_matrices_are_told_by_numbers_whatever_these_are(pairs: int) -> None:
    width = 2 * pairs
    vectors = f"xq: B n 3 {width}, xk: B n 3 {width}"
    made = f"precompute_matrices(dim = {width}, end = n -> n {pairs} 2 2)"
    line = f"{vectors}, freqs_cis: n {pairs} 2 2 -> xq, xk"
    for told in (line, f"{line}; freqs_cis from {made}"):
        subject: Any = subject_of(apply_matrices, told)
        assert (subject.width, broken(subject, "norm", "relative")) == (width, [])
    with pytest.raises(SignatureError):
        subject_of(apply_matrices, line.replace(f"n {pairs} 2 2", f"n {pairs + 1} 2 2"))


@pytest.mark.parametrize("width", [4, 8, 16])
def test_matrices_are_told_by_letters_at_any_width(width: int) -> None:
    line = "xq: B n H D, xk: B n H D, freqs_cis: n D/2 2 2 -> xq, xk"
    subject: Any = subject_of(apply_matrices, line, width=width)
    assert (subject.width, broken(subject, "norm", "relative")) == (width, [])


class OfParts(nn.Module):
    """A layer of tokens in three parts, of which each part attends on its own."""

    def __init__(self, leaks: bool = False) -> None:
        super().__init__()
        self.leaks = leaks
        self.value = nn.Linear(16, 16)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        assert x.shape[2:] == (3, 16)
        parts = x.transpose(1, 2)
        scores = parts @ parts.mT / 4
        if mask is not None:
            hidden = mask.transpose(1, 2)[:, :, None]
            scores = scores.masked_fill(hidden & (not self.leaks), -1e30)
        out: Tensor = (scores.softmax(-1) @ self.value(parts)).transpose(1, 2)
        return out


class Leaking(OfParts):
    def __init__(self) -> None:
        super().__init__(leaks=True)


def test_numbers_behind_tokens_are_their_features() -> None:
    subject = subject_of(OfParts, "x: B n 3 16 -> B n 3 16")
    assert (subject.kind, broken(subject, "permutation", "rows-of-batch-apart")) == ("layer", [])
    letters = subject_of(OfParts, "x: B n 3 E -> B n 3 E", embed=48)
    assert broken(letters, "permutation") == []
    with pytest.raises(SignatureError, match="AssertionError"):
        subject_of(OfParts, "x: B n 16 3 -> B n 16 3")


def test_a_mask_has_a_number_for_each_part_of_a_token() -> None:
    line = "x: B n 3 16, mask: B n 3 hide -> B n 3 16"
    law = "hidden-keys-do-nothing"
    assert broken(subject_of(OfParts, line), law) == []
    assert broken(subject_of(Leaking, line), law) == [law]
    with pytest.raises(SignatureError, match="wanted at most 2 tokens, as wide as mask is, got 5"):
        subject_of(OfParts, line.replace("B n 3 hide", "B n 2 hide"))


class OfOneQuery(nn.Module):
    """A state of 8 features reads a context of 16, by what may stand first."""

    def __init__(self, first: bool = False) -> None:
        super().__init__()
        self.first = first
        self.into, self.out = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, hidden: Tensor, context: Tensor) -> Tensor:
        assert hidden.shape[1:] == (1, 8)
        read = context[:, :1] if self.first else context
        out: Tensor = self.out(
            (self.into(hidden) @ context.mT).softmax(-1).sum(-1)[..., None] * read
        )
        return out.mean(1, keepdim=True)


class OfTheFirst(OfOneQuery):
    def __init__(self) -> None:
        super().__init__(first=True)


def test_a_single_query_of_another_width_is_drawn() -> None:
    line = "hidden: B 1 8, context: B n 16 -> B 1 8"
    subject = subject_of(OfOneQuery, line)
    assert "hidden: B 1 8 constant" in subject.adapted.replace("E/2", "8")
    assert broken(subject, "permutation", "rows-of-batch-apart") == []
    assert verdicts(subject_of(OfTheFirst, line), "permutation") == {"permutation": "undecided"}
    with pytest.raises(SignatureError):
        subject_of(OfOneQuery, line.replace("1 8,", "2 8,"))


def with_a_first(ids: Tensor, heads: int, last: bool = False, wrong: bool = False) -> Tensor:
    """ALiBi of a token before all others, or behind them, that sees all alike."""
    rows, n = ids.shape
    at = torch.arange(n, dtype=torch.float32)
    slopes = 2.0 ** -torch.arange(1, heads + 1)
    own = -slopes[:, None, None] * (at[:, None] - at) ** 2 / (1 + wrong * at)
    end = (0, 1, 0, 1) if last else (1, 0, 1, 0)
    padded = nn.functional.pad(own, end)
    return padded.expand(rows, heads, n + 1, n + 1).reshape(rows * heads, n + 1, n + 1)


@pytest.mark.parametrize("last", [False, True])
def test_a_bias_of_more_rows_than_tokens_is_that_of_the_tokens(last: bool) -> None:
    line = f"ids: B n ids, heads = 2, last = {last} -> (B 2) (n + 1) (n + 1)"
    subject: Any = subject_of(with_a_first, line)
    assert subject.heads == 2
    which = "last" if last else "first"
    assert f"its {which} row and column belong to no token, and are left out" in subject.adapted
    assert broken(subject, "offset-only", "last-rows") == []
    wrong = subject_of(with_a_first, line.replace(" ->", ", wrong = True ->"))
    assert broken(wrong, "offset-only") == ["offset-only"]
    with pytest.raises(SignatureError, match="back, which is"):
        subject_of(with_a_first, line.replace("n + 1", "n + 2"))


def causal_with_a_first(n: int) -> Tensor:
    return torch.ones(n + 1, n + 1, dtype=torch.bool).tril()


def test_a_mask_may_have_more_rows_than_tokens() -> None:
    subject: Any = subject_of(causal_with_a_first, "n = n -> (n + 1) (n + 1) keep")
    assert torch.equal(subject.mask(3, 3), torch.ones(3, 3, dtype=torch.bool).tril())


def half_of_each(t: Tensor, freqs_x: Tensor, freqs_y: Tensor) -> Tensor:
    """Rotates one half of each vector by either table, neighbours, an angle a pair."""

    def rotated(x: Tensor, angles: Tensor) -> Tensor:
        u, v = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((u * cos - v * sin, u * sin + v * cos), -1).flatten(-2)

    x, y = t.chunk(2, -1)
    return torch.cat((rotated(x, freqs_x), rotated(y, freqs_y)), -1)


@pytest.mark.parametrize(("code", "wide"), [(half_of_each, "D/4"), (in_two_halves, "D/2")])
def test_several_tables_are_each_of_a_part_of_a_vector(code: object, wide: str) -> None:
    line = f"t: B H n D, freqs_x: n {wide} angles, freqs_y: n {wide} angles -> t"
    assert broken(subject_of(code, line), "norm", "relative") == []
    with pytest.raises(SignatureError, match="D or D/2 numbers"):
        subject_of(code, line.replace(wide, "D/8"), width=16)

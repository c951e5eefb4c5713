"""A guess proves itself: each letter of a line is an axis that does what the letter says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnproof.programs.calls.meaning import require_meaning
from attnproof.programs.calls.roles import SIZES
from attnproof.programs.code import DoesNotFit
from attnproof.programs.loading.program import Program
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.subject import adapted_as
from tests.cases import each


def scored(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT / 3).softmax(-1) @ v


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention in which two heads share a key head."""
    return scored(q, *(x.repeat_interleave(2, -3) for x in (k, v)))


def mixed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same, which takes all key heads for each head."""
    return grouped(q, k + k.mean(1, keepdim=True), v)


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return (q @ k.mT).masked_fill(~mask, -1e4).softmax(-1) @ v


def tabled(x: Tensor, cos: Tensor) -> Tensor:
    return x * cos


def before(x: Tensor, cos: Tensor) -> Tensor:
    """Each token by the row of the table before its own, which reaches two."""
    return x * (cos + cos.roll(1, -2))


def of_rows(x: Tensor) -> Tensor:
    """Attention over the first axis."""
    return scored(*(x.transpose(0, 1),) * 3).transpose(0, 1)


HEADS = "q: B H r D, k: B H n D, v: B H n D -> B H r D"
GROUPS = "q: B H r D, k: B G n D, v: B G n D -> B H r D"
HIDES = "q: B H r D, k: B H n D, v: B H n D, mask: B 1 r n keep -> B H r D"


@each(
    [
        (scored, HEADS, "BHGr", ""),
        (grouped, GROUPS, "BHGr", ""),
        (mixed, GROUPS, "BHGr", "G"),
        (masked, HIDES, "BHGr", ""),
        (lambda q, k, v, mask: masked(q, k, v, mask & mask.roll(1, 0)), HIDES, "BHGr", "B"),
        (lambda q, k, v, mask: masked(q, k, v, mask & mask.roll(1, 2)), HIDES, "BHGr", "r"),
        (
            lambda q, k, v: scored(q, k, v) + v.mean(1, keepdim=True).mean(2, keepdim=True),
            HEADS,
            "BHGr",
            "H",
        ),
        (lambda q, k, v: scored(q + q.roll(1, 2), k, v), HEADS, "BHGr", "r"),
        (lambda q, k, v: scored(q, torch.ones_like(k), v * 0), HEADS, "", "nothing"),
        (tabled, "x: B H n D, cos: n D -> B H n D", "BHGn", ""),
        (before, "x: B H n D, cos: n D -> B H n D", "BHGn", "n"),
        (of_rows, "x: n B E -> n B E", "B", ""),
        (of_rows, "x: B n E -> B n E", "B", "B"),
    ]
)
def test_a_letter_that_is_no_such_axis_is_refused(
    code: Any, line: str, apart: str, letter: str
) -> None:
    signature = parse(line)
    generator = torch.Generator().manual_seed(1)
    arrays: dict[str, Tensor] = {
        one.name: torch.randn(one.shape({**SIZES, "G": 3, "H": 6}), generator=generator)
        if one.kind != "keep"
        else torch.ones(one.shape({**SIZES, "H": 6}), dtype=torch.bool)
        for one in signature.arrays
    }
    run = Program(code, signature, "code").run
    lengths = {**SIZES, "G": 3, "H": 6}
    if not letter:
        require_meaning(run, arrays, signature, lengths, apart)
        return
    words = "has no effect" if letter == "nothing" else f"one place along {letter}"
    with pytest.raises(DoesNotFit, match=words):
        require_meaning(run, arrays, signature, lengths, apart, used=letter == "nothing")


class TransposedAttention(nn.Module):
    """torch's attention of tokens before heads: of (B, n, D) it would attend over the features."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)


class BlockAttention(nn.Module):
    """Attention in blocks of two tokens, of heads before tokens, which it lays side by side."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows, heads, tokens, width = q.shape
        more = -tokens % 2
        q, k, v = (functional.pad(x.flatten(0, 1), (0, 0, 0, more)) for x in (q, k, v))
        q, k, v = (x.reshape(rows * heads, -1, 2, width) for x in (q, k, v))
        return scored(q, k, v).reshape(rows, heads, -1, width)[:, :, :tokens]


class LayerOfColumns(nn.Module):
    """Attention over tokens that come before rows, of which nothing in its source says so."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(of_rows(x))
        return out


class HelpedAttention(LayerOfColumns):
    """The same, which cannot be called as its names say, and a helper that could be."""

    def forward(self, x: Tensor, hint: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x) * hint

    def _attention_bias(self, length: int) -> Tensor:
        at = torch.arange(length)
        return -(at - at[:, None]).abs().float()[None, None]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (TransposedAttention, "q: B r H D, k: B n H D, v: B n H D -> B r H D"),
        (BlockAttention, "q: B H n D, k: B H n D, v: B H n D -> B H n D"),
        (LayerOfColumns, "x: n B E -> n B E"),
    ],
)
def test_axes_that_only_fit_are_not_taken(code: Any, line: str) -> None:
    assert adapted_as(code, kind="attention").line == line


def test_what_an_object_does_inside_is_not_what_it_is() -> None:
    with pytest.raises(NoAdapter):
        adapted_as(HelpedAttention)


def reached_mask(size: int, vad_pos: int) -> Tensor:
    """Tokens before a place do not see those behind it."""
    mask = torch.ones(size, size, dtype=torch.bool)
    mask[: vad_pos - 1, vad_pos:] = False
    return mask


def test_a_number_of_heads_comes_back_as_an_axis() -> None:
    with pytest.raises(NoAdapter):
        adapted_as(reached_mask, kind="bias")


class Troubled:
    """Code that rotates, and gives NaN, writes into its input, or is another each time."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        out = x * cos + torch.cat((-b, a), -1) * sin
        if self.how == "writes":
            x.mul_(2)
        noise = torch.rand(1) if self.how == "random" else 0
        return out * torch.nan if self.how == "NaN" else out + noise


@pytest.mark.parametrize("how", ["NaN", "writes", "random"])
def test_what_is_no_matter_of_a_line_refuses_none(how: str) -> None:
    line = parse("x: B H n D, cos: n D, sin: n D -> x")
    x, table = torch.randn(3, 4, 5, 8), torch.randn(5, 8)
    lengths = {"B": 3, "H": 4, "n": 5, "D": 8}
    run = Program(Troubled(how), line).run
    require_meaning(run, {"x": x, "cos": table, "sin": table}, line, lengths, "BHn")


def of_one(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention of tokens with themselves, and with others in another way."""
    if torch.equal(query, key) and torch.equal(key, value):
        return scored(query, key, value)
    return scored(-query, key, value)


def of_one_in_rows(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same over the first axis."""
    return of_one(*(x.transpose(0, 1) for x in (query, key, value))).transpose(0, 1)


def test_code_that_tells_whether_its_arrays_are_one_is_given_one() -> None:
    lines = [adapted_as(one, kind="layer").line for one in (of_one, of_one_in_rows)]
    assert lines == [f"query: {x}, key: {x}, value: {x} -> {x}" for x in ("B n E", "n B E")]

"""Probes of a bias: right code holds, and every planted fault is broken with a witness."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.declarations import DeclaredBias
from attnproof.programs.finding import Finding
from attnproof.programs.measure.base import PROBES
from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Bias
from attnproof.theorems.definitions.positions import published_slopes
from attnproof.theorems.definitions.references import t5_bucket
from tests.cases import each

ALIBI = DeclaredBias(name="alibi")
T5 = DeclaredBias(name="t5")


def found(law: str, code: Bias) -> Finding:
    (seen,) = examine(code, laws=[law])
    return seen


def lines(change: str = "", heads: int = 6, **options: Any) -> Bias:
    """ALiBi, or ALiBi that is wrong in one way."""
    m = torch.tensor(published_slopes(heads))
    if change == "series":
        m = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    m = m[:, None, None]

    def bias(T: int, S: int) -> Tensor:
        start = {"start": 0}.get(change, S - T)
        t, s = torch.arange(T)[:, None] + start, torch.arange(S)[None, :]
        if change == "keys":
            return (m * s).expand(-1, T, S)
        if change == "query length":
            return -m * (torch.arange(T)[:, None] - torch.arange(T)[None, :]).abs()
        if change == "both added":
            return -m * (t + s) ** 1.5
        if change == "squared":
            return -m * (t - s) ** 2
        if change == "hides":
            return (-m * (t - s).abs()).masked_fill(s > torch.arange(T)[:, None], -torch.inf)
        return -m * (t - s).abs()

    return Bias(name=change or "alibi", heads=heads, bias=bias, **options)


def t5(change: str = "", **options: Any) -> Bias:
    """T5's bias, or one that is wrong in one way."""
    table = torch.randn(32, 3, generator=torch.Generator().manual_seed(1))
    if change == "zeros":
        table = torch.zeros(32, 3)

    def bias(T: int, S: int) -> Tensor:
        offset = torch.arange(S)[None, :] - torch.arange(S - T, S)[:, None]
        both = not options.get("causal", False)
        offset = -offset if change == "mirrored" else offset
        both = not both if change == "swapped" else both
        distance = 64 if change == "distance" else 128
        number = t5_bucket(offset, 32, distance, both=both)
        return table[number.clamp(max=30) if change == "shared" else number].permute(2, 0, 1)

    return Bias(name=change or "t5", heads=3, bias=bias, declared=T5, **options)


def index(change: str = "") -> Callable[[tuple[int, ...]], Tensor]:
    """Swin's index for any number of axes, or one that is wrong in one way."""

    def made(sizes: tuple[int, ...]) -> Tensor:
        place = torch.tensor(list(product(*(range(n) for n in sizes))))
        offset = place[:, None] - place[None]
        if change == "absolute":
            return place.sum(-1)[:, None] + torch.zeros(len(place), dtype=torch.int64)
        if change == "three axes" and len(sizes) == 3:
            factors = [3 * sizes[1] - 1, 2 * sizes[2] - 1, 1]
        else:
            factors = [1]
            for n in reversed(sizes[1:]):
                factors.insert(0, factors[0] * (2 * n - 1))
        shifted = offset + torch.tensor(sizes) - 1
        return (shifted * torch.tensor(factors)).sum(-1)

    return made


@each(
    [
        ("offset-only", lines()),
        ("offset-only", lines("keys", causal=True)),
        ("offset-only", t5()),
        ("offset-only", Bias(name="x", heads=1, index=index())),
        (
            "offset-only",
            Bias(
                name="x",
                heads=3,
                window=lambda r, c: torch.arange(3000.0).view(3, -1)[:, index()((r, c))],
            ),
        ),
        ("last-rows", lines()),
        ("last-rows", lines("keys", causal=True)),
        ("last-rows", t5()),
        ("slopes-as-declared", lines(declared=ALIBI)),
        ("slopes-as-declared", lines(heads=40, declared=ALIBI)),
        ("slopes-as-declared", lines("keys", causal=True, declared=ALIBI)),
        (
            "slopes-as-declared",
            lines("series", heads=2, declared=DeclaredBias(slopes=(2**-4.0, 2**-8.0))),
        ),
        ("buckets-as-declared", t5()),
        ("buckets-as-declared", t5(causal=True)),
        ("offsets-have-own-index", Bias(name="x", heads=1, index=index())),
    ]
)
def test_right_code_holds(law: str, code: Bias) -> None:
    one = found(law, code)
    assert one.verdict == "holds", one.why
    if law == "offsets-have-own-index":  # its two sides should differ
        assert one.error is one.bound is None
        return
    assert one.error is not None
    assert one.bound is not None
    assert one.error <= one.bound


@each(
    [
        ("offset-only", lines("both added"), "the bias at the start differ by"),
        (
            "offset-only",
            Bias(name="x", heads=1, index=index("absolute")),
            "the same pairs of places differ by",
        ),
        ("last-rows", lines("start"), "the last rows of all differ by"),
        ("last-rows", lines("query length"), "the last rows of all differ by"),
        ("last-rows", lines("hides"), "alone hides a key that the last rows of all shows"),
        ("slopes-as-declared", lines("series", declared=ALIBI), "the slope of head 0 of 6"),
        ("slopes-as-declared", lines("squared", declared=ALIBI), "not linear"),
        ("slopes-as-declared", lines(declared=DeclaredBias(slopes=(0.5, 0.25))), "another number"),
        ("buckets-as-declared", t5("swapped"), "offsets 0 and 1: two buckets are declared"),
        ("buckets-as-declared", t5("swapped", causal=True), "two buckets are declared"),
        ("buckets-as-declared", t5("distance"), "one bucket is declared"),
        ("buckets-as-declared", t5("mirrored", causal=True), "two buckets are declared"),
        ("buckets-as-declared", t5("shared"), "two buckets are declared"),
        ("offsets-have-own-index", Bias(name="x", heads=1, index=index("three axes")), "share a"),
    ]
)
def test_every_planted_fault_is_broken(law: str, code: Bias, why: str) -> None:
    one: Any = found(law, code)
    assert one.verdict == "broken", one.why
    assert why in one.why
    assert one.witness.inputs


def test_a_witness_is_small_and_true() -> None:
    one: Any = found("last-rows", lines("start"))
    assert one.witness.inputs == {"tokens": 2, "head": 4, "query": 0, "key": 1}
    slope: Any = found("slopes-as-declared", lines("series", declared=ALIBI)).witness
    assert slope.there[1] == published_slopes(6)[slope.inputs["head"]]
    assert abs(slope.here[1] - 2 ** (-8 * (slope.inputs["head"] + 1) / 6)) < 1e-6
    wrong = Bias(name="x", heads=1, index=index("three axes"))
    clash: Any = found("offsets-have-own-index", wrong).witness
    assert clash.inputs["places"] < clash.inputs["offsets"]


def test_what_is_not_asked_and_what_cannot_be_told() -> None:
    assert found("slopes-as-declared", lines()).verdict == "not asked"
    assert found("buckets-as-declared", lines()).verdict == "not asked"
    assert found("offsets-have-own-index", lines()).verdict == "not asked"
    only_index = Bias(name="x", heads=1, index=index())
    assert found("last-rows", only_index).verdict == "not asked"
    assert found("buckets-as-declared", t5("zeros")).verdict == "undecided"

    def refuses(sizes: tuple[int, ...]) -> Tensor:
        raise ValueError(sizes)

    assert found("offsets-have-own-index", Bias(name="x", heads=1, index=refuses)).verdict == (
        "undecided"
    )


def test_each_law_of_a_bias_has_its_probe_here() -> None:
    mine = {p.law for p in PROBES if p.look.__module__.endswith("measure.bias")}
    assert mine == {"slopes-as-declared", "buckets-as-declared", "offsets-have-own-index"}


@pytest.mark.parametrize(
    ("change", "causal", "furthest"),
    [("swapped", False, 1), ("swapped", True, 9), ("shared", False, 91)],
)
def test_the_buckets_of_a_witness_are_near_and_its_keys_few(
    change: str, causal: bool, furthest: int
) -> None:
    """lucidrains/x-transformers#10: an encoder with a decoder's buckets shows it at 0 and 1."""
    seen: Any = found("buckets-as-declared", t5(change, causal=causal)).witness
    places = [int(side[0].split("offset ")[1].split(",")[0]) for side in (seen.here, seen.there)]
    assert max(map(abs, places)) <= furthest
    assert seen.inputs["keys"] == max(map(abs, places)) + 1
    if "should differ" in seen.there[0]:
        assert seen.here[1] == seen.there[1]


@pytest.mark.parametrize("right", [True, False])
def test_a_bias_of_integers_is_not_rounded(right: bool) -> None:
    def offsets(query_size: int, key_size: int) -> Tensor:
        rows = torch.arange(query_size)[:, None] + (key_size - query_size)
        keys = torch.arange(key_size)
        return (keys - rows if right else keys * rows)[None]

    line = "query_size = r, key_size = n -> 1 r n"
    code = adapted_as(offsets, line, kind="bias")
    (found,) = examine(code, laws=("offset-only",))
    assert found.verdict == ("holds" if right else "broken")


class OfTable(nn.Module):
    """T5's bias of a table that it holds; one with the sign of its offsets turned round."""

    def __init__(self, sign: int = 1, scale: float = 1.0) -> None:
        super().__init__()
        self.sign, self.scale = sign, scale
        self.table = nn.Embedding(32, 3)

    def forward(self, T: int, S: int) -> Tensor:
        offset = torch.arange(S)[None, :] - torch.arange(S - T, S)[:, None]
        rows = self.table(t5_bucket(self.sign * offset, 32, 128, both=True))
        bias: Tensor = self.scale * rows.permute(2, 0, 1)
        return bias


def of_table(**settings: Any) -> Finding:
    module = OfTable(**settings)
    code = Bias(name="t5", heads=3, bias=module.forward, module=module, declared=T5)
    return found("buckets-as-declared", code)


def test_the_sign_of_offsets_is_that_of_the_rows_that_are_read() -> None:
    for scale in (1.0, 8.0):
        assert of_table(scale=scale).why.endswith("and each reads its row of the table")
    mirrored = of_table(sign=-1)
    assert mirrored.verdict == "broken"
    assert "query − key stands where key − query is declared" in mirrored.why
    assert "sign of offsets was not compared" in found("buckets-as-declared", t5()).why


def series(T: int, S: int, num_heads: int) -> Tensor:
    """Slopes that are as published for powers of two alone."""
    m = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return -m[:, None, None] * (torch.arange(S - T, S)[:, None] - torch.arange(S)).abs()


def published(T: int, S: int, num_heads: int = 8) -> Tensor:
    m = torch.tensor(published_slopes(num_heads))
    return -m[:, None, None] * (torch.arange(S - T, S)[:, None] - torch.arange(S)).abs()


class Built(nn.Module):
    """Slopes of a number of heads that the constructor takes."""

    def __init__(self, num_heads: int = 8, *, by: Callable[..., Tensor] = published) -> None:
        super().__init__()
        self.num_heads, self.by = num_heads, by

    def forward(self, T: int, S: int) -> Tensor:
        return self.by(T, S, self.num_heads)


class BuiltOfSeries(Built):
    def __init__(self, num_heads: int = 8) -> None:
        super().__init__(num_heads, by=series)


def wrong_if_odd(T: int, S: int, num_heads: int = 8) -> Tensor:
    return (series if num_heads % 2 else published)(T, S, num_heads)


def test_slopes_are_compared_at_odd_numbers_of_heads() -> None:
    line = "T = r, S = n, num_heads = H -> H r n"
    made: Any = adapted_as(wrong_if_odd, line, kind="bias", declared=ALIBI)
    one = found("slopes-as-declared", made)
    assert one.verdict == "broken"
    assert "of 5 differs" in one.why


@pytest.mark.parametrize(
    ("code", "line", "right"),
    [
        (series, "T = r, S = n, num_heads = H -> H r n", False),
        (published, "T = r, S = n, num_heads = H -> H r n", True),
        (published, "T = r, S = n -> H r n", True),
        (BuiltOfSeries, "T = r, S = n -> H r n", False),
        (Built, "T = r, S = n -> H r n", True),
    ],
)
def test_slopes_are_compared_at_several_numbers_of_heads(code: Any, line: str, right: bool) -> None:
    made: Any = adapted_as(code, line, kind="bias", declared=ALIBI)
    one = found("slopes-as-declared", made)
    assert one.verdict == ("holds" if right else "broken")
    assert ("and those of" if right else "the slope of head 0 of 6 differs") in one.why
    told = DeclaredBias(name="alibi", heads=8)  # a number that is told is compared alone
    alone: Any = adapted_as(code, line, kind="bias", declared=told, heads=8)
    assert found("slopes-as-declared", alone).verdict == "holds"


class OfFixedWindow(nn.Module):
    """Attention with a table and an index of windows whose size it is not told."""

    def __init__(self, dim: int = 8, tokens: int = 4) -> None:
        super().__init__()
        side = math.isqrt(tokens)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * side - 1) ** 2, 1))
        self.relative_position_index = torch.zeros(tokens, tokens, dtype=torch.int64)

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError


def test_a_table_of_windows_that_cannot_be_built_is_no_bias() -> None:
    with pytest.raises(NoAdapter, match="is not built with a window_size"):
        adapted_as(OfFixedWindow)

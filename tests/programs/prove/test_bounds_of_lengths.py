"""Lengths that bound a proof: a stored table read from its end, the smaller of two lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove, proving
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.statements import Graph
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Layer

CAUSAL = DeclaredAttention(causal=True)
SECONDS = 40.0  # far more than any proof takes: a slow machine decides nothing


class FromTheEnd(nn.Module):
    """Causal attention with a number for each distance, the nearest last in the table."""

    def __init__(self, *, reverse: bool = True, longest: int = 64) -> None:
        super().__init__()
        self.reverse, self.longest = reverse, longest
        self.strength = nn.Parameter(torch.randn(longest))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, _: Tensor | None = None) -> Tensor:
        n = k.shape[2]
        if n > self.longest:
            raise ValueError("more tokens than the table has rows")
        added = self.strength[self.longest - n :]
        scores = q @ k.mT + (added.flip(0) if self.reverse else added)
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ v


def finding(module: nn.Module, law: str) -> Finding:
    subject = Attention(
        name="a", attend=module, module=module, heads=2, groups=2, width=4, declared=CAUSAL
    )
    (found,) = prove(subject, [law], seconds=SECONDS).findings
    return found


@pytest.mark.parametrize(
    ("law", "lengths"), [("causal", "n′ + r ≤ 64"), ("rows-of-batch-apart", "r ≤ 64")]
)
def test_it_is_proved_up_to_the_length_of_the_table(law: str, lengths: str) -> None:
    found = finding(FromTheEnd(), law)
    assert found.verdict == "holds", found.why
    assert lengths in [c.text for c in found.assuming]


def test_numbers_that_depend_on_the_last_token_are_not_proved_causal() -> None:
    assert finding(FromTheEnd(reverse=False), "causal").verdict == "broken"


def test_an_assumed_length_is_printed_even_if_the_graph_is_valid_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def everywhere(graph: Graph, *_: object, **__: object) -> Graph:
        ranges = {s: ValueRanges(r.lower, int_oo) for s, r in graph.exported.ranges.items()}
        return replace(graph, exported=replace(graph.exported, wider=ranges, conditions=()))

    monkeypatch.setattr(proving, "widened", everywhere)
    found = finding(FromTheEnd(), "causal")
    assert found.verdict == "holds", found.why
    assert "n′ + r ≤ 64" in [c.text for c in found.assuming]


Code = Callable[[Tensor], Tensor]
SMALLER: Any = torch.sym_min
PERMUTED, ROWS = "permutation", "rows-of-batch-apart"


def attended(x: Tensor, keys: Any) -> Tensor:
    found: Tensor = (x @ x[:, :keys].mT).softmax(-1) @ x[:, :keys]
    return found


def first(x: Tensor) -> Tensor:
    return attended(x, min(x.shape[1], 64))


def symbolic(x: Tensor) -> Tensor:
    return attended(x, SMALLER(64, x.shape[1]))


def last(x: Tensor) -> Tensor:
    start = max(0, x.shape[1] - 64)
    found: Tensor = (x @ x[:, start:].mT).softmax(-1) @ x[:, start:]
    return found


def clamped(x: Tensor) -> Tensor:
    return attended(x, max(1, min(x.shape[1], 64)))


def of_rows(x: Tensor) -> Tensor:
    """Breaks the law on every side."""
    return attended(x, min(x.shape[1], x.shape[0]))


def scaled(x: Tensor) -> Tensor:
    """The same law holds on both sides, of different functions."""
    return attended(x * (min(x.shape[1], 64) / 64), None)


def of_tensors(x: Tensor) -> Tensor:
    two: Any = torch.tensor(2.0)
    return attended(x * min(two, 1.0), None)


@pytest.mark.parametrize("code", [first, symbolic, last, clamped])
def test_a_law_is_proved_up_to_the_length_at_which_another_is_smaller(code: Code) -> None:
    (law,) = prove(Attention(name="layer", layer=code, embed=4), [ROWS]).findings
    assert law.verdict == "holds", law.why
    assert "n ≤ 64" in {c.text for c in law.assuming}


@pytest.mark.parametrize("code", [first, last])
def test_what_breaks_beyond_is_not_proved_without_a_condition(code: Code) -> None:
    laws = prove(Attention(name="layer", layer=code, embed=4), [PERMUTED]).findings
    assert "broken" in {one.verdict for one in laws} or all(
        one.verdict != "holds" or "n ≤ 64" in {c.text for c in one.assuming} for one in laws
    )


def test_both_sides_are_proved_where_the_law_holds_on_both() -> None:
    (law,) = prove(Attention(name="layer", layer=scaled, embed=4), [PERMUTED]).findings
    assert law.verdict == "holds"
    told = " ".join(c.text for c in law.assuming)
    assert "n ≤ 64" in told
    assert "n ≥ 65" in told


def test_a_smaller_batch_than_row_breaks_the_law() -> None:
    laws = prove(Layer(name="layer", call=of_rows, embed=4), [ROWS]).findings
    assert "holds" not in {one.verdict for one in laws}


def test_numbers_of_tensors_are_compared_as_before() -> None:
    graph = read(traced(of_tensors, (torch.randn(3, 5, 4),), ((True, True, False),)))
    assert not graph.conditions


def fewer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """As many keys as there are queries, if there are more."""
    n = min(q.shape[2], k.shape[2])
    found: Tensor = (q @ k[:, :, :n].mT).softmax(-1) @ v[:, :, :n]
    return found


def test_the_smaller_of_two_lengths_of_the_call_is_a_branch() -> None:
    line = "q: B H r D, k: B H n D, v: B H n D -> B H r D"
    (law,) = prove(adapted_as(fewer, line), ["rows-sum-to-one"]).findings
    assert law.verdict == "holds", law.why
    assert "n ≤ r" in {c.text for c in law.assuming}

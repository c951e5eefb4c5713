"""Code that reads a stored table from its end: what is proved holds up to the table's length."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove, proving
from attnproof.programs.prove.statements import Graph
from attnproof.programs.subjects import Attention

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

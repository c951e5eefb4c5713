"""What runs at more tokens may cost: the order of laws, calls that are counted, and large calls."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.subjects import Attention, Layer
from attnproof.real_code import longer_inputs
from attnproof.real_code.critical_lengths import lengths_of
from attnproof.real_code.longer_inputs import at_longer
from attnproof.real_code.page_text import how
from attnproof.testing import check_additive

from .test_longer import plain


@pytest.fixture(autouse=True)
def lengths() -> None:
    """Code is run at all of them here."""


def test_all_laws_are_run_at_one_length_before_the_next() -> None:
    laws, begun = ["permutation", "order-of-keys"], list[str]()
    code = Attention(name="a", attend=lambda q, k, v, _: plain(q, k, v), heads=2, groups=2, width=4)
    assert [*at_longer(code, laws, Draw(), begun.append)] == []
    assert len(begun) > 2
    assert begun == laws * (len(begun) // 2)


def test_what_a_law_costs_is_counted_in_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    laws, begun = ["permutation", "order-of-keys"], list[str]()
    code = Attention(name="a", attend=lambda q, k, v, _: plain(q, k, v), heads=2, groups=2, width=4)
    # four calls of few tokens: a law that was not run yet is taken to need two, and needs more
    monkeypatch.setattr(longer_inputs, "MAX_WORK", 4 * longer_inputs.CALL_VALUES)
    assert [*at_longer(code, laws, Draw(), begun.append)] == []
    assert begun == laws[:1]


@pytest.mark.parametrize(("features", "runs"), [(0, True), (10_000_000, False)])
def test_a_call_that_makes_many_values_costs_more(features: int, runs: bool) -> None:
    begun = list[str]()

    def attend(q: Tensor, k: Tensor, v: Tensor, _: Tensor | None) -> Tensor:
        return plain(q, k, v) + 0 * torch.ones(features).sum()

    code = Attention(name="a", attend=attend, heads=2, groups=2, width=4)
    assert [*at_longer(code, ["stateless"], Draw(), begun.append)] == []
    assert bool(begun) == runs


MADE = [
    ("norm", {60: 90}, 9),
    ("norm", {60: 90, 5: 90}, 90),
    ("norm", {60: 90, 5: 10}, 9),
    ("stateless", {60: 90}, 90),
]


@pytest.mark.parametrize(("law", "calls", "few"), MADE)
def test_a_law_makes_fewer_calls_of_fewer_tokens_unless_it_was_seen_to_make_as_many(
    law: str, calls: dict[int, int], few: int
) -> None:
    code = Attention(name="a", attend=lambda q, k, v, _: plain(q, k, v), heads=2, groups=2, width=4)
    of = longer_inputs._OfLaw(law, True, calls=calls)
    cost = longer_inputs._cost(code, of, {"B": 1, "n": 6}, 1)
    assert cost == few * longer_inputs.CALL_VALUES


@pytest.mark.parametrize(("features", "many"), [(8, True), (60_000, False)])
def test_wide_layers_are_run_with_fewer_rows_and_tokens(features: int, many: bool) -> None:
    class Wide(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = torch.nn.Linear(8, features)
            self.rows = 1500

        def forward(self, x: Tensor) -> Tensor:
            wide: Tensor = self.up(x)
            return wide.sum(-1, keepdim=True) + x * (self.rows > 0)

    made = Wide()
    code = Layer(name="wide", call=made, module=made, embed=8, positional=True)
    longer = lengths_of(code).longer
    for letter in "Bn":
        assert (max(one.at.get(letter, 1) for one in longer) > 1500) == many


def table(tokens: int) -> Tensor:
    """Return the sines of 8 frequencies, and their cosines."""
    frequencies = torch.exp(-math.log(10_000.0) / 8 * torch.arange(8))
    angles = torch.arange(tokens)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def grown(x: Tensor, rows: int) -> Tensor:
    """Add a table, which is wrong for more tokens than ``rows``."""
    wrong = 2.0 if x.shape[1] > rows and x.sum() < math.inf else 1.0  # no graph is made of it
    return x + table(x.shape[1]).to(x) * torch.tensor(wrong).to(x)


FAULTS = [(100, ""), (4500, "where `x.shape[1] > rows` is false")]


@pytest.mark.parametrize(("rows", "told"), FAULTS)
def test_a_fault_is_found_or_its_length_told(rows: int, told: str) -> None:
    def added(x: Tensor) -> Tensor:
        return grown(x, rows)

    record = check_additive(added, laws=["products-of-offset"], methods=["measured"])
    law = record.law("products-of-offset")
    assert law.verdict == ("measured" if told else "broken")
    assert told in " ".join(how(law).split())

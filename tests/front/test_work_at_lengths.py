"""What runs at more tokens may cost: the order of laws, calls that are counted, and large calls."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attnproof.programs.execution.draw import Draw
from attnproof.programs.subjects import Attention
from attnproof.real_code import longer_inputs
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


def test_a_law_of_state_makes_as_many_calls_of_fewer_tokens() -> None:
    code = Attention(name="a", attend=lambda q, k, v, _: plain(q, k, v), heads=2, groups=2, width=4)
    ran = [longer_inputs._OfLaw(law, True, calls=90, tokens=60) for law in ("norm", "stateless")]
    few, all_of_them = (longer_inputs._cost(code, of, {"B": 1, "n": 6}, 1) for of in ran)
    assert (few, all_of_them) == (9 * longer_inputs.CALL_VALUES, 90 * longer_inputs.CALL_VALUES)


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

"""A mask that code keeps: at its whole length, at some keys, and what was not examined."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.real_code.page_text import how
from attnproof.real_code.records import LawOfCodeRecord
from attnproof.testing import check_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@pytest.fixture(autouse=True)
def lengths() -> None:
    """Code is run at all of them here."""


class Stored(nn.Module):
    """Causal attention as most people write it: the rows of a mask that it stores."""

    bias: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.all, self.out, self.heads = nn.Linear(8, 24), nn.Linear(8, 8), 2
        self.register_buffer("bias", mask)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (
            y.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for y in self.all(x).split(C, dim=2)
        )
        seen = self.bias[:, :, :T, :T] if self.bias.ndim == 4 else self.bias[:T, :T]
        found = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(seen == 0, -math.inf)
        made: Tensor = self.out((found.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))
        return made


ROWS = 320  # more than all code is run with


def stored(*faults: tuple[slice, slice, float]) -> Tensor:
    mask = torch.ones(ROWS, ROWS).tril()
    for rows, columns, value in faults:
        mask[rows, columns] = value
    return mask


RIGHT = (stored().view(1, 1, ROWS, ROWS), stored(), stored().bool())


def past_is_used(module: nn.Module) -> LawOfCodeRecord:
    record = check_attention(
        module, ["past-is-used"], declared="attention:causal", methods=["measured"]
    )
    return record.law("past-is-used")


@pytest.mark.parametrize("mask", RIGHT, ids=["of rows and heads", "plain", "truth values"])
def test_a_large_stored_mask_is_proved_of_its_lengths(mask: Tensor) -> None:
    law = check_attention(Stored(mask), ["causal"]).law("causal")
    assert law.verdict == "proved"
    assert f"n + n′ ≤ {ROWS}" in [one.text for one in law.assuming]


def test_a_large_stored_mask_takes_few_long_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    many: list[int] = []

    def softmax(self: Tensor, dim: int) -> Tensor:
        many.append(self.shape[dim])
        return torch.softmax(self, dim)

    monkeypatch.setattr(Tensor, "softmax", softmax)
    assert past_is_used(Stored(RIGHT[0])).verdict == "measured"
    assert 0 < many.count(ROWS) < ROWS // 2  # two for each key would be twice as many


@pytest.mark.parametrize(
    "fault",
    [(slice(280, 281), slice(300, 301), 1.0), (slice(160, None), slice(None), 1.0)],
    ids=["one entry", "from a row on"],
)
def test_a_stored_mask_with_a_fault_is_not_proved(fault: tuple[slice, slice, float]) -> None:
    law = check_attention(Stored(stored(fault)), ["causal"], methods=["traced"]).law("causal")
    assert law.verdict not in ("proved", "exact", "measured")


def test_a_stored_mask_that_is_open_from_a_row_on_is_broken() -> None:
    open_, run = Stored(stored((slice(160, None), slice(None), 1.0))), ["exact", "measured"]
    record = check_attention(open_, ["causal"], declared="attention:causal", methods=run)
    assert record.law("causal").verdict == "broken"


def test_keys_that_a_stored_mask_hides_in_some_rows_are_missed() -> None:
    code = Stored(stored((slice(24, 64), slice(0, 16), 0.0)))
    assert past_is_used(code).verdict == "broken"


ONE_ENTRY = (
    (slice(170, 171), slice(172, 173), 1.0),  # a later token is seen, between two that are cut
    (slice(240, 241), slice(150, 151), 0.0),  # an earlier one is not
)
NOT_LOOKED_AT = f"the entries of the stored mask bias, {ROWS} by {ROWS}, that were not examined"


@pytest.mark.parametrize("fault", ONE_ENTRY)
def test_one_entry_of_a_stored_mask_that_was_not_looked_at_is_told(
    fault: tuple[slice, slice, float],
) -> None:
    laws, methods = ["causal", "past-is-used"], ["exact", "measured"]
    code = Stored(stored(fault))
    record = check_attention(code, laws, declared="attention:causal", methods=methods)
    for law in laws:
        row = record.law(law)
        assert row.verdict in ("exact", "measured")
        assert NOT_LOOKED_AT in row.why
        assert NOT_LOOKED_AT in how(row)
    assert (
        f"the {ROWS - 10} of {ROWS} keys that were not examined" in record.law("past-is-used").why
    )


def test_a_stored_mask_whose_rows_are_alike_needs_no_such_condition() -> None:
    laws, methods = ["causal", "past-is-used"], ["exact", "measured"]
    record = check_attention(Stored(RIGHT[1]), laws, declared="attention:causal", methods=methods)
    assert [record.law(law).verdict for law in laws] == ["exact", "measured"]
    assert not any("not examined" in record.law(law).why for law in laws)

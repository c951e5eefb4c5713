"""Attention that hides the rows of its cache that are not written yet: called, fed in steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.exact import exact
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from tests.programs.prove.test_own_caches import LINE, ROWS, STEPS, Views, adapted

MASKED = "x: B n E, input_pos: n positions, mask: 1 1 n 16 keep -> B n E"
IN_STEPS = f"{MASKED}; step: {MASKED}"


class AtPositions(nn.Module):
    """Two heads of 4 channels; queries are given all 16 places of the cache, and a mask of them."""

    k_cache: Tensor
    v_cache: Tensor
    rows = 4

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(self.rows, 2, 16, 4), persistent=False)

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values (B, H, n, D) at these places, and read all places."""
        rows = len(k)
        self.k_cache[:rows].index_copy_(2, at, k)
        self.v_cache[:rows].index_copy_(2, at, v)
        return self.k_cache[:rows], self.v_cache[:rows]

    def forward(self, x: Tensor, mask: Tensor, input_pos: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        k, v = self.update(input_pos, k, v)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        found: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return found


class AllRows(AtPositions):
    """All rows of the cache are written and read."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        self.k_cache[:, :, at] = k
        self.v_cache[:, :, at] = v
        return self.k_cache, self.v_cache


class OneRow(AllRows):
    rows = 1


class ThreeRows(AllRows):
    rows = 3


class ShowsAll(AtPositions):
    """The mask is not used."""

    def forward(self, x: Tensor, mask: Tensor, input_pos: Tensor) -> Tensor:
        return super().forward(x, torch.ones_like(mask), input_pos)


class ShowsNext(AtPositions):
    """The place behind that of a query is seen as well."""

    def forward(self, x: Tensor, mask: Tensor, input_pos: Tensor) -> Tensor:
        return super().forward(x, mask | mask.roll(1, -1), input_pos)


class SharesFirstRow(AtPositions):
    """The cache of the first row is that of all."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = super().update(at, k, v)
        return keys[:1].expand_as(keys), values


class KeepsFirst(AtPositions):
    """Keys of later steps are written over those of the first token."""

    def update(self, at: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return super().update(at - at[0], k, v)


@pytest.mark.parametrize(
    ("made", "rows"), [(AtPositions, "B"), (AllRows, "4"), (OneRow, "1"), (ThreeRows, "3")]
)
def test_a_mask_as_wide_as_the_cache_is_guessed(made: type[AtPositions], rows: str) -> None:
    guessed: Any = adapted_as(made, kind="attention")
    whole = MASKED.replace("B n E", f"{rows} n E")
    assert guessed.line == f"{whole}; step: {whole}"
    assert not guessed.positional  # places before the first token hold none
    found = {one.law: one for one in examine(guessed, laws=["causal", STEPS, "stateless", ROWS])}
    apart = found.pop(ROWS)
    assert {one.verdict for one in found.values()} == {"holds"}
    if rows in "1B":
        assert apart.verdict == "holds"
    else:  # a cache of one row that serves all would not be noticed
        assert apart.verdict == "not asked"
        assert apart.why == f"the code takes exactly {rows} rows, which are given the same tokens"
        told = adapted(made, guessed.line)
        assert [one.verdict for one in examine(told, laws=[ROWS])] == ["not asked"]


@pytest.mark.parametrize(
    ("made", "law"),
    [
        (ShowsAll, "causal"),
        (ShowsAll, "stateless"),
        (ShowsNext, "causal"),
        (ShowsNext, "stateless"),
        (SharesFirstRow, ROWS),
        (KeepsFirst, STEPS),
    ],
)
def test_a_fault_of_a_cache_behind_a_mask_is_measured(made: type[AtPositions], law: str) -> None:
    (found,) = examine(adapted(made, IN_STEPS), laws=[law])
    assert found.verdict == "broken"


@pytest.mark.parametrize(("made", "line"), [(Views, LINE), (AtPositions, IN_STEPS)])
def test_steps_in_finite_fields_raise_nothing(made: Any, line: str) -> None:
    (found,) = exact(adapted(made, line), laws=[STEPS])
    assert found.verdict in ("not asked", "holds")
    assert not found.traceback

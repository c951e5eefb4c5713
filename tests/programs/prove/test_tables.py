"""Stored tables of whole numbers in traced code: read as what they are, at every entry, or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove import prove
from attnproof.programs.prove.operations import READINGS, Notes, noted
from attnproof.programs.prove.operations.lookups import entries_of, taken
from attnproof.programs.prove.operations.reading import Unread
from attnproof.programs.prove.tables import formula_of, offsets_of, pattern_of
from attnproof.programs.subjects import Layer
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.givens import positions, real
from attnproof.symbolic.scalars import number_of
from attnproof.symbolic.terms import free
from attnproof.theorems.definitions.references import t5_bucket

from .test_windows import SECONDS, away, by_distance, index, verdicts

FORMULAS: dict[str, tuple[Tensor, str]] = {
    "a window of 7 by 7": (index(7, 7), "84 + 13·⌊i/7⌋ + i%7 − 13·⌊j/7⌋ − j%7"),
    "a window of 3 by 5": (index(3, 5), "22 + 9·⌊i/5⌋ + i%5 − 9·⌊j/5⌋ − j%5"),
    "all pairs of a window on one axis": (
        index(2, 3).flatten(),
        "7 + 5·⌊i/18⌋ + ⌊(i%18)/6⌋ − 5·⌊(i%6)/3⌋ − i%3",
    ),
    "a window of three axes": (
        index(2, 3, 4),
        "52 + 35·⌊i/12⌋ + 7·⌊(i%12)/4⌋ + i%4 − 35·⌊j/12⌋ − 7·⌊(j%12)/4⌋ − j%4",
    ),
    "a window of one row": (index(1, 4), "3 + i − j"),
    "offsets": (away(6), "−i + j"),
    "a range backwards": (torch.arange(5).flip(0), "4 − i"),
    "a range that starts below 0": (torch.arange(5) - 1, "−1 + i"),
    "channels in another order": (torch.tensor([0, 4, 1, 5, 2, 6, 3, 7]), "⌊i/2⌋ + 4·(i%2)"),
    "one number": (torch.full((3, 4), -2, dtype=torch.int32), "−2"),
    "zeros": (torch.zeros(3, 1, 2, dtype=torch.int64), "0"),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_table_is_read_as_its_formula(name: str) -> None:
    table, told = FORMULAS[name]
    found: Any = formula_of(table)
    assert str(found) == told
    entries = entries_of(found.array())
    assert entries is not None
    assert torch.equal(entries, table.long())


def test_no_entry_is_left_out_of_the_comparison() -> None:
    for place in range(36):
        for more in (-1, 1, 1 << 20):
            table = index(2, 3).flatten()
            table[place] += more
            assert formula_of(table) is None
            assert formula_of(table.reshape(6, 6)) is None


def test_what_is_no_such_table_has_no_formula() -> None:
    assert formula_of(torch.arange(6).outer(torch.arange(6))) is None
    assert formula_of(torch.arange(12) % 5) is None
    assert formula_of(away(4).abs()) is None
    for table in (
        index(2, 2).float(),
        index(2, 2) > 3,
        index(2, 2).to(torch.uint8),
        torch.tensor(3),
        torch.zeros(0, dtype=torch.int64),
        torch.tensor([0, 1 << 40]),
    ):
        assert formula_of(table) is None
        assert offsets_of(table) is None


TABLES: dict[str, tuple[Tensor, tuple[int, ...]]] = {
    "clamped offsets": (away(9).clamp(-2, 2), (9,)),
    "the buckets of T5": (t5_bucket(away(40), 16, 20, both=True), (40,)),
    "distances in a square": (by_distance(4, 4), (4, 4)),
    "distances in an oblong": (by_distance(3, 5), (3, 5)),
    "all pairs on one axis": (by_distance(2, 3).flatten(), (2, 3)),
    "distances in three axes": (by_distance(3, 3, 3), (3, 3, 3)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_offsets_is_read_as_a_function_of_them(name: str) -> None:
    table, window = TABLES[name]
    assert formula_of(table) is None
    found: Any = offsets_of(table)
    assert found.window == window
    number = entries_of(found.number.array())
    assert number is not None
    assert torch.equal(found.values[number], table)
    changed = table.clone()
    changed.view(-1)[-1] += 100  # the last place and itself: its offset is that of all others
    again = offsets_of(changed)
    assert again is None


def test_a_band_is_read_at_any_length() -> None:
    band = (away(9) >= -3) & (away(9) <= 1)
    found: Any = pattern_of(band)
    for rows, columns in ((9, 9), (4, 6)):
        remade = found.remade((rows, columns))
        told: Any = entries_of(xp.astype(remade, float))
        assert torch.equal(told.bool(), band[:rows, :columns])
    band[5, 0] = True
    assert pattern_of(band) is None


def layer(call: Callable[[Tensor], Tensor]) -> Layer:
    return Layer(name="l", call=call, embed=4)


def test_a_row_of_a_table_is_no_column_of_it() -> None:
    """A matrix that is its own transpose before training, as the identity is, hides the fault."""

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.eye(4))
            self.register_buffer("at", torch.tensor([2, 0, 1, 1]))

        def forward(self, x: Tensor) -> Tensor:
            rows = self.table.index_select(0, self.get_buffer("at"))
            columns = self.table.index_select(1, self.get_buffer("at"))
            return x + x.cumsum(1) * (rows - columns.T).sum(0)

    assert verdicts(prove(layer(Both()), ("permutation",), seconds=SECONDS)) != {
        "permutation": "holds"
    }
    table, at = real(4, 4).named("table"), xp.arange(4) * 1
    notes = Notes(stored={table.term: ("table", torch.eye(4))})
    with noted(notes):
        rows, columns = (READINGS["aten.index_select.default"](table, k, at) for k in (0, 1))
    assert rows.term is not columns.mT.term
    assert len(notes.rows) == 2


@pytest.mark.parametrize(("first", "inside"), [(0, True), (1, False)])
def test_rows_at_known_places_are_those_of_the_table(first: int, *, inside: bool) -> None:
    """So of two programs a weight with its rows in another order is that weight."""
    table = real(4, 3).named("table")
    notes = Notes(stored={table.term: ("table", torch.eye(4, 3))}, recognises=True)
    with noted(notes):
        rows = READINGS["aten.index_select.default"](table, 0, xp.arange(4) * 1 + first)
    assert (table.term in free(rows.term)) is inside
    assert (not notes.rows) is inside


class Named(nn.Module):
    """Two tables, ``a.b`` and ``a_b``."""

    def __init__(self, other: Tensor) -> None:
        super().__init__()
        self.a = nn.Module()
        self.a.register_buffer("b", by_distance(2, 2))
        self.register_buffer("a_b", other)

    def forward(self, x: Tensor) -> Tensor:
        apart: Tensor = self.a.b - self.a_b  # type: ignore[operator]
        return x + x.cumsum(1) * apart[1]


def test_tables_of_nearly_one_name_are_two() -> None:
    other = by_distance(2, 2).clone()
    assert verdicts(prove(layer(Named(other)), ("permutation",), seconds=SECONDS)) != {
        "permutation": "broken"
    }
    for place in range(4):
        other[place, place] = 5
    found = prove(layer(Named(other)), ("permutation",), seconds=SECONDS)
    assert verdicts(found) == {"permutation": "broken"}


class FormatOfATable(nn.Module):
    """Of its table, whose numbers are whatever was in memory, the format alone is read."""

    def __init__(self, number: float, *, reads: bool) -> None:
        super().__init__()
        self.register_buffer("format", torch.full((1,), number))
        self.reads = reads

    def forward(self, x: Tensor) -> Tensor:
        buffer = self.get_buffer("format")
        return torch.where(buffer > 0, x, 2 * x) if self.reads else x.double().type_as(buffer)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_table_of_no_numbers_is_unread_where_it_is_used(number: float) -> None:
    found = prove(layer(FormatOfATable(number, reads=False)), ("permutation",), seconds=SECONDS)
    assert verdicts(found) == {"permutation": "holds"}
    found = prove(layer(FormatOfATable(number, reads=True)), ("permutation",), seconds=SECONDS)
    assert found.findings == ()
    assert f"the table format of torch.float32, (1,), {number} everywhere" in found.why


def cut_by_tokens(x: Tensor) -> Tensor:
    """Of an axis of length 1 any number of tokens takes all."""
    return x * torch.ones(1, 4).mul(3.0).cumsum(0)[: x.shape[1]]


def test_an_axis_of_one_is_taken_whole_by_any_number_of_tokens() -> None:
    found = prove(layer(cut_by_tokens), ("permutation",), seconds=SECONDS)
    assert verdicts(found) == {"permutation": "holds"}
    assert not [c.text for one in found.findings for c in one.assuming if "n ≤" in c.text]


def _no_table(*_: Any) -> None:
    """What stored tables there are: none."""


def test_rows_of_a_table_with_axes_of_one_are_read_at_places_and_of_a_cut_axis_are_not() -> None:
    places = positions(2).named("at")
    table = xp.cos(xp.arange(6) * 1.0)
    rows: dict[tuple[int, ...], Callable[[Any], Any]] = {
        (1, 6): lambda x: xp.reshape(xp.reshape(x, (1, 1, 6)), (1, 6)),
        (6,): lambda x: xp.reshape(xp.reshape(x, (1, 6)), (6,)),
    }
    for shape, made in rows.items():
        found = taken(made(table), len(shape) - 1, places, _no_table)
        assert [*map(number_of, found.axes)] == [2, *shape[:-1]]
    with pytest.raises(Unread, match="an axis made of several, or cut in several"):
        taken(xp.reshape(xp.reshape(table, (2, 3)), (6,)), 0, places, _no_table)


SHORT = torch.arange(4, dtype=torch.int8)
NOT_READ: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "places counted from the end": (lambda x: x[..., torch.arange(4) - 1], "index"),
    "stored places counted from the end": (
        lambda x: x[..., torch.tensor([-1, 0, 1, 2])],
        "-1..2 of 4 places",
    ),
    "places of no formula": (lambda x: x[..., torch.tensor([[2, 0], [2, 1]])], "not a formula"),
    "a stored list of truth values": (lambda x: x[..., torch.tensor([True] * 4)], ""),
    "truth values as places": (lambda x: x[..., torch.ones(4).bool()], "truth values"),
    "a stored range in 8 bits": (lambda x: x * SHORT.mul(100), ""),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_places_that_are_not_read_are_told(name: str) -> None:
    call, why = NOT_READ[name]
    found = prove(layer(call), ("rows-of-batch-apart",), seconds=SECONDS)
    assert found.findings == ()
    assert why in found.why


def test_the_last_place_may_be_counted_from_the_end() -> None:
    last = torch.tensor([-1, -2, -3, -4])
    for call in (lambda x: x[..., last], lambda x: x + x[..., [-1]]):
        assert verdicts(prove(layer(call), seconds=SECONDS)) == {
            "permutation": "holds",
            "rows-of-batch-apart": "holds",
            "causal": "not asked",
        }


def test_any_whole_numbers_and_any_truth_values() -> None:
    """Of a table that is not a formula holds what holds for any numbers."""
    gate, numbers = torch.tensor([True, False, True, True]), torch.tensor([2, 0, 2, 7])
    for call in (lambda x: torch.where(gate, x, 0), lambda x: x * numbers):
        assert verdicts(prove(layer(call), seconds=SECONDS)) == {
            "permutation": "holds",
            "rows-of-batch-apart": "holds",
            "causal": "not asked",
        }
    later = torch.tensor([2, 0, 2, 7, 1, 1, 3, 0])

    def by_token(x: Tensor) -> Tensor:
        return x * later[: x.shape[1], None]

    found = prove(layer(by_token), ("permutation",), seconds=SECONDS)
    assert verdicts(found) == {"permutation": "broken"}


class LowRank(nn.Module):
    """Attention whose queries and keys are normalised before they are widened, without a scale."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.narrow, self.wide = (
            nn.Parameter(torch.randn(width, width, generator=generator) / width**0.5)
            for _ in range(2)
        )
        self.norm = nn.RMSNorm(width, elementwise_affine=False)

    def forward(self, x: Tensor) -> Tensor:
        q = self.norm(x.abs() @ self.narrow) @ self.wide
        found: Tensor = (q @ q.mT).softmax(-1) @ x
        return found


def test_other_numbers_in_tables_leave_exponentials_finite() -> None:
    module = LowRank()
    code = Layer(name="low rank", call=module, module=module, embed=64)
    assert verdicts(prove(code, ["rows-of-batch-apart"])) == {"rows-of-batch-apart": "holds"}

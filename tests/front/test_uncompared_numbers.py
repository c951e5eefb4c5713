"""Numbers that no comparison asks for: of the source, of what code keeps, of its operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Layer
from attnproof.real_code.critical_lengths import lengths_of
from attnproof.real_code.page_text import how
from attnproof.real_code.records import LawOfCodeRecord
from attnproof.testing import check_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@pytest.fixture(autouse=True)
def lengths() -> None:
    """Code is run at all of them here."""


@pytest.fixture
def own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is run beyond the numbers that are found in it, and not as far as all code is."""
    monkeypatch.setattr("attnproof.real_code.critical_lengths.ALWAYS", {"n": 8, "B": 2})


class Cached(nn.Module):
    """Causal attention of two heads that returns its keys and values, with a fault in these."""

    limit: Tensor
    table: Tensor

    def __init__(self, fault: Callable[[Cached, Tensor], Tensor]) -> None:
        super().__init__()
        self.qkv, self.fault, self.window = nn.Linear(16, 48), fault, 48
        self.register_buffer("limit", torch.tensor([45]))
        self.register_buffer("table", torch.zeros(56, 2))

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Any]:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            before = self.fault(self, past[1])
            k, v = torch.cat((past[0][:, :, -before.shape[2] :], k), 2), torch.cat((before, v), 2)
        seen = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2]).bool()
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen)
        return out.transpose(1, 2).flatten(2), (k, v)


def unharmed(_: Cached, v: Tensor) -> Tensor:
    return v


def cut(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, -32:]


def cut_by_power(_: Cached, v: Tensor) -> Tensor:
    return v.narrow(2, max(0, v.shape[2] - 2**6), min(2**6, v.shape[2]))


def cut_as_kept(code: Cached, v: Tensor) -> Tensor:
    return v[:, :, max(0, v.shape[2] - code.window) :]


def cut_as_table(code: Cached, v: Tensor) -> Tensor:
    return v[:, :, -code.table.shape[0] :]


def cut_in_list(code: Cached, v: Tensor) -> Tensor:
    return torch.stack([*v.unbind(2)][-code.window :], 2)


def cut_by_product(code: Cached, v: Tensor) -> Tensor:
    return torch.stack([*v.unbind(2)][-3 * code.window :], 2)


def ring(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, torch.arange(v.shape[2]) % 36]


def zero_behind(code: Cached, v: Tensor) -> Tensor:
    return torch.where(torch.arange(v.shape[2])[:, None] < code.limit, v, 0)


def other_from_50(_: Cached, v: Tensor) -> Tensor:
    return v.flip(2) if v.shape[2] >= 50 else v


def first_row_of_40(_: Cached, v: Tensor) -> Tensor:
    return v[:1].expand_as(v) if len(v) >= 40 else v


def rows_behind_33(_: Cached, v: Tensor) -> Tensor:
    return torch.cat((v[:33], v[33:].flip(0)))


def none_from_40(_: Cached, v: Tensor) -> Tensor:
    return v * (math.nan if v.shape[2] >= 40 else 1.0)


def cut_beyond_reach(_: Cached, v: Tensor) -> Tensor:
    return v[:, :, -3000:]


def in_steps(fault: Callable[[Cached, Tensor], Tensor], *methods: str) -> LawOfCodeRecord:
    line = "x: B n E -> B n E, _; step: x: B n E, past -> B n E, past"
    record = check_attention(
        Cached(fault), ["step-by-step"], call=line, methods=methods or ("exact", "measured")
    )
    return record.law("step-by-step")


@pytest.mark.usefixtures("own_numbers")
@pytest.mark.parametrize(
    "fault",
    [
        *(cut, cut_by_power, cut_as_kept, cut_as_table, cut_in_list, ring),
        *(zero_behind, other_from_50, first_row_of_40, rows_behind_33),
    ],
)
def test_a_cache_that_fails_from_a_number_on_breaks_its_law(fault: Any) -> None:
    row = in_steps(fault, "measured")
    assert row.verdict == "broken"
    assert "at lengths that the code asks about" in row.why


def test_what_finite_fields_do_not_reach_is_broken_where_it_is_measured() -> None:
    """Also by a number that is not found: all code is run beyond it."""
    assert in_steps(cut_by_product).verdict == "broken"


@pytest.mark.usefixtures("own_numbers")
def test_a_cache_that_is_nan_from_a_number_on_is_never_exact() -> None:
    row = in_steps(none_from_40)
    assert row.verdict == "undecided"
    assert "NaN" in row.why


def test_a_number_beyond_what_was_run_stands_on_the_line() -> None:
    row = in_steps(cut_beyond_reach)
    assert (row.verdict, [one.text for one in row.assuming]) == ("exact", ["n ≤ 2999"])
    assert "for n ≤ 2999" in how(row)
    row = in_steps(unharmed)
    assert (row.verdict, row.assuming) == ("exact", ())


def test_finite_fields_alone_say_below_which_numbers_they_are() -> None:
    assert "n ≤ 31" in [one.text for one in in_steps(cut, "exact").assuming]
    assert "B ≤ 32" in [one.text for one in in_steps(rows_behind_33, "exact").assuming]


class Named(nn.Module):
    """Its width is looked up by a name; ``beside``: with an array, whose length may be compared."""

    def __init__(self, *, beside: bool) -> None:
        super().__init__()
        self.kept, self.beside = nn.Parameter(torch.zeros(4)), beside

    def look_up(self, name: str) -> Any:
        return self.__dict__.get(name) if name else None

    def look_up_beside(self, name: str, x: Tensor) -> Tensor:
        return x if name else -x

    def forward(self, x: Tensor) -> Tensor:
        if self.beside:
            return self.look_up_beside("a_name_of_nineteen_", x)
        self.look_up("a_name_of_nineteen_")
        return x + self.kept


@pytest.mark.usefixtures("own_numbers")
def test_the_length_of_a_name_that_is_looked_up_is_no_number_of_tokens() -> None:
    for beside in (False, True):
        module = Named(beside=beside)
        code = Layer(name="l", call=module, module=module, embed=4)
        assert (19 in lengths_of(code).numbers["n"]) is beside


def test_the_numbers_with_which_inputs_are_made_are_not_those_of_the_code() -> None:
    def rotate_half(x: Tensor) -> Tensor:
        one, other = x.chunk(2, -1)
        return torch.cat((-other, one), -1)

    def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = cos[..., :48, :][:, None], sin[..., :48, :][:, None]
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin

    line = "q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q, k"
    code = adapted_as(rotated, line, name="rotated")
    tokens = {one.at["n"] for one in lengths_of(code).longer if one.exactly}
    assert tokens == {8, 48 + 3}  # and the width

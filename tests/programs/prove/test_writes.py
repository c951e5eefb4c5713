"""Writes to a part of an axis of symbolic length: proved where right, refused one place beside."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.declarations import DeclaredAttention
from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.sides import Operand
from attnproof.programs.prove import prove
from attnproof.programs.prove.comparison import disagreement
from attnproof.programs.prove.operations import READINGS, Notes, Unread, noted
from attnproof.programs.subjects import Layer
from attnproof.symbolic import namespace as xp
from attnproof.symbolic.array import Array, as_array
from attnproof.symbolic.givens import real
from attnproof.symbolic.scalars import size
from tests.cases import each

Code = Callable[[Tensor], Tensor]
CAUSAL = DeclaredAttention(causal=True)
LINE = "x: B n E -> B n E"
LENGTH = Array(size("n"))
BOUNDS = (None, -4, -2, -1, 0, 1, 2, 4)


@each(product(BOUNDS, BOUNDS))
def test_bounds_are_clipped_as_torch_clips_them(start: int | None, end: int | None) -> None:
    if start in (None, 0) and end is None:
        return  # the whole axis
    x, notes = real(LENGTH).named("x"), Notes()
    with noted(notes):
        part = xp.broadcast_to(as_array(7), (LENGTH,))  # as long as the axis: only its form is used
        term = READINGS["aten.slice_scatter.default"](x, part, 0, start, end)

    def code(given: Tensor) -> Tensor:
        made = given.clone()
        made[start:end] = 7
        return made

    for n in range(1, 7):
        values = [torch.randn(n, dtype=torch.float64)]
        assert disagreement(code, term, ["x"], values, {}, 2, {"n": n}, notes) == ""


def test_a_bound_that_may_be_negative_is_not_clipped() -> None:
    """With n = 2 tokens, x[n - 3:] is x[-1:], whatever was traced."""
    x = real(LENGTH).named("x")
    with noted(Notes()):
        part = xp.broadcast_to(as_array(7), (as_array(3),))
        term = READINGS["aten.slice_scatter.default"](x, part, 0, LENGTH - 3, None)
        assert term.term.op == "concat"  # whose first part must have a length
        with pytest.raises(Unread, match="a place"):
            READINGS["aten.select_scatter.default"](x, as_array(7), 0, LENGTH - 3)


def row(x: Tensor) -> Tensor:
    """0, 1, .. as a column beside the tokens."""
    return torch.arange(x.shape[1])[:, None]


def edited(write: Callable[[Tensor, Tensor], Any]) -> Code:
    """What a write makes of a copy of x."""

    def code(x: Tensor) -> Tensor:
        made = x.clone()
        write(made, x)
        return made

    return code


def first(y: Tensor, x: Tensor) -> None:
    del x
    y[:, 0] = 0


def last(y: Tensor, x: Tensor) -> None:
    del x
    y[:, -1] = 0


def first_three(y: Tensor, x: Tensor) -> None:
    del x
    y[:, :3] = 0


def last_three(y: Tensor, x: Tensor) -> None:
    del x
    y[:, -3:] = 0


def inner(y: Tensor, x: Tensor) -> None:
    del x
    y[:, 1:-1] = 1


def doubled(y: Tensor, x: Tensor) -> None:
    del x
    y[:, 1:] *= 2


def shifted(y: Tensor, x: Tensor) -> None:
    y[:, 1:] = x[:, :-1]


def where_positive(y: Tensor, x: Tensor) -> None:
    y[x > 0] = 0.0


def every_third(y: Tensor, x: Tensor) -> None:
    y[:, torch.arange(x.shape[1]) % 3 == 0] = 0.0


def corner(x: Tensor) -> Tensor:
    n = x.shape[1]
    seen = torch.eye(n, dtype=torch.bool)
    seen[:2, :3] = True
    seen[:, 0] = True
    return (x @ x.mT).masked_fill(~seen, -torch.inf).softmax(-1) @ x


def corner_by_places(x: Tensor, width: int = 3) -> Tensor:
    i, j = row(x), row(x).mT
    seen = (i == j) | ((i < 2) & (j < width)) | (j == 0)
    return (x @ x.mT).masked_fill(~seen, -torch.inf).softmax(-1) @ x


def whole_numbers(x: Tensor) -> Tensor:
    """Of 1.5 written to whole numbers, 1 is left."""
    counts = torch.zeros(x.shape[1], dtype=torch.long)
    counts[:3] = 1.5
    return x * counts[:, None]


def truth_values(x: Tensor) -> Tensor:
    """2 written to truth values is True."""
    seen = torch.zeros(x.shape[1], dtype=torch.bool)
    seen[:3] = 2
    return x * seen[:, None]


# By name: the code, the same by a choice, another, and a condition on lengths.
WRITES: dict[str, tuple[Code, Code, Code, str]] = {
    "first": (
        edited(first),
        lambda x: torch.where(row(x) == 0, 0.0, x),
        lambda x: torch.where(row(x) == 1, 0.0, x),
        "",
    ),
    "last": (
        edited(last),
        lambda x: torch.where(row(x) == x.shape[1] - 1, 0.0, x),
        lambda x: torch.where(row(x) == x.shape[1] - 2, 0.0, x),
        "",
    ),
    "first three": (
        edited(first_three),
        lambda x: torch.where(row(x) < 3, 0.0, x),
        lambda x: torch.where(row(x) < 4, 0.0, x),
        "n ≥ 3",
    ),
    "last three": (
        edited(last_three),
        lambda x: torch.where(row(x) >= x.shape[1] - 3, 0.0, x),
        lambda x: torch.where(row(x) > x.shape[1] - 3, 0.0, x),
        "n ≥ 3",
    ),
    "inner": (
        edited(inner),
        lambda x: torch.where((row(x) > 0) & (row(x) < x.shape[1] - 1), 1.0, x),
        lambda x: torch.where(row(x) > 0, 1.0, x),
        "n - 2 ≥ 2",
    ),
    "doubled": (
        edited(doubled),
        lambda x: torch.where(row(x) > 0, 2 * x, x),
        lambda x: 2 * x,
        "n ≥ 3",
    ),
    "shifted": (
        edited(shifted),
        lambda x: torch.cat((x[:, :1], x[:, :-1]), 1),
        lambda x: torch.cat((x[:, 1:], x[:, -1:]), 1),
        "n ≥ 3",
    ),
    "where positive": (
        edited(where_positive),
        lambda x: torch.where(x > 0, 0.0, x),
        torch.relu,
        "",
    ),
    "every third": (
        edited(every_third),
        lambda x: torch.where(row(x) % 3 == 0, 0.0, x),
        lambda x: torch.where(row(x) % 3 == 1, 0.0, x),
        "",
    ),
    "corner": (corner, corner_by_places, lambda x: corner_by_places(x, 4), "n ≥ 3"),
    "whole numbers": (
        whole_numbers,
        lambda x: torch.where(row(x) < 3, x, 0.0),
        lambda x: torch.where(row(x) < 3, 1.5 * x, 0.0),
        "n ≥ 3",
    ),
    "truth values": (
        truth_values,
        lambda x: torch.where(row(x) < 3, x, 0.0),
        lambda x: torch.where(row(x) < 3, 2 * x, 0.0),
        "n ≥ 3",
    ),
}


def equal(one: Code, other: Code) -> Verdict:
    return compare(Operand(one, "first", LINE), Operand(other, "second", LINE))


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_a_choice_by_index(name: str) -> None:
    code, same, another, condition = WRITES[name]
    found = equal(code, same)
    assert found.verdict == "proved"
    told = [c.text for c in found.assuming]
    assert condition in told or not condition, told
    assert condition or not [text for text in told if text.startswith("n ≥")]
    assert equal(code, another).verdict == "counterexample"


def two_rows(x: Tensor) -> Tensor:
    """A mask whose first rows are written from a list, to which no index extends it."""
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    mask[:2] = torch.tensor([[True], [False]])
    return (x @ x.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ x


def test_a_part_that_may_be_longer_than_its_axis_raises_no_error() -> None:
    found = equal(two_rows, lambda x: two_rows(x) + 0)
    assert found.verdict != "counterexample"
    assert not found.traceback


def seen(mark: Callable[[Tensor], Any]) -> Code:
    """Attention under a causal mask that is written to."""

    def code(x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        mark(mask)
        return (x @ x.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ x

    return code


def sink(mask: Tensor) -> None:
    mask[1:] = False
    mask[:, 0] = True


def prefix(mask: Tensor) -> None:
    mask[:, :2] = True


def last_key(mask: Tensor) -> None:
    mask[:, -1] = True


@pytest.mark.parametrize("mark", [sink, prefix, last_key])
def test_masks_that_are_written_to_are_causal_or_not(mark: Callable[[Tensor], Any]) -> None:
    laws = ("causal", "rows-of-batch-apart")
    layer = Layer(name="layer", call=seen(mark), embed=8, positional=True, declared=CAUSAL)
    found = {one.law: one.verdict for one in prove(layer, laws).findings}
    assert (found["causal"] == "holds") == (mark is sink)
    assert found["rows-of-batch-apart"] == "holds"

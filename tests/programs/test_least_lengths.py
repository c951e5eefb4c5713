"""Lengths that the guards of a graph keep long enough: written by others, and told as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.sides import Told
from attnproof.programs.prove.least import from_least, from_one
from attnproof.symbolic.scalars import add, integer, mul, num, size

SELF = "q: B H n 4, k: B H n 4, v: B H n 4 -> B H 3 4"
TWO = "q: B H r 4, k: B H n 4 -> B H r 4"


def last_of_all(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v)[:, :, -3:]


def of_the_last(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q[:, :, -3:], k, v)


def of_the_last_but_one(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q[:, :, -4:-1], k, v)


def last_keys(q: Tensor, k: Tensor) -> Tensor:
    return q * k[:, :, -q.shape[2] :]


def last_keys_counted(q: Tensor, k: Tensor) -> Tensor:
    return k[:, :, k.shape[2] - q.shape[2] :] * q


def first_keys(q: Tensor, k: Tensor) -> Tensor:
    return q * k[:, :, : q.shape[2]]


def compared(one: Callable[..., Any], other: Callable[..., Any], call: str) -> Verdict:
    return compare(Told(one, one.__name__, call), Told(other, other.__name__, call), seconds=60.0)


def lengths(found: Verdict) -> list[str]:
    return [c.text for c in found.assuming if c.kind == "for"]


def test_the_last_rows_are_proved_where_there_are_so_many() -> None:
    found = compared(last_of_all, of_the_last, SELF)
    assert found.verdict == "proved", found.why
    assert {"n ≥ 3", "n ≠ 3"} < set(lengths(found))


def test_as_many_from_the_end_as_there_are_queries() -> None:
    found = compared(last_keys, last_keys_counted, TWO)
    assert found.verdict == "proved", found.why
    assert "r ≤ n" in lengths(found)


@pytest.mark.parametrize(
    ("one", "other", "call"),
    [(last_of_all, of_the_last_but_one, SELF), (last_keys, first_keys, TWO)],
)
def test_other_rows_have_a_counterexample(
    one: Callable[..., Any], other: Callable[..., Any], call: str
) -> None:
    assert compared(one, other, call).verdict == "counterexample"


def test_what_is_written_by_others_is_told_as_it_was() -> None:
    n, r, p = size("n"), size("r"), size("p")
    bounds = {n: add(r, num(2)), r: num(3)}
    longer, told = from_least(bounds), from_one(bounds)
    assert longer(r) is integer(add(r, num(2)))
    assert longer(n) is integer(add(n, r, num(3)))
    assert longer(p) is p
    for length in (n, r, p, integer(add(n, mul(num(2), r), p))):
        assert told(longer(length)) is length

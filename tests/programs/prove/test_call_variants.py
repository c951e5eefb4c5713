"""Code that acts otherwise for positions in another layout, or for one array in two places."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from tests.numeric.false_programs import rotated

pytestmark = pytest.mark.usefixtures("fewer_lengths")
SECONDS = 3.0

POSITIONS: dict[str, tuple[Callable[[Tensor], bool], str]] = {
    "part of a longer array": (lambda p: p.storage_offset() > 0, "views|repeated"),
    "one row for all": (lambda p: p.stride(0) == 0 and p.shape[0] > 1, "repeated"),
    "written to": (lambda p: p._version > 0, "views"),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_given_in_each_way(name: str) -> None:
    other, how = POSITIONS[name]

    def rotate(x: Tensor, p: Tensor) -> Tensor:
        return rotated(x, p.float() ** 2 if other(p) else p)

    subject = Rotary(name="r", rotate=rotate, width=4)
    (finding,) = prove(subject, ("linear",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert re.search(how, finding.why)


def keys_are_values(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return k is v and q is not k


def queries_are_keys(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return q is k and k is not v


def queries_are_values(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return q is v and k is not v


@pytest.mark.parametrize("same", [keys_are_values, queries_are_keys, queries_are_values])
@pytest.mark.parametrize("order", ["B {} H D", "B {} (H D)"])
def test_one_array_stays_one_in_another_layout(
    same: Callable[[Tensor, Tensor, Tensor], bool], order: str
) -> None:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        a, b, c = (x.reshape(*x.shape[:2], -1, 8) for x in (q, k, v))
        b = b.cumsum(1) if same(q, k, v) else b
        weights = torch.softmax(a.transpose(1, 2) @ b.permute(0, 2, 3, 1), -1)
        return (weights @ c.transpose(1, 2)).transpose(1, 2).reshape(q.shape)

    queries, keys = order.format("r"), order.format("n")
    line = f"q: {queries}, k: {keys}, v: {keys} -> {queries}"
    (finding,) = prove(adapted_as(attention, line), ("order-of-keys",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert "of its shape" in finding.why


@pytest.mark.parametrize("keys", ["B H n D", "B G n D"])
def test_queries_and_keys_that_are_rotated_may_be_one_array(keys: str) -> None:
    def apply(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rotated_keys = rotated(k, positions)
        return rotated(q, positions), rotated(rotated_keys, positions) if q is k else rotated_keys

    line = f"q: B H n D, k: {keys}, positions: B n -> q, k"
    (finding,) = prove(adapted_as(apply, line), ("relative",), seconds=SECONDS).findings
    assert finding.verdict == "undecided"
    assert "of its shape" in finding.why

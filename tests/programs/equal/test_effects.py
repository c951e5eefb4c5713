"""A program that writes into its inputs is compared by its values, and told beside the verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.equal.deciding import Verdict, compare
from attnproof.programs.equal.sides import Operand

X = "x: B n E -> B n E"
QKV = "q: B H n D, k: B H n D, v: B H n D -> B H n D"
LEAVES = "; the other leaves its inputs as they are"
Code = Callable[..., Tensor]


def plain(x: Tensor) -> Tensor:
    return x + 1


def writes(x: Tensor) -> Tensor:
    return x.add_(1)


def leaves_more(x: Tensor) -> Tensor:
    return x.add_(2) - 1


def scales(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q *= q.shape[-1] ** -0.5
    return torch.softmax(q @ k.mT, -1) @ v


def divides(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def equal(first: Code, second: Code, line: str = X) -> Verdict:
    return compare(Operand(first, "one", line), Operand(second, "other", line))


@pytest.mark.parametrize(
    ("first", "second", "line", "remark"),
    [
        (writes, plain, X, f"one writes into x{LEAVES}"),
        (plain, writes, X, f"other writes into x{LEAVES}"),
        (scales, divides, QKV, f"one writes into q{LEAVES}"),
        (writes, writes, X, "both write into x"),
        (writes, leaves_more, X, "both write into x, and leave different numbers in x"),
    ],
)
def test_what_is_written_into_inputs_is_a_remark(
    first: Code, second: Code, line: str, remark: str
) -> None:
    found = equal(first, second, line)
    assert found.verdict == "proved"
    assert found.remarks == (remark,)
    assert "no two inputs share memory" in [one.text for one in found.assuming]


def test_what_leaves_its_inputs_has_no_remark_and_no_condition() -> None:
    found = equal(plain, lambda x: 1 + x)
    assert not found.remarks
    assert "no two inputs share memory" not in [one.text for one in found.assuming]


def test_a_result_that_reads_what_was_written_is_another_function() -> None:
    found: Any = equal(lambda x: x.add_(1) + x, lambda x: 2 * x + 1)
    assert found.verdict == "counterexample"
    assert found.remarks == (f"one writes into x{LEAVES}",)


def test_what_was_written_at_other_lengths_alone_is_not_proved() -> None:
    def longer(x: Tensor) -> Tensor:
        return x.add_(1) if x.shape[1] > 40 else x + 1

    assert equal(longer, plain).verdict != "proved"

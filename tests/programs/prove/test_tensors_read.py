"""Numbers that code reads from tensors it holds, and what it asks of their formats."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.finding import Finding
from attnproof.programs.prove import prove
from attnproof.programs.prove.tensors_read import TensorsRead
from attnproof.programs.subjects import Layer

table = torch.tensor([1.5, 2.25, -3.0])
number = torch.tensor(1.5)
unread = torch.tensor(2.5)


def of_rows(code: Callable[[Tensor], Tensor]) -> Finding:
    module = code if isinstance(code, nn.Module) else None
    subject = Layer(name="l", call=code, embed=4, module=module)
    (found,) = prove(subject, ("rows-of-batch-apart",)).findings
    return found


def kept(found: Finding) -> list[str]:
    return [one.text for one in found.assuming if "keep" in one.text]


class Weighed(nn.Module):
    """It asks whether its weight is quantized."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.is_floating_point():
            return x * self.weight
        return x.cumsum(0)


READ: dict[str, tuple[Callable[[Tensor], Tensor], list[str]]] = {
    "an entry that is multiplied": (
        lambda x: 2 * x + x.cumsum(0) * (table.tolist()[0] - 1.5),
        ["a tensor (3,) that the code holds keeps its numbers"],
    ),
    "an entry that is compared": (
        lambda x: x.cumsum(0) if max(table.tolist()) > 9 else 2 * x,
        ["a tensor (3,) that the code holds keeps its numbers"],
    ),
    "a single number": (
        lambda x: x.cumsum(0) if float(str(number.tolist())) > 9 else 2 * x,
        ["a tensor () that the code holds keeps its value, 1.5"],
    ),
    "the format of a weight": (Weighed(), ["the tensors that the code holds keep their formats"]),
    "the format of the input": (lambda x: 2 * x if x.is_floating_point() else x, []),
    "a number that is not read": (lambda x: 2 * x if len([unread, table]) < 3 else x, []),
    "a number in the graph": (lambda x: 2 * x + number, []),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_of_a_tensor_is_a_condition(name: str) -> None:
    code, told = READ[name]
    found = of_rows(code)
    assert found.verdict == "holds", found.why
    assert kept(found) == told


def test_the_law_is_broken_where_the_numbers_are_others() -> None:
    other = torch.tensor([2.5, 2.25])
    found = of_rows(lambda x: 2 * x + x.cumsum(0) * (other.tolist()[0] - 1.5))
    assert found.verdict == "broken"


def test_what_is_made_from_inputs_is_no_tensor_that_is_held() -> None:
    def code(x: Tensor) -> Tensor:
        assert float((x * table).sum()) < 99
        found: Tensor = x * float(table[1:].sum()) * torch.arange(3).tolist()[1]
        return found

    seen = TensorsRead()
    assert torch.equal(seen.of(code)(torch.ones(3)), torch.full((3,), -0.75))
    assert [one is table for one in seen.read] == [True]

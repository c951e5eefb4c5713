"""What a proof is of: one call of the code in evaluation; and what its numbers are kept in."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.prove import prove
from attnproof.programs.prove.calls import calls_of
from attnproof.programs.prove.comparison import CHANGES
from attnproof.programs.prove.conditions import ONE_CALL
from attnproof.programs.prove.running import Run, shrunk, witness_of
from attnproof.programs.subjects import Layer, Rotary, Subject
from attnproof.symbolic.scalars import num
from attnproof.theorems.laws import Formula

ROWS = "rows-of-batch-apart"


def layer(call: Callable[[Tensor], Tensor]) -> Layer:
    module = call if isinstance(call, nn.Module) else None
    return Layer(name="l", call=call, embed=4, module=module)


def rotated(x: Tensor, p: Tensor) -> Tensor:
    """A rotary embedding as it should be."""
    angle = p[:, None, :, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    u, v = x.chunk(2, -1)
    return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


def rotary(rotate: Callable[[Tensor, Tensor], Tensor]) -> Rotary:
    return Rotary(name="r", rotate=rotate, width=4)


class Counting(nn.Module):
    """A module that mixes the rows of a batch from its k-th call on."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k, self.calls = k, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x if self.calls < self.k else x.flip(0)


class Keeping(nn.Module):
    """A module that adds what it was first called with."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            self.first.append(1.0)
        return x * (1.0 if len(self.first) < 4 else 2.0)


class Training(nn.Module):
    """Rows are mixed in training alone."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(0) if self.training else x


class Gate(nn.Module):
    """Rows are mixed as far as a buffer says, which is 0 before training."""

    def __init__(self, gate: Tensor) -> None:
        super().__init__()
        self.gate: Tensor
        self.register_buffer("gate", gate)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gate * x.mean(0, keepdim=True)


@pytest.mark.parametrize(
    "code",
    [Counting(2), Counting(3), Counting(6), Counting(9), Keeping()],
    ids=["2nd", "3rd", "6th", "9th", "kept"],
)
def test_nothing_is_proved_of_code_that_does_otherwise_at_a_later_call(code: nn.Module) -> None:
    found = prove(layer(code), (ROWS,))
    assert found.findings == ()
    assert CHANGES in found.why


def test_nothing_is_proved_of_code_that_draws_in_python() -> None:
    drawn = random.Random(0)
    found = prove(layer(lambda x: x if drawn.random() < 0.5 else x.flip(0)), (ROWS,))
    assert found.findings == ()


def test_nothing_is_proved_of_code_that_asks_whether_gradients_flow() -> None:
    found = prove(layer(lambda x: x.flip(0) if x.requires_grad else x), (ROWS,))
    assert found.findings == ()
    assert "the term and the code differ" in found.why


def test_a_proof_is_of_evaluation_and_says_so() -> None:
    code = Training()
    (finding,) = prove(layer(code), (ROWS,)).findings
    assert finding.verdict == "holds"
    assert ONE_CALL in finding.assuming
    assert code.training, "the module is left as it was"


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (torch.zeros(1), "the buffer gate keeps its value, 0 everywhere"),
        (torch.zeros((), dtype=torch.int64), "the buffer gate keeps its value, 0"),
    ],
)
def test_what_a_buffer_holds_is_told_where_it_is_used(gate: Tensor, told: str) -> None:
    (finding,) = prove(layer(Gate(gate)), (ROWS,)).findings
    assert finding.verdict == "holds"
    assert told in [condition.text for condition in finding.assuming]


class Attributes(nn.Module):
    """Rows are mixed as far as tensors say that are not buffers: of the module, or in a list."""

    def __init__(self, gate: Tensor, how: str) -> None:
        super().__init__()
        self.gate, self.how = gate, how
        self.listed = [gate.clone()] if how == "list" else []

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "written down":
            return x + torch.tensor([0.0, 0.0, 0.0, 0.0]) * x.mean(0, keepdim=True)
        gate = self.gate if self.how == "attribute" else self.listed[0]
        return x + gate * x.mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("gate", "how", "told"),
    [
        (torch.zeros(4), "attribute", "the tensor gate keeps its value, 0 everywhere"),
        (torch.zeros((), dtype=torch.int64), "attribute", "the tensor gate keeps its value, 0"),
        (torch.zeros(4), "list", "a tensor (4,) that the code holds keeps its value, 0 everywhere"),
        (torch.zeros(4), "written down", ""),
    ],
)
def test_what_another_tensor_holds_is_told_as_a_buffer_is(
    gate: Tensor, how: str, told: str
) -> None:
    (finding,) = prove(layer(Attributes(gate, how)), (ROWS,)).findings
    assert finding.verdict == "holds"
    texts = [
        condition.text for condition in finding.assuming if "keeps its value" in condition.text
    ]
    assert texts == [told] * bool(told)


def test_a_global_tensor_is_told_too() -> None:
    held = torch.zeros(4)
    (finding,) = prove(layer(lambda x: x + held * x.mean(0, keepdim=True)), (ROWS,)).findings
    assert finding.verdict == "holds"
    assert any("that the code holds keeps its value" in one.text for one in finding.assuming)


def test_a_proof_says_that_it_is_of_calls_without_autocast() -> None:
    def asks(x: Tensor) -> Tensor:
        return x.flip(0) if torch.is_autocast_enabled("cpu") else x

    (finding,) = prove(layer(asks), (ROWS,)).findings
    assert finding.verdict != "holds" or any(
        "without autocast" in one.text for one in finding.assuming
    )


def mixed(x: Tensor, p: Tensor) -> Tensor:
    """Every head sees the mean of all."""
    return rotated(x, p) + rotated(x, p).mean(1, keepdim=True)


FALSE: dict[str, tuple[Callable[[], Subject], str]] = {
    "positions off by one": (lambda: rotary(lambda x, p: rotated(x, p + 1)), "composition"),
    "heads mixed alike": (lambda: rotary(mixed), "every-head-alike"),
    "heads mixed alike, in order": (
        lambda: Rotary(
            name="r",
            rotate=rotated,
            width=4,
            running=lambda x: mixed(x, torch.arange(x.shape[2])[None]),
        ),
        "every-head-alike",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_the_words_of_a_law_are_what_is_proved(name: str) -> None:
    make, law = FALSE[name]
    (finding,) = prove(make(), (law,)).findings
    assert finding.verdict == "broken"


@pytest.mark.parametrize("law", ["composition", "every-head-alike"])
@pytest.mark.parametrize("factor", [1, 2])
def test_a_right_embedding_still_has_its_proof(law: str, factor: int) -> None:
    (finding,) = prove(rotary(lambda x, p: factor * rotated(x, p)), (law,)).findings
    assert finding.verdict == "holds"


def test_an_error_of_the_code_is_no_witness_and_one_of_ours_is_not_hidden() -> None:
    def code(x: Tensor) -> Tensor:
        raise KeyError(len(x))

    def right(f: Any, x: Any) -> Any:
        return f.call(x), x

    def wrong(f: Any, x: Any) -> Any:
        return f.call(x), f.call(x, more=x)

    laws = [Formula("any", "layer", "call", {"x": "real B n E"}, body) for body in (right, wrong)]
    subject = Layer(name="l", call=code, embed=4)
    (call,) = calls_of(subject)
    letters = {"B": num(2), "n": num(2), "E": num(4)}
    assert witness_of(Run(laws[0], {"call": call.alone}, letters, subject)) is None
    with pytest.raises(TypeError, match="unexpected keyword argument 'more'"):
        witness_of(Run(laws[1], {"call": lambda x: x}, letters, subject))


def test_one_entry_is_left_of_many_where_one_breaks_the_law() -> None:
    class Second:
        def sides(self, values: Any) -> None:
            raise NotImplementedError

        def gap(self, values: Any) -> tuple[float, float, tuple[int, ...]]:
            return float(values["x"][200_001]), 0.1, (0,)

    x = torch.zeros(1 << 18)
    x[200_000:200_002] = 1
    assert shrunk(Second(), {"x": x})["x"].nonzero().tolist() == [[200_001]]

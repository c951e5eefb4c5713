"""Operations in place: read as they stand where they alone have what they write into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import export
from torch.fx import GraphModule
from torch.nn.functional import dropout

from attnproof.programs.prove import comparison, exporting
from attnproof.programs.prove.comparison import without_copies
from attnproof.programs.prove.exporting import read, traced
from attnproof.programs.prove.in_place import written_as_new
from attnproof.programs.prove.proving import prove
from attnproof.programs.subjects import Layer

Code = Callable[[Tensor], Tensor]
HIDDEN = torch.ones(3, 4) > 0


class Of(nn.Module):
    def __init__(self, code: Code) -> None:
        super().__init__()
        self.code = [code]

    def forward(self, x: Tensor) -> Tensor:
        return self.code[0](x)


def kept(x: Tensor) -> Tensor:
    """What was written into is read again, as it is then."""
    y = 2 * x
    z = y.add_(1)
    return y * z


def seen_before(x: Tensor) -> Tensor:
    y = 2 * x
    before = y[:, :2]
    y.add_(1)
    return before


def part(x: Tensor) -> Tensor:
    y = 2 * x
    y[:, 0].mul_(3)
    return y


def given(x: Tensor) -> Tensor:
    return x.clone().detach().add_(x) + x.add_(1)


def given_back(x: Tensor) -> Tensor:
    """In evaluation dropout gives its own input, which is written into."""
    y = 2 * x
    z = dropout(y, 0.5, training=False).add_(1)
    return y * z


def as_it_was(x: Tensor) -> Tensor:
    """What is of this format already is not copied."""
    y = 2 * x
    z = y.to(torch.float32).mul_(3)
    return y + z


def in_order(x: Tensor) -> Tensor:
    """What lies in order already is not copied, but is while it is traced from lengths of 1."""
    y = 2 * x
    z = y.contiguous().add_(1)
    return y * z


def viewed(x: Tensor) -> Tensor:
    y = 2 * x
    y.view(-1).add_(1)
    return y


def rounded(x: Tensor) -> Tensor:
    """In half precision, where what is new would be of single precision."""
    return x.half().mul_(x.cumsum(1)).float()


def into_itself(x: Tensor) -> Tensor:
    y = 2 * x
    return y.transpose(0, 1).add_(1) + y.transpose(0, 1)


@pytest.mark.parametrize("code", [seen_before, part, given_back, as_it_was, viewed, into_itself])
def test_what_something_else_has_is_not_read_as_new(code: Code) -> None:
    assert not written_as_new(export(Of(code), (torch.ones(3, 4),)).graph)


def test_what_is_given_is_not_read_as_new() -> None:
    graph = export(Of(lambda x: x.add_(1)), (torch.ones(3, 4),)).graph
    assert not written_as_new(graph)


def test_what_would_be_of_another_format_is_not_read_as_new() -> None:
    graph = export(Of(rounded), (torch.ones(3, 4),)).graph
    before = [str(node.target) for node in graph.nodes]
    assert not written_as_new(graph)
    assert "aten.mul_.Tensor" in before


def filled(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x).masked_fill_(HIDDEN, float("-inf"))
    return (x + 1).mul_(2).add_(mask)


def scores(x: Tensor) -> Tensor:
    y = x @ x.mT
    y *= 0.5
    y += 1
    return y.softmax(-1) @ x


@pytest.mark.parametrize("code", [filled, scores, kept])
def test_what_nothing_else_has_is_read_as_new(code: Code) -> None:
    program = export(Of(code), (torch.ones(3, 4),))
    assert written_as_new(program.graph)
    assert not [node for node in program.graph.nodes if str(node.target).endswith("_.Tensor")]
    program.graph_module.recompile()
    x = torch.randn(3, 4)
    assert torch.equal(program.module()(x).nan_to_num(), code(x).nan_to_num())


@pytest.mark.parametrize("code", [seen_before, part, as_it_was, in_order, viewed, into_itself])
def test_what_is_taken_apart_gives_what_the_code_gives(code: Code) -> None:
    x = torch.randn(3, 4)
    found = read(traced(code, (x,), [(True, False)], from_one=True))
    assert torch.equal(found.program.module()(x.clone()), code(x.clone()))


class Attends(nn.Module):
    """Attention whose scores are scaled and hidden in place."""

    def forward(self, x: Tensor) -> Tensor:
        y = x @ x.mT
        y *= 0.5
        return y.softmax(-1) @ x


class OfEarlierRows(Attends):
    """The scores that were scaled are added once more, to those of the first row alone."""

    def forward(self, x: Tensor) -> Tensor:
        y = x @ x.mT
        first = y[:1]
        y *= 1 + first.abs()
        return y.softmax(-1) @ x


def rows_apart(code: Any) -> str:
    found = prove(Layer(name="l", call=code, embed=4), ("rows-of-batch-apart",)).findings
    return found[0].verdict


def test_rows_are_apart_where_scores_are_scaled_in_place() -> None:
    assert rows_apart(Attends()) == "holds"


def test_rows_that_hang_on_the_first_one_in_place_are_not_apart() -> None:
    assert rows_apart(OfEarlierRows()) == "broken"


@pytest.mark.parametrize("code", [nn.Linear(4, 4), Attends()])
def test_code_that_asks_nothing_of_one_is_traced_once(
    code: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    count: list[Any] = []

    def counted(*given: Any, **how: Any) -> Any:
        count.append(given)
        return export(*given, **how)

    monkeypatch.setattr(exporting, "export", counted)
    assert rows_apart(code) == "holds"
    assert len(count) == 1


# --- copies that a graph is run without


class Copying(nn.Module):
    """Copies before an operation that needs no copy, and before one that does if ``views``."""

    def __init__(self, *, views: bool = False, writes: bool = False) -> None:
        super().__init__()
        self.views, self.writes = views, writes
        self.register_buffer("kept", torch.ones(3, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        if self.writes:
            y.add_(1)
        kept: Any = self.kept
        return (y.view(-1) if self.views else y @ y.clone().transpose(0, 1)), kept.clone()


def module_of(code: Copying) -> Any:
    return export(code, (torch.ones(2, 3),)).graph_module


def test_a_graph_is_run_without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    x, kept = torch.randn(2, 3), torch.ones(3, 2)
    module, made = module_of(Copying()), []

    def noted(*given: Any) -> Any:
        made.append(GraphModule(*given))
        return made[-1]

    monkeypatch.setattr(comparison, "GraphModule", noted)
    lean = without_copies(module)
    assert not any(node.target is comparison.COPY for node in made[0].graph.nodes)
    found, table = lean(kept, x)
    assert torch.equal(found, module(kept, x)[0])
    kept.zero_()  # as code may write to what it keeps
    assert torch.equal(table, torch.ones(3, 2))


def test_copies_that_an_operation_or_a_write_needs_are_made() -> None:
    x, kept = torch.randn(2, 3), torch.ones(3, 2)
    viewing, writing = module_of(Copying(views=True)), module_of(Copying(writes=True))
    assert torch.equal(without_copies(viewing)(kept, x)[0], viewing(kept, x)[0])
    before = x.clone()
    assert without_copies(writing) is writing
    assert torch.equal(x, before)

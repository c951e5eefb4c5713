"""Code of one length, or of one grid: it is called at that, and says so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.draw import Draw
from attnproof.programs.grammar import parse
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove.calls import calls_of
from attnproof.programs.signature import SignatureError
from attnproof.programs.subject import adapted_as, kind_of


class OfMemory(nn.Module):
    """Attention to a memory of five, in which neighbours are added; ``mixed``: of another row."""

    def __init__(self, mixed: bool = False) -> None:
        super().__init__()
        self.mixed = mixed

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert k.shape[1:] == v.shape[1:] == (5, q.shape[-1])
        k, v = (torch.cat((x, x[:, :-1] + x[:, 1:]), 1) for x in (k, v))
        out: Tensor = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
        return out + out[:1] if self.mixed else out


class OfGrid(nn.Module):
    """Attention of a fused projection over a grid of one size, with biases of its places."""

    def __init__(self, sides: tuple[int, int] = (3, 5), mixed: bool = False) -> None:
        super().__init__()
        self.sides, self.mixed = sides, mixed
        area = sides[0] * sides[1]
        self.table = nn.Parameter(torch.randn(area, area))

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[1:3] == self.sides
        q, k, v = x.flatten(1, 2).chunk(3, -1)
        out: Tensor = (q @ k.mT / q.shape[-1] ** 0.5 + self.table).softmax(-1) @ v
        out = out + out[:1] if self.mixed else out
        return out.reshape(len(out), *self.sides, -1)


LINES: dict[str, tuple[Any, str, str]] = {
    "a memory": (
        OfMemory,
        "q: B r 8, k: B 5 8, v: B 5 8 -> B r 8",
        "its context has 5 tokens, and no other number",
    ),
    "a grid": (OfGrid, "x: B 3 5 24 -> B 3 5 8", "tokens fill a grid of 3 by 5 row by row"),
}


@pytest.mark.parametrize(("code", "line", "told"), LINES.values(), ids=LINES)
def test_it_is_called_at_its_length_which_stands_on_the_line(
    code: Any, line: str, told: str
) -> None:
    subject = adapted_as(code, line, kind="" or None)
    found = {one.law: one.verdict for one in examine(subject, (Draw(),))}
    assert found["rows-of-batch-apart"] == "holds"
    assert "broken" not in found.values()
    assert told in subject.adapted
    (call, *_) = calls_of(subject)
    assert told in [one.text for one in call.where]
    broken = adapted_as(code, line, settings={"mixed": True})
    (seen,) = examine(broken, (Draw(),), ("rows-of-batch-apart",))
    assert seen.verdict == "broken"


@pytest.mark.parametrize(("code", "line", "_"), LINES.values(), ids=LINES)
def test_another_length_than_its_own_is_refused(code: Any, line: str, _: str) -> None:
    with pytest.raises(SignatureError, match="AssertionError"):
        adapted_as(code, line.replace("5", "4"))


def test_a_memory_of_one_number_is_a_context_and_is_not_asked_what_tokens_do() -> None:
    subject = adapted_as(OfMemory, LINES["a memory"][1], kind="attention")
    assert "context" in subject.given
    (seen,) = examine(subject, (Draw(),), ("causal",))
    assert seen.verdict == "not asked"


def test_attention_that_gives_other_features_is_a_layer() -> None:
    assert kind_of(parse("x: B h w E -> B h w 16"), "Attention") == "layer"
    assert kind_of(parse("x: B n E -> B n E"), "Attention") == "attention"

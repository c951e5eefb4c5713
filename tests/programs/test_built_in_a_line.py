"""What a line says a class is built with is what --set says: the code is built once, and proved."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.choices import choices
from attnproof.programs.draw import Draw
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Attention, Subject


class Rope(nn.Module):
    """Rotary code of one width, with a fault where it is built so."""

    def __init__(self, head_dim: int = 32, late: bool = False) -> None:
        super().__init__()
        self.head_dim, self.late = head_dim, late
        speeds = 100.0 ** -(torch.arange(0, head_dim, 2) / head_dim)
        self.speeds: Tensor
        self.register_buffer("speeds", speeds)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        assert x.shape[-1] == self.head_dim
        at = positions * positions if self.late else positions
        angle = at[:, None, :, None] * self.speeds
        u, v = x.chunk(2, -1)
        return torch.cat((u * angle.cos() - v * angle.sin(), u * angle.sin() + v * angle.cos()), -1)


class Sines(nn.Module):
    """A table that is added."""

    def __init__(self, dim: int = 48) -> None:
        super().__init__()
        speeds = 100.0 ** -(torch.arange(0, dim, 2) / dim)
        angle = torch.arange(64)[:, None] * speeds
        self.table: Tensor
        self.register_buffer("table", torch.cat((angle.sin(), angle.cos()), -1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class Scores(nn.Module):
    """Attention on heads that is built with their width, and does not read it off."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert q.shape[-1] == self.dim
        out: Tensor = (q @ k.mT / self.dim**0.5).softmax(-1) @ v
        return out


class Mixes(nn.Module):
    """A layer with projections of its own."""

    def __init__(self, size_of_tokens: int = 24) -> None:
        super().__init__()
        self.out = nn.Linear(size_of_tokens, size_of_tokens)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out((x @ x.mT / 4).softmax(-1) @ x)
        return out


def _verdict(subject: Subject, law: str) -> str:
    (found,) = [one for one in prove(subject, (law,)).findings if one.law == law]
    return found.verdict


CALLS: dict[str, tuple[Any, str, str, str]] = {
    "rotary": (Rope, "x: B H n D, positions: B n -> x", "head_dim = D", "relative"),
    "a table": (Sines, "x: B n E -> B n E", "dim = E", "rows-of-batch-apart"),
    "heads": (Scores, "q: B H r D, k: B H n D, v: B H n D -> B H r D", "dim = D", "permutation"),
    "a layer": (Mixes, "x: B n E -> B n E", "size_of_tokens = E", "permutation"),
}


@pytest.mark.parametrize(("code", "line", "built", "law"), CALLS.values(), ids=CALLS)
def test_what_a_line_builds_is_proved_as_what_a_setting_builds(
    code: Any, line: str, built: str, law: str
) -> None:
    name = built.partition(" ")[0]
    told = adapted_as(code, f"{line}; built with {built}")
    module: Any = told.module
    width = {"D": "width", "E": "embed"}[built[-1]]
    size = getattr(told, width, 0) or getattr(told, "width", 0)
    if name in vars(module):
        assert getattr(module, name) == size
    assert "built as with" not in told.adapted
    assert _verdict(told, law) == "holds"
    assert _verdict(adapted_as(code, line, settings={name: size}), law) == "holds"


def test_what_a_line_builds_with_a_fault_is_not_proved() -> None:
    line = "x: B H n D, positions: B n -> x; built with head_dim = D"
    assert _verdict(adapted_as(Rope, line, settings={"late": True}), "relative") != "holds"


def test_heads_that_a_line_tells_are_those_that_it_is_built_with() -> None:
    line = "q: B H r 12, k: B H n 12, v: B H n 12 -> B H r 12; built with dim = 12"
    subject = adapted_as(Scores, line)
    assert isinstance(subject, Attention)
    assert subject.width == 12
    with pytest.raises(AssertionError):
        adapted_as(Scores, line.replace("dim = 12", "dim = 13"))


class Wide(Rope):
    """It has one frequency at a width of 8, and those of its base at others."""

    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__(head_dim)
        self.speeds = base ** -(torch.arange(0, head_dim, 2) // 8 * 8 / head_dim)


def test_a_width_that_was_chosen_here_is_named_where_another_keeps_the_law() -> None:
    line = "x: B H n D, positions: B n -> x; built with head_dim = D"
    subject = adapted_as(Wide, line)
    law = ("follows-its-arguments",)
    (seen,) = examine(subject, (Draw(),), law)
    assert seen.verdict == "broken"
    wider = [one for one in choices(subject) if "head_dim=16" in one.told]
    (other,) = examine(wider[0].make(), (Draw(),), law)
    assert other.verdict == "holds"

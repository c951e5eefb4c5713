"""Tables of positions of a grid: what they are along each axis, and faults that a line hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.calls.grids import along_each_axis
from attnproof.programs.declarations import parse
from attnproof.programs.execution.draw import Draw
from attnproof.programs.finding import Finding
from attnproof.programs.identify import identify
from attnproof.programs.measure.examine import examine
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Additive

SIZES = "dim = E, h = h, w = w -> (h w) E"


def waves(p: Tensor, dim: int, base: float = 1e4) -> Tensor:
    angles = p[:, None].double() * base ** (-torch.arange(0, dim, 2).double() / dim)
    return torch.cat((angles.sin(), angles.cos()), 1).float()


def placed(h: int, w: int, indexing: str = "ij") -> tuple[Tensor, Tensor]:
    rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing=indexing)
    return rows.reshape(-1), columns.reshape(-1)


def table(dim: int, h: int, w: int) -> Tensor:
    rows, columns = placed(h, w)
    return torch.cat((waves(rows, dim // 2), waves(columns, dim // 2)), 1)


def transposed(dim: int, h: int, w: int) -> Tensor:
    """Right for squares alone."""
    rows, columns = placed(h, w, "xy")
    return torch.cat((waves(rows, dim // 2), waves(columns, dim // 2)), 1)


def rows_twice(dim: int, h: int, w: int) -> Tensor:
    rows, _ = placed(h, w)
    return torch.cat((waves(rows, dim // 2), waves(rows, dim // 2)), 1)


def other_base(dim: int, h: int, w: int) -> Tensor:
    rows, columns = placed(h, w)
    return torch.cat((waves(rows, dim // 2), waves(columns, dim // 2, 100.0)), 1)


def summed(dim: int, h: int, w: int) -> Tensor:
    rows, columns = placed(h, w)
    return waves(rows, dim) + waves(columns + 0.5, dim)


def viewed(dim: int, h: int, w: int) -> Tensor:
    """Channels are counted on where places should be: what is along a side is of both."""
    return table(dim, h, w).reshape(dim, h * w).T


def square(dim: int, grid_size: int) -> Tensor:
    return table(dim, grid_size, grid_size)


class Image(nn.Module):
    """Adds the table to an image, channels first."""

    def forward(self, x: Tensor) -> Tensor:
        _, channels, h, w = x.shape
        return x + table(channels, h, w).T.reshape(channels, h, w)


class Video(nn.Module):
    """The table of three axes, two thirds of the last two alike."""

    def __init__(self, fault: bool = False) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        _, t, h, w, dim = x.shape
        each = [waves(torch.arange(n), dim // 4) for n in (t, h, w)]
        at = torch.cartesian_prod(*(torch.arange(n) for n in (t, h, w)))
        parts = [one[at[:, k]] for k, one in enumerate(each)]
        last = waves(at[:, 1 if self.fault else 2], dim // 4)
        return x + torch.cat((*parts, last), 1).reshape(t, h, w, dim)


def called(code: Any, line: str, declared: str = "") -> Additive:
    said = parse(declared) if declared else None
    found = adapted_as(code, line, kind="additive", declared=said)
    assert isinstance(found, Additive)
    return found


def asked(subject: Additive, law: str) -> Finding:
    (found,) = examine(subject, (Draw(0),), (law,))
    return found


CODE: dict[str, tuple[Any, str]] = {
    "a function of two lengths": (table, SIZES),
    "a function of squares": (square, "dim = E, grid_size = h -> (h h) E"),
    "a module for images": (Image(), "x: B E h w -> B E h w"),
    "a module for videos": (Video(), "x: B t h w E -> B t h w E"),
}


@pytest.mark.parametrize("name", CODE)
def test_tables_of_grids_keep_the_laws(name: str) -> None:
    subject = called(*CODE[name])
    assert subject.axes == (3 if "videos" in name else 2)
    for law in ("sees-positions", "products-of-offset", "linear-shift", "neighbours-differ"):
        assert asked(subject, law).verdict == "holds", law


def test_each_axis_is_identified() -> None:
    found = identify(called(*CODE["a function of two lengths"]), Draw(0))
    assert "rows (channels 0 to 7), columns (channels 8 to 15)" in found.sentence
    assert "sinusoidal, concatenated, sin first, base 10000" in found.sentence
    other = identify(called(other_base, SIZES), Draw(0))
    words = "columns (channels 8 to 15): sinusoidal, concatenated, sin first, base 100"
    assert words in other.sentence


@pytest.mark.parametrize(
    ("code", "law"), [(transposed, "products-of-offset"), (rows_twice, "sees-positions")]
)
def test_faults_of_grids_are_seen(code: Callable[..., Tensor], law: str) -> None:
    assert asked(called(code, SIZES), law).verdict == "broken"


def test_what_is_declared_holds_along_every_axis() -> None:
    said = "sinusoidal:base=10000"
    assert asked(called(table, SIZES, said), "frequencies-as-declared").verdict == "holds"
    found = asked(called(other_base, SIZES, said), "frequencies-as-declared")
    assert found.verdict == "broken"
    assert found.why.startswith("columns (channels 8 to 15): ")


def test_a_sum_over_axes_is_not_held_to_what_it_is_not() -> None:
    subject = called(summed, SIZES)
    assert not along_each_axis(subject)
    assert asked(subject, "products-of-offset").verdict == "not asked"


def test_a_shift_along_a_side_is_one_matrix_where_sides_share_their_channels() -> None:
    found = asked(called(summed, SIZES), "linear-shift")
    assert found.verdict == "holds"
    assert "rows (channels 0 to 15): one matrix takes" in found.why
    other = called(viewed, SIZES)
    assert not along_each_axis(other)
    assert asked(other, "linear-shift").verdict == "broken"


def test_one_channel_of_two_axes_is_seen() -> None:
    assert (
        asked(called(Video(fault=True), CODE["a module for videos"][1]), "sees-positions").verdict
        == "holds"
    )
    found = identify(called(Video(fault=True), CODE["a module for videos"][1]), Draw(0))
    assert "rows (channels 4 to 7, 12 to 15): " in found.sentence


class Learned(nn.Module):
    """Rows and columns of their own, fifty of each, channels first, as DETR has them."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.rows, self.columns = nn.Embedding(50, dim // 2), nn.Embedding(50, dim // 2)

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        rows = self.rows(torch.arange(h))[:, None].expand(-1, w, -1)
        columns = self.columns(torch.arange(w))[None].expand(h, -1, -1)
        made = torch.cat((columns, rows), -1).permute(2, 0, 1)
        return made[None].expand(len(x), -1, -1, -1)


class ChannelsLast(Image):
    """The table added to an image, channels last."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def of_both(dim: int, grid_size: tuple[int, int]) -> Tensor:
    return table(dim, *grid_size)[None]


GUESSED: dict[str, tuple[Any, str]] = {
    "two lengths": (table, "dim = E, h = h, w = w -> (h w) E"),
    "one length of squares": (square, "dim = E, grid_size = h -> (h h) E"),
    "a pair of lengths": (of_both, "dim = E, grid_size = (h, w) -> 1 (h w) E"),
    "channels first": (Image(), "x: B E h w -> B E h w"),
    "channels last": (ChannelsLast(), "x: B h w E -> B h w E"),
    "learned": (Learned(), "x: B E h w -> B E h w"),
}


@pytest.mark.parametrize("name", GUESSED)
def test_grids_are_called_by_their_bare_names(name: str) -> None:
    code, line = GUESSED[name]
    subject = adapted_as(code, kind="additive")
    assert subject.line == line
    known: Any = identify(subject, Draw(0)).part("axes")
    assert known.value == 2


def test_a_learned_table_of_a_grid_is_said_to_be_one() -> None:
    found = identify(adapted_as(Learned(), kind="additive"), Draw(0))
    assert "rows (channels 8 to 15), columns (channels 0 to 7), a learned table" in found.sentence

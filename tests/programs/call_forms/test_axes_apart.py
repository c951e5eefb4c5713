"""Rotary code that takes positions, or tables, of each axis apart: a fault in one axis shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.call_forms.choices import choices
from attnproof.programs.calls.rotary import rotary
from attnproof.programs.code import Options
from attnproof.programs.execution.draw import Draw
from attnproof.programs.loading.building import code_of
from attnproof.programs.measure.examine import examine
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as

from . import tables_of_two_axes


def half_turned(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def along(x: Tensor, at: Tensor, base: float = 100.0) -> Tensor:
    width = x.shape[-1]
    angles = at[..., None] * base ** (-torch.arange(0, width, 2) / width)
    angles = torch.cat((angles, angles), -1)
    return x * angles.cos() + half_turned(x) * angles.sin()


def rope2d(x: Tensor, pos_h: Tensor, pos_w: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((along(a, pos_h), along(b, pos_w)), -1)


def rope2d_of_rows(x: Tensor, y_pos: Tensor, x_pos: Tensor) -> Tensor:
    return rope2d(x, y_pos[:, None], x_pos[:, None])


def rope2d_tokens_first(x: Tensor, height_ids: Tensor, width_ids: Tensor) -> Tensor:
    assert x.dim() == 4  # (B, n, H, D)
    return rope2d(x, height_ids[:, None], width_ids[:, None])


def rope2d_pair(q: Tensor, k: Tensor, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
    return rope2d(q, rows, cols), rope2d(k, rows, cols)


def rope3d(x: Tensor, pos_t: Tensor, pos_h: Tensor, pos_w: Tensor) -> Tensor:
    parts = zip(x.chunk(3, -1), (pos_t, pos_h, pos_w), strict=True)
    return torch.cat([along(part, at) for part, at in parts], -1)


class Rope2D(nn.Module):
    def __init__(self, head_dim: int, base: float = 100.0) -> None:
        super().__init__()
        self.head_dim, self.base = head_dim, base

    def forward(self, x: Tensor, position_h: Tensor, position_w: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((along(a, position_h, self.base), along(b, position_w, self.base)), -1)


def sections_of(table: Tensor, sizes: Any, unsqueeze_dim: int) -> Tensor:
    parts = torch.split(table, sizes, -1)
    return torch.cat([m[i % 3] for i, m in enumerate(parts)], -1).unsqueeze(unsqueeze_dim)


def apply_multimodal_rotary_pos_emb(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, mrope_section: Any, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    cos, sin = (sections_of(one, mrope_section * 2, unsqueeze_dim) for one in (cos, sin))
    return q * cos + half_turned(q) * sin, k * cos + half_turned(k) * sin


def apply_mrope_tokens_first(x: Tensor, cos: Tensor, sin: Tensor, mrope_section: Any) -> Tensor:
    cos, sin = (sections_of(one, mrope_section * 2, 2) for one in (cos, sin))
    return x * cos + half_turned(x) * sin


def apply_mrope_of_pairs(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, sections: list[int]
) -> tuple[Tensor, Tensor]:
    cos, sin = (sections_of(one, sections, 1).repeat(1, 1, 1, 2) for one in (cos, sin))
    return q * cos + half_turned(q) * sin, k * cos + half_turned(k) * sin


CODE: dict[Callable[..., Any], str] = {
    rope2d: "x: B H n D, pos_h: n, pos_w: n -> x",
    rope2d_of_rows: "x: B H n D, y_pos: B n, x_pos: B n -> x",
    rope2d_tokens_first: "x: B n H D, height_ids: n, width_ids: n -> x",
    rope2d_pair: "q: B H n D, k: B G n D, rows: n, cols: n -> q, k",
    rope3d: "x: B H n D, pos_t: n, pos_h: n, pos_w: n -> x",
    Rope2D: "x: B H n D, position_h: n, position_w: n -> x",
    apply_multimodal_rotary_pos_emb: "q: B H n D, k: B G n D, cos: 3 B n D, sin: 3 B n D, "
    "mrope_section = (D/12, D/6, D/4) -> q, k",
    apply_mrope_tokens_first: "x: B n H D, cos: 3 B n D, sin: 3 B n D, "
    "mrope_section = (D/12, D/6, D/4) -> x",
    apply_mrope_of_pairs: "q: B H n D, k: B G n D, cos: 3 B n D/2, sin: 3 B n D/2, "
    "sections = (D/12, D/6, D/4) -> q, k",
}
LAWS = ("relative", "norm", "every-axis-matters", "rows-of-batch-apart")


@pytest.mark.parametrize("code", CODE)
def test_each_axis_is_a_coordinate(code: Any) -> None:
    guessed: Any = adapted_as(code)
    assert guessed.kind == "rotary"
    assert guessed.line == CODE[code]
    assert guessed.axes == (3 if code is rope3d or "3 B" in CODE[code] else 2)
    again: Any = adapted_as(code, guessed.line, kind="rotary")
    assert (again.line, again.axes) == (guessed.line, guessed.axes)
    assert [one.verdict for one in examine(guessed, laws=LAWS)] == ["holds"] * len(LAWS)


def second_axis_squared(x: Tensor, pos_h: Tensor, pos_w: Tensor) -> Tensor:
    return rope2d(x, pos_h, pos_w**2)


def first_axis_twice(x: Tensor, pos_h: Tensor, pos_w: Tensor) -> Tensor:
    return rope2d(x, pos_h, pos_h + 0 * pos_w)


def axes_of_keys_exchanged(
    q: Tensor, k: Tensor, pos_h: Tensor, pos_w: Tensor
) -> tuple[Tensor, Tensor]:
    return rope2d(q, pos_h, pos_w), rope2d(k, pos_w, pos_h)


def apply_mrope_sine_of_another_axis(
    x: Tensor, cos: Tensor, sin: Tensor, mrope_section: Any
) -> Tensor:
    return apply_mrope_tokens_first(x, cos, sin.roll(1, 0), mrope_section)


def apply_mrope_last_section_of_first_axis(
    x: Tensor, cos: Tensor, sin: Tensor, mrope_section: Any
) -> Tensor:
    cos, sin = (torch.stack((one[0], one[1], one[0])) for one in (cos, sin))
    return apply_mrope_tokens_first(x, cos, sin, mrope_section)


def apply_mrope_one_section_not_twice(
    x: Tensor, cos: Tensor, sin: Tensor, mrope_section: Any
) -> Tensor:
    order = [0, 1, 2, 1, 0, 2]
    parts = [torch.split(one, mrope_section * 2, -1) for one in (cos, sin)]
    cos, sin = (
        torch.cat([m[k] for k, m in zip(order, one, strict=True)], -1).unsqueeze(2) for one in parts
    )
    return x * cos + half_turned(x) * sin


BROKEN = {
    second_axis_squared: "relative",
    first_axis_twice: "every-axis-matters",
    axes_of_keys_exchanged: "relative",
    apply_mrope_sine_of_another_axis: "relative",
    apply_mrope_last_section_of_first_axis: "every-axis-matters",
    apply_mrope_one_section_not_twice: "relative",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_fault_in_one_axis_breaks_a_law(code: Any) -> None:
    (found,) = examine(adapted_as(code), laws=[BROKEN[code]])
    assert found.verdict == "broken"


def test_sections_are_a_guess_that_no_single_number_replaces() -> None:
    guessed = adapted_as(apply_mrope_sine_of_another_axis)
    assert "with mrope_section = (D/12, D/6, D/4), which is a guess" in guessed.adapted
    told = choices(guessed, lambda line: adapted_as(apply_mrope_sine_of_another_axis, line))
    assert not [one.words for one in told if "mrope_section = " in one.words]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("x: B H n D, pos_h: n axis, pos_w = 3 -> x", "an array for each axis"),
        ("x: B H n D, cos: 3 n D, sin: 2 n D -> x", "as many rows in each table"),
    ],
)
def test_axes_that_do_not_agree_are_refused(line: str, wanted: str) -> None:
    code = code_of(rope2d if "pos_h" in line else apply_mrope_tokens_first, "f", Options(width=24))
    with pytest.raises(SignatureError, match=wanted):
        rotary(code, parse(line))


def test_of_two_functions_that_take_tables_the_one_that_keeps_norms_is_called() -> None:
    found = adapted_as(tables_of_two_axes.PatchRotaryEmbedding)
    assert found.line == (
        "x: B m D, position_ids: B n 2 -> cos: B n D, sin: B n D; then apply_rotary_of_axes("
        "x: B n H D, cos: B n D, sin: B n D, position_ids: B n 2 -> x)"
    )
    verdicts = {one.law: one.verdict for one in examine(found, (Draw(),), ("relative", "norm"))}
    assert verdicts == {"relative": "holds", "norm": "holds"}

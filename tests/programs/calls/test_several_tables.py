"""Bare names of rotary code: several tables, an axis by its number, scripted functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.call_forms.tokens import _tokens_lines
from attnproof.programs.code import Options
from attnproof.programs.loading.building import code_of
from attnproof.programs.loading.names import parameters
from attnproof.programs.measure.examine import examine
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary

from . import test_rotary_tables

precompute_matrices = test_rotary_tables.precompute_matrices  # of this file too


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Neighbours, by an angle for each pair."""
    u, v = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((u * cos - v * sin, u * sin + v * cos), -1).flatten(-2)


def rotate_2d(t: Tensor, freqs_x: Tensor, freqs_y: Tensor) -> Tensor:
    x, y = t.chunk(2, -1)
    return torch.cat((turned(x, freqs_x), turned(y, freqs_y)), -1)


def rotate_3d(t: Tensor, freqs_x: Tensor, freqs_y: Tensor, freqs_z: Tensor) -> Tensor:
    parts = zip(t.chunk(3, -1), (freqs_x, freqs_y, freqs_z), strict=True)
    return torch.cat([turned(x, angles) for x, angles in parts], -1)


def rotate_one_half(t: Tensor, freqs_x: Tensor, freqs_y: Tensor) -> Tensor:
    """Multiplies the other half by a number that depends on positions."""
    x, y = t.chunk(2, -1)
    return torch.cat((turned(x, freqs_x), y * (1 + freqs_y.repeat_interleave(2, -1))), -1)


def rotate_by_theta(q: Tensor, k: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    return turned(q, theta), turned(k, theta)


def apply_rotary_emb(
    xq: Tensor, xk: Tensor, seq_dim: int, freqs_cis_q: Tensor, freqs_cis_k: Tensor
) -> tuple[Tensor, Tensor]:
    """Matrices for queries and for keys, with tokens on the axis that is told."""

    def rotated(x: Tensor, own: Tensor) -> Tensor:
        shape = [n if k in (seq_dim, x.ndim - 1) else 1 for k, n in enumerate(x.shape)]
        pairs = own.reshape(*shape[:-1], -1, 2, 2)
        out: Tensor = pairs @ x.reshape(*x.shape[:-1], -1, 2, 1)
        return out[..., 0].flatten(-2)

    return rotated(xq, freqs_cis_q), rotated(xk, freqs_cis_k)


def broken(subject: Rotary) -> list[str]:
    found = examine(subject, laws=("norm", "relative"))
    return [one.law for one in found if one.verdict == "broken"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (rotate_2d, "freqs_x: n D/4 angles, freqs_y: n D/4 angles"),
        (rotate_3d, "freqs_z: n D/6 angles"),
        (rotate_by_theta, "theta: n D/2 angles"),
        (apply_rotary_emb, "freqs_cis_q, freqs_cis_k from precompute_matrices("),
    ],
)
def test_the_bare_name_is_enough(code: Callable[..., object], said: str) -> None:
    subject = adapted_as(code, kind="rotary")
    assert isinstance(subject, Rotary)
    assert said in subject.line
    assert broken(subject) == []


class OfASquare(nn.Module):
    """Rotates all places of a square, of which it holds the tables; half a vector by each side."""

    cos: Tensor
    sin: Tensor

    def __init__(self, dim: int, pt_seq_len: int = 4, by: int = 1) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(pt_seq_len), 100.0 ** (-torch.arange(0, dim, 2) / dim))
        angles = angles.repeat_interleave(2, -1)
        pair = (angles[:, None] + 0 * angles, angles + 0 * angles[:, None])
        whole = torch.cat(pair, -1).reshape(pt_seq_len**2, 2 * dim)
        self.register_buffer("cos", whole.cos())
        self.register_buffer("sin", by * whole.sin())

    def forward(self, t: Tensor) -> Tensor:
        u, v = t[..., ::2], t[..., 1::2]
        other = torch.stack((-v, u), -1).flatten(-2)
        out: Tensor = t * self.cos + other * self.sin
        return out


class OfAStretchedSquare(OfASquare):
    """The same, and no rotation."""

    def __init__(self, dim: int, pt_seq_len: int = 4) -> None:
        super().__init__(dim, pt_seq_len, by=2)


class OfAGrid(nn.Module):
    """The same, of sides that it is told in a call."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim

    def forward(self, q: Tensor, k: Tensor, grid_h: int, grid_w: int) -> tuple[Tensor, Tensor]:
        assert q.shape[-2] == grid_h * grid_w
        half = self.head_dim // 2
        ladder = 100.0 ** (-torch.arange(0, half, 2) / half)
        y, x = torch.meshgrid(torch.arange(grid_h), torch.arange(grid_w), indexing="ij")
        angles = torch.cat((y.reshape(-1, 1) * ladder, x.reshape(-1, 1) * ladder), -1)
        return turned(q, angles), turned(k, angles)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (OfASquare, "t: B H (h w) D -> t; built with dim = D/2, pt_seq_len = h"),
        (OfAGrid, "q: B H (h w) D, k: B H (h w) D, grid_h = h, grid_w = w -> q, k"),
    ],
)
def test_grids_are_called_by_the_bare_name(code: type[nn.Module], line: str) -> None:
    subject: Any = adapted_as(code, kind="rotary")
    assert (subject.line, subject.axes, broken(subject)) == (line, 2, [])


def test_a_square_that_is_no_rotation_breaks_its_law() -> None:
    subject = adapted_as(OfAStretchedSquare, kind="rotary")
    assert isinstance(subject, Rotary)
    assert "norm" in broken(subject)


def precompute_cis(dim: int, end: int) -> Tensor:
    angles = torch.outer(torch.arange(end), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
    return torch.polar(torch.ones_like(angles), angles)


class WithATable(nn.Module):
    """Attention that must be given the complex table by which it rotates queries and keys."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.head_dim = 8
        self.maps = nn.Linear(dim, 3 * dim)

    def forward(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        shape = (*x.shape[:2], -1, self.head_dim)
        q, k, v = (y.reshape(shape).transpose(1, 2) for y in self.maps(x).chunk(3, -1))

        def rotated(y: Tensor) -> Tensor:
            pairs = torch.view_as_complex(y.reshape(*y.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * freqs_cis).flatten(-2)

        out: Tensor = (rotated(q) @ rotated(k).mT / 8**0.5).softmax(-1) @ v
        return out.transpose(1, 2).reshape(x.shape)


def test_a_layer_is_given_the_table_of_its_file() -> None:
    subject = adapted_as(WithATable, kind="attention")
    made = "freqs_cis from precompute_cis(dim = D, end = m -> m D/2)"
    assert subject.line == f"x: B n E, freqs_cis: n D/2 cis -> B n E; {made}"
    (found,) = examine(subject, laws=("rows-of-batch-apart",))
    assert found.verdict == "holds"
    with pytest.raises(SignatureError):
        adapted_as(WithATable, "x: B n E, freqs_cis: n D cis -> B n E")


def test_what_does_not_rotate_is_not_called_right() -> None:
    found = adapted_as(rotate_one_half, kind="rotary")
    assert isinstance(found, Rotary)
    assert "norm" in broken(found)


def test_a_theta_without_an_array_is_a_base() -> None:
    def tables(positions: Tensor, theta: float) -> Tensor:
        return theta * positions

    assert [one.role for one in parameters(tables)] == ["positions", "base"]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_scripted_function_has_the_parameters_of_what_was_scripted() -> None:
    def doubled(x: Tensor, angles: Tensor) -> Tensor:
        return 2 * x + angles

    assert [one.name for one in parameters(torch.jit.script(doubled))] == ["x", "angles"]


def of_three(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return a + b + c


@pytest.mark.parametrize(("code", "images"), [(of_three, False), (lambda x: x, True)])
def test_three_arrays_are_no_images(code: Callable[..., Tensor], images: bool) -> None:
    made = code_of(code, "code", Options())
    tried = [parse(f"{one} -> 1") for one in _tokens_lines(made, parameters(code), {})]
    for letter in ("h", "V"):
        assert any(letter in one.letters for one in tried) == images

"""Bare names of rotary code: several tables, an axis by its number, scripted functions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attnproof.programs.measure.examine import examine
from attnproof.programs.names import parameters
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from tests.programs import test_rotary_tables

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

"""Rotary code with matrices, half tables, places of a grid; channels and positions of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.exact import exact
from attnproof.programs.execution.draw import Draw
from attnproof.programs.execution.response import Recorder
from attnproof.programs.measure.examine import examine
from attnproof.programs.prove import prove
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.layout import at_offsets, at_start
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as
from attnproof.programs.subjects import Rotary
from tests.programs.measure.rotary_code import in_two_halves


def precompute_matrices(dim: int, end: int, base: float = 10000.0) -> Tensor:
    angles = torch.outer(torch.arange(end), base ** (-torch.arange(0, dim, 2) / dim))
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((cos, -sin, sin, cos), -1).reshape(end, dim // 2, 2, 2)


def apply_matrices(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """Rotates (B, n, H, D) by matrices (n, D/2, 2, 2)."""
    own = freqs_cis[:, None]
    q, k = (
        (own @ x.reshape(*x.shape[:-1], -1, 2)[..., None])[..., 0].flatten(-2) for x in (xq, xk)
    )
    return q, k


def apply_transposed(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """The same, with the key rotated the other way."""
    return apply_matrices(xq, xk, freqs_cis)[0], apply_matrices(xk, xk, freqs_cis.mT)[0]


def apply_to_each(
    xq: Tensor, xk: Tensor, freqs_cis_q: Tensor, freqs_cis_k: Tensor
) -> tuple[Tensor, Tensor]:
    return apply_matrices(xq, xq, freqs_cis_q)[0], apply_matrices(xk, xk, freqs_cis_k)[0]


MATRICES = "freqs_cis: n D/2 2 2 matrices -> xq, xk"
VECTORS = "xq: B n H D, xk: B n H D"


def rotary(code: Callable[..., Any], line: str = "", **named: Any) -> Rotary:
    found = adapted_as(code, line, kind="rotary", **named)
    assert isinstance(found, Rotary)
    return found


def broken(code: Rotary, *laws: str) -> list[str]:
    return [one.law for one in examine(code, laws=laws) if one.verdict == "broken"]


@pytest.mark.parametrize("code", [apply_matrices, apply_transposed])
def test_matrices_are_made_for_code_that_rotates_by_them(code: Callable[..., Any]) -> None:
    told = rotary(code, f"{VECTORS}, {MATRICES}")
    assert "a table of each pair" in told.adapted
    wrong = code is apply_transposed
    assert broken(told, "relative", "norm") == ["relative"] * wrong


def test_matrices_of_the_file_are_found() -> None:
    found = rotary(apply_matrices)
    assert "freqs_cis: n D/2 2 2 matrices" in found.line
    assert "freqs_cis from precompute_matrices(dim = D, end = m" in found.line
    assert broken(found, "relative", "norm") == []


def test_one_function_may_make_two_tables() -> None:
    own = "precompute_matrices(dim = D, end = n -> n D/2 2 2)"
    both = f"{VECTORS}, freqs_cis_q: n D/2 2 2, freqs_cis_k: n D/2 2 2 -> xq, xk"
    line = f"{both}; freqs_cis_q from {own}; freqs_cis_k from {own}"
    assert str(parse(line)) == f"{both}; freqs_cis_q, freqs_cis_k from {own}"
    assert broken(rotary(apply_to_each, line), "relative", "norm") == []
    other = own.replace("end = n", "end = 2")
    with pytest.raises(SignatureError, match="wanted one function that makes tables, got two"):
        parse(f"{both}; freqs_cis_q from {own}; freqs_cis_k from {other}")


def in_wrong_halves(t: Tensor, freqs_x: Tensor, freqs_y: Tensor) -> Tensor:
    """It pairs neighbours in the second half."""
    across = torch.stack((-t[..., 1::2], t[..., 0::2]), -1).flatten(-2)
    second = t * freqs_y.repeat(1, 2).cos() + across * freqs_y.repeat(1, 2).sin()
    return torch.cat(
        (in_two_halves(t, freqs_x, freqs_y).chunk(2, -1)[0], second.chunk(2, -1)[1]), -1
    )


def test_two_tables_may_each_be_of_the_channels_of_half_a_vector() -> None:
    line = "t: B H n D, freqs_x: n D/2 angles, freqs_y: n D/2 angles -> t"
    right = rotary(in_two_halves, line)
    assert "a table of each channel, halves alike in half a vector" in right.adapted
    assert broken(right, "relative", "norm", "composition") == []
    assert "norm" in broken(rotary(in_wrong_halves, line), "norm")


def precompute_freqs_2d(dim: int, end: int) -> Tensor:
    """Angles of the places of a square grid, row by row, x and y by turns."""
    side = int(end**0.5)
    at = torch.arange(end)
    omega = 100.0 ** (-torch.arange(0, dim, 4) / dim)
    x, y = torch.outer(at % side, omega), torch.outer(at // side, omega)
    return torch.polar(torch.ones(end, dim // 2), torch.stack((x, y), -1).flatten(-2))


def apply_rotary_2d(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    def rotated(x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * freqs_cis[:, None]).flatten(-2)

    return rotated(xq), rotated(xk)


def test_tables_of_a_grid_are_no_tables_of_positions() -> None:
    found = rotary(apply_rotary_2d)
    assert " from " not in found.line
    assert broken(found, "relative", "composition") == []


def decorated(code: Callable[..., Any]) -> Callable[..., Any]:
    """Looks at what it is given in order, as code that promotes dtypes does."""

    @functools.wraps(code)
    def other(*given: Tensor) -> Any:
        kind = functools.reduce(torch.promote_types, (x.dtype for x in given))
        return code(*(x.to(kind) for x in given))

    return other


@decorated
def rotates_in_order(q: Tensor, theta: Tensor) -> Tensor:
    even, odd = q[..., 0::2], q[..., 1::2]
    cos, sin = theta.cos(), theta.sin()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def test_decorated_code_is_given_its_arguments_in_their_order() -> None:
    found = rotary(rotates_in_order, "q: B H n D, theta: n D/2 angles -> q")
    assert broken(found, "relative", "norm") == []
    with pytest.raises(TypeError):
        rotates_in_order(q=torch.ones(1, 1, 2, 4), theta=torch.ones(2, 2))


class OfASquare(torch.nn.Module):
    """All places of a square grid, row by row: rows in the first half of the channels."""

    cos: Tensor
    sin: Tensor

    def __init__(self, dim: int = 4, side: int = 3) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(side), 10000.0 ** (-torch.arange(0, dim, 2) / dim))
        angles = angles.repeat_interleave(2, -1)
        rows = angles[:, None].expand(side, side, -1)
        both = torch.cat((rows, rows.transpose(0, 1)), -1).flatten(0, 1)
        self.register_buffer("cos", both.cos())
        self.register_buffer("sin", both.sin())

    def forward(self, t: Tensor) -> Tensor:
        across = torch.stack((-t[..., 1::2], t[..., 0::2]), -1).flatten(-2)
        return t * self.cos + across * self.sin


def test_a_grid_that_is_built_for_its_side_is_one() -> None:
    found = rotary(OfASquare, "t: B H (h w) D -> t; built with dim = D/2, side = h")
    assert found.axes == 2
    assert broken(found, "relative", "norm", "every-axis-matters") == []
    (odd,) = examine(found, laws=("odd-widths",))
    assert odd.verdict == "not asked"
    assert "SignatureError" not in odd.why


# rotary code of the places of a grid, which is told its sides and no positions


LINE = "q: B H (h w) D, k: B H (h w) D, grid_h = h, grid_w = w -> q, k; built with head_dim = D"


class OfGrid(nn.Module):
    """Half of the channels rotate by the row, half by the column; ``fault``: by columns of rows.

    ``counted``: positions count from the first place, from the centre, or are fractions of a side.
    """

    def __init__(self, head_dim: int, fault: str = "", counted: str = "") -> None:
        super().__init__()
        self.fault, self.counted = fault, counted
        self.speeds = 100.0 ** -(torch.arange(0, head_dim // 2, 2) / (head_dim // 2))

    def forward(self, q: Tensor, k: Tensor, grid_h: int, grid_w: int) -> tuple[Tensor, Tensor]:
        assert q.shape[2] == grid_h * grid_w
        at = torch.arange(grid_h * grid_w)
        rows, columns = at // grid_w, at % grid_w
        if self.counted == "centre":
            rows, columns = rows - (grid_h - 1) / 2, columns - (grid_w - 1) / 2
        if self.counted == "fractions":
            rows, columns = 60 * rows / grid_h, 60 * columns / grid_w
        if self.fault == "squares":
            columns = columns**2
        if self.fault == "rows alone":
            columns = rows
        angle = torch.cat([p[:, None] * self.speeds for p in (rows, columns)], -1)

        def rotated(x: Tensor) -> Tensor:
            u, v = x.chunk(2, -1)
            cos, sin = angle.cos(), angle.sin()
            return torch.cat((u * cos - v * sin, u * sin + v * cos), -1)

        return rotated(q), rotated(k)


GRID_LAWS = (
    "relative",
    "norm",
    "composition",
    "identity-at-zero",
    "every-axis-matters",
    "follows-its-ids",
    "rows-of-batch-apart",
)


def _of_grid(fault: str, counted: str) -> Any:
    return adapted_as(OfGrid, LINE, settings={"fault": fault, "counted": counted})


def _verdicts(fault: str, counted: str) -> dict[str, str]:
    subject = _of_grid(fault, counted)
    assert subject.axes == 2
    return {one.law: one.verdict for one in examine(subject, (Draw(),), GRID_LAWS)}


@pytest.mark.parametrize("counted", ["", "centre", "fractions"])
def test_places_of_a_grid_are_rows_and_columns(counted: str) -> None:
    assert set(_verdicts("", counted).values()) == {"holds"}
    assert _verdicts("squares", counted)["relative"] == "broken"
    assert _verdicts("rows alone", counted)["every-axis-matters"] == "broken"


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ("centre", "called with one of 63 by 63 and position 0 at its centre"),
        ("fractions", "called with one of 63 by 63"),
    ],
)
def test_a_grid_whose_sides_matter_is_named(counted: str, told: str) -> None:
    assert _of_grid("", counted).adapted.endswith(told)
    assert "sides of the grid" not in _of_grid("", "").adapted


def test_a_grid_that_is_not_told_its_sides_is_refused() -> None:
    def rotated(q: Tensor) -> Tensor:
        return q

    with pytest.raises(SignatureError, match="wanted tokens n on an axis of their own"):
        adapted_as(rotated, "q: B H (h w) D -> q", kind="rotary")


# channels that come back in another order are no fault, and hide none (DeepSeek-V3 does it)


OMEGA = torch.tensor([1.0, 0.125])


def _neighbours(x: Tensor, positions: Tensor, *, half: bool, wrong: bool = False) -> Tensor:
    """Neighbours rotated; given as halves, and rotated by p² where wrong."""
    p = positions[:, None, :, None]
    angles = (p * p if wrong else p) * OMEGA
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.cat(pairs, -1) if half else torch.stack(pairs, -1).flatten(-2)


def _code(*, half: bool, wrong: bool = False) -> Rotary:
    return Rotary(
        name="code", width=4, rotate=lambda x, p: _neighbours(x, p, half=half, wrong=wrong)
    )


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("law", ["composition", "identity-at-zero"])
def test_over_fields_the_order_is_undone(law: str, half: bool) -> None:
    assert exact(_code(half=half), [law])[0].verdict == "holds"


def test_over_fields_a_wrong_angle_is_still_seen() -> None:
    assert exact(_code(half=True, wrong=True), ["composition"])[0].verdict == "broken"


@pytest.mark.parametrize("half", [False, True])
def test_a_proof_says_where_it_undoes_the_order(half: bool) -> None:
    (found,) = prove(_code(half=half), ["composition"]).findings
    assert found.verdict == "holds"
    assert half == any("returned in the order" in told.text for told in found.assuming)


@pytest.mark.parametrize("half", [False, True])
def test_no_order_hides_a_wrong_angle_from_a_proof(half: bool) -> None:
    (found,) = prove(_code(half=half, wrong=True), ["composition"]).findings
    assert found.verdict == "broken"


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_is_recorded_as_one_fused_operation() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    with torch.compiler.set_stance("force_eager"), Recorder() as seen:
        flex_attention(q, q, q)
    assert seen.roundings >= 8
    assert seen.terms >= 4


# code that gives each token the position at which it stands, asked for other positions


Many = tuple[Tensor, ...]
POSITIONS = torch.tensor([[3, 1, 0, 7], [0, 2, 2, 5]])


def placed(xs: Many, offset: int = 0, dtype: torch.dtype | None = None) -> Many:
    """Each token times one more than its position, in float32 or as it came."""
    places = offset + torch.arange(xs[0].shape[2])[:, None] + 1
    return tuple((x.to(dtype or x.dtype) * places).to(dtype or x.dtype) for x in xs)


def rotates(code: Callable[..., Many]) -> list[Callable[..., Many]]:
    return [at_start(lambda xs, _: code(xs), ""), at_offsets(code, "")]


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_what_comes_back_may_have_another_dtype(dtype: torch.dtype | None) -> None:
    x = torch.randn(2, 3, 4, 8).half()
    for rotate in rotates(lambda xs, offset=0: placed(xs, offset, dtype)):
        (found,) = rotate(x, positions=POSITIONS)
        wanted = x.to(dtype or x.dtype) * (POSITIONS + 1)[:, None, :, None]
        assert found.dtype == (dtype or torch.half)
        assert torch.equal(found, wanted.to(found.dtype))


def test_each_run_of_positions_is_one_call_of_all_its_places() -> None:
    calls: list[tuple[int, ...]] = []

    def code(xs: Many, offset: int) -> Many:
        calls.append((offset, len(xs[0]), xs[0].shape[2]))
        return placed(xs, offset)

    rotate, x = at_offsets(code, ""), torch.randn(3, 2, 4, 8)
    at = torch.tensor([[5, 6, 7, 5], [5, 6, 7, 9], [5, 5, 5, 5]])
    (found,) = rotate(x, positions=at)
    assert torch.equal(found, x * (at + 1)[:, None, :, None])
    assert sorted(calls) == [(5, 2, 3), (5, 5, 1), (9, 1, 1)]

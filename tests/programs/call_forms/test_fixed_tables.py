"""Tables of objects without arguments: called as built for a number of rows, or refused."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnproof.programs.measure.examine import examine
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.subject import adapted_as, subject_of
from tests.programs.call_forms import fixed_tables as code

APPLIED = "then apply_rotary_pos_emb(t: B H n D, freqs: n D angles -> t)"


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (code.Angles, f"-> freqs: m D; {APPLIED}; built with width = m"),
        (code.RotaryByDefault, f"-> freqs: m D; {APPLIED}; built with width = m"),
        (code.AxisNamed, f"x: B m D, seq_dim = -2 -> freqs: m D; {APPLIED}"),
    ],
)
def test_tables_of_fixed_length_are_rotary(made: Any, line: str) -> None:
    subject = adapted_as(made)
    assert subject.line == line
    (found,) = examine(subject, laws=("relative",))
    assert found.verdict == "holds", found.why


def test_a_table_of_fixed_length_whose_angles_are_wrong_breaks_the_law() -> None:
    line = f"-> freqs: m D; {APPLIED}; built with width = m"
    (found,) = examine(subject_of(code.Later, line), laws=("relative",))
    assert found.verdict == "broken"


def _proposed(made: Any) -> str:
    with pytest.raises(NoAdapter) as error:
        adapted_as(made)
    found = re.search(r"say which does, in the whole --call '([^']*)'", str(error.value))
    assert found, str(error.value)
    return found[1]


def test_two_tables_that_are_not_cosines_and_sines_are_refused_with_the_line_to_write() -> None:
    line = _proposed(code.WithScales)
    assert line == (
        "-> freqs: m D, scale: m D; built with width = m; then "
        "apply_rotary_pos_emb(t: B H n D, freqs: n D angles, scale: n D constant -> t)"
    )
    subject: Any = subject_of(code.WithScales, line)
    norms = subject.rotate(torch.ones(1, 1, 3, subject.width), torch.arange(3)[None]).norm(dim=-1)
    assert not torch.allclose(norms, norms[..., :1])  # the scales are those of the code


class RotaryTable(nn.Module):
    """In a file without a function that rotates by it."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.steps = 10000.0 ** -(torch.arange(0, dim, 2) / dim)

    def forward(self, seq_len: int) -> tuple[Tensor, Tensor]:
        angles = (torch.arange(float(seq_len))[:, None] * self.steps).repeat(1, 2)
        return angles.cos(), angles.sin()


class RotaryUnits(RotaryTable):
    def forward(self, seq_len: int) -> Tensor:  # type: ignore[override]
        angles = torch.arange(float(seq_len))[:, None] * self.steps
        return torch.polar(torch.ones_like(angles), angles)


class TablesOfTokens(nn.Module):
    """Its name suggests nothing."""

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        steps = 10000.0 ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angles = (position_ids[..., None] * steps).repeat(1, 1, 2)
        return angles.cos(), angles.sin()


class LearnedTable(nn.Module):
    def __init__(self, dim: int = 16, max_len: int = 32) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.randn(max_len, dim))

    def forward(self) -> Tensor:
        return self.rows


def test_tables_without_a_function_that_rotates_by_them_are_refused_in_words() -> None:
    assert _proposed(RotaryTable) == (
        "seq_len = m -> cos: m D, sin: m D; then "
        "FUNCTION(x: B H n D, cos: n D cos, sin: n D sin -> x)"
    )
    assert _proposed(RotaryUnits) == (
        "seq_len = m -> freqs: m D/2; then FUNCTION(x: B H n D, freqs: n D/2 cis -> x)"
    )
    told = (
        "x: B m D, position_ids: B n -> cos: B n D, sin: B n D; then "
        "FUNCTION(x: B H n D, cos: B n D cos, sin: B n D sin -> x)"
    )
    with pytest.raises(NoAdapter) as error:
        adapted_as(TablesOfTokens)
    said = error.value.on_command_line
    assert f"--call '{told}')" in said
    assert "layer: it returns cosines and sines" in said
    assert "rotate=lambda x, positions: FUNCTION(x, *made(x, positions))," in said


def test_a_learned_table_of_fixed_length_is_added() -> None:
    assert adapted_as(LearnedTable).line == "-> n E; built with max_len = n"

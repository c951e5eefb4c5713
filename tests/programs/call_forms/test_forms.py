"""The call of rotary code is guessed as a line that can be passed back, or shown to be unclear."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnproof.programs.code import NoSetting
from attnproof.programs.no_adapter import NoAdapter
from attnproof.programs.signatures.grammar import parse
from attnproof.programs.signatures.signature import SignatureError
from attnproof.programs.subject import adapted_as, subject_of
from attnproof.programs.subjects import Rotary
from tests.programs.adapting_code import FORMS, rotates_as_half, user_file
from tests.programs.calls.test_calls import both, complex_, halves, in_two_axes

LINES = {
    "f(x, positions)": "x: B H n D, positions: B n -> x",
    "f(x, positions), tokens before heads": "x: B n H D, positions: B n -> x",
    "f(x, positions), no heads": "x: B n D, positions: B n -> x",
    "f(x, positions), one row": "x: n D, positions: n -> x",
    "f(q, k, positions) of all rows": "q: B H n D, k: B G n D, pos: n -> q, k",
    "f(q, k, cos, sin), with a function that makes them": "q: B H n D, k: B G n D, cos: n D/2, "
    "sin: n D/2 -> q, k; "
    "cos, sin from precompute_cos_sin(head_dim = D, max_seq_len = m -> m D/2, m D/2)",
    "f(q, k, cos, sin, position_ids), with a module of a table": "q: B H n D, k: B G n D, cos: m "
    "D/2, sin: m D/2, position_ids: B n -> q, k; "
    "cos, sin from RotaryTable(x: B m D, seq_len = m -> m D/2, m D/2)",
    "f(x, cos, sin) alone": "x: B H n D, cos: n D/2, sin: n D/2 -> x",
    "f(x, freqs_cis), complex": "xq: B n H D, xk: B n G D, freqs_cis: n D/2 cis -> xq, xk; "
    "freqs_cis from precompute_freqs_cis(dim = D, end = m -> m D/2)",
    "a module with a table, f(x, input_pos=None), tokens before heads": "x: B n H D, input_pos: B "
    "n -> x",
    "positions that must not be integers": "x: B H n D, pos: B n -> x",
    "f(x), running": "x: B H n D -> x",
    "f(x), running, tokens before heads": "x: B n H D -> x",
    "f(x, offset)": "x: B H n D, offset = p -> x",
    "a factory": "x: B H n D, positions: B n -> x",
    "a module with a method that rotates": "t: B H n D, offset = p -> t; method "
    "rotate_queries_or_keys",
    "a module that makes cos and sin, and a function beside it": "x: B m D, position_ids: B n -> "
    "cos: B n D/2, sin: B n D/2; then "
    "apply_rotary_pos_emb(q: B H n D, k: B G n D, cos: B n D/2, sin: B n D/2 -> q, k)",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_line_that_is_guessed_is_a_call_that_can_be_told(form: str, tmp_path: Path) -> None:
    code = user_file(tmp_path, FORMS[form]).rope
    guessed: Any = adapted_as(code)
    assert guessed.kind == "rotary"
    rotates_as_half(guessed)
    assert f"called as --call '{LINES[form]}'" in guessed.adapted
    assert str(parse(LINES[form])) == LINES[form]
    told = subject_of(code, LINES[form])
    rotates_as_half(told)
    same = ("width", "axes", "whole", "most", "any_width", "given", "heads")
    assert [getattr(guessed, f) for f in same] == [getattr(told, f) for f in same]
    assert guessed.make is not None
    rotates_as_half(guessed.make())


def test_a_module_of_another_width_is_called_with_it(tmp_path: Path) -> None:
    form = "a module with a table, f(x, input_pos=None), tokens before heads"
    found: Any = adapted_as(user_file(tmp_path, FORMS[form]).rope, "", kind="rotary")
    assert found.most == 64
    assert found.make(width=24).width == 24
    rotates_as_half(found.make(base=70.0, width=24), 70.0)


def of_named(x: Tensor, cos_freqs: Tensor, sin_freqs: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * cos_freqs - v * sin_freqs, v * cos_freqs + u * sin_freqs), -1)


def test_names_with_words_for_tables_are_those_of_cosines_and_sines() -> None:
    line = "x: B H n D, cos_freqs: n D/2, sin_freqs: n D/2 -> x"
    for told in ("", line):
        found = adapted_as(of_named, told)
        assert (found.kind, found.line) == ("rotary", line)


def stacked(x: Tensor, rope_cache: Tensor) -> Tensor:
    cos, sin = (torch.cat((part, part), -1)[:, None] for part in rope_cache.unbind(-1))
    return x * cos + halves(x) * sin


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (both, "q: B H n D, k: B G n D, cos: B n D, sin: B n D -> q, k"),
        (complex_, "xq: B n H D, xk: B n G D, freqs_cis: n D/2 cis -> xq, xk"),
        (stacked, "x: B H n D, rope_cache: B n D/2 2 cos_sin -> x"),
    ],
)
def test_tables_made_here_are_said(code: Callable[..., Any], line: str) -> None:
    found = adapted_as(code, "", kind="rotary")
    assert f"called as --call '{line}'" in found.adapted
    assert "made here" in found.given["angles"]


def test_each_coordinate_of_a_position_counts() -> None:
    def code(x: Tensor, coords: Tensor) -> Tensor:
        return in_two_axes(x, coords)

    found: Any = adapted_as(code, "", kind="rotary")
    assert found.axes == 2
    assert "x: B H n D, coords: 2 n -> x" in found.adapted


def test_positions_that_must_not_be_integers_are_none() -> None:
    def code(x: Tensor, positions: Tensor) -> Tensor:
        angle = torch.matmul(positions[..., None], torch.tensor([[1.0, 0.1, 0.01, 0.001]]))
        return x * torch.cat((angle, angle), -1).cos() + halves(x) * angle.repeat(1, 2).sin()

    found: Any = adapted_as(code, "", kind="rotary", width=8)
    assert not found.whole
    assert "x: B H n D, positions: n coordinates -> x" in found.adapted


def scaled(x: Tensor, positions: Tensor) -> Tensor:
    """It takes heads before tokens and tokens before heads, and does something else to each."""
    by_rows = positions.dim() == 2
    angle = positions[..., None, None] * torch.ones(x.shape[-1] // 2) * (0.1 if by_rows else 0.2)
    angle = torch.cat((angle, angle), -1)
    return x * angle.cos() + halves(x) * angle.sin()


def test_two_lines_of_different_meaning_are_both_shown() -> None:
    with pytest.raises(SignatureError, match="differ in meaning") as error:
        adapted_as(scaled, "", kind="rotary")
    told = str(error.value)
    assert "--call 'x: B n H D, positions: B n -> x'" in told
    assert "--call 'x: B n H D, positions: n -> x'" in told


MODULES = {
    "angles, and a number": (
        """
        class rope(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, t):
                return torch.cat((angles(t, self.dim),) * 2, -1), {scale}

        def apply_rotary_pos_emb(t, freqs, scale=1):
            half = freqs.shape[-1] // 2
            return turn_half(t, freqs[..., :half].cos(), freqs[..., :half].sin()) * scale
        """,
        (
            "t: n positions -> freqs: n D, _; "
            "then apply_rotary_pos_emb(t: B H n D, freqs: n D angles -> t)"
        ),
        0,
    ),
    "positions of three coordinates": (
        """
        class rope(nn.Module):
            def __init__(self, head_dim):
                super().__init__()
                self.head_dim = head_dim

            def forward(self, x, position_ids):
                assert position_ids.shape[0] == 3
                angle = angles(position_ids, self.head_dim)
                angle = torch.stack([angle[k % 3, ..., k] for k in range(angle.shape[-1])], -1)
                return angle.cos(), angle.sin()

        def apply_rotary(q, cos, sin):
            return turn_half(q, cos[:, None], sin[:, None])
        """,
        (
            "x: B m D, position_ids: 3 B n -> cos: B n D/2, sin: B n D/2; "
            "then apply_rotary(q: B H n D, cos: B n D/2, sin: B n D/2 -> q)"
        ),
        3,
    ),
    "positions of two coordinates, without rows": (
        """
        class rope(nn.Module):
            def __init__(self, head_dim):
                super().__init__()
                self.head_dim = head_dim

            def forward(self, coords):
                assert coords.shape[-1] == 2
                angle = angles(coords, self.head_dim // 2)
                return angle.flatten(-2).cos(), angle.flatten(-2).sin()

        def apply_rotary(q, cos, sin):
            return turn_half(q, cos[:, None], sin[:, None])
        """,
        (
            "coords: B n 2 -> cos: B n D/2, sin: B n D/2; "
            "then apply_rotary(q: B H n D, cos: B n D/2, sin: B n D/2 -> q)"
        ),
        2,
    ),
}


@pytest.mark.parametrize("form", MODULES)
def test_a_module_that_makes_tables_is_called_with_what_rotates_by_them(
    form: str, tmp_path: Path
) -> None:
    source, line, axes = MODULES[form]
    rope = user_file(tmp_path, source.replace("{scale}", "1.0")).rope
    for found in (adapted_as(rope), subject_of(rope, line)):
        assert isinstance(found, Rotary)
        assert (found.line, found.axes) == (line, axes)
        if not axes:
            rotates_as_half(found)
        assert found.make is not None
        assert found.make(width=32).width == 32


def test_a_scale_by_which_nothing_is_multiplied_is_not_left_aside(tmp_path: Path) -> None:
    source = MODULES["angles, and a number"][0].replace("{scale}", "2.0")
    with pytest.raises(NoAdapter, match="rotary"):
        adapted_as(user_file(tmp_path, source).rope, kind="rotary")


NEARLY = {
    "tables of too few rows": (
        "def rope(x, cos, sin):\n    return turn_half(x, cos[..., :-1, :], sin[..., :-1, :])"
    ),
    "one result for two": "def rope(q, k, cos, sin):\n    return turn_half(q, cos, sin)",
    "an unknown parameter": (
        "def rope(x, positions, colour):\n    angle = angles(positions, x.shape[-1])[:, None]\n"
        "    return turn_half(x, angle.cos(), angle.sin())"
    ),
    "a longer head": (
        "def rope(x, positions):\n    angle = angles(positions, x.shape[-1])[:, None]\n"
        "    return torch.cat((turn_half(x, angle.cos(), angle.sin()), x), -1)"
    ),
    "a table that no function takes": (
        "class rope(nn.Module):\n    def forward(self, x, position_ids):\n"
        "        angle = angles(position_ids, 8)\n        return angle.cos(), angle.sin()"
    ),
}


@pytest.mark.parametrize("case", NEARLY)
def test_code_that_is_nearly_of_a_form_is_not_taken_for_it(case: str, tmp_path: Path) -> None:
    with pytest.raises(NoAdapter):
        adapted_as(user_file(tmp_path, NEARLY[case]).rope, kind="rotary")


def test_what_a_line_says_of_methods_and_constructors_is_held_against_the_code(
    tmp_path: Path,
) -> None:
    rope = user_file(tmp_path, FORMS["a module with a method that rotates"]).rope
    with pytest.raises(SignatureError, match="wanted a method rotates of rope, got none"):
        subject_of(rope, "t: B H n D, offset = p -> t; method rotates")
    wide: Any = subject_of(
        rope, f"{LINES['a module with a method that rotates']}; built with dim = 16"
    )
    assert wide.width == 16
    with pytest.raises(NoSetting, match="not colour"):
        subject_of(rope, "t: B H n D -> t; built with colour = 1")


TWO_TABLES = """
    def precompute_short(dim, end):
        angle = angles(torch.arange(end), dim)
        return angle.cos(), angle.sin()

    def {name}(dim, end):
        angle = angles(torch.arange(end), dim, 500000.0)
        return angle.cos(), angle.sin()

    def rope(q, k, cos, sin):
        return turn_half(q, cos, sin), turn_half(k, cos, sin)
"""


def test_a_second_table_of_the_file_is_an_error_if_its_name_says_that_it_is_one(
    tmp_path: Path,
) -> None:
    file = user_file(tmp_path, TWO_TABLES.format(name="precompute_long"))
    with pytest.raises(SignatureError, match=r"from precompute_short.*from precompute_long"):
        adapted_as(file.rope, "", kind="rotary")
    file = user_file(tmp_path, TWO_TABLES.format(name="something_else"))
    rotates_as_half(adapted_as(file.rope, "", kind="rotary"))


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        ("; cos, sin of tables(n = m -> m D, m D)", "wanted NAMES from FUNCTION"),
        ("; cos, sines from tables(n = m -> m D, m D)", "got 'sines'"),
        ("; cos, sin from tables(n = m -> m D)", "wanted 2 results of tables"),
        ("; cos, sin from no_tables(n = m -> m D, m D)", "wanted no_tables in the file of both"),
    ],
)
def test_a_source_that_is_none_is_told(tail: str, why: str) -> None:
    with pytest.raises(SignatureError, match=why):
        subject_of(both, f"q: B H n D, k: B H n D, cos: B n D, sin: B n D -> q, k{tail}")


@pytest.mark.parametrize("model", ["llama", "cohere", "esm", "gpt_oss", "hunyuan_vl"])
def test_the_functions_of_transformers_are_called_as_their_models_call_them(model: str) -> None:
    name = f"transformers.models.{model}.modeling_{model}"
    found = adapted_as(pytest.importorskip(name).apply_rotary_pos_emb, "")
    width = "D/2" if model == "gpt_oss" else "D"
    line = f"q: B H n D, k: B G n D, cos: B n {width}, sin: B n {width} -> q, k"
    assert line in found.adapted


def test_what_stands_beside_and_takes_no_length_is_not_called(tmp_path: Path) -> None:
    file = user_file(tmp_path, FORMS["f(x, cos, sin) alone"])
    calls: list[int] = []

    def rotary_angles() -> None:
        calls.append(1)

    vars(file)["rotary_angles"] = rotary_angles
    assert "made here" in adapted_as(file.rope, kind="rotary").adapted
    assert not calls


def partial_rope(x: Tensor, pos: Tensor, p=0.5) -> Tensor:  # type: ignore[no-untyped-def]
    """Rotates a part of the channels, which has a name that positions have too."""
    width = int(p * x.shape[-1])
    speeds = 10000.0 ** -(torch.arange(0, width, 2) / width)
    angle = pos[..., None] * speeds
    u, v = x[..., :width].chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((u * cos - v * sin, u * sin + v * cos, x[..., width:]), -1)


def test_a_fraction_is_no_position() -> None:
    guessed: Any = adapted_as(partial_rope)
    assert guessed.line == "x: B H n D, pos: n -> x"

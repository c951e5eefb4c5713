"""Mistakes in a class that would leave an encoding, and not the one that was meant."""

# ruff: noqa: ARG005 (a hook takes positions, whether it looks at them or not)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attnproof
from attnproof import Encoding, at_least, hypothesis, real, sizes
from attnproof.cards.registry import load_encodings
from attnproof.cli import main
from attnproof.encoding.conformance import NotAnEncoding, misshapen
from attnproof.encodings.rope import Rope
from attnproof.testing import check_encoding
from tests.front.outputs import Output

(d,) = sizes("d", "features")
(other_d,) = sizes("d")


def made(body: dict[str, Any]) -> type[Encoding]:
    """The class ``Mine`` with these attributes and methods."""
    return type("Mine", (Encoding,), body)


def no_hook(self: Any, *positions: Any) -> Any:
    return self, positions


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("biass", "bias"),
        ("bais", "bias"),
        ("rotates", "rotate"),
        ("see", "sees"),
        ("ad", "add"),
        ("relates", "relate"),
        ("values", "value"),
        ("qeury", "query"),
    ],
)
def test_a_method_with_nearly_the_name_of_a_hook_is_refused(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine\.{name} is a method .* call it {meant} if"):
        made({name: no_hook})


@pytest.mark.parametrize("name", ["_biass", "frequencies", "counted", "spun", "angles", "table"])
def test_a_method_that_helps_another_is_not(name: str) -> None:
    assert made({name: no_hook}).id() == "mine"


@pytest.mark.parametrize(
    ("name", "method", "told"),
    [
        ("bias", lambda self, m: m, r"bias takes \(self, m\), and is called as bias\(m, n\)"),
        ("rotate", lambda self, x, p, q: x, r"is called as rotate\(x, p\)"),
        ("bound", lambda: 1, r"is called as bound\(\)"),
    ],
)
def test_a_method_with_other_parameters_is_refused(name: str, method: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        made({name: method})


def test_a_hypothesis_may_be_called_what_it_likes() -> None:
    def biased(self: Any) -> list[Any]:
        return [at_least(self.slope, 0)]

    body = {"given": {"slope": real()}, "biased": hypothesis("the slope is at least 0")(biased)}
    assert made(body).hypotheses() == {"biased": "the slope is at least 0"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"given": {"slope": real()}, "defaults": {"slope": float("nan")}}, "none of them NaN"),
        ({"given": {"slope": real()}, "defaults": {"slope": "half"}}, "is 'half'; write a number"),
        ({"given": {"slope": 3.0}}, r"given\['slope'\] is 3\.0; write what it may be"),
        ({"given": {"bias": real()}}, "has a parameter 'bias', which has another meaning"),
        ({"given": {"width": real()}}, "has a parameter 'width'"),
        ({"defaults": {"slope": 3.0}}, "not a parameter; declare it in given"),
        ({"given": {"s": real()}, "defaults": {"slope": 3.0}}, "not a parameter; given declares s"),
        ({"given": [real()]}, "given and defaults are dictionaries"),
        ({"given": {"slope": real()}, "usual": {"slope": 3.0}}, "usual is called defaults"),
        ({"given": {"w": real(other_d)}}, r"two lengths d.* \(d,\) = sizes\('d', 'features'"),
    ],
)
def test_parameters_that_cannot_be_meant_are_refused(body: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=f"^Mine.*{told}"):
        made(body)


def test_a_length_of_its_own_role_is_none_of_these() -> None:
    body = {"given": {"w": real(other_d)}, "width": other_d}
    assert made(body).id() == "mine"


def test_a_hypothesis_says_words_and_returns_claims() -> None:
    with pytest.raises(TypeError, match="say what is assumed: @hypothesis"):
        hypothesis(no_hook)  # type: ignore[arg-type]

    def said(returned: Any) -> Any:
        def positive(self: Any) -> Any:
            return returned(self)

        body = {"given": {"slope": real()}, "positive": hypothesis("it is positive")(positive)}
        return made(body)().positive()

    claim = at_least(real().named("x"), 0)
    assert said(lambda _: claim) == [claim]
    assert said(lambda _: [claim]) == [claim]
    assert len(said(lambda self: [(self.slope, 1)])) == 1
    for wrong in (
        lambda self: [self.slope >= 0],
        lambda self: self.slope >= 0,
        lambda _: None,
        lambda _: True,
        lambda self: (self.slope, 1),
    ):
        with pytest.raises(TypeError, match=r"the hypothesis positive returns a list of claims"):
            said(wrong)


def wrong_shapes() -> list[tuple[dict[str, Any], str]]:
    w = {"given": {"w": real(d)}}
    return [
        (w | {"add": lambda self, p: p[None, ..., None] * self.w}, r"add\(p\) returns the shape"),
        (
            w | {"add": lambda self, p: p[..., None] * self.w if p.shape else 0 * self.w[None]},
            r"add\(p\) returns the shape \(1, d\), wanted \(d,\), for a single position",
        ),
        (
            w | {"rotate": lambda self, x, p: None},
            r"rotate\(x, p\) returns nothing: a return may be",
        ),
        (w | {"key": lambda self, k, p: p}, r"key\(k, p\) returns the shape \(n_q,\), wanted"),
        (
            w | {"bias": lambda self, m, n: self.w * (m - n)[..., None]},
            r"bias\(m, n\) returns the shape \(n_q, n_k, d\), wanted \(n_q, n_k\), for positions",
        ),
        (w | {"bias": lambda self, m, n: "near"}, r"bias\(m, n\) returns str, wanted an array"),
        (w | {"relate": lambda self, q, k, m, n: q * k}, r"relate\(q, k, m, n\) returns the shape"),
        (w | {"sees": lambda self, m, n: None}, r"sees\(m, n\) returns nothing"),
        (w | {"value": lambda self, v, m, n: m - n}, r"value\(v, m, n\) returns the shape"),
        (w | {"scores": lambda self, Q, K, m, n: Q}, r"scores\(Q, K, m, n\) returns the shape"),
    ]


@pytest.mark.parametrize(("body", "told"), wrong_shapes())
def test_an_array_of_a_wrong_shape_is_told_by_the_method(body: dict[str, Any], told: str) -> None:
    kind = made(body)
    for ask in (lambda: attnproof.card(kind, ["even"]), lambda: check_encoding(kind, [])):
        with pytest.raises(NotAnEncoding, match=rf"^Mine\.{told}"):
            ask()


def test_a_mask_of_numbers_is_refused() -> None:
    with pytest.raises(NotAnEncoding, match=r"Mine\.sees\(m, n\) returns numbers; a mask is True"):
        attnproof.card(made({"sees": lambda self, m, n: m - n}), ["even"])
    assert misshapen(made({"sees": lambda self, m, n: (m >= n) & (n > 0)})) == ""


def test_every_encoding_of_the_package_has_the_right_shapes() -> None:
    kinds = load_encodings().kinds
    assert len(kinds) > 30
    assert {kind.__name__: misshapen(kind) for kind in kinds} == {k.__name__: "" for k in kinds}


def test_a_row_or_a_column_is_a_bias_and_what_raises_is_told_elsewhere() -> None:
    column = made({"bias": lambda self, m, n: 0 * n})
    raising = made({"bias": lambda self, m, n: 1 // 0})
    assert misshapen(column) == misshapen(raising) == misshapen(Rope) == ""


def test_on_the_command_line_it_is_one_line_and_the_rest_of_the_table_stands(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from attnproof import Encoding\n\n\nclass Mine(Encoding):\n"
        "    def bias(self, m, n):\n        m - n\n",
        encoding="utf-8",
    )
    assert main(["card", "mine.py"]) == 1
    assert capsys.readouterr().out.startswith("! broken: mine: Mine.bias(m, n) returns nothing")
    table = ["table", "--encodings", "nope", "--encoding", "mine.py", "--law", "even"]
    assert main(table) == 1
    shown = capsys.readouterr().out
    assert "nope " in shown
    assert "! broken: mine: Mine.bias(m, n) returns nothing" in shown


def test_a_file_of_ones_own_is_in_the_table_beside_those_that_are_named(
    tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "mine.py"
    text = "from attnproof import Encoding\n\n\nclass Mine(Encoding):\n    title = 'mine'\n"
    file.write_text(text, encoding="utf-8")
    assert main(["table", "--encodings", "nope", "--encoding", str(file), "--law", "even"]) == 0
    shown = capsys.readouterr().out
    assert "  mine " in shown
    assert "  nope " in shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 3\n", "`attnproof new NAME` writes one"),
        ("from attnproof import Encoding\nclass _Mine(Encoding): pass\n", "_Mine begins with _"),
    ],
)
def test_a_file_without_encodings_says_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    (fault,) = [b for b in load_encodings([file]).broken if b.name == str(file)]
    assert "it declares no encoding: " in fault.error
    assert told in fault.error


def test_a_file_named_without_its_ending_is_told(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["card", "roped"]) == 2
    assert "nearest: rope" in capsys.readouterr().err
    (tmp_path / "roped.py").write_text("", encoding="utf-8")
    assert main(["card", "roped"]) == 2
    assert "got 'roped'; the file is roped.py" in capsys.readouterr().err

"""LaTeX to MathML, and what is refused."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from attnproof.report.words import BadFormula, formula_html, mathml


def test_the_source_is_the_alternative_text() -> None:
    root = ET.fromstring(mathml(r"a < \frac{b}{c}", display=True))
    assert root.attrib == {"alttext": r"a < \frac{b}{c}", "display": "block"}
    assert ET.fromstring(mathml("a", large=True)).get("displaystyle") == "true"


@pytest.mark.parametrize(
    "latex",
    [
        r"\nosuchcommand x",
        r"\begin{aligned} a &= b \end{aligned}",
        r"\text{<script>x</script>}",
        r"\text{a < b}",
        r"\frac{a",
        r"\href{javascript:x}{a}",
    ],
)
def test_what_was_not_understood_is_refused(latex: str) -> None:
    with pytest.raises(BadFormula):
        mathml(latex)
    shown = formula_html(latex)
    assert "shown as LaTeX source" in shown
    assert "<script" not in shown


def test_a_name_has_no_space_of_an_operator() -> None:
    assert "<mi>softmax</mi>" in mathml(r"\operatorname{softmax}(S)")
    assert '<mi mathvariant="normal">O</mi>' in mathml(r"\operatorname{O}(n)")


@pytest.mark.parametrize(
    ("latex", "spaces"),
    [
        (r"\sin a", 1),
        (r"2 \sin^2 x_i", 2),
        (r"\operatorname{softmax}\left(x\right)", 0),
        (r"\sin \frac{a}{2}", 1),
        (r"\frac{\sin}{a} + ab", 0),
    ],
)
def test_a_name_stands_apart_from_a_symbol_and_not_from_its_brackets(
    latex: str, spaces: int
) -> None:
    assert mathml(latex).count("<mspace") == spaces


def test_limits_stand_under_a_sum() -> None:
    assert "<munder><mo>∑</mo>" in mathml(r"\sum_{j < n} a_{j}")


def test_a_sign_is_not_a_difference() -> None:
    assert mathml("R(-a)").count('form="prefix"') == 1
    assert mathml("-a").count('form="prefix"') == 1
    assert mathml("b - a").count('form="prefix"') == 0
    assert mathml("(b) - a").count('form="prefix"') == 0


def test_columns_keep_their_alignment() -> None:
    text = mathml(r"\begin{align*} a &= b \\ c &= d \end{align*}")
    assert 'class="right"' in text
    assert 'class="left"' in text
    assert 'class="aligned"' in text

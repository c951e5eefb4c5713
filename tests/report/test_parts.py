"""Formulas, figures, values, counts and fonts of the report."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markupsafe import Markup

from attnproof.numeric.results import MeasuredEvidence
from attnproof.report import view, words
from attnproof.report.drawing import ratio, ratio_bar
from attnproof.report.page import MATH, MATH_FACES, TEXT_FACES, asset
from attnproof.report.words import BadFormula, conclusion, formula_html, inputs, mathml, value_latex
from attnproof.symbolic.latex import NOTATION, latex, statement_latex
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.ledger import load_ledger
from attnproof.theorem_runs.records import Results
from tests.symbolic.stating import memberships


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


def measurements(results: Results) -> dict[str, MeasuredEvidence]:
    found = [e for e in results.theorems[0].evidence if isinstance(e, MeasuredEvidence)]
    return {e.status: e for e in found}


def reach(text: str) -> float:
    """Where the bar ends."""
    bar = ET.fromstring(text).find("rect")
    assert bar is not None
    return float(bar.attrib["x"]) + float(bar.attrib["width"])


def test_the_bar_ends_before_the_bound_when_the_error_is_below_it(results: Results) -> None:
    found = measurements(results)
    bound = ET.fromstring(ratio_bar(found["held"])).findall("line")[1].attrib["x1"]
    assert reach(ratio_bar(found["held"])) < float(bound) < reach(ratio_bar(found["violated"]))
    assert "beyond" in ratio_bar(found["violated"])
    assert "beyond" not in ratio_bar(found["held"])
    assert "0.5 times its bound" in ratio_bar(found["held"])


def test_without_a_number_there_is_no_bar(results: Results) -> None:
    for status in ("non-finite", "skipped"):
        assert ratio(measurements(results)[status]) is None
        assert ratio_bar(measurements(results)[status]) == ""


@pytest.mark.parametrize(
    ("text", "wanted_latex"),
    [
        ("3", "3"),
        ("-1/2", r"-\frac{1}{2}"),
        ("[1, 0]", "(1, 0)"),
        ("[[1]]", "(1)"),
        ("[[0], [1]]", r"\begin{pmatrix}0 \\ 1\end{pmatrix}"),
        ("[[[0], [1]]]", r"\begin{pmatrix}0 \\ 1\end{pmatrix}"),
        ("[[True, False]]", r"\begin{pmatrix}\text{T} & \text{F}\end{pmatrix}"),
        ("b(x) = x²", None),
        ("[", None),
    ],
)
def test_values(text: str, wanted_latex: str | None) -> None:
    assert value_latex(text) == wanted_latex


def test_witness_inputs(results: Results) -> None:
    (evidence,) = results.theorems[2].evidence
    assert evidence.kind == "refuted"
    shown = inputs(evidence.witness)
    assert len(shown) == 6
    assert "every other size 1" in shown
    assert any('alttext="h(x) ="' in part and part.endswith("x²") for part in shown)
    assert conclusion(evidence.witness) == ""
    told = evidence.witness.model_copy(update={"text": "at p = (0): 0.841… whatever M is"})
    assert conclusion(told) == "0.841… whatever M is"


def test_numbers_as_a_person_writes_them() -> None:
    assert view.scientific(7.46e-7) == '<span class="nowrap">7.5 × 10<sup>−7</sup></span>'
    assert view.scientific(0.003) == "0.003"
    assert view.scientific("non-finite") == "non-finite"
    assert view.scientific(None) == "not measured"
    assert words.minus("left - right is -0.4, R-0") == "left − right is −0.4, R-0"
    assert view.axis_latex("2·B + ell") == r"2\,B + \ell"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("R_{n−m} k_j <a_table_b>", "R<sub>n−m</sub> k<sub>j</sub> &lt;a_table_b&gt;"),
        ("W_Q^h QW_Q", "W<sub>Q</sub><sup>h</sup> QW<sub>Q</sub>"),
        ("S_Kᵀ Xᵀ g^{−ᵀ}", "S<sub>K</sub><sup>T</sup> X<sup>T</sup> g<sup>−T</sup>"),
        ("X ∈ ℝ^{n×d}, x ∈ ℝ^d", "X ∈ ℝ<sup>n×d</sup>, x ∈ ℝ<sup>d</sup>"),
        (
            "M^j x, M^{j−1} x, M^(m+1), 10^−4",
            "M<sup>j</sup> x, M<sup>j−1</sup> x, M<sup>m+1</sup>, 10<sup>−4</sup>",
        ),
        ("e^{h(q, k_i)}", "e<sup>h(q, k<sub>i</sub>)</sup>"),
        ("SoftMax(x)_i, Att_α", "SoftMax(x)<sub>i</sub>, Att<sub>α</sub>"),
        ("x_1, .., x_n; a..b", "x<sub>1</sub>, …, x<sub>n</sub>; a..b"),
        ("1 <= n, a != b", "1 ≤ n, a ≠ b"),
        ("multi_head, log_base, a_of", "multi_head, log_base, a_of"),
        ("A_ij, w\u0304_b", "A<sub>ij</sub>, w\u0304<sub>b</sub>"),
    ],
)
def test_words_have_real_indices(text: str, shown: str) -> None:
    assert words.prose(text) == shown


def test_measurements_of_like_conditions_stand_together(results: Results) -> None:
    groups = view.measured(results.theorems[0])
    assert [len(g.rows) for g in groups] == [3, 0]
    assert [len(g.skipped) for g in groups] == [0, 1]
    assert [len(rows) for rows in groups[0].implementations] == [3]


def glyphs(name: str) -> set[int]:
    fonts: Any = pytest.importorskip("fontTools.ttLib")
    return set(fonts.TTFont(BytesIO(asset(name))).getBestCmap())


# Latin and Greek capitals and small letters, and where their mathematical italics begin.
ALPHABETS = (
    (0x41, 0x5A, 0x1D434),
    (0x61, 0x7A, 0x1D44E),
    (0x391, 0x3A9, 0x1D6E2),
    (0x3B1, 0x3C9, 0x1D6FC),
)


def italic(character: str) -> str:
    """The letter that a browser draws for a one-letter identifier: mathematical italic."""
    if character == "h":
        return "\u210e"
    for first, last, start in ALPHABETS:
        if first <= ord(character) <= last:
            return chr(start + ord(character) - first)
    return {"∂": "\U0001d715", "ϵ": "\U0001d716", "ϑ": "\U0001d717", "ϕ": "\U0001d719"}.get(
        character, character
    )


def drawn(latex_text: str) -> set[str]:
    """The characters that a browser draws for a formula."""
    found: set[str] = set()
    for element in ET.fromstring(mathml(latex_text)).iter():
        text = element.text or ""
        upright = element.tag != "mi" or len(text) > 1 or element.get("mathvariant") == "normal"
        found |= set(text) if upright else {italic(text)} if text else set()
    return {character for character in found if not character.isspace()}


def test_the_font_draws_every_character_of_the_catalogue() -> None:
    pytest.importorskip("fontTools")
    texts = [text for text, _ in NOTATION]
    for entry in load_catalogue().entries:
        for statement in entry.statements:
            texts.append(statement_latex(statement))
            texts += memberships(statement.givens).values()
            for claim in statement.claims.values():
                texts += [latex(link.term) for link in claim.links]
    held = glyphs(MATH)
    texts.append(r"\mathbb{E} \mathbb{N} \mathbb{R}")
    missing = {c for text in texts for c in drawn(text) if ord(c) not in held}
    assert missing == set()


def test_no_number_is_written_as_nothing_of_an_array_and_itself() -> None:
    odd = re.compile(r"0 \\cdot [A-Za-z]+(_\{?\w+\}?)? \+ [0-9]|\\begin\{matrix\}0 \\cdot")
    texts = {
        entry.id: statement_latex(statement)
        for entry in load_catalogue().entries
        for statement in entry.statements
    }
    assert [name for name, text in texts.items() if odd.search(text)] == []
    assert odd.search(r"\begin{matrix}2 \\ 0 \cdot z_{0} + 3")  # as one theorem once had it


def test_the_faces_draw_every_character_of_the_ledger() -> None:
    pytest.importorskip("fontTools")
    held = set[int]().union(*(glyphs(name) for *_, name in (*TEXT_FACES, *MATH_FACES)))
    ledger = load_ledger(load_catalogue())
    told = [getattr(c, part) for c in ledger.claims for part in ("says", "place", "correction")]
    told += [document.title for document in ledger.documents]
    told = [Markup(words.prose(text)).striptags() for text in told]
    drawn_ = {character for text in told for character in text if not character.isspace()}
    assert len(told) > 100
    assert {c for c in drawn_ if ord(c) not in held} == set()


def test_the_font_check_sees_what_is_missing() -> None:
    pytest.importorskip("fontTools")
    assert 0x6F22 not in glyphs(MATH)
    assert drawn(r"\text{漢}") == {"漢"}
    assert drawn("x h Γ") == {"\U0001d465", "\u210e", "\U0001d6e4"}


def test_the_font_keeps_what_browsers_need() -> None:
    fonts: Any = pytest.importorskip("fontTools.ttLib")
    font = fonts.TTFont(BytesIO(asset(MATH)))
    assert "MATH" in font
    assert {0x00AF, 0x203E, 0x210E} <= set(font.getBestCmap())
    assert len(font.getGlyphOrder()) < 2500
    assert "Open Font License" in str(font["name"].getDebugName(13))


def test_the_licence_stands_beside_the_fonts() -> None:
    licence = asset("OFL.txt").decode("utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "The STIX Fonts Project Authors" in licence
    assert all(asset(name)[:4] == b"wOF2" for *_, name in (*TEXT_FACES, *MATH_FACES))

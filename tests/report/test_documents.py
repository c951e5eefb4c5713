"""The pages of the documents: errata first, then every claim with how it is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnproof.documents.evidence import Formula, RefutedEvidence
from attnproof.report import render, render_all, write_report
from attnproof.report.documents import document_pages
from attnproof.report.page import assets
from attnproof.theorem_runs.records import Results
from tests.report.reader import led_to, outside, theorem_pages, words


def render_documents(ledger: Results) -> dict[str, str]:
    """The pages of the documents alone."""
    return {name: text for name, text in render_all(ledger).items() if name.startswith("document")}


def page(ledger: Results) -> str:
    return render_documents(ledger)["document-003.html"]


def part(text: str, name: str) -> str:
    """One section of a page."""
    found = re.search(rf'<section id="{name}">.*?</section>', text, re.DOTALL)
    assert found is not None, name
    return found.group()


def article(text: str, name: str) -> str:
    """One claim of a page, or one erratum."""
    found = re.search(rf'<article class="[a-z]+" id="{name}">.*?</article>', text, re.DOTALL)
    assert found is not None, name
    return found.group()


def test_a_page_for_each_document_with_claims(ledger: Results) -> None:
    assert set(render_documents(ledger)) == {"document-003.html", "document-004.html"}
    assert render_documents(ledger.model_copy(update={"claims": ()})) == {}


def test_nothing_is_run_or_fetched(ledger: Results) -> None:
    for text in render_documents(ledger).values():
        assert outside(text) == []


def test_every_element_is_closed_and_every_link_leads_somewhere(ledger: Results) -> None:
    assert led_to(render_all(ledger)) > 60
    for name, text in render_documents(ledger).items():
        assert 'href="index.html' in text, name


def test_the_errata_stand_first_and_in_order(ledger: Results) -> None:
    text = page(ledger)
    places = [text.index(f'<section id="{name}">') for name in ("errata", "left", "claims")]
    assert places == sorted(places)
    assert re.findall(r'id="erratum-(G\d)"', text) == ["G2", "G3", "G4"]
    assert re.findall(r'class="entry" id="(G\d)"', text) == [f"G{k}" for k in range(1, 9)]


def test_an_erratum_says_what_is_printed_what_is_right_and_where_it_fails(ledger: Results) -> None:
    told = words(article(page(ledger), "erratum-G2"))
    for piece in (
        "Lemma G2",
        "✗ false as written",
        "printed The claim G2 about X ∈ ℝn×d.",
        "corrected Both, by one permutation.",
        "✓ proved for all",
        "counterexample to the statement",
        "every other size 1",
        "Entry (0, 0) of the left side is 0.268…, of the right side −0.731…",
        "the gap is at least 231/500, certified by ball arithmetic (Arb)",
    ):
        assert piece in told, piece
    assert r"\operatorname{Att}(Q, \sigma K, \sigma V)" in article(page(ledger), "erratum-G2")


def test_a_witness_of_equality_has_no_gap(ledger: Results) -> None:
    theorem = ledger.theorems[0]
    (evidence, *rest) = theorem.control.evidence
    assert isinstance(evidence, RefutedEvidence)
    equal = evidence.witness.model_copy(
        update={"gap": "0", "text": "n = 2: the two are equal, both 0"}
    )
    found = (evidence.model_copy(update={"witness": equal}), *rest)
    control = theorem.control.model_copy(update={"evidence": found})
    run = ledger.model_copy(
        update={"theorems": (theorem.model_copy(update={"control": control}), *ledger.theorems[1:])}
    )
    told = words(article(page(run), "erratum-G2"))
    assert "Then the two are equal, both 0, certified by ball arithmetic (Arb)." in told
    assert "the gap is" not in told


def test_an_ill_typed_statement_and_a_disproof(ledger: Results) -> None:
    told = words(article(page(ledger), "erratum-G3"))
    assert "ill-typed The expression is equal(Q @ g, Q) n is not d." in told
    assert "counterexample" not in told
    told = words(article(page(ledger), "erratum-G4"))
    assert "disproved by A false one: ✓ proved" in told
    assert "It names no axis." in told


def test_a_claim_says_how_it_is_known(ledger: Results) -> None:
    text = page(ledger)
    told = words(article(text, "G1"))
    assert "✓ true as written theorem" in told
    assert "as printed ✓ proved for all" in told
    assert "in 13 kernel steps: One by induction (powers; sums) · in numbers: 1 held" in told
    assert 'href="theorem/one-by-induction.html"' in article(text, "G1")
    assert "✗ refuted at n = 2" in words(article(text, "G2"))
    assert "its negative control, where only the keys are permuted" in words(article(text, "G2"))
    assert "The correction changes what something is" in words(article(text, "G3"))
    assert "disproof ✓ proved" in words(article(text, "G4"))


def test_numbers_stand_beside_the_printed_ones_once(ledger: Results) -> None:
    text = page(ledger)
    told = words(article(text, "G5"))
    for piece in (
        "numerical demonstration",
        "The weights ✗ differs",
        "Seed 42.",
        "No seed is set there.",
        "A0−0.5 1.0",
        "✓ agrees",
        "✗ differs: what is printed is wrong",
    ):
        assert piece in told, piece
    assert "<table" not in article(text, "G6")
    assert "The weights, with G5" in words(article(text, "G6"))
    assert "comparison with another document" in words(article(text, "G6"))


def test_what_is_left_open_says_why(ledger: Results) -> None:
    told = words(part(page(ledger), "left"))
    assert "G7, Lemma G7: ? undecided. A rule is missing." in told
    assert "G8, Lemma G8: – not checkable. A taste." in told
    told = words(article(page(ledger), "G7"))
    assert "! not as expected" in told
    assert "expected true as written, is undecided" in told
    assert "nowhere" in told
    assert "G7: expected true as written" in words(part(page(ledger), "summary"))


def test_a_document_without_faults_says_so(ledger: Results) -> None:
    text = render_documents(ledger)["document-004.html"]
    assert "None: no claim of this document was found to be wrong." in words(text)
    assert 'id="left"' not in text


def test_the_first_page_counts_the_verdicts(ledger: Results) -> None:
    text = part(render(ledger), "documents")
    told = words(text)
    assert 'href="document-003.html"' in text
    for piece in ("003 Notes on <attention> ! 1 not as expected", "all documents"):
        assert piece in told, piece
    rows = [re.findall(r'<td class="n"[^>]*>([^<]+)<', row) for row in text.split("<tr")[2:]]
    assert rows == [
        ["3", "1", "2", "1", "1", "8"],
        ["1", "–", "–", "–", "–", "1"],
        ["4", "1", "2", "1", "1", "9"],
    ]
    assert 'id="documents"' not in render(ledger.model_copy(update={"claims": ()}))


def test_counts_follow_the_verdicts(ledger: Results) -> None:
    first = ledger.claims[0].model_copy(update={"verdict": "false as written"})
    rotated = ledger.model_copy(update={"claims": (first, *ledger.claims[1:])})
    before, after = (dict(next(document_pages(r)).counts) for r in (ledger, rotated))
    assert before["true as written"] == after["true as written"] + 1
    assert [e.claim.id for e in next(document_pages(rotated)).errata] == ["G1", "G2", "G3", "G4"]


def test_a_theorem_links_the_claims_it_settles(ledger: Results) -> None:
    text = theorem_pages(ledger)["theorem/one-by-induction.html"]
    assert 'It settles claims <a href="../document-003.html#G1">G1</a>, Z9' in text


def test_a_hostile_ledger_stays_text(ledger: Results) -> None:
    hostile = '<script>x</script><img src=x onerror="y">'
    wrong = ledger.claims[1].model_copy(
        update=dict.fromkeys(("says", "place", "correction", "unstated", "reason"), hostile)
        | {"id": '"><script>', "why": (hostile,)}
    )
    shown = ledger.demonstrations[0].model_copy(update={"title": hostile, "remark": hostile})
    claims = (wrong, *ledger.claims[2:])
    run = ledger.model_copy(update={"claims": claims, "demonstrations": (shown,)})
    text = page(run)
    assert outside(text) == []
    assert hostile in words(text)


def test_an_ill_typed_theorem_and_an_induction_on_their_pages(ledger: Results) -> None:
    pages = theorem_pages(ledger)
    assert "✗ ill-typed 1" in words(render(ledger))
    told = words(pages["theorem/an-ill-typed-one.html"])
    for piece in ("Why it has no meaning", "equal(Q @ g, Q)", "n is not d."):
        assert piece in told, piece
    text = pages["theorem/one-by-induction.html"]
    told = words(text)
    for piece in (
        "It rests on",
        "(linear)",
        "By induction on m. For m = 0:",
        "From m to m + 1:",
        "But",
        "13 kernel steps: 12 unroll, 1 induction.",
        "Assumed: c is nonnegative; the hypotheses above.",
        "Theorem: 1 held",
    ):
        assert piece in told, piece
    assert r"\ge \frac{K}{2}" in text
    assert r"\ne \frac{K}{2}" in text


def test_writing(ledger: Results, tmp_path: Path) -> None:
    first = write_report(ledger, tmp_path)
    assert first == tmp_path / "index.html"
    assert {p.name for p in tmp_path.iterdir()} == {
        "assets",
        "definitions.html",
        "document-003.html",
        "document-004.html",
        "index.html",
        "theorem",
    }
    assert (tmp_path / "document-003.html").read_text(encoding="utf-8") == page(ledger)


@pytest.mark.parametrize("width", ["max-width: 640px", "@media print"])
def test_narrow_and_printed(width: str) -> None:
    text = assets()["assets/report.css"]
    after = text[text.index(width) :]
    assert "article.erratum" in after or "dl.sides" in after


def test_a_formula_that_cannot_be_set_is_shown_as_source(ledger: Results) -> None:
    bad = Formula(latex=r"\frac{a \nosuchcommand", text="")
    theorem = ledger.theorems[0]
    control = theorem.control.model_copy(update={"statement": bad})
    run = ledger.model_copy(
        update={"theorems": (theorem.model_copy(update={"control": control}), *ledger.theorems[1:])}
    )
    assert "shown as LaTeX source" in words(article(page(run), "erratum-G2"))

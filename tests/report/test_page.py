"""The page: complete, self-contained, safe, and readable without colour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from attnproof.document import SIGNS
from attnproof.evidence import DerivedEvidence, Formula
from attnproof.records import Results
from attnproof.report import MissingAsset, ReportError, fonts, render, write_report
from tests.report.reader import read


def words(page: str) -> str:
    return " ".join("".join(read(page).text).split())


def outside(page: str) -> list[str]:
    """What a page would run or fetch."""
    found = []
    for tag, attributes in read(page).elements:
        if tag in ("script", "link", "iframe", "object", "embed", "base", "form", "img"):
            found.append(tag)
        found += [name for name in attributes if name.startswith("on")]
        for name in ("src", "srcset", "data", "xlink:href"):
            if name in attributes:
                found.append(f"{name}={attributes[name]}")
        if tag != "a" and attributes.get("href"):
            found.append(f"href={attributes['href']}")
    style = re.sub(r"url\(data:font/woff2;base64,[A-Za-z0-9+/=]*\)", "", page)
    return found + re.findall(r"url\([^)]*\)|@import", style)


def test_nothing_is_run_or_fetched(results: Results) -> None:
    page = render(results)
    assert outside(page) == []
    links = [a["href"] or "" for tag, a in read(page).elements if tag == "a"]
    assert {link for link in links if not link.startswith("#")} == {
        "https://arxiv.org/abs/1706.03762"
    }


@pytest.mark.parametrize(
    "added",
    [
        "<script></script>",
        '<img src="x.png">',
        '<p onclick="x()"></p>',
        "<style>@import 'x';</style>",
        '<style>a{background:url("http://x")}</style>',
        '<link rel="stylesheet" href="x.css">',
    ],
)
def test_the_check_for_outside_things_sees_them(added: str) -> None:
    assert outside(f"<main>{added}</main>")


def test_every_element_is_closed_and_every_link_leads_somewhere(results: Results) -> None:
    reader = read(render(results))
    assert reader.open == []
    ids = [a["id"] for _, a in reader.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    inner = {(a["href"] or "")[1:] for t, a in reader.elements if t == "a" and a["href"]}
    assert {i for i in inner if not i.startswith("ttps")} <= set(ids)
    assert {t.id for t in results.theorems} <= set(ids)


def test_a_verdict_is_a_sign_and_a_word(results: Results) -> None:
    page = render(results)
    for word in ("proved", "refuted", "undecided", "measured", "held", "violated", "skipped"):
        assert f'<span class="sign" aria-hidden="true">{SIGNS[word]}</span> {word}</span>' in page
    assert "! non-finite" in words(page)
    assert "1 1 1" not in words(page)
    told = words(page)
    lead = "Of 3 theorems, 2 are as expected in verdict, numbers and control"
    for count in ("proved 1", "refuted 1", "undecided 1", lead):
        assert count in told


def test_a_run_without_numbers_says_nothing_of_numbers(results: Results) -> None:
    options = results.options.model_copy(update={"numeric": False})
    told = words(render(results.model_copy(update={"options": options})))
    assert "Of 3 theorems, 2 are as expected in verdict and control." in told
    summary = told[: told.index("How to read this")]
    assert "nothing was measured, as asked" in summary
    assert "numbers and control" not in summary


def test_what_is_wider_than_the_page_scrolls_by_itself(results: Results) -> None:
    style = render(results).partition("</style>")[0]
    rules = (rule.partition("{") for rule in style.split("}"))
    scrolling = [selectors for selectors, _, body in rules if "overflow-x: auto" in body]
    named = {name.strip() for group in scrolling for name in group.split(",")}
    assert {".formula", ".scroll", ".uses", ".givens"} <= named
    assert "overflow-wrap: break-word" in style  # names of files, in running text


def test_what_went_wrong_is_told_first(results: Results) -> None:
    told = words(render(results))
    summary, _, _ = told.partition("How to read this")
    assert "Not all is as expected" in summary
    assert "bias/odd.py could not be read: <script>alert(1)</script>" in summary
    assert "never-reached" in summary
    assert "not as expected" in summary
    fine = results.model_copy(
        update={"theorems": results.theorems[:1], "broken": (), "unfinished": (), "ok": True}
    )
    assert "All is as expected" in words(render(fine))
    assert "not as expected" not in words(render(fine))


def test_a_section_says_what_the_record_says(results: Results) -> None:
    page = render(results)
    told = words(page)
    for piece in (
        "for all",
        "Assumed: σ is a permutation.",
        "95 kernel steps: 92 entry, 2 reindex, 1 ring",
        "the columns move with the keys",
        "both sides have one normal form",
        "94 steps",
        "1 step",
        "Its negative control: only the keys are permuted",
        "the gap is at least 231/500",
        "certified by ball arithmetic (Arb)",
        "the left side is 0.268…",
        "of the right side −0.731…",
        "Settles claim B4",
        "seed 0",
        "64 rows",
        "2 × 10−7",
        "4 × 10−7",
        "not on this machine",
        "every other size 1",
        "no witness was found in 400 tries",
        "together leaves every row",
        "For k ≥ 1.",
        "expected proved, is undecided",
        "2 January 2026",
        "if the sum σ ≠ 0",
        "In numbers: 1 violated",
        "Definitions",
        "Heads WQh, keep.",
    ):
        assert piece in told, piece
    assert "q<sub>i</sub>" in page


def test_definitions_stand_between_the_legend_and_the_theorems(results: Results) -> None:
    told = words(render(results))
    places = [told.index(p) for p in ("How to read this", "Definitions", "Permuting keys and")]
    assert places == sorted(places)
    without = results.model_copy(update={"definitions": ()})
    assert "Definitions" not in words(render(without))


def test_the_numbers_of_a_control_are_folded(results: Results) -> None:
    page = render(results)
    control = page[page.index('<aside class="control">') :]
    control = control[: control.index("</aside>")]
    folded = control[control.index("<details") : control.index("</details>")]
    assert "<details open" not in control
    assert control.count("<table") == folded.count("<table") == 1
    assert "<table" in page[: page.index('<aside class="control">')].rpartition("In numbers")[2]


def test_a_condition_stands_beside_the_verdict_wherever_that_stands(results: Results) -> None:
    theorem = results.theorems[0]
    page = render(results.model_copy(update={"theorems": (theorem,)}))
    assert "Assumed: σ is a permutation." in words(page)
    assert page.count("if the sum σ ≠ 0") == 2  # in the table, and with the theorem
    proof = theorem.evidence[0].model_copy(update={"readings": ()})
    bare = theorem.model_copy(update={"evidence": (proof, *theorem.evidence[1:])})
    assert "≠ 0" not in words(render(results.model_copy(update={"theorems": (bare,)})))


def test_a_refuted_theorem_has_no_proof(results: Results) -> None:
    chain = results.theorems[0].chain
    false = results.theorems[2].model_copy(update={"chain": chain, "id": "alone"})
    told = words(render(results.model_copy(update={"theorems": (false,)})))
    assert "Refutation" in told
    assert "Proof" not in told
    assert "What was tried" not in told


def test_a_hostile_record_stays_text(results: Results) -> None:
    hostile = '<script>x</script><img src=x onerror="y">'
    formula = Formula(latex=rf"\text{{{hostile}}}", text=hostile)
    theorem = results.theorems[0].model_copy(
        update={
            "title": hostile,
            "says": hostile,
            "sources": (hostile, f"http://x.org/{hostile}"),
            "statement": formula,
            "id": '"><script>',
            "assumed": (formula,),
        }
    )
    page = render(results.model_copy(update={"theorems": (theorem,)}))
    assert outside(page) == []
    assert hostile in words(page)


def test_a_formula_that_cannot_be_set_is_shown_as_source(results: Results) -> None:
    bad = Formula(latex=r"\frac{a \nosuchcommand", text="")
    theorem = results.theorems[0].model_copy(update={"statement": bad})
    told = words(render(results.model_copy(update={"theorems": (theorem,)})))
    assert r"\frac{a \nosuchcommand (shown as LaTeX source, because it could not be set" in told
    assert "Settles claim B4" in told


def test_formulas_have_an_alternative_text(results: Results) -> None:
    formulas = [a for tag, a in read(render(results)).elements if tag == "math"]
    assert len(formulas) > 20
    assert all(a.get("alttext") for a in formulas)


def test_wide_dark_and_printed(results: Results) -> None:
    page = render(results)
    assert 'name="viewport"' in page
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 640px", "overflow-x"):
        assert rule in page


def test_writing(results: Results, tmp_path: Path) -> None:
    page = write_report(results, tmp_path / "a" / "b")
    assert page == tmp_path / "a" / "b" / "index.html"
    assert page.read_text(encoding="utf-8") == render(results)
    assert [p.name for p in page.parent.iterdir()] == ["index.html"]


def test_a_folder_that_cannot_be_written(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"wanted to write the report to .*file.*--html"):
        write_report(results, tmp_path / "file" / "report")


def test_a_missing_asset(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    faces: Any = (("STIX Two Math", "normal", 400, "no-such-font.woff2"),)
    monkeypatch.setattr(fonts, "FACES", faces)
    with pytest.raises(MissingAsset, match=r"needs no-such-font\.woff2.*install attnproof again"):
        render(results)


def test_what_sympy_derived_is_set_as_a_formula(results: Results) -> None:
    side = {
        "says": "one row",
        "relation": ">=",
        "left": {"latex": "x^{2}", "text": "x**2"},
        "right": {"latex": "0", "text": "0"},
    }
    told = {
        "status": "derived",
        "why": "",
        "sizes": ({"n": 2},),
        "cases": 1,
        "all_cases": 1,
        "natural": False,
        "sides": (side,),
        "seconds": 0.1,
    }
    first, *others = results.theorems

    def page(**changed: object) -> str:
        found = DerivedEvidence.model_validate({**told, **changed})
        theorem = first.model_copy(update={"evidence": (*first.evidence, found)})
        return render(results.model_copy(update={"theorems": (theorem, *others)}))

    derived = page()
    assert "Derived by SymPy at n = 2." in derived
    assert r'alttext="x^{2} \ge 0"' in derived
    late = page(status="not derived", why="the time was over")
    assert "Not derived by SymPy: the time was over." in late
    assert r'alttext="x^{2} \ge 0"' not in late

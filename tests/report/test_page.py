"""The pages of a run: complete, safe, readable without colour, without a script and offline."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attnproof.documents.document import SIGNS
from attnproof.documents.evidence import DerivedEvidence, Formula, ProvedEvidence
from attnproof.report import MissingAsset, ReportError, render, render_all, theorems, write_report
from attnproof.report import page as shared
from attnproof.report.page import assets
from attnproof.report.theorems import seen
from attnproof.report.view import SUBJECTS
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.records import Results, TheoremRecord
from tests.report.reader import led_to, outside, read, theorem_pages, words


def page_of(results: Results, theorem: TheoremRecord | None = None) -> str:
    """The page of a theorem, of the first if none is named."""
    chosen = theorem or results.theorems[0]
    name = re.sub(r"[^0-9A-Za-z_-]", "_", chosen.id)
    return theorem_pages(results)[f"theorem/{name}.html"]


def alone(results: Results, **changed: object) -> str:
    """The page of the first theorem with something changed."""
    theorem = results.theorems[0].model_copy(update=changed)
    return page_of(results.model_copy(update={"theorems": (theorem,)}))


def section(page: str, name: str) -> str:
    """One section of a page."""
    return page.split(f'<section id="{name}">')[1].partition("</section>")[0]


def test_nothing_is_run_or_fetched_that_is_not_of_the_report(ledger: Results) -> None:
    for name, page in render_all(ledger).items():
        assert outside(page, "../" if "/" in name else "") == [], name
        links = [a["href"] or "" for tag, a in read(page).elements if tag == "a"]
        assert {link for link in links if link.startswith("http")} <= {
            "https://arxiv.org/abs/1706.03762"
        }
    for name, text in assets().items():
        style = re.sub(r"url\(data:font/woff2;base64,[A-Za-z0-9+/=]*\)", "", text)
        assert not re.findall(r"url\(|@import|https?:|fetch\(|XMLHttp|import\(", style), name


@pytest.mark.parametrize(
    "added",
    [
        "<script></script>",
        '<script src="https://x.org/assets/report.js" defer></script>',
        '<img src="x.png">',
        '<p onclick="x()"></p>',
        "<style>@import 'x';</style>",
        '<style>a{background:url("http://x")}</style>',
        '<link rel="stylesheet" href="x.css">',
        '<link rel="stylesheet" href="http://x.org/assets/report.css">',
        '<link rel="preload" href="assets/report.css">',
    ],
)
def test_the_check_for_outside_things_sees_them(added: str) -> None:
    assert outside(f"<main>{added}</main>")


def test_every_element_is_closed_and_every_link_leads_somewhere(ledger: Results) -> None:
    pages = render_all(ledger)
    assert led_to(pages) > 40
    assert {f"theorem/{t.id}.html" for t in ledger.theorems} <= set(pages)
    with pytest.raises(AssertionError):
        led_to({"index.html": '<a href="theorem/gone.html">gone</a>'})
    with pytest.raises(AssertionError):
        led_to({"index.html": '<a href="#gone">gone</a>'})


def test_a_verdict_is_a_sign_and_a_word(results: Results) -> None:
    page = "".join([render(results), *theorem_pages(results).values()])
    for word in ("proved", "refuted", "undecided", "measured", "held", "violated", "skipped"):
        assert f'<span class="sign" aria-hidden="true">{SIGNS[word]}</span> {word}</span>' in page
    assert "! non-finite" in words(page)
    assert "1 1 1" not in words(page)
    told = words(render(results))
    lead = "Of 3 theorems, 2 are as expected in verdict, numbers and control"
    for count in ("proved 1", "refuted 1", "undecided 1", lead):
        assert count in told


def test_a_run_without_numbers_says_nothing_of_numbers(results: Results) -> None:
    options = results.options.model_copy(update={"numeric": False})
    told = words(render(results.model_copy(update={"options": options})))
    assert "Of 3 theorems, 2 are as expected in verdict and control." in told
    summary = told[: told.index("How to read this")]
    assert "nothing was measured, as requested" in summary
    assert "numbers and control" not in summary


def test_what_is_wider_than_the_page_scrolls_by_itself() -> None:
    style = assets()["assets/report.css"]
    rules = (rule.partition("{") for rule in style.split("}"))
    scrolling = [selectors for selectors, _, body in rules if "overflow-x: auto" in body]
    named = {name.strip() for group in scrolling for name in group.split(",")}
    assert {".formula", ".scroll", ".uses", ".givens", "pre"} <= named
    assert "overflow-wrap: break-word" in style  # names of files, in running text


def test_what_went_wrong_is_told_first(results: Results) -> None:
    told = words(render(results))
    summary, _, _ = told.partition("How to read this")
    assert "Not everything is as expected" in summary
    assert "bias/odd.py could not be read: <script>alert(1)</script>" in summary
    assert "never-reached" in summary
    assert "not as expected" in summary
    fine = results.model_copy(
        update={"theorems": results.theorems[:1], "broken": (), "unfinished": (), "ok": True}
    )
    assert "Everything is as expected" in words(render(fine))
    assert "not as expected" not in words(render(fine))


def test_a_page_says_what_the_record_says(results: Results) -> None:
    page = page_of(results)
    told = words(page)
    for piece in (
        "for all",
        "Assumed: σ is a permutation.",
        "95 kernel steps: 92 entry, 2 reindex, 1 ring",
        "the columns move with the keys",
        "both sides have the same normal form",
        "94 steps",
        "1 step",
        "Its negative control Only the keys are permuted",
        "Its negative control: only the keys are permuted",
        "the gap is at least 231/500",
        "certified by ball arithmetic (Arb)",
        "the left side is 0.268…",
        "of the right side −0.731…",
        "It settles claim B4",
        "cpu; seed 0",
        "64 rows",
        "scaled_dot_product_attention (flash)",
        "attention. It settles claim",
        "float32",
        "2 × 10−7",
        "4 × 10−7",
        "not on this machine",
        "every other size 1",
        "together leaves every row",
        "For k ≥ 1.",
        "2 January 2026",
        "It holds if the sum σ ≠ 0",
        "Negative control: 1 violated",
        "@theorem('<one>') def attention_ignores_the_order(Q, K, V): ...",
        "permutation/attention_ignores_the_order.py",
        "attnproof show attention-ignores-the-order --steps",
        "attnproof run attention-ignores-the-order --scale default --device cpu",
        "--dtype float32 --seed 0",
    ):
        assert piece in told, piece
    assert "q<sub>i</sub>" in page
    left = words(page_of(results, results.theorems[1]))
    assert "no witness was found in 400 tries" in left
    assert "expected proved, is undecided" in left
    told = words(render_all(results)["definitions.html"])
    assert "Heads WQh, keep." in told
    assert "attention; uses softmax" in told
    assert "used in attention" in told
    assert "3 theorems about it" in told


def test_every_page_has_its_id_a_permalink_and_the_command(ledger: Results) -> None:
    pages = theorem_pages(ledger)
    assert len(pages) == len(ledger.theorems)
    for theorem in ledger.theorems:
        page = pages[f"theorem/{theorem.id}.html"]
        assert f"<code>{theorem.id}</code>" in page
        assert f'href="../theorem/{theorem.id}.html">permalink</a>' in page
        assert f"<code>attnproof show {theorem.id}</code>" in page
        assert f"<code>attnproof run {theorem.id} " in page


def test_the_steps_fold_at_three_depths(results: Results) -> None:
    proof = section(page_of(results), "proof")
    reasons, rewriting = proof.split('<details class="rewriting" open>')
    assert "the columns move with the keys" in reasons
    assert "<math" not in reasons
    assert "<math" in rewriting
    (kernel,) = re.findall(r'<details class="kernel">.*?</details>', rewriting, re.DOTALL)
    assert "94 kernel steps" in words(kernel)
    assert "reindex at 1.0, inside •1a < b1= c" in words(kernel)
    assert "92 more: attnproof show attention-ignores-the-order --steps prints them all." in words(
        kernel
    )
    link = results.theorems[0].chain[0].model_copy(update={"steps": 4000})
    assert "prints the first 2000" in words(alone(results, chain=(link,)))


def test_a_page_that_grows_large_shows_fewer_kernel_steps(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, *_) = results.theorems[0].chain
    many = tuple(first.kernel[0] for _ in range(50))
    chain = (first.model_copy(update={"kernel": many}),)
    assert "44 more" in words(alone(results, chain=chain))
    monkeypatch.setattr(theorems, "LARGE", len(alone(results, chain=chain).encode()) - 1)
    assert "64 more" in words(alone(results, chain=chain))


def test_previous_and_next_follow_the_order_of_the_index(ledger: Results) -> None:
    order = re.findall(r'<td><a href="(theorem/[^"]+)"', render(ledger))
    assert len(order) == len(ledger.theorems)
    pages = theorem_pages(ledger)
    for before, after in pairwise(order):
        assert f'rel="next" href="../{after}"' in pages[before]
        assert f'rel="prev" href="../{before}"' in pages[after]
    assert 'rel="prev"' not in pages[order[0]]
    assert 'rel="next"' not in pages[order[-1]]


def test_what_it_uses_and_what_uses_it_is_drawn(ledger: Results) -> None:
    uses = section(page_of(ledger), "uses")
    drawn = re.search(r"<svg.*?</svg>", uses, re.DOTALL)
    assert drawn is not None
    assert "<title>It uses attention; claims that rest on it: G2, G3.</title>" in drawn[0]
    for target in (
        "definitions.html#attention",
        "definitions.html#softmax",
        "document-003.html#G2",
    ):
        assert f'href="../{target}"' in drawn[0]
    assert drawn[0].count('class="arrow"') == 4  # softmax, attention, this theorem, two claims
    bare = alone(ledger.model_copy(update={"claims": ()}), uses=(), claims=())
    assert "<svg" not in section(bare, "uses")
    assert "It uses no definitions." in words(section(bare, "uses"))


def test_subjects_stand_in_the_order_of_teaching(results: Results) -> None:
    subjects = ("bias", "my_own", "sinusoidal", "softmax", "rotary", "permutation", "rotation")
    changed = tuple(
        results.theorems[0].model_copy(update={"id": f"of-{s}", "subject": s}) for s in subjects
    )
    page = render(results.model_copy(update={"theorems": changed}))
    found = re.findall(r'<tbody id="subject-([a-z_]+)">', page)
    assert found == [
        "permutation", "softmax", "rotation", "rotary", "sinusoidal", "bias", "my_own"
    ]  # fmt: skip
    assert "My own" in words(page)


def test_every_subject_of_the_catalogue_has_its_place() -> None:
    assert {entry.subject for entry in load_catalogue().entries} == set(SUBJECTS)


def test_the_index_is_whole_without_the_script(ledger: Results) -> None:
    page = render(ledger)
    body = section(page, "theorems")
    for theorem in ledger.theorems:
        row = body.split(f'<tr id="{theorem.id}"')[1].partition("</tr>")[0]
        for part in (theorem.id, theorem.verdict, theorem.control.verdict):
            assert part in words(row)
        assert " hidden" not in row
    assert '<form class="find" hidden' in body  # what would do nothing is not seen
    for page in theorem_pages(ledger).values():
        for tag, attributes in read(page).elements:
            assert "hidden" not in attributes or tag in ("button", "p"), attributes
            assert "data-copy" not in attributes or "hidden" in attributes


def test_a_row_carries_what_the_filters_ask(results: Results) -> None:
    page = render(results)
    rows = {a["id"]: a for tag, a in read(page).elements if tag == "tr" and "data-verdict" in a}
    proved, left, false = (rows[t.id] for t in results.theorems)
    assert proved["data-subject"] == "permutation"
    assert proved["data-more"] == "attention B4"
    assert (proved["data-verdict"], proved["data-kinds"]) == ("proved", "kernel")
    assert (left["data-verdict"], left["data-kinds"]) == ("undecided", "")
    assert (false["data-verdict"], false["data-kinds"]) == ("refuted", "kernel")
    for name in ("words", "subject", "verdict", "kind"):
        assert f'name="{name}"' in page


def test_the_picture_has_a_tile_for_each_theorem(ledger: Results) -> None:
    picture = section(render(ledger), "picture")
    tiles = re.findall(
        r'<a href="theorem/([^"]+)\.html"><title>([^<]+)</title><g [^>]*class="([a-z-]+)"', picture
    )
    assert {name for name, _, _ in tiles} == {t.id for t in ledger.theorems}
    for name, _, word in tiles:
        theorem = next(t for t in ledger.theorems if t.id == name)
        assert word == (theorem.verdict if theorem.ok else "wrong")
    assert 'aria-label="Permutations: 5 theorems"' in picture


def test_evidence_that_speaks_against_a_theorem_is_told_as_that(results: Results) -> None:
    first, left, false = results.theorems
    assert seen(first)["measured"] == "against"  # one measurement is violated
    held = first.model_copy(update={"evidence": (first.evidence[0], first.evidence[1])})
    assert seen(held) == {"kernel": "for", "sympy": "none", "exact": "none", "measured": "for"}
    missed = false.model_copy(update={"evidence": (*false.evidence, first.evidence[1])})
    assert seen(missed)["measured"] == "against"  # a false statement that holds
    assert seen(left)["kernel"] == "none"


def painted(page: str, word: str) -> list[str]:
    """The classes of each sign of a verdict with that word."""
    return re.findall(rf'<span class="verdict ([^"]*)"><span[^>]*>[^<]*</span> {word}</span>', page)


def test_what_is_refuted_as_expected_is_not_painted_as_a_failure(ledger: Results) -> None:
    fine = tuple(t for t in ledger.theorems if t.ok)
    run = ledger.model_copy(
        update={"theorems": fine, "claims": (), "broken": (), "unfinished": (), "ok": True}
    )
    told = {t.verdict for t in fine}
    assert {"proved", "refuted", "ill-typed"} <= told
    index = render(run)
    for word in ("refuted", "ill-typed"):
        assert set(painted(index, word)) == {word}
    rest = "".join(re.sub(r"(?s)<section id=\"reading\">.*", "", page) for page in (index,))
    assert "unexpected" not in rest
    assert 'class="wrong"' not in section(index, "picture")
    assert "row bad" not in index
    assert 'class="bad"' not in index
    page = page_of(run, next(t for t in fine if t.verdict == "refuted"))
    assert "as expected: a common statement that is false" in words(page)
    assert set(painted(page, "refuted")) == {"refuted"}
    style = assets()["assets/report.css"]
    refuted, wrong = (
        re.findall(rf"--{name}: (#[0-9a-f]{{6}})", style) for name in ("refuted", "wrong")
    )
    assert len(refuted) == len(wrong) == 2  # by day and by night
    assert not set(refuted) & set(wrong)


def test_an_unexpected_verdict_is_painted_as_one(results: Results) -> None:
    false = results.theorems[2].model_copy(
        update={"verdict": "proved", "ok": False, "why": ("expected refuted, is proved",)}
    )
    run = results.model_copy(update={"theorems": (results.theorems[0], false)})
    index = render(run)
    assert "proved unexpected" in painted(index, "proved")
    assert 'class="wrong"' in section(index, "picture")
    assert 'class="bad"' in index
    assert "A false one, not as expected: expected refuted, is proved" in words(index)
    page = page_of(run, false)
    assert "expected: refuted" in words(page)
    assert painted(page, "proved") == ["proved unexpected"]


def test_theorem_and_negative_control_share_one_table(results: Results) -> None:
    numbers = section(page_of(results), "numbers")
    assert numbers.count("<table") == 1
    table = numbers[: numbers.index("</table>")]
    assert table.count('<svg class="ratio"') == 3  # held, violated, and the control's
    theorem, control = table.split("Its negative control: only the keys are permuted")
    assert "✓" in theorem
    assert '<tbody class="against">' in control
    assert '<tbody class="against">' not in theorem
    assert "normal" in theorem  # the input distribution


def test_a_condition_stands_beside_the_verdict_wherever_that_stands(results: Results) -> None:
    theorem = results.theorems[0]
    run = results.model_copy(update={"theorems": (theorem,)})
    assert "Assumed: σ is a permutation." in words(page_of(run))
    assert render(run).count("if the sum σ ≠ 0") == 1
    assert section(page_of(run), "statement").count("if the sum σ ≠ 0") == 1
    assert section(page_of(run), "conditions").count("if the sum σ ≠ 0") == 1
    proof = theorem.evidence[0]
    assert isinstance(proof, ProvedEvidence)
    proof = proof.model_copy(update={"readings": ()})
    bare = theorem.model_copy(update={"evidence": (proof, *theorem.evidence[1:])})
    run = results.model_copy(update={"theorems": (bare,)})
    assert "≠ 0" not in words(render(run)) + words(page_of(run))


def test_a_refuted_theorem_has_no_proof(results: Results) -> None:
    chain = results.theorems[0].chain
    false = results.theorems[2].model_copy(update={"chain": chain, "id": "alone"})
    told = words(page_of(results.model_copy(update={"theorems": (false,)})))
    assert "Refutation" in told
    assert "Proof" not in told
    assert "Attempted proof" not in told


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
            "code": hostile,
            "file": hostile,
            "subject": hostile,
            "uses": (hostile,),
        }
    )
    run = results.model_copy(update={"theorems": (theorem,)})
    for page, root in ((render(run), ""), (page_of(run), "../")):
        assert outside(page, root) == []
        assert hostile in words(page)
        assert read(page).open == []


def test_a_formula_that_cannot_be_set_is_shown_as_source(results: Results) -> None:
    bad = Formula(latex=r"\frac{a \nosuchcommand", text="")
    theorem = results.theorems[0].model_copy(update={"statement": bad})
    told = words(page_of(results.model_copy(update={"theorems": (theorem,)})))
    assert r"\frac{a \nosuchcommand (shown as LaTeX source, because it could not be set" in told
    assert "It settles claim B4" in told


def test_formulas_have_an_alternative_text(results: Results) -> None:
    page = page_of(results) + render_all(results)["definitions.html"]
    formulas = [a for tag, a in read(page).elements if tag == "math"]
    assert len(formulas) > 20
    assert all(a.get("alttext") for a in formulas)


def test_wide_dark_and_printed(results: Results) -> None:
    assert 'name="viewport"' in render(results)
    style = assets()["assets/report.css"]
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 640px", "overflow-x"):
        assert rule in style


def test_writing(results: Results, tmp_path: Path) -> None:
    page = write_report(results, tmp_path / "a" / "b")
    assert page == tmp_path / "a" / "b" / "index.html"
    assert page.read_text(encoding="utf-8") == render(results)
    found = {p.relative_to(page.parent).as_posix() for p in page.parent.rglob("*") if p.is_file()}
    assert found == {
        *render_all(results),
        "assets/report.css",
        "assets/math.css",
        "assets/report.js",
    }


def test_a_folder_that_cannot_be_written(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"wanted to write the report to .*file.*--html"):
        write_report(results, tmp_path / "file" / "report")


def test_a_missing_asset(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faces: Any = (("STIX Two Math", "normal", 400, "no-such-font.woff2"),)
    monkeypatch.setattr(shared, "MATH_FACES", faces)
    with pytest.raises(MissingAsset, match=r"needs no-such-font\.woff2.*reinstall attnproof"):
        write_report(results, tmp_path)


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

    def with_sympy(**changed: object) -> str:
        found = DerivedEvidence.model_validate({**told, **changed})
        theorem = first.model_copy(update={"evidence": (*first.evidence, found)})
        return page_of(results.model_copy(update={"theorems": (theorem, *others)}))

    derived = with_sympy()
    assert "Derived by SymPy at n = 2." in derived
    assert r'alttext="x^{2} \ge 0"' in derived
    late = with_sympy(status="not derived", why="the time limit was reached")
    assert "Not derived by SymPy: the time limit was reached." in late
    assert r'alttext="x^{2} \ge 0"' not in late


def test_the_index_of_the_whole_catalogue_loads_at_once(ledger: Results) -> None:
    """As large as it can be: every theorem has a condition, a claim and all kinds of evidence."""
    theorem = ledger.theorems[0]
    catalogue = load_catalogue().entries
    every = tuple(
        theorem.model_copy(
            update={"id": e.id, "title": e.theorem.title, "subject": e.subject, "ok": True}
        )
        for e in catalogue
    )
    page = render(ledger.model_copy(update={"theorems": every, "ok": True}))
    assert all(f'<tr id="{e.id}"' in page for e in catalogue)
    assert 100_000 < len(page.encode()) < 300_000
    sizes = {name: len(text.encode()) for name, text in assets().items()}
    assert sizes["assets/report.css"] + sizes["assets/report.js"] < 110_000
    head = page.partition("</head>")[0]
    assert "math.css" not in head  # the large font is not waited for


def test_policies_are_told_for_each_set_of_input_distributions(results: Results) -> None:
    theorem = results.theorems[0]
    first, *rest = (e for e in theorem.evidence if e.kind == "measured")
    other = replace(first, dtype="float64", distributions=("normal", "needle"))
    numbers = section(alone(results, evidence=(theorem.evidence[0], first, other)), "numbers")
    told = words(numbers)
    assert told.count("The theorem.") == 1  # one group of rows
    assert "float64normal, of 2" in told
    assert told.count("cpu; seed 0.") == 5  # two groups of rows, and three of policies
    assert "inputs normal, needle; cpu; seed 0." in told
    assert rest

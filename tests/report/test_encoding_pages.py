"""The pages of encodings: whole, safe, every cell on them, and drawings with their numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from markupsafe import escape

from attnproof import Encoding, real
from attnproof.cards.records import BrokenEncoding, RequirementRecord, TableRecord
from attnproof.cards.table import tabulate
from attnproof.encodings.bias import Alibi
from attnproof.encodings.masks import NopeCausal
from attnproof.encodings.rope import Rope
from attnproof.laws import LAWS
from attnproof.report import ReportError, encodings
from attnproof.report.encodings import Cell, render_encodings, write_encodings
from tests.report.reader import led_to, outside, read

ASKED = (
    "relative",
    "even",
    "tells-before-from-after",
    "falls-with-distance",
    "bounded",
    "continuous",
)
NAMED = "<script>alert(1)</script>"


class Titled(Encoding):
    """A bias that says <b>too</b> much & more."""

    title = NAMED
    source = ("<i>nowhere</i>",)
    given: ClassVar = {"slope": real()}
    defaults: ClassVar = {"slope": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        return self.slope * (n - m)


class Unready(Encoding):
    """One whose code runs on symbols, and raises on numbers."""

    title = "unready"
    given: ClassVar = {"slope": real()}
    defaults: ClassVar = {"slope": 1.0}

    def bias(self, m: Any, n: Any) -> Any:
        if isinstance(m, np.ndarray):
            raise RuntimeError("no <numbers> here")
        return self.slope * (n - m)


KINDS = {kind.id(): kind for kind in (Rope, Alibi, NopeCausal, Titled, Unready)}
ALONE = {Rope.id(): Rope}  # where its page alone is looked at, nothing else is drawn


def ids(page: str) -> list[str]:
    return [a["id"] or "" for _, a in read(page).elements if "id" in a]


@pytest.fixture(scope="module")
def table() -> TableRecord:
    laws = [law for law in LAWS if law.id in ASKED]
    assert len(laws) == len(ASKED)
    made = tabulate(list(KINDS.values()), laws)
    requirement = RequirementRecord(
        encoding="rope",
        id="w",
        document="004",
        says="It is relative.",
        verdict="met",
        because=(("relative", "proved"), ("unasked", "open")),
    )
    broken = BrokenEncoding(name="lost.py", error="<ImportError>")
    return made.model_copy(update={"requirements": (requirement,), "broken": (broken,)})


@pytest.fixture(scope="module")
def pages(table: TableRecord) -> dict[str, str]:
    return render_encodings(table, KINDS)


def test_the_pages_are_well_formed_and_of_one_piece(pages: dict[str, str]) -> None:
    assert set(pages) == {"index.html", *(f"encoding-{name}.html" for name in KINDS)}
    for name, page in pages.items():
        reader = read(page)
        assert not reader.open, name
        found = ids(page)
        assert len(found) == len(set(found)), name
        assert len(page.encode()) < 500_000, name
        assert "(shown as LaTeX source" not in page


def test_nothing_is_run_or_fetched_that_is_not_of_the_report(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert outside(page) == []
        targets = [a.get("href") or "" for tag, a in read(page).elements if tag == "a"]
        assert all(target.startswith(("#", "encoding-", "index")) for target in targets)


def test_every_link_leads_somewhere(table: TableRecord, pages: dict[str, str]) -> None:
    assert led_to(pages) > 100
    inside = render_encodings(table, {}, root="../")
    found = {f"encodings/{name}": text for name, text in inside.items()}
    with pytest.raises(AssertionError):
        led_to(found)  # they lead to the index of the theorems, which is not among them
    assert led_to({**found, "index.html": ""}) > 100
    for text in inside.values():
        assert outside(text, "../") == []


def test_a_page_has_its_id_its_code_its_neighbours_and_the_command(pages: dict[str, str]) -> None:
    for name in KINDS:
        page = pages[f"encoding-{name}.html"]
        assert f"<code>{name}</code>" in page
        assert f'href="encoding-{name}.html">permalink</a>' in page
        assert "attnproof card " in page
        assert "← previous" in page or "next →" in page
    assert "<code>attnproof card rope</code>" in pages["encoding-rope.html"]
    assert "class Rope(Encoding):" in pages["encoding-rope.html"]


def test_every_cell_is_in_the_table_and_on_its_page(
    table: TableRecord, pages: dict[str, str]
) -> None:
    links = {a["href"]: a for tag, a in read(pages["index.html"]).elements if tag == "a"}
    for cell in table.cells:
        link = links[f"encoding-{cell.encoding}.html#{cell.law}"]
        assert cell.verdict in (link["title"] or "")
        page = pages[f"encoding-{cell.encoding}.html"]
        assert ids(page).count(cell.law) == 1
        article = page.split(f'<article class="cell" id="{cell.law}">')[1].split("</article>")[0]
        assert cell.verdict in article
        if cell.needed is not None:
            assert "Without the hypothesis it fails" in article
            assert cell.under[0] in article
        assert "certified by" in article or cell.verdict != "refuted" or "the contrary" in article
        assert ("∎" in article) == bool(
            {"proved"} <= (kinds := {e.kind for e in cell.evidence}) and "refuted" not in kinds
        ), (cell.encoding, cell.law)


def test_a_sign_has_a_word_beside_it(pages: dict[str, str]) -> None:
    page = pages["index.html"]
    cells = re.findall(r'<td[^>]*><a class="[^"]*" href="encoding-.*?</a></td>', page)
    assert cells
    for cell in cells:
        assert re.search(r'<span class="unseen">[a-z ]+</span>', cell)
    assert "✓*" in pages["index.html"]


def test_a_law_that_claims_a_difference_says_what_was_decided(
    table: TableRecord, pages: dict[str, str]
) -> None:
    proved = table.cell("rope", "tells-before-from-after")
    refuted = table.cell("alibi", "tells-before-from-after")
    assert (proved.verdict, refuted.verdict) == ("proved", "refuted")
    law = next(law for law in table.laws if law.id == "tells-before-from-after")
    assert Cell(law, proved).decided.verdict == "refuted"
    for name, words in (("rope", "is refuted:"), ("alibi", "is proved:")):
        article = pages[f"encoding-{name}.html"].split(f'id="{law.id}">')[1].split("</article>")[0]
        assert words in article
        assert ("Witness" if name == "rope" else "Proof of the contrary") in article


def test_words_of_an_author_are_no_markup(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert "<script>" not in page
        assert "<i>nowhere" not in page
        assert "<b>too" not in page
    assert "&lt;script&gt;alert(1)" in pages["encoding-titled.html"]
    assert "&lt;ImportError&gt;" in pages["index.html"]


def test_a_requirement_names_the_laws_that_settle_it(pages: dict[str, str]) -> None:
    text = " ".join(" ".join(read(pages["encoding-rope.html"]).text).split())
    assert "✓ met It is relative. relative proved; unasked open" in text
    assert "<h2>Requirements</h2>" not in pages["encoding-alibi.html"]


def test_drawings_have_a_title_and_their_numbers(pages: dict[str, str]) -> None:
    page = pages["encoding-rope.html"]
    figures = re.findall(r'<figure id="plot-.*?</figure>', page, re.DOTALL)
    assert len(figures) == 4
    for figure in figures:
        head = re.search(r'<svg [^>]*role="img"[^>]*><title>([^<]+)</title>', figure)
        assert head
        assert head[1] in figure.split("</figcaption>")[0]
        assert figure.count("<tr>") > 8
        assert "<style" not in figure
        assert "#010203" not in figure
        assert "var(--soft)" in figure


def test_a_drawing_that_fails_is_told_and_stops_no_other(pages: dict[str, str]) -> None:
    page = pages["encoding-unready.html"]
    assert "Not drawn: its code raised RuntimeError: no &lt;numbers&gt; here." in page
    assert 'id="relative"' in page


def test_pages_are_the_same_each_time(table: TableRecord, pages: dict[str, str]) -> None:
    assert render_encodings(table, ALONE)["encoding-rope.html"] == pages["encoding-rope.html"]


def test_the_pages_are_written(table: TableRecord, tmp_path: Path) -> None:
    folder = tmp_path / "there" / "too"
    first = write_encodings(table, {}, folder)
    assert first == folder / "index.html"
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["assets", "index.html", *(f"encoding-{name}.html" for name in KINDS)]
    )
    assert "<svg" not in (folder / "encoding-rope.html").read_text(encoding="utf-8")
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="--html"):
        write_encodings(table, {}, tmp_path / "file")


def test_a_proof_can_be_read_to_its_kernel_steps(
    table: TableRecord, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (link,) = table.cell("rope", "relative").chain
    first = link.kernel[0]
    whole, name = pages["encoding-rope.html"], "encoding-rope.html"
    assert f"<summary>{link.steps} kernel steps</summary>" in whole
    assert f"<code>{escape(first.before)}</code>" in whole
    assert f"{link.steps - len(link.kernel)} more.</p>" in whole
    monkeypatch.setattr(encodings, "LARGE", len(whole.encode()) - 1)
    shorter = render_encodings(table, ALONE)[name]
    assert f"{link.steps - 3} more.</p>" in shorter


def test_a_page_that_grows_large_tells_its_long_formulas_as_text(
    table: TableRecord, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "LARGE", 1)
    monkeypatch.setattr(encodings, "SHORTER", (*encodings.SHORTER[:-1], (0, 10, True)))
    name = "encoding-rope.html"
    lean = render_encodings(table, ALONE)[name]
    statement = table.cell("rope", "relative").statement
    assert statement is not None
    assert f"<code>{escape(statement.text)}</code>" in lean
    assert f"<code>{escape(statement.text)}</code>" not in pages[name]
    assert len(lean) < len(pages[name]) - 10_000
    assert ids(lean) == ids(pages[name])

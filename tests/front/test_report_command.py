"""``attnproof report``: pages from records, and in one line what is wrong with a record."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from attnproof.cards.records import TableRecord
from attnproof.cli import main
from attnproof.commands import report as report_command
from attnproof.report import render_all
from attnproof.report.page import GROWTHS, theorem_file
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options
from attnproof.theorem_runs.records import Results
from attnproof.theorem_runs.runner import run
from tests.front.outputs import Output, refused
from tests.front.test_growth import swept
from tests.report.reader import led_to

ID = "softmax-ignores-a-constant-in-each-row"
TABLE = TableRecord(
    made="2026-01-01T00:00:00+00:00", attnproof="0", encodings=(), laws=(), cells=(), seconds=0.0
)


@pytest.fixture(scope="module")
def results() -> Results:
    """A run of one theorem, without numbers."""
    return run(load_catalogue().select([ID]), Options(numeric=False), (ID,))


@pytest.fixture
def record(results: Results, tmp_path: Path) -> Path:
    """The same in a file."""
    file = tmp_path / "report" / "results.json"
    file.parent.mkdir()
    file.write_text(results.model_dump_json(), encoding="utf-8")
    return file


def test_pages_are_made_of_a_record_and_nothing_is_run(
    results: Results, record: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "attnproof.theorem_runs.checking.check", None
    )  # nothing may be checked again
    assert main(["report", str(record)]) == 0
    first = record.with_name("index.html")
    assert capsys.readouterr().out == f"wrote {first}\n"
    for name, page in render_all(results).items():
        assert (record.parent / name).read_text(encoding="utf-8") == page


def test_without_a_name_it_is_the_record_of_make_run(
    record: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    def browser(address: str) -> bool:
        shown.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.chdir(record.parent.parent)
    assert main(["report", "--open"]) == 0
    assert shown == [record.with_name("index.html").as_uri()]
    capsys.readouterr()
    monkeypatch.chdir(record.parent)
    told = refused(capsys, "report")
    assert str(report_command.RECORD) in told
    assert f"`attnproof run --json {report_command.RECORD}` writes it" in told
    assert tmp_path.exists()


def test_a_run_and_a_table_become_one_report(record: Path, tmp_path: Path, capsys: Output) -> None:
    table = tmp_path / "table.json"
    table.write_text(TABLE.model_dump_json(), encoding="utf-8")
    folder = tmp_path / "both"
    assert main(["report", str(record), str(table), "--html", str(folder)]) == 0
    pages = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.html")
    }
    assert "encodings/index.html" in pages
    assert 'href="encodings/index.html"' in pages["index.html"]
    assert led_to(pages) > 10
    assert main(["report", str(table), "--html", str(tmp_path / "alone")]) == 0
    assert not (tmp_path / "alone" / "theorem").exists()
    capsys.readouterr()


def test_what_was_measured_at_scale_is_drawn_on_the_page_of_its_theorem(
    record: Path, tmp_path: Path, capsys: Output
) -> None:
    far = tmp_path / "far.json"
    far.write_text(swept(ID).model_dump_json(), encoding="utf-8")
    page = record.parent / theorem_file(ID)
    assert main(["report", str(record)]) == 0
    assert "<figure" not in page.read_text(encoding="utf-8")
    assert not (record.parent / GROWTHS).exists()
    assert main(["report", str(record), str(far)]) == 0
    assert "Measured to 4,096 tokens on cpu: float32." in page.read_text(encoding="utf-8")
    assert f'href="{GROWTHS}"' in record.with_name("index.html").read_text(encoding="utf-8")
    assert "Measured to 4,096" in (record.parent / GROWTHS).read_text(encoding="utf-8")
    alone = tmp_path / "alone"
    assert main(["report", str(far), "--html", str(alone)]) == 0
    assert "Measured to 4,096" in (alone / "index.html").read_text(encoding="utf-8")
    capsys.readouterr()
    table = tmp_path / "table.json"
    table.write_text(TABLE.model_dump_json(), encoding="utf-8")
    told = refused(capsys, "report", str(far), str(table), "--html", str(alone))
    assert "name the record of `attnproof run --json FILE` as well" in told
    assert "got two" in refused(capsys, "report", str(far), str(far), "--html", str(alone))


def test_what_is_no_record_is_refused_in_one_line(
    record: Path, tmp_path: Path, capsys: Output
) -> None:
    odd = tmp_path / "odd.json"
    assert "No such file" in refused(capsys, "report", str(odd))
    for text, why in (
        ("{", "it is not JSON"),
        ("[]", "which is not one"),
        ('{"a": 1}', "which is not one"),
    ):
        odd.write_text(text, encoding="utf-8")
        assert why in refused(capsys, "report", str(odd))
    text = record.read_text(encoding="utf-8")
    odd.write_text(text.replace('"schema_version":7', '"schema_version":1'), encoding="utf-8")
    assert "is not a record of this version" in refused(capsys, "report", str(odd))
    assert "got two" in refused(capsys, "report", str(record), str(record))
    assert not (tmp_path / "index.html").exists()

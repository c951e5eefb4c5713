"""The table: encodings × laws, from Python and from the command line, and its record."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console

import attnproof
from attnproof.answers.cards import Table
from attnproof.cards.page import table_page
from attnproof.cards.records import CellRecord, TableRecord
from attnproof.cards.table import Outcome, tabulate
from attnproof.cli import main
from attnproof.laws import LAWS
from tests.front.code_files import NOT_EVEN, NOT_MADE, RAISES, SMALL, write
from tests.front.outputs import Output, balanced, begun, conforms, refused, wait_for, without_torch

NAMES = ["nope", "alibi", "kerple-log"]
IDS = ["relative", "even", "falls-with-distance"]
ASKED = [word for law in IDS for word in ("--law", law)]


@pytest.fixture(scope="module")
def small() -> Table:
    """A table of three encodings and three laws."""
    return attnproof.table(NAMES, IDS)


def printed(table: Table, width: int) -> str:
    out = StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return out.getvalue()


def told(record: TableRecord) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(c.encoding, c.law, c.verdict, c.under) for c in record.cells]


def test_every_pair_has_one_cell_in_order(small: Table) -> None:
    assert [e.id for e in small.record.encodings] == ["alibi", "kerple-log", "nope"]
    assert [law.id for law in small.record.laws] == IDS
    pairs = [(e.id, law) for e in small.record.encodings for law in IDS]
    assert [(c.encoding, c.law) for c in small.record.cells] == pairs
    assert small.record.ok


def test_a_cell_and_a_card_of_it(small: Table) -> None:
    assert small.cell("alibi", "even").verdict == "proved"
    card = small.card("alibi")
    assert card.encoding.id == "alibi"
    assert [cell.law for cell in card.cells] == IDS
    for wrong in (("alib", "even"), ("alibi", "evenn")):
        with pytest.raises(attnproof.errors.UsageError, match="nearest"):
            small.cell(*wrong)
    with pytest.raises(attnproof.errors.UsageError, match="nearest: alibi"):
        small.card("alib")


def test_a_broken_encoding_changes_its_cells_and_no_other(tmp_path: Path) -> None:
    right, wrong, raises = (
        attnproof.table([write(tmp_path / name, text), "nope"], IDS).record
        for name, text in (("a", SMALL), ("b", NOT_EVEN), ("c", RAISES))
    )
    assert right.cell("nearer", "even").verdict == "proved"
    assert wrong.cell("nearer", "even").verdict == "refuted"
    assert raises.cell("nearer", "even").verdict == "undecided"
    assert raises.cell("nearer", "even").error
    assert not raises.ok
    others = [[t for t in told(record) if t[0] == "nope"] for record in (right, wrong, raises)]
    assert others[0] == others[1] == others[2] != []


def test_one_that_cannot_be_made_is_broken_and_stops_nothing(tmp_path: Path) -> None:
    record = attnproof.table([write(tmp_path, NOT_MADE), "nope"], ["even"]).record
    assert [(b.name, b.error.partition(" (")[0]) for b in record.broken] == [
        ("nearer", "SystemExit: no")
    ]
    assert told(record) == [("nope", "even", "proved", ())]
    assert not record.ok


@pytest.mark.parametrize("width", [60, 100, 160])
def test_the_table_fits_a_terminal_and_names_its_columns(small: Table, width: int) -> None:
    text = printed(small, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for number, law in enumerate(small.record.laws, 1):
        assert f"{number} {law.id}" in words
    assert re.search(r"alibi +✓ +✓ +✓\*", text)
    assert "✓* proved under a hypothesis" in words
    assert "9 cells: 9 proved (2 under a hypothesis)" in words


def test_many_laws_are_cut_into_blocks(small: Table) -> None:
    """With more laws than fit, every law has a column in one of the blocks."""
    laws = tuple(small.record.laws[0].model_copy(update={"id": f"law-{k}"}) for k in range(1, 61))
    cells = tuple(small.record.cells[0].model_copy(update={"law": law.id}) for law in laws)
    record = small.record.model_copy(
        update={"laws": laws, "cells": cells, "encodings": small.record.encodings[:1]}
    )
    out = StringIO()
    Console(file=out, width=100, color_system=None).print(table_page(record, 100))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("✓") == 60 + 1  # and one in the legend


def test_what_is_broken_or_unfinished_is_told(small: Table) -> None:
    record = small.record.model_copy(update={"unfinished": ("nope",)})
    cell = record.cells[0].model_copy(update={"error": "ValueError: x", "verdict": "undecided"})
    text = printed(Table(record.model_copy(update={"cells": (cell, *record.cells[1:])})), 100)
    assert "! alibi, relative: raised ValueError: x" in text
    assert "! interrupted; incomplete: nope" in text
    assert "?!" in text


def test_processes_find_the_same(small: Table, tmp_path: Path) -> None:
    path = write(tmp_path)
    heard: list[Outcome] = []
    record = attnproof.table([*NAMES, path], IDS, jobs=2, tell=heard.append).record
    assert told(record)[:6] + told(record)[9:] == told(small.record)
    assert told(record)[6:9] == told(attnproof.table([path], IDS).record)
    assert tuple(heard) == record.cells


def test_a_class_of_a_session_and_a_law_of_ones_own_reach_the_processes() -> None:
    from attnproof import Encoding, equal
    from attnproof.encoding.law import law
    from attnproof.encodings.masks import Nope

    class Here(Encoding):
        def bias(self, m: Any, n: Any) -> Any:
            return m * n

    @law("The bias of 0 is 0", group="mine", example="nope", breaks="alibi")
    def nothing(e: Encoding, a: Any) -> Any:
        return equal(e.bias(a, 0 * a), 0 * a) if e.defines("bias") else equal(a, a)

    record = tabulate([Here, Nope], [nothing], jobs=2)
    assert [c.verdict for c in record.cells] == ["proved", "proved"]


def test_a_notebook_shows_a_table(small: Table) -> None:
    html = small._repr_html_()
    balanced(html)
    assert html.count("✓*") == 2
    assert "proved, if the slope is at least 0" in html


def test_the_record_is_strict_and_comes_back(small: Table) -> None:
    assert TableRecord.model_validate_json(small.to_json()) == small.record
    changes: list[dict[str, Any]] = [
        {"seconds": -1.0},
        {"version": 1},
        {"more": 1},
        {"cells": [{}]},
    ]
    for change in changes:
        with pytest.raises(ValidationError):
            TableRecord.model_validate_json(json.dumps({**json.loads(small.to_json()), **change}))
    with pytest.raises(ValidationError):
        CellRecord(encoding="a", law="b", verdict="true", why="", seconds=0.0)  # type: ignore[arg-type]


def test_the_command_prints_a_table_and_writes_its_record(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    asked = ["table", "--encodings", "alibi,nope", "--encodings", "kerple-log", *ASKED]
    assert main([*asked, "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "9 cells: 9 proved" in out
    assert f"wrote {file}" in out
    assert re.search(r"alibi +✓ +3 ", err)
    conforms(file.read_text(encoding="utf-8"), "--table")
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert len(record.cells) == 9


def test_the_command_writes_pages(capsys: Output, tmp_path: Path) -> None:
    path = write(tmp_path)
    asked = ["table", "--encodings", "nope,nearer", "--encoding", str(path), "--law", "even"]
    assert main([*asked, "--html", str(tmp_path / "pages")]) == 0
    out = capsys.readouterr().out
    assert f"wrote {tmp_path / 'pages'}" in out
    assert {"encoding-nope.html", "encoding-nearer.html"} <= {
        file.name for file in (tmp_path / "pages").iterdir()
    }


def test_a_broken_file_fails_a_table_and_stops_nothing(capsys: Output, tmp_path: Path) -> None:
    broken = write(tmp_path, "1 / 0", "broken")
    asked = ["table", "--encodings", "nope", "--law", "even", "--encoding", str(broken)]
    assert main(asked) == 1
    shown = capsys.readouterr().out
    out = " ".join(shown.split())
    assert f"! broken: {broken}: ZeroDivisionError" in shown.replace("\n", "")
    assert "1 law: 1 proved" in out


def test_usage_errors_are_one_line(capsys: Output, tmp_path: Path) -> None:
    assert "nearest: alibi" in refused(capsys, "table", "--encodings", "nope,alib")
    assert "nearest: even" in refused(capsys, "table", "--law", "evenn")
    assert "which does not exist" in refused(capsys, "table", "--encoding", str(tmp_path / "x.py"))
    file = tmp_path / "file"
    file.touch()
    for option, value in (("--json", file / "t.json"), ("--html", file / "pages")):
        told = refused(capsys, "table", "--encodings", "nope", option, str(value))
        assert "wanted a folder that can be written to" in told


def test_list_names_encodings_and_laws(capsys: Output, tmp_path: Path) -> None:
    assert main(["list", "--encodings", "--encoding", str(write(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert re.search(r"on the score\n(  .*\n)*  nearer +nearer\n", out)
    assert all(re.search(rf"^  {law.id} ", out, re.MULTILINE) for law in LAWS)
    assert main(["list", "--encoding", str(write(tmp_path, "1 / 0", "broken"))]) == 1
    assert "! broken: " in capsys.readouterr().out
    assert main(["list"]) == 0
    assert "`attnproof list --encodings`" in capsys.readouterr().out


def test_a_table_needs_no_torch(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    done = without_torch(
        root, "table", "--encodings", "rope,alibi", "--law", "relative", "--json", str(file)
    )
    assert done.returncode == 0, done.stderr
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert [c.verdict for c in record.cells] == ["proved", "proved"]


def test_without_torch_means_without_torch(root: Path) -> None:
    """The test for torch can fail: what needs it does."""
    done = without_torch(root, "show", "rows-of-softmax-are-distributions")
    assert done.returncode != 0
    assert "torch is not here" in done.stderr


# Sleeps while a law is decided, and says that it does.
SLOW = SMALL.replace("class Nearer", "class Zz").replace(
    "        return self.slope *",
    "        import pathlib, time, traceback\n"
    "        if 'decided' in {frame.name for frame in traceback.extract_stack()}:\n"
    "            pathlib.Path(__file__).with_suffix('.started').touch()\n"
    "            time.sleep(120)\n"
    "        return self.slope *",
)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_table_keeps_what_was_decided(root: Path, tmp_path: Path, jobs: int) -> None:
    process, slow, file = started(root, tmp_path, "alibi,zz", jobs)
    assert process.stderr is not None
    heard = ""
    while "alibi" not in heard:
        line = process.stderr.readline()
        assert line, heard
        heard += line
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, out + err
    assert "! interrupted; incomplete: zz" in out
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert record.unfinished == ("zz",)
    assert [cell.encoding for cell in record.cells] == ["alibi"]
    assert not record.ok


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_before_the_first_cell_leaves_the_old_file(
    root: Path, tmp_path: Path, jobs: int
) -> None:
    process, slow, file = started(root, tmp_path, "zz", jobs)
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, out + err
    assert "attnproof: interrupted before any law was decided; nothing written\n" in err
    assert file.read_text() == "yesterday's"


def started(
    root: Path, folder: Path, names: str, jobs: int
) -> tuple[subprocess.Popen[str], Path, Path]:
    """A table of which the encoding zz will not come to an end; its file, the table's file."""
    slow, file = write(folder, SLOW, "slow"), folder / "table.json"
    file.write_text("yesterday's")
    asked = ["--encodings", names, "--encoding", str(slow), "--law", "even"]
    process = begun(root, "table", *asked, "--json", str(file), "--jobs", str(jobs))
    return process, slow, file

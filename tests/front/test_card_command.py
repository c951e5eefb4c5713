"""`attnproof card`: prints cards, writes their record, refuses in a line, needs no torch."""

from __future__ import annotations

from pathlib import Path

from attnproof.card_records import TableRecord
from attnproof.cli import main
from tests.front.encoding_files import LAWS, NOT_MADE, RAISES, write
from tests.front.outputs import Output, refused, without_torch

ASKED = [word for law in LAWS for word in ("--law", law)]


def test_the_command_prints_a_card_and_writes_its_record(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "new" / "card.json"
    path = write(tmp_path)
    assert main(["card", "alibi", str(path), *ASKED, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.index("ALiBi  alibi") < out.index("nearer  nearer")
    assert "if the slope is at most 0" in out
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    assert [encoding.id for encoding in record.encodings] == ["alibi", "nearer"]
    assert len(record.cells) == 2 * len(LAWS)


def test_a_card_of_a_file_that_is_broken_or_raises_fails(capsys: Output, tmp_path: Path) -> None:
    broken = write(tmp_path, "x = 1\n1 / 0", "broken")
    assert main(["card", str(broken)]) == 1
    assert f"! broken: {broken}: ZeroDivisionError: division by zero (line 2)" in (
        capsys.readouterr().out
    )
    assert main(["card", "alibi", "--law", "even", "--encoding", str(broken)]) == 1
    out = capsys.readouterr().out
    assert "✓" in out
    assert "! broken" in out
    assert main(["card", str(write(tmp_path, RAISES)), "--law", "even"]) == 1
    assert "! nearer, even: raised ZeroDivisionError" in capsys.readouterr().out
    assert main(["card", str(write(tmp_path, NOT_MADE, "not_made")), "--law", "even"]) == 1
    assert "! broken: nearer: SystemExit: no" in capsys.readouterr().out


def test_usage_errors_are_one_line(capsys: Output, tmp_path: Path) -> None:
    assert "nearest: rope" in refused(capsys, "card", "ropee")
    assert "see `attnproof list --encodings`" in refused(capsys, "card", "zzz")
    assert "which is not there" in refused(capsys, "card", str(tmp_path / "gone.py"))
    assert "name the file" in refused(capsys, "card", "alibi", "--encoding", str(tmp_path))
    assert "nearest: even" in refused(capsys, "card", "alibi", "--law", "evenn")
    assert "wanted a file to write to" in refused(
        capsys, "card", "alibi", "--law", "even", "--json", str(tmp_path)
    )
    assert "Missing argument" in refused(capsys, "card")


def test_a_card_needs_no_torch(root: Path) -> None:
    done = without_torch(root, "card", "rope", "--law", "relative")
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert "1 law: 1 proved." in done.stdout


def test_numbers_do_and_say_so(root: Path) -> None:
    done = without_torch(root, "card", "rope", "--law", "relative", "--numeric")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("attnproof: --numeric needs torch (torch is not here)")

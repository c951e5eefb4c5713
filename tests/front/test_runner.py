"""Running theorems: both sides, their failures, interrupts, several processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from attnproof.errors import interrupts_delayed
from attnproof.symbolic.decision import Decision
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs import runner
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options, check
from attnproof.theorem_runs.records import BrokenFile, Results, TheoremRecord
from attnproof.theorem_runs.runner import run
from attnproof.theorem_runs.terminal import progress
from tests.front.outputs import WriteTheorem, begun, python, wait_for

if TYPE_CHECKING:
    from tests.front.conftest import Numbers


def ran(path: Path, *, numeric: bool = True) -> Results:
    catalogue = load_catalogue([path]).select(["mine"])
    return run(catalogue, Options(numeric=numeric))


def test_a_theorem_is_ok_when_both_sides_and_its_control_are(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    results = ran(write_theorem("addition_commutes"))
    assert len(numbers.asked) == 2
    (record,) = results.theorems
    assert (record.verdict, record.control.verdict) == ("proved", "refuted")
    assert (record.ok, record.why, results.ok) == (True, (), True)
    assert [e.kind for e in record.evidence] == ["proved", "derived", "measured"]


def test_the_numbers_are_asked_for_with_the_options_of_the_run(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    catalogue = load_catalogue([write_theorem("addition_commutes")]).select(["mine"])
    run(catalogue, Options(scale="small", device="cpu", dtypes=("float64",), seed=7))
    wanted = {"scale": "small", "device": "cpu", "dtypes": ("float64",), "seed": 7}
    assert numbers.asked == [{**wanted, "expected": "proved"}, {**wanted, "expected": "refuted"}]


def test_a_control_that_passes_in_numbers_is_a_failure(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    numbers.false = replace(numbers.false, status="held")
    (record,) = ran(write_theorem("addition_commutes")).theorems
    assert record.verdict == "proved"
    assert not record.ok
    why = "its negative control: torch, cpu, float32: held, and should have been violated"
    assert record.why == (why,)


def test_a_control_that_is_true_is_a_failure(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    path = write_theorem("addition_commutes", true_theorem.replace("x - y, y - x", "x + y, y + x"))
    (record,) = ran(path, numeric=False).theorems
    assert not record.ok
    assert record.why[0] == "its negative control: expected refuted, is proved"
    assert "SymPy derived it" in record.why[1]


def test_a_violated_measurement_leaves_the_verdict_and_not_the_ok(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    numbers.true = replace(numbers.true, status="non-finite", error=float("nan"))
    (record,) = ran(write_theorem("addition_commutes")).theorems
    assert record.verdict == "proved"
    assert record.why == ("torch, cpu, float32: non-finite, error non-finite against 1e-06",)


def test_numbers_that_stop_leave_the_proof_standing(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    numbers.raises = MemoryError("4 GiB wanted")
    (record,) = ran(write_theorem("addition_commutes")).theorems
    assert record.verdict == "proved"
    assert record.why[0] == "the numbers stopped with MemoryError: 4 GiB wanted"


def test_what_was_measured_before_a_reading_failed_is_kept(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    numbers.raises = sys.modules["attnproof.numeric.check"].ReadingError("no such operation")
    (record,) = ran(write_theorem("addition_commutes")).theorems
    kinds = [evidence.kind for evidence in record.evidence]
    assert kinds == ["proved", "derived", "measured", "undecided"]
    assert not record.ok


def test_a_prover_that_stops_has_decided_nothing(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(statement: Statement, **_: object) -> Decision:
        raise RecursionError(f"too deep: {len(statement.claims)}")

    monkeypatch.setattr("attnproof.symbolic.prove.decide", stop)
    (record,) = ran(write_theorem("addition_commutes"), numeric=False).theorems
    assert record.verdict == record.control.verdict == "undecided"
    assert "the prover stopped with RecursionError: too deep: 1" in record.why


def test_mismatched_axes_are_told_with_both_names_and_the_file(
    write_theorem: WriteTheorem, mismatched: str
) -> None:
    write_theorem("addition_commutes")
    results = ran(write_theorem("mismatched", mismatched).parent, numeric=False)
    (broken,) = results.broken
    assert broken.file == "mine/mismatched.py"
    assert broken.error.startswith("AxisMismatch: ")
    assert "length n" in broken.error
    assert "m in another" in broken.error
    assert broken.error.endswith("(line 11)")
    assert [record.ok for record in results.theorems] == [True]
    assert not results.ok


def test_a_theorem_without_a_control_is_broken(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    text = true_theorem[: true_theorem.index("@statement.negative_control")]
    (broken,) = ran(write_theorem("alone", text), numeric=False).broken
    assert "has no negative control" in broken.error


def test_an_interrupt_keeps_what_was_finished(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_theorem("a_first").parent
    write_theorem("b_second")
    write_theorem("c_third")
    real = check

    def interrupted(theorem: Any, source: Any, *rest: Any) -> TheoremRecord | BrokenFile:
        if source.id == "b-second":
            raise KeyboardInterrupt
        return real(theorem, source, *rest)

    monkeypatch.setattr(runner, "check", interrupted)
    results = ran(folder, numeric=False)
    assert [record.id for record in results.theorems] == ["a-first"]
    assert results.unfinished == ("b-second", "c-third")
    assert not results.ok


def test_all_proofs_come_before_the_first_number(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    folder = write_theorem("a_first").parent
    write_theorem("b_second")
    catalogue = load_catalogue([folder]).select(["mine"])
    heard: list[tuple[str, int]] = []

    def tell(outcome: runner.Outcome) -> None:
        assert isinstance(outcome, TheoremRecord)
        heard.append((outcome.id, sum(e.kind == "measured" for e in outcome.evidence)))
        if len(heard) == 3:
            raise KeyboardInterrupt

    results = run(catalogue, Options(), tell=tell)
    assert heard == [("a-first", 0), ("b-second", 0), ("a-first", 1)]
    assert [record.id for record in results.theorems] == ["a-first"]
    assert results.unfinished == ("b-second",)
    assert len(numbers.asked) == 2


def test_a_theorem_has_a_second_line_if_its_numbers_speak_against_it(
    write_theorem: WriteTheorem, numbers: Numbers, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_theorem("a_first").parent
    catalogue = load_catalogue([folder]).select(["mine"])
    lines = []
    for status in ("held", "violated"):
        numbers.true = replace(numbers.true, status=status)
        with progress(Console(stderr=True, width=200), ["a-first", "numbers"]) as tell:
            run(catalogue, Options(), tell=tell)
        lines.append(capsys.readouterr().err.count("a-first"))
    assert lines[1] == lines[0] + 1


def test_several_processes_keep_the_order_and_the_verdicts(write_theorem: WriteTheorem) -> None:
    names = ["d", "b", "c", "a"]
    (folder,) = {write_theorem(name).parent for name in names}
    write_theorem("e", "1 / 0")
    catalogue = load_catalogue([folder]).select(["mine"])
    heard: list[str] = []

    def tell(outcome: runner.Outcome) -> None:
        heard.append(outcome.file if isinstance(outcome, BrokenFile) else outcome.id)

    results = run(catalogue, Options(numeric=False, jobs=2), tell=tell)
    assert [record.id for record in results.theorems] == sorted(names)
    assert heard == ["mine/e.py", *sorted(names)]
    assert all(record.ok for record in results.theorems)


def test_the_package_imports_its_own_files_in_a_worker() -> None:
    catalogue = load_catalogue().select(
        ["softmax-ignores-a-constant-in-each-row", "rows-of-softmax-are-distributions"]
    )
    alone = run(catalogue, Options(numeric=False))
    shared = run(catalogue, Options(numeric=False, jobs=2))
    assert [_kept(r) for r in shared.theorems] == [_kept(r) for r in alone.theorems]


def _kept(record: TheoremRecord) -> tuple[object, ...]:
    return (record.id, record.verdict, record.statement, record.control.verdict)


# Sleeps while its statement is built, and says that it does.
SLOW = """
    import pathlib, time
    pathlib.Path(__file__).with_suffix(".started").touch()
    time.sleep(120)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_keeps_its_record_and_its_report(
    root: Path, write_theorem: WriteTheorem, true_theorem: str, tmp_path: Path, jobs: int
) -> None:
    doc = '"""The order of two summands does not matter."""'
    folder = write_theorem("a_quick").parent
    slow = write_theorem("b_slow", true_theorem.replace(doc, doc + SLOW))
    write_theorem("c_not_reached", true_theorem.replace(doc, doc + SLOW))
    file = tmp_path / "results.json"
    arguments = ["run", "mine", "--no-numeric", "--theorems", str(folder), "--json", str(file)]
    process = begun(root, *arguments, "--html", str(tmp_path / "report"), "--jobs", str(jobs))
    assert process.stderr is not None
    heard = process.stderr.readline()
    assert "a-quick" in heard, heard + process.stderr.read()
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "interrupted; not reached: b-slow, c-not-reached" in out
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [theorem["id"] for theorem in record["theorems"]] == ["a-quick"]
    assert record["unfinished"] == ["b-slow", "c-not-reached"]
    assert record["ok"] is False
    assert (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_before_the_first_theorem_leaves_the_old_files(
    root: Path, write_theorem: WriteTheorem, true_theorem: str, tmp_path: Path, jobs: int
) -> None:
    doc = '"""The order of two summands does not matter."""'
    slow = write_theorem("a_slow", true_theorem.replace(doc, doc + SLOW))
    write_theorem("b_not_reached")
    old = [tmp_path / "results.json", tmp_path / "report" / "index.html"]
    for file in old:
        file.parent.mkdir(exist_ok=True)
        file.write_text("yesterday's")
    words = ["--json", str(old[0]), "--html", str(old[1].parent), "--jobs", str(jobs)]
    process = begun(root, "run", "mine", "--no-numeric", "--theorems", str(slow.parent), *words)
    wait_for(slow.with_suffix(".started"))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "attnproof: interrupted before any theorem was finished; nothing written\n" in err
    assert "wrote" not in out
    assert [file.read_text() for file in old] == ["yesterday's"] * 2


# As Ctrl-C would, in the middle of an import: of typer, and of a library of the checker.
EARLY = """
import builtins, os, signal
real = builtins.__import__
def load(name, *rest):
    if name == {name!r}:
        builtins.__import__ = real
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)
builtins.__import__ = load
from attnproof.cli import main
raise SystemExit(main(["run", "softmax", "--no-numeric"]))
"""


@pytest.mark.parametrize("name", ["typer", "pydantic", "numpy"])
def test_an_interrupt_at_the_start_is_one_line(root: Path, name: str) -> None:
    done = python("-c", EARLY.format(name=name), cwd=root, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "attnproof: interrupted\n"


def test_a_library_is_loaded_whole_before_an_interrupt_ends_the_command() -> None:
    done: list[str] = []

    def load() -> None:
        with interrupts_delayed():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("loaded")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert done == ["loaded"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""Errors of attnproof itself: told as that in every command, with exit code 2, and nothing lost."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from attnproof.cards.records import TableRecord
from attnproof.cli import main
from attnproof.documents.evidence import InternalErrorEvidence
from attnproof.errors import exit_code, internal_errors
from attnproof.symbolic.faults import REPORT
from attnproof.theorem_runs import runner
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options
from attnproof.theorem_runs.records import Results, TheoremRecord
from tests.front.code_files import write
from tests.front.outputs import Output, WriteTheorem
from tests.front.planted import planted

SHOW = "attnproof.symbolic.prove.show"


def told_as_ours(text: str) -> bool:
    return "internal error of attnproof: KeyError: 'planted'" in text and REPORT in text


def test_a_prover_that_fails_is_an_internal_error_and_keeps_the_rest(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    path = write_theorem("addition_commutes")
    monkeypatch.setattr(SHOW, planted("symbolic/show_command.py"))
    file = tmp_path / "run.json"
    arguments = ["run", "mine", "--theorems", str(path), "--no-numeric", "--fresh"]
    assert main([*arguments, "--json", str(file)]) == 2
    out = capsys.readouterr()
    assert told_as_ours(out.out)
    assert "undecided" not in out.out.split("1 theorem")[0]
    assert f"the tracebacks are in {file}" in out.err or f"its traceback is in {file}" in out.err
    record = Results.model_validate_json(file.read_text(encoding="utf-8"))
    (theorem,) = record.theorems
    assert theorem.verdict == "internal error"
    (part,) = [one for one in theorem.evidence if isinstance(one, InternalErrorEvidence)]
    assert "Traceback" in part.traceback
    assert "symbolic/show_command.py" in part.traceback


def test_numbers_that_fail_leave_the_proof_and_the_exit_code_is_2(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_theorem("addition_commutes")
    monkeypatch.setattr("attnproof.numeric.check.measure", planted("numeric/check.py"))
    results = runner.run(load_catalogue([path]).select(["mine"]), Options(numeric=True))
    (theorem,) = results.theorems
    assert theorem.verdict == "proved"
    assert not theorem.ok
    assert told_as_ours(theorem.why[0])
    assert exit_code([results], 1) == 2


def test_what_a_theorem_file_raises_is_its_own(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch
) -> None:
    del monkeypatch
    path = write_theorem("addition_commutes")
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n\n{}['mine']\n", encoding="utf-8")
    catalogue = load_catalogue([path])
    (broken,) = catalogue.broken
    assert broken.error.startswith("KeyError: 'mine' (line")
    assert broken.traceback == ""


def test_a_statement_that_code_of_ours_cannot_build_is_no_fault_of_its_file(
    write_theorem: WriteTheorem, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    path = write_theorem("addition_commutes")
    monkeypatch.setattr(
        "attnproof.theorem_runs.translation.statement",
        planted("attnproof/theorem_runs/translation.py"),
    )
    assert main(["run", "mine", "--theorems", str(path), "--no-numeric", "--fresh"]) == 2
    assert told_as_ours(capsys.readouterr().out)


@pytest.mark.parametrize("command", [["card", "alibi"], ["table", "--encodings", "alibi"]])
def test_a_cell_that_fails_is_an_internal_error_and_the_others_stand(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    from attnproof.symbolic import proof_methods
    from attnproof.symbolic.terms import free

    right, wrong = proof_methods.show, planted("symbolic/show_command.py")

    def show(claim: Any, *more: Any) -> Any:
        letters = {t.data[0] for t in free(claim.left) if t.op == "var"}
        return (wrong if "sigma" in letters else right)(claim, *more)

    monkeypatch.setattr(SHOW, show)
    file = tmp_path / "card.json"
    laws = ["--law", "relative", "--law", "travels-with-tokens"]
    assert main([*command, *laws, "--json", str(file)]) == 2
    assert told_as_ours(capsys.readouterr().out.replace("\n", " ").replace("  ", " "))
    record = TableRecord.model_validate_json(file.read_text(encoding="utf-8"))
    found = {cell.law: cell.verdict for cell in record.cells}
    assert found["travels-with-tokens"] == "internal error"
    assert found["relative"] == "proved"
    assert len(list(internal_errors(record))) == 1


def test_what_an_encoding_raises_stays_its_own(tmp_path: Path, capsys: Output) -> None:
    from tests.front.code_files import RAISES

    assert main(["card", str(write(tmp_path, RAISES)), "--law", "even"]) == 1
    assert "internal error" not in capsys.readouterr().out


def test_a_cell_of_a_sweep_that_fails_says_whose_fault_it_is() -> None:
    from attnproof.sweeping.sweep import sweep
    from tests.front.swept import asked, plan_of

    wanted = asked(0)
    plan = plan_of(wanted)
    record = sweep(plan, wanted, measure=planted("numeric/check.py"))
    assert {cell.status for cell in record.cells} == {"failed"}
    assert all(told_as_ours(cell.reason) and cell.traceback for cell in record.cells)
    assert exit_code([record], 1) == 2


def test_a_way_at_scale_that_fails_keeps_the_ways_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Output
) -> None:
    from attnproof.numeric.at_scale import methods as ways

    right, wrong = ways.check_at_scale, planted("numeric/at_scale/methods.py")

    def check(call: Any, names: Any, tell: Any) -> Any:
        yield next(iter(right(call, names, tell)))
        wrong()

    monkeypatch.setattr(ways, "check_at_scale", check)
    file = tmp_path / "scale.json"
    small = ["--tokens", "256", "--heads", "2", "--device", "cpu", "--way", "sampled"]
    assert main(["scale", *small, "--json", str(file)]) == 2
    assert told_as_ours(capsys.readouterr().out)
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [way["way"] for way in record["ways"]] == ["sampled"]
    assert "Traceback" in record["errors"][0]["traceback"]


def test_what_no_command_heard_of_ends_in_2_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    home = "attnproof.commands.theorems"
    monkeypatch.setattr(f"{home}.list_catalogue", planted("attnproof/commands/theorems.py"))
    assert main(["list"]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert told_as_ours(err.splitlines()[-1])


def test_a_record_without_a_traceback_has_no_internal_error(write_theorem: WriteTheorem) -> None:
    path = write_theorem("addition_commutes")
    results = runner.run(load_catalogue([path]).select(["mine"]), Options(numeric=False))
    assert isinstance(results.theorems[0], TheoremRecord)
    assert list(internal_errors(results)) == []
    assert exit_code([results], 0) == 0


def rotate(x: Any, p: Any) -> Any:
    """Rotary code, right."""
    import torch

    half = x.shape[-1] // 2
    angle = p[:, None, :, None] * 100.0 ** -(torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


@pytest.mark.parametrize(
    ("place", "method"),
    [
        ("programs/measure/sides.py", "measured"),
        ("programs/exact/laws.py", "exact"),
        ("programs/prove/proof_search.py", "traced"),
    ],
)
def test_an_error_of_ours_in_a_law_of_code_is_not_what_the_code_raised(
    place: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from attnproof.programs.exact import checking
    from attnproof.programs.measure import base, examine
    from attnproof.programs.prove import proof_search
    from attnproof.real_code.page_text import exit_code as of_code
    from attnproof.real_code.page_text import outcome_text
    from attnproof.testing import check_rotary

    wrong = planted(place)
    if method == "measured":
        for module in examine.MODULES:
            import_module(f"attnproof.programs.measure.{module}")
        probes = [replace(one, look=wrong) if one.law == "norm" else one for one in base.PROBES]
        monkeypatch.setattr(examine, "PROBES", probes)
    elif method == "exact":
        monkeypatch.setattr(checking, "compared", wrong)
    else:
        monkeypatch.setattr(proof_search, "decide", wrong)
    record = check_rotary(rotate, laws=["norm", "sees-positions"], width=4, methods=[method])
    law = record.law("norm")
    assert law.verdict == "internal error"
    assert told_as_ours(law.why)
    assert "Traceback" in law.findings[0].traceback
    assert of_code(record) == 2
    assert told_as_ours(outcome_text(record))
    assert not record.ok
    if method == "measured":
        assert record.law("sees-positions").verdict == "measured"


def test_a_proof_that_fails_is_counted_though_the_law_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from attnproof.programs.prove import proof_search
    from attnproof.real_code.page_text import exit_code as of_code
    from attnproof.testing import check_rotary
    from benchmarks.zoo.results import row

    methods = ["measured", "traced"]
    right = check_rotary(rotate, laws=["norm"], width=4, methods=methods)
    assert row(right)["laws"]["internal error"] == []
    monkeypatch.setattr(proof_search, "decide", planted("programs/prove/proof_search.py"))
    record = check_rotary(rotate, laws=["norm"], width=4, methods=methods)
    assert record.law("norm").verdict == "measured"
    assert of_code(record) == 2
    assert row(record)["laws"]["internal error"] == ["norm"]


def test_what_the_code_raises_is_not_ours() -> None:
    from attnproof.programs.subjects import Rotary
    from attnproof.testing import check_rotary

    def failing(*_: Any) -> Any:
        return dict[str, Any]()["theirs"]

    record = check_rotary(
        Rotary(name="failing", rotate=failing, width=4), laws=["norm"], methods=["measured"]
    )
    assert list(internal_errors(record)) == []
    assert record.law("norm").why.startswith("the code raised KeyError")


def test_an_identity_that_fails_by_our_fault_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnproof.programs import identify
    from attnproof.real_code.page_text import exit_code as of_code
    from attnproof.testing import check_rotary

    monkeypatch.setattr(identify, "watching", planted("programs/identify/__init__.py"))
    record = check_rotary(rotate, width=4, methods=["identity"])
    assert record.identity is not None
    assert told_as_ours(record.identity.why)
    assert of_code(record, identifying=True) == 2

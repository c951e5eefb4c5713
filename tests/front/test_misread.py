"""A theorem whose code says something else than its term: told everywhere, and never measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnproof.catalogue import load_catalogue
from attnproof.cli import main
from attnproof.evidence import MisreadEvidence
from attnproof.numeric.check import measure
from attnproof.numeric.residues.exact import exact
from attnproof.numeric.task import parts_of
from attnproof.records import Results
from attnproof.report.page import theorem_file
from attnproof.sweeping.sweep import planned, sweep
from attnproof.symbolic.comparison import NotRun
from attnproof.symbolic.gate import Misread
from attnproof.symbolic.statement import Statement
from tests.front.outputs import Output
from tests.front.swept import asked
from tests.report.reader import read

WriteTheorem = Callable[..., Path]
TOLD = "right side at [0]: the code gives -1.125 on numpy, its term 2.375"
INPUTS = ("n = 1", "x = [1.75]", "y = [0.625]")


@pytest.fixture
def misread(write_theorem: WriteTheorem, true_theorem: str) -> Path:
    """A file that claims x + y = y + x on symbolic arrays and x + y = y - x on others."""
    text = true_theorem.replace("y + x)", "y + x if isinstance(x, Array) else y - x)")
    assert text != true_theorem
    return write_theorem("addition_commutes", text)


def statement_of(path: Path) -> Statement:
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    return entry.theorem.statement


def test_a_run_tells_sizes_inputs_and_both_values(
    misread: Path, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "run.json"
    arguments = ["run", "mine", "--theorems", str(misread), "--fresh", "--json", str(file)]
    assert main(arguments) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert f"! addition-commutes: misread: {TOLD}; with {', '.join(INPUTS)}" in out
    assert "1 theorem: 1 misread; 0 as expected" in out
    (theorem,) = Results.model_validate_json(file.read_text(encoding="utf-8")).theorems
    assert (theorem.verdict, theorem.ok, theorem.chain) == ("misread", False, ())
    (part,) = theorem.evidence  # no proof, no witness, no numbers
    assert isinstance(part, MisreadEvidence)
    assert (part.part, part.place, part.code, part.term) == ("right side", (0,), "-1.125", "2.375")
    assert (part.sizes, part.values) == ({"n": 1}, {"x": "[1.75]", "y": "[0.625]"})


def test_what_is_misread_or_cannot_be_built_has_no_sides_in_sympy(
    misread: Path, write_theorem: WriteTheorem, true_theorem: str, capsys: Output
) -> None:
    show = ["show", "--sympy", "--theorems"]
    assert main([*show, str(misread), "addition-commutes"]) == 1
    assert f"the statement is misread: {TOLD}" in capsys.readouterr().err
    raises = write_theorem("addition_raises", true_theorem.replace("y + x)", "y.nothing)"))
    assert main([*show, str(raises), "addition-raises"]) == 1
    err = capsys.readouterr().err
    assert "no method 'nothing'" in err
    assert "internal error" not in err


def test_show_has_an_input_a_line_and_both_values(misread: Path, capsys: Output) -> None:
    assert main(["show", "addition-commutes", "--theorems", str(misread)]) == 1
    out = capsys.readouterr().out
    assert "≠ misread (expected proved)" in out
    _, _, after = out.partition("Misread\n")
    told, _, _ = after.partition("\n\n")
    assert [line.strip() for line in told.splitlines()] == [
        "right side at entry [0]",
        *INPUTS,
        "the code on numpy: -1.125",
        "its term: 2.375",
    ]
    assert "Proof" not in out.partition("Its negative control")[0]


def test_the_page_shows_where_and_is_whole(misread: Path, tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "report"
    arguments = ["run", "mine", "--theorems", str(misread), "--fresh", "--no-numeric"]
    assert main([*arguments, "--html", str(folder)]) == 1
    capsys.readouterr()
    first = (folder / "index.html").read_text(encoding="utf-8")
    assert "The code that was written, run on plain numbers, gives something else" in first
    page = (folder / theorem_file("addition-commutes")).read_text(encoding="utf-8")
    assert "Where it is misread" in page
    shown = " ".join("".join(read(page).text).split())
    told = "Right side, entry (0): the code gives −1.125 on numpy, its term 2.375."
    assert told in shown
    assert all(line in shown for line in INPUTS)


@pytest.mark.parametrize("how", [measure, exact, lambda one: list(parts_of(one))])
def test_nothing_is_measured_of_it(misread: Path, how: Callable[[Statement], Any]) -> None:
    with pytest.raises(Misread, match=r"^the statement is misread: right side at \[0\]: the code"):
        how(statement_of(misread))


def test_nothing_is_measured_of_code_that_does_not_run(
    write_theorem: WriteTheorem, true_theorem: str
) -> None:
    text = true_theorem.replace("y + x)", "y + x if isinstance(x, Array) else y.nothing)")
    with pytest.raises(NotRun, match="does not run on numpy arrays"):
        measure(statement_of(write_theorem("addition_commutes", text)))


def test_a_sweep_tells_it_and_measures_nothing(misread: Path) -> None:
    wanted = asked(0)
    plan = planned(load_catalogue([misread]).having(["addition-commutes"]).entries, wanted)
    record = sweep(plan, wanted)
    own = [cell for cell in record.cells if not cell.control]
    assert own
    assert {cell.status for cell in own} == {"failed"}
    assert all(TOLD in cell.reason and "internal" not in cell.reason for cell in own)

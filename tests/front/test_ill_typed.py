"""Statements that people write and whose shapes do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attnproof.cli import main
from attnproof.documents.evidence import IllTypedEvidence, MisreadEvidence
from attnproof.numeric.check import measure
from attnproof.numeric.residues.exact import exact
from attnproof.numeric.task import parts_of
from attnproof.report.page import theorem_file
from attnproof.sweeping.sweep import planned, sweep
from attnproof.symbolic.comparison import NotRun
from attnproof.symbolic.gate import Misread
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options
from attnproof.theorem_runs.judgement import against, opposite
from attnproof.theorem_runs.records import BrokenFile, Results, TheoremRecord
from attnproof.theorem_runs.runner import run
from tests.front.outputs import Output, WriteTheorem
from tests.front.swept import asked
from tests.report.reader import read

if TYPE_CHECKING:
    from tests.front.conftest import Numbers


WIDTHS = '''"""A matrix acts on vectors of its own width."""

from attnproof import Array, Claim, equal, orthogonal, real, sizes, theorem

n, p, d = sizes("n p d")


@theorem(
    "An orthogonal matrix of width d keeps the dot products of vectors of width p",
    given={"Q": real(n, p), "g": orthogonal(d)},
    expected="ill-typed",
)
def statement(Q: Array, g: Array) -> Claim:
    """No statement: Q g is not defined."""
    rotated = Q @ g
    return equal(rotated @ rotated.mT, Q @ Q.mT)


@statement.negative_control("the matrix has the width of the vectors", g=orthogonal(p))
def control(Q: Array, g: Array) -> Claim:
    return equal((Q @ g) @ (Q @ g).mT, Q @ Q.mT)
'''


def ran(path: Path, *, numeric: bool = False) -> TheoremRecord | BrokenFile:
    found = run(load_catalogue([path]).select(["mine"]), Options(numeric=numeric))
    outcomes: list[TheoremRecord | BrokenFile] = [*found.theorems, *found.broken]
    (outcome,) = outcomes
    return outcome


def checked(path: Path, *, numeric: bool = False) -> TheoremRecord:
    outcome = ran(path, numeric=numeric)
    assert isinstance(outcome, TheoremRecord), outcome
    return outcome


def test_the_axes_that_do_not_meet_are_the_evidence(write_theorem: WriteTheorem) -> None:
    record = checked(write_theorem("widths", WIDTHS))
    assert (record.verdict, record.expected, record.ok) == ("ill-typed", "ill-typed", True)
    (evidence,) = record.evidence
    assert isinstance(evidence, IllTypedEvidence)
    assert "of length p" in evidence.error
    assert "of length d" in evidence.error
    assert record.chain == ()


def test_what_is_written_is_told_and_the_givens(write_theorem: WriteTheorem) -> None:
    record = checked(write_theorem("widths", WIDTHS))
    assert (record.statement.text, record.statement.latex) == ("rotated = Q @ g", "")
    assert [given.name for given in record.givens] == ["Q", "g"]
    assert [size.name for size in record.sizes] == ["n", "p", "d"]
    text = WIDTHS.replace("    rotated = Q @ g\n", "").replace("rotated @", "(Q @ g) @")
    record = checked(write_theorem("widths", text.replace("rotated.mT", "\n Q.mT")))
    assert record.statement.text == "equal(Q @ g @ Q.mT, Q @ Q.mT)"


def test_its_control_is_well_typed_and_proved(write_theorem: WriteTheorem) -> None:
    control = checked(write_theorem("widths", WIDTHS)).control
    assert (control.verdict, control.expected, control.ok) == ("proved", "proved", True)


def test_a_control_that_is_refuted_is_a_failure(write_theorem: WriteTheorem) -> None:
    text = WIDTHS.replace("g=orthogonal(p)", "g=real(p, p)")
    record = checked(write_theorem("widths", text))
    assert record.verdict == "ill-typed"
    assert not record.ok
    assert record.why[-1] == "its negative control: expected proved, is refuted"


def test_a_control_that_is_ill_typed_as_well_is_broken(write_theorem: WriteTheorem) -> None:
    outcome = ran(write_theorem("widths", WIDTHS.replace(", g=orthogonal(p)", "")))
    assert isinstance(outcome, BrokenFile)
    assert outcome.error.startswith("AxisMismatch: ")


def test_one_that_can_be_built_is_not_as_expected(write_theorem: WriteTheorem) -> None:
    record = checked(write_theorem("widths", WIDTHS.replace("orthogonal(d)", "orthogonal(p)")))
    assert (record.verdict, record.ok) == ("proved", False)
    assert record.why == ("expected ill-typed, is proved",)


def test_axes_that_should_meet_and_do_not_are_a_broken_file(write_theorem: WriteTheorem) -> None:
    text = WIDTHS.replace('expected="ill-typed"', 'expected="proved"')
    outcome = ran(write_theorem("widths", text))
    assert isinstance(outcome, BrokenFile)


@pytest.mark.parametrize("raised", ["1 / 0", "raise TypeError('no')", "Q.nothing"])
def test_any_other_error_is_a_broken_file(write_theorem: WriteTheorem, raised: str) -> None:
    outcome = ran(write_theorem("widths", WIDTHS.replace("rotated = Q @ g", raised)))
    assert isinstance(outcome, BrokenFile)
    assert "AxisMismatch" not in outcome.error


def test_only_the_control_is_measured_at_the_scale_of_the_run(
    write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    record = checked(write_theorem("widths", WIDTHS), numeric=True)
    assert [asked["scale"] for asked in numbers.asked] == ["default"]
    assert record.ok
    assert [e.kind for e in record.control.evidence] == ["proved", "derived", "measured"]


def test_several_processes_find_the_same(write_theorem: WriteTheorem) -> None:
    write_theorem("widths", WIDTHS)
    catalogue = load_catalogue([write_theorem("addition_commutes").parent]).select(["mine"])
    alone, shared = (run(catalogue, Options(numeric=False, jobs=k)) for k in (1, 2))
    assert [r.verdict for r in shared.theorems] == [r.verdict for r in alone.theorems]
    assert "ill-typed" in {r.verdict for r in shared.theorems}
    assert Results.model_validate_json(shared.model_dump_json()) == shared


def test_the_expected_verdict_is_one_of_three(write_theorem: WriteTheorem) -> None:
    text = WIDTHS.replace('expected="ill-typed"', 'expected="undecided"')
    outcome = ran(write_theorem("widths", text))
    assert isinstance(outcome, BrokenFile)
    assert "expected is 'proved', 'refuted' or 'ill-typed', not 'undecided'" in outcome.error


def test_it_speaks_against_any_other_verdict() -> None:
    assert against("ill-typed", "ill-typed", ()) == ()
    assert against("ill-typed", "refuted", ()) == ("expected ill-typed, is refuted",)
    assert against("refuted", "ill-typed", ()) == ("expected refuted, is ill-typed",)
    assert opposite("ill-typed") == "proved"


def test_it_has_a_page_and_a_line_in_the_table(capsys: Output, write_theorem: WriteTheorem) -> None:
    path = str(write_theorem("widths", WIDTHS))
    assert main(["show", "widths", "--no-numeric", "--steps", "--theorems", path]) == 0
    page = capsys.readouterr().out
    assert "✗ ill-typed (as expected)" in page
    assert "    rotated = Q @ g\n" in page
    assert "Ill-typed\n    @ sums the last axis of" in page
    assert "✓ proved (as expected)" in page
    assert max(map(len, page.splitlines())) <= 80
    assert main(["run", "widths", "--no-numeric", "--theorems", path]) == 0
    out = capsys.readouterr().out
    assert "✗ ill-typed" in out
    assert "1 theorem: 1 ill-typed; 1 as expected" in out
    assert main(["list", "--theorems", path]) in (0, 1)
    assert "vectors of width p (false, ill-typed)" in capsys.readouterr().out


# A theorem whose code says something else than its term: told everywhere, and never measured.


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
    assert "The code, run on plain numbers, gives a different result" in first
    page = (folder / theorem_file("addition-commutes")).read_text(encoding="utf-8")
    assert "Misreading" in page
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
    plan = planned(load_catalogue([misread]).with_ids(["addition-commutes"]).entries, wanted)
    record = sweep(plan, wanted)
    own = [cell for cell in record.cells if not cell.control]
    assert own
    assert {cell.status for cell in own} == {"failed"}
    assert all(TOLD in cell.reason and "internal" not in cell.reason for cell in own)

"""``attnproof show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from attnproof.cli import main
from attnproof.documents.document import Grid, Line, plain_text, show
from attnproof.symbolic.prove import decide
from attnproof.symbolic.steps import flatten
from attnproof.theorem_runs.catalogue import load_catalogue
from tests.front.outputs import Output, WriteTheorem

if TYPE_CHECKING:
    from tests.front.conftest import Numbers

FLAGSHIP = "attention-ignores-the-order-of-pairs"


def shown(output: Output, *arguments: str) -> str:
    assert main(["show", *arguments]) == 0
    return output.readouterr().out


def test_a_page_has_statement_givens_chain_assumptions_control_and_sources(capsys: Output) -> None:
    page = shown(capsys, FLAGSHIP, "--no-numeric")
    for part in (
        "✓ proved, for all r, ",
        "attention(Q, K[sigma], V[sigma]) = attention(Q, K, V)",
        "sigma (n): a permutation",
        "for every r (tokens)",
        "softmax commutes with a permutation",
        "kernel steps]",
        "sigma is a permutation",
        "Its negative control: ",
        "✗ refuted (as expected)",
        "a gap of at least ",
        "Sources",
    ):
        assert part in page


def test_every_kernel_step_is_shown_when_asked_for(capsys: Output) -> None:
    theorem = next(e.theorem for e in load_catalogue().entries if e.id == FLAGSHIP)
    links = [link for claim in decide(theorem.statement).claims for link in claim.links]
    steps = [step for link in links if link.derivation for step in flatten(link.derivation)]
    assert len(steps) > 20
    few, many = (shown(capsys, FLAGSHIP, "--no-numeric", *more) for more in ((), ("--steps",)))
    assert many.count(" at ") - few.count(" at ") >= len(steps)
    for rule in {step.rule for step in steps}:
        assert f". {rule} at " in many


def test_numbers_are_on_the_page(
    capsys: Output, write_theorem: WriteTheorem, numbers: Numbers
) -> None:
    path = write_theorem("addition_commutes")
    page = shown(capsys, "addition-commutes", "--theorems", str(path))
    assert "n = 4; every entry; on cpu\n" in page
    lines = [line.split() for line in page.splitlines()]
    assert ["torch"] in lines
    assert ["✓", "float32", "1e-07", "1e-06", *"––––"] in lines
    assert ["✗", "float32", "1", "1e-06", *"––––"] in lines
    assert any(line[0] == "violated" for line in lines if line)
    assert numbers.asked[0]["scale"] == "small"


def test_a_broken_theorem_has_no_page(
    capsys: Output, write_theorem: WriteTheorem, mismatched: str
) -> None:
    for name, text in (("raises", "1 / 0"), ("mismatched", mismatched)):
        path = write_theorem(name, text)
        assert main(["show", name, "--no-numeric", "--theorems", str(path)]) == 1
        out, err = capsys.readouterr()
        assert not out
        assert str(path) in err


LINES = [
    Line("again: attnproof check a_long_name", "dim"),
    Line("  so many words that they need two lines", hang=2),
]
GRID = Grid("Laws", ("law", "verdict"), (("even", "proved"),))


def test_a_page_is_lines_and_tables_of_which_some_lines_stay_whole(capsys: Output) -> None:
    show([*LINES, GRID], Console(width=24))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "again: attnproof check a_long_name"
    assert rest[:3] == ["  so many words that", "    they need two lines", "Laws"]
    assert rest[-1].split() == ["even", "proved"]
    assert plain_text(LINES, 24).splitlines() == [first, *rest[:2]]
    assert plain_text([Line("an_address/without_spaces", hang=2)], 8) == "an_address/without_spaces"

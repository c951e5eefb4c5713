"""The ledger on the command line: the table, a claim's page, runs of claims, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnproof.cli import main
from attnproof.theorem_runs.records import Results
from tests.front.outputs import Output, refused

if TYPE_CHECKING:
    from tests.front.conftest import House, Numbers


@pytest.fixture
def place(tmp_path: Path, house: House) -> list[str]:
    """The option that adds a theorem, a demonstration and three claims."""
    house.theorem("addition_commutes")
    house.demonstration()
    false = house.claim.replace('"addition-commutes"]', '"addition-commutes#control"]').replace(
        "true as written", "false as written"
    )
    house.ledger(
        house.claim,
        f'{false.replace("Z1", "Z2")}corrected = ["addition-commutes"]\ncorrection = "a sum"\n',
        house.claim.replace("Z1", "Z3")
        .replace("printed", "demonstrations")
        .replace("addition-commutes", "two-and-two"),
    )
    return ["--theorems", str(tmp_path)]


def test_the_table_has_verdict_evidence_witness_and_counts(
    capsys: Output, place: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["claims", "900", *place]) == 0
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "900 Notes on addition (notes)"
    assert lines[1] == "claim place statement verdict how it is known"
    assert (
        "Z1 page 1 Addition of numbers commutes. ✓ true as written proved: addition-commutes"
    ) in lines
    assert any(line.startswith("Z2") and "✗ false as written refuted: a" in line for line in lines)
    assert "correction proved: addition-commutes" in lines
    assert any(line.startswith("witness: every size 1, x = (") for line in lines)
    assert "right: a sum" in lines
    assert any(line.endswith("✓ true as written reproduced: two-and-two") for line in lines)
    assert any("true as" in line and "false as" in line for line in lines)
    assert "900 2 1 3 3" in lines
    told = "3 claims: 2 true as written, 1 false as written; 3 as expected. "
    assert lines[-1].startswith(told)


@pytest.mark.parametrize("columns", [80, 100, 120, 160])
def test_the_table_fits(
    capsys: Output, place: list[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["claims", "900", *place]) == 0
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= columns
    rule = next(line for line in out.splitlines() if line.startswith("──"))
    assert len(rule) == columns
    for text in (
        "Addition of numbers",
        "✗ false as",
        "witness: every size",
        "reproduced: two-and-two",
    ):
        assert text in out


def test_one_claim_is_one(capsys: Output, place: list[str]) -> None:
    assert main(["claims", "Z2", *place]) == 0
    out = capsys.readouterr().out
    assert "1 claim: 1 false as written; 1 as expected. " in out
    assert "Z1" not in out
    assert "two-and-two" not in out


def test_a_verdict_is_chosen_by_its_first_words(capsys: Output, place: list[str]) -> None:
    assert main(["claims", "900", "--verdict", "false", *place]) == 0
    out = capsys.readouterr().out
    assert "Z2" in out
    assert "Z1" not in out
    assert "3 claims: 2 true as written, 1 false as written" in out
    told = refused(capsys, "claims", "--verdict", "wrong", *place)
    assert told.endswith("not checkable, undecided), got 'wrong'")


def test_a_claim_that_is_not_as_expected_is_told_and_fails(
    capsys: Output, place: list[str], house: House
) -> None:
    house.ledger(house.claim.replace('"true as', '"false as'))
    for arguments in (
        ["claims", "900"],
        ["claims", "900", "--verdict", "undecided"],
        ["run", "Z1", "--no-numeric"],
        ["show", "Z1", "--no-numeric"],
    ):
        assert main([*arguments, *place]) == 1
        out = capsys.readouterr().out
        told = "! expected false as written, is true as written"
        assert told in out or told.replace("!", "! Z1:") in out
    assert main(["claims", "900", *place]) == 1
    assert "✓ true as written !" in capsys.readouterr().out


def test_a_broken_ledger_is_told_by_name_and_fails(
    capsys: Output, place: list[str], house: House
) -> None:
    house.ledger(house.claim, house.claim.replace("Z1", "Z2").replace("kind", "kin"))
    told = "claims/900.toml: Z2: kin: there is no such key; nearest: kind"
    for command in (["claims", "900"], ["claims", "Z2"], ["run", "Z2", "--no-numeric"]):
        assert main([*command, *place]) == 1
        assert f"! {told}" in capsys.readouterr().out
    assert main(["show", "Z2", "--no-numeric", *place]) == 1
    assert told in capsys.readouterr().err
    assert main(["list", *place]) == 1
    out = capsys.readouterr().out
    assert "! broken: claims/900.toml\n      Z2: kin: there is no such key" in out
    assert main(["claims", "Z1", *place]) == 0
    assert main(["run", "mine", "--no-numeric", *place]) == 0


def test_a_run_covers_a_claim_a_document_and_the_rest(
    capsys: Output, place: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "results.json"
    wanted = {"Z1": (["Z1"], []), "900": (["Z1", "Z2", "Z3"], ["two-and-two"]), "mine": ([], [])}
    for name, (ids, shown) in wanted.items():
        assert main(["run", name, "--no-numeric", "--json", str(file), *place]) == 0
        results = Results.model_validate_json(file.read_text(encoding="utf-8"))
        assert [theorem.id for theorem in results.theorems] == ["addition-commutes"]
        assert [claim.id for claim in results.claims] == ids
        assert [record.id for record in results.demonstrations] == shown
        assert results.options.selection == (name,)
        out = capsys.readouterr().out
        assert "1 theorem: 1 proved; 1 as expected in verdict and control. " in out
        assert ("claims: " in out.replace("claim: ", "claims: ")) == bool(ids)


def test_the_record_of_a_claim_has_what_was_promised(
    place: list[str], tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "claims.json"
    assert main(["claims", "Z2", "--json", str(file), *place]) == 0
    assert f"wrote {file}" in capsys.readouterr().out
    (claim,) = json.loads(file.read_text(encoding="utf-8"))["claims"]
    assert {key: claim[key] for key in ("id", "document", "verdict", "expected", "ok")} == {
        "id": "Z2",
        "document": "900",
        "verdict": "false as written",
        "expected": "false as written",
        "ok": True,
    }
    assert [s["verdict"] for s in claim["statements"]] == ["refuted", "proved"]
    assert claim["evidence"] == (
        "refuted: addition-commutes#control; correction proved: addition-commutes"
    )


def test_the_table_measures_only_when_asked(place: list[str], numbers: Numbers) -> None:
    assert main(["claims", "Z1", *place]) == 0
    assert numbers.asked == []
    arguments = ["claims", "Z1", "--numeric", "--scale", "large", "--device", "cpu"]
    assert main([*arguments, *place]) == 0
    assert [asked["scale"] for asked in numbers.asked] == ["large", "small"]


def test_a_run_of_a_claim_measures(place: list[str], numbers: Numbers, capsys: Output) -> None:
    assert main(["run", "Z1", "--device", "cpu", *place]) == 0
    assert len(numbers.asked) == 2
    assert "1 as expected in verdict, numbers and control" in capsys.readouterr().out


def test_a_claim_has_a_page(capsys: Output, place: list[str]) -> None:
    assert main(["show", "Z2", "Z3", "--no-numeric", *place]) == 0
    page = capsys.readouterr().out
    for part in (
        "Z2: page 1\n900, Notes on addition (theorem)\n\n✗ false as written (as expected)",
        "Claim\n  Addition of numbers commutes.",
        "Correction\n  a sum",
        "✗ refuted, the printed statement:\n    addition-commutes#control\n      every size 1, ",
        "✓ proved, the corrected statement:\n    addition-commutes\n",
        "Addition commutes; its negative control: the sum is a difference\naddition-",
        "Refuted by\n",
        "Statement\n  The order of two summands does not matter.\n    x + y = y + x",
        "Z3: page 1",
        "Demonstration: Two and two\n  The sum, computed again.\n  ✓ reproduced (two-and-two)",
        "the sum (agrees)\n    ours 4\n    printed 4\n  the product\n    ours 4\n  By hand.",
    ):
        assert part in page, part
    assert max(map(len, page.splitlines())) <= 80


def test_show_takes_a_theorem_and_a_claim_at_once(capsys: Output, place: list[str]) -> None:
    assert main(["show", "addition-commutes", "Z1", "--no-numeric", *place]) == 0
    page = capsys.readouterr().out
    assert page.index("addition-commutes (mine)") < page.index("Z1: page 1")


def test_a_document_is_answered_with_its_claims(capsys: Output, place: list[str]) -> None:
    told = refused(capsys, "show", "900", *place)
    assert told == (
        "attnproof: wanted the id of a theorem or a claim, got the document '900'; its ids are "
        "Z1, Z2, Z3"
    )


def test_an_unknown_claim_is_answered_with_the_nearest(capsys: Output, place: list[str]) -> None:
    told = refused(capsys, "claims", "z2", *place)
    assert told == "attnproof: wanted the id of a claim or a document, got 'z2'; nearest: Z2"
    told = refused(capsys, "claims", "addition-commutes", *place)
    assert told.endswith("got 'addition-commutes'; see `attnproof claims`")
    assert "nearest: Z3" in refused(capsys, "run", "z3", *place)
    assert "nearest: Z3" in refused(capsys, "show", "z3", *place)


def test_another_number_is_not_nearly_the_number(capsys: Output) -> None:
    told = refused(capsys, "claims", "009")
    assert "nearest" not in told
    assert told.endswith("; the numbers are 000, 001, 002, 003, 004; see `attnproof claims`")
    assert "nearest: G2.3" in refused(capsys, "claims", "G2.33")


def test_list_counts_the_claims_of_a_document(capsys: Output, place: list[str]) -> None:
    main(["list", *place])
    assert "  900  Notes on addition (3 claims)\n" in capsys.readouterr().out


def test_an_unwritable_file_is_refused_before_the_work(
    capsys: Output, place: list[str], tmp_path: Path
) -> None:
    assert "got the folder" in refused(capsys, "claims", "--json", str(tmp_path), *place)

"""Claims: verdicts derived from a run, and how they change with what is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attnproof.theorem_runs import runner
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options, check
from attnproof.theorem_runs.ledger import load_ledger
from attnproof.theorem_runs.records import ClaimRecord, Results
from attnproof.theorem_runs.runner import run

if TYPE_CHECKING:
    from tests.front.conftest import House, Numbers


TWO = '''"""Two conclusions."""

from attnproof import Array, Claim, equal, real, theorem


@theorem(
    "Addition commutes, and so does subtraction",
    given={"x": real(), "y": real()},
    expected="refuted",
)
def statement(x: Array, y: Array) -> dict[str, Claim]:
    """The second is false."""
    return {"the sum": equal(x + y, y + x), "the difference": equal(x - y, y - x)}


@statement.negative_control("nothing is subtracted")
def control(x: Array, y: Array) -> Claim:
    return equal(x + y, y + x)
'''


def ran(folder: Path, **options: Any) -> Results:
    """A run of the document that a test wrote."""
    catalogue = load_catalogue([folder])
    ledger = load_ledger(catalogue, [folder]).select(["900"])
    return run(
        catalogue.with_ids(ledger.theorems), Options(**{"numeric": False, **options}), ledger=ledger
    )


def only(folder: Path, **options: Any) -> ClaimRecord:
    (claim,) = ran(folder, **options).claims
    return claim


def test_a_claim_is_true_when_its_theorem_is_proved(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.ledger()
    results = ran(tmp_path)
    (claim,) = results.claims
    assert (claim.verdict, claim.ok, claim.why) == ("true as written", True, ())
    assert claim.evidence == "proved: addition-commutes"
    (statement,) = claim.statements
    assert (statement.id, statement.role, statement.verdict) == (
        "addition-commutes",
        "printed",
        "proved",
    )
    assert statement.known.endswith(" kernel steps")
    assert [document.id for document in results.documents] == ["900"]
    assert results.ok


def test_flipping_the_theorem_flips_the_claim(
    tmp_path: Path, house: House, true_theorem: str
) -> None:
    text = true_theorem.replace("x + y, y + x", "x, y").replace("x - y, y - x", "x + y, y + x")
    house.theorem("addition_commutes", text.replace("sources=", 'expected="refuted", sources='))
    house.ledger()
    results = ran(tmp_path)
    (claim,) = results.claims
    assert (claim.verdict, claim.ok) == ("false as written", False)
    assert claim.why == ("expected true as written, is false as written",)
    assert claim.evidence == "refuted: addition-commutes"
    assert "left 0, right 1" in claim.statements[0].known
    assert [theorem.ok for theorem in results.theorems] == [True]
    assert not results.ok


def test_the_control_is_the_printed_form_that_is_wrong(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    false = house.claim.replace('"addition-commutes"]', '"addition-commutes#control"]').replace(
        "true as written", "false as written"
    )
    corrected = 'corrected = ["addition-commutes"]\ncorrection = "a sum"\n'
    house.ledger(
        false,
        f"{false.replace('Z1', 'Z2')}{corrected}",
        f"{false.replace('Z1', 'Z3')}{corrected}mends = 'hypothesis'\n".replace(
            "false as written", "true under a stated correction"
        ),
    )
    claims = ran(tmp_path).claims
    assert [one.verdict for one in claims] == [
        "false as written",
        "false as written",
        "true under a stated correction",
    ]
    assert all(one.ok for one in claims)
    assert claims[2].evidence == (
        "refuted: addition-commutes#control; correction proved: addition-commutes"
    )
    assert [(s.role, s.control) for s in claims[2].statements] == [
        ("printed", True),
        ("corrected", False),
    ]


def test_one_conclusion_is_not_another(tmp_path: Path, house: House) -> None:
    house.theorem("two", TWO)
    house.ledger(
        house.claim.replace("addition-commutes", "two#the sum"),
        house.claim.replace("addition-commutes", "two#the difference").replace("Z1", "Z2"),
        house.claim.replace("addition-commutes", "two").replace("Z1", "Z3"),
        house.claim.replace("addition-commutes", "two#control").replace("Z1", "Z4"),
    )
    assert [one.verdict for one in ran(tmp_path).claims] == [
        "true as written",
        "false as written",
        "false as written",
        "true as written",
    ]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("two#the product", "printed: wanted a conclusion of two, got 'the product'; nearest: the"),
        ("two#control#the sum", "got 'the sum'; it has one, without a name"),
        ("addition-commutes#x", "got 'x'; it has one, without a name"),
    ],
)
def test_an_unknown_conclusion_is_told_with_the_nearest(
    tmp_path: Path, house: House, reference: str, told: str
) -> None:
    house.theorem("two", TWO)
    house.theorem("addition_commutes")
    house.ledger(
        house.claim.replace("addition-commutes", reference), house.claim.replace("Z1", "Z2")
    )
    results = ran(tmp_path)
    assert [one.id for one in results.claims] == ["Z2"]
    (broken,) = results.broken
    assert broken.file == "claims/900.toml"
    assert told in broken.error
    assert not results.ok


def test_an_undecided_theorem_leaves_the_claim_undecided(
    tmp_path: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("attnproof.symbolic.prove.decide", stop)
    house.theorem("addition_commutes")
    house.ledger()
    claim = only(tmp_path)
    assert claim.verdict == "undecided"
    first, second, *_ = claim.why
    assert first == "expected true as written, is undecided"
    told = "the prover stopped with RecursionError: too deep"
    assert second == f"addition-commutes (printed) is undecided: {told}"


def test_a_broken_theorem_leaves_the_claim_undecided(
    tmp_path: Path, house: House, mismatched: str
) -> None:
    house.ledger()
    for text in ("1 / 0", mismatched):
        house.theorem("addition_commutes", text)
        claim = only(tmp_path)
        assert claim.verdict == "undecided"
        assert "its file is broken: " in claim.why[1]


def test_numbers_that_contradict_the_proof_speak_against_the_claim(
    tmp_path: Path, house: House, numbers: Numbers
) -> None:
    house.theorem("addition_commutes")
    house.ledger()
    claim = only(tmp_path, numeric=True)
    assert (claim.verdict, claim.ok) == ("true as written", True)
    assert claim.evidence.endswith("; numbers: 1 of 1 as required")
    numbers.true = replace(numbers.true, status="violated", error=0.5)
    claim = only(tmp_path, numeric=True)
    assert (claim.verdict, claim.ok) == ("true as written", False)
    assert claim.why == (
        "addition-commutes: torch, cpu, float32: violated, error 0.5 against 1e-06",
    )
    assert claim.evidence.endswith("; numbers: 0 of 1 as required")


def test_a_control_that_fails_speaks_against_the_claim(
    tmp_path: Path, house: House, true_theorem: str
) -> None:
    house.theorem("addition_commutes", true_theorem.replace("x - y, y - x", "x + y, y + x"))
    house.ledger()
    claim = only(tmp_path)
    assert (claim.verdict, claim.ok) == ("true as written", False)
    assert claim.why == ("addition-commutes: its negative control: expected refuted, is proved",)


def test_a_demonstration_is_run_without_numbers_and_decides(tmp_path: Path, house: House) -> None:
    house.demonstration()
    shown = house.claim.replace("printed", "demonstrations").replace(
        "addition-commutes", "two-and-two"
    )
    house.ledger(shown)
    results = ran(tmp_path)
    (found,) = results.claims
    assert (found.verdict, found.ok) == ("true as written", True)
    assert found.evidence == "reproduced: two-and-two"
    assert [record.id for record in results.demonstrations] == ["two-and-two"]
    house.demonstration("printed=4", "printed=5")
    results = ran(tmp_path)
    (found,) = results.claims
    assert (found.verdict, found.ok) == ("false as written", False)
    assert found.why[1] == "two-and-two: the sum: ours 4, printed 5"
    house.demonstration("printed=4", "printed=5, expected_to_differ=True")
    house.ledger(shown.replace("true as written", "false as written"))
    assert ran(tmp_path).ok


def test_a_reason_takes_the_place_of_evidence(tmp_path: Path, house: House) -> None:
    text = house.claim.replace(
        'printed = ["addition-commutes"]', 'not_checkable = "a matter of taste"'
    )
    house.ledger(text.replace("true as written", "not checkable"))
    claim_ = only(tmp_path)
    assert (claim_.verdict, claim_.ok) == ("not checkable", True)
    assert claim_.evidence == claim_.reason == "a matter of taste"


def test_a_claim_that_is_said_to_be_undecided_is_so_whatever_is_proved(
    tmp_path: Path, house: House
) -> None:
    house.theorem("addition_commutes")
    house.ledger(house.claim.replace("printed", 'undecided = "no rule for limits"\nprinted'))
    found = only(tmp_path)
    assert (found.verdict, found.ok) == ("undecided", False)
    assert found.why == ("expected true as written, is undecided",)
    assert found.evidence == "no rule for limits"


def test_each_theorem_is_decided_once(
    tmp_path: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = check

    def count(theorem: Any, source: Any, options: Any, proved: Any = None) -> Any:
        asked.append(source.id)
        return real(theorem, source, options, proved)

    monkeypatch.setattr(runner, "check", count)
    house.theorem("addition_commutes")
    house.ledger(*(house.claim.replace("Z1", f"Z{k}") for k in range(4)))
    assert len(ran(tmp_path).claims) == 4
    assert asked == ["addition-commutes"]


def test_what_an_interrupt_left_out_is_undecided(
    tmp_path: Path, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    house.theorem("addition_commutes")
    house.demonstration()
    house.ledger(house.claim.replace("printed", 'demonstrations = ["two-and-two"]\nprinted'))
    monkeypatch.setattr(runner, "check", interrupt)
    results = ran(tmp_path)
    (found,) = results.claims
    assert results.unfinished == ("addition-commutes", "two-and-two")
    assert found.verdict == "undecided"
    assert "addition-commutes (printed) is undecided: the run did not reach it" in found.why
    assert "two-and-two: the run did not reach it" in found.why
    assert not results.ok


def test_the_record_comes_back_as_it_was_written(tmp_path: Path, house: House) -> None:
    house.theorem("addition_commutes")
    house.ledger()
    results = ran(tmp_path)
    assert Results.model_validate_json(results.model_dump_json()) == results

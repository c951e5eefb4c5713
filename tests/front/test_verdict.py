"""The verdict on a claim follows from what was found, and from nothing else."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from attnproof.claims import Findings, derive
from attnproof.evidence import Verdict
from attnproof.ledger import VERDICTS, ClaimEntry, ClaimVerdict
from attnproof.records import Outcome

TRUE, MENDED, FALSE, NOT_CHECKABLE, UNDECIDED = VERDICTS
P, D, C, N = ("printed",), ("disproof",), ("corrected",), ("numbers",)


def entry(
    printed: tuple[str, ...] = (),
    disproof: tuple[str, ...] = (),
    corrected: tuple[str, ...] = (),
    demonstrations: tuple[str, ...] = (),
    expected: str = TRUE,
    **words: str,
) -> ClaimEntry:
    return ClaimEntry(
        "900",
        "Z1",
        "page 1",
        "document",
        "theorem",
        "..",
        expected,
        printed,
        disproof,
        corrected,
        demonstrations,
        **words,
    )


def verdict(claim: ClaimEntry, *found: Verdict, shown: Outcome = "reproduced") -> ClaimVerdict:
    """The verdict when the statements named were found so, in the order of their roles."""
    names = dict.fromkeys(text for _, text in claim.references)
    return derive(claim, Findings(dict(zip(names, found, strict=True)), {"numbers": shown}))


# What the ledger says, what was found, and the verdict; flipping any finding changes it.
DECIDED: list[tuple[ClaimEntry, tuple[Verdict, ...], str]] = [
    (entry(P), ("proved",), TRUE),
    (entry(P), ("refuted",), FALSE),
    (entry(P), ("ill-typed",), FALSE),
    (entry(P, corrected=C), ("refuted", "proved"), FALSE),
    (entry(P, corrected=C), ("ill-typed", "proved"), FALSE),
    (entry(P, corrected=C, mends="type"), ("ill-typed", "proved"), MENDED),
    (entry(P, corrected=C, mends="hypothesis"), ("refuted", "proved"), MENDED),
    (entry(disproof=D), ("proved",), FALSE),
    (entry(disproof=D, corrected=C), ("proved", "proved"), FALSE),
    (entry(disproof=D, corrected=C, mends="hypothesis"), ("proved", "proved"), MENDED),
    (entry(P, D), ("proved", "proved"), FALSE),
    (entry(corrected=C, unstated="never defined"), ("proved",), MENDED),
    (entry(disproof=D, corrected=C, unstated="vague"), ("proved", "proved"), MENDED),
    (entry(("one", "two")), ("proved", "proved"), TRUE),
    (entry(("one", "two")), ("refuted", "undecided"), FALSE),
]


@pytest.mark.parametrize(("claim", "found", "wanted"), DECIDED)
def test_a_claim_is_decided_by_its_statements(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str
) -> None:
    assert verdict(claim, *found) == wanted


@pytest.mark.parametrize(("claim", "found", "wanted"), DECIDED)
def test_a_verdict_falls_with_each_statement_it_rests_on(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str
) -> None:
    roles = [role for role, _ in claim.references]
    for place, other in product(range(len(found)), get_args(Verdict)):
        flipped = (*found[:place], other, *found[place + 1 :])
        if flipped != found:
            same = roles[place] == "printed" and wanted != TRUE and still_false(claim, flipped)
            assert (verdict(claim, *flipped) == wanted) == same, (place, other)


def still_false(claim: ClaimEntry, found: tuple[Verdict, ...]) -> bool:
    """Whether something is left that shows the printed form false."""
    printed = found[: len(claim.printed)]
    return bool(claim.disproof) or "refuted" in printed or "ill-typed" in printed


@pytest.mark.parametrize("claim", [claim for claim, *_ in DECIDED])
def test_with_an_undecided_statement_nothing_is_true(claim: ClaimEntry) -> None:
    places = len(list(claim.references))
    for found in product(get_args(Verdict), repeat=places):
        if "undecided" in found:
            assert verdict(claim, *found) != TRUE
            rest = found[len(claim.printed) :]
            if "undecided" in rest:
                assert verdict(claim, *found) == UNDECIDED


@pytest.mark.parametrize("expected", VERDICTS)
@pytest.mark.parametrize(("claim", "found", "wanted"), DECIDED)
def test_what_is_expected_has_no_say(
    claim: ClaimEntry, found: tuple[Verdict, ...], wanted: str, expected: str
) -> None:
    asked = ClaimEntry(**{**vars(claim), "expected": expected})
    assert verdict(asked, *found) == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", TRUE), ("differs", FALSE), ("failed", UNDECIDED)]
)
def test_a_demonstration_decides_by_itself(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(demonstrations=N), shown=shown) == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", MENDED), ("differs", UNDECIDED), ("failed", UNDECIDED)]
)
def test_what_is_meant_has_to_come_out(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(demonstrations=N, unstated="no seed"), shown=shown) == wanted


@pytest.mark.parametrize(
    ("shown", "wanted"), [("reproduced", TRUE), ("differs", FALSE), ("failed", UNDECIDED)]
)
def test_a_proof_does_not_outweigh_numbers_that_differ(shown: Outcome, wanted: str) -> None:
    assert verdict(entry(P, demonstrations=N), "proved", shown=shown) == wanted


def test_numbers_do_not_outweigh_a_proof_that_is_missing() -> None:
    assert verdict(entry(P, demonstrations=N), "undecided") == UNDECIDED
    assert verdict(entry(P, demonstrations=N), "refuted") == FALSE


def test_nothing_decides_nothing() -> None:
    assert verdict(entry()) == UNDECIDED


def test_a_mended_claim_needs_the_statement_that_is_right() -> None:
    assert verdict(entry(P, mends="type"), "ill-typed") == UNDECIDED
    assert verdict(entry(unstated="vague")) == UNDECIDED


@pytest.mark.parametrize("found", get_args(Verdict))
def test_a_reason_in_the_ledger_is_a_verdict_whatever_was_found(found: Verdict) -> None:
    assert verdict(entry(P, not_checkable="a word on beauty"), found) == NOT_CHECKABLE
    assert verdict(entry(P, undecided="no rule for limits"), found) == UNDECIDED


def test_what_was_not_looked_at_is_no_verdict() -> None:
    with pytest.raises(KeyError):
        derive(entry(P), Findings({}, {}))

"""The requirements of documents 000 and 004: what a card makes of them."""

from __future__ import annotations

import pytest

from attnproof.laws import LAWS
from attnproof.laws.requirements import REQUIREMENTS, Granted, Requirement, granted

BOTH = Requirement("both", "004", "two laws", (("a", "proved"), ("b", "refuted")))
EITHER = Requirement("either", "004", "one of two", (("a", "proved"), ("b", "refuted")), True)


@pytest.mark.parametrize(
    ("requirement", "a", "b", "verdict", "because"),
    [
        (BOTH, "proved", "refuted", "met", "ab"),
        (BOTH, "proved", "proved", "not met", "b"),
        (BOTH, "refuted", "undecided", "not met", "a"),
        (BOTH, "proved", "undecided", "open", "b"),
        (BOTH, "proved", "does not apply", "open", "b"),
        (BOTH, "measured", "refuted", "open", "a"),
        (EITHER, "proved", "proved", "met", "a"),
        (EITHER, "refuted", "refuted", "met", "b"),
        (EITHER, "refuted", "proved", "not met", "ab"),
        (EITHER, "refuted", "undecided", "open", "b"),
    ],
)
def test_a_requirement_follows_from_the_verdicts(
    requirement: Requirement, a: str, b: str, verdict: str, because: str
) -> None:
    found = granted(requirement, {"a": a, "b": b, "c": "refuted"})
    assert (found.verdict, "".join(law for law, _ in found.because)) == (verdict, because)


def test_a_law_that_was_not_asked_leaves_it_open() -> None:
    assert granted(BOTH, {"a": "proved"}) == Granted("open", (("b", "not asked"),))


def test_a_requirement_wants_a_verdict_that_can_be_had() -> None:
    with pytest.raises(ValueError, match="not hoped: w"):
        Requirement("w", "004", "", (("a", "hoped"),))
    with pytest.raises(ValueError, match="one law at least"):
        Requirement("w", "004", "", ())


def test_requirements_have_names_of_their_own_and_speak_of_laws_that_exist() -> None:
    assert len({requirement.id for requirement in REQUIREMENTS}) == len(REQUIREMENTS)
    assert {requirement.document for requirement in REQUIREMENTS} == {"000", "004"}
    spoken = {law for requirement in REQUIREMENTS for law, _ in requirement.laws}
    assert not spoken - {law.id for law in LAWS}

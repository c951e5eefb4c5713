"""What every law must show: an encoding that obeys it, one that breaks it, a false control."""

from __future__ import annotations

from typing import Any

import pytest

from attnproof import Encoding
from attnproof.encoding_law import EncodingLaw, law
from attnproof.law_verdicts import decided
from attnproof.laws import LAWS
from attnproof.registry import load_encodings
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement

KINDS = {kind.id(): kind for kind in load_encodings().kinds}
every_law = pytest.mark.parametrize("told", LAWS, ids=lambda told: told.id)


@every_law
def test_it_holds_of_its_example(told: EncodingLaw) -> None:
    assert decided(KINDS[told.example], told).verdict == "proved"


@every_law
def test_it_fails_of_what_breaks_it(told: EncodingLaw) -> None:
    """By a witness; a law that claims a difference, by the proof that there is none."""
    cell = decided(KINDS[told.breaks], told)
    assert cell.verdict == "refuted"
    assert cell.why
    assert told.some or cell.witness


@every_law
def test_its_control_fails_of_the_example(told: EncodingLaw) -> None:
    """Under the hypotheses that the law needs; the contrary of a difference is proved."""
    kind = KINDS[told.example]
    needed = decided(kind, told).under
    granted = [name for name, says in kind.hypotheses().items() if says in needed]
    asked = told.control(kind(), granted)
    assert told.control_says
    assert isinstance(asked, Statement)
    assert decide(asked).verdict == ("proved" if told.some else "refuted")


@every_law
def test_it_has_a_title_and_words(told: EncodingLaw) -> None:
    assert told.title
    assert len(told.words.split()) > 5


def test_no_two_laws_have_one_id() -> None:
    assert len({told.id for told in LAWS}) == len(LAWS) >= 16


@law("A false law", group="tests", example="nope", breaks="rope")
def every_score_is_zero(e: Encoding, x: Any, y: Any, a: Any, b: Any) -> Claim:
    """score(q, k, m, n) = 0."""
    return equal(e.score(x, y, a, b), 0)


def test_a_false_law_does_not_hold_of_its_example() -> None:
    """What the first test must refuse."""
    assert decided(KINDS["nope"], every_score_is_zero).verdict == "refuted"
    with pytest.raises(TypeError, match="has no negative control"):
        every_score_is_zero.control(KINDS["nope"]())

"""What every law must show: an encoding that obeys it, one that breaks it, a false control."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attnproof import Encoding
from attnproof.cards.records import CellRecord
from attnproof.cards.registry import load_encodings
from attnproof.cards.verdicts import decided
from attnproof.encoding.declarations import EXAMPLES
from attnproof.encoding.law import EncodingLaw, law
from attnproof.laws import LAWS
from attnproof.laws.requirements import REQUIREMENTS, Granted, Requirement, granted
from attnproof.symbolic.claim import Claim, equal
from attnproof.symbolic.prove import decide
from attnproof.symbolic.statement import Statement

KINDS = {kind.id(): kind for kind in load_encodings().kinds}


@cache
def cell(kind: str, told: EncodingLaw) -> CellRecord:
    """What is said of an encoding, once for all tests."""
    return decided(KINDS[kind], told)


every_law = pytest.mark.parametrize("told", LAWS, ids=lambda told: told.id)


@every_law
def test_it_holds_of_its_example(told: EncodingLaw) -> None:
    assert cell(told.example, told).verdict == "proved"


def test_a_power_to_a_bound_index_is_rewritten_where_the_index_is_opened() -> None:
    (translation,) = (one for one in LAWS if one.id == "translation")
    assert cell("multiplicative", translation).verdict == "proved"


@every_law
def test_it_fails_of_what_breaks_it(told: EncodingLaw) -> None:
    """By a witness; a law that claims a difference, by the proof that there is none."""
    found = cell(told.breaks, told)
    assert found.verdict == "refuted"
    assert found.why
    assert told.some or found.witness


@every_law
def test_its_control_fails_of_the_example(told: EncodingLaw) -> None:
    """Under the hypotheses that the law needs; the contrary of a difference is proved."""
    kind = KINDS[told.example]
    needed = cell(told.example, told).under
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


# The requirements of documents 000 and 004: what a card makes of them.


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


# A method that an encoding does not write says so where it is called, and what to do.


class Nothing(Encoding):
    """Nothing is done."""


def called(encoding: Encoding, method: str) -> str:
    """What is said where this method is called with numbers."""
    hook = getattr(encoding, method)
    with pytest.raises(NotImplementedError) as caught:
        hook(*(0 for _ in inspect.signature(hook).parameters))
    return str(caught.value)


def bare() -> set[str]:
    """The methods of the base class that give nothing."""
    return {
        name
        for name, method in vars(Encoding).items()
        if inspect.isfunction(method) and "unwritten" in method.__code__.co_names
    }


@pytest.mark.parametrize("method", sorted(EXAMPLES))
def test_the_error_names_class_method_shape_and_example(method: str, root: Path) -> None:
    told = called(Nothing(), method)
    words = (inspect.getdoc(getattr(Encoding, method)) or "").splitlines()[0]
    assert told.startswith(f"Nothing does not write {method}(")
    assert words[1:] in told
    assert f"Write it in class Nothing, as {EXAMPLES[method]} does" in told
    assert f"Nothing.defines({method!r})" in told
    example = (root / EXAMPLES[method]).read_text(encoding="utf-8")
    assert f"    def {method}(self" in example


def test_every_method_that_gives_nothing_has_an_example() -> None:
    assert bare() == set(EXAMPLES)
    assert not Nothing.defines(*EXAMPLES)


def test_a_call_of_super_is_told_apart() -> None:
    class Falls(Encoding):
        """Calls what is not there."""

        def bias(self, m: Any, n: Any) -> Any:
            return super().bias(m, n) - 1

    told = called(Falls(), "bias")
    assert told.startswith("Falls.bias(m, n) calls that of Encoding, which is not written: it is")
    assert "Drop the call of super().bias" in told


def test_shapes_stand_in_the_words_of_what_acts_on_scores() -> None:
    assert "(r, 1) with a key at n: (1, c) -> (r, c)" in called(Nothing(), "bias")
    assert "positions (..) -> (.., d)" in called(Nothing(), "add")

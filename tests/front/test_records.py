"""The record: strict, frozen, and its schema published."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from pydantic import TypeAdapter, ValidationError

from attnproof.documents.evidence import schema_text
from attnproof.numeric.results import MeasuredEvidence, Status
from attnproof.theorem_runs import translation
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options
from attnproof.theorem_runs.records import Results, SizeRecord
from attnproof.theorem_runs.runner import run
from tests.front.outputs import MEASURED, conforms

IDS = [
    "rows-of-softmax-are-distributions",
    "softmax-ignores-a-constant-in-each-row",
    "attention-answers-each-query-by-itself",
]


@pytest.fixture(scope="module")
def results() -> Results:
    """A run of three theorems, without numbers."""
    return run(load_catalogue().select(IDS), Options(numeric=False), tuple(IDS))


MEASUREMENT = TypeAdapter(MeasuredEvidence)


def measurement(error: float, status: Status, reason: str = "") -> MeasuredEvidence:
    return replace(MEASURED, error=error, status=status, reason=reason)


def test_a_record_is_what_the_printed_schema_says(results: Results) -> None:
    told = results.model_dump_json()
    conforms(told)
    with pytest.raises(AssertionError):
        conforms(told.replace('"ok":true', '"ok":"yes"'))


def test_a_record_comes_back_as_it_was_written(results: Results) -> None:
    assert Results.model_validate_json(results.model_dump_json()) == results


def test_a_record_says_what_was_claimed_and_how_it_is_known(results: Results) -> None:
    by_id = {record.id: record for record in results.theorems}
    rows = by_id["rows-of-softmax-are-distributions"]
    assert rows.verdict == "proved"
    assert [size.name for size in rows.sizes] == ["r", "n"]
    assert {evidence.kind for evidence in rows.evidence} == {"proved", "derived"}
    assert rows.statement.latex
    assert rows.control.verdict == "refuted"
    (refuted,) = (e for e in rows.control.evidence if e.kind == "refuted")
    assert refuted.witness.gap != "0"


def test_a_record_cannot_be_changed_or_extended() -> None:
    size = SizeRecord(name="n", role="tokens")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(size, "name", "m")  # noqa: B010 (a type checker would refuse the assignment)
    with pytest.raises(ValidationError, match="extra"):
        SizeRecord.model_validate({"name": "n", "role": "tokens", "unit": "m"})
    with pytest.raises(ValidationError, match="valid string"):
        SizeRecord.model_validate({"name": 1, "role": "tokens"})


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_an_error_that_is_no_number_keeps_that_word(error: float) -> None:
    record = measurement(error, "non-finite")
    assert record.error == "non-finite"
    assert b'"error":"non-finite"' in MEASUREMENT.dump_json(record)


def test_nan_is_refused_and_never_written_as_null() -> None:
    told = MEASUREMENT.dump_json(measurement(1e-7, "held"))
    assert MEASUREMENT.validate_json(told).error == 1e-7
    with pytest.raises(ValidationError, match="finite number"):
        MEASUREMENT.validate_json(told.replace(b"1e-7", b"NaN"))


def test_only_a_skipped_measurement_has_no_error() -> None:
    record = measurement(0.0, "skipped", "no such kernel")
    assert record.error is None
    assert record.reason == "no such kernel"


def test_a_skipped_measurement_says_why() -> None:
    with pytest.raises(ValidationError, match="must say why"):
        measurement(0.0, "skipped")


def test_every_kind_of_evidence_is_in_the_schema() -> None:
    schema = json.loads(schema_text(Results))
    (union,) = (
        field["items"]["discriminator"]["mapping"]
        for field in [schema["$defs"]["TheoremRecord"]["properties"]["evidence"]]
    )
    assert set(union) == {
        "proved",
        "refuted",
        "ill-typed",
        "measured",
        "exact",
        "derived",
        "misread",
        "undecided",
        "internal error",
    }


def test_a_record_holds_what_a_page_shows_of_a_theorem(results: Results) -> None:
    one = next(t for t in results.theorems if t.id == "softmax-ignores-a-constant-in-each-row")
    assert one.code.startswith("@theorem(\n")
    assert "negative_control(" in one.code
    assert one.uses == ("softmax",)
    (link,) = one.chain
    assert len(link.kernel) == link.steps
    assert link.kernel[0].before == "softmax(S + c[:, None])[i0, i1]"
    assert link.kernel[-1].after == "softmax(S)[i0, i1]"
    assert link.kernel[-1].backwards
    assert not link.kernel[0].backwards
    inside = {step.inside for step in link.kernel}
    assert inside == {(), ("•1",)}
    known = {d.name: d for d in results.definitions}
    assert "softmax" in known["attention"].uses
    assert known["softmax"].uses == ()


def test_of_many_kernel_steps_a_record_holds_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "KERNEL", 3)
    monkeypatch.setattr(translation, "LETTERS", 5)
    chosen = load_catalogue().select(["softmax-ignores-a-constant-in-each-row"])
    (one,) = run(chosen, Options(numeric=False)).theorems
    (link,) = one.chain
    assert (len(link.kernel), link.steps) == (3, 30)
    assert link.kernel[0].before == "softm …"

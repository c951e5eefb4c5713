"""The record: strict, its schema published, and its definitions and demonstrations."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from attnproof.documents.evidence import schema_text
from attnproof.numeric.results import MeasuredEvidence, Status
from attnproof.report.words import mathml
from attnproof.symbolic.claim import equal, for_all, iterate
from attnproof.symbolic.definition import DEFINITIONS
from attnproof.symbolic.givens import real, sizes
from attnproof.symbolic.statement import Statement
from attnproof.theorem_runs import translation
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options
from attnproof.theorem_runs.definitions_used import definitions
from attnproof.theorem_runs.demonstrations import demonstrate
from attnproof.theorem_runs.ledger import demonstration_files
from attnproof.theorem_runs.records import (
    DefinitionRecord,
    DemonstrationRecord,
    Results,
    SizeRecord,
)
from attnproof.theorem_runs.runner import run
from attnproof.theorems.definitions.attention import attention, softmax
from tests.front.outputs import MEASURED, WriteDemonstration, conforms

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


n, m = sizes("n m", "tokens")
l, d = sizes("l d", "features")


@pytest.fixture(scope="module")
def told() -> dict[str, DefinitionRecord]:
    found = definitions(s for entry in load_catalogue().entries for s in entry.statements)
    assert len({record.name for record in found}) == len(found)
    return {record.name: record for record in found}


def test_every_definition_of_the_catalogue_is_told(told: dict[str, DefinitionRecord]) -> None:
    assert {
        "softmax", "attention", "masked_attention", "biased_attention", "self_attention",
        "multi_head", "alibi", "rotation", "block_rotation", "rotate", "rotate_half",
        "to_half_split", "sinusoidal", "sine_only",
    } <= set(told)  # fmt: skip
    for name, record in told.items():
        mathml(record.formula.latex)
        assert record.formula.latex.startswith(DEFINITIONS[name].latex.partition("#")[0])
        assert record.words


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("attention", r"\frac{Q K^{\top}}{\sqrt{\ell}}"),
        ("biased_attention", r"\frac{Q K^{\top}}{\sqrt{\ell}} + B\right)\,V"),
        ("softmax", r"\frac{e^{S_{i j}}}{\sum_{k < n} e^{S_{i k}}}"),
        ("product", r" \cdot "),
        ("conjugate", r"Z^{*} = "),
        ("rotation", r"\cos a & -\sin a \\ \sin a & \cos a"),
        ("sinusoidal", r"\left[\sin(p_{i}\,\omega_{b})\right]_{i b}, \left[\cos(p_{i}"),
    ],
)
def test_what_must_be_read_off(told: dict[str, DefinitionRecord], name: str, wanted: str) -> None:
    assert wanted in told[name].formula.latex


def test_a_definition_stands_on_names_even_where_it_is_used_on_more() -> None:
    Q, K, V = real(m, l).named("Q"), real(n, l).named("K"), real(n, d).named("V")
    used = attention(Q + Q, K, V)
    found = definitions([Statement({}, {"": equal(used, used)})])
    assert [record.name for record in found] == ["softmax", "attention"]
    assert found[1].formula.latex.startswith(r"\operatorname{Att}(Q, K, V) = ")
    assert definitions([Statement({}, {"": equal(Q, Q)})]) == ()


def test_what_a_hypothesis_uses_is_told() -> None:
    X = real(n, n).named("X")
    law = for_all({"S": real(n, n)}, lambda S: equal(softmax(S), S))
    assert [d.name for d in definitions([Statement({}, {"": equal(X, X)}, (), (law,))])] == [
        "softmax"
    ]


def test_what_is_used_in_a_stack_alone_is_told() -> None:
    (L,) = sizes("L", "layers")
    X = real(n, n).named("X")
    stack = iterate(L, X, lambda _, Y: softmax(Y))
    (found,) = definitions([Statement({}, {"": equal(stack, stack)})])
    assert found.name == "softmax"
    assert found.formula.latex.startswith(r"\operatorname{softmax}(S) = ")
    mathml(found.formula.latex)


def shown(path: Path) -> DemonstrationRecord:
    (record,) = demonstrate({"two-and-two": path})
    return record


def test_ours_stands_beside_what_is_printed(write_demonstration: WriteDemonstration) -> None:
    record = shown(write_demonstration())
    assert (record.outcome, record.ok, record.why) == ("reproduced", True, ())
    assert (record.title, record.says) == ("Two and two", "The sum, computed again.")
    assert (record.claims, record.remark) == (("Z1",), "By hand.")
    assert [(r.says, r.ours, r.printed, r.agrees) for r in record.rows] == [
        ("the sum", "4", "4", True),
        ("the product", "4", None, None),
    ]


@pytest.mark.parametrize(
    ("row", "outcome", "why"),
    [
        ("printed=5", "differs", ("the sum: ours 4, printed 5",)),
        ("printed=5, expected_to_differ=True", "differs", ()),
        (
            "printed=4, expected_to_differ=True",
            "reproduced",
            ("the sum: printed 4, as ours, and expected to differ",),
        ),
        ("printed=None", "failed", ("nothing printed is compared with ours",)),
    ],
)
def test_a_row_that_is_not_as_expected_is_told(
    write_demonstration: WriteDemonstration, row: str, outcome: str, why: tuple[str, ...]
) -> None:
    record = shown(write_demonstration("printed=4", row))
    assert (record.outcome, record.why, record.ok) == (outcome, why, not why)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("2 + 2", "1 / 0", "ZeroDivisionError: division by zero (line 9)"),
        ("from attnproof", "import nothing_of_the_kind\nfrom attnproof", "ModuleNotFoundError"),
        ("@demonstration", "# @demonstration", "declares a @demonstration; this one has none"),
    ],
)
def test_one_that_cannot_be_run_has_failed_and_stops_no_other(
    write_demonstration: WriteDemonstration, old: str, new: str, told: str
) -> None:
    good, bad = write_demonstration(name="good"), write_demonstration(old, new, name="bad")
    first, second = demonstrate({"bad": bad, "good": good})
    assert (first.id, first.outcome, first.ok) == ("bad", "failed", False)
    assert told in first.why[0]
    assert (second.id, second.outcome) == ("good", "reproduced")


def test_those_of_the_package_are_found_by_their_files(root: Path) -> None:
    files = demonstration_files()
    assert {path.resolve() for path in files.values()} == {
        path
        for path in (root / "theorems" / "demonstrations").glob("*.py")
        if path.name != "__init__.py"
    }
    assert len(files) >= 10

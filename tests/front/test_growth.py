"""How error and bound grow: which measurement stands for the others, and what is drawn of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from attnproof.numeric.results import MeasuredEvidence, Number, Status
from attnproof.report.plots import plots_of
from attnproof.sweeping.records import CellRecord, CellStatus, SweepRecord
from attnproof.sweeping.scale import CONTROL, Growth, Point, growth_table, growths, reach
from attnproof.theorem_runs.records import Machine
from tests.front.outputs import MEASURED

NAME = "softmax-ignores-a-constant-in-each-row"


def measured(n: int, error: Number | None, bound: Number | None, status: Status = "held", **more):  # type: ignore[no-untyped-def]
    told = {"implementation": "eager", "sizes": {"n": n, "d": 8}, "sampled": "64 rows", **more}
    told |= {"error": error, "tolerance": bound, "status": status}
    told["reason"] = "no such kernel" if status == "skipped" else ""
    return replace(MEASURED, **told)


def cell(
    tokens: int | None, *found: MeasuredEvidence, name: str = NAME, control: bool = False
) -> CellRecord:
    status: CellStatus = found[0].status
    return CellRecord(
        theorem=name,
        control=control,
        implementation="eager",
        dtype="float32",
        scale="small",
        tokens=tokens,
        distribution="normal",
        seed=0,
        device="cpu",
        status=status,
        reason="",
        ratio=None,
        policy="",
        says="",
        measured=found,
        seconds=0.5,
    )


def record(*cells: CellRecord, name: str = NAME) -> SweepRecord:
    return SweepRecord(
        attnproof="0",
        created=datetime(2026, 1, 1, tzinfo=UTC),
        seconds=1.0,
        machine=Machine.here(),
        engine="loky",
        jobs=1,
        limit=None,
        memory=None,
        expected={name: "proved"},
        cells=cells,
        unusable=(),
        unfinished=0,
        ok=True,
    )


def swept(name: str = NAME) -> SweepRecord:
    """A sweep of one theorem at three numbers of tokens."""
    sizes = (64, 512, 4_096)
    return record(*(cell(n, measured(n, 1e-7 * n, 1e-5), name=name) for n in sizes), name=name)


def test_the_largest_share_of_its_bound_stands_for_the_others() -> None:
    small, worst = measured(64, 1e-6, 1e-3), measured(64, 1e-7, 1e-6, implementation="flash")
    (growth,) = growths(record(cell(64, small), cell(64, worst)))
    assert growth.summary == "Measured to 64 tokens on cpu: float32."
    assert [(p.by, p.error) for p in growth.lines["float32"]] == [("flash", 1e-7)]
    (growth,) = growths(
        record(cell(64, worst), cell(64, measured(64, "non-finite", 1e-3, "non-finite")))
    )
    assert [p.status for p in growth.lines["float32"]] == ["non-finite"]


def test_what_speaks_against_a_statement_is_not_behind_a_larger_share() -> None:
    """A policy may find what the bound of each entry does not."""
    close, found = measured(64, 9e-7, 1e-6), measured(64, 1e-9, 1e-6, "violated")
    for cells in ((close, found), (found, close)):
        (growth,) = growths(record(*(cell(64, one) for one in cells)))
        assert [p.status for p in growth.lines["float32"]] == ["violated"]


def test_each_dtype_is_told_as_far_as_it_was_measured() -> None:
    one, other = (
        Point(64, "held", 1e-7, 1e-6, "", "", 0.1),
        Point(512, "held", 1e-7, 1e-6, "", "", 0.1),
    )
    told = Growth("x", "cpu", {"float32": (one, other), "bfloat16": (one,)}).summary
    assert told == "Measured to 512 tokens on cpu: float32; to 64 tokens on cpu: bfloat16."


def test_fewer_tokens_than_were_asked_for_are_told_as_they_are() -> None:
    (growth,) = growths(record(cell(1_048_576, measured(512, 0.0, 1e-6))))
    assert growth.tokens == (512,)


def test_what_was_skipped_is_no_point() -> None:
    assert growths(record(cell(64, measured(64, None, None, "skipped")))) == []


def test_a_negative_control_is_drawn_by_itself() -> None:
    both = record(
        cell(64, measured(64, 1e-7, 1e-6)),
        cell(64, measured(64, 1.0, 1e-6, "violated"), control=True),
    )
    first, second = growths(both)
    assert (first.about, second.about) == (NAME, NAME + CONTROL)
    assert not first.control
    assert second.control
    assert list(growth_table(second).columns[0].cells) == [""]  # as expected
    drawn = plots_of([both])
    assert "is false, which shows at 1 of 1 points" in drawn[NAME + CONTROL][0].says
    assert "is false" not in drawn[NAME][0].says


def test_a_violation_has_its_sign_in_table_and_page() -> None:
    wrong = record(cell(64, measured(64, 1.0, 1e-6, "violated")))
    (growth,) = growths(wrong)
    assert list(growth_table(growth).columns[0].cells) == ["✗"]
    (plot,) = plots_of([wrong])[NAME]
    assert plot.rows[0][1].startswith("✗ ")


def test_equal_bits_are_told_and_not_drawn() -> None:
    (plot,) = plots_of([record(cell(64, measured(64, 0.0, 0.0)))])[NAME]
    assert (plot.drawn, plot.why_not) == ("", "every error and bound is 0")
    assert plot.rows


@pytest.mark.parametrize("error", ["non-finite", 0.0])
def test_what_a_logarithm_does_not_have_is_left_out(error: Number) -> None:
    (plot,) = plots_of(
        [record(cell(64, measured(64, error, 1e-6)), cell(512, measured(512, 1e-7, 1e-6)))]
    )[NAME]
    assert plot.drawn
    assert "64" in plot.drawn


def test_how_far_a_run_went() -> None:
    class Two:
        evidence = (measured(64, 0.0, 1e-6), measured(512, 0.0, 1e-6, dtype="bfloat16"))

    class Nothing:
        evidence = (measured(64, None, None, "skipped"),)

    assert reach(Two()) == "to n = 512 on cpu in float32, bfloat16"  # type: ignore[arg-type]
    assert not reach(Nothing())  # type: ignore[arg-type]

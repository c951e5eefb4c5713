"""Programs changed in one place: no law that torch finds false of one is proved of it."""

from __future__ import annotations

import logging
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnproof.programs.finding import Finding
from attnproof.verdict_line import Condition
from benchmarks import false_programs, reference_programs
from benchmarks.false_programs import broken_at, changed, judged, outside
from benchmarks.reference_programs import REFERENCES, Reference

COUNT, PARTS = 200, 8
PROOF = 0.5  # seconds


@pytest.mark.parametrize("part", range(PARTS))
def test_no_law_that_torch_finds_false_is_proved(
    part: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="torch.__trace")  # what torch writes of its graphs
    false = 0
    for k, program in enumerate(islice(changed(seed=11), part, None, PARTS)):
        said = judged(program, tmp_path, f"program_{part}_{k}", most=1, seconds=PROOF)
        if isinstance(said, str):
            continue
        assert not [str(one) for one in said if one.verdict == "holds"]
        false += 1
        if false == COUNT // PARTS:
            break
    assert false == COUNT // PARTS


def test_a_prover_that_believes_all_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believes(_: object, laws: list[str], **__: object) -> SimpleNamespace:
        where = (Condition("B, T ≥ 2", "for"),)
        found = [Finding(law, "traced", "holds", "", assuming=where) for law in laws]
        return SimpleNamespace(findings=found)

    monkeypatch.setattr(false_programs, "prove", believes)
    asked = (judged(one, tmp_path, f"program_{k}") for k, one in enumerate(changed(seed=11)))
    said = next(found for found in asked if not isinstance(found, str))
    assert {one.verdict for one in said} == {"holds"}


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one.name)
def test_the_references_obey_their_laws(reference: Reference) -> None:
    code = getattr(reference_programs, reference.name)
    assert broken_at(code, reference, false_programs.TRIED) == {}


def test_a_condition_excludes_the_lengths_that_it_names() -> None:
    at = {"B": 2, "T": 5}
    excluded = [t for t in ("T ≤ B + 3", "T ≤ B + 2", "B, T ≥ 3", "T mod 4 ≠ 1", "T = 5", "E = 9")
                if outside(t, at)]  # fmt: skip
    assert excluded == ["T ≤ B + 2", "B, T ≥ 3", "T mod 4 ≠ 1"]

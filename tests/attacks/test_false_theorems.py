"""False statements that once came out proved, and what they have in common with others."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from attnproof.numeric.file_imports import ids_in
from attnproof.symbolic.claim import equal
from attnproof.symbolic.decision import ClaimDecision, Decision
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.checking import Options, check
from attnproof.theorem_runs.records import BrokenFile
from benchmarks import false_statements
from benchmarks.false_statements import judged, mutated

FALSE = Path(__file__).parent / "false_theorems.py"
COUNT, PARTS = 30, 2  # for each part, no two of one kind in one file


@pytest.mark.parametrize("name", ids_in(FALSE, "theorem"))
def test_a_false_statement_is_not_proved(name: str) -> None:
    (entry,) = load_catalogue((FALSE,)).only(name).entries
    record = check(entry.theorem, entry.source, Options(numeric=False))
    assert isinstance(record, BrokenFile) or (record.verdict != "proved" and not record.ok)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_mutant_that_numpy_finds_false_is_proved(part: int) -> None:
    seen: set[tuple[Path, str]] = set()
    for path, mutant in islice(mutated(seed=7), part, None, PARTS):
        if (path, mutant.kind) in seen:
            continue
        verdict = judged(path, mutant)
        assert not (verdict.false and verdict.outcome == "proved"), str(verdict)
        if verdict.false:
            seen.add((path, mutant.kind))
        if len(seen) == COUNT:
            break
    assert len(seen) == COUNT


def test_a_prover_that_believes_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack can succeed: it finds what a careless prover lets through."""
    proved = Decision((ClaimDecision("", equal(1, 1), "proved"),))
    monkeypatch.setattr(false_statements, "decide", lambda *_, **__: proved)
    found = (judged(path, mutant) for path, mutant in mutated(seed=7))
    caught = next(verdict for verdict in found if verdict.false)
    assert caught.outcome == "proved"

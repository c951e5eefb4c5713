"""False encodings: those that once came out proved, and mutants that numpy finds broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnproof.cards.records import CellRecord, TableRecord
from attnproof.cli import main
from benchmarks import false_encodings
from benchmarks.false_encodings import changed, judged, mutated

FALSE = str(Path(__file__).parent / "false_encodings.py")
COUNT = 60
ONCE_PROVED = [
    ("loop", "falls-with-distance"),
    ("bucket", "continuous"),
    ("absolute", "relative"),
    ("stops", "relative"),
    ("counted", "relative"),
    ("classed", "relative"),
    ("made", "relative"),
    ("typed", "relative"),
    ("generated", "relative"),
]


@pytest.mark.parametrize(("name", "law"), ONCE_PROVED)
def test_a_law_that_does_not_hold_is_not_proved(name: str, law: str, tmp_path: Path) -> None:
    out = tmp_path / "card.json"
    code = main(["card", name, "--encoding", FALSE, "--law", law, "--json", str(out)])
    assert code == 1
    if out.exists():
        cells = TableRecord.model_validate_json(out.read_text(encoding="utf-8")).cells
        assert "proved" not in [cell.verdict for cell in cells]


def test_no_law_of_a_mutant_that_numpy_finds_broken_is_proved() -> None:
    broken: set[tuple[tuple[str, ...], str, str]] = set()  # no two of one kind in one class
    for path, mutant in mutated(seed=7):
        whose = tuple(changed(path, mutant.source))
        if any((whose, mutant.kind) == (of, kind) for of, kind, _ in broken):
            continue
        for verdict in judged(path, mutant):
            assert verdict.outcome != "proved", str(verdict)
            broken.add((whose, mutant.kind, verdict.law))
        if len(broken) >= COUNT:
            break
    assert len(broken) >= COUNT


def test_a_card_that_believes_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack can succeed: it finds what a careless card lets through."""

    def proved(kind: type, law: object, **_: object) -> CellRecord:
        del kind, law
        return CellRecord(encoding="any", law="any", verdict="proved", why="", seconds=0.0)

    monkeypatch.setattr(false_encodings, "decided", proved)
    found = (v for path, mutant in mutated(seed=7) for v in judged(path, mutant))
    assert next(found).outcome == "proved"

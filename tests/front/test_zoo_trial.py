"""The page of the trial counts what was called, how, what broke and who judged it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attnproof.real_code.forking import ForkServer
from benchmarks.zoo import results, trial
from benchmarks.zoo.judging import Judged, judgements
from benchmarks.zoo.results import read, write
from benchmarks.zoo.trial import Target, page, run, targets
from tests.front.zoo_runs import here, run_here

CODE = """
import torch

def causal_mask(n):
    return torch.ones(n, n).tril() > 0

def placed(x, how):
    x += 1.0
    return x if how == "in place" else None
"""
LINE = "--as layer --call 'x: B n E, how = \"in place\" -> B n E' --law no-mutation"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Any:
    """A trial of three targets: found, called with a line, refused; known, head and rows."""
    out = tmp_path_factory.mktemp("trial")
    (out / "code.py").write_text(CODE, encoding="utf-8")
    name = f"{out / 'code.py'}::"
    known = (
        Target(target=f"{name}causal_mask", library="torch", source="causal, True is visible"),
        Target(target=f"{name}placed", library="torch", source="it adds 1 in place", line=LINE),
        Target(target=f"{name}nothing", library="numpy", source="there is no such name"),
    )
    with run_here(fork_server):
        run(known, out, seconds=120)
    return (known, *read(out / "trial.json"))


def test_a_target_is_called_by_its_name_or_its_line_or_not(ran: Any) -> None:
    known, _, rows = ran
    assert [rows[one.target]["called"] for one in known] == ["bare", LINE, ""]
    assert rows[known[1].target]["laws"]["broken"] == ["no-mutation"]
    assert "nothing" in rows[known[2].target]["why"]


def test_the_page_counts_ways_laws_and_judgements(ran: Any) -> None:
    known, told, rows = ran
    text = page(told, rows, known, ())
    assert "3 targets of 2 libraries. Called: 2 (1 by the bare name, 1 with a line, 0 with" in text
    assert "1 refused." in text
    assert "Broken: 1 not looked at. Proved, but false: 0." in text
    said = (
        Judged(
            law="no-mutation", judgement="false alarm", reason="It is said so.", library="torch"
        ),
    )
    assert "Broken: 1 false alarm." in page(told, rows, known, said)


def test_a_wrong_proof_and_a_call_that_is_not_the_codes_are_counted(ran: Any) -> None:
    known, told, rows = ran
    told_of = {"misread": "it is not a mask", "wrong": ("causal",), "missed": "its zeros"}
    first = Target(**{**vars(known[0]), **told_of})
    text = page(told, rows, (first, *known[1:]), ())
    assert "Called: 1 (0 by the bare name, 1 with a line, 0 with a line after a wrong call" in text
    assert "1 called wrongly" in text
    assert "Proved, but false: 1." in text
    assert ": it is not a mask" in text
    assert f"## Missed, or described wrongly\n\n- `{first.target}`: its zeros" in text


def test_a_call_that_is_not_the_codes_is_corrected_by_the_line_and_both_runs_count(
    ran: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, told, rows = ran
    processes: Any = iter((subprocess.run, here))  # one in its own process, and no third

    def run_next(command: list[str], **more: Any) -> Any:
        return next(processes)(command, **more)

    monkeypatch.setattr(results, "subprocess", SimpleNamespace(run=run_next))
    write(tmp_path / "trial.json", told, rows)
    line = "--as layer --call 'x: B n E, how = \"not\" -> B n E' --law no-mutation"
    mask = Target(**{**vars(known[0]), "misread": "it is not a mask", "line": "--law causal"})
    layer = Target(**{**vars(known[1]), "misread": "it is not a layer", "line": line})
    again = (mask, layer, known[2])
    run(again, tmp_path, seconds=120)
    found = read(tmp_path / "trial.json")[1]
    assert found[mask.target]["corrected"]["called"] == "--law causal"
    assert found[layer.target]["corrected"]["called"] == ""  # the line is refused
    text = page(told, found, again, ())
    assert "Called: 1 (0 by the bare name, 0 with a line, 1 with a line after" in text
    assert "it is not a mask; with its line: called correctly" in text
    assert "it is not a layer; refused with its line" in text
    still = (Target(**{**vars(mask), "still": "it is none"}), *again[1:])
    assert "Called: 0 (0 by the bare name, 0 with a line, 0 with" in page(told, found, still, ())
    run(again, tmp_path, seconds=120)  # nothing is run twice
    assert read(tmp_path / "trial.json")[1] == found


def test_the_list_has_each_target_once_with_its_source() -> None:
    known = targets()
    assert len({one.target for one in known}) == len(known) >= 60
    assert len({one.library for one in known}) >= 8
    assert all(one.source for one in known)


def test_the_page_is_made_of_the_results() -> None:
    folder = Path(trial.__file__).parents[2] / "docs/zoo"
    made = page(*read(folder / "trial.json"), targets(), judgements())
    assert (folder / "trial.md").read_text(encoding="utf-8") == made

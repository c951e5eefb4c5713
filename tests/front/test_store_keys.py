"""Keys of the store: whatever can change a result changes its key, and nothing else does."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnproof.catalogue import load_catalogue
from attnproof.checking import Options
from attnproof.sweeping import digests, kept
from attnproof.sweeping.digests import digest_of, sources, statement_digest
from attnproof.sweeping.kept import Code, theorem_key
from tests.front.stored import PLAIN, WriteTheorem


def test_what_can_change_a_result_counts_and_nothing_else() -> None:
    names = {path.relative_to(digests.PACKAGE).as_posix() for path in sources()}
    wanted = {
        "checking.py",
        "judgement.py",
        "translate.py",
        "symbolic/kernel.py",
        "numeric/run.py",
        "numeric/implementations/eager.py",
        "theorems/definitions/attention.py",
        "numeric/residues/exact.py",
        "sweeping/work.py",
        "evidence.py",
        "demonstrations.py",
    }
    assert wanted <= names
    assert not {"cli.py", "terminal.py", "progress.py", "runner.py"} & names
    assert not {"theorems/softmax.py", "theorems/sinusoidal/shifts.py"} & names
    assert not any("__pycache__" in name for name in names)


def test_the_digest_of_a_statement_is_the_same_in_every_process(root: Path) -> None:
    code = (
        "from attnproof.catalogue import load_catalogue\n"
        "from attnproof.sweeping.digests import statement_digest\n"
        "c = load_catalogue().select({names!r})\n"
        "print(*(statement_digest(s) for e in c.entries[::{step}] for s in e.statements))"
    )
    found = []
    for seed, step in (("1", 1), ("2", -1)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(names=["softmax", "positions"], step=step)],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.split())
    assert len(found[0]) == len(set(found[0]))
    assert sorted(found[0]) == sorted(found[1])


def test_what_has_no_digest_is_refused() -> None:
    (entry,) = load_catalogue().only("softmax-commutes-with-permutations").entries
    statement = entry.theorem.statement
    assert statement_digest(statement) != statement_digest(entry.theorem.control)
    said = replace(statement.claims[""], says=lambda: 0)  # type: ignore[arg-type]
    strange = replace(statement, claims={"": said})
    with pytest.raises(TypeError, match="holds a function, which has no digest"):
        statement_digest(strange)


def test_nothing_is_taken_that_was_made_otherwise(
    write_theorem: WriteTheorem, true_theorem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_theorem("first")
    catalogue = load_catalogue([path]).select(["mine"])
    (entry,) = catalogue.entries
    found = [theorem_key(entry, PLAIN)[0].digest]

    def another() -> None:
        digest = theorem_key(entry, options)[0].digest
        assert digest not in found
        found.append(digest)

    options = Options()
    another()
    for change in ({"seed": 1}, {"scale": "small"}, {"dtypes": ("float16",)}):
        options = replace(Options(), **change)
        another()
    options = PLAIN
    path.write_text(f"{true_theorem}# a remark\n", encoding="utf-8")
    another()
    write_theorem("first", true_theorem.replace("x + y, y + x", "x + y, x + y"))
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    another()
    monkeypatch.setattr(kept, "source_digest", lambda _: "the same")
    another()
    write_theorem("first", true_theorem)
    (entry,) = load_catalogue([path]).select(["mine"]).entries
    another()
    monkeypatch.setattr(kept, "versions", lambda: {"torch": "another"})
    another()
    monkeypatch.setattr(kept, "code", lambda: Code("another", ()))
    another()
    monkeypatch.setattr(kept, "calibration", lambda _: "another")
    monkeypatch.setattr(kept, "device_name", lambda _: "another")
    options = Options()
    another()


def test_another_calibration_is_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    from attnproof.numeric.calibration import store as in_force

    found = digests.calibration("cpu")
    known = in_force.calibration_of(torch.device("cpu"))
    worse = known.constants[0].model_copy(update={"function_error": 99.0})
    other = known.model_copy(update={"constants": (worse, *known.constants[1:])})
    monkeypatch.setattr(in_force, "calibration_of", lambda _: other)
    assert digests.calibration("cpu") != found
    later = known.model_copy(update={"seconds": known.seconds + 1})
    monkeypatch.setattr(in_force, "calibration_of", lambda _: later)
    assert digests.calibration("cpu") == found


def test_the_number_of_processes_changes_no_key(write_theorem: WriteTheorem) -> None:
    (entry,) = load_catalogue([write_theorem("first")]).select(["mine"]).entries
    assert theorem_key(entry, PLAIN)[0] == theorem_key(entry, replace(PLAIN, jobs=2))[0]
    assert theorem_key(entry, PLAIN)[0] == theorem_key(entry, replace(PLAIN, seed=2))[0]


def test_keys_tell_all_they_were_made_of(write_theorem: WriteTheorem) -> None:
    (entry,) = load_catalogue([write_theorem("first")]).select(["mine"]).entries
    told = json.loads(theorem_key(entry, Options())[0].identity)
    assert told["versions"]["torch"]
    assert told["device"]
    assert digest_of(told) != digest_of({**told, "id": "second"})

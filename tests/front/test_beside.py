"""Laws are proved in a process beside the other methods, and a listener hears no difference."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnproof.real_code.collecting import Collected
from attnproof.real_code.forking import Beside, is_possible
from attnproof.real_code.records import CodeRecord
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.running import Child, Limits, Stopped, run

CODE = """
import ctypes, os, sys, time
import torch

if "ONE" in os.environ:
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])

def traced():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("exporting.py"):
            return True
        frame = frame.f_back
    return False

def rotated(x, position_ids, then=lambda: None):
    if traced():
        then()
    k = torch.arange(x.shape[-1] // 2)
    angle = position_ids[..., None] * 10000.0 ** (-2 * k / x.shape[-1])
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

def exits(x, position_ids):
    return rotated(x, position_ids, lambda: os._exit(7))

def sleeps(x, position_ids):
    return rotated(x, position_ids, lambda: time.sleep(1000))

def sign(name):
    with open(f"{__file__}.{name}", "a") as file:
        print(os.getpid(), file=file)

def signs(x, position_ids):
    def then():
        print("a line\\nand another")
        sys.path.insert(0, os.path.dirname(__file__))
        import loaded_late
    sign(traced())
    return rotated(x, position_ids, then)

class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inward = torch.nn.Linear(8, 24)

    def then(self):
        pass

    def forward(self, x, key_padding_mask=None):
        q, k, v = self.inward(x).chunk(3, -1)
        scores = q @ k.mT / 8**0.5
        if traced():
            sign("plain" if key_padding_mask is None else "masked")
        if key_padding_mask is not None:
            if traced():
                self.then()
            scores = scores.masked_fill(key_padding_mask[:, None], float("-inf"))
        return scores.softmax(-1) @ v

def endless(x):
    while x.shape[:2] == (5, 5):  # it is watched with as many first
        pass
    return x.cumsum(1)

class MaskedCrashes(Masked):
    def then(self):
        ctypes.string_at(0)
"""
LAWS = {
    "rotary": ("norm", "linear"),
    "attention": ("permutation", "hidden-keys-do-nothing", "no-mutation"),
    "layer": ("rows-of-batch-apart", "no-mutation"),
}
KINDS = {"Masked": "attention", "MaskedCrashes": "attention", "endless": "layer"}
PARTS = {"signs": ("True", "False"), "Masked": ("plain", "masked")}  # traced or run; masks
needs_two = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs two processors"
)


@dataclass(frozen=True)
class Heard:
    """What is heard of a function, where it was at each event, and by name who signed."""

    found: Collected
    stopped: Stopped | None
    at: list[Any]
    signed: dict[str, set[str]]


def heard(folder: Path, name: str, limits: Limits | None = None) -> Heard:
    file = folder / "code_under_test.py"
    file.write_text(CODE, encoding="utf-8")
    (folder / "loaded_late.py").write_text("LATE = True\n", encoding="utf-8")
    kind = KINDS.get(name, "rotary")
    asked = CodeRequest(target=f"{file}::{name}", kind=kind, laws=LAWS[kind])
    found, at = Collected(asked), []
    stopped, _ = run(
        found,
        limits or Limits(),
        lambda told, event: at.append((event["event"], *told.at)),
        Child(asked),
    )
    signed = {
        signature.suffix[1:]: {*signature.read_text(encoding="utf-8").split()}
        for signature in folder.glob(f"{file.name}.*")
    }
    for name in signed:
        Path(f"{file}.{name}").unlink()
    return Heard(found, stopped, at, signed)


def without_seconds(record: CodeRecord) -> Any:
    def cut(told: Any) -> Any:
        if isinstance(told, dict):
            return {name: cut(value) for name, value in told.items() if name != "seconds"}
        return [cut(one) for one in told] if isinstance(told, list) else told

    return cut(record.model_dump(mode="json"))


@needs_two
@pytest.mark.parametrize("name", ["signs", "exits", "Masked", "MaskedCrashes"])
def test_the_record_and_the_order_of_events_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    two = heard(tmp_path, name)
    monkeypatch.setenv("ONE", "1")
    one = heard(tmp_path, name)
    assert one.stopped == two.stopped
    assert [at for at in one.at if at[0] not in ("files", "printed")] == [
        at for at in two.at if at[0] not in ("files", "printed")
    ]
    assert without_seconds(one.found.record(1.0)) == without_seconds(two.found.record(1.0))
    assert one.found.files == two.found.files
    assert one.found.printed == two.found.printed
    assert one.found.first_printed == two.found.first_printed
    # Each of them does something of its own: with nothing there, nothing would be compared.
    assert (
        ("traced", "holds") in {(f.method, f.verdict) for f in two.found.findings}
        or two.found.cut
        or (any(method.why for method in two.found.methods))
    )
    assert (two.found.printed > 0) == (name == "signs")
    assert any(file.endswith("loaded_late.py") for file in two.found.files) == (name == "signs")
    if name in PARTS:  # each has a process of its own, unless there is one processor
        first, second = PARTS[name]
        assert two.signed[first] != two.signed[second]
        assert one.signed[first] == one.signed[second]
    if name == "Masked":
        assert {law.verdict for law in two.found.record(1.0).laws} == {"proved", "measured"}


@needs_two
def test_a_proof_that_never_ends_is_stopped_at_its_line(tmp_path: Path) -> None:
    run = heard(tmp_path, "sleeps", Limits(law=2.0))
    assert run.stopped is None
    (traced,) = [method for method in run.found.methods if method.method == "traced"]
    assert traced.why.startswith("it had not ended after 2 s, at ")
    assert "code_under_test.py:" in traced.why
    assert "in <lambda>" in traced.why
    assert {one.verdict for one in run.found.findings if one.method == "exact"} == {"holds"}


@needs_two
def test_code_that_does_not_end_where_it_is_watched_keeps_its_other_findings(
    tmp_path: Path,
) -> None:
    run = heard(tmp_path, "endless", Limits(law=2.0))
    assert run.stopped is None
    known = {(one.law, one.method): one.verdict for one in run.found.findings}
    assert known["rows-of-batch-apart", "measured"] == "undecided"
    assert known["rows-of-batch-apart", "exact"] == "holds"
    assert known["no-mutation", "measured"] == "holds"


def test_nothing_is_forked_beside_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.active_count", lambda: 3)
    assert not is_possible()


@needs_two
def test_a_fork_made_by_the_code_reports_nothing() -> None:
    def forking(tell: Any) -> None:
        if os.fork():
            os.wait()
            tell({"event": "found", "finding": {}})
        else:
            tell({"event": "found", "finding": {}})

    assert list(Beside(forking).events()) == [{"event": "found", "finding": {}}]

"""Laws are proved in a process beside the other methods, and a listener hears no difference."""

from __future__ import annotations

import os
import sys
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

def plain(x, position_ids):
    return rotated(x, position_ids)

def crashes(x, position_ids):
    return rotated(x, position_ids, lambda: ctypes.string_at(0))

def exits(x, position_ids):
    return rotated(x, position_ids, lambda: os._exit(7))

def sleeps(x, position_ids):
    return rotated(x, position_ids, lambda: time.sleep(1000))

def sign(name):
    with open(f"{__file__}.{name}", "a") as file:
        print(os.getpid(), file=file)

def signs(x, position_ids):
    sign(traced())
    return rotated(x, position_ids)

def speaks(x, position_ids):
    return rotated(x, position_ids, lambda: print("a line\\nand another"))

def loads(x, position_ids):
    def load():
        sys.path.insert(0, os.path.dirname(__file__))
        import loaded_late
    return rotated(x, position_ids, load)

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
needs_two = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs two processors"
)


def heard(
    folder: Path, name: str, limits: Limits | None = None
) -> tuple[Collected, Stopped | None, list[Any]]:
    """What is heard of a function, and where it was at each event."""
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
    return found, stopped, at


def without_seconds(record: CodeRecord) -> Any:
    def cut(told: Any) -> Any:
        if isinstance(told, dict):
            return {name: cut(value) for name, value in told.items() if name != "seconds"}
        return [cut(one) for one in told] if isinstance(told, list) else told

    return cut(record.model_dump(mode="json"))


@needs_two
@pytest.mark.parametrize(
    "name", ["plain", "crashes", "exits", "speaks", "loads", "Masked", "MaskedCrashes"]
)
def test_the_record_and_the_order_of_events_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    two, stopped_two, at_two = heard(tmp_path, name)
    monkeypatch.setenv("ONE", "1")
    one, stopped_one, at_one = heard(tmp_path, name)
    assert stopped_one == stopped_two
    assert [at for at in at_one if at[0] not in ("files", "printed")] == [
        at for at in at_two if at[0] not in ("files", "printed")
    ]
    assert without_seconds(one.record(1.0)) == without_seconds(two.record(1.0))
    assert one.files == two.files
    assert (one.printed, one.first_printed) == (two.printed, two.first_printed)
    # Each of them does something of its own: with nothing there, nothing would be compared.
    assert (
        ("traced", "holds") in {(f.method, f.verdict) for f in two.findings}
        or two.cut
        or (any(method.why for method in two.methods))
    )
    assert (two.printed > 0) == (name == "speaks")
    assert any(file.endswith("loaded_late.py") for file in two.files) == (name == "loads")


@needs_two
def test_a_proof_that_never_ends_is_stopped_at_its_line(tmp_path: Path) -> None:
    found, stopped, _ = heard(tmp_path, "sleeps", Limits(law=3.0))
    assert stopped is None
    (traced,) = [method for method in found.methods if method.method == "traced"]
    assert traced.why.startswith("it had not ended after 3 s, at ")
    assert "code_under_test.py:" in traced.why
    assert "in <lambda>" in traced.why
    assert {one.verdict for one in found.findings if one.method == "exact"} == {"holds"}


@needs_two
def test_code_that_does_not_end_where_it_is_watched_keeps_its_other_findings(
    tmp_path: Path,
) -> None:
    found, stopped, _ = heard(tmp_path, "endless", Limits(law=3.0))
    assert stopped is None
    known = {(one.law, one.method): one.verdict for one in found.findings}
    assert known["rows-of-batch-apart", "measured"] == "undecided"
    assert known["rows-of-batch-apart", "exact"] == "holds"
    assert known["no-mutation", "measured"] == "holds"


@needs_two
@pytest.mark.parametrize("one", [False, True])
def test_one_processor_is_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, one: bool
) -> None:
    if one:
        monkeypatch.setenv("ONE", "1")
    heard(tmp_path, "signs")
    traced, ran = (signed(tmp_path, name) for name in ("True", "False"))
    assert (traced == ran) == one


@needs_two
@pytest.mark.parametrize("one", [False, True])
def test_each_part_of_a_proof_has_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, one: bool
) -> None:
    if one:
        monkeypatch.setenv("ONE", "1")
    found, _, _ = heard(tmp_path, "Masked")
    plain, masked = (signed(tmp_path, name) for name in ("plain", "masked"))
    assert (plain == masked) == one
    assert {law.verdict for law in found.record(1.0).laws} == {"proved", "measured"}


def signed(folder: Path, name: str) -> set[str]:
    """The processes that signed under a name."""
    return set((folder / f"code_under_test.py.{name}").read_text(encoding="utf-8").split())


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

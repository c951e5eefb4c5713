"""``attnproof check`` and ``identify``: code runs in a process of its own, whatever it does."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from attnproof.cli import main
from attnproof.real_code import running
from attnproof.real_code.collecting import Collected
from attnproof.real_code.page_text import exit_code, stop_text
from attnproof.real_code.records import CodeRecord, CodesRecord
from attnproof.real_code.request import CodeRequest
from attnproof.real_code.running import Child, Limits, Stopped, run
from tests.front.code_files import CODE, write_code
from tests.front.outputs import python
from tests.front.test_code_combined import found

LIMITS = Limits()
JUNK = "import os\nfor fd in range(3, 20):\n try: os.write(fd, b'junk\\n')\n except OSError: pass"


def ran(
    folder: Path,
    name: str,
    limits: Limits = LIMITS,
    *,
    text: str = CODE,
    methods: tuple[str, ...] = ("measured",),
    laws: tuple[str, ...] = ("norm", "linear"),
    hears: Callable[[str], None] = lambda _: None,
) -> tuple[CodeRecord, Stopped | None, str]:
    """The record of rotary code of the file; ``hears`` is told of each event."""
    file = write_code(folder, text)
    asked = CodeRequest(target=f"{file}::{name}", kind="rotary", laws=laws, methods=methods)
    heard = Collected(asked)
    stopped, said = run(heard, limits, lambda _, event: hears(event["event"]), Child(asked))
    return heard.record(1.0, stopped=stop_text(heard, stopped) if stopped else ""), stopped, said


def test_good_code_holds_and_bad_code_breaks(tmp_path: Path) -> None:
    file = write_code(tmp_path)
    out = tmp_path / "found.json"
    targets = [f"{file}::rope", f"{file}::rope_sign", f"{file}::no", f"{file}::number"]
    assert main(["check", *targets, "--as", "rotary", "--law", "norm", "--json", str(out)]) == 2
    good, bad, *refused = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert good.ok
    assert good.law("norm").verdict in ("proved", "exact", "measured")
    assert [method.method for method in good.methods] == ["measured", "identity", "traced", "exact"]
    assert [method.why for method in good.methods] == [""] * 4
    assert good.identity is not None
    assert good.identity.kind == "rotary"
    assert good.torch
    assert bad.law("norm").verdict == "broken"
    asked = [
        [one.why for one in code.law("norm").findings if one.method == "exact"]
        for code in (good, bad)
    ]
    assert asked[0] == ["it is proved of the same code, and holds where it was measured"]
    assert "differ" in asked[1][0]  # what is not proved is asked
    shown = bad.law("norm").shown
    assert shown is not None
    assert shown.witness is not None
    assert [one.why.partition(";")[0][:10] for one in refused] == ["there is n", "wanted a f"]


def test_the_line_that_shows_it_again_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_code(tmp_path)
    asked = ["check", f"{file}::rope_sign", "--as", "rotary", "--law", "norm", "--seed", "3"]
    assert main(asked) == 1
    told = capsys.readouterr().out
    (again,) = [line for line in told.splitlines() if "again: " in line]
    assert again.split("again: attnproof ")[1].split() == asked


@pytest.mark.usefixtures("spawned")
def test_identify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    target = f"{write_code(tmp_path)}::rope"
    assert main(["identify", target, "--as", "rotary", "--json", str(out)]) == 0
    told = capsys.readouterr().out
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert one.laws == ()
    assert one.identity is not None
    assert one.identity.sentence.split(",")[0] in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rope_forever", "it had not ended after 2 s"),
        ("rope_exits", "its process ended with exit code 7, as os._exit would end it"),
        ("rope_crashes", "it crashed with SIGSEGV"),
    ],
)
def test_code_that_never_ends_or_dies_is_stopped_and_the_rest_is_kept(
    tmp_path: Path, name: str, told: str
) -> None:
    """It is bad once something was found: that is kept."""
    mark = tmp_path / "late"
    text = CODE.replace('"LATE" in os.environ', f"os.path.exists({str(mark)!r})")
    start = time.monotonic()
    record, stopped, said = ran(
        tmp_path,
        name,
        Limits(law=2.0 if "after" in told else 60.0),
        text=text,
        laws=(),
        hears=lambda event: mark.touch() if event == "found" else None,
    )
    assert time.monotonic() - start < 120
    assert stopped is not None
    assert stopped.why == told
    assert "code_under_test.py" in stopped.line or name == "rope_exits"
    assert said.splitlines()[-1] == "the file is read"
    (at,) = [law for law in record.laws if law.why.startswith(told)]
    assert at.verdict == "undecided"
    assert f"while the law {at.law} was being checked (by running it): {told}" in record.stopped
    assert "measured" in {law.verdict for law in record.laws}
    assert at.law not in record.unfinished
    assert not record.ok
    assert exit_code(record) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("while True: pass", "it had not ended after 1 s"),
        ("import time; time.sleep(1000)", "it had not ended after 1 s"),
        ("import os; os._exit(5)", "its process ended with exit code 5"),
        ("import ctypes; ctypes.string_at(0)", "it crashed with SIGSEGV"),
        ("import sys; sys.exit(5)", "cannot be imported: SystemExit: it leaves by sys.exit(5)"),
        (JUNK, "its output cannot be read: b'junk"),
        ("raise KeyboardInterrupt", "the code raised KeyboardInterrupt"),
    ],
)
def test_a_file_that_does_so_at_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file = write_code(tmp_path, text)
    assert main(["check", f"{file}::f", "--limit", "1"]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert told in shown
    assert "being imported" in shown or "cannot be run" in shown


@pytest.mark.parametrize(
    ("name", "told"),
    [("takes_nothing_known", "no adapter fits takes_nothing_known"), ("rope_raises", "NVIDIA")],
)
def test_code_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    file = write_code(tmp_path)
    assert main(["check", f"{file}::{name}", "--law", "norm"]) == 2
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["rope_shape", "rope_nan", "rope_mutates", "rope_leaves"])
def test_code_that_does_another_thing_is_never_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("LATE", "1")
    record, stopped, _ = ran(tmp_path, name, laws=("norm", "no-mutation"))
    assert stopped is None
    assert not record.ok


@pytest.mark.usefixtures("spawned")
def test_what_code_prints_is_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATE", "1")
    record, stopped, said = ran(tmp_path, "rope_prints")
    assert stopped is None
    assert record.ok
    assert "a line of the code" in said


SLOW = (
    CODE
    + """
def rope_slow(x, position_ids):
    frame = sys._getframe()
    while frame is not None:  # only where this law is asked
        if frame.f_code.co_name == "rotated_linear":
            time.sleep(100)
        frame = frame.f_back
    return rope(x, position_ids)
"""
)


def test_a_law_that_never_ends_holds_back_no_other(tmp_path: Path) -> None:
    """It alone is undecided, and says why."""
    laws = ("norm", "linear", "no-mutation")
    record, stopped, _ = ran(tmp_path, "rope_slow", Limits(law=2.0), text=SLOW, laws=laws)
    assert stopped is None
    verdicts = {law.law: law.verdict for law in record.laws}
    assert verdicts == {"norm": "measured", "linear": "undecided", "no-mutation": "measured"}
    why = record.law("linear").why
    assert why.startswith("it had not ended after 2 s, at ")
    assert [method.why for method in record.methods] == [
        f"linear: {why}"
    ]  # such a record is not kept
    assert not record.unfinished
    assert not record.ok
    assert exit_code(record) == 0


LOST = Stopped("it crashed with SIGSEGV")
SCRIPTS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    # what each process in turn ends at, of the laws that hold; who is undecided; and why it stopped
    ("norm linear! no-mutation", "linear", ("measured", "exact"), ""),
    ("linear! norm! composition! no-mutation", "linear norm composition", (), LOST.why),
    (
        "linear! norm! no-mutation composition!",
        "linear norm composition",
        ("measured", "exact"),
        "",
    ),
    ("norm linear! refused", "linear", (), LOST.why),
    ("norm linear! import!", "linear", (), LOST.why),
    ("norm! linear! composition! no-mutation!", "norm linear composition", (), LOST.why),
)


@pytest.mark.parametrize(("script", "undecided", "methods", "why"), SCRIPTS)
def test_where_laws_are_lost(
    monkeypatch: pytest.MonkeyPatch, script: str, undecided: str, methods: tuple[str, ...], why: str
) -> None:
    """A law that was lost is not asked again; three in a row, or a lost start, end it."""
    left = script.split()
    begun: list[CodeRequest] = []

    class Scripted:
        start = None

        def __init__(self, asked: CodeRequest, start: object = None) -> None:
            del start
            begun.append(asked)

        def kill(self) -> None: ...

        def printed(self) -> list[str]:
            return []

    def listen(_: object, heard: Collected, *__: object) -> Stopped | None:
        while left:
            law = left.pop(0)
            if law == "refused":
                heard.receive({"event": "refused", "why": "the file is gone"})
                return None
            if law == "import!":
                return LOST
            heard.receive({"event": "begins", "method": "measured", "law": law.strip("!")})
            if law.endswith("!"):
                return LOST
            one = found("measured", "holds", law=law)
            heard.receive({"event": "found", "finding": one.model_dump()})
        for method in begun[-1].methods:
            heard.receive({"event": "method", "method": method, "why": "", "seconds": 0.0})
        return None

    monkeypatch.setattr(running, "Child", Scripted)
    monkeypatch.setattr(running, "_listen", listen)
    laws = ("norm", "linear", "composition", "no-mutation")
    heard = Collected(CodeRequest(target="a.py::f", laws=laws, methods=("measured", "exact")))
    heard.receive({"event": "adapted", "name": "f", "kind": "rotary", "adapted": "", "file": ""})
    stopped, _ = run(heard, LIMITS, lambda *_: None, Scripted(heard.asked))  # type: ignore[arg-type]
    assert (stopped.why if stopped else "") == why
    lost = [one.law for one in heard.findings if one.verdict == "undecided"]
    assert lost == undecided.split()
    assert [method.method for method in heard.methods] == list(methods)
    assert all(
        {(law, "measured", "undecided") for law in lost[:n]} <= set(asked.known)
        for n, asked in enumerate(begun)
    )


def test_why_a_law_did_not_finish_is_told_once() -> None:
    heard = Collected(CodeRequest(target="a.py::f", laws=("norm",), methods=("measured",)))
    heard.receive({"event": "adapted", "name": "f", "kind": "rotary", "adapted": "", "file": ""})
    heard.receive({"event": "begins", "method": "measured", "law": "norm"})
    heard.lost("it had not ended")
    for _ in range(2):
        heard.receive({"event": "method", "method": "measured", "why": "", "seconds": 0.0})
    assert [one.why for one in heard.methods] == ["norm: it had not ended", ""]


def test_a_method_that_crashes_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    """Code that dies on numbers of a finite field still has its proofs."""
    text = CODE + (
        "\ndef rope_picky(x, position_ids):\n"
        "    if type(x) is not torch.Tensor:\n        os._exit(9)\n"
        "    return rope(x, position_ids)\n"
    )
    record, stopped, _ = ran(
        tmp_path, "rope_picky", text=text, methods=("measured", "exact", "traced"), laws=("norm",)
    )
    assert stopped is None
    why = {method.method: method.why for method in record.methods}
    assert why["exact"].startswith("norm: its process ended with exit code 9")
    assert set(why) == {"measured", "exact", "traced"}
    assert record.law("norm").verdict in ("measured", "proved")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--law", "nrom"], "wanted the id of a law of code, got 'nrom'; nearest: norm"),
        (["--declare", "rop:base=1"], "a declaration begins with one of rope"),
        (["--device", "abacus"], "'abacus', which is not one"),
        (["--dtype", "int8"], "int8"),
        (["--as", "encoder"], "encoder"),
        (["--limit", "0"], "0"),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    assert main(["check", "rope.py::f", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_former_id_of_a_law_is_taken_for_the_present_one_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"{write_code(tmp_path)}::rope"
    assert main(["check", target, "--law", "inputs-stay", "--law", "no-mutation"]) == 0
    told = capsys.readouterr()
    assert told.err.strip() == "attnproof: the law inputs-stay is now called no-mutation"
    assert "inputs-stay" not in told.out
    assert "1 law: 1 measured" in " ".join(told.out.split())


def test_help_says_that_code_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "This runs your code: the file named on the command line is imported" in told


def test_the_laws_of_code_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--code-laws"]) == 0
    told = capsys.readouterr().out
    assert "laws of rotary code" in told
    assert "norm" in told


PARENT = """
import sys
from attnproof.cli import main
main({arguments!r})
import attnproof.real_code.forking
heavy = {{"torch", "sympy", "numpy", "flint", "attnproof.real_code.checking"}} & set(sys.modules)
print("loaded:", *sorted(heavy), file=sys.stderr)
"""


def test_the_parent_loads_nothing_heavy(root: Path, tmp_path: Path) -> None:
    """Nor does what starts the processes of several targets."""
    file = write_code(tmp_path)
    code = PARENT.format(arguments=["check", f"{file}::number"])
    done = python("-c", code, cwd=root)
    assert "which is an int" in " ".join(done.stdout.split())
    assert done.stderr.splitlines()[-1] == "loaded:"


@pytest.mark.usefixtures("spawned")
def test_all_of_it_has_a_limit_too(tmp_path: Path) -> None:
    record, stopped, _ = ran(tmp_path, "rope", Limits(whole=0.1))
    assert stopped is not None
    assert stopped.why == "all of it had not ended after 0.1 s"
    assert "was stopped while starting" in record.stopped


@pytest.mark.parametrize("found", [True, False])
def test_an_interrupt_keeps_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: bool
) -> None:
    def interrupted(heard: Collected, *_: object) -> None:
        if found:
            told = {"name": "rope", "kind": "rotary", "adapted": "", "file": ""}
            heard.receive({"event": "adapted", **told})
            heard.at = ("measured", "norm")
            heard.lost("interrupted")
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupted)
    monkeypatch.setattr(running, "Child", lambda asked, _: asked)
    out, file = tmp_path / "found.json", write_code(tmp_path)
    targets = [f"{file}::rope", f"{file}::rope_sign"]
    assert main(["check", *targets, "--law", "norm", "--json", str(out)]) == 130
    if found:
        record = CodesRecord.model_validate_json(out.read_text(encoding="utf-8"))
        assert [code.target for code in record.codes] == targets[:1]
        assert record.unfinished == (targets[1],)
        assert "was interrupted; earlier results are kept" in record.codes[0].stopped
    else:
        assert not out.exists()
        assert "nothing written" in capsys.readouterr().err


@pytest.mark.usefixtures("spawned")
def test_a_child_whose_parent_is_gone_ends(tmp_path: Path) -> None:
    """Even one whose code never ends: its input closes."""
    file = write_code(tmp_path, "while True: pass")
    child = Child(CodeRequest(target=f"{file}::f"))
    while json.loads(child.lines.get(timeout=300) or b"{}").get("does") != "being imported":
        pass
    assert child.process.stdin is not None
    child.process.stdin.close()
    assert child.process.wait(120) == 3
    child.kill()


def test_what_code_starts_is_ended_with_it(tmp_path: Path) -> None:
    """A process that it started holds the way to its findings, and dies with it."""
    pid = tmp_path / "pid"
    text = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid)!r}, 'w').write(str(p.pid))\n"
        "time.sleep(600)\n"
    )
    file = write_code(tmp_path, text)
    assert main(["check", f"{file}::f", "--limit", "1"]) == 2
    stat = Path(f"/proc/{pid.read_text()}/stat")
    if Path("/proc/self/stat").exists():
        assert not stat.exists() or stat.read_text().split()[2] == "Z"

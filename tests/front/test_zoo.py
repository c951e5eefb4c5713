"""The zoo's page lists every subject: what holds, breaks with a witness, or could not run."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from attnproof.real_code.forking import ForkServer
from benchmarks.zoo import called, judging
from benchmarks.zoo.__main__ import changes, main, overview_of, run
from benchmarks.zoo.judging import JUDGEMENTS, Judged, judgements
from benchmarks.zoo.pages import page
from benchmarks.zoo.results import checked, read, without_folders, write
from benchmarks.zoo.subjects import Library, by_source, libraries
from tests.front.zoo_runs import run_here

CODE = """
import os
import torch

def good(queries, keys):
    return torch.ones(queries, keys).tril(keys - queries) > 0

def broken(x):
    x += 1.0  # changes what it is given
    return x

def raises(x):
    raise ValueError("no such | config")

def crashes(x):
    os._exit(7)

def endless(x):
    while True:
        pass
"""
UNCALLED = {"Object": "It takes an object, which no line makes."}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    code = tmp_path_factory.mktemp("code") / "code.py"
    code.write_text(CODE, encoding="utf-8")
    lines = {
        "Good": f"{code}::good --as mask",
        "Broken": f"{code}::broken --as layer --call 'x: B n E -> B n E' --law no-mutation",
        "Raises": f"{code}::raises --as layer",
        "Crashes": f"{code}::crashes --as layer --call 'x: B n E -> B n E' --law stateless",
    }
    return Library(name="small", packages=("numpy", "torch"), lines=lines, uncalled=UNCALLED)


@pytest.fixture(scope="module")
def out(
    tmp_path_factory: pytest.TempPathFactory, library: Library, fork_server: ForkServer
) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    with run_here(fork_server):
        run(library, folder, seconds=120)
    return folder


def _results(out: Path) -> dict[str, Any]:
    told = json.loads((out / "small.json").read_text(encoding="utf-8"))
    return {"head": told["head"], **{one["name"]: one for one in told["subjects"]}}


def test_every_subject_is_listed_in_its_order(out: Path) -> None:
    assert [*_results(out)][1:] == ["Good", "Broken", "Raises", "Crashes"]
    text = (out / "small.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in ("Good", "Broken", "Raises", "Crashes"))


def test_the_head_has_versions_day_and_machine(out: Path) -> None:
    line = (out / "small.md").read_text(encoding="utf-8").splitlines()[2]
    head = _results(out)["head"]
    assert line.startswith("Made by `python -m benchmarks.zoo --library small` on 20")
    assert f"numpy {head['versions']['numpy']}, torch " in line
    assert head["machine"] in line


def test_good_code_breaks_nothing(out: Path) -> None:
    good = _results(out)["Good"]
    assert good["broken"] == []
    assert "stateless" in good["laws"]["measured"]
    assert good["sentence"].startswith("mask, causal")


def test_broken_code_is_shown_with_its_witness(out: Path) -> None:
    broken = _results(out)["Broken"]
    assert "no-mutation" in broken["laws"]["broken"]
    text = (out / "small.md").read_text(encoding="utf-8")
    assert "## Not looked at yet" in text
    assert "### no-mutation, 1 class\n" in text
    assert "Broken: " in text
    assert "they differ by" in text


def test_what_raises_and_what_crashes_is_told_with_the_reason(out: Path) -> None:
    told = _results(out)
    assert "no such | config" in told["Raises"]["why"]
    assert "7" in told["Crashes"]["why"]
    text = (out / "small.md").read_text(encoding="utf-8")
    assert "- `Raises`: " in text
    assert "2 of which could not be run" in text


def test_code_that_never_ends_is_stopped(library: Library) -> None:
    target = library.lines["Good"].partition("::")[0]
    found = checked(f"{target}::endless", "--as layer --call 'x: B n E -> B n E'", 2)
    assert found["why"]
    assert not any(found["laws"].values())


def test_what_no_line_calls_is_told_with_the_reason(out: Path) -> None:
    text = (out / "small.md").read_text(encoding="utf-8")
    assert f"## Not called by a line\n\n- `Object`: {UNCALLED['Object']}" in text


def test_looking_again_at_one_keeps_the_others_with_their_day(
    tmp_path: Path, out: Path, library: Library, fork_server: ForkServer
) -> None:
    told, rows = read(out / "small.json")
    old = {name: {**one, "made": "2020-02-02", "line": ""} for name, one in rows.items()}
    write(tmp_path / "small.json", told, {**old, "Object": {**old["Good"], "name": "Object"}})
    with run_here(fork_server):
        run(library, tmp_path, seconds=120, only=("Good",))
    after = read(tmp_path / "small.json")[1]
    assert after["Good"] == {**rows["Good"], **{w: after["Good"][w] for w in ("user", "seconds")}}
    assert after["Broken"] == old["Broken"]
    text = (tmp_path / "small.md").read_text(encoding="utf-8")
    assert f"| `Good` | {rows['Good']['sentence']} | {rows['Good']['made']} |" in text
    assert "| `Object` | " in text
    assert "Not run by a line: 4 of 2020-02-02 (numpy " in text


def test_going_on_runs_what_its_line_has_not_run(
    tmp_path: Path,
    out: Path,
    library: Library,
    fork_server: ForkServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told, rows = read(out / "small.json")
    write(tmp_path / "small.json", told, rows)
    run(library, tmp_path, seconds=120, going_on=True)
    assert capsys.readouterr().out == ""
    rows["Raises"]["line"] = "another"
    write(tmp_path / "small.json", told, rows)
    with run_here(fork_server):
        run(library, tmp_path, seconds=120, going_on=True)
    assert capsys.readouterr().out.startswith("1/1 Raises: ")


def test_a_judgement_stands_on_the_page_with_its_reason(out: Path) -> None:
    told = _results(out)
    head = told.pop("head")
    known = (Judged(law="no-mut*", judgement="real", reason="It adds 1 in place.", find="adds"),)
    text = page(head, told, known)
    assert f"## {JUDGEMENTS['real']}\n\n### no-mutation" in text
    assert "It adds 1 in place. See [adds](../finds/adds.md)." in text


def test_a_judgement_of_another_class_or_library_does_not_count(out: Path) -> None:
    told = _results(out)
    head = told.pop("head")
    for other in ({"classes": ("Good",)}, {"library": "torch"}, {"says": "another reason"}):
        known = (Judged(law="no-mutation", judgement="real", reason="It adds 1.", **other),)
        assert "It adds 1." not in page(head, told, known)


def test_a_class_without_a_row_is_told_beside_the_one_that_stands_for_it(out: Path) -> None:
    told = _results(out)
    head = told.pop("head")
    told["Raises"]["same"] = ["Known"]
    told["Good"]["same"] = ["Known", "Broken", "Unknown"]
    text = page(head, told, ())
    assert "| `Good`, for `Known` and 1 more |" in text
    assert "2 further classes were not run." in text
    assert "- `Good` stands for `Known`, `Unknown`\n" in text
    assert "for `Broken`" not in text
    assert "`Raises` stands" not in text


def test_llama_stands_for_its_copies_and_no_class_for_another_layout() -> None:
    pytest.importorskip("transformers")
    groups = {name: {name, *others} for (_, name), others in by_source().items()}
    assert "MistralRotaryEmbedding" in groups["LlamaRotaryEmbedding"]
    woven = next(group for group in groups.values() if "DeepseekV3RotaryEmbedding" in group)
    assert "DeepseekV32RotaryEmbedding" not in woven  # its config chooses no interleaving


def test_a_line_is_that_of_a_target_and_no_subject_is_both_called_and_not() -> None:
    for library in libraries().values():
        assert all("::" in line.partition(" ")[0] for line in library.lines.values())
        assert not {*library.lines} & {*library.uncalled}


def test_every_page_is_written_from_the_results_beside_it() -> None:
    folder = Path(judging.__file__).parents[2] / "docs/zoo"
    for name, library in libraries().items():
        made = page(*read(folder / f"{name}.json"), judgements(), library.uncalled)
        assert (folder / f"{name}.md").read_text(encoding="utf-8") == made


def test_results_name_no_folder_of_the_machine_they_were_made_on() -> None:
    stopped = f"it had not ended, at {inspect.__file__}:2062, called from {pytest.__file__}:1"
    told = without_folders({"why": stopped}, "")["why"]
    assert told == "it had not ended, at inspect.py:2062, called from pytest/__init__.py:1"
    absolute = re.compile(r"(?<![\w./])/(?:root|home|usr|opt|tmp|Users)/")
    for file in (Path(judging.__file__).parents[2] / "docs/zoo").iterdir():
        assert not absolute.search(file.read_text(encoding="utf-8")), file


def test_an_unknown_judgement_is_refused_with_those_there_are(tmp_path: Path) -> None:
    file = tmp_path / "judged.toml"
    file.write_text('[[judged]]\nlaw = "norm"\njudgement = "fine"\nreason = ""\n')
    with pytest.raises(ValueError, match="real, design, false alarm, open; got 'fine'"):
        judgements(file)


def test_every_find_that_is_named_has_its_page() -> None:
    root = Path(judging.__file__).parents[2]
    named = {one.find for one in judgements() if one.find}
    assert named
    assert [name for name in sorted(named) if not (root / f"docs/finds/{name}.md").exists()] == []


def test_the_page_of_all_libraries_is_written_from_their_results(out: Path) -> None:
    root = Path(judging.__file__).parents[2]
    stored = (root / "docs/zoo.md").read_text(encoding="utf-8")
    assert stored == overview_of(root / "docs/zoo")
    small = overview_of(out)
    assert "| [small](zoo/small.md) |" in small
    assert "| library | version | subjects |" in small


def test_an_unknown_library_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--library", "tensorflow"])
    assert "transformers" in capsys.readouterr().err


def test_a_library_that_is_not_installed_keeps_no_other_from_its_turn(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    library: Library,
) -> None:
    missing = Library(name="missing", packages=("no-such-package",))
    monkeypatch.setattr(
        "benchmarks.zoo.__main__.libraries", lambda: {"missing": missing, "small": library}
    )
    main(["--out", str(tmp_path / "zoo"), "--only", "Raises"])
    assert "missing: not looked at: " in capsys.readouterr().out
    assert not (tmp_path / "zoo/missing.json").exists()
    assert (tmp_path / "zoo/small.md").exists()


def test_how_classes_are_called_is_told_without_asking_a_law(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "layers_of_a_library.py").write_text(
        "from torch import nn\n"
        "class PlainAttention(nn.Module):\n"
        "    def __init__(self, dim):\n"
        "        super().__init__()\n"
        "        self.both = nn.Linear(dim, 2 * dim)\n"
        "    def forward(self, x):\n"
        "        k, v = self.both(x).chunk(2, -1)\n"
        "        return (x @ k.mT).softmax(-1) @ v\n"
        "class NoAttention(nn.Module):\n"
        "    def forward(self, unheard, of):\n"
        "        raise ValueError('never')\n"
        "class Other(nn.Module): pass\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("logging.disable", lambda _: None)  # of the whole process
    called.main(["layers_of_a_library", "--match", "Attention$"])
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == "✓ layers_of_a_library::PlainAttention  attention: x: B n E -> B n E"
    assert second.startswith("✗ layers_of_a_library::NoAttention  no adapter fits")
    assert last == "1 of 2 classes are called by their names"


def test_a_verdict_that_is_another_than_the_stored_one_is_logged() -> None:
    before = {"proved": ["norm", "linear"], "broken": ["relative"]}
    now = {"proved": ["linear", "relative"], "exact": ["norm"], "measured": ["composition"]}
    assert changes(before, now) == ["relative: was broken, is proved", "norm: was proved, is exact"]
    assert changes({}, now) == changes(now, now) == []

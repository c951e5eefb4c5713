"""The zoo's page lists every subject: what holds, breaks with a witness, or could not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.zoo import called, judging
from benchmarks.zoo.__main__ import main, overview_of, run
from benchmarks.zoo.examining import examined
from benchmarks.zoo.judging import JUDGEMENTS, Judged, judgements
from benchmarks.zoo.pages import page
from tests.front import zoo_library as library

METHODS = ("identity", "measured")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    run(
        "small",
        library,
        folder,
        limit=120,
        jobs=2,
        only=(),
        command="python -m benchmarks.zoo",
        methods=METHODS,
    )
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
    assert line.startswith("Made by `python -m benchmarks.zoo` on 20")
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
    assert told["Raises"]["why"] == "the code raised ValueError: no such | config"
    assert told["Crashes"]["why"].endswith("its process ended with exit code 7")
    text = (out / "small.md").read_text(encoding="utf-8")
    assert "- `Raises`: the code raised ValueError: no such | config" in text
    assert "2 of which could not be run" in text


def test_code_that_never_ends_is_stopped_and_the_next_is_looked_at() -> None:
    found = {one.target: one for one in examined(library.endless(), limit=5, methods=("measured",))}
    assert "it had not ended after 5 s" in found["Endless"].why
    assert found["Good"].law("stateless").verdict == "measured"


def test_looking_again_at_one_keeps_the_others(out: Path) -> None:
    before = _results(out)
    run(
        "small", library, out, limit=120, jobs=1, only=("Raises",), command="again", methods=METHODS
    )
    after = _results(out)
    assert after["head"]["command"] == "again"
    assert after["Broken"] == before["Broken"]
    assert after["Raises"]["why"] == before["Raises"]["why"]


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
    same = [("Raises", "Known", "Good", "Broken", "Unknown"), ("Other", "Another")]
    text = page(head, told, (), same)
    assert "| `Good`, for `Known` and 1 more |" in text
    assert "2 further classes were not run." in text
    assert "- `Good` stands for `Known`, `Unknown`\n" in text
    assert "Another" not in text
    assert "for `Broken`" not in text


def test_llama_stands_for_its_copies_and_no_class_for_another_layout() -> None:
    pytest.importorskip("transformers")
    from benchmarks.zoo.subjects_transformers import by_source

    groups = {name: {name, *others} for (_, name), others in by_source().items()}
    assert "MistralRotaryEmbedding" in groups["LlamaRotaryEmbedding"]
    woven = next(group for group in groups.values() if "DeepseekV3RotaryEmbedding" in group)
    assert "DeepseekV32RotaryEmbedding" not in woven  # its config chooses no interleaving


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


def test_a_library_that_cannot_be_loaded_keeps_no_other_from_its_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def loaded(name: str) -> Any:
        if name == "ill":
            raise RuntimeError("operator torchvision::nms does not exist")
        return library

    monkeypatch.setattr("benchmarks.zoo.__main__.libraries", lambda: {"ill": "ill", "small": "s"})
    monkeypatch.setattr("benchmarks.zoo.__main__.import_module", loaded)
    main(["--out", str(tmp_path), "--only", "Good", "--methods", *METHODS])
    said = capsys.readouterr().out
    assert "ill: not looked at, or not to its end: RuntimeError: operator torchvision" in said
    assert (tmp_path / "small.md").exists()


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

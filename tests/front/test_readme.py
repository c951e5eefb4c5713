"""README.md and the pages in docs/ are run: what they show is there, and is what is printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from attnproof.cli import main
from attnproof.commands.options import app
from attnproof.documents.document import sign
from attnproof.documents.evidence import Verdict
from attnproof.encoding.base import Encoding
from attnproof.theorem_runs.catalogue import load_catalogue
from attnproof.theorem_runs.ledger import ClaimVerdict
from attnproof.theorem_runs.records import Results
from attnproof.theorems.laws import LAWS as CODE_LAWS
from tests.cases import each
from tests.front.outputs import Output, WriteTheorem
from tests.front.pages import (
    ROOT,
    Command,
    cells,
    commands,
    files,
    folder_of,
    pages,
    rewritten,
    run_cells,
    wordy,
)

LENGTH = 170  # lines of the README: one reads it at one sitting
TUTORIALS = sorted(ROOT.glob("docs/tutorials/*.md"))


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


PAGES = [name_of(page) for page in pages()]
PRINTING = [
    pytest.param(name_of(page), command, id=f"{name_of(page)}:{command.line.split()[1]}{place}")
    for page in pages()
    for place, command in enumerate(commands(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("page", "command"), PRINTING)
def test_a_command_prints_what_its_page_says(page: str, command: Command, tmp_path: Path) -> None:
    """Else ``python -m tests.front.pages`` writes the page anew."""
    if "transformers" in command.line:
        pytest.importorskip("transformers")
    with folder_of(text_of(page), at=tmp_path):
        printed = command.run()
    assert wordy(printed) == wordy(command.printed)


def test_a_page_is_written_anew_and_another_word_is_noticed(tmp_path: Path) -> None:
    page = "Text.\n\n```console\n$ attnproof schema \\\n    --sweep | head -n 2\n```\n\nMore.\n"
    with folder_of(page, at=tmp_path):
        new = rewritten(page)
        assert rewritten(new) == new
    (command,) = commands(new)
    assert command.printed.startswith("{\n")
    assert new.endswith("```\n\nMore.\n")
    assert wordy("1 law: proved, 0.3 s") == wordy("2 law: proved, 1 s")
    assert wordy("1 law: proved, 0.3 s") != wordy("1 law: broken, 0.3 s")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_shows_what_it_speaks_of(page: Path, tmp_path: Path) -> None:
    """A phrase in a comment ``<!-- shown: .. -->`` of its page is shown by its cells."""
    text = page.read_text(encoding="utf-8")
    wanted = re.findall(r"^<!-- shown: (.+) -->$", text, re.MULTILINE)
    assert cells(text)
    assert wanted
    with folder_of(text, at=tmp_path):
        shown = " ".join(run_cells(text).split())
    assert [phrase for phrase in wanted if phrase not in shown] == []


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    page = "```{code-cell} python\n:tags: [hide-input]\n\na = 1\na + 1\n```\n"
    with folder_of(page, at=tmp_path):
        assert run_cells(page) == "2"
        with pytest.raises(NameError):
            run_cells(page.replace("a + 1", "b"))
        with pytest.raises(ValueError, match="exit code"):
            run_cells(page.replace("a = 1\na + 1", "!attnproof check nothing.py::here"))


def test_the_theorem_file_is_listed_and_run(
    capsys: Output, write_theorem: WriteTheorem, tmp_path: Path
) -> None:
    text = files(text_of("docs/theorems.md"))["linear.py"]
    (name,) = re.findall(r"^def (\w+)\(.*\) -> Claim:\n    \"", text, re.MULTILINE)
    name = name.replace("_", "-")
    assert name not in load_catalogue().ids
    place = str(write_theorem("linear", text).parent)
    assert main(["list", "--theorems", place]) == 0
    assert f"linear\n  {name}\n" in capsys.readouterr().out
    file = tmp_path / "results.json"
    assert main(["run", name, "--no-numeric", "--theorems", place, "--json", str(file)]) == 0
    (record,) = Results.model_validate_json(file.read_text(encoding="utf-8")).theorems
    assert (record.id, record.verdict, record.control.verdict) == (name, "proved", "refuted")


def test_the_readme_is_short_and_says_how_to_begin() -> None:
    readme = text_of("README.md")
    assert len(readme.splitlines()) <= LENGTH
    first, _ = readme.split("\n## ", 1)
    assert "pip install attnproof\n" in first
    for target in ("run", "test"):
        assert f"make {target}\n" in first
        assert re.search(rf"^{target}:", text_of("Makefile"), re.MULTILINE)


PLACE = re.compile(r"`((?:symbolic|numeric|programs|theorems|attnproof|tests)/[\w/.]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


@each([*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_what_a_page_points_to_is_there(page: str) -> None:
    text = text_of(page)
    here = (ROOT / page).parent
    linked = [here / place for place, _ in LINK.findall(text)]
    assert [place for place in linked if not place.exists()] == []
    assert [place for place in PLACE.findall(text) if not (ROOT / place).exists()] == []
    for place, part in LINK.findall(text):
        if part:
            named = re.findall(
                r"^#+ (.*)$", (here / place).read_text(encoding="utf-8"), re.MULTILINE
            )
            assert part[1:] in {anchor(heading) for heading in named}, f"{place}{part}"


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_command_has_a_row(capsys: Output) -> None:
    named = set(
        re.findall(r"^\| `attnproof ([a-z]+)[^`]*` \|", text_of("docs/commands.md"), re.MULTILINE)
    )
    known = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    assert named == known
    for command in named:
        assert main([command, "--help"]) == 0
        assert f"attnproof {command}" in capsys.readouterr().out


@each(PAGES)
def test_every_command_that_a_page_names_is_one(page: str) -> None:
    known = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    named = set(re.findall(r"(?:`|!|\$ )attnproof ([a-z]+)", text_of(page)))
    assert named <= known


def test_every_hook_has_a_row() -> None:
    rows = re.findall(r"^\| (`\w+\(.*) \| .* \|$", text_of("docs/encodings.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row)}
    assert "bias" in named
    assert [name for name in named if not hasattr(Encoding, name)] == []


def test_the_check_of_an_encoding_passes_and_can_fail() -> None:
    text = files(text_of("README.md"))["falling.py"]
    page = text_of("docs/encodings.md")
    (check,) = re.findall(r"```python\n(from attnproof\.testing.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"__name__": "falling"}
    exec(text, names)
    exec(check, names)
    names["test_falling"]()
    exec(check.replace('"even"', '"unique"'), names)
    with pytest.raises(AssertionError, match="wanted proved, found"):
        names["test_falling"]()


def test_the_claim_that_is_shown_is_one(
    capsys: Output, tmp_path: Path, write_theorem: WriteTheorem, write_ledger: Callable[..., Path]
) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", text_of("docs/claims.md"), re.DOTALL)
    write_theorem("addition_commutes")
    write_ledger(text.replace('"B1"', '"Z1"'))
    assert main(["claims", "Z1", "--theorems", str(tmp_path)]) == 0
    assert "1 claim: 1 false as written; 1 as expected." in capsys.readouterr().out


def test_every_verdict_has_a_row() -> None:
    for verdict in get_args(Verdict):
        assert f"\n| {sign(verdict)} |" in text_of("docs/verdicts.md")
    for claimed in get_args(ClaimVerdict):
        assert f"\n| {sign(claimed)} |" in text_of("docs/claims.md")


FIND = re.compile(
    r"^\| [\w-]+ \| \[.*\]\(docs/finds/([\w-]+)\.md\) \| `([\w-]+)` \|$", re.MULTILINE
)


def test_every_find_has_a_row_with_a_law_and_its_page() -> None:
    readme = text_of("README.md")
    rows = dict(FIND.findall(readme))
    assert set(rows) == {page.stem for page in (ROOT / "docs" / "finds").glob("*.md")}
    assert set(rows.values()) <= {law.id for law in CODE_LAWS}


def test_how_many_classes_of_transformers_are_cast_is_counted() -> None:
    told = json.loads(text_of("docs/zoo/transformers.json"))["subjects"]
    cast = [one for one in told if "survives-casting" in one["laws"]["broken"]]
    ran = {one["name"] for one in cast}
    copies = {name for one in cast for name in one.get("same", ())} - ran
    said = re.findall(
        r"same\s+holds of (\d+)\s+classes [\w\s,]* (\d+)\s+others", text_of("README.md")
    )
    assert said == [(str(len(ran)), str(len(copies)))]

"""The README is run: its theorem file is one, and its commands exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from attnproof.catalogue import load_catalogue
from attnproof.cli import main
from attnproof.document import sign
from attnproof.evidence import Verdict
from attnproof.options import app
from attnproof.records import ClaimVerdict, Results

WriteTheorem = Callable[..., Path]
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    """The README's text."""
    return (root / "README.md").read_text(encoding="utf-8")


def example(readme: str) -> tuple[str, str]:
    """The id and the text of the theorem file that the README shows whole."""
    pattern = r"new file\n`(\w+)\.py`:\n\n```python\n(.*?)```"
    ((file, text),) = re.findall(pattern, readme, re.DOTALL)
    (name,) = re.findall(r"^def (\w+)\(.*\) -> Claim:\n    \"", text, re.MULTILINE)
    assert file != name
    return name.replace("_", "-"), text


def test_the_theorem_file_of_the_readme_is_listed_and_run(
    readme: str, capsys: Output, write_theorem: WriteTheorem, tmp_path: Path
) -> None:
    name, text = example(readme)
    place = str(write_theorem("linear", text).parent)
    assert main(["list", "--theorems", place]) == 0
    assert f"linear\n  {name}\n" in capsys.readouterr().out
    file = tmp_path / "results.json"
    assert main(["run", name, "--no-numeric", "--theorems", place, "--json", str(file)]) == 0
    (record,) = Results.model_validate_json(file.read_text(encoding="utf-8")).theorems
    assert (record.id, record.verdict, record.control.verdict) == (name, "proved", "refuted")


def test_the_theorem_of_the_readme_is_not_in_the_catalogue_yet(readme: str) -> None:
    name, _ = example(readme)
    assert name not in load_catalogue().ids


def test_the_first_screen_has_the_two_commands_and_the_picture(readme: str, root: Path) -> None:
    screen = readme[: readme.index("## Add a theorem")]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in ("run", "test"):
        assert f"make {target}\n" in screen
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert "docs/report.png" in screen


PLACE = re.compile(r"`((?:symbolic|numeric|programs|theorems|attnproof|tests)/[\w/.]+)`")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_what_a_page_points_to_is_there(page: str, root: Path) -> None:
    text = (root / page).read_text(encoding="utf-8")
    found = [*re.findall(r"\]\(([^)#:]+)\)", text), *PLACE.findall(text)]
    assert found
    assert [place for place in found if not (root / place).exists()] == []


def test_every_command_of_the_readme_is_one(readme: str, capsys: Output) -> None:
    commands = set(re.findall(r"`attnproof ([a-z]+)[^`]*`", readme))
    known = {c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands}
    assert commands == known
    for command in commands:
        assert main([command, "--help"]) == 0
        assert f"attnproof {command}" in capsys.readouterr().out


def test_the_card_of_the_readme_is_what_its_command_prints(
    readme: str, capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = re.findall(r"a file `falling\.py`:\n\n```python\n(.*?)```", readme, re.DOTALL)
    ((command, printed),) = re.findall(
        r"```console\n\$ attnproof (card.*?)\n(.*?)```", readme, re.DOTALL
    )
    (tmp_path / "falling.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(command.split()) == 0
    assert shown(capsys.readouterr().out) == shown(printed)


def test_the_check_of_real_code_is_what_its_command_prints(
    readme: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another processor the last digits are others, so that only words are compared."""
    pytest.importorskip("transformers")
    ((command, printed),) = re.findall(
        r"```console\n\$ attnproof (check(?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", readme, re.DOTALL
    )
    assert readme.index(command) < readme.index("## Add a theorem")
    monkeypatch.setenv("COLUMNS", "100")
    assert main(command.replace("\\\n", " ").split()) == 1
    assert wordy(capsys.readouterr().out) == wordy(printed)
    assert wordy(printed) != wordy(printed.replace("broken", "proved"))


def wordy(text: str) -> list[str]:
    """The words of an output, without its numbers."""
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", text).split()


def shown(text: str) -> list[str]:
    """What a card says, without the file's place and the seconds it took."""
    lines = [re.sub(r"\s*\d+\.\d+ s$", "", line.rstrip()) for line in text.splitlines()]
    return [line for line in lines if not line.endswith("falling.py")]


def test_the_check_of_the_readme_passes_and_can_fail(readme: str) -> None:
    (text,) = re.findall(r"a file `falling\.py`:\n\n```python\n(.*?)```", readme, re.DOTALL)
    (check,) = re.findall(r"```python\n(from attnproof\.testing.*?)```", readme, re.DOTALL)
    names: dict[str, Any] = {"__name__": "falling"}
    exec(text, names)
    exec(check, names)
    names["test_falling"]()
    exec(check.replace('"even"', '"unique"'), names)
    with pytest.raises(AssertionError, match="wanted proved, found"):
        names["test_falling"]()


def test_the_claim_of_the_readme_is_one(
    readme: str,
    capsys: Output,
    tmp_path: Path,
    write_theorem: WriteTheorem,
    write_ledger: Callable[..., Path],
) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    write_theorem("addition_commutes")
    write_ledger(text.replace('"B1"', '"Z1"'))
    assert main(["claims", "Z1", "--theorems", str(tmp_path)]) == 0
    assert "1 claim: 1 false as written; 1 as expected." in capsys.readouterr().out


def test_the_verdicts_of_the_readme_are_those_of_the_checker(readme: str) -> None:
    for verdict in (*get_args(Verdict), *get_args(ClaimVerdict)):
        assert f"\n| {sign(verdict)} |" in readme

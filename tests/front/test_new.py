"""``attnproof new``: a file that works at once, and never in place of another."""

from __future__ import annotations

from pathlib import Path

import pytest

import attnproof
from attnproof.cards.registry import load_file
from attnproof.cli import main
from attnproof.commands.encodings import new_encoding
from tests.front.outputs import Output, python, refused


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_new_file_has_a_card_with_something_of_everything(here: Path, capsys: Output) -> None:
    assert main(["new", "my_encoding"]) == 0
    assert capsys.readouterr().out == (
        "wrote my_encoding.py; its card: attnproof card my_encoding.py\n"
    )
    laws = ["relative", "even", "odd", "falls-with-distance", "tells-before-from-after"]
    card = attnproof.card(here / "my_encoding.py", laws)
    assert card.encoding.id == "my-encoding"
    assert card.encoding.title == "my encoding"
    cells = {cell.law: cell for cell in card.cells}
    assert [cells[law].verdict for law in laws] == [
        "proved",
        "proved",
        "refuted",
        "proved",
        "refuted",
    ]
    assert cells["odd"].witness
    assert cells["falls-with-distance"].under == ("the strength is at least 0",)
    assert cells["falls-with-distance"].needed is not None


def test_the_new_file_is_as_ruff_wants_it(here: Path) -> None:
    file = new_encoding("my_encoding", here)
    for words in (("check", "--select", "E,F,I,W,B,RUF100"), ("format", "--diff")):
        done = python(
            *("-m", "ruff", *words, "--isolated", "--line-length", "100", str(file)), check=False
        )
        assert done.returncode == 0, done.stdout


def test_it_runs_on_numbers_as_well(here: Path) -> None:
    import numpy as np

    (kind,) = load_file(new_encoding("mine", here))
    random = np.random.default_rng(0)
    Q, K = random.normal(size=(3, 8)), random.normal(size=(4, 8))
    scores = kind.with_defaults(8).scores(Q, K, np.arange(3.0), np.arange(4.0))
    distance = np.arange(3.0)[:, None] - np.arange(4.0)
    assert np.allclose(scores, Q @ K.T / 8**0.5 - 0.01 * distance**2)


def test_a_file_that_is_there_is_never_overwritten(here: Path, capsys: Output) -> None:
    (here / "mine.py").write_text("precious")
    told = refused(capsys, "new", "mine")
    assert told == "attnproof: mine.py exists and is not overwritten; choose another name"
    assert (here / "mine.py").read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["1a", "a-b", "a b", "../a", "a/b", "", "class", "_", "a.py", "é", "Encoding"]
)
def test_a_name_that_is_no_identifier_is_refused(here: Path, capsys: Output, name: str) -> None:
    told = refused(capsys, "new", name)
    assert name in told
    if name not in ("_", "Encoding"):
        assert "letters, digits and _ only" in told
    assert not list(here.iterdir())


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    with pytest.raises(attnproof.errors.UsageError, match=r"wanted to write .*mine\.py, but "):
        new_encoding("mine", tmp_path / "absent")


def test_a_name_of_several_words_makes_a_class(here: Path) -> None:
    (kind,) = load_file(new_encoding("my_own_2nd", here))
    assert (kind.__name__, kind.id(), kind.title) == ("MyOwn2nd", "my-own2nd", "my own 2nd")

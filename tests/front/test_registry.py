"""Finding encodings: of the package, of files, of plug-ins; and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from attnproof import Encoding, load_encodings
from attnproof.cards.registry import Home, home, in_order, load_file, place, place_words
from attnproof.cli import main
from tests.front.code_files import NOT_MADE, SMALL, write


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, as if packages were installed in it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def announce(folder: Path, name: str, *lines: str) -> None:
    """An installed distribution with these entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(("[attnproof.encodings]", *lines)) + "\n")


def forget(*modules: str) -> None:
    for name in modules:
        sys.modules.pop(name, None)


def test_every_built_in_encoding_is_found_and_none_is_broken() -> None:
    found = load_encodings()
    assert found.broken == ()
    assert {"alibi", "rope", "sinusoidal", "nope"} <= set(found.ids)
    files = Path(sys.modules["attnproof.encodings"].__path__[0]).glob("[!_]*.py")
    assert {kind.__module__.split(".")[-1] for kind in found.kinds} == {f.stem for f in files}


def test_the_order_is_where_they_act_and_then_the_title() -> None:
    found = load_encodings()
    assert [place(kind) for kind in found.kinds] == sorted(place(kind) for kind in found.kinds)
    assert found.ids.index("sinusoidal") < found.ids.index("rope") < found.ids.index("alibi")
    assert in_order(reversed(found.kinds)) == found.kinds
    rope, alibi = found.only("rope"), found.only("alibi")
    assert place_words(rope) == "on queries and keys"

    class Both(rope, alibi):  # type: ignore[misc, valid-type]
        title = "a"

    assert place(Both) == place(rope)
    assert place_words(Encoding) == "nowhere"


def test_a_file_is_found_by_its_path_and_read_twice_without_complaint(tmp_path: Path) -> None:
    path = write(tmp_path)
    found = load_encodings([path, path, tmp_path / "." / "nearer.py"])
    assert found.broken == ()
    assert found.ids.count("nearer") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (line 1)"),
        ("x = 1\nraise SystemExit(3)", "SystemExit: 3 (line 2)"),
        ("def f(:", "SyntaxError: invalid syntax (line 1)"),
        ("import missing_module_of_a_test", "ModuleNotFoundError"),
        ("x = 1", "it declares no encoding"),
        ("from attnproof.encodings.rope import Rope", "it declares no encoding"),
        ("from attnproof import Encoding\nclass _Own(Encoding): pass", "it declares no encoding"),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_stops_nothing(
    tmp_path: Path, text: str, told: str
) -> None:
    path = write(tmp_path, text, "broken")
    found = load_encodings([path, write(tmp_path)])
    assert [fault.name for fault in found.broken] == [str(path)]
    assert told in found.broken[0].error
    assert {"nearer", "rope"} <= set(found.ids)


def test_an_id_that_is_taken_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, SMALL.replace("class Nearer", "class Rope"), "other")
    found = load_encodings([path])
    (fault,) = found.broken
    assert fault.name == str(path)
    assert fault.error.startswith("the id rope is taken by Rope of ")
    assert fault.error.endswith("rope.py; rename Rope")
    assert found.only("rope").__module__ == "attnproof.encodings.rope"


def test_two_classes_of_one_file_with_one_id_are_told(tmp_path: Path) -> None:
    second = SMALL[SMALL.index("class Nearer") :].replace("class Nearer", "class NEARER")
    found = load_encodings([write(tmp_path, SMALL + "\n\n" + second)])
    assert "the id nearer is taken by Nearer of " in found.broken[0].error


def test_a_plug_in_may_name_a_module_or_a_class(installed: Path) -> None:
    write(installed, SMALL, "plugged_module")
    write(installed, SMALL.replace("class Nearer", "class Farther"), "plugged_class")
    announce(installed, "some-package", "a = plugged_module", "b = plugged_class:Farther")
    try:
        found = load_encodings()
    finally:
        forget("plugged_module", "plugged_class")
    assert found.broken == ()
    assert {"nearer", "farther"} <= set(found.ids)


def test_a_broken_plug_in_is_told_by_name_and_stops_nothing(installed: Path) -> None:
    write(installed, "x = 1\n1 / 0", "plugged_broken")
    write(installed, "value = 3", "plugged_wrong")
    announce(
        installed,
        "some-package",
        "bad = plugged_broken",
        "gone = no_such_module_of_a_test",
        "three = plugged_wrong:value",
        "attr = plugged_wrong:missing",
    )
    try:
        found = load_encodings()
    finally:
        forget("plugged_broken", "plugged_wrong")
    told = {fault.name: fault.error for fault in found.broken}
    assert set(told) == {f"{name} of some-package" for name in ("attr", "bad", "gone", "three")}
    assert told["bad of some-package"] == "ZeroDivisionError: division by zero (line 2)"
    assert "ModuleNotFoundError" in told["gone of some-package"]
    assert (
        "wanted a module or a subclass of attnproof.Encoding, got 3"
        in told["three of some-package"]
    )
    assert "rope" in found.ids


def test_a_broken_built_in_is_told_by_name_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import attnproof.encodings as package

    write(tmp_path, "x = 1\nraise SystemExit(2)\nclass OneOfThem(Encoding): pass", "not_well")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    found = load_encodings()
    assert [(fault.name, fault.error) for fault in found.broken] == [
        ("attnproof.encodings.not_well", "SystemExit: 2 (line 2)")
    ]
    assert "rope" in found.ids
    ids = ("not-well", "one-of-them")
    for command in (["card", *ids], *(["table", "--encodings", name] for name in ids)):
        assert main([*command, "--law", "even"]) == 1
        told = " ".join(capsys.readouterr().out.split())
        assert "! broken: attnproof.encodings.not_well: SystemExit: 2 (line 2)" in told
    assert main(["card", "nope", "--law", "even"]) == 0


def test_an_interrupt_while_a_file_is_read_is_not_swallowed(tmp_path: Path) -> None:
    path = write(tmp_path, "raise KeyboardInterrupt", "stopped")
    with pytest.raises(KeyboardInterrupt):
        load_encodings([path])
    assert not [name for name in sys.modules if name.endswith("_stopped")]


def test_another_process_finds_a_class_of_a_file(tmp_path: Path) -> None:
    (kind,) = load_file(write(tmp_path))
    found = home(kind)
    assert isinstance(found, Home)
    assert found.load().id() == "nearer"
    rope = load_encodings().only("rope")
    assert home(rope) is rope
    with pytest.raises(KeyError):
        Home(found.path, "Other").load()


def test_one_that_cannot_be_made_is_found_all_the_same(tmp_path: Path) -> None:
    found = load_encodings([write(tmp_path, NOT_MADE)])
    assert "nearer" in found.ids

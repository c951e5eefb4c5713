"""Code is found by its name; what is wrong with a name is told before anything is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnproof.programs.subjects import Mask
from attnproof.real_code.loading import CannotLoad, load, require_target
from tests.front.code_files import write_code


@pytest.fixture(autouse=True)
def own_path() -> Iterator[None]:
    """Loading code changes the path and the modules, as running it would."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("_attnproof_code_", "pack")):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["rope", "Holder", "Holder.rope", "once"])
def test_code_of_a_file(tmp_path: Path, name: str) -> None:
    found = load(f"{write_code(tmp_path)}::{name}")
    assert callable(found.thing)
    assert found.name == name
    assert found.file.endswith("code_under_test.py")


def test_code_of_an_installed_module() -> None:
    import textwrap

    assert load("textwrap::fill").thing is textwrap.fill
    assert load("collections.abc::Mapping.get").name == "Mapping.get"


def test_code_that_imports_what_stands_beside_it(tmp_path: Path) -> None:
    write_code(tmp_path, "FACTOR = 2\n", "pack_beside")
    path = write_code(tmp_path, "from pack_beside import FACTOR\ndef f(x):\n    return FACTOR\n")
    assert load(f"{path}::f").thing(0) == 2


def test_code_of_a_package_may_import_relatively(tmp_path: Path) -> None:
    inner = tmp_path / "pack" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").touch()
    write_code(inner.parent, "FACTOR = 3\n", "base")
    path = write_code(inner, "from ..base import FACTOR\ndef f(x):\n    return FACTOR\n", "code")
    assert load(f"{path}::f").thing(0) == 3


def test_relative_imports_need_no_init_file(tmp_path: Path) -> None:
    inner = tmp_path / "pack_bare" / "inner"
    inner.mkdir(parents=True)
    write_code(inner.parent, "FACTOR = 3\n", "base")
    path = write_code(inner, "from ..base import FACTOR\ndef f(x):\n    return FACTOR\n", "code")
    assert load(f"{path}::f").thing(0) == 3


def test_a_subject_needs_no_call(tmp_path: Path) -> None:
    text = (
        "from attnproof.programs.subjects import Mask\n"
        "mine = Mask(name='mine', mask=lambda t, s: None)\n"
    )
    assert isinstance(load(f"{write_code(tmp_path, text)}::mine").thing, Mask)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("no_file.py::f", "no_file.py, which does not exist; check the path"),
        ("folder::f", "got the folder folder; name a file in it"),
        ("folder/f::f", "got folder/f, which does not exist"),
        ("./notes.txt::f", "which is not a Python file"),
        ("code_under_test.py", "write ::NAME behind it, such as ::angles, ::rope"),
        ("some.module", "write ::NAME behind it, or some::module if module is the name meant"),
        ("torch.nn.Linear", "or torch.nn::Linear if Linear is the name meant"),
        ("module", "got 'module'; write ::NAME behind it"),
        ("::f", "wanted FILE.py::NAME, package.module::NAME or MODEL.onnx, got '::f'"),
    ],
)
def test_a_name_that_names_nothing_is_refused_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_code(tmp_path, "raise RuntimeError\ndef angles(): ...\ndef rope(): ...\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(CannotLoad) as refused:
        require_target(target)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rop", "there is no 'rop' in"),
        ("rop", "nearest: rope"),
        ("Holder.nope", "there is no 'Holder.nope'"),
        ("qqqq", "it has angles, rope"),
        ("number", "code_under_test.py::number, which is an int; angles, rope"),
    ],
)
def test_what_is_not_in_the_file_or_no_code(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(CannotLoad) as refused:
        load(f"{write_code(tmp_path)}::{name}")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\nraise ValueError('not today')\n", "ValueError: not today (line 2)"),
        ("def f(:\n", "SyntaxError: invalid syntax (line 1)"),
        ("import sys\n\nsys.exit(4)\n", "SystemExit: it leaves by sys.exit(4) (line 3)"),
        ("import no_such_package\n", "No module named 'no_such_package' (line 1)"),
    ],
)
def test_a_file_that_raises_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CannotLoad) as refused:
        load(f"{write_code(tmp_path, text)}::f")
    assert "code_under_test.py cannot be imported: " in str(refused.value)
    assert told in str(refused.value)


def test_what_is_missing_is_no_part_of_a_package_of_a_longer_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_more").mkdir()
    (tmp_path / "lacking_more" / "__init__.py").write_text("import lacking\n")
    (tmp_path / "lacking_more" / "code.py").write_text("def f(x): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CannotLoad, match="No module named 'lacking'"):
        load("lacking_more.code::f")


@pytest.mark.parametrize("name", ["no_such_package", "os.no_such_part", "no_such.package"])
def test_a_module_that_is_not_there(name: str) -> None:
    with pytest.raises(CannotLoad, match="which is not installed here"):
        load(f"{name}::f")

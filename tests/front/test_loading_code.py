"""Code is found by its name, with its settings; what is wrong is told before anything is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import Tensor, nn

from attnproof.cli import main
from attnproof.commands.check import _settings
from attnproof.errors import UsageError
from attnproof.programs.subjects import Mask
from attnproof.real_code.loading import CannotLoad, load, require_target
from attnproof.real_code.records import CodesRecord
from attnproof.real_code.request import CodeRequest, settings_of
from attnproof.testing import check_equivariant
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


CODE = '''
import torch
from torch import nn


class Mixer(nn.Module):
    """A constructor whose parameters say nothing of what they are."""

    def __init__(self, alpha, beta=2, *, mode):
        super().__init__()
        assert mode == "wide" and alpha % beta == 0
        self.alpha = alpha
        self.inner = nn.Linear(alpha, alpha)

    def forward(self, x):
        return self.inner(x)
'''


class Mixer(nn.Module):
    def __init__(self, alpha: int) -> None:
        super().__init__()
        self.inner = nn.Linear(alpha, alpha)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        return found


@pytest.fixture
def target(tmp_path: Path) -> str:
    file = tmp_path / "mixer.py"
    file.write_text(CODE, encoding="utf-8")
    return f"{file}::Mixer"


def test_settings_are_given_to_the_constructor(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found.json"
    asked = ["check", target, "--as", "layer", "--law", "rows-of-batch-apart", "--json", str(out)]
    assert main([*asked, "--set", "alpha=12", "beta=3", "--set", "mode=wide"]) == 0
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    (law,) = one.laws
    assert "--set alpha=12 --set mode=wide --set beta=3" in law.again
    assert main([*asked, "--set", "alpha=12", "--set", "mode=narrow"]) == 2
    capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--set", "alpa=12", "mode=wide"],
            "Mixer is built with alpha, beta, mode; got the setting 'alpa'; nearest: alpha",
        ),
        (["--set", "alpha"], "wanted a setting NAME=VALUE, such as hidden_size=64, got 'alpha'"),
        (["--set", "alpha=1", "alpha=2"], "wanted each setting once, got alpha twice"),
    ],
)
def test_settings_that_are_none_are_told(
    target: str, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["check", target, "--as", "layer", *words]) == 2
    shown = capsys.readouterr()
    assert told in " ".join((shown.out + shown.err).split())


def test_a_function_has_no_constructor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plain.py"
    file.write_text("def f(x):\n    return x\n", encoding="utf-8")
    assert main(["check", f"{file}::f", "--as", "layer", "--set", "a=1"]) == 2
    assert "f is not a class, and settings are arguments of a constructor; got a" in " ".join(
        capsys.readouterr().out.split()
    )


def test_settings_in_python() -> None:
    laws = ["rows-of-batch-apart"]
    record = check_equivariant(Mixer, laws, settings={"alpha": 8}, methods=["measured"])
    assert record.law(laws[0]).verdict == "measured"
    with pytest.raises(TypeError, match="Mixer is built with alpha; got the setting 'beta'"):
        check_equivariant(Mixer, laws, settings={"beta": 8}, methods=["measured"])


def test_settings_are_literals_or_texts_and_travel_to_another_process() -> None:
    words = ("a=1e-3", "b=(1, 2)", "c=None", "d=gelu", "e=a=b", "f=")
    found = {"a": 1e-3, "b": (1, 2), "c": None, "d": "gelu", "e": "a=b", "f": ""}
    assert settings_of(words) == found
    asked = CodeRequest(target="m.py::M", settings=words)
    assert CodeRequest.read(asked.text()) == asked


def test_parts_of_a_config_stand_in_a_row() -> None:
    words = ["mixer.py::Mixer", "config.heads=2", "config.width=8", "λ=0.1"]
    targets, settings = _settings(words, ["depth=1"])
    assert targets == ["mixer.py::Mixer"]
    assert settings == ("depth=1", "config.heads=2", "config.width=8", "λ=0.1")
    with pytest.raises(UsageError, match="wanted a target"):
        _settings(["config.heads=2"], ["depth=1"])

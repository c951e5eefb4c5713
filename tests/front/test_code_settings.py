"""``--set NAME=VALUE``: settings of a constructor, on the command line and in Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor, nn

from attnproof.cli import main
from attnproof.commands.check import _settings
from attnproof.errors import UsageError
from attnproof.real_code.records import CodesRecord
from attnproof.real_code.request import CodeRequest, settings_of
from attnproof.testing import check_equivariant

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

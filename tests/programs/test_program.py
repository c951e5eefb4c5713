"""A `Program`: code with its signature beside it, wherever code is taken."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import attnproof
from attnproof.cli import main
from attnproof.programs.signature import SignatureError
from attnproof.real_code.records import CodesRecord
from attnproof.testing import (
    CodeBreaksLaw,
    assert_attention,
    assert_rotary,
    check_attention,
    check_rotary,
)

CALL = "x: B n H D, first: n 1 D/2 cos, second: n 1 D/2 sin -> x"
FILE = f'''
import torch
import attnproof

@attnproof.program("{CALL}")
def told(x, first, second):
    """Nothing in its names says how it is called."""
    u, v = x.chunk(2, -1)
    return torch.cat((u * first - v * second, u * second + v * first), -1)
'''


def plain(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    u, v = x.chunk(2, -1)
    return torch.cat((u * first - v * second, u * second + v * first), -1)


@attnproof.program(CALL)
def told(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """It rotates."""
    return plain(x, first, second)


@attnproof.program(CALL)
def wrong(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return plain(x, first, -first + second)


def test_it_is_called_as_it_was() -> None:
    given = torch.randn(2, 3, 4, 8), torch.ones(3, 1, 4), torch.zeros(3, 1, 4)
    assert torch.equal(told(*given), plain(*given))
    assert torch.equal(told(given[0], second=given[2], first=given[1]), plain(*given))
    assert list(inspect.signature(told).parameters) == ["x", "first", "second"]
    assert (told.name, told.__doc__) == ("told", "It rotates.")


def test_checks_and_assertions_take_it() -> None:
    record = check_rotary(told, ["norm", "relative"], methods=["measured"])
    assert [law.verdict for law in record.laws] == ["measured"] * 2
    assert "first: n 1 D/2 cos" in record.adapted
    assert record.file == __file__
    assert record.law("norm").again.startswith(f"attnproof check {__file__}::told ")
    with pytest.raises(CodeBreaksLaw, match="norm"):
        assert_rotary(wrong, ["norm"], methods=["measured"])
    with pytest.raises(SignatureError):
        check_rotary(told, ["norm"], call="x: B n H D, third: n 1 D/2 sin -> x")


def test_a_module_is_one_too() -> None:
    class Doubled(nn.Module):
        def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            return torch.softmax(a @ b.mT / a.shape[-1] ** 0.5, -1) @ c

    call = "a: B H r D query, b: B H n D key, c: B H n D value -> B H r D"
    for code in (Doubled(), Doubled):
        assert_attention(attnproof.Program(code, call), ["order-of-keys"], methods=["measured"])
    record = check_attention(
        attnproof.Program(Doubled(), call), ["order-of-keys"], methods=["measured"]
    )
    assert record.name == "Doubled"


def test_the_command_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "rope.py", tmp_path / "found.json"
    file.write_text(FILE, encoding="utf-8")
    assert main(["check", f"{file}::told", "--law", "norm", "--json", str(out)]) == 0
    (one,) = CodesRecord.model_validate_json(out.read_text(encoding="utf-8")).codes
    assert (one.kind, one.file) == ("rotary", str(file))
    assert "first: n 1 D/2 cos" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("call", ["x: B n H D -> ", "y: B n H D, first: n 1 D/2 cos -> y"])
def test_what_cannot_be_one_is_refused_where_it_is_written(call: str) -> None:
    with pytest.raises(SignatureError):
        attnproof.Program(plain, call)


def test_the_package_stays_light(root: Path) -> None:
    code = "import sys, attnproof; dir(attnproof); print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"

"""What commands and pages show, commands in processes of their own, and one measurement."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from attnproof.answers.cards import Card
from attnproof.cli import main
from attnproof.numeric.results import MeasuredEvidence

Output = pytest.CaptureFixture[str]
WriteTheorem = Callable[..., Path]
WriteDemonstration = Callable[..., Path]

MEASURED = MeasuredEvidence(
    says="",
    implementation="torch",
    device="cpu",
    dtype="float32",
    sizes={"n": 4},
    seed=0,
    sampled="every entry",
    error=1e-7,
    tolerance=1e-6,
    worst=(0,),
    seconds=0.1,
    status="held",
    reason="",
    rounding="each operation rounded",
)


def shown(card: Card, width: int) -> str:
    """The card in a terminal of this width."""
    out = StringIO()
    Console(file=out, width=width, color_system=None).print(card)
    return out.getvalue()


def conforms(record: str, *flags: str) -> None:
    """A record as JSON is what the schema says that ``attnproof schema`` prints."""
    from jsonschema import Draft202012Validator

    with redirect_stdout(StringIO()) as told:
        assert main(["schema", *flags]) == 0
    schema = json.loads(told.getvalue())
    Draft202012Validator.check_schema(schema)
    found = Draft202012Validator(schema).iter_errors(json.loads(record))
    assert not [error.message[:200] for error in found]


def refused(output: Output, *arguments: str) -> str:
    """The one line of a usage error."""
    assert main(list(arguments)) == 2
    out, err = output.readouterr()
    assert not out
    (line,) = err.splitlines()
    return line


class Balanced(HTMLParser):
    """Refuses HTML whose tags do not close, and anything that would be fetched or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not [name for name, _ in attrs if name in ("src", "onclick")]
        if tag not in ("br", "mspace"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("br", "mspace"):
            assert self.open.pop() == tag


def balanced(html: str) -> None:
    parser = Balanced()
    parser.feed(html)
    assert not parser.open


def python(*words: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with what it printed."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=check, **more
    )


def begun(root: Path, *words: str) -> subprocess.Popen[str]:
    """A command in a process group of its own, to be interrupted as by Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "attnproof", *words],
        cwd=root,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(path: Path, seconds: float = 300) -> None:
    """Until a file is there."""
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.05)


WITHOUT_TORCH = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")
        return None


sys.meta_path.insert(0, Absent())
from attnproof.cli import main

sys.exit(main(sys.argv[1:]))
"""


def without_torch(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where torch cannot be imported."""
    return python("-c", WITHOUT_TORCH, *arguments, cwd=root, check=False)

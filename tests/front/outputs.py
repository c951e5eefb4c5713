"""What commands and pages show: a usage error, tags that close, a command where torch is absent."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from attnproof.cards import Card
from attnproof.cli import main

Output = pytest.CaptureFixture[str]


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
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )

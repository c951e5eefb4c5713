"""Pages are run as they are printed; ``python -m tests.front.pages`` writes what they print anew.

On a page of Markdown, a block of Python below a line that ends in ```NAME.py`:`` is a file, a block
``console`` has commands behind ``$`` with what they print, and a block ``{code-cell}`` is a cell of
a notebook.  What a page runs, it runs in a folder with its files.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from attnproof.cli import main as attnproof
from tests.front.outputs import python

ROOT = Path(__file__).resolve().parents[2]
FAILED = 2  # the exit code of a wrong command, and of an error of ours
COLUMNS = 100  # of the terminal in which commands of a page are run
_FILE = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
_CUT = re.compile(r"(.*)\| (head|tail) -n (\d+)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says that it prints."""

    line: str
    printed: str

    def run(self) -> str:
        """What it prints now; no page shows what ends as a command that failed does."""
        line = self.line.replace("\\\n", " ")
        cut = _CUT.fullmatch(line)
        code, told = run(cut[1] if cut else line)
        assert code != FAILED, f"{line} ended with exit code {code}"
        lines = [one.rstrip() for one in told.replace(f"{Path.cwd()}{os.sep}", "").splitlines()]
        if cut:
            lines = lines[: int(cut[3])] if cut[2] == "head" else lines[-int(cut[3]) :]
        return "\n".join(lines) + "\n"


def pages() -> tuple[Path, ...]:
    """The README and what is written by hand in docs/."""
    docs = ROOT / "docs"
    return (ROOT / "README.md", *sorted(docs.glob("*.md")), *sorted(docs.glob("tutorials/*.md")))


def commands(text: str) -> list[Command]:
    """What stands in blocks of a console."""
    blocks = _CONSOLE.findall(text)
    return [Command(*found) for block in blocks for found in _COMMAND.findall(block)]


def files(text: str) -> dict[str, str]:
    """The files that a page shows whole, by name."""
    return dict(_FILE.findall(text))


def cells(text: str) -> list[str]:
    """The cells of a page that is a notebook, without their options."""
    return [re.sub(r"\A(:[^\n]*\n)+\n?", "", cell) for cell in _CELL.findall(text)]


@contextlib.contextmanager
def folder_of(text: str, *, at: Path | None = None) -> Iterator[Path]:
    """A folder with the files of a page, and the commands in it as in a new terminal."""
    with contextlib.ExitStack() as stack:
        folder = at or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, code in files(text).items():
            (folder / name).write_text(code, encoding="utf-8")
        terminal = {
            "COLUMNS": str(COLUMNS),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(ROOT),
            "ATTNPROOF_EXAMPLES": str(ROOT / "docs" / "examples"),
        }
        stack.enter_context(mock.patch.dict(os.environ, terminal))
        stack.enter_context(mock.patch.object(sys, "path", [str(folder), *sys.path]))
        stack.callback(_forget, folder)
        stack.enter_context(contextlib.chdir(folder))
        yield folder


def _forget(folder: Path) -> None:
    """The next page may have a file of the same name."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(folder):
            del sys.modules[name]


def run(line: str) -> tuple[int, str]:
    """The exit code of a command of ours, or of pytest, and what it prints."""
    program, *words = shlex.split(line)
    if program == "pytest":
        done = python("-m", "pytest", *words, check=False)
        return done.returncode, done.stdout
    if program != "attnproof":
        raise ValueError(f"wanted a command of attnproof, or pytest, got {line!r}")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = attnproof(words)
    return code, out.getvalue()


def run_cells(text: str) -> str:
    """Run the cells of a page, one after the other; what they print and show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[str] = []
    for cell in cells(text):
        if written := re.match(r"%%writefile (\S+)\n", cell):
            Path(written[1]).write_text(cell[written.end() :], encoding="utf-8")
        elif cell.startswith("!"):
            code, told = run(cell[1:].replace("\\\n", " "))
            if code not in {0, 1}:
                raise ValueError(f"wanted exit code 0 or 1, got {code}: {cell}")
            shown.append(told)
        else:
            shown.append(_run_cell(cell, names))
    return "\n".join(shown)


def _run_cell(cell: str, names: dict[str, Any]) -> str:
    """Run one cell; what it prints, and its last expression as a notebook shows it."""
    body = ast.parse(cell).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if value is None:
        return out.getvalue()
    html = getattr(value, "_repr_html_", None)
    return f"{out.getvalue()}{html() if html is not None else value!r}"


def wordy(text: str) -> list[str]:
    """The words of an output, sorted, without its numbers.

    On another processor the last digits differ, and so may the order of conditions in a line.
    """
    return sorted(_NUMBER.sub("#", text).split())


def rewritten(text: str) -> str:
    """The page with what its commands print now."""

    def block(found: re.Match[str]) -> str:
        told = "".join(f"$ {one.line}\n{one.run()}" for one in commands(found[0]))
        return f"```console\n{told}```"

    return _CONSOLE.sub(block, text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.front.pages", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="all, if none")
    for page in parser.parse_args().pages or pages():
        text = page.read_text(encoding="utf-8")
        if not commands(text):
            continue
        with folder_of(text):
            new = rewritten(text)
        page.resolve().write_text(new, encoding="utf-8")
        print(f"{page}: {'written anew' if new != text else 'as it was'}")


if __name__ == "__main__":
    main()

"""Checks of the zoo in the process of the test, not in one that loads everything anew."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from types import SimpleNamespace

import pytest

from attnproof.cli import main
from attnproof.real_code import running
from attnproof.real_code.forking import ForkServer
from benchmarks.zoo import results


def here(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
    """What a command of Python would end with, run in this process."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(command[command.index("attnproof") + 1 :])
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


@contextmanager
def run_here(server: ForkServer) -> Iterator[None]:
    """Commands are run in this process, and the code that they check in forked ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "spawned", server.started)
        patch.setattr(results, "subprocess", SimpleNamespace(run=here))
        yield

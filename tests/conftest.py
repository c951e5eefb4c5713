"""What the tests of every layer share."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Constants of rounding that a machine's first test measured are there for all others, in worker
# processes and subprocesses as well; the user's own are left alone.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / "attnproof-tests")

# What runs in the background of a script inherits that Ctrl-C is ignored, and so would the
# programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A store of its own for each test: what one test finished, no other finds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

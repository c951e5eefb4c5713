"""What the tests of every layer share."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Constants of rounding that a machine's first test measured are there for all others, in worker
# processes and subprocesses as well; the user's own are left alone.
os.environ["XDG_DATA_HOME"] = str(Path(tempfile.gettempdir()) / "attnproof-tests")

# What the first subprocess compiles of four hundred files, the next two hundred need not.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What runs in the background of a script inherits that Ctrl-C is ignored, and so would the
# programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What a module makes for all of its tests is made once: one worker runs them.

    A run of every claim takes a minute and a half, and each worker would do it again.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return path if makes_for_a_module(path) else nodeid

    return ByFixture(config, log)


@cache
def makes_for_a_module(path: str) -> bool:
    """Whether a file has a fixture for all of its tests, beside settings that cost nothing."""
    file = ROOT / path
    return file.is_file() and '@pytest.fixture(scope="module")' in file.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A store of its own for each test: what one test finished, no other finds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def torch_settings() -> dict[str, object]:
    """What torch keeps for a whole process, and one test could leave changed for the next."""
    if "torch" not in sys.modules:
        return {}
    import torch

    cuda, mha = torch.backends.cuda, torch.backends.mha
    return {
        "flash attention": cuda.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        "math attention": cuda.math_sdp_enabled(),  # type: ignore[no-untyped-call]
        "efficient attention": cuda.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        "fast path": mha.get_fastpath_enabled(),
        "default dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "matmul precision": torch.get_float32_matmul_precision(),
    }


@pytest.fixture(autouse=True)
def torch_stays_as_it_was() -> Iterator[None]:
    """The test that changes what a later one stands on is the one that fails."""
    before = torch_settings()
    yield
    after = torch_settings()
    assert not before or after == before

"""What a test run says to the assertions: seed, dtype and device, and who hears of verdicts.

The pytest plugin sets it for each test; it loads nothing, so that a run without these assertions
pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """Where inputs come from unless an assertion says otherwise; ``heard``: name, verdict."""

    seed: int = 0
    dtype: str = "float32"
    device: str = "cpu"
    heard: Callable[[str, str], None] | None = None


AT_WORK: ContextVar[Run] = ContextVar("attnproof_run", default=Run())  # noqa: B039 (it is frozen)

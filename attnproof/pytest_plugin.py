"""A thin pytest plugin: options for the assertions of :mod:`attnproof.testing`, and their verdicts.

``--attnproof-seed``, ``--attnproof-dtype`` and ``--attnproof-device`` say how inputs are drawn.
Each law that an ``assert_*`` or ``check_*`` examined becomes a property of its test in JUnit XML,
``attnproof.NAME.LAW`` with the verdict.  Nothing heavy is loaded here.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator

import pytest

from . import __version__
from .real_code.request import AT_WORK, DTYPES, Run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a run."""
    group = parser.getgroup("attnproof", "laws of attention and position encodings")
    group.addoption(
        "--attnproof-seed", type=_seed, default=0, metavar="N", help="Seed of the random inputs."
    )
    group.addoption(
        "--attnproof-dtype", choices=DTYPES, default="float32", help="Dtype of the random inputs."
    )
    group.addoption(
        "--attnproof-device",
        default="cpu",
        metavar="auto|cpu|cuda|mps",
        help="Device of the inputs.",
    )


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"wanted an integer of at least 0, got {text!r}")
    return int(text)


def pytest_report_header(config: pytest.Config) -> str:
    """Return a line with the seed, dtype and device of the assertions."""
    run = _run(config)
    return f"attnproof {__version__}: seed {run.seed}, {run.dtype}, {run.device}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Pass the options of the run to the assertions of this test, and record their verdicts."""

    def report(name: str, verdict: str) -> None:
        item.user_properties.append((name, verdict))

    run = _run(item.config)
    token = AT_WORK.set(Run(run.seed, run.dtype, run.device, report))
    try:
        return (yield)
    finally:
        AT_WORK.reset(token)


def _run(config: pytest.Config) -> Run:
    option = config.getoption
    return Run(
        option("--attnproof-seed"), option("--attnproof-dtype"), option("--attnproof-device")
    )

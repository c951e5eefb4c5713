"""Start-up: `attnproof --help` and `list`, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from rich.table import Table


def start_up(rounds: int = 5) -> Table:
    """Wall seconds of whole processes: minimum, median, maximum, and over an empty Python."""
    table = Table("command", "min s", "median s", "max s", "over python -c ''", title="Start-up")
    empty = _rounds([sys.executable, "-c", ""], rounds)
    for words in (["--help"], ["list"]):
        times = _rounds([sys.executable, "-m", "attnproof", *words], rounds)
        median = statistics.median(times)
        ratio = median / statistics.median(empty)
        table.add_row(
            "attnproof " + " ".join(words),
            f"{min(times):.2f}",
            f"{median:.2f}",
            f"{max(times):.2f}",
            f"{ratio:.0f} times",
        )
    return table


def _rounds(command: list[str], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return times

"""How often each policy refuses correct programs, and which planted faults it catches.

``python -m benchmarks.trials`` prints both tables; docs/trials.md was written by it.  attnproof's
policies are compared with the usual rules for testing a kernel against a reference.  After an
interrupt the finished part is reported.  The exit code is 1 if a policy refuses too many correct
programs, or a fault above its bound was missed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from attnproof.commands.options import cores
from attnproof.documents.document import bar
from attnproof.documents.evidence import write_json
from attnproof.numeric.devices import DTYPES, chosen, devices
from attnproof.numeric.distributions import DISTRIBUTIONS
from benchmarks.markdown import markdown
from benchmarks.trials.judging import Batch, Case
from benchmarks.trials.record import Asked, document, grids, run_trials, summary


def _read(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trials", description=__doc__)
    known: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument(
        "--cases", type=int, default=10_000, help="number of correct programs to run"
    )
    parser.add_argument(
        "--fault-seeds",
        type=int,
        default=5,
        help="draws of each planted fault in each input distribution",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", **known, choices=list(DTYPES), help="by default all")
    parser.add_argument(
        "--distribution", "--design", **known, choices=list(DISTRIBUTIONS), help="by default all"
    )
    parser.add_argument("--device", default="cpu", choices=["auto", *devices()])
    parser.add_argument("--jobs", type=int, default=cores(), help="number of parallel processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write both tables")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the requested trials, and print both tables."""
    given = _read(arguments)
    place = str(chosen(given.device))
    every = [name for name in DTYPES if place != "mps" or name != "float64"]
    command = (
        f"python -m benchmarks.trials --cases {given.cases} "
        f"--fault-seeds {given.fault_seeds} --seed {given.seed}"
    )
    command += "".join(f" --dtype {name}" for name in given.dtype)
    command += "".join(f" --distribution {name}" for name in given.distribution)
    asked = Asked(
        given.cases,
        given.fault_seeds,
        tuple(given.dtype or every),
        tuple(given.distribution or DISTRIBUTIONS),
        place,
        given.seed,
        given.jobs,
        f"{command} --device {place} --jobs {given.jobs}",
    )
    with bar() as shown:
        task = shown.add_task("", total=len(asked.batches()))

        def tell(batch: Batch, _: list[Case]) -> None:
            shown.update(task, advance=1, description=f"{batch.name}, {batch.distribution}")

        record = run_trials(asked, tell)
    for grid in grids(record):
        Console().print(grid.shown())
    print(summary(record))
    if given.markdown is not None:
        given.markdown.write_text(markdown(document(record)), encoding="utf-8")
        print(f"wrote {given.markdown}")
    if given.json is not None:
        print(f"wrote {write_json(record, given.json)}")
    return 130 if record.unfinished else int(not record.ok)


if __name__ == "__main__":
    raise SystemExit(main())

"""Run benchmarks: ``python -m benchmarks [NAME ...] [--markdown FILE]`` from a checkout.

Prints tables and asserts nothing; on a shared machine only ratios within one run are meaningful.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from benchmarks.commands_time import check_time, start_up, two_workers
from benchmarks.markdown import page
from benchmarks.numeric_time import equivariance_cost
from benchmarks.peers import against_peers
from benchmarks.scale_time import at_scale_cost, exact_cost, growth
from benchmarks.symbolic_time import against_sympy, catalogue_time, gate_time

TABLES = {
    "start-up": start_up,
    "catalogue": catalogue_time,
    "gate": gate_time,
    "sympy": against_sympy,
    "equivariance": equivariance_cost,
    "peers": against_peers,
    "scale": at_scale_cost,
    "exact": exact_cost,
    "growth": growth,
    "sweeps": two_workers,
    "check": check_time,
}


def main() -> None:
    """Print the named tables, by default all, and write them to the file if one is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(TABLES)}")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="also write the tables to this file"
    )
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - TABLES.keys())
    if unknown:
        parser.error(f"{', '.join(unknown)}: there are {', '.join(TABLES)}")
    console = Console(width=140)
    tables = []
    for name in asked.names or TABLES:
        tables.append(TABLES[name]())
        console.print(tables[-1])
    if asked.markdown is not None:
        words = " ".join(["python -m benchmarks", *asked.names])
        asked.markdown.write_text(page("Benchmarks", words, tables), encoding="utf-8")


if __name__ == "__main__":
    main()

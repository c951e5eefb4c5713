"""All benchmarks in one run: ``python -m benchmarks`` from a checkout.

Prints tables and asserts nothing; on a shared machine only ratios within one run say much.
"""

from __future__ import annotations

from rich.console import Console

from benchmarks.numeric_time import equivariance_cost
from benchmarks.start_up import start_up
from benchmarks.symbolic_time import against_sympy, catalogue_time


def main() -> None:
    """Print every table."""
    console = Console(width=140)
    for table in (start_up, catalogue_time, against_sympy, equivariance_cost):
        console.print(table())


if __name__ == "__main__":
    main()

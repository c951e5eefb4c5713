"""Tables as a page of Markdown that says where and when they were made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.table import Table

from attnproof.records import Machine


def page(title: str, command: str, tables: Sequence[Table]) -> str:
    """A heading, the command, the machine and the day, then every table."""
    day = datetime.now(UTC).date().isoformat()
    where = Machine.here()
    told = (
        f"Made by `{command}` on {day}: {where.platform}, {where.processors} processors, "
        f"torch {where.torch}, devices: {', '.join(where.devices)}."
    )
    return "\n\n".join([f"# {title}", told, *map(written, tables)]) + "\n"


def written(table: Table) -> str:
    """One table of rich in Markdown, its title above it."""
    names = [str(column.header) for column in table.columns]
    rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
    lines = [f"## {table.title}", "", *map(_line, (names, ["---"] * len(names), *rows))]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

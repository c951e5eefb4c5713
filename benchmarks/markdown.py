"""Write pages of Markdown: paragraphs, lists, and tables with the machine and date of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.table import Table

from attnproof.documents.document import Grid
from attnproof.theorem_runs.records import Machine


def markdown(parts: Iterable[str | Grid | Table]) -> str:
    """Return a page of these parts, which are Markdown or tables.

    >>> print(markdown(["# Two", Grid("Laws", ("law", "verdict"), (("even", "proved"),))]), end="")
    # Two
    <BLANKLINE>
    ## Laws
    <BLANKLINE>
    | law | verdict |
    | --- | --- |
    | even | proved |
    """
    return "\n\n".join(one if isinstance(one, str) else written(one) for one in parts) + "\n"


def page(title: str, command: str, tables: Sequence[Table]) -> str:
    """Return a page with a heading, the command, the machine and the date, then all tables."""
    day = datetime.now(UTC).date().isoformat()
    where = Machine.here()
    told = (
        f"Made by `{command}` on {day}: {where.platform}, {where.processors} processors, "
        f"torch {where.torch}, devices: {', '.join(where.devices)}."
    )
    return markdown([f"# {title}", told, *tables])


def written(table: Grid | Table) -> str:
    """Return a table with its title above and its notes below."""
    if isinstance(table, Table):
        names = tuple(str(column.header) for column in table.columns)
        columns = ([str(cell) for cell in column.cells] for column in table.columns)
        table = Grid(str(table.title), names, tuple(zip(*columns, strict=True)))
    rows = table_of(table.columns, table.rows, words=1 if table.numbers else len(table.columns))
    return "\n\n".join([f"## {table.title}", rows, *[items(table.notes)] * bool(table.notes)])


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: int) -> str:
    """Return the lines of a table, whose columns after the first ``words`` are numbers.

    >>> print(table_of(["law", "proved"], [["even", "3"]], words=1))
    | law | proved |
    | --- | ---: |
    | even | 3 |
    """
    rule = ["---" if k < words else "---:" for k in range(len(columns))]
    return "\n".join(map(cells, (columns, rule, *rows)))


def items(texts: Iterable[str]) -> str:
    """Return a list with a bullet for each text."""
    return "\n".join(f"* {text}" for text in texts)


def cells(row: Sequence[str]) -> str:
    r"""Return a row of a table.

    >>> print(cells(["a|b", "two words"]))
    | a\|b | two words |
    """
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in row) + " |"

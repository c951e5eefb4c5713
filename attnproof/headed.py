"""Tables of the terminal: a line under the headings, and no frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["headed"]


def headed(*columns: str, title: str = "", caption: str = "", **more: Any) -> Table:
    """A table with these columns, whose cells are wrapped; others may be added to it.

    Title and caption stand at the left; ``more`` is as rich's ``Table`` takes it.  rich is loaded
    here, so that commands without a table start without it.

    >>> table = headed("law", "verdict", title="Two laws")
    >>> [column.header for column in table.columns]
    ['law', 'verdict']
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    plain = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": 0}
    table = Table(
        title=title or None, title_justify="left", caption=caption or None, caption_justify="left",
        **{**plain, **more},
    )  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
